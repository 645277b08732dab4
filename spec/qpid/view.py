"""The view of a queue in which each subscription keeps a pointer (Qpid), as `inspect` shows it.

A view holds the parts of a queue that the documents name, and nothing of how a broker stores them.
The model of the documented algorithm (`models/`) says which steps may lead from view to view; each
view is read as a state of that model.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, Self

import msgspec

from brokerproof.spec.inspection import QueueView
from brokerproof.spec.qpid.counters import Counters


class EntryView(msgspec.Struct, frozen=True):
    """An entry of a queue's list.

    `level` is its level of priority, 0 in a queue without levels. `holder` is the index of the
    subscription in the view that acquired it, None unless acquired. A `held` entry may not be
    delivered before its time. An entry that `expires` may be gone after its time unless a
    subscription has acquired it. A `dequeued` entry is shown only while a pointer refers to it.
    """

    message: str
    level: int
    state: Literal["available", "held", "acquired", "dequeued"]
    holder: int | None = None
    expires: bool = False


class SubscriptionView(msgspec.Struct, frozen=True):
    """A subscription with its place.

    `consumer` is None for a get, which is shown while it holds a message. A subscription that has
    left is not `active`, and is shown for the same reason. Places are numbers of entries: 0 is the
    dummy head, 1 the first entry of the view. `released` is the first entry released behind the
    place, or None. `unwanted` are the numbers of the entries that its selector leaves out, in
    order.
    """

    consumer: str | None
    channel: str
    browses: bool
    settles_when_sent: bool
    active: bool
    last_seen: int = 0
    released: int | None = None
    unwanted: tuple[int, ...] = ()


class ConsumerListsView(msgspec.Struct, frozen=True):
    """The lists in which a queue keeps its pulling consumers (Qpid, pull consumers).

    Each list has the numbers of subscriptions of the view, in the order of arrival in that list. In
    `interested` and `notified`, consumers of a higher priority come first.
    """

    interested: tuple[int, ...] = ()
    notified: tuple[int, ...] = ()
    not_interested: tuple[int, ...] = ()
    non_acquiring: tuple[int, ...] = ()


class PointerQueueView(QueueView, frozen=True, tag_field="kind", tag="pointer-queue"):
    """A queue whose subscriptions each keep a pointer (Qpid, Message Delivery); in its order.

    `lists` are those of its pulling consumers, and None if the queue pushes.
    """

    entries: tuple[EntryView, ...] = ()
    subscriptions: tuple[SubscriptionView, ...] = ()
    lists: ConsumerListsView | None = None
    counters: Counters | None = None

    def __str__(self) -> str:
        states = {"held": " (not due)", "dequeued": " (gone)"}
        entries = [
            f"{each.message} (held by {self.subscriptions[each.holder].consumer or 'a get'})"
            if each.holder is not None
            else each.message + states.get(each.state, "")
            for each in self.entries
        ]
        names = ["the head", *(each.message for each in self.entries)]
        places = [
            f", {each.consumer} at {names[each.last_seen]}"
            + ("" if each.released is None else f", back to {names[each.released]}")
            for each in self.subscriptions
            if each.active
        ]
        return f"[{', '.join(entries)}]{''.join(places)}{self._text_of_lists()}"

    def _text_of_lists(self) -> str:
        members = {name: getattr(self.lists, name, ()) for name in _LISTS}
        return "".join(
            f"; {name.replace('_', ' ')} "
            + " ".join(str(self.subscriptions[number].consumer) for number in numbers)
            for name, numbers in members.items()
            if numbers
        )

    def without_counters(self) -> Self:
        """Return the view without the internal counters."""
        return self if self.counters is None else msgspec.structs.replace(self, counters=None)

    def fault(self) -> str:
        """Return the first error in the view that its types do not exclude, or an empty text."""
        subscribers, length = len(self.subscriptions), len(self.entries)
        if len({entry.message for entry in self.entries}) < length:
            return "a message that is there twice"
        for entry in self.entries:
            if (entry.holder is None) == (entry.state == "acquired"):
                return f"{entry.message} {entry.state} and held by {_text(entry.holder)}"
            if entry.holder is not None and not 0 <= entry.holder < subscribers:
                return f"{entry.message} held by subscription {entry.holder} of {subscribers}"
        for each in self.subscriptions:
            name = each.consumer or "a get"
            if not 0 <= each.last_seen <= length:
                return f"{name} at entry {each.last_seen} of {length}"
            if each.released is not None and not 1 <= each.released <= length:
                return f"{name} sent back to entry {each.released} of {length}"
            for before, number in pairwise((0, *each.unwanted)):
                if not before < number <= length:
                    return f"{name} that does not want entry {number} of {length}"
        for listed in _LISTS if self.lists is not None else ():
            for number in getattr(self.lists, listed):
                if not 0 <= number < subscribers:
                    return f"subscription {number} of {subscribers} in the list {listed}"
        return self._fault_of_counters()

    def _fault_of_counters(self) -> str:
        counters, subscribers = self.counters, len(self.subscriptions)
        if counters is None:
            return ""
        if len(counters.subscriptions) != subscribers:
            return f"counters of {len(counters.subscriptions)} subscriptions of {subscribers}"
        if counters.pull is not None and len(counters.pull.listed) < subscribers:
            return f"lists of {len(counters.pull.listed)} subscriptions of {subscribers}"
        return ""


_LISTS = ConsumerListsView.__struct_fields__


def _text(holder: int | None) -> str:
    return "nobody" if holder is None else str(holder)
