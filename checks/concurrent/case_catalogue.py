"""The parallel cases of a broker with the core profile: every two operations that may meet.

Each begins as small as its operations allow: who settles holds one message, who delivers finds one.
Operations on one channel are never at once: a client's channel is one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

from brokerproof.checks.concurrent.parallel import Parallel
from brokerproof.spec.messages import Credit, Message, Order, Priority
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Release,
    SetCredit,
)

QUEUE: Final = "q"
HOLDER: Final = "c"
"""The consumer that holds `a` at the beginning, as delivery `d0`; its window is full."""

RUNNER: Final = "runner"
"""A job that is scheduled when the threads begin, because the holder's window has grown."""


def every_case(order: Order) -> Iterator[Parallel]:
    """Yield all cases of a queue of an order."""
    yield from pairs(order)
    yield from lost_wake_ups(order)
    yield from triples(order)


def pairs(order: Order) -> Iterator[Parallel]:
    """Yield a case for each two operations that may be under way at once."""
    ways = {**_ways(order), RUNNER: ()}
    for first, second in combinations(ways, 2):
        if not {first, second} <= _ON_THE_HOLDERS_CHANNEL:
            yield _of(order, {first: ways[first], second: ways[second]})
    for name in _TWICE:
        yield _twice(order, name)


def triples(order: Order) -> Iterator[Parallel]:
    """Yield cases of three operations: what returns, goes and returns, and what comes besides."""
    ways = {**_ways(order), RUNNER: ()}
    yield _held_twice(order, "release", "release", "get")
    yield _of(order, {name: ways[name] for name in ("enqueue", "cancel", "get")})
    yield _of(order, {name: ways[name] for name in ("enqueue", "release", "get")})


def lost_wake_ups(order: Order) -> Iterator[Parallel]:
    """Yield cases in which somebody may be left waiting: an end meets a beginning."""
    ways = _ways(order)
    for name in ("acknowledge", "release", "credit"):
        yield Parallel(
            f"{name} meets publish, publish, runner",
            (_declare(order), _consume(HOLDER, 2), _publish("a")),
            (ways[name], (_publish("p"), _publish("p2"), Drain())),
        )
    yield Parallel(
        "acknowledge meets a runner with more to give",
        (_declare(order), _consume(HOLDER, 1), *map(_publish, ("a", "x", "y"))),
        (ways["acknowledge"],),
        stirring=(SetCredit(consumer=HOLDER, messages=2),),
    )
    # A get moves all pointers over what is gone, under nobody's lock.
    yield Parallel(
        "enqueue and credit meet a get",
        (_declare(order), _consume(HOLDER, 0), _consume("d", 1), _publish("a")),
        ((*ways["enqueue"], SetCredit(consumer=HOLDER, messages=1)), ways["get"]),
    )
    yield Parallel(
        "what came back goes and comes back again, beside a runner",
        (
            *(_declare(order), _consume(HOLDER, 0), _publish("a")),
            *(*ways["get"], Release(delivery="d0")),
        ),
        ((*ways["get"], Release(delivery="d1")),),
        stirring=(SetCredit(consumer=HOLDER, messages=1),),
    )
    yield Parallel(
        "enqueue meets a runner that has not begun",
        (_declare(order), _consume(HOLDER, 0), _publish("x")),
        (ways["enqueue"],),
        stirring=(SetCredit(consumer=HOLDER, messages=2),),
    )


_ON_THE_HOLDERS_CHANNEL: Final = frozenset(("acknowledge", "release", "cancel", "close", "credit"))
_TWICE: Final = ("enqueue", "get", "consume")


def _ways(order: Order) -> Mapping[str, tuple[Operation, ...]]:
    # Ahead of all that is there, where an order has such a place.
    urgent = 9 if isinstance(order, Priority) else 4
    return {
        "enqueue": (_publish("m", urgent),),
        "acknowledge": (Acknowledge(delivery="d0"),),
        "release": (Release(delivery="d0"),),
        "cancel": (Cancel(consumer=HOLDER),),
        "close": (CloseChannel(channel=_channel(HOLDER)),),
        "credit": (SetCredit(consumer=HOLDER, messages=2),),
        "get": (Get(queue=QUEUE, channel="g"),),
        "consume": (_consume("d", 1),),
        "browse": (_consume("w", None, "browse"),),
    }


def _of(order: Order, ways: Mapping[str, tuple[Operation, ...]]) -> Parallel:
    return Parallel(
        ", ".join(ways),
        (_declare(order), _consume(HOLDER, 1), _publish("a"), _publish("x")),
        tuple(operations for operations in ways.values() if operations),
        stirring=(SetCredit(consumer=HOLDER, messages=2),) if RUNNER in ways else (),
    )


def _twice(order: Order, name: str) -> Parallel:
    before: tuple[Operation, ...] = (_publish("x"),)
    another: Mapping[str, Operation] = {
        "enqueue": _publish("n"),
        "get": Get(queue=QUEUE, channel="another"),
        "consume": _consume("e", 1),
    }
    if name == "enqueue":
        before = (_consume(HOLDER, 1),)
    both = _ways(order)[name], (another[name],)
    return Parallel(f"{name}, {name}", (_declare(order), *before), both)


def _held_twice(order: Order, first: str, second: str, third: str) -> Parallel:
    """Two consumers hold a message each; a release of either meets whoever takes one."""
    ways = _ways(order)
    return Parallel(
        f"{first}, {third}, {second}",
        (_declare(order), _consume(HOLDER, 1), _consume("d", 1), _publish("a"), _publish("b")),
        (ways[first], ways[third], (Release(delivery="d1"),)),
    )


def _declare(order: Order) -> Declare:
    return Declare(queue=QUEUE, order=order)


def _publish(message: str, priority: int = 4) -> Publish:
    return Publish(queue=QUEUE, message=Message(id=message, priority=priority))


def _consume(consumer: str, window: int | None, mode: ConsumeMode = "acknowledge") -> Consume:
    return Consume(
        queue=QUEUE,
        consumer=consumer,
        channel=_channel(consumer),
        mode=mode,
        credit=Credit(messages=window),
    )


def _channel(consumer: str) -> str:
    return f"channel of {consumer}"
