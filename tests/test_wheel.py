"""Does an installed sessionmart carry its SQL and its example tree, whichever way it was built?"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SQL = ROOT / "sql"
DEMO = ROOT / "fixtures/demo"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DEMO.is_dir(), reason="there is no example tree yet"),
]


def files(top: Path) -> set[str]:
    return {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}


def build(source: Path, target: str, into: Path) -> Path:
    """Build with the installed hatchling, without a fresh environment or the network."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)],
        cwd=source,
        capture_output=True,
        text=True,
        check=True,
    )
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    packed = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    place = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")
    (top,) = place.iterdir()
    return top


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(ROOT, "wheel", tmp_path_factory.mktemp("wheel")))


def below(wheel: zipfile.ZipFile, top: str) -> set[str]:
    return {name.removeprefix(top) for name in wheel.namelist() if name.startswith(top)}


def test_the_wheel_holds_the_sql_and_the_example_tree(wheel: zipfile.ZipFile) -> None:
    assert below(wheel, "etl/sql/") == files(SQL)
    assert below(wheel, "etl/demo/") == files(DEMO)
    assert any(name.startswith(".") for name in below(wheel, "etl/demo/"))  # sessions live in dot-directories
    for name in files(DEMO):
        assert wheel.read(f"etl/demo/{name}") == (DEMO / name).read_bytes()


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}

    assert tops == {"etl", "sessionmart-0.1.0.dist-info"}
    assert "etl/py.typed" in wheel.namelist()
    assert b"sessionmart = etl.__main__:main" in wheel.read("sessionmart-0.1.0.dist-info/entry_points.txt")


def test_the_source_distribution_holds_what_building_and_testing_need(sdist: Path) -> None:
    assert files(sdist / "fixtures") == files(ROOT / "fixtures")
    assert files(sdist / "sql") == files(SQL)
    assert (sdist / "tests" / Path(__file__).name).is_file()
    for name in (".ci/bootstrap", "Makefile", "README.md", "LICENSE", "CHANGELOG.md"):
        assert (sdist / name).is_file(), name


def test_a_wheel_of_the_source_distribution_is_the_same(sdist: Path, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    again = zipfile.ZipFile(build(sdist, "wheel", tmp_path))

    assert {i.filename: i.CRC for i in again.infolist()} == {i.filename: i.CRC for i in wheel.infolist()}


def test_an_installed_wheel_finds_what_it_carries(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)  # noqa: S202 - it was built a moment ago
    code = "from etl.sqlfiles import shipped, sql_root; print(sql_root(), shipped('demo', 'fixtures/demo'), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [str(tmp_path / "etl/sql"), str(tmp_path / "etl/demo")]
