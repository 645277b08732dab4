"""Reads a view of an ActiveMQ queue as a state of the cursor's model, an operation as its steps.

The queue may read, pass over, page in, drop its batch and give at any time. The model has one order
and one persistence class; if a queue has both classes, its persistent messages are projected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from brokerproof.models.activemq.cursor_page_in import Channel, Consumer, CursorPageIn, Message
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue, OutsideTheModel
from brokerproof.models.language.watch.path_query import PathQuery, Valuation, valuation
from brokerproof.models.language.watch.paths import ANY, Taken
from brokerproof.spec.activemq.view import AuditView, CursorLevelView, CursorQueueView, MemoryView
from brokerproof.spec.messages import Order, Priority
from brokerproof.spec.protocol import operations as op

CURSOR: Final = (
    *(Taken(action, (ANY,)) for action in ("page_in", "read", "pass_over")),
    *(Taken("clear"), Taken("cache_again")),
)
Key: TypeAlias = tuple[str | None, str]
"""A consumer, None for a get, and its channel."""

MODEL: Final = CursorPageIn


def new_queue(view: CursorQueueView, order: Order) -> CursorQueueView:
    """Return the view of a new queue of `order`, with the sizes of `view`."""
    levels = [CursorLevelView(level=e.level, cache_enabled=e.cache_enabled) for e in view.levels]
    return CursorQueueView(
        order=order,
        levels=tuple(levels),
        audit=AuditView(None, view.audit.words, view.audit.word_bits),
        memory=MemoryView(0, view.memory.limit),
    )


def queries_at_rest(_: CursorQueueView) -> Iterator[PathQuery]:
    """Yield no query: memory decides which messages stay pending at rest."""
    yield from ()


def states(_: CursorQueueView, *, rests: bool) -> Iterator[PathQuery]:  # noqa: ARG001 - none
    """Yield no query: the invariants of a single view are about counts, sizes and lists."""
    yield from ()


def queries(
    before: CursorQueueView, after: CursorQueueView, step: ClientStep
) -> Iterator[PathQuery]:
    """Yield the query whether the model explains two views.

    Raises `NotAQueue`, and `OutsideTheModel` if the model does not cover the step.
    """
    if [each.level for each in before.levels] != [each.level for each in after.levels]:
        raise NotAQueue("it has other levels than before")
    _check_subject(before, after, step)
    first, last = _Read(before), _Read(after)
    arrival = _arrival(before, after, step)
    names = {number: name for name, number in first.number.items()}
    names |= {after.arrivals: arrival} if arrival else {}
    for name, number in last.number.items():
        if number not in names:
            raise NotAQueue(f"{name} is there and was not published")
        if names[number] != name:
            raise NotAQueue(f"{names[number]} at {number} has become {name}")
    numbers = sorted(names)
    cached = before.levels[0].cached
    if before.levels[0].cache_enabled and not (cached is None or cached in first.number):
        # The cache ended behind the message cached last, even if that message is gone.
        numbers = sorted({*names, before.arrivals})
    at = {names[number]: place for place, number in enumerate(numbers) if number in names}
    subscribers = _subscribers(before, after, step)
    index = {key: place for place, key in enumerate(subscribers)}
    channels = sorted({channel for _, channel in subscribers})
    word = [number // before.audit.word_bits for number in numbers]
    many = range(len(numbers))
    rigid = valuation(
        channel=[channels.index(channel) for _, channel in subscribers] or [0],
        slides=frozenset(
            (m, n) for m in many for n in many if word[n] < word[m] - before.audit.words + 1
        ),
    )
    recovered = before.levels[0].recovered
    shown = [names.get(number, "") for number in numbers]
    recovers = valuation(read_last=[bool(name) and name == recovered for name in shown])
    spent = [number <= before.arrivals for number in numbers]
    yield PathQuery(
        "cursor-page-in",
        CursorPageIn,
        Message,
        len(numbers),
        ((Consumer, len(subscribers)), (Channel, len(channels))),
        rigid
        + recovers
        + first.history(shown, {key: each.before for key, each in subscribers.items()})
        + first.state(numbers, spent, at, subscribers, after=False),
        rigid + last.state(numbers, [True] * len(numbers), at, subscribers, after=True),
        (*_steps(step, arrival, at, subscribers, channels, last), *CURSOR),
        step.settlement(first.held, at, index),
        last.history(shown, {key: each.after for key, each in subscribers.items()}),
    )


def _check_subject(before: CursorQueueView, after: CursorQueueView, step: ClientStep) -> None:
    """Raise `OutsideTheModel` if the model has no term for the subject of a step."""
    if len(before.levels) > 1 or isinstance(before.order, Priority):
        raise OutsideTheModel("levels of priority")
    if isinstance(step.operation, op.Purge):
        raise OutsideTheModel("a purge")
    views = (before, after)
    if any(view.parked for view in views):
        raise OutsideTheModel("publishes that wait for memory")
    if any(each.grouped for view in views for each in view.paged_in):
        raise OutsideTheModel("groups of messages")
    if any(v.levels[0].stored or any(r.persistent for r in v.paged_in) for v in views):
        return
    is_transient = isinstance(step.operation, op.Publish) and not step.operation.message.persistent
    others = [(*v.levels[0].in_memory, *v.levels[0].on_disk, *v.paged_in) for v in views]
    if (step.arrival and is_transient) or any(others):
        raise OutsideTheModel("messages that do not outlive a crash")


class _Subscriber(NamedTuple):
    """Whether a consumer or get is there before and after, and settles its deliveries itself."""

    before: bool = False
    after: bool = False
    settles: bool = False


class _Read:
    """The persistent messages of a view, by name."""

    def __init__(self, view: CursorQueueView) -> None:
        (self.level,) = view.levels
        self.view = view
        self.number = {each.message: each.number for each in self.level.stored}
        if len({*self.number.values()}) < len(self.number):
            raise NotAQueue("two messages have one number")
        others = {each.message for each in view.paged_in if not each.persistent}
        self.paged = {each.message: each for each in view.paged_in if each.persistent}
        self.returned = [each for each in view.returned if each not in others]
        self.waiting = {*view.waiting} - others
        self.held: dict[str, Key] = {}
        for each in view.held:
            if each.message in self.held:
                raise NotAQueue(f"{each.message} is held twice")
            if each.message not in others:
                self.held[each.message] = each.consumer, each.channel
        self.batch = {each.message for each in self.level.batch}
        in_memory = {*self.paged, *self.batch, *self.returned, *self.waiting, *view.late}
        if lost := sorted(({*in_memory, *self.held} - others) - self.number.keys()):
            raise NotAQueue(f"{lost[0]} is in memory, and not in the store")

    def history(self, messages: list[str], is_there: Mapping[Key, bool]) -> Valuation:
        """Return what a view does not show: which messages were given, which consumers attached."""
        given = {*self.held} | {name for name, each in self.paged.items() if each.redelivered}
        holds = {*self.held.values()}
        return valuation(
            given=[name in given and name in self.paged for name in messages],
            attached=[there or key in holds for key, there in is_there.items()] or [False],
        )

    def state(
        self,
        numbers: list[int],
        spent: list[bool],
        at: Mapping[str, int],
        subscribers: Mapping[Key, _Subscriber],
        *,
        after: bool,
    ) -> Valuation:
        """Return the state of the messages with these numbers."""
        names = {number: name for name, number in self.number.items()}
        shown = [names.get(number) for number in numbers]
        # The audit and the position are not compared for messages that are gone.
        stored = {each.message: each for each in self.level.stored}
        index = {key: place for place, key in enumerate(subscribers)}
        passed, start = _passed(self.level), self.view.audit.first
        lines = (self.returned, [each.message for each in self.view.held if each.message in at])
        below = [start is not None and number < start for number in numbers]

        def if_stored(values: list[bool]) -> list[int | None]:
            pairs = zip(shown, values, strict=True)
            return [None if after and name is None else value for name, value in pairs]

        return valuation(
            spent=spent,
            stored=[name is not None for name in shown],
            batch=[name in self.batch for name in shown],
            paged=[name in self.paged for name in shown],
            waiting=[name in self.waiting for name in shown],
            returned=[name in self.returned for name in shown],
            holds=frozenset((index[key], at[message]) for message, key in self.held.items()),
            sooner=frozenset(
                (at[one], at[other])
                for line in lines
                for place, one in enumerate(line)
                for other in line[place + 1 :]
            ),
            takes=[each.after if after else each.before for each in subscribers.values()]
            or [False],
            behind=if_stored(
                [n <= passed and s is not None for n, s in zip(numbers, shown, strict=True)]
            ),
            recorded=if_stored([name is not None and stored[name].suppressed for name in shown]),
            below=if_stored(below),
            caches=self.level.cache_enabled,
            out_of_turn=[False for _ in numbers],
        )


def _passed(level: CursorLevelView) -> int:
    """Return the number of the last message behind the position, 0 if reading starts over."""
    if level.outdated or level.starts_over or not level.read:
        return 0
    return level.stored[level.read - 1].number


def _arrival(before: CursorQueueView, after: CursorQueueView, step: ClientStep) -> str | None:
    """Return the persistent message that was published, if any."""
    new = after.arrivals - before.arrivals
    if new != (step.arrival is not None):
        raise NotAQueue(f"{new} more messages are counted as arrived")
    if isinstance(step.operation, op.Publish) and not step.operation.message.persistent:
        return None
    return step.arrival[0] if step.arrival else None


def _subscribers(
    before: CursorQueueView, after: CursorQueueView, step: ClientStep
) -> dict[Key, _Subscriber]:
    """Return the consumers, the holders that only hold a message, and the get of this step."""
    found: dict[Key, _Subscriber] = {}
    for view, moment in ((before, {"before": True}), (after, {"after": True})):
        for each in view.subscribers:
            known = found.get((each.consumer, each.channel), _Subscriber())
            known = known._replace(settles=each.settles_when_sent, **moment)
            found[each.consumer, each.channel] = known
        for held in view.held:
            found.setdefault((held.consumer, held.channel), _Subscriber())
    if isinstance(step.operation, op.Get):
        settles = step.operation.mode == "automatic"
        found[None, step.operation.channel] = _Subscriber(before=True, after=True, settles=settles)
    return found


def _steps(
    step: ClientStep,
    arrival: str | None,
    at: Mapping[str, int],
    subscribers: Mapping[Key, _Subscriber],
    channels: list[str],
    after: _Read,
) -> Iterator[Taken]:
    """Yield the steps that the client's operation may be, and the possible deliveries."""
    if arrival is not None:
        for action in ("send_cached", "send_uncached", "send_past_nothing"):
            yield Taken(action, (at[arrival],))
        yield Taken("send_past_cache", (at[arrival], ANY))
    closes = step.operation.channel if isinstance(step.operation, op.CloseChannel) else None
    if closes in channels:
        yield Taken("close", (channels.index(closes or ""),))
    for number, ((consumer, channel), subscriber) in enumerate(subscribers.items()):
        if subscriber.before != subscriber.after:
            yield Taken("cancel" if subscriber.before else "attach", (number,))
        if subscriber.settles:
            yield Taken("acknowledge", (number, ANY))
        for message in at:
            is_done = subscriber.settles and message not in after.number
            if channel == closes or after.held.get(message) == (consumer, channel) or is_done:
                yield Taken("give", (number, at[message]))
