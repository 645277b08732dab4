"""The example session of driver protocol 1: what is asked in it, and how it is recorded.

The recorded session is docs/reference/example-session.jsonl; where the protocol changes, it is
recorded anew:

    python -m tests.candidates.driver.driver_session
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from brokerproof.candidates.driver.candidate import DriverCandidate
from brokerproof.candidates.driver.process import DriverProcess
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
)

HOUSE = Path(__file__).parents[3]
SESSION = HOUSE / "docs" / "reference" / "example-session.jsonl"
DRIVER = HOUSE / "examples" / "drivers" / "driver.py"

ASKED: tuple[Operation, ...] = (
    Reset(),
    Declare(queue="q", order=Priority(10)),
    Publish(queue="q", message=Message(id="m0", priority=4, properties={"colour": "red"})),
    Publish(queue="q", message=Message(id="m1", priority=9, persistent=True)),
    Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(messages=1)),
    Drain(),
    Release(delivery="d1"),
    Acknowledge(delivery="d2"),
    # What is settled already, and what does not exist.
    Acknowledge(delivery="d2"),
    Get(channel="ch1", queue="nowhere"),
    # Not claimed: a durable queue.
    Declare(queue="safe", order=Fifo(), durable=True),
    Cancel(consumer="c0"),
    CloseChannel(channel="ch0"),
    Consume(channel="ch1", queue="q", consumer="c1", mode="browse"),
    Get(channel="ch1", queue="q"),
    Reject(delivery="d5"),
    Get(channel="ch1", queue="q", mode="automatic"),
    Drain(),
)


def recorded(*command: str) -> list[str]:
    """Return the lines of the session with a driver: requests and answers in turn."""
    lines: list[bytes] = []

    class Recording(DriverProcess):
        def send(self, line: bytes, within_s: float) -> float:
            lines.append(line.removesuffix(b"\n"))
            return super().send(line, within_s)

        def receive(self, end: float) -> bytes:
            answer = super().receive(end)
            lines.append(answer)
            return answer

    candidate = DriverCandidate(f"exec:{shlex.join(command)}", process_of=Recording)
    try:
        for operation in ASKED:
            candidate.handle(operation)
    finally:
        candidate.close()
    return [line.decode() for line in lines]


def as_values(lines: list[str]) -> list[dict[str, Any]]:
    """Return lines as what they say; drivers may write the same with other spaces."""
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    SESSION.write_text("\n".join([*recorded(sys.executable, str(DRIVER)), ""]), encoding="utf-8")
