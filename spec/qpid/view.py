"""What `inspect` shows of a queue: the grey-box view, one shape for each kind of documented system.

A view holds what the documents say a queue is made of, and nothing of how a broker stores it. What
a step of a broker may make of a view is not stated here: that is the model of the documented
algorithm (`models/`), which each view is read as a state of.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.protocol.messages import Order
from brokerproof.spec.qpid.counters import Accounts
from brokerproof.spec.rabbitmq.view import PagingQueueView


class EntryView(msgspec.Struct, frozen=True):
    """An entry of a queue's list.

    `level` is its level of priority, 0 in a queue without. `holder` is the index of the
    subscription that has it, among the view's; None unless acquired. One that is `held` may not be
    given before its time; one that `expires` may be gone from some time on, unless somebody has it.
    One that is `dequeued` is shown only as long as a pointer stands on it.
    """

    message: str
    level: int
    state: Literal["available", "held", "acquired", "dequeued"]
    holder: int | None = None
    expires: bool = False


class SubscriptionView(msgspec.Struct, frozen=True):
    """A subscription with its place.

    `consumer` is None for a get, which is here as long as it holds something. One that has left is
    here, not `active`, for the same reason. Places are numbers of entries: 0 is the dummy head, 1
    the first entry of the view. `released` is the first entry that came back behind the place, if
    one did. `unwanted` are the numbers of the entries that its selector leaves out, in order.
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
    """The lists that a queue keeps its consumers in, where these pull (Qpid, pull consumers).

    Each has the numbers of subscriptions of the view, in the order in which they came to the list;
    of the interested and the notified those of a higher priority are before all others.
    """

    interested: tuple[int, ...] = ()
    notified: tuple[int, ...] = ()
    not_interested: tuple[int, ...] = ()
    non_acquiring: tuple[int, ...] = ()


class PointerQueueView(msgspec.Struct, frozen=True, tag_field="kind", tag="pointer-queue"):
    """A queue whose subscriptions each keep a pointer (Qpid, Message Delivery); in its order.

    `lists` are those of its consumers, and None where these are pushed to.
    """

    order: Order
    entries: tuple[EntryView, ...] = ()
    subscriptions: tuple[SubscriptionView, ...] = ()
    lists: ConsumerListsView | None = None
    accounts: Accounts | None = None


Inspection: TypeAlias = PointerQueueView | PagingQueueView | CursorQueueView
