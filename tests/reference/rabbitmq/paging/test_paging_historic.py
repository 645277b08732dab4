"""Historic faults of RabbitMQ's queues that clients cannot see.

They cost memory, leave files, or take a clean stop, a power cut within an operation or a target
that changes. Each is planted, and an existing test must find it; if there was none, the test is
here. `tests/faults/historic/rabbitmq.toml` has their ids.
"""

from __future__ import annotations

import pytest

from brokerproof.reference.rabbitmq.disk import index_recovery
from brokerproof.reference.rabbitmq.disk.combinations import (
    JOURNAL_MINUS_FILE,
    NOTHING,
    PDA,
    A,
    Difference,
    Differences,
)
from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
from brokerproof.reference.rabbitmq.disk.terms import QueueTerms, StoreTerms, write_terms
from brokerproof.reference.rabbitmq.paging import Node, Parameters, PowerLost, SimulatedDisk, moves
from brokerproof.reference.rabbitmq.paging.node import file_prefix
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from brokerproof.reference.shared.copies import copied
from tests.reference.rabbitmq.disk import test_queue_index
from tests.reference.rabbitmq.paging import test_paging_moves, test_paging_rates
from tests.reference.rabbitmq.paging.paging_bench import NAME, PagingBench, body, msg_id
from tests.reference.rabbitmq.paging.test_paging_mistakes import CAUGHT, by_walks, plant

MESSAGES = 6
SIZES = Parameters(segment=2, batch=1)


# Messages in RAM.


def test_messages_that_go_straight_to_consumers_are_paged_until_acknowledged() -> None:
    bench = PagingBench(SIZES)
    bench.set_target(1)
    for _ in range(MESSAGES):
        bench.publish_delivered()
        assert len(bench.queue.ram_acks) <= 1


def test_what_is_pending_alone_and_never_paged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    without = "if self.target is not None:", "if self.length:"
    plant(monkeypatch, VariableQueue, "publish_delivered", *without)
    with pytest.raises(AssertionError):
        test_messages_that_go_straight_to_consumers_are_paged_until_acknowledged()


def in_ram_at_rest(bench: PagingBench) -> int:
    """Run the due idle work; return how many bodies are left in RAM."""
    while bench.queue.needs_timeout() is not None:
        bench.timeout()
    return bench.queue.ram_count + len(bench.queue.ram_acks)


def test_a_queue_to_which_nothing_happens_goes_on_paging() -> None:
    bench = PagingBench(SIZES)
    for _ in range(MESSAGES):
        bench.publish()
    bench.set_target(1)
    assert bench.queue.ram_count == MESSAGES - 1, "a batch at once"
    assert in_ram_at_rest(bench) == 1


def test_a_queue_that_pages_only_when_it_syncs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = "self.holdings.index.needs_sync()"
    both = f"{syncs} or reduction_is_due(self)"
    plant(monkeypatch, VariableQueue, "needs_timeout", both, syncs)
    with pytest.raises(AssertionError):
        test_a_queue_to_which_nothing_happens_goes_on_paging()


def test_what_returned_and_stays_in_ram_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, VariableQueue, "requeue", "self.make_beta)", "self._make_alpha)")
    with pytest.raises(CAUGHT):
        by_walks()


# Delta.


def test_a_delta_that_begins_at_the_boundary_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    start = "queue.make_delta(queue.q3.pop())"
    fixed = f"{start}\n            queue.delta = Delta(limit, queue.delta.count, queue.delta.end)"
    plant(monkeypatch, moves, "push_betas_to_deltas", start, fixed)
    with pytest.raises(CAUGHT):
        by_walks()


def test_numbers_within_a_delta_that_came_back_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = "max((each.seq for each in self.holdings.index.read(low, following)), default=-1) + 1"
    plant(
        monkeypatch,
        VariableQueue,
        "recover",
        "self.next_seq = self.transient_threshold = following",
        f"self.next_seq = self.transient_threshold = {exact}",
    )
    with pytest.raises(CAUGHT):
        by_walks()


# Confirms.


def test_a_purge_that_forgets_the_unsynced_messages_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgets = "self.holdings.persistent_client.unsynced.clear()"
    first = "self._purge(self.q4)"
    plant(monkeypatch, VariableQueue, "purge", first, f"{forgets}\n    {first}")
    with pytest.raises(AssertionError, match="purge"):
        test_paging_rates.test_a_message_done_with_before_its_sync_is_confirmed()


# Messages after a crash.


def test_an_acknowledgement_in_both_that_counts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "publish 0, publish 1, deliver 0, flush, acknowledge 0, flush"
    test_queue_index.assert_recovery_is_exact(test_queue_index.script(text))
    wrong = Differences({**JOURNAL_MINUS_FILE, (A, PDA): Difference(NOTHING, 0)})
    monkeypatch.setattr(index_recovery, "JOURNAL_MINUS_FILE", wrong)
    with pytest.raises(AssertionError):
        test_queue_index.assert_recovery_is_exact(test_queue_index.script(text))


def test_a_start_that_is_cut_off_is_no_clean_stop() -> None:
    disk = SimulatedDisk()
    queue = Node(disk, SIZES).declare(NAME, durable=True)
    queue.publish(msg_id(0), body(0), persistent=True)
    queue.holdings.persistent_store.sync()
    queue.sync()
    disk.crash()
    starts = 0
    while True:
        again = copied(disk)
        again.power_lost_at = again.changes + starts
        try:
            Node(again, SIZES, [NAME])
        except PowerLost:
            again.crash()
            assert Node(again, SIZES, [NAME]).queues[NAME].length == 1
            starts += 1
        else:
            break
    assert starts > 1


def test_empty_terms_that_count_as_a_clean_stop_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_store, forget_index = MessageStore.forget_terms, QueueIndex.forget_terms
    recover = Node._recover

    def empty_store(store: MessageStore) -> None:
        write_terms(store.disk, f"{store.name}.terms", StoreTerms([NAME], [], b""))

    def empty_index(index: QueueIndex) -> None:
        write_terms(index._disk, f"{index.name}.terms", QueueTerms(NAME, 0, {}))

    def recover_and_forget(node: Node, names: list[str], now_us: int) -> None:
        recover(node, names, now_us)
        forget_store(node.persistent_store)
        for queue in node.queues.values():
            forget_index(queue.holdings.index)

    monkeypatch.setattr(MessageStore, "forget_terms", empty_store)
    monkeypatch.setattr(QueueIndex, "forget_terms", empty_index)
    monkeypatch.setattr(Node, "_recover", recover_and_forget)
    assert file_prefix(NAME) == f"queue-{NAME}"
    with pytest.raises(AssertionError):
        test_a_start_that_is_cut_off_is_no_clean_stop()


def test_terms_that_count_what_is_transient_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = "sum(terms.unacknowledged.values())"
    plant(monkeypatch, Node, "_recover_queue", "terms.persistent_count", stale)
    with pytest.raises(CAUGHT):
        test_paging_moves.test_a_clean_stop_with_stale_entries_alone_leaves_an_empty_queue()


# Files.


def test_a_file_of_transient_messages_alone_goes_at_the_start() -> None:
    disk = SimulatedDisk()
    index = QueueIndex(disk, "i", test_queue_index.SIZES)
    for step in test_queue_index.script("publish 0, flush"):
        test_queue_index.do(index, step)
    assert "i.0.idx" in disk.names()
    test_queue_index.recover(disk, lambda _: False)
    assert disk.names() == ["i.journal"]


IS_DONE = "segment.unacknowledged == 0"


def test_a_file_of_transient_messages_that_is_left_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch, QueueIndex, "flush", IS_DONE, f"{IS_DONE} and not segment.has_file")
    with pytest.raises(AssertionError):
        test_a_file_of_transient_messages_alone_goes_at_the_start()


def test_a_file_with_gaps_that_is_left_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    every_place = "len(self.load_file(number, segment).states) == self.segment_size"
    plant(monkeypatch, QueueIndex, "flush", IS_DONE, f"{IS_DONE} and {every_place}")
    with pytest.raises(AssertionError):
        test_queue_index.test_a_file_without_live_entries_goes_at_the_next_flush()
