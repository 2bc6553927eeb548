"""What does a text look like once every secret in it is replaced by ``[redacted:rule-id]``?

The engine is vectorised: one regular expression, the alternation of all rules, picks the few rows that may hold a secret;
only those go rule by rule. The regex engine also does the cutting (it sets a mark around each match), so no second
dialect is involved; Python sees the found secrets only, to judge them (``CHECKS``) and to take their fingerprint.

Masking a masked text changes nothing: rows that changed are searched again until nothing is found, and what is already
redacted is no secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import polars as pl

from etl.mask_rules import RULES, Rule

MASK_VERSION: Final = 1
"""Changes whenever a rule or a check changes what is masked: stored beside the rows that it produced."""


class Hit(NamedTuple):
    """One secret that was replaced: its row in the series, the rule's id, and a keyed digest that joins without telling."""

    row: int
    rule: str
    fingerprint: str


# ---- is it a secret? Judged on the found value alone.
_REDACTED = re.compile(r"\[redacted:[a-z0-9-]+\]")
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
_NAMES = re.compile(r"token|secret|passw|pass$|passphrase|pwd|key|auth|cred|input|value|field|user|config|param", re.IGNORECASE)
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


def _is_wordy(value: str) -> bool:
    """Reads like words or a path: each part has at most one short run of digits (``oauth2``, ``Uint8Array``, ``step-12``)."""
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
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in plain and plain.isprintable()


def _is_cookie(value: str) -> bool:
    """At least one pair that is no attribute has a value long enough for a session."""
    pairs = (pair.strip().partition("=") for pair in value.split(";"))
    return any(len(text) >= 8 and not _ATTRIBUTE.match(name) and _is_url_password(text) for name, _, text in pairs)


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
    return not (_is_wordy(value) and not _SYMBOL.search(value) and (_NAMES.search(value) or "_" in value or "." in value))


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "": bool,
    "pem": lambda value: bool(_BODY.search(value)),
    "digit": _has_digit,
    "mixed": _is_mixed,
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
    return CHECKS[rule.check](found if rule.check == "cookie" else rest)


# ---- the engine
_SPLIT: Final = {rule: f"({rule.before})({rule.secret})({rule.after})" for rule in RULES}
_ANY: Final = "|".join(f"(?:{rule.before})(?:{rule.secret})(?:{rule.after})" for rule in RULES)


def fingerprint(secret: str, key: bytes) -> str:
    """Keyed blake2b-64 (16 hex digits) of a secret.

    :raises ValueError: if the key is empty: a plain digest of a weak password can be guessed.
    """
    if not key:
        raise ValueError("the fingerprint key is empty")
    short = key if len(key) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.blake2b(key).digest()
    return hashlib.blake2b(secret.encode("utf-8"), digest_size=8, key=short).hexdigest()


def _mark_for(rows: pl.Series) -> str:
    """A string no row holds. It starts and ends with noncharacters of its own, so it cannot overlap itself."""
    number = 0
    while rows.str.contains(f"\ufdd0{number}\ufdd1", literal=True).any():
        number += 1
    return f"\ufdd0{number}\ufdd1"


def _cut(marked: str, mark: str, rule: Rule) -> tuple[str, list[str]]:
    """Put the replacement where a marked secret stands the check; give the new text and the secrets taken out."""
    parts = marked.split(mark)
    secrets: list[str] = []
    for place in range(1, len(parts), 2):
        if _is_secret(rule, parts[place]):
            secrets.append(parts[place])
            parts[place] = f"[redacted:{rule.id}]"
    return "".join(parts), secrets


def _sweep(texts: list[str]) -> tuple[list[str], list[tuple[int, str, str]]]:
    """Apply every rule once, in order, to each text. Gives the texts and (index, rule id, secret) of what was taken."""
    found: list[tuple[int, str, str]] = []
    folded = "\n".join(texts).lower()
    active = [rule for rule in RULES if any(hint in folded for hint in rule.hints)]
    mark = _mark_for(pl.Series(texts, dtype=pl.String))
    for rule in active:
        column = pl.Series(texts, dtype=pl.String)
        places = column.str.contains(rule.pattern).arg_true()
        if places.is_empty():
            continue
        template = f"${{1}}{mark}${{2}}{mark}${{3}}"
        marked = column.gather(places).str.replace_all(_SPLIT[rule], template)
        for place, text in zip(places.to_list(), marked.to_list(), strict=True):
            texts[place], secrets = _cut(text, mark, rule)
            found.extend((place, rule.id, secret) for secret in secrets)
    return texts, found


def _candidates(series: pl.Series) -> pl.Series:
    """Positions of the rows in which some rule matches."""
    return series.str.contains(_ANY).fill_null(False).arg_true()


def mask_series(series: pl.Series, key: bytes) -> tuple[pl.Series, list[Hit]]:
    """Replace every secret in a column of texts.

    :param series: dtype String, any length; nulls stay null.
    :param key: content of the user's key file, at least one byte.
    :returns: a series of the same name and length, and one ``Hit`` per secret occurrence, ordered by row.
    :raises ValueError: if the key is empty and there is something to fingerprint.
    """
    rows = _candidates(series)
    if rows.is_empty():
        return series, []
    texts: list[str] = series.gather(rows).to_list()
    found: list[tuple[int, str, str]] = []
    pending = list(range(len(texts)))
    while pending:
        swept, taken = _sweep([texts[at] for at in pending])
        for at, text in zip(pending, swept, strict=True):
            texts[at] = text
        found.extend((pending[at], rule, secret) for at, rule, secret in taken)
        pending = sorted({pending[at] for at, _, _ in taken})
    numbers = rows.to_list()
    hits = sorted((Hit(numbers[at], rule, fingerprint(secret, key)) for at, rule, secret in found), key=lambda hit: hit.row)
    return _replaced(series, rows, texts), hits


def _replaced(series: pl.Series, rows: pl.Series, texts: list[str]) -> pl.Series:
    """The series with the given rows exchanged: gathered from the old column and the new texts behind it."""
    both = pl.concat([series, pl.Series(series.name, texts, dtype=pl.String)])
    count = len(series)
    order = pl.int_range(count, eager=True).scatter(rows, pl.int_range(count, count + len(texts), eager=True))
    return both.gather(order)


def mask_text(text: str, key: bytes) -> str:
    """``mask_series`` for one short text. Lone surrogates, which no stored text can hold, become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    masked: str = mask_series(pl.Series([text], dtype=pl.String), key)[0][0]
    return masked
