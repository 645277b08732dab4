"""The scopes about persistence, crashes and resets: between operations, and at every change.

A crash between two operations is a move like any other. A candidate with a disk of its own also
loses power during operations, at each change that they make to the disk, even during a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brokerproof.checks.search.scopes.scope import Kind, Payload, Scope
from brokerproof.spec.messages import Order, Priority
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import GetMode

PERSISTENT = Payload(persistent=True)


def scopes_of_what_persists(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    """Yield the scopes in which messages have a place on disk and the broker does not stop.

    A broker with a disk stores durable messages apart from others, so every requirement of messages
    is tested on them too. With four messages, one can have left memory while another is in it and a
    third is with a consumer that leaves.
    """
    if not claims.durable:
        return
    windows = (1, None) if "messages" in claims.credit else (None,)
    kinds = tuple(Kind("acknowledge", window) for window in windows)
    acknowledging = "acknowledge" in claims.modes
    if gets or acknowledging:
        yield Scope(
            "what persists",
            orders,
            messages=3,
            payloads=(PERSISTENT,),
            durable=(True,),
            consumers=1 if acknowledging else 0,
            kinds=kinds if acknowledging else (),
            gets=gets,
            settlements=("acknowledge", "release"),
            closes=True,
            purges=claims.purge,
        )
        if "priority" in claims.orders:
            yield _scope_of_priorities(claims, kinds[-1:], gets)
        yield from _scopes_of_few_that_persist(claims, orders, gets)
    if acknowledging:
        yield Scope(
            "consumers of what persists",
            orders,
            messages=4,
            payloads=(PERSISTENT,),
            durable=(True,),
            channels=2,
            consumers=2,
            kinds=kinds,
            settlements=("acknowledge",),
            closes=True,
        )
        yield Scope(
            "what persists beside what does not",
            orders,
            messages=4,
            payloads=(PERSISTENT, Payload()),
            durable=(True,),
            consumers=1,
            kinds=kinds[-1:],
            settlements=("acknowledge",),
            cancels=True,
        )


def _scopes_of_few_that_persist(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    """Yield scopes that are small enough to be searched to their end at first."""
    few = Scope("", orders, messages=2, payloads=(PERSISTENT,), durable=(True,), filled=True)
    if "acknowledge" in claims.modes and "messages" in claims.credit:
        kinds = (Kind("acknowledge", 1),)
        yield replace(few, name="two that persist", consumers=1, kinds=kinds)
    if gets:
        three = replace(few, name="gets of three that persist", messages=3)
        yield replace(three, gets=gets, settlements=("acknowledge",))
    if gets and claims.purge:
        purged = replace(few, name="a purge of what persists", filled=False, purges=True)
        yield replace(purged, gets=gets, settlements=())


def _scope_of_priorities(
    claims: Capabilities, kinds: tuple[Kind, ...], gets: tuple[GetMode, ...]
) -> Scope:
    """Return the scope in which each level has messages on disk."""
    return Scope(
        "priorities of what persists",
        (Priority(min(2, claims.priority_levels)),),
        messages=3,
        payloads=(Payload(0, persistent=True), Payload(9, persistent=True)),
        durable=(True,),
        consumers=0 if gets else 1,
        kinds=() if gets else kinds,
        gets=gets,
        settlements=("release",),
    )


def scopes_of_crashes(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...], *, on_disk: bool
) -> Iterator[Scope]:
    """Yield the scopes in which the broker stops, between operations and during them."""
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    browsers = (Kind("browse"),) if claims.browse else ()
    if claims.durable:
        yield Scope(
            "crashes",
            orders,
            messages=2,
            payloads=(Payload(), Payload(persistent=True)),
            durable=(True,),
            consumers=0 if gets else 1,
            kinds=() if gets else subscribers,
            gets=gets,
            settlements=("acknowledge",),
            crashes=True,
        )
        if gets:
            yield Scope(
                "arrivals beside a crash",
                orders,
                messages=2,
                payloads=(PERSISTENT,),
                durable=(True,),
                gets=gets,
                settlements=(),
                crashes=True,
            )
        yield Scope(
            "crashes of what is not durable",
            orders,
            messages=1,
            payloads=(Payload(persistent=True),),
            consumers=0 if gets else 1,
            kinds=() if gets else subscribers,
            gets=gets,
            settlements=("release",),
            crashes=True,
        )
        yield from _scopes_of_ends(claims, orders, gets)
    if claims.durable and on_disk:
        yield from _scopes_of_cuts(claims, orders, gets)
    if gets or subscribers:
        yield Scope(
            "resets",
            orders,
            messages=1,
            durable=(claims.durable,),
            consumers=1,
            kinds=(*subscribers, *browsers),
            gets=gets,
            settlements=(),
            resets=True,
        )


def _scopes_of_ends(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    """Yield the scopes in which a durable message has gone and must not come back."""
    subscribers = tuple(Kind(mode) for mode in claims.modes if mode != "browse")[:1]
    purged = Scope(
        "a purge and a crash",
        orders,
        messages=1,
        payloads=(PERSISTENT,),
        durable=(True,),
        consumers=0 if gets else 1,
        kinds=() if gets else subscribers,
        gets=gets,
        settlements=("release",),
        purges=True,
        crashes=True,
        filled=True,
    )
    if gets or subscribers:
        yield replace(
            purged,
            name="a settlement and a crash",
            gets=claims.gets,
            settlements=("acknowledge", "reject"),
            purges=False,
        )
    if claims.purge:
        yield purged
    if claims.delete:
        yield replace(purged, name="a deletion and a crash", purges=False, deletes=True)


def _scopes_of_cuts(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    acknowledging = "acknowledge" in claims.modes
    if gets:
        yield Scope(
            "the power goes beside gets",
            orders,
            messages=3,
            payloads=(PERSISTENT, Payload()),
            durable=(True,),
            gets=gets,
            settlements=("acknowledge", "release"),
            cuts=True,
        )
    if acknowledging:
        yield Scope(
            "the power goes beside a consumer",
            orders,
            messages=3,
            payloads=(PERSISTENT,),
            durable=(True,),
            consumers=1,
            kinds=(Kind("acknowledge", 1), Kind("acknowledge")),
            settlements=("acknowledge",),
            closes=True,
            cuts=True,
        )
    if claims.purge:
        yield from _scopes_of_cut_purges(claims, orders, gets)
    if gets and "priority" in claims.orders:
        yield Scope(
            "the power goes beside priorities",
            (Priority(min(2, claims.priority_levels)),),
            messages=3,
            payloads=(Payload(0, persistent=True), Payload(9, persistent=True)),
            durable=(True,),
            gets=gets,
            settlements=("acknowledge",),
            closes=True,
            cuts=True,
        )


def _scopes_of_cut_purges(
    claims: Capabilities, orders: tuple[Order, ...], gets: tuple[GetMode, ...]
) -> Iterator[Scope]:
    yield Scope(
        "the power goes during a purge of two",
        orders[:1],
        messages=2,
        payloads=(PERSISTENT,),
        filled=True,
        durable=(True,),
        settlements=(),
        purges=True,
        cuts=True,
    )
    if "acknowledge" in claims.modes:
        yield Scope(
            "the power goes beside a purge",
            orders,
            messages=3,
            payloads=(PERSISTENT,),
            durable=(True,),
            gets=gets,
            settlements=("reject",),
            purges=True,
            cuts=True,
        )
