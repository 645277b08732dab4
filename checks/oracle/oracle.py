"""The oracle: it follows a broker by the contract, one operation and answer at a time.

It reads `models/contract/core.py` and states no requirement of its own. Operations and events
become actions of the contract. If an action is impossible in every case that the observations
allow, the label of the false guard names the broken requirement. Absent events are judged at
`drain` only, and so is everything that events withheld until then could still explain.

`translation.py` turns operations and answers into instructions. This file executes them and judges
a broker that has come to rest (driver protocol 1, rule 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NoReturn

from brokerproof.checks.inside.step_conformance import Watch
from brokerproof.checks.oracle.attribution import least
from brokerproof.checks.oracle.breaches import Breach, Broken, Moment, Unfollowable
from brokerproof.checks.oracle.contracts import CORE, rules_for
from brokerproof.checks.oracle.possibilities import (
    ONE_OF,
    Cases,
    EventWindow,
    Failure,
    Fate,
    Row,
    Rules,
    Step,
    alternatives,
    first_of,
)
from brokerproof.checks.oracle.streams import Streams, judged
from brokerproof.checks.oracle.translation import Program, Translator
from brokerproof.checks.trace.bindings import MODES, Bindings
from brokerproof.models.contract.core import Channel, Consumer, Entry, Queue
from brokerproof.models.contract.core_state import Group
from brokerproof.models.language.read.pointwise import TooManyCases
from brokerproof.spec.protocol.answers import (
    Answer,
    Delivered,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Operation,
)


class Oracle:
    """The states that a broker may be in, given all operations and answers since its reset."""

    __slots__ = (
        "actions",
        "bindings",
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
        """Start right after a reset; `rules_for` chooses the contract."""
        self.rules: Rules = rules_for(claims, beyond_the_core=beyond_the_core)
        self.bindings, self.window = self._beginning(claims)
        self.exercised: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, bool]] = Counter()
        self.actions: Counter[tuple[str, Fate]] = Counter()
        self.unplaced: tuple[str, ...] = ()
        self.departed: tuple[tuple[str, Moment], ...] = ()
        self.streams = Streams() if claims.event_order == "per_consumer" else None
        self.watch = Watch() if claims.inspect else None

    def _beginning(self, claims: Capabilities) -> tuple[Bindings, EventWindow]:
        bindings, world = Bindings.empty(claims, self.rules.contract)
        return bindings, EventWindow((Row(frozenset(((world, frozenset(), frozenset()),))),))

    def fork(self) -> Oracle:
        """Return an independent copy, with all counts at zero."""
        other = object.__new__(Oracle)
        other.rules = self.rules
        other.bindings, other.window, other.unplaced = self.bindings, self.window, self.unplaced
        other.streams, other.departed = self.streams, self.departed
        other.watch = self.watch and self.watch.fork()
        other.exercised, other.outcomes, other.actions = Counter(), Counter(), Counter()
        return other

    @property
    def goes_beyond(self) -> bool:
        """Whether the whole contract is followed, and not the core alone."""
        return self.rules is not CORE

    def key(self) -> Hashable:
        """Return a value that is equal for oracles that will judge alike, delivery ids aside."""
        return self.bindings.key(), *self.key_beside_bindings()

    def key_beside_bindings(self) -> tuple[Hashable, ...]:
        """Return the rest of the key; many oracles share the key of their bindings."""
        return self.window, self.unplaced, self.streams

    def observe(self, operation: Operation, answer: Answer) -> list[Breach]:
        """Follow one operation and its answer; return the breaches, recommendations last.

        After a breach that is no mere recommendation the oracle has no case left and must not be
        used further. Raises `Unfollowable`.
        """
        program = self.translated(operation, answer)
        self.exercised.update(program.exercised)
        self.outcomes.update(program.outcomes)
        return self.perform(program)

    def translated(self, operation: Operation, answer: Answer) -> Program:
        """Return the program of an operation and its answer, the same for all equal bindings."""
        in_order = self.streams is None
        translator = Translator(self.rules, self.bindings, self.unplaced, in_order=in_order)
        return translator.program(operation, answer)

    def perform(self, program: Program) -> list[Breach]:
        """Execute a program and return its breaches; the program's own counts are not added.

        Raises `Unfollowable`.
        """
        said: object = []
        try:
            for self.bindings, instruction, arguments in program.lines:
                said = getattr(self, instruction)(*arguments)
        except Broken as broken:
            return [broken.breach]
        except TooManyCases as error:
            raise Unfollowable(str(error)) from error
        if program.unfollowable is not None:
            raise Unfollowable(program.unfollowable)
        if program.broken is not None:
            return [program.broken]
        self.bindings, self.unplaced = program.bindings, program.unplaced
        return said if isinstance(said, list) else []

    # Instructions (`translation.py`).

    def trim(self) -> None:
        """Drop the rows that no later event can concern."""
        if self.streams is None:
            self.window = self.window.trimmed(self.rules, self.bindings.frame)

    def rest(self) -> list[Breach]:
        """Judge a broker at rest; return the breaches that the run could be followed beyond."""
        if self.streams is not None:
            self._order(self.streams)
        last = self.window.rows[-1]
        if not last.cases:
            self.fail(self.window.why_last_row_is_empty(self.rules, self.bindings.frame))
        cases = last.cases
        for step in self._said_by_resting():
            self.count(step)
            following, blames = self.rules.apply(self.bindings.frame, cases, step)
            if not following:
                self.fail(Failure(step, least(blames)))
            self.actions[step[0], "ok"] += 1
            cases = following
        departed = frozenset.intersection(*(labels for _, labels, _ in cases))
        nothing: frozenset[str] = frozenset()
        none_taken: frozenset[Step] = frozenset()
        settled = frozenset((world, nothing, none_taken) for world, _, _ in cases)
        self.window = EventWindow((Row(settled),))
        moments, self.departed = dict(self.departed), ()
        return [_departure(label, moments.get(label)) for label in sorted(departed)]

    def _said_by_resting(self) -> tuple[Step, ...]:
        """Return the steps that a broker asserts by coming to rest."""
        if not self.goes_beyond:
            return (("quiesce", ()),)
        quiesce = "quiesce_by_size" if self.bindings.sized else "quiesce"
        waits = (("publish_still_waits", ()),) if self.bindings.parked else ()
        return ((quiesce, ()), ("nothing_is_left_to_close", ()), *waits)

    def _order(self, streams: Streams) -> None:
        """Find a lawful order of the events since the last rest, and go on from its end."""
        browsing = MODES["browse"] in self.bindings.frame.rows[self.rules.contract.row_of("mode")]
        cases = self.window.rows[-1].cases
        every = browsing or not streams.ends_alike
        found = judged(streams, cases, self.rules, self.bindings.frame, every_order=every)
        self.streams = Streams()
        if found.failure is not None:
            self.window = EventWindow((Row(found.stuck_in),))
            self.fail(found.failure, since=streams.steps)
        for step, before in found.order:
            self.window = EventWindow((Row(before),))
            self.count(step)
            after, _ = self.rules.apply(self.bindings.frame, before, step)
            self.go_on(EventWindow((Row(after),)), step)
        self.window = EventWindow((Row(found.cases),))

    def begin_anew(self) -> None:
        """Know nothing but the claims, as after a reset; the counts stay."""
        self.bindings, self.window = self._beginning(self.bindings.claims)
        self.departed = ()
        self.streams = None if self.streams is None else Streams()

    def maybe(self, step: Step) -> None:
        """Let a step happen now, later or never."""
        self.actions[step[0], "unknown"] += 1
        if self.streams is None:
            self.window = self.window.maybe(self.rules, self.bindings.frame, step)
        else:
            self.streams = self.streams.with_maybe(step)

    def nothing_earlier(self, event: Delivered) -> None:
        """Drop the rows before the last: a get's own delivery precedes all events told after it."""
        if self.streams is not None:
            return
        window = self.window
        if not window.rows[-1].cases:
            self.fail(window.why_last_row_is_empty(self.rules, self.bindings.frame), event)
        self.forget_all_but_the_last()

    def forget_all_but_the_last(self) -> None:
        """Exclude that later events happened earlier than now."""
        self.window = EventWindow((Row(self.window.rows[-1].cases),), self.window.floating)

    def take(self, step: Step, event: Delivered | None) -> None:
        """Let a step happen after all events told so far."""
        if self.streams is not None:
            self.streams = self.streams.with_operation(step)
            return
        self.count(step)
        window, failure = self.window.operate(self.rules, self.bindings.frame, step)
        if failure is not None:
            self.fail(failure, event)
        self.go_on(window, step)

    def place(self, consumer: int, step: Step, event: Delivered | None = None) -> None:
        """Let a step happen where its consumer's events allow, before or after others."""
        if self.streams is not None:
            self.streams = self.streams.with_event(consumer, step)
            return
        self.count(step)
        floor = dict(self.window.floors).get(consumer, 0)
        window, failure = self.window.place(self.rules, self.bindings.frame, step, floor)
        if failure is not None:
            self.fail(failure, event)
        self.go_on(window, step)

    def go_on(self, window: EventWindow, step: Step) -> None:
        """Take the next window; record where a tolerated label was first broken."""
        self.actions[step[0], "ok"] += 1
        departures = window.departures()
        if departures:
            for label in departures - self.window.departures():
                moment = Moment(self.bindings, self.window, step)
                self.departed = (*self.departed, (label, moment))
        self.window = window

    def tells_all_before(self, operation: Cancel | CloseChannel) -> None:
        """Let consumers that leave have no later events from before their end."""
        gone = (
            [self.bindings.element_of(operation.consumer)]
            if isinstance(operation, Cancel) and operation.consumer in self.bindings.consumers
            else [
                subscriber.element
                for subscriber in self.bindings.consumers.values()
                if isinstance(operation, CloseChannel) and subscriber.channel == operation.channel
            ]
        )
        if self.streams is not None:
            self.streams = self.streams.with_nothing_older_of(gone)
            return
        row = len(self.window.rows) - 1
        if row and gone:
            floors = dict(self.window.floors) | dict.fromkeys(gone, row)
            window = self.window
            self.window = EventWindow(window.rows, window.floating, tuple(sorted(floors.items())))

    def grow(
        self, bindings: Bindings, family: type[Channel | Consumer | Entry | Group | Queue]
    ) -> None:
        """Add the new element of the bindings to every case."""
        contract = self.rules.contract

        # Rows are often equal, and many where a broker is slow to tell its events.
        grown: dict[Cases, Cases] = {}
        for cases in {row.cases for row in self.window.rows}:
            grown[cases] = frozenset((contract.grown(w, family), ls, ts) for w, ls, ts in cases)
        rows = tuple(Row(grown[row.cases], row.step) for row in self.window.rows)
        self.bindings = bindings
        self.window = EventWindow(rows, self.window.floating, self.window.floors)

    # Judging.

    def count(self, step: Step) -> None:
        """Count the situations that a step exercises, in the latest case."""
        for row in reversed(self.window.rows):
            if row.cases:
                world, _, _ = first_of(row.cases)
                contract, frame = self.rules.contract, self.bindings.frame
                for name, arguments in alternatives(step):
                    if step[0] == ONE_OF and not (
                        name and contract.take(frame, world, name, arguments)[0]
                    ):
                        continue
                    for label in contract.exercised(frame, world, name, arguments):
                        self.exercised[label] += 1
                return

    def fail(
        self, failure: Failure, event: Delivered | None = None, since: tuple[Step, ...] = ()
    ) -> NoReturn:
        """End the run with the requirement that the step breaks; else `Unfollowable`."""
        self.actions[failure.step[0], "impossible"] += 1
        labels = [label for label in failure.blame if label]
        if not labels:
            raise Unfollowable(f"{failure.step[0]} is impossible, and no requirement says so")
        overdue = self._names({e for label in labels for e in failure.blame[label]})
        own = () if event is None or event.message in overdue else (event.message,)
        moment = Moment(self.bindings, self.window, failure.step, since)
        witnesses = (*overdue, *own)
        raise Broken(
            Breach(labels[0], failure.step[0], witnesses, overdue, tuple(labels[1:]), moment=moment)
        )

    def _names(self, entries: set[int]) -> tuple[str, ...]:
        return tuple(self.bindings.name_of_entry(entry) for entry in sorted(entries))


def _departure(label: str, moment: Moment | None) -> Breach:
    """Return a breach beyond which the run could be followed, with the entry that shows it."""
    reason = "not kept in any order of the events"
    if moment is None:
        return Breach(label, reason)
    shown = moment.bindings.name_of_entry(moment.step[1][1])
    return Breach(label, reason, (shown,), moment=moment)
