"""The scopes about leases, limits, dead letters, delays, groups and unordered queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brokerproof.checks.search.scopes.scope import Kind, Payload, Scope
from brokerproof.checks.trace.moves import SettlementName
from brokerproof.spec.messages import Order
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import GetMode

LEASE_S = 2
"""The lease of a broker whose clock is exact. With a tolerance, a lease must be longer by twice as
much: a renewal must come certainly before its end, and show certainly after it."""


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
            messages=1 if claims.tolerance_s else 2,
            consumers=len(consumers),
            kinds=consumers,
            gets=gets,
            filled=claims.tolerance_s > 0,
            settlements=() if claims.tolerance_s else ("release",),
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
    lease_s = LEASE_S + 2 * claims.tolerance_s
    alone = Scope(
        "messages held for a time",
        orders,
        messages=1,
        consumers=len(consumers),
        kinds=consumers,
        gets=gets,
        settles_again=True,
        lease_s=lease_s,
    )
    if claims.tolerance_s:
        yield from _scopes_in_real_time(alone, claims)
    else:
        yield from _scopes_in_exact_time(alone, claims)
    if claims.delivery_limit:
        yield replace(
            alone,
            name="deliveries up to a limit, each for a time",
            settlements=("release",),
            settles_again=False,
            seconds=2 * lease_s,
            deliveries=2,
        )
    if claims.durable:
        yield replace(
            alone,
            name="messages held for a time by a broker that crashes",
            payloads=(Payload(persistent=True),),
            durable=(True,),
            settlements=("acknowledge",),
            settles_again=False,
            seconds=lease_s,
            crashes=True,
        )


def _renewed(alone: Scope) -> Scope:
    return replace(
        alone,
        name="messages held for a time that is renewed",
        filled=True,
        settlements=("extend",),
        settles_again=False,
    )


def _scopes_in_exact_time(alone: Scope, claims: Capabilities) -> Iterator[Scope]:
    assert alone.lease_s is not None
    extend: tuple[SettlementName, ...] = ("extend",) if claims.extend else ()
    if extend:
        yield replace(_renewed(alone), seconds=2 * alone.lease_s)
    yield replace(
        alone,
        settlements=("acknowledge", "release", *extend),
        closes=True,
        seconds=2 * alone.lease_s + 1,
    )
    yield replace(
        alone,
        name="two messages held for a time",
        messages=2,
        settlements=("acknowledge",),
        settles_again=False,
        seconds=alone.lease_s + 1,
    )


def _scopes_in_real_time(alone: Scope, claims: Capabilities) -> Iterator[Scope]:
    """Yield the scopes of leases that may be over before the clock says so.

    Each second is waited for, so time passes in few and long steps, and little else can be done.
    """
    assert alone.lease_s is not None
    over_s, half_s = alone.lease_s + claims.tolerance_s, claims.tolerance_s + 1
    yield replace(alone, filled=True, seconds=over_s, steps=(over_s,))
    if claims.extend:
        yield replace(_renewed(alone), seconds=3 * half_s, steps=(half_s,))
