"""Reads a view of a Qpid queue as a state of its model, and an operation as steps of the model.

The broker may move a pointer, deliver an entry or show one at any time. Entries are numbered in the
order of the queue, after the dummy head. The subscription of a get that holds a message is named by
that message; the last subscription is a get that leaves nothing behind.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue
from brokerproof.models.language.watch.path_query import PathQuery, Valuation, valuation
from brokerproof.models.language.watch.paths import ANY, Taken
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_clock import TimedQueue
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pull.pull_queue import Listed, PullQueue
from brokerproof.spec.messages import Fifo, Order
from brokerproof.spec.protocol import operations as op
from brokerproof.spec.qpid.view import PointerQueueView

HEAD: Final = 0
ABSENT, DEQUEUED = (Status.values.index(name) for name in ("ABSENT", "DEQUEUED"))
STATUS: Final = {"held": "AVAILABLE"}

Name: TypeAlias = tuple[str | None, str]
"""A consumer, or the message of a get."""

MODEL: Final = TimedQueue


def new_queue(view: PointerQueueView, order: Order) -> PointerQueueView:  # noqa: ARG001 - no sizes
    """Return the view of a new queue of `order`."""
    return PointerQueueView(order)


def queries(
    before: PointerQueueView, after: PointerQueueView, step: ClientStep
) -> Iterator[PathQuery]:
    """Yield the query whether the model explains two views; raises `NotAQueue`."""
    at = {message: number for number, message in enumerate(_merged(before, after, step), start=1)}
    names = dict.fromkeys([*_names(before), *_names(after)])
    index = {name: number for number, name in enumerate(names)}
    seen = [
        (view, index[name], each)
        for view in (before, after)
        for name, each in zip(_names(view), view.subscriptions, strict=True)
    ]
    browsers = {subscriber for _, subscriber, each in seen if each.browses}
    unwanted = {
        (subscriber, at[view.entries[number - 1].message])
        for view, subscriber, each in seen
        for number in each.unwanted
    }
    match step.operation:
        case op.Consume(consumer=name, selects=True) if (name, "") not in index:
            # It has come and left, and did not want what it left behind.
            left = [each.message for each in after.entries if each.state != "dequeued"]
            unwanted |= {(len(index), at[message]) for message in left}
    subscribers, everything = range(len(index) + 1), range(len(at) + 1)
    rigid = valuation(
        head=HEAD,
        browser=[subscriber in browsers for subscriber in subscribers],
        wants=frozenset((w, e) for w in subscribers for e in everything if (w, e) not in unwanted),
    )
    is_gone = {*at} - {each.message for each in after.entries if each.state != "dequeued"}
    gone = [number for message, number in at.items() if message in is_gone]
    settles = [*{subscriber for _, subscriber, each in seen if each.settles_when_sent}, len(index)]
    expiring = {each.message for view in (before, after) for each in view.entries if each.expires}
    if step.arrival and isinstance(step.operation, op.Publish) and step.operation.expires_s:
        expiring.add(step.arrival[0])
    broker = [
        Taken("deliver", (index[name], at[message])) for message, name in _held(after).items()
    ]
    for taken in ("deliver", "acknowledge"):
        broker += [Taken(taken, (subscriber, each)) for subscriber in settles for each in gone]
    broker += [Taken("browse", (subscriber, ANY)) for subscriber in browsers]
    broker += [Taken("pass_over", (ANY, ANY)), Taken("come_due", (ANY,))]
    # In the order of the queue: that of a set of names differs from process to process.
    broker += [Taken("expire", (at[message],)) for message in at if message in expiring & is_gone]
    yield PathQuery(
        "pointer-queue",
        TimedQueue,
        Entry,
        len(everything),
        ((Subscription, len(subscribers)),),
        rigid + _state(before, at, index, ABSENT),
        rigid + _state(after, at, index, DEQUEUED),
        (*_of_the_client(before, after, step, at, index), *broker),
        step.settlement(_held(before), at, index),
    )


def _merged(before: PointerQueueView, after: PointerQueueView, step: ClientStep) -> list[str]:
    """Return all messages in the order of the queue; an arrival is the last of its level."""
    levels = [(entry.message, entry.level) for entry in before.entries]
    levels += [step.arrival] if step.arrival else []
    merged = [message for message, _ in sorted(levels, key=lambda pair: -pair[1])]
    place = {message: at for at, message in enumerate(merged)}
    if new := [each.message for each in after.entries if each.message not in place]:
        raise NotAQueue(f"{new[0]} is there and was not published")
    places = [place[entry.message] for entry in after.entries]
    if places != sorted(places):
        raise NotAQueue("its entries are not in their order")
    return merged


def _names(view: PointerQueueView) -> list[Name]:
    held = {entry.holder: entry.message for entry in view.entries}
    return [
        (each.consumer, "" if each.consumer is not None else held.get(number, ""))
        for number, each in enumerate(view.subscriptions)
    ]


def _held(view: PointerQueueView) -> dict[str, Name]:
    names = _names(view)
    return {each.message: names[each.holder] for each in view.entries if each.holder is not None}


def _state(
    view: PointerQueueView, at: Mapping[str, int], index: Mapping[Name, int], otherwise: int
) -> Valuation:
    status, held_back = [DEQUEUED, *(otherwise for _ in at)], [False for _ in range(len(at) + 1)]
    for each in view.entries:
        status[at[each.message]] = Status.values.index(STATUS.get(each.state, each.state.upper()))
        held_back[at[each.message]] = each.state == "held"
    many = len(index) + 1
    active, rewound = [False] * many, [False] * many
    last_seen: list[int | None] = [None] * many
    released = list(last_seen)
    numbers = [HEAD, *(at[each.message] for each in view.entries)]
    for name, subscriber in zip(_names(view), view.subscriptions, strict=True):
        if subscriber.active:
            own = index[name]
            active[own], last_seen[own] = True, numbers[subscriber.last_seen]
            if subscriber.released is not None:
                rewound[own], released[own] = True, numbers[subscriber.released]
    holds = frozenset((index[name], at[message]) for message, name in _held(view).items())
    return valuation(
        status=status,
        held_back=held_back,
        arriving=[False for _ in status],
        holds=holds,
        active=active,
        last_seen=last_seen,
        rewound=[one if there else None for one, there in zip(rewound, active, strict=True)],
        released=released,
    )


def _of_the_client(
    before: PointerQueueView,
    after: PointerQueueView,
    step: ClientStep,
    at: Mapping[str, int],
    index: Mapping[Name, int],
) -> Iterator[Taken]:
    """Yield the steps that the client's operation may be; a get or a purge comes and leaves."""
    spare = len(index)
    if step.arrival is not None:
        arrival = (at[step.arrival[0]],)
        if isinstance(step.operation, op.Publish) and step.operation.not_before_s:
            yield Taken("hold", arrival)
        elif isinstance(before.order, Fifo):
            yield Taken("append", arrival)
        else:
            yield from (Taken("insert", arrival), Taken("look_back", arrival))
    come: list[int] = []
    left = [index[consumer, ""] for consumer in sorted(step.closed) if (consumer, "") in index]
    match step.operation:
        case op.Consume(consumer=consumer):
            come = [index.get((consumer, ""), spare)]
            left += [spare] if (consumer, "") not in index else []
        case op.Cancel(consumer=consumer) if (consumer, "") in index:
            left.append(index[consumer, ""])
        case op.Get():
            new = [name for name in _names(after) if name not in _names(before)]
            come = [index[name] for name in new if name[0] is None] or [spare]
            left += come
        case op.Purge():
            come, left = [spare], [*left, spare]
        case op.CloseChannel(channel=channel):
            for name, each in zip(_names(before), before.subscriptions, strict=True):
                if each.channel == channel:
                    left.append(index[name])
                    held = [message for message, holder in _held(before).items() if holder == name]
                    yield from (Taken("release", (index[name], at[message])) for message in held)
    yield from (Taken("subscribe", (subscriber,)) for subscriber in come)
    yield from (Taken("unsubscribe", (subscriber,)) for subscriber in left)


def queries_at_rest(view: PointerQueueView) -> Iterator[PathQuery]:
    """Yield the query whether a queue whose consumers pull may be at rest.

    Between two views a consumer may have lost its interest, regained it and been notified, so any
    lists are possible. A browser may have been shown all entries that its place is past.
    """
    if view.lists is None:
        return
    places = {
        consumer: (Listed.values.index(name.upper()), place)
        for name in view.lists.__struct_fields__
        for place, consumer in enumerate(getattr(view.lists, name))
    }
    removed = Listed.values.index("REMOVED"), 0
    many = len(view.subscriptions)
    listed = [places.get(each, removed) for each in range(many)]
    query = _state_of(view)
    yield query._replace(
        name="pull-queue",
        model=PullQueue,
        sizes=(*query.sizes, (Channel, 1)),
        # A queue whose consumers pull has no clock.
        before=tuple(each for each in query.before if each[0] != "held_back")
        + valuation(
            listed=[*(place for place, _ in listed), removed[0]],
            ahead=frozenset(
                (one, other)
                for one in range(many)
                for other in range(many)
                if listed[one][0] == listed[other][0] != removed[0] and listed[one] < listed[other]
            ),
            shown=frozenset(
                (consumer, entry)
                for consumer, each in enumerate(view.subscriptions)
                if each.browses and each.active
                for entry in range(each.last_seen + 1)
            ),
        ),
        after=(),
        steps=(),
        first=(Taken("come_to_rest"),),
    )


def states(view: PointerQueueView, *, rests: bool) -> Iterator[PathQuery]:  # noqa: ARG001 - always
    """Yield the state that a view shows."""
    yield _state_of(view)


@functools.lru_cache(maxsize=1 << 12)
def _state_of(view: PointerQueueView) -> PathQuery:
    (query,) = queries(view, view, ClientStep(op.Drain()))
    return query
