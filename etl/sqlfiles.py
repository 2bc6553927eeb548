"""Which SQL ships with sessionmart, and what does each file say about what it makes?

Every statement stands below a header, the one place where a table, view, macro or check is described. The store's
``COMMENT ON`` and docs/tables.md are made from it::

    -- object: facts.dialogue           the name; `-- check: NAME` is short for `-- object: NAME` and `-- kind: check`
    -- kind: table                      one of KINDS
    -- grain: one row per readable block            (tables and views)
    -- needs: facts.sources, facts.records          (optional)
    -- severity: broken                             (checks: broken or finding)
    -- about: free text, and any further key: it
    --   goes on in lines indented by two more
    -- columns:
    --   source_id: the owning source file
    --   text: masked text, which
    --     goes on like this
    create table facts.dialogue (...);

A header ends at the first line that is no comment. Other comments may stand anywhere else. A resolve or migration step
may be several statements; anything else is one, so that none goes undescribed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from etl.errors import SessionmartError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

KINDS: Final = frozenset({"table", "view", "macro", "resolve", "check", "report", "migration"})
SEVERITIES: Final = frozenset({"broken", "finding"})
DOCUMENTED: Final = ("table", "view", "macro")

_ONE_STATEMENT: Final = KINDS - {"resolve", "migration"}
_START: Final = re.compile(rf"-- (object|{'|'.join(sorted(KINDS))}): ")
_KEY: Final = re.compile(r"-- ([a-z][a-z_]*):(?: +(.*))?")
_COLUMN: Final = re.compile(r"--   (\w+): +(.+)")
_CONTINUED: Final = re.compile(r"--   +(.+)")
_COLUMN_CONTINUED: Final = re.compile(r"--    +(.+)")
_NAME: Final = re.compile(r"\w+(?:[.-]\w+)*")
# What hides a semicolon: strings, quoted names, dollar quotes and comments.
_OPAQUE: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CREATE: Final = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(table|view|macro|function)\s+(?:if\s+not\s+exists\s+)?([\w.]+)",
    re.IGNORECASE,
)
_TABLE_MACRO: Final = re.compile(r"\)\s*as\s+table\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SqlObject:
    """One described piece of SQL. ``options`` holds the header keys that have no field of their own.

    ``columns`` are (name, meaning) in the order of the header; ``sql`` is the text below the header, semicolon
    included; ``path`` is the file's place below the SQL folder, with ``/``.
    """

    name: str
    kind: str
    grain: str
    about: str
    needs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    options: Mapping[str, str]
    sql: str
    path: str

    @property
    def schema(self) -> str:
        """The schema part of the name, ``main`` if it names none."""
        return self.name.rpartition(".")[0] or "main"


@dataclass(frozen=True, slots=True)
class _Line:
    path: str
    number: int
    text: str

    def refuse(self, why: str) -> NoReturn:
        raise SessionmartError(f"sql/{self.path}:{self.number}: {why}")


def shipped(packaged: str, checkout: str) -> Path:
    """Where a folder that ships beside the code is: inside the installed package, else in the checkout around it.

    An editable install has no copy inside the package (hatchling's force-include acts on built wheels only).

    Raises:
        SessionmartError: it is in neither place.
    """
    package = Path(__file__).parent
    for place in (package / packaged, package.parent / checkout):
        if place.is_dir():
            return place
    raise SessionmartError(f"the installation is incomplete: no folder {packaged!r} in {package}")


def sql_root() -> Path:
    """The folder that holds migrations, macros, views, resolve, checks and reports."""
    return shipped("sql", "sql")


def load_sql(folder: str, root: Path | None = None) -> list[SqlObject]:
    """Read the objects of one folder below ``root`` (default: ``sql_root()``), in the order of file names and places.

    Raises:
        SessionmartError: there is no such folder, or a header is wrong; the message names file and line.
    """
    place = (root or sql_root()) / folder
    if not place.is_dir():
        raise SessionmartError(f"no SQL folder {place}")
    seen: dict[tuple[str, str], str] = {}
    objects = []
    for file in sorted(place.glob("*.sql"), key=lambda path: path.name):
        lines = [_Line(f"{folder}/{file.name}", number, text) for number, text in _numbered(file)]
        for start, obj in _objects(lines):
            where = f"sql/{start.path}:{start.number}"
            if earlier := seen.get((obj.kind, obj.name)):
                start.refuse(f"{obj.kind} {obj.name} is described already, at {earlier}")
            seen[obj.kind, obj.name] = where
            objects.append(obj)
    return objects


def report_statement(name: str) -> str:
    """The SQL of a report by its name, without the semicolon. Raises LookupError when there is none."""
    found = [item.sql for item in load_sql("reports") if item.name == name]
    return found[0].rstrip().rstrip(";")


def comments(objects: Iterable[SqlObject]) -> list[str]:
    """``COMMENT ON`` statements for tables, views, macros and their columns; a migration's columns belong to its table.

    The forms are those DuckDB 2.0 has: table, view, column of either, macro, macro table; none for a schema, and none
    for the columns of a table macro, whose meanings are appended to its own comment.
    """
    statements = []
    for obj in objects:
        target = _quoted_name(obj)
        if obj.kind in DOCUMENTED:
            form = "macro table" if obj.kind == "macro" and _TABLE_MACRO.search(_bare(obj.sql)) else obj.kind
            statements.append(f"comment on {form} {target} is {_literal(_sentence(obj))};")
        if obj.kind in {"table", "view", "migration"}:
            statements += [f'comment on column {target}."{name}" is {_literal(text)};' for name, text in obj.columns]
    return statements


def tables_markdown(objects: Iterable[SqlObject], types: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The text of docs/tables.md: per schema, each object with its grain, its meaning and its columns.

    ``types`` maps an object's name to its (column, type) pairs in the order of the live store; a column that no header
    describes appears with an empty meaning. Objects without an entry show the columns of their header.
    """
    described = list(objects)
    added: dict[str, list[tuple[str, str]]] = {}
    for obj in described:
        if obj.kind == "migration":
            added.setdefault(obj.name, []).extend(obj.columns)
    parts = ["# Tables\n\nMade from the headers of the files in `sql/`; do not edit.\n"]
    shown = [obj for obj in described if obj.kind in DOCUMENTED]
    for schema in sorted({obj.schema for obj in shown}):
        parts.append(f"## {schema}\n")
        parts += [
            _object_markdown(obj, (*obj.columns, *added.get(obj.name, ())), types.get(obj.name))
            for obj in sorted(shown, key=lambda obj: obj.name)
            if obj.schema == schema
        ]
    if checks := sorted((obj for obj in described if obj.kind == "check"), key=lambda o: o.name):
        rows = [(f"`{obj.name}`", obj.options["severity"], obj.about) for obj in checks]
        parts.append("## Checks\n\n" + _grid(("check", "severity", "about"), rows))
    return "\n".join(parts)


def _numbered(file: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)


def _objects(lines: Sequence[_Line]) -> Iterator[tuple[_Line, SqlObject]]:
    """Cut a file at its headers."""
    starts = [index for index, line in enumerate(lines) if _START.match(line.text)]
    for line in lines[: starts[0] if starts else len(lines)]:
        if line.text.strip() and not line.text.startswith("--"):
            line.refuse("a statement without a header")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start], _object(lines[start:end])


def _object(lines: Sequence[_Line]) -> SqlObject:
    first = lines[0]
    length = next((n for n, line in enumerate(lines) if not line.text.startswith("--")), len(lines))
    keys, columns = _header(lines[:length])
    name, kind = _name_and_kind(first, keys)
    sql = "\n".join(line.text for line in lines[length:]).strip()
    about, grain = keys.pop("about", ""), keys.pop("grain", "")
    needs = tuple(word.strip() for word in keys.pop("needs", "").split(",") if word.strip())
    if not about:
        first.refuse(f"{kind} {name} has no about")
    if not grain and kind in {"table", "view"}:
        first.refuse(f"{kind} {name} has no grain")
    if (kind == "check") != ("severity" in keys) or keys.get("severity", "broken") not in SEVERITIES:
        first.refuse(f"{kind} {name}: a check, and nothing else, has a severity of {' or '.join(sorted(SEVERITIES))}")
    _refuse_wrong_statement(first, name, kind, sql)
    return SqlObject(name, kind, grain, about, needs, columns, keys, sql, first.path)


def _header(lines: Sequence[_Line]) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """The keys of a header and its column meanings, continuation lines joined by one space."""
    keys: dict[str, str] = {}
    columns: dict[str, str] = {}
    into, key = keys, ""
    for line in lines:
        text = line.text.rstrip()
        in_columns = into is columns or key == "columns"
        if found := _KEY.fullmatch(text) or (in_columns and _COLUMN.fullmatch(text)):
            into, key = columns if found.re is _COLUMN else keys, found[1]
            if key in into:
                line.refuse(f"{'column' if into is columns else 'key'} {key} is given twice")
            into[key] = found[2] or ""
        elif found := (_COLUMN_CONTINUED if in_columns else _CONTINUED).fullmatch(text):
            into[key] = f"{into[key]} {found[1]}".strip()
        else:
            line.refuse("neither a `-- key: text` line of a header nor the continuation of one")
    if keys.pop("columns", ""):
        lines[0].refuse("each column has a line of its own below `-- columns:`")
    return keys, tuple(columns.items())


def _name_and_kind(first: _Line, keys: dict[str, str]) -> tuple[str, str]:
    """Take name and kind out of the header: `object: NAME` with a kind, `object: KIND NAME`, or `KIND: NAME`."""
    start = next(iter(keys))
    name = keys.pop(start)
    said = [start] if start != "object" else []
    if start == "object" and " " in name:
        word, _, name = name.partition(" ")
        said.append(word)
    if "kind" in keys:
        said.append(keys.pop("kind"))
    for kind in said:
        if kind not in KINDS:
            first.refuse(f"unknown kind {kind!r}; there are {', '.join(sorted(KINDS))}")
    if not said:
        first.refuse(f"{name} has no kind")
    if len(set(said)) > 1:
        first.refuse(f"{name} is said to be a {said[0]} and a {said[1]}")
    if not _NAME.fullmatch(name):
        first.refuse(f"{name!r} is no name")
    return name, said[0]


def _refuse_wrong_statement(first: _Line, name: str, kind: str, sql: str) -> None:
    bare = _bare(sql).strip()
    if not bare:
        first.refuse(f"no statement follows the header of {name}")
    if not bare.endswith(";"):
        first.refuse(f"the statement of {name} does not end with a semicolon")
    if kind in _ONE_STATEMENT and bare.count(";") > 1:
        first.refuse(f"more than one statement below the header of {name}: each {kind} has its own")
    if kind not in DOCUMENTED:
        return
    made = _CREATE.match(bare)
    if not made or made[1].lower().replace("function", "macro") != kind or _full(made[2]) != _full(name):
        first.refuse(f"the statement below the header of {kind} {name} does not create it")


def _full(name: str) -> str:
    return name.lower() if "." in name else f"main.{name.lower()}"


def _bare(sql: str) -> str:
    """The statement with strings and comments blanked out."""
    return _OPAQUE.sub(" ", sql)


def _quoted_name(obj: SqlObject) -> str:
    return f'"{obj.schema}"."{obj.name.rpartition(".")[2]}"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sentence(obj: SqlObject) -> str:
    columns = "; ".join(f"{name}: {text}" for name, text in obj.columns) if obj.kind == "macro" else ""
    parts = (obj.about, obj.grain and f"Grain: {obj.grain}", columns and f"Columns: {columns}")
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _object_markdown(obj: SqlObject, columns: Sequence[tuple[str, str]], live: Sequence[tuple[str, str]] | None) -> str:
    meanings = dict(columns)
    typed = live if live is not None else [(name, "") for name in meanings]
    lines = [f"### {obj.name}\n", f"{obj.kind}{', ' + obj.grain if obj.grain else ''}\n", f"{obj.about}\n"]
    if typed:
        rows = [(f"`{name}`", kind, meanings.get(name, "")) for name, kind in typed]
        lines.append(_grid(("column", "type", "meaning"), rows))
    return "\n".join(lines)


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in body)
