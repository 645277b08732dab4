"""The terms: files that a clean shutdown leaves for the next start.

Owns these files, which are written whole or not at all. `node` decides whether a shutdown was
clean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from brokerproof.reference.shared.disk import Disk

T = TypeVar("T", bound=msgspec.Struct)


class QueueTerms(msgspec.Struct, frozen=True):
    """A queue's reference to the store, its persistent messages, and each segment's live entries.

    Live entries include transient messages, so their number is not the queue's length.
    """

    store_ref: str
    persistent_count: int
    unacknowledged: dict[int, int]


class StoreTerms(msgspec.Struct, frozen=True):
    """A store's clients, each file's bytes (all, and those in use), and its dumped index."""

    clients: list[str]
    files: list[tuple[int, int, int]]
    index: bytes


def write_terms(disk: Disk, name: str, terms: QueueTerms | StoreTerms) -> None:
    """Write terms; after a crash before this returns there are none."""
    draft = f"{name}.draft"
    disk.append(draft, msgspec.msgpack.encode(terms))
    disk.sync(draft)
    disk.rename(draft, name)


def read_terms(disk: Disk, name: str, kind: type[T]) -> T | None:
    """Return the terms, or None."""
    if name not in disk.names():
        return None
    return msgspec.msgpack.decode(disk.read(name, 0, disk.size(name)), type=kind)


def forget_terms(disk: Disk, name: str) -> None:
    """Remove terms and their draft: from now on only another clean shutdown leaves some."""
    for each in (name, f"{name}.draft"):
        if each in disk.names():
            disk.delete(each)
