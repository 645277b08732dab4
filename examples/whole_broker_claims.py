"""The claims of the whole broker, and the check that an operation needs no others.

Owns the answer `unsupported`: an operation that needs an unclaimed option is found here, before it
takes effect. The gate cannot see an option that a broker silently ignores (rule 38 of driver
protocol 1).
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerproof.spec.messages import Priority, PriorityMapping
from brokerproof.spec.protocol.capabilities import Capabilities, Oversize, ReleasePosition
from brokerproof.spec.protocol.operations import (
    Advance,
    Consume,
    Crash,
    Declare,
    Delete,
    Flush,
    Get,
    Inspect,
    Operation,
    Publish,
    Purge,
    Restart,
    SetCredit,
)

LEVELS_MAX = 10


def everything(
    *,
    release_position: ReleasePosition = "original",
    oversize: Oversize = "never",
    priority_mapping: PriorityMapping = "amqp",
    parks: bool = False,
) -> Capabilities:
    """Claim everything in the protocol but inspection and answers out of order."""
    return Capabilities(
        orders=("fifo", "priority", "sorted", "last_value"),
        priority_levels=LEVELS_MAX,
        priority_mapping=priority_mapping,
        modes=("acknowledge", "automatic", "browse"),
        credit=("messages", "bytes", "change", "channel"),
        selectors=True,
        consumer_priority=True,
        durable=True,
        auto_delete=True,
        auto_close=True,
        get=True,
        browse=True,
        release_position=release_position,
        oversize=oversize,
        purge=True,
        delete=True,
        multi_queue=True,
        exclusive=True,
        flush=True,
        clock=True,
        parks=parks,
    )


def not_claimed(operation: Operation, claims: Capabilities) -> str:
    """Return an unclaimed option that an operation needs, or nothing."""
    return ", ".join(what for what, is_claimed in _asked(operation, claims) if not is_claimed)


def _asked(operation: Operation, claims: Capabilities) -> Iterator[tuple[str, bool]]:
    """Yield each option beyond the core that an operation needs, and whether it is claimed."""
    match operation:
        case Declare(order=order):
            kind = str(type(order).__struct_config__.tag)
            yield f"order {kind}", kind in claims.orders
            if isinstance(order, Priority):  # levels are ignored with fifo (26)
                yield f"{order.levels} levels", 1 <= order.levels <= claims.priority_levels
            if operation.durable:
                yield "durable", claims.durable
            if operation.auto_delete:
                yield "auto_delete", claims.auto_delete
        case Publish(not_before_s=not_before_s, expires_s=expires_s):
            if not_before_s is not None or expires_s is not None:
                yield "a clock", claims.clock
        case Consume():
            yield from _asked_to_consume(operation, claims)
        case SetCredit(channel=channel):
            kind = "change" if channel is None else "channel"
            yield f"credit of kind {kind}", kind in claims.credit
            yield from _asked_of_window(operation.messages, operation.bytes, claims)
        case Get(mode=mode):
            yield "get", claims.get
            yield f"{mode} gets", mode in claims.get_modes
        case Crash() | Restart():
            yield "crash and restart", claims.durable
        case Flush():
            yield "flush", claims.flush
        case Purge():
            yield "purge", claims.purge
        case Delete():
            yield "delete", claims.delete
        case Advance():
            yield "a clock", claims.clock
        case Inspect():
            yield "inspect", False  # its lists are no documented system's
        case _:
            pass


def _asked_to_consume(consume: Consume, claims: Capabilities) -> Iterator[tuple[str, bool]]:
    yield f"mode {consume.mode}", consume.mode in claims.modes
    yield from _asked_of_window(consume.credit.messages, consume.credit.bytes, claims)
    if consume.selector is not None:
        yield "selectors", claims.selectors
    if consume.priority != 0:
        yield "consumer_priority", claims.consumer_priority
    if consume.auto_close:
        yield "auto_close", claims.auto_close
    if consume.queues:
        yield "multi_queue", claims.multi_queue
    if consume.exclusive:
        yield "exclusive", claims.exclusive


def _asked_of_window(
    messages: int | None, size: int | None, claims: Capabilities
) -> Iterator[tuple[str, bool]]:
    if messages is not None:
        yield "credit of messages", "messages" in claims.credit
    if size is not None:
        yield "credit of bytes", "bytes" in claims.credit
