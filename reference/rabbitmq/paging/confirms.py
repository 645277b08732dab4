"""Which messages are safe, so that their publishers may be told.

Owns the four sets of ids. Refuses to know what a sync is: store and index tell it of theirs.

A message is confirmed when its body and its position are both synced, or when it was done with
before its body was. The store and the index may tell of a sync while a publish is still under way,
so an id is expected before it is written; in the release such news comes by mail, later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable


class Confirms:
    """The ids of one queue: `unconfirmed`, of these with one half on disk, and `confirmed` ones.

    `confirmed` may have ids that nobody waits for, as in the release: those of messages removed
    before they were synced.
    """

    __slots__ = ("confirmed", "msg_indices_on_disk", "msgs_on_disk", "unconfirmed")

    def __init__(self) -> None:
        self.unconfirmed: set[bytes] = set()
        self.msgs_on_disk: set[bytes] = set()
        self.msg_indices_on_disk: set[bytes] = set()
        self.confirmed: set[bytes] = set()

    def expect(self, msg_id: bytes) -> None:
        """Wait for a message's two syncs."""
        self.unconfirmed.add(msg_id)

    def messages_written(self, msg_ids: Collection[bytes]) -> None:
        """Note that bodies are synced."""
        self.msgs_on_disk |= self.unconfirmed.intersection(msg_ids)
        self.record(self.msg_indices_on_disk.intersection(msg_ids))

    def indices_written(self, msg_ids: Collection[bytes]) -> None:
        """Note that positions are synced."""
        self.msg_indices_on_disk |= self.unconfirmed.intersection(msg_ids)
        self.record(self.msgs_on_disk.intersection(msg_ids))

    def record(self, msg_ids: Collection[bytes]) -> None:
        """Confirm messages, be it that they are safe or that they are done with."""
        self.msgs_on_disk.difference_update(msg_ids)
        self.msg_indices_on_disk.difference_update(msg_ids)
        self.unconfirmed.difference_update(msg_ids)
        self.confirmed.update(msg_ids)

    def drain(self) -> set[bytes]:
        """Return the ids confirmed since the last time."""
        drained, self.confirmed = self.confirmed, set()
        return drained

    def waits_for_index(self) -> bool:
        """Whether a position is not known to be synced that somebody waits for."""
        return len(self.msg_indices_on_disk) < len(self.unconfirmed)

    def fork(self) -> Confirms:
        """Return an independent copy."""
        copy = Confirms()
        copy.unconfirmed = self.unconfirmed.copy()
        copy.msgs_on_disk = self.msgs_on_disk.copy()
        copy.msg_indices_on_disk = self.msg_indices_on_disk.copy()
        copy.confirmed = self.confirmed.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for sets that behave alike."""
        return (
            frozenset(self.unconfirmed),
            frozenset(self.msgs_on_disk),
            frozenset(self.msg_indices_on_disk),
            frozenset(self.confirmed),
        )
