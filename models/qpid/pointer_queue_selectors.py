"""The queue of pointers whose subscriptions want only some of the entries.

Sources: Qpid, Message Delivery (`hasInterest`: a subscription skips over what it is not interested
in); driver protocol 1, Selectors. It stands here and not in `pointer_queue`, whose state graph is
measured: who wants what is chosen at the beginning, and each choice would be a graph of its own.

What goes back does so for everybody, whether it is wanted or not: the search asks that.
"""

from __future__ import annotations

from brokerproof.models.language import Bool, FixedRelation
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription


class SelectingQueue(PointerQueue):
    """The queue of pointers with selectors."""

    wants: FixedRelation[Subscription, Entry]

    def is_wanted(self, who: Subscription, e: Entry) -> Bool:
        """Whether the entry meets the subscription's selector."""
        return self.wants[who, e]
