"""How brokers differ within AMQP 0-9-1: the settings of a profile, and the arguments they make.

Each function is pure: it knows an operation and the dialect, and no state of an example.
"""

from __future__ import annotations

import msgspec

from brokerproof.candidates.wire.errors import MessageLimits, refused, unsupported
from brokerproof.candidates.wire.selectors import jms_selector
from brokerproof.spec.messages import Order, Priority
from brokerproof.spec.protocol.answers import Error
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Declare

PREFETCH_MAX = 2**16 - 1

LIMITS = MessageLimits(name_bytes=255, header_bytes=2**16, body_bytes=128 * 2**20)
"""What fits into the fields of a message, and into any broker's frames."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a profile for AMQP 0-9-1.

    A queue of n levels has the argument `levels_argument` with n plus `levels_offset`. Every queue
    has `queue_arguments`. A setting that is empty is not used by the broker:

    `channel_per_consumer` is for a window that all consumers of an AMQP channel share.
    `priority_argument` is sent with each consumer, since some brokers prefer one without a
    priority. `browse_argument` and `auto_close_argument` take true, `selector_argument` a selector
    of JMS, `queues_argument` the list of a consumer's queues. `pauses` is for a broker that obeys
    channel.flow, and whose channels change their window at once: with it a window may be 0.
    """

    levels_argument: str = ""
    levels_offset: int = 0
    queue_arguments: dict[str, str | int | bool] = {}
    channel_per_consumer: bool = False
    priority_argument: str = ""
    browse_argument: str = ""
    selector_argument: str = ""
    auto_close_argument: str = ""
    queues_argument: str = ""
    pauses: bool = False

    def missing(self, claims: Capabilities) -> str:
        """Return a setting that the claims need and the dialect lacks, or an empty text."""
        needed = {
            "levels_argument": "priority" in claims.orders,
            "priority_argument": claims.consumer_priority,
            "browse_argument": claims.browse,
            "selector_argument": claims.selectors,
            "auto_close_argument": claims.auto_close,
            "queues_argument": claims.multi_queue,
            "channel_per_consumer": "change" in claims.credit,
            "pauses": "change" in claims.credit,
        }
        lacking = (name for name, is_needed in needed.items() if is_needed)
        return next((name for name in lacking if not getattr(self, name)), "")

    def of_order(self, order: Order) -> dict[str, object]:
        """Return the arguments of a queue; one level is a plain queue."""
        arguments: dict[str, object] = dict(self.queue_arguments)
        if isinstance(order, Priority) and order.levels > 1:
            arguments[self.levels_argument] = order.levels + self.levels_offset
        return arguments

    def look_alike(self, one: Declare, other: Declare) -> bool:
        """Return whether a broker could not tell two declares of a queue apart."""
        return (
            self.of_order(one.order) == self.of_order(other.order)
            and one.durable == other.durable
            and one.auto_delete == other.auto_delete
        )

    def of_consumer(self, operation: Consume, queues: list[str]) -> dict[str, object] | Error:
        """Return the arguments of a consumer of queues (their names at the broker), or an error."""
        arguments: dict[str, object] = {}
        if self.priority_argument:
            arguments[self.priority_argument] = operation.priority
        if operation.mode == "browse":
            arguments[self.browse_argument] = True
        if operation.auto_close:
            arguments[self.auto_close_argument] = True
        if operation.queues:
            arguments[self.queues_argument] = queues
        if operation.selector:
            text = jms_selector(operation.selector)
            if text is None:
                return unsupported("no selectors on such names")
            arguments[self.selector_argument] = text
        return arguments


def unfit_window(operation: Consume, *, pauses: bool = False) -> Error | None:
    """Return the error for a window that is invalid, or that the broker does not have."""
    window = operation.credit.messages
    if window is not None and window < 0:
        return refused("a window is not negative")
    if window == 0 and not pauses:
        return unsupported("no windows of 0: a prefetch of 0 means no limit")
    return None
