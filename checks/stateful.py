"""The stateful stage: large and mixed runs, drawn by Hypothesis, judged by the same oracle.

Draws never depend on what the broker did: every rule draws plain numbers and takes them modulo what
there is, and a rule that means nothing at that moment does nothing. So an example can be shrunk and
replayed on a broker that answers differently the second time.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from brokerproof.checks.book import Book
from brokerproof.checks.breaches import Breach, Unfollowable
from brokerproof.checks.census import named_by_census
from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.findings import Run, Told, goes_on, step
from brokerproof.checks.moves import Move, Settle, SettlementName
from brokerproof.checks.scopes import Kind, kinds_for
from brokerproof.checks.searches import HANGS
from brokerproof.checks.subjects import Subject
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    GetMode,
    Publish,
)

MESSAGES_MAX = 40
MANY = 12
"""More messages at once than a delivery slice of the documents holds (ten)."""
CONSUMERS_MAX = 6
CHANNELS = ("ch0", "ch1", "ch2")
STEPS = 40
ROUNDS_MAX = 8
"""How many different promises one run of the stage looks for before it stops."""

KindOfMove: TypeAlias = Literal[
    "publish",
    "publish many",
    "consume",
    "get",
    "settle",
    "settle again",
    "cancel",
    "close_channel",
    "drain",
]

# How often each kind is drawn. Queues must fill before anything else can be seen to go wrong.
_WEIGHTS: dict[KindOfMove, int] = {
    "publish": 6,
    "settle": 5,
    "drain": 3,
    "get": 2,
    "consume": 2,
    "settle again": 1,
    "publish many": 1,
    "close_channel": 1,
    "cancel": 1,
}
_KINDS_OF_MOVES = tuple(kind for kind, weight in _WEIGHTS.items() for _ in range(weight))
_SETTLEMENTS: tuple[SettlementName, ...] = ("release", "acknowledge", "release", "reject")
_NUMBER = st.integers(0, 59)


@dataclass
class Sampling:
    """What the stateful stage did and found; what Hypothesis runs to shrink is not counted."""

    shrinking: bool = False
    examples: int = 0
    operations: int = 0
    unfollowed: int = 0
    stopped_by: str = ""
    exercised: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    largest: int = 0
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    given_up: int = 0
    broken: dict[str, Run] = field(default_factory=dict)


class _Found(AssertionError):
    """A promise was broken; Hypothesis shrinks the example that raised this."""


class _Interrupted(BaseException):
    """The stage was asked to stop; nothing that Hypothesis would want to shrink."""


def sample(
    subject: Subject,
    found: Sampling,
    seed: int,
    examples: int,
    interrupted: Callable[[], str],
    progress: Callable[[Sampling], None] = lambda _: None,
) -> None:
    """Draw examples until so many were judged; a promise found broken is left out from then on."""
    while found.examples < examples and len(found.broken) < ROUNDS_MAX:
        known = frozenset(found.broken)
        machine = _machine(subject, found, known, interrupted, progress)
        hypothesis_seed(seed + len(known))(machine)
        found.shrinking = False
        try:
            # Hypothesis prints the failing example; ours is printed as a counterexample instead.
            with contextlib.redirect_stdout(io.StringIO()):
                left = examples - found.examples
                run_state_machine_as_test(machine, settings=_settings(left, shrinks=not known))
        except (_Interrupted, _Found, Flaky):
            # Hypothesis calls an example flaky when the cap ends it while it is being shrunk.
            if interrupted() or found.stopped_by:
                break
            if frozenset(found.broken) == known:
                raise
            continue
        break
    found.stopped_by = found.stopped_by or interrupted()


def _settings(examples: int, *, shrinks: bool) -> settings:
    # The first finding is shrunk by Hypothesis, which also makes values simple. What comes after it
    # is often the same mistake seen from further away, and is only shortened (`charges.py`).
    return settings(
        max_examples=max(1, examples),
        stateful_step_count=STEPS,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if shrinks else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,
    )


class _Example:
    """One run of the candidate: moves are made and judged until a promise is broken."""

    def __init__(self, subject: Subject, found: Sampling, known: frozenset[str]) -> None:
        self.found, self.known = found, known
        self.steps: list[Told] = []
        self.over = False
        try:
            self.candidate, self.oracle = subject.fresh()
        except CannotStart as error:
            if "protocol" not in known:
                found.broken["protocol"] = Run((), Breach("protocol", str(error)))
                found.shrinking = True
                raise _Found(str(error)) from error
            self.over = True

    def make(self, move: Move) -> None:
        """Make a move and judge it."""
        if self.over:
            return
        try:
            told, breaches = step(self.candidate, self.oracle, move)
        except Unfollowable:
            self.found.unfollowed += 1
            self.over = True
            return
        if told is None:
            return
        self.steps.append(told)
        if not self.found.shrinking:
            self.found.operations += 1
        for breach in breaches:
            self._judge(breach, told)

    def _judge(self, breach: Breach, told: Told) -> None:
        """File a breach; end the example with an error if its promise is new."""
        broken = self.found.broken
        if goes_on(breach):
            broken.setdefault(breach.requirement, Run(tuple(self.steps), breach))
            return
        self.over = True
        if breach.hangs:
            broken.setdefault(breach.requirement, Run(tuple(self.steps), breach))
            self.found.stopped_by = HANGS
            raise _Interrupted
        named = named_by_census(self.candidate, told.answer, breach)
        if named.requirement in self.known:
            return
        # What Hypothesis shrinks to another promise replaces what it began with.
        for requirement in [k for k, run in broken.items() if k not in self.known]:
            if not _was_followed(broken[requirement]):
                del broken[requirement]
        broken[named.requirement] = Run(tuple(self.steps), named)
        self.found.shrinking = True
        raise _Found(named.requirement)

    def end(self) -> None:
        """Come to rest, and count the example."""
        self.make(Drain())
        if not self.found.shrinking:
            self.found.examples += 1
            if hasattr(self, "oracle"):
                self.found.exercised.update(self.oracle.exercised)
                self.found.outcomes.update(self.oracle.outcomes)
                if self.oracle.watch is not None:
                    self.found.taken.update(self.oracle.watch.taken)
                    self.found.given_up += self.oracle.watch.given_up
                self.found.largest = max(self.found.largest, len(self.oracle.book.messages))


def _machine(
    subject: Subject,
    found: Sampling,
    known: frozenset[str],
    interrupted: Callable[[], str],
    progress: Callable[[Sampling], None],
) -> type[RuleBasedStateMachine]:
    claims = subject.hello.capabilities
    orders: list[Order] = [Fifo()] if "fifo" in claims.orders else []
    if "priority" in claims.orders:
        orders += [Priority(n) for n in range(1, claims.priority_levels + 1)]
    chooser = _Chooser(kinds_for(claims), claims.get)

    class Machine(RuleBasedStateMachine):
        """One example, drawn move by move."""

        def __init__(self) -> None:
            super().__init__()
            if interrupted():
                raise _Interrupted
            self.example = _Example(subject, found, known)

        @initialize(order=_NUMBER, two=st.booleans())
        def declare(self, order: int, two: bool) -> None:
            """Make one queue or two, of any order that is claimed."""
            for number in range(2 if two else 1):
                chosen = orders[(order + number) % len(orders)]
                self.example.make(Declare(queue=f"q{number}", order=chosen))

        @rule(kind=st.integers(0, len(_KINDS_OF_MOVES) - 1), which=_NUMBER, how=_NUMBER)
        def move(self, kind: int, which: int, how: int) -> None:
            """Make one move of a drawn kind, if it means anything now."""
            if not self.example.over:
                book = self.example.oracle.book
                for drawn in chooser.moves(_KINDS_OF_MOVES[kind], which, how, book):
                    self.example.make(drawn)

        def teardown(self) -> None:
            """Come to rest."""
            self.example.end()
            progress(found)

    return Machine


def _was_followed(run: Run) -> bool:
    return run.broken is not None and goes_on(run.broken)


@dataclass(frozen=True)
class _Chooser:
    """Turns two drawn numbers into a move of a kind that is possible now, or none."""

    kinds: tuple[Kind, ...]
    gets: bool

    def moves(self, kind: KindOfMove, which: int, how: int, book: Book) -> Iterator[Move]:
        """Yield the moves; `which` chooses among what there is, `how` among the ways."""
        queue = _pick(book.queues, which)
        known = len(book.messages)
        if kind.startswith("publish"):
            for number in range(known, min(known + (MANY if "many" in kind else 1), MESSAGES_MAX)):
                message = Message(id=f"m{number}", priority=how % 10)
                yield Publish(queue=queue, message=message)
            return
        move = self.move(kind, which, how, book)
        if move is not None:
            yield move

    def move(self, kind: KindOfMove, which: int, how: int, book: Book) -> Move | None:
        """Return a single move of a kind, if it means anything now."""
        queue = _pick(book.queues, which)
        channel = CHANNELS[how % len(CHANNELS)]
        match kind:
            case "consume" if self.kinds and len(book.consumers) < CONSUMERS_MAX:
                chosen = self.kinds[how // len(CHANNELS) % len(self.kinds)]
                return Consume(
                    channel=channel,
                    queue=queue,
                    consumer=f"c{len(book.consumers)}",
                    mode=chosen.mode,
                    credit=Credit(chosen.credit),
                )
            case "get" if self.gets:
                automatic = how // len(CHANNELS) % 4 == 0
                mode: GetMode = "automatic" if automatic else "acknowledge"
                return Get(channel=channel, queue=queue, mode=mode)
            case "settle" if book.held:
                held = sorted(each.entry for each in book.held.values())
                message_id = book.name_of_entry(held[which % len(held)])
                return Settle(how=_SETTLEMENTS[how % len(_SETTLEMENTS)], message=message_id)
            case "settle again" if book.settled:
                chosen_way = _SETTLEMENTS[how % len(_SETTLEMENTS)]
                return Settle(how=chosen_way, message=_pick(book.settled, which), again=True)
            case "cancel" if book.active:
                return Cancel(consumer=_pick(book.active, which))
            case "close_channel" if book.channels:
                return CloseChannel(channel=_pick(book.channels, which))
            case "drain":
                return Drain()
            case _:
                return None


def _pick(names: Iterable[str], number: int) -> str:
    ordered = sorted(names)
    return ordered[number % len(ordered)]
