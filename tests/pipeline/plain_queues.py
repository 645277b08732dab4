"""What a simulated queue is made of, and the faults that it can have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Fault: TypeAlias = Literal[
    "loses",
    "loses-what-was-shown",
    "loses-at-close",
    "loses-when-meddled",
    "loses-in-a-crash",
    "gives-twice",
    "gives-twice-when-meddled",
    "overtakes-an-equal",
    "ignores-priority",
    "returns-to-the-tail",
    "keeps-after-a-purge",
    "keeps-after-a-deletion",
    "keeps-what-is-transient",
    "shows-twice",
    "shows-again-what-returned",
    "shows-out-of-order",
    "shows-what-is-held",
    "exceeds-a-window",
    "invents",
    "foresees",
    "forgets-the-flag",
    "finds-nothing",
    "ends-a-lease-early",
    "ends-a-lease-when-renewed",
]

BROKEN_BY: Final[dict[Fault, str]] = {
    "loses": "nothing-lost",
    "loses-what-was-shown": "browser-takes-nothing",
    "loses-at-close": "close-releases",
    "loses-when-meddled": "settled-once",
    "loses-in-a-crash": "survives-restart",
    "gives-twice": "nothing-twice",
    "gives-twice-when-meddled": "settled-once",
    "overtakes-an-equal": "fifo-order",
    "ignores-priority": "priority-order",
    "returns-to-the-tail": "release-rewinds",
    "keeps-after-a-purge": "purge-drops",
    "keeps-after-a-deletion": "delete-drops",
    "keeps-what-is-transient": "transient-is-lost",
    "shows-twice": "browser-once",
    "shows-again-what-returned": "browser-never-rewound",
    "shows-out-of-order": "browser-in-order",
    "shows-what-is-held": "browser-sees-available",
    "exceeds-a-window": "credit-not-exceeded",
    "invents": "nothing-invented",
    "foresees": "nothing-invented",
    "forgets-the-flag": "redelivered-flag",
    "finds-nothing": "get-finds",
}
"""The requirement under whose name each fault is to be found."""

BROKEN_BY_LEASES: Final[dict[Fault, str]] = {
    "ends-a-lease-early": "nothing-twice",
    "ends-a-lease-when-renewed": "nothing-twice",
}
"""The same, for faults that need a queue with a lease."""


@dataclass(frozen=True)
class Shape:
    """What a random run has in it, and how often; `crashes` are besides those of `breaks`.

    `unanswered` is how many gets have no answer.
    """

    steps: int = 50
    queues: int = 2
    messages: int = 1000
    levels: tuple[int | None, ...] = (None, 2, 3)
    returns: bool = True
    gets: bool = True
    breaks: bool = True
    crashes: int = 0
    browsers: bool = True
    unknown: float = 0.1
    windows: bool = True
    elsewhere: float = 0.1
    may_drop: float = 0.05
    selective: float = 0.03
    drained: float = 0.8
    leases: float = 0
    unordered: float = 0
    unanswered: float = 0


@dataclass(eq=False)
class Entry:
    """A message in its queue: at what place, and with whom.

    A crash keeps what is `persistent`, or loses it too if its publish was not `answered`.
    """

    name: str
    place: int
    level: int
    persistent: bool
    answered: bool = True
    held: Held | None = None
    acquired: bool = False
    came_back: bool = False
    either_flag: bool = False
    shown: bool = False


@dataclass(eq=False)
class Held:
    """A delivery that is not settled."""

    entry: Entry
    subscriber: Subscriber
    position: int
    meddled: bool = False
    due: int = 0


@dataclass(eq=False)
class Subscriber:
    """A consumer, a browser or a get."""

    name: str
    queue: Queue
    channel: str
    mode: Literal["acknowledge", "automatic", "browse"] = "acknowledge"
    window: int | None = None
    selective: bool = False
    there: bool = True
    given: int = 0
    holds: list[Held] = field(default_factory=list)
    passed: list[Entry] = field(default_factory=list)
    shown: list[Entry] = field(default_factory=list)


@dataclass(eq=False)
class Queue:
    """A queue: its entries, waiting or held."""

    name: str
    levels: int | None
    durable: bool
    returns: Literal["original", "elsewhere"]
    may_drop: bool
    lease: int | None = None
    unordered: bool = False
    entries: list[Entry] = field(default_factory=list)

    def waiting(self) -> list[Entry]:
        """Return what is available, in the order in which it is to be given."""
        there = [each for each in self.entries if each.held is None]
        if self.unordered:
            return there[::-1]
        return sorted(there, key=lambda each: (-each.level, each.place))
