"""Each invariant is broken by a mistake planted in the code, and named where the code goes wrong.

That a mistake is caught somehow is `test_paging_mistakes`; here the look at the queue that follows
it must name the rule. Rules of the index are not looked at by a walk over a queue: they have checks
of their own.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
from brokerproof.reference.rabbitmq.paging import (
    Parameters,
    SimulatedDisk,
    moves,
    statuses,
)
from brokerproof.reference.rabbitmq.paging.confirms import Confirms
from brokerproof.reference.rabbitmq.paging.holdings import Holdings
from brokerproof.reference.rabbitmq.paging.statuses import InvariantBroken
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from brokerproof.spec.rabbitmq.view_rules import BY_LEVEL, IDS, IN_LINE
from tests.reference.rabbitmq.disk import test_queue_index
from tests.reference.rabbitmq.disk.test_queue_index import SIZES, after, do, live_of, random_steps
from tests.reference.rabbitmq.paging import test_paging_crashes
from tests.reference.rabbitmq.paging.paging_bench import (
    RETURNING,
    STEPS,
    PagingBench,
    body,
    broken_invariants,
    draw_parameters,
    msg_id,
    step,
)
from tests.reference.rabbitmq.paging.test_paging_mistakes import CAUGHT, MISTAKES, Mistake, plant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WALKS = 60
STEPS_MAX = 120


def first_broken(seed: int, steps: Sequence[str]) -> set[str]:
    """Walk until something is wrong; return the ids of all that is, none if nothing ever is."""
    draw = random.Random(seed)  # noqa: S311 - reproducible, not secret
    bench = PagingBench(draw_parameters(draw))
    for _ in range(STEPS_MAX):
        try:
            step(bench, draw, steps)
        except InvariantBroken as raised:
            return {raised.id, *seen_in(bench)}
        except CAUGHT:
            return seen_in(bench)
    return set()


def seen_in(bench: PagingBench) -> set[str]:
    """Return the ids of the rules that do not hold of a queue, if it can be looked at at all."""
    try:
        return broken_invariants(bench.queue)
    except CAUGHT:
        return set()


def is_broken_by_walks(rule: str) -> bool:
    """Whether some walk comes to a state in which this rule does not hold."""
    return any(
        rule in first_broken(seed, steps) for seed in range(WALKS) for steps in (STEPS, RETURNING)
    )


BREAKS = {
    "A1": Mistake(VariableQueue, "_fetch_from_q3", "self.q4, self.q1 = self.q1, self.q4", "pass"),
    "A2": Mistake(
        moves,
        "push_alphas_to_betas",
        "(queue.q3 if queue.delta.count == 0 else queue.q2)",
        "queue.q2",
    ),
    "A3": Mistake(moves, "push_betas_to_deltas", "queue.q3[-1].seq >= limit", "queue.q3"),
    "A4": Mistake(VariableQueue, "publish", "self.length += 1", "pass"),
    "A5": Mistake(
        VariableQueue,
        "acknowledge",
        "self.persistent_count -= self.holdings.remove(statuses)",
        "self.persistent_count -= self.holdings.remove(statuses) or len(statuses)",
    ),
    "A6": Mistake(VariableQueue, "_hand_out", "self.ram_count -= 1", "pass"),
    "D1": Mistake(
        statuses, "expand", "Delta(start, count + 1, seq + 1)", "Delta(start, count + 1, end)"
    ),
    "M1": Mistake(VariableQueue, "_new_status", "self.holdings.write_index(status)", "pass"),
    "M2": Mistake(
        moves,
        "_betas_from_index_entries",
        "status.msg_on_disk = status.index_on_disk = True",
        "status.index_on_disk = True",
    ),
    "M3": Mistake(VariableQueue, "make_beta", "self.holdings.write_message(status)", "pass"),
    "F1": Mistake(
        moves,
        "maybe_deltas_to_betas",
        "queue.q3.extend(queue.q2)\n            queue.q2.clear()",
        "pass",
    ),
    "F2": Mistake(VariableQueue, "_queue_out", "if self.q4:", "if self.q4 and not self.q3:"),
    "R1": Mistake(
        moves,
        "maybe_deltas_to_betas",
        "min(next_segment_boundary(delta.start, queue.parameters.segment), delta.end)",
        "next_segment_boundary(delta.start, queue.parameters.segment)",
    ),
    "W1": Mistake(VariableQueue, "_new_status", "self.holdings.write_message(status)", "pass"),
    "I1": Mistake(VariableQueue, "requeue", "self.length += count", "pass"),
    "I2": Mistake(VariableQueue, "publish", "(self.q1 if self.q3 else self.q4)", "self.q4"),
    "I3": Mistake(
        statuses,
        "expand",
        "    return checked(Delta(start, count + 1, end))",
        "    return checked(Delta(start, count, end))",
    ),
    "I4": Mistake(
        VariableQueue, "_make_alpha", "status.body = self.holdings.read_message(status)", "pass"
    ),
    "I5": Mistake(VariableQueue, "make_beta", "status.body = None", "pass"),
    "I6": Mistake(VariableQueue, "_make_alpha", "self.ram_count += 1", "pass"),
    "I7": Mistake(VariableQueue, "acknowledge", "self.ram_acks.discard(status.seq)", "pass"),
    "I8": Mistake(VariableQueue, "requeue", "del self.pending[status.seq]", "pass"),
    "I9": Mistake(
        VariableQueue,
        "acknowledge",
        "self.persistent_count -= self.holdings.remove(statuses)",
        "self.holdings.remove(statuses)",
    ),
    "I10": Mistake(VariableQueue, "_hand_out", "status.is_delivered = True", "pass"),
    "I11": Mistake(
        VariableQueue,
        "_queue_out",
        "if self.q4:",
        "if self.q1:\n        return self.q1.pop()\n    if self.q4:",
    ),
    "I12": Mistake(VariableQueue, "_new_status", "self.next_seq += 1", "pass"),
    "I13": Mistake(Holdings, "remove", "self.index.acknowledge(indexed)", "pass"),
    "I14": Mistake(
        Holdings, "remove", "self.transient_store.remove(self.transient_client, transient)", "pass"
    ),
    "I15": Mistake(Confirms, "record", "self.msgs_on_disk.difference_update(msg_ids)", "pass"),
    "I16": Mistake(
        moves,
        "push_alphas_to_betas",
        "(queue.q3 if queue.delta.count == 0 else queue.q2)",
        "queue.q3",
    ),
    "I19": Mistake(statuses, "merge", "while place and place[0].seq < status.seq:", "while False:"),
    "C2": Mistake(Confirms, "record", "self.unconfirmed.difference_update(msg_ids)", "pass"),
}
"""For each rule that is looked at after every step, a mistake after which it does not hold."""

BY_HAND = {"PD"}
"""No walk publishes to a consumer while others are ready: that is below."""


@pytest.mark.parametrize("rule", BREAKS)
def test_a_planted_mistake_breaks_the_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = BREAKS[rule]
    plant(monkeypatch, mistake.owner, mistake.function, mistake.old, mistake.new)
    assert is_broken_by_walks(rule)


def test_every_rule_has_a_mistake() -> None:
    of_views = IDS - {IN_LINE, BY_LEVEL}
    of_models = {"A1", "A2", "A3", "M3", "I11", "I12"}
    of_the_code = {"F2", "W1", "PD", "I15", "C2"}
    assert BREAKS.keys() | BY_HAND == of_views | of_models | of_the_code


def test_without_a_mistake_no_walk_breaks_any_rule() -> None:
    assert [seed for seed in range(WALKS) if first_broken(seed, STEPS)] == []
    assert [seed for seed in range(WALKS) if first_broken(seed, RETURNING)] == []


def test_what_goes_to_a_consumer_past_others_is_pending_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch, VariableQueue, "publish_delivered", "if self.length:", "if False:")
    bench = PagingBench(Parameters(segment=2, batch=1))
    bench.publish()
    bench.set_target(0)
    bench.set_target(None)
    bench.publish()
    assert bench.queue.q1
    bench.queue.publish_delivered(msg_id(9), body(9), ack_required=True)
    assert "I11" in seen_in(bench)


@pytest.mark.parametrize(
    "crash",
    [
        test_paging_crashes.test_the_power_may_go_at_any_change,
        test_paging_crashes.test_the_power_may_go_again_while_the_queue_comes_back,
    ],
    ids=["once", "again"],
)
@pytest.mark.parametrize("half", ["body", "position"])
def test_what_is_confirmed_too_early_does_not_survive_some_crash(
    crash: Callable[[str], None], half: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = MISTAKES[f"confirmed before the {half} is synced"]
    plant(monkeypatch, mistake.owner, mistake.function, mistake.old, mistake.new)
    with pytest.raises(AssertionError, match="survives a crash"):
        # Here a flush makes positions durable before the store has synced.
        crash("paged and brought up")


# The index.


def watch_index(seed: int) -> None:
    """Run lawful operations on an index, and check its answers after each."""
    disk = SimulatedDisk()
    index = QueueIndex(disk, "i", SIZES)
    steps = random_steps(random.Random(seed), 14)  # noqa: S311 - reproducible, not secret
    for number, each in enumerate(steps):
        do(index, each)
        live = after(steps[: number + 1])
        assert live_of(index) == live, "Q4"
        for start in range(5):
            read = [entry.seq for entry in index.read(start, 4)]
            assert read == sorted(seq for seq in live if start <= seq), "Q5"
        for place, segment in index.segments.items():
            in_segment = [seq for seq in live if seq // SIZES.segment == place]
            assert segment.unacknowledged == len(in_segment), "Q2"
            if each.what == "flush":
                assert segment.has_file <= bool(in_segment), "Q3"
        low, following = index.bounds()
        assert low % SIZES.segment == following % SIZES.segment == 0, "Q6"
        assert all(low <= seq < following for seq in live), "Q6"
        files = {
            index.file_name(one) for one, segment in index.segments.items() if segment.has_file
        }
        assert files == {name for name in disk.names() if name.endswith(".idx")}, "Q3"


OF_THE_INDEX = {
    "Q2": Mistake(QueueIndex, "mark_acknowledged", "segment.unacknowledged -= 1", "pass"),
    "Q3": Mistake(
        QueueIndex,
        "flush",
        "if segment.unacknowledged == 0:",
        "if segment.unacknowledged == 0 and not segment.has_file:",
    ),
    "Q4": Mistake(QueueIndex, "_append_to_file", "MARKS[state]", "0"),
    "Q5": Mistake(QueueIndex, "read", "first = number * size", "first = start // size * size"),
    "Q6": Mistake(
        QueueIndex,
        "bounds",
        "(max(self.segments) + 1) * self.segment_size",
        "max(self.segments) * self.segment_size",
    ),
}
"""For each rule on the index, but for the order of operations, a mistake after which it is off."""

INDEX_RUNS = 20


def test_an_index_says_what_was_done_to_it() -> None:
    for seed in range(INDEX_RUNS):
        watch_index(seed)


@pytest.mark.parametrize("rule", OF_THE_INDEX)
def test_a_planted_mistake_in_the_index_breaks_the_rule(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = OF_THE_INDEX[rule]
    plant(monkeypatch, mistake.owner, mistake.function, mistake.old, mistake.new)
    with pytest.raises(AssertionError, match=rule):
        test_an_index_says_what_was_done_to_it()


def test_an_index_that_takes_any_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = test_queue_index.test_what_is_out_of_order_is_refused
    refuses("publish 0, acknowledge 0")
    known = "AFTER_ACKNOWLEDGE[journal.get(place, NOTHING)]"
    plant(monkeypatch, QueueIndex, "mark_acknowledged", known, "journal.get(place, NOTHING) | 4")
    with pytest.raises(pytest.fail.Exception):
        refuses("publish 0, acknowledge 0")
