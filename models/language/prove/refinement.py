"""Refinement by witnesses: each step of a concrete model is one of an abstract model, or a stutter.

Owns the form of a refinement and of its results. The abstraction gives each abstract symbol as a
function of the concrete state; the witness gives each concrete action as an abstract action with
arguments. So nothing is searched for: under the concrete invariants the abstract guard must hold,
and the abstraction after the step must equal the abstract update. Families are unbounded.

*History* are symbols that only the abstract model needs: no concrete action reads or changes them,
and the witness's update changes them. It never hinders a step, and invariants relate it to the
concrete state. That it changes nothing else is checked first; its axioms are listed as assumptions.
A guard that the concrete model does not keep is left out by name, with the states and a reason; it
is an error if it can be proved after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from brokerproof.models.language.core.model import Model, SetOf
from brokerproof.models.language.core.rewriting import Function
from brokerproof.models.language.core.terms import Bool, Sort, Term, show
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.z3_queries import Outcome

Argument: TypeAlias = Term | SetOf[Any] | Function | Callable[..., Bool]
"""An element, or a set: as a parameter, as a function of its elements, or as a traced one."""


@dataclass(frozen=True)
class Witness:
    """The abstract action of a concrete step, and its arguments; without a name, a stutter."""

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

    A set is given as a set parameter of the concrete action, or as a function of an element that
    returns whether it is in the set.
    """
    return Witness(action, arguments)


def stutters() -> Witness:
    """Return the witness of a step that the abstract model does not see."""
    return Witness("", ())


@dataclass(frozen=True)
class Assumption:
    """An assumption under which a concrete action is taken, with a text for readers."""

    text: str
    term: Callable[..., Bool]


@dataclass(frozen=True)
class LeftOut:
    """A labelled guard of the abstract model that is not kept in some states."""

    label: str
    where: Callable[..., Bool]
    reason: str


@dataclass(frozen=True)
class Refinement:
    """The description of how a concrete model refines an abstract one.

    `remembering` is the concrete model with its history, which is all the state that it adds, and
    the invariants about it. Functions take it first, and then a concrete action's parameters or an
    abstract symbol's indices. `families` maps abstract families to concrete ones; others stay.
    """

    name: str
    concrete: type[Model]
    abstract: type[Model]
    remembering: type[Model]
    families: Mapping[Sort, Sort]
    abstraction: Mapping[str, Callable[..., Term]]
    witnesses: Mapping[str, Callable[..., Witness]]
    assumptions: Mapping[str, Assumption] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The outcome of a proof obligation; the witness is a state and a step that breaks it.

    A proved obligation is `by_construction` if it holds in every state by the form of abstraction
    and witness, without any use of the concrete model's text.
    """

    name: str
    action: str
    outcome: Outcome
    reason: str = ""
    witness: tuple[Step, ...] = ()
    by_construction: bool = False


Standing: TypeAlias = Literal["proved", "by construction", "no step", "refuted", "unknown"]
"""What a refinement says of a label: its worst outcome; without an obligation, `no step`."""


@dataclass(frozen=True)
class RefinementProof:
    """All outcomes; `action` is "" if the outcome concerns the start or rigid symbols.

    `witnesses` are texts by action, `left_out` pairs of label and reason, and `never` the abstract
    actions that no concrete step is. `fixed` are the abstract symbols with one value in all states
    and at all places; nothing is proved about other values.
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
        """Whether every obligation is proved."""
        return all(answer.outcome == "proved" for answer in self.answers)

    def about(self, label: str) -> list[Answer]:
        """Return the outcomes for the guards with a label; an invariant may have its name too."""
        return [answer for answer in self.answers if answer.action and answer.name == label]

    def standing(self, label: str) -> Standing:
        """Return the worst outcome of the guards with a label."""
        about = self.about(label)
        if not about:
            return "no step"
        worst = next((each.outcome for each in about if each.outcome != "proved"), None)
        if worst is not None:
            return worst
        trivial = all(answer.by_construction for answer in about)
        return "by construction" if trivial else "proved"
