"""The pointwise reading, which follows a running system: possible worlds, element by element.

An observer has partial knowledge: an operation without an answer may have happened. So a world
keeps a *set* of possible local states for each element of one family (the focus: entries), and all
other state exactly. This is exact under one rule, which the compiler checks: a formula reads the
local state of the action's own element, and of each other element alone. A guard then restricts
each set by itself, and an update maps each by itself. A guard that relates several elements
(*wide*) needs certain worlds: an uncertain one is split into those that it represents.

State outside the focus (counters, subscriptions) is exact within a world. If it is uncertain, there
are several worlds; `merged` folds those that differ in one element's possibilities only. Families
are open: elements are added as the observer meets them, and a `Frame` has their rigid properties.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TypeAlias, cast

import msgspec

from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.terms import Sort, Symbol
from brokerproof.models.language.read.pointwise_code import Compiled, Compiler, Local, Rest

Possible: TypeAlias = Local | frozenset[Local]
"""An element's local state if it is certain, otherwise the set of its possible ones."""

World: TypeAlias = tuple[Rest, tuple[Possible, ...]]
Blame: TypeAlias = dict[str, tuple[int, ...]]
"""Labels of the false guards, each with the elements that falsify it (none: the action's own)."""

Arguments: TypeAlias = tuple[int, ...]
Taken: TypeAlias = list[tuple[World, frozenset[str]]]

_NOTHING: frozenset[str] = frozenset()

SPLIT_MAX = 1024
"""A world that represents more certain worlds than this is not split."""


class TooManyCases(Exception):
    """The observations leave more possibilities open than the reading follows."""


class Frame(msgspec.Struct, frozen=True, cache_hash=True):
    """The elements met so far: the size of each family, and the rigid properties.

    A row of a map has one value for each element; a row of a relation or an order has one bit mask
    for each element of the *last* index, so that a new element appends and old rows stay.
    """

    sizes: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]


class Pointwise:
    """A system compiled for one focus family."""

    def __init__(self, system: System, focus: Sort) -> None:
        self.system = system
        self.focus = focus
        compiler = Compiler(system, focus)
        self.families, self.rigid = compiler.families, compiler.rigid
        self.local, self.elsewhere = compiler.local, compiler.elsewhere
        self.actions = {action.name: compiler.compile(action) for action in system.actions}
        self.unborn: Local = tuple(self._start(symbol) for symbol in self.local)

    # Growth.

    def empty(self, constants: dict[str, int]) -> tuple[Frame, World]:
        """Return the frame without elements and the initial world; `constants` by name."""
        rows = tuple(
            (constants[symbol.name],) if not symbol.domain else () for symbol in self.rigid
        )
        rest = tuple(
            (self._start(symbol),) if not symbol.domain else () for symbol in self.elsewhere
        )
        return Frame((0,) * len(self.families), rows), (rest, ())

    def grow(self, frame: Frame, family: Sort, properties: dict[str, int]) -> Frame:
        """Return the frame with one more element of a family.

        `properties` gives, for each rigid symbol whose last index is of the family, its value or
        its bit mask over the first index. `relate` completes relations whose *first* index is the
        family.
        """
        place = self.families.index(family)
        sizes = tuple(size + (i == place) for i, size in enumerate(frame.sizes))
        rows = tuple(
            (*row, properties[symbol.name]) if symbol.domain[-1:] == (family,) else row
            for symbol, row in zip(self.rigid, frame.rows, strict=True)
        )
        return Frame(sizes, rows)

    def row_of(self, name: str) -> int:
        """Return the index of a rigid symbol's row in a frame."""
        return next(i for i, symbol in enumerate(self.rigid) if symbol.name == name)

    def relate(self, frame: Frame, name: str, first: int, lasts: Iterable[int]) -> Frame:
        """Return the frame in which element `first` is related to each of `lasts`."""
        place = self.row_of(name)
        row = list(frame.rows[place])
        for last in lasts:
            row[last] |= 1 << first
        return Frame(frame.sizes, (*frame.rows[:place], tuple(row), *frame.rows[place + 1 :]))

    def grown(self, world: World, family: Sort) -> World:
        """Return the world with one more element of a family, in its initial state."""
        rest, entries = world
        if family is self.focus:
            return rest, (*entries, self.unborn)
        return (
            tuple(
                (*row, self._start(symbol)) if symbol.domain == (family,) else row
                for symbol, row in zip(self.elsewhere, rest, strict=True)
            ),
            entries,
        )

    # Steps.

    def take(
        self,
        frame: Frame,
        world: World,
        name: str,
        arguments: Arguments,
        tolerated: frozenset[str] = _NOTHING,
    ) -> tuple[Taken, list[Blame]]:
        """Take an action in a world.

        Returns the worlds it can lead to, each with the tolerated labels that it did not keep, and
        the blame of each case that led to no world.
        """
        code = self.actions[name]
        rest, entries = world
        at = None if code.focus_at is None else arguments[code.focus_at]
        if frozenset not in map(type, entries):
            after = _take_in_one(code, frame, rest, entries, at, arguments)
            if after is not None:
                return [(after, _NOTHING)], []
        return _take_slowly(code, frame, world, at, arguments, tolerated)

    def effort(self, world: World, name: str) -> int:
        """Return how many local states `take` looks at: a measure of its time."""
        _, entries = world
        states = [len(each) if isinstance(each, frozenset) else 1 for each in entries]
        if not self.actions[name].wide:
            return sum(states)
        return len(states) * min(math.prod(states), SPLIT_MAX)

    def exercised(
        self, frame: Frame, world: World, name: str, arguments: Arguments
    ) -> Iterable[str]:
        """Return the labels whose situation an action meets in one possibility of a world."""
        met = self.actions[name].met
        if met is None:
            return ()
        rest, entries = world
        if frozenset in map(type, entries):
            entries = tuple([min(locals_of(possible)) for possible in entries])
        return met(frame.rows, frame.sizes, rest, entries, *arguments)

    def _start(self, symbol: Symbol) -> int:
        """Return the initial value, 0 if the model leaves it open."""
        body = self.system.initial[symbol].body
        return int(cast("int", body.payload)) if body.op == "constant" else 0


def merged(worlds: Iterable[World]) -> frozenset[World]:
    """Fold worlds that differ in one element's possibilities into one, without loss."""
    alike: dict[Rest, set[tuple[Possible, ...]]] = {}
    for rest, entries in worlds:
        alike.setdefault(rest, set()).add(entries)
    return frozenset((rest, entries) for rest, found in alike.items() for entries in _fold(found))


def _fold(found: set[tuple[Possible, ...]]) -> set[tuple[Possible, ...]]:
    """Fold element by element: those that agree in all others, until no two do."""
    folded = 0
    while len(found) > 1 and len(found) != folded:
        folded = len(found)
        columns = list(zip(*found, strict=True))
        for k in [k for k, column in enumerate(columns) if column.count(column[0]) < folded]:
            agreeing: dict[tuple[Possible, ...], Possible] = {}
            for entries in found:
                others = (*entries[:k], *entries[k + 1 :])
                mine = agreeing.get(others)
                both = entries[k] if mine is None else locals_of(mine) | locals_of(entries[k])
                agreeing[others] = both
            found = {(*others[:k], both, *others[k:]) for others, both in agreeing.items()}
    return found


def sort_key(world: World) -> tuple[Rest, tuple[tuple[Local, ...], ...]]:
    """Return a sort key for worlds, so that no result depends on the order of a set."""
    rest, entries = world
    return rest, tuple(tuple(sorted(locals_of(possible))) for possible in entries)


def locals_of(possible: Possible) -> frozenset[Local]:
    """Return the possible local states of an element."""
    return possible if isinstance(possible, frozenset) else frozenset((possible,))


def possible_of(locals_: Iterable[Local]) -> Possible:
    """Return an element with these possible local states."""
    found = frozenset(locals_)
    return next(iter(found)) if len(found) == 1 else found


def _take_in_one(
    code: Compiled,
    frame: Frame,
    rest: Rest,
    certain: tuple[Possible, ...],
    at: int | None,
    arguments: Arguments,
) -> World | None:
    """Take an action in a certain world at once; None if a guard does not hold."""
    own, rows, sizes = None if at is None else certain[at], frame.rows, frame.sizes
    if not code.lawful(rows, sizes, rest, certain, own, *arguments):
        return None
    return cast("World", code.after(rows, sizes, rest, certain, own, *arguments))


def _take_slowly(
    code: Compiled,
    frame: Frame,
    world: World,
    at: int | None,
    arguments: Arguments,
    tolerated: frozenset[str],
) -> tuple[Taken, list[Blame]]:
    """Take an action one guard and one possibility at a time: exact, and with the reasons."""
    rest, entries = world
    if code.wide and frozenset in map(type, entries):
        return _take_in_each(code, frame, world, at, arguments, tolerated)
    results: Taken = []
    blames: list[Blame] = []
    cases: Iterable[Local | None] = (None,) if at is None else locals_of(entries[at])
    for own in cases:
        possible, blame = _restrict(code, frame, world, own, at, arguments)
        if blame.keys() <= tolerated:
            after = _update(code, frame, rest, possible, own, at, arguments)
            results.append((after, frozenset(blame)))
        else:
            blames.append({k: v for k, v in blame.items() if k not in tolerated})
    return results, blames


def _take_in_each(
    code: Compiled,
    frame: Frame,
    world: World,
    at: int | None,
    arguments: Arguments,
    tolerated: frozenset[str],
) -> tuple[Taken, list[Blame]]:
    """Take an action in each certain world that a world represents."""
    rest, entries = world
    possible = [sorted(locals_of(each)) for each in entries]
    if math.prod(map(len, possible)) > SPLIT_MAX:
        raise TooManyCases(f"a guard relates what more than {SPLIT_MAX} possible worlds differ in")
    results: Taken = []
    blames: list[Blame] = []
    for certain in itertools.product(*possible):
        after = _take_in_one(code, frame, rest, certain, at, arguments)
        if after is not None:
            results.append((after, _NOTHING))
            continue
        taken, to_blame = _take_slowly(code, frame, (rest, certain), at, arguments, tolerated)
        results += taken
        blames += to_blame
    return results, blames


def _restrict(
    code: Compiled,
    frame: Frame,
    world: World,
    own: Local | None,
    at: int | None,
    arguments: Arguments,
) -> tuple[list[frozenset[Local]], Blame]:
    """Return each element's possibilities if all guards hold, and the blame for empty ones."""
    rows, sizes = frame.rows, frame.sizes
    rest, entries = world
    blame: Blame = {
        label: () for label, holds in code.own if not holds(rows, sizes, rest, own, *arguments)
    }
    if code.wide:
        blame |= {
            label: ()
            for label, holds in code.wide
            if not holds(rows, sizes, rest, entries, *arguments)
        }
    possible = [locals_of(each) for each in entries]
    if at is not None and own is not None:
        possible[at] = frozenset((own,))
    for label, holds in code.each:
        for f, locals_ in enumerate(possible):
            kept = [m for m in locals_ if holds(rows, sizes, rest, own, f, m, *arguments)]
            if not kept:
                blame[label] = (*blame.get(label, ()), f)
            elif len(kept) < len(locals_):
                possible[f] = frozenset(kept)
    return possible, blame


def _update(
    code: Compiled,
    frame: Frame,
    rest: Rest,
    possible: list[frozenset[Local]],
    own: Local | None,
    at: int | None,
    arguments: Arguments,
) -> World:
    rows, sizes = frame.rows, frame.sizes
    after: list[Iterable[Local]] = list(possible)
    if code.others is not None:
        others = code.others
        for f, locals_ in enumerate(possible):
            if f != at:
                after[f] = [others(rows, sizes, rest, own, f, m, *arguments) for m in locals_]
    if at is not None and code.mine is not None:
        after[at] = (code.mine(rows, sizes, rest, own, *arguments),)
    new_rest = rest if code.rest is None else code.rest(rows, sizes, rest, own, *arguments)
    return new_rest, tuple(map(possible_of, after))
