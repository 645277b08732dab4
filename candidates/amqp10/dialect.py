"""How brokers differ within AMQP 1.0: the settings of a profile."""

from __future__ import annotations

from typing import Literal

import msgspec
import proton

from brokerproof.candidates.amqp091.dialect import Dialect as Amqp091Dialect
from brokerproof.candidates.wire.errors import MessageLimits, refused
from brokerproof.candidates.wire.example import Queue
from brokerproof.spec.messages import Message, Order, Priority, PriorityMapping, level_of
from brokerproof.spec.protocol.answers import Error
from brokerproof.spec.protocol.operations import Consume

LIMITS = MessageLimits(name_bytes=255, header_bytes=2**16, body_bytes=16 * 2**20)
"""What fits into the fields of a message, and into any broker's frames."""

PLAIN_PRIORITY = 4
"""The priority of a message that has none (AMQP 1.0, 3.2.1 Header)."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a profile for AMQP 1.0.

    `address` makes the address of a queue, and `host` the host name of a virtual host other than
    the default one; both replace ``{}`` by the name. `capability` is asked of a queue's address.

    `manage` says how queues come and go: over AMQP 0-9-1 (`queues` is its dialect), or `by_use`: a
    queue is made by the first link to it, and goes some time after it is empty and unused.

    `release` is the outcome of a release: *modified* counts as a failed delivery, *released* does
    not, so that a broker may not show it. `redelivered_by` is the field of a message's header that
    shows it: a count above 0, or that the receiver is not the first acquirer.

    `reject` is the outcome that discards: some brokers return what is *rejected*. `links_first`
    closes links before their session.
    `sends_level` is for a broker that has ten levels in every queue: the level within the queue is
    sent instead of the priority. `round_trip` is the request that follows a settlement.
    """

    address: str = "{}"
    host: str = "{}"
    capability: str = ""
    manage: Literal["amqp091", "by_use"] = "by_use"
    queues: Amqp091Dialect = Amqp091Dialect()
    release: Literal["released", "modified"] = "released"
    reject: Literal["rejected", "accepted"] = "rejected"
    redelivered_by: Literal["delivery_count", "first_acquirer"] = "delivery_count"
    links_first: bool = False
    sends_level: bool = False
    round_trip: Literal["session", "link"] = "session"

    def is_redelivered(self, message: proton.Message) -> bool:
        """Return whether a message's header says that it was delivered before."""
        if self.redelivered_by == "first_acquirer":
            return not message.first_acquirer
        return message.delivery_count > 0

    def is_durable(self, message: Message, queue: Queue) -> bool:
        """Return whether a message is sent as durable.

        A queue that is made by use is always durable at the broker, so its messages must not be
        unless the queue was declared so.
        """
        return message.persistent and (queue.declared.durable or self.manage != "by_use")

    def set_up(self, terminus: proton.Terminus, queue: str) -> None:
        """Make a link's source or target that of a queue (its name at the broker)."""
        terminus.address = self.address.replace("{}", queue)
        if self.capability:
            terminus.capabilities.put_array(False, proton.Data.SYMBOL)
            terminus.capabilities.enter()
            terminus.capabilities.put_symbol(proton.symbol(self.capability))
            terminus.capabilities.exit()

    def priority_of(self, message: Message, order: Order, mapping: PriorityMapping) -> int:
        """Return the priority to send with a message to a queue of this order."""
        if not self.sends_level:
            return message.priority
        if not isinstance(order, Priority):
            return PLAIN_PRIORITY
        return level_of(message.priority, order, mapping)


def unfit_window(operation: Consume) -> Error | None:
    """Return the error for a window that is invalid."""
    window = operation.credit.messages
    if window is not None and window < 0:
        return refused("a window is not negative")
    return None


def credit_of(operation: Consume, held: int = 0) -> int:
    """Return the credit of a consumer that holds some; only acknowledging ones fill a window."""
    window = operation.credit.messages
    if window is None or (window > 0 and operation.mode != "acknowledge"):
        return CREDIT_MAX
    return min(max(0, window - held), CREDIT_MAX)


CREDIT_MAX = 100_000
"""The most credit of a consumer at one time: that of one without a limit."""
