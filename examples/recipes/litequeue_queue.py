"""litequeue as a candidate: a library from PyPI that keeps a queue in a table of SQLite.

Its calls become the operations of the protocol, and the adapter repairs nothing:

    publish         put; refused where the table's trigger for maxsize aborts the INSERT
    get             pop, which locks a row
    acknowledge     done
    release         retry
    reject          mark_failed
    close_channel   retry of each delivery that its gets hold, in the order of delivery

Queues by name, channels and deliveries are the adapter's. Each queue is a file, as the library
recommends, and each thread has a connection of its own to each file: `handle` may be called by
several threads. A settlement names a row, and the library decides its effect.

Not claimed: a flag or a count of earlier deliveries, and leases, since the library has none;
durability, since a crash here would end the gate too.

    brokerproof check examples/recipes/litequeue_queue.py:make_queue
    brokerproof check examples/recipes/litequeue_queue.py:make_queue_that_peeks

`docs/findings/litequeue.md` has the verdicts and their reasons.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import assert_never

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello, SettleBy
from brokerproof.spec.protocol.claimed import unclaimed
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
    Settlement,
    name_of,
)

try:
    import litequeue
    from litequeue import LiteQueue
except ModuleNotFoundError as error:
    raise CandidateUnavailable(
        "litequeue", what="it is not installed", remedy="pip install litequeue"
    ) from error


def make_queue() -> LiteQueueBroker:
    """Return the queue as the library means it to be used."""
    return LiteQueueBroker()


def make_queue_claiming_deliveries() -> LiteQueueBroker:
    """Return the same with a wrong claim: a settlement names one delivery, not its row."""
    return LiteQueueBroker(settle_by="delivery")


def make_queue_that_peeks() -> LiteQueueBroker:
    """Return a wrong use: get looks with `peek`, which locks nothing, and `done` removes later."""
    return LiteQueueBroker(peeks=True)


class LiteQueueBroker:
    """Queues in files of their own, below one temporary folder; those of a copy are in memory."""

    def __init__(
        self, *, settle_by: SettleBy = "message", peeks: bool = False, in_memory: bool = False
    ) -> None:
        self._claims = Capabilities(
            get=True,
            settle_by=settle_by,
            redelivered="none",
            release_position="original",
            length_limit=("refuse",),
        )
        self._peeks = peeks
        self._lock = threading.Lock()
        self._folder = (
            None if in_memory else Path(tempfile.mkdtemp(prefix="brokerproof-litequeue-"))
        )
        self._begin()

    def _begin(self) -> None:
        self._mine = threading.local()
        self._opened: list[LiteQueue] = []
        self._declared: dict[str, Declare] = {}
        self._rows: dict[str, tuple[str, str]] = {}
        self._held: dict[str, list[str]] = {}

    def hello(self) -> Hello:
        """Claim what the library offers: first in, first out, one message at a time, a limit."""
        return Hello(name="litequeue", version=litequeue.__version__, capabilities=self._claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        if missing := unclaimed(operation, self._claims):
            return unsupported(missing)
        match operation:
            case Reset():
                return self._reset()
            case Declare():
                return self._declare(operation)
            case Publish() | Get() if operation.queue not in self._declared:
                return refused(f"there is no queue {operation.queue}")
            case Publish():
                return self._publish(operation)
            case Get():
                return self._get(operation)
            case Acknowledge() | Release() | Reject():
                return self._settle(operation)
            case CloseChannel():
                return self._close_channel(operation)
            case Drain():
                return OK
            case _:
                return unsupported(f"litequeue has no {name_of(operation)}")

    def close(self) -> None:
        """Close the connections of all threads, and remove the files."""
        for queue in self._opened:
            queue.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def _reset(self) -> Answer:
        self.close()
        if self._folder is not None:
            self._folder.mkdir()
        self._begin()
        return OK

    def _declare(self, operation: Declare) -> Answer:
        with self._lock:
            if self._declared.setdefault(operation.queue, operation) != operation:
                return refused(f"{operation.queue} exists already")
        self._queue(operation.queue)
        return OK

    def _queue(self, name: str) -> LiteQueue:
        """Return this thread's connection to a queue."""
        mine: dict[str, LiteQueue] = self._mine.__dict__
        if name not in mine:
            with self._lock:
                number, length = list(self._declared).index(name), self._declared[name].length
                file = None if self._folder is None else self._folder / f"{number}.sqlite3"
                mine[name] = LiteQueue(file, memory=file is None, maxsize=length)
                self._opened.append(mine[name])
        return mine[name]

    def _publish(self, operation: Publish) -> Answer:
        message = operation.message
        try:
            self._queue(operation.queue).put(json.dumps([message.id, "." * message.size]))
        except sqlite3.IntegrityError as error:
            return refused(str(error))
        return OK

    def _get(self, operation: Get) -> Answer:
        queue = self._queue(operation.queue)
        row = queue.peek() if self._peeks else queue.pop()
        if row is None:
            return OK
        with self._lock:
            delivery = f"d{len(self._rows)}"
            self._rows[delivery] = operation.queue, row.message_id
            self._held.setdefault(operation.channel, []).append(delivery)
        message, _ = json.loads(row.data)
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue=operation.queue,
            message=message,
            redelivered=False,
        )
        return Answer((told,))

    def _settle(self, operation: Settlement) -> Answer:
        if operation.delivery not in self._rows:
            return refused(f"there is no delivery {operation.delivery}")
        name, row = self._rows[operation.delivery]
        queue = self._queue(name)
        match operation:
            case Acknowledge():
                queue.done(row)
            case Release():
                queue.retry(row)
            case Reject():
                queue.mark_failed(row)
            case _:
                assert_never(operation)
        with self._lock:
            for held in self._held.values():
                if operation.delivery in held:
                    held.remove(operation.delivery)
        return OK

    def _close_channel(self, operation: CloseChannel) -> Answer:
        with self._lock:
            held = self._held.pop(operation.channel, [])
        for delivery in held:
            name, row = self._rows[delivery]
            self._queue(name).retry(row)
        return OK

    # These let the gate search every behaviour of a scope; otherwise it plays sequences anew.

    def fork(self) -> LiteQueueBroker:
        """Return an independent copy, in memory."""
        twin = LiteQueueBroker(settle_by=self._claims.settle_by, peeks=self._peeks, in_memory=True)
        twin._declared = dict(self._declared)
        twin._rows = dict(self._rows)
        twin._held = {channel: list(held) for channel, held in self._held.items()}
        for name in self._declared:
            self._queue(name).conn.backup(twin._queue(name).conn)
        return twin

    def fingerprint(self) -> Hashable:
        """Return the rows in their order, and which of them the deliveries name."""
        tables, places = [], {}
        for name, declared in self._declared.items():
            queue = self._queue(name)
            rows = queue.conn.execute(
                f"SELECT message_id, data, status FROM {queue.table} ORDER BY message_id"  # noqa: S608
            ).fetchall()
            places.update({(name, row[0]): place for place, row in enumerate(rows)})
            tables.append((name, declared.length, tuple((row[1], row[2]) for row in rows)))
        named = {delivery: (row[0], places[row]) for delivery, row in self._rows.items()}
        held = {ch: tuple(named[each] for each in held) for ch, held in self._held.items()}
        return tuple(tables), frozenset(named.values()), frozenset(held.items())
