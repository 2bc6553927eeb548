"""How do the views of a store become Parquet files that any dataset reader opens?

One folder per view, below it folders ``provider=…/month=…`` where the view has them, one file in each, zstd. A file is
sorted by the view's key, and the same store gives the same bytes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from etl.export.place import private_file, replacing
from etl.export.views import Views
from etl.store import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etl.export.place import Building
    from etl.export.views import Selection

KIND: Final = "parquet"
#: What stands for NULL in the name of a folder, by Hive's convention.
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
#: A row group is written when it has so many bytes or rows: what is held in memory, and what a reader reads at a time.
_GROUP_BYTES: Final = 16 * 1024 * 1024
_GROUP_ROWS: Final = 65_536

Place = tuple[str | None, ...]


class Written(NamedTuple):
    """Rows by view, and how many sessions were left out only because they have no start."""

    rows: dict[str, int]
    undated: int


def export_parquet(db: str, dest: str, selection: Selection, names: Sequence[str] = ()) -> Written:
    """Writes views of a store (none named: the public ones) as Parquet below ``dest``.

    Raises UsageError for a destination, a view or a provider that will not do, StoreMissing and its kin.
    """
    info = inspect(db)
    with replacing(dest, KIND) as building, Views(db, selection, str(building.spill)) as views:
        written = Written({view: _write_view(building, views, view) for view in views.named(names)}, views.undated())
        building.says = {
            "store_id": info.store_id,
            "load_id": info.last_load_id,
            "selection": {**selection.as_dict(), "without_start": written.undated},
            "rows": written.rows,
        }
    return written


def _write_view(building: Building, views: Views, view: str) -> int:
    partition = views.partition(view)
    columns, rows = views.rows(view)
    schema = file_schema(columns, partition)
    written = 0
    for place, batches in _by_place(rows, partition):
        with _Writer(building, schema, view, partition, place) as writer:
            for batch in batches:
                writer.add(batch.select(schema.names))
                written += batch.num_rows
    if not written:  # a dataset without a file has no columns, and a folder without a value has no type
        with _Writer(building, file_schema(columns, ()), view, (), ()):
            pass
    return written


def file_schema(schema: pa.Schema, partition: Sequence[str]) -> pa.Schema:
    """The columns of a file of a view: those that are folders are not in it, lists name their items as others do."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema if field.name not in partition])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind


def _by_place(
    rows: Iterator[pa.RecordBatch], partition: Sequence[str]
) -> Iterator[tuple[Place, Iterator[pa.RecordBatch]]]:
    """The batches of each folder; the rows come in the order of the folders."""
    for place, pieces in groupby(_pieces(rows, partition), key=lambda piece: piece[0]):
        yield place, (batch for _, batch in pieces)


def _pieces(rows: Iterator[pa.RecordBatch], partition: Sequence[str]) -> Iterator[tuple[Place, pa.RecordBatch]]:
    for batch in rows:
        places: list[Place] = (
            list(zip(*(batch.column(name).to_pylist() for name in partition), strict=True))
            if partition
            else [()] * batch.num_rows
        )
        start = 0
        for place, same in groupby(places):
            length = sum(1 for _ in same)
            yield place, batch.slice(start, length)
            start += length


class _Writer:
    """One Parquet file, written a row group at a time."""

    def __init__(
        self, building: Building, schema: pa.Schema, view: str, partition: Sequence[str], place: Place
    ) -> None:
        folders = [
            f"{name}={_NULL if value is None else quote(value, safe='')}"
            for name, value in zip(partition, place, strict=True)
        ]
        self.schema = schema
        self.file = private_file(building.path(view, *folders, "part-0.parquet"))
        self.writer = pq.ParquetWriter(self.file, schema, compression="zstd")
        self.held: list[pa.RecordBatch] = []
        self.rows = self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """More rows."""
        self.held.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if self.bytes >= _GROUP_BYTES or self.rows >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes what is held as one row group."""
        if self.held:
            table = pa.Table.from_batches(self.held).cast(self.schema)
            self.writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self.held, self.rows, self.bytes = [], 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self.flush()
            self.writer.close()
        finally:
            self.file.close()
