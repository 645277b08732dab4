"""The broker's front: the candidate interface over the queues of the documented systems.

Owns what clients know by name (queues, consumers, channels, deliveries), the refusing of what is
not there or not claimed, and when scheduled jobs run. Refuses to know how a queue delivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, assert_never

import msgspec

from brokerproof.reference.atomics import AtomicMap
from brokerproof.reference.credit import MessageCredit
from brokerproof.reference.inspection import view_of
from brokerproof.reference.outbox import Executor, Outbox
from brokerproof.reference.snapshots import Copies, fingerprint_queue, fork_queue
from brokerproof.reference.subscriptions import CONSUME_MODES, GET_MODES, Subscription
from brokerproof.reference.systems import (
    SYSTEMS,
    PointerForm,
    RunnerPolicy,
    Settings,
    SystemName,
)
from brokerproof.spec.answers import Answer, ConsumerClosed, Error, Event
from brokerproof.spec.candidate import Start
from brokerproof.spec.capabilities import Capabilities, Hello
from brokerproof.spec.messages import NUMBER_MAX, PRIORITIES, Fifo, Order, Priority
from brokerproof.spec.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
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
    from collections.abc import Callable, Hashable

    from brokerproof.reference.queue import Queue

LEVELS_MAX = 10
"""The largest number of priority levels (Qpid, Priority Queues: the broker's default is ten)."""

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=LEVELS_MAX,
    priority_mapping="amqp",
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages", "change"),
    get=True,
    browse=True,
    release_position="original",
    event_order="total",
    inspect=True,
    purge=True,
    delete=True,
)
"""What is asked of this broker; `inspect` shows the released form of pointers only."""


def _refused(message: str) -> Error:
    return Error("refused", message)


def _unsupported(message: str) -> Error:
    return Error("unsupported", message)


class Broker:
    """A reference broker; single-threaded, deterministic, and quick to copy."""

    __slots__ = ("consumers", "executor", "outbox", "queues", "settings")

    def __init__(
        self,
        system: SystemName = "qpid-push",
        *,
        pointer: PointerForm = "released",
        runner: RunnerPolicy = "eager",
    ) -> None:
        self.settings = Settings(system, pointer, runner)
        self._reset()

    def hello(self) -> Hello:
        """Return name, version and claims."""
        settings = self.settings
        name = f"reference:{settings.system}"
        if settings != Settings(settings.system):
            name += f"?pointer={settings.pointer}&runner={settings.runner}"
        shows = settings.pointer == "released"
        claims = CLAIMS if shows else msgspec.structs.replace(CLAIMS, inspect=False)
        return Hello(name=name, version="1", capabilities=claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, let the jobs run that may, and tell what has happened."""
        if isinstance(operation, Inspect):
            return self._inspect(operation)
        error = self._carry_out(operation)
        if self.executor.jobs and (self.settings.runner == "eager" or isinstance(operation, Drain)):
            at_rest = self._run_jobs()
            if not at_rest and isinstance(operation, Drain):
                error = Error("timeout", "a queue's runner goes round for ever")
        return Answer(self.outbox.take_events(), error)

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Start jobs as threads from now on, and tell events as they happen, not in answers."""
        assert not self.executor.jobs, "first what was scheduled is run"
        self.executor.start = start
        self.outbox.tell = tell

    def declare(self, name: str, order: Order, system: SystemName | None = None) -> None:
        """Make a queue of a documented system: the broker's own unless another is named."""
        assert name not in self.queues, "a queue that exists is not made again"
        make = SYSTEMS[system or self.settings.system]
        self.queues[name] = make(self.settings, name, order, self.outbox, self.executor)

    def fork(self) -> Self:
        """Return an independent copy."""
        copy = self.__new__(type(self))
        copy.settings = self.settings
        copy.outbox = outbox = Outbox()
        copy.executor = executor = Executor()
        copies = Copies()
        copy.queues = {
            name: fork_queue(queue, outbox, executor, copies) for name, queue in self.queues.items()
        }
        copy.consumers = AtomicMap(
            (name, copies.subscriptions[subscription])
            for name, subscription in self.consumers.items()
        )
        outbox.deliveries = self.outbox.deliveries
        outbox.events.extend(self.outbox.events)
        outbox.unsettled = {
            delivery: copies.entries[entry] for delivery, entry in self.outbox.unsettled.items()
        }
        for job in self.executor.jobs:
            executor.jobs.append(job.fork(copy.queues[job.queue.name], copies.subscriptions))
        return copy

    def __deepcopy__(self, _: dict[int, object]) -> Self:
        """Copy it as a search does: some of its states are told apart by identity."""
        return self.fork()

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike; `snapshots` says why.

        Queues are named in the order of their declaration, in which a closing channel visits them.
        """
        queues = tuple([fingerprint_queue(queue) for queue in self.queues.values()])
        if not self.executor.jobs:
            return queues
        return queues, tuple([job.name() for job in self.executor.jobs])

    def _carry_out(self, operation: Operation) -> Error | None:
        assert not isinstance(operation, Inspect), "it shows and does nothing"
        match operation:
            case Publish():
                return self._publish(operation)
            case Acknowledge() | Release() | Reject():
                return self._settle(operation)
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
            case Crash() | Restart() | Flush() | Advance():
                return _unsupported(name_of(operation))
            case _:
                assert_never(operation)

    def _inspect(self, operation: Inspect) -> Answer:
        """Show a queue; nothing moves, not even the jobs."""
        queue = self.queues.get(operation.queue)
        if self.settings.pointer != "released":
            return Answer(error=_unsupported("a view of inclusive pointers"))
        if queue is None:
            return Answer(error=_refused(f"no queue {operation.queue!r}"))
        return Answer(inspection=view_of(queue))

    def _run_jobs(self) -> bool:
        """Run jobs until none is left, and say whether that came about.

        A job that used up its slice schedules itself again. If the broker then is in a state in
        which that has happened before, it will go on so for ever: the inclusive pointer does, with
        a browser at the tail. The jobs are left scheduled.
        """
        seen: set[Hashable] = set()
        while self.executor.jobs:
            if self.executor.run_next():
                state = self.fingerprint()
                if state in seen:
                    return False
                seen.add(state)
        return True

    def _reset(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.consumers: AtomicMap[str, Subscription] = AtomicMap()
        self.outbox = Outbox()
        self.executor = Executor()

    def _declare(self, operation: Declare) -> Error | None:
        if operation.durable:
            return _unsupported("durable queues")
        if operation.auto_delete:
            return _unsupported("queues that delete themselves")
        order = operation.order
        if not isinstance(order, Fifo | Priority):
            return _unsupported("other orders than fifo and priority")
        if isinstance(order, Priority) and not 1 <= order.levels <= LEVELS_MAX:
            return _unsupported(f"{order.levels} levels; there can be 1 to {LEVELS_MAX}")
        existing = self.queues.get(operation.queue)
        if existing is not None:
            if existing.order == order:
                return None
            return _refused(f"queue {operation.queue!r} exists with another order")
        self.declare(operation.queue, order)
        return None

    def _publish(self, operation: Publish) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            return _refused(f"no queue {operation.queue!r}")
        message = operation.message
        if operation.not_before_s is not None or operation.expires_s is not None:
            return _unsupported("a clock")
        if message.priority not in PRIORITIES:
            return _refused(f"priority {message.priority} is not one of 0 to 9")
        if not 0 <= message.size <= NUMBER_MAX:
            return _refused(f"size {message.size} is not one of 0 to {NUMBER_MAX}")
        queue.enqueue(message)
        return None

    def _consume(self, operation: Consume) -> Error | None:
        if operation.credit.bytes is not None:
            return _unsupported("credit in bytes")
        if operation.selector is not None:
            return _unsupported("selectors")
        if operation.auto_close:
            return _unsupported("consumers that close themselves")
        if operation.priority != 0:
            return _unsupported("consumer priority")
        if operation.queues or operation.exclusive:
            return _unsupported("consumers of several queues, or of one for themselves")
        queue = self.queues.get(operation.queue)
        if queue is None:
            return _refused(f"no queue {operation.queue!r}")
        if operation.consumer in self.consumers:
            return _refused(f"consumer {operation.consumer!r} is in use")
        limit = operation.credit.messages
        if _is_no_window(limit):
            return _refused(f"a window of {limit} messages")
        self.consumers[operation.consumer] = queue.subscribe(
            consumer=operation.consumer,
            channel=operation.channel,
            mode=CONSUME_MODES[operation.mode],
            credit=MessageCredit(limit),
        )
        return None

    def _set_credit(self, operation: SetCredit) -> Error | None:
        if operation.channel is not None:
            return _unsupported("credit of a channel")
        if operation.bytes is not None:
            return _unsupported("credit in bytes")
        subscription = self.consumers.get(operation.consumer or "")
        if subscription is None:
            return _refused(f"no consumer {operation.consumer!r}")
        if _is_no_window(operation.messages):
            return _refused(f"a window of {operation.messages} messages")
        self.queues[subscription.queue].set_limit(subscription, operation.messages)
        return None

    def _cancel(self, operation: Cancel) -> Error | None:
        subscription = self.consumers.pop(operation.consumer, None)
        if subscription is None:
            return _refused(f"no consumer {operation.consumer!r}")
        self.queues[subscription.queue].unsubscribe(subscription)
        return None

    def _get(self, operation: Get) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            return _refused(f"no queue {operation.queue!r}")
        queue.get(operation.channel, GET_MODES[operation.mode])
        return None

    def _settle(self, operation: Settlement) -> Error | None:
        entry = self.outbox.settle(operation.delivery)
        if entry is None:
            return _refused(f"no delivery {operation.delivery!r} to settle")
        holder = entry.state.get().holder
        assert holder is not None, "an unsettled delivery's entry is with its subscription"
        queue = self.queues[holder.queue]
        if isinstance(operation, Release):
            queue.release(((entry, holder),))
        else:
            queue.remove(entry, holder)
        return None

    def _close_channel(self, operation: CloseChannel) -> None:
        """First all consumers of the channel leave, then all that it holds is released.

        No job runs between. Queue by queue, so that which queue's runner is scheduled first does
        not hang on which was delivered from first.
        """
        for name, subscription in list(self.consumers.items()):
            if subscription.channel == operation.channel:
                del self.consumers[name]
                self.queues[subscription.queue].unsubscribe(subscription)
        held: dict[str, list[tuple[str, Subscription]]] = {name: [] for name in self.queues}
        for delivery, entry in self.outbox.outstanding():
            holder = entry.state.get().holder
            assert holder is not None, "an unsettled delivery's entry is with its subscription"
            if holder.channel == operation.channel:
                held[holder.queue].append((delivery, holder))
        for name, deliveries in held.items():
            if deliveries:
                taken = [(self.outbox.settle(delivery), by) for delivery, by in deliveries]
                self.queues[name].release([(entry, by) for entry, by in taken if entry is not None])

    def _purge(self, operation: Purge) -> Error | None:
        queue = self.queues.get(operation.queue)
        if queue is None:
            return _refused(f"no queue {operation.queue!r}")
        queue.purge()
        return None

    def _delete(self, operation: Delete) -> Error | None:
        queue = self.queues.pop(operation.queue, None)
        if queue is None:
            return _refused(f"no queue {operation.queue!r}")
        for subscription in queue.delete():
            assert subscription.consumer is not None, "a get is over before anything else happens"
            del self.consumers[subscription.consumer]
            self.outbox.tell(ConsumerClosed(consumer=subscription.consumer))
        for delivery, entry in self.outbox.outstanding():
            if entry.is_dispensed():
                self.outbox.settle(delivery)
        return None


def _is_no_window(messages: int | None) -> bool:
    return messages is not None and not 0 <= messages <= NUMBER_MAX
