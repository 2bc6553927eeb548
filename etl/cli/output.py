"""How does a command write its data to stdout and its narration to stderr?"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from etl.reports import Report

FORMATS = ("table", "json", "jsonl", "csv", "markdown")


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option ``--format``."""
    choice = click.Choice(FORMATS)
    return click.option("--format", "fmt", type=choice, default="table", show_default=True, help="Output format.")(
        command
    )


def db_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option ``--db``."""
    return click.option(
        "--db", type=click.Path(), default=None, help="The store. Default: SESSIONMART_DB, else the user's data folder."
    )(command)


def quiet_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option ``--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="No narration on stderr, only errors.")(command)


def narrator(*, quiet: bool) -> Callable[[str], None]:
    """Writes narration to stderr, or nothing."""

    def narrate(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    return narrate


def emit(pieces: Iterable[str]) -> None:
    """Writes pieces of text to stdout, as UTF-8 whatever the locale says (session text is not ASCII)."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has seen enough: nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


def emit_table(table: pa.Table, fmt: str) -> None:
    """Writes a result in a format; for people it fits the terminal (200 columns where there is none)."""
    from etl.render import render

    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((200, 50)).columns if is_terminal or "COLUMNS" in os.environ else 200
    color = is_terminal and "NO_COLOR" not in os.environ
    emit(render(table, fmt, width=width if fmt == "table" else None, color=color))


def emit_report(report: Report, fmt: str) -> None:
    """Writes a report for people: its heading, then its tables below their titles (one with a title and no row is left
    out).
    """
    emit([f"{report.heading}\n"])
    for part in report.parts:
        if len(part.table) or not part.title:
            emit([f"\n{part.title}\n\n" if part.title else "\n"])
            emit_table(part.table, fmt)


def path_of(db: str | None) -> str:
    """The store that a command works on."""
    from etl.config import store_path

    return store_path(db, os.environ)
