"""Histories as Parquet, in their own form: a row is a record, a null is a missing value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from brokerproof.pipeline.readers.rejected_rows import Chunk
from brokerproof.pipeline.readers.row_checks import checked
from brokerproof.pipeline.tables import PLACE, SCHEMA, place_of, read


def chunks(path: Path) -> Iterator[Chunk]:
    """Yield the content of a file's rows, each at its row; raises `UnreadableHistory`."""
    first = 1
    for batch in read(path):
        rows = range(place_of(0, first), place_of(0, first) + batch.num_rows)
        places = pa.array(rows, pa.int64())
        first += batch.num_rows
        yield checked(batch.set_column(SCHEMA.names.index(PLACE), PLACE, places), str(path))
