"""How does the command line say where a session's numbers come from?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from etl.cli.load import named_roots
from etl.cli.output import db_option, emit, emit_table, format_option, path_of
from etl.errors import EXIT_OK


@click.command()
@click.argument("session")
@click.argument("what", metavar="[CALL]", required=False)
@click.option(
    "--home", type=click.Path(exists=True, file_okay=False), help="The files were below DIR (as given to load)."
)
@click.option(
    "--root", "roots", metavar="PROVIDER=PATH", multiple=True, help="The files were below PATH (as given to load)."
)
@db_option
@format_option
def explain(session: str, what: str | None, home: str | None, roots: tuple[str, ...], db: str | None, fmt: str) -> int:
    """Say which source and line contributed what to a session.

    Sources: what each said, and whose dialogue was taken. Calls: every request, result and span with its line, and
    which gave the latency. With CALL, a call key or the number of a row of dialogue, the raw records are printed too
    (masked), where the files are still there.

    \b
    Example:
      sessionmart explain 3915f6e3
      sessionmart explain 3915f6e3 call_b1 --format json
      sessionmart explain 3915f6e3 4
    """
    from etl.config import fingerprint_key
    from etl.explain import Places
    from etl.explain import explain as explained
    from etl.providers.base import Environment

    environment = Environment(os.path.abspath(home or Path.home()), {} if home else dict(os.environ), sys.platform)
    found = explained(path_of(db), session, what, Places(environment, named_roots(roots), fingerprint_key()))
    if fmt not in ("table", "markdown"):
        emit_table(found.rows, fmt)
        return EXIT_OK
    emit([f"{found.session}\n\n"])
    if found.sources is not None:
        emit_table(found.sources, fmt)
        emit(["\n"])
    emit_table(found.statements, fmt)
    return EXIT_OK
