"""A broker behind AMQP 0-9-1 as a candidate: operations as methods, deliveries as events.

`wire/` holds what brokers of all protocols share, and the profile what is special to one broker.
Publishes are confirmed. An error that closes the control channel loses nothing, since the channel
never has a consumer.

**When an operation has happened.** AMQP answers neither acknowledge nor release nor reject. Each is
followed by a passive declare of its queue on the same channel. The queue handles the two in this
order, so the answer means that the settlement took effect for every later request.

**Windows.** RabbitMQ gives each consumer the window of the last `basic.qos` before it. The
specification and Broker-J have one window for a channel, which its consumers share. There, each
consumer has an AMQP channel of its own, on the connection of its channel of driver protocol 1.
"""

from __future__ import annotations

import functools
import secrets
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

import amqp

from brokerproof.candidates.amqp091.connection import (
    CLOSED,
    Connection,
    connect,
    heard,
    told_as_errors,
)
from brokerproof.candidates.amqp091.dialect import LIMITS, PREFETCH_MAX, Dialect, unfit_window
from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.barrier import PATIENCE, Patience
from brokerproof.candidates.wire.candidate import OK, WireCandidate
from brokerproof.candidates.wire.deadline import CONNECT_DEADLINE_S, Deadline
from brokerproof.candidates.wire.errors import refused
from brokerproof.candidates.wire.example import Place, Queue
from brokerproof.candidates.wire.owed import queues_of
from brokerproof.candidates.wire.pool import Pool
from brokerproof.candidates.wire.profile import Profile, profile_for
from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.answers import Error
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Consume,
    Declare,
    Get,
    Reject,
    Release,
    Settlement,
)

QOS, PASSIVE_DECLARE = "qos", "passive_declare"

RETURN_S_MAX = 1.0
"""How long a drain waits for what a closed channel held by gets alone.

RabbitMQ 3.10.8 returns it after its answer (`rabbit_channel:notify_queues` asks only the queues of
consumers): when the queue hears that the channel's process has ended.
"""


class Tag(NamedTuple):
    """How a channel of AMQP names a consumer (a text) or a delivery (a number)."""

    channel: amqp.Channel
    tag: str | int


@dataclass
class Actor:
    """A channel of driver protocol 1: a connection, its first channel, and those of consumers."""

    connections: list[Connection]
    first: amqp.Channel
    others: list[amqp.Channel] = field(default_factory=list)


class Amqp091Candidate(WireCandidate[Actor, Tag]):
    """The broker at `url`, such as ``amqp091://guest:guest@127.0.0.1:5672/``.

    Construction connects, and raises `CandidateUnavailable` when that fails or when there is no
    profile for the broker. Close the candidate when done.
    """

    LOST = CLOSED
    REQUESTS = (QOS, PASSIVE_DECLARE)

    def __init__(self, url: str, power: Power | None = None) -> None:
        address = Address.parse(url, "amqp091")
        deadline = Deadline()
        deadline.start(CONNECT_DEADLINE_S)
        self._address = address
        self._pool = Pool(lambda: connect(self._address, deadline), CLOSED)
        self._returned: list[str] = []
        self._exclusive: set[str] = set()
        self._late = Patience(RETURN_S_MAX / PATIENCE)
        self._returns_late = False
        try:
            product = self._pool.control.product
            profile = profile_for(address, *product)
            self._dialect = _dialect(profile)
            # A queue that is there as long as the candidate.
            self._anchor = ""
            if profile.barrier.request == PASSIVE_DECLARE or profile.claims.auto_delete:
                self._anchor = f"brokerproof.{secrets.token_hex(6)}.anchor"
            self._open_control()
            super().__init__(address, deadline, profile, product, power)
        except BaseException:
            self._pool.drop()
            raise

    def _open_control(self) -> None:
        self._control = _first_channel(self._pool.control, self._address)
        self._control.events["basic_return"].add(lambda why, *_: self._returned.append(str(why)))
        if self._anchor:
            self._control.queue_declare(self._anchor, auto_delete=False)

    # Without a channel: the control channel holds nothing, so an error that closes it is a refusal.

    def _make(self, queue: Queue) -> Error | None:
        declared = queue.declared
        try:
            self._control.queue_declare(
                queue.name,
                durable=declared.durable,
                auto_delete=declared.auto_delete,
                arguments=self._dialect.of_order(declared.order),
            )
        except amqp.ChannelError as closed:
            return refused(str(closed))
        return OK

    def _looks_alike(self, one: Declare, other: Declare) -> bool:
        return self._dialect.look_alike(one, other)

    def _send(self, queue: Queue, message: Message) -> Error | None:
        if (error := LIMITS.unsendable(message)) is not None:
            return error
        sent = amqp.Message(
            bytes(message.size),
            message_id=message.id,
            priority=message.priority,
            delivery_mode=2 if message.persistent else 1,
            application_headers=dict(message.properties),
        )
        self._returned.clear()
        try:
            self._control.basic_publish_confirm(sent, routing_key=queue.name, mandatory=True)
        except amqp.ChannelError as closed:
            return refused(str(closed))
        except amqp.exceptions.MessageNacked:
            # Broker-J returns a message after its nack (deliverCurrentMessageIfComplete).
            self._control.basic_qos(0, 0, False)
            if not self._returned:
                return Error("internal", "the broker answered the message with basic.nack")
        if self._returned:
            return refused(f"the broker returned the message: {self._returned[0]}")
        return OK

    def _clear(self, queue: Queue) -> Error | None:
        try:
            self._control.queue_purge(queue.name)
        except amqp.ChannelError as closed:
            return refused(str(closed))
        return OK

    def _remove(self, name: str) -> Error | None:
        try:
            self._control.queue_delete(name)
        except amqp.NotFound:
            return OK
        except amqp.ChannelError as closed:
            return refused(str(closed))
        return OK

    def _why_gone(self, queue: Queue) -> str:
        try:
            self._control.queue_declare(queue.name, passive=True)
        except amqp.NotFound as not_found:
            return str(not_found)
        return ""

    # With a channel.

    def _open(self) -> Actor:
        connection = self._pool.take()
        return Actor([connection], connection.channel())

    def _subscribe(self, channel: Actor, operation: Consume) -> Error | None:
        now, name = self._now, operation.consumer
        if (error := unfit_window(operation, pauses=self._dialect.pauses)) is not None:
            return error
        queues = [now.queues[queue].name for queue in queues_of(operation)]
        arguments = self._dialect.of_consumer(operation, queues)
        if isinstance(arguments, Error):
            return arguments
        at = channel.first
        if self._dialect.channel_per_consumer:
            at = self._channel_of_a_consumer(channel, operation)
        now.consumers_made += 1
        # A tag of ours, since the protocol's names may be longer than AMQP allows.
        tag = f"c{now.consumers_made}"
        self._exclusive -= {name}
        if operation.exclusive:
            self._exclusive.add(name)
        # All is in place before the broker answers, since deliveries may come with the answer.
        now.note_consumer(operation, Tag(at, tag))
        at.callbacks[tag] = take = functools.partial(self._delivered, operation, at)
        at.closed_by_broker[tag] = closed = functools.partial(self._closed_by_broker, name)
        _set_window(at, operation.credit.messages)
        try:
            at.basic_consume(
                queues[0],
                tag,
                no_ack=operation.mode == "automatic",
                exclusive=operation.exclusive,
                callback=take,
                on_cancel=lambda _tag: closed(),
                arguments=arguments,
            )
        except amqp.ChannelError as error:
            if at is channel.first or not self._drop(channel, at):
                raise
            now.forget_consumer(name)
            return refused(str(error))
        return OK

    def _channel_of_a_consumer(self, channel: Actor, operation: Consume) -> amqp.Channel:
        """Open an AMQP channel; on a connection of its own if the consumer is, or meets, exclusive.

        Broker-J refuses such a consumer by closing the connection.
        """
        connection = channel.connections[0]
        queues = [self._now.queues[name] for name in queues_of(operation)]
        if operation.exclusive or any(self._exclusive & queue.consumers for queue in queues):
            connection = self._pool.take()
            channel.connections.append(connection)
        at = connection.channel()
        channel.others.append(at)
        return at

    def _drop(self, channel: Actor, at: amqp.Channel) -> bool:
        """Drop a consumer's channel that the broker has closed, and return whether that was all.

        Its connection may have gone too; that is all only if it was this consumer's alone.
        """
        channel.others.remove(at)
        for connection in channel.connections[1:]:
            if connection is at.connection or not connection.connected:
                channel.connections.remove(connection)
                self._pool.discard(connection)
                connection.collect()
        return bool(channel.connections[0].connected)

    def _widen(self, channel: Actor, operation: Consume, place: Place[Tag]) -> None:  # noqa: ARG002
        _set_window(place.handle.channel, operation.credit.messages)
        if operation.credit.messages != 0:
            place.handle.channel.flow(True)

    def _stop(self, channel: Actor, consumer: str, place: Place[Tag]) -> None:  # noqa: ARG002
        at, tag = place.handle
        take = at.callbacks[tag]
        at.closed_by_broker.pop(tag, None)
        at.basic_cancel(tag)
        # py-amqp would silently return a delivery that comes after this, and hide a fault.
        at.callbacks[tag] = take

    def _take(self, channel: Actor, operation: Get) -> Error | None:
        name = self._now.queues[operation.queue].name
        message = channel.first.basic_get(name, no_ack=operation.mode == "automatic")
        if message is not None:
            self._delivered(operation, channel.first, message)
        return OK

    def _settle_at(self, operation: Settlement, place: Place[Tag]) -> Error | None:
        at, tag = place.handle
        match operation:
            case Acknowledge():
                at.basic_ack(tag)
            case Release():
                at.basic_reject(tag, requeue=True)
            case Reject():
                at.basic_reject(tag, requeue=False)
            case _:
                assert_never(operation)
        queue = self._now.queues[place.queues[0]]
        if queue.declared.auto_delete:
            # Asked for a queue that has deleted itself, the broker would close the channel.
            at.queue_declare(self._anchor, passive=True)
            self._why_gone(queue)
        else:
            at.queue_declare(queue.name, passive=True)
        return OK

    def _shut(self, channel: Actor) -> None:
        # No consumer is left when the first message returns: one step, as far as AMQP allows.
        if channel.others:
            for name, place in list(self._now.consumers.items()):
                if place.handle.channel in channel.others and name in self._now.consumers:
                    self._stop(channel, name, place)
        own = (*channel.others, channel.first)
        held, read = (
            {queue for at in places.values() if at.handle.channel in own for queue in at.queues}
            for places in (self._now.unsettled, self._now.consumers)
        )
        for at in own:
            at.close()
        for connection in channel.connections:
            self._pool.give_back(connection)
        # RabbitMQ returns the messages before it answers, but AMQP does not require that. A queue
        # that deletes itself may have gone with its last consumer, which is asked for later.
        for queue in sorted(held):
            self._why_gone(self._now.queues[queue])
        self._returns_late |= not held <= read

    def _drain(self) -> Error | None:
        error = super()._drain()
        if not self._returns_late:
            return error
        self._returns_late = False
        self._late.await_owed(self._now, self._hear)
        return super()._drain()

    def _await_closings(self, queue: Queue) -> None:
        # The broker tells each consumer in its own time that the queue has gone, after all the
        # queue's deliveries. Only this is waited for, because it must come.
        for consumer in sorted(queue.consumers):
            place = self._now.consumers[consumer]
            connection = place.handle.channel.connection
            while connection.announces_cancelled_consumers and consumer in self._now.consumers:
                connection.drain_events()
        super()._await_closings(queue)

    def _round_trip(self, channel: Actor, request: str) -> None:
        first_of_each = {at.connection: at for at in (*reversed(channel.others), channel.first)}
        for at in first_of_each.values():
            if request == QOS:
                at.basic_qos(0, 0, False)
            else:
                at.queue_declare(self._anchor, passive=True)

    def _hear(self, seconds: float) -> bool:
        actors = self._now.channels.values()
        return heard([each for actor in actors for each in actor.connections], seconds)

    def _renew(self) -> None:
        self._pool.renew()
        self._open_control()

    def _hang_up(self) -> None:
        try:
            if self._anchor:
                self._remove(self._anchor)
        finally:
            self._pool.close()

    def _lost_as_errors(self, lost: Exception) -> tuple[Error, Error]:
        if isinstance(lost, amqp.ChannelError):
            # A channel with unsettled deliveries has gone, and they have gone with it.
            error = Error("internal", f"the broker closed a channel: {lost}")
            return error, error
        return told_as_errors(lost, durable=self._crashes is not None)

    def _delivered(
        self, subscriber: Consume | Get, at: amqp.Channel, message: amqp.Message
    ) -> None:
        about = message.delivery_info
        queue = None
        if isinstance(subscriber, Consume) and subscriber.queues:
            queue = self._now.queue_at_broker(str(about["routing_key"]))
        self._now.note_delivered(
            subscriber,
            str(message.properties.get("message_id", "")),
            queue=queue,
            redelivered=bool(about["redelivered"]),
            handle=Tag(at, about["delivery_tag"]),
        )


def _set_window(at: amqp.Channel, window: int | None) -> None:
    if window == 0:
        at.flow(False)
    else:
        at.basic_qos(0, min(window or 0, PREFETCH_MAX), False)


def _first_channel(control: Connection, address: Address) -> amqp.Channel:
    try:
        return control.channel()
    except CLOSED as error:
        control.collect()
        raise CandidateUnavailable(
            str(address),
            what=f"the first channel failed with {described(error)}",
            remedy="look into the broker's log",
        ) from error


def _dialect(profile: Profile) -> Dialect:
    dialect = profile.read_dialect(Dialect)
    if lacking := dialect.missing(profile.claims):
        raise CandidateUnavailable(
            f"profile {profile.name}",
            what=f"its claims need {lacking} in [dialect]",
            remedy="name the broker's argument, or do not claim it",
        )
    return dialect
