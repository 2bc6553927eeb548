"""How does a store leave as files, from the command line?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from etl.cli.output import db_option, emit, narrator, path_of, quiet_option
from etl.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from etl.export.views import Selection


def _selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose sessions."""
    for option in (
        click.option(
            "--until", type=click.DateTime(["%Y-%m-%d"]), help="Sessions begun until DATE (UTC), it included."
        ),
        click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Sessions begun on DATE (UTC) or later."),
        click.option("--provider", "providers", multiple=True, metavar="NAME", help="Only this provider; repeatable."),
    ):
        command = option(command)
    return command


def _selection(
    providers: tuple[str, ...], since: datetime | None, until: datetime | None, sessions: tuple[str, ...] = ()
) -> Selection:
    from etl.export.views import Selection

    if since is not None and until is not None and until < since:
        raise UsageError("--until is before --since: there is no such day")
    return Selection(providers, since and since.date(), until and until.date(), sessions)


@click.group()
def export() -> None:
    """Write the store as files that other tools read.

    \b
    Example:
      sessionmart export parquet ./sessions-parquet
      sessionmart export csv tool_latency -o latency.csv
    """


@export.command()
@click.argument("dest", type=click.Path())
@db_option
@_selecting
@click.option("--views", default="", metavar="V1,V2", help="These views. Default: the public ones.")
@quiet_option
def parquet(
    *,
    dest: str,
    db: str | None,
    providers: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    views: str,
    quiet: bool,
) -> int:
    """Write views as Parquet below the folder DEST, by provider and month.

    DEST is made, or replaced in one step when it is an earlier export; anything else that is not empty is refused.
    Columns and types are a promise: docs/exports.md.

    \b
    Example:
      sessionmart export parquet ./sessions-parquet --provider qoder --since 2026-01-01
      sessionmart export parquet ./latency --views sessions,tool_latency
    """
    from etl.export.parquet import export_parquet

    named = [name.strip() for name in views.split(",") if name.strip()]
    rows, undated = export_parquet(path_of(db), dest, _selection(providers, since, until), named)
    narrate = narrator(quiet=quiet)
    narrate(f"{sum(rows.values())} rows of {len(rows)} views -> {dest}")
    _narrate_undated(undated, narrate)
    return EXIT_OK


def _narrate_undated(undated: int, narrate: Callable[[str], None]) -> None:
    if undated:
        are = "session is" if undated == 1 else "sessions are"
        narrate(f"{undated} {are} left out: no log says when {'it' if undated == 1 else 'they'} began")


@export.command()
@click.argument("dest", type=click.Path())
@db_option
@click.option(
    "--session", "sessions", multiple=True, metavar="ID", help="Only this session and its sub-agents; repeatable."
)
@_selecting
@quiet_option
def atif(
    *,
    dest: str,
    db: str | None,
    sessions: tuple[str, ...],
    providers: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    quiet: bool,
) -> int:
    """Write sessions as trajectories (ATIF v1.8) below the folder DEST, one JSON file each.

    ID is a key such as qoder:3915f6e3-..., a native id, or the beginning of one. DEST is made, or replaced in one step
    when it is an earlier export; anything else that is not empty is refused. What is left out: docs/exports.md.

    \b
    Example:
      sessionmart export atif ./trajectories --provider claude_code --since 2026-01-01
      sessionmart export atif ./one --session 3915f6e3
    """
    from etl.export.atif import export_atif

    written = export_atif(path_of(db), dest, _selection(providers, since, until, sessions))
    narrate = narrator(quiet=quiet)
    untold = f", {written.untold} sessions say nothing" if written.untold else ""
    narrate(f"{written.trajectories} trajectories{untold} -> {dest}")
    _narrate_undated(written.undated, narrate)
    return EXIT_OK


def _as_text(fmt: str, view: str, output: str | None, db: str | None, selection: Selection) -> int:
    """One view as csv or jsonl, to a file or to stdout."""
    import tempfile

    from etl.export.place import replacing_file
    from etl.export.views import Views, exported_rows
    from etl.render.stream import render_stream

    with tempfile.TemporaryDirectory() as spill, Views(path_of(db), selection, spill) as views:
        (name,) = views.named([view])
        pieces = render_stream(*exported_rows(views, name), fmt)
        if output is None or output == "-":
            emit(pieces)
            return EXIT_OK
        with replacing_file(output) as file:
            file.writelines(pieces)
    return EXIT_OK


def _view_command(fmt: str, title: str) -> click.Command:
    """The command that writes one view in a format."""

    def command(
        *,
        view: str,
        output: str | None,
        db: str | None,
        providers: tuple[str, ...],
        since: datetime | None,
        until: datetime | None,
    ) -> int:
        return _as_text(fmt, view, output, db, _selection(providers, since, until))

    command.__doc__ = f"""Write one VIEW as {title}, to stdout or a file.

    The rows are sorted by the view's key; values are written as `sessionmart sql --format {fmt}` writes them.

    \b
    Example:
      sessionmart export {fmt} tool_latency --provider qoder -o latency.{fmt}
    """
    output = click.option(
        "-o", "--output", type=click.Path(dir_okay=False), help="Write FILE (0600) instead of stdout."
    )
    return click.command(fmt)(click.argument("view")(output(db_option(_selecting(command)))))


export.add_command(_view_command("csv", "CSV"))
export.add_command(_view_command("jsonl", "JSON Lines"))
