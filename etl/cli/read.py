"""How is a store read from the command line: reports, SQL, one session, its checks?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from etl.cli.output import (
    db_option,
    emit,
    emit_report,
    emit_table,
    format_option,
    path_of,
    quiet_option,
)
from etl.errors import EXIT_BUG, EXIT_OK, UsageError

if TYPE_CHECKING:
    from typing import TextIO

    import pyarrow as pa


@click.command()
@click.argument("name", required=False)
@db_option
@click.option("--since", metavar="WHEN", help="From a day, a time, or 12h, 7d, 2w ago on.")
@click.option("--until", metavar="WHEN", help="Up to a day (its end) or a time.")
@click.option("--provider", metavar="NAME", help="Only this agent.")
@click.option("--project", metavar="NAME", help="Only this project.")
@click.option("--tz", metavar="ZONE", help="Clock of days, hours and times, e.g. Europe/Berlin. Default: UTC.")
@click.option("--sessions", metavar="N", help="How many sessions, the latest. Default: 40.")
@click.option("--batch", metavar="ID", help="Only this batch of a Bridge.")
@click.option("-p", "parameters", metavar="NAME=VALUE", multiple=True, help="A parameter by name.")
@click.option("--part", metavar="NAME", help="Only this table of the report.")
@format_option
def report(
    name: str | None,
    db: str | None,
    parameters: tuple[str, ...],
    part: str | None,
    fmt: str,
    **named: str | None,
) -> int:
    """Print a report; without a NAME, list them with their parameters.

    json, jsonl and csv give one table: the report's rows, or those of --part.

    \b
    Example:
      sessionmart report qoder --sessions 40
      sessionmart report latency --since 7d --tz Europe/Berlin
      sessionmart report errors --part services --format csv
    """
    from datetime import UTC, datetime

    from etl.reports import report_rows, run_report

    if name is None:
        emit_table(_list_of_reports(), fmt)
        return EXIT_OK
    stated = {key: value for key, value in named.items() if value is not None} | _pairs(parameters)
    now, store = datetime.now(UTC), path_of(db)
    if part is not None or fmt in ("json", "jsonl", "csv"):
        emit_table(report_rows(store, name, now, part, **stated), fmt)
    else:
        emit_report(run_report(store, name, now, **stated), fmt)
    return EXIT_OK


def _pairs(parameters: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in parameters:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"-p wants NAME=VALUE, not {pair!r}")
        found[name] = value
    return found


def _list_of_reports() -> pa.Table:
    import pyarrow as pa

    from etl.reports import definitions

    listed = [
        {"report": found.name, "about": found.about, "parameters": ", ".join(found.parameters)}
        for found in definitions().values()
    ]
    return pa.Table.from_pylist(listed)


@click.command()
@click.argument("query", required=False)
@click.option("-f", "--file", "file", type=click.File("r", encoding="utf-8"), help="Read the query from FILE.")
@db_option
@format_option
@click.option("--seconds", type=click.FloatRange(0.1), default=300.0, show_default=True, help="Stop after so long.")
@click.option("--memory", default="2GB", show_default=True, help="Memory limit of the query.")
def sql(query: str | None, file: TextIO | None, db: str | None, fmt: str, seconds: float, memory: str) -> int:
    """Run one SQL query on the store, read-only; `-` reads it from stdin.

    No files, no settings, no writing: what a query can reach is the store alone.

    \b
    Example:
      sessionmart sql "select name, count(*) n, median(latency_ms) from tool_latency group by all order by n desc"
    """
    from etl.store import query as run_query

    text = sys.stdin.read() if query == "-" else query
    if file is not None:
        text = file.read()
    if not text or not text.strip():
        raise UsageError("there is no query: give one, or -f FILE, or - to read it from stdin")
    emit_table(run_query(path_of(db), text, seconds, memory), fmt)
    return EXIT_OK


@click.command()
@click.argument("session")
@db_option
def show(session: str, db: str | None) -> int:
    """Read one session as text: dialogue and tool calls in order.

    SESSION is a key such as qoder:3915f6e3-..., a native id, or the beginning of one.

    \b
    Example:
      sessionmart show 3915f6e3
    """
    from etl.transcript import read_session

    emit(read_session(path_of(db), session))
    return EXIT_OK


@click.command()
@db_option
@format_option
@quiet_option
def check(db: str | None, fmt: str, *, quiet: bool) -> int:
    """Run every check on the store; exit 1 when a promise is broken.

    A row per check that found something: broken is a fault of sessionmart, finding is a fact about the data.

    \b
    Example:
      sessionmart check
    """
    import pyarrow as pa

    from etl.sqlfiles import load_sql
    from etl.store import connect, run_checks

    connection = connect(path_of(db))
    try:
        findings = run_checks(connection)
    finally:
        connection.close()
    columns = {
        "check": [finding.check for finding in findings],
        "severity": [finding.severity for finding in findings],
        "source_id": [finding.source_id for finding in findings],
        "detail": [finding.detail for finding in findings],
    }
    emit_table(pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns])), fmt)
    broken = sum(finding.severity == "broken" for finding in findings)
    if not quiet:
        number = len(load_sql("checks"))
        click.echo(f"{number} checks, {broken} broken promises, {len(findings) - broken} findings", err=True)
    return EXIT_BUG if broken else EXIT_OK


@click.command()
@click.option("--home", type=click.Path(exists=True, file_okay=False), help="Look below DIR instead of your home.")
@format_option
def providers(home: str | None, fmt: str) -> int:
    """List the providers, where their session files are looked for, and which of those folders exist.

    \b
    Example:
      sessionmart providers
    """
    import os

    import pyarrow as pa

    from etl import providers as known
    from etl.providers.base import Environment

    environment = Environment(os.path.abspath(home or Path.home()), {} if home else dict(os.environ), sys.platform)
    rows: list[dict[str, object]] = []
    for name in known.names():
        provider = known.get(name)
        found = provider.roots(environment)
        if not found:  # nobody can say where its files are: `load --root NAME=PATH`
            rows.append({"provider": name, "title": provider.title, "exists": False})
        rows += [
            {
                "provider": name,
                "title": provider.title,
                "realm": root.realm,
                "store_kind": root.store_kind,
                "path": root.path,
                "exists": Path(root.path).is_dir(),
            }
            for root in found
        ]
    text = [(name, pa.string()) for name in ("provider", "title", "realm", "store_kind", "path")]
    emit_table(pa.Table.from_pylist(rows, schema=pa.schema([*text, ("exists", pa.bool_())])), fmt)
    return EXIT_OK


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Machine-readable: every object with its columns.")
def schema(*, as_json: bool) -> int:
    """Print the tables, views and macros of a store with a sentence per column (docs/tables.md).

    \b
    Example:
      sessionmart schema --json
    """
    from etl.sqlfiles import tables_markdown
    from etl.store import described

    objects, types = described()
    if not as_json:
        emit([tables_markdown(objects, types)])
        return EXIT_OK
    import orjson

    meanings = {item.name: dict(item.columns) for item in objects}
    listed = [
        {
            "name": item.name,
            "kind": item.kind,
            "grain": item.grain,
            "about": item.about,
            "columns": [
                {"name": name, "type": kind, "about": meanings[item.name].get(name)} for name, kind in types[item.name]
            ],
        }
        for item in objects
        if item.name in types
    ]
    emit([orjson.dumps(listed, option=orjson.OPT_INDENT_2).decode() + "\n"])
    return EXIT_OK
