"""Whether steps of the model lead from one state of a queue with a cursor to another.

Owns the form of that question, in numbers instead of names, and its answer. How states of the model
follow each other is stated in the model and nowhere here; where questions come from is
`cursor_steps`.

A long queue is read as a shorter one: of neighbours to which the same has happened, and which are
neighbours in every order that there is, the first stands for all. Whatever the model can do to one
it can do to all of them, one after the other.

The search is led: of each action only those messages are offered that its guard can be about, as
the first of the batch. What is offered is still asked of the guard.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from brokerproof.models.activemq.cursor_page_in import Channel, Consumer, CursorPageIn, Message
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.paths import Seen, Taken, path_if_any

STATES_FEW, STATES_MAX = 300, 3_000
"""How many states of the model are looked at for one step, before its invariants are and after."""

NOBODY = -1


class Facts(NamedTuple):
    """What a view says of one message before or after; `holder` is the number of a consumer."""

    stored: bool = False
    batch: bool = False
    paged: bool = False
    waiting: bool = False
    returned: bool = False
    holder: int = NOBODY
    behind: bool = False
    known: bool = False
    below: bool = False
    given: bool = False


class Known(NamedTuple):
    """A message before and after; it is `spent` where it has come before."""

    before: Facts
    after: Facts
    number: int
    spent: bool = True


class Taker(NamedTuple):
    """A consumer: the number of its channel, and whether it is there before and after.

    One that `settles` acknowledges what it is given at once. A get is there both times.
    """

    channel: int
    before: bool
    after: bool
    settles: bool = False


class Order(NamedTuple):
    """Messages that are returned, and those that are held, each in their order."""

    returned: tuple[int, ...] = ()
    held: tuple[int, ...] = ()

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield each message with each that is behind it."""
        for line in (self.returned, self.held):
            for at, first in enumerate(line):
                yield from ((first, second) for second in line[at + 1 :])


class Question(NamedTuple):
    """Whether messages, in their order, can have gone their ways; equal questions are one.

    `first` is what has to be taken before all others: what a client settles is settled. `arrival`
    is the message that was published, if one was, `recovered` the one that was read last, and
    `closes` the channel that closes. The audit's window is of `words` of `word_bits` numbers.
    """

    messages: tuple[Known, ...]
    takers: tuple[Taker, ...] = ()
    caches: tuple[bool, bool] = (True, True)
    orders: tuple[Order, Order] = (Order(), Order())
    first: Taken | None = None
    arrival: int | None = None
    recovered: int | None = None
    closes: int | None = None
    words: int = 1
    word_bits: int = 64

    def slides(self, recorded: int, other: int) -> bool:
        """Whether the window moves past `other` when a message is recorded."""
        word, last = (self.messages[at].number // self.word_bits for at in (recorded, other))
        return last < word - self.words + 1


def shortened(question: Question) -> Question:
    """Let one stand for neighbours that look alike."""
    alone = {question.arrival, question.recovered}
    if question.first is not None:
        alone.add(question.first.arguments[-1])
    places = [
        {each: at for line in order for at, each in enumerate(line)} for order in question.orders
    ]
    kept: list[int] = []
    number: dict[int, int] = {}
    for at, message in enumerate(question.messages):
        is_new = (
            at == 0
            or at in alone
            or at - 1 in alone
            or message._replace(number=0) != question.messages[at - 1]._replace(number=0)
            or any(place.get(at, 0) != place.get(at - 1, -1) + 1 for place in places if at in place)
        )
        if is_new:
            kept.append(at)
        number[at] = len(kept) - 1
    if len(kept) == len(question.messages):
        return question
    # The last of those that look alike: to record it moves the window as far as to record them all.
    last = {short: at for at, short in number.items()}
    first = question.first
    return question._replace(
        messages=tuple([question.messages[last[at]] for at in range(len(kept))]),
        orders=(_shorter(question.orders[0], number), _shorter(question.orders[1], number)),
        first=first and Taken(first.action, (first.arguments[0], number[first.arguments[1]])),
        arrival=None if question.arrival is None else number[question.arrival],
        recovered=None if question.recovered is None else number[question.recovered],
    )


def _shorter(order: Order, number: dict[int, int]) -> Order:
    returned, held = (tuple(dict.fromkeys([number[at] for at in line])) for line in order)
    return Order(returned, held)


@functools.lru_cache(maxsize=1 << 16)
def answer(question: Question) -> tuple[str, ...] | None:
    """Return the names of the actions on a path from before to after; None if there is none.

    Raises `TooFar` where the search was given up.
    """
    many = max(len(question.messages), 1)
    reading = reading_of(many, len(question.takers), _channels(question))
    see = _seeing(reading, question)
    start = state_of(reading, question, after=False)
    goal = see(state_of(reading, question, after=True))
    first = question.first
    if first is not None:
        if not reading.enabled(first.action, start, first.arguments):
            return None
        start = reading.step(first.action, start, first.arguments)
    found = path_if_any(
        reading,
        start,
        goal,
        lambda state: offered(reading, question, state),
        see,
        lambda: _is_ruled_out(reading, question),
        states=(STATES_FEW, STATES_MAX),
    )
    if found is None:
        return None
    return tuple([taken.action for taken in (*([first] if first else ()), *found)])


def _channels(question: Question) -> int:
    return 1 + max((taker.channel for taker in question.takers), default=0)


def _is_ruled_out(reading: PlainReading, question: Question) -> bool:
    """Whether an invariant is lost, which no step of the model does: that is what is proved."""
    before, after = (state_of(reading, question, after=which) for which in (False, True))
    return bool(reading.violated(after)) and not reading.violated(before)


@functools.lru_cache(maxsize=1 << 10)
def reading_of(messages: int, consumers: int, channels: int) -> PlainReading:
    """Return the model in a scope of so many messages, consumers and channels."""
    scope = Scope({Message: messages, Consumer: max(consumers, 1), Channel: channels}, range(1))
    return PlainReading(trace(CursorPageIn), scope)


@functools.cache
def _base(reading: PlainReading) -> dict[str, int]:
    """Return where the cells of each symbol begin."""
    base: dict[str, int] = {}
    for position, cell in enumerate(reading.cells):
        base.setdefault(cell.symbol.name, position)
    return base


def state_of(reading: PlainReading, question: Question, *, after: bool) -> State:
    """Return a state of the model; where only a path is to be known, it begins anew."""
    messages = question.messages
    facts = [each.after if after else each.before for each in messages]
    sooner = {*question.orders[after].pairs()}
    many = range(max(len(messages), 1))
    values: dict[str, list[bool]] = {
        "slides": [question.slides(m, n) for m in many for n in many] if messages else [False],
        "spent": [after or each.spent for each in messages],
        "read_last": [at == question.recovered and not after for at in many],
        "recorded": [each.known for each in facts],
        "below": [each.below for each in facts],
        "given": [each.given for each in facts],
        "holds": [
            each.holder == who for who in range(len(question.takers)) for each in facts or [Facts()]
        ],
        "sooner": [(m, n) in sooner for m in many for n in many],
        "takes": [each.after if after else each.before for each in question.takers],
        "attached": [
            (each.after if after else each.before) or any(one.holder == who for one in facts)
            for who, each in enumerate(question.takers)
        ],
        "caches": [question.caches[after]],
    }
    for name in ("stored", "batch", "paged", "waiting", "returned", "behind"):
        values[name] = [getattr(each, name) for each in facts]
    channels = [each.channel for each in question.takers]
    state: list[int] = []
    seen: dict[str, int] = {}
    for cell in reading.cells:
        name = cell.symbol.name
        at = seen[name] = seen.get(name, -1) + 1
        found: list[bool] | list[int] = channels if name == "channel" else values.get(name, [])
        state.append(int(found[at]) if at < len(found) else 0)
    return tuple(state)


def _seeing(reading: PlainReading, question: Question) -> Callable[[State], Seen]:
    """Return what says what a view shows of a state, and that nothing was given out of turn."""
    base = _base(reading)
    many, takers = max(len(question.messages), 1), max(len(question.takers), 1)
    places = [base[name] for name in ("stored", "batch", "paged", "waiting", "returned")]
    live = [base[name] for name in ("behind", "recorded", "below")]
    stored, sooner, holds = base["stored"], base["sooner"], base["holds"]
    takes, out_of_turn, caches = base["takes"], base["out_of_turn"], base["caches"]
    # What was published has come, though it may be gone again.
    arrived = () if question.arrival is None else (base["spent"] + question.arrival,)

    def seen(state: State) -> Seen:
        found: list[int] = []
        for at in places:
            found += state[at : at + many]
        is_stored = state[stored : stored + many]
        for at in live:
            found += map(int.__and__, state[at : at + many], is_stored)
        found += state[sooner : sooner + many * many]
        found += state[holds : holds + many * takers]
        found += state[takes : takes + takers]
        found += state[out_of_turn : out_of_turn + many]
        found.append(state[caches])
        found += [state[at] for at in arrived]
        return tuple(found)

    return seen


class _Scene:
    """A state by its parts, for whoever looks for what can come next."""

    def __init__(self, reading: PlainReading, question: Question, state: State) -> None:
        self.base = _base(reading)
        self.many = len(question.messages)
        self.state = state

    def has(self, name: str, at: int = 0) -> bool:
        """Whether something is said of a message, or of the queue."""
        return bool(self.state[self.base[name] + at])

    def holds(self, who: int, at: int) -> bool:
        """Whether a consumer holds a message."""
        return bool(self.state[self.base["holds"] + who * self.many + at])

    def first(self, name: str) -> int | None:
        """Return the first message of which something is said."""
        return next((at for at in range(self.many) if self.has(name, at)), None)

    def next_read(self) -> int | None:
        """Return what is behind the position."""
        ahead = (n for n in range(self.many) if self.has("stored", n) and not self.has("behind", n))
        return next(ahead, None)


def offered(reading: PlainReading, question: Question, state: State) -> Iterator[Taken]:
    """Yield the steps that may be taken in a state: of what is enabled there no fewer.

    What a client does comes first. Who settles at once does so with what it has been given, and
    only with messages that are gone in the end; a consumer comes or leaves if it has. While the
    cache is on all is in memory: what a reading meets it passes over.
    """
    scene = _Scene(reading, question, state)
    yield from _of_the_client(question, scene)
    for at in range(scene.many):
        for who, taker in enumerate(question.takers):
            if taker.settles and scene.holds(who, at):
                yield Taken("acknowledge", (who, at))
    yield from _of_giving(question, scene)
    if (head := scene.first("batch")) is not None:
        yield Taken("page_in", (head,))
    if (ahead := scene.next_read()) is not None:
        if not scene.has("caches"):
            yield Taken("read", (ahead,))
        yield Taken("pass_over", (ahead,))
    yield Taken("clear", ())
    if not scene.has("caches"):
        yield Taken("cache_again", ())


def _of_the_client(question: Question, scene: _Scene) -> Iterator[Taken]:
    arrival = question.arrival
    if arrival is not None and not scene.has("spent", arrival):
        yield Taken("send_cached", (arrival,))
        yield Taken("send_uncached", (arrival,))
        if arrival:
            yield Taken("send_past_cache", (arrival, arrival - 1))
        yield Taken("send_past_nothing", (arrival,))
    if question.closes is not None:
        yield Taken("close", (question.closes,))
    for who, taker in enumerate(question.takers):
        if taker.before and not taker.after:
            yield Taken("cancel", (who,))
        if taker.after and not taker.before:
            yield Taken("attach", (who,))


def _of_giving(question: Question, scene: _Scene) -> Iterator[Taken]:
    """Yield what is next, given to each who may have it in the end."""
    returned = [at for at in range(scene.many) if scene.has("returned", at)]
    sooner, many = scene.base["sooner"], scene.many
    head = next(
        (
            at
            for at in returned
            if not any(scene.state[sooner + other * many + at] for other in returned)
        ),
        scene.first("waiting"),
    )
    if head is None:
        return
    after = question.messages[head].after
    for who, taker in enumerate(question.takers):
        closes = taker.channel == question.closes
        if closes or after.holder == who or (taker.settles and not after.stored):
            yield Taken("give", (who, head))
