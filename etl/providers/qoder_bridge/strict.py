"""Is a text strict JSON, as the Bridge's own parser takes it?

The Bridge parses with ``JSON.parse``: duplicate keys and lone surrogates pass, NaN, trailing commas and anything after
the value do not. Nothing is repaired and nothing is tried twice in another form.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import orjson

#: What ``String.prototype.trim`` takes away: neither more (FS, NEL) nor less (byte order mark) than that.
SPACE: Final = (
    "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
#: A whole number of more digits becomes a double, as it does in JavaScript.
_DIGITS: Final = 19


def trim(text: str) -> str:
    """The text without white space around it, as JavaScript sees white space."""
    return text.strip(SPACE)


def parse_strict(text: str) -> tuple[Any, str | None]:
    """``(value, None)``, or ``(None, why not)``. Never raises."""
    try:
        return orjson.loads(text), None
    except orjson.JSONDecodeError:
        pass  # also what JSON.parse takes: lone surrogates, numbers that no double holds
    try:
        return _storable(json.loads(text, parse_constant=_refuse, parse_int=_whole)), None
    except json.JSONDecodeError as error:
        return None, f"{error.msg} at position {error.pos}"
    except ValueError as error:
        return None, str(error)
    except RecursionError:
        return None, "nested too deeply to be read"


def storable(text: str) -> str:
    """The text with lone surrogates as U+FFFD, as the Bridge cleans what it shows: no file or column can hold one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _storable(item) for key, item in value.items()}
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)
