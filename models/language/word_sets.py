"""Sets of packed states as sorted arrays: of words, or of rows where a state takes several words.

Rows are ordered by their last word first, as a number would be whose lowest digits come first. What
is searched in are their keys, bytes that sort as the rows do; a single word is its own key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Keys: TypeAlias = NDArray[Any]


def no_words(width: int) -> Words:
    """Return no states of so many words each."""
    return np.zeros(0 if width == 1 else (0, width), dtype=np.uint64)


def keys(words: Words) -> Keys:
    """Return what sorts as the states do, in one dimension."""
    if words.ndim == 1:
        return words
    big_end_first = np.ascontiguousarray(words[:, ::-1].astype(">u8"))
    return big_end_first.view(f"S{8 * words.shape[1]}").ravel()


def distinct(parts: Sequence[Words]) -> Words:
    """Return the states of all parts, of which there is at least one, sorted, each once."""
    words = np.concatenate(parts)
    keep = np.ones(len(words), dtype=np.bool_)
    if words.ndim == 1:
        words.sort()
        np.not_equal(words[1:], words[:-1], out=keep[1:])
    else:
        words = words[np.lexsort(words.T)]
        keep[1:] = (words[1:] != words[:-1]).any(axis=1)
    return words[keep]


def without(words: Words, visited: Keys) -> Words:
    """Return the states whose keys are not among the visited ones; both are sorted."""
    wanted = keys(words)
    places = np.searchsorted(visited, wanted)
    places[places == len(visited)] = 0
    unseen: Words = words[visited[places] != wanted]
    return unseen


def merged(visited: Keys, words: Words) -> Keys:
    """Return the keys of both, sorted; they have no state in common."""
    both = np.concatenate([visited, keys(words)])
    both.sort(kind="stable")
    return both


def same_rows(words: Words, target: Words) -> NDArray[np.bool_]:
    """Return which of the states are the target."""
    equal: NDArray[np.bool_] = words == target
    return equal if words.ndim == 1 else np.logical_and.reduce(equal, axis=1)


class Recent:
    """A table of states that came up already, one for each hash: it forgets, and never errs.

    Most successors are states that were seen a moment ago. Dropping them here spares sorting them.
    """

    BITS = 18
    FACTOR = np.uint64(0x9E3779B97F4A7C15)

    def __init__(self, width: int) -> None:
        size = 1 << self.BITS
        self._table = np.zeros(size if width == 1 else (size, width), dtype=np.uint64)
        # Zero belongs into slot 0, which so holds something that does not belong there: no slot
        # holds a state that was not put there.
        other = self._table[:1] + np.uint64(1)
        assert self._slots(other)[0]
        self._table[:1] = other

    def unseen(self, words: Words) -> Words:
        """Return the states that the table does not hold, and let it hold them."""
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
