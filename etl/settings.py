"""What may a user set, and how does it get into a store?

``config.toml`` in the user's configuration folder; ``--config`` and ``SESSIONMART_CONFIG`` name another file::

    human_wait_minutes = 10     # a call that only its records time waited for a person when it took so long

    [projects]                  # project of a folder and all below it, or of a git remote
    "/home/dev/old-name" = "shop"
    "github.com/acme/shop" = "shop"

What stands here is stored with the sessions: the same files and settings give the same store anywhere.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from etl.errors import UsageError

if TYPE_CHECKING:
    import duckdb

TABLES: Final = ("settings", "project_names")
_MINUTE_US: Final = 60_000_000
_DEFAULT_MINUTES: Final = 10
#: More than an hour would leave calls of more than an hour without a word on why.
_MINUTES: Final = (1, 60)
_KNOWN: Final = ("human_wait_minutes", "projects")
_FOLDER: Final = re.compile(r"[/\\]|~/|[A-Za-z]:[/\\]")


@dataclass(frozen=True, slots=True)
class Settings:
    """``human_wait_us``: microseconds from which a call that only its records time is suspected to have waited for a
    person. ``projects``: (kind, place, project), kind ``folder`` or ``remote``, sorted.
    """

    human_wait_us: int = _DEFAULT_MINUTES * _MINUTE_US
    projects: tuple[tuple[str, str, str], ...] = ()

    @property
    def digest(self) -> str:
        """What stands for the settings: equal digests, equal stores. blake2b-128, hex."""
        told = orjson.dumps([self.human_wait_us, self.projects])
        return hashlib.blake2b(told, digest_size=16).hexdigest()


def read_settings(path: str, home: str, *, is_named: bool = False) -> Settings:
    """The settings of a file; the defaults when there is none (unless the user named it). ``~/`` is ``home``. Raises
    UsageError for what is no TOML, a key nobody knows, or a value that makes no sense.
    """
    try:
        stated = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if is_named:
            raise UsageError(f"there is no configuration at {path}") from error
        return Settings()
    except (OSError, ValueError) as error:  # no TOML, no UTF-8, a folder
        raise UsageError(f"{path} cannot be read: {error}") from error
    for name in stated:
        if name not in _KNOWN:
            near = get_close_matches(name, _KNOWN, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_KNOWN)}"
            raise UsageError(f"{path}: there is no setting {name!r}; {hint}")
    minutes = stated.get("human_wait_minutes", _DEFAULT_MINUTES)
    return Settings(_minutes(minutes, path), _projects(stated.get("projects", {}), home, path))


def _minutes(value: Any, path: str) -> int:
    low, high = _MINUTES
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise UsageError(f"{path}: human_wait_minutes is a number from {low} to {high}, not {value!r}")
    return round(value * _MINUTE_US)


def _projects(stated: Any, home: str, path: str) -> tuple[tuple[str, str, str], ...]:
    if not isinstance(stated, dict):
        raise UsageError(f"{path}: [projects] is a table of folder or git remote = name")
    named: dict[tuple[str, str], str] = {}
    for place, project in stated.items():
        if not isinstance(project, str) or not project.strip() or not place.strip("/\\ "):
            raise UsageError(f"{path}: [projects] {place!r} is to be a name, not {project!r}")
        if not _FOLDER.match(place):
            named["remote", place] = project
            continue
        whole = f"{home}/{place[2:]}" if place.startswith("~/") else place
        named["folder", whole.rstrip("/\\")] = project
    return tuple(sorted((kind, place, project) for (kind, place), project in named.items()))


def fill_settings(connection: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Puts settings into the empty tables of the current catalog."""
    rows = [("human_wait_us", str(settings.human_wait_us)), ("digest", settings.digest)]
    connection.executemany("insert into mart.settings by name select ? as name, ? as value", rows)
    if settings.projects:
        connection.executemany(
            "insert into mart.project_names by name select ? as kind, ? as place, ? as project", settings.projects
        )
