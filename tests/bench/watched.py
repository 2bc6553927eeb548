"""What does a command cost: wall time, processor time, and the peak memory of each of its processes?

Memory is sampled from /proc (``VmHWM``, which only grows, so that a late sample has the whole peak). Where there is no
/proc, the peak of the largest process that was waited for is all there is. The kernel counts the memory of the process
that starts a command as the command's own until it runs: the caller must stay small.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PROC: Final = Path("/proc")
_EVERY: Final = 0.05  # seconds between two looks: they take some 2 % of a processor
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took and printed. Memory in bytes; ``workers_rss`` is the largest of its other processes, 0 if
    there were none; ``tree_rss`` the most that all of them had at one time.
    """

    code: int
    stdout: str
    stderr: str
    seconds: float
    cpu_seconds: float
    main_rss: int
    workers_rss: int
    tree_rss: int
    processes: int


def run(command: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> Cost:
    """Runs a command to its end and watches its processes."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=variables, stdout=stdout, stderr=stderr)
        tree = _Tree(process.pid)
        ended = threading.Event()
        sampler = threading.Thread(target=tree.watch, args=(ended,), daemon=True)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)  # or Popen would wait for it again
        ended.set()
        sampler.join()
        printed = [_whole(file) for file in (stdout, stderr)]
    waited = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    others = [peak for pid, peak in tree.peaks.items() if pid != process.pid]
    return Cost(
        code=process.returncode,
        stdout=printed[0],
        stderr=printed[1],
        seconds=seconds,
        # workers of a fork server are not waited for by the command itself: the samples have them
        cpu_seconds=max(usage.ru_utime + usage.ru_stime, sum(tree.ticks.values()) / _TICKS),
        main_rss=tree.peaks.get(process.pid, waited),
        workers_rss=max(others, default=0),
        tree_rss=tree.together or waited,
        processes=max(1, len(tree.peaks)),
    )


def _whole(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


@dataclass(slots=True)
class _Tree:
    """What was seen of a process and all below it: peak memory (bytes) and clock ticks per process."""

    root: int
    peaks: dict[int, int] = field(default_factory=dict)
    ticks: dict[int, int] = field(default_factory=dict)
    together: int = 0

    def watch(self, ended: threading.Event) -> None:
        while not ended.wait(_EVERY):
            now = 0
            for pid in self.members():
                now += self.look(pid)
            self.together = max(self.together, now)

    def members(self) -> list[int]:
        """The process and its descendants, as far as they still run."""
        found = [self.root]
        for pid in found:  # grows while it is walked
            try:
                for thread in (_PROC / str(pid) / "task").iterdir():
                    found += [int(child) for child in (thread / "children").read_text(encoding="ascii").split()]
            except OSError:
                continue  # ended meanwhile, or a kernel without `children`
        return found

    def look(self, pid: int) -> int:
        """Memory a process has now, bytes; its peak and its time are kept."""
        try:
            status = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
            stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0
        sizes = {name: text for name, _, text in (line.partition(":") for line in status.splitlines())}
        peak, now = (int(sizes.get(name, "0 kB").split()[0]) * 1024 for name in ("VmHWM", "VmRSS"))
        if peak:  # a process that has ended and was not waited for states none
            self.peaks[pid] = max(peak, self.peaks.get(pid, 0))
        after_name = stat.rpartition(")")[2].split()
        self.ticks[pid] = int(after_name[11]) + int(after_name[12])  # utime and stime, fields 14 and 15
        return now
