r"""Which home directory does the demo ship, and how is it made again byte for byte?

`write(root)` puts 44 Qoder CLI sessions of four projects, and two sub-agents, under `root/.qoder/projects`. The stories
stand below in a small line language and `_Transcript` turns them into records of qodercli 1.0.40, 1.1.28, 1.1.52 and
1.1.76 (record shapes read off transcripts of these builds). Only `random()` and `getrandbits()` are drawn and no libm
function is called: their sequences are the ones the standard library promises to keep.

The language, one step a line; `\n` is a line break, two spaces at the start go on with the line above:

    # project version start branch | title          a new session
    > prompt    ? thinking    - text    o output_text    g first part >> whole text (a growing snapshot)
    i json      an item of a type no reader knows, in the message before it
    $ command => output          Bash             R path => text        Read       L glob => files          Glob
    E path :: old => new         Edit             W path => content     Write      G pattern @ path => hits Grep
    F url :: prompt => answer    WebFetch         T todo; todo          TodoWrite  B url => page            MCP browser
    Q question :: a / b => a     AskUserQuestion  A type :: title :: prompt, then its own steps after a dot: a sub-agent
    @name argument               a record that is no dialogue (`_Transcript.special`)

Before a tool letter `+` puts the call into the message of the call before, and `*` does that and flushes the results of
the whole message together. After it come `!` (an error), `x` (the person refused; the result is the feedback), `^`
(interrupted) and a duration in seconds: `$!31s`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEED: Final = 20260901
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FAKE_TOKEN: Final = "glpat-" + "FAKEfakeFAKEfake1234"  # split: the generator itself must not look like a leak
MODELS: Final = {"shop_api": "auto", "ledger.core": "performance", "field_notes": "efficient", "edge-proxy": "auto"}
TOOLS: Final = {"$": "Bash", "R": "Read", "E": "Edit", "W": "Write", "G": "Grep", "L": "Glob", "F": "WebFetch",
                "T": "TodoWrite", "B": "mcp__browser__navigate", "Q": "AskUserQuestion", "A": "Agent"}  # fmt: skip
LATENCY_MS: Final = {  # tool: median, spread of the logarithm, least, most
    "Bash": (900, 0.9, 200, 5_000), "Read": (28, 0.5, 10, 80), "Edit": (55, 0.5, 18, 240), "Write": (48, 0.5, 15, 200),
    "Grep": (85, 0.7, 20, 600), "Glob": (40, 0.5, 12, 180), "WebFetch": (1_600, 0.6, 450, 9_000),
    "TodoWrite": (9, 0.4, 4, 30), "mcp__browser__navigate": (1_100, 0.6, 300, 6_000),
    "AskUserQuestion": (45_000, 0.5, 8_000, 300_000),
}  # fmt: skip
STEP: Final = re.compile(
    r"(?P<join>[+*]?)(?P<op>[>?\-ogi$REWGLFTBQA])(?P<mark>[!x^]?)(?:(?P<seconds>[\d.]+)s)? (?P<body>.*)", re.DOTALL
)
INTERRUPTED: Final = "[Request interrupted by user for tool use]"
REFUSED: Final = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file)."
)
SKILLS: Final = {
    "simplify": "Review the changed code for reuse and simplification, then apply the fixes.",
    "run": "Launch and drive this project's app to see a change working.",
    "verify": "Verify that a code change does what it is supposed to by running the app.",
}

Json = dict[str, object]


@dataclass(frozen=True)
class Step:
    """One line of a story: `join` is '', '+' or '*', `mark` '', '!', 'x' or '^', `seconds` a fixed latency or None."""

    op: str
    body: str
    join: str = ""
    mark: str = ""
    seconds: float | None = None
    child: tuple[Step, ...] = ()

    @property
    def prose(self) -> bool:
        return self.op in {"?", "-", "o", "g", "i"}

    @property
    def tool(self) -> str | None:
        return TOOLS.get(self.op)


@dataclass(frozen=True)
class _Call:
    """A call without its result yet: `row` is the uuid of its record, `due` Unix time in milliseconds."""

    step: Step
    block: Json
    row: str
    due: int

    @property
    def batch(self) -> bool:
        return self.step.join == "*"


@dataclass(frozen=True)
class Story:
    """One session: `cwd` is absolute, `start_ms` is Unix time in milliseconds."""

    project: str
    version: str
    start_ms: int
    branch: str
    title: str
    steps: tuple[Step, ...]

    @property
    def cwd(self) -> str:
        return f"/srv/work/{self.project}"

    @property
    def slug(self) -> str:
        """Project directory: every code unit that is no ASCII letter or digit becomes a dash."""
        return re.sub(r"[^A-Za-z0-9]", "-", self.cwd)


def _ms(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def _iso(ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _step(line: str) -> Step:
    if line.startswith("@"):
        name, _, argument = line.partition(" ")
        return Step(name, argument)
    match = STEP.fullmatch(line)
    if match is None:
        raise ValueError(f"not a step: {line!r}")
    seconds = match["seconds"]
    return Step(match["op"], match["body"], match["join"], match["mark"], float(seconds) if seconds else None)


def _steps(lines: Sequence[str]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for line in lines:
        if line.startswith("."):
            steps[-1] = replace(steps[-1], child=(*steps[-1].child, _step(line[1:])))
        else:
            steps.append(_step(line))
    return tuple(steps)


def stories() -> Iterator[Story]:
    """The sessions in the order in which they stand below."""
    for block in STORIES.replace("\n  ", " ").replace("<TOKEN>", FAKE_TOKEN).split("\n# ")[1:]:
        head, *lines = block.strip().split("\n")
        facts, title = head.split(" | ")
        project, version, start, branch = facts.split()
        steps = _steps([line.replace("\\n", "\n") for line in lines])
        yield Story(project, version, _ms(start), branch, title, steps)


def _pair(body: str, mark: str = " => ") -> tuple[str, str]:
    left, _, right = f"{body} ".partition(mark)  # nothing may follow the mark
    return left.removesuffix(" "), right.removesuffix(" ")


def tool_input(step: Step, cwd: str) -> Json:
    """Arguments of the call, with the names the CLI's own tools use."""
    left, right = _pair(step.body)
    first, second = _pair(left, " :: ")
    pattern, place = _pair(left, " @ ")
    title, prompt = _pair(step.body.partition(" :: ")[2], " :: ")
    todos = [{"content": text, "status": "pending" if i else "in_progress"} for i, text in enumerate(left.split("; "))]
    options = [{"label": label, "description": label} for label in second.split(" / ")]
    arguments: dict[str, Json] = {
        "$": {"command": left, "description": "Run " + " ".join(left.split()[:2])},
        "R": {"file_path": f"{cwd}/{left}"},
        "E": {"file_path": f"{cwd}/{first}", "old_string": second, "new_string": right, "replace_all": False},
        "W": {"file_path": f"{cwd}/{left}", "content": right},
        "G": {"pattern": pattern, "path": f"{cwd}/{place}", "output_mode": "content", "-n": True},
        "L": {"pattern": left},
        "F": {"url": first, "prompt": second},
        "B": {"url": left},
        "T": {"todos": todos},
        "Q": {"questions": [{"question": first, "header": "Choice", "options": options, "multiSelect": False}]},
        "A": {"subagent_type": first, "description": title, "prompt": prompt},
    }
    return arguments[step.op]


def tool_output(step: Step, given: Json, telemetry: str) -> tuple[object, Json]:
    """Content of the tool_result block, and the record's toolUseResult."""
    right = _pair(step.body)[1]
    failed = step.mark == "!"
    if failed and step.op != "$":
        return right, {"errorType": "file_not_found" if step.op == "R" else "tool_error", "isHardFailure": False}
    path, question, lines = given.get("file_path"), _pair(step.body, " :: ")[0], right.split("\n")
    shell: Json = {"kind": "completed", "telemetryExecutionId": telemetry, "stdout": right, "stderr": ""}
    shell |= {"exitCode": int(failed), "signal": None, "interrupted": False, "isImage": False}
    shell |= {"isError": True} if failed else {"noOutputExpected": False}
    numbered = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, 1))
    file = {"filePath": path, "numLines": len(lines), "startLine": 1, "totalLines": len(lines)}
    edit: Json = {"filePath": path, "oldString": given.get("old_string"), "newString": right, "userModified": False}
    made: Json = {"type": "create", "filePath": path, "content": right, "structuredPatch": [], "originalFile": None}
    outcomes: dict[str, tuple[object, Json]] = {
        "$": (right, shell),
        "R": (numbered, {"type": "text", "file": file}),
        "E": (f"The file {path} has been updated.", edit),
        "W": (f"File created successfully at: {path}", made),
        "G": (right, {"mode": "content", "numLines": len(lines)}),
        "L": (right, {"filenames": lines, "truncated": False}),
        "F": (right, {"code": 200, "codeText": "OK", "url": given.get("url")}),
        "B": ([{"type": "text", "text": right}], {"kind": "completed"}),
        "T": ("Todos have been modified successfully.", {"oldTodos": [], "newTodos": given.get("todos")}),
        "Q": (f'User has answered your questions: "{question}"="{right}".', {"answers": {question: right}}),
    }
    return outcomes[step.op]


def _usage(version: str, price: float, ratio: float, request: str) -> Json:
    usage: Json = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    usage["output_tokens"] = 0  # every token field is 0 by the producer's policy; the meter is credits
    usage |= {"server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard"}
    if version == "1.1.28":
        usage |= {"cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}}
        usage |= {"inference_geo": "", "iterations": [], "speed": "standard"}
    usage |= {"credits": price, "original_credits": price, "billable": True, "request_id": request}
    return usage | {"context_usage_ratio": ratio}


class _Transcript:
    """Writes one session file: keeps its clock, its parent chain and its lines."""

    def __init__(self, rng: random.Random, story: Story, session: str, agent: str = "") -> None:
        self.rng, self.story, self.session, self.agent = rng, story, session, agent
        self.old = story.version.startswith("1.0.")
        self.now = story.start_ms
        self.started = self.now
        self.lines: list[str] = []
        self.parent: str | None = None
        self.prompt_uuid = self.prompt_id = self.prompt = self.answer = self.tail = ""
        self.agent_type = self.call_id = ""  # of a sub-agent: its type, and the call that started it
        self.flushed = 0
        self.titled = False
        self.children: list[_Transcript] = []
        if not self.old and not agent:
            self.put({"type": "workspace-directories", "sessionId": session, "directories": [story.cwd]})
        if not agent:
            self.config()

    def put(self, record: Json) -> None:
        self.lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))

    def id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def wait(self, least_ms: int, most_ms: int) -> None:
        self.now += least_ms + int(self.rng.random() * (most_ms - least_ms))

    def config(self) -> None:
        config: Json = {"type": "runtime-config", "sessionId": self.session, "model": MODELS[self.story.project]}
        config |= {"reasoningEffort": None, "contextWindow": None}
        self.put(config | ({} if self.old else {"generation": None}) | {"timestamp": self.started})

    def leaf(self, **more: object) -> None:
        """The tail of the live branch, as newer builds write it after every write (Unix milliseconds)."""
        if not self.old:
            leaf: Json = {"type": "active-leaf", "sessionId": self.session, "leafUuid": self.parent, "explicit": False}
            self.put(leaf | {"timestamp": self.now} | more)

    def row(self, kind: str, fields: Json, at: int | None = None, parent: str | None = None, name: str = "") -> str:
        """One message record below `parent` (the last one when none is given); it becomes the last one."""
        name = name or self.id()
        head: Json = {"type": kind, "uuid": name, "timestamp": _iso(self.now if at is None else at)}
        place: Json = {"parentUuid": parent or self.parent, "isSidechain": bool(self.agent), "cwd": self.story.cwd}
        place |= {"sessionId": self.session, "userType": "external", "entrypoint": "cli", "version": self.story.version}
        owner: Json = {"agentId": self.agent} if self.agent else {}
        self.put(head | fields | place | {"gitBranch": self.story.branch} | owner)
        self.parent = name
        return name

    def ask(self, text: str) -> None:
        """A person's prompt; before the first answer the CLI adds what it injects."""
        first = self.parent is None
        self.prompt, self.prompt_id = text, f"{self.rng.getrandbits(52):013x}"
        modern = self.story.version == "1.1.52" and not self.agent  # a sub-agent's task is a plain string
        fields: Json = {"message": {"role": "user", "content": [{"type": "text", "text": text}] if modern else text}}
        if not self.agent:
            fields |= {"permissionMode": "default", "origin": {"kind": "human"}, "promptId": self.prompt_id}
            fields |= {} if self.old else {"humanInput": {"text": text, "mode": "prompt"}}
            fields |= {"requestSetId": self.id()} if modern else {}
        self.prompt_uuid = self.row("user", fields)
        if first and not self.old and not self.agent:
            listing = "\n".join(f"- {name}: {about}" for name, about in SKILLS.items())
            skills: Json = {"type": "skill_listing", "content": listing, "names": list(SKILLS)}
            self.row("attachment", {"attachment": skills | {"skillCount": len(SKILLS), "isInitial": True}})
            self.row("attachment", {"attachment": {"type": "date_change", "date": _iso(self.now)[:10]}})
        self.leaf()

    def latency(self, step: Step) -> int:
        """Milliseconds, log-normal: exp(y) as (1 + y/16)^16 by squaring, which every machine computes alike."""
        if step.seconds is not None:
            return int(step.seconds * 1000) + int(self.rng.random() * 97)
        median, spread, least, most = LATENCY_MS[step.tool or "Bash"]
        bell = (
            sum(self.rng.getrandbits(20) for _ in range(12)) / 2**20 - 6
        )  # of whole numbers: 3.12 sums floats otherwise
        factor = 1 + spread * bell / 16
        for _ in range(4):
            factor *= factor
        return min(max(int(median * factor), least), most)

    def block(self, step: Step) -> Json:
        match step.op:
            case "?":
                return {"type": "thinking", "thinking": step.body, "signature": ""}
            case "o":
                return {"type": "output_text", "text": step.body}
            case "i":
                item: Json = json.loads(step.body)
                return {"type": "future_transport_item"} | item
            case "-" | "g":
                return {"type": "text", "text": step.body.rpartition(" >> ")[2], "citations": None}
        bits = self.rng.getrandbits(96)
        native = {"1.0.40": f"call_{bits:024x}", "1.1.28": f"toolu_bdrk_01{bits:024x}"}
        name = native.get(self.story.version, f"toolu_{self.id()}")
        return {"type": "tool_use", "id": name, "name": step.tool, "input": tool_input(step, self.story.cwd)}

    def snapshot(self, steps: Sequence[Step]) -> None:
        """What the CLI keeps of the files that this message is about to write."""
        kept: Json = {}
        for step in steps:
            if step.op in "EW" and not step.mark:
                path = _pair(_pair(step.body)[0], " :: ")[0]
                backup = None if step.op == "W" else f"{self.rng.getrandbits(64):016x}@v1"
                kept[path] = {"backupFileName": backup, "version": 1, "backupTime": _iso(self.now)}
        if kept:
            snap: Json = {"messageId": self.prompt_uuid, "trackedFileBackups": kept, "timestamp": _iso(self.now)}
            record: Json = {"type": "file-history-snapshot", "messageId": self.prompt_uuid, "snapshot": snap}
            self.put(record | {"isSnapshotUpdate": False})

    def message(self, steps: Sequence[Step]) -> None:
        """One answer of the model, one record a block, and the results of its calls in order of time."""
        self.wait(1_400, 8_000)
        if any(step.join == "*" for step in steps):
            steps = [replace(step, join="*") for step in steps]
        self.snapshot(steps)
        name = self.id()
        form = {"1.0.40": f"chatcmpl-{name[:13]}", "1.1.28": name}.get(self.story.version, f"msg_{name}")
        head: Json = {"id": form, "type": "message", "role": "assistant", "model": MODELS[self.story.project]}
        calls: list[_Call] = []
        for number, step in enumerate(steps):
            if number and self.story.version == "1.1.76":  # this build stamps each block, the others the whole message
                self.now += 20 + int(self.rng.random() * 160)
                above = self.parent
                self.results([call for call in calls if call.due < self.now and not call.batch], calls)
                self.parent = above  # a block hangs below the block before, not below a result in between
            if step.op == "g":  # the older build wrote the answer as it grew: same message and parent, new uuid
                above, part = self.parent, {"type": "text", "text": step.body.partition(" >> ")[0]}
                early = {"stop_reason": None, "stop_sequence": None, "content": [part]}
                self.row("assistant", {"message": head | early})
                self.parent, self.now = above, self.now + 640
            body = head | {"stop_reason": None, "stop_sequence": None, "content": [self.block(step)]}
            if number == len(steps) - 1:
                body |= self.ending(steps, name)
            row = self.row("assistant", {"message": body})
            self.answer = self.lines[-1]
            if step.tool:
                self.call(calls, step, body, row)
        self.leaf()
        self.results(sorted(calls, key=lambda call: call.due), calls)
        if any(step.mark == "^" for step in steps):
            self.wait(9_000, 40_000)
            self.row("user", {"message": {"role": "user", "content": [{"type": "text", "text": INTERRUPTED}]}})
            self.leaf()

    def ending(self, steps: Sequence[Step], request: str) -> Json:
        """What only the last record of a message holds: why it stopped, and the meter."""
        price = (300 + int(self.rng.random() * 21_000)) / 10_000
        ratio = (900 + int(self.rng.random() * 5_200)) / 10_000
        stop = "tool_use" if any(step.tool for step in steps) else "end_turn"
        return {"stop_reason": stop, "usage": _usage(self.story.version, price, ratio, request)}

    def call(self, calls: list[_Call], step: Step, body: Json, row: str) -> None:
        """Note an open call; a sub-agent runs at once, on its own clock and into its own file."""
        content = body["content"]
        assert isinstance(content, list)
        if step.op == "A":
            kind = _pair(step.body, " :: ")[0]
            agent = f"a{kind.lower()}-{self.rng.getrandbits(64):016x}"
            child = _Transcript(self.rng, replace(self.story, start_ms=self.now + 180), self.session, agent)
            child.play((Step(">", str(content[0]["input"]["prompt"])), *step.child))
            child.agent_type, child.call_id = kind, str(content[0]["id"])
            self.children.append(child)
            due = child.now + 140
        else:
            due = self.now + self.latency(step)
        if step.mark != "^":
            calls.append(_Call(step, content[0], row, due))

    def results(self, ready: Sequence[_Call], calls: list[_Call]) -> None:
        """Write the results of `ready`; a batch is flushed when its slowest call is done, others stand apart."""
        for call in ready:
            if call.batch:
                at = max(ready[-1].due, self.now) + 15 + int(self.rng.random() * 90)
            else:
                at = max(call.due, self.flushed + 262 + int(self.rng.random() * 140))
            self.now = self.flushed = max(at, self.now)
            self.result(call)
            calls.remove(call)

    def result(self, call: _Call) -> None:
        """One tool_result record, with the marks of an error or of a refusal."""
        step, block = call.step, call.block
        given = block["input"]
        assert isinstance(given, dict)
        more: Json = {}
        if step.op == "A":
            child = self.children[-1]
            content: object = [{"type": "text", "text": child.said}]
            outcome: Json = {"status": "completed", "agentId": child.agent, "agentType": given["subagent_type"]}
        elif step.mark == "x":
            content, outcome = REFUSED, {"isHardFailure": False}
            more = {"toolDenialKind": "user-rejected", "userFeedback": _pair(step.body)[1]}
        else:
            content, outcome = tool_output(step, given, self.id())
        result: Json = {"type": "tool_result", "tool_use_id": block["id"], "content": content}
        if step.mark or self.old:  # newer builds leave the key out on success
            result |= {"is_error": bool(step.mark)}
        fields: Json = {"message": {"role": "user", "content": [result]}, "sourceToolAssistantUUID": call.row}
        fields |= {} if self.agent else {"promptId": self.prompt_id}
        self.row("user", fields | {"toolUseResult": outcome} | more, parent=call.row)
        self.leaf()

    def special(self, step: Step) -> None:
        """A step that is no dialogue: titles, pauses, compaction, faults of the file."""
        name, text = step.op, step.body
        match name:
            case "@gap":
                self.now += int(text) * 1000
            case "@resume":
                self.close()
                self.now = _ms(text)
            case "@reopen":  # looked at again, nothing asked: only records with Unix milliseconds are new
                self.close()
                self.now = self.started = _ms(text)
                self.config()
                self.leaf()
            case "@resend":
                self.lines.append(self.answer)
            case "@title":
                self.put({"type": "custom-title", "sessionId": self.session, "customTitle": text})
            case "@meta":
                self.row("user", {"isMeta": True, "message": {"role": "user", "content": text}})
            case "@record":
                self.put({"type": text, "sessionId": self.session, "timestamp": self.now})
            case "@raw":
                self.lines.append(text)
            case "@torn":
                self.tear(text)
            case "@compact":
                self.compact(text)
            case "@error":
                self.failure(text)
            case _:
                raise ValueError(f"not a step: {name}")

    def tear(self, text: str) -> None:
        """The machine goes down in the middle of a write: half a line, no line end, nothing after it."""
        self.message([Step("-", text)])
        self.lines = self.lines[: self.lines.index(self.answer)]
        self.tail = self.answer[:-240]

    def compact(self, summary: str) -> None:
        self.wait(14_000, 25_000)
        above, self.parent = self.parent, None
        facts: Json = {"trigger": "auto", "preTokens": 158_200, "postTokens": 9_400, "messagesSummarized": 36}
        fields: Json = {"subtype": "compact_boundary", "content": "Conversation compacted", "level": "info"}
        boundary = self.row("system", fields | {"logicalParentUuid": above, "compactMetadata": facts})
        self.wait(20, 90)
        self.row("user", {"isCompactSummary": True, "isMeta": True, "message": {"role": "user", "content": summary}})
        self.leaf(compactBoundaryUuid=boundary)

    def failure(self, text: str) -> None:
        """The row that stands where an answer should be when the provider refused the request."""
        self.wait(30_000, 50_000)
        head: Json = {"id": self.id(), "type": "message", "role": "assistant", "model": "<synthetic>"}
        head |= {"stop_reason": "stop_sequence", "stop_sequence": "", "content": [{"type": "text", "text": text}]}
        self.row("assistant", {"message": head, "isApiErrorMessage": True, "error": "overloaded"})
        self.leaf()

    @property
    def said(self) -> str:
        """Text of the last answer."""
        return str(json.loads(self.answer)["message"]["content"][0]["text"])

    def play(self, steps: Sequence[Step]) -> None:
        """Run the steps: a message ends at a prompt, at a record of its own, and after its calls."""
        open_steps: list[Step] = []
        for step in (*steps, Step("@gap", "0")):
            called = any(s.tool for s in open_steps) and not step.join and step.op != "i"
            if open_steps and (called or not (step.prose or step.tool)):
                self.message(open_steps)
                self.title()
                open_steps = []
            if step.op == ">":
                if not self.agent:
                    self.wait(9_000, 70_000)
                self.ask(step.body)
            elif step.prose or step.tool:
                open_steps.append(step)
            else:
                self.special(step)

    def title(self) -> None:
        """The title that the CLI makes up, once, after the first answer."""
        if not (self.titled or self.old or self.agent):
            self.put({"type": "ai-title", "sessionId": self.session, "aiTitle": self.story.title})
            self.titled = True

    def close(self) -> None:
        """What the CLI appends when a session ends."""
        last: Json = {"type": "last-prompt", "sessionId": self.session}
        self.put(last if self.agent else last | {"lastPrompt": self.prompt})
        if not self.old and not self.agent:
            self.put({"type": "workspace-directories", "sessionId": self.session, "directories": [self.story.cwd]})
            self.config()
        self.leaf()

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines) + self.tail


def _put_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def write(root: Path) -> None:
    """Write the home directory below `root`, which may exist. Raises OSError when it cannot be written."""
    for number, story in enumerate(stories()):
        rng = random.Random(f"{SEED}/{number}")
        session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        transcript = _Transcript(rng, story, session)
        transcript.play(story.steps)
        if not any(step.op in {"@torn", "@reopen"} for step in story.steps):
            transcript.close()
        base = root / ".qoder" / "projects" / story.slug
        _put_file(base / f"{session}.jsonl", transcript.text())
        for child in transcript.children:
            child.close()
            path = base / session / "subagents" / f"agent-{child.agent}.jsonl"
            _put_file(path, child.text())
            meta = {"agentType": child.agent_type, "toolUseId": child.call_id}
            _put_file(path.with_suffix(".meta.json"), json.dumps(meta, separators=(",", ":")))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the demo home directory.")
    parser.add_argument("root", type=Path, help="directory that receives .qoder, such as fixtures/demo")
    write(parser.parse_args().root)


# The stories. Lines may be long prose; each is one step.
STORIES: Final = r"""
# shop_api 1.1.28 2026-09-01T08:05:11 main | Find why the cart total test fails
> test_cart_total fails on main since this morning. Find the cause please, do not change anything yet.
? One test and one morning: look at the failure first, then at what was merged since yesterday.
$! pytest -q tests/test_cart.py => E   assert Decimal('41.97') == Decimal('41.98')\n1 failed, 11 passed in 0.84s
$ git log --oneline --since=yesterday -- src => 9c1e4b2 pricing: apply vouchers per line
R src/pricing.py => def line_total(line, voucher):\n    return (line.price * line.qty * voucher.factor).quantize(CENT)
- Commit 9c1e4b2 rounds every line; the test expects one rounding at the end. Three lines lose a cent together.
@reopen 2026-11-26T07:58:40
# ledger.core 1.0.40 2026-09-02T13:40:02 main | List the currencies without minor units
> Which currencies in our table have no minor unit?
G exponent: 0 @ src/currency.rs => 41:    JPY => exponent: 0\n47:    KRW => exponent: 0\n63:    CLP => exponent: 0
- Three: JPY, KRW and CLP. ISK also has none since 2007, but our table still says 2.
# field_notes 1.1.28 2026-09-03T09:12:47 offline | Plan the offline queue
> We need notes to survive a train tunnel. Sketch the offline queue before you write code.
? The sync layer decides everything here. Read how a note is sent today.
R src/sync/send.ts => export async function send(note: Note) {\n  await fetch('/api/notes', post(note));\n}
T Describe the queue; Choose a store; Define what happens on conflict; Write the plan
- Notes go to an IndexedDB outbox with a client id, and a worker drains it in order. The server keeps the newer of two.
W docs/offline.md => # Offline queue\n\n1. Every note gets a client id.\n2. Drained in order.\n3. Newer wins.
- The plan is in docs/offline.md. I would start with the client id, the rest stands on it.
@resume 2026-11-18T16:20:31
> Back to this one. Is the plan still right now that the API has etags?
? Etags give a real conflict signal, so rule 3 can be stricter than a clock comparison.
E docs/offline.md :: 3. Newer wins. => 3. If-Match with the etag; on 412 the person chooses.
- Rule 3 changes: send If-Match and ask the person on 412. The outbox and the client ids stay as planned.
# edge-proxy 1.1.28 2026-09-04T10:31:20 main | Explain the 502 spike
> The access log shows 502s every night at 02:00. Any idea?
$ grep ' 502 ' sample.log | cut -c1-13 | sort | uniq -c => 311 04/Sep/2026:02\n  2 04/Sep/2026:07
G keepalive @ conf/ => conf/upstream.toml:8:keepalive_s = 75
? The backend restarts at 02:00 for log rotation, and our idle connections outlive it.
- The backend rotates logs and restarts at 02:00, our pooled connections then point at closed sockets. A retry on a
  fresh connection for idempotent requests would hide it; a keepalive below the backend's 60 s would help all day.
# shop_api 1.1.28 2026-09-07T08:22:05 fix/cent | Fix the lost cent in voucher totals
> Now fix the cent: round once, at the end. Keep the per-line amounts for the invoice.
? Keep unrounded line amounts, quantize the sum, and show rounded lines only in the invoice view.
E src/pricing.py :: .quantize(CENT) => # rounded once, in total()
E src/pricing.py :: return sum(lines) => return sum(lines).quantize(CENT, ROUND_HALF_EVEN)
$ pytest -q => 212 passed in 3.91s
- One rounding, half to even, in total(). All 212 tests pass.
> Does the invoice still add up for the reader?
$! python -m shop.invoice --demo 3 => AssertionError: lines sum to 41.97, total says 41.98
? As feared: the printed lines do not add up. The usual remedy is to give the remainder to the largest line.
E src/invoice.py :: rows = [round_line(l) for l in lines] => rows = spread_remainder(lines, total)
$ python -m shop.invoice --demo 3 => lines 13.99 13.99 14.00, total 41.98
- It did not. The largest line now takes the remainder, which is what the tax office expects too.
# ledger.core 1.0.40 2026-09-08T14:03:33 main | Why does the balance drift
> The trial balance drifts by a few cents after each import. Where does it come from?
? Imports are the only change between two balances. Look at how amounts are parsed.
R src/import/csv.rs => let amount: f64 = field.parse()?;\nlet cents = (amount * 100.0) as i64;
$ cargo test import => test import::keeps_cents ... ok\ntest result: ok. 9 passed
g The cause >> The cause is the cast in csv.rs: 0.29 * 100.0 is 28.999999999999996 and `as i64` cuts it to 28.
> Then parse the digits instead, please.
E src/import/csv.rs :: (amount * 100.0) as i64 => parse_cents(field)?
$4.1s cargo test import => test import::twenty_nine_cents ... ok\ntest result: ok. 10 passed
- Amounts are read as digits now, and a test holds the 0.29 case.
# field_notes 1.1.28 2026-09-09T09:48:10 main | Add a colour field to notes
> Add an optional colour to a note, six fixed values. Model, form and list, please.
T Extend the type; Show a picker; Colour the list; Test the unknown value
+R src/model/note.ts => export interface Note { id: string; text: string; at: string }
+G NoteForm @ src => src/form/NoteForm.tsx:4:export function NoteForm
? A closed union is enough. An unknown value from a newer client must fall back to no colour, not crash.
E src/model/note.ts :: at: string } => at: string; colour?: Colour }
W src/form/ColourPicker.tsx => export const COLOURS = ['sand', 'moss', 'sky', 'rose', 'clay', 'ink'] as const;
$38s npm run build => vite v8: 214 modules transformed, built in 36.90s
- Notes have an optional colour, the form a picker and the list a left border. Unknown values show no colour.
# edge-proxy 1.1.28 2026-09-10T11:15:59 retry | Retry idempotent requests once
> Add one retry on a fresh connection for GET and HEAD when the pooled one is dead.
R proxy/upstream.go => func (u *Upstream) Do(r *Request) (*Response, error) {\n    return u.pool.Get().Do(r)\n}
? Only when not a byte of the answer was read, and only for methods without effects.
E proxy/upstream.go :: return u.pool.Get().Do(r) => return u.once(u.pool.Get(), r)
$! go vet ./... => proxy/upstream.go:31:14: u.once undefined
W proxy/once.go => func (u *Upstream) once(c *Conn, r *Request) (*Response, error) { /* one retry */ }
$2.8s go test ./proxy/... => ok  edge/proxy 2.411s
- GET and HEAD are retried once if the first connection died before a byte came back. A counter shows how often.
# shop_api 1.1.28 2026-09-11T07:59:45 main | Rename customer to buyer
> Rename Customer to Buyer everywhere but in the public JSON.
G Customer @ src => 23 files, 148 lines
? The public JSON is made by two serializers: those keys must stay, with an alias.
$ rg -l Customer src | wc -l => 23
*$3.2s rg -l customer_id migrations | wc -l => 6
- 23 files and 6 migrations mention it. I leave the migrations alone: they describe the past.
$1.4s sed -i 's/\bCustomer\b/Buyer/g' $(rg -l Customer src) =>
$! pytest -q => KeyError: 'customer'\n3 failed, 209 passed
E src/serializers.py :: "buyer" => "customer"
$ pytest -q => 212 passed in 4.02s
- Renamed in code; the two serializers still say "customer", and three tests hold that.
# ledger.core 1.1.52 2026-09-14T13:20:18 main | Review the posting rules change
> Please review the diff on branch posting-rules. Be strict, it is about money.
$ git diff main...posting-rules --stat => src/posting.rs | 84 +++---\n tests/posting.rs | 12 +
+R src/posting.rs => pub fn post(&mut self, e: Entry) {\n    self.lines.extend(e.lines);\n}
*R tests/posting.rs => assert!(book.post(entry).is_ok());
? post() no longer returns a Result: an unbalanced entry is accepted in silence. That is the finding.
- Two findings. 1. post() lost its balance check: debit 10, credit 9 is now accepted. 2. The only test calls is_ok() on
  unit, so it does not compile against this diff. I would not merge it.
> Write the missing test so that they see it.
E tests/posting.rs :: use ledger::Book; => use ledger::Book;\n\n#[test]\nfn rejects_unbalanced() { /* 10 against 9 */ }
$!3.6s cargo test --test posting => error[E0599]: no method `is_ok` found for unit type
- The new test fails on their branch for exactly the first finding, and passes on main.
# field_notes 1.1.52 2026-09-15T10:07:22 docs | Write the getting started page
> Write a getting-started page for a new contributor. Ten minutes from clone to a running app.
+R package.json => {"scripts": {"dev": "vite", "test": "vitest run"}}
*L docs/*.md => docs/offline.md\ndocs/privacy.md
$61s npm ci => added 412 packages in 58s
? I timed it: the install is a minute, the rest is seconds. The page may promise ten minutes honestly.
W docs/start.md => # Start here\n\nnpm ci, then npm run dev. Open the printed address and write a note.
- docs/start.md has four steps, each tried in a clean clone. The longest is the install at one minute.
# edge-proxy 1.1.52 2026-09-16T09:34:41 main | Token in the deploy log
> The deploy job prints our token: <TOKEN>. How do I get it out of the log?
? First thing: a printed token is burnt and has to be revoked. Then find where it is printed.
$ grep -rn 'PRIVATE-TOKEN' deploy/ | head -2 => deploy/push.sh:12: curl -v -H "PRIVATE-TOKEN: <TOKEN>"
- Revoke it first, the log is already copied to the archive. The cause is `curl -v` in deploy/push.sh:
  it prints headers.
E deploy/push.sh :: curl -v -H => curl -sS --header @"$TOKEN_FILE" -H
- The header now comes from a file and curl is quiet. Please rotate the token before you run it again.
# shop_api 1.1.52 2026-09-17T08:41:03 main | Umlauts in search
> Searching "Käse 🧀" finds nothing, "Kase" does. Warum? Bitte auf Englisch antworten.
? The query is stripped of accents and the index is not: the two sides are folded differently.
R src/search.py => def fold(q): return unicodedata.normalize("NFD", q).encode("ascii", "ignore").decode()
- The query folds to "Kase " and loses the emoji, the index keeps "Käse". Fold both sides, or neither.
  ✅ I would fold both.
> Do it, and keep the emoji.
E src/search.py :: .encode("ascii", "ignore").decode() => .translate(COMBINING)
$ pytest -q tests/test_search.py => 18 passed in 0.66s
- Both sides use fold() now. "Käse 🧀", "kase" and "KÄSE" find the same 4 products.
# ledger.core 1.1.52 2026-09-18T14:55:30 main | Which rounding should reports use
> Reports must round. I have no opinion which way, ask me if it matters.
? It matters for tax. There are two defensible ways, so the owner has to choose.
Q660s Which rounding should the yearly report use? :: Half to even / Half away from zero => Half to even
- Thanks. Half to even, as in the journal itself, so that the report and the books agree.
E src/report.rs :: RoundingMode::Up => RoundingMode::HalfEven
$2.2s cargo test report => test result: ok. 14 passed
- Done. The report of 2025 changes by 0 cents, that of 2024 by 1 cent.
# field_notes 1.1.52 2026-09-21T09:01:15 main | Flaky date test
> The date test fails only on Mondays before nine. It is Monday, so look now.
$! npx vitest run date => AssertionError: expected 'yesterday' to be '3 days ago'
R src/date.ts => const days = Math.floor((Date.now() - t) / 864e5);
? The test builds a Friday in local time and the code counts in UTC: before nine the two differ by a day.
E src/date.ts :: (Date.now() - t) / 864e5 => differenceInCalendarDays(now, t)
E src/date.test.ts :: new Date() => new Date('2026-09-21T06:30:00Z')
$1.9s npx vitest run date => 11 passed
- Calendar days instead of 24-hour blocks, and the test has a fixed clock. It now fails on no day of the week.
# edge-proxy 1.1.52 2026-09-22T10:44:09 tls | Certificates are reloaded twice
> Why do we reload the certificates twice per renewal?
G reloadCerts @ . => cmd/edge/main.go:77: reloadCerts()\nproxy/tls.go:52: reloadCerts()
R cmd/edge/main.go => watcher.On(fsnotify.Write, reloadCerts)
+$1.1s git log -1 --format=%s -- proxy/tls.go => tls: poll for renewals
- Two mechanisms do the same: a file watcher in main.go and a poll in tls.go. The poll came later and nobody removed the
  watcher.
> Remove the one that is worse.
? The watcher misses renames on the network share, which is where the certificates are. The poll stays.
E cmd/edge/main.go :: watcher.On(fsnotify.Write, reloadCerts) => // renewals are polled, see proxy/tls.go
$52s make e2e => 31 scenarios passed
- The watcher is gone. It missed renames on the share; the poll sees them within 30 s. All 31 scenarios pass.
# shop_api 1.1.52 2026-09-23T08:15:27 main | Delete the stale carts
> Remove carts older than a year from the staging database.
? Deleting is irreversible: count first, show the count, then ask.
$1.2s psql staging -c "select count(*) from cart where touched < now() - interval '1 year'" => 48211
$x14s psql staging -c "delete from cart where touched < now() - interval '1 year'" => Archive them first, please.
- Understood, I did not delete anything. I propose to copy the 48211 rows to cart_archive and delete after a check.
$4.6s psql staging -c "insert into cart_archive select * from cart where touched < '2025-09-23'" => INSERT 0 48211
- The archive holds 48211 rows. The delete waits for your word.
# ledger.core 1.1.52 2026-09-24T13:12:50 main | Map the import code
> I am new here. Where does a bank statement go from file to journal?
? A map of the import path is a search over many files: a sub-agent can do that and bring back the short answer.
A Explore :: Map the import path :: Find every step between reading a bank statement file and writing journal lines.
.? Start at the command line and follow the calls.
.G fn import @ src => src/cli.rs:88: fn import(path)\nsrc/import/mod.rs:14: pub fn import
.R src/import/mod.rs => pub fn import(p: &Path) -> Result<Vec<Entry>> { detect(p)?.parse(p)?.into_entries() }
.*R src/import/detect.rs => pub fn detect(p: &Path) -> Result<Format>
.- cli::import, import::detect (MT940, CAMT, CSV), Format::parse, into_entries, Book::post. Five steps, no hidden state.
- Five steps: cli::import, detect, parse, into_entries, Book::post. Start reading in src/import/mod.rs, it is 40 lines.
> And where would I add a new bank?
- A new file beside src/import/csv.rs with a Format variant; detect() needs one line. The CSV reader is the best model.
# field_notes 1.1.52 2026-09-25T11:30:00 main | Check a link on the live page
> Does the privacy link on the live page work?
B https://notes.example.org/ => Field Notes\n[Start] [Privacy](/privcy) [Source]
- No. It points to /privcy, a typo, and gives 404.
# edge-proxy 1.1.52 2026-09-28T09:20:36 bench | Measure the header parser
> Is the header parser really our bottleneck? Measure, do not guess.
? A profile under load answers it. Build, run the load for a while, then look at the top entries.
$33s make bench-build => built bin/bench
$412s bin/bench --seconds 400 --profile cpu.out => 41 k req/s, p99 7.9 ms
$2.6s go tool pprof -top cpu.out | head -4 => 31.2% crypto/tls\n18.4% runtime.mallocgc\n 4.1% proxy.parseHeader
- No. The parser takes 4 %, TLS 31 % and allocation 18 %. A pool for the header maps is the cheap win.
> Then do the pool.
E proxy/header.go :: make(map[string][]string) => headers.Get().(map[string][]string)
$94s bin/bench --seconds 60 => 47 k req/s, p99 6.6 ms
- 41 k to 47 k requests a second, p99 from 7.9 to 6.6 ms. One map per request was the whole difference.
# shop_api 1.1.52 2026-09-29T08:50:12 main | Answer in the message format
> Show me the message that the chat widget should store for "Your order has shipped". JSON only.
- {"role":"assistant","content":"Your order has shipped."}
> And as blocks?
- {"role":"assistant","content":[{"type":"text","text":"Your order has shipped."}]}
# ledger.core 1.1.76 2026-10-01T13:33:07 main | Upgrade the decimal crate
> Upgrade rust_decimal to the new major. What breaks?
F https://docs.example.org/rust_decimal/changes :: What breaks for users of round_dp? => round_dp now needs a strategy.
? One breaking change concerns us, and the compiler will list every place.
E Cargo.toml :: rust_decimal = "1" => rust_decimal = "2"
$!44s cargo check => error[E0061]: this function takes 2 arguments\n7 errors
G round_dp @ src => src/report.rs:21\nsrc/report.rs:58\nsrc/posting.rs:90
+$3.4s cargo tree -i rust_decimal => rust_decimal v2.0.1\n└── ledger v0.9.0
$2.9s sed -i 's/round_dp(2)/round_dp(2, HalfEven)/' src/*.rs =>
$71s cargo test => test result: ok. 161 passed
- Seven calls needed a rounding strategy, all got HalfEven. 161 tests pass, no number changed.
# field_notes 1.1.76 2026-10-02T09:14:58 a11y | Keyboard trap in the picker
> With the keyboard I cannot leave the colour picker. Please fix.
R src/form/ColourPicker.tsx => onKeyDown={e => { e.preventDefault(); move(e.key); }}
? preventDefault swallows Tab with everything else. Only the arrow keys belong to the picker.
E src/form/ColourPicker.tsx :: e.preventDefault(); move(e.key); =>
  if (ARROWS.has(e.key)) { e.preventDefault(); move(e.key); }
$1.6s npx vitest run picker => 6 passed
+B http://localhost:5173/new => New note\n[text] [colour: sand] [Save]
- Tab leaves the picker again; only arrows are handled. Checked in the browser as well.
# edge-proxy 1.1.76 2026-10-05T10:02:44 main | Rate limit by account
> Limit each account to 50 requests a second. Answer 429 with Retry-After.
T Find the account of a request; Token bucket per account; 429 and Retry-After; Test with a fake clock
? The account is known after auth, so the limiter sits behind it. A bucket per account, swept when idle.
*R proxy/auth.go => ctx = context.WithValue(ctx, accountKey, claims.Subject)
+R proxy/chain.go => chain(log, auth, route)
W proxy/limit.go => type bucket struct { tokens float64; at time.Time }
E proxy/chain.go :: chain(log, auth, route) => chain(log, auth, limit, route)
$!2.1s go test ./proxy/ => limit_test.go:40: Retry-After: want 1, got 0
E proxy/limit.go :: int(wait.Seconds()) => int(math.Ceil(wait.Seconds()))
$2.3s go test ./proxy/ => ok  edge/proxy 1.902s
- Limiter behind auth, 50 a second with a burst of 50. Retry-After is rounded up: 0 made clients retry at once.
# shop_api 1.1.76 2026-10-06T08:36:19 main | The widget logs an envelope
> Our client logs this instead of the text, what is wrong? {"role":"assistant","content":[{"type":"text","text":"Hi"}]}
? That is the whole message object, so somebody serialised it instead of taking the text of its blocks.
G JSON.stringify(message) @ web => web/chat/log.js:19
- web/chat/log.js line 19 stringifies the message. It should join the text of its blocks.
E web/chat/log.js :: JSON.stringify(message) => message.content.map(b => b.text).join(' ')
- Fixed: the log now shows "Hi".
# ledger.core 1.1.76 2026-10-07T14:09:26 main | Close the fiscal year
> Implement closing a year: lock entries, carry balances forward.
? Locking must be first, or an entry slips in between the balance and the carry.
*R src/book.rs => pub struct Book { entries: Vec<Entry>, locked_until: Option<Date> }
+G locked_until @ src => src/book.rs:12\nsrc/posting.rs:33
+R src/posting.rs => if Some(e.date) <= self.locked_until { return Err(Locked) }
- The lock exists already, so closing is: set the lock, sum by account, post one opening entry per balance account.
i {"hint":{"kind":"plan","steps":3}}
W src/close.rs => pub fn close_year(book: &mut Book, year: i32) -> Result<Entry>
$4.4s cargo test close => test result: ok. 5 passed
- close_year locks, sums and posts the opening entry. Profit accounts go to equity, as your chart of accounts says.
# field_notes 1.1.76 2026-10-08T09:55:31 main | Compress the attachments
> Photos are stored as they come, 8 MB each. Shrink them before upload.
R src/upload.ts => body.append('photo', file);
F https://web.example.org/createImageBitmap :: Which options resize while decoding? =>
  resizeWidth, resizeHeight, resizeQuality.
? Decode with resizeWidth and encode as WebP; keep the original when the result is not smaller.
W src/shrink.ts => const bitmap = await createImageBitmap(file, { resizeWidth: 2048, resizeQuality: 'high' });
$1.7s npx vitest run shrink => 4 passed
- A 8.1 MB photo becomes 420 kB. The original is kept when shrinking would not help.
@resend
> Nice. Note it in the changelog.
E CHANGELOG.md :: ## Unreleased => ## Unreleased\n- Photos are shrunk to 2048 px before upload.
- Added under Unreleased.
# edge-proxy 1.1.76 2026-10-09T10:27:13 main | Push the release tag
> Tag v2.4.0 and push it.
$ git tag -s v2.4.0 -m "v2.4.0" =>
? The push needs the person: the key is on a hardware token.
$1500s git push origin v2.4.0 => To git.example.org:edge/proxy.git\n * [new tag] v2.4.0 -> v2.4.0
- v2.4.0 is pushed. The push waited 25 minutes for the hardware key.
# shop_api 1.1.76 2026-10-12T08:05:40 main | Stock goes negative
> Two buyers can buy the last item. Stock shows -1.
R src/stock.py => if item.stock >= qty:\n    item.stock -= qty
? Check and write are two statements. One conditional UPDATE closes the gap without a lock.
E src/stock.py :: item.stock -= qty => updated = take(item.id, qty)  # update ... where stock >= qty
$2.4s pytest -q tests/test_stock.py => 9 passed in 1.12s
*$3.9s python tools/race.py --buyers 50 --stock 1 => sold 1, refused 49
- One conditional UPDATE now decides. Fifty racing buyers: one sale, 49 refusals, stock 0.
> Why not SELECT FOR UPDATE?
- It would be right too, but it holds the row while Python runs. The UPDATE holds it for the statement only.
# ledger.core 1.1.76 2026-10-13T13:48:02 main | Why is the export slow
> Exporting a year takes five minutes. It was seconds once.
$118s cargo run --release -- export 2025 => 1.9 M lines in 117.2 s
? Two minutes here, still far too slow. Look for something quadratic.
G contains( @ src/export.rs => 37: if seen.contains(&line.id) {
R src/export.rs => let mut seen: Vec<Id> = vec![];
- `seen` is a Vec: every line searches all lines before it. That is quadratic, and 2025 is your first big year.
E src/export.rs :: Vec<Id> = vec![] => HashSet<Id> = HashSet::new()
$3.1s cargo run --release -- export 2025 => 1.9 M lines in 2.7 s
- 117 s to 2.7 s, the file is byte for byte the same.
# field_notes 1.1.76 2026-10-14T09:23:55 main | Search as you type
> Make the search run as you type, but not on every key.
? A debounce and an abort of the request before. The abort matters more: answers can overtake each other.
*R src/search/box.tsx => <input onChange={e => run(e.target.value)} />
+R src/search/run.ts => export async function run(q: string) { const r = await fetch(`/api/search?q=${q}`) }
E src/search/run.ts :: fetch(`/api/search?q=${q}`) => fetch(`/api/search?q=${encodeURIComponent(q)}`, { signal })
$^ npx vitest --watch search =>
> Do not start the watch mode, run the tests once.
$1.5s npx vitest run search => 7 passed
- Sorry about that. 250 ms debounce, the older request is aborted, and the query is encoded, which it was not before.
# edge-proxy 1.1.76 2026-10-15T10:11:18 main | Read the overload runbook
> What does the runbook say about overload, and is it still true?
R! docs/runbook.md => File does not exist.
L docs/**/*.md => docs/ops/overload.md\ndocs/ops/tls.md
R docs/ops/overload.md => 1. Raise max_conns.\n2. Restart one node at a time.
? max_conns was removed with the pool in September. So step 1 is wrong.
- It says raise max_conns, then restart node by node. max_conns no longer exists, the limiter replaced it.
> Correct the runbook, please.
@error API Error: 529 the model is overloaded, please try again later.
> Try again.
E docs/ops/overload.md :: Raise max_conns. => Lower the account limit in limit.toml.
- Step 1 now names limit.toml. Step 2 is still right.
# shop_api 1.1.76 2026-10-16T08:29:37 main | Move the mail to a queue
> Sending mail in the request makes checkout slow. Move it to a queue.
? Read the checkout, then decide. There is a jobs table already, no need for new machinery.
+R src/checkout.py => send_mail(order)\nreturn Response(201)
*G class Job @ src => src/jobs.py:8:class Job(Base)
T Write a mail job; Enqueue in the same transaction; Worker with retry; Remove the direct call
E src/checkout.py :: send_mail(order) => jobs.add(session, "mail", order.id)
W src/workers/mail.py => def work(job):\n    send_mail(load(job.ref))
$! pytest -q tests/test_checkout.py => AssertionError: mail outbox is empty\n1 failed, 22 passed
- The failing test looked for the mail during the request. It should run the worker first.
E tests/test_checkout.py :: assert outbox => run_jobs()\n    assert outbox
$2.7s pytest -q => 214 passed in 4.40s
- Checkout went from 840 ms to 60 ms on the sample order. A failed mail is retried three times.
@compact The person wants mail out of the request. Done: jobs.add in checkout, workers/mail.py, tests. Open: metrics.
> Good. Now add a metric for the queue length.
? The summary says metrics are open. One gauge, read when it is scraped.
E src/metrics.py :: GAUGES = [] => GAUGES = [Gauge("jobs_waiting", count_waiting)]
$1.8s curl -s localhost:8000/metrics | grep jobs => jobs_waiting 0
- jobs_waiting is counted at scrape time, so it costs nothing in between.
# ledger.core 1.1.76 2026-10-19T13:05:14 main | Look for panics in the parser
> Can a broken bank file crash us? Look for panics.
? Two separate questions: where can it panic, and does anything catch it. The first is a search of its own.
A general-purpose :: Find panics in the import code :: List unwrap, expect and indexing in src/import
  that input can reach.
.G unwrap() @ src/import => src/import/mt940.rs:44\nsrc/import/mt940.rs:71\nsrc/import/camt.rs:19
.R src/import/mt940.rs => let year = line[6..8].parse::<i32>().unwrap();
.$!1.3s cargo run -- import fuzz/short.sta => thread 'main' panicked at src/import/mt940.rs:44
.? Line 44 is reachable with a short line, the crash above shows it. camt.rs:19 is behind a length check.
.- Two reachable: mt940.rs:44 (short line) and mt940.rs:71 (letters in the amount). camt.rs:19 is guarded.
- Yes: two places in mt940.rs, a short line and letters in the amount. Nothing catches them.
E src/import/mt940.rs :: .parse::<i32>().unwrap() => .parse::<i32>().map_err(|_| Malformed(44))?
$3.3s cargo test import => test result: ok. 13 passed
- Both now return Malformed with the line number. The two crashing files are tests.
# field_notes 1.1.76 2026-10-20T09:37:49 main | Summarise the open issues
> What do the last open issues have in common?
F https://tracker.example.org/field-notes/open :: Titles of the open issues? =>
  Lost note after reload; Two notes after retry; Note twice on the phone
+$1.2s git log --oneline -5 -- src/sync => 77ab012 sync: retry on any error
*R src/sync/send.ts => catch { setTimeout(() => send(note), 1000); }
? Both kinds come from one retry: without an id the server makes a second note, and a reload forgets the timer.
- They share one cause: the retry has no client id. A retry doubles a note, a reload during the wait loses it.
- The offline plan of September solves both. I would do its first step now.
# edge-proxy 1.1.76 2026-10-22T10:50:07 main | Strip the hop headers
> We forward Connection and TE to the backend. We should not.
G Header.Del @ proxy => proxy/headers.go:15: r.Header.Del("Proxy-Authorization")
? Hop-by-hop headers are a fixed list plus whatever Connection names. The second half is what people forget.
E proxy/headers.go :: r.Header.Del("Proxy-Authorization") => for _, h := range hopHeaders(r) { r.Header.Del(h) }
$x31s git commit -am "strip hop headers" => I commit myself, please only prepare it.
- Not committed. The change is in the working tree: the fixed list, and every header that Connection names.
> Thanks. One more thing, does it keep Upgrade for websockets?
R proxy/headers.go => var hop = []string{"Connection", "TE", "Upgrade", "Keep-Alive"}
- It would have broken them. Upgrade must survive when the route allows websockets.
E proxy/headers.go :: "Upgrade", =>
$2.2s go test ./proxy/ -run Upgrade => ok  edge/proxy 1.377s
- Upgrade is forwarded for websocket routes and a test holds it.
# shop_api 1.1.76 2026-10-26T08:44:21 main | Add a field to the order
> Add delivery_note to orders, max 200 characters, optional.
T Migration; Model and schema; API test
? Nullable column, no default: adding it takes no lock worth mentioning.
W migrations/0042_delivery_note.sql => alter table orders add column delivery_note varchar(200);
E src/schemas.py :: class OrderIn(Base): =>
  class OrderIn(Base):\n    delivery_note: str | None = Field(None, max_length=200)
$1.8s pytest -q tests/test_orders.py => 31 passed in 1.20s
*R src/models.py => class Order(Base):\n    id: int
*$2.9s alembic check => No new upgrade operations detected.
- Column, model and schema are in. 201 characters give 422, and a test says so.
# ledger.core 1.1.76 2026-10-28T13:27:56 main | Explain the account tree
> Explain the account tree to a bookkeeper, half a page.
L src/accounts/*.rs => src/accounts/mod.rs\nsrc/accounts/tree.rs
R src/accounts/tree.rs => pub struct Node { code: u32, parent: Option<u32> }
@meta <system-reminder>The file docs/glossary.md was changed outside of this session.</system-reminder>
? No code words. Say what they see: classes, groups, accounts, and why a sum never needs to be typed in.
o Accounts form a tree: classes at the top, groups below, accounts as leaves. You book on leaves only. Every sum above
  is computed from its leaves, so nobody can type a wrong one.
# field_notes 1.1.76 2026-11-02T09:08:33 main | Export to PDF
> Export a note as PDF, with its photos.
? The browser prints to PDF already: a print stylesheet is less code than a library.
B http://localhost:5173/note/7 => Beech, 12 m\n[photo 1] [photo 2]
W src/print.css => @media print { nav, .tools { display: none } img { max-width: 100%; break-inside: avoid } }
$47s npm run build => vite v8: 219 modules transformed, built in 45.12s
- A print stylesheet does it: no library, photos are never cut by a page. The button calls window.print().
@title Print instead of a PDF library
@record workspace-insight
# edge-proxy 1.1.76 2026-11-05T10:39:02 main | Canary for the new limiter
> Roll the limiter out to one node first. What do I watch?
? Three numbers: 429 by account, p99, and the retries of the clients, which tell whether Retry-After works.
+R deploy/nodes.toml => nodes = ["e1", "e2", "e3"]
+F https://ops.example.org/canary :: How is one node pinned? => Set canary = "e1" in nodes.toml.
E deploy/nodes.toml :: nodes = => canary = "e1"\nnodes =
$!66s make deploy-check => e1: limit.toml missing\nexit 1
W deploy/e1/limit.toml => per_account = 50\nburst = 50
$58s make deploy-check => e1: ok, e2: unchanged, e3: unchanged
- e1 is ready. Watch 429 by account, p99 and repeated requests within a second. Any of them doubling means stop.
@raw [warn] transcript writer: slow flush, 812 ms
# shop_api 1.1.76 2026-11-10T08:18:44 main | Why is CI slow
> CI takes 14 minutes. Where do they go?
F https://ci.example.org/shop_api/latest :: Duration of each step? => install 3:10, lint 0:20, tests 9:40, package 0:50
? Tests are two thirds. Find the slow ones before thinking about more machines.
$88s pytest -q --durations=3 => 41.2s test_full_catalogue\n12.9s test_import\n 0.9s test_mail\n214 passed
R tests/test_catalogue.py => @pytest.fixture\ndef catalogue(): return build(products=200_000)
- One fixture builds 200 000 products for every test that asks, 14 times. Session scope makes it once.
E tests/test_catalogue.py :: @pytest.fixture => @pytest.fixture(scope="session")
$36s pytest -q => 214 passed in 34.71s
- 88 s became 36 s here. CI should fall from 14 to about 7 minutes.
@gap 5400
> CI says 6:50. Thank you!
- Good to hear. The install step is the next candidate: a cache of the wheels would save two more minutes.
# field_notes 1.1.76 2026-11-12T09:26:40 main | Undo for deleted notes
> Deleting a note is final. Give me ten seconds to undo it.
R src/list/actions.ts => export const remove = (id: string) => api.delete(`/notes/${id}`);
? Delay the request, not the display: hide the note at once and send the delete when the ten seconds are over.
E src/list/actions.ts :: api.delete(`/notes/${id}`) => later(10_000, () => api.delete(`/notes/${id}`))
W src/list/later.ts => export const later = (ms: number, run: () => void) => setTimeout(run, ms);
$! npx eslint src/list => later.ts:1 the timer is lost when the page closes
$1.4s npx vitest run list => 13 passed
- The note hides at once and is deleted after ten seconds. The linter has a point: closing the page keeps the note.
> Keeping it is the safe side. Leave it so and say it in the docs.
E docs/start.md :: Write a note. => Write a note. A deleted note can be brought back for ten seconds.
- One sentence in docs/start.md.
# edge-proxy 1.1.76 2026-11-17T10:05:12 main | Four short questions
> Which Go version do we build with?
$ go version => go version go1.27.1 linux/amd64
- go1.27.1, as go.mod asks.
> Is the race detector on in CI?
G -race @ .ci => .ci/run:9: go test -race ./...
- Yes, in .ci/run line 9.
> How many lines is the proxy without tests?
*L proxy/*.go => proxy/header.go\nproxy/headers.go\nproxy/limit.go\nproxy/once.go\nproxy/upstream.go
+$ cat $(ls proxy/*.go | grep -v _test) | wc -l => 1184
- 1184 lines in five files.
> And who calls reloadCerts now?
G reloadCerts @ . => proxy/tls.go:52: reloadCerts()
- Only the poll in proxy/tls.go.
# ledger.core 1.1.76 2026-11-24T14:31:09 main | Journal file locking
> Two processes wrote the journal at once last night. How do we prevent it?
G File::create @ src => src/store.rs:29
? An advisory lock beside the file, held for the whole write, and a clear message for the second writer.
W src/lock.rs => pub struct Lock(File);\n\nimpl Lock { pub fn take(p: &Path) -> Result<Self> { /* flock, no wait */ } }
$2.5s cargo test lock => test result: ok. 3 passed
- The second writer now stops with "journal is in use by process 4711" and writes nothing.
> Does it survive a crash of the first?
? flock is released by the kernel with the process, so a crash leaves no stale lock behind.
@torn Yes: the kernel releases the lock together with the process, so there is nothing to clean up after a crash.
  Only a copy on a network share needs care.
"""

if __name__ == "__main__":
    main()
