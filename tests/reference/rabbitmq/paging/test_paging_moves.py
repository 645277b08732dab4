"""Places of messages, step by step: examples of each move, its cost, and its size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from brokerproof.reference.rabbitmq.paging import Parameters, moves
from brokerproof.reference.rabbitmq.paging.invariants import broken_counts
from brokerproof.reference.rabbitmq.paging.moves import (
    chunk_size,
    next_segment_boundary,
    permitted_beta_count,
    reduce_memory_use,
    reduction_is_due,
)
from brokerproof.reference.rabbitmq.paging.rates import Averages
from brokerproof.reference.rabbitmq.paging.statuses import (
    BLANK,
    Delta,
    InvariantBroken,
    checked,
    expand,
)
from tests.reference.rabbitmq.paging.paging_bench import PagingBench, broken_invariants, msg_id

ONE_BY_ONE = Parameters(segment=2, batch=1, file_size=10_000, cache_bytes=0)


def places(bench: PagingBench) -> tuple[list[int], list[int], tuple[int, int, int], list[int]]:
    """Return q4, q3, delta, and q2 with q1, by sequence numbers."""
    queue = bench.queue
    delta = queue.delta
    return (
        [one.seq for one in queue.q4],
        [one.seq for one in queue.q3],
        (delta.start, delta.count, delta.end) if delta.count else (0, 0, 0),
        [one.seq for one in (*queue.q2, *queue.q1)],
    )


NO_DELTA = (0, 0, 0)


def filled(
    count: int, parameters: Parameters = ONE_BY_ONE, *, persistent: bool = False
) -> PagingBench:
    bench = PagingBench(parameters)
    for _ in range(count):
        bench.publish(persistent=persistent)
    return bench


def paged(
    count: int, parameters: Parameters = ONE_BY_ONE, *, persistent: bool = False
) -> PagingBench:
    bench = filled(count, parameters, persistent=persistent)
    bench.set_target(0)
    bench.settle()
    return bench


def test_messages_go_to_q4_while_nothing_is_in_q3() -> None:
    assert places(filled(3)) == ([0, 1, 2], [], NO_DELTA, [])


def test_the_rear_of_q4_is_paged_to_the_front_of_q3_and_q1_fills_behind_it() -> None:
    bench = filled(3)
    bench.set_target(2)
    assert places(bench) == ([0, 1], [2], NO_DELTA, [])
    bench.set_target(None)
    bench.publish()
    assert places(bench) == ([0, 1], [2], NO_DELTA, [3])
    assert [one.state for one in bench.queue.q3] == ["beta"]
    assert [one.state for one in bench.queue.q1] == ["alpha"]


def test_q1_is_paged_straight_to_q3_while_delta_is_blank() -> None:
    bench = filled(3)
    bench.set_target(2)
    bench.set_target(None)
    bench.publish()
    bench.set_target(2)
    assert places(bench) == ([0, 1], [2, 3], NO_DELTA, [])


def test_a_long_queue_keeps_one_segment_of_q3_and_delta_the_rest() -> None:
    bench = paged(7)
    assert places(bench) == ([], [0, 1], (2, 5, 7), [])
    bench.set_target(None)
    bench.publish()
    assert places(bench) == ([], [0, 1], (2, 5, 7), [7])


def test_the_last_of_q3_brings_up_the_next_segment_and_of_the_last_one_q2() -> None:
    bench = paged(4, replace(ONE_BY_ONE, batch=2))
    bench.set_target(1)
    bench.publish()
    bench.publish()
    assert places(bench)[3] == [4, 5]
    assert [one.seq for one in bench.queue.q2] == [4]
    assert [one.seq for one in bench.queue.q1] == [5]
    bench.fetch()
    bench.fetch()
    assert places(bench) == ([], [2, 3, 4], NO_DELTA, [5])
    for _ in range(3):
        bench.fetch()
    assert places(bench) == ([5], [], NO_DELTA, [])


def test_q3_never_pages_its_first_segment() -> None:
    bench = paged(2)
    assert places(bench) == ([], [0, 1], NO_DELTA, [])
    reduce_memory_use(bench.queue)
    assert places(bench) == ([], [0, 1], NO_DELTA, [])


def test_what_is_paged_last_of_q3_is_all_of_a_new_delta() -> None:
    bench = filled(5)
    bench.set_target(0)
    while len(bench.queue.q3) < 5 and not bench.queue.delta.count:
        bench.timeout()
    while not bench.queue.delta.count:
        bench.timeout()
    assert bench.queue.delta == Delta(4, 1, 5)


def test_what_is_requeued_beyond_the_end_of_delta_extends_it() -> None:
    bench = filled(4)
    for _ in range(4):
        bench.fetch()
    bench.set_target(0)
    bench.requeue([0])
    bench.requeue([1, 2])
    before = bench.queue.delta
    bench.requeue([3])
    assert before.count
    assert before.end <= 3
    assert bench.queue.delta == Delta(before.start, before.count + 1, 4)
    for _ in range(4):
        bench.fetch()


def test_what_is_requeued_into_delta_takes_its_body_from_ram_to_disk() -> None:
    bench = filled(5)
    for _ in range(5):
        bench.fetch()
    bench.set_target(0)
    bench.requeue([1])
    bench.requeue([0, 2])
    assert 3 in bench.queue.ram_acks
    assert bench.queue.delta.count
    bench.requeue([3, 4])
    for _ in range(5):
        bench.fetch()


def test_what_is_put_back_behind_nothing_stays_on_disk() -> None:
    bench = paged(1)
    reads = bench.disk.counts["read"]
    assert bench.queue.dropwhile(lambda _: False) == 0
    assert places(bench) == ([], [0], NO_DELTA, [])
    assert bench.disk.counts["read"] == reads


def test_what_is_put_back_before_q1_is_read() -> None:
    bench = paged(1)
    bench.set_target(None)
    bench.publish()
    bench.dropwhile(0)
    assert places(bench) == ([0, 1], [], NO_DELTA, [])
    assert bench.queue.ram_count == 2


@pytest.mark.parametrize(("length", "reads"), [(1, 1), (2, 1), (4, 1)])
def test_alpha_costs_no_read_and_beta_one(length: int, reads: int) -> None:
    alpha = filled(1)
    before = alpha.disk.counts["read"]
    alpha.queue.fetch(ack_required=True)
    assert alpha.disk.counts["read"] == before
    beta = paged(length)
    before = beta.disk.counts["read"]
    beta.queue.fetch(ack_required=True)
    assert beta.disk.counts["read"] == before + reads


def test_gamma_costs_one_read_too() -> None:
    bench = paged(1, persistent=True)
    assert [one.state for one in bench.queue.q3] == ["gamma"]
    before = bench.disk.counts["read"]
    bench.queue.fetch(ack_required=True)
    assert bench.disk.counts["read"] == before + 1


def test_a_transient_message_that_was_delta_is_gamma() -> None:
    bench = paged(4)
    bench.fetch()
    bench.fetch()
    assert [(one.seq, one.state) for one in bench.queue.q3] == [(2, "gamma"), (3, "gamma")]


def test_delta_costs_two_reads_the_first_for_its_whole_segment() -> None:
    bench = paged(4)
    bench.queue.holdings.index.flush()
    bench.queue.fetch(ack_required=True)
    before = bench.disk.counts["read"]
    bench.queue.fetch(ack_required=True)
    assert bench.disk.counts["read"] == before + 2, "its own body, and the segment for those behind"
    bench.queue.fetch(ack_required=True)
    bench.queue.fetch(ack_required=True)
    assert bench.disk.counts["read"] == before + 4, "two bodies"


def test_without_a_target_nothing_is_written_of_transient_messages() -> None:
    bench = filled(50)
    for _ in range(50):
        bench.fetch()
    bench.acknowledge(list(bench.oracle.pending))
    assert sum(bench.disk.counts.values()) == 0


@pytest.mark.parametrize(
    ("pending_grows", "alphas", "pending_in_ram"), [(True, [2, 3, 4], [0]), (False, [2, 3], [0, 1])]
)
def test_what_grows_faster_is_paged_first(
    pending_grows: bool, alphas: list[int], pending_in_ram: list[int]
) -> None:
    bench = filled(5)
    bench.fetch()
    bench.fetch()
    bench.queue.rates = bench.queue.rates._replace(
        averages=Averages(ack_ingress=1.0 if pending_grows else 0.0)
    )
    bench.set_target(2)
    assert [one.seq for one in bench.queue.q4] == alphas
    assert sorted(bench.queue.ram_acks.seqs()) == pending_in_ram


def test_both_are_paged_when_one_does_not_take_the_whole_batch() -> None:
    bench = filled(3, replace(ONE_BY_ONE, batch=4))
    bench.fetch()
    bench.fetch()
    bench.set_target(0)
    assert places(bench) == ([], [2], NO_DELTA, [])
    assert len(bench.queue.ram_acks) == 0


def test_the_latest_pending_message_in_ram_is_paged_first() -> None:
    bench = filled(4)
    for _ in range(4):
        bench.fetch()
    bench.set_target(3)
    assert sorted(bench.queue.ram_acks.seqs()) == [0, 1, 2]
    bench.requeue([1])
    bench.fetch()
    assert sorted(bench.queue.ram_acks.seqs()) == [0, 1, 2]
    bench.set_target(2)
    assert sorted(bench.queue.ram_acks.seqs()) == [0, 1]


def test_a_target_that_is_no_lower_moves_nothing() -> None:
    bench = filled(4)
    bench.set_target(2)
    assert bench.queue.ram_count == 3, "one of a batch of one"
    bench.set_target(2)
    assert bench.queue.ram_count == 3
    bench.set_target(1)
    assert bench.queue.ram_count == 2


@pytest.mark.parametrize(
    ("current", "permitted", "expected"), [(5, None, 0), (5, 5, 0), (5, 9, 0), (5, 3, 2), (9, 1, 4)]
)
def test_a_chunk_is_the_surplus_up_to_a_batch(
    current: int, permitted: int | None, expected: int
) -> None:
    assert chunk_size(current, permitted, 4) == expected


def test_a_boundary_is_beyond_its_number() -> None:
    assert [next_segment_boundary(seq, 4) for seq in (0, 3, 4, 5)] == [4, 4, 8, 8]


def test_permitted_betas_follow_the_harmonic_mean() -> None:
    bench = filled(1)
    queue = bench.queue
    queue.target, queue.length = 3, 0
    assert permitted_beta_count(queue) is None
    queue.length = 13
    assert permitted_beta_count(queue) == 12 - 144 // 15
    queue.length = 3
    assert permitted_beta_count(queue) == 2, "a segment is always permitted"
    queue.target = 0
    assert permitted_beta_count(queue) == 0, "q3 has none"


@pytest.mark.parametrize(("surplus", "moved"), [("whole batch", 3), ("any", 5)])
def test_positions_are_paged_by_whole_batches_or_all_that_is_surplus(
    surplus: str, moved: int
) -> None:
    assert surplus in ("whole batch", "any")
    parameters = Parameters(
        segment=2, batch=3, surplus="any" if surplus == "any" else "whole batch"
    )
    bench = filled(7, parameters)
    bench.queue.target = 0
    moves.push_alphas_to_betas(bench.queue, 7)
    assert reduction_is_due(bench.queue)
    bench.timeout()
    assert bench.queue.delta.count == moved
    bench.settle()
    assert bench.queue.delta.count == (5 if surplus == "any" else 3)


def test_fewer_than_a_batch_of_positions_stay() -> None:
    bench = filled(4, Parameters(segment=2, batch=3))
    bench.queue.target = 0
    moves.push_alphas_to_betas(bench.queue, 4)
    assert not reduction_is_due(bench.queue)
    assert not reduce_memory_use(bench.queue)


def test_a_purge_drops_all_five_places_and_nothing_that_is_pending() -> None:
    bench = paged(6, replace(ONE_BY_ONE, batch=2), persistent=True)
    bench.fetch()
    bench.set_target(1)
    bench.publish()
    bench.publish()
    assert bench.queue.q1
    assert bench.queue.q2
    bench.purge()
    assert bench.queue.length == 0
    assert list(bench.queue.pending) == [0]
    assert bench.queue.persistent_count == 1
    bench.acknowledge([0])
    bench.queue.holdings.index.flush()
    assert [name for name in bench.disk.names() if name.endswith(".idx")] == []


def test_a_message_goes_straight_to_a_consumer_only_while_nothing_is_ready() -> None:
    bench = filled(1)
    with pytest.raises(InvariantBroken, match="PD"):
        bench.queue.publish_delivered(msg_id(9), b"", ack_required=True)


def test_a_clean_stop_with_stale_entries_alone_leaves_an_empty_queue() -> None:
    bench = paged(5)
    bench.sync()
    bench.restart()
    assert bench.queue.length == 0
    assert bench.queue.delta == BLANK
    bench.queue.holdings.index.flush()
    assert [name for name in bench.disk.names() if name.endswith(".idx")] == []


def test_numbers_jump_to_a_segment_after_a_start() -> None:
    bench = filled(3, persistent=True)
    bench.restart()
    assert bench.queue.next_seq == 4
    assert bench.queue.transient_threshold == 4


def test_deleting_a_queue_leaves_nothing_of_it() -> None:
    bench = paged(5, persistent=True)
    bench.fetch()
    bench.node.delete("q")
    names = bench.disk.names()
    assert [name for name in names if name.startswith("queue-") and bench.disk.size(name)] == []
    assert len(bench.node.persistent_store.index) == 0


@pytest.mark.parametrize(
    ("seq", "expected"),
    [(3, Delta(3, 3, 8)), (6, Delta(5, 3, 8)), (8, Delta(5, 3, 9)), (11, Delta(5, 3, 12))],
)
def test_delta_expands_to_either_side_and_within(seq: int, expected: Delta) -> None:
    assert expand(Delta(5, 2, 8), seq) == expected


def test_a_blank_delta_expands_to_one_message() -> None:
    assert expand(BLANK, 7) == Delta(7, 1, 8)
    assert not Delta(4, 0, 8).is_blank
    assert Delta(4, 0, 4).is_blank


def test_a_delta_without_room_is_refused() -> None:
    with pytest.raises(InvariantBroken, match="D1"):
        checked(Delta(5, 4, 8))
    with pytest.raises(InvariantBroken, match="D1"):
        expand(Delta(5, 3, 8), 6)


def test_a_queue_in_use_breaks_nothing() -> None:
    assert broken_invariants(paged(7).queue) == set()
    assert list(broken_counts(paged(7).queue)) == []
