"""Where are Qoder's stores, and which paths in them are session files?

Evidence: the roots and overrides are those of the CLI 1.1.76 that its SDK packages carry and of its own transcript
reader; the IDE roots come from user reports. Missing roots are normal. ``stores`` has the grammar of each store.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from etl.providers.base import Claim, Root
from etl.providers.qoder.stores import CACHE, STORES, claim_in_projects, claim_in_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etl.providers.base import Environment

#: The folder of a realm's configuration below a home, and of the IDE's cache below the configuration folder.
_REALMS: Final[dict[str | None, str]] = {None: ".qoder", "cn": ".qoder-cn", "work": ".qoderwork"}
_IDE: Final = "SharedClientCache/cli/projects"
_IDE_DB: Final = "SharedClientCache/cache/db"
#: Anywhere in a path: a store of a realm or of the IDE, for folders and files that the user names.
_MARKER: Final = re.compile(
    r"(?:^|/)(?:(?P<config>\.qoder|\.qoder-cn|\.qoderwork)/(?P<store>projects|logs|audit|sessions|cache)"
    rf"|Qoder(?:CN)?/{_IDE}|(?P<db>{_IDE_DB}))/(?P<rest>.+)\Z"
)
_OVERRIDES: Final[dict[str | None, tuple[str, str]]] = {
    None: ("QODER_CONFIG_DIR", "QODER_CLI_HOME"),
    "cn": ("QODERCN_CONFIG_DIR", "QODERCN_CLI_HOME"),
}


def roots(environment: Environment) -> Sequence[Root]:
    """The default roots: the stores of three realms of the CLI and of the IDE, with their environment overrides.

    The cache is none of them: its ids are unique per project only and it has neither times nor tools. Who wants it
    names it (``--root qoder=~/.qoder/cache``).
    """
    found = list(_cli_roots(environment))
    for config in _ide_configs(environment):
        found.append(Root(f"{config}/{_IDE}", environment.home, "qoder_ide", "ide"))
        found.append(Root(f"{config}/{_IDE_DB}", environment.home, "qoder_ide_db", "ide"))
    return found


def _cli_roots(environment: Environment) -> Iterator[Root]:
    home, variables = environment.home, environment.variables
    for realm, folder in _REALMS.items():
        kind = f"qoder_{realm or 'cli'}"
        config_dir, cli_home = (variables.get(name) for name in _OVERRIDES.get(realm, ("", "")))
        projects_dir = variables.get("QODER_PROJECTS_DIR") if realm is None else None
        base = config_dir or cli_home or home
        config = config_dir or f"{base}/{folder}"
        if projects_dir:
            yield Root(projects_dir, projects_dir, kind, realm)
        else:
            yield Root(f"{config}/projects", base, kind, realm)
        for store, store_kind in STORES.items():
            if store_kind != CACHE:
                yield Root(f"{config}/{store}", base, store_kind, realm)


def _ide_configs(environment: Environment) -> Iterator[str]:
    home, variables = environment.home, environment.variables
    if environment.system == "darwin":
        config = f"{home}/Library/Application Support"
    elif environment.system == "win32":
        config = variables.get("APPDATA") or f"{home}/AppData/Roaming"
    else:
        config = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for product in ("Qoder", "QoderCN"):
        yield f"{config}/{product}"


def claim(root: Root, path: str) -> Claim | None:
    """The claim on a path below a root (forward slashes); None for what is not a session file.

    Below a folder that the user named (store kind ``any``) a store's folder is looked for in the whole path, and where
    there is none the grammar is tried on the path's last parts: the records must then confirm it.
    """
    if root.store_kind != "any":
        found = claim_in_store(root.store_kind, path)
        return None if found is None else replace(found, realm=root.realm)
    whole = f"{root.path}/{path}" if path else root.path
    marked = _MARKER.search(whole)
    if marked:
        return _claim_marked(marked, root)
    if "/conversation-history/" in whole:  # a cache that was copied away from its place
        return _claim_cache(whole.partition("/conversation-history/")[2], root)
    parts = whole.split("/")
    for start in range(len(parts)):
        found = _claim_tail("/".join(parts[start:]))
        if found is not None:
            return replace(found, certain=False)
    if parts[-1] == "local.db":  # its tables must confirm it
        return Claim("qoder_ide_db", "sqlite", "local", realm="ide", certain=False, holds="many")
    if whole.endswith(".jsonl"):  # the name is none of ours, what stands in it may be
        return Claim("any", "jsonl", parts[-1].removesuffix(".jsonl"), certain=False, sniffed=True)
    return None


def _claim_marked(marked: re.Match[str], root: Root) -> Claim | None:
    realm = next((r for r, folder in _REALMS.items() if folder == marked["config"]), "ide")
    if marked["store"] == "cache" and not _names_cache(root.path):
        return None
    kind = "qoder_ide_db" if marked["db"] else STORES.get(marked["store"] or "", f"qoder_{realm or 'cli'}")
    found = claim_in_store(kind, marked["rest"])
    return None if found is None else replace(found, realm=realm)


def _names_cache(path: str) -> bool:
    """Did the user name the cache itself, or something in it?"""
    return re.search(r"/\.qoder(?:-cn|work)?/cache(?:/|\Z)|/conversation-history(?:/|\Z)", path) is not None


def _claim_cache(rest: str, root: Root) -> Claim | None:
    return claim_in_store(CACHE, f"projects/cache/conversation-history/{rest}") if _names_cache(root.path) else None


def _claim_tail(path: str) -> Claim | None:
    """A path without a store's folder in it: the last parts of a segment's path, or of a transcript's."""
    return claim_in_store("qoder_logs", path) or claim_in_projects(path, "qoder_cli")
