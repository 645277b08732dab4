"""The pending messages with a body in RAM, which are paged from the latest on.

Owns that set and its order. Deliveries come in rising order except after a requeue, so a dictionary
in order of arrival is nearly always sorted. Otherwise it is sorted when the largest is asked for.
"""

from __future__ import annotations


class RamAcks:
    """Sequence numbers of pending messages with a body in RAM."""

    __slots__ = ("_is_sorted", "_largest", "_seqs")

    def __init__(self) -> None:
        self._seqs: dict[int, None] = {}
        self._largest = -1
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._seqs)

    def __contains__(self, seq: int) -> bool:
        return seq in self._seqs

    def add(self, seq: int) -> None:
        """Add one."""
        self._seqs[seq] = None
        if seq > self._largest:
            self._largest = seq
        else:
            self._is_sorted = False

    def discard(self, seq: int) -> None:
        """Remove one, if it is present."""
        self._seqs.pop(seq, None)

    def pop_largest(self) -> int:
        """Remove and return the largest."""
        if not self._is_sorted:
            self._seqs = dict.fromkeys(sorted(self._seqs))
            self._is_sorted = True
        seq, _ = self._seqs.popitem()
        return seq

    def clear(self) -> None:
        """Remove all."""
        self._seqs.clear()
        self._is_sorted = True
        self._largest = -1

    def seqs(self) -> frozenset[int]:
        """Return all of them."""
        return frozenset(self._seqs)
