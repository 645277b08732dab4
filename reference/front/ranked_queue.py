"""A queue that gives its first message to a line of consumers, each with its own priority.

Owns what the queues of RabbitMQ and ActiveMQ share: how a consumer is made, and that a consumer
waits only for messages and room. Does not know how messages are kept or which consumer is next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumers import RankedConsumer
from brokerproof.reference.front.queue import FrontQueue, HeldT

if TYPE_CHECKING:
    from brokerproof.reference.front.consumers import Terms


class RankedQueue(FrontQueue[HeldT, RankedConsumer]):
    """A queue without a clock, selectors and auto-close consumers."""

    __slots__ = ()

    def housekeep(self) -> None:
        """Do nothing: these queues have no clock."""

    def new_subscription(self, terms: Terms) -> RankedConsumer:
        """Return a consumer; `subscribe` puts it in line."""
        assert not terms.auto_close, "here no consumer closes itself"
        assert terms.selector is None, "here every consumer wants everything"
        return RankedConsumer(self.name, terms)

    def flush(self, subscription: RankedConsumer) -> None:
        """Do nothing: a consumer with room has been served already."""
