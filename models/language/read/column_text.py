"""The layout of a state in words, and ground terms printed as NumPy on columns of such words.

Owns the layout (a few bits for each cell of one or more unsigned 64-bit integers; no cell is in two
of them) and the operators; a function prints each common subexpression once. Cells stay within one
byte if they fit, because their arithmetic is then on bytes. The user decides which terms belong
together.

Invariant: a value that does not fit its cell's bits is never written; an integer that leaves the
scope raises `ModelError`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, cast

from brokerproof.models.language.core.grounding import cell_of
from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.scope import Cell, Scope, cell_name
from brokerproof.models.language.core.terms import (
    Bool,
    Int,
    ModelError,
    Term,
    is_constant,
)

WORD_BITS = 64

WORDS_MAX = 4
"""A scope with larger states has more of them than a search can visit."""

SIGNS: Mapping[str, str] = MappingProxyType(
    {"and": "&", "or": "|", "not": "~", "equal": "==", "less": "<", "add": "+", "subtract": "-"}
)
"""The operators in NumPy."""


@dataclass(frozen=True)
class Place:
    """The place of a cell: its lowest bit in all words, its number of bits, and the value of 0."""

    offset: int
    width: int
    low: int

    @property
    def byte(self) -> int | None:
        """The byte that contains the whole cell, in the order of memory, or None."""
        first, last = self.offset // 8, (self.offset + self.width - 1) // 8
        if first != last:
            return None
        return first if sys.byteorder == "little" else first // 8 * 8 + 7 - first % 8

    @property
    def mask(self) -> int:
        """The cell's bits in all words."""
        return ((1 << self.width) - 1) << self.offset


Alike: TypeAlias = Sequence[Sequence[Cell]]
"""Groups of cells with the same widths, one group for each element of a symmetric family."""


def layout(scope: Scope, all_cells: Sequence[Cell], alike: Alike = ()) -> dict[Cell, Place]:
    """Return a place for each cell; raises `ModelError` if the words do not suffice.

    Groups that are `alike` each have their cells within one word, at the same distances.
    """
    widths = {cell: (len(scope.choices(cell)) - 1).bit_length() for cell in all_cells}
    lows = {cell: scope.choices(cell)[0] for cell in all_cells}
    for cell, width in widths.items():
        if width > 8 and not issubclass(cell.symbol.range, Int):
            raise ModelError(f"{cell_name(cell)} has more than 256 values: make the scope smaller")
    for group in alike:
        if sum(widths[cell] for cell in group) > WORD_BITS:
            raise ModelError(
                f"{cell_name(group[0])} and what else there is of this element take more than "
                f"{WORD_BITS} bits, too many to be sorted: make the scope smaller"
            )
    offsets = _in_a_row(widths, alike)
    words = max((offset // WORD_BITS + 1 for offset in offsets.values()), default=1)
    if words > WORDS_MAX:
        raise ModelError(
            f"a state of this scope takes {sum(widths.values())} bits, and {WORDS_MAX} words of "
            f"{WORD_BITS} bits are all it can have: make the scope smaller ({scope})"
        )
    offsets = _by_bytes(widths, words, alike) or offsets
    return {cell: Place(offsets[cell], widths[cell], lows[cell]) for cell in all_cells}


def words_of(places: Iterable[Place]) -> int:
    """Return the number of words of a state."""
    return max((place.offset // WORD_BITS + 1 for place in places), default=1)


def _by_bytes(widths: Mapping[Cell, int], words: int, alike: Alike) -> dict[Cell, int] | None:
    """Return offsets such that no cell crosses a byte's border, if there are any."""
    free = [8] * (words * WORD_BITS // 8)
    offsets: dict[Cell, int] = {}
    start = 0
    for group in alike:
        room = [8] * (WORD_BITS // 8)
        inside = _first_fit({cell: widths[cell] for cell in group}, room)
        if inside is None:
            return None
        used = sum(bits < 8 for bits in room)
        if start % 8 + used > 8:
            start += 8 - start % 8
        if start + used > len(free):
            return None
        free[start : start + used] = room[:used]
        offsets |= {cell: at + 8 * start if widths[cell] else 0 for cell, at in inside.items()}
        start += used
    rest = _first_fit({cell: width for cell, width in widths.items() if cell not in offsets}, free)
    return None if rest is None else offsets | rest


def _first_fit(widths: Mapping[Cell, int], free: list[int]) -> dict[Cell, int] | None:
    """Return offsets in bytes with these free bits, which are then taken; None without room."""
    offsets = {}
    for cell in sorted(widths, key=lambda cell: -widths[cell]):
        room = (byte for byte, bits in enumerate(free) if bits >= widths[cell])
        byte = next(room, None)
        if byte is None:
            return None
        # A cell without bits gets a place in a word all the same.
        offsets[cell] = 8 * byte + 8 - free[byte] if widths[cell] else 0
        free[byte] -= widths[cell]
    return offsets


def _in_a_row(widths: Mapping[Cell, int], alike: Alike) -> dict[Cell, int]:
    """Return consecutive offsets such that no cell and no group crosses a word's border."""
    grouped = {cell for group in alike for cell in group}
    offsets, end = {}, 0
    for group in [*alike, *([cell] for cell in widths if cell not in grouped)]:
        whole = sum(widths[cell] for cell in group)
        if end % WORD_BITS + whole > WORD_BITS:
            end += WORD_BITS - end % WORD_BITS
        for cell in group:
            offsets[cell] = end if widths[cell] else 0
            end += widths[cell]
    return offsets


class ColumnText:
    """A printer of ground terms as lines of NumPy; each term gets a name once in a function."""

    def __init__(
        self, scope: Scope, places: Mapping[Cell, Place], signs: Mapping[str, str] = SIGNS
    ) -> None:
        self._integers = len(scope.integers)
        self._places = places
        self._signs = signs
        self._words = words_of(places.values())
        self._names: dict[Term, str] = {}
        self._bytes: set[int] = set()
        self.lines: list[str] = []

    def begin(self, header: str) -> None:
        """Begin a function of `words`."""
        self._names = {}
        self._bytes = set()
        self.lines += [f"def {header}(words):", f"    raw = {self._bytes_of('words')}"]

    def line(self, text: str) -> None:
        """Add a line to the function."""
        self.lines.append(f"    {text}")

    def value(self, term: Term) -> str:
        """Return the name of a ground term's column; a constant's is a scalar."""
        for part in subterms(term):
            if part not in self._names:
                self._names[part] = self._constant(part) if is_constant(part) else self._one(part)
        return self._names[term]

    def column(self, term: Term) -> str:
        """Return the text of a ground term's column, even for a constant."""
        name = self.value(term)
        return f"np.full(len(words), {name})" if is_constant(term) else name

    def changed(self, changes: Mapping[Term, Term]) -> None:
        """Return, from the function, the words with the new values in the changed cells."""
        places = {cell: self._places[cell_of(cell)] for cell in changes}
        settled, bits, moving = 0, 0, []
        for cell, new in changes.items():
            place = places[cell]
            value = self.value(new)
            if isinstance(new, Int) and not self._stays(new, place):
                value = self._within(value, cell, place)
            elif is_constant(new):
                settled |= place.mask
                bits |= (int(cast("int", new.payload)) - place.low) << place.offset
                continue
            moving.append((place, value, new))
        self.line(f"out = words & {self._constant_words(~settled)}")
        if bits:
            self.line(f"out |= {self._constant_words(bits)}")
        if any(place.byte is not None for place, _, _ in moving):
            self.line(f"written = {self._bytes_of('out')}")
        by_byte: dict[int | None, list[tuple[Place, str, Term]]] = {}
        for moved in moving:
            by_byte.setdefault(moved[0].byte, []).append(moved)
        for byte, group in by_byte.items():
            (self._write_wide if byte is None else self._write_byte)(group)
        self.line("return out")

    def _one(self, term: Term) -> str:
        args = [self._names[arg] for arg in term.args]
        sign = self._signs.get(term.op, "")
        match term.op:
            case "read":
                text = self._cell(term)
            case "not":
                text = f"{sign}{args[0]}"
            case "and" | "or" | "equal" | "less" | "add" | "subtract":
                text = f"{args[0]} {sign} {args[1]}"
            case "ite":
                text = f"np.where({', '.join(args)})"
            case _:
                raise ModelError(f"{term!r} is not ground")
        name = f"t{len(self._names)}"
        self.line(f"{name} = {text}")
        if term.op in ("and", "or"):
            for arg in args[2:]:
                self.line(f"{name} {sign}= {arg}")
        return name

    @staticmethod
    def _constant(term: Term) -> str:
        value = int(cast("int", term.payload))
        if isinstance(term, Bool):
            return f"np.bool_({value})"
        return f"I64({value})" if isinstance(term, Int) else f"U8({value})"

    def _cell(self, term: Term) -> str:
        place = self._places[cell_of(term)]
        if place.byte is None:
            shift = f"{self._word('words', place)} >> U64({place.offset % WORD_BITS})"
            text = f"({shift} & U64({(1 << place.width) - 1}))"
            return f"{text}.astype(I64) + I64({place.low})"
        inside = place.offset % 8
        bits = self._byte(place.byte)
        if isinstance(term, Bool):
            return f"({bits} & U8({1 << inside})) != U8(0)"
        text = f"({bits} >> U8({inside}) & U8({(1 << place.width) - 1}))"
        return f"{text}.astype(I64) + I64({place.low})" if isinstance(term, Int) else text

    def _byte(self, number: int) -> str:
        """Return the name of the column of one byte of the words."""
        if number not in self._bytes:
            self._bytes.add(number)
            self.line(f"b{number} = np.ascontiguousarray(raw[{number} :: {8 * self._words}])")
        return f"b{number}"

    def _stays(self, new: Term, place: Place) -> bool:
        """Whether an integer is certainly in the scope's range: a cell's, or a fitting constant."""
        match new.op:
            case "read":
                return True
            case "constant":
                return 0 <= cast("int", new.payload) - place.low < self._integers
            case "ite":
                return all(self._stays(branch, place) for branch in new.args[1:])
            case _:
                return False

    def _within(self, value: str, cell: Term, place: Place) -> str:
        high = place.low + self._integers - 1
        return f"within({value}, {place.low}, {high}, {cell_of(cell).symbol.name!r})"

    def _write_byte(self, group: Sequence[tuple[Place, str, Term]]) -> None:
        byte = group[0][0].byte
        keep = 0xFF
        for place, _, _ in group:
            keep &= ~(place.mask >> place.offset // 8 * 8)
        self.line(f"new = written[{byte} :: {8 * self._words}] & U8({keep})")
        for place, value, new in group:
            text = f"({value} - I64({place.low})).astype(U8)" if isinstance(new, Int) else value
            text = f"{text}.view(U8)" if isinstance(new, Bool) else text
            inside = place.offset % 8
            self.line(f"new |= {text} << U8({inside})" if inside else f"new |= {text}")
        self.line(f"written[{byte} :: {8 * self._words}] = new")

    def _write_wide(self, group: Sequence[tuple[Place, str, Term]]) -> None:
        for place, value, new in group:
            low = f" - I64({place.low})" if isinstance(new, Int) else ""
            out, inside = self._word("out", place), place.offset % WORD_BITS
            kept = ~((1 << place.width) - 1 << inside) & (1 << WORD_BITS) - 1
            self.line(f"{out} &= U64({kept})")
            self.line(f"{out} |= ({value}{low}).astype(U64) << U64({inside})")

    def _bytes_of(self, name: str) -> str:
        return f"{name}.view(U8)" if self._words == 1 else f"{name}.reshape(-1).view(U8)"

    def _word(self, name: str, place: Place) -> str:
        """Return the column of a cell's word."""
        return name if self._words == 1 else f"{name}[:, {place.offset // WORD_BITS}]"

    def _constant_words(self, value: int) -> str:
        """Return the text of a constant with a part for each word."""
        parts = [value >> WORD_BITS * n & (1 << WORD_BITS) - 1 for n in range(self._words)]
        return f"U64({parts[0]})" if self._words == 1 else f"np.array({parts}, dtype=U64)"
