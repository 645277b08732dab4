"""The proof of a refinement: its obligations, made from both models and decided one by one.

Owns the reading of an abstract term as a concrete one, the updates of the history by the witnesses,
and the set of obligations. The form of a refinement is in `refinement`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import z3

from brokerproof.models.language.core.model import Action, Guard, System
from brokerproof.models.language.core.rewriting import Function, rebuild, substitute, symbols_read
from brokerproof.models.language.core.scope import families
from brokerproof.models.language.core.systems import Assumed
from brokerproof.models.language.core.terms import (
    FALSE,
    TRUE,
    Bool,
    Sort,
    Symbol,
    Term,
    disjunction,
    equal,
    free_variables,
    fresh,
    is_constant,
    negation,
    quantify,
    show,
)
from brokerproof.models.language.prove.prover import Firing, can_fire, prove_invariant
from brokerproof.models.language.prove.refinement import Answer, RefinementProof, Witness
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    STEPS_FEW,
    STEPS_FIRST,
    STEPS_TRIVIAL,
    Outcome,
    after,
    asked,
    assumed,
    decided,
    taken,
)
from brokerproof.models.language.read.z3_reading import order_laws

Bindings: TypeAlias = dict[Term | Symbol, Term | Function]
"""The concrete values of abstract variables and of abstract set parameters."""

Claims: TypeAlias = list[tuple[str, Bool]]

FIRING: dict[Firing, Outcome] = {"fires": "proved", "never": "refuted", "unknown": "unknown"}
"""The outcome of an action's obligation to be possible: guards that exclude each other would prove
every other obligation."""

SIZES = (2, 3)
"""The numbers of elements of each family in the quick search for a broken obligation."""

SIZE_LAST = 4
"""The number of elements where Z3 leaves an obligation open in the general."""


@dataclass(frozen=True)
class _Obligation:
    """A formula that must not be possible when an action is taken, except where left out."""

    name: str
    broken: Bool
    unless: Bool = TRUE
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Bound:
    """A refinement with both models traced and the abstract terms read as concrete ones.

    It holds no function of the refinement, so its proof depends on its fields alone, whose text is
    the cache's key. `concrete` is the concrete model alone, in the terms of `raw`, the one with
    history. `assumed` is by concrete action. `left_out` says by concrete action and label where a
    guard is not kept, `reasons` why.
    """

    name: str
    concrete: System
    raw: System
    abstract: System
    families: Mapping[Sort, Sort]
    history: tuple[str, ...]
    definitions: Mapping[Symbol, Function]
    witnesses: Mapping[str, Witness]
    assumed: Mapping[str, Assumed]
    left_out: Mapping[tuple[str, str], Bool]
    reasons: Mapping[str, str]

    @functools.cached_property
    def system(self) -> System:
        """The concrete model with a history that changes by the witnesses."""
        return self._remembering(self.raw)

    def proof(self, only: tuple[str, ...] | None = None) -> RefinementProof:
        """Decide every obligation, or only those of some actions, where "" is the start."""
        started = time.perf_counter()
        wanted = ("", *self.witnesses) if only is None else only
        answers = [answer for action in wanted for answer in self.answers(action)]
        return RefinementProof(
            name=self.name,
            answers=tuple(answers),
            witnesses={action: str(witness) for action, witness in self.witnesses.items()},
            assumptions=self.assumptions,
            never=self.never,
            fixed=self.fixed,
            left_out=tuple(self.reasons.items()),
            seconds=time.perf_counter() - started,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the refinement and of its steps."""
        own = [assumed.text for action in self.system.actions for assumed in action.assumptions]
        known = {axiom.name for axiom in self.concrete.axioms}
        added = [
            f"the axiom {a.name} of the history" for a in self.raw.axioms if a.name not in known
        ]
        every = (*(each.text for each in self.assumed.values()), *own, *added)
        return tuple(dict.fromkeys(every))

    @property
    def fixed(self) -> tuple[str, ...]:
        """The abstract symbols that have one value here, with that value."""
        found = []
        for symbol, definition in self.definitions.items():
            changes = any(not read_here.rigid for read_here in symbols_read(definition.body))
            given = symbol.domain or is_constant(definition.body)
            if given and not changes and not free_variables(definition.body):
                text = show(definition.body)
                found += [] if text == symbol.name else [f"{symbol} is {text}"]
        return tuple(found)

    @property
    def never(self) -> tuple[str, ...]:
        """The abstract actions that no concrete step is."""
        taken = {witness.action for witness in self.witnesses.values()}
        return tuple(a.name for a in self.abstract.actions if a.name not in taken)

    def answers(self, action: str) -> Iterator[Answer]:
        """Decide the obligations of an action or, for "", those of the start and the history."""
        if action:
            step = self.system.action(action)
            possible = can_fire(self.system, step)
            yield Answer("it can happen", action, FIRING[possible.outcome], possible.reason)
            yield from (self._answer(step, each) for each in self._obligations(step))
            return
        axioms = [statement.term for statement in self.system.axioms]
        for each in self._about_the_start(self.system):
            if self._is_trivial(each):
                yield Answer(each.name, "", "proved", by_construction=True)
                continue
            yield Answer(each.name, "", decided(self.system, [*axioms, each.broken]).outcome)
        for statement in self.system.invariants:
            proof = prove_invariant(self.system, statement)
            bad = next((c for c in proof.conditions if c.outcome != "proved"), None)
            where = f"by {bad.action or 'the start'}" if bad else ""
            yield Answer(statement.name, "", proof.outcome, where, bad.witness if bad else ())

    def broken_by(self, changed: System) -> tuple[str, ...]:
        """Return the names that are not proved any more with another concrete model."""
        dropped = {a.name for a in self.concrete.axioms} - {a.name for a in changed.axioms}
        stated = {each.name: each for each in changed.invariants}
        raw = dataclasses.replace(
            self.raw,
            actions=changed.actions,
            initial=self.raw.initial | changed.initial,
            invariants=tuple(stated.get(each.name, each) for each in self.raw.invariants),
            axioms=tuple(a for a in self.raw.axioms if a.name not in dropped),
        )
        system = self._remembering(raw)
        starts = bool(dropped) or changed.initial != self.concrete.initial
        others = [a.name for a in raw.actions if dropped or self.raw.action(a.name) is not a]
        return self.lost(system, others, starts=starts, silence=bool(dropped))

    def broken_above(self, changed: System) -> tuple[str, ...]:
        """Return the names that are not proved any more with another abstract model."""
        above = dataclasses.replace(self, abstract=changed)
        others = [
            name
            for name, witness in self.witnesses.items()
            if witness.action
            and self.abstract.action(witness.action) is not changed.action(witness.action)
        ]
        starts = changed.initial != self.abstract.initial
        return above.lost(above.system, others, starts=starts)

    def lost(
        self, system: System, actions: list[str], *, starts: bool, silence: bool = False
    ) -> tuple[str, ...]:
        """Return the lost obligations of the start, and of actions beyond the mutation test."""
        broken: tuple[str, ...] = ()
        own = () if silence else {s.name for s in self.concrete.invariants}
        history = [s for s in system.invariants if s.name not in own]
        if starts:
            claims = [
                *((each.name, each.broken) for each in self._about_the_start(system)),
                *((s.name, negation(after(s.term, system.initial))) for s in system.invariants),
            ]
            broken += _refuted(system, None, [s.term for s in system.axioms], claims, silence=True)
        for action in map(system.action, actions):
            claims = [
                *((each.name, each.unless & each.broken) for each in self._obligations(action)),
                *((s.name, negation(after(s.term, action.updates))) for s in history),
            ]
            premises = [*assumed(system), *taken(action)]
            broken += _refuted(system, action, premises, claims, silence=silence)
        return tuple(dict.fromkeys(broken))

    def _about_the_start(self, system: System) -> Iterator[_Obligation]:
        for statement in self.abstract.axioms:
            broken = negation(cast("Bool", self._translated(statement.term, {})))
            yield _Obligation(statement.name, broken)
        for symbol in self.abstract.symbols:
            for number, law in enumerate(order_laws(symbol) if symbol.is_order else (), start=1):
                broken = negation(cast("Bool", self._translated(law, {})))
                yield _Obligation(f"{symbol} is an order, law {number}", broken)
        # What the abstract start reads of the state is free: its value after the start is used.
        started: Bindings = {
            symbol: Function(d.parameters, substitute(d.body, {}, dict(system.initial)))
            for symbol, d in self.definitions.items()
        }
        for symbol, function in self.abstract.initial.items():
            broken = self._made_different(symbol, system.initial, function, started)
            yield _Obligation(f"{symbol} initially", broken)

    def _obligations(self, action: Action) -> Iterator[_Obligation]:
        witness = self.witnesses[action.name]
        if not witness.action:
            for symbol in self.abstract.state:
                yield _Obligation(
                    f"{symbol} stays", self._made_different(symbol, action.updates, None, {})
                )
            return
        does = self.abstract.action(witness.action)
        variables = self._bindings(does, witness)
        for place, guard in enumerate(does.guards):
            broken = negation(cast("Bool", self._translated(guard.term, variables)))
            where = self.left_out.get((action.name, guard.label), FALSE)
            name = guard.label or f"guard {place + 1} of {does.name}"
            reason = self.reasons.get(guard.label, "")
            yield _Obligation(name, broken, ~where, reason)
        for symbol in self.abstract.state:
            broken = self._made_different(
                symbol, action.updates, does.updates.get(symbol), variables
            )
            yield _Obligation(f"{symbol}", broken)

    def _answer(self, action: Action, obligation: _Obligation) -> Answer:
        if not obligation.reason and self._is_trivial(obligation):
            return Answer(obligation.name, action.name, "proved", by_construction=True)
        premises = [*assumed(self.system), *taken(action)]
        found = decided(self.system, [*premises, obligation.unless, obligation.broken], action)
        if found.outcome == "proved" and obligation.reason:
            elsewhere = decided(self.system, [*premises, obligation.broken], action)
            if elsewhere.outcome == "proved":
                return Answer(
                    obligation.name, action.name, "refuted", "left out in vain: it is kept"
                )
        witness = found.question.shown() if found.question and found.question.action else ()
        return Answer(obligation.name, action.name, found.outcome, found.reason, witness)

    def _is_trivial(self, obligation: _Obligation) -> bool:
        """Whether an obligation holds in all states, whatever the action's guard."""
        if obligation.broken is FALSE:
            return True
        alone = dataclasses.replace(self.system, axioms=())
        return bool(asked(alone, [obligation.broken], STEPS_TRIVIAL)[0] == z3.unsat)

    def _made_different(
        self,
        symbol: Symbol,
        concrete: Mapping[Symbol, Function],
        abstract: Function | None,
        variables: Bindings,
    ) -> Bool:
        """Return the formula that an abstract symbol differs from its update after the step."""
        definition = self.definitions[symbol]
        places = tuple(fresh(type(p), p.payload[0]) for p in definition.parameters)  # type: ignore[index]
        reached = substitute(definition.at(*places), {}, dict(concrete))
        if abstract is None:
            wanted = definition.at(*places)
        else:
            inner = variables | dict(zip(abstract.parameters, places, strict=True))
            wanted = self._translated(abstract.body, inner)
        return quantify("exists", places, negation(equal(reached, wanted)))

    def _remembering(self, raw: System) -> System:
        """Return the system in which each action also changes the history, by its witness."""
        return dataclasses.replace(raw, actions=tuple(map(self._with_history, raw.actions)))

    def _with_history(self, action: Action) -> Action:
        witness = self.witnesses[action.name]
        guards, updates = list(action.guards), dict(action.updates)
        if assumption := self.assumed.get(action.name):
            guards.append(Guard("", assumption.term))
        if witness.action:
            does = self.abstract.action(witness.action)
            variables = self._bindings(does, witness)
            for symbol, function in does.updates.items():
                followed = self._history_of(symbol)
                if followed is not None:
                    places = tuple(fresh(sort, "x") for sort in followed.domain)
                    inner = variables | dict(zip(function.parameters, places, strict=True))
                    updates[followed] = Function(places, self._translated(function.body, inner))
        return dataclasses.replace(action, guards=tuple(guards), updates=updates)

    def _history_of(self, symbol: Symbol) -> Symbol | None:
        """Return the history symbol that an abstract symbol is read as, if any."""
        body, parameters = self.definitions[symbol].body, self.definitions[symbol].parameters
        if body.op == "read" and cast("Symbol", body.payload).name in self.history:
            assert all(map(operator.is_, body.args, parameters))
            return cast("Symbol", body.payload)
        return None

    def _bindings(self, does: Action, witness: Witness) -> Bindings:
        """Return the values of the parameters of an abstract action."""
        return cast("Bindings", dict(zip(does.parameters, witness.arguments, strict=True)))

    def _sort(self, sort: Sort) -> Sort:
        return self.families.get(sort, sort)

    def _translated(self, term: Term, variables: Bindings) -> Term:
        """Return an abstract term as one of the concrete state."""
        if term.op == "variable":
            return cast("Term", variables[term])
        if term.op in ("forall", "exists"):
            bound = cast("tuple[Term, ...]", term.payload)
            places = tuple(fresh(self._sort(type(v)), v.payload[0]) for v in bound)  # type: ignore[index]
            inner = variables | cast("Bindings", dict(zip(bound, places, strict=True)))
            body = cast("Bool", self._translated(term.args[0], inner))
            return quantify(cast("Literal['forall']", term.op), places, body)
        args = tuple(self._translated(arg, variables) for arg in term.args)
        if term.op == "read":
            symbol = cast("Symbol", term.payload)
            given = variables.get(symbol) or self.definitions[symbol]
            return cast("Function", given).at(*args)
        return rebuild(term, args)


def _refuted(
    system: System, action: Action | None, premises: list[Bool], claims: Claims, *, silence: bool
) -> tuple[str, ...]:
    """Return the claims broken in the smallest scope, or with `silence` those not proved."""
    for size in SIZES:
        if found := _possible(system, action, premises, claims, size):
            return found
    verdicts = [asked(system, [*premises, each], STEPS_FIRST)[0] for _, each in claims]
    lost = (z3.sat, z3.unknown) if silence else (z3.sat,)
    broken = tuple(name for (name, _), said in zip(claims, verdicts, strict=True) if said in lost)
    left = [each for each, said in zip(claims, verdicts, strict=True) if said == z3.unknown]
    return broken or _possible(system, action, premises, left, SIZE_LAST)


def _possible(
    system: System, action: Action | None, premises: list[Bool], claims: Claims, size: int
) -> tuple[str, ...]:
    """Return the claims that can be broken in a scope with this number of elements each."""
    sizes = dict.fromkeys(families(system), size)

    def is_possible(broken: Bool) -> bool:
        question = Question(system, sizes, action)
        return bool(question.asked([*premises, broken], STEPS_FEW)[0] == z3.sat)

    if not is_possible(disjunction(broken for _, broken in claims)):
        return ()
    return tuple(name for name, broken in claims if is_possible(broken))
