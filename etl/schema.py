"""Which tables of facts are there, and what are their columns and types?

One table a fact; every row has exactly one owner, ``source_id``. ``sql/migrations`` holds the same tables as SQL with
a sentence per column; a test holds the two together. Types are short names here so that importing this costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

#: Raised when an adapter or the fold gives other rows for the same bytes: the source is then read again.
PARSER_VERSION: Final = 2

#: A text longer than this is kept as head and tail, flagged, with its size and digest (tool results only).
RESULT_CAP_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its short type, and whether its text is masked before it is stored."""

    name: str
    type: str
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the schema ``facts``."""

    name: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def masked(self) -> tuple[str, ...]:
        """The columns whose text passes the masking rules before it is stored."""
        return tuple(column.name for column in self.columns if column.masked)


#: Where a row came from. Every table that begins with these has one row per thing said at a place of a source.
PROVENANCE: Final = "fact_id:u64 source_id:str line_no:i64 row_key:str child:i32 block:i32"

# name:type, a trailing ! marks a masked text
_SPEC: Final[dict[str, str]] = {
    "sources": """
        source_id:str host:str provider:str realm:str store_kind:str rel_path:str! file_native_id:str!
        native_session_id:str! session_id:str! format_version:str tool_version:str! size:i64 lines:i64 blank_lines:i64
        rejected_lines:i64 user_records:i64 direct_user_records:i64 assistant_messages:i64 thinking_blocks:i64
        call_records:i64 result_records:i64 paired_records:i64 head_digest:str tail_state:str note:str!
        parser_version:i32 mask_version:i32""",
    "records": """@ session_id:str! record_kind:str! role:str part:str native_uuid:str! parent_uuid:str!
        logical_parent_uuid:str! origin_session_id:str! origin_uuid:str! message_key:str! is_sidechain:bool ts:ts
        sequence:i64""",
    "content_blocks": """@ session_id:str! role:str block_type:str! leaf_type:str leaf_chars:i64 item_id:str!
        disposition:str""",
    "merges": """source_id:str line_no:i64 child:i32 block:i32 into_line_no:i64 into_child:i32 into_block:i32
        reason:str""",
    "dialogue": """@ session_id:str! role:str kind:str text:str! text_chars:i64 digest:str src_pointer:str leaf_type:str
        raw_envelope:bool message_key:str! native_uuid:str! parent_uuid:str! model:str! ts:ts ts_source:str agent:str!
        is_sidechain:bool is_meta:bool attachments:i32 decoded_from_string:bool""",
    "tool_requests": """@ session_id:str! call_key:str! call_id_source:str parent_call_key:str! message_key:str!
        name_raw:str! name:str! mcp_server:str! args:str! args_parse_ok:bool args_bytes:i64 digest:str target_path:str!
        command_head:str! ts:ts batch_key:str!""",
    "tool_results": """@ session_id:str! call_key:str! result_text:str! result_bytes:i64 result_truncated:bool
        digest:str
        images:i32 is_error:bool exit_code:i64 status_raw:str! denial:str! ts:ts provider_us:i64""",
    "tool_spans": """@ session_id:str! call_key:str! span:str started_at:ts ended_at:ts duration_us:i64 outcome:str!""",
    "turn_marks": """@ session_id:str! mark:str native_turn_id:str! trigger:str status_raw:str! reason:str!
        error_class:str!
        http_status:i32 reported_us:i64 first_token_us:i64 ts:ts""",
    "model_calls": """@ session_id:str! request_key:str! message_key:str! grain:str owner:str model:str!
        model_is_alias:bool input_tokens:i64 output_tokens:i64 cache_read_tokens:i64 cache_creation_5m_tokens:i64
        cache_creation_1h_tokens:i64 reasoning_tokens:i64 total_tokens:i64 usage_status:str credits:dec
        original_credits:dec cost_usd_reported:dec context_ratio:f64 context_window:i64 duration_us:i64
        first_token_us:i64 stop_reason:str! ts:ts request_id:str!""",
    "session_facts": """@ session_id:str! key:str! value:str! ts:ts""",
    "events": """@ session_id:str! kind:str subtype:str! summary:str! attrs:str! ts:ts""",
    "files_touched": """@ session_id:str! call_key:str! path:str! op:str""",
    "record_census": """source_id:str unit:str disposition:str kind:str! n:i64 first_line:i64""",
    "rejects": """source_id:str line_no:i64 child:i32 block:i32 byte_offset:i64 length:i64 reason:str recovered:bool
        head:str! digest:str""",
    "conflicts": """source_id:str line_no:i64 other_line_no:i64 id_kind:str id:str! digest:str other_digest:str rule:str
        resolution:str""",
    "redactions": """source_id:str column_name:str rule:str n:i64 fingerprint:str""",
    "bridge_batches": """@ batch_id:str! root:str! stamp:ts source_kind:str model:str! sdk_version:str!""",
    "provider_runs": """@ batch_id:str! run:i32 model:str! tool_count:i64 tool_errors:i64 protocol_errors:i64
        provider_timeouts:i64 continuation_timeouts:i64 terminal_state:str! states:str! final_response:bool
        turns:i64 failure:str! is_masked:bool""",
    "provider_turns": """@ batch_id:str! run:i32 turn:i32 request_id:str! model:str! evidence_level:str
        stop_reason:str! raw_stop_reason:str! error_kind:str! error_code:str! error_message:str! error_class:str
        continuation:bool request_sent:bool runtime_ack_us:i64 first_message_us:i64 first_model_event_us:i64
        first_thinking_us:i64 first_token_us:i64 last_message_us:i64 terminal_us:i64 raw_chunk_count:i64
        transport_frame_count:i64 text_delta_count:i64 snapshot_count:i64 queue_event_count:i64 result_count:i64
        diag_count:i64 duplicate_uuids:i64 duplicate_finals:i64 sequence_gaps:i64 backward_steps:i64 own_code:str
        own_error:str! own_failure:str! own_timeout:str own_calls:i64 own_text:str! delta_text:str!
        delta_defect:str snapshot_text:str! total_credits:dec masked_values:bool""",
    "boundary_events": """@ batch_id:str! run:i32 turn:i32 request_id:str! sequence:i64 elapsed_us:i64 label:str!
        boundary:str item_index:i32 text:str! digest:str! digest_algo:str uuid:str! message_id:str! sdk_seq:i64
        code:str! observed:bool evidence_level:str payload:str! is_masked:bool""",
    "sdk_messages": """@ batch_id:str! run:i32 turn:i32 sequence:i64 elapsed_us:i64 type:str! subtype:str!
        uuid:str! message_id:str! digest:str! stop_reason:str! event_type:str! delta_type:str! delta_chars:i64
        comparable:str! text:str! defect_code:str is_masked:bool dup_of_line:i64 disposition:str payload:str!""",
    "transport_frames": """@ batch_id:str! run:i32 turn:i32 sequence:i64 elapsed_us:i64 direction:str type:str!
        subtype:str! uuid:str! delta_type:str! delta_chars:i64 comparable:str! text:str! defect_code:str
        is_masked:bool payload:str!""",
    "queue_events": """@ batch_id:str! run:i32 turn:i32 sequence:i64 elapsed_us:i64 status:str!
        service_available:bool request_id:str! model_key:str! queue_type:str! queue_count:i64 queue_wait_us:i64
        wait_us:i64 disposition:str is_masked:bool""",
    "envelopes": """@ batch_id:str! run:i32 turn:i32 boundary:str envelope_index:i32 raw:str! parse_ok:bool
        parse_error:str! code:str tool_name:str! call_key:str!""",
    "bridge_claims": """@ batch_id:str! run:i32 turn:i32 claim:str! value:str! evidence_level:str
        is_masked:bool""",
}


def _table(name: str, spec: str) -> Table:
    columns = []
    for word in spec.replace("@", PROVENANCE, 1).split():
        masked = word.endswith("!")
        column, _, kind = word.rstrip("!").partition(":")
        columns.append(Column(column, kind, masked))
    return Table(name, tuple(columns))


#: Every table of the schema ``facts``, by name.
TABLES: Final[dict[str, Table]] = {name: _table(name, spec) for name, spec in _SPEC.items()}

#: The SQL type of each short type.
SQL_TYPES: Final[dict[str, str]] = {
    "str": "VARCHAR",
    "i64": "BIGINT",
    "i32": "INTEGER",
    "u64": "UBIGINT",
    "f64": "DOUBLE",
    "bool": "BOOLEAN",
    "ts": "TIMESTAMP WITH TIME ZONE",
    "dec": "DECIMAL(18,9)",
}


@cache
def arrow_schema(table: str) -> pa.Schema:
    """The Arrow schema of a table: timestamps in UTC microseconds, money as decimal128(18, 9)."""
    import pyarrow as pa  # noqa: PLC0415 - importing this module must not load an engine

    types = {
        "str": pa.string(),
        "i64": pa.int64(),
        "i32": pa.int32(),
        "u64": pa.uint64(),
        "f64": pa.float64(),
        "bool": pa.bool_(),
        "ts": pa.timestamp("us", tz="UTC"),
        "dec": pa.decimal128(18, 9),
    }
    return pa.schema([(column.name, types[column.type]) for column in TABLES[table].columns])
