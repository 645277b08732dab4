"""A history that fits in memory, judged in this process."""

from __future__ import annotations

import pyarrow as pa

from brokerproof.pipeline.results import Judgement, added
from brokerproof.pipeline.stages import by_message, by_queue, control_of
from brokerproof.pipeline.violations import strongest


def judged_alone(history: pa.Table, *, begins_late: bool = False) -> Judgement:
    """Return what is said of a whole history, whose rows may be in any order."""
    control = control_of(history, begins_late=begins_late)
    messages = by_message(history, control)
    wrong = strongest([messages.violations, *by_queue(messages.passages, control)])
    return Judgement(wrong, messages.aside, added([messages.coverage]))
