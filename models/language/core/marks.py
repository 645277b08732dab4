"""The marks that say what a method of a model is: an action, an invariant, an axiom and so on.

Owns the marks alone. What a marked method says is read by `model`, which runs it.
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
    """Mark the method that assigns the initial state, every symbol of it, from rigid things."""
    return _role("initial", None)(method)


def invariant(name: str, *, by: tuple[str, ...] = ()) -> Callable[[Method], Method]:
    """Mark a method that returns what holds in every reachable state.

    It is proved by itself and all other invariants. With many of them that may be more than Z3 can
    survey: then `by` names those that are enough, which are tried first.
    """
    return _by(_role("invariant", name), by)


def _by(role: Callable[[Method], Method], names: tuple[str, ...]) -> Callable[[Method], Method]:
    def mark(method: Method) -> Method:
        method.__model_by__ = names  # type: ignore[attr-defined]
        return role(method)

    return mark


def axiom(name: str) -> Callable[[Method], Method]:
    """Mark a method that returns what is assumed of the rigid things."""
    return _role("axiom", name)


def leads_to(name: str, *, fair: tuple[str, ...] = ()) -> Callable[[Method], Method]:
    """Mark a method that returns premise and conclusion, for each value of its parameters.

    Only runs count that do not pass over, for ever, a `fair` action that stays possible.
    """
    promise: Callable[[Method], Method] = _role("leads_to", name)

    def mark(method: Method) -> Method:
        method.__model_fair__ = fair  # type: ignore[attr-defined]
        return promise(method)

    return mark


def counts(
    symbol: str, *, weighing: str = "", by: tuple[str, ...] = ()
) -> Callable[[Method], Method]:
    """Mark a method that says which elements a counter of the state counts: a ghost counter.

    Its last parameter is the element, those before are the counter's indices. An element counts
    one, or what the rigid map `weighing` has for it. First-order logic cannot count: see `counting`
    for what is proved of it and what is checked in scopes. `by` is as for an invariant.
    """
    role: Callable[[Method], Method] = _by(_role("counts", symbol), by)

    def mark(method: Method) -> Method:
        method.__model_weighing__ = weighing  # type: ignore[attr-defined]
        return role(method)

    return mark
