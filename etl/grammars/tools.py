"""What does a tool call touch, as far as its name and arguments say?

Names are brought to one vocabulary (that of Claude Code and Qoder: Bash, Read, Edit, …) by the provider's own map; the
raw name is kept beside it. ``mcp__server__tool`` names split into server and tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.events import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATH_KEYS: Final = ("file_path", "filePath", "notebook_path", "path", "target_file", "absolute_path")
_COMMAND_KEYS: Final = ("command", "cmd", "script")
#: What a tool does to the path it names (column ``op`` of files_touched).
_OPS: Final[dict[str, str]] = {
    "Read": "read",
    "NotebookRead": "read",
    "Write": "write",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Delete": "delete",
    "LS": "list",
    "Glob": "list",
    "Grep": "list",
}


class ToolDescription(NamedTuple):
    """Name, server, path and command of one call; ``files`` are (path, op). The command is cut after masking."""

    name: str
    mcp_server: str | None = None
    target_path: str | None = None
    command_head: str | None = None
    files: tuple[tuple[str, str], ...] = ()


def describe(name_raw: str, args: Any, vocabulary: Mapping[str, str]) -> ToolDescription:
    """What a call touches. Anything the arguments do not state as a plain string is None."""
    server, name = split_mcp(name_raw)
    name = vocabulary.get(name, name)
    if not isinstance(args, dict):
        return ToolDescription(name, server)
    path = _first(args, _PATH_KEYS)
    command = _first(args, _COMMAND_KEYS)
    op = _OPS.get(name) if server is None else None
    return ToolDescription(
        name,
        server,
        path,
        command,
        ((path, op),) if path and op else (),
    )


def tool_request(
    block: int | None,
    call_id: str | None,
    name_raw: str,
    args: Any,
    vocabulary: Mapping[str, str],
    *,
    args_parse_ok: bool = True,
    batch_key: str | None = None,
) -> ToolRequest:
    """The request of a call, with what :func:`describe` says it touches."""
    told = describe(name_raw, args, vocabulary)
    return ToolRequest(
        block,
        call_id,
        name_raw,
        told.name,
        args,
        args_parse_ok,
        told.mcp_server,
        told.target_path,
        told.command_head,
        told.files,
        batch_key=batch_key,
    )


def split_mcp(name: str) -> tuple[str | None, str]:
    """``mcp__browser__navigate`` is tool ``navigate`` of server ``browser``; other names have no server."""
    if not name.startswith("mcp__"):
        return None, name
    parts = name.split("__", 2)
    if len(parts) == 3 and parts[1] and parts[2]:
        return parts[1], parts[2]
    return None, name


def _first(args: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        found = args.get(key)
        if found and isinstance(found, str):
            return found
    return None
