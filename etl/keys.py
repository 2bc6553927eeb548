"""How are sources, sessions, facts and contents named, so that every load gives the same names?

Rows carry readable, deterministic keys: nothing here depends on the clock, on arrival order or on the machine.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import Final

_MASK: Final = (1 << 64) - 1
#: Odd 64-bit constants of the splitmix64 finaliser: a bijection, so two places of one source never meet.
MIX_A: Final = 0xBF58476D1CE4E5B9
MIX_B: Final = 0x94D049BB133111EB
#: A place inside a line is packed into one number: child, block (0: none), ordinal.
CHILD_SHIFT: Final = 40
BLOCK_SHIFT: Final = 20


def digest64(data: str | bytes) -> str:
    """blake2b-64 of a text (UTF-8) or bytes, 16 hex digits."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).hexdigest()


def relative_path(path: str) -> str:
    """A path below its root as stored: NFC, forward slashes (macOS hands out NFD; Qoder itself normalises so)."""
    return unicodedata.normalize("NFC", path.replace("\\", "/"))


def source_id(host: str, provider: str, realm: str | None, rel_path: str) -> str:
    """The name of one source: blake2b-64 hex of host, provider, realm and the path below its root."""
    return digest64("\x00".join((host, provider, realm or "", rel_path)))


def session_id(provider: str, realm: str | None, native: str) -> str:
    """``provider[.realm]:native``. The host is not in it: a home copied to another machine is the same session."""
    return f"{provider}.{realm}:{native}" if realm else f"{provider}:{native}"


def table_salt(source: str, table: str) -> int:
    """The 64-bit number that stands for one table of one source inside its fact ids."""
    return int(digest64(f"{source}\x00{table}"), 16)


def slot(child: int, block: int | None = None, ordinal: int = 0) -> int:
    """Child, block and ordinal of a row inside its line as one number, up to a million blocks and ordinals each."""
    return child << CHILD_SHIFT | (0 if block is None else block + 1) << BLOCK_SHIFT | ordinal


def fact_id(salt: int, line_no: int, slot_: int) -> int:
    """A deterministic UBIGINT for one row: integer mixing of its table's salt and its place.

    A cryptographic hash per row would cost 0.4 of a bare JSON parse (measured). ``etl.finish`` computes the same over
    whole columns; this is the definition.
    """
    return _mix(_mix(line_no ^ salt) ^ slot_)


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * MIX_A & _MASK
    x = (x ^ (x >> 27)) * MIX_B & _MASK
    return x ^ (x >> 31)
