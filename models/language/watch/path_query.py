"""The query whether steps of a model lead from one view of a queue to the next.

A view is a valuation of the model's symbols. Equal queries share one answer, so a long queue is
reduced to a shorter one: of neighbours in the queue's order with equal values in every symbol,
before and after, and with the same possible steps, the first represents all. A step that the model
can take for one of them it can take for all, one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from brokerproof.models.language.core.model import Model, System, trace
from brokerproof.models.language.core.rewriting import symbols_read
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Sort
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.paths import ANY, Goal, Taken, TooFar, enabled, find_path

Values: TypeAlias = int | tuple[int | None, ...] | frozenset[tuple[int, int]]
"""A symbol's value; its values by element, None if not shown; or a relation."""

Valuation: TypeAlias = tuple[tuple[str, Values], ...]
"""Values by symbol. A symbol that is left out is not shown; its values begin as 0."""

AS_MANY: Final = -1
"""The size of a family that has as many elements as the queue's order."""

STATES_FEW, STATES_MAX = 300, 10_000
"""The limits of visited states for one query: before its invariants are evaluated, and in all."""


class PathQuery(NamedTuple):
    """Whether `steps` lead from `before` to `after`; one of `first` comes before all others.

    `line` is the family in the queue's order, and `many` its size; `sizes` has those of the others.
    `name` is the model's name in the catalogue. `implied` are final values that are not shown but
    follow from those shown.
    """

    name: str
    model: type[Model]
    line: Sort
    many: int
    sizes: tuple[tuple[Sort, int], ...]
    before: Valuation
    after: Valuation
    steps: tuple[Taken, ...] = ()
    first: tuple[Taken, ...] = ()
    implied: Valuation = ()


def valuation(
    **values: int | Sequence[int | None] | frozenset[tuple[int, int]] | None,
) -> Valuation:
    """Return values by symbol in a form that can be compared and cached; None is not shown."""
    return tuple(
        (name, value if isinstance(value, int | frozenset) else tuple(value))
        for name, value in values.items()
        if value is not None
    )


@functools.lru_cache(maxsize=1 << 16)
def find_steps(query: PathQuery) -> tuple[str, ...] | None:
    """Return the actions on a path from before to after; None if there is none.

    Raises `TooFar` if the search was given up.
    """
    reading = reading_of(query)
    start, goal = state_of(reading, query.before), Goal(dict(shown(reading, query.after)))
    taken: tuple[Taken, ...] = ()
    if query.first:
        # The guards leave at most one of several.
        taken = tuple(enabled(reading, start, query.first))[:1]
        if not taken:
            return None
        start = reading.step(taken[0].action, start, taken[0].arguments)
    try:
        found = find_path(reading, start, goal, query.steps, STATES_FEW)
    except TooFar:
        # It is proved that no step of the model breaks an invariant.
        lost = lost_invariants(reading, query.after + query.implied)
        if lost and not reading.violated(state_of(reading, query.before)):
            return None
        found = find_path(reading, start, goal, query.steps, STATES_MAX)
    return None if found is None else tuple([each.action for each in (*taken, *found)])


def lost_invariants(reading: PlainReading, shown: Valuation) -> list[str]:
    """Return the broken invariants of a valuation, among those that read only its symbols.

    A symbol with a value that is not shown counts as none of them: any value might keep it.
    """
    whole = tuple([each for each in shown if not _is_partly_shown(each[1])])
    state, names = state_of(reading, whole), frozenset(name for name, _ in whole)
    return [
        name
        for name, symbols in _symbols_of_invariants(reading).items()
        if symbols <= names and not reading.holds(name, state)
    ]


def _is_partly_shown(value: Values) -> bool:
    return isinstance(value, tuple) and None in value


@functools.cache
def _symbols_of_invariants(reading: PlainReading) -> Mapping[str, frozenset[str]]:
    """Return for each invariant the names of the symbols that it reads, except orders."""
    return {
        each.name: frozenset(
            symbol.name for symbol in symbols_read(each.term) if not symbol.is_order
        )
        for each in reading.system.invariants
    }


def reading_of(query: PathQuery) -> PlainReading:
    """Return the model in the scope of a query; an empty family gets one element."""
    key = query.model, query.many, query.sizes
    if key not in _READINGS:
        others = {sort: query.many if size == AS_MANY else size for sort, size in query.sizes}
        sizes = {sort: max(size, 1) for sort, size in {query.line: query.many, **others}.items()}
        _READINGS[key] = PlainReading(trace(query.model), Scope(sizes, range(1)))
    return _READINGS[key]


_READINGS: dict[object, PlainReading] = {}


def state_of(reading: PlainReading, values: Valuation) -> State:
    """Return the state of a valuation; a cell that is not shown is 0."""
    state = [0] * reading.size
    for at, value in shown(reading, values):
        state[at] = value
    return tuple(state)


def shown(reading: PlainReading, values: Valuation) -> Iterator[tuple[int, int]]:
    """Yield the position and the value of each cell that a valuation shows."""
    for name, value in values:
        symbol = reading.system.symbol(name)
        first = reading.first[symbol]
        if isinstance(value, int):
            yield first, value
        elif isinstance(value, tuple):
            for at, one in enumerate(value, first):
                if one is not None:
                    yield at, one
        else:
            rows, columns = (len(reading.scope.values(sort)) for sort in symbol.domain)
            for row in range(rows):
                for column in range(columns):
                    yield first + row * columns + column, int((row, column) in value)


def quotient(query: PathQuery) -> PathQuery:
    """Return the query with one element for each group of equal neighbours."""
    system, line = trace(query.model), query.line
    marks: list[list[object]] = [[] for _ in range(query.many)]
    partners: list[set[tuple[object, ...]]] = [set() for _ in marks]
    backwards: set[int] = set()
    alone = {
        value
        for taken in query.first
        for value, sort in zip(taken.arguments, _sorts(system, taken.action), strict=True)
        if sort is line
    }
    for moment, values in enumerate((query.before, query.after)):
        for name, value in values:
            symbol = system.symbol(name)
            if isinstance(value, frozenset):
                for pair in value:
                    if symbol.domain == (line, line) and pair[0] == pair[1] + 1:
                        backwards.add(pair[0])
                    for side, sort in enumerate(symbol.domain):
                        if sort is line:
                            other = pair[1 - side], symbol.domain[1 - side] is line
                            partners[pair[side]].add((moment, name, side, *other))
                continue
            each = (value,) if isinstance(value, int) else value
            if symbol.range is line:
                alone.update(one for one in each if one is not None)
            if symbol.domain == (line,):
                for mark, one in zip(marks, each, strict=True):
                    mark.append(one)
    for action, arguments in query.steps:
        for place, sort in enumerate(_sorts(system, action)):
            if sort is line and arguments[place] != ANY:
                rest = arguments[:place], arguments[place + 1 :]
                partners[arguments[place]].add((action, *rest))

    def like_the_last(at: int) -> bool:
        if at == 0 or alone & {at, at - 1} or marks[at] != marks[at - 1] or at in backwards:
            return False
        both = (at, True), (at - 1, True)
        one, other = (
            {each for each in partners[end] if each[-2:] not in both} for end in (at, at - 1)
        )
        return one == other

    kept: list[int] = []
    number = [ANY] * (len(marks) + 1)
    for at in range(len(marks)):
        if not like_the_last(at):
            kept.append(at)
        number[at] = len(kept) - 1
    if len(kept) == len(marks):
        return query
    return _renumbered(query, kept, number)


def _renumbered(query: PathQuery, kept: list[int], number: list[int]) -> PathQuery:
    """Return the query about the elements that are kept; `number` is the new one of each."""
    system, line = trace(query.model), query.line

    def new(value: int | None, sort: Sort) -> int | None:
        return number[value] if sort is line and value is not None else value

    def shorter(values: Valuation) -> Iterator[tuple[str, Values]]:
        for name, value in values:
            symbol = system.symbol(name)
            if isinstance(value, int):
                yield name, cast("int", new(value, symbol.range))
            elif isinstance(value, tuple):
                each = [value[at] for at in kept] if symbol.domain == (line,) else value
                yield name, tuple([new(one, symbol.range) for one in each])
            else:
                first, second = symbol.domain
                found = {
                    (cast("int", new(one, first)), cast("int", new(other, second)))
                    for one, other in value
                    if not (first is line and one not in kept)
                    and not (second is line and other not in kept)
                }
                yield name, frozenset(found)

    def moved(taken: Taken) -> Taken:
        sorts = _sorts(system, taken.action)
        values = zip(taken.arguments, sorts, strict=True)
        return Taken(taken.action, tuple([cast("int", new(*each)) for each in values]))

    return query._replace(
        many=len(kept),
        before=tuple(shorter(query.before)),
        after=tuple(shorter(query.after)),
        implied=tuple(shorter(query.implied)),
        steps=tuple(dict.fromkeys(map(moved, query.steps))),
        first=tuple(map(moved, query.first)),
    )


def _sorts(system: System, action: str) -> list[type]:
    return [type(each) for each in system.action(action).parameters]
