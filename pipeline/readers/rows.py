"""The output of the readers of others' recordings: one item for each row, in bounded tables.

A row is used or rejected. A used row has several records, or none if another row completes it. So
the rows of a recording can be counted, though they are not records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from brokerproof.pipeline.readers.rejected_rows import Chunk, Rejected
from brokerproof.pipeline.tables import BATCH_ROWS, COLUMNS, batch_of, place_of
from brokerproof.spec.histories import Record, what_is_wrong

NAME_CHARACTERS_MAX: Final = COLUMNS["message"].most or 0
DIGEST_CHARACTERS: Final = 32


class Used(NamedTuple):
    """A row of a recording, its line, and its records."""

    line: int
    records: tuple[Record, ...] = ()


def unfit(records: Iterable[Record]) -> str | None:
    """Return in one line what makes one of some records invalid, or None.

    The values of a reader are not decoded, so their limits have not been checked yet.
    """
    for record in records:
        try:
            msgspec.convert(msgspec.structs.asdict(record), Record)
        except msgspec.ValidationError as error:
            return str(error).replace(" - at `$.", " in `")
        if wrong := what_is_wrong(record):
            return wrong
    return None


def chunks_of(rows: Iterable[Used | Rejected]) -> Iterator[Chunk]:
    """Yield the content of rows as tables of a bounded size."""
    count = 0
    records: list[Record] = []
    places: list[int] = []
    aside: list[Rejected] = []
    for row in rows:
        count += 1
        if isinstance(row, Rejected):
            aside.append(row)
        else:
            records += row.records
            places += [place_of(0, row.line)] * len(row.records)
        if max(count, len(records)) >= BATCH_ROWS:
            yield Chunk(count, batch_of(records, places), aside)
            count, records, places, aside = 0, [], [], []
    if count:
        yield Chunk(count, batch_of(records, places), aside)


def name_of(text: str) -> str:
    """Return a valid name for any text: the text, or its beginning and a digest."""
    if len(text) <= NAME_CHARACTERS_MAX:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    return f"{text[: NAME_CHARACTERS_MAX - DIGEST_CHARACTERS - 1]}…{digest}"
