"""Which operations must succeed: those that are claimed, well formed, and about things that exist.

This is the protocol's own fine print (driver protocol 1, rules 13, 15, 25, 26, 38, 49), not the
contract's: a definite error to anything else is lawful, and so is `ok` where it has no effect.
"""

from __future__ import annotations

from brokerproof.checks.book import Book
from brokerproof.spec.capabilities import Capabilities
from brokerproof.spec.messages import PRIORITIES, Priority
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
)


def must_succeed(operation: Operation, book: Book) -> bool:
    """Return whether a candidate with these claims may not refuse the operation now."""
    claims = book.claims
    match operation:
        case Declare(queue=queue, order=order):
            known = book.orders.get(queue, order)
            return known == order and _declares_what_is_claimed(operation, claims)
        case Publish(queue=queue, message=message):
            return queue in book.queues and message.priority in PRIORITIES
        case Get(queue=queue):
            return queue in book.queues and claims.get
        case Consume(queue=queue, consumer=consumer):
            free = queue in book.queues and consumer not in book.consumers
            return free and _consumes_what_is_claimed(operation, claims)
        case Acknowledge() | Release() | Reject():
            return operation.delivery in book.held
        case Cancel(consumer=consumer):
            return consumer in book.active
        case CloseChannel() | Drain():
            return True
        case _:
            return False


def _declares_what_is_claimed(declare: Declare, claims: Capabilities) -> bool:
    order = declare.order
    kind = order.__struct_config__.tag in claims.orders
    if isinstance(order, Priority):
        kind = kind and 1 <= order.levels <= claims.priority_levels
    durable = claims.durable or not declare.durable
    return kind and durable and (claims.auto_delete or not declare.auto_delete)


def _consumes_what_is_claimed(consume: Consume, claims: Capabilities) -> bool:
    wanted = (
        (consume.credit.messages is not None, "messages" in claims.credit),
        (consume.credit.bytes is not None, "bytes" in claims.credit),
        (consume.selector is not None, claims.selectors),
        (consume.priority != 0, claims.consumer_priority),
        (consume.auto_close, claims.auto_close),
        (bool(consume.queues), claims.multi_queue),
        (consume.exclusive, claims.exclusive),
    )
    return consume.mode in claims.modes and all(claimed for asked, claimed in wanted if asked)
