"""Does any made-up secret of a Qoder home reach the disk, or what a load prints?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from etl.extract import extract
from etl.mask import mask_series
from tests.loading import KEY, find, rows, table
from tests.secret_tree import PLAIN, SESSIONS, Planter, Secret, plant_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHECKOUT: Final = Path(__file__).parent.parent
ORACLE: Final[list[dict[str, Any]]] = json.loads(
    (CHECKOUT / "fixtures" / "mask" / "oracle.json").read_text(encoding="utf-8")
)
CALLS: Final = 7  # in each planted session


def halves(secret: str) -> tuple[str, str]:
    """The first and the last 60 % of a secret."""
    return secret[: len(secret) * 6 // 10], secret[len(secret) * 4 // 10 :]


def needles(secrets: Iterable[Secret]) -> dict[str, Secret]:
    """What to look for: both halves of each secret, as they are and as JSON inside JSON writes them, and each line of a
    secret of several lines.
    """
    found: dict[str, Secret] = {}
    for secret in secrets:
        for half in halves(secret.value):
            once = json.dumps(half)[1:-1]
            for form in (half, once, json.dumps(once)[1:-1]):
                found[form] = secret
        for line in re.findall(r"[A-Za-z0-9+/=]{20,}", secret.value) if "\n" in secret.value else ():
            found[line] = secret
    return found


def leaks(texts: Iterable[str | bytes | None], looked_for: dict[str, Secret]) -> list[tuple[str, Secret]]:
    """The needles that stand in some of the texts. Bytes are looked through as Latin-1: needles are ASCII."""
    distinct = {text.decode("latin-1") if isinstance(text, bytes) else text for text in texts}
    column = pl.Series(list(distinct), dtype=pl.String)
    found = column.str.extract_many(list(looked_for), overlapping=True).explode().drop_nulls().unique().to_list()
    return [(needle, looked_for[needle]) for needle in found]


def file_bytes(folder: Path) -> Iterator[bytes]:
    """The content and the name of every file below a folder."""
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder)).encode()
        if path.is_file():
            yield path.read_bytes()


def columns_of(db: Path) -> dict[str, list[str | None]]:
    """Every text of a store, by table and column; lists are taken apart."""
    found: dict[str, list[str | None]] = {}
    with duckdb.connect(str(db), read_only=True) as connection:
        listed = connection.execute(
            "select table_schema, table_name, column_name, data_type from information_schema.columns "
            "where table_schema in ('facts', 'mart', 'main') and data_type in ('VARCHAR', 'VARCHAR[]')"
        ).fetchall()
        for schema, name, column, kind in listed:
            value = f'"{column}"' if kind == "VARCHAR" else f'unnest("{column}")'
            selected = connection.execute(f"select distinct {value} from {schema}.{name}").fetchall()  # noqa: S608
            found[f"{schema}.{name}.{column}"] = [row[0] for row in selected]
    return found


class Loaded:
    """A planted home, and what one load of it by the command wrote and printed."""

    def __init__(self, folder: Path) -> None:
        self.planter = Planter(20260501)
        self.home = folder / "home"
        plant_home(self.home, self.planter)
        self.out = folder / "out"
        self.db = self.out / "data" / "store.duckdb"
        places = {"XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "TMPDIR": "tmp"}
        variables = {name: str(self.out / place) for name, place in places.items()}
        for place in variables.values():
            Path(place).mkdir(parents=True)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        self.variables = {**kept, **variables, "HOME": str(self.home), "PYTHONPATH": str(CHECKOUT)}
        self.run = self.command("load", "qoder", "--format", "json")
        self.report: dict[str, Any] = json.loads(self.run.stdout)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Runs the command line on this home and store."""
        return subprocess.run(
            [sys.executable, "-m", "etl", *arguments, "--db", str(self.db)],
            capture_output=True,
            check=False,
            env=self.variables,
            cwd=self.out,
        )


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return Loaded(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def looked_for(loaded: Loaded) -> dict[str, Secret]:
    return needles(loaded.planter.secrets)


@pytest.fixture(scope="module")
def texts(loaded: Loaded) -> dict[str, list[str | None]]:
    return columns_of(loaded.db)


def test_the_tree_holds_a_thousand_secrets_of_many_kinds_in_many_places(loaded: Loaded) -> None:
    secrets = [secret for secret in loaded.planter.secrets if secret.rule]  # not the other forms of some
    assert len(secrets) >= 1000
    assert len({secret.value for secret in secrets}) == len(secrets)
    assert len({secret.rule for secret in secrets}) >= 100
    assert len({secret.place for secret in secrets}) >= 100
    assert len({half for secret in secrets for half in halves(secret.value)}) == 2 * len(secrets)


def test_the_search_finds_a_secret_where_there_is_one(loaded: Loaded, looked_for: dict[str, Secret]) -> None:
    secret = next(secret for secret in loaded.planter.secrets if '"' not in secret.value and len(secret.value) > 30)
    head, tail = halves(secret.value)
    found = leaks(["nothing", f"a {head} b", None, f"\x00{tail}".encode()], looked_for)
    assert {needle for needle, _ in found} == {head, tail}
    planted = {secret.place for _, secret in leaks(file_bytes(loaded.home), looked_for)}
    assert {"prompt", "script", "torn tail", "folder name", "userFeedback", "sessionId", "malformed line"} <= planted


def test_the_load_takes_every_source(loaded: Loaded) -> None:
    assert loaded.run.returncode in (0, 4), loaded.run.stderr  # 4: many broken lines are a finding
    assert loaded.report["quarantined"] == {}
    assert loaded.report["sources_failed"] == 0
    assert {finding["check"] for finding in loaded.report["findings"]} <= {"rejected_lines"}
    # a transcript, a sub-agent and a sidecar each, and a meta document for half of them; 4 odd folders of 3 names
    assert rows(loaded.db, "select count(*) from facts.sources") == [(3 * SESSIONS + SESSIONS // 2 + 4 * 3,)]


def test_no_column_of_the_store_shows_a_secret(
    texts: dict[str, list[str | None]], looked_for: dict[str, Secret]
) -> None:
    assert {"facts.dialogue.text", "mart.sessions.models", "main.tool_calls.name", "facts.session_facts.key"} <= set(
        texts
    )
    shown = leaks((text for values in texts.values() for text in values), looked_for)
    assert shown == [], [name for name, values in texts.items() if leaks(values, dict(shown))]


def test_no_file_and_no_output_shows_a_secret(loaded: Loaded, looked_for: dict[str, Secret]) -> None:
    printed = [loaded.run.stdout, loaded.run.stderr]
    for arguments in (("check",), ("report", "qoder"), ("status",), ("doctor",)):
        run = loaded.command(*arguments)
        printed += [run.stdout, run.stderr]
    assert len(loaded.report["problems"]) == 4
    assert b"more than 32 folders deep" in loaded.run.stderr
    assert leaks([*file_bytes(loaded.out), *printed], looked_for) == []


def test_no_part_on_the_way_shows_a_secret(loaded: Loaded, looked_for: dict[str, Secret], tmp_path: Path) -> None:
    extracted = extract(find(loaded.home), str(tmp_path), "part", KEY, 2_000_000)
    assert Counter(part.table for part in extracted.parts)["dialogue"] > 1
    texts: list[str | None] = []
    for part in extracted.parts:
        for column in pq.read_table(part.path).columns:
            if str(column.type) == "string":
                texts += column.unique().to_pylist()
    assert leaks([*texts, *file_bytes(tmp_path)], looked_for) == []


def test_what_was_masked_is_marked_and_counted(loaded: Loaded, texts: dict[str, list[str | None]]) -> None:
    marked = {column for column, values in texts.items() if any("[redacted:" in (text or "") for text in values)}
    counted = rows(loaded.db, "select column_name, rule, sum(n) from facts.redactions group by all")
    stored = {f"facts.{column}" for column, _, _ in counted}
    assert {column for column in marked if column.startswith("facts.")} <= stored
    assert {
        *("dialogue.text", "dialogue.model", "dialogue.message_key", "records.native_uuid", "records.session_id"),
        *("tool_requests.args", "tool_requests.command_head", "tool_requests.name", "tool_requests.mcp_server"),
        *("tool_requests.call_key", "tool_results.call_key", "tool_results.result_text", "tool_results.denial"),
        *("session_facts.key", "session_facts.value", "events.summary", "events.subtype", "events.attrs"),
        *("content_blocks.block_type", "record_census.kind", "rejects.head", "sources.rel_path", "conflicts.id"),
        *("files_touched.path", "turn_marks.native_turn_id", "model_calls.stop_reason", "sources.file_native_id"),
    } <= {column for column, _, _ in counted}
    assert len({rule for _, rule, _ in counted}) >= 100
    assert loaded.report["rows"]["redactions"] == rows(loaded.db, "select count(*) from facts.redactions")[0][0]
    titles = Counter("[redacted:" in (title or "") for (title,) in rows(loaded.db, "select title from sessions"))
    assert titles[True] >= SESSIONS


def test_ids_that_were_masked_stay_different_and_joined(loaded: Loaded) -> None:
    sessions = rows(loaded.db, "select session_id, kind, parent_session_id, root_session_id from mart.sessions")
    assert len(sessions) == len(set(loaded.planter.sessions)) == 2 * SESSIONS + 4
    calls = table(loaded.db, "select session_id, call_key, status, latency_ms from tool_calls")
    assert len(calls) == len({(call["session_id"], call["call_key"]) for call in calls}) == CALLS * SESSIONS
    assert all("[redacted:" in call["call_key"] for call in calls)
    assert {call["status"] for call in calls} <= {"ok", "denied"}
    assert all(call["latency_ms"] is not None for call in calls)
    known = {session for session, _, _, _ in sessions}
    agents = [session for session in sessions if session[1] == "subagent"]
    assert len(agents) == SESSIONS
    assert all(parent in known and root == parent for _, _, parent, root in agents)
    spawned = rows(
        loaded.db,
        "select l.evidence, count(*) from mart.session_links l join mart.tool_calls c "
        "on c.session_id = l.other_session_id and c.call_key = l.via_call_key where l.relation = 'subagent' group by 1",
    )
    assert sorted(spawned) == [("meta document", SESSIONS // 2), ("tool result", SESSIONS // 2)]
    leaves = (
        "select count(*) from facts.session_facts f join facts.records r "
        "on r.session_id = f.session_id and r.native_uuid = f.value where f.key = 'leaf'"
    )
    assert rows(loaded.db, leaves) == [(SESSIONS,)]
    assert rows(loaded.db, "select reason, count(*) from mart.copies group by 1") == [("fork", SESSIONS - 1)]
    assert rows(loaded.db, "select count(distinct rel_path) = count(*) from facts.sources") == [(True,)]


def test_near_misses_in_the_same_tree_are_stored_as_they_are(loaded: Loaded) -> None:
    for text in PLAIN:
        assert rows(loaded.db, f"select count(*) from dialogue where text = '{text}'") == [(SESSIONS,)]  # noqa: S608
    usage = (
        "select distinct input_tokens, output_tokens, cache_read_tokens from model_calls where input_tokens is not null"
    )
    assert rows(loaded.db, usage) == [(12345 + 90, 678, 90)]
    message = "select count(*) from facts.records where message_key = 'msg_grown_3' and role = 'assistant'"
    assert rows(loaded.db, message) == [(2,)]
    uuid = "select count(*) from facts.records where native_uuid like '00000003-0000-4000-8000-%'"
    assert rows(loaded.db, uuid)[0][0] > 20


# ---- the oracle: formats known to scanners of secrets


def characters(listed: str) -> str:
    """``A-F0-9_`` spelled out."""
    spelled = ""
    for first, last, single in re.findall(r"(.)-(.)|(.)", listed):
        spelled += single or "".join(map(chr, range(ord(first), ord(last) + 1)))
    return spelled


def generated(shape: list[str | list[Any]], random: Random) -> tuple[str, list[str]]:
    """A token of a shape, and its random pieces."""
    pieces = [
        piece if isinstance(piece, str) else "".join(random.choices(characters(piece[0]), k=piece[1]))
        for piece in shape
    ]
    return "".join(pieces), [made for made, piece in zip(pieces, shape, strict=True) if not isinstance(piece, str)]


def surroundings(token: str) -> dict[str, str]:
    """Where a token may stand, under names that do not tell."""
    once = json.dumps({"v": f"see {token}"})
    return {
        "plain": f"the value is {token} today",
        "assignment": f"X_SETTING = '{token}'\nexport Y_SETTING={token}\n",
        "JSON": once,
        "JSON in JSON": json.dumps({"body": once}),
        "query": f"https://example.com/p?v={token}&n=1",
        "encoded query": f"https://example.com/p?v={quote(token, safe='')}&n=1",
        "header": f"X-Custom: {token}\r\nAccept: */*",
        "terminal colour": f"\x1b[31m{token}\x1b[0m",
    }


def test_the_oracle_is_wide() -> None:
    assert len({entry["name"] for entry in ORACLE}) == len(ORACLE) >= 140


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry["name"]) for entry in ORACLE])
def test_a_format_that_scanners_know_is_masked_wherever_it_stands(entry: dict[str, Any]) -> None:
    random = Random(entry["name"])
    made = [generated(entry["shape"], random) for _ in range(3)]
    cases = [(place, pieces, text) for token, pieces in made for place, text in surroundings(token).items()]
    masked, _ = mask_series(pl.Series([text for _, _, text in cases], dtype=pl.String), KEY)
    for (place, pieces, text), result in zip(cases, masked, strict=True):
        assert result.count("[redacted:") >= 1, (place, text)
        for half in (half for piece in pieces if len(piece) >= 8 for half in halves(piece)):
            assert half not in result, (place, text, result)
            assert quote(half, safe="") not in result, (place, text, result)
