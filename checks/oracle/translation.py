"""Translation: an operation and its answer become instructions to the oracle's window.

Translation never reads the window: the instructions follow from the operation, the answer and the
bindings alone. So all oracles with the same bindings share one translation (`step_cache.py`).

The file also states the protocol's own rules on the interface (driver protocol 1): what an answer
may carry, and which operations must succeed (`does-what-it-claims`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from brokerproof.checks.oracle import operation_steps
from brokerproof.checks.oracle.breaches import Breach, Broken, Unfollowable
from brokerproof.checks.oracle.contracts import CORE
from brokerproof.checks.oracle.obligations import (
    is_let_in,
    may_be_full,
    must_be_refused,
    must_succeed,
)
from brokerproof.checks.oracle.operation_steps import leaves_by_consumer
from brokerproof.checks.oracle.possibilities import (
    Rules,
    Step,
    alternatives,
)
from brokerproof.checks.trace.bindings import MODES, Bindings, Held
from brokerproof.checks.trace.leases import given, held_by, told_over
from brokerproof.models.contract.core import Channel, Consumer, Entry, Queue
from brokerproof.models.contract.core_state import Group
from brokerproof.spec.protocol.answers import (
    Accepted,
    Answer,
    ConsumerClosed,
    Delivered,
    Event,
    LeaseExpired,
    QueueDeleted,
)
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Drain,
    Extend,
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

Instruction: TypeAlias = Literal[
    "begin_anew",
    "forget_all_but_the_last",
    "grow",
    "maybe",
    "nothing_earlier",
    "place",
    "rest",
    "take",
    "tells_all_before",
    "trim",
]
"""A method of `Oracle`."""

Line: TypeAlias = tuple[Bindings, Instruction, tuple[object, ...]]
"""An instruction with its arguments, and the bindings at that time."""


@dataclass(frozen=True, slots=True)
class Program:
    """The instructions for an oracle, the bindings afterwards, and what ends the run, if so."""

    lines: tuple[Line, ...]
    bindings: Bindings
    unplaced: tuple[str, ...]
    exercised: Counter[str]
    outcomes: Counter[tuple[str, bool]]
    broken: Breach | None
    unfollowable: str | None


class Translator:
    """Translates one operation and its answer, starting from given bindings.

    `unplaced` are the messages whose publish may still happen. With `in_order`, events are told in
    the order in which they happened.
    """

    __slots__ = ("bindings", "exercised", "in_order", "lines", "outcomes", "rules", "unplaced")

    def __init__(
        self, rules: Rules, bindings: Bindings, unplaced: tuple[str, ...], *, in_order: bool
    ) -> None:
        self.rules, self.bindings, self.unplaced, self.in_order = (
            rules,
            bindings,
            unplaced,
            in_order,
        )
        self.exercised: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, bool]] = Counter()
        self.lines: list[Line] = []

    def program(self, operation: Operation, answer: Answer) -> Program:
        """Return the program for an operation and its answer."""
        broken = unfollowable = None
        try:
            self._operation(operation, answer)
        except Broken as error:
            broken = error.breach
        except Unfollowable as error:
            unfollowable = str(error)
        return Program(
            tuple(self.lines),
            self.bindings,
            self.unplaced,
            self.exercised,
            self.outcomes,
            broken,
            unfollowable,
        )

    def _operation(self, operation: Operation, answer: Answer) -> None:
        self.exercised["protocol"] += 1
        refusable = must_be_refused(operation, self.bindings)
        if refusable:
            self.exercised["refuses-what-it-must"] += 1
            if answer.ok:
                what = f"{name_of(operation)} to be refused: {refusable}"
                _break("refuses-what-it-must", f"{name_of(operation)} was ok", what)
        if isinstance(operation, Consume) and not is_let_in(operation, self.bindings):
            self.exercised["exclusive-is-alone"] += 1
        if must_succeed(operation, self.bindings):
            self.outcomes[name_of(operation), answer.ok] += 1
            self.exercised["does-what-it-claims"] += answer.ok
        before, after = operation_steps.events_around(
            operation, answer, self.bindings, in_order=self.in_order
        )
        if answer.ok and not self.in_order and leaves_by_consumer(operation, self.bindings):
            before, after = self._leave_one_by_one(operation, answer)
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
        if answer.error is not None and answer.error.code == "crashed" and not self.bindings.down:
            self._operate(operation_steps.own_crash(operation, answer, self.bindings))
            self.bindings = operation_steps.bindings_after(Crash(), self.bindings)
            self._note("forget_all_but_the_last")
        if isinstance(operation, CloseChannel) and answer.error is None:
            # Messages told with its answer were delivered before the closing, and released by it.
            self.bindings = self.bindings.without_channel(operation.channel)
        if isinstance(operation, Drain) and answer.ok:
            self._note("rest")
            for message in sorted(self.bindings.untold):
                was = f"the lease of {message} ended, and no event says so"
                _break("lease-end-is-told", was, f"an event lease_expired of {message}")
            self._maybe(operation_steps.leases_that_may_end(self.bindings))
            self.unplaced = ()
            return
        if isinstance(operation, Cancel | CloseChannel) and answer.ok:
            self._note("tells_all_before", operation)
        self._note("trim")

    def _leave_one_by_one(
        self, operation: CloseChannel, answer: Answer
    ) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
        """Let the consumers of a channel leave in their order; return the other events."""
        leavers, others = operation_steps.told_to_leavers(operation, answer, self.bindings)
        for name, told in leavers:
            for event in told:
                self._event(event)
            steps, after = operation_steps.leaving(name, self.bindings)
            for step in steps:
                self._operate(step)
            self.bindings = after
        return (), others

    # What an operation does.

    def _done(self, operation: Operation, answer: Answer) -> None:
        match operation:
            case Declare():
                if operation.queue not in self.bindings.queues:
                    self._grow(self.bindings.with_queue(operation), Queue)
                elif self.bindings.may_be_gone(operation.queue):
                    raise Unfollowable(f"{operation.queue} may be a new queue, or the same")
            case Get():
                self._get(operation, answer)
            case Publish() if answer.parked:
                waits = {operation.message.id: (operation, self.bindings.now)}
                self.bindings = self.bindings.changed(parked=self.bindings.parked | waits)
            case Restart():
                self.bindings = self.bindings.changed(down=False)
            case Reset():
                self._note("begin_anew")
                self.bindings, _ = Bindings.empty(self.bindings.claims, self.rules.contract)
                self.unplaced = ()
            case _:
                self._grow_names(operation)
                for step in operation_steps.steps_of(operation, self.bindings):
                    self._operate(step)
                self.bindings = operation_steps.bindings_after(operation, self.bindings)
                if isinstance(operation, Crash):
                    self._note("forget_all_but_the_last")
                if isinstance(operation, Advance):
                    self._maybe(operation_steps.leases_that_may_end(self.bindings))

    def _not_done(self, operation: Operation, answer: Answer) -> None:
        assert answer.error is not None
        by_message = self.bindings.claims.settle_by == "message"
        if isinstance(operation, Acknowledge | Release | Reject | Extend) and not by_message:
            known = operation.delivery in self.bindings.held
            for step in () if known else operation_steps.steps_of(operation, self.bindings):
                self._operate(step)
        if isinstance(operation, Publish) and may_be_full(operation, self.bindings):
            self._operate(("refuse_publish", (self.bindings.queues[operation.queue],)))
        if must_succeed(operation, self.bindings):
            was = f"{name_of(operation)} was answered {answer.error.code} ({answer.error.message})"
            if operation_steps.was_settled_late(operation, self.bindings):
                _break("lease-is-over", was, "the holder of the new lease to be let settle")
            _break("does-what-it-claims", was, f"{name_of(operation)} to be carried out")

    def _cut_off(self, operation: Operation, answer: Answer) -> None:
        """Follow an operation during which the broker went down: it has happened or not."""
        if isinstance(operation, operation_steps.CERTAIN):
            self._maybe_done(operation)
        elif isinstance(operation, Purge):
            queue = self.bindings.queues[operation.queue]
            entries = self.bindings.messages.values()
            self._maybe(("drop_in_a_crash", (queue, entry)) for entry in entries)
        elif answer.events and not isinstance(operation, Drain):
            # The events show that it has happened.
            self._done(operation, answer)

    def _maybe_done(self, operation: Operation) -> None:
        if isinstance(operation, Consume) and self.rules is CORE:
            pass
        elif not isinstance(operation, operation_steps.MAY_FLOAT):
            raise Unfollowable(f"{name_of(operation)} has no certain outcome")
        published = operation.message.id if isinstance(operation, Publish) else None
        self._grow_names(operation)
        steps = operation_steps.steps_of(operation, self.bindings)
        if len(steps) > 1:
            raise Unfollowable(f"{name_of(operation)} has no certain outcome")
        self._maybe(steps)
        self.bindings = operation_steps.with_doubts_about(operation, self.bindings)
        if published is not None and published in self.bindings.messages:
            self.unplaced = (*self.unplaced, published)

    def _grow_names(self, operation: Operation) -> None:
        """Add the names that an operation uses for the first time to the bindings."""
        match operation:
            case Publish(queue=queue) if queue in self.bindings.queues:
                self._arrive(operation)
            case Consume(consumer=consumer) if consumer not in self.bindings.consumers:
                wanted = operation.queues or (operation.queue,)
                if all(queue in self.bindings.queues for queue in wanted):
                    self._grow_channel(operation.channel)
                    self._grow(self.bindings.with_consumer(operation), Consumer)
            case SetCredit(channel=channel):
                if channel is not None:
                    self._grow_channel(channel)
                if channel is not None or operation.bytes is not None:
                    self.bindings = self.bindings.changed(sized=True)

    def _arrive(self, publish: Publish) -> None:
        grouped = self.bindings.with_group(publish)
        if grouped is not self.bindings:
            self._grow(grouped, Group)
        self._grow(self.bindings.with_message(publish, self.unplaced), Entry)

    def _get(self, operation: Get, answer: Answer) -> None:
        self._grow_channel(operation.channel)
        bindings, getter = self.bindings.with_getter(operation)
        if bindings is not self.bindings:
            self._grow(bindings, Consumer)
        own = [e for e in answer.events if isinstance(e, Delivered) and e.consumer is None]
        if len(own) > 1:
            _break("protocol", "one get was answered with two deliveries")
        if not own:
            self._operate(("get_nothing", (getter,)))
            return
        entry = _entry_of(own[0], (self.bindings.queues[operation.queue],), self.bindings)
        holds = held_by(self.bindings, own[0].queue, entry, operation.channel)
        self._operate(("get", (getter, entry, int(own[0].redelivered))), own[0])
        self._note("nothing_earlier", own[0])
        if _tells_a_count(own[0], self.bindings):
            self._operate(("tell_count", (entry, own[0].count or 0)), own[0])
        self._deliver(own[0], holds if operation.mode == "acknowledge" else None)

    # What an event says.

    def _event(self, event: Event) -> None:
        match event:
            case Delivered(consumer=None):
                _break("protocol", "a delivery without a consumer outside of a get")
            case Delivered(consumer=str(consumer)):
                self._delivered(event, consumer)
            case Accepted(message=message) if self.bindings.can_be_accepted(message):
                self._arrive(self.bindings.parked[message][0])
                self._operate(("parked_is_taken", ()))
                self._operate(("publish", (self.bindings.messages[message],)))
            case ConsumerClosed(consumer=consumer) if (
                self.rules is not CORE and consumer in self.bindings.consumers
            ):
                # Only deliveries are told by the end of their channel at the latest (rule 2).
                element = self.bindings.element_of(consumer)
                stream = _NO_CONSUMER if self.in_order else element
                self._note("place", stream, ("consumer_closed", (element,)))
                self.bindings = self.bindings.without_consumer(consumer)
            case QueueDeleted(queue=queue) if (
                queue in self.bindings.queues and self.rules is not CORE
            ):
                step = ("queue_deleted", (self.bindings.queues[queue],))
                self._note("place", _NO_CONSUMER, step)
                self.bindings = self.bindings.without_queue(queue)
            case LeaseExpired(message=message) if (
                self.bindings.claims.lease == "told" and message in self.bindings.messages
            ):
                entry = self.bindings.messages[message]
                self._note("place", _NO_CONSUMER, ("lease_expired", (entry,)))
                self.bindings = told_over(self.bindings, message)
                self.exercised["lease-end-is-told"] += 1
            case _:
                _break("protocol", "an event that nothing claimed could have caused")

    def _delivered(self, event: Delivered, consumer: str) -> None:
        subscriber = self.bindings.consumers.get(consumer)
        if subscriber is None:
            _break("only-to-subscribers", f"{consumer} never subscribed")
        entry = _entry_of(event, subscriber.homes, self.bindings)
        mode = self.bindings.frame.rows[self.rules.contract.row_of("mode")][subscriber.element]
        action = "browse" if mode == _BROWSE else "deliver"
        if action == "deliver" and self.bindings.ranked:
            action = "deliver_by_rank"
        step = action, (subscriber.element, entry, int(event.redelivered))
        self._note("place", subscriber.element, step, event)
        if action != "browse" and _tells_a_count(event, self.bindings):
            self._note(
                "place", subscriber.element, ("tell_count", (entry, event.count or 0)), event
            )
        holds = held_by(self.bindings, event.queue, entry, subscriber.channel, consumer)
        self._deliver(event, holds if mode == _ACKNOWLEDGE else None)

    def _deliver(self, event: Delivered, held: Held | None) -> None:
        if event.delivery in self.bindings.deliveries:
            _break("protocol", f"delivery id {event.delivery} was used twice")
        self.bindings = given(self.bindings, event, held)

    def _operate(self, step: Step, event: Delivered | None = None) -> None:
        for name, _ in alternatives(step):
            if name and name not in self.rules.contract.actions:
                raise Unfollowable(f"the core of the contract does not speak of {name}")
        self._maybe(operation_steps.drops_in(step, self.bindings))
        self._note("take", step, event)

    def _maybe(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._note("maybe", step)

    def _grow_channel(self, name: str) -> None:
        if name not in self.bindings.channels:
            self._grow(self.bindings.with_channel(name), Channel)

    def _grow(
        self, bindings: Bindings, family: type[Channel | Consumer | Entry | Group | Queue]
    ) -> None:
        self._note("grow", bindings, family)
        self.bindings = bindings

    def _note(self, instruction: Instruction, *arguments: object) -> None:
        self.lines.append((self.bindings, instruction, arguments))


def _break(requirement: str, reason: str, expected: str = "") -> NoReturn:
    raise Broken(Breach(requirement, reason, expected=expected))


def _entry_of(event: Delivered, asked: tuple[int, ...], bindings: Bindings) -> int:
    """Return the entry of a delivery to a subscriber of those queues; raises `Broken`."""
    entry = bindings.messages.get(event.message)
    if entry is None:
        _break("nothing-invented", f"{event.message} was never published")
    home = bindings.queue_of_message(event.message)
    if event.queue == bindings.dead_letters_of(home):
        return entry
    # A subscriber of the message's own queue was told another: the broker mixes up queues.
    if event.queue != home and bindings.place_of(event.message)[0] in asked:
        _break("protocol", f"{event.message} of {home} was told as of {event.queue}")
    return entry


_NO_CONSUMER = -1
"""The stream of events that may always have happened earlier."""

_BROWSE, _ACKNOWLEDGE = MODES["browse"], MODES["acknowledge"]


def _tells_a_count(event: Delivered, bindings: Bindings) -> bool:
    """Whether a delivery has to tell a count, and does; raises `Broken` if it does not."""
    asked = bindings.claims.redelivered == "count"
    if asked and event.count is None:
        raise Broken(Breach("protocol", f"{event.message} was delivered without a count"))
    return asked
