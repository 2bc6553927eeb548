"""How are session trees loaded from the command line?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from etl.cli.output import db_option, emit, emit_report, narrator, path_of, quiet_option
from etl.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from etl.request import Report, Request


@click.command()
@click.argument("names", metavar="[PROVIDER]...", nargs=-1)
@click.option(
    "--home", type=click.Path(exists=True, file_okay=False), help="Look for the providers' folders below DIR."
)
@click.option(
    "--root", "roots", metavar="PROVIDER=PATH", multiple=True, help="Look only below PATH, a folder or one file."
)
@click.option("--host", help="Name of the machine the tree belongs to. Default: this one's.")
@db_option
@click.option(
    "--format", "fmt", type=click.Choice(("text", "json")), default="text", show_default=True, help="Run report."
)
@click.option("--jobs", type=click.IntRange(1), help="Worker processes. Default: the number of processors.")
@click.option("--full", is_flag=True, help="Read every file again.")
@click.option(
    "--config", type=click.Path(), help="Settings. Default: SESSIONMART_CONFIG, else config.toml of this user."
)
@quiet_option
def load(fmt: str, *, quiet: bool, **options: Any) -> int:
    """Find session trees and bring the store up to date.

    With --home the environment of this machine (XDG_*, provider overrides) is ignored. With --root alone only the
    providers it names are loaded.

    \b
    Example:
      sessionmart load
      sessionmart load qoder --home /mnt/backup/home/dev --host laptop
      sessionmart load --root qoder=./sessions --db /tmp/try.duckdb
    """
    report = _load(_request(**options), quiet=quiet)
    if fmt == "json":
        emit(_as_json(report))
    return EXIT_OK if report.clean else EXIT_FINDINGS


def _request(
    *,
    names: tuple[str, ...],
    home: str | None,
    roots: tuple[str, ...],
    host: str | None,
    db: str | None,
    jobs: int | None,
    full: bool,
    config: str | None,
) -> Request:
    import etl
    from etl import providers
    from etl.config import fingerprint_key, price_folder, settings_path, state_path
    from etl.providers.base import Environment
    from etl.request import Request
    from etl.settings import read_settings

    for name in names:
        providers.get(name)
    settings, is_named = settings_path(config, os.environ)
    variables = {} if home else dict(os.environ)
    environment = Environment(os.path.abspath(home or Path.home()), variables, sys.platform)
    return Request(
        db=path_of(db),
        host=host or _this_host(),
        environment=environment,
        key=fingerprint_key(),
        version=etl.__version__,
        state=state_path(),
        providers=names,
        roots=named_roots(roots),
        jobs=jobs or os.cpu_count() or 1,
        full=full,
        prices=price_folder() if os.path.lexists(price_folder()) else None,
        settings=read_settings(settings, str(Path.home()), is_named=is_named),
    )


def _this_host() -> str:
    import socket

    return socket.gethostname() or "localhost"


def named_roots(roots: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The paths of ``--root PROVIDER=PATH`` by provider. Raises UsageError for one that names neither."""
    from etl import providers

    named: dict[str, tuple[str, ...]] = {}
    for root in roots:
        name, equals, path = root.partition("=")
        if not equals or not path:
            raise UsageError(f"--root wants PROVIDER=PATH, not {root!r}")
        providers.get(name)
        if not os.path.lexists(path):
            raise UsageError(f"--root {name}: no such file or folder: {path}")
        named[name] = (*named.get(name, ()), path)
    return named


def _load(request: Request, *, quiet: bool) -> Report:
    from datetime import UTC, datetime

    from etl import pipeline

    narrate = narrator(quiet=quiet)
    report = pipeline.load(request, lambda: datetime.now(UTC), narrate)
    for line in _narration(report):
        narrate(line)
    return report


def _narration(report: Report) -> list[str]:
    seconds = f"{sum(report.seconds.values()):.1f} s"
    if report.state == "unchanged":
        return [f"nothing changed in {report.sources_seen} sources ({seconds}): {report.db} stays as it is"]
    read = f"{report.sources_read} sources read ({report.bytes_read / 1e6:.1f} MB)"
    if report.sources_unchanged:
        read += f", {report.sources_unchanged} unchanged"
    rows = f"{report.rows.get('dialogue', 0)} dialogue rows, {report.rows.get('tool_requests', 0)} tool calls"
    lines = [f"{read}; {rows} in {seconds} -> {report.db}"]
    if report.sources_gone:
        lines.append(f"{report.sources_gone} sources are gone; their sessions stay")
    if report.sources_suspicious:
        lines.append(
            f"{report.sources_suspicious} sources lay below a folder that holds nothing now; their sessions stay"
        )
    if report.unclaimed:
        listed = ", ".join(f"{n} {ending}" for ending, n in sorted(report.unclaimed.items()))
        lines.append(f"not session files: {listed}")
    if report.not_recognised:
        lines.append(f"{report.not_recognised} files below the named roots are no session files")
    lines += [f"cannot look into {problem}" for problem in report.problems]
    if report.sources_failed:
        lines.append(f"{report.sources_failed} sources failed; `sessionmart check` names them")
    lines += [f"source {source} left out: check {check}" for source, check in sorted(report.quarantined.items())]
    counts: dict[str, int] = {}
    for finding in report.findings:
        counts[finding.check] = counts.get(finding.check, 0) + 1
    lines += [f"finding: {check} ({number}); `sessionmart check` lists them" for check, number in counts.items()]
    return lines


def _as_json(report: Report) -> list[str]:
    import orjson

    return [orjson.dumps(report.as_dict(), option=orjson.OPT_INDENT_2).decode() + "\n"]


@click.command()
@click.option("--keep", type=click.Path(), default=None, metavar="FILE", help="Keep the store of the demo as FILE.")
def demo(keep: str | None) -> int:
    """Load the example tree that ships with sessionmart and print the 40-session Qoder report.

    \b
    Example:
      sessionmart demo
      sessionmart demo --keep demo.duckdb
    """
    import tempfile
    from dataclasses import replace
    from datetime import UTC, datetime

    import etl
    from etl import pipeline
    from etl.providers.base import Environment
    from etl.reports import run_report
    from etl.request import Request
    from etl.sqlfiles import shipped

    with tempfile.TemporaryDirectory() as folder:
        db = os.path.abspath(keep) if keep else os.path.join(folder, "demo.duckdb")
        home = str(shipped("demo", "fixtures/demo"))
        environment = Environment(home, {}, "linux")
        report = pipeline.load(
            Request(db, "demo", environment, b"demo", etl.__version__, folder, ("qoder",)), lambda: datetime.now(UTC)
        )
        found = run_report(db, "qoder", datetime.now(UTC))
    where = f", kept as {db}" if keep else ""
    click.echo(f"{report.sources_read} example files loaded{where}", err=True)
    emit_report(replace(found, parts=found.parts[:2]), "table")
    return EXIT_OK
