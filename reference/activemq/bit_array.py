"""Which numbers of one producer were seen: a window of words of bits that moves up.

Owns the arithmetic of that window, as two releases have it, to the last bit. Refuses to know
producers and messages, and what its answers are used for.

The window covers `first` up to `first` + `word_bits` * (number of words). `first` only grows, a
word at a time. A number above the window moves it up, and what falls out at the bottom is
forgotten. What is answered of a number below the window is a guess, whichever way: "seen" loses a
message that is read again (5.1.0; AMQ-1742), "new" hands one out twice (since 5.2.0).

Division is Java's, which cuts off towards zero: the numbers right below `first` count into its own
word, at an offset below 0.

Source: ActiveMQ's `BitArrayBin` of 5.1.0 and of 5.2.0 and later. Where the number 31 is exceeded in
5.1.0 is as its own arithmetic of 32 bits has it (AMQ-5016, AMQ-6431); of 5.2.0 to 5.14, which have
that too, the arithmetic is that of later ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Literal, NamedTuple, TypeAlias

AuditRules: TypeAlias = Literal["5.1", "5.2"]
"""Of which release the arithmetic is: 5.1.0, or 5.2.0 and later."""

WORD_BITS: Final = 64
"""Bits of a word in all releases; small scopes have fewer."""


class Landing(NamedTuple):
    """Where a number comes to lie: how far the window moves for it, and the bit within it then.

    `place` is None where the number is below the window; `is_in_first_word` says that by the
    division it is in the first word nevertheless.
    """

    first: int
    dropped: int
    place: int | None
    is_in_first_word: bool = False


class BitArrayBin:
    """A window of numbers for at least `depth` of them; numbers start at 0."""

    __slots__ = ("_bits", "_previous", "_top", "first", "rules", "size", "word_bits")

    def __init__(self, depth: int, rules: AuditRules, word_bits: int = WORD_BITS) -> None:
        if depth < 0 or word_bits < 1:
            raise ValueError("a depth is at least 0, and a word has at least one bit")
        self.rules = rules
        self.word_bits = word_bits
        self.size = (depth + 1) // word_bits + 1
        """How many words there are; never another number of them."""
        self.first: int | None = None
        """The lowest number that is covered; None before anything was asked."""
        # One number for all words: it is shifted and copied as quickly as a single word.
        self._bits = 0
        self._top = -1
        self._previous: int | None = None

    @property
    def words(self) -> tuple[int, ...]:
        """The words, the lowest numbers first; a bit is set where a number was seen."""
        mask = (1 << self.word_bits) - 1
        return tuple([self._bits >> self.word_bits * at & mask for at in range(self.size)])

    @property
    def last_set_index(self) -> int:
        """The highest number of the highest word in use that was ever set or unset there.

        A word is in use once a number of it was asked for, or once the window has moved; of one in
        use without such a number it is the number before the word. -1 at the start.
        """
        return -1 if self.first is None else self.first + self._top

    def set(self, index: int, flag: bool) -> bool:
        """Note whether a number counts as seen, and return whether it did before."""
        landing = self._land(index)
        if landing.place is None:
            return self.rules == "5.1"
        self._move(landing)
        bit = 1 << landing.place
        seen = bool(self._bits & bit)
        self._bits = self._bits | bit if flag else self._bits & ~bit
        self._top = max(self._top, landing.place)
        return seen

    def get(self, index: int) -> bool:
        """Return whether a number counts as seen. The window moves all the same, as for `set`.

        What is below the window counts as seen, in all releases, but for what the division counts
        into the first word.
        """
        landing = self._land(index)
        if landing.place is None:
            return not landing.is_in_first_word
        self._move(landing)
        return bool(self._bits >> landing.place & 1)

    def probe(self, index: int) -> bool:
        """Return what `set` would, without any effect. Our own, for whoever only looks."""
        landing = self._land(index)
        if landing.place is None:
            return self.rules == "5.1"
        bits = self._bits >> landing.dropped * self.word_bits
        return bool(bits >> landing.place & 1)

    def is_in_order(self, index: int) -> bool:
        """Say whether a number follows the one that was asked for before; the first one does."""
        previous, self._previous = self._previous, index
        return previous is None or index == previous + 1

    def _move(self, landing: Landing) -> None:
        self.first = landing.first
        if landing.dropped:
            self._bits >>= landing.dropped * self.word_bits
            self._top = self.word_bits * (self.size - 1) - 1
        else:
            assert landing.place is not None
            self._top = max(self._top, landing.place // self.word_bits * self.word_bits - 1)

    def _land(self, index: int) -> Landing:
        if index < 0:
            raise ValueError("numbers start at 0")
        return self._land_in_32_bits(index) if self.rules == "5.1" else self._land_exactly(index)

    def _land_exactly(self, index: int) -> Landing:
        """Find a number's bit: the window begins where the first one is, and moves to any other."""
        if self.first is None:
            return Landing(index - index % self.word_bits, 0, index % self.word_bits)
        word = truncated(index - self.first, self.word_bits)
        offset = index - self.first - self.word_bits * word
        if word < 0 or offset < 0:
            return Landing(self.first, 0, None, is_in_first_word=word == 0)
        dropped = max(0, word - self.size + 1)
        first = self.first + self.word_bits * dropped
        return Landing(first, dropped, self.word_bits * (word - dropped) + offset)

    def _land_in_32_bits(self, index: int) -> Landing:
        """Find a number's bit in 5.1.0: the window begins at 0, and moves by one word at a time.

        The first number of all goes into the first word, wherever it belongs. `first` and the word
        are of 32 bits: beyond them `first` is below 0, the bit is the lowest of its word, and with
        the next number the window begins at 0 anew, its words as they are.
        """
        if self.first is None or self.first < 0:
            return Landing(0, 0, self._offset_in_32_bits(index, 0))
        word = int32(truncated(index - self.first, self.word_bits))
        if word < 0:
            return Landing(self.first, 0, None)
        first, dropped = self.first, 0
        if word >= self.size:
            first, dropped, word = int32(first + self.word_bits), 1, self.size - 1
        offset = self._offset_in_32_bits(index, first)
        if offset < 0:
            assert not dropped, "what is above the window is at no offset below 0"
            return Landing(first, 0, None, is_in_first_word=True)
        return Landing(first, dropped, self.word_bits * word + offset)

    def _offset_in_32_bits(self, index: int, first: int) -> int:
        if first < 0:
            return 0
        word = int32(truncated(index - first, self.word_bits))
        return int32(index - first - int32(self.word_bits * word))

    def fork(self) -> BitArrayBin:
        """Return an independent copy."""
        copy = object.__new__(BitArrayBin)
        copy.rules = self.rules
        copy.word_bits = self.word_bits
        copy.size = self.size
        copy.first = self.first
        copy._bits = self._bits
        copy._top = self._top
        copy._previous = self._previous
        return copy

    def fingerprint(self) -> Hashable:
        """Return what is equal for windows that answer alike for ever."""
        window = self.rules, self.word_bits, self.size
        return window, self.first, self._bits, self._top, self._previous


def truncated(number: int, by: int) -> int:
    """Divide as Java does, towards zero; Python's `//` goes down instead.

    >>> truncated(-63, 64), -63 // 64
    (0, -1)
    """
    return number // by if number >= 0 else -(-number // by)


def int32(number: int) -> int:
    """Return what is left of a number in 32 bits, as Java casts it.

    >>> int32(2**31)
    -2147483648
    """
    return (number + 2**31) % 2**32 - 2**31
