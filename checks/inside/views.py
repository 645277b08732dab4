"""The form of what `inspect` shows: whether a view can be read at all.

Owns what the types of a view do not say, and what types cannot say of objects that a candidate made
in this process: a struct takes any value for a field. Which steps lead from one view to the next is
the matter of the models. This is asked of every queue after every operation, so it is plain and
quick, and no view that passes it can make the reading of it fail.
"""

from __future__ import annotations

from typing import cast

from brokerproof.checks.inside import cursor_views
from brokerproof.checks.inside.paging_views import fault_of_form, kind_of
from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.protocol.messages import Order
from brokerproof.spec.qpid.view import (
    ConsumerListsView,
    EntryView,
    PointerQueueView,
    SubscriptionView,
)
from brokerproof.spec.rabbitmq.view import PagingQueueView

STATES = ("available", "held", "acquired", "dequeued")


def malformed(view: object, order: Order) -> str:
    """Return in a few words what is wrong with a view of a queue of `order`, or nothing.

    What follows a fault is not asked, and might fail.
    """
    if type(view) is PagingQueueView:
        return fault_of_form(view, order)
    if type(view) is CursorQueueView:
        return cursor_views.fault_of_form(view, order)
    if not isinstance(view, PointerQueueView):
        return f"{kind_of(view)}, not a view"
    if view.order != order:
        return "a queue of another order than it was declared with"
    # Nothing has made sure that what they hold is what the annotations say.
    entries, subscriptions = cast("tuple[object, object]", (view.entries, view.subscriptions))
    if not (isinstance(entries, tuple) and isinstance(subscriptions, tuple)):
        return "a view whose entries or subscriptions are no tuple"
    takers, length = len(subscriptions), len(entries)
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, EntryView):
            return f"{kind_of(entry)} as entry {number}"
        fault = _fault_of_entry(entry, takers)
        if fault:
            return fault
    if len({entry.message for entry in entries}) < length:
        return "a message that is there twice"
    for each in subscriptions:
        if not isinstance(each, SubscriptionView):
            return f"{kind_of(each)} as a subscription"
        fault = _fault_of_subscription(each, length)
        if fault:
            return fault
    return "" if view.lists is None else _fault_of_lists(view.lists, takers)


def _fault_of_lists(lists: object, takers: int) -> str:
    if not isinstance(lists, ConsumerListsView):
        return f"{kind_of(lists)} as the lists of consumers"
    for name in ConsumerListsView.__struct_fields__:
        members = cast("object", getattr(lists, name))
        if not isinstance(members, tuple):
            return f"a list of consumers that is no tuple: {name}"
        for who in members:
            if not _is_number(who, 0, takers - 1):
                return f"subscription {_text(who)} of {takers} in the list {name}"
    return ""


def _fault_of_entry(entry: EntryView, takers: int) -> str:
    message, holder = cast("tuple[object, object]", (entry.message, entry.holder))
    if not isinstance(message, str):
        return f"{kind_of(message)} as the name of a message"
    if type(entry.level) is not int:
        return f"{kind_of(entry.level)} as the level of {message}"
    if type(entry.expires) is not bool:
        return f"{message} with something else than true or false"
    if entry.state not in STATES:
        return f"{message} in no state that there is"
    if (holder is None) == (entry.state == "acquired"):
        return f"{message} {entry.state} and held by {_text(holder)}"
    if holder is not None and not _is_number(holder, 0, takers - 1):
        return f"{message} held by subscription {_text(holder)} of {takers}"
    return ""


def _fault_of_subscription(each: SubscriptionView, entries: int) -> str:
    who, channel = cast("tuple[object, object]", (each.consumer, each.channel))
    if who is None:
        who = "a get"
    if not (isinstance(who, str) and isinstance(channel, str)):
        return "a subscription whose names are no text"
    for truth in (each.browses, each.settles_when_sent, each.active):
        if type(truth) is not bool:
            return f"{who} with something else than true or false"
    if not _is_number(each.last_seen, 0, entries):
        return f"{who} at entry {_text(each.last_seen)} of {entries}"
    if each.released is not None and not _is_number(each.released, 1, entries):
        return f"{who} sent back to entry {_text(each.released)} of {entries}"
    unwanted = cast("object", each.unwanted)
    if not isinstance(unwanted, tuple):
        return f"{who} with {kind_of(unwanted)} as what it does not want"
    last = 0
    for number in unwanted:
        if not _is_number(number, last + 1, entries):
            return f"{who} that does not want entry {_text(number)} of {entries}"
        last = number
    return ""


def _is_number(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _text(value: object) -> str:
    """Return a number as text, and of anything else only what it is: its own text may be a trap."""
    if value is None:
        return "nobody"
    return str(value) if type(value) is int else kind_of(value)
