"""Which providers are there?

Built-in ones are listed by module; others come by the entry point ``etl.providers`` (an object that is a
``etl.providers.base.Provider``). A module is imported only when its provider is asked for.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from etl.errors import UsageError
from etl.providers.base import Provider

_BUILT_IN: Final[dict[str, str]] = {
    "claude_code": "etl.providers.claude_code",
    "codex": "etl.providers.codex",
    "muse": "etl.providers.muse",
    "qoder": "etl.providers.qoder",
    "qoder_bridge": "etl.providers.qoder_bridge",
}


def names() -> tuple[str, ...]:
    """The names of all providers, sorted."""
    return tuple(sorted({*_BUILT_IN, *(entry.name for entry in entry_points(group="etl.providers"))}))


def get(name: str) -> Provider:
    """The provider of a name. Raises UsageError, naming the nearest known one, when there is none."""
    if name in _BUILT_IN:
        found = import_module(_BUILT_IN[name]).PROVIDER
    else:
        matching = [entry for entry in entry_points(group="etl.providers") if entry.name == name]
        if not matching:
            near = get_close_matches(name, names(), 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(names())}"
            raise UsageError(f"there is no provider {name!r}{hint}")
        found = matching[0].load()
    if not isinstance(found, Provider):
        raise UsageError(f"the provider {name!r} is no etl.providers.base.Provider")
    return found
