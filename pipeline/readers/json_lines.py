"""Histories as JSON Lines: one record a line, in its own form.

The first line may be a header, ``{"brokerproof_history": 1}``, with the version of the form;
without it the form is version 1. Blank lines are no rows. A line that does not decode is rejected,
and so is an invalid record.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from brokerproof.pipeline.readers.blocks import TOO_LONG, WHY_TOO_LONG, blocks
from brokerproof.pipeline.readers.rejected_rows import Category, Chunk, Rejected, reject
from brokerproof.pipeline.readers.row_checks import checked
from brokerproof.pipeline.tables import batch_of, require_version, said
from brokerproof.spec.histories import VERSION, Record

HEADER: Final = "brokerproof_history"

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""msgspec's errors for bytes that do not have the requested type."""

_decode = msgspec.json.Decoder(Record).decode


def chunks(path: Path) -> Iterator[Chunk]:
    """Yield the content of a file's lines; raises `UnreadableHistory`."""
    at_start = True
    for first, lines in blocks(path):
        if at_start:
            skipped = _lines_before_rows(path, lines)
            at_start = skipped == len(lines)
            first, lines = first + skipped, lines[skipped:]  # noqa: PLW2901 - what is left of it
        if lines:
            yield _chunk(str(path), first, lines)


def lines_of(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the lines of a file, the header first, each with its end."""
    yield msgspec.json.encode({HEADER: VERSION}) + b"\n"
    encoder = msgspec.json.Encoder()
    for record in records:
        # msgspec leaves out a default only if it is the very same object.
        yield encoder.encode(said(msgspec.structs.asdict(record))) + b"\n"


def rejected_line(error: Exception, file: str, number: int, line: bytes) -> Rejected:
    """Return a line that did not decode as a rejected row."""
    if line == TOO_LONG:
        return reject("unreadable", WHY_TOO_LONG, file, number)
    return reject(*complaint(error), file, number, line.decode("utf-8", "replace"))


def complaint(error: Exception) -> tuple[Category, str]:
    """Return the category and reason of a row that did not decode."""
    words = str(error).replace(" - at `$.", " in `").removesuffix(" - at `$`")
    if not isinstance(error, msgspec.ValidationError):
        return "unreadable", f"this is not JSON: {words}"
    return ("missing" if "missing required field" in words else "wrong value"), words


def _chunk(file: str, first: int, lines: list[bytes]) -> Chunk:
    aside: list[Rejected] = []
    numbers: Sequence[int] = range(first, first + len(lines))
    with _no_collection():
        try:
            records = list(map(_decode, lines))
        except UNDECODABLE:
            numbers, records = _one_by_one(file, first, lines, aside)
        batch = batch_of(records, numbers)
    fit = checked(batch, file)
    rows = batch.num_rows + len(aside)
    together = sorted([*aside, *fit.rejected], key=lambda each: each.line)
    return Chunk(rows, fit.batch, together)


def _one_by_one(
    file: str, first: int, lines: list[bytes], aside: list[Rejected]
) -> tuple[list[int], list[Record]]:
    """Return the records of the lines that decode, and their numbers; blank lines are no rows."""
    numbers, records = [], []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            records.append(_decode(line))
        except UNDECODABLE as error:
            aside.append(rejected_line(error, file, number, line))
        else:
            numbers.append(number)
    return numbers, records


def _lines_before_rows(path: Path, lines: list[bytes]) -> int:
    """Return the number of lines before the first row: blank ones, and a header.

    Raises `UnreadableHistory` for another version of the form.
    """
    blank = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    if blank == len(lines):
        return blank
    try:
        said = msgspec.json.decode(lines[blank])
    except UNDECODABLE:
        return blank
    if not isinstance(said, dict) or HEADER not in said:
        return blank
    require_version(path, said[HEADER])
    return blank + 1


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking over hundreds of thousands of young records."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
