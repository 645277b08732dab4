"""The scopes about leases, limits, dead letters, delays, groups and unordered queues."""

from __future__ import annotations

from collections.abc import Iterator

from brokerproof.checks.search.scopes.scope import Kind, Payload, Scope
from brokerproof.checks.trace.moves import SettlementName
from brokerproof.spec.messages import Order
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import GetMode

LEASE_S = 2


def scopes_of_jobs(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    """Yield the scopes for the claims of job queues; each has gets, or consumers without them."""
    consumers = () if gets else tuple(Kind(m) for m in claims.modes if m == "acknowledge")
    if not gets and not consumers:
        return
    if claims.lease != "none":
        yield from _scopes_of_leases(claims, orders, gets, consumers)
    if claims.delivery_limit:
        yield Scope(
            "deliveries up to a limit",
            orders,
            messages=2,
            consumers=len(consumers),
            kinds=consumers,
            gets=gets,
            settlements=("acknowledge", "release"),
            closes=True,
            deliveries=2,
        )
    if claims.dead_letters:
        yield Scope(
            "dead letters",
            orders,
            messages=1,
            queues=2,
            consumers=2 * len(consumers),
            kinds=consumers,
            gets=gets,
            settlements=("acknowledge", "release", "reject"),
            closes=True,
            deliveries=2 if claims.delivery_limit else None,
            buries=True,
        )
    yield from _scopes_of_delays_and_groups(claims, orders, gets, consumers)


def _scopes_of_delays_and_groups(
    claims: Capabilities,
    orders: tuple[Order, ...],
    gets: tuple[GetMode, ...],
    consumers: tuple[Kind, ...],
) -> Iterator[Scope]:
    if claims.delayed_release and claims.clock:
        yield Scope(
            "releases with a delay",
            orders,
            messages=2,
            consumers=len(consumers),
            kinds=consumers,
            gets=gets,
            settlements=("release",),
            delays=(1,),
            seconds=2,
        )
    for overflow in claims.length_limit:
        for length in (1, 2):
            yield Scope(
                f"a queue with room for {length}: {overflow.replace('_', ' ')}",
                orders,
                messages=length + 2,
                gets=gets,
                consumers=len(consumers),
                kinds=consumers,
                settlements=("acknowledge", "release"),
                length=length,
                overflow=overflow,
            )
    if claims.groups:
        yield Scope(
            "groups of messages",
            orders,
            messages=3,
            payloads=(Payload(group="a"), Payload(group="b"), Payload()),
            channels=2,
            consumers=2 * len(consumers),
            kinds=consumers,
            gets=gets,
            settlements=("acknowledge", "release"),
            closes=True,
        )


def _scopes_of_leases(
    claims: Capabilities,
    orders: tuple[Order, ...],
    gets: tuple[GetMode, ...],
    consumers: tuple[Kind, ...],
) -> Iterator[Scope]:
    extend: tuple[SettlementName, ...] = ("extend",) if claims.extend else ()
    yield Scope(
        "messages held for a time",
        orders,
        messages=1,
        consumers=len(consumers),
        kinds=consumers,
        gets=gets,
        settlements=("acknowledge", "release", *extend),
        settles_again=True,
        closes=True,
        seconds=2 * LEASE_S + 1,
        lease_s=LEASE_S,
    )
    yield Scope(
        "two messages held for a time",
        orders,
        messages=2,
        consumers=len(consumers),
        kinds=consumers,
        gets=gets,
        settlements=("acknowledge",),
        seconds=LEASE_S + 1,
        lease_s=LEASE_S,
    )
    if claims.delivery_limit:
        yield Scope(
            "deliveries up to a limit, each for a time",
            orders,
            messages=1,
            consumers=len(consumers),
            kinds=consumers,
            gets=gets,
            settlements=("release",),
            seconds=2 * LEASE_S,
            lease_s=LEASE_S,
            deliveries=2,
        )
    if claims.durable:
        yield Scope(
            "messages held for a time by a broker that crashes",
            orders,
            messages=1,
            payloads=(Payload(persistent=True),),
            durable=(True,),
            consumers=len(consumers),
            kinds=consumers,
            gets=gets,
            settlements=("acknowledge",),
            seconds=LEASE_S,
            crashes=True,
            lease_s=LEASE_S,
        )
