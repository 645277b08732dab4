"""A queue that gives its first message to consumers in a line, each with a priority of its own.

Owns what those of RabbitMQ and ActiveMQ have alike: how a consumer is made, and that nobody waits
for anything but messages and room. Refuses to know how messages are kept and whose turn it is.
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
    """A queue without a clock, selectors and consumers that close themselves."""

    __slots__ = ()

    def housekeep(self) -> None:
        """Do nothing: time means nothing here."""

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
        """Return a consumer; it stands in line when it is registered."""
        assert not auto_close, "here no consumer closes itself"
        assert selector is None, "here everybody wants everything"
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
        """Do nothing: whoever has room has been served."""
