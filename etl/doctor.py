"""What is wrong with this installation, or with this machine?

One probe a row. Nothing is changed: the two probes that write (can the state be written, can a file be renamed beside
the store) remove at once what they made. Engines are imported inside the probes, for one that cannot be is a finding.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Final

from etl.errors import NotAStore, StoreError, StoreMissing, StoreTooNew

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import Environment, Provider

PYTHON: Final = (3, 11)
PACKAGES: Final = ("duckdb", "pyarrow", "polars", "orjson")
#: A change works on a copy of the store, beside it.
_FREE_SHARE: Final = 2
#: The file that ``etl.config.fingerprint_key`` makes in the state folder; a test holds the two together.
_KEY_FILE: Final = "fingerprint.key"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Probe:
    """What one probe found: ``status`` is ok, warn or fail; ``advice`` says what to do, None when there is nothing."""

    name: str
    status: str
    found: str
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """What to look at: the store, the state folder, and where providers keep their sessions."""

    db: str
    state: str
    environment: Environment


def diagnose(place: Place) -> list[Probe]:
    """Every probe, in a fixed order. It raises nothing: what a probe stumbles over is its finding."""
    place = replace(place, db=os.path.realpath(place.db))  # as a load does: lock and .wal lie beside the file itself
    probes = [_python(sys.version_info[:2], place.environment.system)]
    probes += [_package(name) for name in PACKAGES]
    if all(probe.status != "fail" for probe in probes[1:]):
        probes += _store(place)
    return [
        *probes,
        _wal(place.db),
        _lock(place.db),
        _state(place.state),
        _key(place.state),
        *_providers(place.environment),
        _space(place.db),
        _rename(place.db),
    ]


def _python(version: tuple[int, ...], system: str) -> Probe:
    found = f"{platform.python_implementation()} {platform.python_version()} on {system}"
    if version < PYTHON:
        return Probe("python", "fail", found, f"install Python {'.'.join(map(str, PYTHON))} or newer")
    if system == "win32":
        return Probe("python", "warn", found, "Windows is not tested: one load at a time is not ensured there")
    return Probe("python", "ok", found)


def _package(name: str) -> Probe:
    advice = f"install sessionmart again, or {name} alone: pip install --force-reinstall {name}"
    try:
        import_module(name)
        version = metadata.version(name)
    except Exception as error:  # noqa: BLE001 - a damaged extension module raises anything
        return Probe(name, "fail", f"cannot be imported: {type(error).__name__}: {error}", advice)
    least = _least(name)
    if least and _numbers(version) < _numbers(least):
        return Probe(name, "fail", f"{version}; {least} is the oldest that works", f"pip install --upgrade {name}")
    return Probe(name, "ok", version)


def _least(name: str) -> str | None:
    """The oldest version that sessionmart's own metadata asks for; None without metadata (a bare checkout)."""
    try:
        wanted = metadata.requires("sessionmart") or []
    except metadata.PackageNotFoundError:
        return None
    found = (re.fullmatch(rf"{name}>=([\d.]+)", line) for line in wanted)
    return next((match[1] for match in found if match), None)


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version, without trailing zeros: 2.0 is 2."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in re.sub(r"(\.0+)+$", "", release[0]).split(".")) if release else ()


def _store(place: Place) -> Iterator[Probe]:
    from etl.ledger import Ledger  # noqa: PLC0415 - as above: only when engines can be imported
    from etl.store import SCHEMA_VERSION, connect  # noqa: PLC0415

    try:
        with connect(place.db) as connection:
            store_id, load_id, version, number = connection.execute(
                "select store_id, last_load_id, schema_version, (select count(*) from facts.sources) from mart.store"
            ).fetchall()[0]
    except StoreMissing:
        yield Probe("store", "warn", f"there is none at {place.db}", "sessionmart load makes one")
        return
    except StoreError as error:
        advice = {
            StoreTooNew: "upgrade sessionmart, or name another store (--db, SESSIONMART_DB)",
            NotAStore: "move the file away, or name another store (--db, SESSIONMART_DB)",
        }.get(type(error), "close the other program")
        yield Probe("store", "fail", str(error), advice)
        return
    except Exception as error:  # noqa: BLE001 - a damaged file raises what the engine likes
        yield Probe("store", "fail", f"{place.db} cannot be read: {error}", "move it away and load again")
        return
    yield Probe("store", "ok", f"{place.db}, sources in it: {number}")
    if version == SCHEMA_VERSION:
        yield Probe("schema version", "ok", f"{version}, as this version writes it")
    else:
        yield Probe("schema version", "warn", f"{version}; {SCHEMA_VERSION} is today's", "sessionmart load --full")
    ledger = Ledger.read(place.state, store_id, load_id)
    if ledger.entries or not number:
        yield Probe("ledger", "ok", f"matches the store, files in it: {len(ledger.entries)}")
    else:
        found = "there is none of the store's last load in the state folder"
        yield Probe("ledger", "warn", found, "nothing: the next load reads every file again and writes it")


def _wal(db: str) -> Probe:
    if not os.path.lexists(f"{db}.wal"):
        return Probe("wal", "ok", "no .wal beside the store")
    advice = (
        "close the tool that has the store open for writing; if none has, open and close it with one, or move it away"
    )
    return Probe("wal", "fail", f"{db}.wal exists: no load can replace the store", advice)


def _lock(db: str) -> Probe:
    """Looks whether the kernel holds a lock, without waiting. (A load that begins in the instant in which the file of a
    killed one is looked at is turned away, as it is by another load.)
    """
    try:
        import fcntl  # noqa: PLC0415 - POSIX only
    except ImportError:
        return Probe("lock", "warn", "this system has no flock", "never run two loads at once")
    try:
        descriptor = os.open(f"{db}.lock", os.O_RDONLY)
    except FileNotFoundError:
        return Probe("lock", "ok", "no load is running")
    except OSError as error:
        return Probe("lock", "fail", f"{db}.lock: {error.strerror}", "make the file yours, or remove it")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        return Probe("lock", "warn", f"a load is running (process {holder})", "nothing: it ends by itself")
    finally:
        os.close(descriptor)
    return Probe("lock", "ok", "no load is running; the last one was killed, the next one clears up")


def _state(folder: str) -> Probe:
    if not os.path.lexists(folder):
        return Probe("state folder", "ok", f"{folder}: not there yet, the first load makes it")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        mode = stat.S_IMODE(os.stat(folder).st_mode)
    except OSError as error:
        advice = "without it every load reads everything: make it a folder of yours"
        return Probe("state folder", "fail", f"{folder}: {error.strerror}", advice)
    if mode & _OTHERS:
        return Probe("state folder", "warn", f"{folder}: mode {mode:04o}, open to others", f"chmod 700 {folder}")
    return Probe("state folder", "ok", f"{folder}: writable, mode {mode:04o}")


def _key(folder: str) -> Probe:
    path = os.path.join(folder, _KEY_FILE)
    if not os.path.lexists(folder):
        return Probe("fingerprint key", "ok", "not there yet, the first load makes it")
    replaced = (
        "nothing, or put the old one back: the next load makes a new key, and its fingerprints match no earlier ones"
    )
    try:
        with open(path, "rb") as file:
            text = file.read(1024)
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        bytes.fromhex(text.decode("ascii").strip())
    except FileNotFoundError:
        return Probe("fingerprint key", "warn", f"{path}: not there", replaced)
    except OSError as error:
        return Probe("fingerprint key", "fail", f"{path}: {error.strerror}", "make the file yours, mode 600")
    except ValueError:
        return Probe("fingerprint key", "fail", f"{path}: not hexadecimal", replaced)
    if not text.strip():
        return Probe("fingerprint key", "fail", f"{path}: empty, any secret could be guessed", f"remove {path}")
    if mode & _OTHERS:
        return Probe("fingerprint key", "fail", f"{path}: mode {mode:04o}, others can read it", f"chmod 600 {path}")
    return Probe("fingerprint key", "ok", f"{path}: mode {mode:04o}")


def _providers(environment: Environment) -> list[Probe]:
    """A row per provider. Most machines have few of them: only when there is none at all is that worth a warning."""
    from etl import providers  # noqa: PLC0415 - third parties' modules: whatever they do, they do it here

    probes: list[Probe] = []
    for name in providers.names():
        try:
            probes.append(_roots(providers.get(name), environment))
        except Exception as error:  # noqa: BLE001 - a third party's provider may raise anything
            probes.append(Probe(f"provider {name}", "fail", f"{type(error).__name__}: {error}", "remove its package"))
    if any(probe.status == "fail" or "readable" in probe.found for probe in probes):
        return probes
    advice = "name the folder: sessionmart load --root PROVIDER=PATH"
    return [Probe(probe.name, "warn", probe.found, advice) for probe in probes]


def _roots(provider: Provider, environment: Environment) -> Probe:
    name = f"provider {provider.name}"
    roots = list(dict.fromkeys(root.path for root in provider.roots(environment)))
    there = [path for path in roots if os.path.lexists(path)]
    for path in there:
        try:
            with os.scandir(path) as entries:
                next(entries, None)
        except OSError as error:
            return Probe(name, "fail", f"{path}: {error.strerror}", "give yourself the right to read it")
    if not roots:
        return Probe(name, "ok", "no default folder, its files are named")
    if not there:
        return Probe(name, "ok", f"no folder of it on this machine: {', '.join(roots)}")
    return Probe(name, "ok", f"readable: {', '.join(there)}")


def _folder(db: str) -> str:
    """The nearest folder of a path that exists: the first load makes the rest."""
    folder = os.path.dirname(os.path.abspath(db))
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _space(db: str) -> Probe:
    try:
        size = os.path.getsize(db) if os.path.isfile(db) else 0
        free = shutil.disk_usage(_folder(db)).free
    except OSError as error:
        return Probe("disk space", "fail", f"{db}: {error.strerror}", None)
    found = f"{free / 1e6:.0f} MB free, the store has {size / 1e6:.0f} MB"
    if free < _FREE_SHARE * size:
        return Probe("disk space", "fail", found, "make room: a load builds the new store beside the old one")
    return Probe("disk space", "ok", found)


def _rename(db: str) -> Probe:
    """Can a file take another one's place, in the folder where a load does that?"""
    folder = _folder(db)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as place:
            new, old = os.path.join(place, "new"), os.path.join(folder, os.path.basename(place) + ".old")
            try:
                for path in (new, old):
                    with open(path, "xb") as file:
                        file.write(path.encode())
                os.replace(new, old)
                with open(old, "rb") as file:
                    is_replaced = file.read() == new.encode()
            finally:
                if os.path.lexists(old):
                    os.unlink(old)
    except OSError as error:
        advice = "keep the store in a folder of yours, on a file system that can rename"
        return Probe("replace", "fail", f"{folder}: {error.strerror or error}", advice)
    if not is_replaced:
        return Probe("replace", "fail", f"{folder}: a rename did not replace the file", "keep the store elsewhere")
    return Probe("replace", "ok", f"{folder}: a file can be put in another one's place")
