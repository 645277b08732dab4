"""Chains: two or three steps in a row that touch the same thing, as a measure of what was tried.

A thing is a message, a consumer, a channel or a queue. Between the steps of a chain there may be
others that touch other things. A broker that keeps more than the contract's state shows what it got
wrong after such steps: the closing of a channel after the cancellation of its consumer, say.
Sequence covering arrays ask for the same of events (Kuhn, Higdon, Lawrence, Kacker, Lei,
Combinatorial Methods for Event Sequence Testing, ICST 2012).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from brokerproof.checks.trace.bindings import Bindings, Held
from brokerproof.checks.trace.moves import Cut, Move, Settle, Whole
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Flush,
    Get,
    Publish,
    Purge,
    Reset,
    Restart,
    SetCredit,
)

BEFORE: Final = 2
"""A chain is made of a step and so many before it."""

KNOWN_MAX: Final = 1 << 14
"""The most moves whose touches are cached: a scope has few, but walks meet them often."""

Family: TypeAlias = Literal["message", "consumer", "channel", "queue"]
Thing: TypeAlias = tuple[Family, str]
Chain: TypeAlias = tuple[Family, tuple[str, ...], str]
"""The family of the thing, the kinds of the steps before, and the kind of the last step."""

Past: TypeAlias = dict[Thing, tuple[str, ...]]
"""The kinds of the last steps of a run that touched each thing."""


class Touch(NamedTuple):
    """The kind of a step, which is all of it but the names, and the things that the step touches.

    `further` are those that it touches as the second or a later one of their family. With
    `everything`, the step touches each thing of the run so far.
    """

    kind: str
    things: tuple[Thing, ...]
    further: tuple[Thing, ...] = ()
    everything: bool = False

    def kind_for(self, thing: Thing) -> str:
        """Return the kind of the step as one of the things sees it."""
        return f"{self.kind} further" if thing in self.further else self.kind


_KNOWN: Final[dict[bytes, Touch]] = {}
_encoded: Final = msgspec.json.Encoder().encode

_OF_ALL = Advance | Crash | Restart | Reset

_NAMES = frozenset(("queue", "queues", "channel", "consumer", "dead_letters"))


def touch_of(move: Move, bindings: Bindings) -> Touch:
    """Return what a move touches in the state of these bindings."""
    if isinstance(move, Cut):
        return touch_of(move.move, bindings)._replace(kind=_kind_of(move.move) + " cut off")
    if isinstance(move, Settle | Cancel | CloseChannel):
        return Touch(_kind_of(move), tuple(_things_in(bindings, move)))
    # A message has a dictionary, so a move itself cannot be a key.
    key = _encoded(move)
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        known = _KNOWN[key] = _named_by(move)
    return known


def _named_by(move: Whole) -> Touch:
    """Return what a move touches that names all of it."""
    further = move.queues[1:] if isinstance(move, Consume) else ()
    return Touch(
        _kind_of(move),
        tuple(_things(move)),
        tuple(("queue", each) for each in further),
        isinstance(move, _OF_ALL),
    )


def _kind_of(move: Whole) -> str:
    options = {each: getattr(move, each) for each in move.__struct_fields__ if each not in _NAMES}
    if isinstance(move, Publish):
        options["message"] = replace(move.message, id="")
    elif isinstance(move, Settle):
        del options["message"]
    return f"{type(move).__name__} {options}"


def _things(move: Whole) -> Iterator[Thing]:
    match move:
        case Publish(queue=queue, message=message):
            yield from (("queue", queue), ("message", message.id))
        case Consume(channel=channel, queue=queue, consumer=consumer):
            yield from (("channel", channel), ("consumer", consumer))
            yield from (("queue", each) for each in move.queues or (queue,))
        case Get(channel=channel, queue=queue):
            yield from (("channel", channel), ("queue", queue))
        case Declare(queue=queue) | Purge(queue=queue) | Delete(queue=queue):
            yield "queue", queue
        case Flush(consumer=consumer) | SetCredit(consumer=str(consumer)):
            yield "consumer", consumer
        case SetCredit(channel=str(channel)):
            yield "channel", channel
        case _:
            pass


def _things_in(bindings: Bindings, move: Settle | Cancel | CloseChannel) -> Iterator[Thing]:
    match move:
        case Settle(message=message):
            held = [h for h in bindings.held.values() if bindings.name_of_entry(h.entry) == message]
            yield from _around(bindings, held, ()) if held else (("message", message),)
        case Cancel(consumer=consumer) if consumer in bindings.consumers:
            held = [each for each in bindings.held.values() if each.consumer == consumer]
            yield from _around(bindings, held, [consumer])
        case CloseChannel(channel=channel):
            held = [each for each in bindings.held.values() if each.channel == channel]
            there = [c for c in sorted(bindings.active) if bindings.consumers[c].channel == channel]
            yield from _around(bindings, held, there)
        case _:
            pass


def _around(bindings: Bindings, held: Sequence[Held], consumers: Sequence[str]) -> Iterator[Thing]:
    """Yield the held messages and the consumers, and then the channels and queues of both."""
    subscribers = [bindings.consumers[each] for each in consumers]
    homes = {h.home for h in held} | {home for each in subscribers for home in each.homes}
    yield from (("message", bindings.name_of_entry(each.entry)) for each in held)
    own = {*consumers, *(each.consumer for each in held if each.consumer is not None)}
    yield from (("consumer", each) for each in sorted(own))
    channels = {h.channel for h in held} | {each.channel for each in subscribers}
    yield from (("channel", each) for each in sorted(channels))
    yield from (("queue", queue) for queue, home in bindings.queues.items() if home in homes)


@dataclass
class Chains:
    """The chains that the runs of a search have covered, and those seen one step away."""

    covered: set[Chain] = field(default_factory=set)
    seen: set[Chain] = field(default_factory=set)

    def new(self, past: Past, touch: Touch) -> int:
        """Return how many chains a step would add; one at most if it touches everything.

        Else such a step would always come first: the clock would run out before anything happens.
        """
        covered = self.covered
        things: Iterable[Thing] = past if touch.everything else touch.things
        each = [(thing[0], past.get(thing, ()), touch.kind_for(thing)) for thing in things]
        new = [chain for chain in each if chain not in covered]
        self.seen.update(new)
        return min(len(new), 1) if touch.everything else len(new)

    def most_new(self, past: Past, touches: Sequence[Touch], tried: Container[int]) -> int | None:
        """Return the number of the step that adds the most chains, one not `tried` if there is one.

        None if all were tried and no step adds a chain.
        """
        most, best = (False, 0), None
        for number, touch in enumerate(touches):
            value = number not in tried, self.new(past, touch)
            if value > most:
                most, best = value, number
        return best

    def add(self, past: Past, touch: Touch) -> None:
        """Count a step, and note it in the past of the run."""
        for thing in [*past] if touch.everything else touch.things:
            self._note(past, thing, touch.kind_for(thing))

    def add_deliveries(self, past: Past, answer: Answer) -> None:
        """Count the deliveries that a step brought."""
        for event in answer.events:
            if isinstance(event, Delivered):
                self._note(past, ("message", event.message), "delivered")
                if event.consumer is not None:
                    self._note(past, ("consumer", event.consumer), "delivered")

    def _note(self, past: Past, thing: Thing, kind: str) -> None:
        before = past.get(thing, ())
        self.covered.add((thing[0], before, kind))
        past[thing] = (*before, kind)[-BEFORE:]
