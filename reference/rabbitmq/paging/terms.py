"""What a clean shutdown leaves for the next start.

Owns the files of terms: written whole or not at all. Refuses to know when a shutdown counts as
clean (that is `node`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from brokerproof.reference.shared.disk import Disk

T = TypeVar("T", bound=msgspec.Struct)


class QueueTerms(msgspec.Struct, frozen=True):
    """Of a queue: who it is to the store, its persistent messages, and each segment's live entries.

    The entries of a segment include transient messages, hence they are not the queue's length.
    """

    store_ref: str
    persistent_count: int
    unacknowledged: dict[int, int]


class StoreTerms(msgspec.Struct, frozen=True):
    """Of a store: its clients, each file's bytes (all, and those in use), and its index, dumped."""

    clients: list[str]
    files: list[tuple[int, int, int]]
    index: bytes


def write_terms(disk: Disk, name: str, terms: QueueTerms | StoreTerms) -> None:
    """Leave terms; after a crash before this returns there are none."""
    draft = f"{name}.draft"
    disk.append(draft, msgspec.msgpack.encode(terms))
    disk.sync(draft)
    disk.rename(draft, name)


def read_terms(disk: Disk, name: str, kind: type[T]) -> T | None:
    """Return terms that were left, or None."""
    if name not in disk.names():
        return None
    return msgspec.msgpack.decode(disk.read(name, 0, disk.size(name)), type=kind)


def forget_terms(disk: Disk, name: str) -> None:
    """Remove terms, whole or in draft: from now on only another clean shutdown leaves some."""
    for each in (name, f"{name}.draft"):
        if each in disk.names():
            disk.delete(each)
