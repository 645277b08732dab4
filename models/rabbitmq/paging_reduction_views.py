"""A view of a backing queue by itself: whether a reduction of its memory may have come to an end.

Owns the reading of a view as a state of `PagingReduction`; what must hold where nothing is left to
be done is the model's own text.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading
from brokerproof.models.rabbitmq.paging_lengths import Part
from brokerproof.models.rabbitmq.paging_reduction import ENOUGH, FEW, PagingReduction
from brokerproof.spec.rabbitmq.view import BackingQueueView


def may_rest(queue: BackingQueueView, permitted: int) -> tuple[bool, bool]:
    """Whether contents in memory, and positions there, are few enough for a rest.

    So many positions are `permitted`. Only a queue with a target is asked.
    """
    assert queue.target is not None, "where memory is not limited nothing is reduced"
    counts = {
        "batch": queue.batch,
        "in_ram": queue.ram_count,
        "ram_acks": len(queue.ram_acks),
        "limited": 1,
        "target": queue.target,
        "permits": permitted,
        "is_done": 1,
    }
    lengths: Mapping[str, int] = {
        "Q1": len(queue.q1),
        "Q2": len(queue.q2),
        "DELTA": queue.delta.count,
        "Q3": len(queue.q3),
        "Q4": len(queue.q4),
    }
    reading = _reading()
    state = tuple(
        lengths[Part.values[cell.indices[0]]]
        if cell.symbol.name == "length"
        else counts.get(cell.symbol.name, 0)
        for cell in reading.cells
    )
    return reading.holds(ENOUGH, state), reading.holds(FEW, state)


@functools.cache
def _reading() -> PlainReading:
    return PlainReading(trace(PagingReduction), Scope({}, range(2)))
