"""Which price table is in force, is it whole, and how does it get into a store?

A table is a folder of ``prices.csv`` (what a million tokens cost), ``rules.csv`` (which model a name means) and
``provenance.json`` (what both were made of, with a digest of them). One ships in ``sql/prices``; ``sessionmart prices
--refresh`` writes another one into the user's data folder, which loads prefer. Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from etl.errors import UsageError
from etl.sqlfiles import sql_root

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

_FILES: Final = ("prices.csv", "rules.csv")
_PROVENANCE: Final = "provenance.json"
#: Everything is read as text; the columns of the table say what it is. One buffer is enough for a whole file.
_INSERT: Final = (
    "insert into mart.{table} by name select * from read_csv('{path}', header = true, all_varchar = true, "
    "auto_detect = false, delim = ',', quote = '\"', escape = '\"', nullstr = '', columns = {columns}, "
    "max_line_size = 65536, buffer_size = 1048576)"
)
_TABLES: Final = {"prices.csv": "prices", "rules.csv": "price_rules"}
TABLES: Final = (*_TABLES.values(), "price_list")


@dataclass(frozen=True, slots=True)
class PriceList:
    """Where a price table lies and what it was made of. ``digest`` is blake2b-128 hex of its two files."""

    folder: str
    source: str
    version: str
    licence: str
    digest: str


def shipped_prices() -> str:
    """The folder of the price table that ships with this version."""
    return str(sql_root() / "prices")


def read_price_list(folder: str | None = None) -> PriceList:
    """What the table in a folder is (None: the shipped one). Raises UsageError when it is not whole: a torn table must
    not give wrong money.
    """
    place = Path(folder or shipped_prices())
    try:
        said = orjson.loads((place / _PROVENANCE).read_bytes())
        contents = {name: (place / name).read_bytes() for name in _FILES}
        found = PriceList(str(place), str(said["source"]), str(said["version"]), str(said["licence"]), said["digest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"the price table in {place} cannot be read ({error}); {_REMEDY}") from error
    if found.digest != digest_of(contents):
        raise UsageError(f"the price table in {place} is not what its provenance says; {_REMEDY}")
    return found


_REMEDY: Final = "`sessionmart prices --refresh` makes a new one, without the folder the shipped one counts"


def digest_of(contents: Mapping[str, bytes]) -> str:
    """What stands for the contents of a table: equal digests, equal costs."""
    digest = hashlib.blake2b(digest_size=16)
    for name in _FILES:
        digest.update(len(contents[name]).to_bytes(8, "big"))
        digest.update(contents[name])
    return digest.hexdigest()


def write_price_list(folder: str, contents: Mapping[str, bytes], source: str, version: str, licence: str) -> PriceList:
    """Puts a table into a folder, in place of what is there, and reads it back."""
    place = Path(folder)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = PriceList(folder, source, version, licence, digest_of(contents))
    said = {name: value for name, value in asdict(made).items() if name != "folder"}
    with tempfile.TemporaryDirectory(prefix=".prices-", dir=place.parent) as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        for name in _FILES:
            (new / name).write_bytes(contents[name])
        (new / _PROVENANCE).write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n")
        for kept in place.glob("LICENSE*") if place.is_dir() else ():
            shutil.copyfile(kept, new / kept.name)
        if place.exists():
            os.rename(place, Path(scratch) / "old")  # noqa: PTH104 - the same call twice, side by side
        os.rename(new, place)  # noqa: PTH104
    return read_price_list(folder)


def fill(connection: duckdb.DuckDBPyConnection, prices: PriceList) -> None:
    """Puts a price table into the empty tables of the current catalog."""
    for name, table in _TABLES.items():
        path = Path(prices.folder) / name
        with path.open(encoding="utf-8") as file:
            columns = file.readline().strip().split(",")
        types = "{" + ", ".join(f"'{column}': 'VARCHAR'" for column in columns) + "}"
        connection.execute(_INSERT.format(table=table, path=str(path).replace("'", "''"), columns=types))
    connection.execute(
        "insert into mart.price_list by name select ? as digest, ? as source, ? as version, ? as licence",
        [prices.digest, prices.source, prices.version, prices.licence],
    )
