"""Which rows of one message say the same thing again, and which take the place of an earlier one?

One model response may be written as several rows with one message id: a fragment each, or growing snapshots
("Hello", then "Hello world"), or the whole again. Groups are kept over the whole source, since results of parallel
calls stand between the fragments; of a text only its length and hash are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Place = tuple[int, int, int | None]
"""Line number, child and block of a row."""


@dataclass(slots=True)
class Entry:
    """One block of a message: its kind, the length and hash of its text, where its row stands, and which record
    stated it last (one record may legitimately hold the same text twice).
    """

    kind: str
    size: int
    text_hash: int
    place: Place
    stated_in: tuple[int, int]


@dataclass(slots=True)
class Message:
    """The blocks of one message so far. ``closed`` once a record with a stop reason has ended."""

    entries: list[Entry] = field(default_factory=list)
    closed: bool = False

    def restated(self, kind: str, text: str, record: tuple[int, int]) -> Entry | None:
        """The block of an earlier record that this text repeats, marked as stated by this record."""
        size, text_hash = len(text), hash(text)
        for entry in self.entries:
            if entry.kind == kind and entry.size == size and entry.text_hash == text_hash and entry.stated_in != record:
                entry.stated_in = record
                return entry
        return None

    def grown(self, kind: str, text: str, block: int, record: tuple[int, int], listed: int) -> Entry | None:
        """The block of an earlier record that this text continues: a proper prefix at the same position.

        The position is the last of the message, or the block's own index where a snapshot lists the whole message
        again (``listed`` is how many blocks the record has): a fragment that comes after a call is a text of its own.
        """
        if self.closed:
            return None
        for position in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[position]
            if entry.kind != kind:
                continue
            is_here = position == len(self.entries) - 1 or (position == block and listed >= len(self.entries))
            is_prefix = entry.size < len(text) and hash(text[: entry.size]) == entry.text_hash
            return entry if is_here and is_prefix and entry.stated_in != record else None
        return None

    def add(self, kind: str, text: str, place: Place, record: tuple[int, int]) -> None:
        """A block that is new to the message."""
        self.entries.append(Entry(kind, len(text), hash(text), place, record))

    def replace(self, entry: Entry, text: str, place: Place, record: tuple[int, int]) -> None:
        """The later text stands for the block from now on."""
        entry.size, entry.text_hash, entry.place, entry.stated_in = len(text), hash(text), place, record

    def forget(self, record: tuple[int, int]) -> None:
        """Drops the blocks whose rows stand in a record that another one replaced."""
        self.entries = [entry for entry in self.entries if entry.place[:2] != record]
