"""A traced model as values: symbols, actions, statements and counters.

Owns the shape of the result of `trace`, on which every reading builds; `model` makes it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from brokerproof.models.language.core.rewriting import Function
from brokerproof.models.language.core.terms import Bool, Int, Sort, Symbol, Term, conjunction


@dataclass(frozen=True)
class Guard:
    """One conjunct of an action's guard; the label is the id of a requirement, or empty."""

    label: str
    term: Bool


@dataclass(frozen=True)
class Assumed:
    """A fact about finite families unknown to first-order logic, with a text for readers.

    `first` is the fact about the first element of one set, and this element.
    """

    text: str
    term: Bool
    first: tuple[Term, Bool] | None = None


@dataclass(frozen=True)
class Action:
    """A traced action: parameters, guards, and the new value of each changed symbol."""

    name: str
    doc: str
    parameters: tuple[Term | Symbol, ...]
    guards: tuple[Guard, ...]
    updates: dict[Symbol, Function]
    situations: tuple[Guard, ...] = ()
    assumptions: tuple[Assumed, ...] = ()

    @property
    def guard(self) -> Bool:
        """The conjunction of all guards."""
        return conjunction(guard.term for guard in self.guards)


@dataclass(frozen=True)
class Statement:
    """A named formula: an invariant or an axiom.

    `by` names the invariants from which, with itself, an invariant is proved, if they suffice.
    `states` has the ids of the requirements that an invariant states.
    """

    name: str
    doc: str
    term: Bool
    by: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A part of a rank: a set that loses an element, a truth value that ends, or a falling number.

    `element` is the variable of a set, which lies within the set `within`.
    """

    term: Bool | Int
    element: Term | None = None
    within: Bool | None = None


@dataclass(frozen=True)
class Rank:
    """Why a leads-to property holds: the parts, compared in order, and the steps that lower them.

    `lowered_by` has for each such action a condition on its parameters; a set parameter is one of
    `sets`. `pending` holds from the premise on until the conclusion holds. `words` tells readers
    of a proof what gets less.
    """

    parts: tuple[Part, ...]
    lowered_by: dict[str, Bool]
    pending: Bool
    assumptions: tuple[Assumed, ...] = ()
    sets: dict[Symbol, Function] = field(default_factory=dict)
    words: str = ""


@dataclass(frozen=True)
class LeadsTo:
    """A leads-to property: after the premise the conclusion follows, if `fair` actions are fair.

    If these are fair `together`, one of them is taken where one or another stays possible. It is
    about runs that take the steps of `finitely` finitely often: for each such action, a condition
    on its parameters. `by` names the invariants from which it is proved, if they suffice.
    """

    name: str
    doc: str
    parameters: tuple[Term, ...]
    premise: Bool
    conclusion: Bool
    fair: tuple[str, ...]
    together: bool = False
    finitely: dict[str, Bool] = field(default_factory=dict)
    rank: Rank | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ghost:
    """A counter of the elements for which `term` holds, for the values of its indices.

    Each element counts `weight`, which is 1 or its value in a rigid map. `by` names the invariants
    from which the counter's updates are proved, if they suffice.
    """

    symbol: Symbol
    doc: str
    indices: tuple[Term, ...]
    element: Term
    term: Bool
    weight: Int
    by: tuple[str, ...] = ()

    @property
    def assumption(self) -> str:
        """The assumption of a proof that reads the counter."""
        return (
            f"ghost counter {self.symbol}: changed by what each action moves; "
            "its equality with the count is checked in scopes only"
        )


@dataclass(frozen=True)
class System:
    """A traced model, on which every reading builds."""

    name: str
    doc: str
    symbols: tuple[Symbol, ...]
    initial: dict[Symbol, Function]
    actions: tuple[Action, ...]
    invariants: tuple[Statement, ...]
    axioms: tuple[Statement, ...]
    families: tuple[Sort, ...] = field(default=())
    leads_to: tuple[LeadsTo, ...] = field(default=())
    ghosts: tuple[Ghost, ...] = field(default=())

    @property
    def state(self) -> tuple[Symbol, ...]:
        """The symbols that change."""
        return tuple(symbol for symbol in self.symbols if not symbol.rigid)

    @property
    def rigid(self) -> tuple[Symbol, ...]:
        """The symbols that do not change."""
        return tuple(symbol for symbol in self.symbols if symbol.rigid)

    def action(self, name: str) -> Action:
        """Return the action of that name; raises `KeyError`."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(name)

    def symbol(self, name: str) -> Symbol:
        """Return the symbol of that name; raises `KeyError`."""
        return self._named[name]

    @functools.cached_property
    def _named(self) -> dict[str, Symbol]:
        return {symbol.name: symbol for symbol in self.symbols}
