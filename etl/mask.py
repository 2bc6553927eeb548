"""What does a text look like once every secret in it is replaced by ``[redacted:rule-id]``?

The engine is vectorised. For each group of rules one scan over the column picks the few rows that may hold a secret;
only those go rule by rule. The regex engine also does the cutting (it sets a mark around each match), so no second
dialect is involved: Python sees the found secrets only, to judge them (``CHECKS``) and to take their fingerprint.

Masking a masked text changes nothing: rows that changed are swept again until nothing is found, and what is already
redacted is no secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import polars as pl

from etl.keys import digest64
from etl.mask_rules import GROUPS, RULES, Group, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MASK_VERSION: Final = 1
"""Changes whenever a rule or a check changes what is masked: stored beside the rows that it produced."""


class Hit(NamedTuple):
    """One secret that was replaced: its row in the series, the rule's id, and a keyed digest that tells nothing."""

    row: int
    rule: str
    fingerprint: str


# ---- is it a secret? Judged on the found value alone.
_REDACTED = re.compile(r"\[redacted:[a-z0-9-]+(?:~[0-9a-f]{16})?\]")
_PLACEHOLDER = re.compile(
    r"[<{*.#%(]|\$[A-Za-z_{(]"
    r"|(?:your|my|insert|replace|enter|put|some|change|dummy|sample)[-_]|(?:your|change[-_]?me|placeholder|redacted)"
    r"|(?:none|null|nil|undefined|true|false|example|string|password|secret|token|required|optional)$",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\$\{|\$\(|\{\{|\}\}|#\{|%\(|%s$|<[a-z_-]+>")
_CODE = re.compile(r"\(|\)|\[|^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+$|^@")
_PLACE = re.compile(r"(?:\.{0,2}|~|[A-Za-z]:)[/\\]|[A-Za-z][\w+.-]*://|arn:|data:|file:|urn:|[\w.+-]+@[\w-]+\.[\w.-]+$")
_DATUM = re.compile(
    r"\d{4}-\d\d-\d\d|v?\d+(?:\.\d+)+|[+-]?\d[\d_.,eE+-]*$|sha(?:1|256|384|512)[-:]|#?[0-9a-fA-F]{1,8}$"
    r"|(?:msg|toolu|call|req|resp|run|thread|chatcmpl|gen)[-_]"
)
_NAMES = re.compile(
    r"token|secret|passw|pass$|passphrase|pwd|key|auth|cred|input|value|field|user|config|param", re.IGNORECASE
)
_LONG_DIGITS = re.compile(r"\d{4}")
_DIGITS = re.compile(r"\d+")
_SYMBOL = re.compile(r"[!@#$%^&*?+~|]")
_BODY = re.compile(r"[A-Za-z0-9+/]{16}")
_ATTRIBUTE = re.compile(r"(?:path|domain|expires|max-age|samesite|priority)$", re.IGNORECASE)


def _has_digit(value: str) -> bool:
    return any("0" <= char <= "9" for char in value)


def _is_mixed(value: str) -> bool:
    """Not one word in small letters."""
    return _has_digit(value) or value[3:].lower() != value[3:]


def _is_dense(value: str) -> bool:
    """Small letters, capitals and digits: what a random string of two dozen characters has, and few names do."""
    return _has_digit(value) and value[2:] not in (value[2:].lower(), value[2:].upper())


def _is_wordy(value: str) -> bool:
    """Reads like words or a path: each part has at most one short run of digits (``oauth2``, ``Uint8Array``)."""
    parts = re.split(r"[^A-Za-z0-9]+", value)
    return all(len(_DIGITS.findall(part)) < 2 and not _LONG_DIGITS.search(part) for part in parts)


def _is_placeholder(value: str) -> bool:
    """A stand-in for a secret, or code that fetches one."""
    return bool(_PLACEHOLDER.match(value) or _TEMPLATE.search(value)) or len(set(value)) < 3


def _is_known(value: str) -> bool:
    """A place, a number, a time, a version, an id: something that is not secret under any name."""
    return bool(_PLACE.match(value) or _DATUM.match(value))


def _is_literal(value: str) -> bool:
    return len(value) >= 8 and not _is_placeholder(value) and not _is_known(value)


def _is_url_password(value: str) -> bool:
    return not _is_placeholder(value) and not re.match(r"\d{1,5}[,;)|]", value)


def _is_header(value: str) -> bool:
    return not _is_placeholder(value) and (_has_digit(value) or (len(value) >= 20 and value.lower() != value))


def _is_random(value: str) -> bool:
    return _has_digit(value) and not _is_placeholder(value) and not _is_known(value) and not _is_wordy(value)


def _is_basic(value: str) -> bool:
    """Base64 of ``user:password``."""
    try:
        value = unquote(value.replace("\\", ""))
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in plain and plain.isprintable()


def _is_cookie(value: str) -> bool:
    """At least one pair that is no attribute has a value long enough for a session."""
    pairs = (pair.strip().partition("=") for pair in value.split(";"))
    return any(len(text) >= 8 and not _ATTRIBUTE.match(name) and _is_header(text) for name, _, text in pairs)


def _is_argument(value: str) -> bool:
    telling = _has_digit(value) or bool(_SYMBOL.search(value))
    return telling and not _is_placeholder(value) and not _is_known(value) and not _CODE.search(value)


def _is_env_password(value: str) -> bool:
    return not (_is_placeholder(value) or _PLACE.match(value) or _CODE.search(value))


def _is_quoted(value: str) -> bool:
    """A quoted value of a telling name: letters and digits, and not an identifier of several words."""
    if not _is_literal(value) or not _has_digit(value) or _CODE.search(value):
        return False
    return not (_is_wordy(value) and (_NAMES.search(value) or re.search(r"[-_.:/]", value)))


def _is_bare(value: str) -> bool:
    return _is_literal(value) and not _CODE.search(value) and any(c.isalpha() for c in value) and not _is_wordy(value)


def _is_quoted_password(value: str) -> bool:
    if len(value) < 8 or _is_placeholder(value) or _PLACE.match(value):
        return False
    return bool(_SYMBOL.search(value)) or (_has_digit(value) and not _CODE.search(value))


def _is_bare_password(value: str) -> bool:
    if not _is_literal(value) or _CODE.search(value):
        return False
    return not (
        _is_wordy(value) and not _SYMBOL.search(value) and (_NAMES.search(value) or "_" in value or "." in value)
    )


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "": bool,
    "pem": lambda value: bool(_BODY.search(value)),
    "digit": _has_digit,
    "mixed": _is_mixed,
    "dense": _is_dense,
    "url": _is_url_password,
    "header": _is_header,
    "random": _is_random,
    "basic": _is_basic,
    "cookie": _is_cookie,
    "cli": _is_argument,
    "env": _is_env_password,
    "value": _is_quoted,
    "bare": _is_bare,
    "password-value": _is_quoted_password,
    "password-bare": _is_bare_password,
}


def _is_secret(rule: Rule, found: str) -> bool:
    """Whether a match counts: what is redacted in it already is left out of the judgement."""
    rest = _REDACTED.sub("", found)
    if len(rest) < len(found) and len(rest) < 4:
        return False
    return CHECKS[rule.check](rest)


# ---- the engine
# Bytes up to which looking for the hints of all rules, or of one, is cheaper than running or compiling an expression.
# Measured: a scan of a group costs 0.3 ms, a rule about 1 ms to compile; a look for one hint 0.7 ms per MB.
_FEW_BYTES: Final = 4_000
_SOME_BYTES: Final = 500_000


def fingerprint(secret: str, key: bytes) -> str:
    """Keyed blake2b-64 (16 hex digits) of a secret.

    :raises ValueError: if the key is empty: a plain digest of a weak password can be guessed.
    """
    if not key:
        raise ValueError("the fingerprint key is empty")
    short = key if len(key) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.blake2b(key).digest()
    return hashlib.blake2b(secret.encode(), digest_size=8, key=short).hexdigest()


_HINTS: Final = tuple(dict.fromkeys(hint for rule in RULES for hint in rule.hints))


class _Taken(NamedTuple):
    """A secret that was cut out of the text at ``place``."""

    place: int
    rule: str
    secret: str


def _mark_for(texts: list[str]) -> str:
    """A string none of the texts holds; its first and last characters differ, so it cannot overlap itself."""
    number = 0
    while any(f"\ufdd0{number}\ufdd1" in text for text in texts):
        number += 1
    return f"\ufdd0{number}\ufdd1"


def _cut(marked: str, mark: str, rule: Rule, *, told_apart: bool) -> tuple[str, list[str]]:
    """Put the replacement where a marked secret stands the check; give the new text and the secrets taken out."""
    parts = marked.split(mark)
    secrets: list[str] = []
    for place in range(1, len(parts), 2):
        secret = parts[place]
        if _is_secret(rule, secret):
            secrets.append(secret)
            parts[place] = f"[redacted:{rule.id}~{digest64(secret)}]" if told_apart else f"[redacted:{rule.id}]"
    return "".join(parts), secrets


def _apply(rule: Rule, texts: dict[int, str], places: list[int], *, told_apart: bool) -> list[_Taken]:
    """Replace, in place, what one rule finds in the texts at these places."""
    if sum(len(texts[place]) for place in places) <= _SOME_BYTES:
        places = [place for place in places if any(hint in texts[place] for hint in rule.hints)]
    column = pl.Series([texts[place] for place in places], dtype=pl.String)
    if column.is_empty() or (matching := column.str.contains(rule.pattern).arg_true()).is_empty():
        return []
    places = [places[index] for index in matching]
    mark = _mark_for([texts[place] for place in places])
    pattern = f"({rule.before})({rule.secret})({rule.after})"
    marked = column.gather(matching).str.replace_all(pattern, f"${{1}}{mark}${{2}}{mark}${{3}}")
    taken: list[_Taken] = []
    for place, text in zip(places, marked, strict=True):
        texts[place], secrets = _cut(text, mark, rule, told_apart=told_apart)
        taken.extend(_Taken(place, rule.id, secret) for secret in secrets)
    return taken


def _sweep(column: pl.Series, *, told_apart: bool) -> tuple[dict[int, str], list[_Taken]]:
    """Apply every rule once, in order, to the rows whose group's cue occurs. Gives the changed texts by row."""
    places = {rule: found for group in _groups_for(column) if (found := _cued(column, group)) for rule in group.rules}
    cued = sorted({place for found in places.values() for place in found})
    texts: dict[int, str] = dict(zip(cued, column.gather(cued), strict=True))
    taken: list[_Taken] = []
    for rule in RULES:
        if rule in places:
            taken += _apply(rule, texts, places[rule], told_apart=told_apart)
    return {place: texts[place] for place in sorted({secret.place for secret in taken})}, taken


def _groups_for(column: pl.Series) -> Sequence[Group]:
    """The groups worth a scan. On a short column the fixed cost of a scan outweighs a look for the hints."""
    if (column.str.len_bytes().sum() or 0) > _FEW_BYTES:
        return GROUPS
    text = "\n".join(column.drop_nulls())
    return [group for group in GROUPS if any(hint in text for rule in group.rules for hint in rule.hints)]


def _cued(column: pl.Series, group: Group) -> list[int]:
    """Rows in which some rule of the group may match."""
    rows = column.str.contains(group.cue).arg_true()
    if group.confirm and not rows.is_empty():
        rows = rows.filter(column.gather(rows).str.contains(group.confirm))
    return rows.to_list()


def mask_series(series: pl.Series, key: bytes, *, told_apart: bool = False) -> tuple[pl.Series, list[Hit]]:
    """Replace every secret in a column of texts.

    :param series: dtype String, any length; nulls stay null.
    :param key: content of the user's key file, at least one byte.
    :param told_apart: for ids: a replacement names the digest of its secret (``[redacted:rule~digest]``), so that
        different ids stay different, and an id that is part of another one (a sub-agent's, ``id#2``) stays so.
    :returns: a series of the same name and length, and one ``Hit`` per secret occurrence, ordered by row.
    :raises ValueError: if the key is empty and there is something to fingerprint.
    """
    texts, taken = _sweep(series, told_apart=told_apart)
    found = list(taken)
    pending = list(texts)
    while pending:
        changed, taken = _sweep(pl.Series([texts[row] for row in pending], dtype=pl.String), told_apart=told_apart)
        found.extend(_Taken(pending[place], rule, secret) for place, rule, secret in taken)
        texts.update((pending[place], text) for place, text in changed.items())
        pending = [pending[place] for place in changed]
    hits = [Hit(row, rule, fingerprint(secret, key)) for row, rule, secret in found]
    return replaced(series, texts), sorted(hits, key=lambda hit: hit.row)


def replaced(series: pl.Series, texts: dict[int, str]) -> pl.Series:
    """The series with the given rows exchanged: gathered from the old column and the new texts behind it."""
    if not texts:
        return series
    count = len(series)
    both = pl.concat([series, pl.Series(series.name, list(texts.values()), dtype=pl.String)])
    order = pl.int_range(count, eager=True).scatter(list(texts), list(range(count, count + len(texts))))
    return both.gather(order)


def mask_text(text: str, key: bytes) -> str:
    """``mask_series`` for one short text. Lone surrogates, which no stored text can hold, become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if not any(hint in text for hint in _HINTS):
        return text
    masked: str = mask_series(pl.Series([text], dtype=pl.String), key)[0][0]
    return masked
