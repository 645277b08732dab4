"""The minimal run that shows the violation of a rule, in the gate's own operations.

A recording spreads a violation over many overlapping operations. But each rule names one or two
messages, or a covering chain of several, and a few operations on a separate queue show the same.
Owns these runs. The gate's oracle names the same requirement for each of them; a test checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from brokerproof.checks.search.counterexamples import Line, answer_text
from brokerproof.checks.trace.moves import Move, Settle, SettlementName
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.messages import Credit, Fifo, Message, Priority
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


@dataclass
class Script:
    """The steps on a separate queue, with the answer to each."""

    queue: str
    values: Values
    steps: list[Line] = field(default_factory=list)
    deliveries: int = 0

    def does(self, move: Move, *events: Delivered) -> None:
        """Add a step."""
        answer = Answer(events)
        self.steps.append(Line(move, answer_text(answer), events))

    def declares(self, *, levels: int = 0, durable: bool = False) -> None:
        """Add the declaration of the queue, with the recorded levels if known."""
        levels = levels if self.values.levels is None else self.values.levels
        order = Priority(levels=levels) if levels else Fifo()
        self.does(Declare(queue=self.queue, order=order, durable=durable))

    def publishes(self, message: str, *, priority: int = 4, persistent: bool = False) -> None:
        """Add a publish, with the recorded priority if known."""
        priority = self.values.priorities.get(message, priority)
        content = Message(id=message, priority=priority, persistent=persistent)
        self.does(Publish(queue=self.queue, message=content))

    def consumes(
        self, consumer: str, mode: ConsumeMode = "acknowledge", window: int | None = 1
    ) -> None:
        """Add a subscription, with the recorded window if known."""
        window = self.values.windows.get(consumer, window)
        self.does(
            Consume(
                channel=self.channel_of(consumer),
                queue=self.queue,
                consumer=consumer,
                mode=mode,
                credit=Credit(messages=window),
            )
        )

    def channel_of(self, taker: str) -> str:
        """Return the channel of a subscriber."""
        return self.values.channels.get(taker, f"channel of {taker}")

    def gets(self) -> None:
        """Add a get that finds nothing."""
        channel = self.values.channels.get(self.values.late, "channel of the get")
        self.does(Get(channel=channel, queue=self.queue, mode="acknowledge"))

    def gives(self, message: str, consumer: str, *, redelivered: bool = False) -> None:
        """Add a drain that delivers a message."""
        self.does(Drain(), self._delivered(message, consumer, redelivered=redelivered))

    def gives_all(self, messages: Sequence[str], consumer: str) -> None:
        """Add a drain that delivers several messages."""
        given = [self._delivered(each, consumer, redelivered=False) for each in messages]
        self.does(Drain(), *given)

    def settles(self, how: SettlementName, message: str, *, again: bool = False) -> None:
        """Add a settlement."""
        self.does(Settle(how=how, message=message, again=again))

    def _delivered(self, message: str, consumer: str | None, *, redelivered: bool) -> Delivered:
        self.deliveries += 1
        return Delivered(
            delivery=f"d{self.deliveries - 1}",
            consumer=consumer,
            queue=self.queue,
            message=message,
            redelivered=redelivered,
        )


def _never_published(script: Script, found: Violation) -> None:
    script.declares()
    script.consumes(script.values.late)
    script.gives(found.message, script.values.late)


def _held_by_two(script: Script, found: Violation) -> None:
    first, late = script.values.first, script.values.late
    script.declares()
    script.publishes(found.message)
    script.consumes(first, window=None if first == late else 1)
    script.gives(found.message, first)
    if found.requirement == "settled-once":
        script.settles("acknowledge", found.message)
        script.settles("release", found.message, again=True)
    if first != late:
        script.consumes(late)
    script.gives(found.message, late, redelivered=True)


def _told_as_new(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    _returns(script, found.message)
    script.gives(found.message, script.values.late)


def _returns(script: Script, message: str) -> None:
    """Let a message be delivered and returned, then subscribe its next consumer."""
    first, late = script.values.first, script.values.late
    script.consumes(first)
    script.gives(message, first)
    if first != late:
        # A still subscribed first consumer would get it at once.
        script.does(Cancel(consumer=first))
    script.settles("release", message)
    if first != late:
        script.consumes(late)


def _shown_while_held(script: Script, found: Violation) -> None:
    first, browser = script.values.first, script.values.browser
    script.declares()
    script.publishes(found.message)
    script.consumes(first)
    script.gives(found.message, first)
    script.consumes(browser, "browse", None)
    script.gives(found.message, browser)


def _shown_again(script: Script, found: Violation) -> None:
    first, browser = script.values.first, script.values.browser
    script.declares()
    script.publishes(found.message)
    script.consumes(browser, "browse", None)
    script.gives(found.message, browser)
    returned = found.requirement == "browser-never-rewound"
    if returned:
        script.consumes(first)
        script.gives(found.message, first)
        script.settles("release", found.message)
    script.gives(found.message, browser, redelivered=returned)


def _found_nothing(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.witness or found.message)
    script.gets()


OTHERS: Final = "others"
"""The subscriber that gets the messages of a covering chain, whatever its recorded name."""


def _in_turns(script: Script, found: Violation, *late: str) -> None:
    """Publish messages, each before the previous one is delivered; the last of them waits.

    Their consumer holds the previous message, and has no room for more.
    """
    turns = list(found.turns) or [found.witness or "another"]
    script.declares(levels=LEVELS_MAX if late else 0)
    for message in turns[:2]:
        script.publishes(message, priority=5)
    for message in late:
        script.publishes(message)
    if turns[1:]:
        script.consumes(OTHERS)
    for message, after in zip_longest(turns[:-1], turns[2:]):
        script.gives(message, OTHERS)
        if after is not None:
            script.publishes(after, priority=5)
            script.settles("acknowledge", message)


def _found_nothing_of_several(script: Script, found: Violation) -> None:
    _in_turns(script, found)
    script.gets()


def _left_behind_of_several(script: Script, found: Violation) -> None:
    _in_turns(script, found)
    script.consumes(ALL, window=None)
    script.does(Drain())


def _overtakes_some(script: Script, found: Violation) -> None:
    _in_turns(script, found, found.message)
    script.consumes(script.values.late)
    script.gives(found.message, script.values.late)


ALL: Final = "all"
"""The subscriber that drains a queue, whatever its recorded name."""


def _left_behind(script: Script, found: Violation) -> None:
    first = script.values.first
    crashes = found.requirement == "survives-restart"
    script.declares(durable=crashes)
    script.publishes(found.message, persistent=crashes)
    if crashes:
        script.does(Crash())
        script.does(Restart())
    match found.requirement:
        case "browser-takes-nothing":
            script.consumes(script.values.browser, "browse", None)
            script.gives(found.message, script.values.browser)
        case "close-releases":
            script.consumes(first)
            script.gives(found.message, first)
            script.does(CloseChannel(channel=script.channel_of(first)))
        case "settled-once":
            script.consumes(first)
            script.gives(found.message, first)
            script.does(Cancel(consumer=first))
            script.settles("release", found.message)
            script.settles("acknowledge", found.message, again=True)
        case _:
            pass
    script.consumes(ALL, window=None)
    script.does(Drain())


def _kept_after(
    *moves: Callable[[str], Move], declared_again: bool = True
) -> Callable[[Script, Violation], None]:
    def script_of(script: Script, found: Violation) -> None:
        script.declares()
        script.publishes(found.message)
        for move in moves:
            script.does(move(script.queue))
        if declared_again:
            script.declares()
        script.consumes(script.values.late)
        script.gives(found.message, script.values.late)

    return script_of


def _beyond_the_window(script: Script, found: Violation) -> None:
    held, late = script.values.held, script.values.late
    script.declares()
    for message in (*held, found.message):
        script.publishes(message)
    script.consumes(late, window=len(held))
    # All that have room at once: after a drain no consumer with room is left without a message.
    script.gives_all(held, late)
    script.gives(found.message, late)


def _overtakes(script: Script, found: Violation) -> None:
    witness, late = found.witness or "another", script.values.late
    urgent = found.requirement == "priority-order"
    script.declares(levels=LEVELS_MAX if urgent else 0)
    script.publishes(witness, priority=5 if urgent else 4)
    script.publishes(found.message)
    if found.requirement == "release-rewinds":
        _returns(script, witness)
    elif found.requirement == "browser-in-order":
        late = script.values.browser
        script.consumes(late, "browse", None)
    else:
        script.consumes(late)
    script.gives(found.message, late)


def _stalled(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    script.consumes(found.witness or "c0", window=None)
    script.does(Drain())


SCRIPTS: Final[dict[str, Callable[[Script, Violation], None]]] = {
    "given-before-published": _never_published,
    "never-published": _never_published,
    "held-by-two": _held_by_two,
    "told-as-new": _told_as_new,
    "shown-while-held": _shown_while_held,
    "shown-again": _shown_again,
    "left-behind": _left_behind,
    "found-nothing": _found_nothing,
    "found-nothing-of-several": _found_nothing_of_several,
    "left-behind-of-several": _left_behind_of_several,
    "kept-after-a-purge": _kept_after(lambda queue: Purge(queue=queue), declared_again=False),
    "kept-after-a-deletion": _kept_after(lambda queue: Delete(queue=queue)),
    "kept-after-a-crash": _kept_after(lambda _: Crash(), lambda _: Restart()),
    "more-than-the-window": _beyond_the_window,
    "overtakes-in-a-stream": _overtakes,
    "overtakes-what-waits-in-a-stream": _overtakes,
    "overtakes-an-equal": _overtakes,
    "overtakes-what-waits": _overtakes,
    "overtakes-what-returned": _overtakes,
    "overtakes-some-that-wait": _overtakes_some,
    "stalled": _stalled,
}
"""The run of each rule."""


def steps_of(found: Violation, values: Values) -> tuple[Line, ...]:
    """Return the minimal run that shows a violation."""
    script = Script(found.queue, values)
    SCRIPTS[found.rule](script, found)
    return tuple(script.steps)
