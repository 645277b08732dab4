"""Which operations must succeed: those that are claimed, well formed, and about existing things.

The protocol itself requires this (driver protocol 1, rules 13, 15, 25, 26, 38, 49), not the
contract. A definite error to any other operation is lawful, and so is `ok` without effect.
"""

from __future__ import annotations

from brokerproof.checks.trace.bindings import Bindings
from brokerproof.spec.messages import PRIORITIES, Message, Order, Priority, Sorted
from brokerproof.spec.protocol.capabilities import Capabilities
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
    claims = bindings.claims
    match operation:
        case Declare(queue=queue):
            known = bindings.declared.get(queue, operation)
            return known == operation and _declares_what_is_claimed(operation, claims)
        case Publish(queue=queue, message=message):
            timed = operation.not_before_s is not None or operation.expires_s is not None
            there = queue in bindings.queues and (claims.clock or not timed)
            return there and _fits_its_order(message, bindings.declared[queue].order)
        case Get(queue=queue, mode=mode):
            return queue in bindings.queues and mode in claims.get_modes
        case Consume(consumer=consumer):
            there = all(queue in bindings.queues for queue in (operation.queue, *operation.queues))
            free = there and consumer not in bindings.consumers and is_let_in(operation, bindings)
            return free and _consumes_what_is_claimed(operation, claims)
        case SetCredit():
            return _changes_what_is_claimed(operation, bindings)
        case Acknowledge() | Release() | Reject():
            return operation.delivery in bindings.held
        case Cancel(consumer=consumer):
            return _is_there(consumer, bindings)
        case Purge(queue=queue):
            return queue in bindings.queues and claims.purge
        case Delete(queue=queue):
            return queue in bindings.queues and claims.delete
        case Flush(consumer=consumer):
            return claims.flush and _is_there(consumer, bindings)
        case Advance(seconds=seconds):
            return claims.clock and seconds >= 0
        case Crash():
            return claims.durable and not bindings.down
        case Restart():
            return claims.durable and bindings.down
        case Reset():
            return True
        case CloseChannel() | Drain():
            return not bindings.down
        case _:
            return False


def must_be_refused(operation: Operation, bindings: Bindings) -> str:
    """Return why the operation may not succeed now (rules 15, 25, 26, 28, 35), or an empty text."""
    if bindings.down and not isinstance(operation, Restart | Reset):
        return "the broker is down"
    match operation:
        case Restart() if bindings.claims.durable and not bindings.down:
            return "the broker is up"
        case Declare(queue=queue) if bindings.declared.get(queue, operation) != operation:
            known = bindings.declared[queue]
            options = known.durable, known.auto_delete
            if known.order != operation.order or options != (
                operation.durable,
                operation.auto_delete,
            ):
                return "the queue exists with other arguments"
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


def _changes_what_is_claimed(operation: SetCredit, bindings: Bindings) -> bool:
    wanted = {"change"}
    if operation.bytes is not None:
        wanted |= {"bytes"}
    if operation.messages is not None:
        wanted |= {"messages"}
    if operation.channel is not None:
        wanted = (wanted - {"change"}) | {"channel"}
        return wanted <= {*bindings.claims.credit} and operation.channel in bindings.channels
    return _is_there(operation.consumer or "", bindings) and wanted <= {*bindings.claims.credit}


def _is_there(consumer: str, bindings: Bindings) -> bool:
    """Whether a consumer has certainly not left; one that closes itself may have (rule 39)."""
    known = consumer in bindings.active and consumer not in bindings.perhaps_left
    return known and not bindings.consumers[consumer].auto_close


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
