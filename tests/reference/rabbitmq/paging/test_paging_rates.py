"""Rates and targets, requested syncs, and the confirms of one queue."""

from __future__ import annotations

import random
from math import inf

import pytest

from brokerproof.reference.rabbitmq.paging import Node, Parameters, SimulatedDisk
from brokerproof.reference.rabbitmq.paging.confirms import Confirms
from brokerproof.reference.rabbitmq.paging.ram_acks import RamAcks
from brokerproof.reference.rabbitmq.paging.rates import Averages, Counts, rates_from
from tests.reference.rabbitmq.paging.paging_bench import PagingBench, msg_id

SECOND_US = 1_000_000


def test_averages_are_over_this_period_and_the_one_before() -> None:
    rates = rates_from(0)
    rates, seconds = rates.begin_period(2 * SECOND_US, Counts(10, 4, 4, 2), 6, 2)
    assert rates.averages == Averages(5.0, 2.0, 2.0, 1.0)
    assert seconds == pytest.approx((6 + 2) / (4 * 10))
    rates, seconds = rates.begin_period(4 * SECOND_US, Counts(2, 0, 0, 0), 8, 2)
    assert rates.averages == Averages(3.0, 1.0, 1.0, 0.5)
    assert seconds == pytest.approx((6 + 2 + 8 + 2) / (4 * 5.5))
    rates, _ = rates.begin_period(6 * SECOND_US, Counts(), 8, 2)
    assert rates.averages == Averages(0.5, 0.0, 0.0, 0.0), "the first period counts no more"


def test_where_nothing_moves_it_lasts_for_ever_and_every_finite_target_is_none() -> None:
    rates, seconds = rates_from(0).begin_period(SECOND_US, Counts(), 5, 0)
    assert seconds == inf
    assert rates.target(100.0) == 0
    assert rates.target(inf) is None


def test_a_target_is_what_comes_and_goes_in_that_time() -> None:
    rates, _ = rates_from(0).begin_period(SECOND_US, Counts(3, 2, 1, 1), 0, 0)
    assert rates.target(1.5) == 10
    assert rates.target(0.0) == 0


@pytest.mark.parametrize("now_us", [0, -1])
def test_time_that_does_not_pass_is_refused(now_us: int) -> None:
    with pytest.raises(ValueError, match="time must have passed"):
        rates_from(0).begin_period(now_us, Counts(), 0, 0)


@pytest.mark.parametrize(
    ("averages", "pending"),
    [
        (Averages(2, 1, 3, 1), True),
        (Averages(2, 1, 1, 0), False),
        (Averages(9, 0, 3, 1), False),
        # By speeds alone, as the document has it, the acknowledgements would come first.
        (Averages(1, 0, 9, 9), False),
    ],
)
def test_growth_decides_what_is_paged_first(averages: Averages, pending: bool) -> None:
    assert averages.pending_grows_faster == pending


def test_a_queue_counts_for_its_rates_and_begins_anew() -> None:
    bench = PagingBench(Parameters(segment=2))
    for _ in range(4):
        bench.publish()
    bench.fetch()
    bench.acknowledge([0])
    bench.fetch()
    bench.requeue([1])
    seconds = bench.queue.ram_duration(SECOND_US)
    assert bench.queue.rates.averages == Averages(5.0, 2.0, 2.0, 1.0)
    assert seconds == pytest.approx(3 / (4 * 10))
    bench.queue.set_ram_duration_target(0.2)
    assert bench.queue.target == 2
    bench.queue.set_ram_duration_target(inf)
    assert bench.queue.target is None
    bench.check()


def test_a_timeout_is_due_while_a_sync_is_awaited_or_messages_are_to_be_paged() -> None:
    bench = PagingBench(Parameters(segment=2, batch=1))
    assert bench.queue.needs_timeout() is None
    bench.publish(persistent=True)
    assert bench.queue.needs_timeout() == "timed"
    bench.timeout()
    assert bench.queue.needs_timeout() is None, "the rest is the store's"
    assert bench.queue.confirms.unconfirmed
    bench.sync()
    bench.publish()
    bench.publish()
    bench.set_target(1)
    assert bench.queue.needs_timeout() == "idle"
    bench.settle()


@pytest.mark.parametrize("first", ["body", "position"])
def test_a_message_is_confirmed_when_both_halves_are_synced(first: str) -> None:
    node = Node(SimulatedDisk(), Parameters())
    queue = node.declare("q", durable=True)
    queue.publish(msg_id(1), b"", persistent=True, needs_confirming=True)
    halves = [node.persistent_store.sync, queue.sync]
    for half in halves if first == "body" else halves[::-1]:
        assert queue.drain_confirmed() == set()
        half()
    assert queue.drain_confirmed() == {msg_id(1)}
    assert queue.drain_confirmed() == set()


def test_a_message_done_with_before_its_sync_is_confirmed() -> None:
    for done in ("fetch", "purge", "acknowledge"):
        node = Node(SimulatedDisk(), Parameters())
        queue = node.declare("q", durable=True)
        queue.publish(msg_id(1), b"", persistent=True, needs_confirming=True)
        if done == "purge":
            queue.purge()
        else:
            fetched = queue.fetch(ack_required=done == "acknowledge")
            assert fetched is not None
            if fetched.tag is not None:
                assert queue.drain_confirmed() == set()
                queue.acknowledge([fetched.tag])
        assert queue.drain_confirmed() == {msg_id(1)}, done


@pytest.mark.parametrize("settle", ["acknowledge", "requeue"])
def test_with_an_unknown_tag_nothing_happens(settle: str) -> None:
    bench = PagingBench(Parameters(segment=2))
    for _ in range(2):
        bench.publish(persistent=True)
        bench.fetch()
    with pytest.raises(KeyError):
        getattr(bench.queue, settle)([0, 99, 1])
    bench.check()


def test_a_message_that_is_not_expected_has_no_synced_half() -> None:
    confirms = Confirms()
    confirms.expect(msg_id(1))
    confirms.messages_written([msg_id(1), msg_id(2)])
    confirms.indices_written([msg_id(2)])
    assert confirms.msgs_on_disk == {msg_id(1)}
    assert confirms.drain() == set()
    assert confirms.waits_for_index()


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_pending_number_is_found_whatever_the_order(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    acks, expected = RamAcks(), set[int]()
    for _ in range(400):
        seq = draw.randrange(40)
        match draw.choice(("add", "add", "discard", "pop")):
            case "add" if seq not in expected:
                acks.add(seq)
                expected.add(seq)
            case "discard":
                acks.discard(seq)
                expected.discard(seq)
            case "pop" if expected:
                assert acks.pop_largest() == max(expected)
                expected.discard(max(expected))
        assert acks.seqs() == expected
        assert len(acks) == len(expected)
        assert (seq in acks) == (seq in expected)
