"""The audit of ActiveMQ's queue: the bin of one producer, words of bits in a sliding window.

Sources: the analysis of ActiveMQ's queue (5.1), which has the sizes and the slide, and the releases
5.1.0 and 5.2.0; the ids are those of later notes on these releases.

A bin has a number of words of a number of indices each, and begins with the word of the first index
that is checked. An index inside the window has a bit. An index beyond it makes the window slide,
word by word, until the index's word is the last. An index below it is called new and gets no bit. A
check sets the index's bit; a rollback clears it.

The words are a family, and the reach of a window is any relation that their order allows, so the
proofs hold for any depth and any number of bits in a word. A bit is named by its index, so its
place moves with the window.
"""

from __future__ import annotations

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
    """A group of indices that share a word of bits."""


class CursorAudit(Model):
    """A bin of words, and the set of indices that were truly recorded."""

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
        """A window reaches at least its first word, and skips no word in between."""
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
        """No index has been checked, and there is no window."""
        self.starts.fill(False)
        self.slid_for.fill(False)
        for truth in (self.bit, self.recorded, self.fell_below, self.called_wrongly, self.missed):
            truth.fill(False)

    # Terms.

    def has_begun(self) -> Bool:
        """Whether there is a window."""
        return exists(Word, lambda v: self.starts[v])

    def is_inside(self, i: Index) -> Bool:
        """Whether the window has a bit for the index."""
        return exists(Word, lambda v: self.starts[v] & self.reaches[v, self.word[i]])

    def is_below(self, i: Index) -> Bool:
        """Whether the index is below the window's start."""
        return exists(Word, lambda v: self.starts[v] & self.earlier(self.word[i], v))

    def is_beyond(self, i: Index) -> Bool:
        """Whether the window has to slide for the index."""
        return self.has_begun() & ~self.is_inside(i) & ~self.is_below(i)

    def is_start_for(self, v: Word, w: Word) -> Bool:
        """Whether a window that starts at `v` has `w` as its last word."""
        none_earlier = forall(Word, lambda u: implies(self.reaches[u, w], ~self.earlier(u, v)))
        return self.reaches[v, w] & none_earlier

    # Checks, which record the index.

    @action
    def ask_first(self, i: Index) -> None:
        """The first index that is checked sets the start of the window."""
        require(~self.has_begun())
        self._calls_new(i)
        self._starts_at(self.word[i])
        self._records(i)

    @action
    def ask_inside(self, i: Index) -> None:
        """Inside the window, the bit says whether the index is a duplicate."""
        require(self.is_inside(i))
        self.called_wrongly[i] |= self.bit[i] & ~self.recorded[i]
        self.missed[i] |= ~self.bit[i] & self.recorded[i]
        self._records(i)

    @action
    def ask_beyond(self, i: Index, v: Word) -> None:
        """An index beyond the window is called new, and the window slides to it."""
        require(self.is_beyond(i) & self.is_start_for(v, self.word[i]))
        self._calls_new(i)
        self._starts_at(v)
        self.slid_for = self.slid_for.map(lambda w, _: w == self.word[i])
        self._records(i)

    @action
    def ask_below(self, i: Index) -> None:
        """An index below the window is called new and gets no bit."""
        require(self.is_below(i))
        self._calls_new(i)
        self.recorded[i] = True

    def _calls_new(self, i: Index) -> None:
        """Note a missed duplicate: the index was truly recorded and is inside the window."""
        self.missed[i] |= self.recorded[i] & self.is_inside(i)

    def _starts_at(self, v: Word) -> None:
        """Start the window at `v` and drop the bits of the words before it."""
        self.fell_below = self.fell_below.map(lambda j, old: old | self.earlier(self.word[j], v))
        self.bit = self.bit.map(lambda j, old: old & ~self.earlier(self.word[j], v))
        self.starts = self.starts.map(lambda u, _: u == v)

    def _records(self, i: Index) -> None:
        self.bit[i] = True
        self.recorded[i] = True

    # Rollbacks.

    @action
    def roll_back(self, i: Index) -> None:
        """A rollback inside the window clears the bit."""
        require(self.is_inside(i))
        self.bit[i] = False
        self.recorded[i] = False

    @action
    def roll_back_below(self, i: Index) -> None:
        """A rollback below the window has no bit to clear."""
        require(self.is_below(i))
        self.recorded[i] = False

    # Invariants.

    @invariant(NOT_FALSE)
    def nothing_is_called_wrongly(self, i: Index) -> Bool:
        """The audit calls no index a duplicate that was not recorded (I9)."""
        return ~self.called_wrongly[i]

    @invariant(NOT_MISSED)
    def nothing_is_missed(self, i: Index) -> Bool:
        """Inside the window, the audit calls every recorded index a duplicate (I10)."""
        return ~self.missed[i]

    @invariant(REMEMBERED)
    def bits_are_what_was_recorded(self, i: Index) -> Bool:
        """Inside the window, exactly the recorded indices have a bit (I10)."""
        return implies(self.is_inside(i), self.bit[i] == self.recorded[i])

    @invariant(NO_OTHERS)
    def no_other_bit_is_set(self, i: Index) -> Bool:
        """No bit is set outside the window, so a word that the window comes to is empty."""
        return implies(self.bit[i], self.is_inside(i))

    @invariant(REACHES)
    def recorded_is_not_beyond(self, i: Index) -> Bool:
        """No recorded index is beyond the window."""
        return implies(self.recorded[i], self.is_inside(i) | self.is_below(i))

    @invariant(STARTS)
    def window_starts_at_one_word(self, v: Word, w: Word) -> Bool:
        """The window starts at one word at most."""
        return implies(self.starts[v] & self.starts[w], v == w)

    @invariant(NO_FURTHER)
    def window_slides_no_further(self) -> Bool:
        """The window slides no further than it must: its last word is that of the index."""
        has_slid = exists(Word, lambda w: self.slid_for[w])

        def slid(v: Word, w: Word) -> Bool:
            return self.starts[v] & self.slid_for[w]

        return (
            implies(has_slid, self.has_begun())
            & forall(Word, Word, lambda v, w: implies(slid(v, w), self.reaches[v, w]))
            & forall(
                *(Word, Word, Word),
                lambda u, v, w: implies(slid(v, w) & self.earlier(u, v), ~self.reaches[u, w]),
            )
        )

    @invariant(GROWS)
    def window_only_goes_on(self, i: Index) -> Bool:
        """The window's start never goes back (I13)."""
        return implies(self.fell_below[i], self.is_below(i))


CursorAudit.equivalent_mutants = """
Only an invariant reads the value, and then states less.
    ask_first: fell_below; ask_beyond: fell_below
Nothing is required of an index below the window.
    ask_below: recorded; roll_back_below: recorded
Outside the window there is no bit to clear.
    roll_back: guard 1*3
A window that slides may be the first one, and then begins there.
    ask_beyond: guard 1
"""
