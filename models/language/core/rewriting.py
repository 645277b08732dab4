"""Term rewriting: substitution without capture, rebuilding, and walking.

Owns how a post-state is made: a symbol stands for a `Function`, and a read of it is replaced by the
function's body. Every rebuilt term is simplified by the constructors of `terms`.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from brokerproof.models.language.core.terms import (
    Bool,
    Int,
    Symbol,
    Term,
    add,
    conjunction,
    disjunction,
    equal,
    free_variables,
    fresh,
    ite,
    less,
    negation,
    quantify,
    read,
    subtract,
)

T = TypeVar("T", bound=Term)


@dataclass(frozen=True, eq=False)
class Function:
    """The value of a symbol at some moment of a trace: parameters and a body."""

    parameters: tuple[Term, ...]
    body: Term

    def at(self, *indices: Term) -> Term:
        """Return the value at the given indices."""
        return substitute(self.body, dict(zip(self.parameters, indices, strict=True)))


def substitute(
    term: T, variables: dict[Term, Term], functions: dict[Symbol, Function] | None = None
) -> T:
    """Replace variables by terms and symbols by functions, at once, without capture.

    This makes a post-state: `status[e] := v` turns every later read of `status` at `x` into ``ite(x
    = e, v, old status[x])``; no second set of symbols, no frame axioms.
    """
    done: dict[Term, Term] = {}

    def visit(old: Term) -> Term:
        new = done.get(old)
        if new is None:
            new = done[old] = build(old)
        return new

    def build(old: Term) -> Term:
        if old.op == "variable":
            return variables.get(old, old)
        if old.op == "constant" or (
            functions is None and not variables.keys() & free_variables(old)
        ):
            return old
        if old.op in ("forall", "exists"):
            bound = cast("tuple[Term, ...]", old.payload)
            renamed = {v: fresh(type(v), cast("tuple[str, int]", v.payload)[0]) for v in bound}
            body = substitute(cast("Bool", old.args[0]), variables | renamed, functions)
            return quantify(cast("Literal['forall']", old.op), tuple(renamed.values()), body)
        args = tuple(visit(arg) for arg in old.args)
        if old.op == "read" and functions is not None:
            function = functions.get(cast("Symbol", old.payload))
            if function is not None:
                return function.at(*args)
        return rebuild(old, args)

    return cast("T", visit(term))


def rebuild(old: Term, args: tuple[Term, ...]) -> Term:
    """Return `old` with other arguments, simplified again."""
    if args == () or all(new is was for new, was in zip(args, old.args, strict=True)):
        return old
    match old.op:
        case "not":
            return negation(cast("Bool", args[0]))
        case "and":
            return conjunction(cast("tuple[Bool, ...]", args))
        case "or":
            return disjunction(cast("tuple[Bool, ...]", args))
        case "ite":
            return ite(cast("Bool", args[0]), args[1], args[2])
        case "equal":
            return equal(args[0], args[1])
        case "less":
            return less(cast("Int", args[0]), cast("Int", args[1]))
        case "add":
            return add(cast("Int", args[0]), cast("Int", args[1]))
        case "subtract":
            return subtract(cast("Int", args[0]), cast("Int", args[1]))
        case "read":
            return read(cast("Symbol", old.payload), args)
        case _:
            return quantify(
                cast("Literal['forall']", old.op),
                cast("tuple[Term, ...]", old.payload),
                cast("Bool", args[0]),
            )


def subterms(term: Term, beyond: Container[Term] = ()) -> Iterable[Term]:
    """Yield every subterm once, arguments before the terms that use them.

    A term of `beyond` is skipped, and so are the subterms that stand only in such terms.
    """
    opened: set[Term] = set()
    done: set[Term] = set()
    stack = [term]
    while stack:
        current = stack.pop()
        if current in opened:
            if current not in done:
                done.add(current)
                yield current
        elif current not in beyond:
            opened.add(current)
            stack.append(current)
            stack.extend(current.args)


def replaced(term: T, known: Mapping[Term, Term]) -> T:
    """Return a term with other terms in the place of these parts."""
    if not known:
        return term
    new: dict[Term, Term] = {}
    for part in subterms(term):
        value = known.get(part)
        new[part] = rebuild(part, tuple(new[a] for a in part.args)) if value is None else value
    return cast("T", new[term])


@functools.lru_cache(4096)
def symbols_read(term: Term) -> tuple[Symbol, ...]:
    """Return the symbols that a term reads, each once."""
    read_here = (cast("Symbol", part.payload) for part in subterms(term) if part.op == "read")
    return tuple(dict.fromkeys(read_here))
