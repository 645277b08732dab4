"""A queue of jobs in memory: leases, limits, dead letters, delays, groups.

It is an example for implementers of job queues, written from the protocol's text alone. A job that
is taken is hidden for a time, its lease. If it is not settled by then it is there again, until it
was taken too often. Try it, then break a line and try again:

    brokerproof check examples/job_queue.py:make_queue
    brokerproof check examples/job_queue.py:make_unordered_queue
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.answers import (
    OK,
    Answer,
    Delivered,
    Event,
    LeaseExpired,
    refused,
    unsupported,
)
from brokerproof.spec.protocol.capabilities import Capabilities, Hello, OrderKind
from brokerproof.spec.protocol.claimed import unclaimed
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Extend,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    name_of,
)


@dataclass
class Job:
    """A message, how often it was delivered, and its holder, if there is one."""

    message: Message
    times: int = 0
    delivery: str | None = None
    channel: str = ""
    holder: str = ""
    due: int | None = None
    ready_at: int = 0


@dataclass
class Jobs:
    """A queue: its declaration, and its jobs in the order of arrival."""

    declared: Declare
    jobs: list[Job] = field(default_factory=list)

    def waiting(self) -> list[Job]:
        """Return the jobs that are not held."""
        return [job for job in self.jobs if job.delivery is None]


class JobQueue:
    """The queues, the consumers, and the clock."""

    def __init__(self, order: OrderKind = "fifo") -> None:
        self.order = order
        self.claims = Capabilities(
            orders=(order,),
            modes=("acknowledge",),
            get=True,
            redelivered="count",
            release_position="original" if order == "fifo" else None,
            clock=True,
            lease="told",
            extend=True,
            delivery_limit=True,
            dead_letters=("exhausted", "rejected"),
            delayed_release=True,
            length_limit=("refuse", "drop_head"),
            groups=True,
        )
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.queues: dict[str, Jobs] = {}
        self.consumers: dict[str, Consume] = {}
        self.events: list[Event] = []
        self.deliveries = 0
        self.now = 0

    def hello(self) -> Hello:
        """Return name, version and claims."""
        return Hello(name="job-queue", version="1", capabilities=self.claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, serve the consumers, and return the events."""
        missing = unclaimed(operation, self.claims)
        answer = unsupported(missing) if missing else self.carry_out(operation)
        self.serve()
        told, self.events = tuple(self.events), []
        return Answer(told, answer.error)

    def carry_out(self, operation: Operation) -> Answer:
        """Carry out one operation; refuse invalid ones."""
        match operation:
            case Reset():
                self.reset()
            case Declare():
                return self.declare(operation)
            case Publish():
                return self.publish(operation)
            case Get(queue=queue):
                if queue not in self.queues:
                    return refused(f"no queue {queue}")
                if job := self.next_job(queue, f"get on {operation.channel}"):
                    self.take(queue, job, operation.channel, None)
            case Consume():
                return self.consume(operation)
            case Cancel(consumer=consumer):
                if self.consumers.pop(consumer, None) is None:
                    return refused(f"no consumer {consumer}")
            case CloseChannel(channel=channel):
                self.close(channel)
            case Acknowledge() | Release() | Reject() | Extend():
                return self.settle(operation)
            case Advance(seconds=seconds):
                self.now += seconds
                self.end_leases()
            case Drain():
                pass
            case _:
                return unsupported(name_of(operation))
        return OK

    def declare(self, declare: Declare) -> Answer:
        """Make a queue."""
        if declare.dead_letters is not None and declare.dead_letters not in self.queues:
            return refused(f"no queue {declare.dead_letters}")
        known = self.queues.setdefault(declare.queue, Jobs(declare))
        return OK if known.declared == declare else refused(f"{declare.queue} exists already")

    def publish(self, publish: Publish) -> Answer:
        """Put a message into its queue, if there is room."""
        queue = self.queues.get(publish.queue)
        if queue is None:
            return refused(f"no queue {publish.queue}")
        declared = queue.declared
        full = declared.length is not None and len(queue.waiting()) >= declared.length
        if full and declared.overflow == "refuse":
            return refused(f"{publish.queue} is full")
        queue.jobs.append(Job(publish.message))
        self.shorten(queue)
        return OK

    def shorten(self, queue: Jobs) -> None:
        """Drop the first waiting jobs of a queue that is too long."""
        if queue.declared.overflow == "drop_head":
            assert queue.declared.length is not None
            while len(queue.waiting()) > queue.declared.length:
                queue.jobs.remove(queue.waiting()[0])

    def consume(self, consume: Consume) -> Answer:
        """Let a consumer subscribe."""
        if consume.queue not in self.queues or consume.consumer in self.consumers:
            return refused("no such queue, or a name in use")
        self.consumers[consume.consumer] = consume
        return OK

    def serve(self) -> None:
        """Give each consumer what there is for it."""
        for name, consume in self.consumers.items():
            while job := self.next_job(consume.queue, name):
                self.take(consume.queue, job, consume.channel, name)

    def next_job(self, queue: str, consumer: str) -> Job | None:
        """Return the next job for a consumer or a get."""
        found = [
            job
            for job in self.queues[queue].waiting()
            if job.ready_at <= self.now and not self.is_locked(queue, job, consumer)
        ]
        return found[0 if self.order == "fifo" else -1] if found else None

    def is_locked(self, queue: str, job: Job, consumer: str) -> bool:
        """Whether another consumer holds a job of the same group."""
        return job.message.group is not None and any(
            other.message.group == job.message.group and other.holder != consumer
            for other in self.queues[queue].jobs
            if other.delivery is not None
        )

    def take(self, queue: str, job: Job, channel: str, consumer: str | None) -> None:
        """Deliver a job, and begin its lease."""
        self.deliveries += 1
        job.delivery, job.channel = f"d{self.deliveries}", channel
        job.holder = consumer or f"get on {channel}"
        job.due = self.lease_end(self.queues[queue])
        self.events.append(
            Delivered(
                delivery=job.delivery,
                consumer=consumer,
                queue=queue,
                message=job.message.id,
                redelivered=job.times > 0,
                count=job.times,
            )
        )
        job.times += 1

    def lease_end(self, queue: Jobs) -> int | None:
        """Return when a lease ends that begins now; None where there are no leases."""
        lease_s = queue.declared.lease_s
        return None if lease_s is None else self.now + lease_s

    def held(self) -> Iterator[tuple[Jobs, Job]]:
        """Yield the jobs that are held, each with its queue."""
        for queue in self.queues.values():
            yield from ((queue, job) for job in [*queue.jobs] if job.delivery is not None)

    def settle(self, operation: Acknowledge | Release | Reject | Extend) -> Answer:
        """Settle a delivery, or renew its lease; a lease that is over settles nothing."""
        for queue, job in self.held():
            if job.delivery != operation.delivery:
                continue
            match operation:
                case Acknowledge():
                    queue.jobs.remove(job)
                case Reject():
                    self.bury(queue, job)
                case Release(delay_s=delay_s):
                    job.ready_at = self.now + (delay_s or 0)
                    self.give_back(queue, job)
                case Extend():
                    job.due = self.lease_end(queue)
            return OK
        return refused(f"{operation.delivery} is not held")

    def give_back(self, queue: Jobs, job: Job) -> None:
        """Return a job to its queue, unless it was delivered often enough."""
        job.delivery, job.due = None, None
        most = queue.declared.deliveries
        if most is not None and job.times >= most:
            self.bury(queue, job)
        self.shorten(queue)

    def bury(self, queue: Jobs, job: Job) -> None:
        """Drop a job, or make it a dead letter."""
        queue.jobs.remove(job)
        if queue.declared.dead_letters is not None:
            self.queues[queue.declared.dead_letters].jobs.append(Job(job.message))

    def close(self, channel: str) -> None:
        """Let the consumers of a channel leave, and release what was taken through it."""
        for name in [name for name, each in self.consumers.items() if each.channel == channel]:
            del self.consumers[name]
        for queue, job in self.held():
            if job.channel == channel:
                self.give_back(queue, job)

    def end_leases(self) -> None:
        """Return the jobs whose leases are over."""
        for queue, job in self.held():
            if job.due is not None and job.due <= self.now:
                self.events.append(LeaseExpired(message=job.message.id))
                self.give_back(queue, job)


def make_queue() -> JobQueue:
    """Return a queue of jobs, first in first out."""
    return JobQueue()


def make_unordered_queue() -> JobQueue:
    """Return a queue of jobs that promises no order; it happens to give the last job first."""
    return JobQueue("none")
