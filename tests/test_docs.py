"""Do the documents say what is true?"""

from __future__ import annotations

import re
from pathlib import Path

from etl.providers.base import Claim, Source
from etl.providers.claude_code.states import SKIPPED as CLAUDE_SKIPPED
from etl.providers.codex.shapes import SKIPPED as CODEX_SKIPPED
from etl.providers.muse.log import _Stream
from etl.providers.muse.vocabulary import NOTED
from etl.providers.muse.vocabulary import SKIPPED as MUSE_SKIPPED
from etl.providers.qoder import audit, segments, stream
from etl.providers.qoder.states import SKIPPED, STATES
from etl.providers.qoder.stores import STORES
from etl.providers.qoder_bridge import debuglog, diagnostics, transport
from etl.sqlfiles import tables_markdown
from etl.store import described

DOCS = Path(__file__).parents[1] / "docs"


def test_the_tables_page_is_made_from_the_headers() -> None:
    """`sessionmart schema > docs/tables.md` writes it."""
    objects, types = described()
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == tables_markdown(objects, types)


def test_every_column_has_a_meaning_of_its_own() -> None:
    objects, types = described()
    bare = []
    for item in objects:
        meanings = dict(item.columns)
        for name, _ in types.get(item.name, []):
            said = re.sub(r"[^a-z]", "", meanings.get(name, "").lower())
            if said in ("", name.replace("_", "")):
                bare.append(f"{item.name}.{name}")
    assert bare == []


def test_every_known_record_type_of_qoder_stands_in_its_page() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8")
    known = {"user", "assistant", "system", "attachment", *STATES, *SKIPPED}
    known |= {
        *segments.SKIPPED_ROWS,
        *segments.READ_ROWS,
        *stream.SKIPPED_ROWS,
        *audit.SKIPPED_EVENTS,
        *STORES.values(),
    }
    assert {kind for kind in known if f"`{kind}`" not in page} == set()


def test_every_known_label_of_a_bridge_stands_in_its_page() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8")
    known = {*diagnostics.LABELS, *transport.LABELS, *debuglog.LABELS}
    assert {label for label in known if f"`{label}`" not in page} == set()


def test_every_known_record_of_muse_stands_in_its_page() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8").partition("## muse")[2]
    read = _Stream(Source("muse", "h", "p", Claim("muse_log", "jsonl", "s")), "muse:s", is_child=False).handlers
    names = {name.removeprefix("runtime.session/") for name in {*read, *NOTED, *MUSE_SKIPPED}}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_skipped_record_of_claude_code_and_codex_stands_in_their_pages() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8")
    claude, codex = page.partition("## codex")[0], page.partition("## codex")[2].partition("## qoder")[0]
    assert {kind for kind in CLAUDE_SKIPPED if f"`{kind}`" not in claude} == set()
    assert {kind for kind in CODEX_SKIPPED if f"`{kind}`" not in codex} == set()
