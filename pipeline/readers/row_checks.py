"""The check of a table's rows as records, column by column.

The results equal those of msgspec on single records, and of `what_is_wrong`; a test compares them.
The limits come from `tables.COLUMNS`, which has them from the type, and each kind's required fields
from `spec/histories.py`: none is written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.readers.rejected_rows import Category, Chunk, reject
from brokerproof.pipeline.tables import COLUMNS, PLACE, SCHEMA, Column, file_and_line, said
from brokerproof.spec.histories import MUST_HAVE

Rows: TypeAlias = npt.NDArray[np.bool_]
"""For each row of a table, whether a condition holds."""

_KINDS = tuple(MUST_HAVE)
_FIELDS_ASKED_FOR = sorted({field for fields in MUST_HAVE.values() for field in fields})
_MUST_HAVE = {
    field: np.array([field in MUST_HAVE[kind] for kind in _KINDS] + [False])
    for field in _FIELDS_ASKED_FOR
}
"""By field, whether each kind, and an unknown kind, must have it."""


def checked(batch: pa.RecordBatch, file: str) -> Chunk:
    """Return the valid rows of a table, in the columns of a history, and the rejected ones."""
    if wrong_texts := _texts_that_are_none(batch):
        batch = _without_texts(batch, wrong_texts)
    complaints = list(_complaints(batch))
    unfit = np.zeros(batch.num_rows, dtype=np.bool_)
    for _, _, rows in complaints:
        unfit |= rows
    unfit[list(wrong_texts)] = True
    aside = []
    for row in map(int, np.flatnonzero(unfit)):
        why = _why(batch, row, wrong_texts.get(row), complaints)
        _, line = file_and_line(batch.column(PLACE)[row].as_py())
        aside.append(reject(*why, file, line, _text(batch, row)))
    fit = batch.filter(pa.array(~unfit)) if aside else batch
    columns = [fit.column(each.name).cast(each.type) for each in SCHEMA]
    return Chunk(batch.num_rows, pa.RecordBatch.from_arrays(columns, schema=SCHEMA), aside)


def _complaints(batch: pa.RecordBatch) -> Iterator[tuple[Category, str, Rows]]:
    """Yield the possible errors, and the rows with each; the first that holds counts."""
    for column in COLUMNS.values():
        values = batch.column(column.name)
        if column.required:
            yield "missing", f"there is no {column.name}", _nulls(values)
        if (beyond := _beyond(column, values)) is not None:
            yield "wrong value", f"{column.name} is {{}}", beyond
    kinds = pc.index_in(batch.column("op"), value_set=pa.array(_KINDS))
    kind_numbers = _numbers(kinds, nothing=len(_KINDS))
    for field, must_have in _MUST_HAVE.items():
        lacking = must_have[kind_numbers] & _nulls(batch.column(field))
        yield "missing", f"{{kind}} has no {field}", lacking
    backwards = pc.less(batch.column("end"), batch.column("start"))
    yield "ends before it starts", "it ends at {end}, before it starts at {start}", _so(backwards)


def _beyond(column: Column, values: pa.Array) -> Rows | None:
    """Return the rows whose value the field may not have."""
    if column.values:
        return _so(pc.invert(pc.is_in(values, value_set=pa.array(column.values)))) & ~_nulls(values)
    if column.least is None and column.most is None:
        return None
    measured = pc.utf8_length(values) if column.content == "text" else values
    rows = np.zeros(len(values), dtype=np.bool_)
    if column.least is not None:
        rows |= _so(pc.less(measured, column.least))
    if column.most is not None:
        rows |= _so(pc.greater(measured, column.most))
    return rows


def _why(
    batch: pa.RecordBatch,
    row: int,
    wrong_text: str | None,
    complaints: list[tuple[Category, str, Rows]],
) -> tuple[Category, str]:
    if wrong_text is not None:
        return "wrong value", f"{wrong_text} is not UTF-8"
    category, words, _ = next(each for each in complaints if each[2][row])
    if category == "wrong value":
        field = words.split()[0]
        return category, words.format(_allowed(COLUMNS[field], batch.column(field)[row].as_py()))
    values = {name: batch.column(name)[row].as_py() for name in ("op", "start", "end")}
    return category, words.format(kind=values["op"], **values)


def _allowed(column: Column, found: object) -> str:
    if column.values:
        return f"{found!r}, not one of {', '.join(column.values)}"
    if column.content == "text":
        return f"of {len(str(found))} characters, not of {column.least} to {column.most}"
    return f"{found}, not {column.least} to {column.most}"


def _text(batch: pa.RecordBatch, row: int) -> str:
    """Return a row as a line of JSON, without missing values."""
    values = {name: batch.column(name)[row].as_py() for name in COLUMNS}
    return msgspec.json.encode(said(values)).decode()


def _texts_that_are_none(batch: pa.RecordBatch) -> dict[int, str]:
    """Return by row its first text that is not UTF-8; writers of Parquet do not check that."""
    found: dict[int, str] = {}
    for column in COLUMNS.values():
        if column.content != "text":
            continue
        values = batch.column(column.name)
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            for row, value in enumerate(values.cast(pa.binary()).to_pylist()):
                if value is not None and not _is_text(value):
                    found.setdefault(row, column.name)
    return found


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_texts(batch: pa.RecordBatch, rows: dict[int, str]) -> pa.RecordBatch:
    """Return a table without any texts in these rows, so that it can be read."""
    keep = np.ones(batch.num_rows, dtype=np.bool_)
    keep[list(rows)] = False
    columns = [
        pc.if_else(pa.array(keep), values.cast(pa.binary()), None).cast(pa.string())
        if pa.types.is_string(values.type)
        else values
        for values in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _nulls(values: pa.Array) -> Rows:
    return np.asarray(values.is_null())


def _so(condition: pa.Array) -> Rows:
    """Return where a condition holds; null counts as False."""
    return np.asarray(condition.fill_null(pa.scalar(False)))


def _numbers(values: pa.Array, nothing: int) -> npt.NDArray[np.int32]:
    return np.asarray(values.fill_null(nothing))
