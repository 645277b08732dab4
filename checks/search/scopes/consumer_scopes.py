"""The scopes about consumers and their windows, for claims that few brokers make.

`catalogue.py` says when they are searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import combinations

from brokerproof.checks.search.scopes.scope import BLUE, RED, Kind, Payload, Scope
from brokerproof.spec.messages import Credit, Order, PropertyValue
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import GetMode


def scopes_of_windows(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    """Yield the scopes about windows: of messages and bytes, changing, and shared by channels."""
    takes = "acknowledge" in claims.modes
    if {"messages", "change"} <= {*claims.credit} and takes:
        yield Scope(
            "windows that change",
            orders,
            messages=3,
            consumers=1,
            kinds=(Kind("acknowledge", 0), Kind("acknowledge", 1)),
            windows=(Credit(0), Credit(1), Credit(2), Credit(None)),
            settlements=("acknowledge",),
        )
    if {"messages", "change"} <= {*claims.credit} and claims.browse:
        yield Scope(
            "a browser whose window changes",
            orders[:1],
            messages=3,
            filled=True,
            consumers=1,
            kinds=(Kind("browse"), Kind("browse", 0)),
            windows=(Credit(1), Credit(None)),
            settlements=(),
        )
    if "bytes" in claims.credit and takes:
        yield from _scopes_of_bytes(claims, orders, gets)
    yield from _scopes_of_pools(claims, orders)


def _scopes_of_bytes(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    sizes = (Payload(size=1), Payload(size=3))
    window = 2 if "messages" in claims.credit else None
    both = (Kind("acknowledge", window, 4),) if window else ()
    yield Scope(
        "windows of bytes",
        orders,
        messages=3,
        payloads=sizes,
        consumers=1,
        kinds=(Kind("acknowledge", bytes=2), *both),
    )
    yield Scope(
        "a window of bytes for the later of two",
        orders[:1],
        messages=2,
        payloads=(Payload(size=1), Payload(size=2)),
        filled=True,
        in_turn=True,
        consumers=1,
        kinds=(Kind("acknowledge", window, 3),),
        settlements=("acknowledge", "release"),
    )
    if gets:
        yield Scope(
            "a consumer without room for what a get takes",
            orders[:1],
            messages=2,
            payloads=(Payload(size=2), Payload(size=1)),
            filled=True,
            in_turn=True,
            consumers=1,
            kinds=(Kind("acknowledge", bytes=1),),
            gets=gets,
            settlements=(),
        )
    if claims.browse:
        yield Scope(
            "browsers with windows of bytes",
            orders,
            messages=2,
            payloads=sizes,
            consumers=1,
            kinds=(Kind("browse", bytes=2), Kind("acknowledge", bytes=2)),
            gets=gets,
        )
    if claims.browse and claims.consumer_priority and "automatic" in claims.modes:
        yield Scope(
            "a browser behind a consumer without room",
            orders[:1],
            messages=1,
            payloads=(Payload(size=2),),
            consumers=2,
            kinds=(Kind("automatic", bytes=1, priority=1), Kind("browse")),
        )
    if "change" in claims.credit:
        yield from _scopes_of_bytes_that_change(orders)


def _scopes_of_bytes_that_change(orders: tuple[Order, ...]) -> Iterator[Scope]:
    yield Scope(
        "windows of bytes that change",
        orders,
        messages=2,
        payloads=(Payload(size=1), Payload(size=2)),
        consumers=2,
        kinds=(Kind("acknowledge", bytes=1),),
        windows=(Credit(None, 0), Credit(None, 2)),
        settlements=("release",),
    )
    yield Scope(
        "a window of bytes that grows",
        orders[:1],
        messages=2,
        filled=True,
        consumers=1,
        kinds=(Kind("acknowledge", bytes=1),),
        windows=(Credit(None, 2),),
        settlements=(),
    )


def _scopes_of_pools(claims: Capabilities, orders: tuple[Order, ...]) -> Iterator[Scope]:
    takes = "acknowledge" in claims.modes
    if {"channel", "messages"} <= {*claims.credit} and takes:
        yield Scope(
            "a window that a channel shares",
            orders,
            messages=2,
            consumers=2,
            kinds=(Kind("acknowledge"),),
            pools=(Credit(1),),
            settlements=("acknowledge",),
            cancels=True,
        )
        yield Scope(
            "a window of a channel beside that of its consumer",
            orders[:1],
            messages=2,
            filled=True,
            consumers=1,
            kinds=(Kind("acknowledge", 1),),
            pools=(Credit(2),),
            settlements=(),
        )
        fills_none = next((mode for mode in ("automatic", "browse") if mode in claims.modes), None)
        if fills_none is not None:
            yield Scope(
                "a window that a channel shares with a consumer that fills none",
                orders[:1],
                messages=2,
                consumers=2,
                kinds=(Kind("acknowledge"), Kind(fills_none)),
                pools=(Credit(0), Credit(1)),
                settlements=(),
            )
    if {"channel", "bytes"} <= {*claims.credit} and takes:
        yield Scope(
            "a window of bytes that a channel shares",
            orders,
            messages=2,
            payloads=(Payload(size=1), Payload(size=2)),
            consumers=2,
            kinds=(Kind("acknowledge"),),
            pools=(Credit(None, 2),),
            settlements=("release",),
        )
    if {"channel", "bytes", "messages"} <= {*claims.credit} and takes:
        yield Scope(
            "two windows that a channel shares",
            orders,
            messages=2,
            consumers=1,
            kinds=(Kind("acknowledge"),),
            pools=(Credit(2, 1),),
            settlements=(),
        )


def scopes_of_consumers(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    """Yield the scopes about selectors, ranks, and consumers that close, exclude or are flushed."""
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    window = 1 if "messages" in claims.credit else None
    if claims.selectors and claims.modes:
        yield Scope(
            "selectors",
            orders,
            messages=2,
            payloads=(
                Payload(),
                Payload(properties=RED),
                Payload(properties=BLUE),
            ),
            consumers=2,
            kinds=tuple(Kind(mode, selector=RED) for mode in claims.modes if mode != "automatic")
            + subscribers,
        )
        yield _scope_of_values(orders, subscribers or (Kind("browse"),))
        yield Scope(
            "two consumers with one selector",
            orders,
            messages=2,
            payloads=(Payload(properties=RED),),
            consumers=2,
            kinds=tuple(replace(kind, selector=RED) for kind in subscribers),
            settlements=("release",),
            cancels=True,
        )
        yield Scope(
            "two selectors",
            orders[:1],
            messages=3,
            payloads=(Payload(properties=RED), Payload(properties=RED), Payload(properties=BLUE)),
            in_turn=True,
            consumers=2,
            kinds=tuple(
                Kind(kind.mode, window if kind.mode == "acknowledge" else None, selector=each)
                for kind in subscribers
                for each in (RED, BLUE)
            ),
            settlements=(),
        )
    if claims.consumer_priority and subscribers:
        kind = subscribers[0].mode
        yield Scope(
            "consumers with priorities",
            orders,
            messages=2,
            channels=1,
            consumers=3,
            kinds=(Kind(kind, window, priority=-1), Kind(kind, window, priority=1)),
        )
    if claims.auto_close:
        yield from _scopes_of_auto_close(claims, orders, gets, window)
    yield from _scopes_of_special_consumers(claims, orders, gets)


def _scopes_of_auto_close(
    claims: Capabilities,
    orders: tuple[Order, ...],
    gets: tuple[GetMode, ...],
    window: int | None,
) -> Iterator[Scope]:
    narrow = window is not None and "acknowledge" in claims.modes
    windowed = (Kind("acknowledge", window, auto_close=True),) if narrow else ()
    yield Scope(
        "consumers that close themselves",
        orders,
        messages=2,
        consumers=1,
        kinds=tuple(Kind(mode, auto_close=True) for mode in claims.modes) + windowed,
        gets=gets,
        closes=True,
    )
    if windowed:
        yield Scope(
            "a consumer with a window that closes itself",
            orders[:1],
            messages=2,
            filled=True,
            consumers=1,
            kinds=windowed,
            settlements=("acknowledge", "release"),
        )


def _scopes_of_special_consumers(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    window = 1 if "messages" in claims.credit else None
    if claims.exclusive and subscribers:
        yield Scope(
            "exclusive consumers",
            orders,
            messages=1,
            channels=2,
            consumers=2,
            kinds=(Kind(subscribers[0].mode, exclusive=True), subscribers[0]),
            gets=gets,
            cancels=True,
        )
    if claims.exclusive and "acknowledge" in claims.modes:
        yield Scope(
            "an exclusive consumer after one that was cancelled",
            orders[:1],
            messages=2,
            filled=True,
            consumers=2,
            kinds=(Kind("acknowledge", window, exclusive=True), Kind("acknowledge", window)),
            settlements=(),
            cancels=True,
        )
    if claims.flush and subscribers:
        yield Scope(
            "flushed consumers",
            orders,
            messages=2 if gets else 3,
            consumers=1,
            kinds=tuple(dict.fromkeys((Kind(subscribers[0].mode, window), subscribers[0]))),
            gets=gets,
            flushes=True,
        )
    for kind in subscribers:
        yield from _scopes_of_options(claims, orders, kind, window, gets)


def _scopes_of_options(
    claims: Capabilities,
    orders: tuple[Order, ...],
    plain: Kind,
    window: int | None,
    gets: tuple[GetMode, ...],
) -> Iterator[Scope]:
    """Yield a scope of a consumer with two of the claimed options, and one with all of them."""
    options = [
        *([replace(plain, selector=RED)] if claims.selectors else []),
        *([replace(plain, priority=1)] if claims.consumer_priority else []),
        *([replace(plain, auto_close=True)] if claims.auto_close else []),
        *([replace(plain, exclusive=True)] if claims.exclusive else []),
        *([replace(plain, credit=window)] if window and plain.mode == "acknowledge" else []),
    ]
    red = [Payload(properties=RED)] if claims.selectors else []
    if len(options) > 1:
        yield Scope(
            "a consumer with two options",
            orders,
            messages=2,
            payloads=(Payload(), *red),
            consumers=1,
            kinds=tuple(one.with_options_of(other) for one, other in combinations(options, 2)),
            settlements=("acknowledge",),
        )
    if len(options) > 2:
        yield Scope(
            "a consumer with all options",
            orders[:1],
            messages=2,
            payloads=(*red, *([] if red else [Payload()])),
            consumers=1,
            kinds=(reduce(Kind.with_options_of, options),),
            gets=gets,
            settlements=(),
        )


def _scope_of_values(orders: tuple[Order, ...], kinds: tuple[Kind, ...]) -> Scope:
    """Return the scope of values that are nearly equal, and of selectors with two properties."""
    one = (("n", 1),)
    both = (("m", 1), ("n", 1))
    values: tuple[PropertyValue, ...] = (1, True, "1")
    return Scope(
        "selectors by value",
        orders,
        messages=1,
        payloads=(
            Payload(),
            *(Payload(properties=(("n", value),)) for value in values),
            Payload(properties=both),
        ),
        consumers=1,
        kinds=tuple(Kind(kinds[0].mode, selector=selector) for selector in (one, both)),
    )
