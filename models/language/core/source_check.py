"""Mistakes in a model's text that leave no trace in its terms.

Examples: a comparison where an assignment was meant has no effect; `is` compares symbols, not their
values; the second of two methods with one name replaces the first. The check reads the source of
the class, so a class without source (typed at a prompt) is not checked for these. An override of a
marked method without its mark is found in any class.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator

from brokerproof.models.language.core.terms import ModelError

_NO_MODELS = ("builtins", "brokerproof.models.language.core.model")
"""Modules of base classes that are no models."""

ROLE = "__model_role__"
"""The attribute in which a method's mark is stored."""

_STATEMENTS = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Subscript, ast.Attribute)
"""Expressions that have no effect as a line of their own."""

_TERMS = ("forall", "exists", "implies", "ite")
"""Functions without side effects, whose result must be used."""


def check_source(model: type) -> None:
    """Raise `ModelError` for the first such mistake in the text of the class or its ancestors."""
    texts = [each for each in model.__mro__ if each.__module__ not in _NO_MODELS]
    for ancestor in reversed(texts):
        for line, complaint in _complaints(ancestor):
            raise ModelError(f"{ancestor.__name__}, line {line}: {complaint}")
        for name, method in vars(ancestor).items():
            marked = [b for b in ancestor.__mro__[1:] if hasattr(vars(b).get(name), ROLE)]
            if marked and not hasattr(method, ROLE):
                role = getattr(vars(marked[0])[name], ROLE)[0]
                raise ModelError(f"{ancestor.__name__}.{name} overrides an @{role}: mark it as one")


@functools.cache  # models share most of their ancestors
def _complaints(model: type) -> tuple[tuple[int, str], ...]:
    return tuple(_found_in(model))


def _found_in(model: type) -> Iterator[tuple[int, str]]:
    try:
        lines, first = inspect.getsourcelines(model)
    except (OSError, TypeError):
        return
    tree = ast.parse(textwrap.dedent("".join(lines)))
    [definition] = tree.body
    assert isinstance(definition, ast.ClassDef)
    seen: dict[str, int] = {}
    for statement in definition.body:
        if not isinstance(statement, ast.FunctionDef):
            continue
        line = first + statement.lineno - 1
        if statement.name in seen:
            yield line, f"{statement.name} is there already, in line {seen[statement.name]}"
        seen[statement.name] = line
        for part in ast.walk(statement):
            if isinstance(part, ast.Compare) and _compares_identity(part):
                text = ast.unparse(part)
                yield first + part.lineno - 1, f"`{text}` is decided once: write == or !="
            if isinstance(part, ast.Expr) and _does_nothing(part.value):
                text = ast.unparse(part.value)
                yield first + part.lineno - 1, f"`{text}` does nothing: require or assign it"


def _compares_identity(compared: ast.Compare) -> bool:
    """Whether a comparison is by identity, other than with None."""
    sides = (compared.left, *compared.comparators)
    about_none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
    return not about_none and any(isinstance(op, ast.Is | ast.IsNot) for op in compared.ops)


def _does_nothing(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, _STATEMENTS)
    called = value.func
    if isinstance(called, ast.Attribute):
        return called.attr == "map"
    return isinstance(called, ast.Name) and called.id in _TERMS
