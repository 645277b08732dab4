"""The seen numbers of one producer: a window of words of bits that moves up.

Owns the arithmetic of that window, bit by bit, as two releases have it. Does not know producers,
messages, or the use of its answers.

The window covers `first` up to `first` + `word_bits` * (number of words). `first` only grows, one
word at a time. A number above the window moves it up, and the numbers below it are forgotten. The
answer for a number below the window is a guess: "seen" loses a message that is read again (5.1.0;
AMQ-1742), "new" delivers one twice (since 5.2.0).

Division is Java's, which truncates towards zero: the numbers just below `first` fall into its own
word, at a negative offset.

Source: ActiveMQ's `BitArrayBin` of 5.1.0 and of 5.2.0 and later. Beyond 31 bits, 5.1.0 follows its
own 32-bit arithmetic (AMQ-5016, AMQ-6431). 5.2.0 to 5.14 share that defect, but here they have the
arithmetic of later releases.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Literal, NamedTuple, TypeAlias

AuditRules: TypeAlias = Literal["5.1", "5.2"]
"""The release whose arithmetic is used: 5.1.0, or 5.2.0 and later."""

WORD_BITS: Final = 64
"""Bits of a word in all releases; small scopes have fewer."""


class Landing(NamedTuple):
    """The place of a number: the window after the move that it causes, and its bit there.

    `place` is None for a number below the window. `is_in_first_word` then says that the division
    puts it into the first word all the same.
    """

    first: int
    dropped: int
    place: int | None
    is_in_first_word: bool = False


class BitArrayBin:
    """A window that covers at least `depth` numbers; numbers start at 0."""

    __slots__ = ("_bits", "_previous", "_top", "first", "rules", "size", "word_bits")

    def __init__(self, depth: int, rules: AuditRules, word_bits: int = WORD_BITS) -> None:
        if depth < 0 or word_bits < 1:
            raise ValueError("a depth is at least 0, and a word has at least one bit")
        self.rules = rules
        self.word_bits = word_bits
        self.size = (depth + 1) // word_bits + 1
        """The number of words; it never changes."""
        self.first: int | None = None
        """The lowest covered number; None before the first call."""
        # One integer holds all words: it shifts and copies as fast as a single word.
        self._bits = 0
        self._top = -1
        self._previous: int | None = None

    @property
    def words(self) -> tuple[int, ...]:
        """The words, lowest numbers first; a set bit is a seen number."""
        mask = (1 << self.word_bits) - 1
        return tuple([self._bits >> self.word_bits * at & mask for at in range(self.size)])

    @property
    def last_set_index(self) -> int:
        """The highest number of the highest word in use that was ever set or unset there.

        A word is in use once one of its numbers was asked for, or once the window has moved. If a
        word in use has no such number, this is the number before the word. -1 at the start.
        """
        return -1 if self.first is None else self.first + self._top

    def set(self, index: int, flag: bool) -> bool:
        """Mark a number as seen or not; return whether it was seen before."""
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
        """Return whether a number counts as seen. Like `set`, this moves the window.

        A number below the window counts as seen, in all releases, unless the division puts it into
        the first word.
        """
        landing = self._land(index)
        if landing.place is None:
            return not landing.is_in_first_word
        self._move(landing)
        return bool(self._bits >> landing.place & 1)

    def probe(self, index: int) -> bool:
        """Return the answer of `set` without any effect. Our addition, for inspection."""
        landing = self._land(index)
        if landing.place is None:
            return self.rules == "5.1"
        bits = self._bits >> landing.dropped * self.word_bits
        return bool(bits >> landing.place & 1)

    def is_in_order(self, index: int) -> bool:
        """Return whether a number follows the previous one; the first number does."""
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
        """Find a number's bit. The window begins at the first number and moves as far as needed."""
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
        """Find a number's bit in 5.1.0: the window begins at 0 and moves one word at a time.

        The very first number goes into the first word, whatever it is. `first` and the word are
        32-bit values. After an overflow `first` is negative, the bit is the lowest of its word, and
        the next number starts the window at 0 again with the same words.
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

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for windows that answer alike for ever."""
        window = self.rules, self.word_bits, self.size
        return window, self.first, self._bits, self._top, self._previous


def truncated(number: int, by: int) -> int:
    """Divide as Java does, towards zero; Python's `//` rounds down.

    >>> truncated(-63, 64), -63 // 64
    (0, -1)
    """
    return number // by if number >= 0 else -(-number // by)


def int32(number: int) -> int:
    """Cast a number to 32 bits as Java does.

    >>> int32(2**31)
    -2147483648
    """
    return (number + 2**31) % 2**32 - 2**31
