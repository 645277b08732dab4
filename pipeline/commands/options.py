"""The options that several commands share: facts about undeclared queues, Spark, durations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from brokerproof.pipeline.intervals.known_queues import (
    LEVELS_OF_ALL,
    PRIORITY,
    UNDECLARED,
    WORDS,
    QueueFacts,
    facts_said,
)
from brokerproof.spec.histories import NEVER

RABBITMQ: Final = (
    "RabbitMQ's x-max-priority=N makes N+1 levels, as in priority:11 for 10; there a message "
    "without a priority has 0, where a record without one means 4"
)
"""A warning for users that describe a queue: RabbitMQ's numbers differ from those of a history."""


LOCAL: Final = "local[*]"
"""Spark's master that works on the cores of this machine."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def queue_options(command: _Command) -> _Command:
    """Add the options for facts about undeclared queues, the two halves of `KnownQueues`."""
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
        f"{WORDS}; {PRIORITY} alone is {PRIORITY}:{LEVELS_OF_ALL}; repeatable. {RABBITMQ}.",
    )(command)


def spark_options(command: _Command) -> _Command:
    """Add the options for where Spark works, and for its settings."""
    command = click.option(
        "--spark",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_settings,
        help="A setting of Spark, such as spark.executor.memory=4g; repeatable. "
        "spark.pyspark.python is the interpreter on the workers of a cluster.",
    )(command)
    return click.option(
        "--master",
        default=LOCAL,
        show_default=True,
        help="Where Spark works: on the cores of this machine, or the address of a cluster.",
    )(command)


def _settings(
    _context: click.Context, _option: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    found = {}
    for each in values:
        key, is_there, value = each.partition("=")
        if not is_there or not key.startswith("spark."):
            raise click.BadParameter(
                f"{each!r} is no setting of Spark; say KEY=VALUE, as in spark.executor.memory=4g"
            )
        if key == "spark.master":
            raise click.BadParameter("name the master with --master")
        if key in found:
            raise click.BadParameter(f"{key!r} is said twice")
        found[key] = value
    return found


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
        if name in found:
            raise click.BadParameter(f"{name!r} is said twice; say all of it in one, with commas")
        found[name] = _said(words)
    return found


def _said(words: str) -> QueueFacts:
    try:
        return facts_said(words)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


NS_OF: Final = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
}
"""Nanoseconds, the unit of records, in each unit of a duration."""

DURATIONS: Final = f"a number with one of {', '.join(NS_OF)}, such as 200ms; alone it is of seconds"


def duration(_context: click.Context, _option: click.Parameter, words: str | None) -> int | None:
    """Return the nanoseconds of a text such as 200ms or 5s; a number alone is in seconds.

    Zero is refused: with no wait allowed, every delivery that took time would be a violation.
    """
    if words is None:
        return None
    said = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", words.strip())
    if said is None or (said[2] or "s") not in NS_OF:
        raise click.BadParameter(f"{words!r} is no duration; {DURATIONS}")
    nanoseconds = round(float(said[1]) * NS_OF[said[2] or "s"])
    if nanoseconds == 0:
        raise click.BadParameter(f"{words!r} is no time at all, and every message takes some")
    if nanoseconds >= NEVER:
        raise click.BadParameter(f"{words!r} is longer than any history")
    return nanoseconds
