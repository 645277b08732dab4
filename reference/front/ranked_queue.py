"""A queue that gives its first message to a line of consumers, each with its own priority.

Owns what the queues of RabbitMQ and ActiveMQ share: how a consumer is made, and that a consumer
waits only for messages and room. Does not know how messages are kept or which consumer is next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumers import RankedConsumer
from brokerproof.reference.front.queue import FrontQueue, HeldT

if TYPE_CHECKING:
    from brokerproof.reference.front.consumers import Mode
    from brokerproof.reference.front.credit import Window
    from brokerproof.spec.protocol.operations import Selector


class RankedQueue(FrontQueue[HeldT, RankedConsumer]):
    """A queue without a clock, selectors and auto-close consumers."""

    __slots__ = ()

    def housekeep(self) -> None:
        """Do nothing: these queues have no clock."""

    def new_subscription(
        self,
        *,
        consumer: str | None,
        channel: str,
        mode: Mode,
        credit: Window,
        auto_close: bool = False,
        exclusive: bool = False,
        priority: int = 0,
        selector: Selector | None = None,
    ) -> RankedConsumer:
        """Return a consumer; `subscribe` puts it in line."""
        assert not auto_close, "here no consumer closes itself"
        assert selector is None, "here every consumer wants everything"
        return RankedConsumer(
            consumer=consumer,
            channel=channel,
            queue=self.name,
            mode=mode,
            credit=credit,
            exclusive=exclusive,
            priority=priority,
        )

    def flush(self, subscription: RankedConsumer) -> None:
        """Do nothing: a consumer with room has been served already."""
