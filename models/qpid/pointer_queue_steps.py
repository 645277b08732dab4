"""A queue of pointers, watched: each step between two views of it is a path of the model.

Owns the reading of a `PointerQueueView` as a state of `TimedQueue`, and which of the model's
actions an operation of a client may be. What the broker may do besides, at any time, is what the
model says: move a pointer, give an entry, show one. How states of the model follow each other is
stated there and nowhere here; whether there is a path is answered in `pointer_queue_questions`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeAlias, cast

from brokerproof.models.language.watch.client_step import Happening, NotAQueue
from brokerproof.models.language.watch.paths import Taken
from brokerproof.models.qpid.pointer_queue_questions import (
    ABSENT,
    DEQUEUED,
    HEAD,
    HELD,
    NOBODY,
    STATUS_OF,
    Place,
    Question,
    SeenEntry,
    SeenSubscription,
    answer,
    shortened,
)
from brokerproof.spec.protocol.messages import Fifo
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
)
from brokerproof.spec.qpid.view import PointerQueueView, SubscriptionView

UNTAKEN: Mapping[str, str] = {
    "append": "no message was published to a queue that is first in first out",
    "insert": "no message was published to a queue of priorities",
    "look_back": "no message was published to a queue of priorities",
    "browse": "nobody browsed",
    "release": "nothing was released, and no channel closed that held something",
    "acknowledge": "nothing was settled",
    "subscribe": "nobody subscribed, and there was no get",
    "unsubscribe": "nobody left, and there was no get",
    "deliver": "nothing was delivered",
    "hold": "no message was published that had to wait",
    "come_due": "nothing that had to wait became due",
    "expire": "nothing expired",
    "pass_over": "no pointer met an entry that somebody had, or that it did not want",
}
"""What has not happened where a transition of the model was never taken."""


def explained(
    before: PointerQueueView, after: PointerQueueView, happened: Happening
) -> tuple[str, ...] | None:
    """Return the names of the actions that lead from one view to the other; None if none do.

    Raises `NotAQueue`, and `TooFar` where the search was given up.
    """
    if before == after and not _concerns(happened, before):
        return ()
    done_by = _is_done_by(happened.operation)
    asked = before, after, happened.arrival, happened.settled, happened.closed, done_by
    known = _KNOWN.get(asked, _UNKNOWN)
    if known is _UNKNOWN:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        known = _KNOWN[asked] = answer(shortened(question(before, after, happened)))
    return cast("tuple[str, ...] | None", known)


KNOWN_MAX = 1 << 16
"""So many steps are remembered with what explains them; a search meets few, but those often."""

_KNOWN: dict[Hashable, object] = {}
_UNKNOWN = object()


def _is_done_by(operation: Operation) -> tuple[type[Operation], str]:
    """Return all that matters of an operation besides the message that it is about."""
    match operation:
        case Consume(consumer=name) | Cancel(consumer=name) | CloseChannel(channel=name):
            return type(operation), name
        case _:
            return type(operation), ""


def question(before: PointerQueueView, after: PointerQueueView, happened: Happening) -> Question:
    """Return the question whether the model explains two views; raises `NotAQueue`."""
    return _Watched(before, after, happened).question()


def _concerns(happened: Happening, view: PointerQueueView) -> bool:
    """Whether an operation does anything at all to a queue."""
    match happened.operation:
        case Publish():
            return happened.arrival is not None
        case Acknowledge() | Reject() | Release():
            return any(entry.message == happened.settled for entry in view.entries)
        case _:
            return False


class _Watched:
    """Two views with their entries and subscriptions numbered alike."""

    def __init__(
        self, before: PointerQueueView, after: PointerQueueView, happened: Happening
    ) -> None:
        self.before, self.after, self.happened = before, after, happened
        self.messages = self._merged()
        self.number = {message: at for at, message in enumerate(self.messages, start=1)}
        self.names_before, self.names_after = _names(before), _names(after)
        self.names = list(dict.fromkeys([*self.names_before, *self.names_after]))
        self.spare = len(self.names)
        """The number of the subscription that a get is as long as it lasts."""
        self.entries = tuple(
            map(
                SeenEntry,
                self._statuses(before, self.names_before, ABSENT),
                self._statuses(after, self.names_after, DEQUEUED),
                self._unwanted(),
            )
        )
        self.subscriptions = self._numbered()

    def question(self) -> Question:
        """Return the question whether the model explains what happened."""
        first = self._settlement()
        client = tuple(self._of_the_client())
        returned = {
            taken.arguments[-1] for taken in (first, *client) if taken and taken.action == "release"
        }
        steps = (*client, *self._of_the_broker(returned))
        return Question(self.entries, self.subscriptions, first, steps)

    def _merged(self) -> list[str]:
        """Return all messages in the order of the queue; an arrival is the last of its level."""
        levels = [(entry.message, entry.level) for entry in self.before.entries]
        if self.happened.arrival is not None:
            levels.append(self.happened.arrival)
        merged = [message for message, _ in sorted(levels, key=lambda pair: -pair[1])]
        place = {message: at for at, message in enumerate(merged)}
        for entry in self.after.entries:
            if entry.message not in place:
                raise NotAQueue(f"{entry.message} is there and was not published")
        places = [place[entry.message] for entry in self.after.entries]
        if places != sorted(places):
            raise NotAQueue("its entries are not in their order")
        return merged

    def _statuses(
        self, view: PointerQueueView, names: list[_Name], otherwise: int
    ) -> list[tuple[int, int]]:
        found = {
            entry.message: (
                STATUS_OF[entry.state],
                NOBODY if entry.holder is None else self.names.index(names[entry.holder]),
            )
            for entry in view.entries
        }
        return [found.get(message, (otherwise, NOBODY)) for message in self.messages]

    def _unwanted(self) -> list[tuple[int, ...]]:
        """Return for each message who does not want it.

        What is in neither view has come and gone between them: who passed it may have done so when
        it was gone, so nothing has to be known of it.
        """
        shown = ((self.before, self.names_before), (self.after, self.names_after))
        found = {
            (view.entries[number - 1].message, self.names.index(name))
            for view, names in shown
            for each, name in zip(view.subscriptions, names, strict=True)
            for number in each.unwanted
        }
        if not found:
            return [()] * len(self.messages)
        takers = range(len(self.names))
        return [
            tuple([who for who in takers if (message, who) in found]) for message in self.messages
        ]

    def _numbered(self) -> tuple[SeenSubscription, ...]:
        before = dict(zip(self.names_before, self.before.subscriptions, strict=True))
        after = dict(zip(self.names_after, self.after.subscriptions, strict=True))
        known = {**before, **after}
        numbered = [
            SeenSubscription(
                known[name].browses,
                known[name].settles_when_sent,
                self._place(self.before, before.get(name)),
                self._place(self.after, after.get(name)),
            )
            for name in self.names
        ]
        get = SeenSubscription(browses=False, settles_when_sent=True, before=Place(), after=Place())
        return (*numbered, get)

    def _place(self, view: PointerQueueView, each: SubscriptionView | None) -> Place:
        if each is None or not each.active:
            return Place()
        released = NOBODY if each.released is None else self._at(view, each.released)
        return Place(True, self._at(view, each.last_seen), released)

    def _at(self, view: PointerQueueView, number: int) -> int:
        return HEAD if number == HEAD else self.number[view.entries[number - 1].message]

    # What may have happened.

    def _of_the_broker(self, returned: set[int]) -> Iterator[Taken]:
        gone = [at for at, entry in enumerate(self.entries, 1) if entry.after[0] == DEQUEUED]
        for who, each in enumerate(self.subscriptions):
            for at in self._held_by(who, after=True):
                if at in returned or self.entries[at - 1].before[1] != who:
                    yield Taken("deliver", (who, at))
            if each.settles_when_sent:
                for at in gone:
                    yield Taken("deliver", (who, at))
                    yield Taken("acknowledge", (who, at))
            for at, _ in enumerate(self.entries, 1):
                if each.browses:
                    yield Taken("browse", (who, at))
                yield Taken("pass_over", (who, at))
        yield from self._of_the_clock(gone)

    def _of_the_clock(self, gone: list[int]) -> Iterator[Taken]:
        """What may happen at any time to what had to wait, or expires."""
        held = [at for at, entry in enumerate(self.entries, 1) if entry.before[0] == HELD]
        if self.happened.arrival is not None and _has_to_wait(self.happened.operation):
            held.append(self.number[self.happened.arrival[0]])
        yield from (Taken("come_due", (at,)) for at in held)
        shown = (*self.before.entries, *self.after.entries)
        expiring = {self.number[entry.message] for entry in shown if entry.expires}
        match self.happened:
            case Happening(operation=Publish(expires_s=int()), arrival=(message, _)):
                expiring.add(self.number[message])
        yield from (Taken("expire", (at,)) for at in gone if at in expiring)

    def _held_by(self, who: int, *, after: bool) -> Iterator[int]:
        for at, entry in enumerate(self.entries, 1):
            if (entry.after if after else entry.before)[1] == who:
                yield at

    def _of_the_client(self) -> Iterator[Taken]:
        if self.happened.arrival is not None:
            arrival = self.number[self.happened.arrival[0]]
            if _has_to_wait(self.happened.operation):
                yield Taken("hold", (arrival,))
            elif isinstance(self.before.order, Fifo):
                yield Taken("append", (arrival,))
            else:
                yield Taken("insert", (arrival,))
                yield Taken("look_back", (arrival,))
        for consumer in sorted(self.happened.closed):
            if (consumer, "") in self.names:
                yield Taken("unsubscribe", (self.names.index((consumer, "")),))
        match self.happened.operation:
            case Consume(consumer=consumer) if (consumer, "") in self.names:
                yield Taken("subscribe", (self.names.index((consumer, "")),))
            case Consume(consumer=consumer) if consumer in self.happened.closed:
                # It came and left, and holds nothing.
                yield Taken("subscribe", (self.spare,))
                yield Taken("unsubscribe", (self.spare,))
            case Cancel(consumer=consumer) if (consumer, "") in self.names:
                yield Taken("unsubscribe", (self.names.index((consumer, "")),))
            case Get():
                yield from self._of_a_get()
            case Purge():
                # The queue itself takes what it drops, as a subscription of its own would.
                yield Taken("subscribe", (self.spare,))
                yield Taken("unsubscribe", (self.spare,))
            case CloseChannel(channel=channel):
                yield from self._of_a_closing(channel)

    def _of_a_get(self) -> Iterator[Taken]:
        """What holds a message afterwards is the get itself; else it was the spare one."""
        came = [name for name in self.names_after if name[0] is None]
        new = [self.names.index(name) for name in came if name not in self.names_before]
        for who in new or [self.spare]:
            yield Taken("subscribe", (who,))
            yield Taken("unsubscribe", (who,))

    def _of_a_closing(self, channel: str) -> Iterator[Taken]:
        for name, each in zip(self.names_before, self.before.subscriptions, strict=True):
            if each.channel == channel:
                who = self.names.index(name)
                yield Taken("unsubscribe", (who,))
                yield from (Taken("release", (who, at)) for at in self._held_by(who, after=False))

    def _settlement(self) -> Taken | None:
        operation = self.happened.operation
        if not isinstance(operation, Acknowledge | Reject | Release):
            return None
        at = self.number.get(self.happened.settled or "")
        if at is None or (who := self.entries[at - 1].before[1]) == NOBODY:
            return None
        return Taken("release" if isinstance(operation, Release) else "acknowledge", (who, at))


def _has_to_wait(operation: Operation) -> bool:
    return isinstance(operation, Publish) and bool(operation.not_before_s)


_Name: TypeAlias = tuple[str | None, str]
"""What tells a subscription from others before and after: a consumer, or the message of a get."""


def _names(view: PointerQueueView) -> list[_Name]:
    held = {entry.holder: entry.message for entry in view.entries if entry.holder is not None}
    return [
        (each.consumer, "" if each.consumer is not None else held.get(number, ""))
        for number, each in enumerate(view.subscriptions)
    ]
