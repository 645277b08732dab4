"""A broker behind AMQP 1.0 as a candidate: operations as links, flows and dispositions.

`wire/` holds what brokers of all protocols share, and the profile what is special to one broker. A
channel of driver protocol 1 is a session on a connection of its own. A consumer is a receiving
link. A window is credit: each settlement gives what it frees.

**Order of frames.** The engine writes a flow before a disposition that was made earlier. So a
settlement is flushed before the credit that it frees: else the broker would pass over a message
that returns.

**When an operation has happened.** A disposition is not answered. A request on the same connection
follows it (`Dialect.round_trip`); its answer means that the disposition was handled before.

**Cancel.** A link that is detached gives its messages back. So a cancelled consumer's link is
drained, and stays as long as it holds something. To take its credit back is not enough: a message
that Artemis is sending then stays with the link until that has credit again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

import proton
from proton import reactor

from brokerproof.candidates.amqp10.connection import (
    LOST,
    Closed,
    Connection,
    LinkT,
    connect,
    heard,
)
from brokerproof.candidates.amqp10.dialect import (
    CREDIT_MAX,
    LIMITS,
    Dialect,
    credit_of,
    unfit_window,
)
from brokerproof.candidates.amqp10.queues import GONE, Queues, QueuesByUse, QueuesOverAmqp091
from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.candidate import OK, WireCandidate
from brokerproof.candidates.wire.deadline import CONNECT_DEADLINE_S, Deadline
from brokerproof.candidates.wire.errors import refused, unsupported
from brokerproof.candidates.wire.example import Place, Queue
from brokerproof.candidates.wire.pool import Pool
from brokerproof.candidates.wire.profile import profile_for
from brokerproof.candidates.wire.selectors import jms_selector
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


class Handle(NamedTuple):
    """A consumer's link, and the delivery if this is one."""

    link: proton.Receiver
    delivery: proton.Delivery | None = None


@dataclass
class Actor:
    """A channel of driver protocol 1: a connection, its session, and the links that get."""

    connection: Connection
    session: proton.Session
    links: list[proton.Receiver] = field(default_factory=list)
    getters: dict[str, proton.Receiver] = field(default_factory=dict)


class Amqp10Candidate(WireCandidate[Actor, Handle]):
    """The broker at `url`, such as ``amqp10://guest:guest@127.0.0.1:5672/``.

    Construction connects, and raises `CandidateUnavailable` when that fails or when there is no
    profile for the broker. Close the candidate when done.
    """

    LOST = (*LOST, *GONE)
    REQUESTS = ("session", "link")  # begin and end, or attach and detach

    def __init__(self, url: str, power: Power | None = None) -> None:
        self._address = address = Address.parse(url, "amqp10")
        deadline = Deadline()
        deadline.start(CONNECT_DEADLINE_S)
        # The product is told by a connection, and the host name for it is in the profile.
        first = connect(address, deadline, None)
        product = first.product
        first.collect()
        profile = profile_for(address, *product)
        self._dialect = dialect = profile.read_dialect(Dialect)
        default = address.virtual_host == "/"
        host = None if default else dialect.host.replace("{}", address.virtual_host)
        self._senders: dict[str, proton.Sender] = {}
        self._queues: Queues = QueuesByUse(self._empty)
        if dialect.manage == "amqp091":
            self._queues = QueuesOverAmqp091(address, deadline, dialect.queues)
        self._pool = Pool(lambda: connect(address, deadline, host), self.LOST)
        try:
            self._begin_control()
            super().__init__(address, deadline, profile, product, power)
        except BaseException:
            self._queues.close()
            self._pool.drop()
            raise

    def _begin_control(self) -> None:
        self._senders.clear()
        try:
            self._session = self._pool.control.session()
        except self.LOST as error:
            raise CandidateUnavailable(
                str(self._address),
                what=f"the first session failed with {described(error)}",
                remedy="look into the broker's log",
            ) from error

    # Without a channel.

    def _make(self, queue: Queue) -> Error | None:
        return self._queues.make(queue)

    def _looks_alike(self, one: Declare, other: Declare) -> bool:
        if self._dialect.manage == "by_use":
            return True
        return self._dialect.queues.look_alike(one, other)

    def _send(self, queue: Queue, message: Message) -> Error | None:
        if (error := LIMITS.unsendable(message)) is not None:
            return error
        mapping = self._profile.claims.priority_mapping
        sent = proton.Message(
            id=message.id,
            body=bytes(message.size),
            inferred=True,
            durable=self._dialect.is_durable(message, queue),
            priority=self._dialect.priority_of(message, queue.declared.order, mapping),
            properties=dict(message.properties) or None,
        )
        control = self._pool.control
        try:
            sender = self._sender(queue.name)
            control.until(lambda: sender.credit > 0)
            delivery = sent.send(sender)
            control.until(
                lambda: bool(delivery.remote_state) or delivery.settled or control.has_gone(sender)
            )
            if not delivery.remote_state:
                control.raise_if_gone(sender)
        except Closed as closed:
            self._senders.pop(queue.name, None)
            return refused(str(closed))
        outcome = delivery.remote_state
        delivery.settle()
        if outcome in (proton.Delivery.ACCEPTED, 0):
            return OK
        return refused(f"the broker's outcome is {outcome}")

    def _sender(self, name: str) -> proton.Sender:
        sender = self._senders.get(name)
        if sender is None:
            control = self._pool.control
            sender = self._session.sender(control.link_name())
            self._dialect.set_up(sender.target, name)
            control.closers[sender.name] = functools.partial(_forget, self._senders, name)
            self._senders[name] = control.attach(sender)
        return sender

    def _clear(self, queue: Queue) -> Error | None:
        return self._queues.clear(queue.name)

    def _remove(self, name: str) -> Error | None:
        sender = self._senders.pop(name, None)
        if sender is not None:
            self._pool.control.detach(sender)
        return self._queues.remove(name)

    def _why_gone(self, queue: Queue) -> str:
        return self._queues.why_gone(queue.name)

    def _empty(self, name: str) -> None:
        """Take all messages of a queue away, on the control connection."""
        control = self._pool.control
        link = self._receiver(control, self._session, name)
        link.snd_settle_mode = proton.Link.SND_SETTLED
        control.drain(control.attach(link), CREDIT_MAX)
        control.detach(link)

    # With a channel.

    def _open(self) -> Actor:
        connection = self._pool.take()
        return Actor(connection, connection.session())

    def _receiver(
        self, connection: Connection, session: proton.Session, name: str
    ) -> proton.Receiver:
        link = session.receiver(connection.link_name())
        self._dialect.set_up(link.source, name)
        return link

    def _subscribe(self, channel: Actor, operation: Consume) -> Error | None:
        if (error := unfit_window(operation)) is not None:
            return error
        now, connection = self._now, channel.connection
        link = self._receiver(connection, channel.session, now.queues[operation.queue].name)
        if operation.mode != "acknowledge":
            link.snd_settle_mode = proton.Link.SND_SETTLED
        if operation.mode == "browse":
            link.source.distribution_mode = proton.Terminus.DIST_MODE_COPY
        if operation.selector:
            text = jms_selector(operation.selector)
            if text is None:
                return unsupported("no selectors on such names")
            reactor.Selector(text).apply(link)
        now.note_consumer(operation, Handle(link))
        connection.receivers[link.name] = functools.partial(self._delivered, operation, link)
        connection.closers[link.name] = functools.partial(
            self._closed_by_broker, operation.consumer
        )
        try:
            connection.attach(link)
        except Closed as error:
            now.forget_consumer(operation.consumer)
            return refused(str(error))
        channel.links.append(link)
        link.flow(credit_of(operation))
        connection.flush()
        return OK

    def _widen(self, channel: Actor, operation: Consume, place: Place[Handle]) -> None:
        self._give_credit(place.handle.link, operation)
        self._round_trip(channel, self._dialect.round_trip)

    def _give_credit(self, link: proton.Receiver, operation: Consume | None) -> None:
        if operation is not None:
            held = self._now.owed.held_by(operation.consumer)
            link.flow(credit_of(operation, held) - link.credit)

    def _stop(self, channel: Actor, consumer: str, place: Place[Handle]) -> None:
        link, connection = place.handle.link, channel.connection
        if _is_settled(link):
            # The broker drops messages that it is sending when such a link leaves.
            self._drain()
        else:
            self._end_credit(channel, [link])
        del consumer
        if not any(held.handle.link is link for held in self._now.unsettled.values()):
            channel.links.remove(link)
            connection.detach(link)

    def _end_credit(self, channel: Actor, links: list[proton.Receiver]) -> None:
        if self._profile.claims.get:
            for link in links:
                channel.connection.drain(link, 0)
            return
        # Without gets no drain is known to work: RabbitMQ 3 ends the session.
        for link in links:
            link.flow(-link.credit)
        self._round_trip(channel, self._dialect.round_trip)

    def _take(self, channel: Actor, operation: Get) -> Error | None:
        name = self._now.queues[operation.queue].name
        connection = channel.connection
        link = channel.getters.get(operation.queue)
        if link is None:
            link = self._receiver(connection, channel.session, name)
            connection.attach(link)
            channel.getters[operation.queue] = link
            gone = functools.partial(_forget, channel.getters, operation.queue)
            connection.closers[link.name] = gone
        connection.receivers[link.name] = functools.partial(self._delivered, operation, link)
        connection.drain(link, 1)
        return OK

    def _settle_at(self, operation: Settlement, place: Place[Handle]) -> Error | None:
        link, delivery = place.handle
        assert delivery is not None
        _dispose(delivery, operation, self._dialect)
        channel = self._now.channels[place.channel]
        channel.connection.flush()
        for name, consumer in self._now.consumers.items():
            if consumer.handle.link is link:
                self._give_credit(link, self._now.owed.consume_of(name))
        self._request(channel, self._dialect.round_trip, place.queues)
        return OK

    def _shut(self, channel: Actor) -> None:
        connection = channel.connection
        if self._dialect.links_first:
            # What one link returns must not go to the next.
            for link in filter(_is_settled, channel.links):
                connection.detach(link)
            holding = [link for link in channel.links if not _is_settled(link)]
            self._end_credit(channel, holding)
            for link in (*holding, *channel.getters.values()):
                connection.detach(link)
        # With its session each link ends, and a broker may say so by a detach: asked for, not told.
        connection.closers.clear()
        connection.end(channel.session)
        connection.receivers.clear()
        self._pool.give_back(connection)

    def _await_closings(self, queue: Queue) -> None:
        # The broker detaches each consumer in its own time. It must come, so it is waited for.
        if self._profile.claims.deletion_told:
            consumers = self._now.consumers
            for consumer in sorted(queue.consumers):
                # The wait for one may have read that the next has gone, too.
                if (place := consumers.get(consumer)) is not None:
                    connection = self._now.channels[place.channel].connection
                    connection.until(lambda gone=consumer: gone not in consumers)  # type: ignore[misc]
        super()._await_closings(queue)

    def _round_trip(self, channel: Actor, request: str) -> None:
        places = self._now.consumers.values()
        consumed = (place.queues[0] for place in places if place.handle.link in channel.links)
        self._request(channel, request, dict.fromkeys(consumed))

    def _request(self, channel: Actor, request: str, queues: Iterable[str]) -> None:
        """Begin and end a session beside that of a channel, or attach and detach links in it."""
        connection = channel.connection
        if request == "session":
            connection.end(connection.session())
            return
        for queue in queues:
            link = self._receiver(connection, channel.session, self._now.queues[queue].name)
            connection.detach(connection.attach(link))

    def _hear(self, seconds: float) -> bool:
        actors = self._now.channels.values()
        expecting = (a.connection for a in actors if any(link.credit > 0 for link in a.links))
        return heard(expecting, seconds)

    def _renew(self) -> None:
        self._pool.renew()
        self._queues.renew()
        self._begin_control()

    def _hang_up(self) -> None:
        self._queues.close()
        self._pool.close()

    def _lost_as_errors(self, lost: Exception) -> tuple[Error, Error]:
        if self._crashes is not None or not isinstance(lost, OSError):
            error = Error("internal", f"the connection was lost: {described(lost)}")
            return error, error
        gone = Error("refused", "the broker went down; reset to go on")
        return Error("crashed", described(lost)), gone

    def _delivered(
        self,
        subscriber: Consume | Get,
        link: proton.Receiver,
        delivery: proton.Delivery,
        encoded: bytes,
    ) -> None:
        message = proton.Message()
        message.decode(encoded)
        if subscriber.mode != "acknowledge":
            if isinstance(subscriber, Consume):
                # Neither a browser nor an automatic consumer fills its window.
                self._give_credit(link, self._now.owed.consume_of(subscriber.consumer))
            delivery.update(proton.Delivery.ACCEPTED)
            delivery.settle()
        self._now.note_delivered(
            subscriber,
            str(message.id),
            redelivered=self._dialect.is_redelivered(message),
            handle=Handle(link, delivery),
        )


def _dispose(delivery: proton.Delivery, operation: Settlement, dialect: Dialect) -> None:
    match operation:
        case Acknowledge():
            delivery.update(proton.Delivery.ACCEPTED)
        case Release() if dialect.release == "modified":
            delivery.local.failed = True
            delivery.update(proton.Delivery.MODIFIED)
        case Release():
            delivery.update(proton.Delivery.RELEASED)
        case Reject() if dialect.reject == "accepted":
            delivery.update(proton.Delivery.ACCEPTED)
        case Reject():
            delivery.update(proton.Delivery.REJECTED)
        case _:
            assert_never(operation)
    delivery.settle()


def _is_settled(link: proton.Receiver) -> bool:
    """Return whether the broker settles what it sends on a link.

    Such a link leaves at once: Artemis loses messages if it first takes its credit back.
    """
    return bool(link.snd_settle_mode == proton.Link.SND_SETTLED)


def _forget(links: dict[str, LinkT], name: str) -> None:
    links.pop(name, None)
