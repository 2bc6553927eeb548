"""Does `doctor` find what is wrong with an installation or a machine, and nothing that is not?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from etl import doctor, pipeline, providers
from etl.cli import run
from etl.config import fingerprint_key, state_path
from etl.doctor import Place, Probe, diagnose
from etl.errors import EXIT_BUG, EXIT_OK
from etl.providers.base import Environment
from etl.request import Request
from tests.loading import FIXTURES, HOST

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
HOME = FIXTURES / "qoder" / "usage" / "tree"
NAMES = [
    *("python", "duckdb", "pyarrow", "polars", "orjson", "store", "schema version", "ledger", "wal", "lock"),
    *("state folder", "fingerprint key", *(f"provider {name}" for name in providers.names()), "disk space", "replace"),
]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine on which a load has run: a folder with the store in data/ and the state in state/sessionmart/."""
    machine = tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(machine / "state"))
        key, state = fingerprint_key(), state_path()
    db = machine / "data" / "s.duckdb"
    request = Request(str(db), HOST, Environment(str(HOME)), key, "0.0.0", state)
    pipeline.load(request, lambda: datetime.now(UTC))
    return machine


@pytest.fixture
def machine(loaded: Path, tmp_path: Path) -> Path:
    """A copy of that machine, to be damaged."""
    shutil.copytree(loaded, tmp_path / "machine")
    return tmp_path / "machine"


def place(machine: Path, home: Path = HOME) -> Place:
    return Place(str(machine / "data" / "s.duckdb"), str(machine / "state" / "sessionmart"), Environment(str(home)))


def probes(where: Place) -> dict[str, Probe]:
    return {probe.name: probe for probe in diagnose(where)}


def wrong(machine: Path, home: Path = HOME) -> dict[str, str]:
    return {probe.name: probe.status for probe in diagnose(place(machine, home)) if probe.status != "ok"}


def alter(machine: Path, statement: str) -> None:
    with duckdb.connect(str(machine / "data" / "s.duckdb")) as connection:
        connection.execute(statement)


def _no_store(machine: Path) -> None:
    (machine / "data" / "s.duckdb").unlink()


def _no_machine(machine: Path) -> None:
    shutil.rmtree(machine)


def _text(machine: Path) -> None:
    (machine / "data" / "s.duckdb").write_text("not a store\n")


def _cut_off(machine: Path) -> None:
    os.truncate(machine / "data" / "s.duckdb", 20_000)


def _newer(machine: Path) -> None:
    alter(machine, "update mart.store set schema_version = 99")


def _older(machine: Path) -> None:
    alter(machine, "update mart.store set schema_version = 0")


def _other_load(machine: Path) -> None:
    alter(machine, "update mart.store set last_load_id = 'yesterday'")


def _no_ledger(machine: Path) -> None:
    next((machine / "state" / "sessionmart").glob("ledger-*.json")).unlink()


def _wal(machine: Path) -> None:
    (machine / "data" / "s.duckdb.wal").touch()


def _stale_lock(machine: Path) -> None:
    (machine / "data" / "s.duckdb.lock").write_text("1\n")


def _open_state(machine: Path) -> None:
    (machine / "state" / "sessionmart").chmod(0o755)


def _state_is_a_file(machine: Path) -> None:
    shutil.rmtree(machine / "state" / "sessionmart")
    (machine / "state" / "sessionmart").touch()


def _open_key(machine: Path) -> None:
    (machine / "state" / "sessionmart" / "fingerprint.key").chmod(0o640)


def _odd_key(machine: Path) -> None:
    (machine / "state" / "sessionmart" / "fingerprint.key").write_bytes(b"\xffkey")


def _empty_key(machine: Path) -> None:
    (machine / "state" / "sessionmart" / "fingerprint.key").write_bytes(b"\n")


def _no_key(machine: Path) -> None:
    (machine / "state" / "sessionmart" / "fingerprint.key").unlink()


def _huge_store(machine: Path) -> None:
    free = shutil.disk_usage(machine).free
    os.truncate(machine / "data" / "s.duckdb", free)  # a sparse file: it takes no room, but a copy would


def test_a_machine_on_which_a_load_has_run_is_well(loaded: Path) -> None:
    before = sorted(path for path in loaded.rglob("*"))
    found = diagnose(place(loaded))
    ledger = next(probe for probe in found if probe.name == "ledger")

    assert [probe.name for probe in found] == NAMES
    assert {probe.status for probe in found} == {"ok"}
    assert {probe.advice for probe in found} == {None}
    assert ledger.found == "matches the store, files in it: 1"
    assert sorted(path for path in loaded.rglob("*")) == before


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (_no_store, {"store": "warn"}),
        (_no_machine, {"store": "warn"}),  # a new machine is well: the first load makes everything
        (_text, {"store": "fail"}),
        (_cut_off, {"store": "fail"}),
        (_newer, {"store": "fail"}),
        (_older, {"schema version": "warn"}),
        (_other_load, {"ledger": "warn"}),
        (_no_ledger, {"ledger": "warn"}),
        (_wal, {"wal": "fail"}),
        (_stale_lock, {}),  # the kernel let go of it
        (_open_state, {"state folder": "warn"}),
        (_state_is_a_file, {"state folder": "fail", "fingerprint key": "fail", "ledger": "warn"}),
        (_open_key, {"fingerprint key": "fail"}),
        (_odd_key, {"fingerprint key": "fail"}),
        (_empty_key, {"fingerprint key": "fail"}),
        (_no_key, {"fingerprint key": "warn"}),
        (_huge_store, {"disk space": "fail"}),
    ],
)
def test_damage_is_found_and_nothing_else(
    damage: Callable[[Path], None], expected: dict[str, str], machine: Path
) -> None:
    damage(machine)

    found = diagnose(place(machine))
    assert {probe.name: probe.status for probe in found if probe.status != "ok"} == expected
    assert [probe for probe in found if (probe.advice is None) != (probe.status == "ok")] == []


def test_a_running_load_is_named(machine: Path) -> None:
    db = machine / "data" / "s.duckdb"
    code = f"from etl.lock import store_lock\nwith store_lock({str(db)!r}):\n    print(flush=True)\n    input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        found = probes(place(machine))["lock"]
        holder.communicate(b"\n")
    assert (found.status, found.found) == ("warn", f"a load is running (process {holder.pid})")
    assert probes(place(machine))["lock"].status == "ok"


def test_a_store_that_is_open_for_writing_is_named(machine: Path) -> None:
    db = str(machine / "data" / "s.duckdb")
    code = f"import duckdb\nc = duckdb.connect({db!r})\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        found = probes(place(machine))["store"]
        holder.communicate(b"\n")
    assert (found.status, found.advice) == ("fail", "close the other program")


def test_provider_folders(loaded: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert wrong(loaded, tmp_path / "empty") == {f"provider {name}": "warn" for name in providers.names()}
    (tmp_path / "odd" / ".qoder").mkdir(parents=True)
    (tmp_path / "odd" / ".qoder" / "projects").touch()
    assert wrong(loaded, tmp_path / "odd") == {"provider qoder": "fail"}
    (tmp_path / "dangling" / ".qoder").mkdir(parents=True)
    (tmp_path / "dangling" / ".qoder" / "projects").symlink_to("nowhere")
    assert wrong(loaded, tmp_path / "dangling") == {"provider qoder": "fail"}


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which root cannot write either")
def test_a_folder_in_which_nothing_can_be_made(loaded: Path) -> None:
    where = place(loaded)
    found = probes(Place("/proc/s.duckdb", "/proc", where.environment))

    assert (found["replace"].status, found["state folder"].status) == ("fail", "fail")


def test_a_link_to_the_store_is_followed(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "link.duckdb").symlink_to(machine / "data" / "s.duckdb")
    _wal(machine)
    where = place(machine)

    assert probes(Place(str(tmp_path / "link.duckdb"), where.state, where.environment))["wal"].status == "fail"


@pytest.mark.parametrize(
    ("version", "system", "status"),
    [((3, 10), "linux", "fail"), ((3, 11), "linux", "ok"), ((3, 13), "darwin", "ok"), ((3, 12), "win32", "warn")],
)
def test_pythons(version: tuple[int, int], system: str, status: str) -> None:
    assert doctor._python(version, system).status == status


@pytest.mark.parametrize(
    ("older", "newer"), [("1.4.5", "2.0"), ("2.9", "2.10"), ("3.9.15", "3.10"), ("21.0.0.dev3", "21.0.1")]
)
def test_versions_are_compared_by_number(older: str, newer: str) -> None:
    assert doctor._numbers(older) < doctor._numbers(newer)


def test_trailing_zeros_do_not_make_a_version_newer() -> None:
    assert doctor._numbers("2") == doctor._numbers("2.0.0") == (2,)
    assert doctor._numbers("10.0") == (10,)


def told(machine: Path, *path: Path, fmt: str = "table") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with further folders to import from."""
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT))),
        "XDG_STATE_HOME": str(machine / "state"),
        "PATH": os.environ["PATH"],
    }
    return subprocess.run(
        [sys.executable, "-m", "etl", "doctor", "--home", str(HOME), "--db", place(machine).db, "--format", fmt],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_package_that_is_damaged_or_too_old_is_told_without_an_engine(loaded: Path, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise OSError('libarrow.so: wrong ELF class')\n")
    (tmp_path / "orjson-3.9.1.dist-info").mkdir()
    (tmp_path / "orjson-3.9.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: orjson\nVersion: 3.9.1\n"
    )
    done = told(loaded, tmp_path)

    assert (done.returncode, done.stderr) == (EXIT_BUG, "")
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines() if not line.startswith(" ")]
    found = {name: (status, text) for status, name, text in lines}
    assert found["pyarrow"] == ("fail", "cannot be imported: OSError: libarrow.so: wrong ELF class")
    assert found["orjson"] == ("fail", "3.9.1; 3.10 is the oldest that works")
    assert found["polars"][0] == "ok"
    assert "store" not in found  # it cannot be looked into


def test_the_command(machine: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(machine / "state"))
    arguments = ["doctor", "--home", str(HOME), "--db", place(machine).db]
    assert run([*arguments, "--format", "json"]) == EXIT_OK
    assert [row["name"] for row in json.loads(capfd.readouterr().out)] == NAMES
    _wal(machine)
    assert run(arguments) == EXIT_BUG
    lines = capfd.readouterr().out.splitlines()
    number = next(n for n, line in enumerate(lines) if line.startswith("fail  wal "))
    assert lines[number + 1].lstrip().startswith("-> close the tool")
