"""A subscription's position in its queue, in two of its forms.

Owns the search for the next entry of a subscription, and the moving back when an entry appears
behind it. Invariant: no available entry of interest lies before the start of the next search,
except while a thread is about to move it back. Does not know credit and locks.

`ReleasedPointer` is the reference. It has the last entry seen, so that the search starts *after*
it, and one entry that came back before that place. Moving back never rewinds the place itself:
threads that return entries only have to agree on the lowest. `models/qpid/paired_pointer.py` has
the interleavings.

`InclusivePointer` is printed in the two documents: one pointer to the next entry to *try*, which is
moved back itself. It is kept as printed, to be checked. A browser whose entry is the last of the
queue stays on it, and is shown it again.

Source: Qpid, Message Delivery, sections Subscriptions, Asynchronous Delivery and Reject and
Release; Qpid, Priority Queues, `checkSubscriptionsNotAheadOfDelivery`; the released form is that of
Qpid 0.6 and later, as `published_pointer` has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from brokerproof.reference.shared.atomics import AtomicReference

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.entry_list import QueueEntryList
    from brokerproof.reference.qpid.push.subscriptions import Subscription

Place: TypeAlias = "tuple[QueueEntry, QueueEntry | None]"
"""The last entry seen, and the earliest one before it that has come back since."""


class Pointer(Protocol):
    """A subscription's position, as the queue uses it."""

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the first entry that `subscription` can be given, moving over all others."""
        ...

    def given(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Record that `entry` is about to be sent to the subscription."""
        ...

    def browsed(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Record that the asynchronous delivery has shown `entry` to a browser."""
        ...

    def rewind(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Make the next search find the released `entry`."""
        ...

    def not_ahead_of(self, entry: QueueEntry) -> None:
        """Make the next search find `entry`, which has arrived out of order."""
        ...

    def clear(self) -> None:
        """Release the queue: entries that a parked pointer refers to cannot be collected."""
        ...

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return a value that differs for positions whose difference can ever be seen."""
        ...


class Lowering:
    """The common part of pointers with a `released` entry: they keep the lowest one."""

    __slots__ = ()

    def browsed(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Do nothing: `given` has moved onto the entry, and the search starts after it."""

    def rewind(self, entry: QueueEntry, subscription: Subscription) -> None:  # noqa: ARG002 - unasked
        """Lower `released` to `entry`, unless it is an earlier entry already.

        Whether the subscription wants it is asked when it is searched for.
        """
        self._lower(entry)

    def not_ahead_of(self, entry: QueueEntry) -> None:
        """Lower `released` to `entry`, whatever the position.

        A check first whether the position is behind the arrival would leave a gap: it may pass the
        arrival's position between the look and the change.
        """
        self._lower(entry)

    def _lower(self, entry: QueueEntry) -> None:
        raise NotImplementedError


class ReleasedPointer(Lowering):
    """The last entry seen, and the earliest entry before it that has come back since.

    Both are one pair, which is replaced only as a whole by another pair. A thread that has read a
    pair knows from its identity that no other thread has moved the place since. Qpid keeps two
    references, and loses an entry between them (`published_pointer`).
    """

    __slots__ = ("place",)

    def __init__(self, head: QueueEntry) -> None:
        self.place: AtomicReference[Place | None] = AtomicReference((head, None))

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the first entry that the subscription can be given.

        The place moves over entries that cannot be given. It does not move onto the one returned,
        so asking twice gives the same answer.
        """
        while True:
            place = self.place.get()
            if place is None:
                return None
            candidate = next_of(entries, place)
            if candidate is None or (
                candidate.is_available() and subscription.has_interest(candidate)
            ):
                return candidate
            self.place.compare_and_set(place, (candidate, None))

    def given(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Advance to `entry`. If a released entry precedes it, that one stays the next one."""
        while True:
            place = self.place.get()
            if place is None:
                return
            candidate = next_of(entries, place)
            if candidate is entry:
                released = place[1]
                following = entry, None if released is entry else released
            elif candidate is not None and candidate.compare_to(entry) < 0:
                following = entry, candidate
            else:
                return
            if self.place.compare_and_set(place, following):
                return

    def _lower(self, entry: QueueEntry) -> None:
        while entry.is_available():
            place = self.place.get()
            if place is None:
                return
            last_seen, released = place
            lowers = released is None or released.compare_to(entry) > 0
            # Replaced in any case: a thread that has read the old pair may be about to pass the
            # entry.
            if self.place.compare_and_set(place, (last_seen, entry if lowers else released)):
                return

    def clear(self) -> None:
        """Refer to no entry."""
        self.place.set(None)

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return the two positions and how they compare."""
        place = self.place.value
        return None if place is None else fingerprint_place(*place, position)


def next_of(entries: QueueEntryList, place: Place) -> QueueEntry | None:
    """Return the next entry of a place: the released one, or the one that follows."""
    last_seen, released = place
    # At, not only behind: the walk may have stepped onto the released entry.
    if released is not None and last_seen.compare_to(released) >= 0:
        return released
    return entries.next(last_seen)


def fingerprint_place(
    last_seen: QueueEntry, released: QueueEntry | None, position: Callable[[QueueEntry], int]
) -> Hashable:
    """Return a value for the last entry seen and the released one.

    A search starts after `last_seen`, so that entry and dispensed ones just behind it are one place
    (hence the halving). `released` may itself be given, so for it they are two. Their comparison
    counts too, since positions do not distinguish dispensed entries between the same two live ones.
    """
    place = (position(last_seen) + 1) // 2
    if released is None:
        return place
    return place, position(released), last_seen.compare_to(released) >= 0


class InclusivePointer:
    """The next entry to try: every entry before it has been given away, or was not wanted."""

    __slots__ = ("last_seen",)

    def __init__(self, head: QueueEntry) -> None:
        self.last_seen: AtomicReference[QueueEntry | None] = AtomicReference(head)

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the entry pointed at if it can be given, otherwise move on until one can."""
        entry = self.last_seen.get()
        while entry is not None and not (entry.is_available() and subscription.has_interest(entry)):
            following = entries.next(entry)
            if following is None:
                return None
            self.last_seen.compare_and_set(entry, following)
            entry = self.last_seen.get()
        return entry

    def given(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Do nothing: the entry is acquired, and the next search moves on from it.

        A browser does not acquire; see `browsed`.
        """

    def browsed(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Move a browser on, if there is a next entry.

        As printed: at the tail it stays, and delivery on arrival does not call this at all.
        """
        following = entries.next(entry)
        if following is not None:
            self.last_seen.compare_and_set(entry, following)

    def rewind(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Point at `entry` if the pointer is beyond it and the subscription wants it."""
        if not subscription.has_interest(entry):
            return
        seen = self.last_seen.get()
        while seen is not None and entry.compare_to(seen) < 0:
            if self.last_seen.compare_and_set(seen, entry):
                return
            seen = self.last_seen.get()

    def not_ahead_of(self, entry: QueueEntry) -> None:
        """Point at `entry` if the pointer is beyond it, as long as the entry is not acquired."""
        seen = self.last_seen.get()
        while seen is not None and entry.compare_to(seen) < 0 and not entry.is_acquired():
            if self.last_seen.compare_and_set(seen, entry):
                break
            seen = self.last_seen.get()

    def clear(self) -> None:
        """Refer to no entry, even if another thread moves the pointer at this moment."""
        seen = self.last_seen.get()
        while not self.last_seen.compare_and_set(seen, None):
            seen = self.last_seen.get()

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return the exact position, since the entry pointed at may itself be given."""
        last_seen = self.last_seen.value
        return None if last_seen is None else position(last_seen)
