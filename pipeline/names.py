"""Names as numbers: they distinguish rows without a look at a name for each row.

The numbers follow the order of the names, so sorting by number is sorting by name, whatever else is
in the table.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]

NO_ROW: Final = -1

NAMES: Final = ("op", "mode", "outcome", "run", "queue", "consumer", "channel")
"""The columns with few distinct names."""


def with_numbered_names(table: pa.Table) -> pa.Table:
    """Return the table with those of these columns that it has encoded as dictionaries."""
    for name in NAMES:
        if (at := table.schema.get_field_index(name)) >= 0:
            table = table.set_column(at, name, _numbered(table.column(name)))
    return table


def _numbered(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        # As one piece, so that there is one dictionary: merging several takes longer.
        whole = column.combine_chunks()
        # Content too large for one piece stays in several.
        pieces = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
        column = pa.chunked_array(pieces, column.type).dictionary_encode()
    if column.num_chunks != 1:
        column = pa.chunked_array([column.unify_dictionaries().combine_chunks()])
    return column.chunk(0)


def texts(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Return the names of some rows as strings."""
    taken = column.take(rows)
    return taken.cast(pa.string()) if pa.types.is_dictionary(taken.type) else taken


def message_numbers(table: pa.Table, queue: Ints) -> Ints:
    """Return dense numbers of messages; equal names in two queues are two messages.

    Rows without a message have -1.
    """
    encoded = _numbered(table.column("message"))
    number = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    queue_of = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
    queue_of[number] = queue
    named = number >= 0
    if bool((queue_of[number] == queue)[named].all()):
        return np.asarray(number, dtype=np.int64)
    _, both = dense(joint(queue, number))
    return np.where(named, both, -1)


def indices(column: pa.ChunkedArray) -> tuple[Ints, list[str | None]]:
    """Return for each row the place of its name in a list, whose last one stands for no name."""
    encoded = _numbered(column)
    names = [*encoded.dictionary.to_pylist(), None]
    place = encoded.indices
    if place.null_count:
        place = place.fill_null(len(names) - 1)
    return place.to_numpy().astype(np.int64), names


def ranks(column: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Return for each row the rank of its name among all names, and the names in order.

    A row without a name has the rank -1.
    """
    encoded = _numbered(column)
    order = pc.sort_indices(encoded.dictionary)
    names = encoded.dictionary.take(order)
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(names))
    rank[-1] = -1
    indices = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    found: Ints = rank[indices]
    return found, names


def joint(*columns: Ints) -> Ints:
    """Return numbers, from 0, that are equal where all columns are, in the order of the columns."""
    number = columns[0]
    for column in columns[1:]:
        number = number * (int(column.max(initial=0)) + 2)
        number += column
        number += 1
    return number


def dense(number: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in order, and for each number its place among them.

    The result of `np.unique`; numbers that are close together need no sorting.
    """
    most = int(number.max(initial=0))
    if int(number.min(initial=0)) < 0 or most > 4 * number.size + 1024:
        distinct, place = np.unique(number, return_inverse=True)
        return distinct, place.astype(np.int64)
    there = np.zeros(most + 1, dtype=np.bool_)
    there[number] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[number]


def places_in(sorted_keys: Ints, keys: Ints) -> tuple[Ints, Marks]:
    """Return the place of each key among sorted ones, and whether it is present."""
    at = np.searchsorted(sorted_keys, keys)
    at = np.minimum(at, max(sorted_keys.size - 1, 0))
    there = sorted_keys[at] == keys if sorted_keys.size else np.zeros(keys.size, dtype=np.bool_)
    return at, there


def numbers(table: pa.Table, name: str, missing: int = -1) -> Ints:
    """Return a column of numbers; nulls become `missing`."""
    column = table.column(name)
    if column.null_count:
        column = pc.fill_null(column, missing)
    values = column.to_numpy()
    return np.asarray(values, dtype=np.int64)


def marks(table: pa.Table, name: str) -> Marks:
    """Return a column of booleans; nulls are False."""
    column = table.column(name)
    if column.null_count:
        column = pc.fill_null(column, False)
    return np.asarray(column.to_numpy(), dtype=np.bool_)


def is_one_of(table: pa.Table, name: str, *values: str) -> Marks:
    """Return which rows have one of the values."""
    place, names = indices(table.column(name))
    found: Marks = np.array([each in values for each in names], dtype=np.bool_)[place]
    return found
