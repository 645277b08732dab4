"""The claims of this broker; an operation beyond them is answered `unsupported`.

Owns the union of all systems' claims, and the check of operations against claims, which is the same
for every system. `systems` owns which system claims less.
"""

from __future__ import annotations

from brokerproof.spec.messages import Priority
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Advance,
    Consume,
    Crash,
    Declare,
    Flush,
    Operation,
    Publish,
    Restart,
    SetCredit,
)

LEVELS_MAX = 10
"""The largest number of priority levels (Qpid, Priority Queues: the broker's default is ten)."""

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=LEVELS_MAX,
    priority_mapping="amqp",
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages", "bytes", "change", "channel"),
    oversize="when_idle",
    selectors=True,
    clock=True,
    auto_close=True,
    auto_delete=True,
    exclusive=True,
    flush=True,
    get=True,
    browse=True,
    release_position="original",
    event_order="total",
    inspect=True,
    purge=True,
    delete=True,
)
"""The union of all claims; `inspect` shows the released form of pointers only."""


def beyond(claims: Capabilities, operation: Operation) -> str | None:
    """Return in a few words what an operation needs beyond the claims; None if nothing."""
    match operation:
        case Consume():
            return _beyond_of_consumers(claims, operation)
        case Publish():
            if operation.not_before_s is None and operation.expires_s is None:
                return None
            return None if claims.clock else "a clock"
        case SetCredit():
            if operation.bytes is not None and "bytes" not in claims.credit:
                return "credit in bytes"
            if operation.channel is not None and "channel" not in claims.credit:
                return "credit of a channel"
        case Declare():
            return _beyond_of_queues(claims, operation)
        case Advance():
            return None if claims.clock else "a clock"
        case Flush():
            return None if claims.flush else "the flush of a consumer"
        case Crash() | Restart():
            return None if claims.durable else "crashes"
        case _:
            pass
    return None


def _beyond_of_consumers(claims: Capabilities, operation: Consume) -> str | None:
    if operation.mode not in claims.modes:
        return f"consumers that {operation.mode}"
    if operation.credit.bytes is not None and "bytes" not in claims.credit:
        return "credit in bytes"
    if operation.selector is not None and not claims.selectors:
        return "selectors"
    if operation.priority != 0 and not claims.consumer_priority:
        return "consumer priority"
    if operation.auto_close and not claims.auto_close:
        return "consumers that close themselves"
    if operation.exclusive and not claims.exclusive:
        return "consumers of a queue for themselves"
    if operation.queues and not claims.multi_queue:
        return "consumers of several queues"
    return None


def _beyond_of_queues(claims: Capabilities, operation: Declare) -> str | None:
    if operation.durable and not claims.durable:
        return "durable queues"
    if operation.auto_delete and not claims.auto_delete:
        return "queues that delete themselves"
    order = operation.order
    if type(order).__struct_config__.tag not in claims.orders:
        return f"queues in the order {type(order).__struct_config__.tag}"
    if isinstance(order, Priority) and not 1 <= order.levels <= claims.priority_levels:
        return f"{order.levels} levels; there can be 1 to {claims.priority_levels}"
    return None
