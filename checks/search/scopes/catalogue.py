"""The scopes of the exhaustive stage: which small worlds are searched for which claims.

This file owns the choice; `scope.py` owns the moves of a scope. Each scope tests one feature, since
the number of states grows with every other. Scopes about consumers and their windows are in
`consumer_scopes.py`, those about crashes in `crash_scopes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brokerproof.checks.search.scopes.consumer_scopes import scopes_of_consumers, scopes_of_windows
from brokerproof.checks.search.scopes.crash_scopes import scopes_of_crashes, scopes_of_what_persists
from brokerproof.checks.search.scopes.job_scopes import scopes_of_jobs
from brokerproof.checks.search.scopes.scope import NUMBERS, RED, TEXTS, Kind, Payload, Scope
from brokerproof.checks.trace.moves import SettlementName
from brokerproof.spec.messages import (
    Credit,
    Fifo,
    LastValue,
    Order,
    Priority,
    Sorted,
    Unordered,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import GetMode

LONG = 12
"""More messages than the documents' slice of deliveries holds (Qpid, Message Delivery: ten)."""


def kinds_for(claims: Capabilities) -> tuple[Kind, ...]:
    """Return the kinds of consumers that a candidate claims, with the windows that are tried."""
    windows: tuple[int | None, ...] = (1, 2, None) if "messages" in claims.credit else (None,)
    return tuple(
        Kind(mode, window)
        for mode in claims.modes
        for window in (windows if mode == "acknowledge" else (None,))
    )


def scopes_for(
    claims: Capabilities, *, in_process: bool = False, on_disk: bool = False
) -> tuple[Scope, ...]:
    """Return the scopes for a candidate's claims, smallest first.

    Only a candidate `in_process` gets requests that the driver protocol cannot express. Only a
    candidate `on_disk` loses power during an operation.
    """
    kinds = kinds_for(claims)
    acknowledging = tuple(kind for kind in kinds if kind.mode == "acknowledge")
    narrow = tuple(kind for kind in acknowledging if kind.credit != 2)
    subscribers = tuple(kind for kind in kinds if kind.mode != "browse")
    gets = tuple(mode for mode in claims.gets if mode == "acknowledge") or claims.gets
    # Three levels show all that more could: above, below and beside the default priority.
    levels = min(3, claims.priority_levels)
    priority = (Priority(levels),) if "priority" in claims.orders else ()
    orders: tuple[Order, ...] = (Fifo(),) if "fifo" in claims.orders else priority
    orders = orders or tuple(_other_orders(claims))
    scopes = []
    if gets or subscribers:
        scopes.append(
            Scope(
                "one channel",
                orders,
                messages=2,
                consumers=1,
                kinds=tuple(kind for kind in subscribers if kind.credit is None),
                gets=claims.gets,
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
        scopes.append(_scope_of_a_long_queue(claims, orders))
    if claims.browse:
        scopes.extend(_browser_scopes(orders, acknowledging, gets))
    if priority:
        scopes.extend(_priority_scopes(claims, priority, narrow, gets))
    scopes.extend(scopes_of_windows(claims, orders, gets))
    scopes.extend(scopes_of_consumers(claims, orders, gets))
    scopes.extend(_scopes_of_queues(claims, orders, gets))
    scopes.extend(scopes_of_what_persists(claims, orders, gets))
    scopes.extend(scopes_of_crashes(claims, orders, gets, on_disk=on_disk))
    if gets or subscribers:
        scopes.extend(_scopes_of_refusals(claims, orders, gets, in_process=in_process))
    scopes.extend(_scopes_of_messages(claims, orders, gets))
    if gets and claims.durable:
        scopes.append(_scope_of_returns(orders, gets))
    scopes.extend(scopes_of_jobs(claims, orders, gets))
    return tuple(scope.as_claimed(claims) for scope in scopes)


def _other_orders(claims: Capabilities) -> Iterator[Order]:
    if "sorted" in claims.orders:
        yield Sorted("k")
    if "last_value" in claims.orders:
        yield LastValue("k")
    if "none" in claims.orders:
        yield Unordered()


def _consumer_scopes(
    orders: tuple[Order, ...], kinds: tuple[Kind, ...], narrow: tuple[Kind, ...]
) -> Iterator[Scope]:
    if kinds[0].credit is not None:
        # Small enough to be searched to its end at first.
        settlements: tuple[SettlementName, ...] = ("acknowledge", "release", "reject")
        full = Scope("a window of one", orders, 2, consumers=1, kinds=kinds[:1], filled=True)
        yield replace(full, settlements=settlements)
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


def _scope_of_a_long_queue(claims: Capabilities, orders: tuple[Order, ...]) -> Scope:
    """Return the scope with more messages at once than the documents' slice of deliveries."""
    changes = {"messages", "change"} <= {*claims.credit}
    return Scope(
        "a long queue",
        orders,
        messages=LONG,
        channels=2,
        consumers=2,
        kinds=(*((Kind("acknowledge", 0),) if changes else ()), Kind("acknowledge")),
        windows=(Credit(None),) if changes else (),
        settlements=(),
        closes=True,
        filled=True,
    )


def _scope_of_returns(orders: tuple[Order, ...], gets: tuple[GetMode, ...]) -> Scope:
    """Return the scope in which some acquired messages return, in any order.

    A broker with a disk keeps a queue in several places (RabbitMQ: five). With four messages, one
    can return between two that have moved to another place while a consumer holds a third there.
    """
    return Scope(
        "gets that return in any order",
        orders,
        messages=4,
        gets=gets,
        settlements=("release",),
        filled=True,
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
    elif acknowledging:
        yield Scope(
            "what returns behind a browser",
            orders,
            messages=1,
            channels=2,
            consumers=2,
            kinds=(browser, *acknowledging[:1]),
            settlements=("release",),
            cancels=True,
            filled=True,
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
        messages=10,
        payloads=tuple(Payload(priority) for priority in range(10)),
        consumers=0 if gets else 1,
        kinds=() if gets else kinds[-1:],
        gets=gets,
        settlements=(),
        filled=True,
        in_turn=True,
    )
    yield Scope(
        "priorities with returns",
        orders[-1:],
        messages=3,
        payloads=(Payload(0), Payload(4), Payload(9)),
        consumers=1,
        kinds=kinds,
        gets=gets,
        settlements=("release",),
        closes=False,
    )
    if gets:
        yield _scope_of_priorities_that_go(orders, gets, purges=claims.purge)
    if kinds:
        selecting = (Kind(kinds[-1].mode, selector=RED),) if claims.selectors else ()
        yield Scope(
            "returns to two consumers among priorities",
            orders[-1:],
            messages=2,
            payloads=(Payload(0, properties=RED if selecting else ()), Payload(9)),
            consumers=2,
            kinds=(*kinds, *selecting),
            settlements=("release",),
        )
    if claims.browse:
        yield Scope(
            "a browser among priorities",
            orders[-1:],
            messages=3,
            payloads=(Payload(0), Payload(9)),
            consumers=1,
            kinds=(Kind("browse"),),
            gets=gets,
            settlements=("release",),
        )


def _scope_of_priorities_that_go(
    orders: tuple[Order, ...], gets: tuple[GetMode, ...], *, purges: bool
) -> Scope:
    return Scope(
        "a purge and a channel that closes among priorities",
        orders[-1:],
        messages=3,
        payloads=(Payload(9), Payload(9), Payload(0)),
        filled=True,
        in_turn=True,
        gets=gets,
        settlements=(),
        closes=True,
        purges=purges,
    )


def _scopes_of_queues(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    browsers = (Kind("browse"),) if claims.browse else ()
    if claims.purge:
        yield Scope(
            "queues that are purged",
            orders,
            messages=2,
            consumers=0 if gets else 1,
            kinds=() if gets else subscribers,
            gets=gets,
            settlements=("release",),
            purges=True,
        )
        if "messages" in claims.credit and "acknowledge" in claims.modes:
            yield Scope(
                "a purge beside a consumer with a window",
                orders,
                messages=2,
                consumers=1,
                kinds=(Kind("acknowledge", 1),),
                settlements=("release",),
                purges=True,
            )
    if claims.delete:
        yield Scope(
            "queues that are deleted",
            orders,
            messages=1,
            consumers=1,
            kinds=(*subscribers, *browsers),
            gets=gets,
            settlements=("release",),
            settles_again=True,
            deletes=True,
        )
    yield from _scopes_of_queues_that_go(claims, orders, gets)


def _scopes_of_queues_that_go(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    browsers = (Kind("browse"),) if claims.browse else ()
    if claims.auto_delete and (subscribers or browsers):
        closing = tuple(
            Kind(kind.mode, auto_close=True) for kind in subscribers if claims.auto_close
        )
        yield Scope(
            "queues that delete themselves",
            orders,
            messages=1,
            consumers=2,
            kinds=(*subscribers, *browsers, *closing),
            gets=gets,
            cancels=True,
            closes=True,
            auto_delete=(True,),
        )
    if claims.multi_queue and subscribers:
        yield Scope(
            "consumers of several queues",
            orders,
            messages=2,
            queues=2,
            consumers=2,
            kinds=(Kind(subscribers[0].mode, every_queue=True), subscribers[0]),
            settlements=("release",),
        )
        if "messages" in claims.credit and subscribers[0].mode == "acknowledge":
            yield Scope(
                "a window over several queues",
                orders,
                messages=2,
                queues=2,
                consumers=1,
                kinds=(Kind("acknowledge", 1, every_queue=True),),
                settlements=(),
            )
    if claims.multi_queue and claims.exclusive and subscribers:
        yield Scope(
            "exclusive consumers of several queues",
            orders,
            messages=1,
            queues=2,
            consumers=2,
            kinds=(Kind(subscribers[0].mode, exclusive=True, every_queue=True), subscribers[0]),
            settlements=(),
        )


def _scopes_of_refusals(
    claims: Capabilities,
    orders: tuple[Order, ...],
    gets: tuple[GetMode, ...],
    *,
    in_process: bool,
) -> Iterator[Scope]:
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    # A window below 0 can be asked for by `credit` only, over the driver protocol (rule 22).
    asks = in_process and "messages" in claims.credit
    wrong = tuple(Kind(each.mode, -1) for each in subscribers if asks)
    yield Scope(
        "what must be refused",
        orders,
        messages=1,
        consumers=1,
        kinds=(*subscribers, *wrong),
        gets=gets,
        cancels=True,
        invalid=True,
    )
    if claims.delete:
        yield Scope(
            "what must be refused of a queue that has gone",
            orders,
            messages=1,
            consumers=1,
            kinds=subscribers,
            gets=() if subscribers else gets,
            settlements=(),
            deletes=True,
            invalid=True,
        )
    if claims.durable:
        yield Scope(
            "what must be refused while the broker is down",
            orders,
            messages=1,
            durable=(True,),
            consumers=1,
            kinds=subscribers,
            gets=() if subscribers else gets,
            settlements=(),
            crashes=True,
            invalid=True,
            resets=True,
        )


def _scopes_of_messages(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    browsers = (Kind("browse"),) if claims.browse else ()
    subscribers = () if gets else tuple(Kind(m) for m in claims.modes if m != "browse")[:1]
    if claims.clock:
        yield from _scopes_of_the_clock(claims, orders, gets)
    for order in _other_orders(claims):
        by_key = Scope(
            f"a queue of order {order.__struct_config__.tag}",
            (order,),
            messages=3,
            payloads=(*NUMBERS, *((Payload(),) if isinstance(order, LastValue) else ())),
            consumers=1,
            kinds=(*browsers, *subscribers),
            gets=gets,
            settlements=("acknowledge", "release"),
        )
        yield by_key
        two = replace(by_key, messages=2)
        if isinstance(order, Sorted):
            yield replace(two, name="a queue sorted by texts", payloads=TEXTS)
        elif isinstance(order, LastValue) and gets:
            bare = replace(two, name="messages without a key", payloads=(Payload(),), filled=True)
            yield replace(bare, consumers=0, kinds=())
    yield Scope(
        "empty messages",
        orders,
        messages=2,
        payloads=(Payload(size=0),),
        consumers=1,
        kinds=tuple(kind for kind in kinds_for(claims) if kind.credit != 2),
        gets=gets,
        settlements=("acknowledge", "release"),
    )
    if claims.parks:
        yield Scope(
            "publishes that are parked",
            orders,
            messages=4,
            consumers=0 if gets else 1,
            kinds=subscribers or browsers,
            gets=gets,
            settlements=("acknowledge",),
        )
        yield from _scopes_where_room_comes_by_itself(claims, orders, gets)


def _scopes_where_room_comes_by_itself(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    settlements: tuple[SettlementName, ...] = ("release",) if gets else ()
    if claims.purge:
        yield Scope(
            "a purge while publishes are parked",
            orders,
            messages=4,
            gets=gets,
            settlements=settlements,
            purges=True,
        )
    if claims.delete:
        # The room may be that of all queues.
        yield Scope(
            "a deletion while publishes are parked",
            orders,
            queues=2,
            messages=4,
            gets=gets,
            settlements=settlements,
            deletes=True,
        )
    if claims.clock and claims.expiry:
        yield Scope(
            "a clock while publishes are parked",
            orders,
            messages=4,
            payloads=(Payload(), Payload(expires_s=1)),
            gets=gets,
            settlements=settlements,
            seconds=1,
        )


def _scopes_of_the_clock(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    subscribers = () if gets else tuple(Kind(m) for m in claims.modes if m != "browse")[:1]
    delayed = (Payload(not_before_s=1),) if claims.delay else ()
    expiring = (Payload(expires_s=1),) if claims.expiry else ()
    if not delayed and not expiring:
        return
    yield Scope(
        "a clock",
        orders,
        messages=2,
        payloads=(Payload(), *delayed, *expiring),
        consumers=0 if gets else 1,
        kinds=subscribers,
        gets=gets,
        settlements=("release",),
        seconds=2,
    )
    if "acknowledge" in claims.modes and delayed:
        yield Scope(
            "a consumer and a clock",
            orders,
            messages=2,
            payloads=(Payload(), *delayed),
            consumers=1,
            kinds=(Kind("acknowledge"),),
            settlements=(),
            seconds=1,
        )
    if "acknowledge" in claims.modes and "bytes" in claims.credit and expiring:
        yield Scope(
            "a message that expires ahead of one that has room",
            orders[:1],
            messages=3,
            payloads=(Payload(), Payload(size=2, expires_s=1)),
            consumers=1,
            kinds=(Kind("acknowledge", bytes=2),),
            settlements=(),
            seconds=1,
        )
    if claims.browse:
        yield Scope(
            "a browser and a clock",
            orders,
            messages=2,
            payloads=(*delayed, *expiring),
            consumers=1,
            kinds=(Kind("browse"),),
            seconds=2,
        )
