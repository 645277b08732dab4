"""What was decided before, by what it was decided of: a folder of small files.

Owns the key: the canonical text of all terms that a result depends on, the version of Z3, and the
text of the model language itself. So a result is found again exactly when nothing that it depends
on has changed; names of bound variables and the order in which models are loaded do not count.
Refuses to know what results mean.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import msgspec
import z3

from brokerproof.models.language.model import Action, System
from brokerproof.models.language.rewriting import Function
from brokerproof.models.language.terms import Enumeration, Symbol, Term

T = TypeVar("T")

FOLDER = Path(".brokerproof") / "proofs"


class Cache:
    """A folder of results, or none: then everything is decided anew."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def kept(self, kind: type[T], name: str, of: Iterable[str], decide: Callable[[], T]) -> T:
        """Return what was kept under this name for the same texts, or decide and keep it.

        A file that cannot be read is as good as none.
        """
        if self._folder is None:
            return decide()
        texts = [z3.get_version_string(), _own_text(), name, *of]
        key = hashlib.sha256("\0".join(texts).encode()).hexdigest()
        path = self._folder / f"{name}-{key[:24]}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError):
            pass
        result = decide()
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(result))
        unfinished.replace(path)
        return result


@functools.cache
def _own_text() -> str:
    """Return the digest of the language's own source: it decides what a result is."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def canonical(system: System) -> str:
    """Return all that a system says, in a text that depends on nothing else."""
    writer = _Writer()
    lines = [f"system {system.name}"]
    lines += [f"symbol {writer.symbol(s)} {s.rigid} {s.is_order}" for s in system.symbols]
    lines += writer.functions("initial", system.initial.items())
    for action in system.actions:
        lines += writer.action(action)
    for kind, statements in (("invariant", system.invariants), ("axiom", system.axioms)):
        for statement in statements:
            lines.append(f"{kind} {statement.name} {writer.term(statement.term)} {statement.by}")
    for ghost in system.ghosts:
        places = [writer.term(place) for place in (*ghost.indices, ghost.element)]
        counted = f"{writer.term(ghost.term)} weighing {writer.term(ghost.weight)} {ghost.by}"
        lines.append(f"counts {writer.symbol(ghost.symbol)} {places} {counted}")
    return "\n".join([*lines, *writer.lines])


def _signature(symbol: Symbol) -> str:
    sorts = (*symbol.domain, symbol.range)
    return f"{symbol.name}: {', '.join(map(_sort, sorts))}"


def _sort(sort: type[Term]) -> str:
    values = f"{sort.values}" if issubclass(sort, Enumeration) else ""
    return f"{sort.__module__}.{sort.__qualname__}{values}"


class _Writer:
    """Each different term, and each symbol, once, by a number that says when it was first met.

    A set parameter may have the name and the sorts of a symbol of the state: their numbers differ.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[Term, int] = {}
        self._symbols: dict[Symbol, int] = {}

    def symbol(self, symbol: Symbol) -> str:
        number = self._symbols.setdefault(symbol, len(self._symbols))
        return f"{_signature(symbol)} #{number}"

    def term(self, term: Term) -> int:
        if term not in self._numbers:
            bound = term.payload if term.op in ("forall", "exists") else ()
            first = [self.term(variable) for variable in cast("tuple[Term, ...]", bound)]
            args = [self.term(arg) for arg in term.args]
            self._numbers[term] = len(self._numbers)
            payload = term.payload
            if isinstance(payload, Symbol):
                said = self.symbol(payload)
            else:
                said = str(payload) if term.op == "constant" else ""
            where = f"{self._numbers[term]} = {term.op} {_sort(type(term))}"
            self.lines.append(f"{where} {said} {first} {args}")
        return self._numbers[term]

    def functions(self, what: str, functions: Iterable[tuple[Symbol, Function]]) -> Iterator[str]:
        for symbol, function in functions:
            places = [self.term(place) for place in function.parameters]
            yield f"{what} {self.symbol(symbol)} {places} {self.term(function.body)}"

    def action(self, action: Action) -> Iterator[str]:
        parameters = [
            self.symbol(p) if isinstance(p, Symbol) else self.term(p) for p in action.parameters
        ]
        yield f"action {action.name} {parameters}"
        for guard in action.guards:
            yield f"guard {guard.label} {self.term(guard.term)}"
        for assumption in action.assumptions:
            yield f"assumed {self.term(assumption.term)}"
        yield from self.functions("update", action.updates.items())
