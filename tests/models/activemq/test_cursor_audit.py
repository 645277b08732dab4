"""The audit's bin: proved for any depth, held to the exact arithmetic, and each rule is needed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal

import pytest

from brokerproof.models.activemq.cursor_audit import (
    NO_FURTHER,
    NO_OTHERS,
    NOT_FALSE,
    NOT_MISSED,
    REACHES,
    REMEMBERED,
    CursorAudit,
    Index,
    Word,
)
from brokerproof.models.language import Bool, FixedRelation, action, forall, implies, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.read.plain import PlainReading, State

BITS = 2
"""How many indices share a word in a scope."""


class BeginsAtNothing(CursorAudit):
    """Begins the first window at index 0, and has the first bit in its first word (5.1)."""

    same: FixedRelation[Index, Index]

    @action
    def ask_first(self, i: Index, at: Index, v: Word) -> None:  # type: ignore[override]
        """The first queried index has the bit of one in the first word."""
        require(~self.has_begun())
        require(forall(Word, lambda w: ~self.earlier(w, v)))
        require((self.word[at] == v) & self.same[i, at])
        self._calls_new(i)
        self._starts_at(v)
        self.bit[at] = True
        self.recorded[i] = True


class SlidesOnce(CursorAudit):
    """Slides by one word, however far an index is, and takes some bit of the last word (5.1)."""

    same: FixedRelation[Index, Index]

    @action
    def ask_beyond(self, i: Index, at: Index, v: Word) -> None:  # type: ignore[override]
        """Beyond the window, it slides by one word."""
        require(self.is_beyond(i) & self.same[i, at])
        require(forall(Word, lambda u: implies(self.starts[u], self.is_next(u, v))))
        require(self.is_last_of(v, self.word[at]))
        self._calls_new(i)
        self._starts_at(v)
        self.bit[at] = True
        self.recorded[i] = True

    def is_next(self, u: Word, v: Word) -> Bool:
        """Whether one word follows the other."""
        between = forall(Word, lambda w: ~(self.earlier(u, w) & self.earlier(w, v)))
        return self.earlier(u, v) & between

    def is_last_of(self, v: Word, w: Word) -> Bool:
        """Whether the window that starts at one word ends with the other."""
        none_later = forall(Word, lambda u: implies(self.reaches[v, u], ~self.earlier(w, u)))
        return self.reaches[v, w] & none_later


class CallsOldDuplicate(CursorAudit):
    """Calls whatever is below the window a duplicate (5.1, AMQ-1742)."""

    @action
    def ask_below(self, i: Index) -> None:
        """Below the window everything is a duplicate."""
        require(self.is_below(i))
        self.called_wrongly[i] |= ~self.recorded[i]
        self.recorded[i] = True


class AuditOf51(BeginsAtNothing, SlidesOnce, CallsOldDuplicate):
    """All that release 5.1.0 did otherwise."""


class SlidesTooFar(CursorAudit):
    """Slides so far that the index is in the first word of the window."""

    @action
    def ask_beyond(self, i: Index, v: Word) -> None:
        """Beyond the window, it starts anew."""
        require(self.is_beyond(i) & (self.word[i] == v))
        self._calls_new(i)
        self._starts_at(v)
        self.slid_for = self.slid_for.map(lambda w, _: w == self.word[i])
        self._records(i)


class KeepsItsBits(CursorAudit):
    """Slides, and keeps the bits of the ids that it leaves behind."""

    def _starts_at(self, v: Word) -> None:
        bit = self.bit.map(lambda _, old: old)
        super()._starts_at(v)
        self.bit = bit


class ForgetsToRecord(CursorAudit):
    """Answers a query beyond the window, and records nothing."""

    @action
    def ask_beyond(self, i: Index, v: Word) -> None:
        """Beyond the window, it slides."""
        super().ask_beyond(i, v)
        self.bit[i] = False


class TakesNothingBack(CursorAudit):
    """Rolls back, and leaves the bit."""

    @action
    def roll_back(self, i: Index) -> None:
        """Inside of the window."""
        super().roll_back(i)
        self.bit[i] = True


@dataclass
class Bin:
    """A bin as the releases compute it, with integers: the arithmetic that the model stands for."""

    words: int
    bits: int
    release: Literal["5.1", "5.2"]
    first: int | None = None
    there: set[int] = field(default_factory=set)

    def ask(self, index: int) -> bool:
        """Return whether the index is called a duplicate, and record it."""
        old = self.release == "5.1"
        if self.first is None:
            self.first = 0 if old else index - index % self.bits
            at = index % self.bits if old else index
            self.there.add(at)
            return False
        if index < self.first:
            return old
        at = index
        while at >= self.first + self.words * self.bits:
            self.first += self.bits
            self.there = {each for each in self.there if each >= self.first}
            if old:
                last = self.first + (self.words - 1) * self.bits
                at = last + index % self.bits
        was = at in self.there
        self.there.add(at)
        return was


def scope(words: int, window: int, **fixed: tuple[int, ...]) -> Scope:
    """Return so many words of two indices each, and a window of so many."""
    reaches = tuple(int(v <= w < v + window) for v in range(words) for w in range(words))
    word = tuple(i // BITS for i in range(words * BITS))
    given = {"word": word, "reaches": reaches} | fixed
    return Scope({Index: words * BITS, Word: words}, range(1), given)


def with_offsets(words: int, window: int) -> Scope:
    """Return the same, for models that ask which indices have the same place in their words."""
    number = words * BITS
    same = tuple(int(i % BITS == j % BITS) for i in range(number) for j in range(number))
    return scope(words, window, same=same)


def test_it_is_proved_for_any_number_of_words_and_bits() -> None:
    proof = prove(trace(CursorAudit))
    assert proof.complete
    assert not any(each.assumptions for each in proof.invariants)


@pytest.mark.parametrize(("words", "window"), [(3, 1), (4, 2)])
def test_a_few_words_keep_all_of_it(words: int, window: int) -> None:
    found = explore(trace(CursorAudit), scope(words, window))
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize(
    ("model", "broken", "steps", "words", "window"),
    [
        (BeginsAtNothing, NOT_FALSE, 2, 3, 1),
        (BeginsAtNothing, REACHES, 1, 3, 1),
        (SlidesOnce, NOT_FALSE, 3, 3, 1),
        (SlidesOnce, REACHES, 2, 3, 1),
        (CallsOldDuplicate, NOT_FALSE, 2, 3, 1),
        (SlidesTooFar, NO_FURTHER, 2, 4, 2),
        (KeepsItsBits, NO_OTHERS, 2, 3, 1),
        (ForgetsToRecord, REMEMBERED, 2, 3, 1),
        (ForgetsToRecord, NOT_MISSED, 3, 3, 1),
        (TakesNothingBack, NOT_FALSE, 3, 3, 1),
    ],
)
def test_each_rule_is_needed(
    model: type[Model], broken: str, steps: int, words: int, window: int
) -> None:
    offsets = any(symbol.name == "same" for symbol in trace(model).symbols)
    chosen = with_offsets(words, window) if offsets else scope(words, window)
    found = explore(trace(model), chosen, invariants=[broken])
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps


@pytest.mark.parametrize(
    ("words", "indices", "old", "new"),
    [
        (1, (63, 64, 63, 0, 64), "nnDDD", "nnnnD"),
        (1, (200, 200, 8, 264, 200, 72), "nnDnnD", "nDnnnn"),
        (2, (10, 74, 10, 138, 10, 74), "nnDnDD", "nnDnnD"),
        (2, (1, 2, 130, 1, 2, 64, 130), "nnnDDnD", "nnnnnnD"),
        (2, (5, 70, 200, 5, 70, 200, 0), "nnnDDnD", "nnnnnDn"),
        (3, (64, 768, 576, 768, 575, 64), "nnnnnD", "nnnDnn"),
    ],
)
def test_the_arithmetic_is_that_of_the_releases(
    words: int, indices: tuple[int, ...], old: str, new: str
) -> None:
    """Windows of 64 bits, and the answers of both releases, as recorded from them."""
    for release, answers in (("5.1", old), ("5.2", new)):
        kept = Bin(words, 64, release)  # type: ignore[arg-type]
        assert "".join("nD"[kept.ask(index)] for index in indices) == answers


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("release", ["5.1", "5.2"])
def test_the_model_is_the_arithmetic(release: Literal["5.1", "5.2"], window: int) -> None:
    """Every sequence of four questions about eight indices leaves the same bits and answers."""
    model: type[Model] = CursorAudit if release == "5.2" else AuditOf51
    words = 4
    chosen = scope(words, window) if release == "5.2" else with_offsets(words, window)
    reading = PlainReading(trace(model), chosen)
    cells = {(cell.symbol.name, cell.indices): n for n, cell in enumerate(reading.cells)}
    [begin] = reading.initial_states()
    asked: dict[tuple[State, int], tuple[str, State]] = {}

    def ask(state: State, index: int) -> tuple[str, State]:
        if (state, index) not in asked:
            [(name, arguments)] = [
                (name, arguments)
                for name in ("ask_first", "ask_inside", "ask_beyond", "ask_below")
                for arguments in reading.arguments(name)
                if arguments[0] == index and reading.enabled(name, state, arguments)
            ]
            asked[state, index] = name, reading.step(name, state, arguments)
        return asked[state, index]

    for indices in itertools.product(range(words * BITS), repeat=4):
        state, kept = begin, Bin(window, BITS, release)
        for index in indices:
            known = bool(state[cells["bit", (index,)]])
            name, state = ask(state, index)
            said = {"ask_inside": known, "ask_below": release == "5.1"}.get(name, False)
            assert kept.ask(index) == said
            assert kept.there == {i for i in range(words * BITS) if state[cells["bit", (i,)]]}
            assert kept.first is not None
            starts = [w for w in range(words) if state[cells["starts", (w,)]]]
            assert starts == [kept.first // BITS]
