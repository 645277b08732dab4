"""Leases: until when a delivery is held, and the deliveries whose time is over.

Owns what bindings say of leases. The clock is that of the bindings; a broker in real time may be
ahead of it by the tolerance that its candidate claims.
"""

from __future__ import annotations

from dataclasses import replace

from brokerproof.checks.trace.bindings import Bindings, Held
from brokerproof.spec.protocol.answers import Delivered

_NOWHERE = -1
"""The element of a queue that has gone."""


def held_by(
    bindings: Bindings, queue: str, entry: int, channel: str, consumer: str | None = None
) -> Held:
    """Return a delivery from a queue as its client holds it from now on."""
    declared = bindings.declared.get(queue)
    lease_s = None if declared is None else declared.lease_s
    due = None if lease_s is None else bindings.now + lease_s
    return Held(entry, channel, bindings.queues.get(queue, _NOWHERE), due, consumer)


def renewed(bindings: Bindings, delivery: str) -> Bindings:
    """Return the bindings in which the lease of a held delivery begins anew."""
    held = bindings.held[delivery]
    queue = next(name for name, element in bindings.queues.items() if element == held.home)
    again = replace(held, due=held_by(bindings, queue, held.entry, held.channel).due)
    return bindings.changed(held=bindings.held | {delivery: again})


def lapsed(bindings: Bindings, delivery: str) -> Bindings:
    """Return the bindings in which the lease of a delivery has ended."""
    message = bindings.name_of_entry(bindings.held[delivery].entry)
    told = {message} if bindings.claims.lease == "told" else set()
    return bindings.without_delivery(delivery).changed(
        lapsed=bindings.lapsed | {message}, untold=bindings.untold | told
    )


def given(bindings: Bindings, event: Delivered, held: Held | None) -> Bindings:
    """Return the bindings with one more delivery told; earlier leases of its message have ended.

    A browser ends no lease.
    """
    subscriber = bindings.consumers.get(event.consumer or "")
    if held is not None or subscriber is None or subscriber.automatic:
        bindings = _superseded(bindings, event.message)
    return bindings.with_delivery(event.delivery, held)


def told_over(bindings: Bindings, message: str) -> Bindings:
    """Return the bindings in which the end of a message's lease has been told."""
    ended = _superseded(bindings, message)
    return ended.changed(untold=ended.untold - {message})


def _superseded(bindings: Bindings, message: str) -> Bindings:
    for name, held in bindings.held.items():
        if held.entry == bindings.messages[message] and may_be_over(held, bindings):
            bindings = lapsed(bindings, name)
    return bindings


def leases_over(bindings: Bindings, now: int) -> list[tuple[str, Held]]:
    """Return the deliveries whose lease is certainly over at a time, the first to end first."""
    tolerance = bindings.claims.tolerance_s
    found = [
        (name, held)
        for name, held in bindings.held.items()
        if held.due is not None and held.due + tolerance <= now
    ]
    return sorted(found, key=lambda each: (each[1].due or 0, each[1].entry))


def may_be_over(held: Held, bindings: Bindings) -> bool:
    """Whether a lease may be over, since the broker's clock may be ahead by the tolerance."""
    return held.due is not None and held.due <= bindings.now + bindings.claims.tolerance_s
