"""Do the rules of structure hold that the import contracts in pyproject.toml cannot say?"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ETL = ROOT / "etl"
MODULES = sorted(ETL.rglob("*.py"))
# Not providers: the list of them, and what each is made of.
SHARED_BY_PROVIDERS = {"__init__", "base", "registry"}
MODULE_LINES = 400
FUNCTION_LINES = 60
ENGINES = {"duckdb", "polars", "pyarrow"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, tree: ast.AST) -> set[str]:
    """Every dotted name that a file imports, wherever it does so; `from a import b` counts as `a` and as `a.b`."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *((node.module,) if node.module else ())])
            names.update((base, *(f"{base}.{alias.name}" for alias in node.names)))
    return names


def provider_of(module: str) -> str | None:
    """The provider that a module is, or is part of."""
    parts = module.split(".")
    if parts[:2] != ["etl", "providers"] or len(parts) == 2 or parts[2] in SHARED_BY_PROVIDERS:
        return None
    return parts[2]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import etl.providers.b", {"etl.providers.b"}),
        ("from . import b", {"etl.providers", "etl.providers.b"}),
        ("from .b import x", {"etl.providers.b", "etl.providers.b.x"}),
        ("def f():\n    from etl.providers import b", {"etl.providers", "etl.providers.b"}),
        ("from ..errors import X", {"etl.errors", "etl.errors.X"}),
    ],
)
def test_imports_are_found_in_every_form(source: str, names: set[str]) -> None:
    assert imported(ETL / "providers/a.py", ast.parse(source)) == names


def test_providers_know_nothing_of_one_another() -> None:
    known = {path.stem if path.is_file() else path.name for path in (ETL / "providers").iterdir()}
    wrong = [
        f"{module_name(path)} imports {name}"
        for path in MODULES
        if (own := provider_of(module_name(path)))
        for name in imported(path, ast.parse(path.read_bytes()))
        if (other := provider_of(name)) in known and other != own
    ]

    assert wrong == []


def test_modules_and_functions_stay_small() -> None:
    wrong = []
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        if (lines := len(source.splitlines())) > MODULE_LINES:
            wrong.append(f"{module_name(path)}: {lines} lines")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                length = node.end_lineno - node.lineno + 1
                if length > FUNCTION_LINES:
                    wrong.append(f"{module_name(path)}.{node.name}: {length} lines")

    assert wrong == []


def test_every_module_says_which_question_it_answers() -> None:
    first_lines = {module_name(path): ast.get_docstring(ast.parse(path.read_bytes())) for path in MODULES}

    assert [name for name, doc in first_lines.items() if "?" not in (doc or "").partition("\n")[0]] == []


def test_the_checkout_holds_no_second_copy_of_what_ships() -> None:
    assert [name for name in ("sql", "demo") if (ETL / name).is_dir()] == []


def loaded(*args: str) -> set[str]:
    """The top-level packages that a Python process imports, by its own account."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *args], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = (line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {name.partition(".")[0] for name in names}


def test_what_a_process_loads_is_seen() -> None:
    assert ENGINES & loaded("-c", "import pyarrow") == {"pyarrow"}


@pytest.mark.skipif(not any((ETL / name).exists() for name in ("cli", "cli.py")), reason="there is no command line yet")
def test_help_loads_no_engine() -> None:
    seen = loaded("-m", "etl", "--help")

    assert "click" in seen
    assert ENGINES & seen == set()
