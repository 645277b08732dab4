"""The proof of a refinement: its obligations, made of both models and decided one by one.

Owns how an abstract term is read as a concrete one, how the history follows the witnesses, and
which obligations there are. What a refinement is, is said in `refinement`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

import z3

from brokerproof.models.language.model import (
    Action,
    Fixed,
    FixedRelation,
    Guard,
    Map,
    Model,
    ModelError,
    Order,
    Relation,
    System,
    _run,
    trace,
)
from brokerproof.models.language.plain import PlainReading
from brokerproof.models.language.prover import prove_invariant
from brokerproof.models.language.questions import (
    STEPS_FIRST,
    Outcome,
    after,
    asked,
    assumed,
    decided,
)
from brokerproof.models.language.refinement import (
    Answer,
    Refinement,
    RefinementProof,
    Witness,
)
from brokerproof.models.language.rewriting import Function, rebuild, substitute, subterms
from brokerproof.models.language.scope import families
from brokerproof.models.language.terms import (
    TRUE,
    Bool,
    Sort,
    Symbol,
    Term,
    disjunction,
    equal,
    fresh,
    lift,
    negation,
    quantify,
    read,
)
from brokerproof.models.language.traces import Step
from brokerproof.models.language.witness import Question

SIZES = (2, 3)
"""How many elements of each family the quick search for a broken obligation tries."""


def prove_refinement(
    refinement: Refinement, only: tuple[str, ...] | None = None
) -> RefinementProof:
    """Decide every obligation, or only those of some actions, where "" is the start."""
    started = time.perf_counter()
    bound = Bound(refinement)
    wanted = ("", *bound.witnesses) if only is None else only
    answers = [answer for action in wanted for answer in bound.answers(action)]
    return RefinementProof(
        name=refinement.name,
        answers=tuple(answers),
        witnesses={action: str(witness) for action, witness in bound.witnesses.items()},
        assumptions=tuple(each.text for each in refinement.assumptions.values()),
        left_out=tuple((each.label, each.reason) for each in refinement.left_out),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True)
class _Obligation:
    """What must not be possible where an action is taken; `vain` where it was left out."""

    name: str
    broken: Bool
    unless: Bool = TRUE
    reason: str = ""


class Bound:
    """A refinement with both models traced and the abstract terms read as concrete ones."""

    def __init__(self, refinement: Refinement) -> None:
        self.refinement = refinement
        self.abstract = trace(refinement.abstract)
        self.raw = trace(refinement.remembering)
        self._model = _instance(refinement.remembering)
        self._definitions = {s: self._definition(s) for s in self.abstract.symbols}
        self.witnesses = {a.name: self._witness(a) for a in self.raw.actions}
        self.system = self._remembering(self.raw.actions)

    @property
    def concrete(self) -> System:
        """The concrete model alone, in the terms of the one that remembers."""
        alone = trace(self.refinement.concrete)
        names = {s.name for s in alone.symbols}
        names |= {s.name for s in (*alone.invariants, *alone.axioms)}
        return dataclasses.replace(
            self.raw,
            name=alone.name,
            symbols=tuple(s for s in self.raw.symbols if s.name in names),
            initial={s: f for s, f in self.raw.initial.items() if s.name in names},
            invariants=tuple(s for s in self.raw.invariants if s.name in names),
            axioms=tuple(s for s in self.raw.axioms if s.name in names),
            families=alone.families,
        )

    def answers(self, action: str) -> Iterator[Answer]:
        """Decide the obligations of an action or, for "", those of the start and the history."""
        if action:
            step = self.system.action(action)
            yield from (self._answer(step, each) for each in self._obligations(step))
            return
        yield from self._about_the_start()
        for statement in self.system.invariants:
            proof = prove_invariant(self.system, statement)
            bad = next((c for c in proof.conditions if c.outcome != "proved"), None)
            where = f"by {bad.action or 'the start'}" if bad else ""
            yield Answer(statement.name, "", proof.outcome, where, bad.witness if bad else ())

    def broken_by(self, original: Action, changed: Action) -> tuple[str, ...]:
        """Return what is not proved any more where a concrete action is replaced by another."""
        actions = tuple(
            changed if action.name == original.name else action for action in self.raw.actions
        )
        system = self._remembering(actions)
        action = system.action(changed.name)
        obligations = [
            *((each.name, each.unless & each.broken) for each in self._obligations(action)),
            *(
                (statement.name, negation(after(statement.term, action.updates)))
                for statement in system.invariants
            ),
        ]
        premises = [*assumed(system), action.guard]
        for size in SIZES:
            question = Question(system, dict.fromkeys(families(system), size), action)
            if (
                question.asked([*premises, disjunction(b for _, b in obligations)], STEPS_FIRST)[0]
                != z3.sat
            ):
                continue
            return tuple(
                name
                for name, broken in obligations
                if Question(system, dict.fromkeys(families(system), size), action).asked(
                    [*premises, broken], STEPS_FIRST
                )[0]
                == z3.sat
            )
        return tuple(
            name
            for name, broken in obligations
            if asked(system, [*premises, broken], STEPS_FIRST)[0] != z3.unsat
        )

    def _about_the_start(self) -> Iterator[Answer]:
        axioms = [statement.term for statement in self.system.axioms]
        for statement in self.abstract.axioms:
            broken = negation(cast("Bool", self._translated(statement.term, {})))
            yield _plainly(statement.name, decided(self.system, [*axioms, broken]).outcome)
        for symbol, function in self.abstract.initial.items():
            if any(
                part.op == "read" and part.payload is symbol for part in subterms(function.body)
            ):
                continue  # It starts as anything.
            broken = self._made_different(symbol, self.system.initial, function, {})
            yield _plainly(f"{symbol} initially", decided(self.system, [*axioms, broken]).outcome)

    def _obligations(self, action: Action) -> Iterator[_Obligation]:
        witness = self.witnesses[action.name]
        if not witness.action:
            for symbol in self.abstract.state:
                yield _Obligation(
                    f"{symbol} stays", self._made_different(symbol, action.updates, None, {})
                )
            return
        does = self.abstract.action(witness.action)
        variables = dict(zip(_parameters(does), witness.arguments, strict=True))
        left_out = {each.label: each for each in self.refinement.left_out}
        for place, guard in enumerate(does.guards):
            broken = negation(cast("Bool", self._translated(guard.term, variables)))
            if guard.label in left_out:
                exception = left_out[guard.label]
                where = self._condition(exception.where, witness.arguments)
                yield _Obligation(guard.label, broken, ~where, exception.reason)
            else:
                yield _Obligation(guard.label or f"guard {place + 1} of {does.name}", broken)
        for symbol in self.abstract.state:
            broken = self._made_different(
                symbol, action.updates, does.updates.get(symbol), variables
            )
            yield _Obligation(f"{symbol}", broken)

    def _answer(self, action: Action, obligation: _Obligation) -> Answer:
        premises = [*assumed(self.system), action.guard]
        found = decided(self.system, [*premises, obligation.unless, obligation.broken], action)
        if found.outcome == "proved" and obligation.reason:
            elsewhere = decided(self.system, [*premises, obligation.broken], action)
            if elsewhere.outcome == "proved":
                return Answer(
                    obligation.name, action.name, "refuted", "left out in vain: it is kept"
                )
        witness = _shown(self.system, found.question) if found.question else ()
        return Answer(obligation.name, action.name, found.outcome, found.reason, witness)

    def _made_different(
        self,
        symbol: Symbol,
        concrete: Mapping[Symbol, Function],
        abstract: Function | None,
        variables: dict[Term, Term],
    ) -> Bool:
        """Return that an abstract symbol, read afterwards, is not what its update makes of it."""
        definition = self._definitions[symbol]
        places = tuple(fresh(type(p), p.payload[0]) for p in definition.parameters)  # type: ignore[index]
        reached = substitute(definition.at(*places), {}, dict(concrete))
        if abstract is None:
            wanted = definition.at(*places)
        else:
            inner = variables | dict(zip(abstract.parameters, places, strict=True))
            wanted = self._translated(abstract.body, inner)
        return quantify("exists", places, negation(equal(reached, wanted)))

    def _remembering(self, actions: tuple[Action, ...]) -> System:
        """Return the system in which each action also changes the history, as its witness does."""
        return dataclasses.replace(self.raw, actions=tuple(map(self._with_history, actions)))

    def _with_history(self, action: Action) -> Action:
        witness = self.witnesses[action.name]
        guards, updates = list(action.guards), dict(action.updates)
        if assumption := self.refinement.assumptions.get(action.name):
            guards.append(Guard("", self._condition(assumption.term, action.parameters)))
        if witness.action:
            does = self.abstract.action(witness.action)
            variables = dict(zip(_parameters(does), witness.arguments, strict=True))
            for symbol, function in does.updates.items():
                followed = self._history_of(symbol)
                if followed is not None:
                    places = tuple(fresh(sort, "x") for sort in followed.domain)
                    inner = variables | dict(zip(function.parameters, places, strict=True))
                    updates[followed] = Function(places, self._translated(function.body, inner))
        return dataclasses.replace(action, guards=tuple(guards), updates=updates)

    def _history_of(self, symbol: Symbol) -> Symbol | None:
        """Return the symbol of the history that an abstract symbol is read as."""
        definition = self._definitions[symbol]
        body = definition.body
        if body.op == "read" and cast("Symbol", body.payload).name in self.refinement.history:
            assert body.args == definition.parameters
            return cast("Symbol", body.payload)
        return None

    def _definition(self, symbol: Symbol) -> Function:
        places = tuple(fresh(self._sort(sort), sort.__name__[0].lower()) for sort in symbol.domain)
        define = self.refinement.abstraction.get(symbol.name)
        if define is not None:
            return Function(places, self._traced(define, places, self._sort(symbol.range)))
        try:
            return Function(places, read(self.raw.symbol(symbol.name), places))
        except KeyError:
            raise ModelError(f"{self.refinement.name}: {symbol} is not defined") from None

    def _witness(self, action: Action) -> Witness:
        give = self.refinement.witnesses.get(action.name)
        if give is None:
            raise ModelError(f"{self.refinement.name}: {action.name} has no witness")
        with _run(self.refinement.remembering.symbols_):
            return give(self._model, *action.parameters)

    def _condition(self, function: Callable[..., Bool], arguments: tuple[object, ...]) -> Bool:
        return cast("Bool", self._traced(function, arguments, Bool))

    def _traced(
        self, function: Callable[..., Term], arguments: tuple[object, ...], sort: Sort
    ) -> Term:
        with _run(self.refinement.remembering.symbols_):
            return lift(function(self._model, *arguments), sort)

    def _sort(self, sort: Sort) -> Sort:
        return self.refinement.families.get(sort, sort)

    def _translated(self, term: Term, variables: dict[Term, Term]) -> Term:
        """Return an abstract term as one of the concrete state."""
        if term.op == "variable":
            return variables[term]
        if term.op in ("forall", "exists"):
            bound = cast("tuple[Term, ...]", term.payload)
            renamed = {v: fresh(self._sort(type(v)), v.payload[0]) for v in bound}  # type: ignore[index]
            body = cast("Bool", self._translated(term.args[0], variables | renamed))
            return quantify(cast("Literal['forall']", term.op), tuple(renamed.values()), body)
        args = tuple(self._translated(arg, variables) for arg in term.args)
        if term.op == "read":
            return self._definitions[cast("Symbol", term.payload)].at(*args)
        return rebuild(term, args)


def _parameters(action: Action) -> tuple[Term, ...]:
    terms = tuple(parameter for parameter in action.parameters if isinstance(parameter, Term))
    if len(terms) != len(action.parameters):
        raise ModelError(f"{action.name} has a set parameter: a witness cannot give it yet")
    return terms


def _instance(model: type[Model]) -> Model:
    """Return what the functions of a refinement see as the model."""
    instance = object.__new__(model)
    for name, symbol in model.symbols_.items():
        seen: object
        if not symbol.domain:
            seen = read(symbol, ())
        elif symbol.is_order:
            seen = Order(symbol)
        elif len(symbol.domain) == 1:
            seen = Fixed(symbol) if symbol.rigid else Map(symbol)
        else:
            seen = FixedRelation(symbol) if symbol.rigid else Relation(symbol)
        object.__setattr__(instance, name, seen)
    return instance


def _plainly(name: str, outcome: Outcome) -> Answer:
    return Answer(name, "", outcome)


def _shown(system: System, question: Question) -> tuple[Step, ...]:
    """Return the state and the step that Z3 has found, the step confirmed to be possible."""
    if question.action is None:
        return ()
    plain = PlainReading(system, question.scope)
    name, state, arguments = question.action.name, question.state(), question.arguments()
    assert plain.enabled(name, state, arguments), "Z3 and the plain reading disagree"
    following = plain.step(name, state, arguments)
    return (question.step("", (), state), question.step(name, arguments, following))
