"""Terms printed as Python expressions, for readings that run a model as Python.

Owns the operators, the quantifiers and the names of bound variables. Two hooks say how a symbol is
read and what a quantifier ranges over, because a flat tuple in a scope and the open world of an
oracle differ in these two. Invariant: every printed value is a Python number (a truth value is 0 or
1, False or True; a value of an enumeration or an element is its index), so `==` means the model's
equality everywhere.

The text depends only on the shape of the term, never on other terms traced in this process: bound
variables are named by their depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, cast

from brokerproof.models.language.core.terms import Bool, Int, ModelError, Sort, Symbol, Term

ReadText: TypeAlias = Callable[[Symbol, list[str]], str]
"""A function from a symbol and the texts of its indices to the text of its value."""

DomainText: TypeAlias = Callable[[Sort], str]
"""A function from a sort to the text of the range of a quantifier over it."""


_SIGNS = {"and": "and", "or": "or", "less": "<", "add": "+", "subtract": "-"}


class PythonText:
    """A printer of terms.

    >>> from brokerproof.models.language.core.terms import Family, exists
    >>> class Thing(Family): pass
    >>> text = PythonText(lambda symbol, indices: "", lambda sort: "range(3)")
    >>> text.expression(exists(Thing, Thing, lambda a, b: ~(a == b)))
    'any((not (a_0 == b_1)) for a_0 in range(3) for b_1 in range(3))'
    """

    def __init__(self, read: ReadText, domain: DomainText) -> None:
        self._read = read
        self._domain = domain
        self._names: dict[Term, str] = {}
        self._depth = 0

    def expression(self, term: Term, variables: Mapping[Term, str] | None = None) -> str:
        """Return the term's text; `variables` names each variable that is free in it.

        The text can stand anywhere in an expression without more parentheses. Raises `ModelError`
        for a free variable without a name.
        """
        self._names = dict(variables or {})
        self._depth = 0
        return self._text(term)

    def number(self, term: Term, variables: Mapping[Term, str] | None = None) -> str:
        """Return the text of the term's value as an int, truth values included (0 or 1)."""
        if term.op == "constant":
            return str(int(cast("int", term.payload)))
        text = self.expression(term, variables)
        return f"(1 if {text} else 0)" if isinstance(term, Bool) else text

    def _text(self, term: Term) -> str:
        match term.op:
            case "variable":
                text = self._name(term)
            case "constant":
                text = self._constant(term)
            case "read":
                text = self._read(cast("Symbol", term.payload), self._texts(term))
            case "forall" | "exists":
                text = self._quantifier(term)
            case "not":
                text = f"(not {self._text(term.args[0])})"
            case "ite":
                test, then, otherwise = self._texts(term)
                text = f"({then} if {test} else {otherwise})"
            case "equal":
                # The sides are in the order of their making, on which the text must not depend.
                sides = sorted((arg.op == "constant", self._text(arg)) for arg in term.args)
                text = f"({sides[0][1]} == {sides[1][1]})"
            case "and" | "or" | "less" | "add" | "subtract":
                text = f"({f' {_SIGNS[term.op]} '.join(self._texts(term))})"
        return text

    def _texts(self, term: Term) -> list[str]:
        return [self._text(arg) for arg in term.args]

    def _name(self, variable: Term) -> str:
        if variable not in self._names:
            raise ModelError(f"{variable!r} is free in a term that was to be printed without it")
        return self._names[variable]

    @staticmethod
    def _constant(term: Term) -> str:
        if isinstance(term, Bool):
            return "True" if term.payload else "False"
        value = cast("int", term.payload)
        return f"({value})" if isinstance(term, Int) and value < 0 else str(value)

    def _quantifier(self, term: Term) -> str:
        bound = cast("tuple[Term, ...]", term.payload)
        with self._bound(bound) as names:
            loops = " ".join(
                f"for {name} in {self._domain(type(variable))}"
                for variable, name in zip(bound, names, strict=True)
            )
            function = "all" if term.op == "forall" else "any"
            return f"{function}({self._text(term.args[0])} {loops})"

    @contextmanager
    def _bound(self, variables: tuple[Term, ...]) -> Iterator[list[str]]:
        """Give each variable a name by its depth while its quantifier's body is printed."""
        outer = self._depth
        names = []
        for variable in variables:
            name = f"{cast('tuple[str, int]', variable.payload)[0]}_{self._depth}"
            self._names[variable] = name
            names.append(name)
            self._depth += 1
        yield names
        self._depth = outer
