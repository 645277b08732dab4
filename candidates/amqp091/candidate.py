"""A broker behind AMQP 0-9-1 as a candidate: RabbitMQ and its classic queues.

The file translates operations into AMQP methods and deliveries into events, and keeps the names and
the unsettled deliveries that this needs. It does not judge the broker. It has one thread and no
callbacks in the background: events are told in the order of their connection, and nothing is read
between operations.

**Connections.** Each channel of the protocol is one AMQP channel on a connection of its own, since
real clients use separate connections; hence `event_order` is ``per_consumer``. Operations without a
channel (declare, publish, purge, delete) use one more, the control connection, and publish with
confirms. It never has a consumer, so an error that closes its channel loses nothing.

**When an operation has happened.** AMQP answers neither acknowledge nor release nor reject. Each is
followed by a passive declare of its queue on the same channel. The queue handles the two in this
order, so the answer means that the settlement took effect for every later request.

**When nothing more will come.** By then a queue has handed all possible deliveries to the channels
of its consumers, and RabbitMQ sends them before it answers a later request on the channel. So one
round trip (`basic.qos`, which only concerns later consumers) on each channel with consumers brings
in all of them, and `drain` never waits for silence. This was measured for RabbitMQ's classic
queues. It is known to be false for its quorum queues and for GarageMQ. Other brokers are therefore
refused: a drain that answers too early would accuse them of losing messages.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import time
from typing import assert_never

import amqp

from brokerproof.candidates.amqp091 import claims
from brokerproof.candidates.amqp091.claims import refused, unsupported
from brokerproof.candidates.amqp091.connection import (
    ANSWER_DEADLINE_S,
    CONNECT_DEADLINE_S,
    LOST,
    Address,
    Deadline,
    told_as_errors,
)
from brokerproof.candidates.amqp091.crashes import Crashes
from brokerproof.candidates.amqp091.example import Actor, Example, Place, Queue
from brokerproof.candidates.amqp091.pool import Pool
from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed, Delivered, Error
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.claimed import unclaimed
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Extend,
    Flush,
    Get,
    Inspect,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
    Settlement,
    name_of,
)

CHANNELS_MAX = 256

OK = None
"""The result of a step that was carried out."""


class Amqp091Candidate:
    """The broker at `url`, such as ``amqp091://guest:guest@127.0.0.1:5672/``.

    Construction connects, and raises `CandidateUnavailable` when that fails or when the broker is
    not RabbitMQ. Queues are not exclusive, and have names that no other program uses; `reset` and
    `close` delete them. Close the candidate when done.

    With `power` over the broker, it can claim `durable`; the candidate then owns that power.
    """

    def __init__(self, url: str, power: Power | None = None) -> None:
        address = Address.parse(url)
        self._deadline = Deadline()
        self._deadline.start(CONNECT_DEADLINE_S)
        self._pool = Pool(address, self._deadline)
        name, version = self._pool.control_connection.product
        if (why := claims.unfit(name, version, durable=power is not None)) is not None:
            self._pool.close()
            raise CandidateUnavailable(str(address), what=why[0], remedy=why[1])
        self._crashes = None if power is None else Crashes(power, self._pool, self._deadline)
        self._hello = Hello(
            name=name,
            version=version,
            capabilities=claims.capabilities(durable=power is not None),
        )
        self._prefix = f"brokerproof.{secrets.token_hex(6)}"
        self._names_made = 0
        self._to_delete: list[str] = []
        self._now = Example()

    def hello(self) -> Hello:
        """Return the broker's own name and version, and the claims of its classic queues."""
        return self._hello

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation; a fault of the broker is an answer, never an exception."""
        if isinstance(operation, Reset):
            return self._reset()
        now = self._now
        if now.fault is not None:
            return Answer(error=now.fault)
        if now.is_down and not isinstance(operation, Restart):
            return Answer(error=refused("the broker is down"))
        self._deadline.start(ANSWER_DEADLINE_S)
        try:
            error = self._carry_out(operation)
        except TimeoutError:
            # The answer may still come, and would be taken for that of a later operation.
            error = Error("timeout", f"no answer within {ANSWER_DEADLINE_S:.0f} s")
            now.fault = Error("timeout", f"{name_of(operation)} was not answered; reset to go on")
        except amqp.ChannelError as closed:
            # A channel with unsettled deliveries has gone, and they have gone with it.
            error = now.fault = Error("internal", f"the broker closed a channel: {closed}")
        except LOST as lost:
            error, now.fault = told_as_errors(lost, durable=self._crashes is not None)
        events, now.told = tuple(now.told), []
        return Answer(events, error)

    def close(self) -> None:
        """Delete our queues and close all connections; a broker of our own ends with them.

        Another broker that we have killed is started again. One that has gone is no error.
        """
        crashes = self._crashes
        if crashes is not None and crashes.power.is_ours:
            crashes.power.close()
            with contextlib.suppress(amqp.AMQPError, OSError, CandidateUnavailable):
                self._pool.close()
            return
        try:
            with contextlib.suppress(amqp.AMQPError, OSError, CandidateUnavailable):
                if self._now.is_down and crashes is not None:
                    crashes.come_up()
                    self._now = Example()
                self._deadline.start(ANSWER_DEADLINE_S)
                if not self._now.is_down:
                    self._leave()
            self._deadline.start(ANSWER_DEADLINE_S)
            self._pool.close()
        finally:
            if crashes is not None:
                crashes.power.close()

    def _carry_out(self, operation: Operation) -> Error | None:
        if missing := unclaimed(operation, self.hello().capabilities):
            return unsupported(missing)
        match operation:
            case Declare():
                return self._declare(operation)
            case Publish():
                return self._publish(operation)
            case Consume():
                return self._consume(operation)
            case Cancel():
                return self._cancel(operation)
            case Get():
                return self._get(operation)
            case Acknowledge() | Release() | Reject():
                return self._settle(operation)
            case CloseChannel():
                return self._close_channel(operation)
            case Purge():
                return self._purge(operation)
            case Delete():
                return self._delete(operation)
            case Drain():
                return self._drain()
            case Crash():
                return self._crash()
            case Restart():
                return self._restart()
            case SetCredit() | Inspect() | Flush() | Advance() | Extend():
                raise AssertionError("it is not claimed")
            case Reset():
                raise AssertionError("a reset is carried out elsewhere")
            case _:
                assert_never(operation)

    # Without a channel: the control channel holds nothing, so an error that closes it is a refusal.

    def _declare(self, operation: Declare) -> Error | None:
        arguments = claims.queue_arguments(operation.order)
        known = self._now.queues.get(operation.queue)
        if known is None:
            known = Queue(self._name_at_broker(operation.queue), operation)
        elif known.declared != operation and arguments == claims.queue_arguments(
            known.declared.order
        ):
            return refused("the queue exists with another order, or other options")
        try:
            self._pool.control.queue_declare(
                known.name, durable=operation.durable, auto_delete=False, arguments=arguments
            )
        except amqp.ChannelError as closed:
            return refused(str(closed))
        self._now.note_declared(operation.queue, known)
        return OK

    def _name_at_broker(self, queue: str) -> str:
        """Return a queue's name at the broker: new in each example, the same within one."""
        name = self._now.names.get(queue)
        if name is None:
            self._names_made += 1
            name = self._now.names[queue] = f"{self._prefix}.{self._names_made}"
            self._to_delete.append(name)
        return name

    def _publish(self, operation: Publish) -> Error | None:
        queue = self._now.queues.get(operation.queue)
        message = operation.message
        if queue is None:
            return self._no_queue(operation)
        if (error := claims.unsendable(message)) is not None:
            return error
        sent = amqp.Message(
            bytes(message.size),
            message_id=message.id,
            priority=message.priority,
            delivery_mode=2 if message.persistent else 1,
            application_headers=dict(message.properties),
        )
        self._pool.returned.clear()
        self._now.note_published(message.id)
        try:
            self._pool.control.basic_publish_confirm(sent, routing_key=queue.name, mandatory=True)
        except amqp.ChannelError as closed:
            return refused(str(closed))
        except amqp.exceptions.MessageNacked:
            return Error("internal", "the broker answered the message with basic.nack")
        if self._pool.returned:
            return refused(f"the broker returned the message: {self._pool.returned[0]}")
        return OK

    def _purge(self, operation: Purge) -> Error | None:
        queue = self._now.queues.get(operation.queue)
        if queue is None:
            return self._no_queue(operation)
        try:
            self._pool.control.queue_purge(queue.name)
        except amqp.ChannelError as closed:
            return refused(str(closed))
        self._now.note_settled(operation.queue)
        return OK

    def _delete(self, operation: Delete) -> Error | None:
        now = self._now
        queue = now.queues.get(operation.queue)
        if queue is None:
            return self._no_queue(operation)
        try:
            self._pool.control.queue_delete(queue.name)
        except amqp.ChannelError as closed:
            return refused(str(closed))
        # The broker tells each consumer in its own time that the queue has gone, after all the
        # queue's deliveries. Only this is waited for, because it must come.
        for consumer in sorted(queue.consumers):
            actor = now.actors[now.consumers[consumer].channel]
            while actor.connection.announces_cancelled_consumers and consumer in now.consumers:
                actor.connection.drain_events()
            now.forget_consumer(consumer)
        now.forget_queue(operation.queue)
        return OK

    # With a channel.

    def _actor(self, name: str) -> Actor | None:
        """Return the channel `name`, made by its first use, or None when there are too many."""
        actor = self._now.actors.get(name)
        if actor is None and len(self._now.actors) < CHANNELS_MAX:
            connection = self._pool.take()
            actor = self._now.actors[name] = Actor(connection, connection.channel())
        return actor

    def _consume(self, operation: Consume) -> Error | None:
        now, name = self._now, operation.consumer
        queue = now.queues.get(operation.queue)
        if (error := claims.unfit_window(operation)) is not None:
            return error
        if queue is None:
            return self._no_queue(operation)
        if name in now.consumers:
            return refused(f"consumer {name} is in use")
        if (actor := self._actor(operation.channel)) is None:
            return refused(f"there are {CHANNELS_MAX} channels already")
        now.consumers_made += 1
        # A tag of ours, since the protocol's names may be longer than AMQP allows.
        tag = f"c{now.consumers_made}"
        # All is in place before the broker answers, since deliveries may come with the answer.
        now.consumers[name] = Place(operation.channel, operation.queue, tag)
        actor.consumers.add(name)
        queue.consumers.add(name)
        actor.channel.callbacks[tag] = take = functools.partial(self._delivered, operation)
        actor.channel.basic_qos(0, operation.credit.messages or 0, False)
        actor.channel.basic_consume(
            queue.name,
            tag,
            no_ack=operation.mode == "automatic",
            callback=take,
            on_cancel=lambda _tag: self._closed_by_broker(name),
        )
        return OK

    def _cancel(self, operation: Cancel) -> Error | None:
        place = self._now.consumers.get(operation.consumer)
        if place is None:
            return refused(f"there is no consumer {operation.consumer}")
        channel = self._now.actors[place.channel].channel
        take = channel.callbacks[place.tag]
        channel.basic_cancel(place.tag)
        # py-amqp would silently return a delivery that comes after this, and hide a fault.
        channel.callbacks[place.tag] = take
        self._now.forget_consumer(operation.consumer)
        return OK

    def _get(self, operation: Get) -> Error | None:
        queue = self._now.queues.get(operation.queue)
        if queue is None:
            return self._no_queue(operation)
        if (actor := self._actor(operation.channel)) is None:
            return refused(f"there are {CHANNELS_MAX} channels already")
        message = actor.channel.basic_get(queue.name, no_ack=operation.mode == "automatic")
        if message is not None:
            self._delivered(operation, message)
        return OK

    def _settle(self, operation: Settlement) -> Error | None:
        place = self._now.unsettled.pop(operation.delivery, None)
        if place is None:
            return refused(f"there is no unsettled delivery {operation.delivery}")
        channel = self._now.actors[place.channel].channel
        match operation:
            case Acknowledge():
                channel.basic_ack(place.tag)
            case Release():
                channel.basic_reject(place.tag, requeue=True)
            case Reject():
                channel.basic_reject(place.tag, requeue=False)
            case _:
                assert_never(operation)
        channel.queue_declare(self._now.queues[place.queue].name, passive=True)
        self._now.note_settled(place.queue)
        return OK

    def _close_channel(self, operation: CloseChannel) -> Error | None:
        now, name = self._now, operation.channel
        actor = now.actors.get(name)
        if actor is None:
            return OK
        # Deliveries on their way to the channel would return unseen, but marked as redelivered.
        self._drain()
        actor.channel.close()
        held = [delivery for delivery, place in now.unsettled.items() if place.channel == name]
        touched = {now.unsettled.pop(delivery).queue for delivery in held}
        for consumer in sorted(actor.consumers):
            now.forget_consumer(consumer)
        del now.actors[name]
        self._pool.give_back(actor.connection)
        # RabbitMQ returns the messages before it answers, but AMQP does not require that.
        for queue in sorted(touched):
            self._pool.control.queue_declare(now.queues[queue].name, passive=True)
        return OK

    def _drain(self) -> Error | None:
        for actor in self._now.actors.values():
            if actor.consumers:
                actor.channel.basic_qos(0, 0, False)
        return OK

    # Crash and restart.

    def _crash(self) -> Error | None:
        """Tell all deliveries until now (rule 2), then kill the broker."""
        if self._crashes is None:
            return unsupported("no way is known to crash the broker")
        self._drain()
        time.sleep(self._now.on_disk_in_s())
        self._now.crash()
        self._crashes.crash()
        return OK

    def _restart(self) -> Error | None:
        if self._crashes is None:
            return unsupported("no way is known to start the broker")
        if not self._now.is_down:
            return refused("the broker is up")
        try:
            self._crashes.come_up()
        except CandidateUnavailable as unavailable:
            return refused(f"the broker did not come back: {unavailable}")
        self._now.is_down = False
        before = self._now.queues
        self._now.queues, gone = self._crashes.still_there(before)
        self._now.lost = {name: why for name, why in gone.items() if before[name].declared.durable}
        return OK

    def _no_queue(self, operation: Publish | Purge | Delete | Consume | Get) -> Error:
        there_is_none = f"there is no queue {operation.queue}"
        why = self._now.lost.get(operation.queue)
        return refused(there_is_none if why is None else f"{there_is_none} since a restart: {why}")

    # Messages from the broker.

    def _delivered(self, subscriber: Consume | Get, message: amqp.Message) -> None:
        now = self._now
        now.deliveries_made += 1
        delivery = f"d{now.deliveries_made}"
        about = message.delivery_info
        if subscriber.mode == "acknowledge":
            place = Place(subscriber.channel, subscriber.queue, about["delivery_tag"])
            now.unsettled[delivery] = place
        else:
            now.note_settled(subscriber.queue)
        name = str(message.properties.get("message_id", ""))
        now.told.append(
            Delivered(
                delivery=delivery,
                consumer=subscriber.consumer if isinstance(subscriber, Consume) else None,
                queue=subscriber.queue,
                message=name,
                redelivered=now.is_redelivered(name, flag=bool(about["redelivered"])),
            )
        )

    def _closed_by_broker(self, consumer: str) -> None:
        self._now.told.append(ConsumerClosed(consumer=consumer))
        self._now.forget_consumer(consumer)

    # From one example to the next.

    def _reset(self) -> Answer:
        # Half of the time is for leaving, the other half for connecting anew if that fails.
        self._deadline.start(ANSWER_DEADLINE_S / 2)
        left = False
        if self._now.fault is None and not self._now.is_down:
            with contextlib.suppress(amqp.AMQPError, OSError):
                self._leave()
                left = True
        was_down = self._now.is_down
        error = None if left else self._begin_anew()
        self._now = Example()
        if error is not None:
            self._now.fault = refused("the broker cannot be reached; reset to try again")
            self._now.is_down = was_down
        return Answer(error=error)

    def _leave(self) -> None:
        # Channels first: a queue that goes would tell its consumers.
        for actor in self._now.actors.values():
            actor.channel.close()
            self._pool.give_back(actor.connection)
        self._delete_queues()

    def _delete_queues(self) -> None:
        while self._to_delete:
            self._pool.control.queue_delete(self._to_delete[-1])
            self._to_delete.pop()

    def _begin_anew(self) -> Error | None:
        self._deadline.start(ANSWER_DEADLINE_S / 2)
        try:
            if self._crashes is None:
                self._pool.renew()
            else:
                self._crashes.come_up()
                self._deadline.start(ANSWER_DEADLINE_S)
            self._delete_queues()
        except CandidateUnavailable as unavailable:
            return Error("crashed", str(unavailable))
        except (amqp.AMQPError, OSError) as lost:
            return Error("internal", f"the new connection was lost at once: {described(lost)}")
        return OK
