"""What do the documents beside the turn files report and conclude?

``summary.json`` is the harness's own report, an array of runs, rewritten after each: what is reported, not what was
observed. Audits and replay summaries are conclusions of a script; the provenance of an earlier run mixes observed and
derived stages and says which is which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import Event, ProviderRow, RecordOpened, Unread
from etl.providers.qoder_bridge import paths, rows
from etl.providers.qoder_bridge.envelopes import judge
from etl.providers.qoder_bridge.failures import failure_of
from etl.providers.qoder_bridge.masking import has_mask, is_mask, masked_text
from etl.providers.qoder_bridge.messages import text_of
from etl.providers.qoder_bridge.turns import Turn
from etl.shape import as_bool, as_count, as_dict, as_list, as_str, as_text, canonical, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike, Source

#: What the harness counts, or says yes or no to.
_REPORTED: Final = (
    "toolCount",
    "toolExecutions",
    "toolErrors",
    "protocolErrors",
    "providerTimeouts",
    "continuationTimeouts",
    "finalResponse",
)
#: Figures of the audit script, and what they are called here.
_AUDITED: Final[dict[str, str]] = {
    "rawChunkCount": "raw_chunk_count",
    "transportFrameCount": "transport_frame_count",
    "snapshotCount": "snapshot_count",
    "textDeltaCount": "text_delta_count",
    "duplicateUuids": "duplicate_uuids",
    "duplicateFinalSnapshots": "duplicate_finals",
    "malformedProvenance": "origin",
    "firstBadStage": "first_bad_stage",
    "requestSentToTransport": "request_sent",
    "firstTokenMs": "first_token_ms",
}
_TOTALS: Final = (
    "runs",
    "rawChunkCount",
    "providerSideFailures",
    "bridgeSideFailures",
    "transportSideFailures",
    "completedRuns",
)
_REPLAYED: Final = ("mode", "origin", "firstBadStage", "unchanged", "strictFailure", "requestsSent", "stopReason")
_STAGES: Final = ("A", "B", "C", "D", "E")


def adapt_document(source: Source, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The rows of a document: one record, or one for each element of an array."""
    read = {
        paths.SUMMARY: _run,
        paths.AUDIT: _audit,
        paths.AUDIT_TOTALS: _totals,
        paths.REPLAY_SUMMARY: _replay_summary,
        paths.PROVENANCE: _provenance,
    }[source.claim.store_kind]
    for record in records:
        events = list(read(source, record))
        if events:
            opened = RecordOpened(record.line_no, record.child, record.raw, record.value, "", source.claim.store_kind)
            yield opened
            yield from events
        else:
            yield Unread(record.line_no, record.child, source.claim.store_kind, "unknown")


def _run(source: Source, record: RecordLike) -> Iterator[Event]:
    """One run of a summary, with its turns; the first run brings the row of the batch."""
    value, batch_id = record.value, source.claim.native_id
    run = rows.small(value.get("run"))
    if run is None:
        return
    if record.child == 0:
        stamp = instant(_iso(batch_id))
        yield rows.batch(batch_id, "live", root=_folder(source), stamp=stamp, model=as_text(value.get("model")))
    turns, states = as_list(value.get("turns")), [as_str(state) for state in as_list(value.get("states"))]
    tools = as_count(value.get("toolCount"))
    yield ProviderRow(
        "provider_runs",
        {
            "batch_id": batch_id,
            "run": run,
            "model": as_text(value.get("model")),
            "tool_count": as_count(value.get("toolExecutions")) if tools is None else tools,
            "tool_errors": as_count(value.get("toolErrors")),
            "protocol_errors": as_count(value.get("protocolErrors")),
            "provider_timeouts": as_count(value.get("providerTimeouts")),
            "continuation_timeouts": as_count(value.get("continuationTimeouts")),
            "terminal_state": as_text(value.get("terminalState")) or (states[-1] if states else None),
            "states": canonical(states) if states else None,
            "final_response": as_bool(value.get("finalResponse")),
            "turns": len(turns),
            "failure": as_text(value.get("failure")),
            "is_masked": has_mask(value, _REPORTED),
        },
    )
    for number, told in enumerate(map(as_dict, turns), 1):
        yield from _turn(batch_id, run, number, told)


def _turn(batch_id: str, run: int, number: int, told: dict[str, Any]) -> Iterator[Event]:
    stated = rows.small(told.get("turn"))
    key = rows.TurnKey(batch_id, run, number if stated is None else stated, rows.SUMMARY_ONLY)
    message, stop = as_text(told.get("error")), as_text(told.get("stopReason"))
    failure = failure_of(message, stop)
    row = {
        "stop_reason": stop,
        "error_kind": failure.kind,
        "error_code": failure.code,
        "error_message": message,
        "error_class": failure.error_class if message or stop == "aborted" else None,
        "masked_values": has_mask(told, ("turn", "diagnosticCount")),
    }
    yield ProviderRow("provider_turns", key.columns() | row)
    count = told.get("diagnosticCount")
    if (figure := count if is_mask(count) else as_count(count)) is not None:
        yield rows.claim(key, "diag_count", figure)


def _audit(source: Source, record: RecordLike) -> Iterator[Event]:
    run = rows.small(record.value.get("run"))
    for number, told in enumerate(map(as_dict, as_list(record.value.get("turns"))), 1):
        stated, audit = rows.small(told.get("turn")), as_dict(told.get("audit"))
        key = rows.TurnKey(source.claim.native_id, run, number if stated is None else stated, rows.DERIVED)
        for name, called in _AUDITED.items():
            if audit.get(name) is not None:
                yield rows.claim(key, called, audit[name])


def _totals(source: Source, record: RecordLike) -> Iterator[Event]:
    key = rows.TurnKey(source.claim.native_id, None, None, rows.DERIVED)
    for name in _TOTALS:
        if record.value.get(name) is not None:
            yield rows.claim(key, name, record.value[name])


def _replay_summary(source: Source, record: RecordLike) -> Iterator[Event]:
    place = paths.place_of(source.claim)
    key = rows.TurnKey(place.batch_id, place.run, place.turn, rows.REPLAYED)
    for name in _REPLAYED:
        if record.value.get(name) is not None:
            yield rows.claim(key, name, record.value[name])


def _provenance(_source: Source, record: RecordLike) -> Iterator[Event]:
    """The malformed turns of an earlier run, as extracted from its log: each stage says whether it was observed."""
    if "malformed" not in record.value and "queueTurns" not in record.value:
        return
    found = [as_dict(entry) for entry in as_list(record.value.get("malformed"))]
    batch_id = f"previous-run/{_first_session(found)}"
    yield rows.batch(batch_id, "previous")
    for number, entry in enumerate(found, 1):
        key = rows.TurnKey(batch_id, number, 1, rows.DERIVED)
        yield from _stages(key, entry)
        for name in ("origin", "firstBadStage", "duplicates"):
            if entry.get(name) is not None:
                yield rows.claim(key, name, entry[name])
        yield _previous_turn(key, entry)


def _first_session(found: list[dict[str, Any]]) -> str:
    sessions = (as_text(message.get("session_id")) for entry in found for message in _messages(entry))
    return (next((told for told in sessions if told), None) or "unknown")[:8]


def _messages(entry: dict[str, Any]) -> list[dict[str, Any]]:
    return [as_dict(as_dict(item).get("message")) for item in as_list(as_dict(entry.get("A")).get("sequence"))]


def _stages(key: rows.TurnKey, entry: dict[str, Any]) -> Iterator[Event]:
    """Rows of the five stages. Observed are the messages of A and the text of B; the rest was concluded from code."""
    for number, message in enumerate(_messages(entry), 1):
        columns = {"boundary": "A", "text": text_of(message) or None, "uuid": as_text(message.get("uuid"))}
        evidence = {"sdk_seq": number, "evidence_level": rows.OBSERVED}
        yield rows.boundary(key, rows.Moment(number, None), "provenance", columns | evidence)
    for stage in ("B", "C"):
        told = as_dict(entry.get(stage))
        yield _stage(key, stage, as_str(told.get("value")), is_observed=told.get("observed") is True)
    derived = as_dict(entry.get("D"))
    for index, raw in enumerate(as_list(derived.get("targets")), 1):
        yield _stage(key, "D", as_str(raw), is_observed=derived.get("observed") is True, item_index=index)
        yield from rows.envelopes(key, "D", [judge(as_str(raw) or "", index)])
    failed = as_dict(entry.get("E"))
    error = as_text(failed.get("observedError"))
    inputs = [as_str(text) for text in as_list(failed.get("derivedInput"))]
    text = inputs[0] if inputs else None
    is_observed = failed.get("inputObserved") is True
    payload = canonical({"message": error}) if error else None
    yield _stage(key, "E", text, is_observed=is_observed, code=failure_of(error).code, payload=payload)


def _stage(key: rows.TurnKey, stage: str, text: str | None, *, is_observed: bool, **more: Any) -> ProviderRow:
    level = rows.OBSERVED if is_observed else rows.DERIVED
    columns = {"boundary": stage, "text": text, "observed": is_observed, "evidence_level": level}
    return rows.boundary(key, rows.Moment(None, None), "provenance", columns | more)


def _previous_turn(key: rows.TurnKey, entry: dict[str, Any]) -> ProviderRow:
    """The row of an earlier turn: what its messages add up to by our rules, and the error it was reported with."""
    turn = Turn(key, "")
    for number, message in enumerate(_messages(entry), 1):
        turn.stream.take(message, (0, number))
    verdict = turn.stream.verdict()
    error = as_text(as_dict(entry.get("E")).get("observedError"))
    failure = failure_of(error)
    row = {
        "own_text": masked_text(verdict.text),
        "own_code": verdict.code,
        "error_message": error,
        "error_code": failure.code,
        "error_class": failure.error_class,
    }
    return ProviderRow("provider_turns", key.columns() | row)


def _iso(stamp: str) -> str:
    """The time in a batch's name: colons became dashes."""
    day, _, time = stamp.partition("T")
    return f"{day}T{time.replace('-', ':')}" if time else stamp


def _folder(source: Source) -> str | None:
    return source.rel_path.rpartition("/")[0] or None
