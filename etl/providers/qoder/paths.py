"""Where are Qoder's project transcripts, and which paths are sessions?

Evidence: the roots and overrides are those of the CLI 1.1.76 that its SDK packages carry and of its own transcript
reader; the IDE roots come from user reports. Missing roots are normal.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from etl.providers.base import Claim, Root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etl.providers.base import Environment

#: A session id in a file name: dots are allowed (task-10f8….session.execution), separators and spaces are not.
_SID: Final = r"[A-Za-z0-9._-]+"
_FLAT: Final = re.compile(rf"^(?P<sid>{_SID})\.jsonl\Z")
_MAIN: Final = re.compile(rf"^(?P<slug>[^/]+)/(?P<sid>{_SID})\.jsonl\Z")
_TRANSCRIPT: Final = re.compile(rf"^(?P<slug>[^/]+)/transcript/(?P<sid>{_SID})\.jsonl\Z")
_SUBAGENT: Final = re.compile(
    rf"^(?P<slug>[^/]+)/(?P<parent>{_SID})/subagents/(?:[^/]+/)*agent-(?P<agent>{_SID})(?P<end>\.jsonl|\.meta\.json)\Z"
)
_SIDECAR: Final = re.compile(rf"^(?:[^/]+/)?(?P<sid>{_SID})-session\.json\Z")
_IGNORED: Final = ("ai-stats/",)

#: The folder of a realm's configuration below a home, and of the IDE's cache below the configuration folder.
_REALMS: Final[dict[str | None, str]] = {None: ".qoder", "cn": ".qoder-cn", "work": ".qoderwork"}
_IDE: Final = "SharedClientCache/cli/projects"
#: Anywhere in a path: the projects folder of a realm, for folders and files that the user names.
_MARKER: Final = re.compile(
    rf"(?:^|/)(?:(?P<config>\.qoder|\.qoder-cn|\.qoderwork)/projects|Qoder(?:CN)?/{_IDE})/(?P<rest>.+)\Z"
)
_OVERRIDES: Final[dict[str | None, tuple[str, str]]] = {
    None: ("QODER_CONFIG_DIR", "QODER_CLI_HOME"),
    "cn": ("QODERCN_CONFIG_DIR", "QODERCN_CLI_HOME"),
}


def roots(environment: Environment) -> Sequence[Root]:
    """The default roots: three realms of the CLI and the IDE's cache, with their environment overrides."""
    found = list(_cli_roots(environment))
    found += [Root(path, environment.home, "qoder_ide", "ide") for path in _ide_roots(environment)]
    return found


def _cli_roots(environment: Environment) -> Iterator[Root]:
    home, variables = environment.home, environment.variables
    for realm, folder in _REALMS.items():
        kind = f"qoder_{realm or 'cli'}"
        config_dir, cli_home = (variables.get(name) for name in _OVERRIDES.get(realm, ("", "")))
        projects_dir = variables.get("QODER_PROJECTS_DIR") if realm is None else None
        if projects_dir:
            yield Root(projects_dir, projects_dir, kind, realm)
        elif config_dir:
            yield Root(f"{config_dir}/projects", config_dir, kind, realm)
        else:
            base = cli_home or home
            yield Root(f"{base}/{folder}/projects", base, kind, realm)


def _ide_roots(environment: Environment) -> Iterator[str]:
    home, variables = environment.home, environment.variables
    if environment.system == "darwin":
        config = f"{home}/Library/Application Support"
    elif environment.system == "win32":
        config = variables.get("APPDATA") or f"{home}/AppData/Roaming"
    else:
        config = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for product in ("Qoder", "QoderCN"):
        yield f"{config}/{product}/{_IDE}"


def claim(root: Root, path: str) -> Claim | None:
    """The claim on a path below a root (forward slashes); None for what is not a session file.

    Below a folder that the user named (store kind ``any``) the projects folder is looked for in the whole path, and
    where there is none the grammar is tried on the path's last parts: the records must then confirm it.
    """
    if root.store_kind != "any":
        found = _claim_below(path)
        return None if found is None else replace(found, store_kind=root.store_kind, realm=root.realm)
    whole = f"{root.path}/{path}" if path else root.path
    marked = _MARKER.search(whole)
    if marked:
        found = _claim_below(marked["rest"])
        realm = next((r for r, folder in _REALMS.items() if folder == marked["config"]), "ide")
        return None if found is None else replace(found, realm=realm, store_kind=f"qoder_{realm or 'cli'}")
    parts = whole.split("/")
    for start in range(len(parts)):
        found = _claim_below("/".join(parts[start:]))
        if found is not None:
            return replace(found, certain=False)
    if path.endswith(".jsonl"):  # the name is none of ours, what stands in it may be
        return Claim("any", "jsonl", parts[-1].removesuffix(".jsonl"), certain=False, sniffed=True)
    return None


def _claim_below(path: str) -> Claim | None:
    """The grammar below a projects folder; the first form that fits wins."""
    if path.startswith(_IGNORED):
        return None
    if found := _SUBAGENT.match(path):
        kind = "jsonl" if found["end"] == ".jsonl" else "json"
        return Claim("qoder_cli", kind, f"agent-{found['agent']}", parent=found["parent"], agent=found["agent"])
    if found := _SIDECAR.match(path):
        return Claim("qoder_cli", "json", found["sid"])
    found = _MAIN.match(path) or _FLAT.match(path) or _TRANSCRIPT.match(path)
    if found is None or found["sid"].startswith("agent-") or found["sid"] in (".", ".."):
        return None
    if found.re is _MAIN and found["slug"] == "transcript":
        return None
    return Claim("qoder_cli", "jsonl", found["sid"])
