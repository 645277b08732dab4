"""The queue process: it delivers the messages of its backing queues to the consumers in line.

Owns the start of deliveries, and the deliveries that are not settled. Between two operations no
consumer in line has room, or nothing is ready (P1). `consumer_line` owns the turns, the backing
queues the messages.

An arrival goes straight to a consumer with room, and past the queue if it needs no acknowledgement.
A closing channel returns its messages in one call, each to its place. An answer that promises
something beyond a crash is given when it is on disk.

Source: RabbitMQ's queue process, 2.8.2. There a later confirm tells a publisher; here the answer of
its operation does.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from brokerproof.reference.front.consumers import RankedConsumer, Terms
from brokerproof.reference.front.credit import Window
from brokerproof.reference.front.ranked_queue import RankedQueue
from brokerproof.reference.rabbitmq.disk.records import ID_BYTES
from brokerproof.reference.rabbitmq.process.consumer_line import ConsumerLine
from brokerproof.reference.rabbitmq.process.storage import NodeStorage
from brokerproof.spec.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from brokerproof.reference.front.consumers import Consumer, Mode
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.rabbitmq.process.sub_queues import SubQueues, Tag
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.messages import Order

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Message)


def message_in(body: bytes) -> Message:
    """Return the message of a stored body."""
    return _DECODER.decode(body)


def id_of(message: Message) -> bytes:
    """Return the store's id of a message; clients use each name once."""
    return blake2b(message.id.encode(), digest_size=ID_BYTES).digest()


class HandedOut:
    """A delivered message; `tag` settles it, None if it needs no settlement."""

    __slots__ = ("is_gone", "message", "redelivered", "subscriber", "tag")

    def __init__(
        self, message: Message, subscriber: RankedConsumer, tag: Tag | None, *, redelivered: bool
    ) -> None:
        self.message = message
        self.subscriber = subscriber
        self.tag = tag
        self.redelivered = redelivered
        self.is_gone = False

    def holder(self) -> RankedConsumer:
        """Return the consumer that holds it."""
        return self.subscriber

    def is_dispensed(self) -> bool:
        """Return whether its queue has been deleted."""
        return self.is_gone


class QueueProcess(RankedQueue[HandedOut]):
    """One queue; `unsettled` has the unsettled deliveries in their order."""

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
        """Add a message, or pass it to a consumer with room."""
        assert times is None, "here nothing has a time"
        msg_id, body = id_of(message), _ENCODER.encode(message)
        kept = message.persistent and self.durable
        # While a message is ready, no consumer has room (P1).
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
            assert msg_id in confirmed, "a kept message is on disk before its publish is answered"

    def _hand_out(self, handed_out: HandedOut) -> None:
        has_room = handed_out.subscriber.allocate_credit(handed_out)
        assert has_room, "the line gives only consumers with room"
        if handed_out.tag is not None:
            self.unsettled[handed_out.tag] = handed_out
        self.outbox.send(handed_out.subscriber, handed_out)

    def run(self) -> None:
        """Deliver ready messages until there are none, or no consumer has room."""
        while not self.sub_queues.is_empty():
            consumer = self.line.next()
            if consumer is None:
                return
            self._fetch_for(consumer)

    def _fetch_for(self, subscriber: RankedConsumer) -> bool:
        fetched = self.sub_queues.fetch(ack_required=not subscriber.mode.settled_when_sent)
        if fetched is None:
            return False
        message = message_in(fetched.body)
        if fetched.tag is None and self.durable and message.persistent:
            # Sending settles it, and it must not be delivered again.
            self.storage.sync()
        self._hand_out(HandedOut(message, subscriber, fetched.tag, redelivered=fetched.redelivered))
        return True

    def credit_restored(self) -> None:
        """Note that a shared window may have room; the process gets this as mail."""
        if not any(isinstance(job, RunQueue) and job.queue is self for job in self.executor.jobs):
            self.executor.execute(RunQueue(self))

    def serve(self) -> None:
        """Serve the consumers that have room again."""
        if self.line.unblock():
            self.run()

    def subscribe(self, subscription: RankedConsumer, others: Sequence[QueueProcess] = ()) -> bool:
        """Put a consumer in line and serve it; return whether it was accepted."""
        assert not others, "here a consumer is of one queue"
        if not self.registrations.enter(subscription.exclusive):
            return False
        subscription.open()
        self.line.add(subscription)
        self.run()
        return True

    def unsubscribe(self, subscription: RankedConsumer) -> bool:
        """Remove a consumer; its deliveries stay with its channel."""
        if not self.line.remove(subscription):
            return False
        subscription.close()
        self.registrations.leave()
        subscription.leave_channel()
        return True

    def get(self, channel: str, mode: Mode) -> bool:
        """Deliver the first message to a `get`, ahead of all consumers in line."""
        subscriber = self.new_subscription(Terms(channel, mode, Window(1)))
        subscriber.open()
        found = self._fetch_for(subscriber)
        subscriber.close()
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
        for entry, subscriber in returned:
            subscriber.restore_credit(entry)
        # Consumers that share the channel's window come back into line before any delivery.
        self.line.unblock()
        self.run()

    def _take_back(self, entries: Sequence[HandedOut], settle: Callable[[list[Tag]], None]) -> None:
        tags = [entry.tag for entry in entries if entry.tag is not None]
        for tag in tags:
            del self.unsettled[tag]
        settle(tags)

    def purge(self) -> None:
        """Drop the ready messages for good."""
        self.sub_queues.purge()
        self.storage.sync()

    def come_to_rest(self, *, drained: bool) -> None:
        """Let the backing queues do the work that is due at rest."""
        del drained
        self.sub_queues.come_to_rest()

    def drop_everything(self) -> list[RankedConsumer]:
        """Remove all consumers and drop all messages, delivered ones too."""
        leaving = [each for each in self.line.consumers() if self.unsubscribe(each)]
        for handed_out in self.unsettled.values():
            handed_out.is_gone = True
        self.unsettled.clear()
        self.outbox.forget_what_has_gone()
        self.executor.withdraw(self)
        self.storage.delete(self.name, self.order)
        return leaving

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for queues that behave alike on equal disks.

        The node names the sequence numbers of tags; here they are named by their order.
        """
        places: dict[int, list[int]] = {}
        for tag in self.unsettled:
            places.setdefault(tag.level, []).append(tag.seq)
        for seqs in places.values():
            seqs.sort()
        return (
            self.name,
            self.order,
            self.auto_delete,
            self.durable,
            tuple([each.fingerprint() for each in self.line.active]),
            tuple([each.fingerprint() for each in self.line.blocked]),
            tuple(
                [
                    (
                        tag.level,
                        places[tag.level].index(tag.seq),
                        held.message.id,
                        held.redelivered,
                        held.subscriber.channel,
                        None if held.subscriber.is_closed() else held.subscriber.consumer,
                    )
                    for tag, held in self.unsettled.items()
                ]
            ),
        )


class RunQueue:
    """The mail to a queue process that a consumer may have room again."""

    __slots__ = ("queue",)

    def __init__(self, queue: QueueProcess) -> None:
        self.queue = queue

    def run(self) -> None:
        """Serve the consumers that have room again."""
        self.queue.serve()

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Return whether `leaving` is its queue."""
        return leaving is self.queue

    def name(self) -> Hashable:
        """Return a value that tells it from other jobs."""
        return "run", self.queue.name
