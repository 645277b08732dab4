"""Refinement by witnesses: each step of a concrete model is a step of an abstract one, or none.

Owns the form in which a refinement is written and what is said of it. A refinement
gives each symbol of the abstract model as a function of the concrete state (the abstraction), and
each concrete action as an abstract action with its arguments (the witness). Then nothing has to be
searched for: under the concrete invariants the abstract guard must hold, and the abstraction of the
state afterwards must be what the abstract update makes of the abstraction before. Families are
unbounded.

What the concrete model does not remember, though the abstract one does, is *history*: symbols that
no concrete action reads or changes. The witness's own update changes them. History never hinders a
step, so nothing is assumed by it; what relates it to the concrete state is stated as invariants.
That the concrete model with its history is the concrete model, apart from the history, is checked
before anything is proved; axioms that come with the history are listed as assumptions.

A promise that the concrete model does not keep is left out by name, with where it is not kept and a
reason. One that can be proved there after all was left out in vain, which is an error too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from brokerproof.models.language.core.model import Model, SetOf
from brokerproof.models.language.core.rewriting import Function
from brokerproof.models.language.core.terms import Bool, Sort, Term, show
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.z3_queries import Outcome

Argument: TypeAlias = Term | SetOf[Any] | Function | Callable[..., Bool]
"""An element, or a set: as a parameter, as a function of its elements, or as a traced one."""


@dataclass(frozen=True)
class Witness:
    """The abstract action that a concrete step is, and its arguments; unnamed, a stutter."""

    action: str
    arguments: tuple[Argument, ...]

    def __str__(self) -> str:
        """Return the witness in one line."""
        if not self.action:
            return "a stutter"
        return f"{self.action}({', '.join(map(_shown, self.arguments))})"


def _shown(argument: Argument) -> str:
    if isinstance(argument, Term):
        return show(argument)
    if isinstance(argument, Function):
        return f"{{{', '.join(map(show, argument.parameters))}: {show(argument.body)}}}"
    return "a set"


def does(action: str, *arguments: Argument) -> Witness:
    """Return the witness: the abstract action of that name with these arguments.

    A set is given as a set parameter of the concrete action, or as a function that says of an
    element whether it is in the set.
    """
    return Witness(action, arguments)


def stutters() -> Witness:
    """Return the witness of a step that the abstract model does not see."""
    return Witness("", ())


@dataclass(frozen=True)
class Assumption:
    """What a concrete action is assumed to be taken under, of model and parameters, in words."""

    text: str
    term: Callable[..., Bool]


@dataclass(frozen=True)
class LeftOut:
    """A labelled guard of the abstract model that is not kept in some states of the model."""

    label: str
    where: Callable[..., Bool]
    reason: str


@dataclass(frozen=True)
class Refinement:
    """How a concrete model refines an abstract one.

    `remembering` is the concrete model with its history and the invariants about it; functions take
    it first, and then a concrete action's parameters or an abstract symbol's indices. `families`
    says which concrete family stands for an abstract one; others stand for themselves.
    """

    name: str
    concrete: type[Model]
    abstract: type[Model]
    remembering: type[Model]
    families: Mapping[Sort, Sort]
    history: tuple[str, ...]
    abstraction: Mapping[str, Callable[..., Term]]
    witnesses: Mapping[str, Callable[..., Witness]]
    assumptions: Mapping[str, Assumption] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class Answer:
    """An obligation's outcome; the witness is a state and a step that breaks it.

    `by_construction` says of a proved one that it holds in every state, by how the abstraction and
    the witness are written: nothing of the concrete model's text was needed for it.
    """

    name: str
    action: str
    outcome: Outcome
    reason: str = ""
    witness: tuple[Step, ...] = ()
    by_construction: bool = False


@dataclass(frozen=True)
class RefinementProof:
    """All answers; an action is "" where the answer is about the start and the rigid things.

    `witnesses` are in words by action, `left_out` in pairs of label and reason, and `never` are the
    abstract steps that no concrete one is. `fixed` are the abstract symbols that are the same in
    all states and at all places, with their values: of others nothing is proved.
    """

    name: str
    answers: tuple[Answer, ...]
    witnesses: dict[str, str]
    assumptions: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    seconds: float = field(compare=False)
    never: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything is proved."""
        return all(answer.outcome == "proved" for answer in self.answers)
