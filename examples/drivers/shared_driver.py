"""A driver whose processes share their queues: jobs in a database of SQLite, named by its file.

Several processes of it are several clients of one queue, as those of a server are:

    brokerproof check "exec:python examples/drivers/shared_driver.py jobs.db"
    brokerproof trace record "exec:python examples/drivers/shared_driver.py jobs.db" history.jsonl

With `hasty` as a second argument a get looks for a job and takes it in two transactions, so that
two processes can take the same one. Only a recording shows it: one process alone makes no mistake.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import Any

Fields = dict[str, Any]

HELLO = {
    "name": "example-shared",
    "version": "1",
    "capabilities": {"get": True, "release_position": "original"},
}
TABLES = """
    CREATE TABLE IF NOT EXISTS queues (name TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS jobs (
        number INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT, message TEXT,
        holder INTEGER, channel TEXT, times INTEGER DEFAULT 0);
    CREATE TABLE IF NOT EXISTS deliveries (
        number INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER);
"""


class Refused(Exception):
    """The operation did not happen."""


class SharedQueue:
    """One connection to the database; each operation is one transaction."""

    def __init__(self, file: str, *, hasty: bool) -> None:
        self.hasty = hasty
        self.base = sqlite3.connect(file, timeout=10, isolation_level=None)
        self.base.execute("PRAGMA synchronous = OFF")
        self.base.executescript(TABLES)

    def handle(self, request: Fields) -> Fields:
        """Carry out a request in a transaction, and return the answer."""
        if request["op"] == "hello":
            return {"id": request["id"], "ok": True, **HELLO}
        answer: Fields = {"id": request["id"], "ok": True, "events": []}
        operation = getattr(self, f"do_{request['op']}", None)
        if operation is None:
            error = {"code": "unsupported", "message": request["op"]}
            return answer | {"ok": False, "error": error}
        self.base.execute("BEGIN IMMEDIATE")
        try:
            answer["events"] = operation(request) or []
        except Refused as refused:
            answer |= {"ok": False, "error": {"code": "refused", "message": str(refused)}}
        self.base.execute("COMMIT")
        return answer

    def do_reset(self, _: Fields) -> None:
        """Forget everything."""
        for table in ("queues", "jobs", "deliveries"):
            self.base.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def do_drain(self, _: Fields) -> None:
        """Do nothing: a delivery is told with its get."""

    def do_declare(self, request: Fields) -> None:
        """Make a queue; the same again changes nothing."""
        if request["order"]["kind"] != "fifo" or request["durable"] or request["auto_delete"]:
            raise Refused("queues are first in, first out, and neither durable nor auto-delete")
        self.base.execute("INSERT OR IGNORE INTO queues VALUES (?)", (request["queue"],))

    def do_publish(self, request: Fields) -> None:
        """Add a job at the end of its queue."""
        self.require(request["queue"])
        row = request["queue"], request["message"]["id"]
        self.base.execute("INSERT INTO jobs (queue, message) VALUES (?, ?)", row)

    def do_get(self, request: Fields) -> list[Fields]:
        """Take the first job that no client holds."""
        queue = request["queue"]
        self.require(queue)
        found = self.base.execute(
            "SELECT number, message, times FROM jobs WHERE queue = ? AND holder IS NULL"
            " ORDER BY number LIMIT 1",
            (queue,),
        ).fetchone()
        if found is None:
            return []
        if self.hasty:
            self.base.execute("COMMIT")
            self.base.execute("BEGIN IMMEDIATE")
        number, message, times = found
        made = self.base.execute("INSERT INTO deliveries (job) VALUES (?)", (number,)).lastrowid
        self.base.execute(
            "UPDATE jobs SET holder = ?, channel = ?, times = times + 1 WHERE number = ?",
            (made, request["channel"], number),
        )
        told = {"delivery": f"d{made}", "consumer": None, "queue": queue, "message": message}
        return [{"event": "delivered", **told, "redelivered": times > 0}]

    def do_acknowledge(self, request: Fields) -> None:
        """Remove a job."""
        self.base.execute("DELETE FROM jobs WHERE number = ?", (self.held(request),))

    do_reject = do_acknowledge

    def do_release(self, request: Fields) -> None:
        """Give a job back."""
        job = (self.held(request),)
        self.base.execute("UPDATE jobs SET holder = NULL WHERE number = ?", job)

    def do_close_channel(self, request: Fields) -> None:
        """Give back all jobs that are held through a channel."""
        channel = (request["channel"],)
        self.base.execute("UPDATE jobs SET holder = NULL WHERE channel = ?", channel)

    def require(self, queue: str) -> None:
        """Refuse a queue that is not there."""
        if not self.base.execute("SELECT 1 FROM queues WHERE name = ?", (queue,)).fetchone():
            raise Refused(f"no queue {queue}")

    def held(self, request: Fields) -> int:
        """Return the job of a delivery, if a client holds it by that."""
        number = request["delivery"].removeprefix("d")
        row = self.base.execute("SELECT number FROM jobs WHERE holder = ?", (number,)).fetchone()
        if row is None:
            raise Refused(f"{request['delivery']} is not held")
        return int(row[0])


def main() -> None:
    """Answer each line."""
    queue = SharedQueue(sys.argv[1], hasty="hasty" in sys.argv[2:])
    for line in sys.stdin:
        sys.stdout.write(json.dumps(queue.handle(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
