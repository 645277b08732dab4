"""A queue's internal counters: the parts of a view that can be wrong while the rest is right.

A broker counts its consumers instead of walking the list, keeps a hint of where a list ends, and
marks the consumers that wait for a turn. The view shows these as they are kept, not as they should
be; the rules check whether they agree with the rest of the view.
"""

from __future__ import annotations

import msgspec


class ListCounters(msgspec.Struct, frozen=True):
    """One of the linked lists of a queue's entries; a queue without levels has one.

    `numbers` are those of its entries that are not gone, in the order of the links and relative to
    the first entry. `to_the_end` is how many links lead from the list's tail reference to its last
    entry; None if they do not lead there.
    """

    level: int
    numbers: tuple[int, ...]
    to_the_end: int | None


class SubscriptionCounters(msgspec.Struct, frozen=True):
    """The counters of one subscription, at the same place as the subscription in the view.

    `used` and `used_bytes` are what the subscription's own window counts as held; None if it has no
    own window, as with several queues. `waits` says that it is on record as waiting at an entry for
    which it has no room. For a pulling consumer, `state` is the list that it says it is in, and
    `priority` its own priority.
    """

    used: int | None
    used_bytes: int | None
    waits: bool = False
    state: str = ""
    priority: int = 0


class Mark(msgspec.Struct, frozen=True):
    """A consumer or queue that waits for a turn, is marked as waiting, or both."""

    name: str
    says_so: bool
    waits: bool


class PullCounters(msgspec.Struct, frozen=True):
    """The further counters of a queue whose consumers pull.

    `wanting` is the queue's count of consumers that want messages. `priorities` are the priorities
    of the parts of three lists (all, interested, notified), in the order of the parts. `listed`
    gives for each subscription of the view the lists that contain it, each with the priority of
    that part, or 0 if a list has no parts.
    """

    wanting: int
    priorities: tuple[tuple[int, ...], ...]
    listed: tuple[tuple[tuple[str, int], ...], ...]
    marks: tuple[Mark, ...] = ()


class Counters(msgspec.Struct, frozen=True):
    """The internal counters of a queue.

    `subscriptions` are those of the view; `counted` is how many of them the list counts; `waiting`
    is how many the queue counts as waiting at an entry.
    """

    lists: tuple[ListCounters, ...]
    subscriptions: tuple[SubscriptionCounters, ...]
    counted: int
    waiting: int
    pull: PullCounters | None = None
