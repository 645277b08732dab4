"""A driver for my queue: replace the queue in memory by yours.

    brokerproof check "exec:python3 driver.py"

Each request is one line of JSON on standard input, each answer one line on standard output.
docs/reference/protocol.md of brokerproof has every operation and every claim.
"""

from __future__ import annotations

import bisect
import json
import sys
from typing import Any

# Claim what your queue promises, and no more: only that is asked.
CLAIMS = {"get": True, "release_position": "original"}

Fields = dict[str, Any]
Entry = tuple[int, str, bool]  # a message: place in the queue, id, whether it was given back


class Failure(Exception):
    """The operation did not happen: the error's code, and why."""


class Queue:
    """REPLACE: let each method call your own queue."""

    def __init__(self) -> None:
        self.waiting: list[Entry] = []
        self.arrived = 0

    def put(self, message: str) -> None:
        """Take responsibility for a message."""
        self.arrived += 1
        self.waiting.append((self.arrived, message, False))

    def take(self) -> Entry | None:
        """Return the next message, which is held from now on, or None."""
        return self.waiting.pop(0) if self.waiting else None

    def give_back(self, place: int, message: str) -> None:
        """Return a message that was held to its place."""
        bisect.insort(self.waiting, (place, message, True))


class Driver:
    """Queues by name; held entries by delivery, with channel and queue."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.held: dict[str, tuple[str, str, Entry]] = {}
        self.deliveries = 0

    def handle(self, asked: Fields) -> list[Fields]:
        """Carry out one operation and return its events."""
        match asked:
            case {"op": "reset"}:
                Driver.__init__(self)
            case {
                "op": "declare",
                "order": {"kind": "fifo"},
                "durable": False,
                "auto_delete": False,
                "queue": name,
            }:
                self.queues.setdefault(name, Queue())
            case {"op": "publish" | "get", "queue": name} if name not in self.queues:
                raise Failure("refused", f"there is no queue {name}")
            case {"op": "publish", "message": {"priority": level}} if not 0 <= level <= 9:
                raise Failure("refused", "priorities are 0 to 9")
            case {"op": "publish", "queue": name, "message": {"id": message}}:
                self.queues[name].put(message)
            case {"op": "get"}:
                return self.get(asked)
            case {"op": "acknowledge" | "reject" | "release", "delivery": delivery}:
                if delivery not in self.held:
                    raise Failure("refused", f"nothing is held by {delivery}")
                self.settle(delivery, back=asked["op"] == "release")
            case {"op": "close_channel", "channel": channel}:
                for delivery in [d for d, held in self.held.items() if held[0] == channel]:
                    self.settle(delivery, back=True)
            case {"op": "drain"}:
                pass
            case _:
                raise Failure("unsupported", asked["op"])
        return []

    def get(self, asked: Fields) -> list[Fields]:
        """Take the next message; in mode `acknowledge` it is held until it is settled."""
        entry = self.queues[asked["queue"]].take()
        if entry is None:
            return []
        _, message, returned = entry
        self.deliveries += 1
        delivery = f"d{self.deliveries}"
        if asked["mode"] == "acknowledge":
            self.held[delivery] = (asked["channel"], asked["queue"], entry)
        told = {"event": "delivered", "delivery": delivery, "consumer": None}
        return [told | {"queue": asked["queue"], "message": message, "redelivered": returned}]

    def settle(self, delivery: str, *, back: bool) -> None:
        """Let a message go, `back` to its queue or for good."""
        _, queue, (place, message, _) = self.held.pop(delivery)
        if back:
            self.queues[queue].give_back(place, message)


def answer(driver: Driver, asked: Fields) -> Fields:
    """Return the answer to one request."""
    if asked["op"] == "hello":
        return {"ok": True, "name": "my queue", "version": "1", "capabilities": CLAIMS}
    try:
        return {"ok": True, "events": driver.handle(asked)}
    except Failure as failure:
        code, message = failure.args
        return {"ok": False, "error": {"code": code, "message": message}}


if __name__ == "__main__":
    mine = Driver()
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps({"id": request["id"]} | answer(mine, request)) + "\n")
        sys.stdout.flush()
