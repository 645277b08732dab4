"""A reset in the midst of a run: from then on it is as if there had been nothing before.

Owns what an oracle forgets then, which is all; what it has counted stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.checks.oracle.bindings import Book
from brokerproof.checks.oracle.possibilities import Row, Window
from brokerproof.checks.oracle.streams import Streams

if TYPE_CHECKING:
    from brokerproof.checks.oracle.oracle import Oracle


def begin_anew(oracle: Oracle) -> None:
    """Let an oracle know nothing but the claims; its looks inside find no queue from then on."""
    oracle.book, world = Book.empty(oracle.book.claims, oracle.rules.contract)
    oracle.window = Window((Row(frozenset(((world, frozenset(), frozenset()),))),))
    oracle.unplaced, oracle.departed = (), ()
    oracle.streams = None if oracle.streams is None else Streams()
