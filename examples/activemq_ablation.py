"""Which defect of ActiveMQ 5.1.0 lost messages: the users' scenario on every combination of them.

One producer sends persistent messages to a queue; a consumer connects, takes some, acknowledges
them and disconnects, again and again, until two of them in a row get nothing. That is the scenario
of the analysis of ActiveMQ's queue. Here it runs on brokers that have the defects of 5.1.0 one by
one and together, with the analysis's fix, as it is meant and as it is printed, and without:

    python examples/activemq_ablation.py
    python examples/activemq_ablation.py --messages 200000 --rows few

It prints a table in Markdown. Nothing in it depends on time or chance.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from brokerproof.reference import make
from brokerproof.reference.cursor.queue import CursorQueue
from brokerproof.spec.answers import Delivered, Event
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Publish,
    Reset,
)

READINGS = {"stop": "", "advance": "D2", "document": "fix", "printed": "fix as printed"}
"""What the store's loop does where there is no room, and how the table names it."""

OTHERS = {"D1": "audit=5.1", "D3": "detached=accepted", "D4": "counters=drifting"}
"""The other defects, each with the parameter that it is."""

SOUND = {"D1": "audit=5.2", "D3": "detached=refused", "D4": "counters=exact"}

AMPLE, SCARCE = 64 * 1024 * 1024, 65_536
"""Memory in bytes: for all of 5,000 messages, and for about 50."""

PREFETCH, TAKEN, BODY_BYTES = 1000, 100, 100
DEPTH = 2048
"""How many ids the audit of 5.1.0 remembers of a producer; the same for all, to compare them."""

FEW: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("5.1", "advance", ("D1", "D3", "D4")),
    ("5.1", "document", ("D1", "D3", "D4")),
    ("5.1", "printed", ("D1", "D3", "D4")),
    ("5.1", "document", ()),
    ("5.1", "stop", ()),
    ("repaired", "advance", ()),
    ("repaired", "stop", ("D1",)),
    ("repaired", "stop", ("D3",)),
    ("repaired", "stop", ("D4",)),
    ("repaired", "stop", ()),
)


@dataclass(frozen=True)
class Combination:
    """A broker: the rules around, the loop that reads the store, and the other defects it has."""

    around: str
    reading: str
    others: tuple[str, ...]

    def address(self, memory: int) -> str:
        """Return where the reference has this broker."""
        system = "activemq-cursor-5.1" if self.around == "5.1" else "activemq-cursor"
        chosen = [(OTHERS if name in self.others else SOUND)[name] for name in OTHERS]
        sizes = f"memory={memory}&depth={DEPTH}"
        return f"{system}?{sizes}&read={self.reading}&{'&'.join(chosen)}"

    def defects(self) -> str:
        """Return what it has, in the table's words."""
        names = [READINGS[self.reading], *self.others]
        return ", ".join(sorted(each for each in names if each)) or "none"


@dataclass
class Outcome:
    """What came of a run: who was taken when, and what memory was used at most, in bytes."""

    sent: int
    taken: list[int] = field(default_factory=list)
    rounds: int = 0
    memory_most: int = 0

    @property
    def missing(self) -> list[int]:
        """The numbers that never came."""
        return sorted(set(range(self.sent)) - set(self.taken))

    @property
    def doubles(self) -> int:
        """How many were taken once more though they had been acknowledged."""
        return len(self.taken) - len(set(self.taken))

    @property
    def inversions(self) -> int:
        """How often a message came right before one that was sent earlier."""
        return sum(one > other for one, other in itertools.pairwise(self.taken))


class Scenario:
    """The users' scenario on one broker."""

    def __init__(self, address: str, messages: int) -> None:
        self.broker = make(address)
        self.outcome = Outcome(messages)
        self.broker.handle(Reset())
        self.broker.handle(Declare(queue="q", order=Fifo(), durable=True))

    def run(self) -> Outcome:
        """Send all, then let consumers come and go until two in a row get nothing."""
        for number in range(self.outcome.sent):
            message = Message(id=str(number), size=BODY_BYTES, persistent=True)
            self.broker.handle(Publish(queue="q", message=message))
            self._note_memory()
        empty = 0
        while empty < 2:
            self.outcome.rounds += 1
            empty = 0 if self._connect_and_take() else empty + 1
        return self.outcome

    def _connect_and_take(self) -> bool:
        name = str(self.outcome.rounds)
        answer = self.broker.handle(
            Consume(channel=name, queue="q", consumer=name, credit=Credit(PREFETCH))
        )
        # The client waits for a message, so what is under way arrives.
        rest = self.broker.handle(Drain())
        arrived = [*_deliveries(answer.events), *_deliveries(rest.events)]
        before = len(self.outcome.taken)
        for at in range(TAKEN):
            if at >= len(arrived):
                break
            self.outcome.taken.append(int(arrived[at].message))
            answer = self.broker.handle(Acknowledge(delivery=arrived[at].delivery))
            arrived += _deliveries(answer.events)
            self._note_memory()
        self.broker.handle(CloseChannel(channel=name))
        return len(self.outcome.taken) > before

    def _note_memory(self) -> None:
        queue = self.broker.queues["q"]
        assert isinstance(queue, CursorQueue)
        self.outcome.memory_most = max(self.outcome.memory_most, queue.memory.usage.used)


def _deliveries(events: tuple[Event, ...]) -> Iterator[Delivered]:
    return (event for event in events if isinstance(event, Delivered))


def ranges(numbers: list[int], most: int = 3) -> str:
    """Return numbers as ranges, the first few of them.

    >>> ranges([1, 2, 3, 7])
    '1 to 3, 7'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in found[:most]]
    left = len(found) - most
    return ", ".join(texts) + (f" and {left} more ranges" if left > 0 else "")


def combinations(rows: str) -> Iterator[Combination]:
    """Yield the combinations that are asked for: few of them, or all."""
    if rows == "few":
        for around, reading, others in FEW:
            yield Combination(around, reading, others)
        return
    for around in ("repaired", "5.1"):
        for reading in READINGS:
            for number in range(len(OTHERS) + 1):
                for others in itertools.combinations(OTHERS, number):
                    yield Combination(around, reading, others)


def row(combination: Combination, memory: int, outcome: Outcome) -> str:
    """Return what came of a combination as a row of the table."""
    missing = outcome.missing
    return " | ".join(
        [
            f"| {combination.around}",
            combination.defects(),
            "about 50 messages" if memory == SCARCE else "ample",
            "all" if not missing else f"stalled after {len(outcome.taken):,}",
            f"{ranges(missing)}" if missing else "",
            f"{outcome.inversions:,}",
            f"{outcome.doubles:,}",
            f"{outcome.memory_most:,} |",
        ]
    )


HEADER = """\
| other rules | defects | memory | delivered | never came | inversions | doubles | bytes used |
| --- | --- | --- | --- | --- | ---: | ---: | ---: |"""


def main() -> None:
    """Print the table that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=5000, help="how many are sent")
    parser.add_argument("--rows", choices=("all", "few"), default="all")
    asked = parser.parse_args()
    print(HEADER)
    try:
        for combination in combinations(asked.rows):
            for memory in (AMPLE, SCARCE):
                outcome = Scenario(combination.address(memory), asked.messages).run()
                print(row(combination, memory, outcome), flush=True)
    except KeyboardInterrupt:
        print("stopped: the rows above are complete", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
