"""The audit of ActiveMQ's queue: one producer's bin, words of bits in a window that slides.

Sources: the analysis of ActiveMQ's queue (5.1), which has the sizes and the slide, and the releases
5.1.0 and 5.2.0; the ids are those of later notes on these releases.

A bin has so many words, each of so many indices, and begins with the word of the first index that
it is asked for. An index inside of the window has a bit. One beyond it lets the window slide, word
by word, until it is inside: then its word is the last. One below is new, and leaves no trace. To
ask for an index records it, and a rollback takes that back.

The words are a family of their own, and how many of them a window has is any relation that their
order allows, so what is proved is proved for any depth, and any number of bits in a word. A bit is
known by its index: as the window slides, the place of the bit moves with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.activemq.equivalent_mutants import CURSOR_AUDIT
from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    FixedRelation,
    Map,
    Model,
    Order,
    action,
    axiom,
    exists,
    forall,
    implies,
    initial,
    invariant,
    require,
)
from brokerproof.models.qpid.threads.equivalent_mutants import by_name

NOT_FALSE = "nothing-is-called-a-duplicate-that-was-not-recorded"
NOT_MISSED = "inside-of-the-window-no-duplicate-is-missed"
REMEMBERED = "inside-of-the-window-the-bits-are-what-was-recorded"
NO_OTHERS = "outside-of-the-window-no-bit-is-set"
REACHES = "what-was-recorded-is-not-beyond-the-window"
STARTS = "the-window-starts-at-one-word"
NO_FURTHER = "the-window-slides-no-further-than-it-must"
GROWS = "what-fell-below-the-window-stays-below"


class Index(Family):
    """The number of a message of the producer."""


class Word(Family):
    """Indices that share a word of bits."""


class CursorAudit(Model):
    """A bin of words, and what was recorded in it in truth."""

    harmless: ClassVar[Mapping[str, str]] = by_name(CURSOR_AUDIT)

    earlier: Order[Word]
    word: Fixed[Index, Word]
    reaches: FixedRelation[Word, Word]

    starts: Map[Word, Bool]
    slid_for: Map[Word, Bool]
    bit: Map[Index, Bool]
    recorded: Map[Index, Bool]
    fell_below: Map[Index, Bool]
    called_wrongly: Map[Index, Bool]
    missed: Map[Index, Bool]

    @axiom("a-window-is-words-next-to-each-other")
    def windows_are_whole(self) -> Bool:
        """From where it starts it reaches there at least, and to no word without those between."""
        return forall(Word, lambda v: self.reaches[v, v]) & forall(
            Word,
            Word,
            Word,
            lambda v, u, w: implies(
                self.reaches[v, w],
                ~self.earlier(w, v)
                & implies(
                    ~self.earlier(u, v) & ~self.earlier(w, u),
                    self.reaches[v, u] & self.reaches[u, w],
                ),
            ),
        )

    @initial
    def empty(self) -> None:
        """Nothing was asked for, and there is no window."""
        self.starts.fill(False)
        self.slid_for.fill(False)
        for truth in (self.bit, self.recorded, self.fell_below, self.called_wrongly, self.missed):
            truth.fill(False)

    # The words.

    def has_begun(self) -> Bool:
        """Whether there is a window."""
        return exists(Word, lambda v: self.starts[v])

    def is_inside(self, i: Index) -> Bool:
        """Whether the window has a bit for the index."""
        return exists(Word, lambda v: self.starts[v] & self.reaches[v, self.word[i]])

    def is_below(self, i: Index) -> Bool:
        """Whether the window starts behind the index."""
        return exists(Word, lambda v: self.starts[v] & self.earlier(self.word[i], v))

    def is_beyond(self, i: Index) -> Bool:
        """Whether the window has to slide for the index."""
        return self.has_begun() & ~self.is_inside(i) & ~self.is_below(i)

    def is_start_for(self, v: Word, w: Word) -> Bool:
        """Whether a window that starts there has the word for its last."""
        none_earlier = forall(Word, lambda u: implies(self.reaches[u, w], ~self.earlier(u, v)))
        return self.reaches[v, w] & none_earlier

    # Asking, which records.

    @action
    def ask_first(self, i: Index) -> None:
        """The first index that is asked for says where the window starts."""
        require(~self.has_begun())
        self._calls_new(i)
        self._starts_at(self.word[i])
        self._records(i)

    @action
    def ask_inside(self, i: Index) -> None:
        """Inside of the window the bit says whether it is a duplicate."""
        require(self.is_inside(i))
        self.called_wrongly[i] = self.called_wrongly[i] | (self.bit[i] & ~self.recorded[i])
        self.missed[i] = self.missed[i] | (~self.bit[i] & self.recorded[i])
        self._records(i)

    @action
    def ask_beyond(self, i: Index, v: Word) -> None:
        """Beyond the window nothing is a duplicate, and the window slides."""
        require(self.is_beyond(i) & self.is_start_for(v, self.word[i]))
        self._calls_new(i)
        self._starts_at(v)
        self.slid_for = self.slid_for.map(lambda w, _: w == self.word[i])
        self._records(i)

    @action
    def ask_below(self, i: Index) -> None:
        """Below the window nothing is called a duplicate, and nothing is recorded."""
        require(self.is_below(i))
        self._calls_new(i)
        self.recorded[i] = True

    def _calls_new(self, i: Index) -> None:
        """Note whether the index was recorded in truth, where the window should know it."""
        self.missed[i] = self.missed[i] | (self.recorded[i] & self.is_inside(i))

    def _calls_duplicate(self, i: Index) -> None:
        """Note whether the index was never recorded in truth."""
        self.called_wrongly[i] = self.called_wrongly[i] | ~self.recorded[i]

    def _starts_at(self, v: Word) -> None:
        """Let the window start there: the bits of words that are left behind are gone."""
        self.fell_below = self.fell_below.map(lambda j, old: old | self.earlier(self.word[j], v))
        self.bit = self.bit.map(lambda j, old: old & ~self.earlier(self.word[j], v))
        self.starts = self.starts.map(lambda u, _: u == v)

    def _records(self, i: Index) -> None:
        self.bit[i] = True
        self.recorded[i] = True

    # Taking back.

    @action
    def roll_back(self, i: Index) -> None:
        """Inside of the window a bit is taken back."""
        require(self.is_inside(i))
        self.bit[i] = False
        self.recorded[i] = False

    @action
    def roll_back_below(self, i: Index) -> None:
        """Below the window there is nothing to be taken back."""
        require(self.is_below(i))
        self.recorded[i] = False

    # What holds.

    @invariant(NOT_FALSE)
    def nothing_is_called_wrongly(self) -> Bool:
        """Neither inside of the window nor below or beyond it (I9)."""
        return forall(Index, lambda i: ~self.called_wrongly[i])

    @invariant(NOT_MISSED)
    def nothing_is_missed(self) -> Bool:
        """What was recorded and not taken back is called a duplicate there (I10)."""
        return forall(Index, lambda i: ~self.missed[i])

    @invariant(REMEMBERED)
    def bits_are_what_was_recorded(self) -> Bool:
        """As many indices are remembered as the window has (I10)."""
        return forall(Index, lambda i: implies(self.is_inside(i), self.bit[i] == self.recorded[i]))

    @invariant(NO_OTHERS)
    def no_other_bit_is_set(self) -> Bool:
        """A word that the window comes to is empty."""
        return forall(Index, lambda i: implies(self.bit[i], self.is_inside(i)))

    @invariant(REACHES)
    def recorded_is_not_beyond(self) -> Bool:
        """So nothing that was recorded is forgotten by being asked for."""
        return forall(
            Index, lambda i: implies(self.recorded[i], self.is_inside(i) | self.is_below(i))
        )

    @invariant(STARTS)
    def window_starts_at_one_word(self) -> Bool:
        """There is one window, or none yet."""
        return forall(Word, Word, lambda v, w: implies(self.starts[v] & self.starts[w], v == w))

    @invariant(NO_FURTHER)
    def window_slides_no_further(self) -> Bool:
        """It forgets no more than it must: the last word is that of the index it slid for."""
        has_slid = exists(Word, lambda w: self.slid_for[w])
        return implies(has_slid, self.has_begun()) & forall(
            Word,
            Word,
            lambda v, w: implies(self.starts[v] & self.slid_for[w], self.is_start_for(v, w)),
        )

    @invariant(GROWS)
    def window_only_goes_on(self) -> Bool:
        """The window's start never goes back (I13)."""
        return forall(Index, lambda i: implies(self.fell_below[i], self.is_below(i)))
