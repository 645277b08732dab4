"""The step cache: states of an oracle, numbered, so that each step is judged once.

A search meets the same state again and again, with other names of deliveries. The cache keeps each
state in a canonical form, with deliveries named by their place: the n-th held one, the last settled
one of a message. Equal forms are one `OracleState`; the oracle judges an operation and its answer
once for it. If delivery names themselves are the fault of an answer, the oracle judges it under the
candidate's own names.

The cache is exact: two states are one only if all that an oracle remembers is equal, names of
deliveries aside. A search that merges more states does so by their `key`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from brokerproof.checks.conversation import Misbehaviour
from brokerproof.checks.inside.step_conformance import Watch
from brokerproof.checks.oracle.breaches import Breach, Moment, Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Fate
from brokerproof.checks.oracle.translation import Program
from brokerproof.checks.search.findings import (
    Exchange,
    ask_with_power,
    goes_on,
    instead_of,
    looked_inside,
)
from brokerproof.checks.search.searches import Search
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Cut, Move, operation_of
from brokerproof.checks.workers import watchdog
from brokerproof.spec.protocol.answers import Answer, Delivered, Event
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Extend,
    Operation,
    Reject,
    Release,
    Reset,
)

Names: TypeAlias = dict[str, str]
"""The candidate's names of deliveries, by their names in an oracle state."""

_SETTLING = frozenset((Acknowledge, Release, Reject, Extend))


@dataclass(slots=True, eq=False)
class CanonicalBindings:
    """Bindings in which deliveries are named by their place.

    `moves` are those looked up, each with its operation; the first `own` of them are the scope's.
    `programs` are their translations, by the answer. `form` numbers the `parts`, which are all that
    an oracle knows of names. `key` is the number of the bindings' own key.
    """

    number: int
    parts: tuple[object, ...]
    form: tuple[int, ...]
    key: int
    bindings: Bindings
    moves: list[tuple[Move, Operation | None]]
    own: int
    programs: dict[tuple[int, Hashable], Written] = field(default_factory=dict)

    def number_of(self, move: Move) -> int:
        """Return the number of a move, which may come from other canonical bindings."""
        for number, (known, _) in enumerate(self.moves):
            if known == move:
                return number
        self.moves.append((move, operation_of(move, self.bindings)))
        return len(self.moves) - 1


@dataclass(slots=True, eq=False)
class Written:
    """A program, the canonical bindings after it, and the names of deliveries as in `Judgement`."""

    program: Program
    after: CanonicalBindings | None
    renamed: tuple[tuple[str, str], ...] | None


@dataclass(slots=True, eq=False)
class OracleState:
    """A state of an oracle; `key` is the number of its own key, equal for states that judge alike.

    The oracle itself is never changed: it is copied.
    """

    oracle: Oracle
    page: CanonicalBindings
    key: int
    judged: dict[tuple[int, Hashable], Judgement] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Judgement:
    """The effect of an operation and its answer on a state; `after` is None if the run ends.

    `renamed` are the names of deliveries after it, each with its name before; None if no name has
    changed. The counts exclude those of `program`. `times` is how often the judgement was met.
    """

    program: Program | None
    exercised: Counter[str]
    outcomes: Counter[tuple[str, bool]]
    actions: Counter[tuple[str, Fate]]
    after: OracleState | None = None
    breaches: tuple[Breach, ...] = ()
    goes_on: bool = True
    unfollowable: str | None = None
    renamed: tuple[tuple[str, str], ...] | None = None
    forgets: bool = False
    times: int = 0


@dataclass(slots=True, eq=False)
class SearchNode:
    """A node of a search: the state of the oracle, and the names that the candidate has used.

    `told` are the names of all deliveries since the reset.
    """

    standing: OracleState
    names: Names
    told: frozenset[str]
    watch: Watch | None


class StepCache:
    """The oracle states that a search of one scope has met."""

    def __init__(self, found: Search) -> None:
        self._found, self._scope = found, found.scope
        self._numbers = Numbers()
        self._pages: dict[Hashable, CanonicalBindings] = {}
        self._known: dict[Hashable, OracleState] = {}
        self._keys: dict[Hashable, int] = {}
        self._met: list[Judgement] = []

    def start(self, oracle: Oracle) -> SearchNode:
        """Return the node at the begin of a run, right after a reset."""
        own, self._claims = oracle.fork(), oracle.bindings.claims
        watch, own.watch = own.watch, None
        page = self._page(own.bindings, own.unplaced, None, None)
        return SearchNode(self._standing(own, page), {}, frozenset(), watch)

    def step(
        self,
        candidate: Candidate,
        place: SearchNode,
        number: int,
        before: Callable[[], Sequence[Exchange]],
        cut: Cut | None = None,
    ) -> tuple[Exchange | None, Sequence[Breach], SearchNode | None]:
        """Make a move of an oracle state's own and judge it, as `findings.step` does.

        Returns the node after it, or None if the run ends. `before` are the steps so far. `cut` is
        that move with a loss of power during it. Raises `Unfollowable`.
        """
        move, operation = place.standing.page.moves[number]
        move = cut or move
        if operation is None:
            return None, (), place
        if type(operation) in _SETTLING:
            assert isinstance(operation, Acknowledge | Release | Reject | Extend)
            name = place.names.get(operation.delivery, operation.delivery)
            if name != operation.delivery:
                operation = replace(operation, delivery=name)
        watchdog.note_trace(before, move)
        answer = ask_with_power(candidate, move, operation)
        if isinstance(answer, Misbehaviour):
            told, breach = instead_of(answer, move, operation)
            return told, (breach,), None
        told = Exchange(move, operation, answer)
        judged, names = self._judged(place, number, told, before)
        if judged.unfollowable is not None:
            raise Unfollowable(judged.unfollowable)
        if not judged.times:
            self._met.append(judged)
        judged.times += 1
        if judged.after is None:
            return told, judged.breaches, None
        return self._after(candidate, place, told, judged, names)

    def _after(
        self,
        candidate: Candidate,
        place: SearchNode,
        told: Exchange,
        judged: Judgement,
        names: tuple[str, ...],
    ) -> tuple[Exchange, Sequence[Breach], SearchNode]:
        assert judged.after is not None
        known, ids = place.names, place.told
        if names:
            known = known | {_new(number): name for number, name in enumerate(names)}
            ids = ids.union(names)
        if judged.forgets:
            ids = frozenset(names)
        if judged.renamed is not None:
            known = {after: known.get(before, before) for after, before in judged.renamed}
        after = SearchNode(judged.after, known, ids, place.watch)
        if place.watch is None:
            return told, judged.breaches, after
        after.watch = watch = place.watch.fork()
        seen, exercised = looked_inside(candidate, watch, told, judged.after.page.bindings)
        self._found.count_look(watch, exercised)
        return told, (*judged.breaches, *seen), after

    def close(self) -> None:
        """Add the counts of all steps to the search's findings, and let go of the judgements.

        They refer to each other in circles, which Python's garbage collector frees far more slowly.
        """
        found = self._found
        exercised, outcomes, actions = found.exercised, found.outcomes, found.actions
        for judged in self._met:
            for counted in (judged, judged.program) if judged.program is not None else (judged,):
                for requirement, times in counted.exercised.items():
                    exercised[requirement] += times * judged.times
                for outcome, times in counted.outcomes.items():
                    outcomes[outcome] += times * judged.times
            for action, times in judged.actions.items():
                actions[action] += times * judged.times
        for standing in self._known.values():
            standing.judged.clear()
        for page in self._pages.values():
            page.programs.clear()

    # Judging what was not judged before.

    def _judged(
        self,
        place: SearchNode,
        number: int,
        told: Exchange,
        before: Callable[[], Sequence[Exchange]],
    ) -> tuple[Judgement, tuple[str, ...]]:
        """Return the judgement for an oracle state, and the names of the deliveries told."""
        answer = told.answer
        if not answer.events:
            names: tuple[str, ...] = ()
            heard: Hashable = None
        else:
            names = tuple([e.delivery for e in answer.events if isinstance(e, Delivered)])
            if names and not _are_new(names, place.told):
                judged = self._with_names_as_told(told, before)
                if judged is not None:
                    return judged, names
            heard = tuple(map(_without_names, answer.events))
        if answer.error is not None or answer.parked:
            heard = heard, answer.error, answer.parked
        known = place.standing.judged.get((number, heard))
        if known is None:
            written = self._written(place.standing, number, heard, answer)
            known = self._ask(place.standing, written)
            known.forgets = answer.ok and isinstance(told.operation, Reset)
            place.standing.judged[number, heard] = known
        return known, names

    def _written(
        self, standing: OracleState, number: int, heard: Hashable, answer: Answer
    ) -> Written:
        """Return the translation of an operation and its answer for these canonical bindings."""
        page = standing.page
        known = page.programs.get((number, heard))
        if known is None:
            operation = page.moves[number][1]
            assert operation is not None
            named = Answer(_named(answer.events), answer.error, parked=answer.parked)
            program = standing.oracle.translated(operation, named)
            names = _names(program.bindings)
            after = None
            if program.broken is None and program.unfollowable is None:
                after = self._page(program.bindings, program.unplaced, names, page)
            known = page.programs[number, heard] = Written(program, after, names)
        return known

    def _ask(self, standing: OracleState, written: Written) -> Judgement:
        """Let an oracle perform the program, with deliveries under their canonical names."""
        oracle, program = standing.oracle.fork(), written.program
        judged = _judging(oracle, lambda: oracle.perform(program), program)
        if judged.unfollowable is None and judged.goes_on:
            assert written.after is not None
            judged.after, judged.renamed = self._standing(oracle, written.after), written.renamed
        return judged

    def _with_names_as_told(
        self, told: Exchange, before: Callable[[], Sequence[Exchange]]
    ) -> Judgement | None:
        """Judge by an oracle that has followed the same run under the candidate's own names.

        Returns None if these names do not end the run.
        """
        oracle = Oracle(self._claims)
        for each in before():
            oracle.observe(each.operation, each.answer)
        oracle.exercised.clear()
        oracle.outcomes.clear()
        oracle.actions.clear()
        judged = _judging(oracle, lambda: oracle.observe(told.operation, told.answer))
        return None if judged.goes_on and judged.unfollowable is None else judged

    def _page(
        self,
        bindings: Bindings,
        unplaced: tuple[str, ...],
        names: tuple[tuple[str, str], ...] | None,
        before: CanonicalBindings | None,
    ) -> CanonicalBindings:
        """Return the canonical form of bindings, with deliveries renamed.

        `before` is the canonical form that the bindings were made from; most parts are shared.
        """
        if names is not None or bindings.deliveries or bindings.doubtful:
            renamed = {old: new for new, old in names or ()}
            bindings = bindings.changed(
                held={renamed.get(name, name): held for name, held in bindings.held.items()},
                settled={message: _settled(message) for message in bindings.settled},
                deliveries=frozenset(),
                doubtful=frozenset(),
            )
        parts = *vars(bindings).values(), unplaced
        form = self._numbers.of_all(parts, before)
        known = self._pages.get(form)
        if known is None:
            moves = [(move, operation_of(move, bindings)) for move in self._scope.moves(bindings)]
            key = self._numbers.of(bindings.key())
            number, own = len(self._pages), len(moves)
            known = self._pages[form] = CanonicalBindings(
                number, parts, form, key, bindings, moves, own
            )
        return known

    def _standing(self, oracle: Oracle, page: CanonicalBindings) -> OracleState:
        """Return the oracle state of an oracle with these canonical bindings."""
        number = self._numbers.of
        window, streams = number(oracle.window), number(oracle.streams)
        departed = tuple([(label, number(moment)) for label, moment in oracle.departed])
        form = page.number, window, streams, departed
        known = self._known.get(form)
        if known is None:
            oracle.bindings = page.bindings
            # The key of the bindings is the same for all states with these canonical bindings.
            parts = page.key, *map(number, oracle.key_beside_bindings())
            key = self._keys.setdefault(parts, len(self._keys))
            known = self._known[form] = OracleState(oracle, page, key)
        return known


def _names(bindings: Bindings) -> tuple[tuple[str, str], ...] | None:
    """Return the canonical names of deliveries, each with its name until now.

    Returns None if they are the same.
    """
    held = [(f"held {place}", name) for place, name in enumerate(bindings.held)]
    settled = [(_settled(message), name) for message, name in bindings.settled.items()]
    names = (*held, *settled)
    return None if all(after == before for after, before in names) else names


def _settled(message: str) -> str:
    return f"settled {message}"


def _judging(
    oracle: Oracle, judge: Callable[[], list[Breach]], program: Program | None = None
) -> Judgement:
    counted = program, oracle.exercised, oracle.outcomes, oracle.actions
    try:
        breaches = judge()
    except Unfollowable as error:
        return Judgement(*counted, unfollowable=str(error))
    ends = all(map(goes_on, breaches))
    return Judgement(*counted, breaches=tuple(breaches), goes_on=ends)


def _are_new(names: tuple[str, ...], told: frozenset[str]) -> bool:
    """Whether names of deliveries are used for the first time."""
    if len(names) > 1 and len({*names}) < len(names):
        return False
    return told.isdisjoint(names)


def _without_names(event: Event) -> Hashable:
    if isinstance(event, Delivered):
        return event.consumer, event.queue, event.message, event.redelivered, event.count
    return event


def _new(number: int) -> str:
    return f"new {number}"


def _named(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return events whose deliveries are named by their place in the answer."""
    named: list[Event] = []
    number = 0
    for event in events:
        if isinstance(event, Delivered):
            named.append(
                Delivered(
                    delivery=_new(number),
                    consumer=event.consumer,
                    queue=event.queue,
                    message=event.message,
                    redelivered=event.redelivered,
                    count=event.count,
                )
            )
            number += 1
        else:
            named.append(event)
    return tuple(named)


@dataclass
class Numbers:
    """Numbers for values: the same for equal ones.

    Bindings share parts with those that they were made from. So a value is looked up by identity
    first, and kept, so that no other value gets its identity.
    """

    by_identity: dict[int, tuple[object, int]] = field(default_factory=dict)
    by_value: dict[Hashable, int] = field(default_factory=dict)

    def of(self, value: object) -> int:
        """Return the number of a value."""
        known = self.by_identity.get(id(value))
        if known is None:
            number = self.by_value.setdefault(self.form_of(value), len(self.by_value))
            known = self.by_identity[id(value)] = value, number
        return known[1]

    def of_all(self, values: tuple[object, ...], near: CanonicalBindings | None) -> tuple[int, ...]:
        """Return a number for each value; parts that `near` has keep their known numbers."""
        number = self.of
        if near is None:
            return tuple(map(number, values))
        return tuple(
            [
                known if value is part else number(value)
                for value, part, known in zip(values, near.parts, near.form, strict=True)
            ]
        )

    def form_of(self, value: object) -> Hashable:
        """Return a form that is equal for equal values; a moment is equal to itself alone."""
        if isinstance(value, dict):
            return dict, tuple([(key, self.of(each)) for key, each in value.items()])
        if isinstance(value, Moment):
            return Moment, id(value)
        try:
            hash(value)
        except TypeError:
            # A value that holds a dictionary: its text tells all of it.
            return type(value), repr(value)
        return type(value), value
