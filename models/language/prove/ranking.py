"""Leads-to properties, proved for any number of elements by the rank that the model gives.

The rule is that of Manna and Pnueli for weak fairness. A property is *pending* from its premise on.
While it is pending,

* one of the fair steps that lower the rank is possible;
* each step ends with the conclusion, or the property stays pending. A step that lowers the rank
  does so. Any other step lowers it, or leaves it no higher and keeps each lowering step possible,
  or is one of those that happen finitely often. Of steps that are fair together one or another is
  possible all along, by the first condition.

So a run that is pending for ever has a last step that lowers the rank or happens finitely often.
After it one lowering step stays possible and is never taken, which is not fair. The rank falls only
finitely often, since its sets are finite. That is proved of the sets in which they lie, even if the
family is infinite: such a set begins with one element at most, and no step adds two.

The parameters of the property become rigid symbols, so each question is about one choice of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import z3

from brokerproof.models.language.core.model import Action, System
from brokerproof.models.language.core.rewriting import Function, substitute
from brokerproof.models.language.core.scope import parameter_name
from brokerproof.models.language.core.systems import LeadsTo, Part, Rank
from brokerproof.models.language.core.terms import (
    FALSE,
    TRUE,
    Bool,
    Family,
    Int,
    Sort,
    Symbol,
    Term,
    conjunction,
    disjunction,
    equal,
    fresh,
    implies,
    negation,
    quantify,
    read,
)
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.conditions import Condition, InvariantProof
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    STEPS_FEW,
    STEPS_FIRST,
    after,
    asked,
    assumed,
    decided,
    named,
    taken,
)

T = TypeVar("T", bound=Term)

BEGINS = "where the premise holds, the property is pending or kept"
HELPED = "while the property is pending, a step that lowers the rank is possible"
NOT_NEGATIVE = "while the property is pending, no number of the rank is below 0"
STEP = "the property is kept, or pending with a lower rank, or with the same and the same steps"
WITHIN = "a set of the rank lies in its finite set"
FINITE = "no second element at once comes into a set of the rank"


def prove_leads_to(system: System, progress: LeadsTo) -> InvariantProof:
    """Decide the conditions under which the rank shows the property."""
    assert progress.rank is not None, "a property without a rank is explored, not proved"
    claim = _Claim(system, progress, progress.rank)
    conditions = [_decided(claim, *each) for each in claim.conditions()]
    return InvariantProof(
        progress.name,
        tuple(conditions),
        tuple(dict.fromkeys(each.text for each in progress.rank.assumptions)),
        says_nothing=_decided(claim, "", None, claim.unmet()).outcome != "refuted",
    )


def rank_lost(
    system: System, progress: LeadsTo, changed: Container[str], sizes: dict[Sort, int]
) -> tuple[Step, ...] | None:
    """Return a state, and a step if there is one, that breaks a condition in a scope; else None.

    `changed` are the actions that may break one: the others are those of a model that keeps all.
    Where a step that lowers the rank has a number, no scope has all of them: any size is asked, and
    the state is not known.
    """
    assert progress.rank is not None, "a property without a rank has no such conditions"
    claim = _Claim(system, progress, progress.rank)
    steps = map(system.action, progress.rank.lowered_by)
    of_numbers = any(isinstance(each, Int) for step in steps for each in step.parameters)
    for of, action, formulas in claim.conditions(changed):
        every = [*assumed(claim.system), *claim.known, *formulas]
        if of_numbers:
            if asked(claim.system, every, STEPS_FEW)[0] == z3.sat:
                return ()
            continue
        question = Question(claim.system, sizes, action)
        if question.asked(every, STEPS_FEW)[0] == z3.sat:
            return _witness(question, of)
    return None


def _witness(question: Question, of: str) -> tuple[Step, ...]:
    if question.action or of == FINITE:
        return question.shown()
    # A condition without a step is about any state, and not about the initial one.
    return (question.step("", (), question.state()),)


def _decided(claim: _Claim, of: str, action: Action | None, formulas: list[Bool]) -> Condition:
    started = time.perf_counter()
    few = [*(claim.few or assumed(claim.system)), *claim.known]
    if of == HELPED and claim.is_helped_by_names(few):
        return Condition(None, "proved", time.perf_counter() - started, of=of)
    fewer = [*few, *formulas] if claim.few else []
    every = [*assumed(claim.system), *claim.known, *formulas]
    found = decided(claim.system, every, action, fewer)
    witness = _witness(found.question, of) if found.question else ()
    seconds = time.perf_counter() - started
    name = action.name if action else None
    return Condition(name, found.outcome, seconds, witness, found.reason, of=of)


class _Claim:
    """A property and its rank for one choice of the property's parameters, which are rigid here."""

    def __init__(self, system: System, progress: LeadsTo, rank: Rank) -> None:
        # The names differ from those of a model's symbols and of an action's parameters.
        chosen = {
            p: Symbol(f"its {parameter_name(p)}", (), type(p), rigid=True)
            for p in progress.parameters
        }
        self._values: dict[Term, Term] = {p: read(symbol, ()) for p, symbol in chosen.items()}
        symbols = (*system.symbols, *chosen.values())
        self.system = dataclasses.replace(system, symbols=symbols, leads_to=())
        self.few = named(system, progress)
        self._premise = self._about(progress.premise)
        self._conclusion = self._about(progress.conclusion)
        self._pending = self._about(rank.pending)
        self._parts = [
            Part(
                self._about(p.term), p.element, None if p.within is None else self._about(p.within)
            )
            for p in rank.parts
        ]
        self._together = progress.together
        self._finitely = {name: self._about(term) for name, term in progress.finitely.items()}
        self._lowered_by = {name: self._about(term) for name, term in rank.lowered_by.items()}
        self._sets = {
            group: Function(members.parameters, self._about(members.body))
            for group, members in rank.sets.items()
        }
        self.known = [self._about(each.term) for each in rank.assumptions]
        own = [*self._values.values()]
        self._named = [*own, *_values_at(own, system)]
        self._firsts: list[Bool] = []
        for element, fact in (each.first for each in rank.assumptions if each.first):
            self._named.append(element)
            self._firsts.append(self._about(fact))

    def _about(self, term: T) -> T:
        return substitute(term, self._values)

    def unmet(self) -> list[Bool]:
        """Return that the premise holds without the conclusion."""
        return [self._premise, ~self._conclusion]

    def _while_pending(self) -> list[Bool]:
        return [self._pending, ~self._conclusion]

    def conditions(
        self, changed: Container[str] | None = None
    ) -> Iterator[tuple[str, Action | None, list[Bool]]]:
        """Yield each condition in words, its action if any, and formulas that break it.

        With the names of actions, leave out the conditions that these have nothing to do with.
        """
        helps = changed is None or any(name in changed for name in self._lowered_by)
        pending = self._while_pending()
        yield BEGINS, None, [*self.unmet(), ~self._pending]
        numbers = [part.term >= 0 for part in self._parts if isinstance(part.term, Int)]
        if numbers:
            yield NOT_NEGATIVE, None, [*pending, negation(conjunction(numbers))]
        if helps:
            yield HELPED, None, [*pending, ~self._helped()]
        for action in self.system.actions:
            if helps or action.name in (changed or ()):
                yield STEP, action, [*pending, *taken(action), ~self._goes_well(action)]
        yield from self._finite(changed)

    def _helped(self) -> Bool:
        return disjunction(
            quantify("exists", variables, possible) for variables, possible in self._lowering()
        )

    def is_helped_by_names(self, premises: list[Bool]) -> bool:
        """Whether a step that lowers the rank is always possible with elements that have names.

        Those are the property's own, their values in the state, and the first ones. Then Z3
        need not search for an element.
        """
        none = ~disjunction(self._lowering_by_names())
        every = [*premises, *self._while_pending(), *self._firsts, none]
        return bool(asked(self.system, every, STEPS_FIRST)[0] == z3.unsat)

    def _lowering_by_names(self) -> Iterator[Bool]:
        for variables, possible in self._lowering():
            choices = (
                (TRUE, FALSE) if isinstance(v, Bool) else self._of_sort(type(v)) for v in variables
            )
            for values in itertools.product(*choices):
                yield substitute(possible, dict(zip(variables, values, strict=True)))

    def _of_sort(self, sort: Sort) -> tuple[Term, ...]:
        return tuple(each for each in self._named if type(each) is sort)

    def _lowering(self) -> Iterator[tuple[tuple[Term, ...], Bool]]:
        """Yield each action that lowers the rank: new parameters, and where it is possible."""
        for name, chosen in self._lowered_by.items():
            action = self.system.action(name)
            parameters = [p for p in action.parameters if isinstance(p, Term)]
            new = {p: fresh(type(p), parameter_name(p)) for p in parameters}
            yield tuple(new.values()), substitute(chosen & action.guard, dict(new), self._sets)

    def _goes_well(self, action: Action) -> Bool:
        """Return the formula that a step of the action does not endanger the property."""
        updates = action.updates
        lowering = self._lowered_by.get(action.name, FALSE)
        # While the property is pending, one of those that are fair together is possible.
        stays_possible = conjunction(
            quantify("forall", variables, implies(possible, after(possible, updates)))
            for variables, possible in (() if self._together else self._lowering())
        )
        allowed = self._finitely.get(action.name, FALSE) | (
            self._no_higher(updates) & stays_possible
        )
        keeps = self._lower(updates) | (~lowering & allowed)
        return after(self._conclusion, updates) | (after(self._pending, updates) & keeps)

    def _no_higher(self, updates: Mapping[Symbol, Function]) -> Bool:
        return conjunction(_no_higher(part, updates) for part in self._parts)

    def _lower(self, updates: Mapping[Symbol, Function]) -> Bool:
        """Return the formula that one part is lower and no part before it is higher."""
        ways = []
        for place, part in enumerate(self._parts):
            earlier = [_no_higher(each, updates) for each in self._parts[:place]]
            ways.append(conjunction([*earlier, _lower(part, updates)]))
        return disjunction(ways)

    def _finite(
        self, changed: Container[str] | None
    ) -> Iterator[tuple[str, Action | None, list[Bool]]]:
        """Yield that each set of the rank lies in one that never gets two elements at once."""
        sets = [part for part in self._parts if part.element is not None]
        pairs = {sort: (fresh(sort, "one"), fresh(sort, "other")) for sort in map(_sort, sets)}
        known: dict[Term, None] = {}
        for part in sets:
            one, other = pairs[_sort(part)]
            lies = quantify("forall", (one,), implies(_of(part, one), _within(part, one)))
            if lies is not TRUE:
                yield WITHIN, None, [*self._while_pending(), ~lies]
            here, there = _within(part, one), _within(part, other)
            if here in known:
                continue
            known[here] = None
            apart = here & there & negation(equal(one, other))
            two = quantify("exists", (one, other), after(apart, self.system.initial))
            yield FINITE, None, [two]
            for action in self.system.actions:
                if changed is not None and action.name not in changed:
                    continue
                come = ~here & ~there & after(apart, action.updates)
                yield FINITE, action, [*taken(action), quantify("exists", (one, other), come)]


def _values_at(elements: Sequence[Term], system: System) -> Iterator[Term]:
    """Yield the elements that a map of the state has at these elements."""
    for symbol in system.symbols:
        if issubclass(symbol.range, Family):
            at = [[e for e in elements if type(e) is sort] for sort in symbol.domain]
            yield from (read(symbol, places) for places in itertools.product(*at))


def _sort(part: Part) -> Sort:
    return type(cast("Term", part.element))


def _of(part: Part, element: Term) -> Bool:
    """Return the formula that an element is in the set of a part."""
    return substitute(cast("Bool", part.term), {cast("Term", part.element): element})


def _within(part: Part, element: Term) -> Bool:
    """Return the formula that an element is in the finite set of a part."""
    return substitute(cast("Bool", part.within), {cast("Term", part.element): element})


def _then(part: Part, updates: Mapping[Symbol, Function]) -> Term:
    return substitute(part.term, {}, dict(updates))


def _no_higher(part: Part, updates: Mapping[Symbol, Function]) -> Bool:
    then = _then(part, updates)
    if isinstance(part.term, Int):
        return cast("Int", then) <= part.term
    stays = implies(cast("Bool", then), part.term)
    return stays if part.element is None else quantify("forall", (part.element,), stays)


def _lower(part: Part, updates: Mapping[Symbol, Function]) -> Bool:
    then = _then(part, updates)
    if isinstance(part.term, Int):
        return cast("Int", then) < part.term
    lost = part.term & negation(cast("Bool", then))
    if part.element is None:
        return lost
    return _no_higher(part, updates) & quantify("exists", (part.element,), lost)
