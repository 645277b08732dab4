"""A queue with a cursor, watched: each step between two views is a path of the model.

Owns the reading of a `CursorQueueView` as states of `CursorPageIn`, and which of the model's
actions an operation of a client may be. What the queue may do besides, at any time, is what the
model says: read, pass over, page in, drop its batch, give. How states of the model follow each
other is stated there and nowhere here; whether there is a path is answered in `cursor_questions`.

The model has one order and one persistence class. What is persistent is in an order of its own, so
of a queue that has both kinds it is what is read, and the others are left out. Queues with levels
share an audit between their orders, and the model says nothing of them, nor of publishes that wait
for memory, of groups, and of a purge; steps with any of these are not read (`NotSpokenOf`).
"""

from __future__ import annotations

from collections.abc import Mapping

from brokerproof.models.activemq.cursor_questions import (
    Facts,
    Known,
    Order,
    Question,
    Taker,
    answer,
    shortened,
)
from brokerproof.models.language.watch.client_step import Happening, NotAQueue
from brokerproof.models.language.watch.paths import Taken
from brokerproof.spec.activemq.view import (
    AuditView,
    CursorLevelView,
    CursorQueueView,
    MemoryView,
)
from brokerproof.spec.protocol import messages
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Get,
    Publish,
    Purge,
    Reject,
    Release,
)

UNTAKEN: Mapping[str, str] = {
    "send_cached": "nothing was published while the cache was on and had room",
    "send_uncached": "nothing was published while the cache was off",
    "send_past_cache": "the cache never ended behind something that was stored",
    "send_past_nothing": "the cache never ended when all that it had was gone",
    "cache_again": "the cache never came back",
    "read": "nothing was read from a store",
    "pass_over": "nothing that was read was in memory already",
    "clear": "no batch was dropped",
    "page_in": "nothing was paged in",
    "give": "nothing was given",
    "acknowledge": "nothing was settled",
    "release": "nothing was returned",
    "attach": "no consumer came",
    "cancel": "no consumer left",
    "close": "no channel with a consumer was closed",
}
"""What has not happened where a transition of the model was never taken."""


class NotSpokenOf(Exception):
    """A step of which the model says nothing; the message says why."""


def nothing_in(view: CursorQueueView, order: messages.Order) -> CursorQueueView:
    """Return what a queue of `order` shows that is new, and of the sizes that a view shows."""
    levels = [
        CursorLevelView(level=each.level, cache_enabled=each.cache_enabled) for each in view.levels
    ]
    return CursorQueueView(
        order=order,
        levels=tuple(levels),
        audit=AuditView(None, view.audit.words, view.audit.word_bits),
        memory=MemoryView(0, view.memory.limit),
    )


def explained(
    before: CursorQueueView, after: CursorQueueView, happened: Happening
) -> tuple[str, ...] | None:
    """Return the names of the actions that lead from one view to the other; None if none do.

    Raises `NotSpokenOf`, `NotAQueue`, and `TooFar` where the search was given up.
    """
    if [each.level for each in before.levels] != [each.level for each in after.levels]:
        raise NotAQueue("it has other levels than before")
    _ask_whether_spoken_of(before, after, happened)
    asked = question(before, after, happened)
    return answer(shortened(asked))


def _ask_whether_spoken_of(
    before: CursorQueueView, after: CursorQueueView, happened: Happening
) -> None:
    operation = happened.operation
    if len(before.levels) > 1 or isinstance(before.order, messages.Priority):
        raise NotSpokenOf("levels of priority")
    if isinstance(operation, Purge):
        raise NotSpokenOf("a purge")
    for view in (before, after):
        if view.parked:
            raise NotSpokenOf("publishes that wait for memory")
        if any(each.grouped for each in view.paged_in):
            raise NotSpokenOf("groups of messages")
    if _is_persistent(before) or _is_persistent(after):
        return
    is_transient = isinstance(operation, Publish) and not operation.message.persistent
    if (happened.arrival and is_transient) or _has_others(before) or _has_others(after):
        raise NotSpokenOf("messages that do not outlive a crash")


def _is_persistent(view: CursorQueueView) -> bool:
    """Whether anything is there that the model speaks of."""
    return bool(view.levels[0].stored) or any(each.persistent for each in view.paged_in)


def _has_others(view: CursorQueueView) -> bool:
    """Whether anything is there that does not outlive a crash."""
    (level,) = view.levels
    return bool(level.in_memory or level.on_disk or view.paged_in)


class _Read:
    """A view by message."""

    def __init__(self, view: CursorQueueView) -> None:
        (self.level,) = view.levels
        self.view = view
        self.number = {each.message: each.number for each in self.level.stored}
        if len({*self.number.values()}) < len(self.number):
            raise NotAQueue("two messages have one number")
        self.left_out = frozenset(each.message for each in view.paged_in if not each.persistent)
        self.references = {each.message: each for each in view.paged_in if each.persistent}
        self.batch = {each.message for each in self.level.batch}
        self.returned = [each for each in view.returned if each not in self.left_out]
        self.waiting = {*view.waiting} - self.left_out
        self.held: dict[str, tuple[str | None, str]] = {}
        for each in view.held:
            if each.message in self.held:
                raise NotAQueue(f"{each.message} is held twice")
            if each.message not in self.left_out:
                self.held[each.message] = each.consumer, each.channel
        late = {*view.late} - self.left_out
        everywhere = {*self.references, *self.batch, *self.returned, *self.waiting, *late}
        if lost := sorted((everywhere | self.held.keys()) - self.number.keys()):
            raise NotAQueue(f"{lost[0]} is in memory, and not in the store")
        self.passed = self._passed()
        self.suppressed = {each.message: each.suppressed for each in self.level.stored}

    def _passed(self) -> int:
        """Return the number of the last message that the position has passed.

        A position that is forgotten before the next reading is none.
        """
        level = self.level
        if level.outdated or level.starts_over or not level.read:
            return 0
        return level.stored[level.read - 1].number

    def facts(
        self, message: str | None, number: int, takers: Mapping[tuple[str | None, str], int]
    ) -> Facts:
        """Return what is known of a message; None is one that is gone."""
        first = self.view.audit.first
        below = first is not None and number < first
        if message is None or message not in self.number:
            return Facts(below=below)
        reference = self.references.get(message)
        return Facts(
            stored=True,
            batch=message in self.batch,
            paged=reference is not None,
            waiting=message in self.waiting,
            returned=message in self.returned,
            holder=takers[self.held[message]] if message in self.held else -1,
            behind=number <= self.passed,
            known=self.suppressed[message],
            below=below,
            given=reference is not None and (message in self.held or reference.redelivered),
        )

    def order(self, index: Mapping[str, int]) -> Order:
        """Return what is returned, and what is held, in their orders."""
        held = [index[each.message] for each in self.view.held if each.message in self.held]
        return Order(tuple([index[each] for each in self.returned]), tuple(held))


def question(before: CursorQueueView, after: CursorQueueView, happened: Happening) -> Question:
    """Return the question whether the model explains two views; raises `NotAQueue`."""
    at_first, in_the_end = _Read(before), _Read(after)
    arrived = _arrived(before, after, happened)
    names = {number: name for name, number in [*at_first.number.items(), *arrived]}
    for name, number in in_the_end.number.items():
        if names.setdefault(number, name) != name:
            raise NotAQueue(f"{names[number]} at {number} has become {name}")
    new = in_the_end.number.keys() - at_first.number.keys() - {name for name, _ in arrived}
    if new:
        raise NotAQueue(f"{min(new)} is there and was not published")
    numbers = sorted(names)
    cached = before.levels[0].cached
    if before.levels[0].cache_enabled and not (cached is None or cached in at_first.number):
        # What was cached last says where the cache has ended, also when it is gone.
        numbers = sorted({*names, before.arrivals})
    index = {names[number]: at for at, number in enumerate(numbers) if number in names}
    takers = _takers(before, after, happened)
    who = {key: at for at, key in enumerate(takers)}
    known = [
        Known(
            at_first.facts(names.get(number), number, who),
            in_the_end.facts(names.get(number), number, who),
            number,
            spent=number <= before.arrivals,
        )
        for number in numbers
    ]
    channels = sorted({channel for _, channel in takers})
    closes = happened.operation.channel if isinstance(happened.operation, CloseChannel) else None
    recovered = before.levels[0].recovered
    return Question(
        messages=tuple(known),
        takers=tuple([each._replace(channel=channels.index(c)) for (_, c), each in takers.items()]),
        caches=(before.levels[0].cache_enabled, after.levels[0].cache_enabled),
        orders=(at_first.order(index), in_the_end.order(index)),
        first=_settled(at_first, happened, index, who),
        arrival=index[arrived[0][0]] if arrived else None,
        recovered=index.get(recovered) if recovered in at_first.number else None,
        closes=channels.index(closes) if closes in channels else None,
        words=before.audit.words,
        word_bits=before.audit.word_bits,
    )


def _arrived(
    before: CursorQueueView, after: CursorQueueView, happened: Happening
) -> list[tuple[str, int]]:
    """Return what was published with its number; `NotAQueue` where the counts do not say so."""
    new = after.arrivals - before.arrivals
    if new != (happened.arrival is not None):
        raise NotAQueue(f"{new} more messages are counted as arrived")
    operation = happened.operation
    is_left_out = isinstance(operation, Publish) and not operation.message.persistent
    if happened.arrival is None or is_left_out:
        return []
    return [(happened.arrival[0], after.arrivals)]


def _takers(
    before: CursorQueueView, after: CursorQueueView, happened: Happening
) -> dict[tuple[str | None, str], Taker]:
    """Return consumers, those who hold something, and who gets, by name and channel."""
    found: dict[tuple[str | None, str], Taker] = {}
    for view, is_after in ((before, False), (after, True)):
        for each in view.takers:
            key = each.consumer, each.channel
            known = found.get(key, Taker(0, before=False, after=False, settles=False))
            is_there = {"after": True} if is_after else {"before": True}
            found[key] = known._replace(settles=each.settles_when_sent, **is_there)
        for held in view.held:
            found.setdefault((held.consumer, held.channel), Taker(0, before=False, after=False))
    operation = happened.operation
    if isinstance(operation, Get):
        settles = operation.mode == "automatic"
        found[None, operation.channel] = Taker(0, before=True, after=True, settles=settles)
    return found


def _settled(
    at_first: _Read,
    happened: Happening,
    index: Mapping[str, int],
    who: Mapping[tuple[str | None, str], int],
) -> Taken | None:
    """Return what settles a message, if an operation does and the queue has it."""
    settled = happened.settled or ""
    if not isinstance(happened.operation, Acknowledge | Reject | Release):
        return None
    if settled not in at_first.held:
        return None
    action = "release" if isinstance(happened.operation, Release) else "acknowledge"
    return Taken(action, (who[at_first.held[settled]], index[settled]))
