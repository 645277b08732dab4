"""Which operations must succeed: those that are claimed, well formed, and about existing things.

The protocol itself requires this (driver protocol 1, rules 13, 15, 25, 26, 38, 49), not the
contract. A definite error to any other operation is lawful, and so is `ok` without effect.
"""

from __future__ import annotations

from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.leases import may_be_over
from brokerproof.spec.messages import PRIORITIES, Message, Order, Sorted
from brokerproof.spec.protocol.claimed import unclaimed
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Extend,
    Flush,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
)


def must_succeed(operation: Operation, bindings: Bindings) -> bool:
    """Return whether a candidate with these claims may not refuse the operation now."""
    if must_be_refused(operation, bindings) or _is_of_a_queue_that_may_be_gone(operation, bindings):
        return False
    if unclaimed(operation, bindings.claims):
        return False
    match operation:
        case Declare(queue=queue):
            return bindings.declared.get(queue, operation) == operation
        case Publish(queue=queue, message=message):
            there = queue in bindings.queues and not may_be_full(operation, bindings)
            return there and _fits_its_order(message, bindings.declared[queue].order)
        case Get(queue=queue) | Purge(queue=queue) | Delete(queue=queue):
            return queue in bindings.queues
        case Consume(consumer=consumer):
            there = all(queue in bindings.queues for queue in (operation.queue, *operation.queues))
            return there and consumer not in bindings.consumers and is_let_in(operation, bindings)
        case SetCredit(channel=str(channel)):
            return channel in bindings.channels
        case SetCredit(consumer=consumer) | Cancel(consumer=consumer) | Flush(consumer=consumer):
            return _is_there(consumer or "", bindings)
        case Acknowledge() | Release() | Reject() | Extend():
            held = bindings.held.get(operation.delivery)
            if held is None or (isinstance(operation, Extend) and held.due is None):
                return False
            return not held.voided and not may_be_over(held, bindings)
        case Advance(seconds=seconds):
            return seconds >= 0
        case Restart():
            return bindings.down
        case CloseChannel() | Drain() | Crash():
            return not bindings.down
        case _:
            return isinstance(operation, Reset)


def may_be_full(publish: Publish, bindings: Bindings) -> bool:
    """Whether the queue may have no room for a message, and refuses it then."""
    declared = bindings.declared.get(publish.queue)
    return declared is not None and declared.overflow == "refuse"


def must_be_refused(operation: Operation, bindings: Bindings) -> str:
    """Return why the operation may not succeed now (rules 15, 25, 26, 28, 35), or an empty text."""
    if bindings.down and not isinstance(operation, Restart | Reset):
        return "the broker is down"
    match operation:
        case Restart() if bindings.claims.durable and not bindings.down:
            return "the broker is up"
        case Declare(queue=queue) if bindings.declared.get(queue, operation) != operation:
            return "" if bindings.may_be_gone(queue) else "the queue exists with other arguments"
        case Declare(dead_letters=str(buried)) if buried not in bindings.queues:
            return "there is no such queue for dead letters"
        case Publish(message=message) if message.priority not in PRIORITIES and (
            "priority" in bindings.claims.orders
        ):
            return "priorities are 0 to 9"
        case Publish() | Get() | Purge() | Delete() if operation.queue not in bindings.queues:
            return "there is no such queue"
        case Consume() if any(
            q not in bindings.queues for q in (operation.queue, *operation.queues)
        ):
            return "there is no such queue"
        case Consume(consumer=consumer) if consumer in bindings.active:
            return "" if bindings.consumers[consumer].auto_close else "the name is in use"
        case Consume(credit=credit) if min(credit.messages or 0, credit.bytes or 0) < 0:
            return "a window is not negative"
        case (
            Cancel(consumer=str(consumer))
            | Flush(consumer=str(consumer))
            | SetCredit(consumer=str(consumer))
        ) if consumer not in bindings.consumers:
            return "there is no such consumer"
        case SetCredit(messages=messages, bytes=size) if min(messages or 0, size or 0) < 0:
            return "a window is not negative"
        case _:
            return ""
    return ""


def _is_of_a_queue_that_may_be_gone(operation: Operation, bindings: Bindings) -> bool:
    """Whether a queue that deletes itself may have gone without an event so far (rule 39)."""
    match operation:
        case Declare() | Publish() | Get() | Purge() | Delete():
            return bindings.may_be_gone(operation.queue)
        case Consume():
            return any(map(bindings.may_be_gone, (operation.queue, *operation.queues)))
        case Acknowledge() | Release() | Reject():
            held = bindings.held.get(operation.delivery)
            if held is None:
                return False
            return bindings.may_be_gone(
                bindings.queue_of_message(bindings.name_of_entry(held.entry))
            )
        case _:
            return False


def is_let_in(consume: Consume, bindings: Bindings) -> bool:
    """Whether a consumer may subscribe beside the present ones, as exclusive consumers demand."""
    together = bindings.subscribed_to(consume.queue, *consume.queues)
    return not any(consume.exclusive or bindings.consumers[name].exclusive for name in together)


def _fits_its_order(message: Message, order: Order) -> bool:
    if message.priority not in PRIORITIES:
        return False
    return not isinstance(order, Sorted) or order.key in message.properties


def _is_there(consumer: str, bindings: Bindings) -> bool:
    """Whether a consumer has certainly not left; one that closes itself may have (rule 39)."""
    known = consumer in bindings.active and consumer not in bindings.perhaps_left
    return known and not bindings.consumers[consumer].auto_close
