"""What has left the broker: events not yet told, deliveries not yet settled, jobs not yet run.

Owns the names of deliveries. Refuses to know queues: a delivery refers to what was handed out,
which says who holds it.
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
    from brokerproof.reference.qpid.push.snapshots import Copies


@atomic_steps(writes=("register", "settle"), reads=("outstanding",))
class Outbox:
    """Events for the next answer, and the deliveries that may still be settled, oldest first.

    With a `tell`, events are handed to it at once and are in no answer. Whoever keeps the names of
    consumers and queues is told by `gone` that one has ended by itself, before clients are, and
    says whether its name was still known.
    """

    __slots__ = ("deliveries", "events", "gone", "tell", "unsettled")

    def __init__(self, gone: Callable[[AnyQueue | Consumer], bool]) -> None:
        self.events: list[Event] = []
        self.tell: Callable[[Event], None] = self.events.append
        self.gone = gone
        self.unsettled: dict[str, Held] = {}
        self.deliveries = 0

    def send(self, subscription: Consumer, entry: Held) -> None:
        """Send a message; what was acquired, and is not settled by that, can be settled now."""
        assert entry.message is not None, "a dummy head is never sent"
        # Before it is sent: it may be settled as soon as it is.
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
        """Return the name of a new delivery, which can be settled where it has to be."""
        delivery = f"d{self.deliveries}"
        self.deliveries += 1
        if subscription.mode.acquires and not subscription.mode.settled_when_sent:
            self.unsettled[delivery] = entry
        return delivery

    def settle(self, delivery: str) -> Held | None:
        """Return what was sent by a delivery that was not settled before; it is now."""
        return self.unsettled.pop(delivery, None)

    def outstanding(self) -> list[tuple[str, Held]]:
        """Return the deliveries that are not settled, oldest first."""
        return list(self.unsettled.items())

    def forget_what_has_gone(self) -> None:
        """Let nobody settle what has been dropped meanwhile."""
        for delivery, entry in self.outstanding():
            if entry.is_dispensed():
                self.settle(delivery)

    def take_over(self, other: Outbox, copy_of: Callable[[Held], Held]) -> None:
        """Have what another has, with copies of what it was sent."""
        self.deliveries = other.deliveries
        self.events.extend(other.events)
        self.unsettled = {name: copy_of(held) for name, held in other.unsettled.items()}

    def take_events(self) -> tuple[Event, ...]:
        """Return the events since the last call, in the order in which they happened."""
        if not self.events:
            return ()
        events = tuple(self.events)
        self.events.clear()
        return events


class Job(Protocol):
    """Something to be run when its turn comes."""

    def run(self) -> None:
        """Do it; may schedule itself or others."""
        ...

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Whether there is nothing left for it to do without `leaving`."""
        ...

    def name(self) -> Hashable:
        """Return what tells it from other jobs."""
        ...

    def fork(self, copies: Copies) -> Job:
        """Return the same job for the copy of its broker."""
        ...


class Executor:
    """The documents' executor: jobs are run in the order in which they were scheduled.

    With a `start`, each is started as a thread of its own. `clock` is the time for all.
    """

    __slots__ = ("clock", "jobs", "start")

    def __init__(self, seconds: int = 0) -> None:
        self.clock = Clock(seconds)
        self.jobs: list[Job] = []
        self.start: Callable[[str, Callable[[], None]], None] | None = None

    def execute(self, job: Job) -> None:
        """Schedule `job`."""
        if self.start is None:
            self.jobs.append(job)
        else:
            self.start(repr(job), job.run)

    def withdraw(self, leaving: AnyQueue | Consumer) -> None:
        """Forget the jobs that only served `leaving`: they would find nothing to do."""
        if self.jobs:
            self.jobs = [job for job in self.jobs if not job.serves(leaving)]

    def run_next(self) -> bool:
        """Run the oldest job; say whether it has scheduled itself again, its slice used up."""
        job = self.jobs.pop(0)
        job.run()
        return bool(self.jobs) and self.jobs[-1] is job
