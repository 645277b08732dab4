"""The queue of pointers whose subscriptions want only some of the entries.

Sources: Qpid, Message Delivery (`hasInterest`: a subscription skips over what it is not interested
in); driver protocol 1, Selectors. Selectors are not in `pointer_queue`, whose state graph is
measured: each choice of wanted entries would be a graph of its own. A release moves all pointers
back, whether the subscription wants the entry or not; the search then checks that.
"""

from __future__ import annotations

from brokerproof.models.language import Bool, FixedRelation
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription


class SelectingQueue(PointerQueue):
    """The queue of pointers with selectors."""

    wants: FixedRelation[Subscription, Entry]

    def is_wanted(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the entry matches the subscription's selector."""
        return self.wants[consumer, e]
