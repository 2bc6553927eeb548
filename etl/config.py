"""Where does sessionmart keep its store, its state and its settings on this machine?

XDG places through platformdirs; ``--db`` and ``SESSIONMART_DB`` win. Nothing is read at import.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_config_path, user_data_path, user_state_path

if TYPE_CHECKING:
    from collections.abc import Mapping

_APP = "sessionmart"


def store_path(named: str | None, variables: Mapping[str, str]) -> str:
    """The store: the path named, else ``SESSIONMART_DB``, else ``sessionmart.duckdb`` in the user's data folder."""
    chosen = named or variables.get("SESSIONMART_DB")
    return os.path.abspath(chosen) if chosen else str(user_data_path(_APP) / "sessionmart.duckdb")


def state_path() -> str:
    """The folder of ledgers and logs: what sessionmart knows of this machine's files, outside every store."""
    return str(user_state_path(_APP))


def settings_path(named: str | None, variables: Mapping[str, str]) -> tuple[str, bool]:
    """The user's settings, and did the user name the file: the path named, else ``SESSIONMART_CONFIG``, else
    ``config.toml`` in the user's configuration folder.
    """
    chosen = named or variables.get("SESSIONMART_CONFIG")
    return (os.path.abspath(chosen), True) if chosen else (str(user_config_path(_APP) / "config.toml"), False)


def price_folder() -> str:
    """The folder of the user's own price table, which loads prefer to the shipped one when it exists."""
    return str(user_data_path(_APP) / "prices")


def fingerprint_key() -> bytes:
    """The user's key for fingerprints of masked secrets; made on first use (0600). Sharing the file between hosts makes
    their fingerprints comparable.
    """
    path = Path(user_state_path(_APP)) / "fingerprint.key"
    try:
        return bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        key = secrets.token_bytes(32)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key.hex())
    return key
