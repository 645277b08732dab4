"""The records of the index: bytes in a journal, and bytes in a segment's file.

Owns the layout of each record, and reading them up to the first torn one. `combinations` owns what
the operations mean together.

A journal's record begins with two bits for its kind and 62 for the sequence number; a segment's
with two bits and 14 for the place. In both the second bit of a publish says *transient*, and its
last 24 bytes are message id and expiry, so that a record of either file can stand for the other.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from brokerproof.reference.rabbitmq.disk.combinations import AFTER_MARK, NOTHING, P

if TYPE_CHECKING:
    from collections.abc import Iterator

ID_BYTES: Final = 16
NO_EXPIRY: Final = 0

TRANSIENT: Final = 1 << 62
"""The bit of a transient publish; a persistent one has neither bit."""
DELIVER: Final = 2 << 62
ACKNOWLEDGE: Final = 3 << 62
_KIND: Final = 3 << 62
_SEQ: Final = (1 << 62) - 1

JOURNAL_PUBLISH: Final = struct.Struct(">Q16sQ")
RECORD_BYTES: Final = JOURNAL_PUBLISH.size
JOURNAL_MARK: Final = struct.Struct(">Q")

_PUBLISH: Final = 0x8000
_TRANSIENT: Final = 0x4000
_PLACE: Final = 0x3FFF
_SEGMENT_PUBLISH: Final = struct.Struct(">H16sQ")
_SEGMENT_MARK: Final = struct.Struct(">H")
_PAYLOAD: Final = struct.Struct(">16sQ")
_TRANSIENT_BYTE: Final = 0x40


class IndexEntry(NamedTuple):
    """A live message in the index; `expiry` in µs, None if it never expires."""

    seq: int
    msg_id: bytes
    expiry: int | None
    is_persistent: bool
    is_delivered: bool


class Operation(NamedTuple):
    """One record of a journal; a publish includes its whole record."""

    kind: int
    seq: int
    record: bytes


class SegmentContent(NamedTuple):
    """A segment file's states and publish records by place, and the bytes read."""

    states: dict[int, int]
    published: dict[int, bytes]
    size: int


def entry_of(seq: int, record: bytes, *, is_delivered: bool) -> IndexEntry:
    """Return the entry of a publish record of either file."""
    msg_id, expiry = _PAYLOAD.unpack_from(record, len(record) - _PAYLOAD.size)
    return IndexEntry(
        seq,
        msg_id,
        None if expiry == NO_EXPIRY else expiry,
        not record[0] & _TRANSIENT_BYTE,
        is_delivered,
    )


def segment_records(place: int, record: bytes, marks: int) -> bytes:
    """Return the bytes for a place of a segment's file: its publish, if any, and its marks."""
    if not record:
        return _SEGMENT_MARK.pack(place) * marks
    header = _PUBLISH | (record[0] & _TRANSIENT_BYTE) << 8 | place
    published = _SEGMENT_MARK.pack(header) + record[-_PAYLOAD.size :]
    return published + _SEGMENT_MARK.pack(place) * marks if marks else published


def journal_operations(data: bytes) -> Iterator[Operation]:
    """Yield the operations of a journal up to the first torn record."""
    at, end = 0, len(data)
    while at + JOURNAL_MARK.size <= end:
        (header,) = JOURNAL_MARK.unpack_from(data, at)
        kind = header & _KIND
        size = JOURNAL_MARK.size if kind in (DELIVER, ACKNOWLEDGE) else JOURNAL_PUBLISH.size
        if at + size > end:
            return
        yield Operation(kind, header & _SEQ, data[at : at + size])
        at += size


def segment_content(data: bytes) -> SegmentContent:
    """Return the content of a segment's file up to the first torn record."""
    states: dict[int, int] = {}
    published: dict[int, bytes] = {}
    header_of = _SEGMENT_MARK.unpack_from
    size = _SEGMENT_PUBLISH.size
    at, end = 0, len(data)
    while at + _SEGMENT_MARK.size <= end:
        (header,) = header_of(data, at)
        place = header & _PLACE
        if header & _PUBLISH:
            if at + size > end:
                break
            states[place] = P
            published[place] = data[at : at + size]
            at += size
        else:
            states[place] = AFTER_MARK[states.get(place, NOTHING)]
            at += _SEGMENT_MARK.size
    return SegmentContent(states, published, at)
