"""Sets of packed states as sorted arrays: of words, or of rows if a state takes several words.

Rows are ordered by their last word first, like numbers with the lowest digits first. Searches use
keys, which are bytes that sort as the rows do; a single word is its own key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Keys: TypeAlias = NDArray[Any]


def no_words(width: int) -> Words:
    """Return an empty array for states of `width` words."""
    return np.zeros(0 if width == 1 else (0, width), dtype=np.uint64)


def keys(words: Words) -> Keys:
    """Return one-dimensional keys that sort as the states do."""
    if words.ndim == 1:
        return words
    big_end_first = np.ascontiguousarray(words[:, ::-1].astype(">u8"))
    return big_end_first.view(f"S{8 * words.shape[1]}").ravel()


def distinct(parts: Sequence[Words]) -> Words:
    """Return the states of all parts, sorted, each once; there must be at least one part."""
    words = np.concatenate(parts)
    keep = np.ones(len(words), dtype=np.bool_)
    if words.ndim == 1:
        words.sort()
        np.not_equal(words[1:], words[:-1], out=keep[1:])
    else:
        words = words[np.lexsort(words.T)]
        keep[1:] = (words[1:] != words[:-1]).any(axis=1)
    return words[keep]


class Visited:
    """A growing set of states: sorted blocks in ascending order, of bounded size.

    Only one block is merged with its new states at a time, so there are never two copies of the
    whole.
    """

    BLOCK = 1 << 16
    BLOCKS = 32

    def __init__(self, width: int) -> None:
        self._blocks = [keys(no_words(width))]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def without(self, words: Words) -> Words:
        """Return the states of a sorted array that are not in the set."""
        wanted = keys(words)
        unseen = np.ones(len(wanted), dtype=np.bool_)
        for number, begin, end in self._shares(wanted):
            block, part = self._blocks[number], wanted[begin:end]
            if not len(block):
                continue  # The only block, and it is empty.
            places = np.searchsorted(block, part)
            places[places == len(block)] = 0
            np.not_equal(block[places], part, out=unseen[begin:end])
        new: Words = words[unseen]
        return new

    def add(self, words: Words) -> None:
        """Add the states of a sorted array, none of which is in the set."""
        added = keys(words)
        self._count += len(added)
        longest = max(self.BLOCK, self._count // self.BLOCKS)
        for number, begin, end in reversed(list(self._shares(added))):
            both = np.concatenate([self._blocks[number], added[begin:end]])
            both.sort(kind="stable")
            pieces = -(-len(both) // longest)
            # Copies, because a view would keep the whole array.
            cut = [piece.copy() for piece in np.array_split(both, pieces)] if pieces > 1 else [both]
            self._blocks[number : number + 1] = cut

    def _shares(self, wanted: Keys) -> Iterator[tuple[int, int, int]]:
        """Yield each block that sorted keys may be in, and the range of these keys."""
        firsts = np.array([block[0] for block in self._blocks[1:]], dtype=wanted.dtype)
        ends = [*np.searchsorted(wanted, firsts).tolist(), len(wanted)]
        begin = 0
        for number, end in enumerate(ends):
            if begin < end:
                yield number, begin, end
            begin = end


def same_rows(words: Words, target: Words) -> NDArray[np.bool_]:
    """Return the mask of the states equal to the target."""
    equal: NDArray[np.bool_] = words == target
    return equal if words.ndim == 1 else np.logical_and.reduce(equal, axis=1)


class Recent:
    """A table of recent states, one for each hash: it forgets states, but never gives a wrong hit.

    Most successors are states that were seen a moment ago. Dropping them here saves sorting them.
    """

    BITS = 18
    FACTOR = np.uint64(0x9E3779B97F4A7C15)

    def __init__(self, width: int) -> None:
        size = 1 << self.BITS
        self._table = np.zeros(size if width == 1 else (size, width), dtype=np.uint64)
        # Zero hashes to slot 0. So slot 0 starts with a state of another slot: no slot seems to
        # hold a state that was not put there.
        other = self._table[:1] + np.uint64(1)
        assert self._slots(other)[0]
        self._table[:1] = other

    def unseen(self, words: Words) -> Words:
        """Return the states that the table does not hold, and store them."""
        slots = self._slots(words)
        new = self._table[slots] != words
        if words.ndim > 1:
            new = new.any(axis=1)
        words = words[new]
        self._table[slots[new]] = words
        return words

    def _slots(self, words: Words) -> Words:
        if words.ndim == 1:
            hashes = words * self.FACTOR
        else:
            hashes = words[:, 0] * self.FACTOR
            for column in words.T[1:]:
                hashes = ((hashes ^ (hashes >> np.uint64(32))) + column) * self.FACTOR
        return hashes >> np.uint64(64 - self.BITS)
