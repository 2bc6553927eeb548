"""Which rules does masking apply, in which order, and in which groups?

``RULES`` lists them, most specific first; ``GROUPS`` are the same rules in the same order, cut so that the cue of each
group is one quick scan.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from etl.mask_rules.context import CONTEXT, NAMED, NAMED_CONFIRM, NAMED_CUE
from etl.mask_rules.formats import BLOCKS, TOKENS, WEBHOOKS, Group, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GROUPS", "RULES", "Group", "Rule"]

_LITERAL: Final = re.compile(r"(?:[^\\\[(|.*+?{$^]|\\[^A-Za-z])*")
RULES: Final = (*BLOCKS, *WEBHOOKS, *TOKENS, *CONTEXT, *NAMED)


def _cues(rule: Rule) -> tuple[str, ...]:
    return rule.cues or tuple(re.escape(hint) for hint in rule.hints)


def _lead(rule: Rule) -> int:
    """Length of the shortest literal that a cue of the rule starts with; beyond five the scan gains no more."""
    leads = ("".join(_LITERAL.findall(cue)[:1]).replace("\\", "") for cue in _cues(rule))
    return min(5, *map(len, leads), 5)


def _grouped(rules: tuple[Rule, ...], literals: int) -> Iterator[Group]:
    """Groups of at most so many cues, of rules whose cues lead with a literal of about the same length.

    One short literal slows the scan for all that share it; with half as many of them a scan took two thirds as long.
    """
    members: list[Rule] = []
    cues: list[str] = []
    lead = 0
    for rule in sorted(rules, key=_lead):
        more = _cues(rule)
        limit = literals // 2 if lead < 4 else literals
        if members and (len(cues) + len(more) > limit or _lead(rule) > lead):
            yield Group("|".join(dict.fromkeys(cues)), tuple(members))
            members, cues = [], []
        lead = _lead(rule)
        members.append(rule)
        cues += more
    yield Group("|".join(dict.fromkeys(cues)), tuple(members))


GROUPS: Final = (*_grouped((*BLOCKS, *WEBHOOKS, *TOKENS, *CONTEXT), 40), Group(NAMED_CUE, NAMED, NAMED_CONFIRM))
