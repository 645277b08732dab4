"""The minimal run that shows the violation of a rule, in the gate's own operations.

A recording spreads a violation over many overlapping operations. But each rule names one or two
messages, or a covering chain of several, and a few operations on a separate queue show the same.
The record of a rule has its run in a few words; here they become operations and their answers. The
gate's oracle names the same requirement for each of them; a test checks that.

The words: `m` is the message of the violation, `w` its witness, `held` what fills a window. `first`
held the message before, `late` got it wrongly, `other` is `late` where both hold it, `browser` was
shown it, `all` drains the queue. `return` lets a message be delivered and come back. `chain` lets
the messages of a covering chain take turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from brokerproof.checks.search.counterexamples import Line, answer_text
from brokerproof.checks.trace.moves import Move, Settle, SettlementName
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Publish,
    Purge,
    Restart,
)

LEVELS_MAX: Final = 10
ALL: Final = "all"
"""The name given to the subscriber that drains a queue."""
OTHERS: Final = "others"
"""The name given to the subscriber that gets the messages of a covering chain."""


@dataclass(frozen=True)
class Values:
    """The names and numbers of a run: made up, or those of a recording.

    `first` held the message before, if any subscriber did; `late` got it wrongly; `browser` was
    shown it; `held` are the messages of a subscriber without room. Missing levels, priorities and
    windows are made up. `levels` is 0 for a first-in first-out queue; a window of None has no
    limit.
    """

    first: str = "c0"
    late: str = "c0"
    browser: str = "b0"
    levels: int | None = None
    held: tuple[str, ...] = ("one before",)
    channels: Mapping[str, str] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    windows: Mapping[str, int | None] = field(default_factory=dict)


class Script:
    """The steps that show a violation on a separate queue, with the answer to each."""

    def __init__(self, found: Violation, values: Values) -> None:
        self.found, self.values, self.queue = found, values, found.queue
        self.lines: list[Line] = []
        self._subscribed: set[str] = set()
        self._deliveries = 0
        self._messages = {
            "m": (found.message,),
            "w": (found.witness or "another",),
            "held": values.held,
        }
        self._subscribers = {
            "first": values.first,
            "late": values.late,
            "other": values.late,
            "browser": values.browser,
            "w": found.witness or "c0",
            "all": ALL,
        }

    def take(self, step: str) -> None:
        """Add a step, in the words of a record."""
        match step.split():
            case ["declare", *how]:
                self._declare(levels=LEVELS_MAX * ("levels" in how), durable="durable" in how)
            case ["publish", what, *how]:
                priority = 5 if "urgent" in how else 4
                for message in self._messages[what]:
                    self._publish(message, priority, persistent="persistent" in how)
            case ["consume", key, *how]:
                self._consume(self._subscribers[key], window=self._window(how))
            case ["browse"]:
                self._consume(self.values.browser, "browse", None)
            case ["give", what, key, *how]:
                subscriber = self._subscribers[key]
                self._give(self._messages[what], subscriber, redelivered="redelivered" in how)
            case ["acknowledge" | "release" as name, "m", *how]:
                self._settle(name, self.found.message, again="again" in how)
            case ["return", what]:
                self._return(*self._messages[what])
            case ["chain", *late]:
                self._chain([self.found.message] * len(late))
            case ["get"]:
                channel = self.values.channels.get(self.values.late, "channel of the get")
                self._do(Get(channel=channel, queue=self.queue, mode="acknowledge"))
            case ["cancel", key]:
                self._do(Cancel(consumer=self._subscribers[key]))
            case ["close", key]:
                self._do(CloseChannel(channel=self._channel_of(self._subscribers[key])))
            case ["purge"]:
                self._do(Purge(queue=self.queue))
            case ["delete"]:
                self._do(Delete(queue=self.queue))
            case ["crash"]:
                self._do(Crash())
            case ["restart"]:
                self._do(Restart())
            case ["drain"]:
                self._do(Drain())
            case _:
                raise ValueError(f"no step of a least run: {step}")

    def _do(self, move: Move, *events: Delivered) -> None:
        self.lines.append(Line(move, answer_text(move, Answer(events)), events))

    def _declare(self, *, levels: int = 0, durable: bool = False) -> None:
        """Add the declaration of the queue, with the recorded levels if known."""
        levels = levels if self.values.levels is None else self.values.levels
        order = Priority(levels=levels) if levels else Fifo()
        self._do(Declare(queue=self.queue, order=order, durable=durable))

    def _publish(self, message: str, priority: int = 4, *, persistent: bool = False) -> None:
        """Add a publish, with the recorded priority if known."""
        priority = self.values.priorities.get(message, priority)
        content = Message(id=message, priority=priority, persistent=persistent)
        self._do(Publish(queue=self.queue, message=content))

    def _window(self, how: Sequence[str]) -> int | None:
        """Return the window of a consumer: `twice` is for one that may get a message again."""
        if "full" in how:
            return len(self.values.held)
        is_again = "twice" in how and self.values.first == self.values.late
        return None if "freely" in how or is_again else 1

    def _consume(
        self, consumer: str, mode: ConsumeMode = "acknowledge", window: int | None = 1
    ) -> None:
        """Add a subscription, with the recorded window if known, unless it is there."""
        if consumer in self._subscribed:
            return
        self._subscribed.add(consumer)
        window = self.values.windows.get(consumer, window)
        channel, credit = self._channel_of(consumer), Credit(messages=window)
        subscribed = Consume(
            channel=channel, queue=self.queue, consumer=consumer, mode=mode, credit=credit
        )
        self._do(subscribed)

    def _channel_of(self, subscriber: str) -> str:
        return self.values.channels.get(subscriber, f"channel of {subscriber}")

    def _give(self, messages: Sequence[str], consumer: str, *, redelivered: bool = False) -> None:
        """Add a drain that delivers messages: after it, no consumer with room is left without."""
        given = [
            Delivered(
                delivery=f"d{self._deliveries + number}",
                consumer=consumer,
                queue=self.queue,
                message=message,
                redelivered=redelivered,
            )
            for number, message in enumerate(messages)
        ]
        self._deliveries += len(given)
        self._do(Drain(), *given)

    def _settle(self, how: SettlementName, message: str, *, again: bool = False) -> None:
        self._do(Settle(how=how, message=message, again=again))

    def _return(self, message: str) -> None:
        """Let a message be delivered and returned, then subscribe its next consumer."""
        first, late = self.values.first, self.values.late
        self._consume(first)
        self._give([message], first)
        if first != late:
            # A still subscribed first consumer would get it at once.
            self._do(Cancel(consumer=first))
        self._settle("release", message)
        self._consume(late)

    def _chain(self, late: Sequence[str]) -> None:
        """Publish messages, each before the previous one is delivered; the last of them waits.

        Their consumer holds the previous message, and has no room for more.
        """
        chain = list(self.found.chain) or list(self._messages["w"])
        self._declare(levels=LEVELS_MAX if late else 0)
        for message in chain[:2]:
            self._publish(message, 5)
        for message in late:
            self._publish(message)
        if chain[1:]:
            self._consume(OTHERS)
        for message, after in zip_longest(chain[:-1], chain[2:]):
            self._give([message], OTHERS)
            if after is not None:
                self._publish(after, 5)
                self._settle("acknowledge", message)


def made_up(found: Violation) -> Values:
    """Return the values of a run's own."""
    return Values(late="c1" if " other" in _run(found) else "c0")


def steps_of(found: Violation, values: Values) -> tuple[Line, ...]:
    """Return the minimal run that shows a violation."""
    script = Script(found, values)
    for step in _run(found).split("; "):
        script.take(step)
    return tuple(script.lines)


def _run(found: Violation) -> str:
    return RULES[found.rule].case(found.requirement).run
