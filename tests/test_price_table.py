"""Is the price table that ships whole, and does refreshing make another one that a load can use?"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from etl.errors import UsageError
from etl.genaiprices import price_tables
from etl.prices import digest_of, read_price_list, shipped_prices, write_price_list

if TYPE_CHECKING:
    from collections.abc import Mapping


def _contents(folder: str) -> dict[str, bytes]:
    return {name: (Path(folder) / name).read_bytes() for name in ("prices.csv", "rules.csv")}


def test_the_shipped_table_is_what_its_provenance_says() -> None:
    found = read_price_list()
    assert (found.source, found.licence) == ("genai-prices", "MIT")
    assert found.digest == digest_of(_contents(shipped_prices()))
    assert "MIT License" in (Path(shipped_prices()) / "LICENSE-genai-prices").read_text()


def test_rows_of_a_model_are_told_apart_by_their_id() -> None:
    with (Path(shipped_prices()) / "prices.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["price_id"] for row in csv.DictReader(file)]
    assert len(ids) > 100
    assert len(ids) == len(set(ids))


def test_a_torn_table_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path / "prices")
    write_price_list(folder, _contents(shipped_prices()), "test", "1", "none")
    with (Path(folder) / "prices.csv").open("ab") as file:
        file.truncate(1000)
    with pytest.raises(UsageError, match="not what its provenance says"):
        read_price_list(folder)
    (Path(folder) / "rules.csv").unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        read_price_list(folder)


def test_the_installed_package_gives_the_same_table_twice() -> None:
    first, version = price_tables()
    assert version
    assert price_tables() == (first, version)
    assert b"anthropic/claude" in first["prices.csv"]


def test_the_command_refreshes_and_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    before = _run(environment, "prices", "--format", "csv")
    made = _run(environment, "prices", "--refresh", "--format", "csv")
    after = _run(environment, "prices", "--format", "csv")
    folders = [next(csv.DictReader(text.splitlines()))["folder"] for text in (before, made, after)]
    assert folders[0] == shipped_prices()
    assert folders[1] == folders[2]
    assert folders[1].startswith(str(tmp_path))


def test_refreshing_without_the_package_says_what_to_do(tmp_path: Path) -> None:
    shadow = tmp_path / "shadow" / "genai_prices"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    places = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": str(shadow.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "etl", "prices", "--refresh"],
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "genai-prices is not installed: `pip install -U genai-prices`" in done.stderr
    assert not (tmp_path / "data").exists()


def _run(environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "etl", *arguments], env=dict(environment), capture_output=True, text=True, check=True
    )
    return done.stdout
