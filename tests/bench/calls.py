"""What do generated tool calls ask for, and what do Qoder's tools answer?

Names, arguments and ``toolUseResult`` are those of qodercli 1.1.28, 1.1.52 and 1.1.76: the output of a command stands
twice in its record, a written file's content three times in the transcript.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.bench.draw import Draw, Json

#: Tool and how often it is called, of 100.
_SHARES: Final = {
    "Bash": 34, "Read": 26, "Edit": 14, "Grep": 9, "Glob": 4, "Write": 4, "TodoWrite": 4, "Agent": 2,
    "mcp__browser__navigate": 2, "WebFetch": 1,
}  # fmt: skip
_NAMES: Final = tuple(_SHARES)
_WEIGHTS: Final = tuple(_SHARES.values())
REFUSED: Final = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file)."
)


def tool(draw: Draw, *, spawns: bool = True) -> str:
    """The name of a tool; a sub-agent starts no other (``spawns`` false)."""
    name = draw.random.choices(_NAMES, _WEIGHTS)[0]
    return name if spawns or name != "Agent" else "Read"


def arguments(draw: Draw, name: str, cwd: str) -> Json:  # noqa: PLR0911 - one per tool
    """The arguments of a call."""
    path = f"{cwd}/src/module_{draw.below(99):02d}.py"
    match name:
        case "Bash":
            return {"command": draw.prose(20, 3000, 4.5, 1), "description": draw.text(40)}
        case "Read":
            return {"file_path": path}
        case "Edit":
            old, new = draw.prose(20, 4000, 5.5, 1), draw.prose(20, 6000, 5.8, 1)
            return {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
        case "Write":
            return {"file_path": path, "content": draw.prose(200, 30_000, 7.5, 1)}
        case "Grep":
            return {"pattern": draw.text(20), "path": f"{cwd}/src", "output_mode": "content", "-n": True}
        case "Glob":
            return {"pattern": "src/**/*.py"}
        case "TodoWrite":
            todos = [{"content": draw.text(40), "status": "pending"} for _ in range(1 + draw.below(6))]
            return {"todos": todos}
        case "Agent":
            kind = "Explore" if draw.chance(0.5) else "general-purpose"
            return {"subagent_type": kind, "description": draw.text(30), "prompt": draw.prose(200, 6000, 6.5, 0.8)}
        case "WebFetch":
            return {"url": f"https://docs.example.org/{draw.hex(8)}", "prompt": draw.text(80)}
        case _:
            return {"url": f"https://app.example.org/{draw.hex(8)}"}


def outcome(  # noqa: PLR0911 - one per tool
    draw: Draw, name: str, given: Json, *, failed: bool
) -> tuple[str | list[Json], Json]:
    """Content of the result item, and the record's ``toolUseResult``."""
    if failed and name != "Bash":
        kind = "file_not_found" if name == "Read" else "tool_error"
        return "File does not exist." if name == "Read" else draw.text(120), {"errorType": kind, "isHardFailure": False}
    path = given.get("file_path")
    match name:
        case "Bash":
            return _shell(draw, failed=failed)
        case "Read":
            text = draw.output()
            lines = text.count("\n") + 1
            file = {"filePath": path, "numLines": lines, "startLine": 1, "totalLines": lines}
            return text, {"type": "text", "file": file}
        case "Edit":
            changed = {"oldString": given["old_string"], "newString": given["new_string"]}
            return f"The file {path} has been updated.", {"filePath": path, **changed, "userModified": False}
        case "Write":
            made = {"content": given["content"], "structuredPatch": [], "originalFile": None}
            return f"File created successfully at: {path}", {"type": "create", "filePath": path, **made}
        case "Grep":
            text = draw.output()
            return text, {"mode": "content", "numLines": text.count("\n") + 1}
        case "Glob":
            names = [f"src/module_{draw.below(99):02d}.py" for _ in range(1 + draw.below(30))]
            return "\n".join(names), {"filenames": names, "truncated": False}
        case "TodoWrite":
            return "Todos have been modified successfully.", {"oldTodos": [], "newTodos": given["todos"]}
        case "WebFetch":
            return draw.output(), {"code": 200, "codeText": "OK", "url": given["url"]}
        case _:
            return [{"type": "text", "text": draw.output()}], {"kind": "completed"}


def _shell(draw: Draw, *, failed: bool) -> tuple[str, Json]:
    text = draw.output()
    told: Json = {"kind": "completed", "telemetryExecutionId": draw.uuid(), "stdout": text, "stderr": ""}
    told |= {"exitCode": int(failed), "signal": None, "interrupted": False, "isImage": False}
    return text, told | ({"isError": True} if failed else {"noOutputExpected": False})
