"""Late or unordered events are refused exactly if no order of them is lawful.

The truth is a naive one, written here: try every order of operations and events that the protocol
allows, step by step over the contract's plain `take`. It is compared with the oracle, which reaches
the same verdict by rows (`possibilities.EventWindow`) where the order of events is promised, and by
a search (`streams.judged`) where it is not. The twins at the end show that the comparison notices a
window that forgets and a search that is too free.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import pytest

from brokerproof.checks.oracle import streams as streams_module
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.contracts import CONTRACT, CORE
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import EventWindow, Row, Step
from brokerproof.checks.oracle.streams import Streams, _Search, judged
from brokerproof.checks.search.findings import goes_on
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.contract.core import Channel, Consumer, Entry, Queue
from brokerproof.models.language.read.pointwise import World
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, Error
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Release,
    Reset,
    name_of,
)
from tests.checks.oracle.test_oracle import (
    CLAIMS,
    PER_CONSUMER,
    Told,
    acknowledge,
    broken,
    close,
    consume,
    declare,
    drain,
    get,
    given,
    publish,
    release,
)

Possibility: TypeAlias = tuple[World, frozenset[str]]
"""A world, and the recommendations not followed on the way to it."""

MODES = ("acknowledge", "automatic", "browse")


# Two consumers whose interleaving is unknown, by hand.

TWO_CONSUMERS = (
    declare(),
    consume("c", channel="ch0"),
    consume("d", channel="ch1"),
    publish("m0"),
    publish("m1"),
    publish("m2"),
)


def test_events_of_two_consumers_are_accepted_where_some_order_is_lawful() -> None:
    told = drain(given("m1", "d"), given("m0", "c"), given("m2", "c"))
    assert broken([*TWO_CONSUMERS, told], PER_CONSUMER) == []
    # The same list is refused where its order is promised.
    assert broken([*TWO_CONSUMERS, told]) == ["fifo-order"]


def test_events_of_one_consumer_keep_their_order() -> None:
    told = drain(given("m1", "d"), given("m2", "c"), given("m0", "c"))
    assert broken([*TWO_CONSUMERS, told], PER_CONSUMER) == ["fifo-order"]


def test_a_message_that_two_consumers_were_given_is_refused_in_every_order() -> None:
    told = drain(
        given("m0", "c"), given("m1", "c"), given("m2", "c"), given("m0", "d", delivery="other")
    )
    assert broken([*TWO_CONSUMERS, told], PER_CONSUMER) == ["nothing-twice"]


def test_a_release_explains_that_both_consumers_were_given_a_message() -> None:
    first = [*TWO_CONSUMERS, release("d9"), publish("m3", given("m0", "c"))]
    rest = (given("m1", "c"), given("m2", "c"), given("m3", "c"))
    back = given("m0", "d", again=True)
    assert broken([*first, release("d0"), drain(back, *rest)], PER_CONSUMER) == []
    # An event told before the release was requested cannot have come after it.
    assert broken([*first, publish("m4", back), release("d0"), drain(*rest)], PER_CONSUMER) == [
        "nothing-twice"
    ]


def test_a_get_takes_its_turn_anywhere_among_what_its_answer_tells() -> None:
    both = (given("m1", "c"), given("m0", None), given("m2", "d"))
    assert broken([*TWO_CONSUMERS, get(*both), drain()], PER_CONSUMER) == []
    assert broken([*TWO_CONSUMERS, get(*both), drain()]) == ["fifo-order"]
    late = [*TWO_CONSUMERS, get(given("m2", None)), drain(given("m1", "d"), given("m0", "c"))]
    assert broken(late, PER_CONSUMER) == []
    assert broken(late) == ["fifo-order"]


def test_where_nothing_is_told_the_rest_is_judged_like_any_other() -> None:
    assert broken([*TWO_CONSUMERS, drain()], PER_CONSUMER) == ["quiescence"]
    settled = [*TWO_CONSUMERS[:3], acknowledge("d9"), close("ch0"), drain()]
    assert broken(settled, PER_CONSUMER) == []


def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    told = drain(given("m1", "d"), given("m0", "c"), given("m2", "c"))
    assert broken([*TWO_CONSUMERS, told], PER_CONSUMER) == []
    monkeypatch.setattr(streams_module, "EFFORT_MAX", 10)
    with pytest.raises(Unfollowable, match="too many orders"):
        broken([*TWO_CONSUMERS, told], PER_CONSUMER)


def test_the_search_returns_an_order_that_is_lawful_step_by_step() -> None:
    bindings, worlds = met(TWO_CONSUMERS)
    steps: list[Step] = [
        ("consume", (0,)),
        ("consume", (1,)),
        ("publish", (0,)),
        ("publish", (1,)),
    ]
    streams = Streams()
    for step in steps:
        streams = streams.with_operation(step)
    streams = streams.with_event(1, ("deliver", (1, 1, 0))).with_event(0, ("deliver", (0, 0, 0)))
    start = frozenset((world, labels, frozenset[Step]()) for world, labels in worlds)
    found = judged(streams, start, CORE, bindings.frame, every_order=False)
    assert found.failure is None
    deliveries = [step for step, _ in found.order if step[0] == "deliver"]
    assert deliveries == [("deliver", (0, 0, 0)), ("deliver", (1, 1, 0))]
    for step, before in found.order:
        assert CORE.apply(bindings.frame, before, step)[0]


# The naive truth.


@dataclass
class Span:
    """The steps between two rests: operations in order, and events by the answers that told them.

    An operation that may have happened has the number of operations and of events before it.
    """

    operations: list[Step | None] = field(default_factory=list)
    maybes: list[tuple[Step, int, int]] = field(default_factory=list)
    events: list[Happened] = field(default_factory=list)
    fixed: dict[int, int] = field(default_factory=dict)
    """How many events precede an operation for certain: a get's own delivery stands in a list."""


@dataclass(frozen=True)
class Happened:
    """An event: its consumer; it happened before operation `latest`, not before `floor`."""

    number: int
    consumer: int
    step: Step
    latest: int
    floor: int


class Naive:
    """Judges a conversation by trying every order; raises nothing, keeps all it tried."""

    def __init__(self, conversation: Sequence[Told], claims: Capabilities) -> None:
        self.in_order = claims.event_order == "total"
        self.conversation = conversation
        self.bindings, self.possible = met(conversation, claims)
        self.blamed: set[str] = set()
        self.departed: list[list[str]] = []

    def refuses(self) -> int | None:
        """Return the number of the first drain at which nothing is lawful, None if all are well."""
        for number, span in enumerate(self._spans()):
            ends = self._ends(span)
            after = {e for end in ends for e in self._take(end, ("quiesce", ()))}
            if not after:
                return number
            self.departed.append(sorted(frozenset.intersection(*(labels for _, labels in after))))
            self.possible = frozenset((world, frozenset[str]()) for world, _ in after)
        return None

    def _take(self, here: Possibility, step: Step) -> Iterator[Possibility]:
        world, departed = here
        worlds, blames = CONTRACT.take(self.bindings.frame, world, *step, CORE.tolerated)
        for blame in blames:
            self.blamed.update(blame)
        for after, labels in worlds:
            yield after, departed | labels

    def _ends(self, span: Span) -> set[Possibility]:
        """Walk through every order; a position has the operations and events so far."""
        streams = self._streams(span)
        start = (0, (0,) * len(streams), frozenset[int]())
        seen = {(start, here) for here in self.possible}
        ahead, ends = list(seen), set[Possibility]()
        while ahead:
            position, here = ahead.pop()
            if self._is_end(span, streams, position):
                ends.add(here)
            for step, after in self._choices(span, streams, position):
                for there in [here] if step is None else self._take(here, step):
                    if (after, there) not in seen:
                        seen.add((after, there))
                        ahead.append((after, there))
        return ends

    def _streams(self, span: Span) -> list[list[Happened]]:
        if self.in_order:
            return [span.events]
        names = sorted({event.consumer for event in span.events})
        return [[event for event in span.events if event.consumer == name] for name in names]

    def _is_end(self, span: Span, streams: list[list[Happened]], position: Position) -> bool:
        done, told, _ = position
        every = [len(stream) for stream in streams]
        return done == len(span.operations) and list(told) == every

    def _choices(
        self, span: Span, streams: list[list[Happened]], position: Position
    ) -> Iterator[tuple[Step | None, Position]]:
        done, told, floated = position
        for which, stream in enumerate(streams):
            if told[which] < len(stream):
                event = stream[told[which]]
                fixed = all(told[0] < n for at, n in span.fixed.items() if at >= done)
                if event.floor <= done <= event.latest and (fixed or not self.in_order):
                    further = tuple(n + (w == which) for w, n in enumerate(told))
                    yield event.step, (done, further, floated)
        if done < len(span.operations):
            late = any(
                event.latest <= done
                for which, stream in enumerate(streams)
                for event in stream[told[which] :]
            )
            waits = self.in_order and told[0] < span.fixed.get(done, 0)
            if not late and not waits:
                yield span.operations[done], (done + 1, told, floated)
        for which, (step, since, known) in enumerate(span.maybes):
            ahead = [
                stream[n].number for stream, n in zip(streams, told, strict=True) if n < len(stream)
            ]
            if which not in floated and since <= done and all(number >= known for number in ahead):
                yield step, (done, told, floated | {which})

    def _spans(self) -> Iterator[Span]:
        """Cut the conversation at its drains."""
        span, floors = Span(), dict[int, int]()
        held: dict[str, tuple[int, str]] = {}
        for operation, answer in self.conversation:
            step = self._step(operation, answer, held)
            own = None
            if isinstance(operation, Drain):
                pass
            elif answer.error is not None:
                before = len(span.operations), len(span.events)
                span.maybes += [] if step is None else [(step, *before)]
            else:
                span.operations.append(step)
            for index, event in enumerate(answer.events):
                assert isinstance(event, Delivered)
                entry, channel = self.bindings.messages[event.message], "ch0"
                if event.consumer is None:
                    own = index
                    span.fixed[len(span.operations) - 1] = len(span.events)
                    mode = "acknowledge"
                else:
                    consumer = self.bindings.element_of(event.consumer)
                    channel = self.bindings.consumers[event.consumer].channel
                    mode = MODES[self.bindings.frame.rows[_row("mode")][consumer]]
                    name = "browse" if mode == "browse" else "deliver"
                    told = (name, (consumer, entry, int(event.redelivered)))
                    at, floor = len(span.operations), floors.get(consumer, 0)
                    span.events.append(Happened(len(span.events), consumer, told, at, floor))
                if mode == "acknowledge":
                    held[event.delivery] = (entry, channel)
            self._forget(operation, held)
            for consumer in self._told_all(operation):
                floors[consumer] = len(span.operations)
            if isinstance(operation, Drain):
                yield span
                span, floors = Span(), {}
            del own

    def _step(
        self, operation: Operation, answer: Answer, held: dict[str, tuple[int, str]]
    ) -> Step | None:
        bindings = self.bindings
        match operation:
            case Publish(message=message):
                return "publish", (bindings.messages[message.id],)
            case Consume(consumer=consumer) | Cancel(consumer=consumer):
                return name_of(operation), (bindings.element_of(consumer),)
            case CloseChannel(channel=channel) if channel in bindings.channels:
                return "close_channel", (bindings.channels[channel],)
            case Acknowledge(delivery=delivery) | Release(delivery=delivery) if delivery in held:
                return name_of(operation), (held[delivery][0],)
            case Get(queue=queue, channel=channel, mode=mode):
                getter = bindings.getters[queue, channel, mode].element
                for event in answer.events:
                    if isinstance(event, Delivered) and event.consumer is None:
                        entry = bindings.messages[event.message]
                        return "get", (getter, entry, int(event.redelivered))
                return "get_nothing", (getter,)
            case _:
                return None

    def _forget(self, operation: Operation, held: dict[str, tuple[int, str]]) -> None:
        if isinstance(operation, Acknowledge | Release):
            held.pop(operation.delivery, None)
        if isinstance(operation, CloseChannel):
            for delivery in [d for d, (_, channel) in held.items() if channel == operation.channel]:
                del held[delivery]

    def _told_all(self, operation: Operation) -> list[int]:
        match operation:
            case Cancel(consumer=consumer):
                return [self.bindings.element_of(consumer)]
            case CloseChannel(channel=closed):
                subscribers = self.bindings.consumers.values()
                return [
                    subscriber.element for subscriber in subscribers if subscriber.channel == closed
                ]
            case _:
                return []


Position: TypeAlias = tuple[int, tuple[int, ...], frozenset[int]]
"""How many operations are done, how many events of each stream, and which maybes happened."""


def met(
    conversation: Sequence[Told], claims: Capabilities = CLAIMS
) -> tuple[Bindings, frozenset[Possibility]]:
    """Return all that a conversation is about, and the one world in which nothing has happened."""
    bindings, world = Bindings.empty(claims, CONTRACT)
    unplaced: list[str] = []
    for operation, answer in conversation:
        match operation:
            case Declare():
                bindings = bindings.with_queue(operation)
            case Publish(message=message):
                bindings = bindings.with_message(operation, unplaced)
                unplaced += [message.id] if answer.error is not None else []
            case Consume():
                bindings = bindings.with_channel(operation.channel).with_consumer(operation)
            case Get():
                bindings, _ = bindings.with_getter(operation)
            case Drain():
                unplaced = []
            case _:
                pass
    for family in (Queue, Channel, Consumer, Entry):
        for _ in range(bindings.frame.sizes[CONTRACT.families.index(family)]):
            world = CONTRACT.grown(world, family)
    return bindings, frozenset(((world, frozenset[str]()),))


def _row(name: str) -> int:
    return CONTRACT.row_of(name)


# Random small histories: runs of the reference broker, with late and sometimes wrong events.


class Teller:
    """The reference broker behind a proxy that withholds its events as long as is allowed."""

    def __init__(self, chosen: random.Random, claims: Capabilities) -> None:
        self.chosen, self.claims = chosen, claims
        self.broker = make("qpid-push")
        self.said: list[Told] = []
        self.pending: list[Delivered] = []
        self.holding: dict[str, str] = {}
        self.published = 0

    def conversation(self, length: int) -> list[Told]:
        """Return a lawful conversation of so many operations and a drain."""
        order = self.chosen.choice((Fifo(), Priority(10)))
        self._asks(Reset(), hush=True)
        self._asks(Declare(queue="q", order=order))
        for name in "cd":
            self._asks(
                Consume(
                    channel=self.chosen.choice(("ch0", "ch1")),
                    queue="q",
                    consumer=name,
                    mode=self.chosen.choice(("acknowledge", "acknowledge", "automatic", "browse")),
                    credit=Credit(self.chosen.choice((1, 2, None))),
                )
            )
        for _ in range(length):
            self._asks(self._operation())
        self._asks(Drain())
        return self.said

    def _operation(self) -> Operation:
        kinds = ["publish"] * 5 + ["get"] * 3 + ["settle"] * 5 + ["drain", "cancel", "close"]
        match self.chosen.choice(kinds):
            case "settle" if self.holding:
                delivery = self.chosen.choice(sorted(self.holding))
                return self.chosen.choice((Acknowledge, Release, Release))(delivery=delivery)
            case "get":
                return Get(channel="ch0", queue="q")
            case "cancel":
                return Cancel(consumer=self.chosen.choice("cd"))
            case "close":
                return CloseChannel(channel=self.chosen.choice(("ch0", "ch1")))
            case "drain":
                return Drain()
            case _:
                self.published += 1
                priority = self.chosen.choice((0, 9))
                message = Message(id=f"m{self.published - 1}", priority=priority)
                return Publish(queue="q", message=message)

    def _asks(self, operation: Operation, *, hush: bool = False) -> None:
        """Hand an operation on and note its answer, which may be an unknown outcome."""
        unsure = isinstance(operation, Publish | Acknowledge | Release)
        unsure = unsure and self.chosen.random() < 0.1
        answer = OK if unsure and self.chosen.random() < 0.5 else self.broker.handle(operation)
        if answer.error is not None or hush:
            return
        events = [event for event in answer.events if isinstance(event, Delivered)]
        told = self._tells(operation, events)
        self._holds(operation, told)
        self.said.append((operation, Answer(told, Error("timeout") if unsure else None)))

    def _tells(self, operation: Operation, events: list[Delivered]) -> tuple[Delivered, ...]:
        known = len(self.pending)
        self.pending += events
        own = [at for at, event in enumerate(self.pending) if event.consumer is None]
        at_least = own[0] + 1 if own else 0
        if isinstance(operation, Cancel | CloseChannel):
            at_least = known
        if isinstance(operation, Drain):
            at_least = len(self.pending)
        number = self.chosen.randint(at_least, len(self.pending))
        told, self.pending = self.pending[:number], self.pending[number:]
        return tuple(told if self.claims.event_order == "total" else self._mixed(told))

    def _mixed(self, told: list[Delivered]) -> list[Delivered]:
        """Return events in an order in which each consumer's are still in theirs."""
        names = [event.consumer for event in told]
        self.chosen.shuffle(names)
        theirs = {name: iter([e for e in told if e.consumer == name]) for name in names}
        return [next(theirs[name]) for name in names]

    def _holds(self, operation: Operation, told: tuple[Delivered, ...]) -> None:
        """Track the held deliveries."""
        if isinstance(operation, Acknowledge | Release):
            self.holding.pop(operation.delivery, None)
        channels = {o.consumer: o for o, _ in self.said if isinstance(o, Consume)}
        for event in told:
            subscriber = channels.get(event.consumer or "")
            if subscriber is None or subscriber.mode == "acknowledge":
                self.holding[event.delivery] = "ch0" if subscriber is None else subscriber.channel
        if isinstance(operation, CloseChannel):
            closed = operation.channel
            self.holding = {d: channel for d, channel in self.holding.items() if channel != closed}


def spoilt(conversation: list[Told], chosen: random.Random) -> list[Told]:
    """Return the conversation with one or two lies in it, about events only."""
    told = [(at, event) for at, (_, answer) in enumerate(conversation) for event in answer.events]
    lists = [list(answer.events) for _, answer in conversation]
    messages = [o.message.id for o, _ in conversation if isinstance(o, Publish)]
    for _ in range(chosen.randint(1, 2) if told else 0):
        at, event = chosen.choice(told)
        if event not in lists[at]:
            continue
        assert isinstance(event, Delivered)
        where = lists[at].index(event)
        lies = (
            "leave out",
            "swap",
            "later",
            "later",
            "earlier",
            "earlier",
            "other message",
            "flag",
        )
        match chosen.choice(lies):
            case "leave out":
                del lists[at][where]
            case "swap":
                chosen.shuffle(lists[at])
            case "later" if event.consumer is not None and at + 1 < len(lists):
                lists[chosen.randint(at + 1, len(lists) - 1)].insert(0, lists[at].pop(where))
            case "earlier" if event.consumer is not None and at > 3:
                lists[chosen.randint(3, at - 1)].append(lists[at].pop(where))
            case "other message":
                other = chosen.choice(messages)
                lists[at][where] = msgspec.structs.replace(event, message=other)
            case _:
                lists[at][where] = msgspec.structs.replace(event, redelivered=not event.redelivered)
    return [
        (operation, Answer(tuple(events), answer.error))
        for (operation, answer), events in zip(conversation, lists, strict=True)
    ]


def histories(number: int, claims: Capabilities) -> Iterator[list[Told]]:
    """Yield random small conversations, the same in each run, half of them spoilt."""
    for seed in range(number):
        chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
        conversation = Teller(chosen, claims).conversation(chosen.randint(3, 8))
        yield spoilt(conversation, chosen) if seed % 2 else conversation


# The comparison.


@dataclass(frozen=True)
class Verdict:
    """The drain at which a conversation is refused, if any, and the broken recommendations."""

    refused_at: int | None
    departures: tuple[tuple[str, ...], ...] = ()


def of_the_oracle(conversation: list[Told], claims: Capabilities) -> tuple[Verdict, str]:
    """Return the oracle's verdict, and the requirement that it names."""
    oracle = Oracle(claims)
    departures: list[tuple[str, ...]] = []
    for operation, answer in conversation:
        found = oracle.observe(operation, answer)
        for breach in found:
            if not goes_on(breach):
                return Verdict(len(departures), tuple(departures)), breach.requirement
        if isinstance(operation, Drain):
            departures.append(tuple(breach.requirement for breach in found))
    return Verdict(None, tuple(departures)), ""


def differences(number: int, claims: Capabilities) -> tuple[list[str], Counter[str]]:
    """Return where oracle and naive truth differ, and how often each requirement was broken."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for each, conversation in enumerate(histories(number, claims)):
        naive = Naive(conversation, claims)
        refused_at = naive.refuses()
        truth = Verdict(refused_at, tuple(map(tuple, naive.departed)))
        try:
            verdict, named = of_the_oracle(conversation, claims)
        except AssertionError as error:
            found.append(f"history {each}: {error}")
            continue
        seen[named or "accepted"] += 1
        if verdict != truth:
            found.append(f"history {each}: {verdict} ({named}), in truth {truth}")
        elif named and named not in naive.blamed:
            found.append(f"history {each}: {named}, in truth one of {sorted(naive.blamed)}")
    return found, seen


@pytest.mark.parametrize("claims", [CLAIMS, PER_CONSUMER], ids=["total", "per-consumer"])
def test_the_oracle_refuses_what_is_lawful_in_no_order_and_nothing_else(
    claims: Capabilities,
) -> None:
    found, seen = differences(200, claims)
    assert found == []
    # The comparison is worth something: many histories are lawful, and many promises are broken.
    assert seen.pop("accepted") > 100
    assert len(seen) > 7


def test_a_spoilt_history_differs_from_the_one_that_was_told() -> None:
    for seed in range(1, 20):
        chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
        conversation = Teller(chosen, CLAIMS).conversation(6)
        wrong = spoilt(conversation, chosen)
        assert [operation for operation, _ in wrong] == [operation for operation, _ in conversation]


def forgetful(window: EventWindow, *_: object) -> EventWindow:
    """Keep the last row alone: whatever was withheld is believed to have happened last."""
    return EventWindow((Row(window.rows[-1].cases),), window.floating)


def hoarding(window: EventWindow, *_: object) -> EventWindow:
    """Keep every row, but not the set of consumers without outstanding events."""
    return EventWindow(window.rows, window.floating)


def careless(*_: object) -> bool:
    """Ignore the order: an event told before an operation may have happened after it."""
    return False


@pytest.mark.parametrize("twin", [forgetful, hoarding])
def test_a_window_that_forgets_is_found_out(
    monkeypatch: pytest.MonkeyPatch, twin: Callable[..., EventWindow]
) -> None:
    monkeypatch.setattr(EventWindow, "trimmed", twin)
    found, _ = differences(60, CLAIMS)
    assert found


def test_a_search_that_puts_events_anywhere_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Search, "_owes", careless)
    found, _ = differences(120, PER_CONSUMER)
    assert found
