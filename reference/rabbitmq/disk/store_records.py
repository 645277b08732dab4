"""The records of the message store: bytes of one message in a file.

Owns their layout, and reading them up to the first torn one. A record is the size of the body, the
message's id, the body, and an end byte that only a whole record has.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from brokerproof.reference.rabbitmq.disk.records import ID_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER: Final = struct.Struct(f">Q{ID_BYTES}s")
_END: Final = b"\xff"
_FRAME_BYTES: Final = _HEADER.size + len(_END)


class Record(NamedTuple):
    """The place of a message in a scanned file."""

    msg_id: bytes
    offset: int
    size: int


def record_of(msg_id: bytes, body: bytes) -> bytes:
    """Return the record of a message."""
    return _HEADER.pack(len(body), msg_id) + body + _END


def body_of(record: bytes, msg_id: bytes) -> bytes:
    """Return the body in a message's record."""
    size, found = _HEADER.unpack_from(record)
    assert found == msg_id, "the index leads to the message's own record"
    assert size + _FRAME_BYTES == len(record), "the index leads to whole records"
    return record[_HEADER.size : -len(_END)]


def records_of(data: bytes) -> Iterator[Record]:
    """Yield the records of a file up to the first torn one."""
    at, end = 0, len(data)
    while at + _FRAME_BYTES <= end:
        body_size, msg_id = _HEADER.unpack_from(data, at)
        size = _FRAME_BYTES + body_size
        if at + size > end or data[at + size - 1] != _END[0]:
            return
        yield Record(msg_id, at, size)
        at += size
