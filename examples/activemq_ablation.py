"""Which defect of ActiveMQ 5.1.0 lost messages: the users' scenario on every combination of them.

One producer sends persistent messages to a queue; a consumer connects, takes some, acknowledges
them and disconnects, again and again, until two of them in a row get nothing. That is the scenario
of the analysis of ActiveMQ's queue. It runs on brokers with the defects of 5.1.0, one by one and
together, with the analysis's fix (as meant and as printed) and without:

    python examples/activemq_ablation.py
    python examples/activemq_ablation.py --messages 200000 --rows few
    python examples/activemq_ablation.py --rows few --lag 0
    python examples/activemq_ablation.py --rows rules

It prints a table in Markdown, which does not depend on time or chance. It does depend on how far
the store's index lags behind its journal. A background thread decides that in a release; here it is
the option `--lag`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from brokerproof.reference import make
from brokerproof.reference.activemq.parameters import REPAIRED
from brokerproof.reference.activemq.queue import CursorQueue
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

READINGS = {"stop": "", "advance": "D2", "document": "fix", "printed": "fix as printed"}
"""The action of the store's loop without room, and its name in the table."""

OTHERS = {"D1": "audit=5.1", "D3": "detached=accepted", "D4": "counters=drifting"}
"""The other defects, each with its parameter."""

SOUND = {"D1": "audit=5.2", "D3": "detached=refused", "D4": "counters=exact"}

AMPLE, SCARCE = 64 * 1024 * 1024, 65_536
"""Memory in bytes: for all of 5,000 messages, and for about 50."""

PREFETCH, TAKEN, BODY_BYTES = 1000, 100, 100
DEPTH = 2048
"""How many ids the audit of 5.1.0 remembers of a producer; the same for all, to compare them."""

LEAVING = "leaving=clears"
"""The cursor lets go of its batch when the last consumer leaves, as before 5.3.0; in all, too."""

FEW: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("5.1", "advance", ("D1", "D3", "D4")),
    ("5.1", "document", ("D1", "D3", "D4")),
    ("5.1", "printed", ("D1", "D3", "D4")),
    ("5.1", "document", ()),
    ("5.1", "stop", ()),
    ("repaired", "advance", ()),
    ("repaired", "printed", ()),
    ("repaired", "stop", ("D1",)),
    ("repaired", "stop", ("D3",)),
    ("repaired", "stop", ("D4",)),
    ("repaired", "stop", ()),
)

SINGLE: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("repaired", (), ("paged=replaced",)),
    ("repaired", (), ("duplicates=counted",)),
    ("repaired", (), ("duplicates=counted", "passes=once")),
    ("repaired", ("D1",), ("leaving=keeps",)),
    ("5.1", (), ("paged=checked",)),
    ("5.1", (), ("leaving=keeps",)),
    ("5.1", (), ("duplicates=free",)),
    ("5.1", (), ("passes=again",)),
)
"""Rules beside the four defects: 5.1.0's among the repaired ones, and repaired among 5.1.0's."""


@dataclass(frozen=True)
class Combination:
    """A broker: the rules around, the loop that reads the store, and the other defects it has.

    `rules` are further parameters, as in an address.
    """

    around: str
    reading: str
    others: tuple[str, ...]
    rules: tuple[str, ...] = ()

    def address(self, memory: int, lag: int = REPAIRED.lag) -> str:
        """Return where the reference has this broker.

        `memory` is in bytes, and `lag` how many changes the index may be behind the journal.
        """
        system = "activemq-cursor-5.1" if self.around == "5.1" else "activemq-cursor"
        chosen = [(OTHERS if name in self.others else SOUND)[name] for name in OTHERS]
        sizes = [f"memory={memory}", f"depth={DEPTH}", f"lag={lag}"]
        given = [*sizes, LEAVING, f"read={self.reading}", *chosen, *self.rules]
        # A row's own rule comes last, and overrides that of all rows.
        parameters = {each.partition("=")[0]: each for each in given}
        return f"{system}?{'&'.join(parameters.values())}"

    def defects(self) -> str:
        """Return the defects in the table's words."""
        names = sorted(each for each in (READINGS[self.reading], *self.others) if each)
        return ", ".join([*names, *(f"`{each}`" for each in self.rules)]) or "none"


@dataclass
class Outcome:
    """The result of a run: the messages in the order taken, and the peak memory in bytes."""

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
        """How many were taken again after their acknowledgement."""
        return len(self.taken) - len(set(self.taken))

    @property
    def inversions(self) -> int:
        """How often a message came directly before one that was sent earlier."""
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
        # The client waits for a message, so deliveries on their way arrive.
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
    more = "range" if left == 1 else "ranges"
    return ", ".join(texts) + (f" and {left} more {more}" if left > 0 else "")


def combinations(rows: str) -> Iterator[Combination]:
    """Yield the chosen combinations: few of them, single rules, or all."""
    if rows == "rules":
        for around, others, rules in SINGLE:
            yield Combination(around, "stop", others, rules)
        return
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
    """Return the result of a combination as a row of the table."""
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


MOST = 2**31 - 1


def number_from(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `least` on, in 31 bits."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= MOST):
            raise argparse.ArgumentTypeError(f"a whole number from {least} to {MOST}, not {text!r}")
        return int(text)

    return read


def main() -> None:
    """Print the table chosen on the command line; wrong arguments are exit status 2."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--messages", type=number_from(1), default=5000, metavar="N", help="how many are sent"
    )
    parser.add_argument(
        "--lag",
        type=number_from(0),
        default=REPAIRED.lag,
        metavar="N",
        help="how many additions or acknowledgements the index may lag behind the journal",
    )
    parser.add_argument("--rows", choices=("all", "few", "rules"), default="all")
    asked = parser.parse_args()
    print(HEADER)
    try:
        for combination in combinations(asked.rows):
            for memory in (AMPLE, SCARCE):
                outcome = Scenario(combination.address(memory, asked.lag), asked.messages).run()
                print(row(combination, memory, outcome), flush=True)
    except KeyboardInterrupt:
        print("stopped: the rows above are complete", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
