"""PostgreSQL as a queue of jobs in a table: SELECT ... FOR UPDATE SKIP LOCKED.

There are two ways to hold a job, each with a factory. A column says until when it is hidden:

    publish             INSERT
    get                 UPDATE of the row that SELECT ... SKIP LOCKED finds; automatic: DELETE of it
    acknowledge         DELETE, if the row is still in the same delivery
    reject              the same
    release, extend     UPDATE of `hidden_until`, likewise
    close_channel       UPDATE of `hidden_until` of all rows of the holder

Or the transaction that locked the row is the holder:

    get                 BEGIN, SELECT ... FOR UPDATE SKIP LOCKED, on a connection of its own
    acknowledge         DELETE, COMMIT
    reject              the same
    release             ROLLBACK
    close_channel       ROLLBACK of all transactions of the channel

Each get and each settlement is one statement or one transaction. Delivery ids and the names of
queues and channels are the adapter's. The column `deliveries` tells a delivery from earlier ones.
The client chooses the lease, so a second of the protocol takes `SECOND_S`, and runs stay short.

Two wrong ways are here too: a lock that waits for the first job, and no lock at all.

    brokerproof check examples/recipes/postgres_skip_locked.py:make_queue
    brokerproof check examples/recipes/postgres_skip_locked.py:make_queue_of_transactions

`docs/findings/postgresql.md` has the verdicts and their reasons.
"""

# ruff: noqa: S608 -- statements are put together from the constants here; values are parameters

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, LiteralString

from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Declare, Extend, Release, Settlement

if TYPE_CHECKING or __package__:
    from .adapter import Adapter, Held, Taken
    from .postgres_server import (
        Connection,
        LockNotAvailable,
        PostgresServer,
        postgres_of_this_process,
    )
else:
    from adapter import Adapter, Held, Taken
    from postgres_server import (
        Connection,
        LockNotAvailable,
        PostgresServer,
        postgres_of_this_process,
    )

SECOND_S = 0.2

NEXT: LiteralString = """
SELECT id FROM jobs
WHERE queue = %(queue)s AND hidden_until <= clock_timestamp()
ORDER BY id LIMIT 1
"""
SKIPPING: LiteralString = f"{NEXT} FOR UPDATE SKIP LOCKED"
UNTIL: LiteralString = "coalesce(clock_timestamp() + make_interval(secs => %(lease)s), 'infinity')"
"""The end of a lease that begins now; without a lease it never ends."""

HIDE: LiteralString = (
    f"UPDATE jobs SET hidden_until = {UNTIL}, holder = %(channel)s, deliveries = deliveries + 1"
)
TELL: LiteralString = "RETURNING message, id, deliveries"
IS_HELD: LiteralString = (
    "id = %(id)s AND holder = %(channel)s AND deliveries = %(deliveries)s"
    " AND hidden_until > clock_timestamp()"
)
SHOW: LiteralString = "UPDATE jobs SET hidden_until = '-infinity', holder = NULL"


def make_queue() -> PostgresQueue:
    """Return the queue whose rows are hidden for a time."""
    return PostgresQueue(postgres_of_this_process())


def make_queue_of_transactions() -> PostgresTransactions:
    """Return the queue whose rows are locked by a transaction."""
    return PostgresTransactions(postgres_of_this_process())


def make_queue_that_looks_first() -> PostgresQueueThatLooksFirst:
    """Return the queue that finds a row and then hides it, which two clients can do at once."""
    return PostgresQueueThatLooksFirst(postgres_of_this_process())


def make_queue_that_skips_nothing() -> PostgresTransactionsThatSkipNothing:
    """Return the queue of transactions whose gets fail while the first row is locked."""
    return PostgresTransactionsThatSkipNothing(postgres_of_this_process())


class PostgresQueue(Adapter):
    """Queues in a table; a row that is held is hidden until its lease is over."""

    name = "postgres-hidden-until"
    second_s = SECOND_S
    claims = Capabilities(
        get=True,
        get_modes=("acknowledge", "automatic"),
        redelivered="count",
        release_position="original",
        clock=True,
        tolerance_s=1,
        lease="silent",
        extend=True,
    )

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self._server, self.version = server, server.version

    def empty(self) -> None:
        """Empty the table."""
        self._server.empty()

    def publish(self, queue: Declare, message: Message) -> None:
        """Insert a row."""
        self._server.connection.execute(
            "INSERT INTO jobs (queue, message, body) VALUES (%s, %s, %s)",
            (queue.queue, message.id, "x" * message.size),
        )

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Hide the first visible row that no other client is about to take."""
        what = "DELETE FROM jobs" if automatic else HIDE
        return self._taken(f"{what} WHERE id = ({SKIPPING}) {TELL}", queue, channel)

    def _taken(self, statement: LiteralString, queue: Declare, channel: str) -> Taken | None:
        known = {"queue": queue.queue, "channel": channel, "lease": _lease_s(queue)}
        row = self._server.connection.execute(statement, known).fetchone()
        if row is None:
            return None
        message, key, deliveries = row
        is_deleted = statement.startswith("DELETE")
        return Taken(message, str(key), before=deliveries - (not is_deleted))

    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Delete, show or hide the row, if this delivery holds it."""
        known = {
            "id": int(held.taken.key),
            "channel": held.channel,
            "deliveries": held.taken.before + 1,
            "lease": _lease_s(held.queue),
        }
        what: LiteralString = "DELETE FROM jobs"
        if isinstance(settlement, Release):
            what = SHOW
        elif isinstance(settlement, Extend):
            what = f"UPDATE jobs SET hidden_until = {UNTIL}"
        done = self._server.connection.execute(f"{what} WHERE {IS_HELD}", known)
        return done.rowcount == 1

    def leave(self, channel: str, queues: list[str]) -> None:  # noqa: ARG002 (rows know their queue)
        """Show all rows of the channel."""
        self._server.connection.execute(f"{SHOW} WHERE holder = %s", (channel,))


class PostgresQueueThatLooksFirst(PostgresQueue):
    """Wrong: another client may find the same row between the two statements."""

    name = "postgres-that-looks-first"

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Find a row, and then hide it."""
        found = self._server.connection.execute(NEXT, {"queue": queue.queue}).fetchone()
        if found is None:
            return None
        what = "DELETE FROM jobs" if automatic else HIDE
        return self._taken(f"{what} WHERE id = {int(found[0])} {TELL}", queue, channel)


class PostgresTransactions(PostgresQueue):
    """Queues in a table; a row that is held is locked by an open transaction."""

    name = "postgres-transactions"
    claims = Capabilities(
        get=True,
        get_modes=("acknowledge", "automatic"),
        redelivered="none",
        release_position="original",
    )
    locks: LiteralString = SKIPPING

    def __init__(self, server: PostgresServer) -> None:
        super().__init__(server)
        self._numbers = itertools.count()
        self._open: dict[str, tuple[str, int, Connection]] = {}

    def empty(self) -> None:
        """Roll back, and empty the table."""
        self._open.clear()
        super().empty()

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Lock the first row that no other client has locked."""
        connection = self._server.lend()
        try:
            row = connection.execute(
                f"SELECT id, message FROM jobs WHERE id = ({self.locks})", {"queue": queue.queue}
            ).fetchone()
        except LockNotAvailable:
            row = None
        if row is None:
            self._server.take_back(connection)
            return None
        key = str(next(self._numbers))
        with self._lock:
            self._open[key] = channel, row[0], connection
        if automatic:
            self._end(key, deletes=True)
        return Taken(row[1], key)

    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Delete the row and commit, or roll back."""
        return self._end(held.taken.key, deletes=not isinstance(settlement, Release))

    def leave(self, channel: str, queues: list[str]) -> None:  # noqa: ARG002 (rows know their queue)
        """Roll back the transactions of the channel."""
        with self._lock:
            keys = [key for key, (holder, _, _) in self._open.items() if holder == channel]
        for key in keys:
            self._end(key, deletes=False)

    def _end(self, key: str, *, deletes: bool) -> bool:
        with self._lock:
            opened = self._open.pop(key, None)
        if opened is None:
            return False
        _, row, connection = opened
        if deletes:
            connection.execute("DELETE FROM jobs WHERE id = %s", (row,))
            connection.commit()
        self._server.take_back(connection)
        return True


class PostgresTransactionsThatSkipNothing(PostgresTransactions):
    """Wrong: NOWAIT fails at the first locked row, although others are free."""

    name = "postgres-that-skips-nothing"
    locks = f"{NEXT} FOR UPDATE NOWAIT"


def _lease_s(queue: Declare) -> float | None:
    """Return how long a lease takes in real time."""
    return None if queue.lease_s is None else queue.lease_s * SECOND_S
