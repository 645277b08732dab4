"""beanstalkd as a queue of jobs: leases in real time, priorities, delays.

Each queue is a tube, each message a job, and each channel a connection of its own, since a job is
reserved for a connection. The commands of its protocol become the operations:

    publish         use, put, with the queue's lease as time to run (TTR)
    get             watch, reserve-with-timeout 0, stats-job for the count of earlier deliveries
    acknowledge     delete
    release         release, with the priority of before
    reject          bury
    extend          touch
    close_channel   quit
    advance         sleep: the server has the clock of the machine

Ids of deliveries and names of queues and channels are the adapter's. A command names a job and no
delivery, and the server decides its effect. Puts go through one connection for each thread, and a
connection of a channel is used by one thread at a time: `handle` may be called by several.

Not claimed: durability. With `-b` beanstalkd keeps all jobs, and the claim needs transient ones.

    brokerproof check examples/recipes/beanstalkd_queue.py:make_queue --effort quick

`docs/findings/beanstalkd.md` has the verdicts and their reasons.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.messages import PRIORITIES, Message, Priority, level_of
from brokerproof.spec.protocol.answers import OK, Answer, refused
from brokerproof.spec.protocol.capabilities import Capabilities, SettleBy
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Declare,
    Extend,
    Publish,
    Reject,
    Release,
    Settlement,
)

if TYPE_CHECKING or __package__:
    from .adapter import Adapter, Held, Taken
    from .private_server import PrivateServer, once
else:
    from adapter import Adapter, Held, Taken
    from private_server import PrivateServer, once

NAME = "a private beanstalkd"
PROGRAM = Path("/usr/bin/beanstalkd")
INSTALL = "install it with: sudo apt-get install --no-install-recommends beanstalkd"

ANSWER_S_MAX = 8.0
TTR_MAX_S = 2**32 - 1
"""The longest time to run; a queue without leases has it."""

try:
    import greenstalk
except ModuleNotFoundError as error:
    raise CandidateUnavailable(
        NAME, what="the client greenstalk is not installed", remedy="pip install greenstalk"
    ) from error


def make_queue() -> BeanstalkdQueue:
    """Return the queue as the protocol means it to be used."""
    return BeanstalkdQueue(beanstalkd_of_this_process())


def make_queue_claiming_deliveries() -> BeanstalkdQueue:
    """Return the same with a wrong claim: a command names one delivery, not its job."""
    return BeanstalkdQueue(beanstalkd_of_this_process(), settle_by="delivery")


def make_queue_that_releases_by_default() -> BeanstalkdQueue:
    """Return a wrong use: release without a priority, for which the client sends its default."""
    return BeanstalkdQueue(beanstalkd_of_this_process(), released_with=greenstalk.DEFAULT_PRIORITY)


class Beanstalkd:
    """The server, on a socket in its own folder, and all connections to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: set[Connection] = set()
        self._server = PrivateServer(NAME, PROGRAM, INSTALL, user="beanstalkd")
        self._socket = str(self._server.folder / "socket")
        self._server.start(["-l", f"unix:{self._socket}"], self._answers)
        self.version = str(self.connect().client.stats()["version"])

    def connect(self) -> Connection:
        """Return a new connection."""
        connection = Connection(self._socket)
        with self._lock:
            self._connections.add(connection)
        return connection

    def disconnect(self, *connections: Connection) -> None:
        """Close these connections, or else all."""
        with self._lock:
            closing = connections or tuple(self._connections)
            self._connections.difference_update(closing)
        for connection in closing:
            connection.close()

    def _answers(self) -> bool:
        try:
            self.disconnect(self.connect())
        except (FileNotFoundError, ConnectionError):
            return False
        return True

    def close(self) -> None:
        """Close the connections, and end the server."""
        self.disconnect()
        self._server.close()


def beanstalkd_of_this_process() -> Beanstalkd:
    """Return the one server of this process."""
    return once(NAME, Beanstalkd, Beanstalkd.close)


class Connection:
    """A connection with its client; the thread that holds `lock` may use it."""

    def __init__(self, path: str) -> None:
        self.lock = threading.Lock()
        self._watched = greenstalk.DEFAULT_TUBE
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_S_MAX)
        try:
            self._socket.connect(path)
        except BaseException:
            self._socket.close()
            raise
        self.client: greenstalk.Client[bytes] = greenstalk.Client(self._socket, encoding=None)

    def watch(self, tube: str) -> None:
        """Take jobs from this tube alone from now on."""
        if tube != self._watched:
            self.client.watch(tube)
            self.client.ignore(self._watched)
            self._watched = tube

    def close(self) -> None:
        """Quit, and return when the server has: it releases all jobs before it reads on."""
        with suppress(ConnectionError):
            self._socket.sendall(b"quit\r\n")
            while self._socket.recv(1):
                pass
        self.client.close()


class BeanstalkdQueue(Adapter):
    """Queues in tubes."""

    name = "beanstalkd"

    def __init__(
        self,
        server: Beanstalkd,
        *,
        settle_by: SettleBy = "message",
        released_with: int | None = None,
    ) -> None:
        super().__init__()
        self._server, self.version = server, server.version
        self._released_with = released_with
        self.claims = Capabilities(
            orders=("fifo", "priority"),
            priority_mapping="clamp",
            get=True,
            settle_by=settle_by,
            redelivered="count",
            release_position="original",
            clock=True,
            delay=True,
            lease="silent",
            extend=True,
            delayed_release=True,
            tolerance_s=1,
        )
        self._channels: dict[str, Connection] = {}
        self._of_thread = threading.local()

    def close(self) -> None:
        """Close all connections to the server: one candidate at a time uses it."""
        self._server.disconnect()

    def empty(self) -> None:
        """Close all connections, so that no job is reserved, and delete the jobs of every tube."""
        self._server.disconnect()
        self._channels.clear()
        self._of_thread = threading.local()
        client = self._server.connect().client
        for tube in client.tubes():
            client.use(tube)
            for peek in (client.peek_ready, client.peek_delayed, client.peek_buried):
                with suppress(greenstalk.NotFoundError):
                    while True:
                        client.delete(peek())

    def publish_all(self, queue: Declare, publish: Publish) -> Answer:
        """Put a job, with its delay."""
        if publish.message.priority not in PRIORITIES:
            return refused(f"priority {publish.message.priority} is not one of 0 to 9")
        self._put(queue, publish.message, publish.not_before_s or 0)
        return OK

    def publish(self, queue: Declare, message: Message) -> None:
        """Put a job without a delay."""
        self._put(queue, message, 0)

    def _put(self, queue: Declare, message: Message, delay_s: int) -> None:
        mine: Connection | None = getattr(self._of_thread, "connection", None)
        if mine is None:
            mine = self._of_thread.connection = self._server.connect()
        mine.client.use(_tube(queue))
        body = json.dumps([message.id, "x" * message.size]).encode()
        ttr_s = TTR_MAX_S if queue.lease_s is None else queue.lease_s
        mine.client.put(body, _urgency(message, queue), delay_s, ttr_s)

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Reserve a job, and ask how often it was reserved and with which priority."""
        assert not automatic, "it is not claimed"
        connection = self._connection(channel)
        with connection.lock:
            connection.watch(_tube(queue))
            try:
                job = connection.client.reserve(timeout=0)
            except (greenstalk.TimedOutError, greenstalk.DeadlineSoonError):
                return None  # the latter: nothing is ready, and a job is due back within a second
            known = connection.client.stats_job(job)
        message, _ = json.loads(job.body)
        return Taken(message, f"{job.id} {known['pri']}", known["reserves"] - 1)

    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Send the command for the job; it may be reserved for another connection by now."""
        number, priority = map(int, held.taken.key.split())
        job = greenstalk.Job(number, b"")
        connection = self._connection(held.channel)
        try:
            with connection.lock:
                match settlement:
                    case Acknowledge():
                        connection.client.delete(job)
                    case Release(delay_s=delay_s):
                        urgency = priority if self._released_with is None else self._released_with
                        connection.client.release(job, urgency, delay_s or 0)
                    case Reject():
                        connection.client.bury(job, priority)
                    case Extend():
                        connection.client.touch(job)
                    case _:
                        assert_never(settlement)
        except greenstalk.NotFoundError:
            return False
        return True

    def leave(self, channel: str, queues: list[str]) -> None:  # noqa: ARG002 (quit frees of all)
        """Close the channel's connection."""
        with self._lock:
            connection = self._channels.pop(channel, None)
        if connection is not None:
            with connection.lock:
                self._server.disconnect(connection)

    def _connection(self, channel: str) -> Connection:
        with self._lock:
            if channel not in self._channels:
                self._channels[channel] = self._server.connect()
            return self._channels[channel]


def _tube(queue: Declare) -> str:
    # The names of tubes are shorter, and of fewer characters.
    return f"q{queue.queue.encode().hex()}"[:200]


def _urgency(message: Message, queue: Declare) -> int:
    """Return the priority of a job: the most urgent is 0."""
    order = queue.order
    levels = order.levels if isinstance(order, Priority) else 1
    return levels - 1 - level_of(message.priority, order, "clamp")
