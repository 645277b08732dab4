"""The form of what `inspect` shows: whether a view can be read at all.

Owns what the types of a view do not say, and what types cannot say of objects that a candidate made
in this process: a struct takes any value for a field. Which steps lead from one view to the next is
the matter of the models. This is asked of every queue after every operation, so it is plain and
quick, and no view that passes it can make the reading of it fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerproof.spec.inspections import EntryView, PointerQueueView, SubscriptionView
from brokerproof.spec.messages import Order

STATES = ("available", "acquired", "dequeued")


def malformed(view: object, order: Order) -> str:
    """Return in a few words what is wrong with a view of a queue of `order`, or nothing."""
    return next(_faults(view, order), "")


def _faults(view: object, order: Order) -> Iterator[str]:
    """Yield what is wrong; what follows a fault need not be asked, and may fail."""
    if not isinstance(view, PointerQueueView):
        yield f"{_kind(view)}, not a view"
        return
    if view.order != order:
        yield "a queue of another order than it was declared with"
    for what in (view.entries, view.subscriptions):
        if not _is_a(tuple, what):
            yield "a view whose entries or subscriptions are no tuple"
            return
    takers = len(view.subscriptions)
    messages = set()
    for number, entry in enumerate(view.entries, start=1):
        if not _is_a(EntryView, entry):
            yield f"{_kind(entry)} as entry {number}"
            return
        yield from _faults_of_entry(entry, takers)
        messages.add(entry.message)
    if len(messages) < len(view.entries):
        yield "a message that is there twice"
    for each in view.subscriptions:
        if not _is_a(SubscriptionView, each):
            yield f"{_kind(each)} as a subscription"
            return
        yield from _faults_of_subscription(each, len(view.entries))


def _faults_of_entry(entry: EntryView, takers: int) -> Iterator[str]:
    if not _is_a(str, entry.message):
        yield f"{_kind(entry.message)} as the name of a message"
    elif type(entry.level) is not int:
        yield f"{_kind(entry.level)} as the level of {entry.message}"
    elif entry.state not in STATES:
        yield f"{entry.message} in no state that there is"
    elif (entry.holder is None) == (entry.state == "acquired"):
        yield f"{entry.message} {entry.state} and held by {_text(entry.holder)}"
    elif entry.holder is not None and not _is_number(entry.holder, 0, takers - 1):
        yield f"{entry.message} held by subscription {_text(entry.holder)} of {takers}"


def _faults_of_subscription(each: SubscriptionView, entries: int) -> Iterator[str]:
    who = each.consumer if each.consumer is not None else "a get"
    if not (_is_a(str, who) and _is_a(str, each.channel)):
        yield "a subscription whose names are no text"
    elif not all(type(v) is bool for v in (each.browses, each.settles_when_sent, each.active)):
        yield f"{who} with something else than true or false"
    elif not _is_number(each.last_seen, 0, entries):
        yield f"{who} at entry {_text(each.last_seen)} of {entries}"
    elif each.released is not None and not _is_number(each.released, 1, entries):
        yield f"{who} sent back to entry {_text(each.released)} of {entries}"


def _is_a(kind: type, value: object) -> bool:
    """Whether a value is what its annotation says, which nothing has made sure of."""
    return isinstance(value, kind)


def _is_number(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _text(value: object) -> str:
    """Return a number as text, and of anything else only what it is: its own text may be a trap."""
    if value is None:
        return "nobody"
    return str(value) if type(value) is int else _kind(value)


def _kind(value: object) -> str:
    return f"an object of type {type(value).__name__}"
