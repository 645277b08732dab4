"""The assertions of the release, which the queue makes of itself.

The release asserts A1 to A5 after each operation (A6 since 3.0.1), M1 to M3 of each message, and
F1, F2, R1, W1 and PD within an operation (D1, of delta, is in `statuses`). Their sentences are in
`spec/rabbitmq/invariants.toml`. The gate does not use these functions: it judges views by
`spec/rabbitmq/view_rules.py` and by the models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.paging.statuses import InvariantBroken, MessageStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue


def assert_sound(queue: VariableQueue) -> None:
    """Raise the first of A1 to A6 that does not hold."""
    for rule in broken_counts(queue):
        raise InvariantBroken(rule)


def assert_status_sound(status: MessageStatus) -> None:
    """Raise the first of M1 to M3 that does not hold."""
    for rule in broken_of_status(status):
        raise InvariantBroken(rule)


def broken_counts(queue: VariableQueue) -> Sequence[str]:
    """Return which of A1 to A6 do not hold."""
    length, q3, delta_count = queue.length, queue.q3, queue.delta.count
    found: tuple[str, ...] = ()
    if not q3:
        if queue.q1:
            found += ("A1",)
        if delta_count:
            found += ("A3",)
    if queue.q2 and not delta_count:
        found += ("A2",)
    if (length == 0) != (not q3 and not queue.q4):
        found += ("A4",)
    if length < 0 or queue.ram_count < 0 or queue.persistent_count < 0:
        found += ("A5",)
    if queue.ram_count > length:
        found += ("A6",)
    return found


def broken_of_status(status: MessageStatus) -> Sequence[str]:
    """Return which of M1 to M3 do not hold."""
    found: tuple[str, ...] = ()
    if status.is_persistent and not status.index_on_disk:
        found += ("M1",)
    if status.index_on_disk and not status.msg_on_disk:
        found += ("M2",)
    if status.body is None and not status.msg_on_disk:
        found += ("M3",)
    return found
