"""What the adapters of the recipes share: names of queues, deliveries, and which call means what.

The file knows no product. A recipe says how its server stores, takes and settles a message, and
repairs nothing. Several threads may call `handle` at once: the tables here change behind one lock,
which is never held while the server works, except to empty it.
"""

from __future__ import annotations

import abc
import threading
import time
from dataclasses import dataclass

from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.answers import (
    OK,
    Answer,
    Delivered,
    Error,
    refused,
    unsupported,
)
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.claimed import unclaimed
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    CloseChannel,
    Declare,
    Drain,
    Extend,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    Settlement,
    name_of,
)


@dataclass(frozen=True)
class Taken:
    """A message that the server gave: the `key` that settles it, and its earlier deliveries."""

    message: str
    key: str
    before: int = 0


@dataclass(frozen=True)
class Held:
    """A delivery: what was taken, from which queue, through which channel."""

    taken: Taken
    queue: Declare
    channel: str


class Adapter(abc.ABC):
    """A candidate that translates operations to calls of one server.

    `second_s` is how long a second of the protocol takes. A busy machine may put the server's clock
    ahead of `advance` by more than the tolerance that is claimed. Then an answer that depends on a
    lease is not certain, and `timeout` says so.
    """

    name: str
    version: str
    claims: Capabilities
    second_s = 1.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, Declare] = {}
        self._deliveries: dict[str, Held] = {}
        self._made = 0
        self._began = self._advanced = 0.0

    def hello(self) -> Hello:
        """Return name, version and claims."""
        return Hello(name=self.name, version=self.version, capabilities=self.claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        if missing := unclaimed(operation, self.claims):
            return unsupported(missing)
        match operation:
            case Reset():
                return self._reset()
            case Declare():
                return self._declare(operation)
            case Publish() | Get():
                with self._lock:
                    queue = self._queues.get(operation.queue)
                if queue is None:
                    return refused(f"there is no queue {operation.queue}")
                if isinstance(operation, Get):
                    return self._get(operation, queue)
                return self.publish_all(queue, operation)
            case Acknowledge() | Release() | Reject() | Extend():
                return self._settle(operation)
            case CloseChannel(channel=channel):
                with self._lock:
                    queues = [*self._queues]
                self.leave(channel, queues)
            case Advance(seconds=seconds):
                self._advance(seconds * self.second_s)
            case Drain():
                pass
            case _:
                return unsupported(f"{self.name} has no {name_of(operation)}")
        return OK

    def _reset(self) -> Answer:
        with self._lock:
            self._queues.clear()
            self._deliveries.clear()
            self._made = 0
            self.empty()
            self._began, self._advanced = time.monotonic(), 0.0
        return OK

    def _advance(self, real_s: float) -> None:
        with self._lock:
            self._advanced += real_s
        time.sleep(real_s)

    def _certain(self, answer: Answer, queue: Declare) -> Answer:
        """Return an answer, or that it is not certain since too much time has passed."""
        with self._lock:
            ahead_s = time.monotonic() - self._began - self._advanced
        # In whole seconds, a clock that is ahead by less than one more is ahead by the tolerance.
        if queue.lease_s is None or ahead_s < (self.claims.tolerance_s + 1) * self.second_s:
            return answer
        return Answer(error=Error("timeout", f"the server's clock is {ahead_s:.2f} s ahead"))

    def _declare(self, declare: Declare) -> Answer:
        with self._lock:
            known = self._queues.get(declare.queue)
            if known is None:
                self.create(declare)
                self._queues[declare.queue] = declare
        return OK if known in (None, declare) else refused(f"{declare.queue} exists already")

    def _get(self, get: Get, queue: Declare) -> Answer:
        taken = self.take(queue, get.channel, automatic=get.mode == "automatic")
        if taken is None:
            return self._certain(OK, queue)
        with self._lock:
            delivery = f"d{self._made}"
            self._made += 1
            self._deliveries[delivery] = Held(taken, queue, get.channel)
        counts = self.claims.redelivered == "count"
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue=queue.queue,
            message=taken.message,
            redelivered=taken.before > 0,
            count=taken.before if counts else None,
        )
        return self._certain(Answer((told,)), queue)

    def _settle(self, settlement: Settlement | Extend) -> Answer:
        with self._lock:
            held = self._deliveries.get(settlement.delivery)
        if held is None:
            return refused(f"there is no delivery {settlement.delivery}")
        done = self.settle(settlement, held)
        answer = OK if done else refused(f"{settlement.delivery} is not held")
        return self._certain(answer, held.queue)

    def publish_all(self, queue: Declare, publish: Publish) -> Answer:
        """Carry out a publish with all its options; by default there are none."""
        self.publish(queue, publish.message)
        return OK

    @abc.abstractmethod
    def empty(self) -> None:
        """Remove everything from the server."""

    @abc.abstractmethod
    def publish(self, queue: Declare, message: Message) -> None:
        """Store a message."""

    @abc.abstractmethod
    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Take the next message, for good if `automatic`."""

    @abc.abstractmethod
    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Settle a delivery; return whether the server knew it."""

    @abc.abstractmethod
    def leave(self, channel: str, queues: list[str]) -> None:
        """Give back what a channel holds of any queue."""

    def create(self, declare: Declare) -> None:  # noqa: B027 (many servers have nothing to make)
        """Make a queue."""
