"""Mistakes planted in the paging queue, each of which the tests' own checks must catch.

A mistake is laid over a function: some of its lines replaced by others. It is an error if the lines
are not there any more. Several were made in RabbitMQ's history.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import TYPE_CHECKING, NamedTuple

import pytest

from brokerproof.reference.rabbitmq.disk import compaction, index_recovery
from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
from brokerproof.reference.rabbitmq.paging import fingerprints, moves, statuses
from brokerproof.reference.rabbitmq.paging.holdings import Holdings
from brokerproof.reference.rabbitmq.paging.node import Node
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from tests.reference.rabbitmq.disk import test_message_store, test_queue_index
from tests.reference.rabbitmq.paging import test_paging_copies, test_paging_moves
from tests.reference.rabbitmq.paging.paging_bench import RETURNING, walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

PACKAGE = "brokerproof.reference.rabbitmq"
WALKS = 60
CAUGHT = (AssertionError, KeyError, IndexError, FileNotFoundError)
"""The outcome of a fault: a broken rule, or a missing object."""


def plant(
    monkeypatch: pytest.MonkeyPatch, owner: type | ModuleType, name: str, old: str, new: str
) -> None:
    """Replace lines of a function, wherever it is known by its name."""
    original = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(original))
    assert source.count(old) == 1, f"{name} has not these lines once: {old}"
    module = sys.modules[original.__module__]
    scope: dict[str, object] = {}
    changed = "from __future__ import annotations\n" + source.replace(old, new)
    exec(compile(changed, name, "exec"), vars(module), scope)  # noqa: S102 - our own lines
    if isinstance(owner, type):
        monkeypatch.setattr(owner, name, scope[name])
        return
    for path, each in list(sys.modules.items()):
        if path.startswith(PACKAGE) and vars(each).get(name) is original:
            monkeypatch.setattr(each, name, scope[name])


def by_walks() -> None:
    """Walk at random, as `test_paging_walks` does."""
    for seed in range(WALKS):
        walk(seed)
        walk(seed, steps=RETURNING)


def by_index_runs() -> None:
    """Crash the index everywhere, as `test_queue_index` does."""
    for text in ("publish 0, deliver 0, flush, acknowledge 0, publish 1, flush",):
        test_queue_index.assert_recovery_is_exact(test_queue_index.script(text))


NAMES_CHECK = test_paging_copies.test_states_with_one_name_behave_alike_though_their_numbers_differ


class Mistake(NamedTuple):
    """Old lines of a function, new ones, and the test that catches the fault."""

    owner: type | ModuleType
    function: str
    old: str
    new: str
    check: Callable[[], None] = by_walks


MISTAKES = {
    "publish always to q4": Mistake(
        VariableQueue, "publish", "(self.q1 if self.q3 else self.q4)", "self.q4"
    ),
    "the last of q3 leaves q1 behind": Mistake(
        VariableQueue, "_fetch_from_q3", "self.q4, self.q1 = self.q1, self.q4", "pass"
    ),
    "reload without the q2 join": Mistake(
        moves, "maybe_deltas_to_betas", "queue.q3.extend(queue.q2)", "pass"
    ),
    "reload beyond the end of delta": Mistake(
        moves,
        "maybe_deltas_to_betas",
        "min(next_segment_boundary(delta.start, queue.parameters.segment), delta.end)",
        "next_segment_boundary(delta.start, queue.parameters.segment)",
    ),
    "reload brings up what is pending": Mistake(
        moves, "_betas_from_index_entries", "elif seq not in pending:", "else:"
    ),
    "reload brings up what was transient": Mistake(
        moves, "_betas_from_index_entries", "if not is_persistent and seq < threshold:", "if False:"
    ),
    "q1 paged always to q2": Mistake(
        moves,
        "push_alphas_to_betas",
        "(queue.q3 if queue.delta.count == 0 else queue.q2)",
        "queue.q2",
    ),
    "paging empties q3": Mistake(
        moves, "push_betas_to_deltas", "queue.q3[-1].seq >= limit", "queue.q3"
    ),
    "q2 is never paged": Mistake(
        moves, "push_betas_to_deltas", "while quota and queue.q2:", "while False:"
    ),
    "q2 paged from the rear": Mistake(
        moves, "push_betas_to_deltas", "queue.q2.popleft()", "queue.q2.pop()"
    ),
    "delta keeps its start": Mistake(
        statuses, "expand", "Delta(seq, count + 1, end)", "Delta(start, count + 1, end)"
    ),
    "delta keeps its end": Mistake(
        statuses, "expand", "Delta(start, count + 1, seq + 1)", "Delta(start, count + 1, end)"
    ),
    "delta does not count what comes within": Mistake(
        statuses,
        "expand",
        "    return checked(Delta(start, count + 1, end))",
        "    return checked(Delta(start, count, end))",
    ),
    "requeue into a blank delta": Mistake(
        VariableQueue,
        "requeue",
        "self.delta.start if self.delta.count else None",
        "self.delta.start",
    ),
    "requeue in front of q4": Mistake(
        statuses, "merge", "while place and place[0].seq < status.seq:", "while False:"
    ),
    "requeue waits for a confirm again": Mistake(
        VariableQueue,
        "requeue",
        "status.needs_confirming = False",
        "self.confirms.expect(status.msg_id)",
    ),
    "a beta keeps its body": Mistake(VariableQueue, "make_beta", "status.body = None", "pass"),
    "no late delivery mark": Mistake(
        Holdings, "write_index", "if status.is_delivered:", "if False:"
    ),
    "a position without its body": Mistake(
        VariableQueue,
        "make_delta",
        "self.holdings.write_message(status)",
        "pass",
        test_paging_moves.test_what_is_requeued_into_delta_takes_its_body_from_ram_to_disk,
    ),
    "an acknowledgement leaves its body in RAM": Mistake(
        VariableQueue, "acknowledge", "self.ram_acks.discard(status.seq)", "pass"
    ),
    "a fetch is not counted": Mistake(VariableQueue, "_hand_out", "self.ram_count -= 1", "pass"),
    "dropped while it matches, and kept": Mistake(
        VariableQueue,
        "dropwhile",
        "self._hand_out(status, ack_required=False, with_body=False)",
        "pass",
    ),
    "put back behind q1": Mistake(
        VariableQueue, "_queue_out_if", "if status.body is None and not self.q4:", "if not self.q4:"
    ),
    "purge forgets q1": Mistake(VariableQueue, "purge", "self._purge(self.q1)", "self.q1.clear()"),
    "confirmed before the body is synced": Mistake(
        MessageStore,
        "write",
        "client.unsynced.add(msg_id)",
        "client.on_written((msg_id,))",
    ),
    "confirmed before the position is synced": Mistake(
        QueueIndex,
        "publish",
        "self.unsynced.add(msg_id)",
        "self.on_synced((msg_id,))",
    ),
    "a body removed before its sync is not confirmed": Mistake(
        MessageStore, "remove", "if ignored:", "if False:"
    ),
    "terms survive the start": Mistake(Node, "_recover", "index.forget_terms()", "pass"),
    "pending messages go at a clean stop": Mistake(
        VariableQueue, "terminate", "self.pending.clear()", "self.acknowledge(list(self.pending))"
    ),
    "recovery keeps duplicates": Mistake(
        index_recovery,
        "remove_duplicates",
        "segment.journal[place] = difference.journal",
        "pass",
        by_index_runs,
    ),
    "recovery leaves torn records in front of new ones": Mistake(
        index_recovery,
        "remove_duplicates",
        "disk.truncate(index.file_name(number), whole)",
        "pass",
        by_index_runs,
    ),
    "the journal is emptied before the segments are written": Mistake(
        QueueIndex,
        "flush",
        "for number in sorted(self.segments):",
        "self._disk.truncate(self.journal_name, 0)\n    for number in sorted(self.segments):",
        by_index_runs,
    ),
    "a flush writes what began and ended before it": Mistake(
        QueueIndex,
        "_append_to_file",
        "if state != PDA:",
        "if True:",
        test_queue_index.test_what_began_and_ended_between_two_flushes_never_reaches_a_file,
    ),
    "a read numbers all segments by the first": Mistake(
        QueueIndex,
        "read",
        "first = number * size",
        "first = start // size * size",
        test_queue_index.test_a_read_across_segments_numbers_each_by_its_own,
    ),
    "the store does not count": Mistake(
        MessageStore,
        "write",
        "references=location.references + 1",
        "references=location.references",
        test_message_store.test_a_message_written_twice_is_there_until_it_is_removed_twice,
    ),
    "compaction does not sync its draft": Mistake(
        compaction,
        "compact",
        "store.disk.sync(draft)",
        "pass",
        test_message_store.test_a_crash_within_a_compaction_loses_nothing,
    ),
    "compaction drops the right file's messages": Mistake(
        compaction,
        "compact",
        "for file in (left, right):",
        "for file in (left,):",
        test_message_store.test_much_garbage_is_compacted_and_nothing_in_use_is_lost,
    ),
    "the name of a state without its target": Mistake(
        fingerprints, "_name_queue", "queue.target,", "None,", NAMES_CHECK
    ),
    "the name of a state without what is pending": Mistake(
        fingerprints,
        "_name_queue",
        "tuple(_name_status(queue.pending[seq], first) for seq in sorted(queue.pending)),",
        "(),",
        NAMES_CHECK,
    ),
}


@pytest.mark.each_time(16)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = MISTAKES[name]
    plant(monkeypatch, mistake.owner, mistake.function, mistake.old, mistake.new)
    with pytest.raises(CAUGHT):
        mistake.check()


@pytest.mark.each_time(4)
@pytest.mark.parametrize("check", dict.fromkeys(mistake.check for mistake in MISTAKES.values()))
def test_without_a_mistake_the_same_check_is_content(check: Callable[[], None]) -> None:
    check()


def test_lines_that_are_gone_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="has not these lines"):
        plant(monkeypatch, VariableQueue, "publish", "no such line", "pass")
