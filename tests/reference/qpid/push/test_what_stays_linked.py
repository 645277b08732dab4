"""Removed nodes must be collectable: links to them are bounded, even if a walk stands still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from brokerproof.reference.broker import Broker
from brokerproof.reference.qpid.push.entries import QueueEntry
from brokerproof.reference.qpid.push.entry_list import SCAVENGE_THRESHOLD
from brokerproof.reference.qpid.push.pointers import ReleasedPointer
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.operations import Declare, Reset
from tests.faults.overlay import Edit, plant
from tests.reference.front.reference_bench import Bench, queue_in, subscription_in

MANY = 3 * SCAVENGE_THRESHOLD


def bench_with(edits: Sequence[Edit] = ()) -> Bench:
    """Return a bench, with a copy of the reference that has these edits if there are any."""
    bench = Bench()
    if edits:
        bench.broker = cast("Broker", plant(edits)())
        bench.ok(Reset())
        bench.ok(Declare(queue="q", order=Fifo()))
    return bench


def many_go_by(bench: Bench) -> None:
    bench.consume("fast", mode="automatic")
    for number in range(MANY):
        assert bench.publish(f"m{number}") == [f"fast:m{number}"]


def gone_behind(entry: QueueEntry | None) -> int:
    """Return how many entries that are gone are still linked behind one."""
    gone = 0
    while entry is not None and entry.next.value is not None:
        entry = entry.next.value
        gone += entry.state.value.dispensed
    return gone


def behind_one_without_room(edits: Sequence[Edit] = ()) -> int:
    """Return the entries kept by the place of a consumer with one message and no more room."""
    bench = bench_with(edits)
    bench.consume("idle", 1)
    bench.publish("first")
    bench.acknowledge("first")
    bench.credit("idle", 0)
    many_go_by(bench)
    pointer = cast("ReleasedPointer", subscription_in(bench.broker, "idle").pointer)
    place = pointer.place.value
    assert place is not None
    return gone_behind(place[0])


def behind_one_that_stays(edits: Sequence[Edit] = ()) -> int:
    """Return the entries linked behind a message of a consumer that has left."""
    bench = bench_with(edits)
    bench.consume("gone", 1)
    bench.publish("stays")
    bench.cancel("gone")
    many_go_by(bench)
    return gone_behind(next(iter(queue_in(bench.broker).entries.iterator())))


def test_the_place_of_one_without_room_keeps_little() -> None:
    assert behind_one_without_room() <= 1


ONLY_WITH_ROOM = (
    Edit(
        "qpid/push/delivery.py",
        """
            subscription.pointer.next_available(queue.entries, subscription) is entry
            and not subscription.is_suspended()
            and""",
        """
            not subscription.is_suspended()
            and subscription.pointer.next_available(queue.entries, subscription) is entry
            and""",
    ),
    Edit(
        "qpid/push/delivery.py",
        """
        entry = next_for(queue, subscription)
        if entry is None or subscription.is_suspended():
            return False, True
""",
        """
        if subscription.is_suspended():
            return False, True
        entry = next_for(queue, subscription)
        if entry is None:
            return False, True
""",
    ),
    Edit(
        "qpid/push/delivery.py",
        "            other.pointer.next_available(queue.entries, other)\n",
        "            pass\n",
    ),
)
"""A place that moves only if its consumer has room (B-13/QPID-6528)."""


def test_a_place_that_stays_behind_is_found() -> None:
    assert behind_one_without_room(ONLY_WITH_ROOM) == MANY


def test_what_has_gone_behind_a_live_entry_is_unlinked() -> None:
    assert 1 < behind_one_that_stays() <= SCAVENGE_THRESHOLD + 1


LATE = Edit(
    "qpid/push/entry_list.py",
    "            if self.scavenges.increment_and_get() > self.scavenge_threshold:\n",
    "            if self.scavenges.increment_and_get() > 1000:\n",
)
"""A sweep after a thousand deletions (B-47/QPID-2597)."""


def test_a_sweep_that_comes_late_is_found() -> None:
    assert behind_one_that_stays([LATE]) == MANY
