"""The history of a seed's examples: each example is a run, in the order of execution.

Owns the names of the runs and the file. The reader of the gate's runs turns steps into records. An
example whose names no record may have is left out whole, and counted: half of it could look like a
violation.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from brokerproof.checks.search.counterexamples import line_of
from brokerproof.checks.search.findings import Exchange
from brokerproof.pipeline.readers.rows import unfit
from brokerproof.pipeline.readers.runs import followed
from brokerproof.pipeline.tables import BATCH_ROWS, Part, batch_of
from brokerproof.spec.histories import Record
from brokerproof.spec.protocol.capabilities import Capabilities

FOLDER: Final = "histories"
"""The folder of a report with one file for each seed."""


def file_of(seed: int) -> str:
    """Return the name of a seed's file; the names sort in the order of the seeds.

    >>> file_of(7)
    'seed-0000000007.parquet'
    """
    return f"seed-{seed:010d}.parquet"


class Examples:
    """The history of a seed's examples during writing.

    The file appears at a regular exit of the context, not before. Equal examples give equal bytes.
    `count` is the number of examples, `left_out` the number of those that are not in the file.
    """

    def __init__(self, path: Path, seed: int, claims: Capabilities) -> None:
        self.count = self.left_out = 0
        self._seed, self._claims = seed, claims
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._part = Part(path, ())

    def add(self, steps: tuple[Exchange, ...]) -> None:
        """Add an example."""
        name = f"seed {self._seed} example {self.count}"
        self.count += 1
        lines = tuple(map(line_of, steps))
        records = [each for step in followed(name, self._claims, lines) for each in step]
        batch = self._batch(records)
        if batch is None:
            self.left_out += 1
            return
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= BATCH_ROWS:
            self._write()

    def _batch(self, records: list[Record]) -> pa.RecordBatch | None:
        if unfit(records):
            return None
        first = self._part.rows + self._rows + 1
        try:
            return batch_of(records, range(first, first + len(records)))
        except UnicodeEncodeError:  # half a surrogate pair, which a candidate may well say
            return None

    def _write(self) -> None:
        for batch in pa.Table.from_batches(self._waiting).combine_chunks().to_batches():
            self._part.write(batch)
        self._waiting, self._rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is not None:
            self._part.discard()
            return
        if self._waiting:
            self._write()
        self._part.finish()
