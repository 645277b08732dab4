"""A private PostgreSQL for the recipes: on a socket in its own folder, with a table of jobs.

Each thread has a connection that commits each statement. A transaction that stays open has a
connection of its own, which is lent and comes back.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from brokerproof.candidates.unavailable import CandidateUnavailable

if TYPE_CHECKING or __package__:
    from .private_server import PrivateServer, once
else:
    from private_server import PrivateServer, once

__all__ = [
    "Connection",
    "LockNotAvailable",
    "PostgresServer",
    "postgres_of_this_process",
]

NAME = "a private PostgreSQL"
PROGRAM = Path("/usr/lib/postgresql/15/bin/postgres")
INSTALL = "install it with: sudo apt-get install --no-install-recommends postgresql-15"

try:
    import psycopg
    from psycopg import Connection
    from psycopg.errors import LockNotAvailable
except ImportError as error:
    raise CandidateUnavailable(
        NAME, what="the client psycopg is not installed", remedy="pip install 'psycopg[binary]'"
    ) from error

JOBS = """
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    message text NOT NULL,
    body text NOT NULL,
    hidden_until timestamptz NOT NULL DEFAULT '-infinity',
    holder text,
    deliveries integer NOT NULL DEFAULT 0
)
"""


class PostgresServer:
    """The server, and its connections."""

    def __init__(self) -> None:
        self._server = PrivateServer(NAME, PROGRAM, INSTALL, user="postgres")
        folder = self._server.folder
        data = str(folder / "data")
        self._server.prepare(
            [
                *(str(PROGRAM.with_name("initdb")), "--pgdata", data, "--username", "postgres"),
                *("--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync"),
            ]
        )
        self._address = f"host={folder} user=postgres dbname=postgres"
        self._of_thread = threading.local()
        self._lock = threading.Lock()
        self._all: list[Connection] = []
        self._idle: list[Connection] = []
        self._lent: list[Connection] = []
        # Durability is not claimed, and a write that is synced takes longer.
        options = (
            "listen_addresses=",
            f"unix_socket_directories={folder}",
            "max_connections=200",  # one for each job that an open transaction holds
            "fsync=off",
        )
        arguments = [word for option in options for word in ("-c", option)]
        self._server.start(["-D", data, *arguments], self._answers)
        self.version = self.connection.info.parameter_status("server_version") or "unknown"
        self.connection.execute(JOBS)

    @property
    def connection(self) -> Connection:
        """The connection of this thread."""
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = self._connected(autocommit=True)
        connection: Connection = self._of_thread.connection
        return connection

    def lend(self) -> Connection:
        """Return a connection on which nothing has begun."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connected(autocommit=False)
        with self._lock:
            self._lent.append(connection)
        return connection

    def take_back(self, connection: Connection) -> None:
        """Roll back what has begun on a lent connection, unless it was committed."""
        connection.rollback()
        with self._lock:
            self._lent.remove(connection)
            self._idle.append(connection)

    def empty(self) -> None:
        """Roll back all that is open, and empty the table."""
        for connection in [*self._lent]:
            self.take_back(connection)
        self.connection.execute("TRUNCATE jobs RESTART IDENTITY")

    def close(self) -> None:
        """End the connections, for which the server would wait, and the server."""
        for connection in self._all:
            connection.close()
        self._server.close()

    def _connected(self, *, autocommit: bool) -> Connection:
        connection = psycopg.connect(self._address, autocommit=autocommit)
        with self._lock:
            self._all.append(connection)
        return connection

    def _answers(self) -> bool:
        try:
            self.connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


def postgres_of_this_process() -> PostgresServer:
    """Return the one server of this process."""
    return once(NAME, PostgresServer, PostgresServer.close)
