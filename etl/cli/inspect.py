"""How is a store looked after from the command line: its freshness, its machine, its truth?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from etl.cli.load import _request
from etl.cli.output import db_option, emit, emit_table, format_option, narrator, path_of, quiet_option
from etl.errors import EXIT_BUG, EXIT_OK

if TYPE_CHECKING:
    from etl.doctor import Probe
    from etl.verify import Verification

_SECTIONS = {
    "runs": "Last runs",
    "sources": "Sources",
    "drift": "Unknown record types and items",
    "findings": "Findings of the checks",
}
_report_format = click.option(
    "--format",
    "fmt",
    type=click.Choice(("table", "json", "markdown")),
    default="table",
    show_default=True,
    help="Output format; json is one object.",
)


def _emit_object(value: dict[str, Any]) -> None:
    import orjson

    emit([orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode() + "\n"])


@click.command()
@db_option
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="How many runs, the latest.")
@_report_format
def status(db: str | None, runs: int, fmt: str) -> int:
    """Say how fresh the store is: last runs, sources by state, what the adapters did not know, findings.

    \b
    Example:
      sessionmart status
    """
    from datetime import UTC, datetime

    from etl.config import state_path
    from etl.status import headline, read_status

    found = read_status(path_of(db), state_path(), datetime.now(UTC), runs)
    if fmt == "json":
        _emit_object(found.as_dict())
        return EXIT_OK
    lines = list(headline(found))
    emit(lines if fmt == "table" else ["```\n", *lines, "```\n"])
    for name, title in _SECTIONS.items():
        table = getattr(found, name)
        if table.num_rows:
            emit([f"\n{title}\n\n"])
            emit_table(table, fmt)
        else:
            emit([f"\n{title}: none\n"])
    return EXIT_OK


@click.command()
@click.option("--home", type=click.Path(exists=True, file_okay=False), help="Look below DIR instead of your home.")
@db_option
@format_option
def doctor(home: str | None, db: str | None, fmt: str) -> int:
    """Say what is wrong with this installation or machine, and what to do; exit 1 when a probe fails.

    \b
    Example:
      sessionmart doctor
    """
    from etl.config import state_path
    from etl.doctor import Place, diagnose
    from etl.providers.base import Environment

    environment = Environment(os.path.abspath(home or Path.home()), {} if home else dict(os.environ), sys.platform)
    probes = diagnose(Place(path_of(db), state_path(), environment))
    if fmt == "table":
        emit(_prescription(probes))
    else:
        import pyarrow as pa

        names = ("name", "status", "found", "advice")
        schema = pa.schema([(name, pa.string()) for name in names])
        rows = [{name: getattr(probe, name) for name in names} for probe in probes]
        emit_table(pa.Table.from_pylist(rows, schema=schema), fmt)
    return EXIT_BUG if any(probe.status == "fail" for probe in probes) else EXIT_OK


def _prescription(probes: list[Probe]) -> list[str]:
    """Plain lines: they need no engine, which may be what is wrong."""
    width = max(len(probe.name) for probe in probes)
    lines = []
    for probe in probes:
        found = "".join(char if char.isprintable() else "\ufffd" for char in probe.found)
        lines.append(f"{probe.status:<4}  {probe.name:<{width}}  {found}\n")
        if probe.advice:
            lines.append(f"{'':<{width + 6}}  -> {probe.advice}\n")
    return lines


@click.command()
@click.argument("names", metavar="[PROVIDER]...", nargs=-1)
@click.option("--home", type=click.Path(exists=True, file_okay=False), help="As `load` was given it.")
@click.option("--root", "roots", metavar="PROVIDER=PATH", multiple=True, help="As `load` was given it.")
@click.option("--host", help="As `load` was given it. Default: this machine's name.")
@db_option
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Compare N sources only, and no conclusions.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which sample.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes. Default: the number of processors.")
@_report_format
@quiet_option
def verify(*, sample: int | None, seed: int, fmt: str, quiet: bool, **options: Any) -> int:
    """Read the files once more and compare with the store, table by table; exit 1 on any difference.

    `missing` rows are given by the files and not in the store, `extra` ones the other way round. Files that changed
    since the load are left out and told apart. The store is only read.

    \b
    Example:
      sessionmart verify --sample 50 --seed 7
    """
    from etl.verify import verify as compare

    narrate = narrator(quiet=quiet)
    found = compare(_request(full=False, config=None, **options), sample, seed, narrate)
    if fmt == "json":
        _emit_object(found.as_dict())
    else:
        import pyarrow as pa

        text, number = pa.string(), pa.int64()
        columns = {"table": text, "rows": number, "missing": number, "extra": number, "first_difference": text}
        rows = [{name: getattr(table, name) for name in columns} for table in found.tables]
        emit_table(pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items()))), fmt)
    for line in _verified(found):
        narrate(line)
    return EXIT_OK if found.is_equal else EXIT_BUG


def _verified(found: Verification) -> list[str]:
    left = {
        "changed since the load": len(found.changed),
        "failed in the load": found.failed,
        "not found below these roots": found.absent,
        "new": found.new,
        "not in the sample": found.unsampled,
    }
    lines = [f"{number} sources left out: {why}" for why, number in left.items() if number]
    lines += [f"changed: source {source_id}" for source_id in found.changed]
    if not found.has_ledger:
        lines.append(
            "this machine has no ledger of the store's last load: files that changed since cannot be told apart"
        )
    verdict = "equal" if found.is_equal else "the store differs from the files"
    return [*lines, f"{found.verified} sources compared: {verdict}"]
