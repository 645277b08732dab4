"""Text files in blocks of whole lines, so that memory does not grow with the file.

A file compressed by gzip or zstd is unpacked while it is read. Its name does not matter. A byte
order mark at the beginning belongs to no line: editors and shells of Windows write one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

import pyarrow as pa

from brokerproof.pipeline.tables import UnreadableHistory

PACKED: Final = {
    b"\x1f\x8b": "gzip -dc",
    b"\x28\xb5\x2f\xfd": "zstd -dc",
    b"\xfd7zXZ\x00": "xz -dc",
    b"BZh": "bzip2 -dc",
    b"PK\x03\x04": "unzip -p",
}
"""The first bytes of compressed files, and the command that unpacks them."""

READ_PACKED: Final = ("gzip", "zstd")
"""The commands, which are Arrow's codecs too, of files that are unpacked while they are read."""

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
    with opened(path) as file:
        while read := file.read(size):
            *lines, rest = (rest + read).split(b"\n")
            rest = rest[: LINE_BYTES_MAX + 1]  # it is too long already
            if lines:
                yield _block(first, lines)
                first += len(lines)
    if rest:
        yield _block(first, [rest])


@contextmanager
def opened(path: Path, *, may_be_packed: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for its unpacked bytes; raises `UnreadableHistory`, also while it is read."""
    try:
        with path.open("rb") as file:
            magic = next(filter(file.peek(max(map(len, PACKED))).startswith, PACKED), b"")
            command = PACKED.get(magic, "")
            codec = command.removesuffix(" -dc")
            if not command:
                yield file
            elif codec in READ_PACKED and may_be_packed:
                with pa.CompressedInputStream(pa.PythonFile(file), codec) as unpacked:
                    yield unpacked
            else:
                raise UnreadableHistory(
                    f"{path}: this is compressed, and read only unpacked; unpack it with: "
                    f"{command} {shlex.quote(str(path))} > NAME"
                )
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise UnreadableHistory(f"{path}: {reason}") from error


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
