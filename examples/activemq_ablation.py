"""What the reference of ActiveMQ 5.1.0 predicts of the users' scenario, with single repairs.

One producer sends persistent messages to a queue. A consumer takes 100, acknowledges each and
disconnects, again and again, until two of them in a row get nothing; or one consumer stays. The
broker is 5.1.0 as the reference has it, with the fix of the analysis of ActiveMQ's queue or with
defects repaired. `benchmarks/activemq_51/measure.py` runs the same on the releases.

    python examples/activemq_ablation.py [--messages 5000]

Prints a table in Markdown, which does not depend on time or chance.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Delivered, Event
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Publish,
    Reset,
)

BROKERS = {
    "5.1.0": "",
    "5.1.0, fix as meant": "read=document",
    "5.1.0, fix as printed": "read=printed",
    "5.1.0, D1 repaired": "audit=5.2",
    "5.1.0, D3 repaired": "detached=refused",
    "5.1.0, D1, D2 and D3 repaired": "audit=5.2&read=document&detached=refused",
    "the same, AMQ-1957 repaired": "audit=5.2&read=document&detached=refused&paged=checked",
}
"""The brokers of the table, each with what differs from 5.1.0."""

MEMORY_BYTES = {"ample": 64 << 20, "scarce": 64 << 10}
PREFETCH, TAKEN, BODY_BYTES = 1000, 100, 100
EMPTY_ROUNDS = 2


@dataclass
class Outcome:
    """The messages that a scenario sent, and those taken, in their order."""

    sent: int
    taken: list[int] = field(default_factory=list)

    @property
    def missing(self) -> list[int]:
        """The numbers that never came."""
        return sorted(set(range(self.sent)) - set(self.taken))

    @property
    def doubles(self) -> int:
        """How many were taken again after their acknowledgement."""
        return len(self.taken) - len(set(self.taken))

    @property
    def inversions(self) -> int:
        """How often a message came directly before one that was sent earlier."""
        return sum(one > other for one, other in itertools.pairwise(self.taken))

    def __str__(self) -> str:
        further = f" ({self.inversions:,}; {self.doubles:,})"
        came = f"{len(set(self.taken)):,}"
        return came + (further if self.inversions or self.doubles else "")


class Scenario:
    """The users' scenario on one broker."""

    def __init__(self, address: str, messages: int) -> None:
        self.broker = make(address)
        self.outcome = Outcome(messages)
        self.broker.handle(Reset())
        self.broker.handle(Declare(queue="q", order=Fifo(), durable=True))
        for number in range(messages):
            message = Message(id=str(number), size=BODY_BYTES, persistent=True)
            self.broker.handle(Publish(queue="q", message=message))

    def leaves(self) -> Outcome:
        """Let consumers come and go until two in a row get nothing."""
        empty = 0
        for name in itertools.count():
            empty = 0 if self._take(str(name), TAKEN) else empty + 1
            if empty == EMPTY_ROUNDS:
                break
            self.broker.handle(CloseChannel(channel=str(name)))
        return self.outcome

    def stays(self) -> Outcome:
        """Let one consumer take all that comes."""
        self._take("stays", None)
        return self.outcome

    def _take(self, name: str, most: int | None) -> int:
        """Connect and take messages, `most` of them if that is a number; return how many came."""
        consume = Consume(channel=name, queue="q", consumer=name, credit=Credit(PREFETCH))
        answer = self.broker.handle(consume)
        # The client waits for a message, so deliveries on their way arrive.
        rest = self.broker.handle(Drain())
        arrived = [*_deliveries(answer.events), *_deliveries(rest.events)]
        at = 0
        while at < len(arrived) and at != most:
            self.outcome.taken.append(int(arrived[at].message))
            answer = self.broker.handle(Acknowledge(delivery=arrived[at].delivery))
            arrived += _deliveries(answer.events)
            at += 1
            if at == len(arrived) and most is None:
                arrived += _deliveries(self.broker.handle(Drain()).events)
        return at


def _deliveries(events: tuple[Event, ...]) -> Iterator[Delivered]:
    return (event for event in events if isinstance(event, Delivered))


def row(name: str, messages: int) -> str:
    """Return what came of the messages, for both consumers and both sizes of memory."""
    addresses = [
        f"activemq-cursor-5.1?memory={memory}&{BROKERS[name]}".rstrip("&")
        for memory in MEMORY_BYTES.values()
    ]
    leaving = [str(Scenario(each, messages).leaves()) for each in addresses]
    staying = [str(Scenario(each, messages).stays()) for each in addresses]
    return f"| {' | '.join([name, *leaving, *staying])} |"


HEADER = """\
| broker | leaves, ample | leaves, scarce | stays, ample | stays, scarce |
| --- | --- | --- | --- | --- |"""


def main() -> None:
    """Print the table: distinct messages that came (inversions; doubles)."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=5000, metavar="N", help="how many are sent")
    messages = parser.parse_args().messages
    print(HEADER)
    for name in BROKERS:
        print(row(name, messages), flush=True)


if __name__ == "__main__":
    main()
