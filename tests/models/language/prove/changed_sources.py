"""The models with one statement of their text changed, loaded anew beside the real ones.

A unit is a statement of a function, its mark, or a lambda of a table. It is left out, or one part
of it is negated, swapped or replaced.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

import brokerproof.models
from brokerproof.models.language.core.model import _traced as traced
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.systems import System
from brokerproof.models.language.core.terms import _terms as interned
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.commutation import Pair, pair
from brokerproof.models.language.prove.refining import Bound

PACKAGE = brokerproof.models.__name__
SWAPS = "contract.swaps"

Given: TypeAlias = System | Bound | Pair


@functools.cache
def sources() -> dict[str, str]:
    """Return the text of each module of models, by name; the language is not among them."""
    [folder] = brokerproof.models.__path__
    paths = [path.relative_to(folder) for path in sorted(Path(folder).rglob("*.py"))]
    return {
        ".".join(path.with_suffix("").parts): Path(folder, path).read_text(encoding="utf-8")
        for path in paths
        if path.stem != "__init__" and path.parts[0] != "language"
    }


@functools.cache
def _imports(name: str) -> frozenset[str]:
    """Return the modules of models that one imports, by whatever way."""
    found = {name}
    for node in ast.walk(ast.parse(sources()[name])):
        if isinstance(node, ast.ImportFrom):
            module = f"{node.module}.".removeprefix(f"{PACKAGE}.")
            names = [module.rstrip("."), *(f"{module}{each.name}" for each in node.names)]
            for each in set(names) & sources().keys() - {name}:
                found |= _imports(each)
    return frozenset(found)


Unit: TypeAlias = ast.stmt | ast.expr


def read() -> list[str]:
    """Return the modules that the listed models and refinements are made of."""
    return sorted(_imports("catalogue") | _imports("refinements") | _imports(SWAPS))


def units(name: str, function: str = "") -> list[int]:
    """Return the numbers of the possible changes in a module, or in one of its functions."""
    tree = ast.parse(sources()[name])
    named = [n for n in _functions(tree) if function in ("", n.name)]
    inside = {id(part) for each in named for part in ast.walk(each)}
    return [n for n, unit in enumerate(_units(tree)) if not function or id(unit) in inside]


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _units(tree: ast.Module) -> list[Unit]:
    """Return the statements and the marks of functions, and lambdas outside of them."""
    functions = _functions(tree)
    inside = {id(part) for function in functions for part in ast.walk(function)}
    lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and id(n) not in inside]
    marks = [m for f in functions for m in f.decorator_list if isinstance(m, ast.Call)]
    statements = [s for f in functions for s in f.body if not _is_docstring(s)]
    return [*statements, *marks, *lambdas]


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def changes(name: str, place: int) -> Iterator[str]:
    """Yield texts of the module in which one part is another, and which still are Python."""
    unit = _units(ast.parse(sources()[name]))[place]
    if isinstance(unit, ast.Expr | ast.Assign | ast.AugAssign):
        yield _changed(name, place, None, 0)
    for number, part in enumerate(_parts(unit)):
        for which, _ in enumerate(_others(part)):
            text = _changed(name, place, number, which)
            with suppress(SyntaxError):
                ast.parse(text)
                yield text


def _parts(unit: Unit) -> list[ast.expr]:
    return [node for node in ast.walk(unit) if isinstance(node, ast.expr)]


def _changed(name: str, place: int, number: int | None, which: int) -> str:
    """Return the text in which a part of a unit is another, or the whole unit is left out."""
    tree = ast.parse(sources()[name])
    old: ast.AST = _units(tree)[place]
    new: ast.AST = ast.Pass()
    if number is not None:
        part = _parts(cast("Unit", old))[number]
        old, new = part, list(_others(part))[which]
    _Replaced(old, new).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def _others(part: ast.expr) -> Iterator[ast.expr]:
    """Yield possible replacements of an expression."""
    match part:
        case ast.BinOp(left=left, right=right):
            yield left
            yield right
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=comparators):
            yield ast.Compare(left, [ast.NotEq()], comparators)
        case ast.Compare(left=left, comparators=comparators):
            yield ast.Compare(left, [ast.Eq()], comparators)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)):
            yield ast.Constant(f"{value}_")
        case ast.Name(id="TRUE" | "FALSE" as truth):
            yield ast.Name("FALSE" if truth == "TRUE" else "TRUE", ast.Load())
        case ast.Tuple(elts=[_, *others], ctx=context):
            yield ast.Tuple(others, context)
        case ast.Name() | ast.Call() | ast.Subscript() | ast.Attribute():
            yield ast.UnaryOp(ast.Invert(), copy.deepcopy(part))


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().generic_visit(node)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module with another text."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = f"{PACKAGE}.{name}", text
        self._file = f"{brokerproof.models.__path__[0]}/{name.replace('.', '/')}.py"

    def find_spec(
        self, fullname: str, _path: object, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return spec_from_loader(fullname, self, origin=self._file)

    def get_source(self, _fullname: str) -> str:
        return self._text


def _place(name: str) -> tuple[ModuleType, str]:
    """Return the package that has a module of models, and its name there."""
    package, _, stem = f"{PACKAGE}.{name}".rpartition(".")
    return importlib.import_module(package), stem


@contextmanager
def changed(name: str, text: str) -> Iterator[frozenset[str]]:
    """Let a module have another text while the body runs; yields the modules that see it."""
    seen = frozenset(each for each in sources() if name in _imports(each))
    kept: dict[str, ModuleType] = {}
    for each in seen:
        if module := sys.modules.pop(f"{PACKAGE}.{each}", None):
            kept[each] = module
            delattr(*_place(each))
    finder = _Changed(name, text)
    sys.meta_path.insert(0, finder)
    terms, systems = dict(interned), dict(traced)
    try:
        yield seen
    finally:
        sys.meta_path.remove(finder)
        for each in seen:
            sys.modules.pop(f"{PACKAGE}.{each}", None)
        for memory, before in ((interned, terms), (traced, systems)):
            memory.clear()
            memory.update(before)  # type: ignore[arg-type]
        for each, module in kept.items():
            sys.modules[f"{PACKAGE}.{each}"] = module
            setattr(*_place(each), module)


def listed(seen: frozenset[str] | None = None) -> Iterator[tuple[str, Given]]:
    """Yield the proofs of the current models, or of those that depend on some modules."""

    def module(name: str) -> Any:
        return importlib.import_module(f"{PACKAGE}.{name}")

    def is_seen(*models: type) -> bool:
        stems = {model.__module__.removeprefix(f"{PACKAGE}.") for model in models}
        return seen is None or bool(stems & seen)

    for name, each in module("catalogue").CATALOGUE.items():
        if is_seen(each.model):
            yield name, trace(each.model)
    for name, each in module("refinements").REFINEMENTS.items():
        if seen is None or "refinements" in seen:
            yield f"{name} refines", bind(each)
    swaps = module(SWAPS)
    if seen is None or SWAPS in seen:
        for number, (second, _, side) in enumerate((*swaps.SWAPPED, *swaps.NOT_SWAPPED)):
            yield f"swap {number}", pair(trace(swaps.Contract), "deliver", second, side)
