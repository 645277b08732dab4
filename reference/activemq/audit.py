"""The message audit: which ids were seen, in a window of numbers for each remembered producer.

Owns the map from producers to windows, and its eviction: the producer asked for least recently
loses its whole window. The caller decides what happens to a duplicate. A set bit says that an id
was recorded, not where its message is.

An id is a producer and a number. `is_duplicate` records and answers; `rollback` takes that back.
Both fail outside of the window: a rollback below it has no effect, and one far above it moves the
window there and forgets all (in all releases; a defect that is not reported). Source: ActiveMQ's
message audit of 5.1.0, and of 5.2.0 and later (`bit_array` has the difference).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from brokerproof.reference.activemq.bit_array import WORD_BITS, AuditRules, BitArrayBin

DEPTH: Final = 2048
"""The default number of ids that are remembered of a producer at least."""

PRODUCERS: Final = 64
"""The default number of remembered producers."""


def split_id(text: str) -> tuple[str, int]:
    """Return the producer and the number of a textual id.

    The producer is everything up to and including the last colon.

    >>> split_id("ID:host-1-2:1:7")
    ('ID:host-1-2:1:', 7)
    """
    producer, colon, number = text.rpartition(":")
    if not colon or not (number.isascii() and number.isdigit()):
        raise ValueError(f"an id ends with a colon and a number: {text!r}")
    return producer + colon, int(number)


class MessageAudit:
    """The recorded ids of at most `producers` producers, with a window of `depth` for each.

    A change of `depth` affects only producers that come later.
    """

    __slots__ = ("_bins", "_producers", "depth", "rules", "word_bits")

    def __init__(
        self,
        depth: int = DEPTH,
        producers: int = PRODUCERS,
        rules: AuditRules = "5.2",
        word_bits: int = WORD_BITS,
    ) -> None:
        self.depth = depth
        self.rules = rules
        self.word_bits = word_bits
        self._producers = 0
        # Ordered by use: the producer asked for least recently is the first.
        self._bins: dict[str, BitArrayBin] = {}
        self.set_producers(producers)

    @property
    def producers(self) -> int:
        """The largest number of remembered producers."""
        return self._producers

    def set_producers(self, producers: int) -> None:
        """Set the number of remembered producers; if it shrinks, the most recently used stay.

        In 5.1.0 and in 5.2.0, all stay: from then on each new producer replaces one.
        """
        if producers < 1:
            raise ValueError("an audit remembers at least one producer")
        self._producers = producers
        while self.rules != "5.1" and len(self._bins) > producers:
            self._forget_one()

    def known(self) -> tuple[str, ...]:
        """Return the remembered producers, the next one to be forgotten first."""
        return tuple(self._bins)

    def is_duplicate(self, producer: str, index: int) -> bool:
        """Record an id; return whether it was recorded before."""
        return self._asked_for(producer).set(index, True)

    def rollback(self, producer: str, index: int) -> None:
        """Undo the recording of an id, if its producer is remembered."""
        if producer in self._bins:
            self._asked_for(producer).set(index, False)

    def is_in_order(self, producer: str, index: int) -> bool:
        """Return whether an id follows the previous one of its producer."""
        return self._asked_for(producer).is_in_order(index)

    def probe(self, producer: str, index: int) -> bool:
        """Return the answer of `is_duplicate` without any effect.

        Our addition, for inspection. Later releases record and roll back instead, which erases an
        earlier recording.
        """
        known = self._bins.get(producer)
        return known is not None and known.probe(index)

    def first_of(self, producer: str) -> int | None:
        """Return the lowest number of the window, None without one; has no effect."""
        known = self._bins.get(producer)
        return None if known is None else known.first

    def covered(self) -> int:
        """Return the number of ids that a window covers."""
        return BitArrayBin(self.depth, self.rules, self.word_bits).size * self.word_bits

    def last_of(self, producer: str) -> int:
        """Return the highest number recorded, or -1; has no effect."""
        known = self._bins.get(producer)
        return -1 if known is None else known.last_set_index

    def _asked_for(self, producer: str) -> BitArrayBin:
        window = self._bins.pop(producer, None)
        if window is None:
            window = BitArrayBin(self.depth, self.rules, self.word_bits)
            if len(self._bins) >= self._producers:
                self._forget_one()
        self._bins[producer] = window
        return window

    def _forget_one(self) -> None:
        del self._bins[next(iter(self._bins))]

    def clear(self) -> None:
        """Forget all producers."""
        self._bins.clear()

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for audits that answer alike for ever."""
        windows = tuple([(each, window.fingerprint()) for each, window in self._bins.items()])
        return self.depth, self.rules, self.word_bits, self._producers, windows
