"""What a traced model is: symbols, actions, statements and counters, as values.

Owns the shape of what `trace` returns and every reading starts from. How it comes about is the
business of `model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from brokerproof.models.language.core.rewriting import Function
from brokerproof.models.language.core.terms import Bool, Int, Sort, Symbol, Term, conjunction


@dataclass(frozen=True)
class Guard:
    """One conjunct of an action's guard, and the promise that it is, if it is one."""

    label: str
    term: Bool


@dataclass(frozen=True)
class Assumed:
    """What holds wherever families are finite and first-order logic does not know, in words."""

    text: str
    term: Bool


@dataclass(frozen=True)
class Action:
    """A traced action: parameters, guards, and what each changed symbol becomes."""

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

    An invariant is proved `by` itself and those of these names, if that is enough.
    """

    name: str
    doc: str
    term: Bool
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeadsTo:
    """A promise: where the premise holds, the conclusion does in the end, if `fair` is fair."""

    name: str
    doc: str
    parameters: tuple[Term, ...]
    premise: Bool
    conclusion: Bool
    fair: tuple[str, ...]


@dataclass(frozen=True)
class Ghost:
    """A counter that counts the elements of which `term` holds, for the values of its indices.

    Each counts `weight`, which is 1 or a rigid map's value for the element. That the counter moves
    as it should is proved `by` the invariants of these names, if that is enough.
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
        """What a proof that reads the counter rests on."""
        return (
            f"ghost counter {self.symbol}: changed by what each action moves; "
            "its equality with the count is checked in scopes only"
        )


@dataclass(frozen=True)
class System:
    """A traced model: what every reading starts from."""

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
        """The symbols that do not."""
        return tuple(symbol for symbol in self.symbols if symbol.rigid)

    def action(self, name: str) -> Action:
        """Return the action of that name; raises `KeyError`."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(name)

    def symbol(self, name: str) -> Symbol:
        """Return the symbol of that name; raises `KeyError`."""
        for symbol in self.symbols:
            if symbol.name == name:
                return symbol
        raise KeyError(name)
