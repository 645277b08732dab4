"""What an operation needs beyond a candidate's claims.

The gate asks for claimed options only, and requires them to be carried out. A broker answers
`unsupported` to all others; it may use this function for that. The gate cannot see an option that a
broker silently ignores (driver protocol 1, rule 38).
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerproof.spec.messages import Priority
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
    Extend,
    Flush,
    Get,
    Inspect,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
)


def unclaimed(operation: Operation, claims: Capabilities) -> str:
    """Return what the operation needs beyond the claims, or an empty text.

    >>> from brokerproof.spec.protocol.operations import Purge
    >>> unclaimed(Purge(queue="q"), Capabilities())
    'a purge'
    """
    if type(operation) in _ASKED_OF_ALL:
        return ""
    return ", ".join([what for what, is_claimed in _needs(operation, claims) if not is_claimed])


_ASKED_OF_ALL: frozenset[type] = frozenset((Acknowledge, Cancel, CloseChannel, Drain, Reset))


def _needs(operation: Operation, claims: Capabilities) -> Iterator[tuple[str, bool]]:
    match operation:
        case Declare():
            yield from _of_a_queue(operation, claims)
        case Publish(message=message):
            yield "a delay", operation.not_before_s is None or claims.delay
            yield "an expiry", operation.expires_s is None or claims.expiry
            yield "a group", message.group is None or claims.groups
        case Consume():
            yield from _of_a_consumer(operation, claims)
        case SetCredit(channel=channel):
            kind = "change" if channel is None else "channel"
            yield f"credit of kind {kind}", kind in claims.credit
            yield from _of_a_window(operation.messages, operation.bytes, claims)
        case Get(mode=mode):
            yield f"a get of mode {mode}", mode in claims.gets
        case Release(delay_s=delay_s):
            yield "a release of one message", claims.release == "each"
            yield "a release with a delay", delay_s is None or claims.delayed_release
        case Reject():
            yield "a reject", claims.reject
        case Extend():
            yield "a lease that is renewed", claims.extend
        case Flush():
            yield "the flush of a consumer", claims.flush
        case Purge():
            yield "a purge", claims.purge
        case Delete():
            yield "a deletion", claims.delete
        case Advance():
            yield "a clock", claims.clock
        case Crash() | Restart():
            yield "a crash", claims.durable
        case Inspect():
            yield "an inspection", claims.inspect
        case _:
            pass


def _of_a_queue(declare: Declare, claims: Capabilities) -> Iterator[tuple[str, bool]]:
    order = declare.order
    kind = str(type(order).__struct_config__.tag)
    yield f"the order {kind}", kind in claims.orders
    if isinstance(order, Priority):
        yield f"{order.levels} levels", 1 <= order.levels <= claims.priority_levels
    yield "a durable queue", claims.durable or not declare.durable
    yield "a queue that deletes itself", claims.auto_delete or not declare.auto_delete
    yield "a lease", declare.lease_s is None or claims.lease != "none"
    yield "a limit of deliveries", declare.deliveries is None or claims.delivery_limit
    yield "dead letters", declare.dead_letters is None or bool(claims.dead_letters)
    yield "a limit of length", declare.length is None or declare.overflow in claims.length_limit


def _of_a_consumer(consume: Consume, claims: Capabilities) -> Iterator[tuple[str, bool]]:
    yield f"a consumer of mode {consume.mode}", consume.mode in claims.modes
    yield from _of_a_window(consume.credit.messages, consume.credit.bytes, claims)
    yield "a selector", consume.selector is None or claims.selectors
    yield "a consumer's priority", consume.priority == 0 or claims.consumer_priority
    yield "a consumer that closes itself", claims.auto_close or not consume.auto_close
    yield "a consumer of several queues", claims.multi_queue or not consume.queues
    yield "an exclusive consumer", claims.exclusive or not consume.exclusive


def _of_a_window(
    messages: int | None, size: int | None, claims: Capabilities
) -> Iterator[tuple[str, bool]]:
    yield "a window of messages", messages is None or "messages" in claims.credit
    yield "a window of bytes", size is None or "bytes" in claims.credit
