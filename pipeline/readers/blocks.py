"""Text files in blocks of whole lines, so that memory does not grow with the file.

A byte order mark at the beginning belongs to no line: editors and shells of Windows write one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from brokerproof.pipeline.tables import UnreadableHistory

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
BLOCK_BYTES: Final = 1 << 22
LINE_BYTES_MAX: Final = 1 << 24
"""A line longer than 16 MiB is no record of anything."""

TOO_LONG: Final = b"\xff too long"
"""Stands for a longer line, whose bytes are not kept; no form reads it, since it is not UTF-8."""

WHY_TOO_LONG: Final = f"the line has more than {LINE_BYTES_MAX:,} bytes"


class Block(NamedTuple):
    """Whole lines, without their ends, and the number of the first, from 1."""

    first: int
    lines: list[bytes]


def blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the lines of a file; raises `UnreadableHistory`."""
    first = 1
    rest = b""
    try:
        with path.open("rb") as file:
            while read := file.read(size):
                *lines, rest = (rest + read).split(b"\n")
                rest = rest[: LINE_BYTES_MAX + 1]  # too long, whatever else is in the line
                if lines:
                    yield _block(first, lines)
                    first += len(lines)
    except OSError as error:
        raise UnreadableHistory(f"{path}: {error.strerror or error}") from error
    if rest:
        yield _block(first, [rest])


def _block(first: int, lines: list[bytes]) -> Block:
    if first == 1:
        lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
    if max(map(len, lines)) > LINE_BYTES_MAX:
        lines = [line if len(line) <= LINE_BYTES_MAX else TOO_LONG for line in lines]
    return Block(first, lines)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the nonblank lines of a file, with their numbers from 1."""
    for first, lines in blocks(path):
        for number, line in enumerate(lines, first):
            if line.strip():
                yield number, line
