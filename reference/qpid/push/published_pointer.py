"""A subscription's position in two references, as in Qpid since 0.6: published, and refuted.

Owns the same search and the same moving back as `pointers.ReleasedPointer`, but changes each
reference separately. One thread moves the place over an entry and is about to clear `released`.
Meanwhile another thread returns that entry: it finds it in `released`, or sets it again, and then
the first thread clears it. The entry is available and behind the place.
`models/qpid/released_pointer.py` has the shortest trace; kept to be checked under threads. 6.1.7,
9.2.1 and 10.1.0 lose a message by the same order of steps (`docs/explanation/qpid-pointers.md`).

Source: Qpid 0.6 to 10.1, `getNextAvailableEntry`, `setLastSeenEntry`, `requeue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.push.pointers import Lowering, fingerprint_place, next_of
from brokerproof.reference.shared.atomics import AtomicReference

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.entry_list import QueueEntryList
    from brokerproof.reference.qpid.push.subscriptions import Subscription


class PublishedPointer(Lowering):
    """The last entry seen, and the earliest entry before it that has come back since."""

    __slots__ = ("last_seen", "released")

    def __init__(self, head: QueueEntry) -> None:
        self.last_seen: AtomicReference[QueueEntry | None] = AtomicReference(head)
        self.released: AtomicReference[QueueEntry | None] = AtomicReference(None)

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the first entry that the subscription can be given.

        The place moves over entries that cannot be given. It does not move onto the one returned,
        so asking twice gives the same answer.
        """
        while True:
            last_seen = self.last_seen.get()
            if last_seen is None:
                return None
            released = self.released.get()
            candidate = next_of(entries, (last_seen, released))
            if candidate is None or (
                candidate.is_available() and subscription.has_interest(candidate)
            ):
                return candidate
            if self.last_seen.compare_and_set(last_seen, candidate):
                self.released.compare_and_set(released, None)

    def given(self, entries: QueueEntryList, entry: QueueEntry) -> None:  # noqa: ARG002 - unasked
        """Move onto `entry` from any place; clear `released` if it is this entry."""
        released = self.released.get()
        self.last_seen.set(entry)
        if released is entry:
            self.released.compare_and_set(released, None)

    def _lower(self, entry: QueueEntry) -> None:
        while entry.is_available():
            released = self.released.get()
            if released is not None and released.compare_to(entry) <= 0:
                return
            if self.released.compare_and_set(released, entry):
                return

    def clear(self) -> None:
        """Refer to no entry."""
        self.last_seen.set(None)
        self.released.set(None)

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return the two positions and how they compare."""
        last_seen = self.last_seen.value
        if last_seen is None:
            return None
        return fingerprint_place(last_seen, self.released.value, position)
