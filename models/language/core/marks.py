"""The decorators that mark a model's methods: action, invariant, axiom and so on.

Owns the marks alone; `model` runs the marked methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from brokerproof.models.language.core.terms import ModelError

Role: TypeAlias = Literal["action", "invariant", "axiom", "initial", "leads_to", "counts"]
Method = TypeVar("Method", bound=Callable[..., object])


def _role(role: Role, name: str | None) -> Callable[[Method], Method]:
    if callable(name):
        raise ModelError(f'write @{role}("its-name") above {getattr(name, "__name__", name)}')

    def mark(method: Method) -> Method:
        if not callable(method):
            raise ModelError(f"write @{role} without a name, not @{role}({method!r})")
        method.__model_role__ = (role, name or method.__name__)  # type: ignore[attr-defined]
        return method

    return mark


def action(method: Method) -> Method:
    """Mark a method as an action: requirements first, then assignments."""
    return _role("action", None)(method)


def initial(method: Method) -> Method:
    """Mark the method that assigns every symbol of the initial state, from rigid ones."""
    return _role("initial", None)(method)


def invariant(
    name: str, *, by: tuple[str, ...] = (), states: tuple[str, ...] = ()
) -> Callable[[Method], Method]:
    """Mark a method that returns a formula which holds in every reachable state.

    It holds for all values of the method's parameters. It is proved from itself and all other
    invariants. If that is too much for Z3, `by` names a sufficient selection, which is tried first.
    `states` has the ids of the requirements that the formula states, as labels of guards do.
    """
    role: Callable[[Method], Method] = _by(_role("invariant", name), by)

    def mark(method: Method) -> Method:
        method.__model_states__ = states  # type: ignore[attr-defined]
        return role(method)

    return mark


def _by(role: Callable[[Method], Method], names: tuple[str, ...]) -> Callable[[Method], Method]:
    def mark(method: Method) -> Method:
        method.__model_by__ = names  # type: ignore[attr-defined]
        return role(method)

    return mark


def axiom(name: str) -> Callable[[Method], Method]:
    """Mark a method that returns an assumption on the rigid symbols, for all its parameters."""
    return _role("axiom", name)


def leads_to(
    name: str, *, fair: tuple[str, ...] = (), together: bool = False, by: tuple[str, ...] = ()
) -> Callable[[Method], Method]:
    """Mark a method that returns premise and conclusion, for each value of its parameters.

    Runs count only if they take each `fair` action that stays possible or, if they are fair
    `together`, one of them where one or another always is. `by` is as for an invariant.
    """
    promise: Callable[[Method], Method] = _by(_role("leads_to", name), by)

    def mark(method: Method) -> Method:
        method.__model_fair__ = fair  # type: ignore[attr-defined]
        method.__model_together__ = together  # type: ignore[attr-defined]
        return promise(method)

    return mark


def counts(
    symbol: str, *, weighing: str = "", by: tuple[str, ...] = ()
) -> Callable[[Method], Method]:
    """Mark a method that says which elements a counter of the state counts: a ghost counter.

    Its last parameter is the element, those before are the counter's indices. An element counts 1,
    or its value in the rigid map `weighing`. First-order logic cannot count; `counting` says what
    is proved of the counter and what is checked in scopes. `by` is as for an invariant.
    """
    role: Callable[[Method], Method] = _by(_role("counts", symbol), by)

    def mark(method: Method) -> Method:
        method.__model_weighing__ = weighing  # type: ignore[attr-defined]
        return role(method)

    return mark
