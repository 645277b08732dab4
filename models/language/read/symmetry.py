"""States up to the names of a family's elements: the search visits one state of each orbit.

Owns the decision whether elements are alike, the sorted form of a state, in NumPy and in C, and the
number of states that a form represents. Refuses cases that it cannot decide from the terms alone.

Why it is sound: a term without constants and orders of the family does not change its meaning when
the elements change names; so guards, updates, initial states and invariants do not either. Elements
whose fixed values differ change names only within their class. Each orbit has one form: an
element's key has all its own values and says which cells name it; the keys are sorted, and elements
with equal keys are equal in all respects, because relations between elements are refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.scope import Cell, Scope, cells, families, terms
from brokerproof.models.language.core.terms import ModelError, Sort, Symbol
from brokerproof.models.language.read.column_text import WORD_BITS, Place
from brokerproof.models.language.read.word_sets import Words

ALL_ONES = (1 << WORD_BITS) - 1


@dataclass(frozen=True)
class Symmetry:
    """A family whose elements are alike within each class; `own` and `named` are of the state.

    `own` has the cells of each element, in one order for all; `named` are the cells whose value is
    an element.
    """

    family: Sort
    classes: tuple[tuple[int, ...], ...]
    own: tuple[tuple[Cell, ...], ...]
    named: tuple[Cell, ...]


def symmetry(system: System, scope: Scope, family: str) -> Symmetry:
    """Return the classes of a family's elements; raises `ModelError` if they are not alike."""
    sort = next((each for each in families(system) if each.__name__ == family), None)
    if sort is None:
        names = ", ".join(each.__name__ for each in families(system))
        raise ModelError(f"{system.name} has no family {family}: it has {names}")
    _check_terms(system, sort)
    own: list[list[Cell]] = [[] for _ in scope.values(sort)]
    fixed: list[list[int]] = [[] for _ in scope.values(sort)]
    named: list[Cell] = []
    for symbol in system.symbols:
        _check_symbol(system, scope, symbol, sort)
        if symbol.range is sort:
            named += cells(scope, [symbol])
        elif sort in symbol.domain:
            at = symbol.domain.index(sort)
            for cell in cells(scope, [symbol]):
                element = cell.indices[at]
                if symbol.name in scope.fixed:
                    fixed[element].append(scope.choices(cell)[0])
                else:
                    own[element].append(cell)
    classes: dict[tuple[int, ...], list[int]] = {}
    for element, values in enumerate(fixed):
        classes.setdefault(tuple(values), []).append(element)
    if all(len(alike) == 1 for alike in classes.values()):
        raise ModelError(
            f"no two elements of {family} are alike in the scope {scope}: "
            "give it more elements, or the same fixed values"
        )
    alike = tuple(map(tuple, classes.values()))
    return Symmetry(sort, alike, tuple(map(tuple, own)), tuple(named))


def _check_terms(system: System, family: Sort) -> None:
    for symbol in system.symbols:
        if symbol.is_order and symbol.domain[0] is family:
            raise ModelError(
                f"{family.__name__} is not symmetric: {symbol} orders its elements, "
                "so they are not alike"
            )
    for term in terms(system):
        if term.op == "constant" and type(term) is family:
            raise ModelError(f"{family.__name__} is not symmetric: the model names {term!r}")


def _check_symbol(system: System, scope: Scope, symbol: Symbol, family: Sort) -> None:
    """Refuse symbols that sorting the elements cannot bring into one form."""
    times = symbol.domain.count(family)
    if times > 1 or (times and symbol.range is family):
        raise ModelError(
            f"{family.__name__} cannot be sorted: {symbol} of {system.name} relates its elements "
            "to one another"
        )
    if symbol.range is family and symbol.name in scope.fixed:
        raise ModelError(
            f"{family.__name__} is not symmetric: the scope fixes {symbol} to some of its elements"
        )


class Canonical:
    """The sorted form of packed states, for one layout of words."""

    def __init__(self, symmetry: Symmetry, places: Mapping[Cell, Place], words: int) -> None:
        self._classes = symmetry.classes
        self._words = words
        self._subs: list[tuple[int, int]] = []
        self._mask = 0
        for own in symmetry.own:
            stored = [places[cell] for cell in own if places[cell].width]
            start = min((place.offset for place in stored), default=0)
            whole = sum(place.mask for place in stored) >> start
            assert self._mask in (0, whole), "elements of a symmetric family are laid out alike"
            self._mask = whole
            self._subs.append(divmod(start, WORD_BITS))
        self._named = [places[cell] for cell in symmetry.named]
        if self._mask.bit_length() + len(self._named) > WORD_BITS:
            raise ModelError(
                f"an element of {symmetry.family.__name__} takes more than {WORD_BITS} bits, too "
                "many to be sorted: make the scope smaller"
            )
        kept = [ALL_ONES] * words
        for word, inside in self._subs:
            kept[word] &= ~(self._mask << inside)
        for place in self._named:
            word, inside = divmod(place.offset, WORD_BITS)
            kept[word] &= ~(((1 << place.width) - 1) << inside)
        self._kept = kept

    def form(self, words: Words) -> Words:
        """Return the form of each state."""
        keys = self._keys(words)
        for left, right in self._comparisons():
            low = np.minimum(keys[left], keys[right])
            np.maximum(keys[left], keys[right], out=keys[right])
            keys[left] = low
        kept = np.array(self._kept, dtype=np.uint64)
        out: Words = words & (kept[0] if words.ndim == 1 else kept)
        for key, (word, inside) in zip(keys, self._subs, strict=True):
            column = out if out.ndim == 1 else out[:, word]
            column |= (key >> np.uint64(len(self._named))) << np.uint64(inside)
        for bit, place in enumerate(self._named):
            word, inside = divmod(place.offset, WORD_BITS)
            column = out if out.ndim == 1 else out[:, word]
            for element, key in enumerate(keys):
                is_named = (key >> np.uint64(bit)) & np.uint64(1)
                column |= (is_named * np.uint64(element)) << np.uint64(inside)
        return out

    def stands_for(self, words: Words) -> int:
        """Return the number of states that these forms represent together."""
        keys = self._keys(words)
        whole = math.prod(math.factorial(len(alike)) for alike in self._classes)
        # Python's own integers if the sum might leave 64 bits: they are slow and never wrap.
        fits = whole * max(len(words), 1) < 1 << WORD_BITS
        one: Any = np.ones(len(words), dtype=np.uint64 if fits else np.object_)
        shared = one.copy()
        for alike in self._classes:
            run = one
            for before, element in itertools.pairwise(alike):
                run = np.where(keys[before] == keys[element], run + one, one)
                shared *= run
        return int((one * whole // shared).sum())

    def c_text(self) -> str:
        """Return the function in C that gives a state its form."""
        lines = []
        for element, (word, inside) in enumerate(self._subs):
            key = f"(s->w[{word}] >> {inside} & {self._mask:#x}ull) << {len(self._named)}"
            for bit, place in enumerate(self._named):
                value = _c_value(place)
                key += f" | (uint64_t)({value} == {element}) << {bit}"
            lines.append(f"uint64_t k{element} = {key};")
        for left, right in self._comparisons():
            low = f"k{left} < k{right} ? k{left} : k{right}"
            lines.append(f"{{ uint64_t low = {low}; k{right} ^= k{left} ^ low; k{left} = low; }}")
        parts = [
            [f"(s->w[{word}] & {kept & ALL_ONES:#x}ull)"] for word, kept in enumerate(self._kept)
        ]
        for element, (word, inside) in enumerate(self._subs):
            parts[word].append(f"k{element} >> {len(self._named)} << {inside}")
        for bit, place in enumerate(self._named):
            word, inside = divmod(place.offset, WORD_BITS)
            for element in range(1, len(self._subs)):
                parts[word].append(f"(k{element} >> {bit} & 1) * {element} << {inside}")
        lines += [f"const uint64_t f{n} = {' | '.join(part)};" for n, part in enumerate(parts)]
        lines += [f"s->w[{word}] = f{word};" for word in range(self._words)]
        body = "\n".join(f"    {line}" for line in lines)
        return f"static inline void canonical(state *s)\n{{\n{body}\n}}\n"

    def _keys(self, words: Words) -> list[Words]:
        """Return each element's key: its own values and the cells that name it, as a number."""
        keys = []
        named = [self._value(words, place) for place in self._named]
        for element, (word, inside) in enumerate(self._subs):
            column = words if words.ndim == 1 else words[:, word]
            key = (column >> np.uint64(inside)) & np.uint64(self._mask)
            key <<= np.uint64(len(named))
            for bit, values in enumerate(named):
                key |= (values == np.uint64(element)).astype(np.uint64) << np.uint64(bit)
            keys.append(key)
        return keys

    @staticmethod
    def _value(words: Words, place: Place) -> Words:
        word, inside = divmod(place.offset, WORD_BITS)
        column = words if words.ndim == 1 else words[:, word]
        value: Words = (column >> np.uint64(inside)) & np.uint64((1 << place.width) - 1)
        return value

    def _comparisons(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs to be put in order, one after another: a bubble sort of each class."""
        for alike in self._classes:
            yield from _bubble(alike)


def _bubble(alike: Sequence[int]) -> Iterator[tuple[int, int]]:
    for end in range(len(alike) - 1, 0, -1):
        yield from itertools.pairwise(alike[: end + 1])


def _c_value(place: Place) -> str:
    word, inside = divmod(place.offset, WORD_BITS)
    return f"(s->w[{word}] >> {inside} & {(1 << place.width) - 1:#x}ull)"
