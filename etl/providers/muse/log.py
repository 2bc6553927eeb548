"""What does a Muse log say, record by record?

Its state is what each session in it (its own, and those of sub-agents in older parents' logs) has said so far, the last
number of the log, and the ids that were used: of two records of one id the first counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionEvent, SessionFact, Unread
from etl.providers.muse.agents import Agents
from etl.providers.muse.calls import Calls
from etl.providers.muse.lines import FRAME, MARKER, Entry, children, sequence_of, stream_of
from etl.providers.muse.session import Facts
from etl.providers.muse.speech import Speech
from etl.providers.muse.turns import Turns
from etl.providers.muse.usage import Usage
from etl.providers.muse.vocabulary import Noted, known
from etl.shape import as_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source
    from etl.providers.muse.turns import Handler

_EVENTS: Final = "runtime.session"
_STARTED: Final = "runtime.session/run/started"
_APPROVAL: Final = "runtime.session/approval/"
#: What a record of a rare shape may be called at most: a name is a key of the census.
_NAME: Final = 80


def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one log."""
    log = _Log(source, session or source.session_id(source.claim.native_id))
    for record in records:
        yield from log.read(record)
    for stream in log.streams.values():
        yield from stream.turns.ends()
    yield from log.missing()
    yield from log.shadow()


class _Stream:
    """One session as far as this log tells of it."""

    def __init__(self, source: Source, session: str, *, is_child: bool) -> None:
        self.session = session
        self.turns = Turns(is_child=is_child)
        self.agents = Agents(source.session_id)
        self.calls = Calls(self.turns, self.agents)
        self.facts = Facts(self.turns)
        self.is_introduced = False
        self.used: set[str] = set()
        parts = (self.turns, self.agents, self.calls, self.facts, Usage(self.turns), Speech(self.turns, self.calls))
        self.handlers: dict[str, Handler] = {}
        for part in parts:
            self.handlers |= part.handlers()


@dataclass(slots=True)
class _Gap:
    """Numbers that a log jumps over, the record that shows it, and those of them that came later."""

    first: int
    last: int
    opened: RecordOpened | None = None
    filled: set[int] = field(default_factory=set)


class _Log:
    """The adapter's locals."""

    def __init__(self, source: Source, session: str) -> None:
        self.source, self.session = source, session
        self.parent, self.agent = source.claim.parent, source.claim.agent
        self.streams: dict[str, _Stream] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.keys: dict[str, str] = {}
        self.passed: set[str] = set()
        self.kinds: dict[str, Noted | str | None] = {}
        self.frame_line = self.next_child = 0
        self.last = 0
        self.gaps: list[_Gap] = []
        self.is_shown = True
        self.is_drifted = False
        self.approval: RecordOpened | None = None
        self.says_more = False

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one line, or of one of several records glued into a line."""
        value, child = record.value, record.child
        if record.line_no == self.frame_line:
            child = self.next_child
            self.next_child += 1
        if "payload_type" in value:
            yield from self._envelope(record.line_no, child, record.raw, value)
        elif FRAME in value:
            yield from self._frame(record.line_no, child, value)
        elif MARKER in value:
            self._number(sequence_of(value), is_own=True)
            yield Unread(record.line_no, child, MARKER, "skipped")
        else:
            yield Unread(record.line_no, child, "(no payload type)", "unknown")

    def _frame(self, line_no: int, first: int, frame: dict[str, Any]) -> Iterator[Event]:
        yield Unread(line_no, first, FRAME, "skipped")
        child = first
        for raw, value in children(frame):
            if value is None:
                yield Unread(line_no, child, f"{FRAME}/child", "rejected")
            elif "payload_type" in value:
                yield from self._envelope(line_no, child, raw, value)
            else:
                yield Unread(line_no, child, "(no payload type)", "unknown")
            child += 1
        self.frame_line, self.next_child = line_no, child

    def _envelope(self, line_no: int, child: int, raw: bytes, value: dict[str, Any]) -> Iterator[Event]:
        payload = value.get("payload")
        if not isinstance(payload, dict):
            payload = {}
        name, body = self._named(value["payload_type"], payload)
        sequence = sequence_of(value)
        if name in self.passed and sequence == self.last + 1 and self.is_shown:
            self.last = sequence  # bookkeeping in its place, which is most of a log
            yield Unread(line_no, child, name, "skipped")
            return
        stream_id = stream_of(value)
        session = self.session if stream_id is None else self.keys.get(stream_id)
        if session is None:
            session = self.keys[stream_id or ""] = self.source.session_id(stream_id or "")
        self._number(sequence, is_own=session == self.session)
        stream = self.streams.get(session)
        if stream is None:
            is_child = self.parent is not None or session != self.session
            stream = self.streams[session] = _Stream(self.source, session, is_child=is_child)
        ts, identity = instant(value.get("recorded_at")), as_text(value.get("id"))
        agent = self.agent if session == self.session else None
        entry = Entry(line_no, child, raw, value, name, payload, body, session, ts, sequence, identity, agent)
        handler = stream.handlers.get(name)
        if identity is not None and identity in stream.used:
            yield entry.opened(chained=False, role="assistant")  # so that its items are listed
        elif handler is None:
            yield from self._other(entry, stream)
        else:
            yield from self._told(handler(entry), entry, stream)

    def _named(self, payload_type: Any, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """What a record is called, and the event or the record in its payload."""
        if payload_type == _EVENTS:
            body = payload.get("event")
            if isinstance(body, dict):
                return self._name(payload.get("kind"), body.get("kind")), body
            record = payload.get("record")
            return self._name(payload.get("kind"), None), record if isinstance(record, dict) else payload
        record = payload.get("record")
        name = payload_type[:_NAME] if isinstance(payload_type, str) else "(no payload type)"
        return name, record if isinstance(record, dict) else payload

    def _name(self, scope: Any, kind: Any) -> str:
        if not isinstance(kind, str):
            kind = ""
        if not isinstance(scope, str):
            scope = ""
        name = self.names.get((scope, kind))
        if name is None:
            name = self.names[scope, kind] = f"{_EVENTS}/{scope[:_NAME]}/{kind[:_NAME]}"
        return name

    def _number(self, sequence: int | None, *, is_own: bool) -> None:
        """The log is numbered without gaps, over frames and markers too; records of other sessions may share in its
        numbers, or have their own.
        """
        if sequence is None:
            return
        if sequence == self.last + 1:
            self.last = sequence
        elif sequence > self.last and is_own:
            self.gaps.append(_Gap(self.last + 1, sequence - 1))
            self.last, self.is_shown = sequence, False
        elif sequence < self.last:
            for gap in self.gaps:  # it stands later than it should: it is not missing
                if gap.first <= sequence <= gap.last:
                    gap.filled.add(sequence)

    def missing(self) -> Iterator[Event]:
        """The numbers that no record of the log has."""
        for gap in self.gaps:
            missing = gap.last - gap.first + 1 - len(gap.filled)
            if missing and gap.opened is not None:
                yield replace(gap.opened, again=True)
                yield SessionEvent("sequence_gap", attrs={"first": gap.first, "last": gap.last, "missing": missing})

    def shadow(self) -> Iterator[Event]:
        """A log by day that tells of approvals alone is a shadow of a sub-agent's, wherever that has its log."""
        if self.approval is not None and not self.says_more and self.parent is None:
            yield replace(self.approval, again=True)
            yield SessionFact("shadow", "approvals")

    def _other(self, entry: Entry, stream: _Stream) -> Iterator[Event]:
        """A record without a handler: an event, bookkeeping, or something nobody has described."""
        name = entry.name
        if name not in self.kinds:
            self.kinds[name] = known(name)
        told = self.kinds[name]
        if isinstance(told, Noted):
            yield from self._told(_noted(told, entry), entry, stream)
        elif told is None:
            yield Unread(entry.line_no, entry.child, name, "unknown")
        elif not self.is_shown:  # what shows a gap is not skipped
            yield from self._told(iter((entry.opened(chained=False),)), entry, stream)
        else:
            self.passed.add(name)
            yield Unread(entry.line_no, entry.child, name, "skipped")

    def _told(self, events: Iterator[Event], entry: Entry, stream: _Stream) -> Iterator[Event]:
        """What a record says, and what the log says of itself at its place."""
        first = next(events, None)
        if first is None:
            return
        yield first
        if type(first) is RecordOpened:
            if entry.id is not None:
                stream.used.add(entry.id)
            if not entry.name.startswith(_APPROVAL):
                self.says_more = True
            elif self.approval is None:
                self.approval = first
            if (run_id := entry.run_id) is not None:
                yield from stream.turns.within(run_id)
            if not self.is_shown:
                self.gaps[-1].opened, self.is_shown = first, True
            if not stream.is_introduced or entry.value.get("schema_version") != 1:
                yield from self._notes(entry, stream)
            if entry.name == _STARTED and self.parent is not None and stream.session == self.session:
                yield SessionFact("kind", "subagent" if stream.facts.has_metadata else "internal")
        yield from events

    def _notes(self, entry: Entry, stream: _Stream) -> Iterator[Event]:
        version = entry.value.get("schema_version")
        if version != 1 and not self.is_drifted:
            self.is_drifted = True
            yield SessionEvent("format", "schema_version", None if isinstance(version, dict | list) else str(version))
        if not stream.is_introduced:
            stream.is_introduced = True
            yield from self._introduction(entry, stream)

    def _introduction(self, entry: Entry, stream: _Stream) -> Iterator[Event]:
        """Whose child a session is by the path of its log, and whether its records bear out the path."""
        claim = self.source.claim
        if stream.session != self.session:
            return
        if self.parent is not None:
            yield SessionFact("parent", self.source.session_id(self.parent))
        if not claim.sniffed and stream_of(entry.value) != claim.native_id:
            yield SessionEvent("format", "id_mismatch", claim.native_id)


def _noted(told: Noted, entry: Entry) -> Iterator[Event]:
    body = entry.body
    attrs = {name: value for name in told.attrs if isinstance(value := body.get(name), int | str | float)}
    summary = as_text(body.get(told.summary)) if told.summary else None
    yield entry.opened(chained=told.kind in ("session", "command", "shell"))
    yield SessionEvent(told.kind, told.subtype, summary, attrs)
