"""What are Muse Code's session files, and what do they say?

``paths``: roots and path grammar. ``log``: one log, line by line, with what each record is handed to: ``session``
(facts of the session), ``turns``, ``speech`` (dialogue), ``calls`` (tool calls, their times and approvals),
``agents`` (sub-agents) and ``usage``. ``vocabulary``: names of tools, and the records that are events or are skipped.
``inventory``: the second witness of dialogue and calls. Facts and their evidence: docs/providers.md.
"""

from __future__ import annotations

from typing import Final

from etl.providers.base import Provider
from etl.providers.muse.inventory import content_inventory
from etl.providers.muse.lines import native_session, numbered, recognise
from etl.providers.muse.log import adapt
from etl.providers.muse.paths import claim, roots

PROVIDER: Final = Provider(
    name="muse",
    title="Muse Code",
    roots=roots,
    claim=claim,
    recognise=recognise,
    native_session=native_session,
    adapt=adapt,
    inventory=content_inventory,
    numbered=numbered,
)
