"""The words for a breach: what was expected and what was seen.

The expectation is not written here. It comes from the contract, by trying every entry that could
have been delivered in the latest case that the observations allow.
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerproof.checks.oracle.breaches import Breach, Moment
from brokerproof.checks.oracle.possibilities import ordered
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.language.read.pointwise import World


def expected_and_seen(breach: Breach) -> tuple[str, str]:
    """Return what the contract allowed at that moment, and what happened instead."""
    moment = breach.moment
    if moment is None:
        in_form = "an answer in form and in time, as the protocol has it"
        meant = in_form if breach.requirement == "protocol" else "what the requirement says"
        return breach.expected or meant, breach.reason
    if breach.lost:
        return f"{breach.witnesses[0]} to be still there", breach.reason
    bindings, (name, arguments) = moment.bindings, moment.step
    world = _latest(moment)
    match name:
        case "deliver" | "deliver_by_rank" | "browse" | "get":
            consumer, entry, redelivered = arguments
            what = bindings.name_of_entry(entry) + _flag(redelivered)
            lawful = list(_lawful(bindings, world, name, consumer)) if world is not None else []
            return " or ".join(lawful) or _nothing(name), f"{what} {_to(bindings, consumer, name)}"
        case "get_nothing":
            lawful = (
                list(_lawful(bindings, world, "get", arguments[0])) if world is not None else []
            )
            return " or ".join(lawful) or "a message", "nothing"
        case "quiesce" | "quiesce_by_size":
            names = ", ".join(breach.overdue) or _lawful_to_any(bindings, world, breach)
            return f"{names} {_owed(breach)}", "nothing more"
        case "lease_expired":
            message = bindings.name_of_entry(arguments[0])
            return f"the lease of {message} to last", "its end told"
        case "tell_count":
            message = bindings.name_of_entry(arguments[0])
            return "another count of deliveries", f"{message} with count {arguments[1]}"
        case "publish" if breach.requirement == "length-limit-kept":
            return "a refusal, since the queue is full", "ok"
        case "refuse_publish":
            return "ok, since the queue has room", "a refusal"
        case "publish_still_waits":
            waiting = f"{next(iter(bindings.parked))}, which is parked, to be accepted"
            return f"{waiting}: nothing is there", "nothing more"
        case "nothing_is_left_to_close":
            return "what ends by itself to have ended, and to be told", "nothing more"
        case _:
            return "an operation that is possible", name


def _latest(moment: Moment) -> World | None:
    for row in reversed(moment.window.rows):
        for world, _, _ in ordered(row.cases):
            return world
    return None


def _lawful(bindings: Bindings, world: World, action: str, consumer: int) -> Iterator[str]:
    for name, redelivered in _possible(bindings, world, action, consumer):
        yield name + _flag(redelivered)


def _possible(
    bindings: Bindings, world: World, action: str, consumer: int
) -> Iterator[tuple[str, int]]:
    for name, entry in bindings.messages.items():
        for redelivered in (0, 1):
            worlds, _ = bindings.contract.take(
                bindings.frame, world, action, (consumer, entry, redelivered)
            )
            if worlds:
                yield name, redelivered


def _lawful_to_any(bindings: Bindings, world: World | None, breach: Breach) -> str:
    """Return the messages that some consumer may be given now, as the guard names none."""
    if world is None:
        return "a message"
    action = "browse" if breach.requirement == "browser-sees-all" else "deliver"
    consumers = (subscriber.element for subscriber in bindings.consumers.values())
    found = (
        name for consumer in consumers for name, _ in _possible(bindings, world, action, consumer)
    )
    return " or ".join(dict.fromkeys(found)) or "a message"


def _flag(redelivered: int) -> str:
    return " (redelivered)" if redelivered else ""


def _nothing(action: str) -> str:
    return "nothing to be shown" if action == "browse" else "nothing to be given"


def _to(bindings: Bindings, consumer: int, action: str) -> str:
    names = [
        name for name, subscriber in bindings.consumers.items() if subscriber.element == consumer
    ]
    if not names:
        return "to the get"
    return f"{'shown' if action == 'browse' else 'given'} to {names[0]}"


def _owed(breach: Breach) -> str:
    shown = breach.requirement == "browser-sees-all"
    return "to be shown to a browser" if shown else "to be given to a consumer that is free"
