"""Permitted changes of each step of a paging queue: rules on two states.

The bench compares all of this with an oracle, operation by operation. Here each rule is checked by
itself, on one queue, under its own id; and for each there is a planted fault that breaks only that
rule.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
from brokerproof.reference.rabbitmq.paging import Node, SimulatedDisk, moves
from brokerproof.reference.rabbitmq.paging.moves import (
    next_segment_boundary,
    permitted_beta_count,
    reduce_memory_use,
    reduction_is_due,
)
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from tests.reference.rabbitmq.paging.paging_bench import (
    NAME,
    body,
    draw_parameters,
    expired_by,
    msg_id,
    ready_of,
    seen_of,
    some,
)
from tests.reference.rabbitmq.paging.test_paging_mistakes import CAUGHT, Mistake, plant

SEEDS = 60
STEPS_MAX = 150

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.paging.statuses import Fetched

KINDS = (
    *("publish",) * 12,
    *("publish delivered",) * 2,
    *("fetch", "take") * 4,
    *("drop", "expire") * 1,
    *("acknowledge", "requeue") * 3,
    *("target", "timeout", "reduce", "sync") * 2,
    *("purge", "restart"),
)
"""Each kind of step, repeated by its weight; subscribers do not acknowledge."""

UNSEEN = {"target", "timeout", "reduce", "sync"}
"""Steps that change the places of messages, and no observable value."""


class Seen(NamedTuple):
    """The observable values of a queue: positions, ids and flags of ready and pending messages."""

    ready: tuple[tuple[int, bytes, bool], ...]
    pending: frozenset[int]
    length: int
    persistent_count: int

    @property
    def total(self) -> int:
        """How many messages the queue is answerable for."""
        return self.length + len(self.pending)

    def delivered(self) -> frozenset[int]:
        """Return the messages delivered so far."""
        return self.pending | {seq for seq, _, flag in self.ready if flag}


class Walk:
    """One durable queue, and steps on it drawn at random."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.parameters = draw_parameters(self.draw)
        self.disk = SimulatedDisk()
        self.node = Node(self.disk, self.parameters)
        self.node.declare(NAME, durable=True)
        self.published = 0

    @property
    def queue(self) -> VariableQueue:
        """The queue, which is another one after a restart."""
        return self.node.queues[NAME]

    def seen(self) -> Seen:
        """Look at the queue."""
        view = seen_of(self.queue)
        pending = frozenset(self.queue.pending)
        return Seen(tuple(ready_of(view)), pending, self.queue.length, self.queue.persistent_count)

    def step(self, kind: str) -> int:
        """Take a step; return by how much it should change the number of messages."""
        queue, draw = self.queue, self.draw
        match kind:
            case "publish" | "publish delivered":
                return self._publish(kind)
            case "fetch" | "take" | "drop":
                return self._hand_out(kind)
            case "expire":
                return -queue.dropwhile(expired_by(draw.randint(0, 9)))
            case "acknowledge":
                return -len(queue.acknowledge(some(draw, list(queue.pending))))
            case "requeue":
                queue.requeue(some(draw, list(queue.pending)))
            case "purge":
                return -queue.purge()
            case _:
                self._unseen(kind)
        return 0

    def _publish(self, kind: str) -> int:
        number, self.published = self.published, self.published + 1
        persistent = self.draw.random() < 0.5
        its = msg_id(number), body(number)
        if kind == "publish":
            expiry = self.draw.choice([None, self.draw.randint(1, 9)])
            self.queue.publish(
                *its, persistent=persistent, expiry=expiry, needs_confirming=persistent
            )
            return 1
        if self.queue.length:
            return 0
        keeps = self.draw.random() < 0.7
        self.queue.publish_delivered(*its, ack_required=keeps, persistent=persistent)
        return int(keeps)

    def _hand_out(self, kind: str) -> int:
        keeps = kind == "fetch"
        first = min((seq for seq, _, _ in self.seen().ready), default=None)
        was_pending = set(self.queue.pending)
        if kind == "drop":
            given: Fetched | None = self.queue.drop(ack_required=False)
        else:
            given = self.queue.fetch(ack_required=keeps)
        if keeps and first is not None:
            assert set(self.queue.pending) - was_pending == {first}, "I22"
        return -1 if given is not None and not keeps else 0

    def _unseen(self, kind: str) -> None:
        match kind:
            case "target":
                self.queue.set_target(self.draw.choice([0, 1, 3, None]))
            case "timeout":
                self.queue.timeout()
            case "reduce":
                reduce_to_the_end(self.queue)
            case "sync":
                self.node.sync()
                assert not self.queue.confirms.unconfirmed, "C3"
            case "restart":
                self.node.terminate()
                self.node = Node(self.disk, self.parameters, [NAME])


def cost_of(queue: VariableQueue) -> int:
    """Return the value that a reduction lowers: 2·(contents in memory) + positions in memory."""
    in_ram = queue.ram_count + len(queue.ram_acks)
    return 2 * in_ram + len(queue.q2) + len(queue.q3)


def reduce_to_the_end(queue: VariableQueue) -> None:
    """Reduce until nothing is reported: each call lowers the cost, and the last is enough."""
    while True:
        before = cost_of(queue)
        if not reduce_memory_use(queue):
            break
        assert cost_of(queue) < before, "I18"
    assert not reduction_is_due(queue), "I18"
    if queue.target is not None:
        in_ram = sum(one.body is not None for one in queue.pending.values())
        assert in_ram + len(queue.q1) + len(queue.q4) <= queue.target, "I17"
        permitted = permitted_beta_count(queue)
        betas = len(queue.q2) + len(queue.q3)
        assert permitted is None or betas - permitted < queue.parameters.batch, "I17"


def hold(kind: str, change: int, before: Seen, after: Seen) -> None:
    """Hold the rules on two states, one step of this kind apart."""
    if kind in UNSEEN:
        assert after == before, "I24"
    if kind != "restart":
        assert after.total == before.total + change, "I23"
    there = {seq for seq, _, _ in after.ready} | after.pending
    assert before.delivered() & there <= after.delivered(), "I21"


def walk_alone(seed: int) -> set[str]:
    """Take steps, each held against the rules; return the kinds of steps that were taken."""
    walk = Walk(seed)
    taken = set()
    before = walk.seen()
    for _ in range(STEPS_MAX):
        kind = walk.draw.choice(KINDS)
        change = walk.step(kind)
        after = walk.seen()
        hold(kind, change, before, after)
        before = after
        taken.add(kind)
    return taken


def watch_q3(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Hold I25 whenever positions leave q3, and return how many did each time."""
    push = moves.push_betas_to_deltas
    left: list[int] = []

    def watched(queue: VariableQueue, quota: int) -> None:
        before = [one.seq for one in queue.q3]
        push(queue, quota)
        after = {one.seq for one in queue.q3}
        gone = [seq for seq in before if seq not in after]
        left.append(len(gone))
        if before:
            boundary = next_segment_boundary(before[0], queue.parameters.segment)
            assert after, "I25"
            assert all(seq >= boundary for seq in gone), "I25"

    monkeypatch.setattr(moves, "push_betas_to_deltas", watched)
    return left


def complaints() -> set[str]:
    """Walk from each seed until a failure; return the ids of the broken rules, each once."""
    found = set()
    for seed in range(SEEDS):
        try:
            walk_alone(seed)
        except CAUGHT as raised:
            found.add(re.split(r"\W", str(raised))[0])
    return found


def test_each_step_changes_what_it_should_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = watch_q3(monkeypatch)
    taken: set[str] = set()
    for seed in range(SEEDS):
        taken |= walk_alone(seed)
    assert taken == set(KINDS)
    assert sum(left) > SEEDS


MISTAKES = {
    "I17": Mistake(
        moves,
        "_alpha_surplus",
        "queue.ram_count + len(queue.ram_acks)",
        "queue.ram_count",
    ),
    "I18": Mistake(moves, "push_betas_to_deltas", "while quota and queue.q2:", "while False:"),
    "I21": Mistake(
        moves, "_betas_from_index_entries", "status.is_delivered = is_delivered", "pass"
    ),
    "I22": Mistake(VariableQueue, "_queue_out", "self.q4.popleft()", "self.q4.pop()"),
    "I23": Mistake(
        VariableQueue,
        "acknowledge",
        "del self.pending[status.seq]",
        "if status.is_persistent: del self.pending[status.seq]",
    ),
    "I24": Mistake(
        moves, "push_alphas_to_betas", "queue.q3.appendleft(status)", "queue.q3.append(status)"
    ),
    "I25": Mistake(moves, "push_betas_to_deltas", "queue.q3[-1].seq >= limit", "queue.q3"),
    "C3": Mistake(MessageStore, "remove", "if ignored:", "if False:"),
}
"""For each rule on steps, a mistake that offends against it."""


@pytest.mark.parametrize("rule", MISTAKES)
def test_a_planted_mistake_is_found_at_the_step(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = MISTAKES[rule]
    plant(monkeypatch, mistake.owner, mistake.function, mistake.old, mistake.new)
    watch_q3(monkeypatch)
    assert rule in complaints()
