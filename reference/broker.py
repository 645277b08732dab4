"""The broker's front: the candidate interface over the queues of the documented systems.

Owns the names that clients use (queues, consumers, channels, deliveries), the refusal of unknown
names and unclaimed operations, and when scheduled jobs run. Does not know how a queue delivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, assert_never

from brokerproof.reference.front.consumers import CONSUME_MODES, GET_MODES, Consumer, Terms
from brokerproof.reference.front.credit import ChannelWindow, Window, is_window
from brokerproof.reference.front.outbox import Executor, Outbox
from brokerproof.reference.front.refusals import no_window, refused, unsupported
from brokerproof.reference.front.storage import Definition
from brokerproof.reference.qpid.pull.fingerprints import name_clients
from brokerproof.reference.qpid.pull.sessions import Clients, ConnectionForm
from brokerproof.reference.settings import (
    AcquisitionForm,
    PointerForm,
    RunnerPolicy,
    Settings,
    SystemName,
)
from brokerproof.reference.shared.atomics import AtomicMap, Lock
from brokerproof.reference.shared.clock import times_of
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.systems import SYSTEMS, Premises, claims_of
from brokerproof.spec.messages import NUMBER_MAX, PRIORITIES, Order
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed, Error, Event
from brokerproof.spec.protocol.candidate import Start
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
    from collections.abc import Callable, Hashable, Iterable

    from brokerproof.reference.front.queue import AnyQueue

JOBS_UNWATCHED = 100
"""After this many jobs in a row, each further state is compared with the earlier ones."""


class Broker:
    """A reference broker; single-threaded, deterministic, and quick to copy."""

    __slots__ = (
        "channels",
        "claimed",
        "clients",
        "configuration",
        "consumers",
        "executor",
        "outbox",
        "queues",
        "settings",
    )

    def __init__(
        self,
        system: SystemName | Settings = "qpid-push",
        *,
        pointer: PointerForm = "released",
        runner: RunnerPolicy = "eager",
        connections: ConnectionForm = "channel",
        acquisition: AcquisitionForm = "firm",
    ) -> None:
        if not isinstance(system, Settings):
            system = Settings(system, pointer, runner, connections, acquisition)
        self.settings = system
        self.claimed = claims_of(self.settings)
        self.configuration = Lock()
        self._reset()

    def hello(self) -> Hello:
        """Return name, version and claims."""
        name = f"reference:{self.settings.address()}"
        return Hello(name=name, version="1", capabilities=self.claimed)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, run the jobs that are due, and return the events."""
        if isinstance(operation, Inspect):
            return self._inspect(operation)
        error = self._carry_out(operation)
        if self.executor.jobs and (self.settings.runner == "eager" or isinstance(operation, Drain)):
            at_rest = self._run_jobs()
            if not at_rest and isinstance(operation, Drain):
                error = Error("timeout", "a queue's runner goes round for ever")
        return Answer(self.outbox.take_events(), error)

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Start jobs as threads from now on, and report events as they happen, not in answers."""
        assert not self.executor.jobs, "first what was scheduled is run"
        self.executor.start = start
        self.outbox.listener = tell

    def declare(
        self,
        name: str,
        order: Order,
        system: SystemName | None = None,
        *,
        auto_delete: bool = False,
        durable: bool = False,
    ) -> AnyQueue:
        """Create a queue of a documented system: the broker's own unless `system` names another.

        Returns the queue registered under that name, which another thread may just have created.
        """
        definition = Definition(name, order, durable, auto_delete)
        queue = SYSTEMS[system or self.settings.system].make_queue(self._premises(), definition)
        queue.auto_delete = auto_delete
        queue.durable = durable
        return self.queues.setdefault(name, queue)

    def _premises(self) -> Premises:
        return Premises(self.settings, self.outbox, self.executor, self.clients)

    def fork(self) -> Self:
        """Return an independent copy; not for a broker on threads."""
        return copied(self)

    def __deepcopy__(self, _: dict[int, object]) -> Self:
        """Copy it as a search does: some of its states are compared by identity."""
        return self.fork()

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike; `fingerprints` says why.

        Queues are listed in the order of their declaration: a closing channel visits them in that
        order.
        """
        fingerprint = SYSTEMS[self.settings.system].fingerprint
        queues = tuple([fingerprint(queue) for queue in self.queues.values()])
        waiting = name_clients(self.clients, self.queues.values())
        if not self.executor.jobs and not self.channels and not waiting:
            return queues
        windows = [(channel, window.fingerprint()) for channel, window in self.channels.items()]
        jobs = [job.name() for job in self.executor.jobs]
        return queues, tuple(jobs), tuple(windows), waiting

    def _carry_out(self, operation: Operation) -> Error | None:
        assert not isinstance(operation, Inspect), "it shows and does nothing"
        if beyond := unclaimed(operation, self.claimed):
            return unsupported(beyond)
        match operation:
            case Publish():
                return self._publish(operation)
            case Acknowledge() | Release() | Reject():
                return self._settle(operation)
            case Extend():
                raise AssertionError("it is not claimed")
            case Drain():
                return None
            case Get():
                return self._get(operation)
            case SetCredit():
                return self._set_credit(operation)
            case Consume():
                return self._consume(operation)
            case Cancel():
                return self._cancel(operation)
            case CloseChannel():
                self._close_channel(operation)
                return None
            case Purge():
                return self._purge(operation)
            case Declare():
                return self._declare(operation)
            case Delete():
                return self._delete(operation)
            case Reset():
                self._reset()
                return None
            case Flush():
                return self._flush(operation)
            case Advance():
                return self._advance(operation)
            case Crash() | Restart():
                return unsupported(name_of(operation))
            case _:
                assert_never(operation)

    def _inspect(self, operation: Inspect) -> Answer:
        """Return the view of a queue; nothing changes, and no job runs."""
        queue = self.queues.get(operation.queue)
        if not self.claimed.inspect:
            return Answer(error=unsupported("a view of inclusive pointers"))
        if queue is None:
            return Answer(error=refused(f"no queue {operation.queue!r}"))
        return Answer(inspection=SYSTEMS[self.settings.system].view(queue))

    def _run_jobs(self) -> bool:
        """Run jobs until none is left; return whether that state was reached.

        A job that used up its slice schedules itself again. If the broker's state then equals an
        earlier one, the jobs never end, and they are left scheduled. The inclusive pointer loops
        like this with a browser at the tail. After `JOBS_UNWATCHED` runs every state is compared,
        to find jobs that schedule each other.
        """
        seen: set[Hashable] = set()
        runs = 0
        while self.executor.jobs:
            runs += 1
            if self.executor.run_next() or runs > JOBS_UNWATCHED:
                state = self.fingerprint()
                if state in seen:
                    return False
                seen.add(state)
        return True

    def _reset(self) -> None:
        self.queues: AtomicMap[str, AnyQueue] = AtomicMap()
        self.consumers: AtomicMap[str, Consumer] = AtomicMap()
        self.channels: AtomicMap[str, ChannelWindow] = AtomicMap()
        self.outbox = Outbox(self._forget)
        self.executor = Executor()
        self.clients = Clients(self.settings.connections, self.executor)

    def _forget(self, gone: AnyQueue | Consumer) -> bool:
        """Remove the name of a consumer or queue that has ended; return whether it was registered.

        A client and a deletion may end one consumer at the same time. Exactly one of them gets
        True, and that one answers or reports the end. For queues, `Registrations` decides which
        caller ends them.
        """
        if isinstance(gone, Consumer):
            assert gone.consumer is not None, "a get has no name"
            known = self.consumers.get(gone.consumer)
            return (
                known is not None
                and known.is_same_consumer(gone)
                and self.consumers.take_out(gone.consumer, known)
            )
        return self.queues.take_out(gone.name, gone)

    def _declare(self, operation: Declare) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            queue = self.declare(
                operation.queue,
                operation.order,
                auto_delete=operation.auto_delete,
                durable=operation.durable,
            )
        if queue.is_declared_as(operation):
            return None
        return refused(f"queue {operation.queue!r} exists and was declared otherwise")

    def _publish(self, operation: Publish) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            return refused(f"no queue {operation.queue!r}")
        message = operation.message
        if message.priority not in PRIORITIES:
            return refused(f"priority {message.priority} is not one of 0 to 9")
        if not 0 <= message.size <= NUMBER_MAX:
            return refused(f"size {message.size} is not one of 0 to {NUMBER_MAX}")
        if min(operation.not_before_s or 0, operation.expires_s or 0) < 0:
            return refused("time does not go back")
        queue.enqueue(message, times_of(operation, self.executor.clock))
        return None

    def _advance(self, operation: Advance) -> Error | None:
        """Advance the time, then run the housekeeping of every queue.

        In Qpid housekeeping is a periodic thread of its own. Here only a client advances the time,
        and the answer comes when everything that is due has been delivered.
        """
        if operation.seconds < 0:
            return refused("time does not go back")
        self.executor.clock.advance(operation.seconds)
        for _, queue in list(self.queues.items()):
            queue.housekeep()
        return None

    def _consume(self, operation: Consume) -> Error | None:
        named = {name: self.queues.get(name) for name in (operation.queue, *operation.queues)}
        there = [queue for queue in named.values() if queue is not None]
        if len(there) < len(named):
            return refused(f"no queue {next(name for name in named if named[name] is None)!r}")
        queue, *others = there
        if operation.consumer in self.consumers:
            return refused(f"consumer {operation.consumer!r} is in use")
        if not is_window(operation.credit.messages, operation.credit.bytes):
            return no_window(operation.credit)
        terms = Terms(
            consumer=operation.consumer,
            channel=operation.channel,
            mode=CONSUME_MODES[operation.mode],
            credit=Window(operation.credit.messages, operation.credit.bytes),
            auto_close=operation.auto_close,
            exclusive=operation.exclusive,
            priority=operation.priority,
            # An empty selector matches every message.
            selector=operation.selector or None,
        )
        subscription = queue.new_subscription(terms)
        window = self.channels.get(operation.channel)
        if window is not None:
            subscription.share(window, queue)
        # Register the name first: the consumer may close by itself as soon as it is registered.
        if self.consumers.setdefault(operation.consumer, subscription) is not subscription:
            return refused(f"consumer {operation.consumer!r} is in use")
        if queue.subscribe(subscription, others):
            return None
        subscription.leave_channel()
        # A concurrent deletion may have closed it already, and then reports the end itself.
        if not self._forget(subscription):
            return None
        gone = next((each for each in there if each.goes()), None)
        if gone is not None:
            return self._no_more(gone)
        return refused(f"queue {operation.queue!r} is, or would be, with an exclusive consumer")

    def _set_credit(self, operation: SetCredit) -> Error | None:
        if (operation.consumer is None) == (operation.channel is None):
            return refused("a window is of one consumer or of one channel")
        if not is_window(operation.messages, operation.bytes):
            return no_window(operation)
        if operation.channel is not None:
            window = self._window_of(operation.channel)
            window.set_limits(operation.messages, operation.bytes)
            self.clients.credit_changed(operation.channel)
            return None
        subscription = self.consumers.get(operation.consumer or "")
        queue = None if subscription is None else self.queues.get(subscription.queue)
        if subscription is None or queue is None:
            return refused(f"no consumer {operation.consumer!r}")
        queue.set_limits(subscription, operation.messages, operation.bytes)
        return None

    def _window_of(self, channel: str) -> ChannelWindow:
        """Return the window that a channel's consumers share; create it on first use."""
        window = self.channels.get(channel)
        if window is None:
            window = self.channels[channel] = ChannelWindow()
            for _, subscription in list(self.consumers.items()):
                queue = self.queues.get(subscription.queue)
                if subscription.channel == channel and queue is not None:
                    subscription.share(window, queue)
        return window

    def _cancel(self, operation: Cancel) -> Error | None:
        subscription = self.consumers.pop(operation.consumer, None)
        if subscription is None:
            return refused(f"no consumer {operation.consumer!r}")
        self._leave(subscription)
        self._delete_if_unused(subscription.queues())
        return None

    def _leave(self, subscription: Consumer) -> None:
        """Unregister a consumer from its queue; its name is already removed."""
        queue = self.queues.get(subscription.queue)
        # Where it has gone its consumers left first.
        if queue is not None:
            queue.unsubscribe(subscription)

    def _flush(self, operation: Flush) -> Error | None:
        subscription = self.consumers.get(operation.consumer)
        queue = None if subscription is None else self.queues.get(subscription.queue)
        if subscription is None or queue is None:
            return refused(f"no consumer {operation.consumer!r}")
        queue.flush(subscription)
        return None

    def _get(self, operation: Get) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            return refused(f"no queue {operation.queue!r}")
        if queue.get(operation.channel, GET_MODES[operation.mode]) or not queue.goes():
            return None
        # There may have been a message that a deletion took.
        return self._no_more(queue)

    def _settle(self, operation: Settlement) -> Error | None:
        entry = self.outbox.settle(operation.delivery)
        if entry is None:
            return refused(f"no delivery {operation.delivery!r} to settle")
        holder = entry.holder()
        queue = None if holder is None else self.queues.get(holder.queue)
        if holder is None or queue is None:
            return self._no_more(None)
        if isinstance(operation, Release):
            queue.release(((entry, holder),))
        else:
            queue.remove(entry, holder)
        return None

    def _close_channel(self, operation: CloseChannel) -> None:
        """Close a channel: its consumers leave first, then its unsettled deliveries are released.

        After that, unused auto-delete queues are deleted. No job runs in between. Deliveries are
        released queue by queue, so that the order in which runners are scheduled does not depend on
        which queue delivered first.
        """
        left: list[str] = []
        for name, subscription in list(self.consumers.items()):
            if subscription.channel == operation.channel and self.consumers.take_out(
                name, subscription
            ):
                self._leave(subscription)
                left += subscription.queues()
        self.channels.pop(operation.channel, None)
        held: dict[str, list[tuple[str, Consumer]]] = {name: [] for name in self.queues}
        for delivery, entry in self.outbox.outstanding():
            holder = entry.holder()
            if holder is not None and holder.channel == operation.channel:
                held.setdefault(holder.queue, []).append((delivery, holder))
        for name, deliveries in held.items():
            taken = [(self.outbox.settle(delivery), by) for delivery, by in deliveries]
            queue = self.queues.get(name)
            if queue is not None and taken:
                queue.release([(entry, by) for entry, by in taken if entry is not None])
        self._delete_if_unused(left)

    def _purge(self, operation: Purge) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            return refused(f"no queue {operation.queue!r}")
        queue.purge()
        return None

    def _delete(self, operation: Delete) -> Error | None:
        """Delete a queue: first its content, then its name; then clients are told.

        A caller that finds no queue finds no consumers of it, and a client that is told of the end
        finds no queue.
        """
        with self.configuration:
            queue = self.queues.get(operation.queue)
            leaving = None if queue is None else queue.delete()
            if queue is not None:
                self._forget(queue)
        left: list[str] = []
        for subscription in leaving or ():
            if subscription.consumer is not None and self._forget(subscription):
                self.outbox.tell(ConsumerClosed(consumer=subscription.consumer))
                left += subscription.queues()
        self._delete_if_unused(left)
        return refused(f"no queue {operation.queue!r}") if leaving is None else None

    def _no_more(self, going: AnyQueue | None) -> Error:
        """Refuse an operation that met a deletion, after the deletion has ended.

        A later operation therefore does not find the queue. An auto-delete queue does not wait for
        the lock, so `going` loses its name here if it still has it.
        """
        with self.configuration:
            if going is not None:
                self._forget(going)
        return refused("the queue has just been deleted")

    def _delete_if_unused(self, names: Iterable[str]) -> None:
        """Delete those of the auto-delete queues that have no consumer left."""
        for name in dict.fromkeys(names):
            queue = self.queues.get(name)
            if queue is not None:
                queue.delete_if_unused()
