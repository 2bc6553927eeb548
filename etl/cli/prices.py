"""How is the price table looked at and refreshed from the command line?"""

from __future__ import annotations

import os

import click

from etl.cli.output import emit_table, format_option, narrator, quiet_option
from etl.errors import EXIT_OK


@click.command()
@click.option("--refresh", is_flag=True, help="Make a new table of the genai-prices that is installed here.")
@format_option
@quiet_option
def prices(fmt: str, *, refresh: bool, quiet: bool) -> int:
    """Say by which price table the next load costs model calls, or make a new one.

    The shipped table counts until --refresh has put one into your data folder; delete that folder to go back. Nothing
    is fetched: update genai-prices itself first. The next load computes every cost anew.

    \b
    Example:
      sessionmart prices
      sessionmart prices --refresh
    """
    import pyarrow as pa

    from etl.config import price_folder
    from etl.prices import read_price_list, write_price_list

    own = price_folder()
    if refresh:
        from etl.genaiprices import price_tables

        contents, version = price_tables()
        made = write_price_list(own, contents, "genai-prices", version, "MIT")
        narrator(quiet=quiet)(f"the next load costs by genai-prices {version}: {made.folder}")
    found = read_price_list(own if os.path.lexists(own) else None)
    row = {
        "source": found.source,
        "version": found.version,
        "licence": found.licence,
        "digest": found.digest,
        "folder": found.folder,
    }
    emit_table(pa.Table.from_pylist([row]), fmt)
    return EXIT_OK
