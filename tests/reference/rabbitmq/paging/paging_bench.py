"""A paging queue and its oracle: each operation runs on both, and the results are compared.

Also the long random walks over all operations, from a seed.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerproof.models import projections
from brokerproof.reference.rabbitmq.paging import Node, Parameters, SimulatedDisk, view_of
from brokerproof.reference.rabbitmq.paging.moves import permitted_beta_count, reduction_is_due
from brokerproof.spec.messages import Fifo
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    IndexEntryView,
    PagingQueueView,
    StatusView,
)
from brokerproof.spec.rabbitmq.view_rules import in_delta, judged
from tests.reference.rabbitmq.paging.abstract_queue import AbstractQueue, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from brokerproof.reference.rabbitmq.paging import VariableQueue
    from brokerproof.reference.rabbitmq.paging.confirms import Confirms

NAME = "q"
SMALL = Parameters(segment=2, batch=1, journal_limit=12, file_size=100, cache_bytes=0)


def msg_id(number: int) -> bytes:
    """Return the id of the message with this number."""
    return number.to_bytes(16, "big")


def body(number: int) -> bytes:
    """Return the body of the message with this number."""
    return b"body %d" % number


def seen_of(queue: VariableQueue) -> BackingQueueView:
    """Return the view of a queue that has its stores alone; a message is named by its id."""
    return view_of(queue, lambda said: msg_id(int(said[5:])).hex(), level=0, owns_stores=True)


def ready_of(view: BackingQueueView) -> list[tuple[int, bytes, bool]]:
    """Return place, id and flag of all that is ready, in the order of the five places."""
    places: list[StatusView | IndexEntryView] = [*view.q4, *view.q3, *in_delta(view)]
    places += [*view.q2, *view.q1]
    return [(one.seq, bytes.fromhex(one.message), one.delivered) for one in places]


def broken_in(seen: BackingQueueView, confirms: Confirms) -> set[str]:
    """Return the ids of all that does not hold of a view: of rules, models and confirms."""
    view = PagingQueueView(Fifo(), levels=(seen,))
    said = (*judged(view, rests=False), *projections.judged(view, rests=False))
    found = {name for name, complaint in said if complaint}
    on_disk = confirms.msgs_on_disk, confirms.msg_indices_on_disk
    if not on_disk[0] | on_disk[1] <= confirms.unconfirmed or on_disk[0] & on_disk[1]:
        found.add("I15")
    return found | ({"C2"} if confirms.unconfirmed & confirms.confirmed else set())


def broken_invariants(queue: VariableQueue) -> set[str]:
    """Return the ids of all that does not hold of a queue."""
    return broken_in(seen_of(queue), queue.confirms)


class PagingBench:
    """One queue on a simulated disk. `confirmed` are ids that were confirmed so far.

    `done` are messages that were settled, dropped or purged: after a crash they may be there again.
    """

    def __init__(self, parameters: Parameters = SMALL, *, durable: bool = True) -> None:
        self.parameters = parameters
        self.durable = durable
        self.disk = SimulatedDisk()
        self.node = Node(self.disk, parameters)
        self.queue: VariableQueue = self.node.declare(NAME, durable=durable)
        self.oracle = AbstractQueue()
        self.published = 0
        self.confirmed: set[bytes] = set()
        self.done: dict[int, Message] = {}
        self.last_message: Message | None = None

    def view(self) -> BackingQueueView:
        """Return the queue as it stands."""
        return seen_of(self.queue)

    def check(self) -> None:
        """Compare all that is to be seen of the queue with the oracle, and hold its invariants."""
        view = self.view()
        assert broken_in(view, self.queue.confirms) == set()
        assert ready_of(view) == self.oracle.sequence()
        assert sorted(self.queue.pending) == sorted(self.oracle.pending)
        assert self.queue.length == len(self.oracle.ready)
        everything = [*self.oracle.ready.values(), *self.oracle.pending.values()]
        assert self.queue.persistent_count == sum(one.is_persistent for one in everything)
        self.confirmed |= self.queue.drain_confirmed()

    def _new_message(self, *, persistent: bool, expiry: int | None) -> Message:
        number, self.published = self.published, self.published + 1
        self.last_message = Message(
            self.queue.next_seq, msg_id(number), body(number), persistent and self.durable, expiry
        )
        return self.last_message

    def publish(self, *, persistent: bool = False, expiry: int | None = None) -> None:
        """Publish the next message; persistent ones are to be confirmed."""
        message = self._new_message(persistent=persistent, expiry=expiry)
        self.queue.publish(
            message.msg_id,
            message.body,
            persistent=persistent,
            expiry=expiry,
            needs_confirming=message.is_persistent,
        )
        self.oracle.publish(message)
        self.check()

    def publish_delivered(self, *, persistent: bool = False, ack_required: bool = True) -> None:
        """Publish the next message to a consumer that is ready."""
        message = self._new_message(persistent=persistent, expiry=None)
        tag = self.queue.publish_delivered(
            message.msg_id,
            message.body,
            ack_required=ack_required,
            persistent=persistent,
            needs_confirming=message.is_persistent,
        )
        if ack_required:
            assert tag == message.seq
            self.oracle.publish_delivered(message)
        else:
            assert tag is None
        self.check()
        if message.is_persistent and not ack_required:
            assert message.msg_id in self.confirmed

    def fetch(self, *, ack_required: bool = True) -> None:
        """Fetch the first message."""
        expected = self._first_fetched(ack_required=ack_required)
        fetched = self.queue.fetch(ack_required=ack_required)
        if expected is None:
            assert fetched is None
        else:
            assert fetched == (
                expected.msg_id,
                expected.body,
                expected.is_delivered,
                expected.seq if ack_required else None,
                len(self.oracle.ready),
            )
        self.check()

    def _first_fetched(self, *, ack_required: bool) -> Message | None:
        """Return the oracle's delivery; without acknowledgement it is settled at once."""
        message = self.oracle.fetch(ack_required=ack_required)
        if message is not None and not ack_required:
            self.done[message.seq] = message
        return message

    def drop(self, *, ack_required: bool = False) -> None:
        """Drop the first message."""
        expected = self._first_fetched(ack_required=ack_required)
        dropped = self.queue.drop(ack_required=ack_required)
        assert (dropped and dropped.msg_id) == (expected and expected.msg_id)
        self.check()

    def dropwhile(self, now: int) -> None:
        """Drop the expired messages at the front."""
        expected = self.oracle.fetchwhile(expired_by(now), ack_required=False)
        self.done |= {message.seq: message for message in expected}
        assert self.queue.dropwhile(expired_by(now)) == len(expected)
        self.check()

    def fetchwhile(self, now: int) -> None:
        """Fetch the expired messages at the front."""
        expected = self.oracle.fetchwhile(expired_by(now), ack_required=True)
        fetched = self.queue.fetchwhile(expired_by(now))
        assert [(one.tag, one.body, one.redelivered) for one in fetched] == [
            (message.seq, message.body, message.is_delivered) for message in expected
        ]
        self.check()

    def acknowledge(self, tags: Sequence[int]) -> None:
        """Settle pending messages."""
        self.done |= {tag: self.oracle.pending[tag] for tag in tags}
        assert self.queue.acknowledge(tags) == self.oracle.acknowledge(tags)
        self.check()

    def requeue(self, tags: Sequence[int]) -> None:
        """Requeue pending messages."""
        waiting = self.queue.confirms.unconfirmed.copy()
        returned = self.queue.requeue(tags)
        expected = [self.oracle.pending[tag].msg_id for tag in sorted(tags, reverse=True)]
        assert returned == expected
        assert self.queue.confirms.unconfirmed <= waiting, "a requeue arms no confirm"
        self.oracle.requeue(tags)
        self.check()

    def purge(self) -> None:
        """Drop the ready messages."""
        self.done |= self.oracle.ready
        assert self.queue.purge() == self.oracle.purge()
        self.check()

    def set_target(self, target: int | None) -> None:
        """Change how many messages may be in RAM."""
        self.queue.set_target(target)
        self.check()

    def timeout(self) -> None:
        """Let the queue do its due work; reported work must have lowered memory use (I18)."""
        is_due, before = reduction_is_due(self.queue), self._cost()
        self.queue.timeout()
        assert (self._cost() < before) == is_due
        self.check()

    def _cost(self) -> int:
        queue = self.queue
        in_ram = queue.ram_count + len(queue.ram_acks)
        return 2 * in_ram + len(queue.q2) + len(queue.q3)

    def settle(self) -> None:
        """Let the queue page until nothing is due, which must come to an end (I17, I18)."""
        queue = self.queue
        for _ in range(3 * (queue.length + len(queue.pending) + 1)):
            if not reduction_is_due(queue):
                break
            self.timeout()
        assert not reduction_is_due(queue), "reduction goes on for ever"
        if queue.target is not None:
            assert queue.ram_count + len(queue.ram_acks) <= queue.target
            permitted = permitted_beta_count(queue)
            betas = len(queue.q2) + len(queue.q3)
            assert permitted is None or betas - permitted < self.parameters.batch

    def sync(self) -> None:
        """Sync everything; then no confirm is outstanding (C3)."""
        self.node.sync()
        self.check()
        assert not self.queue.confirms.unconfirmed
        everything = [*self.oracle.ready.values(), *self.oracle.pending.values()]
        expected = {one.msg_id for one in everything if one.is_persistent}
        assert expected <= self.confirmed

    def restart(self) -> None:
        """Stop cleanly, and start."""
        self.node.terminate()
        self.oracle.restart()
        self.start()
        self._what_is_there_is_safe()

    def start(self) -> None:
        """Start a node on the disk's contents."""
        self.node = Node(self.disk, self.parameters, [NAME] if self.durable else [])
        if not self.durable:
            self.node.declare(NAME, durable=False)
        self.queue = self.node.queues[NAME]

    def crash(self, kept: Mapping[str, int] | None = None) -> None:
        """Lose the power, start, and check the recovered messages (C4).

        Confirmed, unsettled messages are there; unpublished and transient ones are not; the order
        is the same; all are redelivered. The oracle goes on from there.
        """
        self.disk.crash(kept)
        self.start()
        self.adopt_what_survived()

    def adopt_what_survived(self, *, was_stopping: bool = False) -> None:
        """Check the messages after a crash against the rules; see `crash`.

        If the power went within a clean stop or start, an undelivered message may still be
        unmarked.
        """
        known = {**self.done, **self.oracle.ready, **self.oracle.pending}
        alive = {**self.oracle.ready, **self.oracle.pending}
        found = ready_of(self.view())
        for seq, its_id, redelivered in found:
            assert known[seq].is_persistent, "a transient message came back"
            assert known[seq].msg_id == its_id
            if not was_stopping:
                assert redelivered, "after a crash everything counts as delivered"
            assert redelivered or not known[seq].is_delivered
        seqs = {seq for seq, _, _ in found}
        lost = [
            message
            for message in alive.values()
            if message.is_persistent and message.msg_id in self.confirmed
            if message.seq not in seqs
        ]
        assert not lost, "what was confirmed and not acknowledged survives a crash"
        self.oracle = AbstractQueue()
        self.oracle.ready = {
            seq: replace(known[seq], is_delivered=redelivered) for seq, _, redelivered in found
        }
        self._what_is_there_is_safe()

    def _what_is_there_is_safe(self) -> None:
        """Note that the messages found by a start are durable, confirmed or not."""
        self.confirmed |= {message.msg_id for message in self.oracle.ready.values()}
        self.done.clear()
        self.check()


def expired_by(now: int) -> Callable[[int | None], bool]:
    """Return whether a message's time is over."""
    return lambda expiry: expiry is not None and expiry < now


def draw_parameters(draw: random.Random) -> Parameters:
    """Return small sizes of all kinds."""
    return Parameters(
        segment=draw.randint(2, 4),
        batch=draw.randint(1, 3),
        journal_limit=draw.choice([2, 6, 40]),
        file_size=draw.choice([40, 100, 400]),
        cache_bytes=draw.choice([0, 60]),
        surplus=draw.choice(["whole batch", "any"]),
    )


def some(draw: random.Random, tags: Sequence[int]) -> list[int]:
    """Return a few tags in any order."""
    return draw.sample(sorted(tags), draw.randint(1, len(tags))) if tags else []


def step(bench: PagingBench, draw: random.Random, steps: Sequence[str]) -> None:
    """Do one of the operations, drawn at random."""
    match draw.choice(steps):
        case "publish":
            expiry = draw.choice([None, draw.randint(1, 9)])
            bench.publish(persistent=draw.random() < 0.6, expiry=expiry)
        case "publish delivered":
            if not bench.oracle.ready:
                persistent = draw.random() < 0.6
                bench.publish_delivered(persistent=persistent, ack_required=draw.random() < 0.8)
        case "fetch":
            bench.fetch(ack_required=draw.random() < 0.8)
        case "drop":
            bench.drop(ack_required=draw.random() < 0.5)
        case "acknowledge":
            bench.acknowledge(some(draw, list(bench.oracle.pending)))
        case "requeue":
            bench.requeue(some(draw, list(bench.oracle.pending)))
        case "drop while":
            bench.dropwhile(draw.randint(0, 9))
        case "fetch while":
            bench.fetchwhile(draw.randint(0, 9))
        case "purge":
            bench.purge()
        case "target":
            bench.set_target(draw.choice([0, 0, 1, 2, 5, None]))
        case "timeout":
            bench.timeout()
        case "settle":
            bench.settle()
        case "sync":
            bench.sync()
        case "restart":
            bench.restart()
            bench.set_target(draw.choice([0, 1, None]))
        case "crash":
            unsynced = bench.disk.unsynced()
            bench.crash({name: draw.randint(0, size) for name, size in unsynced.items()})
            bench.set_target(draw.choice([0, 1, None]))


STEPS = (
    *("publish",) * 12,
    *("publish delivered",) * 2,
    *("fetch",) * 8,
    *("drop",) * 2,
    *("acknowledge",) * 4,
    *("requeue",) * 4,
    *("drop while",) * 2,
    *("fetch while",) * 1,
    *("target",) * 2,
    *("timeout",) * 3,
    *("sync",) * 2,
    "settle",
    "purge",
    "restart",
    "crash",
)
"""Each kind of operation as often as it is to be drawn."""

RETURNING = (
    *("publish",) * 6,
    *("fetch",) * 9,
    *("requeue",) * 5,
    *("target",) * 2,
    *("timeout",) * 3,
    "acknowledge",
)
"""Much that is pending, and much that returns: so messages come into delta from within."""


def walk(
    seed: int, count: int = 120, steps: Sequence[str] = STEPS, *, durable: bool = True
) -> PagingBench:
    """Do so many operations to a queue and its oracle, and return both; they agreed all along."""
    draw = random.Random(seed)  # noqa: S311 - reproducible, not secret
    bench = PagingBench(draw_parameters(draw), durable=durable)
    for _ in range(count):
        step(bench, draw, steps)
    return bench
