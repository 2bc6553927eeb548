"""How does a generated Qoder session stand on disk?

Record shapes are those that qodercli 1.1.28, 1.1.52 and 1.1.76 write: state records first and again at the end, one
content block per assistant record, ``stop_reason`` null and no ``usage`` on all but the last record of a message, zero
tokens beside credits, results below the record of their call, an ``active-leaf`` after every write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from tests.bench.calls import REFUSED, arguments, outcome, tool
from tests.bench.draw import File, iso, malformed, torn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.draw import Draw, Json, Mix

_VERSIONS: Final = ("1.1.28", "1.1.52", "1.1.76")
_MODELS: Final = ("auto", "performance", "efficient", "ultimate")
_INTERRUPTED: Final = "[Request interrupted by user for tool use]"
_FIRST_SESSION_MS: Final = 1_788_300_000_000  # 2 September 2026
_SKILLS: Final = ("simplify", "mcp-config", "loop", "run", "verify", "agent-creator", "hook-config", "skill-creator")


def sessions(draw: Draw, mix: Mix) -> Iterator[list[File]]:
    """Session after session without end: its file and those of its sub-agents."""
    skills = "\n".join(f"- {name}: {draw.text(320)}" for name in _SKILLS)
    start = _FIRST_SESSION_MS
    while True:
        start += 60_000 + draw.below(9_000_000)
        number = int(draw.random.paretovariate(1.1) % 97)  # a few projects hold most sessions
        cwd = f"/srv/work/team_{number % 7}/service.{number:02d}"
        session = _Session(draw, mix, skills, _Setting.drawn(draw, cwd), start)
        session.open()
        for _ in range(draw.turns()):
            session.turn()
        yield list(session.files())


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all records of a session state."""

    session: str
    cwd: str
    version: str
    branch: str
    model: str

    @classmethod
    def drawn(cls, draw: Draw, cwd: str) -> _Setting:
        branch = ("main", "feat/x", "fix/y")[draw.below(3)]
        return cls(draw.uuid(), cwd, _VERSIONS[draw.below(3)], branch, _MODELS[draw.below(4)])


@dataclass(frozen=True, slots=True)
class _Call:
    """A call without its result yet: ``row`` is the uuid of its record."""

    name: str
    id: str
    given: Json
    row: str


class _Session:
    """Writes one transcript: its clock (Unix milliseconds), its parent chain, its lines, its sub-agents."""

    def __init__(self, draw: Draw, mix: Mix, skills: str, setting: _Setting, start: int, agent: str = "") -> None:
        self.draw, self.mix, self.skills, self.setting, self.agent = draw, mix, skills, setting, agent
        self.started = self.now = start
        self.lines: list[bytes] = []
        self.parent: str | None = None
        self.prompt_row = self.prompt_id = self.prompt = self.answer = ""
        self.backups: Json = {}
        self.titled = self.snapshot_due = False
        self.children: list[tuple[_Session, _Call]] = []
        self.common: Json = {"isSidechain": bool(agent), "cwd": setting.cwd, "sessionId": setting.session}
        self.common |= {"userType": "external", "entrypoint": "cli", "version": setting.version}
        self.common |= {"gitBranch": setting.branch} | ({"agentId": agent} if agent else {})

    # --- records ----------------------------------------------------------------------------------------------------

    def put(self, kind: str, **fields: Any) -> None:
        """A state record."""
        self.lines.append(orjson.dumps({"type": kind, "sessionId": self.setting.session, **fields}))

    def row(self, kind: str, fields: Json, parent: str | None = None) -> str:
        """A record of the chain, below ``parent`` (default: the last one); its uuid. Some are sent twice."""
        name = self.draw.uuid()
        head = {"type": kind, "uuid": name, "timestamp": iso(self.now)}
        line = orjson.dumps({**head, **fields, "parentUuid": parent or self.parent, **self.common})
        self.lines.append(line)
        if self.draw.chance(self.mix.resends):
            self.lines.append(line)
        self.parent = name
        return name

    def leaf(self) -> None:
        """The tail of the live branch, written after every write."""
        self.put("active-leaf", leafUuid=self.parent, explicit=False, timestamp=self.now)

    def state(self) -> None:
        """Where and with which model the session runs."""
        self.put("workspace-directories", directories=[self.setting.cwd])
        unset: Json = dict.fromkeys(("reasoningEffort", "contextWindow", "generation"))
        self.put("runtime-config", model=self.setting.model, **unset, timestamp=self.started)

    # --- a session --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.state()

    def turn(self) -> None:
        """A prompt and what follows."""
        self.now += 2_000 + self.draw.below(400_000)
        self.ask()
        self.work()
        if self.draw.chance(0.01):
            self.compact()
        if self.draw.chance(self.mix.malformed):
            self.lines.append(malformed(self.draw))

    def work(self) -> None:
        """Model responses with calls, then one without, unless the person stops it before."""
        for _ in range(self.draw.steps()):
            calls = self.respond()
            self.leaf()
            if not self.settle(calls):
                return
        self.respond(final=True)
        self.leaf()
        if not self.titled and not self.agent:
            self.titled = True
            self.put("ai-title", aiTitle=self.draw.text(40))

    def ask(self) -> None:
        """A person's prompt; with the first one the CLI injects what it offers."""
        first, modern = self.parent is None, self.setting.version == "1.1.52"
        self.prompt, self.prompt_id = self.draw.prose(20, 4000, 5, 1), self.draw.hex(13)
        content = [{"type": "text", "text": self.prompt}] if modern else self.prompt
        fields: Json = {"message": {"role": "user", "content": content}, "permissionMode": "default"}
        fields |= {"origin": {"kind": "human"}, "promptId": self.prompt_id}
        fields |= {"humanInput": {"text": self.prompt, "mode": "prompt"}}
        fields |= {"requestSetId": self.draw.uuid()} if modern else {}
        self.prompt_row = self.row("user", fields)
        if first:
            listing: Json = {"type": "skill_listing", "content": self.skills, "names": list(_SKILLS)}
            self.row("attachment", {"attachment": listing | {"skillCount": len(_SKILLS), "isInitial": True}})
            self.row("attachment", {"attachment": {"type": "date_change", "date": iso(self.now)[:10]}})
        self.leaf()

    def respond(self, *, final: bool = False) -> list[_Call]:
        """One response of the model, a record per block; its calls."""
        draw = self.draw
        self.now += 50 + draw.below(9_000)
        blocks: list[Json] = []
        if draw.chance(0.45):
            blocks.append({"type": "thinking", "thinking": draw.prose(80, 8000, 6, 1), "signature": ""})
        if final or draw.chance(0.5):
            self.answer = draw.prose(20, 6000, 5.2, 1)
            blocks.append({"type": "text", "text": self.answer, "citations": None})
        wanted = 0 if final else 1 if draw.chance(0.85) else 2 + draw.below(2)
        blocks += [self.request() for _ in range(wanted)]
        request = draw.uuid()
        message: Json = {"id": request if self.setting.version == "1.1.28" else f"msg_{request}", "type": "message"}
        message |= {"role": "assistant", "model": self.setting.model, "stop_reason": None, "stop_sequence": None}
        calls: list[_Call] = []
        for block in blocks:
            message["content"] = [block]
            if block is blocks[-1]:
                message |= {"stop_reason": "end_turn" if final else "tool_use", "usage": self.usage(request)}
            row = self.row("assistant", {"message": message})
            if block["type"] == "tool_use":
                calls.append(_Call(block["name"], block["id"], block["input"], row))
        return calls

    def request(self) -> Json:
        name = tool(self.draw, spawns=not self.agent)
        old = self.setting.version == "1.1.28"
        native = f"toolu_bdrk_01{self.draw.hex(24)}" if old else f"toolu_{self.draw.uuid()}"
        given = arguments(self.draw, name, self.setting.cwd)
        if name in ("Edit", "Write"):
            self.backup(given["file_path"].removeprefix(f"{self.setting.cwd}/"))
        return {"type": "tool_use", "id": native, "name": name, "input": given}

    def usage(self, request: str) -> Json:
        """Tokens are zero by the producer's policy; the meter is credits."""
        usage: Json = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        usage |= {"output_tokens": 0, "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}}
        usage["service_tier"] = "standard"
        price = self.draw.random.random() * 2
        if self.setting.version == "1.1.28":
            usage |= {"cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}}
            usage |= {"inference_geo": "", "iterations": [], "speed": "standard"}
        else:
            price = round(price, 4)
        usage |= {"credits": price, "original_credits": price, "billable": True, "request_id": request}
        return usage | {"context_usage_ratio": round(self.draw.random.random(), 4)}

    # --- results ----------------------------------------------------------------------------------------------------

    def settle(self, calls: list[_Call]) -> bool:
        """Writes the results of the calls of one response; False when the person stopped the turn."""
        if self.snapshot_due:
            self.snapshot()
        # half of the parallel calls are flushed together when the last has ended, as 1.1.52 does
        together = len(calls) > 1 and self.draw.chance(0.5)
        if together:
            self.now += max(self.draw.latency_ms() for _ in calls)
        for call in calls:
            self.now += self.draw.below(5) if together else self.draw.latency_ms()
            if self.draw.chance(self.mix.lost_results):
                if self.draw.chance(0.5) and not self.agent:
                    text = [{"type": "text", "text": _INTERRUPTED}]
                    self.row("user", {"message": {"role": "user", "content": text}})
                    self.leaf()
                    return False
            else:
                self.answer_call(call)
        return True

    def answer_call(self, call: _Call) -> None:
        draw = self.draw
        item: Json = {"type": "tool_result", "tool_use_id": call.id}
        more: Json = {}
        failed = draw.chance(self.mix.errors)
        if draw.chance(self.mix.refusals) and not self.agent:
            failed = True
            item["content"], told = REFUSED, {"isHardFailure": False}
            more["toolDenialKind"] = "user-rejected"
        elif call.name == "Agent" and not failed:
            item["content"], told = self.delegate(call)
        else:
            item["content"], told = outcome(draw, call.name, call.given, failed=failed)
        if failed:
            item["is_error"] = True  # absent on success
        fields: Json = {"message": {"role": "user", "content": [item]}, "sourceToolAssistantUUID": call.row}
        fields |= {"promptId": self.prompt_id} if self.prompt_id else {}
        self.row("user", fields | {"toolUseResult": told} | more, parent=call.row)
        self.leaf()

    def delegate(self, call: _Call) -> tuple[list[Json], Json]:
        """A sub-agent works on the call's prompt in a transcript of its own; its last text is the result."""
        kind = call.given["subagent_type"]
        agent = f"a{kind.lower()}-{self.draw.hex(16)}"
        child = _Session(self.draw, self.mix, self.skills, self.setting, self.now, agent)
        child.row("user", {"message": {"role": "user", "content": call.given["prompt"]}})
        child.leaf()
        child.work()
        self.children.append((child, call))
        self.now = child.now + self.draw.below(200)
        told = {"status": "completed", "agentId": agent, "agentType": kind}
        return [{"type": "text", "text": child.answer or "Done."}], told

    def backup(self, path: str) -> None:
        version = self.backups.get(path, {"version": 0})["version"] + 1
        name = f"{self.draw.hex(16)}@v{version}"
        self.backups[path] = {"backupFileName": name, "version": version, "backupTime": iso(self.now)}
        self.snapshot_due = True

    def snapshot(self) -> None:
        """Names of the backups of files that are about to be written; it states no session."""
        self.snapshot_due = False
        kept = {"messageId": self.prompt_row, "trackedFileBackups": self.backups, "timestamp": iso(self.now)}
        record = {"type": "file-history-snapshot", "messageId": self.prompt_row, "snapshot": kept}
        self.lines.append(orjson.dumps(record | {"isSnapshotUpdate": False}))

    def compact(self) -> None:
        """The history is summarised: the chain starts anew and names where it was cut."""
        before, self.parent = self.parent, None
        numbers = {"preTokens": 158_200, "postTokens": 9_400, "messagesSummarized": 36}
        notice: Json = {"subtype": "compact_boundary", "content": "Conversation compacted", "level": "info"}
        notice |= {"logicalParentUuid": before, "compactMetadata": {"trigger": "auto", **numbers}}
        self.row("system", notice)
        summary = {"role": "user", "content": self.draw.prose(800, 12_000, 8, 0.5)}
        self.row("user", {"message": summary, "isCompactSummary": True, "isVisibleInTranscriptOnly": True})
        self.leaf()

    # --- files ------------------------------------------------------------------------------------------------------

    def files(self) -> Iterator[File]:
        """The session's transcript, and transcript and meta document of each of its sub-agents."""
        folder = re.sub(r"[^A-Za-z0-9]", "-", self.setting.cwd)
        base = f".qoder/projects/{folder}/{self.setting.session}"
        yield File(f"{base}.jsonl", self.body(), self.now)
        for child, call in self.children:
            path = f"{base}/subagents/agent-{child.agent}"
            yield File(f"{path}.jsonl", child.body(), child.now)
            meta = {"agentType": call.given["subagent_type"], "toolUseId": call.id}
            yield File(f"{path}.meta.json", orjson.dumps(meta), child.now)

    def body(self) -> bytes:
        """The bytes of the transcript: closed, or torn in its last line."""
        if self.draw.chance(self.mix.torn):
            return torn(self.draw, self.lines)
        if self.agent:
            self.put("last-prompt")
        else:
            self.put("last-prompt", lastPrompt=self.prompt)
            self.state()
        self.leaf()
        return b"\n".join(self.lines) + b"\n"
