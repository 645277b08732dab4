"""Mutants: the reference with one small change each, made by rule and not by thought.

Owns the rules of change and what is left out of them. Refuses to know what becomes of a mutant. A
change is an `Edit` of the overlays under `tests/faults`, so the source tree is never touched.

Left out first, since no operation of a client could tell the difference:

* docstrings, annotations, decorators, assertions (they never fail) and the texts of errors;
* `__repr__`, and the copies and fingerprints of states (with the names of jobs, which are part of a
  fingerprint): they are the search's tool, not the broker;
* how a broker is asked for by text (`addresses.py`, `settings.py`, `systems.py`), which is over
  before the first operation;
* what is of `rabbitmq-paging` alone, which the trials do not run;
* the claims: a broker that claims less is asked less, which is no fault.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from tests.faults.overlay import REFERENCE, Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT_OUT_FILES: Final = {
    "__init__.py",
    "activemq/fingerprints.py",
    "addresses.py",
    "durable_broker.py",
    "qpid/fingerprints.py",
    "qpid/pull/fingerprints.py",
    "settings.py",
    "shared/copies.py",
    "systems.py",
}
LEFT_OUT_FOLDERS: Final = ("rabbitmq/",)
"""What the systems that mutants are judged by do not use."""
LEFT_OUT_FUNCTIONS: Final = {"__deepcopy__", "__repr__", "fingerprint", "fork", "name"}
LEFT_OUT_NAMES: Final = {"CLAIMS", "__slots__"}

DROPPED: Final = "statement dropped"
FLIPPED: Final = "comparison flipped"
NEGATED: Final = "condition negated"
CHANGED: Final = "constant changed"
SWAPPED: Final = "and/or swapped"

_FLIPS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BOUNDARIES: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIMPLE: Final = (
    ast.AnnAssign,
    ast.Assign,
    ast.AugAssign,
    ast.Break,
    ast.Continue,
    ast.Delete,
    ast.Expr,
    ast.Raise,
    ast.Return,
)


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One change: where it is, which rule made it, and what stands there instead of what."""

    file: str
    where: str
    line: int
    rule: str
    old: str
    new: str
    edit: Edit
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.where}: {self._change()}{self._again()}"

    @property
    def name(self) -> str:
        """What it is called where lines do not matter, since they move."""
        return f"{self.file} {self.where}: {self._change()}{self._again()}"

    def _again(self) -> str:
        return f" ({self.nth})" if self.nth > 1 else ""

    def _change(self) -> str:
        # A statement that spans lines is called by its beginning.
        old = self.old.splitlines()[0]
        return f"{old} -> {'dropped' if self.rule == DROPPED else self.new}"


def mutants() -> list[Mutant]:
    """Return every mutant of the reference, in the order of the files and their lines."""
    return [
        mutant
        for file, text in REFERENCE.sources().items()
        if file not in LEFT_OUT_FILES and not file.startswith(LEFT_OUT_FOLDERS)
        for mutant in mutants_of(file, text)
    ]


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Return every mutant of one file."""
    found: dict[str, Mutant] = {}
    for where, rule, node, new in _Changes().of(ast.parse(text)):
        mutant = _mutant(file, text, where, rule, node, new)
        # Two rules may come to the same, such as negating `a == b` and flipping it.
        found.setdefault(text.replace(mutant.edit.old, mutant.edit.new), mutant)
    return _told_apart(sorted(found.values(), key=lambda each: each.line))


def _told_apart(found: list[Mutant]) -> list[Mutant]:
    """Number those that would be called the same, in the order of their lines."""
    times: Counter[str] = Counter()
    numbered = []
    for each in found:
        times[each.name] += 1
        numbered.append(msgspec.structs.replace(each, nth=times[each.name]))
    return numbered


def _mutant(
    file: str, text: str, where: str, rule: str, node: ast.stmt | ast.expr, new: str
) -> Mutant:
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno
    before, behind = lines[first][: node.col_offset], lines[last - 1][node.end_col_offset :]
    old_lines = b"".join(lines[first:last]).decode()
    new_lines = f"{before.decode()}{new}{behind.decode()}"
    while text.count(old_lines) != 1:
        first -= 1
        context = lines[first].decode()
        old_lines, new_lines = context + old_lines, context + new_lines
    return Mutant(
        file=file,
        where=where or "module",
        line=node.lineno,
        rule=rule,
        old=ast.unparse(node),
        new=new.removeprefix("(").removesuffix(")") if isinstance(node, ast.expr) else new,
        edit=Edit(file, old_lines, new_lines),
    )


class _Changes(ast.NodeVisitor):
    """Collects the changes; what it does not go into stays as it is."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._in_function = False
        self._found: list[tuple[str, str, ast.stmt | ast.expr, str]] = []

    def of(self, tree: ast.Module) -> Iterator[tuple[str, str, ast.stmt | ast.expr, str]]:
        """Yield where, by which rule, what, and what instead."""
        self.visit(tree)
        yield from self._found

    def visit(self, node: ast.AST) -> None:
        """Drop what is a simple statement of a function, then go into it."""
        if self._in_function and isinstance(node, _SIMPLE) and not _says_nothing(node):
            self._change(DROPPED, node, "pass")
        super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Go into the defaults and the body, but not into what is left out."""
        if node.name in LEFT_OUT_FUNCTIONS:
            return
        self._names.append(node.name)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        outer, self._in_function = self._in_function, True
        for statement in _without_docstring(node.body):
            if not _is_last_none(statement, node.body):
                self.visit(statement)
        self._in_function = outer
        self._names.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Go into the body; a protocol has nothing to change."""
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    def visit_Assign(self, node: ast.Assign) -> None:
        """Go into the value."""
        self._assigned(node.targets[0], node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Go into the value, not the annotation."""
        if node.value is not None:
            self._assigned(node.target, node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        """Go into a value; outside of functions it is known by the name that it is given."""
        if self._in_function or not isinstance(target, ast.Name):
            self.visit(value)
        elif target.id not in LEFT_OUT_NAMES:
            self._names.append(target.id)
            self.visit(value)
            self._names.pop()

    def visit_If(self, node: ast.If) -> None:
        """Negate the condition; what is there for the types only is left out."""
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._conditional(node)

    def visit_While(self, node: ast.While) -> None:
        """Negate the condition."""
        self._conditional(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Negate the condition."""
        self._conditional(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Negate the conditions."""
        for each in node.ifs:
            self._negate(each)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Swap and/or, and negate the operands."""
        swapped = copy.copy(node)
        swapped.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._change(SWAPPED, node, f"({ast.unparse(swapped)})")
        for each in node.values:
            self._negate(each)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop a `not`."""
        if isinstance(node.op, ast.Not):
            self._negate(node)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move a boundary by one, or turn the comparison round where there is none."""
        for at, operator in enumerate(node.ops):
            flipped = copy.copy(node)
            flipped.ops = [*node.ops[:at], _FLIPS[type(operator)](), *node.ops[at + 1 :]]
            self._change(FLIPPED, node, f"({ast.unparse(flipped)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number by one, and a truth value to the other."""
        if isinstance(node.value, bool):
            self._change(CHANGED, node, str(not node.value))
        elif isinstance(node.value, int):
            self._change(CHANGED, node, f"({node.value + 1})")
            self._change(CHANGED, node, f"({node.value - 1})")

    def _conditional(self, node: ast.If | ast.While | ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, node: ast.expr) -> None:
        """Negate; of operands that are joined, each is negated by itself."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._change(NEGATED, node, f"({ast.unparse(node.operand)})")
        elif not _is_flipped_anyway(node):
            self._change(NEGATED, node, f"({ast.unparse(ast.UnaryOp(ast.Not(), node))})")

    def _change(self, rule: str, node: ast.stmt | ast.expr, new: str) -> None:
        self._found.append((".".join(self._names), rule, node, new))


def _is_flipped_anyway(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and not isinstance(node.ops[0], _BOUNDARIES)
    )


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if _says_nothing(body[0]) else body


def _says_nothing(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_last_none(statement: ast.stmt, body: list[ast.stmt]) -> bool:
    """Whether a statement returns what a function returns anyway."""
    if statement is not body[-1] or not isinstance(statement, ast.Return):
        return False
    value = statement.value
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
