"""The oracle: follows a broker by the contract, one operation and answer at a time.

It is a reading of `models/contract/core.py` and states no promise of its own: operations and events
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

from brokerproof.checks.inside.step_conformance import Watch
from brokerproof.checks.oracle import operation_steps
from brokerproof.checks.oracle.bindings import MODES, Book, Held
from brokerproof.checks.oracle.breaches import Breach, Broken, Moment, Unfollowable
from brokerproof.checks.oracle.contracts import CORE, rules_for
from brokerproof.checks.oracle.obligations import is_let_in, must_be_refused, must_succeed
from brokerproof.checks.oracle.possibilities import (
    Cases,
    Failure,
    Fate,
    Row,
    Rules,
    Step,
    Window,
    first_of,
)
from brokerproof.checks.oracle.resets import begin_anew
from brokerproof.checks.oracle.resting import come_to_rest
from brokerproof.checks.oracle.streams import Streams
from brokerproof.models.contract.core import Channel, Consumer, Entry, Queue
from brokerproof.models.language.read.pointwise import TooManyCases
from brokerproof.spec.protocol.answers import (
    Accepted,
    Answer,
    ConsumerClosed,
    Delivered,
    Event,
    QueueDeleted,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
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


class Oracle:
    """What a broker may be in, given all that it was told and has said since its reset."""

    __slots__ = (
        "actions",
        "book",
        "departed",
        "exercised",
        "outcomes",
        "rules",
        "streams",
        "unplaced",
        "watch",
        "window",
    )

    def __init__(self, claims: Capabilities, *, beyond_the_core: bool | None = None) -> None:
        """Start right after a reset; `rules_for` says which contract is followed."""
        self.rules: Rules = rules_for(claims, beyond_the_core=beyond_the_core)
        self.book, world = Book.empty(claims, self.rules.contract)
        self.window = Window((Row(frozenset(((world, frozenset(), frozenset()),))),))
        self.exercised: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, bool]] = Counter()
        self.actions: Counter[tuple[str, Fate]] = Counter()
        self.unplaced: tuple[str, ...] = ()
        self.departed: tuple[tuple[str, Moment], ...] = ()
        self.streams = Streams() if claims.event_order == "per_consumer" else None
        self.watch = Watch() if claims.inspect else None

    def fork(self) -> Oracle:
        """Return an independent copy, with all that it counts counted from zero."""
        other = object.__new__(Oracle)
        other.rules = self.rules
        other.book, other.window, other.unplaced = self.book, self.window, self.unplaced
        other.streams, other.departed = self.streams, self.departed
        other.watch = self.watch and self.watch.fork()
        other.exercised, other.outcomes, other.actions = Counter(), Counter(), Counter()
        return other

    def key(self) -> Hashable:
        """Return a value that is equal for oracles that will judge alike, delivery ids aside."""
        return self.book.key(), *self.key_beside_the_book()

    def key_beside_the_book(self) -> tuple[Hashable, ...]:
        """Return the rest of the key: a search keeps that of a book, which many oracles share."""
        return self.window, self.unplaced, self.streams

    def observe(self, operation: Operation, answer: Answer) -> list[Breach]:
        """Follow one operation and its answer; return what was broken, recommendations last.

        After a breach that is not a mere recommendation the oracle has no case left and must not be
        used further. Raises `Unfollowable`.
        """
        try:
            return self._observe(operation, answer)
        except Broken as broken:
            return [broken.breach]
        except TooManyCases as error:
            raise Unfollowable(str(error)) from error

    def _observe(self, operation: Operation, answer: Answer) -> list[Breach]:
        self.exercised["protocol"] += 1
        refusable = must_be_refused(operation, self.book)
        if refusable:
            self.exercised["refuses-what-it-must"] += 1
            if answer.ok:
                what = f"{name_of(operation)} to be refused: {refusable}"
                self._break("refuses-what-it-must", f"{name_of(operation)} was ok", what)
        if isinstance(operation, Consume) and not is_let_in(operation, self.book):
            self.exercised["exclusive-is-alone"] += 1
        if must_succeed(operation, self.book):
            self.outcomes[name_of(operation), answer.ok] += 1
            self.exercised["does-what-it-claims"] += answer.ok
        before, after = operation_steps.events_around(
            operation, answer, self.book, in_order=self.streams is None
        )
        for event in before:
            self._event(event)
        if answer.error is None:
            self._done(operation, answer)
        elif answer.error.code == "crashed":
            self._cut_off(operation, answer)
        elif answer.error.definite or isinstance(operation, Drain):
            self._not_done(operation, answer)
        else:
            self._maybe_done(operation)
        for event in after:
            self._event(event)
        if answer.error is not None and answer.error.code == "crashed" and not self.book.down:
            self._operate(operation_steps.own_crash(operation, answer, self.book))
            self._settled(Crash())
        if isinstance(operation, CloseChannel) and answer.error is None:
            # What its answer told was delivered before the closing, and released by it.
            self.book = self.book.without_channel(operation.channel)
        if isinstance(operation, Drain) and answer.ok:
            return self._rest()
        if isinstance(operation, Cancel | CloseChannel) and answer.ok:
            self._tells_all_before(operation)
        self._trim()
        return []

    # What an operation does.

    def _done(self, operation: Operation, answer: Answer) -> None:
        match operation:
            case Declare():
                if operation.queue not in self.book.queues:
                    self._grow(self.book.with_queue(operation), Queue)
                elif self.book.may_be_gone(operation.queue):
                    raise Unfollowable(f"{operation.queue} may be a new queue, or the same")
            case Get():
                self._get(operation, answer)
            case Publish() if answer.parked:
                waits = {operation.message.id: (operation, self.book.now)}
                self.book = self.book.changed(parked=self.book.parked | waits)
            case Restart():
                self.book = self.book.changed(down=False)
            case Reset():
                self._begin_anew()
            case _:
                self._grow_names(operation)
                for step in operation_steps.steps_of(operation, self.book):
                    self._operate(step)
                self._settled(operation)

    def _not_done(self, operation: Operation, answer: Answer) -> None:
        assert answer.error is not None
        if isinstance(operation, Acknowledge | Release | Reject):
            known = operation.delivery in self.book.held
            for step in () if known else operation_steps.steps_of(operation, self.book):
                self._operate(step)
        if must_succeed(operation, self.book):
            self._break(
                "does-what-it-claims",
                f"{name_of(operation)} was answered {answer.error.code} ({answer.error.message})",
                f"{name_of(operation)} to be carried out",
            )

    def _cut_off(self, operation: Operation, answer: Answer) -> None:
        """Follow an operation during which the broker went down: it has happened or not."""
        if isinstance(operation, operation_steps.CERTAIN):
            self._maybe_done(operation)
        elif isinstance(operation, Purge):
            for entry in self.book.messages.values():
                self._float(("drop_in_a_crash", (self.book.queues[operation.queue], entry)))
        elif answer.events and not isinstance(operation, Drain):
            # What was told comes of it.
            self._done(operation, answer)

    def _maybe_done(self, operation: Operation) -> None:
        if isinstance(operation, Consume) and self.rules is CORE:
            pass
        elif not isinstance(operation, operation_steps.MAY_FLOAT):
            raise Unfollowable(f"{name_of(operation)} has no certain outcome")
        published = operation.message.id if isinstance(operation, Publish) else None
        self._grow_names(operation)
        steps = operation_steps.steps_of(operation, self.book)
        if len(steps) > 1:
            raise Unfollowable(f"{name_of(operation)} has no certain outcome")
        for step in steps:
            self._float(step)
        self.book = self.book.with_doubts_about(operation)
        if published is not None and published in self.book.messages:
            self.unplaced = (*self.unplaced, published)

    def _grow_names(self, operation: Operation) -> None:
        """Let the book know what an operation names for the first time."""
        match operation:
            case Publish(queue=queue) if queue in self.book.queues:
                self._arrive(operation)
            case Consume(consumer=consumer) if consumer not in self.book.consumers:
                wanted = operation.queues or (operation.queue,)
                if all(queue in self.book.queues for queue in wanted):
                    self._grow_channel(operation.channel)
                    self._grow(self.book.with_consumer(operation), Consumer)
            case SetCredit(channel=str(channel)):
                self._grow_channel(channel)
                self.book = self.book.changed(sized=True)
            case SetCredit():
                self.book = self.book.changed(sized=self.book.sized or operation.bytes is not None)
            case _:
                pass

    def _arrive(self, publish: Publish) -> None:
        self._grow(self.book.with_message(publish), Entry)
        if self.unplaced:
            self.book = self.book.unordered(publish.message.id, list(self.unplaced))

    def _settled(self, operation: Operation) -> None:
        match operation:
            case Acknowledge() | Release() | Reject():
                self.book = self.book.without_delivery(operation.delivery)
            case CloseChannel(channel=channel):
                self.book = self.book.without_channel(channel)
            case Cancel(consumer=consumer):
                self.book = self.book.without_consumer(consumer)
            case Delete(queue=queue) if queue in self.book.queues:
                self.book = self.book.without_queue(queue)
            case Advance(seconds=seconds):
                self.book = self.book.changed(now=self.book.now + seconds)
            case Crash():
                self.book = self.book.after_crash()
                self._forget_all_but_the_last()

    def _get(self, operation: Get, answer: Answer) -> None:
        self._grow_channel(operation.channel)
        book, who = self.book.with_getter(operation)
        if book is not self.book:
            self._grow(book, Consumer)
        own = [e for e in answer.events if isinstance(e, Delivered) and e.consumer is None]
        if len(own) > 1:
            self._break("protocol", "one get was answered with two deliveries")
        if not own:
            self._operate(("get_nothing", (who,)))
            return
        entry = self._entry(own[0], (operation.queue,))
        holds = Held(entry, operation.channel) if operation.mode == "acknowledge" else None
        self._operate(("get", (who, entry, int(own[0].redelivered))), own[0])
        self._nothing_earlier(own[0])
        self._deliver(own[0], holds)

    # What an event says.

    def _event(self, event: Event) -> None:
        match event:
            case Delivered(consumer=None):
                self._break("protocol", "a delivery without a consumer outside of a get")
            case Delivered(consumer=str(consumer)):
                self._delivered(event, consumer)
            case Accepted(message=message) if self.book.can_be_accepted(message):
                self._arrive(self.book.parked[message][0])
                self._operate(("parked_is_taken", ()))
                self._operate(("publish", (self.book.messages[message],)))
            case ConsumerClosed(consumer=consumer) if (
                self.goes_beyond and consumer in self.book.consumers
            ):
                # Only deliveries are told by the end of their channel at the latest (rule 2).
                who = self.book.element_of(consumer)
                stream = who if self.streams is not None else _NOBODY
                self._place(stream, ("consumer_closed", (who,)))
                self.book = self.book.without_consumer(consumer)
            case QueueDeleted(queue=queue) if queue in self.book.queues and self.goes_beyond:
                step = ("queue_deleted", (self.book.queues[queue],))
                self._place(_NOBODY, step)
                self.book = self.book.without_queue(queue)
            case _:
                self._break("protocol", "an event that nothing claimed could have caused")

    @property
    def goes_beyond(self) -> bool:
        """Whether the whole contract is followed, and not the core alone."""
        return self.rules is not CORE

    def _delivered(self, event: Delivered, consumer: str) -> None:
        taker = self.book.consumers.get(consumer)
        if taker is None:
            self._break("only-to-subscribers", f"{consumer} never subscribed")
        entry = self._entry(event, taker.queues)
        mode = self.book.frame.rows[self.rules.contract.row_of("mode")][taker.element]
        action = "browse" if mode == _BROWSE else "deliver"
        if action == "deliver" and self.book.ranked:
            action = "deliver_by_rank"
        self._place(taker.element, (action, (taker.element, entry, int(event.redelivered))), event)
        self._deliver(event, Held(entry, taker.channel) if mode == _ACKNOWLEDGE else None)

    def _entry(self, event: Delivered, asked: tuple[str, ...]) -> int:
        """Return the entry of a delivery to somebody who asked for messages of those queues."""
        entry = self.book.messages.get(event.message)
        if entry is None:
            self._break("nothing-invented", f"{event.message} was never published")
        home = self.book.queue_of_message(event.message)
        # Told as of another queue to somebody who asked for that one is the broker's own mix-up.
        if event.queue != home and home in asked:
            self._break("protocol", f"{event.message} of {home} was told as of {event.queue}")
        return entry

    def _deliver(self, event: Delivered, held: Held | None) -> None:
        if event.delivery in self.book.deliveries:
            self._break("protocol", f"delivery id {event.delivery} was used twice")
        self.book = self.book.with_delivery(event.delivery, held)

    # The window. Nothing above this line looks at it: `programs.py` relies on that.

    def _trim(self) -> None:
        if self.streams is None:
            self.window = self.window.trimmed(self.rules, self.book.frame)

    def _rest(self) -> list[Breach]:
        return come_to_rest(self)

    def _begin_anew(self) -> None:
        begin_anew(self)

    def _float(self, step: Step) -> None:
        self.actions[step[0], "unknown"] += 1
        if self.streams is None:
            self.window = self.window.maybe(self.rules, self.book.frame, step)
        else:
            self.streams = self.streams.with_maybe(step)

    def _nothing_earlier(self, event: Delivered) -> None:
        """Forget the rows before the last: a get's own delivery precedes all told after it."""
        if self.streams is not None:
            return
        window = self.window
        if not window.rows[-1].cases:
            self.fail(window.why_last_row_is_empty(self.rules, self.book.frame), event)
        self._forget_all_but_the_last()

    def _forget_all_but_the_last(self) -> None:
        self.window = Window((Row(self.window.rows[-1].cases),), self.window.floating)

    def _operate(self, step: Step, event: Delivered | None = None) -> None:
        if step[0] not in self.rules.contract.actions:
            raise Unfollowable(f"the core of the contract does not speak of {step[0]}")
        for drop in operation_steps.drops_in(step, self.book):
            self._float(drop)
        self._take(step, event)

    def _take(self, step: Step, event: Delivered | None) -> None:
        if self.streams is not None:
            self.streams = self.streams.with_operation(step)
            return
        self.count(step)
        window, failure = self.window.operate(self.rules, self.book.frame, step)
        if failure is not None:
            self.fail(failure, event)
        self.go_on(window, step)

    def _place(self, who: int, step: Step, event: Delivered | None = None) -> None:
        if self.streams is not None:
            self.streams = self.streams.with_event(who, step)
            return
        self.count(step)
        floor = dict(self.window.floors).get(who, 0)
        window, failure = self.window.place(self.rules, self.book.frame, step, floor)
        if failure is not None:
            self.fail(failure, event)
        self.go_on(window, step)

    def go_on(self, window: Window, step: Step) -> None:
        """Take up the next window, and remember where a tolerated label was not kept."""
        self.actions[step[0], "ok"] += 1
        departures = window.departures()
        if departures:
            for label in departures - self.window.departures():
                moment = Moment(self.book, self.window, step)
                self.departed = (*self.departed, (label, moment))
        self.window = window

    def _tells_all_before(self, operation: Cancel | CloseChannel) -> None:
        gone = (
            [self.book.element_of(operation.consumer)]
            if isinstance(operation, Cancel) and operation.consumer in self.book.consumers
            else [
                taker.element
                for taker in self.book.consumers.values()
                if isinstance(operation, CloseChannel) and taker.channel == operation.channel
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
        contract = self.rules.contract

        # Rows are often alike, and are many where a broker is slow to tell.
        grown: dict[Cases, Cases] = {}
        for cases in {row.cases for row in self.window.rows}:
            grown[cases] = frozenset((contract.grown(w, family), ls, ts) for w, ls, ts in cases)
        rows = tuple(Row(grown[row.cases], row.step) for row in self.window.rows)
        self.book = book
        self.window = Window(rows, self.window.floating, self.window.floors)

    # Judging.

    def count(self, step: Step) -> None:
        """Count the situations that a step exercises, in the latest case there is."""
        for row in reversed(self.window.rows):
            if row.cases:
                world, _, _ = first_of(row.cases)
                contract, exercised = self.rules.contract, self.exercised
                for label in contract.exercised(self.book.frame, world, step[0], step[1]):
                    exercised[label] += 1
                return

    def fail(self, failure: Failure, event: Delivered | None = None) -> NoReturn:
        """End the run with the promise that a step had to keep, or say that none was named."""
        self.actions[failure.step[0], "impossible"] += 1
        labels = [label for label in failure.blame if label]
        if not labels:
            raise Unfollowable(f"{failure.step[0]} is impossible, and no promise says so")
        overdue = self._names({e for label in labels for e in failure.blame[label]})
        own = () if event is None or event.message in overdue else (event.message,)
        moment = Moment(self.book, self.window, failure.step)
        witnesses = (*overdue, *own)
        raise Broken(
            Breach(labels[0], failure.step[0], witnesses, overdue, tuple(labels[1:]), moment=moment)
        )

    def _names(self, entries: set[int]) -> tuple[str, ...]:
        return tuple(self.book.name_of_entry(entry) for entry in sorted(entries))

    def _break(self, requirement: str, reason: str, expected: str = "") -> NoReturn:
        raise Broken(Breach(requirement, reason, expected=expected))


_NOBODY = -1
"""Whose events may always have happened earlier."""

_BROWSE, _ACKNOWLEDGE = MODES["browse"], MODES["acknowledge"]
