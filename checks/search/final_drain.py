"""The final drain check: it names the requirement when a message was not delivered in time.

A new consumer without limits and gets take everything that is left, and once more after all
channels are closed. A message that comes at once was late. One that comes only after the closing
was held wrongly by a consumer. One that never comes is gone. The contract's action `final_drain`
names the requirement of each case.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.oracle.attribution import LATE_OR_GONE
from brokerproof.checks.oracle.breaches import Breach, Moment
from brokerproof.checks.oracle.possibilities import alternatives, ordered
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.contract.core import Consumer
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Drain,
    Get,
    Operation,
)

FINAL_GETS_MAX = 10_000
"""A candidate that still delivers messages to so many gets of the final drain invents them."""

_DROP = frozenset(("purge", "delete", "crash", "advance"))
_DELIVER = frozenset(("deliver", "deliver_by_rank", "get"))
_SETTLE = frozenset(("acknowledge", "reject"))


def named_by_final_drain(candidate: Candidate, answer: Answer, breach: Breach) -> Breach:
    """Return the breach under the requirement that it really breaks.

    A message that comes on request was late. One that comes only when all channels are closed was
    held by a consumer that may not hold it. One that does not come then either is gone.
    `answer` showed the breach. The candidate's queues are empty afterwards, so the run ends here.
    """
    if breach.requirement not in LATE_OR_GONE or breach.moment is None:
        return breach
    bindings = breach.moment.bindings
    late = _messages(answer)
    if not _everything_left(candidate, bindings, "final drain", late):
        return breach
    held = set(late)
    # The final drain's own consumer stays: a queue may go with its last consumer and all messages.
    closing = [CloseChannel(channel=channel) for channel in bindings.channels]
    if _heard(candidate, [*closing, Drain()], held) is None:
        return breach
    if not _everything_left(candidate, bindings, "last final drain", held):
        return breach
    # A guard that relates several entries names none; then any message may be the missing one.
    moved = _moved_since(breach.moment)
    for message in breach.overdue or tuple(bindings.messages):
        if bindings.messages[message] in moved:
            continue
        if message not in late and bindings.queue_of_message(message) in bindings.queues:
            named = _named(breach, message, "held" if message in held else "gone")
            if named is not None:
                return named
    return breach


def _named(breach: Breach, message: str, found: Literal["held", "gone"]) -> Breach | None:
    """Return the breach as the contract names it for a held or gone message; None without one."""
    label = _promise_of_a_missing(breach, message)
    if label is None or (found == "held" and label != "browser-takes-nothing"):
        return None
    how = {
        "held": f"{message} came only after the gate had closed all channels: it was held",
        "gone": f"{message} is gone: after the trace the gate closed all channels and emptied the "
        f"queue, and {message} did not come",
    }[found]
    also = (breach.requirement,)
    return Breach(label, how, (message,), (message,), also, lost=True, moment=breach.moment)


def _everything_left(candidate: Candidate, bindings: Bindings, name: str, seen: set[str]) -> bool:
    """Request every available message in each claimed way; False if a request fails.

    What comes is acknowledged: a broker that reads a queue by pages may send the next page only
    then.
    """
    if "acknowledge" in bindings.claims.modes:
        subscribers = [
            Consume(channel="final drain", queue=queue, consumer=f"{name} of {queue}")
            for queue in bindings.queues
        ]
        came = _heard(candidate, [*subscribers, Drain()], seen)
        while came:
            acknowledged = [Acknowledge(delivery=delivery) for delivery in came]
            came = _heard(candidate, [*acknowledged, Drain()], seen)
        if came is None:
            return False
    if not bindings.claims.get:
        return True
    for queue in bindings.queues:
        for _ in range(FINAL_GETS_MAX):
            before = len(seen)
            if _heard(candidate, [Get(channel="final drain", queue=queue)], seen) is None:
                return False
            if len(seen) == before:
                break
    return True


def _moved_since(moment: Moment) -> frozenset[int]:
    """Return the entries that later steps delivered, settled or dropped: they need not be left."""
    moved: set[int] = set()
    for name, arguments in chain.from_iterable(map(alternatives, moment.since)):
        if name in _DROP:
            return frozenset(moment.bindings.messages.values())
        if name in _DELIVER:
            moved.add(arguments[1])
        elif name in _SETTLE:
            moved.add(arguments[0])
    return frozenset(moved)


def _messages(answer: Answer) -> set[str]:
    return {event.message for event in answer.events if isinstance(event, Delivered)}


def _heard(
    candidate: Candidate, operations: Sequence[Operation], seen: set[str]
) -> list[str] | None:
    """Carry out operations and note their messages; return the deliveries of those that are new.

    Returns None if an operation fails.
    """
    new = []
    for operation in operations:
        answer = ask(candidate, operation)
        if isinstance(answer, Misbehaviour) or not answer.ok:
            return None
        for event in answer.events:
            if isinstance(event, Delivered) and event.message not in seen:
                seen.add(event.message)
                new.append(event.delivery)
    return new


def _promise_of_a_missing(breach: Breach, message: str) -> str | None:
    """Return the label that the contract's `final_drain` action gives to a message that is gone."""
    if breach.moment is None:
        return None
    known = breach.moment.bindings
    entry = known.messages[message]
    get = Get(channel="final drain", queue=known.queue_of_message(message))
    bindings, getter = known.with_getter(get)
    # What was there before a client's step in this window may have been dropped by it.
    possible = [row.cases for row in breach.moment.window.rows if row.cases]
    for world, _, _ in ordered(possible[-1]) if possible else ():
        one_more = known.contract.grown(world, Consumer)
        _, blames = known.contract.take(bindings.frame, one_more, "final_drain", (getter,))
        for label, missing in ((k, v) for blame in blames for k, v in blame.items()):
            if entry in missing:
                return label
    return None
