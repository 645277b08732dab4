"""Where a subscription is in its queue, in the two forms that the documents give.

Owns the search for the next entry that a subscription can be given, and the moving back when
something appears behind it. The promise of both: nothing available and of interest lies before the
place from which the next search starts, except while somebody is on the way to move that place
back. Refuses to know credit and locks.

`ReleasedPointer` is the reference. It remembers the last entry that was seen, so the search starts
*after* it, and beside it one entry that came back before that place. Moving back never rewinds the
place itself: several threads that return entries only have to agree on the lowest. What the threads
may do to each other's steps is `models/qpid/paired_pointer.py`.

`InclusivePointer` is what the two documents print: one pointer to the next entry to *try*, which is
moved back itself. It is kept as printed, to be judged. In particular a browser whose entry is the
last of the queue stays on it, having nowhere to go, and is shown it again.

Source: Qpid, Message Delivery, sections Subscriptions, Asynchronous Delivery and Reject and
Release; Qpid, Priority Queues, `checkSubscriptionsNotAheadOfDelivery`; the released form is that of
Qpid 0.6 and later, as `published_pointer` has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from brokerproof.reference.shared.atomics import AtomicReference

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.entry_list import QueueEntryList
    from brokerproof.reference.qpid.push.subscriptions import Subscription

Place: TypeAlias = "tuple[QueueEntry, QueueEntry | None]"
"""The last entry seen, and the earliest one before it that has come back since."""


class Pointer(Protocol):
    """A subscription's place, as the queue uses it."""

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the first entry that `subscription` can be given, moving over all others."""
        ...

    def given(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Note that `entry` is being given to the subscription; before it is sent."""
        ...

    def browsed(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Note that the asynchronous delivery has shown `entry` to a browser."""
        ...

    def rewind(self, entry: QueueEntry, subscription: Subscription) -> bool:
        """Make sure that `entry`, which was released, is not passed over; say if that moved it."""
        ...

    def not_ahead_of(self, entry: QueueEntry) -> None:
        """Make sure that `entry`, which has arrived out of order, is not passed over."""
        ...

    def clear(self) -> None:
        """Let go of the queue: what a parked pointer refers to cannot be collected."""
        ...

    def fork(self, copy_of: Callable[[QueueEntry], QueueEntry]) -> Self:
        """Return the same place in the copy of the queue."""
        ...

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return a value that tells places apart wherever the difference can ever be seen."""
        ...


class Lowering:
    """What all pointers do that remember what came back: they agree on the lowest."""

    __slots__ = ()

    def browsed(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Nothing to do: `given` has moved onto the entry, and the search starts after it."""

    def rewind(self, entry: QueueEntry, subscription: Subscription) -> bool:  # noqa: ARG002 - unasked
        """Lower `released` to `entry`, unless something earlier is there already.

        Whether the subscription wants it is asked when it is searched for.
        """
        return self._lower(entry)

    def not_ahead_of(self, entry: QueueEntry) -> None:
        """Lower `released` to `entry` wherever the place is.

        Looking first whether the place is behind the arrival would leave a gap: it may pass the
        arrival's position between the look and the change.
        """
        self._lower(entry)

    def _lower(self, entry: QueueEntry) -> bool:
        raise NotImplementedError


class ReleasedPointer(Lowering):
    """The last entry seen, and the earliest entry before it that has come back since.

    Both are one pair, which is only ever replaced as a whole, and by another pair: whoever has read
    one knows from its identity that nobody has moved the place since. Qpid keeps two references,
    and loses an entry between them (`published_pointer`).
    """

    __slots__ = ("place",)

    def __init__(self, head: QueueEntry) -> None:
        self.place: AtomicReference[Place | None] = AtomicReference((head, None))

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the first entry that the subscription can be given.

        The place moves over entries that cannot be given; it does not move onto the one returned,
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
        """Move onto `entry`; what is next before it stays next, and is so only if it came back."""
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

    def _lower(self, entry: QueueEntry) -> bool:
        while entry.is_available():
            place = self.place.get()
            if place is None:
                return False
            last_seen, released = place
            lowers = released is None or released.compare_to(entry) > 0
            # Replaced in any case: whoever has read the pair before may be about to pass the entry.
            if self.place.compare_and_set(place, (last_seen, entry if lowers else released)):
                return lowers
        return False

    def clear(self) -> None:
        """Refer to nothing."""
        self.place.set(None)

    def fork(self, copy_of: Callable[[QueueEntry], QueueEntry]) -> Self:
        """Return the same place in the copy of the queue."""
        copy = object.__new__(type(self))
        place = self.place.value
        copy.place = AtomicReference(
            place and (copy_of(place[0]), None if place[1] is None else copy_of(place[1]))
        )
        return copy

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return the two positions and how they compare."""
        place = self.place.value
        return None if place is None else fingerprint_place(*place, position)


def next_of(entries: QueueEntryList, place: Place) -> QueueEntry | None:
    """Return what is next for a place: the entry that came back, or the one that follows."""
    last_seen, released = place
    # At, not only behind: the walk itself may have stepped onto the entry that came back.
    if released is not None and last_seen.compare_to(released) >= 0:
        return released
    return entries.next(last_seen)


def fingerprint_place(
    last_seen: QueueEntry, released: QueueEntry | None, position: Callable[[QueueEntry], int]
) -> Hashable:
    """Return a value for what was seen last and what came back.

    A search starts after `last_seen`, so that entry and dispensed ones just behind it are one
    place (halving makes them so); `released` may itself be given, so for it they are two. How
    the two compare is told apart, since positions do not tell dispensed entries between the
    same two live ones apart.
    """
    place = (position(last_seen) + 1) // 2
    if released is None:
        return place
    return place, position(released), last_seen.compare_to(released) >= 0


class InclusivePointer:
    """The next entry to try: everything before it has been given away, or was not wanted."""

    __slots__ = ("last_seen",)

    def __init__(self, head: QueueEntry) -> None:
        self.last_seen: AtomicReference[QueueEntry | None] = AtomicReference(head)

    def next_available(
        self, entries: QueueEntryList, subscription: Subscription
    ) -> QueueEntry | None:
        """Return the entry pointed at if it can be given, else move on until one can."""
        entry = self.last_seen.get()
        while entry is not None and not (entry.is_available() and subscription.has_interest(entry)):
            following = entries.next(entry)
            if following is None:
                return None
            self.last_seen.compare_and_set(entry, following)
            entry = self.last_seen.get()
        return entry

    def given(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Nothing to do: what was given is acquired, and the next search moves on from it.

        For a browser, which acquires nothing, this is not so; see `browsed`.
        """

    def browsed(self, entries: QueueEntryList, entry: QueueEntry) -> None:
        """Move a browser on, if there is anything to move on to.

        As printed. At the tail it stays; and straight-through delivery does not come here at all.
        """
        following = entries.next(entry)
        if following is not None:
            self.last_seen.compare_and_set(entry, following)

    def rewind(self, entry: QueueEntry, subscription: Subscription) -> bool:
        """Point at `entry` if the pointer is beyond it and the subscription wants it."""
        if not subscription.has_interest(entry):
            return False
        seen = self.last_seen.get()
        while seen is not None and entry.compare_to(seen) < 0:
            if self.last_seen.compare_and_set(seen, entry):
                return True
            seen = self.last_seen.get()
        return False

    def not_ahead_of(self, entry: QueueEntry) -> None:
        """Point at `entry` if the pointer is beyond it, for as long as nobody has acquired it."""
        seen = self.last_seen.get()
        while seen is not None and entry.compare_to(seen) < 0 and not entry.is_acquired():
            if self.last_seen.compare_and_set(seen, entry):
                break
            seen = self.last_seen.get()

    def clear(self) -> None:
        """Refer to nothing, also if somebody moves the pointer at this moment."""
        seen = self.last_seen.get()
        while not self.last_seen.compare_and_set(seen, None):
            seen = self.last_seen.get()

    def fork(self, copy_of: Callable[[QueueEntry], QueueEntry]) -> Self:
        """Return the same place in the copy of the queue."""
        copy = object.__new__(type(self))
        last_seen = self.last_seen.value
        copy.last_seen = AtomicReference(last_seen and copy_of(last_seen))
        return copy

    def fingerprint(self, position: Callable[[QueueEntry], int]) -> Hashable:
        """Return the exact position, since the entry pointed at may itself be given."""
        last_seen = self.last_seen.value
        return None if last_seen is None else position(last_seen)
