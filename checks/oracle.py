"""The oracle: follows a broker by the contract, one operation and answer at a time.

It is a reading of `models/contract.py` and states no promise of its own: operations and events
become actions of the contract, and where an action is impossible in every case that the
observations allow, the label of the guard that is false names the broken requirement. Absence is
judged at `drain` only, and so is everything that events withheld until then could still explain.

What is stated here is the protocol's own fine print (driver protocol 1), which concerns only the
interface: what an answer may carry, and which operations must succeed (`does-what-it-claims`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NoReturn

from brokerproof.checks.attribution import least
from brokerproof.checks.book import CONTRACT, MODES, Book, Held
from brokerproof.checks.breaches import Breach, Moment, Unfollowable
from brokerproof.checks.obligations import must_succeed
from brokerproof.checks.possibilities import (
    Failure,
    Row,
    Rules,
    Step,
    Window,
    ordered,
)
from brokerproof.checks.step_conformance import Watch
from brokerproof.checks.streams import Streams, judged
from brokerproof.models.contract import Channel, Consumer, Entry, Queue
from brokerproof.models.language.pointwise import TooManyCases, World
from brokerproof.spec.answers import (
    Accepted,
    Answer,
    ConsumerClosed,
    Delivered,
    Event,
    QueueDeleted,
)
from brokerproof.spec.capabilities import Capabilities
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
    name_of,
)
from brokerproof.spec.requirements import Level, catalogue

# What a broken promise of these leaves behind is known, so the run can be followed beyond it: a
# recommendation changes nothing, and a wrong flag says nothing of where the message is.
RULES = Rules(
    CONTRACT,
    frozenset(r.id for r in catalogue().values() if r.level is Level.SHOULD) | {"redelivered-flag"},
)


ID_CHARACTERS_MAX = 1024
"""The longest id of the protocol (rule 55)."""

_FOLLOWED_IF_UNCERTAIN = (Publish, Consume, Cancel, Acknowledge, Release, Reject, CloseChannel)


class Oracle:
    """What a broker may be in, given all that it was told and has said since its reset."""

    __slots__ = (
        "book",
        "departed",
        "exercised",
        "outcomes",
        "streams",
        "unplaced",
        "watch",
        "window",
    )

    def __init__(self, claims: Capabilities) -> None:
        """Start right after a reset."""
        self.book, world = Book.empty(claims)
        self.window = Window((Row(frozenset(((world, frozenset(), frozenset()),))),))
        self.exercised: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, bool]] = Counter()
        self.unplaced: tuple[str, ...] = ()
        self.departed: tuple[tuple[str, Moment], ...] = ()
        self.streams = Streams() if claims.event_order == "per_consumer" else None
        self.watch = Watch() if claims.inspect else None

    def fork(self) -> Oracle:
        """Return an independent copy, with its exercise and outcomes counted from zero."""
        other = object.__new__(Oracle)
        other.book, other.window, other.unplaced = self.book, self.window, self.unplaced
        other.streams, other.departed = self.streams, self.departed
        other.watch = self.watch and self.watch.fork()
        other.exercised, other.outcomes = Counter(), Counter()
        return other

    def key(self) -> Hashable:
        """Return a value that is equal for oracles that will judge alike, delivery ids aside."""
        book, window = self.book, self.window
        return (
            book.frame,
            window,
            tuple(book.queues),
            tuple(book.channels),
            tuple(book.consumers.items()),
            tuple(book.getters.items()),
            book.active,
            tuple(sorted(book.settled)),
            tuple(sorted((held.entry, held.channel) for held in book.held.values())),
            self.unplaced,
            self.streams,
        )

    def observe(self, operation: Operation, answer: Answer) -> list[Breach]:
        """Follow one operation and its answer; return what was broken, recommendations last.

        After a breach that is not a mere recommendation the oracle has no case left and must not be
        used further. Raises `Unfollowable`.
        """
        try:
            return self._observe(operation, answer)
        except _Broken as broken:
            return [broken.breach]
        except TooManyCases as error:
            raise Unfollowable(str(error)) from error

    def _observe(self, operation: Operation, answer: Answer) -> list[Breach]:
        self.exercised["protocol"] += 1
        if must_succeed(operation, self.book):
            self.outcomes[name_of(operation), answer.ok] += 1
            self.exercised["does-what-it-claims"] += answer.ok
        before, after = self._split(operation, answer)
        for event in before:
            self._event(event)
        if answer.error is None:
            self._done(operation, answer)
        elif answer.error.definite or isinstance(operation, Drain):
            self._not_done(operation, answer)
        else:
            self._maybe_done(operation)
        for event in after:
            self._event(event)
        if isinstance(operation, CloseChannel) and answer.error is None:
            # What its answer told was delivered before the closing, and released by it.
            self.book = self.book.without_channel(operation.channel)
        if isinstance(operation, Drain) and answer.ok:
            return self._quiescent()
        if isinstance(operation, Cancel | CloseChannel) and answer.ok:
            self._tells_all_before(operation)
        if self.streams is None:
            self.window = self.window.trimmed(RULES, self.book.frame)
        return []

    # What an operation does.

    def _split(
        self, operation: Operation, answer: Answer
    ) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
        """Return the events that happened before the operation for certain, and the others.

        Only a get's own delivery says where in the list its operation took effect, and only where
        the order of the list is promised. It is left out here: the operation itself tells it.
        """
        if isinstance(operation, Get):
            for index, event in enumerate(answer.events):
                if isinstance(event, Delivered) and event.consumer is None:
                    before, after = answer.events[:index], answer.events[index + 1 :]
                    return (before, after) if self.streams is None else ((), (*before, *after))
        return (), answer.events

    def _done(self, operation: Operation, answer: Answer) -> None:
        match operation:
            case Declare(queue=queue, order=order):
                if queue not in self.book.queues:
                    self._grow(self.book.with_queue(queue, order), Queue)
            case Get():
                self._get(operation, answer)
            case Drain():
                pass
            case Purge() | Delete() | SetCredit() | Crash() | Restart() | Reset():
                raise Unfollowable(f"the contract does not speak of {name_of(operation)} yet")
            case _:
                for step in self._steps(operation):
                    self._operate(step)
                self._settled(operation)

    def _not_done(self, operation: Operation, answer: Answer) -> None:
        assert answer.error is not None
        if isinstance(operation, Acknowledge | Release | Reject):
            for step in self._steps(operation) if operation.delivery not in self.book.held else ():
                self._operate(step)
        if must_succeed(operation, self.book):
            self._break(
                "does-what-it-claims",
                f"{name_of(operation)} was answered {answer.error.code} ({answer.error.message})",
            )

    def _maybe_done(self, operation: Operation) -> None:
        if not isinstance(operation, _FOLLOWED_IF_UNCERTAIN):
            raise Unfollowable(f"{name_of(operation)} has no certain outcome")
        published = operation.message.id if isinstance(operation, Publish) else None
        for step in self._steps(operation):
            if self.streams is None:
                self.window = self.window.maybe(RULES, self.book.frame, step)
            else:
                self.streams = self.streams.with_maybe(step)
        self.book = self.book.with_doubts_about(operation)
        if published is not None and published in self.book.messages:
            self.unplaced = (*self.unplaced, published)

    def _steps(self, operation: Operation) -> tuple[Step, ...]:
        """Return the contract's actions for an operation; grows the book by what it names."""
        match operation:
            case Publish(queue=queue, message=message) if queue in self.book.queues:
                self._grow(self.book.with_message(queue, message), Entry)
                if self.unplaced:
                    self.book = self.book.unordered(message.id, list(self.unplaced))
                return (("publish", (self.book.messages[message.id],)),)
            case Consume(queue=queue, consumer=consumer) if queue in self.book.queues:
                self._grow_channel(operation.channel)
                self._grow(self.book.with_consumer(operation), Consumer)
                return (("consume", (self.book.consumers[consumer],)),)
            case Cancel(consumer=consumer) if consumer in self.book.active:
                return (("cancel", (self.book.consumers[consumer],)),)
            case Acknowledge() | Release() | Reject() if operation.delivery in self.book.held:
                return ((name_of(operation), (self.book.held[operation.delivery].entry,)),)
            case Acknowledge() | Release() | Reject():
                if operation.delivery in self.book.doubtful:
                    raise Unfollowable(f"it is not certain that {operation.delivery} was settled")
                entry = self.book.entry_of_settled(operation.delivery)
                return () if entry is None else (("settle_again", (entry,)),)
            case CloseChannel(channel=channel) if channel in self.book.channels:
                return (("close_channel", (self.book.channels[channel],)),)
            case _:
                return ()

    def _settled(self, operation: Operation) -> None:
        match operation:
            case Acknowledge() | Release() | Reject():
                self.book = self.book.without_delivery(operation.delivery)
            case CloseChannel(channel=channel):
                self.book = self.book.without_channel(channel)
            case Cancel(consumer=consumer):
                self.book = self.book.without_consumer(consumer)
            case _:
                pass

    def _get(self, operation: Get, answer: Answer) -> None:
        self._grow_channel(operation.channel)
        book, who = self.book.with_getter(operation.queue, operation.channel, operation.mode)
        if book is not self.book:
            self._grow(book, Consumer)
        own = [e for e in answer.events if isinstance(e, Delivered) and e.consumer is None]
        if len(own) > 1:
            self._break("protocol", "one get was answered with two deliveries")
        if not own:
            self._operate(("get_nothing", (who,)))
            return
        entry = self._entry(own[0], operation.queue)
        holds = Held(entry, operation.channel) if operation.mode == "acknowledge" else None
        self._operate(("get", (who, entry, int(own[0].redelivered))), own[0])
        self._nothing_earlier(own[0])
        self._deliver(own[0], holds)

    # What an event says.

    def _event(self, event: Event) -> None:
        match event:
            case ConsumerClosed() | QueueDeleted() | Accepted():
                self._break("protocol", "an event that nothing claimed could have caused")
            case Delivered(consumer=None):
                self._break("protocol", "a delivery without a consumer outside of a get")
            case Delivered(consumer=str(consumer)):
                who = self.book.consumers.get(consumer)
                if who is None:
                    self._break("only-to-subscribers", f"{consumer} never subscribed")
                entry = self._entry(event, self.book.queue_of_consumer[consumer])
                mode = self.book.frame.rows[_MODE][who]
                action = "browse" if mode == _BROWSE else "deliver"
                step = (action, (who, entry, int(event.redelivered)))
                self._place(who, step, event)
                channel = self.book.channel_of_consumer[consumer]
                self._deliver(event, Held(entry, channel) if mode == _ACKNOWLEDGE else None)

    def _entry(self, event: Delivered, asked: str) -> int:
        """Return the entry of a delivery to somebody who asked for messages of that queue."""
        entry = self.book.messages.get(event.message)
        if entry is None:
            self._break("nothing-invented", f"{event.message} was never published")
        home = self.book.queue_of_message[event.message]
        # Told as of another queue to somebody who asked for that one is the broker's own mix-up.
        if event.queue != home and asked == home:
            self._break("protocol", f"{event.message} of {home} was told as of {event.queue}")
        return entry

    def _deliver(self, event: Delivered, held: Held | None) -> None:
        if event.delivery in self.book.deliveries:
            self._break("protocol", f"delivery id {event.delivery} was used twice")
        if not 1 <= len(event.delivery) <= ID_CHARACTERS_MAX:
            self._break("protocol", f"a delivery id of {len(event.delivery)} characters")
        self.book = self.book.with_delivery(event.delivery, held)

    # The window.

    def _nothing_earlier(self, event: Delivered) -> None:
        """Forget the rows before the last: a get's own delivery precedes all told after it."""
        if self.streams is not None:
            return
        window = self.window
        if not window.rows[-1].cases:
            self._fail(window.why_last_row_is_empty(RULES, self.book.frame), event)
        self.window = Window((Row(window.rows[-1].cases),), window.floating)

    def _operate(self, step: Step, event: Delivered | None = None) -> None:
        if self.streams is not None:
            self.streams = self.streams.with_operation(step)
            return
        self._count(step)
        window, failure = self.window.operate(RULES, self.book.frame, step)
        if failure is not None:
            self._fail(failure, event)
        self._go_on(window, step)

    def _place(self, who: int, step: Step, event: Delivered) -> None:
        if self.streams is not None:
            self.streams = self.streams.with_event(who, step)
            return
        self._count(step)
        floor = dict(self.window.floors).get(who, 0)
        window, failure = self.window.place(RULES, self.book.frame, step, floor)
        if failure is not None:
            self._fail(failure, event)
        self._go_on(window, step)

    def _go_on(self, window: Window, step: Step) -> None:
        """Take up the next window, and remember where a tolerated label was not kept."""
        for label in window.departures() - self.window.departures():
            moment = Moment(self.book, self.window, step)
            self.departed = (*self.departed, (label, moment))
        self.window = window

    def _ordered(self, streams: Streams) -> None:
        """Find an order of what was told since the last rest, and go on from where it ends."""
        browsing = bool(_BROWSE in self.book.frame.rows[_MODE])
        cases = self.window.rows[-1].cases
        found = judged(streams, cases, RULES, self.book.frame, every_order=browsing)
        self.streams = Streams()
        if found.failure is not None:
            self.window = Window((Row(found.stuck_in),))
            self._fail(found.failure, None)
        for step, before in found.order:
            self.window = Window((Row(before),))
            self._count(step)
            after, _ = RULES.apply(self.book.frame, before, step)
            self._go_on(Window((Row(after),)), step)
        self.window = Window((Row(found.cases),))

    def _quiescent(self) -> list[Breach]:
        if self.streams is not None:
            self._ordered(self.streams)
        last = self.window.rows[-1]
        if not last.cases:
            self._fail(self.window.why_last_row_is_empty(RULES, self.book.frame), None)
        self._count(("quiesce", ()))
        cases, blames = RULES.apply(self.book.frame, last.cases, ("quiesce", ()))
        if not cases:
            self._fail(Failure(("quiesce", ()), least(blames)), None)
        departed = frozenset.intersection(*(labels for _, labels, _ in cases))
        nothing: frozenset[str] = frozenset()
        none_taken: frozenset[Step] = frozenset()
        settled = frozenset((world, nothing, none_taken) for world, _, _ in cases)
        self.window = Window((Row(settled),))
        moments, self.departed, self.unplaced = dict(self.departed), (), ()
        return [_departure(label, moments.get(label)) for label in sorted(departed)]

    def _tells_all_before(self, operation: Cancel | CloseChannel) -> None:
        gone = (
            [self.book.consumers[operation.consumer]]
            if isinstance(operation, Cancel) and operation.consumer in self.book.consumers
            else [
                self.book.consumers[name]
                for name, channel in self.book.channel_of_consumer.items()
                if isinstance(operation, CloseChannel) and channel == operation.channel
            ]
        )
        if self.streams is not None:
            self.streams = self.streams.with_nothing_older_of(gone)
            return
        row = len(self.window.rows) - 1
        if row and gone:
            floors = dict(self.window.floors) | dict.fromkeys(gone, row)
            window = self.window
            self.window = Window(window.rows, window.floating, tuple(sorted(floors.items())))

    def _grow_channel(self, name: str) -> None:
        if name not in self.book.channels:
            self._grow(self.book.with_channel(name), Channel)

    def _grow(self, book: Book, family: type[Channel | Consumer | Entry | Queue]) -> None:
        """Let every case have the element that the book has got."""

        def grown(world: World) -> World:
            return CONTRACT.grown(world, family)

        rows = tuple(
            Row(frozenset((grown(w), labels, taken) for w, labels, taken in row.cases), row.step)
            for row in self.window.rows
        )
        self.book = book
        self.window = Window(rows, self.window.floating, self.window.floors)

    # Judging.

    def _count(self, step: Step) -> None:
        """Count the situations that a step exercises, in the latest case there is."""
        for row in reversed(self.window.rows):
            for world, _, _ in ordered(row.cases)[:1]:
                self.exercised.update(CONTRACT.exercised(self.book.frame, world, step[0], step[1]))
                return

    def _fail(self, failure: Failure, event: Delivered | None) -> None:
        labels = [label for label in failure.blame if label]
        if not labels:
            raise AssertionError(f"{failure.step} is impossible, and no promise says so")
        overdue = self._names({e for label in labels for e in failure.blame[label]})
        own = () if event is None or event.message in overdue else (event.message,)
        moment = Moment(self.book, self.window, failure.step)
        witnesses = (*overdue, *own)
        raise _Broken(
            Breach(labels[0], failure.step[0], witnesses, overdue, tuple(labels[1:]), moment=moment)
        )

    def _names(self, entries: set[int]) -> tuple[str, ...]:
        return tuple(self.book.name_of_entry(entry) for entry in sorted(entries))

    def _break(self, requirement: str, reason: str) -> NoReturn:
        raise _Broken(Breach(requirement, reason))


def _departure(label: str, moment: Moment | None) -> Breach:
    """Return the breach that the run could be followed beyond, with the entry that shows it."""
    reason = "not kept in any order of the events"
    if moment is None:
        return Breach(label, reason)
    shown = moment.book.name_of_entry(moment.step[1][1])
    return Breach(label, reason, (shown,), moment=moment)


class _Broken(Exception):
    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.requirement)
        self.breach = breach


_MODE = CONTRACT.row_of("mode")
_BROWSE, _ACKNOWLEDGE = MODES["browse"], MODES["acknowledge"]
