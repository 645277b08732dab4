"""Histories as tables: a column for each field of `Record`, in Arrow's memory and Parquet's files.

Owns the columns and their allowed values, from the type of a record, and the place of a row.
`row_checks` checks rows. A file exists whole or not at all; equal rows make equal bytes. Missing
values, such as the `end` of an unanswered operation, are null.

A place is one number: the index of the file in a list, shifted left by `LINE_BITS`, plus the number
of the line or row in it, from 1. The list is in the metadata of the table.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias, get_args, get_type_hints

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import inspect as types

from brokerproof.spec.histories import NEVER, VERSION, Record

PLACE: Final = "place"
LINE_BITS: Final = 40
BATCH_ROWS: Final = 1 << 16
"""The number of rows in memory at once, as far as the reader of a table can choose."""

BUFFER_BYTES: Final = 1 << 20
"""How much of a column is read at once: without a limit it is the whole column of a row group."""

VERSION_KEY: Final = b"brokerproof_history"
FILES_KEY: Final = b"brokerproof_files"
COMPRESSION: Final = "zstd"

Content: TypeAlias = Literal["text", "time", "count", "truth"]

_ARROW: Final[dict[Content, pa.DataType]] = {
    "text": pa.string(),
    "time": pa.int64(),
    "count": pa.int32(),
    "truth": pa.bool_(),
}


_SPARK: Final = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.int64(): "long",
    pa.int32(): "int",
    pa.int16(): "short",
    pa.int8(): "byte",
    pa.bool_(): "boolean",
}


def in_spark(schema: pa.Schema) -> str:
    """Return the columns of a table in Spark's words.

    >>> in_spark(pa.schema([("run", pa.string()), ("start", pa.int64())]))
    '`run` string, `start` long'
    """
    return ", ".join(f"`{each.name}` {_SPARK[each.type]}" for each in schema)


class UnreadableHistory(Exception):
    """A file is no readable history; the message is one line that names file and field."""


@dataclass(frozen=True)
class Column:
    """A field of a record: its content and its limits.

    `least` and `most` are the limits of a number, or of the length of a text in characters.
    """

    name: str
    content: Content
    required: bool
    optional: bool
    default: object
    least: int | None = None
    most: int | None = None
    values: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.DataType:
        """The type of the column."""
        return _ARROW[self.content]


def _columns() -> Iterator[Column]:
    structure = types.type_info(Record)
    assert isinstance(structure, types.StructType)
    for field in structure.fields:
        optional = isinstance(field.type, types.UnionType)
        plain = field.type
        if isinstance(plain, types.UnionType):
            [plain] = [each for each in plain.types if not isinstance(each, types.NoneType)]
        content, least, most, values = _limits(field.name, plain)
        default = None if field.required else field.default
        yield Column(field.name, content, field.required, optional, default, least, most, values)


def _limits(
    name: str, plain: types.Type
) -> tuple[Content, int | None, int | None, tuple[str, ...]]:
    match plain:
        case types.StrType(min_length=least, max_length=most):
            return "text", least, most, ()
        case types.LiteralType(values=values):
            return "text", None, None, tuple(map(str, values))
        case types.BoolType():
            return "truth", None, None, ()
        case types.IntType(ge=least, lt=None, le=most) if most is not None and most < 2**31:
            return "count", least, most, ()
        case types.IntType(ge=least, lt=below, le=None) if below is not None:
            return "time", least, below - 1, ()
        case _:
            raise TypeError(f"no column can hold {name}: {plain}")


COLUMNS: Final[dict[str, Column]] = {each.name: each for each in _columns()}
"""The columns by name, in the order of the fields."""

SCHEMA: Final = pa.schema(
    [
        *(pa.field(each.name, each.arrow, each.optional) for each in COLUMNS.values()),
        pa.field(PLACE, pa.int64(), nullable=False),
    ]
)
"""The table of a checked history."""


def place_of(file: int, line: int) -> int:
    """Return the place of a line of a file.

    >>> file_and_line(place_of(2, 7))
    (2, 7)
    """
    assert 0 <= file < 1 << (63 - LINE_BITS), file
    assert 0 <= line < 1 << LINE_BITS, line
    return file << LINE_BITS | line


def file_and_line(place: int) -> tuple[int, int]:
    """Return the number of the file, from 0, and that of the line in it, from 1."""
    return place >> LINE_BITS, place & ((1 << LINE_BITS) - 1)


def batch_of(records: Sequence[Record], places: Sequence[int]) -> pa.RecordBatch:
    """Return records as a table."""
    assert len(records) == len(places)
    rows = list(map(msgspec.structs.astuple, records))
    columns = zip(*rows, strict=True) if rows else itertools.repeat((), len(COLUMNS))
    arrays = [
        _array(values, column.arrow)
        for column, values in zip(COLUMNS.values(), columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays([*arrays, pa.array(places, pa.int64())], schema=SCHEMA)


def _array(values: Sequence[object], arrow: pa.DataType) -> pa.Array:
    """Return values as a column, with a fast path for one value in all rows."""
    if values and values.count(values[0]) == len(values):
        return pa.repeat(pa.scalar(values[0], arrow), len(values))
    return pa.array(values, arrow)


def records_of(batch: pa.RecordBatch) -> Iterator[Record]:
    """Yield the records of a table of valid rows."""
    for row in batch.drop_columns([PLACE]).to_pylist():
        yield Record(**row)


def said(values: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a record without those that have their default."""
    return {
        name: values[name]
        for name, column in COLUMNS.items()
        if values[name] is not None and (column.required or values[name] != column.default)
    }


class Part:
    """A file of a table during writing, whole rows at a time.

    It gets its name when it is finished, as a regular exit of a ``with`` block does. Before that,
    and after a discard, no file of that name exists.
    """

    def __init__(self, path: Path, files: Sequence[str]) -> None:
        self.rows = 0
        self._path = path
        self._unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
        metadata = {
            VERSION_KEY: str(VERSION).encode(),
            FILES_KEY: msgspec.json.encode(list(files)),
        }
        self._writer = pq.ParquetWriter(
            self._unfinished, SCHEMA.with_metadata(metadata), compression=COMPRESSION
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a table."""
        self._writer.write_batch(batch.replace_schema_metadata(None))
        self.rows += batch.num_rows

    def finish(self) -> None:
        """Close the file and give it its name."""
        self._writer.close()
        self._unfinished.replace(self._path)

    def discard(self) -> None:
        """Remove the unfinished file."""
        try:
            self._writer.close()
        finally:
            self._unfinished.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()


def write(path: Path, records: Iterable[Record], files: Sequence[str] = ()) -> int:
    """Write records, whose places are rows of the last file, and return their number."""
    remaining = iter(records)
    base = place_of(max(len(files) - 1, 0), 0)
    with Part(path, files) as part:
        while some := list(itertools.islice(remaining, BATCH_ROWS)):
            first = base + part.rows + 1
            part.write(batch_of(some, range(first, first + len(some))))
        return part.rows


def read(path: Path, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows with all columns, as they were written: no row has been checked.

    Numbers are as wide as in the file; timestamps become nanoseconds. A missing column, and a null
    in a column that cannot be null, is filled with the default; in a required column nulls stay.
    Missing places are the rows of the file, as places of file 0. Raises `UnreadableHistory`.
    """
    try:
        with pq.ParquetFile(path, buffer_size=BUFFER_BYTES) as file:
            _require_version(path, file.schema_arrow)
            _require_columns(path, file.schema_arrow)
            first = 1
            for batch in file.iter_batches(batch_rows):
                yield _completed(batch, first)
                first += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise UnreadableHistory(f"{path}: not a Parquet file: {reason}") from error


def files_of(path: Path) -> list[str]:
    """Return the names of the files in a table's places, empty if it has none."""
    metadata = pq.read_schema(path).metadata or {}
    return msgspec.json.decode(metadata.get(FILES_KEY, b"[]"), type=list[str])


def require_version(path: Path | str, version: object) -> None:
    """Refuse another version of the form; raises `UnreadableHistory`."""
    if type(version) is not int or version != VERSION:
        raise UnreadableHistory(
            f"{path}: this is version {version} of the form of a history; only {VERSION} is known"
        )


def _require_version(path: Path, schema: pa.Schema) -> None:
    said = (
        (schema.metadata or {}).get(VERSION_KEY, str(VERSION).encode()).decode("utf-8", "replace")
    )
    require_version(path, int(said) if said.isdecimal() else said)


def _require_columns(path: Path, schema: pa.Schema) -> None:
    """Raise `UnreadableHistory` for an extra, missing, double or wrongly typed column."""
    names = schema.names
    for name in names:
        if names.count(name) > 1:
            raise UnreadableHistory(f"{path}: there are two columns {name}")
        if name not in SCHEMA.names:
            raise UnreadableHistory(f"{path}: a history has no column {name}")
    for column in COLUMNS.values():
        if column.required and column.name not in names:
            raise UnreadableHistory(f"{path}: the column {column.name} is missing")
    for name in names:
        if not _may_hold(name, schema.field(name).type):
            found, wanted = schema.field(name).type, SCHEMA.field(name).type
            raise UnreadableHistory(f"{path}: the column {name} holds {found}, not {wanted}")
    times = {name: schema.field(name).type for name in ("start", "end", "lease") if name in names}
    numbers = [n for n, found in times.items() if pa.types.is_integer(found) and n != "lease"]
    if numbers and any(map(pa.types.is_temporal, times.values())):
        held = ", ".join(f"{name} {found}" for name, found in times.items())
        raise UnreadableHistory(f"{path}: some times are of a clock, and others numbers: {held}")


def _may_hold(name: str, found: pa.DataType) -> bool:
    content = COLUMNS[name].content if name in COLUMNS else "count"
    if pa.types.is_null(found):
        return True
    match content:
        case "time" if pa.types.is_temporal(found):
            is_one = pa.types.is_duration if name == "lease" else pa.types.is_timestamp
            return bool(is_one(found))
        case "text":
            plain = found.value_type if pa.types.is_dictionary(found) else found
            return bool(
                pa.types.is_string(plain)
                or pa.types.is_large_string(plain)
                or pa.types.is_string_view(plain)
            )
        case "truth":
            return bool(pa.types.is_boolean(found))
        case "time" | "count":
            return bool(pa.types.is_integer(found) and found != pa.uint64())


def _completed(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Return a table with all columns in their order."""
    arrays = [_filled(column, batch) for column in COLUMNS.values()]
    if PLACE in batch.schema.names and batch.column(PLACE).null_count == 0:
        places = batch.column(PLACE).cast(pa.int64())
    else:
        places = pa.array(range(first, first + batch.num_rows), pa.int64())
    return pa.RecordBatch.from_arrays([*arrays, places], names=SCHEMA.names)


def _filled(column: Column, batch: pa.RecordBatch) -> pa.Array:
    if column.name not in batch.schema.names:
        default = pa.scalar(column.default, column.arrow)
        return pa.repeat(default, batch.num_rows)
    found = batch.column(column.name)
    if pa.types.is_temporal(found.type):
        found = _in_nanoseconds(found, is_end=column.name == "end")
    # Wider than allowed: `row_checks` tests each number.
    wide = pa.int64() if column.content in {"time", "count"} else column.arrow
    found = found.cast(wide)
    if found.null_count and column.default is not None:
        return found.fill_null(pa.scalar(column.default, wide))
    return found


def _in_nanoseconds(found: pa.Array, *, is_end: bool) -> pa.Array:
    """Return times of a clock as nanoseconds; what is no time of a history stays beyond the limits.

    A time in a coarser unit stands for all moments of that unit, of which an `end` is the last: so
    no span is narrower than it is known to be, and times of different units can be compared.
    """
    unit = _NANOSECONDS[found.type.unit]
    most = pa.scalar(NEVER // unit + 1)
    bounded = pc.min_element_wise(found.cast(pa.int64()), most, skip_nulls=False)
    bounded = pc.max_element_wise(bounded, pa.scalar(-1), skip_nulls=False)
    return pc.add(pc.multiply(bounded, unit), unit - 1 if is_end else 0)


_NANOSECONDS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

assert set(get_args(Content)) == set(_ARROW)
assert list(get_type_hints(Record)) == list(COLUMNS)
