"""The history of a run of parallel operations, and whether the contract allows it.

A history is allowed if the contract allows some order of its operations and deliveries in which
each takes effect between its begin and its end. The oracle judges each order; nothing of the
judging is stated here.

Two points are weaker than linearizability, as in the documents (Qpid, Message Delivery: a walk of
the queue looks at one entry after the other, and a release moves one pointer after the other). A
walk under way may miss a message that becomes available: order is owed only among messages that
were available during the whole walk. And closing a channel is several steps: its consumers leave,
and each message that it holds returns.

Source: Herlihy, Wing, Linearizability: a correctness condition for concurrent objects (TOPLAS 12,
1990); the search is the plain one, since histories here are short.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import goes_on
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed, Delivered, Event
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Drain,
    Get,
    Inspect,
    Operation,
    Publish,
    Reject,
    Release,
)


@dataclass(frozen=True)
class Call:
    """An operation and its answer; the events of a get are in it."""

    operation: Operation
    answer: Answer


@dataclass(frozen=True)
class Happened:
    """An operation or an event, and the steps of the run between which it took effect.

    It took effect after step `after`, and at step `until` at the latest. `by` is the thread's name.
    """

    what: Call | Event
    after: int
    until: int
    by: str = ""


@dataclass
class History:
    """The operations and events of a run, in the order in which they ended."""

    happened: list[Happened] = field(default_factory=list)

    def form(self) -> Hashable:
        """Return a value that is equal for histories with the same possible orders."""
        return repr([each.what for each in self.happened]), tuple(self.before())

    def before(self) -> Iterator[frozenset[int]]:
        """Yield, for each, which of the others have taken effect before it in any order."""
        stream: dict[str | None, list[int]] = {}
        told: dict[str, int] = {}
        for number, each in enumerate(self.happened):
            before = {n for n, other in enumerate(self.happened) if other.until <= each.after}
            # Deliveries to a consumer are told in their order. No event is told to a consumer after
            # its end was told or answered (LC-1).
            match each.what:
                case Delivered(consumer=consumer, delivery=delivery):
                    own = stream.setdefault(consumer, [])
                    before.update(own)
                    own.append(number)
                    told[delivery] = number
                case ConsumerClosed(consumer=consumer) | Call(
                    Cancel(consumer=consumer), Answer(error=None)
                ):
                    stream.setdefault(consumer, []).append(number)
                case Call(
                    Acknowledge(delivery=delivery)
                    | Release(delivery=delivery)
                    | Reject(delivery=delivery)
                ) if delivery in told:
                    # A delivery comes before its settlement, and before its release by a closing.
                    before.add(told[delivery])
            yield frozenset(before - {number})

    def as_owed(
        self, channels: Mapping[str, str], held: Mapping[str, str], there: AbstractSet[str]
    ) -> History:
        """Return the history for which an order is owed.

        `channels` are those of the consumers, `held` those of the deliveries held at the beginning.
        `there` are the consumers subscribed then.
        """
        parts = [
            part for each in self.happened for part in self._parts(each, channels, held, there)
        ]
        looked = [each for each in parts if _has_looked(each.what)]
        return History([_as_seen(each, looked) for each in parts])

    def _parts(
        self,
        each: Happened,
        channels: Mapping[str, str],
        held: Mapping[str, str],
        there: AbstractSet[str],
    ) -> Iterator[Happened]:
        """Yield the steps of a closing of a channel; anything else as it is.

        Operations on a channel are never at once, so earlier ones on it are over by then.
        """
        match each.what:
            case Call(CloseChannel(channel=channel), Answer(error=None)):
                over = [other.what for other in self.happened if other.until <= each.after]
                consumers = {*there, *_came(over)} - {*_left(over)}
                settled = _settled(over)
                held = {**held, **self._taken(channels, consumers, each.after)}
                for consumer, its in channels.items():
                    if its == channel and consumer in consumers:
                        yield replace(each, what=Call(Cancel(consumer=consumer), Answer()))
                for delivery, its in held.items():
                    if its == channel and delivery not in settled:
                        yield replace(each, what=Call(Release(delivery=delivery), Answer()))
            case _:
                yield each

    def _taken(
        self, channels: Mapping[str, str], consumers: AbstractSet[str], after: int
    ) -> Mapping[str, str]:
        """Return the deliveries, each with its channel, to these consumers and until a step."""
        taken = {}
        for each in self.happened:
            is_over = each.until <= after
            match each.what:
                case Delivered(consumer=str(consumer), delivery=delivery) if (
                    is_over or consumer in consumers
                ):
                    taken[delivery] = channels[consumer]
                case Call(Get(channel=channel), Answer(events=events)) if is_over:
                    taken |= {e.delivery: channel for e in events if isinstance(e, Delivered)}
        return taken


def _came(over: Sequence[Call | Event]) -> Iterator[str]:
    for each in over:
        match each:
            case Call(Consume(consumer=consumer), Answer(error=None)):
                yield consumer


def _left(over: Sequence[Call | Event]) -> Iterator[str]:
    for each in over:
        match each:
            case Call(Cancel(consumer=consumer), Answer(error=None)):
                yield consumer
            case ConsumerClosed(consumer=consumer):
                yield consumer


def _settled(over: Sequence[Call | Event]) -> AbstractSet[str]:
    return {
        each.operation.delivery
        for each in over
        if isinstance(each, Call)
        and isinstance(each.operation, Acknowledge | Release | Reject)
        and each.answer.error is None
    }


def _has_looked(what: Call | Event) -> bool:
    """Whether a consumer or get has looked for a message."""
    return isinstance(what, Delivered) or (
        isinstance(what, Call) and isinstance(what.operation, Get)
    )


def _as_seen(each: Happened, looked: Sequence[Happened]) -> Happened:
    """Extend an operation that makes a message available to the end of walks under way."""
    if not (isinstance(each.what, Call) and isinstance(each.what.operation, Publish | Release)):
        return each
    ends = [other.until for other in looked if other.after < each.until]
    return replace(each, until=max([each.until, *ends]))


class Judge:
    """Judges histories that begin in an oracle's state; each form of them once.

    `channels` are those of all consumers, present and future.
    """

    def __init__(self, oracle: Oracle, channels: Mapping[str, str]) -> None:
        self._oracle, self._channels = oracle, channels
        self._held = {name: held.channel for name, held in oracle.bindings.held.items()}
        self._there = frozenset(oracle.bindings.active)
        self._known: dict[Hashable, Breach | None] = {}

    def breach(self, history: History, drained: Answer) -> Breach | None:
        """Return the breach if every possible order has one, otherwise None.

        `drained` is the answer to the final drain. The breach returned is that of the order that
        goes on longest.
        """
        owed = history.as_owed(self._channels, self._held, self._there)
        form = owed.form(), repr(drained)
        if form not in self._known:
            self._known[form] = _judged(self._oracle, owed, drained)
        return self._known[form]


def _judged(oracle: Oracle, history: History, drained: Answer) -> Breach | None:
    """Try one order after the other, each as far as it goes."""
    before = [*history.before()]
    deepest = -1
    found: Breach | None = None
    left: list[tuple[frozenset[int], Oracle]] = [(frozenset(), oracle)]
    while left:
        done, so_far = left.pop()
        if len(done) == len(before):
            following: dict[int, tuple[Operation, Answer]] = {-1: (Drain(), drained)}
        else:
            following = {
                number: _as_asked(history.happened[number].what)
                for number in reversed(range(len(before)))
                if number not in done and before[number] <= done
            }
        for number, (operation, answer) in following.items():
            after = so_far.fork()
            broken = [each for each in after.observe(operation, answer) if not goes_on(each)]
            if broken and len(done) > deepest:
                deepest, found = len(done), broken[0]
            elif not broken and number < 0:
                return None
            elif not broken:
                left.append((done | {number}, after))
    assert found is not None, "there is an order in which everything happened"
    return found


def _as_asked(what: Call | Event) -> tuple[Operation, Answer]:
    """Return an operation and its answer; an event is told in answer to one that does nothing."""
    if isinstance(what, Call):
        return what.operation, what.answer
    return Inspect(queue=""), Answer((what,))
