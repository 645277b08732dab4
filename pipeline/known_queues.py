"""What is known of queues: from their declarations, or from somebody who knows it otherwise.

A recording may have begun after a queue was declared. Then nobody knows its order, nor whether it
outlives a crash, and only what holds of every queue is asked of it: nothing lost while the broker
runs, nothing twice, nothing invented. `--queue` and `--undeclared` say what the recording does not.
Owns these facts and the options' words. Refuses to know records, but for the one that says a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import click

from brokerproof.spec.histories import Record


@dataclass(frozen=True)
class QueueFacts:
    """What is known of a queue.

    `durable` is whether it certainly is, `may_be_durable` whether it may be; of one that is not
    `declared` no order is known.
    """

    levels: int | None = None
    durable: bool = False
    may_be_durable: bool = False
    returns: bool = True
    may_drop: bool = False
    selective: bool = False
    declared: bool = True

    @property
    def is_fifo(self) -> bool:
        """Whether it is certainly first in, first out."""
        return self.declared and self.levels is None

    @classmethod
    def of(cls, declaration: Record) -> QueueFacts:
        """Return what a declaration says."""
        return cls(
            declaration.levels,
            declaration.durable,
            declaration.durable,
            declaration.returns == "original",
            declaration.may_drop,
        )

    def declaration(self, run: str, queue: str) -> Record:
        """Return the record that says the same."""
        return Record(
            op="declare",
            run=run,
            queue=queue,
            start=0,
            end=0,
            levels=self.levels,
            durable=self.durable,
            returns="original" if self.returns else "elsewhere",
            may_drop=self.may_drop,
        )


UNDECLARED: Final = QueueFacts(may_be_durable=True, returns=False, selective=True, declared=False)
"""What is known where nothing is."""


@dataclass(frozen=True)
class KnownQueues:
    """What somebody says of queues that a history does not declare, by name or of all others."""

    by_name: Mapping[str, QueueFacts] = field(default_factory=dict)
    others: QueueFacts = UNDECLARED

    def facts(self, queue: str) -> QueueFacts:
        """Return what is known of a queue, in whichever run."""
        return self.by_name.get(queue, self.others)


NOTHING_SAID: Final = KnownQueues()

LEVELS_OF_ALL: Final = 10
LEVELS_MAX: Final = 256
WORDS: Final = "fifo, priority:LEVELS, durable, elsewhere, may-drop"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def facts_said(words: str) -> QueueFacts:
    """Return what words with commas between them say of a queue; raises `ValueError`.

    >>> facts_said("priority:10,durable").levels
    10
    """
    facts = QueueFacts()
    for word in words.split(","):
        name, _, number = word.strip().partition(":")
        match name, number:
            case "fifo", "":
                facts = replace(facts, levels=None)
            case "priority", _ if (number or str(LEVELS_OF_ALL)).isdecimal():
                levels = int(number or LEVELS_OF_ALL)
                if not 1 <= levels <= LEVELS_MAX:
                    raise ValueError(f"a queue has 1 to {LEVELS_MAX} levels, not {levels}")
                facts = replace(facts, levels=levels)
            case "durable", "":
                facts = replace(facts, durable=True, may_be_durable=True)
            case "elsewhere", "":
                facts = replace(facts, returns=False)
            case "may-drop", "":
                facts = replace(facts, may_drop=True)
            case _:
                raise ValueError(f"{word.strip()!r} is none of {WORDS}")
    return facts


def queue_options(command: _Command) -> _Command:
    """Add the options that say what a recording does not: the two halves of `KnownQueues`."""
    command = click.option(
        "--undeclared",
        metavar="WORDS",
        callback=_undeclared,
        help="What the queues are that the recording does not declare, in the words of --queue; "
        "without it their order is not checked.",
    )(command)
    return click.option(
        "--queue",
        "queues",
        multiple=True,
        metavar="NAME=WORDS",
        callback=_named,
        help="What one queue is that the recording does not declare, with commas between words: "
        f"{WORDS}; repeatable.",
    )(command)


def _undeclared(_context: click.Context, _option: click.Parameter, words: str | None) -> QueueFacts:
    return UNDECLARED if words is None else _said(words)


def _named(
    _context: click.Context, _option: click.Parameter, values: Sequence[str]
) -> dict[str, QueueFacts]:
    found = {}
    for value in values:
        name, is_there, words = value.rpartition("=")
        if not is_there or not name:
            raise click.BadParameter(f"{value!r} is not NAME=WORDS; say NAME=fifo for instance")
        found[name] = _said(words)
    return found


def _said(words: str) -> QueueFacts:
    try:
        return facts_said(words)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
