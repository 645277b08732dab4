"""The parallel cases of a broker with the core profile: every two operations that may meet.

Each case begins as small as its operations allow: a settlement needs one held message, a delivery
one available. Operations on one channel are never at once, since a client's channel is one thread.
A broker gets only cases of its claims; one without consumers holds messages by a get.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations
from typing import Final

from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.checks.verdicts import meet
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.capabilities import Capabilities, OrderKind
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Delete,
    Drain,
    Get,
    Publish,
    Purge,
    SetCredit,
)

QUEUE: Final = "q"
HOLDER: Final = "c"
"""The consumer that holds `a` at the beginning; its window is full."""

RELEASE: Final = Settle(how="release", message="a")

LEVELS: Final = 3
"""The most levels of a priority queue here."""

RUNNER: Final = "runner"
"""A job that is scheduled when the threads begin, because the holder's window has grown."""


def cases_for(claims: Capabilities) -> Iterator[tuple[Order, Parallel]]:
    """Yield the cases of every order that a broker claims, within its claims."""
    orders: dict[OrderKind, Order] = {
        "fifo": Fifo(),
        "priority": Priority(levels=min(LEVELS, claims.priority_levels)),
    }
    for kind, order in orders.items():
        if kind in claims.orders:
            of_consumers = _has_consumers(claims)
            for parallel in every_case(order) if of_consumers else of_gets(order):
                if meet(claims, _needs(parallel)):
                    yield order, parallel


def case_name(order: Order, parallel: Parallel) -> str:
    """Return the name of a case in reports, with the order of its queue."""
    return f"{order.__struct_config__.tag}: {parallel.name}"


def _has_consumers(claims: Capabilities) -> bool:
    return meet(claims, ("modes:acknowledge", "credit:messages"))


def _needs(parallel: Parallel) -> Iterator[str]:
    """Yield the claims without which a case cannot be run."""
    for move in chain(parallel.before, parallel.stirring, *parallel.at_once):
        match move:
            case Consume(mode=mode, credit=credit, auto_close=closes_itself):
                yield f"modes:{mode}"
                if credit.messages is not None:
                    yield "credit:messages"
                if closes_itself:
                    yield "auto_close"
            case Declare(auto_delete=True):
                yield "auto_delete"
            case SetCredit():
                yield "credit:change"
            case Get():
                yield "get"
            case Delete():
                yield "delete"
            case Purge():
                yield "purge"


def every_case(order: Order) -> Iterator[Parallel]:
    """Yield all cases of a queue of an order."""
    yield from pairs(order)
    yield from lost_wake_ups(order)
    yield from endings(order)
    yield from looks_and_acts(order)
    yield from triples(order)


def pairs(order: Order) -> Iterator[Parallel]:
    """Yield a case for each two operations that may be under way at once."""
    ways = {**_ways(order), RUNNER: ()}
    for first, second in combinations(ways, 2):
        if not {first, second} <= _ON_THE_HOLDERS_CHANNEL:
            yield _of(order, {first: ways[first], second: ways[second]})
    yield _twice(order, "enqueue", _consume(HOLDER, 1))
    yield _twice(order, "get", _publish("x"))
    yield _twice(order, "consume", _publish("x"))
    yield _twice(order, "delete", _consume(HOLDER, 1), _publish("x"))


def triples(order: Order) -> Iterator[Parallel]:
    """Yield cases of three operations: messages return or leave while another operation runs.

    A get or the runner delivers; if consumers pull, each consumer's own job does.
    """
    ways = {**_ways(order), RUNNER: ()}
    yield _held_twice(order, "release", "release", "get")
    yield _of(order, {name: ways[name] for name in ("enqueue", "cancel", "get")})
    yield _of(order, {name: ways[name] for name in ("enqueue", "release", "get")})
    yield _of(order, {name: ways[name] for name in ("cancel", "delete", RUNNER)})
    yield _of(order, {name: ways[name] for name in ("enqueue", "cancel", RUNNER)})


def small_cases(order: Order) -> Iterator[Parallel]:
    """Yield the pairs and triples with the fewest messages on which they still act.

    They have the same names, for exploring a case to its end that is too large otherwise.
    """
    ways = [*_ways(order), RUNNER]
    for first, second in combinations(ways, 2):
        if (first, second) == ("close", "get"):
            closing = (CloseChannel(channel="first"),)
            held = (_declare(order), _publish("a"), Get(queue=QUEUE, channel="first"))
            yield Parallel("close, get", held, (closing, _ways(order)["get"]))
        elif not {first, second} <= _ON_THE_HOLDERS_CHANNEL:
            yield _small(order, first, second)
    yield _twice(order, "enqueue")
    yield _twice(order, "get")
    yield _twice(order, "consume")
    yield _twice(order, "delete")
    gets = [Get(queue=QUEUE, channel=channel) for channel in ("first", "second")]
    yield Parallel(
        "release, get, release",
        (_declare(order), _publish("a"), _publish("b"), *gets),
        ((RELEASE,), _ways(order)["get"], (Settle(how="release", message="b"),)),
    )
    yield _small(order, "enqueue", "cancel", "get")
    yield _small(order, "enqueue", "release", "get")
    yield _small(order, "cancel", "delete", RUNNER)
    yield _small(order, "enqueue", "cancel", RUNNER)


def _small(order: Order, *names: str) -> Parallel:
    """Return a case whose held messages are all settled, with few messages to deliver.

    A consumer that subscribes is paused.
    """
    asked = {*names}
    holds = bool(asked & {"acknowledge", "release", "close"})
    leaves = bool(asked & {"cancel", "credit", RUNNER})
    window = int(holds)
    before: list[Move] = [_declare(order)]
    if holds or leaves:
        before.append(_consume(HOLDER, window))
    if holds:
        before.append(_publish("a"))
    if not asked & {"enqueue", "release", "close"} and asked not in _ENOUGH_IN_AN_EMPTY_QUEUE:
        before.append(_publish("x"))
    ways = {
        **_ways(order),
        "credit": (SetCredit(consumer=HOLDER, messages=window + 1),),
        "consume": (_consume("d", 0),),
    }
    return Parallel(
        ", ".join(names),
        tuple(before),
        tuple(ways[name] for name in names if name != RUNNER),
        stirring=(SetCredit(consumer=HOLDER, messages=window + 1),) if RUNNER in asked else (),
    )


def lost_wake_ups(order: Order) -> Iterator[Parallel]:
    """Yield cases in which a consumer or get may be left waiting: an end meets a beginning."""
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
    # A get moves all pointers over entries that are gone, without any lock.
    yield Parallel(
        "enqueue and credit meet a get",
        (_declare(order), _consume(HOLDER, 0), _consume("d", 1), _publish("a")),
        ((*ways["enqueue"], SetCredit(consumer=HOLDER, messages=1)), ways["get"]),
    )
    # If consumers pull, each has a job of its own; otherwise one runner has both.
    yield Parallel(
        "two consumers have work at one message",
        (_declare(order), _consume(HOLDER, 0), _consume("d", 0), _publish("x")),
        (),
        stirring=tuple(SetCredit(consumer=each, messages=1) for each in (HOLDER, "d")),
    )
    yield Parallel(
        "what came back goes and comes back again, beside a runner",
        (
            *(_declare(order), _consume(HOLDER, 0), _publish("a")),
            *(*ways["get"], RELEASE),
        ),
        ((*ways["get"], RELEASE),),
        stirring=(SetCredit(consumer=HOLDER, messages=1),),
    )
    yield Parallel(
        "enqueue meets a runner that has not begun",
        (_declare(order), _consume(HOLDER, 0), _publish("x")),
        (ways["enqueue"],),
        stirring=(SetCredit(consumer=HOLDER, messages=2),),
    )


def endings(order: Order) -> Iterator[Parallel]:
    """Yield cases in which a consumer or queue ends by itself while a client ends or uses it."""
    ways = _ways(order)
    goes_with_its_last = (
        Declare(queue=QUEUE, order=order, auto_delete=True),
        *(_consume(HOLDER, 1), _publish("a"), _publish("x")),
    )
    for name in ("enqueue", "acknowledge", "get", "consume", "delete"):
        cancels = (ways["cancel"], ways[name])
        if name == "acknowledge":
            # On the consumer's channel, so by a client that first got the message.
            cancels = (ways["cancel"], (*ways["get"], Settle(how="acknowledge", message="x")))
        yield Parallel(f"the last consumer leaves, {name}", goes_with_its_last, cancels)
    closes_itself = Consume(
        queue=QUEUE, consumer=HOLDER, channel=_channel(HOLDER), credit=Credit(0), auto_close=True
    )
    for name in ("cancel", "enqueue", "delete"):
        yield Parallel(
            f"a runner closes a consumer, {name}",
            (_declare(order), _publish("a"), closes_itself),
            (ways[name],),
            stirring=(SetCredit(consumer=HOLDER, messages=1),),
        )


def looks_and_acts(order: Order) -> Iterator[Parallel]:
    """Yield cases in which two may check before either acts: a name taken twice, a purge."""
    publishes = {each: _publish(each) for each in ("a", "b")}
    yield Parallel(
        "one queue is declared twice, and used",
        (),
        tuple((_declare(order), publish) for publish in publishes.values()),
    )
    takes = [
        Consume(queue=QUEUE, consumer=HOLDER, channel=channel, credit=Credit(1))
        for channel in ("first", "second")
    ]
    yield Parallel(
        "one name is taken by two consumers",
        (_declare(order), publishes["a"], publishes["b"]),
        tuple((take,) for take in takes),
    )
    ways = {**_ways(order), RUNNER: ()}
    for name in ("enqueue", "release", "get", RUNNER):
        yield _of(order, {"purge": (Purge(queue=QUEUE),), name: ways[name]})


_ENOUGH_IN_AN_EMPTY_QUEUE: Final = ({"get", RUNNER}, {"consume", "delete"}, {"browse", "delete"})
_ON_THE_HOLDERS_CHANNEL: Final = frozenset(("acknowledge", "release", "cancel", "close", "credit"))


def of_gets(order: Order) -> Iterator[Parallel]:
    """Yield the cases of brokers without consumers: a get holds the message that is settled."""
    ways = {**_ways(order), "close": (CloseChannel(channel="first"),)}
    before = (_declare(order), _publish("a"), Get(queue=QUEUE, channel="first"), _publish("x"))
    for first in ("acknowledge", "release", "close"):
        for second in ("enqueue", "get"):
            yield Parallel(f"{first}, {second}", before, (ways[first], ways[second]))
    yield Parallel("enqueue, get", before, (ways["enqueue"], ways["get"]))
    for name in ("enqueue", "get"):
        yield _twice(order, name, _publish("x"))
    yield Parallel("enqueue, release, get", before, (ways["enqueue"], ways["release"], ways["get"]))


def _ways(order: Order) -> Mapping[str, tuple[Move, ...]]:
    # Before all other messages, if the order has such a place.
    urgent = 9 if isinstance(order, Priority) else 4
    return {
        "enqueue": (_publish("m", urgent),),
        "acknowledge": (Settle(how="acknowledge", message="a"),),
        "release": (RELEASE,),
        "cancel": (Cancel(consumer=HOLDER),),
        "close": (CloseChannel(channel=_channel(HOLDER)),),
        "credit": (SetCredit(consumer=HOLDER, messages=2),),
        "get": (Get(queue=QUEUE, channel="g"),),
        "consume": (_consume("d", 1),),
        "browse": (_consume("w", None, "browse"),),
        "delete": (Delete(queue=QUEUE),),
    }


def _of(order: Order, ways: Mapping[str, tuple[Move, ...]]) -> Parallel:
    return Parallel(
        ", ".join(ways),
        (_declare(order), _consume(HOLDER, 1), _publish("a"), _publish("x")),
        tuple(operations for operations in ways.values() if operations),
        stirring=(SetCredit(consumer=HOLDER, messages=2),) if RUNNER in ways else (),
    )


def _twice(order: Order, name: str, *before: Move) -> Parallel:
    another: Mapping[str, Move] = {
        "enqueue": _publish("n"),
        "get": Get(queue=QUEUE, channel="another"),
        "consume": _consume("e", 1),
        "delete": Delete(queue=QUEUE),
    }
    both = _ways(order)[name], (another[name],)
    return Parallel(f"{name}, {name}", (_declare(order), *before), both)


def _held_twice(order: Order, first: str, second: str, third: str) -> Parallel:
    """Two consumers hold a message each; a release of either meets a subscriber."""
    ways = _ways(order)
    return Parallel(
        f"{first}, {third}, {second}",
        (_declare(order), _consume(HOLDER, 1), _consume("d", 1), _publish("a"), _publish("b")),
        (ways[first], ways[third], (Settle(how="release", message="b"),)),
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
