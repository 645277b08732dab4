"""Each invariant is broken by a queue that was tampered with, under its own id."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.paging import Parameters, broken_invariants
from brokerproof.reference.rabbitmq.paging.invariants import SENTENCES
from brokerproof.reference.rabbitmq.paging.statuses import BLANK, Delta, InvariantBroken
from tests.reference.rabbitmq.paging.paging_bench import PagingBench, msg_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerproof.reference.rabbitmq.paging import VariableQueue
    from brokerproof.reference.rabbitmq.paging.invariants import View
    from brokerproof.reference.rabbitmq.paging.statuses import MessageStatus


def everywhere() -> View:
    """Return a queue with something in each place, and pending messages in RAM and on disk."""
    bench = PagingBench(Parameters(segment=4, batch=2))
    for number in range(4):
        bench.publish(persistent=number == 3)
    for _ in range(4):
        bench.fetch()
    for number in range(10):
        bench.publish(persistent=number % 2 == 0)
    bench.set_target(3)
    bench.timeout()
    bench.timeout()
    bench.set_target(None)
    for _ in range(3):
        bench.publish()
    bench.set_target(6)
    view = bench.view()
    assert all((view.q1, view.q2, view.delta.count, view.q3, view.q4, view.pending))
    assert view.ram_acks
    assert broken_invariants(view) == []
    return view


def like(status: MessageStatus, **changes: object) -> MessageStatus:
    """Return a status that differs in a few facts."""
    copy = status.fork()
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


def first_pending(view: View, **changes: object) -> View:
    """Return a view whose first pending message differs."""
    seq = min(view.pending)
    return replace(view, pending={**view.pending, seq: like(view.pending[seq], **changes)})


TAMPERED: dict[str, Callable[[View], View]] = {
    "A1": lambda view: replace(view, q3=()),
    "A2": lambda view: replace(view, delta=BLANK),
    "A3": lambda view: replace(view, q3=()),
    "A4": lambda view: replace(view, length=0),
    "A5": lambda view: replace(view, persistent_count=-1),
    "A6": lambda view: replace(view, ram_count=view.length + 1),
    "D1": lambda view: replace(view, delta=replace(view.delta, count=99)),
    "M1": lambda view: first_pending(view, is_persistent=True),
    "M2": lambda view: first_pending(view, index_on_disk=True),
    "M3": lambda view: first_pending(view, body=None),
    "F1": lambda view: replace(view, q3=view.q3[:1], delta=BLANK),
    "R1": lambda view: replace(view, delta=replace(view.delta, count=0)),
    "I1": lambda view: replace(view, length=view.length + 1),
    "I2": lambda view: replace(view, q1=view.q1[::-1]),
    "I3": lambda view: replace(view, delta=replace(view.delta, count=view.delta.count - 1)),
    "I4": lambda view: replace(view, q1=(like(view.q1[0], body=None), *view.q1[1:])),
    "I5": lambda view: replace(view, q3=(like(view.q3[0], body=b""), *view.q3[1:])),
    "I6": lambda view: replace(view, ram_count=view.ram_count - 1),
    "I7": lambda view: replace(view, ram_acks=set()),
    "I8": lambda view: replace(view, pending={**view.pending, view.q4[0].seq: view.q4[0]}),
    "I9": lambda view: replace(view, persistent_count=view.persistent_count + 1),
    "I10": lambda view: first_pending(view, is_delivered=False),
    "I11": lambda view: replace(view, pending={**view.pending, 99: view.pending[0]}),
    "I12": lambda view: replace(view, next_seq=view.next_seq - 1),
    "I13": lambda view: replace(view, entries=view.entries[1:]),
    "I14": lambda view: replace(view, references=({msg_id(1): 2}, {})),
    "I15": lambda view: replace(view, msgs_on_disk={msg_id(99)}),
    "I16": lambda view: replace(view, delta=Delta(view.q3[-1].seq, 1, view.delta.end)),
    "I19": lambda view: replace(view, q4=view.q4[::-1]),
    "C2": lambda view: replace(view, unconfirmed={msg_id(1)}, confirmed={msg_id(1)}),
}

WITHIN_AN_OPERATION = {"F2", "W1", "PD"}
"""Rules on a moment within an operation, which no state between operations can break.

Each of them is broken by hand below, PD among the examples of moves.
"""


@pytest.mark.parametrize("rule", TAMPERED)
def test_a_tampered_queue_breaks_the_rule(rule: str) -> None:
    found = {each.id: each.sentence for each in broken_invariants(TAMPERED[rule](everywhere()))}
    assert found.get(rule) == SENTENCES[rule], found


def test_every_rule_is_broken_by_something() -> None:
    assert TAMPERED.keys() | WITHIN_AN_OPERATION == SENTENCES.keys()


def queue_with_one_in_q3() -> VariableQueue:
    bench = PagingBench(Parameters(segment=2, batch=1))
    bench.publish()
    bench.set_target(0)
    assert len(bench.queue.q3) == 1
    return bench.queue


@pytest.mark.parametrize(("place", "rule"), [("q2", "F1"), ("q4", "F2")])
def test_the_last_of_q3_leaves_nothing_behind_that_should_not_be_there(
    place: str, rule: str
) -> None:
    queue = queue_with_one_in_q3()
    getattr(queue, place).append(queue.q3[0])
    with pytest.raises(InvariantBroken) as raised:
        queue._fetch_from_q3()
    assert raised.value.id == rule


def test_a_part_of_delta_with_more_in_the_index_than_delta_counts_is_refused() -> None:
    bench = PagingBench(Parameters(segment=2, batch=1))
    for _ in range(4):
        bench.publish()
    bench.set_target(0)
    bench.settle()
    bench.queue.delta = replace(bench.queue.delta, count=1)
    bench.queue.fetch(ack_required=True)
    with pytest.raises(InvariantBroken, match="R1"):
        bench.queue.fetch(ack_required=True)


def test_a_position_is_not_written_before_its_body() -> None:
    bench = PagingBench()
    bench.publish()
    with pytest.raises(InvariantBroken, match="W1"):
        bench.queue.holdings.write_index(bench.queue.q4[0])
