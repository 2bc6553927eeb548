"""Does .ci/bootstrap make, keep and repair .venv, and refuse a Python that will not do in one sentence?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Runs the real Python with the changes of `before`; bootstrap only ever asks it with -c.
STUB = """\
#!/bin/sh
[ "$1" = -c ] || exit 99
exec '{python}' -c '
import sys
{before}
exec(sys.argv[1])
' "$2"
"""
OLD = 'sys.version_info = (3, 8, 18, "final", 0)'
BARE = 'sys.version_info = (3, 12, 1, "final", 0); sys.modules["ensurepip"] = None'

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "{version}"
optional-dependencies.dev = []
"""
# A build backend without dependencies, so that pip needs no network: an editable wheel holding nothing but a name.
BACKEND = """
import tomllib, zipfile

def build_editable(directory, config_settings=None, metadata_directory=None):
    with open("pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    info, name = f"tiny-{version}.dist-info", f"tiny-{version}-py3-none-any.whl"
    meta = f"Metadata-Version: 2.1\\nName: tiny\\nVersion: {version}\\nProvides-Extra: dev\\n"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", meta)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", f"{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n")
    return name
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "a folder with spaces"
    (place / ".ci").mkdir(parents=True)
    shutil.copy2(ROOT / ".ci/bootstrap", place / ".ci/bootstrap")
    (place / "pyproject.toml").write_text(PYPROJECT.format(version="1"), encoding="utf-8")
    (place / "backend.py").write_text(BACKEND, encoding="utf-8")
    return place


def stub(path: Path, before: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(STUB.format(python=sys.executable, before=before), encoding="utf-8")
    path.chmod(0o755)
    return path


def bootstrap(checkout: Path, *args: str, shell: str = "sh", **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHON", "VIRTUAL_ENV"}}
    return subprocess.run(
        [shutil.which(shell) or shell, ".ci/bootstrap", *args],
        cwd=checkout,
        env={**clean, "PIP_NO_INDEX": "1", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str], checkout: Path) -> str:
    """The one line a refusal wrote."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert not (checkout / ".venv").exists()
    return done.stderr


def test_a_python_that_is_too_old_is_named(checkout: Path) -> None:
    python = stub(checkout / "bin/python3", OLD)

    line = refused(bootstrap(checkout, PYTHON=str(python)), checkout)

    assert f"needs Python 3.11 or newer, and {python} is 3.8.18" in line


def test_a_real_old_python_understands_the_question(checkout: Path) -> None:
    names = ("python2", "python2.7", "python3.8", "python3.9", "python3.10")
    there = [path for path in map(shutil.which, names) if path]
    runs = [
        path for path in there if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    ]
    if not runs:
        pytest.skip("no Python older than 3.11 here")

    assert f"needs Python 3.11 or newer, and {runs[0]} is " in refused(bootstrap(checkout, PYTHON=runs[0]), checkout)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_a_python_without_venv_is_named(checkout: Path, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    python = stub(checkout / "bin/python3", BARE)

    line = refused(bootstrap(checkout, shell=shell, PYTHON=str(python)), checkout)

    assert f"modules venv and ensurepip, and {python} (3.12.1) lacks them" in line


def test_a_python_that_does_not_exist_is_named(checkout: Path) -> None:
    assert "/no/python does not run" in refused(bootstrap(checkout, PYTHON="/no/python"), checkout)


def test_all_pythons_in_the_path_are_tried(checkout: Path) -> None:
    """With dirname and cksum as the only other commands, nothing but the stubs can be found."""
    for tool in ("dirname", "cksum", "cat", "rm"):
        (checkout / "bin").mkdir(exist_ok=True)
        (checkout / "bin" / tool).symlink_to(shutil.which(tool) or "/nowhere")
    path = str(checkout / "bin")

    assert "python3 does not run" in refused(bootstrap(checkout, PATH=path), checkout)

    stub(checkout / "bin/python3", OLD)
    assert "python3 is 3.8.18" in refused(bootstrap(checkout, PATH=path), checkout)

    stub(checkout / "bin/python3.12", BARE)
    assert "python3.12 (3.12.1) lacks them" in refused(bootstrap(checkout, PATH=path), checkout)

    stub(checkout / "bin/python3.11", "")
    done = bootstrap(checkout, PATH=path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "Could not make .venv with python3.11: see above.")


@pytest.mark.slow
def test_an_environment_is_repaired_kept_and_renewed(checkout: Path) -> None:
    """One story, because making an environment takes most of ten seconds."""
    venv = checkout / ".venv"
    stamp = venv / "bootstrap.stamp"

    def run(*args: str) -> str:
        done = bootstrap(checkout, *args, PYTHON=sys.executable)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return done.stderr.partition(" into")[0]

    def installed() -> list[str]:
        return sorted(path.name for path in venv.glob("lib/python3*/site-packages/tiny-*.dist-info"))

    # What an interrupted run leaves: a Python that works, no stamp, and half of what there should be.
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(sys.executable)
    (venv / "half").touch()
    assert (run(), installed()) == ("Installing", ["tiny-1.dist-info"])
    assert not (venv / "half").exists()
    made = (venv / "pyvenv.cfg").stat().st_ino

    assert run() == ""  # nothing changed
    assert run("dev") == "Installing"  # more is needed
    assert run() == ""  # less is needed

    (checkout / "pyproject.toml").write_text(PYPROJECT.format(version="2"), encoding="utf-8")
    assert (run(), installed()) == ("Installing", ["tiny-2.dist-info"])
    assert (venv / "pyvenv.cfg").stat().st_ino == made  # in the same environment

    # A failed installation is not mistaken for a finished one.
    (checkout / "pyproject.toml").write_text(PYPROJECT.format(version="3"), encoding="utf-8")
    (checkout / "backend.py").write_text("raise SystemExit('EXAMPLE failure')", encoding="utf-8")
    done = bootstrap(checkout, PYTHON=sys.executable)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Could not install what pyproject.toml names: see above."
    assert not stamp.exists()
