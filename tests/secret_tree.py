"""What does a Qoder home look like that holds a made-up secret in every field a record, a file or a folder has?

Kinds are those of ``mask_cases``; each planted secret is new: its middle is random, drawn from a seeded generator, so
that both its first and its second part can be looked for by themselves.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.mask_cases import BASIC, CONTEXT, TOKENS

if TYPE_CHECKING:
    from pathlib import Path

#: Parts of a secret that make its format: they stay as they are.
_FIXED: Final = re.compile(
    r"atlas(?:v1)|T3Blbk(?:FJ)|AZ(?:DO)|NR(?:AL)|us12|gl(?:pat-)|np(?:m_)|eyJ|_m(?:mk)|A{10}|:A(?:A)|\\n"
    "|theme|dark|session|IncomingWebhook|-----? ?(?:BEGIN|END)[A-Z0-9 ]+KEY ?-----?"
)
_WORD: Final = re.compile(r"[A-Za-z0-9]{4,}")
#: What may stand in a session's file name.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,150}")
#: Tokens with one kind of sign, which their folder's name can still be known by.
_SLUG: Final = re.compile(r"[A-Za-z0-9]{2,15}(?:_[A-Za-z0-9_]{20,90}|\.[A-Za-z0-9.]{20,90}|-[A-Za-z0-9-]{20,90})")
SESSIONS: Final = 8
#: Texts that look like secrets and are none: they are stored as they are.
PLAIN: Final = (
    "commit 0123456789abcdef0123456789abcdef01234567 uses 12345 input_tokens and max_tokens: 4096",
    "see /home/dev/.config/secrets/token1.json of session 01234567-89ab-cdef-0123-456789abcdef",
    "msg_01FAKE0123456789abcdefgh answered toolu_bdrk_01AdSj7jaPFPDKtLK82oViaP at https://example.com:8080/@a/b",
)


class Secret(NamedTuple):
    """A planted secret: the rule of its kind, where it was planted, and itself."""

    rule: str
    place: str
    value: str


class _Kind(NamedTuple):
    rule: str
    before: str
    literal: str
    body: str
    after: str


def _kinds() -> list[_Kind]:
    kinds = []
    for rule, prefix, body in TOKENS:
        literal = "" if prefix[:4] in ("FAKE", "0123", "fake") else prefix
        kinds.append(_Kind(rule, "", literal, prefix.removeprefix(literal) + body, ""))
    kinds += [_Kind(rule, before, "", secret, after) for rule, before, secret, after in CONTEXT]
    return kinds


class Planter:
    """Hands out texts with a new secret in each, and remembers them. ``sessions``: native ids of the tree."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.secrets: list[Secret] = []
        self.sessions: list[str] = []
        self._kinds = _kinds()
        self._turn = 0

    def _fresh(self, kind: _Kind) -> str:
        if kind.body == BASIC:
            return base64.b64encode(f"fake:FAKE-{self.random.getrandbits(96):024x}".encode()).decode()
        body = kind.body if len(kind.body) >= 16 else kind.body + "0fake1fake"
        pieces, end = (["FAKE"], 4) if body.startswith("FAKE") else ([], 0)
        for fixed in [*_FIXED.finditer(body, end), None]:
            start = len(body) if fixed is None else fixed.start()
            pieces.append(_WORD.sub(self._shuffled, body[end:start]))
            if fixed is not None:
                pieces.append(fixed[0])
                end = fixed.end()
        return kind.literal + "".join(pieces)

    def _shuffled(self, word: re.Match[str]) -> str:
        small = "abcdef" if re.fullmatch("[0-9a-f]+", word[0]) else "bcdefghjkmnpqrstuvwxyz"
        one = {"0": "234567", "a": small, "A": "BCDEFGHJKLMNPQRSTUVWXYZ"}
        return "".join(self.random.choice(one["0" if c.isdigit() else "a" if c.islower() else "A"]) for c in word[0])

    def _next(self, fits: re.Pattern[str] | None, *, bare: bool) -> _Kind:
        while True:
            self._turn += 1
            kind = self._kinds[self._turn % len(self._kinds)]
            if bare and (kind.before or kind.after or "\n" in kind.body or kind.rule in _NEEDS_CONTEXT):
                continue
            if fits is None or fits.fullmatch(kind.literal + kind.body):
                return kind

    def _plant(self, kind: _Kind, place: str) -> str:
        value = self._fresh(kind)
        self.secrets.append(Secret(kind.rule, place, value))
        return value

    def text(self, place: str) -> str:
        """A text with a secret in what its kind needs around it."""
        kind = self._next(None, bare=False)
        value = self._plant(kind, place)
        return f"{kind.before}{value}{kind.after}" if kind.before or kind.after else f"take {value} for it"

    def token(self, place: str) -> str:
        """A secret that is known by its own look."""
        return self._plant(self._next(None, bare=True), place)

    def name(self, place: str, fits: re.Pattern[str] = _NAME) -> str:
        """Such a secret that may be a file's name."""
        return self._plant(self._next(fits, bare=True), place)

    def slug(self, place: str) -> str:
        """A working folder's name as Qoder makes it; the secret in it is looked for in this form too."""
        value = self.name(place, _SLUG)
        told = re.sub("[^A-Za-z0-9]", "-", value)
        self.secrets += [Secret("", place, told)] * (told != value)
        return f"-home-dev-{told}"

    def torn(self, place: str) -> str:
        """A text that ends in the first part of a secret."""
        kind = self._next(re.compile(r"[^\n\\]{10,100}"), bare=False)
        value = self._fresh(kind)
        piece = value[: len(value) * 6 // 10]
        self.secrets.append(Secret(kind.rule, place, piece))
        return kind.before + piece

    def parted(self, place: str, mark: str) -> str:
        """A token with a mark in its middle; either side of it must not be found."""
        value = self.token(place)
        middle = len(value) // 2
        self.secrets += [Secret("", place, value[:middle]), Secret("", place, value[middle:])]
        return f"{value[:middle]}{mark}{value[middle:]}"


#: Rows of CONTEXT without surroundings that are still no token.
_NEEDS_CONTEXT: Final = frozenset({"private-key", "generic-api-key", "cli-password", "curl-user", "basic-auth"})


class _Session:
    """The lines of one session. Each record gets the next second, and ids of its own unless it is given some."""

    def __init__(self, planter: Planter, number: int) -> None:
        self.plant, self.number, self.lines, self.count = planter, number, list[bytes](), 0
        self.sid = planter.name("sessionId")
        self.uuid: str | None = None
        self.calls: list[str] = []
        self.base = {
            "sessionId": self.sid,
            "cwd": f"/srv/{planter.token('cwd')}",
            "gitBranch": f"fix/{planter.token('gitBranch')}",
            "version": planter.token("version"),
            "entrypoint": planter.token("entrypoint"),
        }

    def raw(self, line: str | bytes) -> None:
        """A line as it stands."""
        self.lines.append(line.encode() if isinstance(line, str) else line)

    def state(self, kind: str, **more: Any) -> None:
        """A record without ids of its own."""
        self.raw(json.dumps({"type": kind, "sessionId": self.sid, **more}, ensure_ascii=False))

    def row(self, kind: str, **more: Any) -> dict[str, Any]:
        """A record of the message chain."""
        self.count += 1
        uuid = f"{self.number:08x}-0000-4000-8000-{self.count:012x}"
        stamp = f"2026-05-01T{self.number % 24:02d}:{self.count // 60:02d}:{self.count % 60:02d}.000Z"
        value = {"type": kind, "uuid": uuid, "parentUuid": self.uuid, "timestamp": stamp, **self.base, **more}
        self.uuid = value["uuid"]
        self.raw(json.dumps(value, ensure_ascii=False))
        return value

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
        """A record of role user."""
        return self.row("user", message={"role": "user", "content": content}, **more)

    def assistant(self, *items: Any, **more: Any) -> dict[str, Any]:
        """A record of role assistant, one message of its own unless ``message`` says more."""
        message = {"id": f"msg_{self.number}_{self.count}", "role": "assistant", "content": list(items)}
        return self.row("assistant", message=message | more.pop("message", {}), **more)

    def call(self, name: str, args: Any) -> None:
        """A request under an id that is a secret."""
        identity = self.plant.token("tool id")
        self.calls.append(identity)
        self.assistant({"type": "tool_use", "id": identity, "name": name, "input": args})


def plant_home(home: Path, planter: Planter) -> None:
    """Writes the tree below a home."""
    projects = home / ".qoder" / "projects"
    first: dict[str, Any] = {}
    for number in range(SESSIONS):
        session = _Session(planter, number)
        _prompts(session, first)
        _answers(session)
        _calls(session)
        _states(session)
        _beside(session)
        _unknown(session)
        _damage(session)
        folder = projects / f"-srv-{planter.name('folder name')}"
        if number % 2:  # as Qoder names it: each sign of the working folder is a dash
            folder = projects / planter.slug("slug")
        folder.mkdir(parents=True)
        (folder / f"{session.sid}.jsonl").write_bytes(b"\n".join(session.lines))
        planter.sessions.append(session.sid)
        _files_beside(session, folder)
        if not first:
            first = {"sessionId": session.sid, "messageUuid": session.base["planted"]}
    _odd_paths(projects, planter)


def _prompts(session: _Session, first: dict[str, Any]) -> None:
    plant = session.plant
    prompt, session.base["planted"] = plant.text("prompt"), plant.token("uuid")
    session.user(prompt, promptId=plant.token("promptId"))
    for text in PLAIN:
        session.user(text)
    session.user([{"type": "text", "text": plant.text("prompt block")}, {"type": "text", "text": plant.text("prompt")}])
    session.user("<x>", humanInput={"text": plant.text("humanInput"), "mode": "prompt"}, origin={"kind": "human"})
    session.user(f"<command-name>/do</command-name>\n<command-args>{plant.text('command')}</command-args>")
    session.user(f"<bash-input>{plant.text('shell')}</bash-input>")
    session.user(f"<system-reminder>{plant.text('context')}</system-reminder>", isMeta=True)
    session.user(plant.text("summary"), isCompactSummary=True)
    session.user(f"[Request interrupted by user] {plant.text('interrupt')}")
    fork = first or {"sessionId": plant.token("forkedFrom"), "messageUuid": plant.token("forkedFrom")}
    session.user(plant.text("fork"), forkedFrom=fork)


def _answers(session: _Session) -> None:
    plant = session.plant
    usage = {"input_tokens": 12345, "output_tokens": 678, "cache_read_input_tokens": 90}
    head = {"id": plant.token("message.id"), "model": plant.token("model"), "stop_reason": plant.token("stop_reason")}
    session.assistant(
        {"type": "thinking", "thinking": plant.text("thinking")},
        {"type": "text", "text": plant.text("text")},
        {"type": "output_text", "text": {"value": plant.text("output_text")}},
        message=head | {"usage": usage},
        requestId=plant.token("requestId"),
    )
    grown = {"id": f"msg_grown_{session.number}"}
    session.assistant({"type": "text", "text": "It is"}, message=grown)
    session.assistant({"type": "text", "text": "It is " + plant.text("snapshot")}, message=grown)
    same = plant.token("uuid")
    session.assistant({"type": "text", "text": plant.text("conflict")}, uuid=same)
    session.assistant({"type": "text", "text": plant.text("conflict")}, uuid=same)
    session.row("assistant", message=plant.text("legacy message"))
    inner = {"role": "assistant", "content": [{"type": "text", "text": plant.text("transport string")}]}
    session.row("assistant", message=json.dumps(inner))
    session.raw(json.dumps({"role": "assistant", "message": {"content": plant.text("cache row")}}))
    session.assistant(
        {"type": "text", "text": plant.text("API error")},
        isApiErrorMessage=True,
        error=plant.text("error"),
        displayErrorCode=plant.token("error code"),
        errorDetails=plant.text("error details"),
    )


def _calls(session: _Session) -> None:
    plant = session.plant
    script = f"#!/bin/sh\nset -e\n{plant.text('script')}\nexport LANG=C\n{plant.text('script')}\n"
    session.call("Bash", {"command": script, "env": {"deep": [{"er": plant.text("nested argument")}]}})
    env = f"# settings\nDEBUG=1\n{plant.text('env file')}\n"
    session.call("Write", {"file_path": f"/srv/{plant.token('path')}", "content": env})
    session.call(f"mcp__{plant.token('mcp server')}__{plant.token('tool name')}", {"q": f"{plant.text('argument')}"})
    session.call(f"mcp__{plant.token('mcp server')}__run", {})
    doubly = json.dumps({"outer": json.dumps({"inner": plant.text("JSON in a string")})})
    session.call(plant.token("tool name"), {"body": doubly, plant.token("argument name"): 1})
    session.call("Fetch", json.dumps({"url": f"https://example.com/?q={plant.token('URL')}&n=1"}))
    session.call("Odd", f"not JSON: {plant.text('argument text')}")
    contents = [
        plant.text("result"),
        [{"type": "text", "text": plant.text("result block")}, {"type": "text", "text": plant.text("result block")}],
        [{"type": "other", "data": {"x": plant.text("result structure")}}],
        {"lines": [plant.text("result structure")]},
        "done",
        "\n".join(f"{n:6}→{line}" for n, line in enumerate(plant.text("numbered result").split("\n"), 1)),
        "x" * 300_000 + plant.text("middle of a long result") + "x" * 300_000 + plant.text("end of a long result"),
    ]
    items = [
        {"type": "tool_result", "tool_use_id": identity, "content": content}
        for identity, content in zip(session.calls, contents, strict=True)
    ]
    agent = plant.name("agent id")
    session.base["agent"] = agent
    extra = [{"stdout": plant.text("stdout"), "status": plant.token("status")}] + [{}] * 5 + [{"agentId": agent}]
    denial = {"toolDenialKind": [plant.token("denial")], "userFeedback": plant.text("userFeedback")}
    session.user(items, toolUseResult=extra, uuid=session.base["planted"], **denial)


def _states(session: _Session) -> None:
    plant = session.plant
    for kind, key in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("last-prompt", "lastPrompt")):
        session.state(kind, **{key: plant.text(kind)})
    for kind, key in (("summary", "summary"), ("tag", "tag"), ("relocated", "relocatedCwd")):
        session.state(kind, **{key: plant.text(kind)})
    session.state("runtime-config", model=plant.token("runtime-config"), timestamp=1_777_600_000_000)
    session.state("workspace-directories", directories=[f"/srv/{plant.token('workspace')}", plant.text("workspace")])
    tree = {key: plant.token("worktree") for key in ("originalCwd", "worktreePath", "worktreeName", "worktreeBranch")}
    session.state("worktree-state", worktreeSession=tree)
    session.state("active-leaf", leafUuid=session.base["planted"], explicit=True, timestamp=1_777_600_000_000)


def _beside(session: _Session) -> None:
    plant = session.plant
    session.row("system", subtype=plant.token("subtype"), content=plant.text("system"), level=plant.token("level"))
    meta = {"trigger": plant.token("trigger"), "preTokens": 20}
    session.row("system", subtype="compact_boundary", content=plant.text("boundary"), compactMetadata=meta)
    session.row("attachment", attachment={"type": plant.token("attachment type"), "content": plant.text("attachment")})
    session.row("attachment", attachment={"type": "hook", "env": {"deep": [plant.text("attachment")]}})
    session.row("attachment", attachment={"type": "queued_command", "prompt": plant.text("queued command")})
    queued = [{"type": "text", "text": plant.text("queued command")}]
    session.row("attachment", attachment={"type": "queued_command", "prompt": queued})


def _unknown(session: _Session) -> None:
    plant = session.plant
    session.state(plant.token("record type"), body=plant.text("unknown record"))
    session.state("file-history-snapshot", body=plant.text("skipped record"))
    session.raw(json.dumps({"body": plant.text("record without type")}))
    session.row("user", message=[plant.text("rejected record")])
    session.assistant({"type": plant.token("item type"), "text": plant.text("unknown item")}, [plant.text("no item")])


def _damage(session: _Session) -> None:
    """Lines that are no record; a pad puts the secret of some astride the 200 characters that are kept."""
    plant = session.plant
    session.raw('{"type":"user","message":{"content":' + json.dumps(plant.text("malformed line")) + " oops")
    pad = "x " * 90
    session.raw('{"type":"user","note":"' + pad + plant.torn("line clipped inside a secret")[:150] + ' " oops')
    session.raw(json.dumps([plant.text("line that is no object")]))
    glued = [json.dumps({"type": "user", "message": {"content": plant.text("glued line")}}) for _ in range(2)]
    session.raw("".join(glued))
    session.raw(f'{{"type":"user","message":{{"content":"{plant.parted("line with a NUL", chr(0))}"}}}}')
    session.raw(json.dumps({"type": "user", "message": {"content": plant.text("UTF-16 line")}}).encode("utf-16-le"))
    session.raw('{"type":"user","message":{"content":"\\ud800 ' + plant.token("surrogate line") + '"}}')
    session.raw(b'{"type":"user","message":{"content":"\xff ' + plant.token("invalid UTF-8").encode() + b'"}}')
    session.raw('{"type":"user","message":{"content":"' + plant.torn("torn tail"))


def _files_beside(session: _Session, folder: Path) -> None:
    """A sub-agent with or without its meta document, and a sidecar that is sound, damaged or cut off."""
    plant, agent = session.plant, str(session.base["agent"])
    below = folder / session.sid / "subagents"
    below.mkdir(parents=True)
    child = _Session(plant, session.number)
    child.sid = session.sid
    child.user(plant.text("objective"), agentId=agent, isSidechain=True, sessionId=session.sid)
    child.assistant({"type": "text", "text": plant.text("sub-agent text")}, isSidechain=True, sessionId=session.sid)
    (below / f"agent-{agent}.jsonl").write_bytes(b"\n".join(child.lines) + b"\n")
    plant.sessions.append(f"{session.sid}/agent-{agent}")
    if session.number % 2:
        meta = {"toolUseId": session.calls[0], "agentType": plant.token("agentType")}
        (below / f"agent-{agent}.meta.json").write_text(json.dumps(meta), encoding="utf-8")
    document = json.dumps(
        {
            "id": session.sid,
            "title": plant.text("sidecar title"),
            "working_dir": f"/srv/{plant.token('working_dir')}",
            "parent_session_id": plant.token("parent_session_id"),
            "fork_from": plant.token("fork_from"),
        }
    )
    damaged = (document, document[: len(document) * 3 // 4], f"oops {document}", document)[session.number % 4]
    raw = damaged.encode("utf-16-le" if session.number % 4 == 3 else "utf-8")
    (folder / f"{session.sid}-session.json").write_bytes(raw)


def _odd_paths(projects: Path, planter: Planter) -> None:
    """Names that no grammar claims, claimed names that are no file, and a folder too deep to be walked."""
    for _ in range(4):
        folder = projects / f"-srv-{planter.name('folder name')}"
        folder.mkdir()
        (folder / f"notes.{planter.name('file ending')}").write_text("plain", encoding="utf-8")
        (folder / f"{planter.name('dangling link')}.jsonl").symlink_to(folder / planter.name("link target"))
        os.mkfifo(folder / f"{planter.name('FIFO')}.jsonl")
        record = {"type": "user", "sessionId": planter.token("sessionId"), "message": {"content": "plain"}}
        planter.sessions.append(str(record["sessionId"]))
        packed = gzip.compress(json.dumps(record).encode())
        (folder / f"{planter.name('compressed file')}.jsonl.gz").write_bytes(packed)
        deep = folder.joinpath(*["d"] * 32, planter.name("folder too deep"))
        deep.mkdir(parents=True)
