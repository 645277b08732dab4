"""A broker behind STOMP as a candidate.

The file translates operations into frames and messages into events, as the dialect of the broker's
profile says. The life of a candidate, and the checks that all wire protocols share, are in
`candidates/wire/`. Nothing here judges the broker.

**When an operation has happened.** Each frame asks for a receipt, which the broker sends when it
has handled the frame. Messages that come before the receipt are told with the operation.

**When nothing more will come.** Receipts overtake messages on most brokers that were tried, so a
drain waits for the deliveries that must come (`owed.py`). Only if one of them does not come, a
silence decides that it never will; its length was measured at the start.

**What STOMP does not have.** There is no deletion, so each example has queues with new names. What
is left in them is taken away at the end, or the broker deletes unused queues itself. No frame takes
one message, so there is no get. A consumer that leaves gives back what it holds.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from brokerproof.candidates.stomp.connection import (
    BrokerError,
    Connection,
    arrived,
    connect,
)
from brokerproof.candidates.stomp.dialect import ID, Dialect, decoded_text
from brokerproof.candidates.stomp.frames import VERSIONS, Frame, GarbledFrameError, Version
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.candidate import WireCandidate
from brokerproof.candidates.wire.deadline import CONNECT_DEADLINE_S, Deadline
from brokerproof.candidates.wire.errors import MessageLimits, refused, unsupported
from brokerproof.candidates.wire.example import Example, Place, Queue
from brokerproof.candidates.wire.pool import Pool
from brokerproof.candidates.wire.profile import profile_for
from brokerproof.spec.protocol.answers import Error
from brokerproof.spec.protocol.operations import Acknowledge, Cancel, Consume, Reject, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokerproof.candidates.crash_commands import Power
    from brokerproof.candidates.wire.profile import OnDisk, Profile
    from brokerproof.spec.messages import Message
    from brokerproof.spec.protocol.operations import Get, Settlement

LIMITS = MessageLimits(name_bytes=1024, header_bytes=4096, body_bytes=2**20)
"""Far below the limits of all brokers that were tried (RabbitMQ: headers of 4 KiB in all)."""

SUBSCRIPTIONS_MAX = 256
"""The most subscriptions of one consumer whose window is split."""

LEFTOVER_S = 0.2
"""How long a message that an example has left may take to come before it is left for good."""


@dataclass(eq=False)
class Subscription:
    """A consumer at the broker: where, the headers of its frame SUBSCRIBE, whose, by which names.

    `left_behind` are the messages of its queue when it had left.
    """

    connection: Connection
    headers: dict[str, str]
    operation: Consume
    names: list[str] = field(default_factory=list)
    has_ended: bool = False
    is_leaving: bool = False
    left_behind: frozenset[str] = frozenset()

    @property
    def keeps(self) -> bool:
        """Whether the broker keeps what it sends until that is acknowledged."""
        return self.operation.mode == "acknowledge"

    def ask_to_end(self) -> list[tuple[Connection, str]]:
        """Unsubscribe; return the receipts to wait for."""
        self.is_leaving = True
        ask = self.connection.ask
        return [(self.connection, ask("UNSUBSCRIBE", {"id": name})) for name in self.names]

    def drops(self, message: str) -> bool:
        """Return whether a message that comes while it leaves, or later, goes back to the queue.

        What one consumer, or one part of a split consumer, gives back may go to the next, which
        leaves too; and receipts overtake messages.
        """
        return (self.is_leaving and len(self.names) > 1) or message in self.left_behind


@dataclass(frozen=True)
class Held:
    """A consumer, or a delivery to it and the headers that settle it."""

    subscription: Subscription
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Channel:
    """A channel of driver protocol 1: its connections and the subscriptions on them."""

    connections: list[Connection] = field(default_factory=list)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)


class StompExample(Example[Channel, Held]):
    """The state between two resets, and the subscriptions by their names at the broker."""

    def __init__(self, on_disk: OnDisk | None) -> None:
        super().__init__(on_disk)
        self.subscriptions: dict[str, Subscription] = {}

    def crash(self) -> None:
        """Forget what a crash takes; a queue that is declared anew then needs a new name."""
        super().crash()
        self.names = {queue: name for queue, name in self.names.items() if queue in self.queues}


class StompCandidate(WireCandidate[Channel, Held]):
    """The broker at `url`, such as ``stomp://guest:guest@127.0.0.1:61613/``.

    Construction connects, and raises `CandidateUnavailable` when that fails or when there is no
    profile for the broker. Close the candidate when done. With `power` over the broker, it can
    claim `durable`; the candidate then owns that power.
    """

    LOST = (OSError,)
    REQUESTS = ("transaction",)
    _now: StompExample

    def __init__(self, url: str, power: Power | None = None) -> None:
        address, deadline = Address.parse(url, "stomp"), Deadline()
        deadline.start(CONNECT_DEADLINE_S)
        profile, product, versions = _recognised(address, deadline)
        self._dialect = profile.read_dialect(Dialect)
        self._subscriptions_made = 0
        deadline.start(CONNECT_DEADLINE_S)
        self._pool = Pool(lambda: connect(address, deadline, versions), self.LOST)
        try:
            super().__init__(address, deadline, profile, product, power)
        except BaseException:
            self._pool.drop()
            raise

    def _example(self) -> StompExample:
        return StompExample(self._profile.on_disk)

    # Queues and messages, on the control connection.

    def _make(self, queue: Queue) -> Error | None:  # noqa: ARG002
        """Do nothing: the first SEND or SUBSCRIBE makes the queue."""
        return None

    def _send(self, queue: Queue, message: Message) -> Error | None:
        if (error := LIMITS.unsendable(message)) is not None:
            return error
        mapping = self._hello.capabilities.priority_mapping
        headers = self._dialect.to_send(queue.name, queue.declared, message, mapping)
        control = self._pool.control
        try:
            # No zeros: some brokers end a body at the first, whatever its stated length.
            control.request("SEND", headers, b"x" * message.size)
        except BrokerError as error:
            # The control connection holds nothing, so its end loses nothing.
            self._pool.renew_control()
            return refused(str(error))
        return None

    # Consumers.

    def _open(self) -> Channel:
        return Channel()

    def _subscribe(self, channel: Channel, operation: Consume) -> Error | None:
        window = operation.credit.messages
        if window is not None and window < 0:
            return refused("a window is not negative")
        if window == 0:
            return unsupported("no windows of 0")
        if self._dialect.subscriptions_for(operation) > SUBSCRIPTIONS_MAX:
            return unsupported(f"no windows above {SUBSCRIPTIONS_MAX}")
        now, name = self._now, operation.consumer
        queue, connection = now.queues[operation.queue], self._connection_for(channel)
        headers = self._dialect.to_subscribe(queue.name, queue.declared, operation)
        made = Subscription(connection, headers, operation)
        # All is in place before the broker answers, since messages may come before the receipt.
        channel.subscriptions[name] = made
        now.note_consumer(operation, Held(made))
        self._add_to(made, self._dialect.subscriptions_for(operation))
        while operation.mode == "browse" and not made.has_ended:
            connection.read_what_is_there()
        return None

    def _add_to(self, subscription: Subscription, count: int) -> None:
        """Subscribe for a consumer so many times."""
        first, ask = self._subscriptions_made + 1, subscription.connection.ask
        self._subscriptions_made += count
        names = [f"s{number}" for number in range(first, first + count)]
        subscription.names += names
        self._now.subscriptions |= dict.fromkeys(names, subscription)
        for receipt in [ask("SUBSCRIBE", {"id": each, **subscription.headers}) for each in names]:
            subscription.connection.wait_for(receipt)
        # ActiveMQ opens the window of a subscription after it has sent the receipt.
        if self._profile.barrier.request:
            _wait_for_all(_transaction_on(subscription.connection))

    def _widen_what_is_full(self) -> bool:
        """Add subscriptions to an unlimited consumer whose own are full; return whether one was."""
        for name, place in self._now.consumers.items():
            full, split = place.handle.subscription, self._dialect.split_window
            unlimited = split and full.keeps and full.operation.credit.messages is None
            if unlimited and self._now.owed.held_by(name) >= len(full.names):
                self._add_to(full, split)
                return True
        return False

    def _connection_for(self, channel: Channel) -> Connection:
        if self._dialect.connection_per == "channel" and channel.connections:
            return channel.connections[0]
        connection = self._pool.take()
        connection.take = self._delivered
        channel.connections.append(connection)
        return connection

    def _delivered(self, frame: Frame) -> None:
        now, headers = self._now, frame.headers
        subscription = now.subscriptions.get(headers.get("subscription", ""))
        if subscription is None:
            raise GarbledFrameError("the broker sent a message for no consumer of this example")
        if self._dialect.ends_browsing(headers):
            subscription.has_ended = True
            now.owed.note_left(subscription.operation.consumer)
            return
        message = decoded_text(headers.get(ID, ""))
        if subscription.drops(message):
            return
        now.note_delivered(
            subscription.operation,
            message,
            redelivered=headers.get("redelivered") == "true",
            handle=Held(subscription, _settled_by(subscription, headers)),
        )

    def _settle(self, operation: Settlement) -> Error | None:
        if isinstance(operation, Release) and self._dialect.release_headers is None:
            return unsupported("no release of one message")
        return super()._settle(operation)

    def _settle_at(self, operation: Settlement, place: Place[Held]) -> Error | None:
        held, dialect = place.handle, self._dialect
        match operation:
            case Acknowledge():
                command, added = "ACK", {}
            case Reject():
                command, added = dialect.reject_by, dialect.reject_headers
            case Release():
                command, added = "NACK", dialect.release_headers or {}
            case _:
                assert_never(operation)
        held.subscription.connection.request(command, {**held.headers, **added})
        return None

    def _widen(self, channel: Channel, operation: Consume, place: Place[Held]) -> None:  # noqa: ARG002
        raise AssertionError("it is not claimed")

    def _stop(self, channel: Channel, consumer: str, place: Place[Held]) -> None:  # noqa: ARG002
        # Messages on their way to the consumer would return unseen, but marked as redelivered.
        self._drain()
        ended = channel.subscriptions.pop(consumer)
        if self._dialect.cancel_by == "UNSUBSCRIBE":
            _wait_for_all(ended.ask_to_end())
        else:
            channel.connections.remove(ended.connection)
            self._part(ended.connection)
        self._forget_held([ended])

    def _shut(self, channel: Channel) -> None:
        if self._dialect.cancel_by == "UNSUBSCRIBE":
            # In turn, since the broker gives the next one what the first one had: unread, it would
            # return in another order than was seen. As they subscribed (rule 62).
            for consumer in list(channel.subscriptions):
                self._cancel(Cancel(consumer=consumer))
            for connection in channel.connections:
                self._pool.give_back(connection)
            return
        # First those that would lose what the others give back.
        ended = sorted(channel.subscriptions.values(), key=lambda each: each.keeps)
        for connection in dict.fromkeys(each.connection for each in ended):
            self._part(connection)
        self._forget_held(ended)

    def _part(self, connection: Connection) -> None:
        self._pool.discard(connection)
        connection.close()

    def _forget_held(self, ended: list[Subscription]) -> None:
        """Forget the deliveries that consumers held when they left."""
        now = self._now
        for delivery, place in list(now.unsettled.items()):
            if place.handle.subscription in ended:
                now.owed.note_settled(delivery, returned=True)
                del now.unsettled[delivery]
        for subscription in ended:
            subscription.left_behind = now.owed.left_in(subscription.operation.queue)

    # Knowing that nothing more will come.

    def _round_trip(self, channel: Channel, request: str) -> None:  # noqa: ARG002
        """Begin and abort a transaction on each connection: it changes nothing."""
        _wait_for_all([each for its in channel.connections for each in _transaction_on(its)])

    def _hear(self, seconds: float) -> bool:
        if self._widen_what_is_full():
            return True
        ready = arrived(self._in_use(), seconds)
        for connection in ready:
            connection.read_what_is_there()
        return bool(ready)

    def _in_use(self) -> list[Connection]:
        return [each for channel in self._now.channels.values() for each in channel.connections]

    # Queues that are left over.

    def _remove(self, name: str) -> Error | None:
        """Take away what the example has left in a queue; STOMP cannot delete it."""
        queue = self._now.queue_at_broker(name)
        left = set() if queue is None else set(self._now.owed.left_in(queue))
        if queue is None or not left or self.shares or self._dialect.leftover == "leave":
            return None
        leaves_by_frame = self._dialect.cancel_by == "UNSUBSCRIBE"
        taker = self._pool.control if leaves_by_frame else self._pool.take()
        taker.take = lambda frame: left.discard(decoded_text(frame.headers.get(ID, "")))
        declared = self._now.queues[queue].declared
        consume = Consume(channel="", queue=queue, consumer="", mode="automatic")
        headers = self._dialect.to_subscribe(name, declared, consume)
        taker.request("SUBSCRIBE", {"id": "s0", **headers})
        while left and arrived([taker], LEFTOVER_S):
            taker.read_what_is_there()
        if leaves_by_frame:
            taker.request("UNSUBSCRIBE", {"id": "s0"})
        else:
            self._part(taker)
        return None

    # What STOMP does not have; none of it can be claimed.

    def _take(self, channel: Channel, operation: Get) -> Error | None:  # noqa: ARG002
        return unsupported("STOMP has no get")

    def _clear(self, queue: Queue) -> Error | None:  # noqa: ARG002
        return unsupported("STOMP has no purge")

    def _why_gone(self, queue: Queue) -> str:  # noqa: ARG002
        return ""

    # Connections.

    def _renew(self) -> None:
        self._pool.renew()

    def _hang_up(self) -> None:
        self._pool.close()

    def _lost_as_errors(self, lost: Exception) -> tuple[Error, Error]:
        """Return the error to answer, and the one for all operations before the next reset.

        A broker that sends an ERROR frame or garbage is still there. One that hangs up has gone; if
        it claims `durable`, the outcome is left open even then, as `told_as_errors` of AMQP 0-9-1
        explains.
        """
        spoke = isinstance(lost, BrokerError | GarbledFrameError)
        if spoke or self._crashes is not None:
            error = Error("internal", f"the connection was lost: {described(lost)}")
            return error, error
        return Error("crashed", described(lost)), refused("the broker went down; reset to go on")


def _settled_by(subscription: Subscription, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of ACK and NACK for a message with these headers."""
    if subscription.connection.version == "1.2":
        return {"id": headers.get("ack", "")}
    # STOMP 1.0 does not ask for the subscription; its brokers take it or ignore it.
    names = ("subscription", "message-id")
    return {name: headers.get(name, "") for name in names}


def _transaction_on(connection: Connection) -> list[tuple[Connection, str]]:
    """Begin and abort a transaction; return the receipts to wait for."""
    return [(connection, connection.ask(each, {"transaction": "t"})) for each in ("BEGIN", "ABORT")]


def _wait_for_all(receipts: list[tuple[Connection, str]]) -> None:
    for connection, receipt in receipts:
        connection.wait_for(receipt)


def _recognised(
    address: Address, deadline: Deadline
) -> tuple[Profile, tuple[str, str], tuple[Version, ...]]:
    """Return the broker's profile, its name and version as it gave them, and versions to offer."""
    named = None if address.profile is None else profile_for(address, "", "")
    versions = VERSIONS if named is None else named.read_dialect(Dialect).versions
    connection = _greeted(address, deadline, versions)
    with contextlib.suppress(OSError):
        connection.close()
    profile = named or profile_for(address, *connection.product)
    of_profile = profile.read_dialect(Dialect).versions
    agreed = (connection.version,) if connection.version in of_profile else of_profile
    return profile, connection.product, agreed


def _greeted(address: Address, deadline: Deadline, versions: tuple[Version, ...]) -> Connection:
    """Connect with the latest version that the broker takes; raises `CandidateUnavailable`.

    The broker should choose among all that are offered, but some refuse a client of a later one.
    """
    try:
        return connect(address, deadline, versions)
    except CandidateUnavailable as unavailable:
        if len(versions) == 1 or not isinstance(unavailable.__cause__, BrokerError):
            raise
        try:
            return _greeted(address, deadline, versions[:-1])
        except CandidateUnavailable:
            raise unavailable from unavailable.__cause__
