"""A broker on the wire as a candidate: what the adapters of all protocols have in common.

The file checks operations against the state of the example, gives queues names that no other
program uses, turns lost connections into errors, and leads from one example to the next. An adapter
carries out what is left, with the frames of its protocol. Nothing here judges the broker.

A candidate has one thread and no callbacks in the background: events are told in the order of their
connection, and nothing is read between operations. Each channel of driver protocol 1 has a
connection of its own, since real clients have; hence `event_order` is ``per_consumer``. Operations
without a channel use the control connection, which never has a consumer.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, assert_never

from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.barrier import Patience, measured, sweeps
from brokerproof.candidates.wire.crashes import Crashes
from brokerproof.candidates.wire.deadline import ANSWER_DEADLINE_S, Deadline, said
from brokerproof.candidates.wire.errors import refused, unsupported
from brokerproof.candidates.wire.example import ChannelT, Example, HandleT, Names, Place, Queue
from brokerproof.candidates.wire.profile import RoundTrips, Silence
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed, Delivered, Error, QueueDeleted
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

if TYPE_CHECKING:
    from brokerproof.candidates.crash_commands import Power
    from brokerproof.candidates.wire.address import Address
    from brokerproof.candidates.wire.profile import Profile
    from brokerproof.spec.messages import Message

CHANNELS_MAX = 256

BRIEF_S = 0.003
"""The silence of a candidate that shares its queues: what it awaits may go to another."""

OK = None
"""The result of a step that was carried out."""


class WireCandidate(ABC, Generic[ChannelT, HandleT]):
    """A broker at `address`, of the product and version that it told, under `profile`.

    Construction raises `CandidateUnavailable` when the broker cannot be judged. Queues have names
    that no other program uses; `reset` and `close` delete them. With `power` over the broker, it
    claims `durable` where the profile knows when the broker writes; the candidate then owns that
    power. `notices` are lines for the report.
    """

    LOST: ClassVar[tuple[type[Exception], ...]]
    """The errors of a connection or channel that has gone; `OSError` is one of them."""

    REQUESTS: ClassVar[tuple[str, ...]]
    """The requests that a barrier may make."""

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        profile: Profile,
        product: tuple[str, str],
        power: Power | None,
    ) -> None:
        name, version = product
        unknown = profile.no_durability(version)
        if power is not None and unknown and not power.is_ours:
            remedy = "leave out the commands that crash and restart it"
            raise CandidateUnavailable(str(address), what=unknown, remedy=remedy)
        self._deadline = deadline
        self._profile = profile
        self._crashes = None if power is None else Crashes(power, self._renew, deadline)
        claims = profile.capabilities(durable=power is not None and not unknown)
        self._hello = Hello(name=name, version=version, capabilities=claims)
        self._names_made = Names()
        self._now = self._example()
        self._patience = Patience()
        self.shares, self._is_guest = False, False
        self.notices: tuple[str, ...] = ()
        profile.check_request(self.REQUESTS)
        if isinstance(profile.barrier, Silence):
            self._patience.silence_s, notice = measured(self, profile.barrier)
            self.notices = (notice,)

    def _example(self) -> Example[ChannelT, HandleT]:
        return Example(self._profile.on_disk)

    def hello(self) -> Hello:
        """Return the broker's own name and version, and the claims of its profile."""
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
            self._tell_deleted()
        except TimeoutError as late:
            # The answer may still come, and would be taken for that of a later operation.
            error = Error("timeout", said(late, ANSWER_DEADLINE_S))
            now.fault = Error("timeout", f"{name_of(operation)} was not answered; reset to go on")
        except self.LOST as lost:
            error, now.fault = self._lost_as_errors(lost)
        now.is_quiet = isinstance(operation, Drain)
        events, now.told = tuple(now.told), []
        return Answer(events, error)

    @property
    def names(self) -> dict[str, str]:
        """The names at the broker of this example's queues."""
        return self._now.names

    def join(self, host: WireCandidate[ChannelT, HandleT]) -> Answer:
        """Begin a new example on another candidate's queues; from now on a drain proves nothing."""
        answer = self._reset()
        self._now.names = host.names
        self._patience.silence_s, self._is_guest = BRIEF_S, True
        self.shares = host.shares = True
        return answer

    def close(self) -> None:
        """Delete our queues and close all connections; a broker of our own ends with them.

        Another broker that we have killed is started again. One that has gone is no error.
        """
        crashes = self._crashes
        gone = (*self.LOST, CandidateUnavailable)
        if crashes is not None and crashes.power.is_ours:
            crashes.power.close()
            with contextlib.suppress(*gone):
                self._hang_up()
            return
        try:
            with contextlib.suppress(*gone):
                if self._now.is_down and crashes is not None:
                    crashes.come_up()
                    self._now = self._example()
                self._deadline.start(ANSWER_DEADLINE_S)
                if not self._now.is_down:
                    self._leave()
            self._deadline.start(ANSWER_DEADLINE_S)
            self._hang_up()
        finally:
            if crashes is not None:
                crashes.power.close()

    # What an adapter carries out. An error that is returned is a refusal: it did not happen.

    @abstractmethod
    def _make(self, queue: Queue) -> Error | None:
        """Declare a queue."""

    def _looks_alike(self, one: Declare, other: Declare) -> bool:  # noqa: ARG002
        """Return whether the broker could not tell two declares apart, and so refuse the second."""
        return True

    @abstractmethod
    def _send(self, queue: Queue, message: Message) -> Error | None:
        """Publish a message, and wait until the broker has taken it."""

    @abstractmethod
    def _subscribe(self, channel: ChannelT, operation: Consume) -> Error | None:
        """Make a consumer of known queues, noted before deliveries can come."""

    @abstractmethod
    def _widen(self, channel: ChannelT, operation: Consume, place: Place[HandleT]) -> None:
        """Give a consumer the window that its consume has now, where a change is claimed."""

    @abstractmethod
    def _stop(self, channel: ChannelT, consumer: str, place: Place[HandleT]) -> None:
        """Cancel a consumer; all its deliveries have been told then."""

    @abstractmethod
    def _take(self, channel: ChannelT, operation: Get) -> Error | None:
        """Get at most one message, and tell its delivery."""

    @abstractmethod
    def _settle_at(self, operation: Settlement, place: Place[HandleT]) -> Error | None:
        """Settle a delivery; it has taken effect for every later request then."""

    @abstractmethod
    def _open(self) -> ChannelT:
        """Open a channel of driver protocol 1."""

    @abstractmethod
    def _shut(self, channel: ChannelT) -> None:
        """Close a channel with its consumers; what it held has returned to its queues then."""

    @abstractmethod
    def _clear(self, queue: Queue) -> Error | None:
        """Purge a queue."""

    @abstractmethod
    def _remove(self, name: str) -> Error | None:
        """Delete a queue by its name at the broker; one that has gone is no error."""

    @abstractmethod
    def _why_gone(self, queue: Queue) -> str:
        """Return the broker's message when there is no such queue, or an empty text."""

    @abstractmethod
    def _round_trip(self, channel: ChannelT, request: str) -> None:
        """Make the profile's request on all connections of a channel, and await the answers."""

    @abstractmethod
    def _hear(self, seconds: float) -> bool:
        """Wait so long for something to come and handle it; return whether anything came."""

    @abstractmethod
    def _renew(self) -> None:
        """Drop all connections and open the first one; raises `CandidateUnavailable`."""

    @abstractmethod
    def _hang_up(self) -> None:
        """Close all connections, as politely as the broker allows."""

    @abstractmethod
    def _lost_as_errors(self, lost: Exception) -> tuple[Error, Error]:
        """Return the error to answer, and the one for all operations before the next reset."""

    # The operations.

    def _carry_out(self, operation: Operation) -> Error | None:
        if missing := unclaimed(operation, self._hello.capabilities):
            return unsupported(missing)
        if (error := self._now.lacks(operation)) is not None:
            return error
        match operation:
            case Declare():
                return self._declare(operation)
            case Publish():
                return self._publish(operation)
            case Consume():
                return self._consume(operation)
            case SetCredit():
                return self._set_credit(operation)
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
            case Inspect() | Flush() | Advance() | Extend():
                raise AssertionError("it is not claimed")
            case Reset():
                raise AssertionError("a reset is carried out elsewhere")
            case _:
                assert_never(operation)

    def _publish(self, operation: Publish) -> Error | None:
        now, message = self._now, operation.message
        # Before the answer, since the message may be delivered before it.
        now.note_published(message.id)
        now.owed.note_published(operation.queue, message)
        error = self._send(now.queues[operation.queue], message)
        if error is not None:
            now.owed.note_gone(operation.queue, message.id)
        return error

    def _declare(self, operation: Declare) -> Error | None:
        known = self._now.queues.get(operation.queue)
        if known is None:
            queue = Queue(self._names_made.of(operation.queue, self._now.names), operation)
        elif known.declared == operation or not self._looks_alike(known.declared, operation):
            queue = Queue(known.name, operation)
        else:
            return refused("the queue exists with another order, or other options")
        error = self._make(queue)
        if error is None:
            self._now.note_declared(operation.queue, known or queue)
        return error

    def _consume(self, operation: Consume) -> Error | None:
        if operation.consumer in self._now.consumers:
            return refused(f"consumer {operation.consumer} is in use")
        channel = self._channel(operation.channel)
        return TOO_MANY if channel is None else self._subscribe(channel, operation)

    def _set_credit(self, operation: SetCredit) -> Error | None:
        now, name = self._now, str(operation.consumer)
        if operation.messages is not None and operation.messages < 0:
            return refused("a window is not negative")
        asked, place = now.owed.note_window(name, operation.messages), now.consumers[name]
        self._widen(now.channels[place.channel], asked, place)
        return OK

    def _get(self, operation: Get) -> Error | None:
        channel = self._channel(operation.channel)
        return TOO_MANY if channel is None else self._take(channel, operation)

    def _channel(self, name: str) -> ChannelT | None:
        """Return the channel `name`, made by its first use, or None when there are too many."""
        channels = self._now.channels
        if name not in channels and len(channels) < CHANNELS_MAX:
            channels[name] = self._open()
        return channels.get(name)

    def _cancel(self, operation: Cancel) -> Error | None:
        now, name = self._now, operation.consumer
        place = now.consumers[name]
        self._stop(now.channels[place.channel], name, place)
        now.forget_consumer(name)
        return OK

    def _settle(self, operation: Settlement) -> Error | None:
        place = self._now.unsettled.pop(operation.delivery, None)
        if place is None:
            return refused(f"there is no unsettled delivery {operation.delivery}")
        # Before the answer, since a message that returns may be delivered before it.
        self._now.owed.note_settled(operation.delivery, returned=isinstance(operation, Release))
        error = self._settle_at(operation, place)
        self._now.note_settled(place.queues[0])
        return error

    def _close_channel(self, operation: CloseChannel) -> Error | None:
        now, name = self._now, operation.channel
        channel = now.channels.get(name)
        if channel is None:
            return OK
        # Deliveries on their way to the channel would return unseen, but marked as redelivered.
        self._drain()
        self._shut(channel)
        for delivery in [held for held, at in now.unsettled.items() if at.channel == name]:
            now.owed.note_settled(delivery, returned=True)
            del now.unsettled[delivery]
        for consumer in now.consumers_of(name):
            now.forget_consumer(consumer)
        del now.channels[name]
        return OK

    def _purge(self, operation: Purge) -> Error | None:
        error = self._clear(self._now.queues[operation.queue])
        if error is None:
            self._now.owed.note_purged(operation.queue)
            self._now.note_settled(operation.queue)
        return error

    def _delete(self, operation: Delete) -> Error | None:
        queue = self._now.queues[operation.queue]
        error = self._remove(queue.name)
        if error is None:
            self._await_closings(queue)
            self._now.forget_queue(operation.queue)
        return error

    def _await_closings(self, queue: Queue) -> None:
        """Read what a deleted queue had sent; its consumers are told, or just forgotten."""
        self._drain()
        for consumer in sorted(queue.consumers):
            self._now.forget_consumer(consumer)

    def _closed_by_broker(self, consumer: str) -> None:
        """Tell that the broker has closed a consumer."""
        place = self._now.consumers.get(consumer)
        if place is not None:
            self._now.told.append(ConsumerClosed(consumer=consumer))
            self._now.forget_consumer(consumer)

    def _tell_deleted(self) -> None:
        """Ask for each queue whose last consumer has left whether it has deleted itself."""
        left, self._now.left = self._now.left, []
        for name in dict.fromkeys(left):
            queue = self._now.queues.get(name)
            if queue is None or queue.consumers or not queue.declared.auto_delete:
                continue
            if self._why_gone(queue):
                self._now.told.append(QueueDeleted(queue=name))
                self._now.forget_queue(name)

    def _drain(self) -> Error | None:
        now, barrier = self._now, self._profile.barrier
        if self._is_guest:
            self.listen(BRIEF_S)
            return OK
        if isinstance(barrier, RoundTrips):
            for channel in sweeps(barrier, now):
                self._round_trip(channel, barrier.request)
            return OK
        live = self._profile.claims.browser == "live" and now.owed.has_browsers()
        if self.shares or (live and not now.is_quiet):
            # What others have published is owed too, and what a browser will be shown is not known.
            self.listen(self._patience.silence_s)
        self._patience.await_owed(now, self._hear)
        if barrier.request:
            for channel in now.channels.values():
                self._round_trip(channel, barrier.request)
        return OK

    def listen(self, seconds: float) -> None:
        """Read all connections until nothing has come for some time."""
        while self._hear(seconds):
            pass

    def hear(self, seconds: float) -> tuple[Delivered, ...]:
        """Return what is delivered until nothing has come for some time."""
        self.listen(seconds)
        told, self._now.told = self._now.told, []
        return tuple(event for event in told if isinstance(event, Delivered))

    def _crash(self) -> Error | None:
        """Tell all deliveries until now (rule 2), then kill the broker."""
        assert self._crashes is not None
        self._drain()
        self._crashes.kill(self._now)
        return OK

    def _restart(self) -> Error | None:
        assert self._crashes is not None
        return self._crashes.revive(self._now, self._why_gone)

    # From one example to the next.

    def _reset(self) -> Answer:
        # Half of the time is for leaving, the other half for connecting anew if that fails.
        self._deadline.start(ANSWER_DEADLINE_S / 2)
        left = False
        if self._now.fault is None and not self._now.is_down:
            with contextlib.suppress(*self.LOST):
                self._leave()
                left = True
        was_down = self._now.is_down
        error = None if left else self._begin_anew()
        self._now = self._example()
        if error is not None:
            self._now.fault = refused("the broker cannot be reached; reset to try again")
            self._now.is_down = was_down
        return Answer(error=error)

    def _leave(self) -> None:
        # Channels first: a queue that goes would tell its consumers.
        for channel in self._now.channels.values():
            self._shut(channel)
        self._delete_queues()

    def _delete_queues(self) -> None:
        left = self._names_made.left
        while left:
            self._remove(left[-1])
            left.pop()

    def _begin_anew(self) -> Error | None:
        self._deadline.start(ANSWER_DEADLINE_S / 2)
        try:
            if self._crashes is None:
                self._renew()
            else:
                self._crashes.come_up()
                self._deadline.start(ANSWER_DEADLINE_S)
            self._delete_queues()
        except CandidateUnavailable as unavailable:
            return Error("crashed", str(unavailable))
        except self.LOST as lost:
            return Error("internal", f"the new connection was lost at once: {described(lost)}")
        return OK


TOO_MANY = refused(f"there are {CHANNELS_MAX} channels already")
