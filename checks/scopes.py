"""Scopes: the small worlds that the exhaustive stage searches whole.

A scope says how many messages, channels and consumers there are and of which kinds; `moves` lists
every move that is possible now, in canonical names (the next message is the next number, a new
channel is the next), so that runs which differ only in names are one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from brokerproof.checks.book import Book
from brokerproof.checks.moves import Move, Settle, SettlementName
from brokerproof.spec.capabilities import Capabilities
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.operations import (
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Drain,
    Get,
    GetMode,
    Publish,
)


@dataclass(frozen=True)
class Kind:
    """A kind of consumer that may subscribe: its mode and its window of messages."""

    mode: ConsumeMode
    credit: int | None = None


@dataclass(frozen=True)
class Scope:
    """A small world; every sequence of its moves, of any length, is a behaviour to be judged."""

    name: str
    orders: tuple[Order, ...]
    messages: int
    priorities: tuple[int, ...] = (4,)
    channels: int = 1
    consumers: int = 0
    kinds: tuple[Kind, ...] = ()
    gets: tuple[GetMode, ...] = ()
    settlements: tuple[SettlementName, ...] = ("acknowledge", "release")
    cancels: bool = False
    closes: bool = False
    settles_again: bool = False
    queues: int = 1

    def moves(self, book: Book) -> Iterator[Move]:
        """Yield every move that is possible now, always in the same order."""
        queues = list(book.queues)
        if len(queues) < self.queues:
            for order in self.orders if not queues else (book.orders[queues[0]],):
                yield Declare(queue=f"q{len(queues)}", order=order)
            return
        yield Drain()
        if len(book.messages) < self.messages:
            for queue in queues:
                for priority in self.priorities:
                    yield Publish(
                        queue=queue, message=Message(id=f"m{len(book.messages)}", priority=priority)
                    )
        channels = [f"ch{i}" for i in range(min(len(book.channels) + 1, self.channels))]
        for channel in channels:
            for queue in queues:
                for mode in self.gets:
                    yield Get(channel=channel, queue=queue, mode=mode)
                if len(book.consumers) < self.consumers:
                    for kind in self.kinds:
                        yield Consume(
                            channel=channel,
                            queue=queue,
                            consumer=f"c{len(book.consumers)}",
                            mode=kind.mode,
                            credit=Credit(kind.credit),
                        )
        held = sorted(held.entry for held in book.held.values())
        for entry in held:
            for how in self.settlements:
                yield Settle(how=how, message=book.name_of_entry(entry))
        if self.settles_again:
            for message in sorted(book.settled):
                for how in self.settlements:
                    yield Settle(how=how, message=message, again=True)
        if self.cancels:
            for consumer in sorted(book.active):
                yield Cancel(consumer=consumer)
        if self.closes:
            for channel in book.channels:
                yield CloseChannel(channel=channel)


def kinds_for(claims: Capabilities) -> tuple[Kind, ...]:
    """Return the kinds of consumers that a candidate claims, with the windows that are tried."""
    windows: tuple[int | None, ...] = (1, 2, None) if "messages" in claims.credit else (None,)
    return tuple(
        Kind(mode, window)
        for mode in claims.modes
        for window in (windows if mode == "acknowledge" else (None,))
    )


def scopes_for(claims: Capabilities) -> tuple[Scope, ...]:
    """Return the scopes in which what a candidate claims is searched whole, smallest first."""
    kinds = kinds_for(claims)
    acknowledging = tuple(kind for kind in kinds if kind.mode == "acknowledge")
    narrow = tuple(kind for kind in acknowledging if kind.credit != 2)
    takers = tuple(kind for kind in kinds if kind.mode != "browse")
    gets: tuple[GetMode, ...] = ("acknowledge",) if claims.get else ()
    # Three levels show all that more could: above, below and beside the default priority.
    levels = min(3, claims.priority_levels)
    priority = (Priority(levels),) if "priority" in claims.orders else ()
    orders: tuple[Order, ...] = (Fifo(),) if "fifo" in claims.orders else priority
    scopes = []
    if gets or takers:
        scopes.append(
            Scope(
                "one channel",
                orders,
                messages=2,
                consumers=1,
                kinds=tuple(kind for kind in takers if kind.credit is None),
                gets=("acknowledge", "automatic") if gets else (),
                settlements=("acknowledge", "release", "reject"),
                cancels=True,
                closes=True,
                settles_again=True,
            )
        )
    if gets:
        scopes.append(
            Scope("gets of two queues", orders, messages=2, queues=2, gets=gets, closes=True)
        )
    if acknowledging:
        scopes.extend(_consumer_scopes(orders, acknowledging, narrow))
    if claims.browse:
        scopes.extend(_browser_scopes(orders, acknowledging, gets))
    if priority:
        scopes.extend(_priority_scopes(claims, priority, narrow, gets))
    return tuple(scopes)


def _consumer_scopes(
    orders: tuple[Order, ...], kinds: tuple[Kind, ...], narrow: tuple[Kind, ...]
) -> Iterator[Scope]:
    yield Scope("one consumer", orders, messages=3, consumers=1, kinds=kinds, closes=True)
    yield Scope("two consumers", orders, messages=3, channels=2, consumers=2, kinds=narrow)
    yield Scope(
        "two queues",
        orders,
        messages=2,
        queues=2,
        consumers=2,
        kinds=kinds[-1:],
        settlements=("release",),
        cancels=True,
    )


def _browser_scopes(
    orders: tuple[Order, ...], acknowledging: tuple[Kind, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    browser = Kind("browse")
    yield Scope(
        "a browser beside a consumer",
        orders,
        messages=2,
        channels=2,
        consumers=2,
        kinds=(browser, *acknowledging[:1]),
        closes=True,
    )
    if gets:
        yield Scope(
            "a browser beside gets",
            orders,
            messages=3,
            consumers=1,
            kinds=(browser,),
            gets=gets,
            settlements=("acknowledge", "release"),
        )


def _priority_scopes(
    claims: Capabilities,
    orders: tuple[Order, ...],
    kinds: tuple[Kind, ...],
    gets: tuple[GetMode, ...],
) -> Iterator[Scope]:
    every_level = tuple(Priority(n) for n in range(1, claims.priority_levels + 1))
    yield Scope(
        "every priority on every number of levels",
        every_level,
        messages=2,
        priorities=tuple(range(10)),
        consumers=0 if gets else 1,
        kinds=() if gets else kinds[-1:],
        gets=gets,
        settlements=(),
    )
    yield Scope(
        "priorities with returns",
        orders[-1:],
        messages=3,
        priorities=(0, 4, 9),
        consumers=1,
        kinds=kinds,
        gets=gets,
        settlements=("release",),
        closes=False,
    )
    if claims.browse:
        yield Scope(
            "a browser among priorities",
            orders[-1:],
            messages=3,
            priorities=(0, 9),
            consumers=1,
            kinds=(Kind("browse"),),
            gets=gets,
            settlements=("release",),
        )
