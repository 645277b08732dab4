"""When events may have happened: every placement that the protocol allows, followed at once.

Events may be withheld until `drain` (driver protocol 1, rules 1 and 2), so an event told now may
have happened before operations that were answered long ago. An `EventWindow` keeps one row for each
operation since the last moment when nothing was outstanding. Row i holds every case in which the
operations up to i have happened and all told events have been placed no later than there. A new
event makes a new column::

    placed[i] = event(old[i])  or  operation i (placed[i-1])

Nothing is guessed ahead: an event is placed when it is told, in every row where the contract allows
it. So the cost is rows times events, and a broker that tells promptly has one row. If a column is
empty in every row, no order of events and operations that the protocol permits is lawful.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

import msgspec

from brokerproof.checks.oracle.attribution import TOLD_TOO_LATE, least
from brokerproof.models.language.read.pointwise import (
    Blame,
    Frame,
    Pointwise,
    Taken,
    TooManyCases,
    World,
    locals_of,
    merged,
    possible_of,
    sort_key,
)
from brokerproof.models.language.read.pointwise_code import Local

Step: TypeAlias = tuple[str, tuple[int, ...]]
"""An action of the contract and its arguments."""

ONE_OF = "one of"
"""The name of a step that is one of several; its arguments are those steps."""

NOTHING: Step = ("", ())
"""The alternative that nothing happens."""


def one_of(*steps: Step) -> Step:
    """Return the step that is exactly one of these, and it is not known which."""
    return ONE_OF, cast("tuple[int, ...]", steps)


def alternatives(step: Step) -> tuple[Step, ...]:
    """Return the steps that a step may be: itself, or those that it is one of."""
    return cast("tuple[Step, ...]", step[1]) if step[0] == ONE_OF else (step,)


Fate: TypeAlias = Literal["ok", "unknown", "impossible"]
"""The outcome of a step: taken, possibly taken, or impossible."""

Case: TypeAlias = tuple[World, frozenset[str], frozenset[Step]]
"""A possible world, the tolerated labels broken so far, and the floating steps taken."""

Cases: TypeAlias = frozenset[Case]

CASES_MAX = 256
"""With more possible worlds than this, the rest of the run is inconclusive."""

KNOWN_MAX = 1 << 15
"""The most entries in each cache: the results of steps, and whether a broker may move."""


RECURRING = frozenset(("lease_ends",))
"""Floating steps that each make themselves impossible until a client acts.

One message may be held again, and its next lease end too, before the next drain.
"""


@dataclass(frozen=True)
class Rules:
    """The contract, and the labels beyond whose breach a broker is followed."""

    contract: Pointwise
    tolerated: frozenset[str]
    _applied: dict[tuple[Frame, Cases, Step], tuple[Cases, list[Blame]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _moving: dict[tuple[Frame, Cases], bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def apply(
        self,
        frame: Frame,
        cases: Cases,
        step: Step,
        floating: tuple[Step, ...] = (),
        *,
        as_floating: bool = False,
    ) -> tuple[Cases, list[Blame]]:
        """Return the cases after a step, and the blame if it was impossible.

        The cases are closed under the floating steps: any of these may have followed. Results are
        cached, since rows of a window are often equal, and so are windows.
        """
        if floating or as_floating:
            return self._apply(frame, cases, step, floating, as_floating=as_floating)
        known = self._applied.get((frame, cases, step))
        if known is None:
            if len(self._applied) >= KNOWN_MAX:
                self._applied.clear()
            known = self._apply(frame, cases, step, floating, as_floating=as_floating)
            self._applied[frame, cases, step] = known
        return known

    def _apply(
        self,
        frame: Frame,
        cases: Cases,
        step: Step,
        floating: tuple[Step, ...],
        *,
        as_floating: bool,
    ) -> tuple[Cases, list[Blame]]:
        name, _ = step
        if name == ONE_OF:
            return self._apply_one_of(frame, cases, step, floating)
        if len(cases) == 1 and not (floating or as_floating):
            # The common case by far: all is certain.
            ((world, departed, taken),) = cases
            worlds, blames = self._take(frame, world, step)
            if len(worlds) <= 1:
                return frozenset((w, departed | labels, taken) for w, labels in worlds), blames
        after: dict[tuple[frozenset[str], frozenset[Step]], list[World]] = {}
        blames = []
        for world, departed, taken in ordered(cases):
            worlds, to_blame = self._take(frame, world, step)
            blames.extend(to_blame)
            key = taken | {step} if as_floating and name not in RECURRING else taken
            for following, labels in worlds:
                after.setdefault((departed | labels, key), []).append(following)
        return self.closed(frame, _folded(after), floating), blames

    def _take(self, frame: Frame, world: World, step: Step) -> tuple[Taken, list[Blame]]:
        """Take a step in a world, and number the places of what has returned anew."""
        worlds, blames = self.contract.take(frame, world, *step, self.tolerated)
        if stamps := self._stamps_in(frame):
            worlds = [(_restamped(each, *stamps), labels) for each, labels in worlds]
        return worlds, blames

    def _stamps_in(self, frame: Frame) -> tuple[int, int, tuple[int, ...]] | None:
        """Return where stamps and their counters stand in a world, and the queue of each entry.

        Returns None if no entry is stamped: returned messages go back to their places.
        """
        if self._stamps is None:
            return None
        entries, queues, home, *moving = self._stamps
        if not any(frame.rows[row][0] for row in moving):
            return None
        return entries, queues, frame.rows[home]

    @functools.cached_property
    def _stamps(self) -> tuple[int, ...] | None:
        local = [symbol.name for symbol in self.contract.local]
        if "stamp" not in local:
            return None
        elsewhere = [symbol.name for symbol in self.contract.elsewhere]
        rows = (self.contract.row_of(name) for name in ("home", "to_tail", "to_head"))
        return local.index("stamp"), elsewhere.index("stamps"), *rows

    def _apply_one_of(
        self, frame: Frame, cases: Cases, step: Step, floating: tuple[Step, ...]
    ) -> tuple[Cases, list[Blame]]:
        after: dict[tuple[frozenset[str], frozenset[Step]], list[World]] = {}
        blames: list[Blame] = []
        for each in alternatives(step):
            found = cases
            if each != NOTHING:
                found, to_blame = self.apply(frame, cases, each)
                blames += to_blame
            for world, departed, taken in ordered(found):
                after.setdefault((departed, taken), []).append(world)
        return self.closed(frame, _folded(after), floating), blames

    def effort(self, cases: Cases, step: Step) -> int:
        """Return how many local states of messages `apply` looks at, were nothing cached."""
        return sum(
            self.contract.effort(world, name)
            for name, _ in alternatives(step)
            for world, _, _ in cases
            if name
        )

    def may_move(self, frame: Frame, cases: Cases) -> bool:
        """Whether the broker could still deliver or show a message in one of the cases."""
        known = self._moving.get((frame, cases))
        if known is None:
            if len(self._moving) >= KNOWN_MAX:
                self._moving.clear()
            known = any(self._may_move_in(frame, world) for world, _, _ in cases)
            self._moving[frame, cases] = known
        return known

    def _may_move_in(self, frame: Frame, world: World) -> bool:
        resting, _ = self.contract.take(frame, world, "rest", ())
        return not resting or resting[0][0] != world

    def closed(self, frame: Frame, cases: Cases, floating: tuple[Step, ...]) -> Cases:
        """Return the cases and those in which some floating steps happened after them."""
        reached = 0
        while floating and len(cases) != reached:
            reached = len(cases)
            for step in floating:
                ready = frozenset(case for case in cases if step not in case[2])
                happened, _ = self.apply(frame, ready, step, as_floating=True)
                cases |= happened
        return cases


def _restamped(world: World, entries: int, queues: int, homes: tuple[int, ...]) -> World:
    """Return the world with stamps as small as their order in each queue allows.

    Guards compare them only with others of their queue. Without this, a message that returns again
    and again would make ever new states, in which the broker is judged alike.
    """
    rest, possible = world
    found: dict[int, set[int]] = {}
    for home, each in zip(homes, possible, strict=True):
        found.setdefault(home, set()).update(local[entries] for local in locals_of(each))
    rank = {home: {s: n for n, s in enumerate(sorted(stamps))} for home, stamps in found.items()}
    counters = tuple(len(rank.get(queue, ())) for queue in range(len(rest[queues])))
    if counters == rest[queues]:
        return world

    def restamped(local: Local, home: int) -> Local:
        return (*local[:entries], rank[home][local[entries]], *local[entries + 1 :])

    return (
        (*rest[:queues], counters, *rest[queues + 1 :]),
        tuple(
            possible_of(restamped(local, home) for local in locals_of(each))
            for home, each in zip(homes, possible, strict=True)
        ),
    )


def _folded(after: dict[tuple[frozenset[str], frozenset[Step]], list[World]]) -> Cases:
    """Return cases with as few worlds as possible; raises `TooManyCases`."""
    found = frozenset((world, *key) for key, worlds in after.items() for world in merged(worlds))
    if len(found) > CASES_MAX:
        raise TooManyCases(f"more than {CASES_MAX} possible worlds")
    return found


ASKED: Step = ("", ())
"""The step of a row for an operation whose outcome is unknown."""


NOTED_ONCE = frozenset(("settle_again",))
"""Actions that only note an attempt; no later step undoes the note.

So a repeated one needs no row: the row would always hold the same cases as the row before it.
Without this, a broker that may still show messages to a browser would get a row for each attempt.
"""


class Row(msgspec.Struct, frozen=True, cache_hash=True):
    """The cases after one operation, and the step that led to it from the row before."""

    cases: Cases
    step: Step | None = None


@dataclass(frozen=True)
class Failure:
    """No placement is lawful: the step without one, and the least blame for it."""

    step: Step
    blame: Blame


class EventWindow(msgspec.Struct, frozen=True, cache_hash=True):
    """The rows that an event told now may belong to; immutable, so that a search can fork it.

    `floating` are steps of operations whose outcome is unknown: each may happen once, at any row
    from its own on, until the next drain. `floors` say from which row on a consumer's events can
    lie, since its cancel told all before.
    """

    rows: tuple[Row, ...]
    floating: tuple[tuple[Step, int], ...] = ()
    floors: tuple[tuple[int, int], ...] = ()

    def operate(self, rules: Rules, frame: Frame, step: Step) -> tuple[EventWindow, Failure | None]:
        """Add an operation that took effect after all that happened so far."""
        if step[0] in NOTED_ONCE and self._has_noted(rules, frame, step):
            return self.trimmed(rules, frame), None
        floating = self._floating_at(len(self.rows))
        cases, _ = rules.apply(frame, self.rows[-1].cases, step, floating)
        alone = len(self.rows) == 1 and not self.floating
        if alone and cases and not rules.may_move(frame, self.rows[0].cases):
            # The common case by far, as trimming would leave it: later events are later.
            return EventWindow((Row(cases),)), None
        window = EventWindow((*self.rows, Row(cases, step)), self.floating, self.floors)
        trimmed = window.trimmed(rules, frame)
        return trimmed, None if trimmed.alive else window.why_last_row_is_empty(rules, frame)

    def _has_noted(self, rules: Rules, frame: Frame, step: Step) -> bool:
        """Whether all rows have the note, also after later events."""
        if any(row.step == step for row in self.rows):
            return True
        return all(rules.apply(frame, row.cases, step)[0] == row.cases for row in self.rows)

    def why_last_row_is_empty(self, rules: Rules, frame: Frame) -> Failure:
        """Return the operation that the last possible cases could not take."""
        for index in range(len(self.rows) - 1, 0, -1):
            step, cases = self.rows[index].step, self.rows[index - 1].cases
            if cases and step is not None and step != ASKED:
                _, blames = rules.apply(frame, cases, step)
                return Failure(step, least(blames))
        raise AssertionError("no row of this window had any case")

    def _floating_at(self, row: int) -> tuple[Step, ...]:
        return tuple(step for step, since in self.floating if since <= row)

    def maybe(self, rules: Rules, frame: Frame, step: Step) -> EventWindow:
        """Add an operation that may take effect at any time until the next drain, or never."""
        asked = len(self.rows)
        floating = (*self.floating, (step, asked))
        steps = tuple(each for each, _ in floating)
        row = Row(rules.closed(frame, self.rows[-1].cases, steps), ASKED)
        return EventWindow((*self.rows, row), floating, self.floors)

    def place(
        self, rules: Rules, frame: Frame, step: Step, floor: int = 0
    ) -> tuple[EventWindow, Failure | None]:
        """Place a told event in every row from `floor` on where it is lawful."""
        rows: list[Row] = []
        blames: list[Blame] = []
        carried: Cases = frozenset()
        for index, row in enumerate(self.rows):
            cases: Cases = frozenset()
            floating = self._floating_at(index)
            if row.step == ASKED:
                cases = rules.closed(frame, carried, floating)
            elif row.step is not None and carried:
                cases, _ = rules.apply(frame, carried, row.step, floating)
            if index >= floor:
                here, to_blame = rules.apply(frame, row.cases, step, floating)
                blames.extend(to_blame)
                cases |= here
            rows.append(Row(cases, row.step))
            carried = cases
        window = EventWindow(tuple(rows), self.floating, self.floors)
        trimmed = window.trimmed(rules, frame)
        if trimmed.alive:
            return trimmed, None
        # The real fault may be an operation that no told event has made possible. It preceded
        # the event, which might have been lawful after it.
        blames.extend(
            earlier.why_last_row_is_empty(rules, frame).blame
            for earlier in (window, self)
            if earlier.alive and not earlier.rows[-1].cases
        )
        return trimmed, Failure(step, least(blames) or TOLD_TOO_LATE)

    def departures(self) -> frozenset[str]:
        """Return the tolerated labels that were broken in every case that is left."""
        found: frozenset[str] | None = None
        for row in self.rows:
            for _, labels, _ in row.cases:
                if not labels:
                    return labels
                found = labels if found is None else found & labels
        return found or frozenset()

    @property
    def alive(self) -> bool:
        """Whether any case is left in any row."""
        return any(row.cases for row in self.rows)

    def trimmed(self, rules: Rules, frame: Frame) -> EventWindow:
        """Drop leading rows in which no later event can lie."""
        first = 0
        while first < len(self.rows) - 1 and not rules.may_move(frame, self.rows[first].cases):
            first += 1
        if not first:
            return self
        floors = tuple((consumer, row - first) for consumer, row in self.floors if row > first)
        rows = (Row(self.rows[first].cases), *self.rows[first + 1 :])
        floating = tuple((step, max(0, since - first)) for step, since in self.floating)
        return EventWindow(rows, floating, floors)


def ordered(cases: Iterable[Case]) -> list[Case]:
    """Return cases in an order that is the same in every process."""
    listed = list(cases)
    if len(listed) > 1:
        listed.sort(key=lambda case: (sort_key(case[0]), sorted(case[1]), sorted(case[2])))
    return listed


def first_of(cases: Cases) -> Case:
    """Return the first of some cases, in that order; nearly always there is only one."""
    if len(cases) == 1:
        (case,) = cases
        return case
    return ordered(cases)[0]
