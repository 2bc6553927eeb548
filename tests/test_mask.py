"""Does masking take out every secret, leave everything else alone, and keep JSON parseable?"""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import blake2b

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etl.mask import CHECKS, MASK_VERSION, Hit, fingerprint, mask_series, mask_text
from etl.mask_rules import GROUPS, RULES, Rule
from tests.mask_cases import NEAR_MISSES, POSITIVES, Case

KEY = b"FAKE-key-of-a-user"
FILLER = "def total(xs):\n    return sum(x.size for x in xs)  # plain code\n"
BY_NAME = [pytest.param(case, id=f"{case.rule}-{number}") for number, case in enumerate(POSITIVES)]


def masked(texts: list[str | None]) -> tuple[list[str | None], list[Hit]]:
    series, hits = mask_series(pl.Series("text", texts, dtype=pl.String), KEY)
    return series.to_list(), hits


@pytest.mark.parametrize("case", BY_NAME)
def test_a_secret_is_replaced_by_the_name_of_its_rule(case: Case) -> None:
    assert mask_text(case.text, KEY) == case.masked


@pytest.mark.parametrize("case", BY_NAME)
def test_a_secret_is_found_in_json_and_in_json_inside_json(case: Case) -> None:
    once = json.dumps({"out": f"line one\n{case.text}\nline three"})
    twice = json.dumps({"args": once})
    for text in (once, twice):
        result = mask_text(text, KEY)
        assert f"[redacted:{case.rule}]" in result
        value = json.loads(result)
        if text is twice:
            value = json.loads(value["args"])
        assert case.secret not in value["out"]
        assert value["out"].startswith("line one\n")
        assert value["out"].endswith("\nline three")


@pytest.mark.parametrize("case", BY_NAME)
def test_masking_twice_is_masking_once(case: Case) -> None:
    assert masked([case.masked]) == ([case.masked], [])


@pytest.mark.parametrize(("name", "text"), NEAR_MISSES)
def test_a_look_alike_is_left_alone(name: str, text: str) -> None:
    assert mask_text(text, KEY) == text, name
    quoted = json.dumps(json.dumps(text))
    assert mask_text(quoted, KEY) == quoted, name


def test_every_rule_has_a_positive() -> None:
    assert {rule.id for rule in RULES} == {case.rule for case in POSITIVES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_row_of_the_table_matches_a_positive(rule: Rule) -> None:
    assert pl.Series([case.text for case in POSITIVES]).str.contains(rule.pattern).any()


def test_the_table_is_well_formed() -> None:
    assert isinstance(MASK_VERSION, int)
    assert len({rule.id for rule in RULES}) >= 60
    assert Counter(rule for group in GROUPS for rule in group.rules) == Counter(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9-]+", rule.id)
        assert rule.hints
        assert all(rule.hints)
        assert rule.check in CHECKS


def test_a_rule_has_no_groups_of_its_own() -> None:
    for rule in RULES:
        for part in (rule.before, rule.secret, rule.after):
            assert not re.search(r"(?<!\\)(?:\\\\)*\((?!\?)", re.sub(r"\[(?:\\.|[^\]\\])*\]", "", part)), rule.id


def test_hits_name_row_and_rule_and_hide_the_secret() -> None:
    token = "gh" + "p_" + "FAKE0fake1" * 4
    texts = [None, FILLER, f"a {token} b {token}", "", 'api_key="FAKE0a1B2c3D4e5F"']
    result, hits = masked(texts)
    assert result == [
        None,
        FILLER,
        "a [redacted:github-token] b [redacted:github-token]",
        "",
        'api_key="[redacted:generic-api-key]"',
    ]
    digest = blake2b(token.encode(), digest_size=8, key=KEY).hexdigest()
    value = blake2b(b"FAKE0a1B2c3D4e5F", digest_size=8, key=KEY).hexdigest()
    assert hits == [Hit(2, "github-token", digest), Hit(2, "github-token", digest), Hit(4, "generic-api-key", value)]


def test_a_fingerprint_depends_on_the_key_whatever_its_length() -> None:
    assert fingerprint("FAKE", b"a") != fingerprint("FAKE", b"b")
    assert fingerprint("FAKE", b"a" * 65) != fingerprint("FAKE", b"a" * 64)
    assert re.fullmatch("[0-9a-f]{16}", fingerprint("FAKE", b"a" * 1000))
    with pytest.raises(ValueError, match="empty"):
        fingerprint("FAKE", b"")


def test_name_and_length_of_the_series_are_kept() -> None:
    series, _ = mask_series(pl.Series("body", ["a", None, 'password="FAKE0pass1"'], dtype=pl.String), KEY)
    assert series.name == "body"
    assert series.dtype == pl.String
    assert series.to_list() == ["a", None, 'password="[redacted:generic-password]"']


@pytest.mark.parametrize("texts", [[], [None], [None, None], [""]])
def test_nothing_to_mask(texts: list[str | None]) -> None:
    assert masked(texts) == (texts, [])


def test_all_secrets_of_one_text() -> None:
    cases = [case for case in POSITIVES if "\n" not in case.text and "cookie" not in case.rule]
    left = "\n".join(case.masked for case in cases)
    result, hits = masked(["\n".join(case.text for case in cases)])
    assert result[0] is not None
    assert [case.secret for case in cases if case.secret in result[0] and case.secret not in left] == []
    assert len(hits) >= len(cases)
    assert masked(result) == (result, [])


def test_a_long_text_and_a_short_one_are_masked_alike() -> None:
    filler = FILLER * (5_000_000 // len(FILLER))
    case = POSITIVES[0]
    result, hits = masked([filler + case.text + "\n" + filler, case.text])
    assert result == [filler + case.masked + "\n" + filler, case.masked]
    assert [(hit.row, hit.rule) for hit in hits] == [(0, case.rule), (1, case.rule)]


def test_every_positive_is_found_by_the_scans_of_a_long_column_too() -> None:
    result, _ = masked([*(case.text for case in POSITIVES), *[FILLER] * 500])
    assert result == [*(case.masked for case in POSITIVES), *[FILLER] * 500]


def test_a_secret_inside_a_wider_one_leaves_no_remainder() -> None:
    token = "gl" + "pat-" + "FAKEfakeFAKEfake1234"
    assert mask_text(f"https://u:{token}@h/r.git", KEY) == "https://u:[redacted:gitlab-token]@h/r.git"
    assert mask_text(f"https://u:{token}!FAKE@h/r.git", KEY) == "https://u:[redacted:url-password]@h/r.git"
    assert mask_text(f"password={token}", KEY) == "password=[redacted:gitlab-token]"


def test_a_mark_in_the_text_does_not_confuse_the_cutting() -> None:
    text = "\ufdd00\ufdd1 password='FAKE0pass1' \ufdd01\ufdd1"
    assert mask_text(text, KEY) == "\ufdd00\ufdd1 password='[redacted:generic-password]' \ufdd01\ufdd1"


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert mask_text("a \ud800 b \U0001f600", KEY) == "a \ufffd b \U0001f600"


TEXTS = st.text(max_size=200)
PIECES = st.sampled_from(
    [case.text for case in POSITIVES] + [text for _, text in NEAR_MISSES] + ['"', "\\", ": ", "=", "\n", " "]
)


@given(TEXTS)
def test_any_text_passes_and_a_second_pass_changes_nothing(text: str) -> None:
    once = mask_text(text, KEY)
    assert mask_text(once, KEY) == once


@given(st.text(alphabet="bdfghlnoruz äöü\n", max_size=200))
def test_a_text_without_a_hint_is_returned_unchanged(text: str) -> None:
    assert mask_text(text, KEY) == text


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES | TEXTS, max_size=6), st.sampled_from(["", " ", "\n", '"']))
def test_secrets_side_by_side_stay_masked_on_a_second_pass(pieces: list[str], glue: str) -> None:
    once, _ = masked([glue.join(pieces)])
    assert masked(once) == (once, [])


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES | TEXTS, max_size=6), st.integers(1, 3))
def test_masked_json_is_json_of_the_same_shape(pieces: list[str], depth: int) -> None:
    value: object = {"k": pieces, "token": "x", "n": [1, None, {"password": "y"}]}
    for _ in range(depth):
        value = {"inner": json.dumps(value)}
    result = json.loads(mask_text(json.dumps(value), KEY))
    for _ in range(depth):
        result = json.loads(result["inner"])
    assert list(result) == ["k", "token", "n"]
    assert len(result["k"]) == len(pieces)
