"""A queue of jobs for threads, behind one lock, and one with a race.

    brokerproof trace record examples/threaded_queue.py:make_queue history.jsonl
    brokerproof trace record examples/threaded_queue.py:make_racy_queue racy.jsonl

Several threads call `handle` of one object. The racy queue looks for a job and reserves it under
two locks, one after the other, so that two workers can reserve one job.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    name_of,
)


class ThreadedQueue:
    """The jobs of each queue in order, the held ones with their holders, and the lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.jobs: dict[str, list[str]] = {}
        self.held: dict[str, tuple[str, str, str]] = {}
        self.returned: set[str] = set()
        self.numbers = itertools.count()

    def hello(self) -> Hello:
        """Claim single gets, first in first out; a returned job takes its place again."""
        return Hello(
            name="threaded-queue",
            version="1",
            capabilities=Capabilities(get=True, release_position="original"),
        )

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation; a get is the only one that gives a message."""
        match operation:
            case Get():
                return self.get(operation)
            case Reset() | Declare() | Publish() | CloseChannel() | Drain():
                with self.lock:
                    return self.carry_out(operation)
            case Acknowledge() | Release() | Reject():
                with self.lock:
                    return self.settle(operation)
            case _:
                return unsupported(name_of(operation))

    def carry_out(self, operation: Operation) -> Answer:
        """Carry out an operation on a queue or a channel."""
        match operation:
            case Reset():
                self.reset()
            case Declare(queue=queue):
                self.jobs.setdefault(queue, [])
            case Publish(queue=queue, message=message):
                if queue not in self.jobs:
                    return refused(f"no queue {queue}")
                self.jobs[queue].append(message.id)
            case CloseChannel(channel=channel):
                for delivery in [d for d, held in self.held.items() if held[2] == channel]:
                    self.give_back(delivery)
        return OK

    @contextmanager
    def between(self) -> Iterator[None]:
        """Do what is done between the look for a job and its reservation: nothing."""
        yield

    def get(self, get: Get) -> Answer:
        """Reserve the first job that is not reserved."""
        with self.lock:
            if get.queue not in self.jobs:
                return refused(f"no queue {get.queue}")
            taken = {job for queue, job, _ in self.held.values() if queue == get.queue}
            job = next((each for each in self.jobs[get.queue] if each not in taken), None)
            if job is None:
                return OK
            with self.between():
                delivery = f"d{next(self.numbers)}"
                self.held[delivery] = get.queue, job, get.channel
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue=get.queue,
            message=job,
            redelivered=job in self.returned,
        )
        return Answer((told,))

    def settle(self, operation: Acknowledge | Release | Reject) -> Answer:
        """Remove a job, or give it back."""
        if operation.delivery not in self.held:
            return refused(f"{operation.delivery} is not held")
        if isinstance(operation, Release):
            self.give_back(operation.delivery)
            return OK
        queue, job, _ = self.held.pop(operation.delivery)
        self.jobs[queue].remove(job)
        return OK

    def give_back(self, delivery: str) -> None:
        """Make a job available again, at its place."""
        self.returned.add(self.held.pop(delivery)[1])


class RacyQueue(ThreadedQueue):
    """A queue that gives its lock back for a moment before it reserves a job."""

    @contextmanager
    def between(self) -> Iterator[None]:
        """Let another thread have the lock."""
        self.lock.release()
        self.lock.acquire()
        yield


def make_queue() -> ThreadedQueue:
    """Return the correct queue."""
    return ThreadedQueue()


def make_racy_queue() -> RacyQueue:
    """Return the one with a race."""
    return RacyQueue()
