"""A view of a queue of pointers by itself: which invariants of the model hold in what it shows.

Owns nothing of the reading, which is that of the steps between two views, and of the invariants,
which are the model's own text.
"""

from __future__ import annotations

from brokerproof.models.language.watch.client_step import Happening
from brokerproof.models.qpid.pointer_queue_questions import reading_of, shortened, state_of
from brokerproof.models.qpid.pointer_queue_steps import question
from brokerproof.spec.protocol.operations import Drain
from brokerproof.spec.qpid.view import PointerQueueView


def holds_of(view: PointerQueueView, invariant: str) -> bool:
    """Return whether an invariant of the model holds in a view; raises `NotAQueue`."""
    asked = shortened(question(view, view, Happening(Drain())))
    reading = reading_of(len(asked.entries) + 1, len(asked.subscriptions))
    return reading.holds(invariant, state_of(reading, asked, after=True))
