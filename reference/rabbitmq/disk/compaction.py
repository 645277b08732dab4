"""Compaction: the store recovers the room of messages without references.

Owns the choice of the files to combine, and doing it so that a crash at any step loses nothing. The
store decides when it is due.

Two neighbours whose used bytes fit in one file are written, left before right, to a draft. The
draft is synced and replaces the left file; then the right one is deleted. A crash leaves a draft,
which the next start removes, or messages in both files, of which the next start takes one copy.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.store_records import records_of

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.disk.message_store import MessageStore, StoreFile

DRAFT_SUFFIX = ".draft"


def find_pair(store: MessageStore, file_size: int) -> tuple[StoreFile, StoreFile] | None:
    """Return the lowest two neighbours that fit in one file; never the current file."""
    settled = [store.files[number] for number in sorted(store.files)]
    settled.remove(store.current)
    for left, right in pairwise(settled):
        if left.used + right.used <= file_size:
            return left, right
    return None


def compact(store: MessageStore, left: StoreFile, right: StoreFile) -> None:
    """Combine two files into the left one."""
    combined = bytearray()
    moved = []
    for file in (left, right):
        data = store.disk.read(file.name, 0, file.size)
        for msg_id, offset, size in records_of(data):
            location = store.index.get(msg_id)
            if location is not None and location[1:3] == (file.number, offset):
                moved.append((msg_id, location._replace(file=left.number, offset=len(combined))))
                combined += data[offset : offset + size]
    draft = left.name + DRAFT_SUFFIX
    store.disk.append(draft, combined)
    store.disk.sync(draft)
    store.disk.rename(draft, left.name)
    for msg_id, location in moved:
        store.index.pop(msg_id)
        store.index.put(msg_id, location)
    assert len(combined) == left.used + right.used, "the index leads to all used bytes"
    store.size -= left.size + right.size - len(combined)
    left.size = left.used = len(combined)
    del store.files[right.number]
    store.disk.delete(right.name)
