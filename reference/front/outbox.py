"""Events not yet reported, deliveries not yet settled, jobs not yet run.

Owns the names of deliveries. Does not know queues: a delivery refers to the entry that was sent,
and the entry names its holder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.shared.atomics import atomic_steps
from brokerproof.reference.shared.clock import Clock
from brokerproof.spec.protocol.answers import Delivered, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.front.consumers import Consumer, Held
    from brokerproof.reference.front.queue import AnyQueue


@atomic_steps(writes=("register", "settle"), reads=("outstanding",))
class Outbox:
    """Events for the next answer, and the deliveries that may still be settled, oldest first.

    With a `listener`, events go to it at once and appear in no answer. `gone` tells the owner of
    the names that a consumer or queue has ended by itself, before clients are told. It returns
    whether the name was still registered.
    """

    __slots__ = ("deliveries", "events", "gone", "listener", "unsettled")

    def __init__(self, gone: Callable[[AnyQueue | Consumer], bool]) -> None:
        self.events: list[Event] = []
        self.listener: Callable[[Event], None] | None = None
        self.gone = gone
        self.unsettled: dict[str, Held] = {}
        self.deliveries = 0

    def tell(self, event: Event) -> None:
        """Report an event."""
        if self.listener is None:
            self.events.append(event)
        else:
            self.listener(event)

    def send(self, subscription: Consumer, entry: Held) -> None:
        """Send a message; an acquired one can be settled from now on, unless sending settles it."""
        assert entry.message is not None, "a dummy head is never sent"
        # Register first: it may be settled as soon as it is sent.
        delivery = self.register(subscription, entry)
        self.tell(
            Delivered(
                delivery=delivery,
                consumer=subscription.consumer,
                queue=subscription.queue,
                message=entry.message.id,
                redelivered=entry.redelivered,
            )
        )

    def register(self, subscription: Consumer, entry: Held) -> str:
        """Return the name of a new delivery; register it if it needs a settlement."""
        delivery = f"d{self.deliveries}"
        self.deliveries += 1
        if subscription.mode.acquires and not subscription.mode.settled_when_sent:
            self.unsettled[delivery] = entry
        return delivery

    def settle(self, delivery: str) -> Held | None:
        """Settle a delivery and return its entry; None if it is unknown or settled already."""
        return self.unsettled.pop(delivery, None)

    def outstanding(self) -> list[tuple[str, Held]]:
        """Return the deliveries that are not settled, oldest first."""
        return list(self.unsettled.items())

    def forget_what_has_gone(self) -> None:
        """Remove unsettled deliveries whose entry has left its queue."""
        for delivery, entry in self.outstanding():
            if entry.is_dispensed():
                self.settle(delivery)

    def take_events(self) -> tuple[Event, ...]:
        """Return the events since the last call, in the order in which they happened."""
        if not self.events:
            return ()
        events = tuple(self.events)
        self.events.clear()
        return events


class Job(Protocol):
    """A scheduled piece of work."""

    def run(self) -> None:
        """Run it; it may schedule itself or others."""
        ...

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Return whether it has nothing to do once `leaving` is gone."""
        ...

    def name(self) -> Hashable:
        """Return a value that tells it from other jobs."""
        ...


class Executor:
    """The documents' executor: it runs jobs in the order in which they were scheduled.

    With a `start`, each job becomes a thread. `clock` is the broker's clock.
    """

    __slots__ = ("clock", "jobs", "start")

    def __init__(self) -> None:
        self.clock = Clock()
        self.jobs: list[Job] = []
        self.start: Callable[[str, Callable[[], None]], None] | None = None

    def execute(self, job: Job) -> None:
        """Schedule `job`."""
        if self.start is None:
            self.jobs.append(job)
        else:
            self.start(repr(job), job.run)

    def withdraw(self, leaving: AnyQueue | Consumer) -> None:
        """Remove the jobs that only served `leaving`: they would do nothing."""
        if self.jobs:
            self.jobs = [job for job in self.jobs if not job.serves(leaving)]

    def run_next(self) -> bool:
        """Run the oldest job; return whether it used up its slice and scheduled itself again."""
        job = self.jobs.pop(0)
        job.run()
        return bool(self.jobs) and self.jobs[-1] is job
