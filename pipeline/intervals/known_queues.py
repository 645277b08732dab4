"""The facts about queues, from their declarations or from options.

A recording may have begun after a queue was declared. Its order and durability are unknown then,
and only requirements on every queue are checked: no loss while the broker runs, no second delivery,
no invention. Options add facts. Owns these facts and the options' words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from brokerproof.spec.histories import Record


@dataclass(frozen=True)
class QueueFacts:
    """The facts about a queue.

    `durable` is whether it certainly is, `may_be_durable` whether it may be. A message may come
    back a `lease` after its delivery; None is for ever. The order of a queue that is not `declared`
    is unknown.
    """

    levels: int | None = None
    durable: bool = False
    may_be_durable: bool = False
    returns: bool = True
    unordered: bool = False
    lease: int | None = None
    may_drop: bool = False
    selective: bool = False
    declared: bool = True

    @property
    def is_fifo(self) -> bool:
        """Return whether it is certainly first in, first out."""
        return self.declared and self.levels is None and not self.unordered

    @classmethod
    def of(cls, declaration: Record) -> QueueFacts:
        """Return the facts of a declaration."""
        return cls(
            declaration.levels,
            declaration.durable,
            declaration.durable,
            declaration.returns == "original" and not declaration.unordered,
            declaration.unordered,
            declaration.lease,
            declaration.may_drop,
            selective=declaration.unordered,
        )

    def __str__(self) -> str:
        """Return the facts about a declared queue, in the words of `facts_said`."""
        words = ["fifo" if self.levels is None else f"{PRIORITY}:{self.levels}"]
        words = ["unordered"] if self.unordered else words
        words += ["durable"] * self.durable + ["elsewhere"] * (not self.returns)
        return ",".join([*words, *["may-drop"] * self.may_drop])

    def declaration(self, run: str, queue: str) -> Record:
        """Return the record that states the same facts."""
        return Record(
            op="declare",
            run=run,
            queue=queue,
            start=0,
            end=0,
            levels=self.levels,
            durable=self.durable,
            returns="original" if self.returns else "elsewhere",
            unordered=self.unordered,
            lease=self.lease,
            may_drop=self.may_drop,
        )


UNDECLARED: Final = QueueFacts(may_be_durable=True, returns=False, selective=True, declared=False)
"""The facts about a queue without any declaration."""


@dataclass(frozen=True)
class KnownQueues:
    """The facts given for undeclared queues, by name or for all others."""

    by_name: Mapping[str, QueueFacts] = field(default_factory=dict)
    others: QueueFacts = UNDECLARED

    def facts(self, queue: str) -> QueueFacts:
        """Return the facts about a queue, in any run."""
        return self.by_name.get(queue, self.others)

    def contradiction(self, declaration: Record) -> str | None:
        """Return in one line how a declaration contradicts the options, or None."""
        queue, declared = declaration.queue or "", QueueFacts.of(declaration)
        said = self.by_name.get(queue, declared)
        if declaration.op != "declare" or declaration.outcome == "failed" or said == declared:
            return None
        return (
            f"--queue: {queue}={said} contradicts the history, which declares {queue} as "
            f"{declared}; leave it out, or say that"
        )


NOTHING_SAID: Final = KnownQueues()

LEVELS_OF_ALL: Final = 10
LEVELS_MAX: Final = 256
PRIORITY: Final = "priority"
WORDS: Final = "fifo, priority:LEVELS, unordered, durable, elsewhere, may-drop"


def facts_said(words: str) -> QueueFacts:
    """Return the facts in words separated by commas; raises `ValueError`.

    >>> facts_said("priority:10,durable").levels
    10
    """
    said = [word.strip() for word in words.split(",")]
    if again := next((each for each in said if said.count(each) > 1), None):
        raise ValueError(f"{again!r} is said twice")
    orders = [each for each in said if each.partition(":")[0] in {"fifo", "unordered", PRIORITY}]
    if len(orders) > 1:
        raise ValueError(f"{orders[0]!r} and {orders[1]!r} contradict each other; say one of them")
    facts = QueueFacts()
    for word in said:
        match word.partition(":"):
            case "fifo", "", "":
                pass
            case "priority", _, number if (number or str(LEVELS_OF_ALL)).isdecimal():
                facts = replace(facts, levels=_levels(int(number or LEVELS_OF_ALL)))
            case "unordered", "", "":
                facts = replace(facts, unordered=True, selective=True)
            case "durable", "", "":
                facts = replace(facts, durable=True, may_be_durable=True)
            case "elsewhere", "", "":
                facts = replace(facts, returns=False)
            case "may-drop", "", "":
                facts = replace(facts, may_drop=True)
            case _:
                raise ValueError(f"{word!r} is none of {WORDS}")
    return facts


def _levels(number: int) -> int:
    if not 1 <= number <= LEVELS_MAX:
        raise ValueError(f"a queue has 1 to {LEVELS_MAX} levels, not {number}")
    return number
