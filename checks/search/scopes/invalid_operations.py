"""Invalid operations, and valid ones that must change nothing.

Each such move is either refused by the protocol (driver protocol 1, rules 15, 22, 26, 28, 32, 35)
or has no effect whatever its answer (rules 13, 25, 26). Requests that the form excludes are never
sent, since the gate keeps to the form (rule 54, and `spec/protocol/driver.py`): sizes below 0,
windows of bytes below 0, and all numbers above the largest.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import NOT_HELD, Move, Settle
from brokerproof.spec.messages import NUMBER_MAX, Fifo, Message, Priority
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Flush,
    Get,
    Publish,
    Purge,
    Restart,
    SetCredit,
)

NOWHERE = "nowhere"
"""A queue that is never declared."""
NO_CLIENT = "nobody"
"""The name of a consumer that never subscribes."""


def invalid_operations(bindings: Bindings, absent: str = NOWHERE) -> Iterator[Move]:
    """Yield the invalid operations for a candidate's claims; the queue `absent` does not exist."""
    if bindings.down:
        yield from _while_down(bindings)
        return
    yield from _of_a_queue_that_is_not_there(bindings, absent)
    yield from _of_consumers(bindings)
    yield Settle(how="acknowledge", message=NOT_HELD)
    yield Settle(how="release", message=NOT_HELD)
    yield CloseChannel(channel=NO_CLIENT)
    if bindings.claims.durable:
        yield Restart()
    for declared in list(bindings.declared.values())[:1]:
        if "priority" in bindings.claims.orders:
            yield Publish(queue=declared.queue, message=Message(id=NOT_HELD, priority=10))
        yield declared
        yield from _declared_otherwise(declared, bindings)


def _of_a_queue_that_is_not_there(bindings: Bindings, absent: str) -> Iterator[Move]:
    claims = bindings.claims
    yield Publish(queue=absent, message=Message(id=NOT_HELD))
    if claims.get:
        yield Get(channel=NO_CLIENT, queue=absent)
    for mode in claims.modes[:1]:
        yield Consume(channel=NO_CLIENT, queue=absent, consumer=NO_CLIENT, mode=mode)
    if claims.purge:
        yield Purge(queue=absent)
    if claims.delete:
        yield Delete(queue=absent)


def _of_consumers(bindings: Bindings) -> Iterator[Move]:
    """Yield operations on unknown consumers and on consumers that have left, and wrong windows."""
    # A name in use cannot be tried again: names are used once (rule 25).
    claims = bindings.claims
    yield Cancel(consumer=NO_CLIENT)
    if claims.flush:
        yield Flush(consumer=NO_CLIENT)
    if "change" in claims.credit:
        yield SetCredit(consumer=NO_CLIENT)
    for name in sorted(bindings.consumers.keys() - bindings.active)[:1]:
        yield Cancel(consumer=name)
    if {"change", "messages"} <= {*claims.credit}:
        for name in sorted(bindings.active)[:1]:
            yield SetCredit(consumer=name, messages=-1)
            yield SetCredit(consumer=name, messages=NUMBER_MAX)


def _declared_otherwise(declared: Declare, bindings: Bindings) -> Iterator[Move]:
    other = Priority(2) if isinstance(declared.order, Fifo) else Fifo()
    yield replace(declared, order=other)
    if bindings.claims.durable:
        yield replace(declared, durable=not declared.durable)
    if bindings.claims.auto_delete:
        yield replace(declared, auto_delete=not declared.auto_delete)


def _while_down(bindings: Bindings) -> Iterator[Move]:
    yield Drain()
    yield Crash()
    yield CloseChannel(channel=NO_CLIENT)
    for declared in list(bindings.declared.values())[:1]:
        yield declared
        yield Publish(queue=declared.queue, message=Message(id=NOT_HELD))
        if bindings.claims.get:
            yield Get(channel=NO_CLIENT, queue=declared.queue)
