"""How is sessionmart run from a shell?

stdout is data, stderr is narration, exit codes are an API (``etl.errors``). Each command imports what it needs when it
runs, so that ``--help`` costs nothing.
"""

from __future__ import annotations

import os
import sys

import click

from etl.cli.explain import explain
from etl.cli.export import export
from etl.cli.inspect import doctor, status, verify
from etl.cli.load import demo, load
from etl.cli.prices import prices
from etl.cli.read import check, providers, report, schema, show, sql
from etl.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_OK, SessionmartError


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's callback
    if value and not context.resilient_parsing:
        import etl

        click.echo(f"sessionmart {etl.__version__}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def main() -> None:
    """Turn the session files of coding agents into one DuckDB store you can query and trust.

    \b
    Example:
      sessionmart load
      sessionmart report qoder --sessions 40
      sessionmart sql "select name, count(*), median(latency_ms) from tool_latency group by all"
    """


for _command in (
    *(load, report, sql, show, explain, export, status, check, verify, providers, prices, doctor, schema, demo),
):
    main.add_command(_command)


def run(arguments: list[str]) -> int:
    """Runs the command line; the exit code. A closed pipe (``| head``) is no error."""
    try:
        code = main(arguments, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SessionmartError as error:
        click.echo(f"sessionmart: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except Exception:  # noqa: BLE001 - the last line of defence: a bug is named as one
        import traceback

        from etl.mask import mask_text

        # what went wrong may quote what was read; the key of the fingerprint, which is thrown away, does not matter
        click.echo(mask_text(traceback.format_exc(), b"-"), err=True, nl=False)
        click.echo("sessionmart: this is a bug in sessionmart, nothing was published", err=True)
        return EXIT_BUG
    return code if isinstance(code, int) else EXIT_OK
