"""Confirms: which messages are safe, so that their publishers may be told.

Owns the four sets of ids. Store and index report their syncs.

A message is confirmed when its body and its position are both synced, or when it was removed before
its body was synced. The store and the index may report a sync during a publish, so an id is
expected before it is written; in the release such reports come later, by mail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable


class Confirms:
    """The ids of one queue: `unconfirmed` ones, those with one half synced, and `confirmed` ones.

    As in the release, `confirmed` may have ids without a waiting publisher: those of messages
    removed before they were synced.
    """

    __slots__ = ("confirmed", "msg_indices_on_disk", "msgs_on_disk", "unconfirmed")

    def __init__(self) -> None:
        self.unconfirmed: set[bytes] = set()
        self.msgs_on_disk: set[bytes] = set()
        self.msg_indices_on_disk: set[bytes] = set()
        self.confirmed: set[bytes] = set()

    def expect(self, msg_id: bytes) -> None:
        """Expect the two syncs of a message."""
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
        """Confirm messages, because they are safe or because they were removed."""
        self.msgs_on_disk.difference_update(msg_ids)
        self.msg_indices_on_disk.difference_update(msg_ids)
        self.unconfirmed.difference_update(msg_ids)
        self.confirmed.update(msg_ids)

    def drain(self) -> set[bytes]:
        """Return the ids confirmed since the last call."""
        drained, self.confirmed = self.confirmed, set()
        return drained

    def waits_for_index(self) -> bool:
        """Return whether an expected message lacks the sync of its position."""
        return len(self.msg_indices_on_disk) < len(self.unconfirmed)

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for sets that behave alike."""
        return (
            frozenset(self.unconfirmed),
            frozenset(self.msgs_on_disk),
            frozenset(self.msg_indices_on_disk),
            frozenset(self.confirmed),
        )
