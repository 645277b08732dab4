"""Ground terms printed as C on the words of one state: guards, successors and invariants.

Owns the text of two functions for `c_search`: `expand` (all successors of a state) and `broken`
(the first invariant that does not hold). How states are found and kept is not known here.

The speed comes from single cells: the conjuncts about them are one comparison of the word under a
mask. Subterms that several instances share are computed once for each state; those of one instance
only if the cheap part of its guard holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from brokerproof.models.language.core.grounding import Instance, cell_of
from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.scope import Cell, Scope
from brokerproof.models.language.core.terms import (
    FALSE,
    Bool,
    Int,
    ModelError,
    Term,
    conjuncts,
    is_constant,
)
from brokerproof.models.language.read.column_text import WORD_BITS, Place, words_of

SIGNS: Mapping[str, str] = MappingProxyType(
    {"and": "&", "or": "|", "not": "!", "equal": "==", "less": "<", "add": "+", "subtract": "-"}
)
"""The C operators."""


class CText:
    """The two functions of a system in a scope, as text."""

    def __init__(
        self,
        scope: Scope,
        places: Mapping[Cell, Place],
        actions: Sequence[str],
        signs: Mapping[str, str] = SIGNS,
    ) -> None:
        self._integers = len(scope.integers)
        self._places = places
        self._actions = list(actions)
        self._signs = signs
        self._names: dict[Term, str] = {}
        self._block: list[str] = []
        self.words = words_of(places.values())

    def expand(self, instances: Sequence[Instance]) -> str:
        """Return the function that writes the successors of a state and counts the firings."""
        self._begin()
        roots = [[i.guard, *i.changes.values()] for i in instances]
        for term in _shared(roots):
            self._name(term)
        shared = dict(self._names)
        for instance in instances:
            self._names = dict(shared)
            self._instance(instance)
        return self._function(
            "static inline int64_t expand(struct search *search, const state *from, state *out)",
            [*self._loads(), "state *const first = out;", *self._block, "return out - first;"],
        )

    def broken(self, invariants: Sequence[Bool]) -> str:
        """Return the function that gives the first wanted invariant that fails, or -1."""
        self._begin()
        for term in _shared([[term] for term in invariants]):
            self._name(term)
        for number, term in enumerate(invariants):
            if is_constant(term):
                if term is FALSE:
                    self._block.append(f"return {number};")
                continue
            self._block.append(f"if (!{self._value(term)}) return {number};")
        return self._function(
            "static inline int broken(const state *from)",
            [*self._loads(), *self._block, "return -1;"],
        )

    def _begin(self) -> None:
        self._names, self._block = {}, []

    def _loads(self) -> list[str]:
        used = [f"const uint64_t w{word} = from->w[{word}];" for word in range(self.words)]
        return [*used, *(f"(void)w{word};" for word in range(self.words))]

    @staticmethod
    def _function(header: str, lines: Iterable[str]) -> str:
        return "\n".join([header, "{", *(f"    {line}" for line in lines), "}", ""])

    def _instance(self, instance: Instance) -> None:
        cheap, rest = self._split(instance.guard)
        before = self._block
        self._block = []
        for part in rest:
            self._block.append(f"if (!{self._value(part)}) break;")
        self._write(instance)
        inner, self._block = self._block, before
        self._block += [f"do {{ if (!{cheap}) break;", *(f"    {line}" for line in inner)]
        self._block.append("} while (0);")

    def _split(self, guard: Bool) -> tuple[str, list[Term]]:
        """Return the text of the conjuncts that one test can cover, and the other conjuncts."""
        parts = conjuncts(guard)
        cheap = dict.fromkeys(part for part in parts if self._literal(part) is not None)
        return self._tests(list(cheap), wanted=True), [part for part in parts if part not in cheap]

    def _write(self, instance: Instance) -> None:
        settled, bits = [0] * self.words, [0] * self.words
        moving: list[list[str]] = [[] for _ in range(self.words)]
        for cell, new in instance.changes.items():
            place = self._places[cell_of(cell)]
            word, inside = divmod(place.offset, WORD_BITS)
            settled[word] |= ((1 << place.width) - 1) << inside
            if isinstance(new, Int) and not stays(new, place, self._integers):
                value = self._checked(cell, new, place)
            elif is_constant(new):
                bits[word] |= (int(cast("int", new.payload)) - place.low) << inside
                continue
            else:
                value = self._value(new)
                value = f"({value} - {place.low})" if isinstance(new, Int) else value
            moving[word].append(f"(uint64_t){value} << {inside}")
        for word in range(self.words):
            text = f"w{word}"
            if settled[word]:
                text = f"({text} & {_hex(~settled[word] & (1 << WORD_BITS) - 1)})"
            text = " | ".join([text, *([_hex(bits[word])] if bits[word] else []), *moving[word]])
            self._block.append(f"out->w[{word}] = {text};")
        self._block.append(
            f"search->firings[{self._actions.index(instance.action.name)}]++; out++;"
        )

    def _checked(self, cell: Term, new: Term, place: Place) -> str:
        """Return the value less the scope's lowest integer; outside, the search ends."""
        value = self._value(new)
        name = f"n{len(self._block)}"
        self._block.append(f"const int64_t {name} = {value};")
        low, high = place.low, place.low + self._integers - 1
        where = list(self._places).index(cell_of(cell))
        self._block.append(
            f"if (__builtin_expect({name} < {low} || {name} > {high}, 0)) "
            f"{{ outside(search, {where}, {name}); break; }}"
        )
        return f"({name} - {low})"

    def _value(self, term: Term) -> str:
        """Return the text of a term's value, after naming its subterms."""
        if term not in self._names and not self._is_cheap(term):
            waiting = [part for part in subterms(term) if part not in self._names]
            needed = set(_needed(term, self._names, self._is_cheap))
            for part in waiting:
                if part in needed:
                    self._name(part)
        return self._text(term)

    def _name(self, term: Term) -> None:
        if term in self._names or self._is_cheap(term):
            return
        text = self._one(term)
        name = f"t{len(self._names)}"
        kind = "int64_t" if isinstance(term, Int) else "uint64_t"
        self._block.append(f"const {kind} {name} = {text};")
        self._names[term] = name

    def _is_cheap(self, term: Term) -> bool:
        return is_constant(term) or term.op == "read" or self._literal(term) is not None

    def _text(self, term: Term) -> str:
        if term in self._names:
            return self._names[term]
        if is_constant(term):
            return str(int(cast("int", term.payload)))
        if term.op == "read" and not isinstance(term, Bool):
            return self._cell(term)
        if self._literal(term) is not None:
            return self._tests([term], wanted=True)
        return f"({self._one(term)})"

    def _one(self, term: Term) -> str:
        sign = self._signs.get(term.op, "")
        match term.op:
            case "and" | "or":
                return self._lattice(term, sign)
            case "not":
                return f"{sign}{self._text(term.args[0])}"
            case "equal" | "less" | "add" | "subtract":
                return f" {sign} ".join(map(self._text, term.args))
            case "ite":
                test, then, other = map(self._text, term.args)
                return f"{test} ? {then} : {other}"
            case _:
                raise ModelError(f"{term!r} is not ground")

    def _lattice(self, term: Term, sign: str) -> str:
        """Return a conjunction or disjunction, with one test for all parts about single cells."""
        wanted = term.op == "and"
        literals = (p for p in term.args if self._literal(p, wanted=wanted))
        single = dict.fromkeys(part for part in literals if part not in self._names)
        texts = [self._text(part) for part in term.args if part not in single]
        if single:
            texts.insert(0, self._tests(list(single), wanted=wanted))
        return f" {sign} ".join(texts)

    def _tests(self, parts: Sequence[Term], *, wanted: bool) -> str:
        """Return the test that all parts hold or, if not `wanted`, that one of them does not."""
        masks, values = [0] * self.words, [0] * self.words
        for part in parts:
            literal = self._literal(part, wanted=wanted)
            assert literal is not None
            word, mask, value = literal
            if masks[word] & mask and (values[word] ^ value) & masks[word] & mask:
                return str(int(not wanted))
            masks[word] |= mask
            values[word] |= value
        used = [word for word in range(self.words) if masks[word]]
        sign, join = ("==", " & ") if wanted else ("!=", " | ")
        tests = [f"((w{w} & {_hex(masks[w])}) {sign} {_hex(values[w])})" for w in used]
        if len(tests) < 2:
            return tests[0] if tests else str(int(wanted))
        return f"({join.join(tests)})"

    def _literal(self, part: Term, *, wanted: bool = True) -> tuple[int, int, int] | None:
        """Return word, mask and value if the part or its negation fixes the value of a cell."""
        if not isinstance(part, Bool):
            return None
        positive = wanted
        if part.op == "not":
            part, positive = cast("Bool", part.args[0]), not positive
        if part.op == "read":
            return self._fixed(part, int(positive))
        if part.op == "equal" and positive:
            for cell, value in (part.args, part.args[::-1]):
                if cell.op == "read" and is_constant(value):
                    return self._fixed(cell, int(cast("int", value.payload)))
        return None

    def _fixed(self, cell: Term, value: int) -> tuple[int, int, int] | None:
        place = self._places[cell_of(cell)]
        word, inside = divmod(place.offset, WORD_BITS)
        if not 0 <= value - place.low < 1 << place.width:
            return None
        return word, ((1 << place.width) - 1) << inside, (value - place.low) << inside

    def _cell(self, term: Term) -> str:
        place = self._places[cell_of(term)]
        word, inside = divmod(place.offset, WORD_BITS)
        shifted = f"w{word} >> {inside}" if inside else f"w{word}"
        text = f"({shifted} & {_hex((1 << place.width) - 1)})"
        return f"((int64_t){text} + {place.low})" if isinstance(term, Int) else text


def stays(new: Term, place: Place, integers: int) -> bool:
    """Whether an integer is certainly in the scope's range: a cell's, or a fitting constant."""
    match new.op:
        case "read":
            return True
        case "constant":
            return 0 <= cast("int", new.payload) - place.low < integers
        case "ite":
            return all(stays(branch, place, integers) for branch in new.args[1:])
        case _:
            return False


def _shared(roots: Iterable[Iterable[Term]]) -> list[Term]:
    """Return the subterms that several groups share, arguments before the terms that use them."""
    users: Counter[Term] = Counter()
    for group in roots:
        users.update({part for root in group for part in subterms(root)})
    order = {part: part.number for part in users if users[part] > 1}
    return sorted(order, key=lambda part: part.number)


def _needed(
    term: Term, named: Mapping[Term, str], is_cheap: Callable[[Term], bool]
) -> Iterable[Term]:
    """Yield the subterms that need a name before the term is printed."""
    stack: list[Term] = [term]
    seen: set[Term] = set()
    while stack:
        part = stack.pop()
        if part in seen or part in named or is_cheap(part):
            continue
        seen.add(part)
        yield part
        stack.extend(part.args)


def _hex(value: int) -> str:
    return f"{value:#x}u" if value < 1 << 32 else f"{value:#x}ull"
