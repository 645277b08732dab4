"""The records of the linked store: entries in the index file, items in a data file.

Owns their layout. An index record has a fixed size, so that it can be written in place. Its links
come first and can be written without the rest. An offset or file that is not set is -1.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

NOT_SET: Final = -1
_MAGIC: Final = 31317
_LINKS: Final = struct.Struct(">H?qq")
_RECORD: Final = struct.Struct(">H?qqiqiiqi")
LINKS_BYTES: Final = _LINKS.size
RECORD_BYTES: Final = _RECORD.size

_HEAD: Final = struct.Struct(">Bi")
_DATA: Final = 1
HEAD_BYTES: Final = _HEAD.size
"""The size of an item's head: one byte for its type, four for its length."""


class Links(NamedTuple):
    """Whether a record is in use, and its neighbours' offsets in the index file."""

    is_active: bool
    previous: int
    next: int


class Item(NamedTuple):
    """The place of a key or value in a data file; `size` is in bytes, without the head."""

    file: int
    offset: int
    size: int


NO_ITEM: Final = Item(NOT_SET, NOT_SET, 0)


class IndexRecord(NamedTuple):
    """An entry in the index file."""

    links: Links
    key: Item
    value: Item


def links_bytes(links: Links) -> bytes:
    """Return the first bytes of a record."""
    return _LINKS.pack(_MAGIC, *links)


def links_of(data: bytes) -> Links:
    """Return the links in the first bytes of a record."""
    magic, is_active, before, after = _LINKS.unpack(data)
    assert magic == _MAGIC, "offsets lead to records"
    return Links(is_active, before, after)


def record_bytes(record: IndexRecord) -> bytes:
    """Return a whole record."""
    return _RECORD.pack(_MAGIC, *record.links, *record.key, *record.value)


def record_of(data: bytes) -> IndexRecord:
    """Return the entry in the bytes of a record."""
    magic, is_active, before, after, *items = _RECORD.unpack(data)
    assert magic == _MAGIC, "offsets lead to records"
    return IndexRecord(Links(is_active, before, after), Item(*items[:3]), Item(*items[3:]))


def item_bytes(content: bytes) -> bytes:
    """Return the bytes of a key or value in a data file."""
    return _HEAD.pack(_DATA, len(content)) + content


def content_of(data: bytes, item: Item) -> bytes:
    """Return the key or value in an item's bytes."""
    assert len(data) == HEAD_BYTES + item.size, "what the index leads to is whole"
    assert _HEAD.unpack_from(data) == (_DATA, item.size), "the index leads to the entry's own items"
    return data[HEAD_BYTES:]
