"""What is asked of a load, and what does it report?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etl.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from etl.extract import Extracted
    from etl.providers.base import Environment
    from etl.store import Finding


@dataclass(frozen=True, slots=True)
class Request:
    """What to load: provider names (none: all), roots named by the user per provider, and where and as whom.

    ``state`` is the folder of ledgers and of the state log; without one every load reads everything. ``jobs``
    is the number of worker processes, 1 for none.
    ``full`` reads everything again. ``prices`` is the folder of the price table, None for the shipped one; ``settings``
    are the user's.
    ``task_bytes`` and ``flush_bytes`` set the size of tasks and parts (tests).
    """

    db: str
    host: str
    environment: Environment
    key: bytes
    version: str
    state: str = ""
    providers: tuple[str, ...] = ()
    roots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    jobs: int = 1
    full: bool = False
    prices: str | None = None
    settings: Settings = field(default_factory=Settings)
    task_bytes: int | None = None
    flush_bytes: int | None = None


@dataclass(slots=True)
class ProviderCounts:
    """Files of one provider: found, read, failed (or quarantined), and gone (or suspicious)."""

    seen: int = 0
    changed: int = 0
    failed: int = 0
    gone: int = 0


@dataclass(slots=True)
class Report:
    """What a load did. ``findings`` are the rows of checks that were published with; ``unclaimed`` counts names that no
    path grammar claims, by ending; ``problems`` are folders that could not be looked into (both masked). ``state``
    is ``published`` or ``unchanged``; ``seconds`` by stage, ``peak_rss`` in bytes of this process and
    of the largest worker.
    """

    load_id: str
    db: str
    started: datetime
    store_id: str = ""
    state: str = "published"
    sources_seen: int = 0
    sources_read: int = 0
    sources_unchanged: int = 0
    sources_gone: int = 0
    sources_suspicious: int = 0
    not_recognised: int = 0
    bytes_read: int = 0
    providers: dict[str, ProviderCounts] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_rss: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    quarantined: dict[str, str] = field(default_factory=dict)
    unclaimed: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def sources_failed(self) -> int:
        """Sources over which an adapter stumbled or a worker died."""
        return len(self.failed)

    @property
    def clean(self) -> bool:
        """No source failed or was quarantined, and no budget of findings was exceeded."""
        return not self.findings and not self.quarantined and not self.failed

    def provider(self, name: str) -> ProviderCounts:
        """The counts of a provider."""
        return self.providers.setdefault(name, ProviderCounts())

    def include(self, extracted: Extracted) -> None:
        """Adds what one task gave."""
        self.sources_read += extracted.sources
        self.not_recognised += extracted.not_recognised
        self.bytes_read += extracted.bytes_read
        if extracted.worker:
            self.peak_rss["worker"] = max(self.peak_rss.get("worker", 0), extracted.peak_rss)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        from dataclasses import asdict  # noqa: PLC0415 - only here

        return asdict(self) | {"sources_failed": self.sources_failed, "clean": self.clean}


class Stopwatch:
    """Seconds per stage, by the caller's clock."""

    def __init__(self, clock: Callable[[], datetime], report: Report) -> None:
        self.clock, self.report, self.last = clock, report, clock()

    def lap(self, stage: str) -> None:
        """The stage ends now."""
        now = self.clock()
        self.report.seconds[stage] = round((now - self.last).total_seconds(), 3)
        self.last = now
