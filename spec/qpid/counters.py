"""What a queue keeps count of beside what it is made of: what of a view can be wrong alone.

A broker counts its consumers though it could look, keeps a hint of where its list ends, marks those
who wait for a turn. Such things are shown as they are kept, not as they should be: whether they
agree with the rest of the view is what is asked.
"""

from __future__ import annotations

import msgspec


class ListAccount(msgspec.Struct, frozen=True):
    """One of the linked lists that a queue's entries are in; a queue without levels has one.

    `numbers` are those of its entries that are not gone, in the order of the links, counted from
    the first. `to_the_end` is how many links lead from where the list says its end is to its last
    entry; None where they do not lead there.
    """

    level: int
    numbers: tuple[int, ...]
    to_the_end: int | None


class SubscriptionAccount(msgspec.Struct, frozen=True):
    """What is kept of one subscription of the view; at the same place there.

    `used` and `used_bytes` are what its own window counts as held; None where it has none of its
    own, as of several queues. `waits` says that it is on record as waiting at an entry that it has
    no room for. Where consumers pull, `state` is the list that it says it is in, and `priority` its
    own.
    """

    used: int | None
    used_bytes: int | None
    waits: bool = False
    state: str = ""
    priority: int = 0


class Mark(msgspec.Struct, frozen=True):
    """Something that waits for a turn, says so, or both; who does neither is not shown."""

    name: str
    says_so: bool
    waits: bool


class PullAccount(msgspec.Struct, frozen=True):
    """What a queue that is pulled from keeps besides.

    `wanting` is how many consumers it counts that want messages. `priorities` are those that the
    lists of all, of the interested and of the notified have a part for, in their order. `listed`
    says for each subscription of the view in which lists it is met, each with the priority of that
    part, 0 where a list has no parts.
    """

    wanting: int
    priorities: tuple[tuple[int, ...], ...]
    listed: tuple[tuple[tuple[str, int], ...], ...]
    marks: tuple[Mark, ...] = ()


class Accounts(msgspec.Struct, frozen=True):
    """What a queue keeps count of.

    `subscriptions` are those of the view, `counted` how many of them its list counts, `waiting` how
    many it counts as waiting at an entry.
    """

    lists: tuple[ListAccount, ...]
    subscriptions: tuple[SubscriptionAccount, ...]
    counted: int
    waiting: int
    pull: PullAccount | None = None
