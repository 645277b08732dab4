"""A violation explained: the least run of a queue that shows the same, in the gate's own words.

What a recording shows is spread over many overlapping operations. What is wrong with it is not:
each rule names one or two messages, or some that took turns, and a few operations on a queue of
their own show what was wrong between them. Those are the steps of a counterexample; when the
messages were really handled is in what was seen. Owns these runs; the oracle of the gate, asked
about one, names the same promise, and a test holds it to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from brokerproof.checks.counterexamples import Certificate, Counterexample, Line, answer_text
from brokerproof.checks.moves import Move, Settle, SettlementName
from brokerproof.spec.answers import Answer, Delivered
from brokerproof.spec.capabilities import Capabilities
from brokerproof.spec.histories import NEVER
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.operations import (
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
LATE: Final = "late"
EARLY: Final = "early"


@dataclass(frozen=True)
class Violation:
    """A row of the table of violations, and what else the run that shows it needs.

    `turns` are the messages that took turns in waiting, in the order in which they left, where that
    is what is wrong and they are known; the witness is the last of all that were there.
    """

    requirement: str
    run: str
    queue: str
    message: str
    rule: str
    witness: str | None
    late: tuple[int, int]
    early: tuple[int, int]
    turns: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: dict[str, Any]) -> Violation:
        """Return what a row of the table says."""
        return cls(
            row["requirement"],
            row["run"],
            row["queue"],
            row["message"],
            row["rule"],
            row["witness"],
            (row["late_start"], row["late_end"]),
            (row["early_start"], row["early_end"]),
        )


@dataclass
class Script:
    """Steps of a queue of its own, with what was answered to each."""

    queue: str
    steps: list[Line] = field(default_factory=list)
    deliveries: int = 0

    def does(self, move: Move, *events: Delivered) -> None:
        """Add a step."""
        answer = Answer(events)
        self.steps.append(Line(move, answer_text(answer), events))

    def declares(self, *, levels: int = 0, durable: bool = False) -> None:
        """Add the declaration of the queue."""
        order = Priority(levels=levels) if levels else Fifo()
        self.does(Declare(queue=self.queue, order=order, durable=durable))

    def publishes(self, message: str, *, priority: int = 4, persistent: bool = False) -> None:
        """Add a publish."""
        content = Message(id=message, priority=priority, persistent=persistent)
        self.does(Publish(queue=self.queue, message=content))

    def consumes(
        self, consumer: str, mode: ConsumeMode = "acknowledge", window: int | None = 1
    ) -> None:
        """Add a subscription on a channel of its own."""
        self.does(
            Consume(
                channel=f"channel of {consumer}",
                queue=self.queue,
                consumer=consumer,
                mode=mode,
                credit=Credit(messages=window),
            )
        )

    def gives(self, message: str, consumer: str, *, redelivered: bool = False) -> None:
        """Add a drain with which a message was given or shown."""
        self.does(Drain(), self._delivered(message, consumer, redelivered=redelivered))

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


def counterexample_of(found: Violation, source: str) -> Counterexample:
    """Return a violation as the counterexample that reports and `replay` show."""
    script = Script(found.queue)
    _SCRIPTS[found.rule](script, found)
    expected, seen = _WORDS[found.rule]
    names = {
        "message": found.message,
        "witness": found.witness,
        "late": _span(found.late),
        "early": _span(found.early),
        "there_by": f"{found.early[0]:,}",
        "turns": ", then ".join(found.turns) or f"the last of them {found.witness}",
        "until": "was never given" if found.early[1] >= NEVER else "was given later",
    }
    early = found.turns or (found.witness,)
    witnesses = tuple(dict.fromkeys(filter(None, (found.message, *early))))
    return Counterexample(
        format="brokerproof-counterexample/1",
        candidate=source,
        requirement=found.requirement,
        expected=expected.format(**names),
        seen=f"{seen.format(**names)} (run {found.run}, queue {found.queue}; times in ns)",
        witnesses=witnesses,
        steps=tuple(script.steps),
        certificate=Certificate(grade="not certified", reason="it is taken from a recording"),
        # At its last step such a run shows that somebody waits; that the message is gone, and not
        # late, is what the drained queue of the recording says.
        also=("quiescence",) if found.rule in {"left-behind", "left-behind-of-several"} else (),
        claims=CLAIMS,
    )


CLAIMS: Final = Capabilities(
    orders=("fifo", "priority"),
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages",),
    durable=True,
    get=True,
    browse=True,
    release_position="original",
    purge=True,
    delete=True,
)
"""What a run of these steps is judged by."""


def _span(times: tuple[int, int]) -> str:
    if times[1] >= NEVER:
        return f"from {times[0]:,} on"
    return f"between {times[0]:,} and {times[1]:,}"


def _never_published(script: Script, found: Violation) -> None:
    script.declares()
    script.consumes("c0")
    script.gives(found.message, "c0")


def _held_by_two(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    script.consumes("c0")
    script.gives(found.message, "c0")
    if found.requirement == "settled-once":
        script.settles("acknowledge", found.message)
        script.settles("release", found.message, again=True)
    script.consumes("c1")
    script.gives(found.message, "c1", redelivered=True)


def _told_as_new(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    script.consumes("c0")
    script.gives(found.message, "c0")
    script.settles("release", found.message)
    script.gives(found.message, "c0")


def _shown_while_held(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    script.consumes("c0")
    script.gives(found.message, "c0")
    script.consumes("b0", "browse", None)
    script.gives(found.message, "b0")


def _shown_again(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    script.consumes("b0", "browse", None)
    script.gives(found.message, "b0")
    returned = found.requirement == "browser-never-rewound"
    if returned:
        script.consumes("c0")
        script.gives(found.message, "c0")
        script.settles("release", found.message)
    script.gives(found.message, "b0", redelivered=returned)


def _found_nothing(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.witness or found.message)
    script.does(Get(channel="channel of the get", queue=script.queue, mode="acknowledge"))


def _in_turns(script: Script, found: Violation, *late: str) -> None:
    """Let messages come, each before the one before it is given; the last of them waits.

    The consumer holds the one before it, and has no room for more.
    """
    turns = list(found.turns) or [found.witness or "another"]
    script.declares(levels=LEVELS_MAX if late else 0)
    for message in turns[:2]:
        script.publishes(message, priority=5)
    for message in late:
        script.publishes(message)
    if late or turns[1:]:
        script.consumes("c0")
    for message, after in zip_longest(turns[:-1], turns[2:]):
        script.gives(message, "c0")
        if after is not None:
            script.publishes(after, priority=5)
            script.settles("acknowledge", message)


def _found_nothing_of_several(script: Script, found: Violation) -> None:
    _in_turns(script, found)
    script.does(Get(channel="channel of the get", queue=script.queue, mode="acknowledge"))


def _left_behind_of_several(script: Script, found: Violation) -> None:
    _in_turns(script, found)
    script.consumes("all", window=None)
    script.does(Drain())


def _overtakes_some(script: Script, found: Violation) -> None:
    _in_turns(script, found, found.message)
    for message in found.turns[-2:-1]:
        script.settles("acknowledge", message)
    script.gives(found.message, "c0")


def _left_behind(script: Script, found: Violation) -> None:
    crashes = found.requirement == "survives-restart"
    script.declares(durable=crashes)
    script.publishes(found.message, persistent=crashes)
    if crashes:
        script.does(Crash())
        script.does(Restart())
    match found.requirement:
        case "browser-takes-nothing":
            script.consumes("b0", "browse", None)
            script.gives(found.message, "b0")
        case "close-releases":
            script.consumes("c0")
            script.gives(found.message, "c0")
            script.does(CloseChannel(channel="channel of c0"))
        case "settled-once":
            script.consumes("c0")
            script.gives(found.message, "c0")
            script.does(Cancel(consumer="c0"))
            script.settles("release", found.message)
            script.settles("acknowledge", found.message, again=True)
        case _:
            pass
    script.consumes("all", window=None)
    script.does(Drain())


def _kept_after(*moves: Callable[[str], Move]) -> Callable[[Script, Violation], None]:
    def script_of(script: Script, found: Violation) -> None:
        script.declares()
        script.publishes(found.message)
        for move in moves:
            script.does(move(script.queue))
        script.consumes("c0")
        script.gives(found.message, "c0")

    return script_of


def _beyond_the_window(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes("one before")
    script.publishes(found.message)
    script.consumes("c0", window=1)
    script.gives("one before", "c0")
    script.gives(found.message, "c0")


def _overtakes(script: Script, found: Violation) -> None:
    witness = found.witness or "another"
    urgent = found.requirement == "priority-order"
    script.declares(levels=LEVELS_MAX if urgent else 0)
    script.publishes(witness, priority=5 if urgent else 4)
    script.publishes(found.message)
    browses = found.requirement == "browser-in-order"
    returned = found.requirement == "release-rewinds"
    if returned:
        script.consumes("c0")
        script.gives(witness, "c0")
        script.settles("release", witness)
        script.gives(found.message, "c0")
        return
    script.consumes("c0", "browse" if browses else "acknowledge", None if browses else 1)
    script.gives(found.message, "c0")


def _stalled(script: Script, found: Violation) -> None:
    script.declares()
    script.publishes(found.message)
    script.consumes(found.witness or "c0", window=None)
    script.does(Drain())


_SCRIPTS: Final[dict[str, Callable[[Script, Violation], None]]] = {
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
    "kept-after-a-purge": _kept_after(lambda queue: Purge(queue=queue)),
    "kept-after-a-deletion": _kept_after(
        lambda queue: Delete(queue=queue), lambda queue: Declare(queue=queue, order=Fifo())
    ),
    "kept-after-a-crash": _kept_after(
        lambda _: Crash(),
        lambda _: Restart(),
        lambda queue: Declare(queue=queue, order=Fifo()),
    ),
    "more-than-the-window": _beyond_the_window,
    "overtakes-in-a-stream": _overtakes,
    "overtakes-what-waits-in-a-stream": _overtakes,
    "overtakes-an-equal": _overtakes,
    "overtakes-what-waits": _overtakes,
    "overtakes-what-returned": _overtakes,
    "overtakes-some-that-wait": _overtakes_some,
    "stalled": _stalled,
}

_OVERTAKEN: Final = "{witness}, which waited ahead of it, to be given before {message}"
_WORDS: Final[dict[str, tuple[str, str]]] = {
    "given-before-published": (
        "{message} to be given after it was published",
        "it was given {late}, and published {early}",
    ),
    "never-published": (
        "what is given to have been published",
        "{message} was given {late}, and nobody published it",
    ),
    "held-by-two": (
        "{message} to be given to nobody while {witness} had it, or had settled it",
        "{witness} got it {early}, and it was given again {late}",
    ),
    "told-as-new": (
        "{message} to be told as redelivered",
        "{witness} got it {early}; {late} it was given again, and told as new",
    ),
    "shown-while-held": (
        "{message} to be shown to no browser while {witness} had it",
        "{witness} got it {early}, and it was shown {late}",
    ),
    "shown-again": (
        "{message} to be shown to {witness} once",
        "it was shown {early}, and again {late}",
    ),
    "left-behind": (
        "{message} to be given, or to be there still",
        "it came to the queue {early}; {late} nothing more was to be had",
    ),
    "found-nothing": (
        "the get to find {witness}",
        "it found nothing {late}; {witness} was there by {there_by} and {until}",
    ),
    "left-behind-of-several": (
        "a message to be there while the queue is drained",
        "nothing more was to be had {late}; from {there_by} on there always was one: {turns}",
    ),
    "found-nothing-of-several": (
        "the get to find a message",
        "it found nothing {late}; from {there_by} on there always was one: {turns}",
    ),
    "kept-after-a-purge": (
        "{message} to be gone with the purge",
        "the queue was purged {early}, and it was given {late}",
    ),
    "kept-after-a-deletion": (
        "{message} to be gone with its queue",
        "the queue was deleted {early}, and it was given {late}",
    ),
    "kept-after-a-crash": (
        "{message}, which was not on disk, to be gone with the crash",
        "the broker crashed {early}, and it was given {late}",
    ),
    "more-than-the-window": (
        "{witness} to be given no more than its window lets through",
        "{message} was given to it {late}, when it held as many as it may",
    ),
    "overtakes-in-a-stream": (
        _OVERTAKEN,
        "one taker got {message} {late}, and {witness} after that",
    ),
    "overtakes-what-waits-in-a-stream": (
        _OVERTAKEN,
        "one taker got {message} {late}, and {witness}, which waited {early}, after that",
    ),
    "overtakes-an-equal": (_OVERTAKEN, "{message} was given {late}; {witness} waited {early}"),
    "overtakes-what-waits": (_OVERTAKEN, "{message} was given {late}; {witness} waited {early}"),
    "overtakes-what-returned": (
        _OVERTAKEN,
        "{message} was given {late}; {witness} had returned, and waited {early}",
    ),
    "stalled": (
        "{message} to be given to {witness} within the time that was set",
        "it was there, and {witness} free to take it, {late}",
    ),
    "overtakes-some-that-wait": (
        "one that is more urgent to be given before {message}",
        "{message} was given {late}; from {there_by} on there always was one: {turns}",
    ),
}
