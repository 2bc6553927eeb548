"""Are session files looked for where the agent writes them, and are exactly those claimed?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.discover import Discovery, discover
from etl.providers import get
from etl.providers.base import Environment, Root
from tests.loading import HOST, load_home, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

QODER: Final = get("qoder")
IDE: Final = "SharedClientCache/cli/projects"
DB: Final = "SharedClientCache/cache/db"
#: Stores beside the transcripts, and their folders.
BESIDE: Final = (("qoder_logs", "logs"), ("qoder_audit", "audit"), ("qoder_home_sessions", "sessions"))
LINE: Final = b'{"type":"user","sessionId":"s","uuid":"u","message":{"content":"Hello"}}\n'


def _roots(system: str = "linux", **variables: str) -> dict[tuple[str, str | None], list[str]]:
    """The default roots of a home /h by store kind and realm."""
    found: dict[tuple[str, str | None], list[str]] = {}
    for root in QODER.roots(Environment("/h", variables, system)):
        found.setdefault((root.store_kind, root.realm), []).append(root.path)
    return found


# -- roots (formats: the table of discovery roots)


@pytest.mark.parametrize(
    ("system", "variables", "config"),
    [
        ("linux", {}, "/h/.config"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x"),
        ("darwin", {}, "/h/Library/Application Support"),
        ("darwin", {"XDG_CONFIG_HOME": "/x"}, "/h/Library/Application Support"),
        ("win32", {}, "/h/AppData/Roaming"),
        ("win32", {"APPDATA": "/a"}, "/a"),
        ("linux", {"APPDATA": "/a"}, "/h/.config"),
    ],
)
def test_the_cli_is_looked_for_in_the_home_and_the_ide_where_the_system_keeps_it(
    system: str, variables: Mapping[str, str], config: str
) -> None:
    assert _roots(system, **variables) == {
        ("qoder_cli", None): ["/h/.qoder/projects"],
        ("qoder_cn", "cn"): ["/h/.qoder-cn/projects"],
        ("qoder_work", "work"): ["/h/.qoderwork/projects"],
        ("qoder_ide", "ide"): [f"{config}/Qoder/{IDE}", f"{config}/QoderCN/{IDE}"],
        ("qoder_ide_db", "ide"): [f"{config}/Qoder/{DB}", f"{config}/QoderCN/{DB}"],
        **{
            (kind, realm): [f"/h/{folder}/{store}"]
            for realm, folder in ((None, ".qoder"), ("cn", ".qoder-cn"), ("work", ".qoderwork"))
            for kind, store in BESIDE
        },
    }


@pytest.mark.parametrize(
    ("variables", "kind", "realm", "projects", "config"),
    [
        ({"QODER_CONFIG_DIR": "/c"}, "qoder_cli", None, "/c/projects", "/c"),
        ({"QODER_CLI_HOME": "/o"}, "qoder_cli", None, "/o/.qoder/projects", "/o/.qoder"),
        ({"QODER_PROJECTS_DIR": "/p"}, "qoder_cli", None, "/p", "/h/.qoder"),
        ({"QODER_PROJECTS_DIR": "/p", "QODER_CONFIG_DIR": "/c"}, "qoder_cli", None, "/p", "/c"),
        ({"QODER_CONFIG_DIR": "/c", "QODER_CLI_HOME": "/o"}, "qoder_cli", None, "/c/projects", "/c"),
        ({"QODERCN_CONFIG_DIR": "/c"}, "qoder_cn", "cn", "/c/projects", "/c"),
        ({"QODERCN_CLI_HOME": "/o"}, "qoder_cn", "cn", "/o/.qoder-cn/projects", "/o/.qoder-cn"),
    ],
)
def test_an_override_moves_its_realm_and_no_other(
    variables: Mapping[str, str], kind: str, realm: str | None, projects: str, config: str
) -> None:
    moved = {(store, realm): [f"{config}/{folder}"] for store, folder in BESIDE}
    assert _roots(**variables) == {**_roots(), (kind, realm): [projects], **moved}


def test_an_empty_override_is_none() -> None:
    assert _roots(QODER_CONFIG_DIR="", QODER_CLI_HOME="", QODERCN_CONFIG_DIR="") == _roots()


# -- the path grammar

UUID: Final = "2b1f0c9a-0000-4000-8000-00000000abcd"
PROJECTS: Final = Root("/h/.qoder/projects", "/h", "qoder_cli")

CLAIMED: Final = [
    # path, container, native id, parent, agent
    (f"-srv-a/{UUID}.jsonl", "jsonl", UUID, None, None),
    ("-srv-a/task-10f8.session.execution.jsonl", "jsonl", "task-10f8.session.execution", None, None),
    ("task-10f8.session.execution.jsonl", "jsonl", "task-10f8.session.execution", None, None),
    ("subagents/s1.jsonl", "jsonl", "s1", None, None),
    ("subagents/p1/subagents/agent-b7.jsonl", "jsonl", "agent-b7", "p1", "b7"),
    (f"-srv-a/{UUID}/subagents/agent-b7.jsonl", "jsonl", "agent-b7", UUID, "b7"),
    (f"-srv-a/{UUID}/subagents/wave/two/agent-b7.jsonl", "jsonl", "agent-b7", UUID, "b7"),
    (f"-srv-a/{UUID}/subagents/agent-b7.meta.json", "json", "agent-b7", UUID, "b7"),
    ("-srv-a/s1-session.json", "json", "s1", None, None),
    ("s1-session.json", "json", "s1", None, None),
    ("-srv-日本/s1.jsonl", "jsonl", "s1", None, None),
    ("-srv-a/agents.jsonl", "jsonl", "agents", None, None),
]
REFUSED: Final = [
    "-srv-a/agent-b7.jsonl",
    "agent-b7.jsonl",
    "transcript/agent-b7.jsonl",
    "transcript/s1.jsonl",
    "ai-stats/s1.jsonl",
    "ai-stats/a/subagents/agent-b7.jsonl",
    "-srv-a/notes/n.jsonl",
    "-srv-a/s1/tool-results/t.json",
    "-srv-a/workflows/w.jsonl",
    "-srv-a/s1/agent-b7.jsonl",
    "-srv-a/s1/subagents/b7.jsonl",
    "-srv-a/subagents/agent-b7.jsonl",
    "-srv-a/agent-b7.meta.json",
    "-srv-a/deeper/transcript/s1.jsonl",
    "-srv-a/with space.jsonl",
    "-srv-a/co:lon.jsonl",
    "-srv-a/back\\slash.jsonl",
    "-srv-a/..jsonl",
    "-srv-a/...jsonl",
    "-srv-a/.jsonl",
    "-srv-a/s1.jsonl\n",
    "-srv-a/s1-session.json\n",
    "-srv-a/s1.json",
    "-srv-a/s1.JSONL",
    "-srv-a/s1.jsonl.bak",
    "-srv-a/s1",
    "",
]


@pytest.mark.parametrize(("path", "container", "native", "parent", "agent"), CLAIMED, ids=[row[0] for row in CLAIMED])
def test_a_path_of_the_grammar_is_claimed(
    path: str, container: str, native: str, parent: str | None, agent: str | None
) -> None:
    claim = QODER.claim(PROJECTS, path)
    assert claim is not None
    assert (claim.container, claim.native_id, claim.parent, claim.agent) == (container, native, parent, agent)
    assert (claim.store_kind, claim.realm, claim.certain) == ("qoder_cli", None, True)


@pytest.mark.parametrize("path", REFUSED)
def test_any_other_path_is_not(path: str) -> None:
    assert QODER.claim(PROJECTS, path) is None


OTHER_STORES: Final = [
    # root, path, store kind, container, native id, what it is to a session
    ("qoder_cli", "-srv-a/transcript/a.execution.jsonl", "qoder_transcript", "jsonl", "a.execution", "session"),
    ("qoder_cli", "-srv-a/s1/state.json", "qoder_state", "opaque", "s1", "many"),
    ("qoder_cli", "-srv-a/s1/compression-v2/state.json", "qoder_state", "opaque", "s1", "many"),
    ("qoder_logs", "sessions/-srv-a/s1/segments/run.jsonl", "qoder_logs", "jsonl", "s1", "log"),
    ("qoder_logs", "sessions/s1/segments/run.jsonl", "qoder_logs", "jsonl", "s1", "log"),
    ("qoder_logs", "runs/r-1/manifest.json", "qoder_logs", "json", "r-1", "many"),
    ("qoder_audit", "audit.jsonl", "qoder_audit", "jsonl", "audit", "many"),
    ("qoder_home_sessions", "s1.jsonl", "qoder_home_sessions", "jsonl", "s1", "session"),
    ("qoder_home_sessions", "a/b/c/d/e/s1.json", "qoder_home_sessions", "messages", "s1", "session"),
    ("qoder_home_sessions", "a/s1-session.json", "qoder_home_sessions", "json", "s1", "session"),
    ("qoder_cache", "projects/p/conversation-history/t1/t1.jsonl", "qoder_cache", "jsonl", "p/t1", "session"),
    ("qoder_ide_db", "local.db", "qoder_ide_db", "sqlite", "local", "many"),
]


@pytest.mark.parametrize(("root", "path", "kind", "container", "native", "holds"), OTHER_STORES)
def test_a_file_of_another_store_is_claimed(
    root: str, path: str, kind: str, container: str, native: str, holds: str
) -> None:
    claim = QODER.claim(Root("/h/x", "/h", root, "cn"), path)
    assert claim is not None
    assert (claim.store_kind, claim.container, claim.native_id, claim.holds) == (kind, container, native, holds)
    assert (claim.realm, claim.certain) == ("cn", True)


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("qoder_logs", "runs/r-1/qodercli.log"),
        ("qoder_logs", "sessions/-srv-a/s1/run.jsonl"),
        ("qoder_audit", "old/audit.jsonl"),
        ("qoder_home_sessions", "a/b/c/d/e/f/s1.json"),
        ("qoder_home_sessions", "s1.txt"),
        ("qoder_cache", "projects/p/t1/t1.jsonl"),
        ("qoder_ide_db", "local.db-wal"),
        ("qoder_ide_db", "other.db"),
    ],
)
def test_another_file_of_another_store_is_not(root: str, path: str) -> None:
    assert QODER.claim(Root("/h/x", "/h", root), path) is None


@pytest.mark.parametrize("realm", ["cn", "work", "ide"])
def test_a_claim_has_the_realm_of_its_root(realm: str) -> None:
    claim = QODER.claim(replace(PROJECTS, store_kind=f"qoder_{realm}", realm=realm), "-srv-a/s1.jsonl")
    assert claim is not None
    assert (claim.store_kind, claim.realm) == (f"qoder_{realm}", realm)


# -- walking


def _write(home: Path, *paths: str) -> None:
    for path in paths:
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(LINE)


def _named(*paths: Path, home: Path = Path("/nonexistent")) -> Discovery:
    return discover(QODER, Environment(str(home)), HOST, [str(path) for path in paths])


def _listed(found: Discovery) -> list[tuple[str, str | None, bool]]:
    return [(item.source.rel_path, item.source.claim.realm, item.source.claim.certain) for item in found.found]


def test_a_home_is_searched_for_all_realms(tmp_path: Path) -> None:
    _write(
        tmp_path,
        ".qoder/projects/-srv-a/s1.jsonl",
        ".qoder-cn/projects/-srv-a/s1.jsonl",
        ".qoderwork/projects/-srv-a/s1.jsonl",
        f".config/Qoder/{IDE}/task-1.session.execution.jsonl",
        ".qoder/projects/-srv-a/notes/n.jsonl",
        ".qoder/logs/sessions/-srv-a/s1/segments/run.jsonl",
        ".qoder/cache/projects/p/conversation-history/t1/t1.jsonl",
    )
    found = discover(QODER, Environment(str(tmp_path)), HOST)
    assert _listed(found) == [
        (".qoder/logs/sessions/-srv-a/s1/segments/run.jsonl", None, True),
        (".qoder/projects/-srv-a/s1.jsonl", None, True),
        (".qoder-cn/projects/-srv-a/s1.jsonl", "cn", True),
        (f".config/Qoder/{IDE}/task-1.session.execution.jsonl", "ide", True),
        (".qoderwork/projects/-srv-a/s1.jsonl", "work", True),
    ]
    assert (found.unclaimed, found.problems) == ({".jsonl": 1}, [])
    assert len({item.source.source_id for item in found.found}) == 5


def test_the_cache_is_read_by_who_names_it(tmp_path: Path) -> None:
    cached = ".qoder/cache/projects/p/conversation-history/t1/t1.jsonl"
    _write(tmp_path, cached)
    assert _named(tmp_path / ".qoder").found == []
    (found,) = _named(tmp_path / ".qoder/cache").found
    assert (found.source.claim.store_kind, found.source.claim.native_id) == ("qoder_cache", "p/t1")


def test_a_missing_root_is_normal(tmp_path: Path) -> None:
    found = discover(QODER, Environment(str(tmp_path)), HOST)
    assert (found.found, sum(found.walked.values()), found.unclaimed, found.problems) == ([], 0, {}, [])


def test_a_moved_configuration_is_stored_below_itself(tmp_path: Path) -> None:
    _write(tmp_path, "moved/projects/-srv-a/s1.jsonl", "flat/-srv-a/s2.jsonl", ".qoder/projects/-srv-a/not.jsonl")
    for variables, expected in (
        ({"QODER_CONFIG_DIR": f"{tmp_path}/moved"}, "projects/-srv-a/s1.jsonl"),
        ({"QODER_PROJECTS_DIR": f"{tmp_path}/flat"}, "-srv-a/s2.jsonl"),
    ):
        found = discover(QODER, Environment(str(tmp_path), variables), HOST)
        assert _listed(found) == [(expected, None, True)]


def test_where_a_home_stands_is_in_no_name(tmp_path: Path) -> None:
    names = []
    for home in (tmp_path / "one", tmp_path / "two" / "deeper"):
        _write(home, ".qoder/projects/-srv-a/s1.jsonl")
        names.append([item.source.source_id for item in discover(QODER, Environment(str(home)), HOST).found])
    assert names[0] == names[1]
    other_host = discover(QODER, Environment(str(tmp_path / "one")), "elsewhere").found[0].source.source_id
    assert other_host != names[0][0]


# -- roots that the user names


@pytest.mark.parametrize(
    ("named", "stored", "realm", "certain"),
    [
        ("", "copy/.qoder-cn/projects/-srv-a/s1.jsonl", "cn", True),
        ("copy", ".qoder-cn/projects/-srv-a/s1.jsonl", "cn", True),
        ("copy/.qoder-cn", "projects/-srv-a/s1.jsonl", "cn", True),
        ("copy/.qoder-cn/projects", "-srv-a/s1.jsonl", "cn", True),
        ("copy/.qoder-cn/projects/-srv-a", "s1.jsonl", "cn", True),
        ("copy/.qoder-cn/projects/-srv-a/s1.jsonl", "s1.jsonl", "cn", True),
    ],
)
def test_a_named_root_may_begin_anywhere(
    named: str, stored: str, realm: str | None, *, certain: bool, tmp_path: Path
) -> None:
    _write(tmp_path, "copy/.qoder-cn/projects/-srv-a/s1.jsonl")
    assert _listed(_named(tmp_path / named)) == [(stored, realm, certain)]


@pytest.mark.parametrize("named", ["", "s1/subagents", "s1/subagents/agent-b7.jsonl"])
def test_a_sub_agent_stays_one_however_deep_the_named_root(named: str, tmp_path: Path) -> None:
    folder = tmp_path / ".qoder/projects/-srv-a"
    _write(folder, "s1/subagents/agent-b7.jsonl")
    (item,) = _named(folder / named).found
    assert (item.source.claim.parent, item.source.claim.agent) == ("s1", "b7")


def test_without_the_marks_of_a_home_the_records_must_confirm_the_claim(tmp_path: Path) -> None:
    _write(tmp_path, "backup/-srv-a/s1.jsonl", "backup/s2.jsonl", "backup/p/s1/subagents/agent-b7.jsonl")
    assert _listed(_named(tmp_path / "backup")) == [
        ("-srv-a/s1.jsonl", None, False),
        ("p/s1/subagents/agent-b7.jsonl", None, False),
        ("s2.jsonl", None, False),
    ]


def test_another_s_files_are_counted_and_not_loaded(tmp_path: Path) -> None:
    _write(tmp_path, "data/-srv-a/s1.jsonl")
    (tmp_path / "data" / "metrics.jsonl").write_bytes(b'{"metric":"cpu","value":1}\n' * 3)
    (tmp_path / "data" / "notes.txt").write_bytes(b"nothing\n")
    report = load_home(tmp_path, tmp_path / "store.duckdb", qoder=tmp_path / "data")
    assert (report.sources_seen, report.sources_read, report.not_recognised) == (2, 1, 1)
    assert report.unclaimed == {".txt": 1}
    assert rows(tmp_path / "store.duckdb", "select rel_path from facts.sources") == [("-srv-a/s1.jsonl",)]


def test_a_named_root_replaces_the_default_ones(tmp_path: Path) -> None:
    _write(tmp_path, ".qoder/projects/-srv-a/s1.jsonl", "other/.qoder/projects/-srv-b/s2.jsonl")
    assert _listed(_named(tmp_path / "other", home=tmp_path)) == [(".qoder/projects/-srv-b/s2.jsonl", None, True)]


def test_a_named_root_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    found = _named(tmp_path / "gone")
    assert (found.found, found.problems) == ([], [f"{tmp_path / 'gone'}: no such file or folder"])


@pytest.mark.parametrize("name", ["s1.jsonl", "s1.jsonl.gz", "s1.jsonl.zst"])
def test_a_single_file_may_be_compressed(name: str, tmp_path: Path) -> None:
    _write(tmp_path, f".qoder/projects/-srv-a/{name}")
    (item,) = _named(tmp_path / ".qoder/projects/-srv-a" / name).found
    assert (item.source.rel_path, item.source.claim.native_id) == (name, "s1")


def test_two_roots_with_equal_paths_are_two_sources(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        _write(tmp_path / name, ".qoder/projects/-srv-a/s1.jsonl")
    found = _named(tmp_path / "one", tmp_path / "two", tmp_path / "three")
    assert sorted(path for path, _, _ in _listed(found)) == [
        "#2/.qoder/projects/-srv-a/s1.jsonl",
        "#3/.qoder/projects/-srv-a/s1.jsonl",
        ".qoder/projects/-srv-a/s1.jsonl",
    ]
    assert len({item.source.source_id for item in found.found}) == 3
    assert not [path for path, _, _ in _listed(found) if str(tmp_path).strip("/") in path]


@pytest.mark.parametrize(
    "again", [".", ".qoder", ".qoder/projects/-srv-a", ".qoder/projects/-srv-a/s1.jsonl", "link", "linked.jsonl"]
)
def test_a_file_that_two_roots_hold_is_there_once(again: str, tmp_path: Path) -> None:
    _write(tmp_path, ".qoder/projects/-srv-a/s1.jsonl")
    (tmp_path / "link").symlink_to(".qoder")
    (tmp_path / "linked.jsonl").symlink_to(".qoder/projects/-srv-a/s1.jsonl")
    found = _named(tmp_path / ".qoder", tmp_path / again)
    assert _listed(found) == [("projects/-srv-a/s1.jsonl", None, True)]


def test_files_are_listed_in_one_order(tmp_path: Path) -> None:
    names = [".qoder/projects/b/z.jsonl", ".qoder/projects/b/a.jsonl", ".qoder/projects/a/m.jsonl"]
    _write(tmp_path, *names)
    listed: list[Any] = [path for path, _, _ in _listed(discover(QODER, Environment(str(tmp_path)), HOST))]
    assert listed == sorted(names)


def test_a_name_that_is_none_of_ours_is_taken_when_its_records_are(tmp_path: Path) -> None:
    record = (
        b'{"type":"user","uuid":"u1","sessionId":"odd","timestamp":"2026-06-01T10:00:00Z","message":{"content":"hi"}}\n'
    )
    (tmp_path / "a b.jsonl").write_bytes(record)
    (tmp_path / "other b.jsonl").write_bytes(b'{"level":"info"}\n')
    (tmp_path / "empty b.jsonl").write_bytes(b"")
    db = tmp_path / "store" / "s.duckdb"
    report = load_home(tmp_path / "nowhere", db, qoder=tmp_path)
    assert rows(db, "select rel_path, session_id from facts.sources") == [("a b.jsonl", "qoder:odd")]
    assert report.not_recognised == 2
