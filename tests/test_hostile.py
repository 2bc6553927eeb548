"""Does whatever stands in a tree end in a row that says what happened, while the other files load?"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import tempfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl.jsonl import LINE_CAP
from etl.store import connect
from tests.loading import FIXTURES, load_home, rows, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.request import Report

SLUG: Final = ".qoder/projects/-srv-hostile"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _user(number: int, session: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "user",
        "uuid": f"{session}-u{number}",
        "parentUuid": None,
        "sessionId": session,
        "timestamp": f"2026-03-01T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "cwd": "/srv/hostile",
        "version": "1.1.52",
        "message": {"role": "user", "content": f"Question {number}"},
        **more,
    }


def _assistant(number: int, session: str, content: Any, **message: Any) -> dict[str, Any]:
    return {
        **_user(number, session),
        "type": "assistant",
        "uuid": f"{session}-a{number}",
        "message": {
            "id": f"{session}-m{number}",
            "type": "message",
            "role": "assistant",
            "model": "auto",
            "content": content,
            "stop_reason": "end_turn",
            **message,
        },
    }


def _good(session: str) -> bytes:
    """A prompt, a call with its result, and an answer."""
    return b"".join(
        _json(record)
        for record in (
            _user(1, session),
            _assistant(2, session, [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}]),
            _user(3, session, message={"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a b"}]}),
            _assistant(4, session, [{"type": "text", "text": "Two files."}]),
        )
    )


def _deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


# -- one file each: what its row must say


@dataclass(frozen=True)
class Odd:
    """A file and what its row must say; ``rejects`` are (reason, recovered)."""

    data: bytes
    tail: str = "complete"
    rejects: tuple[tuple[str, bool], ...] = ()
    blank: int = 0
    more: dict[str, Any] = field(default_factory=dict)


def _replacing(record: dict[str, Any], text: bytes) -> bytes:
    """A record with ``@@`` replaced by raw JSON text."""
    return _json(record).replace(b'"@@"', text)


_TEXT: Final = [{"type": "text", "text": "ok"}]
_MALFORMED: Final = ("malformed", False)
_NOT_OBJECT: Final = ("not_object", False)
_DEPTH: Final = ("depth", False)
_NO_MESSAGES: Final[tuple[Any, ...]] = (None, 5, [], True)


def _nested(levels: int) -> bytes:
    """Structures of so many levels in arguments, in an unknown item, as content, in a result and in an attachment."""
    body, session = _deep(levels), f"deep-{levels}"
    call = {"type": "tool_use", "id": "d", "name": "Read", "input": {"deep": "@@"}}
    result = {"type": "tool_result", "tool_use_id": "d", "content": ["@@"]}
    places = [
        _assistant(2, session, [call]),
        _assistant(3, session, [{"type": "hologram", "data": "@@"}]),
        _assistant(4, session, "@@"),
        _user(5, session, message={"content": [result]}, toolUseResult="@@"),
        _user(6, session, type="attachment", attachment="@@"),
    ]
    return _json(_user(1, session)) + b"".join(_replacing(place, body) for place in places)


ODD: Final[dict[str, Odd]] = {
    "empty": Odd(b""),
    "blank": Odd(b"\n\r\n  \n\t\n", blank=4),
    "blank-torn": Odd(b"\n  ", blank=2),
    "metadata": Odd(
        _json({"type": "workspace-directories", "sessionId": "metadata", "directories": [None, 5, "", "/srv/a"]})
        + _json({"type": "mode", "sessionId": "metadata", "mode": "normal"})
        + _json({"type": "custom-title", "sessionId": "metadata", "customTitle": "Nothing but a title"})
    ),
    "scalars": Odd(b'null\n[]\n[{"type":"user"}]\n17\n"text"\ntrue\n', rejects=(_NOT_OBJECT,) * 6),
    "no-json": Odd(b"{\nhello\n}{\n<xml/>\n", rejects=(_MALFORMED,) * 4),
    "constants": Odd(b'{"type":"user","n":NaN}\n{"type":"user","n":-Infinity}\n', rejects=(_MALFORMED,) * 2),
    "unknown": Odd(
        _json({"type": "hologram"}) + _json({}) + _json({"type": 5}) + _json({"type": None}) + _good("unknown")
    ),
    "no-message": Odd(
        b"".join(
            _json({"type": role, "message": message}) for role in ("user", "assistant") for message in _NO_MESSAGES
        ),
        rejects=(("invalid_shape", False),) * 8,
        more={"rejected_lines": 0},
    ),
    "bom-crlf": Odd(b"\xef\xbb\xbf" + _good("bom-crlf").replace(b"\n", b"\r\n")),
    "nul-tail": Odd(_good("nul-tail") + b"\0" * 4096, tail="nul_padded", rejects=(("nul", False),)),
    "torn": Odd(_good("torn") + _good("torn")[:77], tail="partial", rejects=(("partial_tail", False),)),
    "no-newline": Odd(_good("no-newline")[:-1]),
    "glued": Odd(_good("glued").replace(b"\n", b"", 1), rejects=(("glued", True),)),
    "surrogate": Odd(_replacing(_user(1, "surrogate", gitBranch="@@"), b'"a\\ud800b"'), rejects=(("surrogate", True),)),
    "bad-utf8": Odd(_good("bad-utf8").replace(b"Two", b"T\xff\xfe"), rejects=(("encoding", True),)),
    "nul-inside": Odd(_good("nul-inside").replace(b"Two", b"T\0o"), rejects=(("nul", True),)),
    "duplicate-keys": Odd(b'{"type":"mode","type":"user","uuid":"k","message":{"content":"a","content":"b"}}\n'),
    "deep-200": Odd(_nested(200)),
    "deep-1000": Odd(_nested(1000)),
    "deep-10000": Odd(_nested(10_000), rejects=(_DEPTH,) * 5),
    "deep-100000": Odd(_nested(100_000), rejects=(_DEPTH,) * 5),
    "deep-text": Odd(_json(_assistant(1, "deep-text", _deep(100_000).decode()))),
    "cycles": Odd(
        _json(
            _user(1, "cycles", parentUuid="cycles-u1", forkedFrom={"sessionId": "cycles", "messageUuid": "cycles-u1"})
        )
        + _json({**_assistant(2, "cycles", _TEXT), "parentUuid": "cycles-a3"})
        + _json({**_assistant(3, "cycles", _TEXT), "parentUuid": "cycles-a2"})
        + _json({"type": "active-leaf", "sessionId": "cycles", "leafUuid": "cycles-a3"})
    ),
    "sql": Odd(_good("'; drop table facts.sources; --")),
    "eons": Odd(
        b"".join(
            _json(_assistant(n, "eons", [{"type": "tool_use", "id": f"e{n}", "name": "Bash", "input": {}}]))
            + _json(
                {
                    **_user(n, "eons", message={"content": [{"type": "tool_result", "tool_use_id": f"e{n}"}]}),
                    "uuid": f"r{n}",
                    "timestamp": "9999-12-31T23:59:59Z",
                }
            )
            for n in range(50)
        )
    ),
    "riches": Odd(
        b"".join(
            _json(_assistant(n, "riches", _TEXT, usage={"credits": 999_999_999, "output_tokens": 2**63 - 1, "n": n}))
            for n in range(3)
        )
    ),
}

#: JSON texts that are put in place of every value of a set of healthy records, one file per text.
VALUES: Final[tuple[bytes, ...]] = (
    *(b"null", b"true", b"false", b"0", b"-1", b"1.5", b"1e400", b"-1e400", b"1e308", b"5e-324"),
    *(str(n).encode() for n in (10**30, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, -(10**30))),
    *(b'""', b'" "', b'"x"', b'"-5"', b'"1e5"', b'"abc"', b'"\\u0000"', b'"a\\u0000b\\n"', b'"\\u2028"'),
    b'"' + b"9" * 400 + b'"',
    b'"' + b"x" * 20_000 + b'"',
    *('"😀é"'.encode(), b'"\'; drop table facts.sources; --"', b'"../../etc/passwd"', b'"[object Object]"'),
    *(
        b"[]",
        b"{}",
        b"[null]",
        b"[[]]",
        b'{"a":1}',
        b'{"type":"text","text":"t"}',
        b'[{"type":{}},{"text":[]}]',
        _deep(500),
    ),
    *(b'"0001-01-01T00:00:00Z"', b'"9999-12-31T23:59:59.999999Z"', b'"10000-01-01T00:00:00Z"', b'"2026-03-01"'),
    *(b'"0001-01-01T00:00:00+23:59"', b'"1767225600000"', b"1767225600000", b"1767225600.25", b"-1767225600000"),
)


def _healthy_records(session: str) -> list[dict[str, Any]]:
    """One record of every kind with every field that is read."""
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
        "cache_creation": {"ephemeral_1h_input_tokens": 1},
        "credits": 0.5,
        "original_credits": 0.7,
        "context_usage_ratio": 0.1,
    }
    items = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "t"},
        {"type": "output_text", "text": {"value": "v"}},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/a", "command": "c"}},
        {"text": "untyped"},
        "bare",
    ]
    detail = {
        "exitCode": 0,
        "durationMs": 5,
        "totalDurationMs": 7,
        "kind": "k",
        "status": "s",
        "agentId": "g",
        "interrupted": False,
    }
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}, {"type": "image"}]},
        {"type": "tool_result", "tool_use_id": "t2", "content": "plain", "is_error": True},
    ]
    return [
        _user(
            1,
            session,
            origin={"kind": "human"},
            humanInput={"text": "hi", "mode": "prompt"},
            promptId="p",
            gitBranch="b",
            entrypoint="cli",
            isMeta=False,
            isSidechain=False,
            isCompactSummary=False,
            forkedFrom={"sessionId": "Z", "messageUuid": "q"},
            logicalParentUuid="l",
        ),
        _user(2, session, message={"content": [{"type": "text", "text": "<command-name>/x</command-name>"}]}),
        {
            **_assistant(3, session, items, usage=usage),
            "isApiErrorMessage": False,
            "error": "e",
            "displayErrorCode": "c",
        },
        {**_assistant(4, session, _TEXT), "isApiErrorMessage": True, "error": "e", "displayErrorCode": "c"},
        _user(
            5,
            session,
            message={"content": results},
            toolUseResult=[detail, detail],
            toolDenialKind="no",
            userFeedback="f",
        ),
        _user(6, session, message={"content": results}, toolUseResult=detail),
        {"type": "assistant", "message": json.dumps({"role": "assistant", "content": items})},
        {"role": "assistant", "content": items},
        {"type": "workspace-directories", "sessionId": session, "directories": ["/srv/x"]},
        {"type": "runtime-config", "sessionId": session, "timestamp": 1772359200000, "model": "auto"},
        {"type": "active-leaf", "sessionId": session, "leafUuid": "a", "explicit": True, "timestamp": 1772359200000},
        {"type": "custom-title", "sessionId": session, "customTitle": "t", "timestamp": 1772359200000},
        {"type": "last-prompt", "sessionId": session, "lastPrompt": "l"},
        {
            "type": "worktree-state",
            "sessionId": session,
            "worktreeSession": {"worktreePath": "/p", "originalCwd": "/q"},
        },
        {"type": "token-stats", "sessionId": session, "promptTokenCount": 5, "timestamp": 1772359200000},
        {
            **_user(7, session),
            "type": "attachment",
            "attachment": {"type": "queued_command", "prompt": [{"text": "q"}]},
        },
        {**_user(8, session), "type": "attachment", "attachment": {"type": "date_change", "content": "c"}},
        {**_user(9, session), "type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": 4}},
    ]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


def _with(record: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(record))
    place: Any = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


def _everywhere(text: bytes, session: str) -> bytes:
    """Every healthy record with every one of its values replaced in turn; ids stay told apart."""
    lines: list[bytes] = []
    for record in _healthy_records(session):
        for path in _paths(record):
            fresh = {**record, "uuid": f"{session}-{len(lines)}"} if "uuid" in record else record
            lines.append(_replacing(_with(fresh, path, "@@"), text))
    return b"".join(lines)


#: File names that no session file has: counted, not read.
NOT_CLAIMED: Final[tuple[bytes, ...]] = (
    *(b"with space.jsonl", b"new\nline.jsonl", b"quote'.jsonl", "emoji-😀.jsonl".encode(), b"\xff\xfe.jsonl"),
    *(b"..jsonl", b"...jsonl", b"colon:.jsonl", b"back\\slash.jsonl", b"'; drop table facts.sources; --.jsonl"),
)
#: Folder names: any is a project.
PROJECTS: Final[tuple[bytes, ...]] = (
    *(b"with space", b"new\nline", b"quote's", "emoji-😀".encode(), b"\xff\xfe", b"subagents", b"back\\slash"),
    *(b"'; drop table facts.sources; --", b"x" * 200, "nfd-e\u0301".encode(), "nfd-\u00e9".encode()),
)


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Fails instead of hanging: a FIFO that is opened blocks for ever."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _physical_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@dataclass(frozen=True)
class Loaded:
    """The store, what the load reported, the files by name, and the rows of sources and rejects by file name."""

    db: Path
    report: Report
    files: dict[str, bytes]
    sources: dict[str, dict[str, Any]]
    rejects: dict[str, list[tuple[str, bool]]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """One home that holds all odd files of this module beside good ones."""
    home = tmp_path_factory.mktemp("home")
    folder = home / SLUG
    folder.mkdir(parents=True)
    files = {f"{name}.jsonl": odd.data for name, odd in ODD.items()}
    files |= {f"value-{n:02}.jsonl": _everywhere(text, f"value-{n}") for n, text in enumerate(VALUES)}
    files |= {"good.jsonl": _good("good"), f"{'n' * 240}.jsonl": _good("long-name")}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for raw in NOT_CLAIMED:
        Path(os.fsdecode(bytes(folder) + b"/" + raw)).write_bytes(_good("not-claimed"))
    for n, raw in enumerate(PROJECTS):
        project = Path(os.fsdecode(bytes(folder.parent) + b"/" + raw))
        project.mkdir()
        (project / "odd-project.jsonl").write_bytes(_good(f"project-{n}"))
    with _within(240):
        report = load_home(home, home / "store.duckdb")
    db = home / "store.duckdb"
    sources = {row["source_id"]: row for row in table(db, "from facts.sources")}
    names = {source_id: row["rel_path"].removeprefix(f"{SLUG}/") for source_id, row in sources.items()}
    rejects: dict[str, list[tuple[str, bool]]] = {}
    lines = "from facts.rejects select source_id, reason, recovered where block is null order by source_id, line_no"
    for source_id, reason, recovered in rows(db, lines):
        rejects.setdefault(names[source_id], []).append((reason, recovered))
    return Loaded(db, report, files, {names[source_id]: row for source_id, row in sources.items()}, rejects)


def test_nothing_odd_is_a_fault_of_ours(loaded: Loaded) -> None:
    failed = "select rel_path, note from facts.sources where tail_state = 'failed'"
    assert rows(loaded.db, failed) == []
    assert (loaded.report.quarantined, loaded.report.sources_failed) == ({}, 0)
    assert {finding.severity for finding in loaded.report.findings} <= {"finding"}


def test_a_good_file_among_odd_ones_is_read_whole(loaded: Loaded) -> None:
    said = rows(loaded.db, "select kind, text from dialogue where session_id = 'qoder:good' order by seq")
    assert said == [("prompt", "Question 1"), ("text", "Two files.")]
    calls = rows(loaded.db, "select call_key, status, latency_ms from tool_calls where session_id = 'qoder:good'")
    assert calls == [("c1", "ok", 1000.0)]


@pytest.mark.parametrize("name", sorted(ODD))
def test_an_odd_file_is_a_row_that_says_what_happened(name: str, loaded: Loaded) -> None:
    odd, source = ODD[name], loaded.sources[f"{name}.jsonl"]
    expected = {
        "tail_state": odd.tail,
        "note": None,
        "size": len(odd.data),
        "lines": _physical_lines(odd.data),
        "blank_lines": odd.blank,
        "rejected_lines": sum(not recovered for _, recovered in odd.rejects),
        **odd.more,
    }
    assert {key: source[key] for key in expected} == expected
    assert loaded.rejects.get(f"{name}.jsonl", []) == list(odd.rejects)


def test_every_physical_line_is_counted_once(loaded: Loaded) -> None:
    counted = dict(
        rows(
            loaded.db,
            "select s.rel_path, coalesce(sum(c.n), 0)::bigint from facts.sources s "
            "left join facts.record_census c on c.source_id = s.source_id and c.unit = 'line' group by all",
        )
    )
    expected = {f"{SLUG}/{name}": _physical_lines(data) for name, data in loaded.files.items()}
    assert {path: n for path, n in counted.items() if path in expected} == expected


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_any_value_in_any_field_leaves_its_line_read(number: int, loaded: Loaded) -> None:
    name = f"value-{number:02}.jsonl"
    source = loaded.sources[name]
    assert (source["tail_state"], source["note"], source["rejected_lines"]) == ("complete", None, 0)
    assert source["lines"] == loaded.files[name].count(b"\n")


def test_odd_names_of_folders_are_projects_and_stay_told_apart(loaded: Loaded) -> None:
    found = rows(loaded.db, "select rel_path, session_id from facts.sources where rel_path like '%odd-project%'")
    assert {session for _, session in found} == {f"qoder:project-{n}" for n in range(len(PROJECTS))}
    assert len({path for path, _ in found}) == len(PROJECTS)
    assert {path.isprintable() or "\n" in path for path, _ in found} == {True}
    # the two forms of é are one stored name; the later one is numbered
    assert [path for path, _ in sorted(found) if "nfd-" in path] == [
        "#2/.qoder/projects/nfd-é/odd-project.jsonl",
        ".qoder/projects/nfd-é/odd-project.jsonl",
    ]


def test_odd_names_of_files_are_counted_and_not_read(loaded: Loaded) -> None:
    assert sum(loaded.report.unclaimed.values()) == len(NOT_CLAIMED)
    assert rows(loaded.db, "select count(*) from facts.sources where session_id like '%not-claimed%'") == [(0,)]


def test_every_view_answers(loaded: Loaded) -> None:
    names = rows(loaded.db, "select view_name from duckdb_views() where database_name = 'store' and not internal")
    with connect(str(loaded.db)) as connection:
        for (name,) in names:
            connection.execute(f"from {name}").fetchall()
        assert connection.execute("select sessions from qoder_report(40)").fetchall() == [(40,)]
    assert len(names) > 15


# -- what is no file, or not where it seems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / SLUG
    folder.mkdir(parents=True)
    (folder / "good.jsonl").write_bytes(_good("good"))
    return folder


def _load(folder: Path) -> tuple[Report, list[dict[str, Any]]]:
    home = folder.parent.parent.parent
    db = home.parent / "store.duckdb"
    with _within(60):
        report = load_home(home, db)
    assert report.clean
    assert rows(db, "select count(*) from dialogue where session_id = 'qoder:good'") == [(2,)]
    return report, table(db, "from facts.sources order by rel_path")


def test_what_is_no_file_is_unread_and_named(folder: Path) -> None:
    os.mkfifo(folder / "fifo.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "folder.jsonl" / "inside.jsonl").write_bytes(_good("inside"))  # too deep for a session file
    (folder / "dangling.jsonl").symlink_to("nowhere.jsonl")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "good" / "subagents" / "agent-1.meta.json").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(folder)  # the path of a socket may not be long
        try:
            listening.bind("socket.jsonl")
        finally:
            os.chdir(before)
        report, found = _load(folder)
    unread = {row["rel_path"].removeprefix(f"{SLUG}/"): row["note"] for row in found if row["tail_state"] == "unread"}
    assert unread == {
        "dangling.jsonl": "a link that leads nowhere, or no permission to look",
        "fifo.jsonl": "a FIFO, not a file",
        "folder.jsonl": "a folder, not a file",
        "good/subagents/agent-1.meta.json": "a folder, not a file",
        "loop.jsonl": "a link that leads nowhere, or no permission to look",
        "socket.jsonl": "not a regular file",
    }
    assert len(found) == len(unread) + 1
    assert report.unclaimed == {".jsonl": 1}
    db = folder.parent.parent.parent.parent / "store.duckdb"
    assert rows(db, "select reason, count(*) from facts.rejects group by all") == [("not_a_file", len(unread))]
    assert rows(db, "select count(*) from sessions") == [(1,)]


def test_a_file_that_may_not_be_read_is_unread() -> None:
    """Run as another user where this one is root: permissions do not bind root."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "home" / SLUG
        folder.mkdir(parents=True)
        (folder / "good.jsonl").write_bytes(_good("good"))
        (folder / "locked.jsonl").write_bytes(_good("locked"))
        (folder / "locked.jsonl").chmod(0)
        (folder.parent / "closed").mkdir()
        (folder.parent / "closed").chmod(0)
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(place, 65_534, 65_534)
            os.seteuid(65_534)
        try:
            report, found = _load(folder)
        finally:
            if is_root:
                os.seteuid(0)
            (folder.parent / "closed").chmod(0o700)
    assert [(row["rel_path"], row["tail_state"], row["note"]) for row in found] == [
        (f"{SLUG}/good.jsonl", "complete", None),
        (f"{SLUG}/locked.jsonl", "unread", "Permission denied"),
        (".qoder/projects/closed", "unread", "a folder that cannot be looked into: Permission denied"),
    ]
    assert report.problems == [f"{folder.parent / 'closed'}: Permission denied"]


def test_each_file_is_read_once_however_many_links_lead_to_it(folder: Path) -> None:
    (folder / "itself").symlink_to(folder)
    (folder.parent / "-srv-other-way").symlink_to(folder)
    (folder / "up").symlink_to(folder.parent.parent)
    (folder / "linked.jsonl").symlink_to("good.jsonl")
    os.link(folder / "good.jsonl", folder / "hard.jsonl")
    home = folder.parent.parent.parent
    (home / ".qoder-cn").symlink_to(".qoder")
    _, found = _load(folder)
    assert [(row["rel_path"], row["note"]) for row in found] == [
        (f"{SLUG}/good.jsonl", None),
        (f"{SLUG}/itself", "a link back to a folder that it lies in"),
    ]


def test_a_file_keeps_its_own_name_when_a_link_to_it_sorts_first(folder: Path) -> None:
    (folder / "a-link.jsonl").symlink_to("good.jsonl")
    (folder.parent / "-a-link").symlink_to(folder)
    report, found = _load(folder)
    assert [row["rel_path"] for row in found] == [f"{SLUG}/good.jsonl"]
    assert report.unclaimed == {
        "(another name of a file that is read)": 1,
        "(another name of a folder that is read)": 1,
    }


def test_a_project_that_is_a_link_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.jsonl").write_bytes(_good("far"))
    (folder.parent / "-srv-linked").symlink_to(tmp_path / "elsewhere")
    _, found = _load(folder)
    assert [row["rel_path"] for row in found] == [f"{SLUG}/good.jsonl", ".qoder/projects/-srv-linked/far.jsonl"]


def test_a_runaway_folder_is_left_and_named(folder: Path) -> None:
    deep = folder / "/".join("d" * 60)
    deep.mkdir(parents=True)
    report, _ = _load(folder)
    assert len(report.problems) == 1
    assert "folders deep" in report.problems[0]


def test_sidecars_of_every_shape(folder: Path) -> None:
    documents = {
        "empty": (b"", "malformed"),
        "array": (b"[1,2]", "not_object"),
        "null": (b"null", "not_object"),
        "broken": (b'{"title": "cut o', "malformed"),
        "deep": (b'{"a":' + _deep(5000) + b"}", "depth"),
        "nothing": (b"{}", None),
        "junk": (b'{"id":5,"title":[],"working_dir":null,"updated_at":"soon","fork_from":{}}', None),
        "large": (b'{"title":"' + b"t" * 5_000_000 + b'"}', None),
    }
    for name, (data, _) in documents.items():
        (folder / f"{name}-session.json").write_bytes(data)
    (folder / "good" / "subagents").mkdir(parents=True)
    (folder / "good" / "subagents" / "agent-x.meta.json").write_bytes(b"[]")
    _, found = _load(folder)
    db = folder.parent.parent.parent.parent / "store.duckdb"
    reasons = dict(
        rows(db, "select rel_path, r.reason from facts.sources s left join facts.rejects r using (source_id)")
    )
    for name, (data, reason) in documents.items():
        assert reasons[f"{SLUG}/{name}-session.json"] == reason, name
        (row,) = [row for row in found if row["rel_path"] == f"{SLUG}/{name}-session.json"]
        assert (row["tail_state"], row["size"], row["lines"], row["rejected_lines"]) == (
            "complete",
            len(data),
            None,
            None,
        )
    assert reasons[f"{SLUG}/good/subagents/agent-x.meta.json"] == "not_object"
    large = rows(db, "select length(value) from facts.session_facts where key = 'title.sidecar'")
    assert large == [(5_000_000,)]


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def test_compressed_files_whole_and_cut_off(folder: Path) -> None:
    many = b"".join(_json(_user(n, "many", noise=os.urandom(40).hex())) for n in range(2000))
    gz, zst = gzip.compress(many), _zstd(many)
    files = {
        "whole.jsonl.gz": gz,
        "whole2.jsonl.zst": zst,
        "cut.jsonl.gz": gz[: len(gz) // 2],
        "cut2.jsonl.zst": zst[: len(zst) // 2],
        "no-gzip.jsonl.gz": b"this is no gzip file\n",
        "no-zstd.jsonl.zst": b"this is no zstd file\n",
        "empty.jsonl.gz": b"",
        "cut-session.json.gz": gzip.compress(b'{"title":"' + os.urandom(4000).hex().encode() + b'"}')[:1000],
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    _, found = _load(folder)
    rest = {row["rel_path"].removeprefix(f"{SLUG}/"): row for row in found}
    assert {name: rest[name]["tail_state"] for name in files} == {
        "whole.jsonl.gz": "complete",
        "whole2.jsonl.zst": "complete",
        "cut.jsonl.gz": "truncated",
        "cut2.jsonl.zst": "truncated",
        "no-gzip.jsonl.gz": "truncated",
        "no-zstd.jsonl.zst": "truncated",
        "empty.jsonl.gz": "complete",
        "cut-session.json.gz": "truncated",
    }
    assert [rest[name]["lines"] for name in ("whole.jsonl.gz", "whole2.jsonl.zst")] == [2000, 2000]
    assert rest["whole.jsonl.gz"]["size"] == len(many)
    decoded = zlib.decompressobj(wbits=31).decompress(files["cut.jsonl.gz"])
    assert rest["cut.jsonl.gz"]["lines"] == _physical_lines(decoded)
    assert 0 < rest["cut2.jsonl.zst"]["lines"] < 2000


def test_lines_over_the_cap_are_named_and_passed_over(folder: Path) -> None:
    before, after = _good("huge"), _json(_user(9, "huge"))
    head, tail = b'{"type":"user","message":{"content":"', b'"}}\n'
    with (folder / "huge.jsonl").open("wb") as stream:
        stream.write(before)
        for size in (100_000_000, LINE_CAP + 1 - len(tail) + 1):  # the second is one byte over the cap
            stream.write(head + b"x" * (size - len(head)) + tail)
        stream.write(after)
    _, found = _load(folder)
    (row,) = [row for row in found if row["rel_path"].endswith("huge.jsonl")]
    assert (row["tail_state"], row["lines"], row["rejected_lines"]) == ("complete", 7, 2)
    assert row["size"] == (folder / "huge.jsonl").stat().st_size
    db = folder.parent.parent.parent.parent / "store.duckdb"
    first = 100_000_000 + len(tail) - 1
    assert rows(db, "select line_no, byte_offset, length, reason from facts.rejects order by line_no") == [
        (5, len(before), first, "oversize"),
        (6, len(before) + first + 1, LINE_CAP + 1, "oversize"),
    ]
    assert rows(db, "select max(line_no) from facts.records where session_id = 'qoder:huge'") == [(7,)]


# -- a tree is only read


def _state(folder: Path) -> list[tuple[str, int, int, int]]:
    found = [(path, path.lstat()) for path in (folder, *folder.rglob("*"))]
    return sorted((str(path), status.st_mtime_ns, status.st_size, status.st_mode) for path, status in found)


def test_a_provider_s_tree_is_never_written_to(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "qoder" / "subagents" / "tree", home)
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    for path in home.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o555)
    before = _state(home)
    try:
        assert load_home(home, tmp_path / "data" / "store.duckdb").clean
        assert _state(home) == before
    finally:
        for path in folders:
            path.chmod(0o755)


# -- damage by chance

CHANGES: Final = st.lists(
    st.tuples(
        st.sampled_from(("flip", "cut", "insert", "double", "swap", "end")),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=6,
)


def _changed(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    for change, where, junk in changes:
        at = int(where * len(data))
        lines = data.splitlines(keepends=True)
        line = int(where * len(lines)) if lines else 0
        if change == "flip" and data:
            data = data[:at] + bytes([data[at] ^ junk[0]]) + data[at + 1 :]
        elif change == "cut":
            data = data[:at] + data[at + junk[0] :]
        elif change == "insert":
            data = data[:at] + junk + data[at:]
        elif change == "double":
            data = b"".join([*lines[: line + 1], *lines[line:]])
        elif change == "swap":
            data = b"".join([*lines[line:], *lines[:line]])
        elif change == "end":
            data = data[:at]
    return data


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(CHANGES, min_size=30, max_size=30))
def test_a_damaged_transcript_breaks_no_promise(damages: list[list[tuple[str, float, bytes]]]) -> None:
    cases = ("fragments", "calls_parallel", "subagents", "snapshots", "resends", "titles")
    healthy = [path for case in cases for path in sorted((FIXTURES / "qoder" / case / "tree").rglob("*.jsonl"))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "home" / SLUG
        folder.mkdir(parents=True)
        expected = {}
        for n, changes in enumerate(damages):
            data = _changed(healthy[n % len(healthy)].read_bytes(), changes)
            (folder / f"changed-{n:02}.jsonl").write_bytes(data)
            expected[f"{SLUG}/changed-{n:02}.jsonl"] = _physical_lines(data)
        db = Path(place) / "store.duckdb"
        report = load_home(Path(place) / "home", db)
        failed = rows(db, "select rel_path, note from facts.sources where tail_state = 'failed'")
        assert (failed, report.quarantined) == ([], {})
        assert {finding.severity for finding in report.findings} <= {"finding"}
        assert dict(rows(db, "select rel_path, lines from facts.sources")) == expected
