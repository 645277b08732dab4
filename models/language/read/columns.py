"""The column reading: a model in a scope as NumPy functions over packed words.

Owns the set of functions (guards, successors, invariants, initial states) and the conversion
between words and states. It does not search: it maps words to masks and words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from brokerproof.models.language.core.grounding import Grounder, cell_of, instances
from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.overflow import out_of_range
from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.scope import Scope, cells, free_at_start
from brokerproof.models.language.core.terms import (
    Bool,
    ModelError,
    Symbol,
    Term,
    conjuncts,
)
from brokerproof.models.language.read.column_text import (
    SIGNS,
    WORD_BITS,
    ColumnText,
    layout,
    words_of,
)
from brokerproof.models.language.read.symmetry import Canonical, symmetry
from brokerproof.models.language.read.word_sets import Words, distinct

__all__ = ["INITIAL_LIMIT", "ColumnReading", "Mask", "Words"]

Mask: TypeAlias = NDArray[np.bool_]

INITIAL_LIMIT = 1 << 24
"""The most valuations of the rigid symbols; `Scope.fixed` makes them fewer."""


class ColumnReading:
    """A system in a scope, compiled from `source`; raises `ModelError` if they do not fit.

    An action with its arguments is an instance, known by its place in `instances`. If `symmetric`
    names a family, `form` gives states that differ only in the names of its elements one form.
    `signs` are the printed operators, so that a test can show that a wrong one is noticed.
    """

    def __init__(
        self,
        system: System,
        scope: Scope,
        *,
        symmetric: str | None = None,
        signs: Mapping[str, str] = SIGNS,
    ) -> None:
        scope.check(system)
        self.system = system
        self.scope = scope
        self.symmetric = symmetric
        self.cells = cells(scope, system.symbols)
        found = symmetry(system, scope, symmetric) if symmetric else None
        self.places = layout(scope, self.cells, found.own if found else ())
        self.canonical = Canonical(found, self.places, self.words) if found else None
        self.instances = instances(system, scope)
        self._grounder = Grounder(scope)
        self._axioms = self._ground_axioms()
        self.ground_invariants = [self._grounder.ground(s.term) for s in system.invariants]
        text = ColumnText(scope, self.places, signs)
        self._print(text)
        self.source = "\n".join(text.lines) + "\n"
        self._compiled: dict[str, Callable[..., object]] = {}
        names: dict[str, object] = {
            "np": np,
            "U8": np.uint8,
            "U64": np.uint64,
            "I64": np.int64,
            "within": _within,
        }
        # This class prints the source from terms: no text from outside reaches it.
        exec(compile(self.source, f"<{system.name} in columns>", "exec"), names)  # noqa: S102
        self._compiled = cast("dict[str, Callable[..., object]]", names)

    @property
    def words(self) -> int:
        """The number of words of a state; with several, states are rows of words."""
        return words_of(self.places.values())

    @property
    def bits(self) -> int:
        """The number of bits of a state."""
        return sum(place.width for place in self.places.values())

    def guards(self, words: Words) -> Iterator[Mask]:
        """Yield, for each instance, the mask of states where its guard holds."""
        return cast("Iterator[Mask]", self._compiled["guards"](words))

    def successors(self, instance: int, words: Words) -> Words:
        """Return the words after an instance, for words in which its guard holds.

        Raises `ModelError` for an integer outside of the scope.
        """
        return cast("Words", self._compiled[f"successors_{instance}"](words))

    def invariants(self, words: Words) -> Iterator[Mask]:
        """Yield, for each invariant, the mask of states where it holds."""
        return cast("Iterator[Mask]", self._compiled["invariants"](words))

    def holds(self, term: Bool, variables: Mapping[Term, Term], words: Words) -> Mask:
        """Return the mask of states where a term holds, with constants for its free variables."""
        text = ColumnText(self.scope, self.places)
        text.begin("asked")
        text.line(f"return {text.column(self._grounder.ground(term, variables))}")
        names = dict(self._compiled)
        source = "\n".join(text.lines) + "\n"
        exec(compile(source, f"<{term!r} in columns>", "exec"), names)  # noqa: S102  as above
        return cast("Mask", names["asked"](words))

    def initial_words(self) -> Words:
        """Return the initial states: all valuations of rigid symbols that satisfy the axioms.

        Raises `ModelError` if there are none, or too many to list.
        """
        words = self._zeros(1)
        free = set(free_at_start(self.system))
        missing = [cell for cell in self.cells if cell.symbol in free and self.places[cell].width]
        waiting = dict(enumerate(self._axioms))
        while True:
            for number, axiom in list(waiting.items()):
                if not {cell_of(part) for part in _reads(axiom)}.intersection(missing):
                    words = words[cast("Mask", self._compiled[f"axiom_{number}"](words))]
                    del waiting[number]
            if not missing:
                break
            cell = missing.pop(0)
            numbers = np.arange(len(self.scope.choices(cell)), dtype=np.uint64)
            word, inside = divmod(self.places[cell].offset, WORD_BITS)
            values = self._zeros(len(numbers))
            self._column(values, word)[:] = numbers << np.uint64(inside)
            if len(words) * len(values) > INITIAL_LIMIT:
                raise ModelError(
                    f"more than {INITIAL_LIMIT} initial states: make the scope smaller, or fix "
                    "some of its rigid things"
                )
            both = words[:, None] | values[None, :]
            words = np.ascontiguousarray(both.reshape(-1, *words.shape[1:]))
        if not len(words):
            raise ModelError(f"no valuation in this scope satisfies the axioms: {self.scope}")
        return distinct([self.form(cast("Words", self._compiled["initial"](words)))])

    def form(self, words: Words) -> Words:
        """Return the representative of each state; without symmetry, the state itself."""
        return self.canonical.form(words) if self.canonical else words

    def pack(self, states: Sequence[Sequence[int]]) -> Words:
        """Return the words of states in the form of the plain reading."""
        words = self._zeros(len(states))
        for position, cell in enumerate(self.cells):
            place = self.places[cell]
            column = np.array([state[position] - place.low for state in states], dtype=np.uint64)
            word, inside = divmod(place.offset, WORD_BITS)
            target = self._column(words, word)
            target |= column << np.uint64(inside)
        return words

    def unpack(self, words: Words) -> list[tuple[int, ...]]:
        """Return states in the form of the plain reading."""
        columns = []
        for cell in self.cells:
            place = self.places[cell]
            word, inside = divmod(place.offset, WORD_BITS)
            shifted = self._column(words, word) >> np.uint64(inside)
            bits = shifted & np.uint64((1 << place.width) - 1)
            columns.append((bits.astype(np.int64) + place.low).tolist())
        return list(zip(*columns, strict=True)) if columns else [()] * len(words)

    def _zeros(self, count: int) -> Words:
        return np.zeros(count if self.words == 1 else (count, self.words), dtype=np.uint64)

    @staticmethod
    def _column(words: Words, word: int) -> Words:
        """Return a view of one word of each state."""
        return words if words.ndim == 1 else words[:, word]

    def _ground_axioms(self) -> list[Bool]:
        """Return the axioms in the scope, part by part."""
        parts: list[Bool] = []
        for statement in self.system.axioms:
            term = self._grounder.ground(statement.term)
            for part in conjuncts(term):
                changing = [s for s in map(_symbol, _reads(part)) if not s.rigid]
                if changing:
                    raise ModelError(
                        f"the axiom {statement.name} reads {changing[0]}, which changes: "
                        "axioms are about rigid things"
                    )
                parts.append(part)
        return parts

    def _print(self, text: ColumnText) -> None:
        text.begin("guards")
        for instance in self.instances:
            text.line(f"yield {text.column(instance.guard)}")
        self._end_generator(text)
        for number, instance in enumerate(self.instances):
            text.begin(f"successors_{number}")
            text.changed(instance.changes)
        text.begin("invariants")
        for term in self.ground_invariants:
            text.line(f"yield {text.column(term)}")
        self._end_generator(text)
        for number, axiom in enumerate(self._axioms):
            text.begin(f"axiom_{number}")
            text.line(f"return {text.column(axiom)}")
        text.begin("initial")
        text.changed(self._initial_changes())

    @staticmethod
    def _end_generator(text: ColumnText) -> None:
        text.line("yield from ()")

    def _initial_changes(self) -> dict[Term, Term]:
        changes = {}
        for cell in cells(self.scope, self.system.initial):
            function = self.system.initial[cell.symbol]
            target = self._grounder.cell(*cell)
            at = dict(zip(function.parameters, target.args, strict=True))
            changes[target] = self._grounder.ground(function.body, at)
        return changes


def _reads(term: Term) -> Iterator[Term]:
    return (part for part in subterms(term) if part.op == "read")


def _symbol(term: Term) -> Symbol:
    return cast("Symbol", term.payload)


def _within(values: NDArray[np.int64], low: int, high: int, name: str) -> NDArray[np.int64]:
    """Return the values, or raise `OutOfRange` if one is outside of the scope."""
    outside = (values < low) | (values > high)
    if outside.any():
        first = int(np.extract(outside, values)[0])
        raise out_of_range(name, first, low, high)
    return values
