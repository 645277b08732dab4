"""The queue process: it hands out what its backing queues have to those who stand in line.

Owns what starts a delivery, and what is handed out and not settled. Between two operations nobody
has room, or nothing is ready (P1). Refuses to know whose turn it is (`consumer_line`) and where
messages are.

What arrives goes straight to a consumer that has room, and past the queue if it need not be
acknowledged. What a channel held when it closes comes back in one call, so each message to its
place. An answer that promises something beyond a crash is given when it is on disk.

Source: RabbitMQ's queue process, 2.8.2. There a publisher is told by a later confirm; here its
operation is answered then.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from brokerproof.reference.front.consumers import RankedConsumer
from brokerproof.reference.front.credit import Window
from brokerproof.reference.front.ranked_queue import RankedQueue
from brokerproof.reference.rabbitmq.disk.records import ID_BYTES
from brokerproof.reference.rabbitmq.process.consumer_line import ConsumerLine
from brokerproof.reference.rabbitmq.process.storage import NodeStorage
from brokerproof.spec.protocol.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from brokerproof.reference.front.consumers import Consumer, Mode
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.front.storage import Storage
    from brokerproof.reference.qpid.push.snapshots import Copies
    from brokerproof.reference.rabbitmq.process.sub_queues import SubQueues, Tag
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.protocol.messages import Order

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Message)


def message_in(body: bytes) -> Message:
    """Return the message that a stored body is."""
    return _DECODER.decode(body)


def id_of(message: Message) -> bytes:
    """Return the id by which the store knows a message; clients give no two of the same name."""
    return blake2b(message.id.encode(), digest_size=ID_BYTES).digest()


class HandedOut:
    """A message that somebody has; `tag` is what it is settled by, None if nothing is to be."""

    __slots__ = ("is_gone", "message", "redelivered", "tag", "taker")

    def __init__(
        self, message: Message, taker: RankedConsumer, tag: Tag | None, *, redelivered: bool
    ) -> None:
        self.message = message
        self.taker = taker
        self.tag = tag
        self.redelivered = redelivered
        self.is_gone = False

    def holder(self) -> RankedConsumer:
        """Return who has it."""
        return self.taker

    def is_dispensed(self) -> bool:
        """Whether its queue has gone."""
        return self.is_gone


class QueueProcess(RankedQueue[HandedOut]):
    """One queue; `unsettled` is what was handed out, in the order in which it was."""

    __slots__ = ("line", "storage", "sub_queues", "unsettled")

    def __init__(
        self,
        name: str,
        order: Order,
        outbox: Outbox,
        executor: Executor,
        storage: NodeStorage,
        sub_queues: SubQueues,
    ) -> None:
        super().__init__(name, order, outbox, executor)
        self.storage = storage
        self.sub_queues = sub_queues
        self.line = ConsumerLine()
        self.unsettled: dict[Tag, HandedOut] = {}

    def enqueue(self, message: Message, times: Times | None = None) -> None:
        """Take a message in, and past the queue to a consumer, if one has room."""
        assert times is None, "here nothing has a time"
        msg_id, body = id_of(message), _ENCODER.encode(message)
        kept = message.persistent and self.durable
        # Where something is ready, nobody has room (P1).
        consumer = self.line.next() if self.sub_queues.is_empty() else None
        if consumer is None:
            self.sub_queues.publish(
                message.priority, msg_id, body, persistent=message.persistent, confirm=kept
            )
        else:
            tag = self.sub_queues.publish_delivered(
                message.priority,
                msg_id,
                body,
                ack_required=not consumer.mode.settled_when_sent,
                persistent=message.persistent,
                confirm=kept,
            )
            self._hand_out(HandedOut(message, consumer, tag, redelivered=False))
        if kept:
            self.storage.sync()
            confirmed = self.sub_queues.drain_confirmed()
            assert msg_id in confirmed, "nobody is told that a message is safe that is not"

    def _hand_out(self, handed_out: HandedOut) -> None:
        has_room = handed_out.taker.allocate_credit(handed_out)
        assert has_room, "whose turn it is has room"
        if handed_out.tag is not None:
            self.unsettled[handed_out.tag] = handed_out
        self.outbox.send(handed_out.taker, handed_out)

    def run(self) -> None:
        """Hand out what is ready, until nothing is or nobody has room."""
        while not self.sub_queues.is_empty():
            consumer = self.line.next()
            if consumer is None:
                return
            self._fetch_for(consumer)

    def _fetch_for(self, taker: RankedConsumer) -> bool:
        fetched = self.sub_queues.fetch(ack_required=not taker.mode.settled_when_sent)
        if fetched is None:
            return False
        message = message_in(fetched.body)
        if fetched.tag is None and self.durable and message.persistent:
            # It is done with as it is sent, and nobody may see it again.
            self.storage.sync()
        self._hand_out(HandedOut(message, taker, fetched.tag, redelivered=fetched.redelivered))
        return True

    def credit_restored(self) -> None:
        """Note that a window that others share may have room; the process is told by mail."""
        if not any(isinstance(job, RunQueue) and job.queue is self for job in self.executor.jobs):
            self.executor.execute(RunQueue(self))

    def serve(self) -> None:
        """Serve those who have room again."""
        if self.line.unblock():
            self.run()

    def subscribe(self, subscription: RankedConsumer, others: Sequence[QueueProcess] = ()) -> bool:
        """Let a consumer stand in line, and serve it; say whether it was let in."""
        assert not others, "here a consumer is of one queue"
        if not self.registrations.enter(subscription.exclusive):
            return False
        subscription.open()
        self.line.add(subscription)
        self.run()
        return True

    def unsubscribe(self, subscription: RankedConsumer) -> bool:
        """Let a consumer leave; what it holds stays with its channel."""
        if not self.line.remove(subscription):
            return False
        subscription.close()
        self.registrations.leave()
        subscription.leave_channel()
        return True

    def get(self, channel: str, mode: Mode) -> bool:
        """Hand out the first message to whoever asks, past all who stand in line."""
        taker = self.new_subscription(consumer=None, channel=channel, mode=mode, credit=Window(1))
        taker.open()
        found = self._fetch_for(taker)
        taker.close()
        return found

    def set_limits(
        self, subscription: RankedConsumer, limit: int | None, byte_limit: int | None
    ) -> None:
        """Replace a consumer's window."""
        if subscription.set_limits(limit, byte_limit):
            self.serve()

    def remove(self, entry: HandedOut, subscription: RankedConsumer) -> None:
        """Settle a delivery for good."""
        self._take_back([entry], self.sub_queues.acknowledge)
        if self.durable and entry.message.persistent:
            self.storage.sync()
        if subscription.restore_credit(entry):
            self.serve()

    def release(self, deliveries: Iterable[tuple[HandedOut, RankedConsumer]]) -> None:
        """Return messages, each to its place, in one call."""
        returned = list(deliveries)
        self._take_back([entry for entry, _ in returned], self.sub_queues.requeue)
        for entry, taker in returned:
            taker.restore_credit(entry)
        # Those too who share the room of a channel stand in line before anything is handed out.
        self.line.unblock()
        self.run()

    def _take_back(self, entries: Sequence[HandedOut], settle: Callable[[list[Tag]], None]) -> None:
        tags = [entry.tag for entry in entries if entry.tag is not None]
        for tag in tags:
            del self.unsettled[tag]
        settle(tags)

    def purge(self) -> None:
        """Drop what is ready, for good."""
        self.sub_queues.purge()
        self.storage.sync()

    def come_to_rest(self, *, drained: bool) -> None:
        """Let the backing queues do what is due when nothing else happens."""
        del drained
        self.sub_queues.come_to_rest()

    def move_to(self, storage: Storage) -> None:
        """Have, as a copy, the messages of a copy of the disk."""
        assert isinstance(storage, NodeStorage)
        self.storage = storage
        self.sub_queues = self.sub_queues.on(storage.node)

    def drop_everything(self) -> list[RankedConsumer]:
        """Let all consumers leave, and drop all messages, those handed out too."""
        leaving = [each for each in self.line.everybody() if self.unsubscribe(each)]
        for handed_out in self.unsettled.values():
            handed_out.is_gone = True
        self.unsettled.clear()
        self.outbox.forget_what_has_gone()
        self.executor.withdraw(self)
        self.storage.delete(self.name, self.order)
        return leaving


class RunQueue:
    """The mail to a queue process that somebody may have room again."""

    __slots__ = ("queue",)

    def __init__(self, queue: QueueProcess) -> None:
        self.queue = queue

    def run(self) -> None:
        """Serve those who have room again."""
        self.queue.serve()

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Whether it is for the queue that leaves."""
        return leaving is self.queue

    def name(self) -> Hashable:
        """Return what tells it from other jobs."""
        return "run", self.queue.name

    def fork(self, copies: Copies) -> RunQueue:
        """Return the same mail to the copy of its queue."""
        queue = copies.queues[self.queue.name]
        assert isinstance(queue, QueueProcess)
        return RunQueue(queue)
