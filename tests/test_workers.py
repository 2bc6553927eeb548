"""What happens to a load whose workers die, and to workers whose loader dies?

Workers are real processes of a real pool. A provider of the tests' own (an entry point, as a third party would add one)
reads Qoder transcripts and does what the file ``orders`` beside it says: kill its process, or run for ever.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from etl import pipeline
from etl.executors import Serial, process_pool, run_tasks
from etl.providers.base import Environment
from etl.request import Report, Request
from tests.loading import HOST, KEY, NOW, rows
from tests.test_incremental import DEMO, assert_same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).parent.parent
PROVIDER = """
import os, signal
from dataclasses import replace
from pathlib import Path

from etl.providers.qoder import PROVIDER as QODER

ORDERS = Path(__file__).with_name("orders")


def adapt(source, session, records):
    for event in QODER.adapt(source, session, records):
        yield event
    order = dict(line.split() for line in ORDERS.read_text().splitlines()).get(source.claim.native_id)
    if order == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if order == "hang":
        ORDERS.with_name(f"worker-{os.getpid()}").touch()
        while True:
            pass


PROVIDER = replace(QODER, name="fragile", adapt=adapt)
"""
#: Runs the command line with a pool also for little source, and a task per file.
COMMAND = """
import sys
from etl import cli, pipeline
pipeline.POOL_BYTES, pipeline.TASK_BYTES = 0, 1
sys.exit(cli.run(sys.argv[1:]))
"""
#: A worker looks for its loader every half second.
LEAVE_SECONDS = 3.0


# --- The pool and its tasks -------------------------------------------------------------------------------------------


def double(log: str, number: int, items: Sequence[int]) -> list[int]:
    """What a worker runs: a negative item kills it, zero is an error. Each try leaves a file."""
    Path(log, f"{number}-{'_'.join(map(str, items))}").touch()
    for item in items:
        if item < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if item == 0:
            raise ValueError("zero")
    return [2 * item for item in items]


def pool() -> Executor:
    return ProcessPoolExecutor(2, get_context("forkserver"))


def outcome(
    make: Callable[[], Executor], log: Path, tasks: Sequence[Sequence[int]], in_flight: int = 3
) -> list[tuple[tuple[int, ...], list[int] | None]]:
    """Items and result of what ``run_tasks`` yields, in the order of the items."""
    run = partial(double, str(log))
    return sorted((tuple(items), result) for items, result in run_tasks(make, run, tasks, in_flight))


def test_each_task_gives_its_result_once(tmp_path: Path) -> None:
    tasks = [[n, n + 100] for n in range(1, 20)]
    expected = [((n, n + 100), [2 * n, 2 * n + 200]) for n in range(1, 20)]
    assert outcome(pool, tmp_path, tasks) == expected
    assert len(list(tmp_path.iterdir())) == 19
    assert outcome(Serial, tmp_path, tasks) == expected


@pytest.mark.parametrize("deadly", [(-1,), (-1, -2), (-1, -2, -3)])
def test_items_that_kill_their_worker_are_alone_in_it(tmp_path: Path, deadly: tuple[int, ...]) -> None:
    tasks = [[1, 2, 3], [4, 5, 6, 7, 8], [9], [10, 11], [12]]
    for place, item in enumerate(deadly):
        tasks[(2 * place) % 5].insert(place, item)
    found = outcome(pool, tmp_path, tasks)
    assert [items for items, result in found if result is None] == [(item,) for item in sorted(deadly)]
    good = [(item, doubled) for items, result in found if result for item, doubled in zip(items, result, strict=True)]
    assert sorted(good) == [(n, 2 * n) for n in range(1, 13)]


def test_the_only_item_may_be_the_deadly_one(tmp_path: Path) -> None:
    assert outcome(pool, tmp_path, [[-1]]) == [((-1,), None)]
    assert outcome(pool, tmp_path, []) == []


@pytest.mark.parametrize("make", [pool, Serial])
def test_an_error_of_a_task_is_raised(tmp_path: Path, make: Callable[[], Executor]) -> None:
    with pytest.raises(ValueError, match="zero"):
        outcome(make, tmp_path, [[1], [0], [2]])


def test_a_pool_that_broke_while_idle_is_nobodys_fault(tmp_path: Path) -> None:
    """The system's out-of-memory killer may take a worker between two tasks."""
    made: list[Executor] = []

    def make() -> Executor:
        made.append(pool())
        if len(made) == 1:
            worker = made[0].submit(os.getpid).result()
            assert made[0].submit(os.kill, worker, signal.SIGKILL).exception(timeout=60) is not None
        return made[-1]

    assert outcome(make, tmp_path, [[1], [2]], in_flight=1) == [((1,), [2]), ((2,), [4])]
    assert len(made) == 2


def test_abandoned_tasks_are_not_started(tmp_path: Path) -> None:
    running = run_tasks(partial(process_pool, 1), partial(double, str(tmp_path)), [[n] for n in range(1, 50)], 2)
    assert next(running) in (([1], [2]), ([2], [4]))  # two are handed out: either may be seen first
    running.close()
    assert len(list(tmp_path.iterdir())) <= 4  # the one yielded, those handed out, and what the pool prefetched


# --- A worker dies ----------------------------------------------------------------------------------------------------


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Installs the provider ``fragile`` for this process, its workers and its commands; the file of its orders."""
    site = tmp_path / "site"
    told = site / "fragile-0.dist-info"
    told.mkdir(parents=True)
    (site / "fragile.py").write_text(PROVIDER)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile\nVersion: 0\n")
    (told / "entry_points.txt").write_text("[etl.providers]\nfragile = fragile:PROVIDER\n")
    (site / "orders").touch()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(pipeline, "POOL_BYTES", 0)
    yield site / "orders"
    sys.modules.pop("fragile", None)


def transcripts(folder: Path, number: int) -> list[Path]:
    """So many transcripts of the example tree, below a folder."""
    files = [path for path in sorted(DEMO.rglob("*.jsonl")) if "subagents" not in path.parts][:number]
    made = [folder / path.relative_to(DEMO / ".qoder") for path in files]
    for path, target in zip(files, made, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return made


def load(root: Path, db: Path, **more: Any) -> Report:
    how: dict[str, Any] = {"jobs": 2, "task_bytes": 30_000, **more}
    home, state, roots = Environment("/nowhere"), str(db.parent / "state"), {"fragile": (str(root),)}
    return pipeline.load(Request(str(db), HOST, home, KEY, "0", state, roots=roots, **how), lambda: NOW)


def source_rows(db: Path) -> dict[str, tuple[Any, ...]]:
    """State, note, session and number of records of each source, by the id in its file's name."""
    return {
        native: tuple(row)
        for native, *row in rows(
            db,
            "select s.file_native_id, s.tail_state, s.note, s.session_id, count(r.source_id) "
            "from facts.sources s left join facts.records r using (source_id) group by all",
        )
    }


def test_a_file_that_kills_its_worker_fails_alone_and_is_mended_by_the_next_load(tmp_path: Path, orders: Path) -> None:
    root, db = tmp_path / "root", tmp_path / "step" / "s.duckdb"
    old, new, *others = transcripts(root, 8)
    kept = new.read_bytes()
    new.unlink()
    load(root, db)
    before = source_rows(db)
    assert len(before) == 7
    assert before[old.stem][0] == "complete"

    with old.open("ab") as more:
        more.write(b'{"type":"ai-title","aiTitle":"Later"}\n')
    new.write_bytes(kept)
    orders.write_text(f"{old.stem} die\n{new.stem} die\n")
    report = load(root, db, full=True)
    assert sorted(report.failed.values()) == ["its worker died", "its worker died"]
    assert (report.sources_seen, report.sources_read, report.clean) == (8, 8, False)
    after = source_rows(db)
    assert after[old.stem] == ("failed", "its worker died", *before[old.stem][2:])  # its earlier rows stay
    assert after[new.stem] == ("failed", "its worker died", None, 0)
    assert {path.stem: after[path.stem] for path in others} == {path.stem: before[path.stem] for path in others}
    sessions = {session for (session,) in rows(db, "select session_id from sessions")}
    assert f"fragile:{old.stem}" in sessions
    assert f"fragile:{new.stem}" not in sessions

    orders.write_text("")
    assert load(root, db).sources_read == 2
    load(root, tmp_path / "full" / "s.duckdb", jobs=1)
    assert_same(db, tmp_path / "full" / "s.duckdb")


def test_a_failed_file_that_goes_away_is_gone(tmp_path: Path, orders: Path) -> None:
    root, db = tmp_path / "root", tmp_path / "s.duckdb"
    victim, *_ = transcripts(root, 2)
    orders.write_text(f"{victim.stem} die\n")
    assert len(load(root, db).failed) == 1
    victim.unlink()
    assert load(root, db).sources_gone == 1
    assert load(root, db).state == "unchanged"
    states = dict(rows(db, "select file_native_id, source_state from facts.sources"))
    assert sorted(states.values()) == ["gone", "present"]
    assert states[victim.stem] == "gone"


# --- The loader dies --------------------------------------------------------------------------------------------------


def environment(folder: Path, site: Path) -> dict[str, str]:
    """The environment of a command whose files all lie below a folder."""
    names = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}
    own = {name: str(folder / below) for name, below in names.items()}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{site}:{ROOT}", **own}


def start(root: Path, db: Path, folder: Path, site: Path) -> subprocess.Popen[str]:
    """A load with two workers as a command, in a session of its own."""
    command = [sys.executable, "-c", COMMAND, "load", "--root", f"fragile={root}", "--db", str(db), "--jobs", "2"]
    return subprocess.Popen(
        command, env=environment(folder, site), start_new_session=True, stderr=subprocess.PIPE, text=True
    )


def processes(session: int) -> list[int]:
    """The living processes of a session, without those that have ended and only wait to be noticed."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            told = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if entry.name.isdigit() and int(told[3]) == session and told[0] != b"Z":
            found.append(int(entry.name))
    return found


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_a_dead_worker_is_a_finding_of_the_command(tmp_path: Path, orders: Path) -> None:
    root, db = tmp_path / "root", tmp_path / "s.duckdb"
    victim, *_ = transcripts(root, 3)
    orders.write_text(f"{victim.stem} die\n")
    command = start(root, db, tmp_path, orders.parent)
    _, told = command.communicate(timeout=120)
    assert command.returncode == 4, told
    assert "1 sources failed" in told
    assert "Traceback" not in told
    assert sorted(row[0] for row in source_rows(db).values()) == ["complete", "complete", "failed"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted by /proc")
@pytest.mark.parametrize("is_reaped", [True, False])
def test_workers_leave_when_their_loader_was_killed(tmp_path: Path, orders: Path, *, is_reaped: bool) -> None:
    """Also when the loader's parent has not noticed its end yet: it is a zombie then, and has its process id."""
    root, db = tmp_path / "root", tmp_path / "s.duckdb"
    files = transcripts(root, 4)
    orders.write_text("".join(f"{path.stem} hang\n" for path in files))
    command = start(root, db, tmp_path, orders.parent)
    try:
        assert wait_until(lambda: len(list(orders.parent.glob("worker-*"))) == 2, 120)
        workers = {int(path.name.partition("-")[2]) for path in orders.parent.glob("worker-*")}
        assert workers < set(processes(command.pid))
        command.kill()
        if is_reaped:
            command.wait()
        assert wait_until(lambda: not processes(command.pid), LEAVE_SECONDS), processes(command.pid)
    finally:
        for left in processes(command.pid):
            os.kill(left, signal.SIGKILL)
        command.communicate()
    assert not db.exists()
