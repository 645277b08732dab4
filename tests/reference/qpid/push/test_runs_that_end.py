"""A run comes to its end where a message does not fit (RUN-7); one that does not is noticed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import pytest

from brokerproof.reference.broker import Broker
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.operations import Declare, Reset
from tests.faults.overlay import Edit, plant
from tests.reference.front.reference_bench import Bench

ATTEMPTS_MAX = 100


class Endless(Exception):
    """More attempts at delivery than the messages account for."""


def messages_given(edits: Sequence[Edit] = ()) -> list[str]:
    """Return the deliveries of two-byte messages to a window of three bytes; raises `Endless`."""
    bench = Bench()
    bench.broker = cast("Broker", plant(edits)())
    package = type(bench.broker).__module__.rpartition(".")[0]
    delivery: Any = sys.modules[f"{package}.qpid.push.delivery"]
    attempt, attempts = delivery.attempt_delivery, []

    def counted(*arguments: object) -> object:
        attempts.append(1)
        if len(attempts) > ATTEMPTS_MAX:
            raise Endless
        return attempt(*arguments)

    delivery.attempt_delivery = counted
    bench.ok(Reset())
    bench.ok(Declare(queue="q", order=Fifo()))
    bench.consume("c0", size=3)
    return bench.publish("a", "large", size=2)


def test_a_run_ends_at_a_message_that_does_not_fit() -> None:
    assert messages_given() == ["c0:a"]


NOT_SUSPENDED = Edit(
    "qpid/push/delivery.py",
    """
            await_entry(queue, subscription, entry)
            return False, True
        if not _is_still_next""",
    """
            await_entry(queue, subscription, entry)
            return False, False
        if not _is_still_next""",
)
"""A consumer without room for a message does not count as suspended (B-15/QPID-1187)."""


def test_a_run_that_goes_round_is_found() -> None:
    with pytest.raises(Endless):
        messages_given([NOT_SUSPENDED])
