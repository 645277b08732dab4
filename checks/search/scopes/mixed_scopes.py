"""Mixed scopes: every two features together, for walks alone.

The other scopes test one feature each, so that they can be searched whole. A mistake may need two:
a purge while a browser is there, a window of a channel that reads two queues. Here each scope has a
few features at once, chosen so that every two of them occur together in some scope (a covering
array of strength two: Cohen, Dalal, Fredman, Patton, The AETG System, IEEE Transactions on Software
Engineering 23(7), 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, TypeAlias

from brokerproof.checks.search.scopes.scope import BLUE, NUMBERS, RED, TEXTS, Kind, Payload, Scope
from brokerproof.spec.messages import Credit, Fifo, LastValue, Order, Priority, Sorted, Unordered
from brokerproof.spec.protocol.capabilities import Capabilities

FEATURES_TOGETHER: Final = 5
PAYLOADS_MAX: Final = 4

Feature: TypeAlias = Callable[[Scope], Scope]


def mixed_scopes(claims: Capabilities) -> tuple[Scope, ...]:
    """Return scopes in which every two features that are claimed occur together."""
    main = next((mode for mode in ("acknowledge", "automatic") if mode in claims.modes), None)
    if main is None and not claims.gets:
        return ()
    plain = Scope(
        "",
        tuple(each for each in (Fifo(), Unordered()) if _tag(each) in claims.orders)[:1],
        messages=6,
        channels=2,
        consumers=5 if main else 0,
        kinds=(Kind(main),) if main else (),
        gets=() if main else claims.gets,
    )
    orders = dict(_of_orders(claims))
    if not plain.orders:
        plain = next(iter(orders.values()))(plain)
    features = {**orders, **dict(_of_queues(claims))}
    if main is not None:
        features |= {**dict(_of_windows(claims)), **dict(_of_consumers(claims, Kind(main)))}
    scopes = []
    for names in covering([*features], FEATURES_TOGETHER):
        scope = plain
        for name in features:
            scope = features[name](scope) if name in names else scope
        few = _a_few([*dict.fromkeys(scope.payloads)])
        mixed = replace(scope, name=" + ".join(sorted(names)), payloads=few)
        scopes.append(mixed.as_claimed(claims))
    return tuple(scopes)


def _tag(order: Order) -> str:
    return str(order.__struct_config__.tag)


def _a_few(payloads: Sequence[Payload]) -> tuple[Payload, ...]:
    """Return a few payloads that differ in each way: neighbours differ in one way only."""
    every = len(payloads)
    return tuple(payloads[number * 5 % every] for number in range(min(every, PAYLOADS_MAX)))


def covering(names: Sequence[str], size: int) -> Iterator[frozenset[str]]:
    """Yield sets of `size` names, so that every two names are in one of them.

    Each begins with two names that have not been together, and takes the names that add most. Names
    with a common beginning, as in ``order: …``, exclude one another.
    """
    left = [pair for pair in combinations(names, 2) if not _exclude(*pair)]
    while left:
        chosen = [*left[0]]
        while len(chosen) < size:
            fitting = [n for n in names if not any(n == c or _exclude(n, c) for c in chosen)]
            if not fitting:
                break
            new = {n: sum(n in pair and {*pair} <= {n, *chosen} for pair in left) for n in fitting}
            chosen.append(max(fitting, key=new.__getitem__))
        yield frozenset(chosen)
        left = [pair for pair in left if not {*pair} <= {*chosen}]


def _exclude(one: str, other: str) -> bool:
    kind, divided, _ = one.partition(":")
    return bool(divided) and other.startswith(f"{kind}:")


def _of_orders(claims: Capabilities) -> Iterator[tuple[str, Feature]]:
    def ordered(order: Order, payloads: Sequence[Payload]) -> Feature:
        def added(scope: Scope) -> Scope:
            orders = dict.fromkeys((order, *scope.orders))
            return replace(scope, orders=(*orders,), payloads=(*payloads,))

        return added

    if "priority" in claims.orders:
        order = Priority(min(3, claims.priority_levels))
        yield "order: priority", ordered(order, (Payload(0), Payload(9)))
    if "sorted" in claims.orders:
        yield "order: sorted by numbers", ordered(Sorted("k"), NUMBERS)
        yield "order: sorted by texts", ordered(Sorted("k"), TEXTS)
    if "last_value" in claims.orders:
        yield "order: last value", ordered(LastValue("k"), (*NUMBERS, Payload()))


def _of_queues(claims: Capabilities) -> Iterator[tuple[str, Feature]]:
    yield "two queues", lambda scope: replace(scope, queues=2)
    yield "channels that close", lambda scope: replace(scope, closes=True)
    yield (
        "empty messages",
        lambda s: replace(s, payloads=(*s.payloads, *(replace(p, size=0) for p in s.payloads))),
    )
    yield "settled again", lambda scope: replace(scope, settles_again=True)
    if claims.gets:
        yield "gets", lambda scope: replace(scope, gets=claims.gets)
    if claims.purge:
        yield "purges", lambda scope: replace(scope, purges=True)
    if claims.delete:
        yield "deletions", lambda scope: replace(scope, deletes=True)
    if claims.auto_delete and claims.modes:
        yield "auto-delete", lambda scope: replace(scope, auto_delete=(False, True))
    if claims.reject:
        yield "rejects", lambda scope: replace(scope, settlements=(*scope.settlements, "reject"))


def _of_windows(claims: Capabilities) -> Iterator[tuple[str, Feature]]:
    takes, changes = "acknowledge" in claims.modes, "change" in claims.credit
    if "messages" in claims.credit and takes:
        narrow = tuple(Kind("acknowledge", window) for window in ((0, 1) if changes else (1,)))
        yield "windows", lambda scope: replace(scope, kinds=(*scope.kinds, *narrow))
        if changes:
            limits = Credit(0), Credit(1), Credit(None)
            yield "windows that change", lambda s: replace(s, windows=(*s.windows, *limits))
        if "channel" in claims.credit:
            both = (Credit(2, 1),) if "bytes" in claims.credit else ()
            pools = (Credit(0), Credit(1), *both)
            yield "windows of channels", lambda scope: replace(scope, pools=pools)
    if "bytes" in claims.credit and takes:

        def of_bytes(scope: Scope) -> Scope:
            payloads = [replace(p, size=size) for p in scope.payloads for size in (0, 1, 2)]
            kinds = (*scope.kinds, Kind("acknowledge", bytes=1))
            windows = (*scope.windows, *((Credit(None, 0), Credit(None, 2)) if changes else ()))
            return replace(scope, kinds=kinds, payloads=(*payloads,), windows=windows)

        yield "windows of bytes", of_bytes


def _of_consumers(claims: Capabilities, main: Kind) -> Iterator[tuple[str, Feature]]:
    narrow = 1 if "messages" in claims.credit and main.mode == "acknowledge" else None

    def with_kind(*kinds: Kind) -> Feature:
        def added(scope: Scope) -> Scope:
            # Alone, and beside the options of the feature before.
            both = (scope.kinds[-1].with_options_of(kind) for kind in kinds)
            return replace(scope, kinds=(*dict.fromkeys((*scope.kinds, *kinds, *both)),))

        return added

    for mode in claims.modes:
        if mode != main.mode:
            yield f"{mode} consumers", with_kind(Kind(mode))
    yield "consumers that are cancelled", lambda scope: replace(scope, cancels=True)
    if claims.consumer_priority:
        yield "priorities of consumers", with_kind(replace(main, credit=narrow, priority=1))
    if claims.auto_close:
        yield "consumers that close themselves", with_kind(replace(main, auto_close=True))
    if claims.exclusive:
        exclude = with_kind(replace(main, exclusive=True))
        # Else the first consumer of a run decides for all of it.
        yield "exclusive consumers", lambda scope: replace(exclude(scope), cancels=True)
    if claims.flush:
        yield "flushes", lambda scope: replace(scope, flushes=True)
    if claims.multi_queue:
        of_both = with_kind(replace(main, every_queue=True, credit=narrow))
        yield "consumers of both queues", lambda scope: replace(of_both(scope), queues=2)
    if claims.selectors:
        select = with_kind(*(replace(main, selector=colour) for colour in (RED, BLUE)))

        def selecting(scope: Scope) -> Scope:
            coloured = [
                replace(payload, properties=(*payload.properties, *colour))
                for colour in (RED, BLUE)
                for payload in scope.payloads
            ]
            return replace(select(scope), payloads=(*scope.payloads, *coloured))

        yield "selectors", selecting
