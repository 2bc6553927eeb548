"""How are sources, sessions, facts and contents named, so that every load gives the same names?

Rows carry readable, deterministic keys: nothing here depends on the clock, on arrival order or on the machine.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import Final

_MASK: Final = (1 << 64) - 1
#: Odd 64-bit constants of the splitmix64 finaliser: a bijection, so two places of one source never meet.
_MIX_A: Final = 0xBF58476D1CE4E5B9
_MIX_B: Final = 0x94D049BB133111EB
_LINE_BITS, _CHILD_BITS, _BLOCK_BITS, _ORDINAL_BITS = 30, 12, 16, 6


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


def fact_id(salt: int, line_no: int, child: int = 0, block: int | None = None, ordinal: int = 0) -> int:
    """A deterministic UBIGINT for one row: integer mixing of its table's salt and its place.

    A cryptographic hash per row would cost 0.4 of a bare JSON parse (measured); this costs well under a microsecond.
    Places that do not fit the packed fields (more than 65,534 blocks in a line) take the slow hash.
    """
    slot = 0 if block is None else block + 1
    if line_no >> _LINE_BITS or child >> _CHILD_BITS or slot >> _BLOCK_BITS or ordinal >> _ORDINAL_BITS:
        return int(digest64(f"{salt}\x00{line_no}\x00{child}\x00{slot}\x00{ordinal}"), 16)
    x = (((line_no << _CHILD_BITS | child) << _BLOCK_BITS | slot) << _ORDINAL_BITS | ordinal) ^ salt
    x = (x ^ (x >> 30)) * _MIX_A & _MASK
    x = (x ^ (x >> 27)) * _MIX_B & _MASK
    return x ^ (x >> 31)
