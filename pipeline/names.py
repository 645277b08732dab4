"""Names as numbers: what tells things of a table apart, without looking at a name for each row.

The numbers of names follow the order of the names, so what is settled by number is settled by name,
whatever else is in the table.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from brokerproof.pipeline.dominance import Ints


def ranks(column: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Return for each row the rank of its name among all names, and the names in order.

    A row without a name has the rank -1.
    """
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    order = pc.sort_indices(encoded.dictionary)
    names = encoded.dictionary.take(order)
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(names))
    rank[-1] = -1
    indices = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    return rank[indices], names


def dense(number: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in order, and for each number its place among them.

    That is what `np.unique` says; where the numbers are not far apart no sorting is needed for it.
    """
    most = int(number.max(initial=0))
    if int(number.min(initial=0)) < 0 or most > 4 * number.size + 1024:
        distinct, place = np.unique(number, return_inverse=True)
        return distinct, place.astype(np.int64)
    there = np.zeros(most + 1, dtype=np.bool_)
    there[number] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[number]


def joint(*columns: Ints) -> Ints:
    """Return numbers, from 0, that are equal where all columns are, in the order of the columns."""
    number = columns[0]
    for column in columns[1:]:
        number = number * (int(column.max(initial=0)) + 2) + (column + 1)
    return number


def places_in(sorted_keys: Ints, keys: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return where each key stands among sorted ones, and whether it is there at all."""
    at = np.searchsorted(sorted_keys, keys)
    at = np.minimum(at, max(sorted_keys.size - 1, 0))
    there = sorted_keys[at] == keys if sorted_keys.size else np.zeros(keys.size, dtype=np.bool_)
    return at, there


def numbers(table: pa.Table, name: str, missing: int = -1) -> Ints:
    """Return a column of numbers; what has none is `missing`."""
    column = table.column(name)
    if column.null_count:
        column = pc.fill_null(column, missing)
    values = column.to_numpy()
    return np.asarray(values, dtype=np.int64)


def marks(table: pa.Table, name: str) -> NDArray[np.bool_]:
    """Return a column of truths; what is not known is not so."""
    column = table.column(name)
    if column.null_count:
        column = pc.fill_null(column, False)
    return np.asarray(column.to_numpy(), dtype=np.bool_)


def is_one_of(table: pa.Table, name: str, *values: str) -> NDArray[np.bool_]:
    """Return which rows have one of the values."""
    found = pc.is_in(table.column(name), value_set=pa.array(values, pa.string()))
    return np.asarray(found.to_numpy(), dtype=np.bool_)
