"""What can a provider's adapter say about a session?

An adapter is a generator ``records -> events``. For each record it yields exactly one :class:`RecordOpened` (the record
is used) or one :class:`Unread` (it is not), and then whatever the record says; those events inherit place, session,
time and message from the record that stands open. Adapters never merge, count, mask or pair: the fold does.

Instants are UTC microseconds since 1970, durations microseconds, tokens whole numbers; ``None`` is "not reported".
The closed lists of values are in ``sql/migrations`` and are checked there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal


@dataclass(slots=True)
class RecordOpened:
    """A record of the source is used; the events up to the next record belong to it.

    ``value`` and ``raw`` are the decoded record and its bytes (resends are told by them, pointers are checked in
    them). ``kind`` is the record type as the log names it. ``chained`` records are message-like: they get a row in
    ``facts.records`` and give a session its start and end; ``part`` says what they are in the conversation: ``prompt``,
    ``answer``, ``result`` (of calls), ``summary`` (of a compaction, and its boundary) or ``aside``. ``counted`` is what
    ``source_summary`` counts the record as: ``user`` (role user without a tool result), ``direct_user`` (such a record
    and neither injected, a summary nor a side chain), ``direct`` (the word that a user record beside it was typed),
    ``assistant``, or None. ``closes_message`` is a stop reason that
    is not null: the message is complete.

    A line may hold several records (a frame): each is opened, with its own ``child``. ``sequence`` is the place in the
    session's own numbering, which is then its order inside the source. ``group_key`` names the part of a message whose
    fragments belong together, where the log names parts (default: the message). ``first_wins``: of two records of one
    id the first is kept, not the last complete one. ``again``: an earlier record of the source (line 0: the source as
    a whole) stands open once more, because what it says was known only later; it was counted when it was opened first.
    """

    line_no: int
    child: int
    raw: bytes
    value: dict[str, Any]
    session_id: str
    kind: str
    ts: int | None = None
    ts_source: str | None = None
    role: str | None = None
    part: str = "aside"
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    origin_session_id: str | None = None
    origin_uuid: str | None = None
    message_key: str | None = None
    model: str | None = None
    agent: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    chained: bool = False
    counted: str | None = None
    closes_message: bool = False
    row_key: str | None = None
    sequence: int | None = None
    group_key: str | None = None
    first_wins: bool = False
    again: bool = False


@dataclass(slots=True)
class Unread:
    """A record that gives no facts: ``skipped`` (known, docs/providers.md says why), ``unknown`` (a type nobody
    has
    described: the drift detector) or ``rejected`` (a known type without its required fields).
    """

    line_no: int
    child: int
    kind: str
    disposition: str
    row_key: str | None = None


@dataclass(slots=True)
class Dialogue:
    """One readable block of text. ``pointer`` leads to the string leaf it was projected from (RFC 6901; ``#`` steps
    into a string that holds JSON). ``text`` differs from the leaf only where a command wrapper was unfolded, or parts
    that the log wrote one by one were joined.
    """

    role: str
    kind: str
    text: str
    pointer: str
    block: int | None = 0
    attachments: int = 0
    decoded: bool = False


@dataclass(slots=True)
class Merged:
    """A readable block of the open record that stands in another row: of the same record (``human_input``), or of the
    record at ``into`` (line number, child).
    """

    block: int
    into_block: int | None
    reason: str
    into: tuple[int, int] | None = None


@dataclass(slots=True)
class ToolRequest:
    """A tool call is asked for. ``args`` is the decoded argument object, or the raw text where it did not parse
    (``args_parse_ok`` False). ``call_id`` None: the fold gives a key by line and block. ``files`` are (path, op).
    """

    block: int | None
    call_id: str | None
    name_raw: str
    name: str
    args: Any
    args_parse_ok: bool = True
    mcp_server: str | None = None
    target_path: str | None = None
    command_head: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    parent_call_id: str | None = None
    batch_key: str | None = None


@dataclass(slots=True)
class ToolResult:
    """The result of a tool call. ``text`` is its readable text, ``images`` how many pictures it held (never bytes).
    ``is_error`` None: the log does not say. ``denial`` is the provider's word for a refusal.
    """

    block: int | None
    call_id: str | None
    text: str | None
    images: int = 0
    is_error: bool | None = None
    exit_code: int | None = None
    status_raw: str | None = None
    denial: str | None = None
    provider_us: int | None = None


@dataclass(slots=True)
class ToolSpan:
    """A log times (a part of) a call directly: ``execution wait_permission wait_human wait_queue hook shell``, or
    ``background``, from the start of what went on behind a call that had returned to the end that is told later.
    """

    call_id: str
    span: str
    started_at: int | None
    ended_at: int | None
    duration_us: int | None
    outcome: str | None = None


@dataclass(slots=True)
class TurnMark:
    """A turn starts or ends here, or the record stands ``within`` the turn of that native id, although another has
    started since. ``trigger``: person, scheduled, subagent, resume, unknown.

    An end belongs to the start of the same ``native_turn_id``; its ``status_raw`` is how the turn ended. A start of
    ``status_raw`` ``open`` says that its end will be told: without one the turn is open, or superseded.
    """

    mark: str
    native_turn_id: str | None = None
    trigger: str | None = None
    status_raw: str | None = None
    reason: str | None = None
    error_class: str | None = None
    http_status: int | None = None
    reported_us: int | None = None
    first_token_us: int | None = None


@dataclass(slots=True)
class ModelCall:
    """Usage of one model call as the log states it. ``input_tokens`` includes cached tokens, ``output_tokens``
    includes reasoning (the adapter converts once and says from what). A policy zero is None with ``suppressed``.
    ``request_id`` is the service's id of the request, by which the stores of one session tell of the same call.
    """

    request_key: str
    model: str | None = None
    model_is_alias: bool = False
    grain: str = "request"
    owner: str = "session"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_5m_tokens: int | None = None
    cache_creation_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    usage_status: str = "reported"
    credits: Decimal | None = None
    original_credits: Decimal | None = None
    cost_usd_reported: Decimal | None = None
    context_ratio: float | None = None
    context_window: int | None = None
    duration_us: int | None = None
    first_token_us: int | None = None
    stop_reason: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class SessionFact:
    """One statement about a session: ``cwd title.custom title.ai model branch version entrypoint parent fork …``.
    Which statement wins is decided in SQL, where it can be seen.
    """

    key: str
    value: str
    ts: int | None = None


@dataclass(slots=True)
class SessionEvent:
    """Anything else worth keeping, typed and compact: compaction, attachment, interrupt, error, retry, hook …"""

    kind: str
    subtype: str | None = None
    summary: str | None = None
    attrs: Mapping[str, Any] | None = None


@dataclass(slots=True)
class UnreadItem:
    """A content item that gives no text: ``unknown`` (a type nobody has described) or ``rejected`` (no item at all).
    Only its type is kept: an item is never serialised.
    """

    block: int
    item_type: str
    disposition: str


@dataclass(slots=True)
class ProviderRow:
    """A row of a table that only one provider fills (the Qoder Bridge tables): column values by name."""

    table: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Contradiction:
    """The open record says of an id what an earlier line does not, by a rule of the provider's own. ``content`` and
    ``before`` are what the two say (None: no longer known); ``resolution`` is whose side is used: this or other.
    """

    id_kind: str
    identity: str
    before_line: int
    content: str
    before: str | None
    rule: str
    resolution: str


Event = (
    RecordOpened
    | Unread
    | Dialogue
    | Merged
    | ToolRequest
    | ToolResult
    | ToolSpan
    | TurnMark
    | ModelCall
    | SessionFact
    | SessionEvent
    | UnreadItem
    | ProviderRow
    | Contradiction
)


@dataclass(slots=True)
class ContentBlock:
    """One content item as the inventory walker sees it, without the projector: its index, type, the JSON type and
    length in characters of its readable leaf (None: it has none), and the native id of a tool item.
    """

    role: str | None
    block: int
    block_type: str | None
    leaf_type: str | None
    leaf_chars: int | None
    item_id: str | None
    disposition: str
