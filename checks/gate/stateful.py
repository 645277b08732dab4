"""The stateful stage: large and mixed runs, drawn by Hypothesis, judged by the same oracle.

`draws` chooses the moves; this file runs, judges, counts and shrinks the examples.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias
from unittest import mock

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.internal.constants_ast import Constants
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from msgspec import structs

from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.search.coverage import Examples
from brokerproof.checks.search.draws import (
    MESSAGES_MAX,
    OPTIONAL,
    Chooser,
    kinds_beyond,
    kinds_drawn,
    orders_drawn,
)
from brokerproof.checks.search.endings import take_what_is_left
from brokerproof.checks.search.final_drain import named_by_final_drain
from brokerproof.checks.search.findings import Exchange, Run, goes_on, step
from brokerproof.checks.search.scopes.catalogue import kinds_for
from brokerproof.checks.search.scopes.scope import Payload
from brokerproof.checks.search.searches import HANGS
from brokerproof.checks.subjects import Subject
from brokerproof.checks.trace.moves import Move
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import OnDisk
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Declare

STEPS = 40
"""So many moves are drawn for an example."""

WAITING = 110
"""So many messages wait at the beginning of the last examples.

They fill pages, windows and segments, and the windows for duplicates of a broker with small sizes.
"""

LONG_SHARE, LONG_SHARE_ON_A_WIRE = 32, 2
"""One in so many examples is of these; they come last, since what they find has a long trace."""

ROUNDS_MAX = 8
"""How many different requirements one run of the stage finds broken before it stops."""

Heard: TypeAlias = Callable[[tuple[Exchange, ...]], None]
"""Called with the steps of each example, except those run to shrink another."""

_NUMBER = st.integers(0, 59)
_SWARM = (1 << len(OPTIONAL)) - 1


@dataclass
class Sampling(Examples):
    """What the stateful stage did and found; runs for shrinking are not counted.

    A requirement in `known` was broken before, and is not looked for again.
    """

    known: frozenset[str] = frozenset()
    shrinking: bool = False
    long_from: int = 0
    heard: Heard = lambda _: None


class _Found(AssertionError):
    """A requirement was broken; Hypothesis shrinks the example that raised this."""


class _Interrupted(BaseException):
    """The stage was asked to stop; Hypothesis must not shrink this."""


def sample(
    subject: Subject,
    found: Sampling,
    seed: int,
    examples: int,
    interrupted: Callable[[], str],
    progress: Callable[[Sampling], None] = lambda _: None,
) -> None:
    """Judge so many drawn examples; a requirement found broken is left out from then on."""
    share = LONG_SHARE if subject.wire is None else LONG_SHARE_ON_A_WIRE
    found.long_from = examples - examples // share
    while found.examples < examples and len(found.broken) < ROUNDS_MAX:
        known = found.known | found.broken.keys()
        machine = _machine(subject, found, known, interrupted, progress)
        hypothesis_seed(seed + len(known))(machine)
        found.shrinking = False
        try:
            # Hypothesis prints the failing example; ours is printed as a counterexample instead.
            with contextlib.redirect_stdout(io.StringIO()), _each_drawn_anew():
                left = examples - found.examples
                # On the wire each try takes long, so another shortens within a time of its own.
                shrinks = not known and subject.wire is None
                run_state_machine_as_test(machine, settings=_settings(left, shrinks=shrinks))
        except (_Interrupted, _Found, Flaky):
            # Hypothesis calls an example flaky when the cap ends it while it is being shrunk.
            if interrupted() or found.stopped_by:
                break
            if found.broken.keys() <= known:
                raise
            continue
        break
    found.stopped_by = found.stopped_by or interrupted()


def _settings(examples: int, *, shrinks: bool) -> settings:
    # Hypothesis shrinks the first finding, which also makes values simple. Later findings are
    # often the same mistake seen from further away, and are only shortened (`root_cause.py`).
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


@contextlib.contextmanager
def _each_drawn_anew() -> Iterator[None]:
    """Keep Hypothesis from two habits that make examples alike, or unlike from process to process.

    It draws constants that it reads in the source of loaded modules, among them the candidate's. It
    repeats six of seven examples with other choices in a part: of 72 hidden faults, with two seeds,
    100 examples then find 91 of 144, and 110 without.
    """
    with (
        mock.patch.object(HypothesisProvider, "_local_constants", Constants()),
        mock.patch.object(ConjectureRunner, "generate_mutations_from", return_value=None),
    ):
        yield


class _Example:
    """One run of the candidate: moves are made and judged until a requirement is broken."""

    def __init__(
        self,
        subject: Subject,
        found: Sampling,
        known: frozenset[str],
        interrupted: Callable[[], str],
    ) -> None:
        self.found, self.known, self.interrupted = found, known, interrupted
        self.steps: list[Exchange] = []
        self.over = False
        self.shrinks = found.shrinking
        try:
            self.candidate, self.oracle = subject.fresh()
        except CannotStart as error:
            if "protocol" not in known:
                found.broken["protocol"] = Run((), Breach("protocol", str(error)))
                found.shrinking = True
                raise _Found(str(error)) from error
            self.over = True

    def make(self, move: Move) -> bool:
        """Make a move and judge it; return whether the example goes on."""
        if self.over:
            return False
        if self.interrupted():
            raise _Interrupted
        try:
            told, breaches = step(self.candidate, self.oracle, move, self.steps)
        except Unfollowable:
            self.found.unfollowed += 1
            self.over = True
            return False
        if told is None:
            return True
        self.steps.append(told)
        if not self.found.shrinking:
            self.found.operations += 1
        for breach in breaches:
            self._judge(breach, told)
        return not self.over

    def _answer(self, move: Move) -> Answer | None:
        """Make a move; return its answer if the example goes on."""
        return self.steps[-1].answer if self.make(move) else None

    def _judge(self, breach: Breach, told: Exchange) -> None:
        """File a breach; raise an error that ends the example if its requirement is new."""
        broken = self.found.broken
        if goes_on(breach):
            broken.setdefault(breach.requirement, Run(tuple(self.steps), breach))
            return
        self.over = True
        if breach.hangs:
            broken.setdefault(breach.requirement, Run(tuple(self.steps), breach))
            self.found.stopped_by = HANGS
            raise _Interrupted
        named = named_by_final_drain(self.candidate, told.answer, breach)
        if named.requirement in self.known:
            return
        # If Hypothesis shrinks an example to another requirement, that one replaces the first.
        for requirement in [k for k, run in broken.items() if k not in self.known]:
            if not _was_followed(broken[requirement]):
                del broken[requirement]
        broken[named.requirement] = Run(tuple(self.steps), named)
        self.found.shrinking = True
        raise _Found(named.requirement)

    def end(self) -> None:
        """Come to rest, take the messages left, and count the example."""
        if not self.over:
            take_what_is_left(self.oracle.bindings, self._answer)
        if not self.shrinks and self.steps:
            self.found.heard(tuple(self.steps))
        if self.found.shrinking:
            return
        if not hasattr(self, "oracle"):
            self.found.examples += 1
            return
        self.found.count(self.oracle)
        self.found.largest = max(self.found.largest, len(self.oracle.bindings.messages))


def _machine(
    subject: Subject,
    found: Sampling,
    known: frozenset[str],
    interrupted: Callable[[], str],
    progress: Callable[[Sampling], None],
) -> type[RuleBasedStateMachine]:
    claims = subject.hello.capabilities
    # Where a crash takes seconds, the durability stage makes the crashes.
    passing = claims if subject.crashable is None else structs.replace(claims, durable=False)
    core = kinds_for(claims)
    beyond = (*core, *kinds_beyond(claims))

    class Machine(RuleBasedStateMachine):
        """One example, drawn move by move."""

        def __init__(self) -> None:
            super().__init__()
            if interrupted():
                raise _Interrupted
            self.example = _Example(subject, found, known, interrupted)

        @initialize(
            order=_NUMBER, two=st.booleans(), plain=st.booleans(), swarm=st.integers(0, _SWARM)
        )
        def declare(self, order: int, two: bool, plain: bool, swarm: int) -> None:
            """Choose the kinds of the example; declare one queue or two, of any order claimed."""
            waiting = WAITING if found.examples >= found.long_from else 0
            most = MESSAGES_MAX + waiting
            self.chooser = Chooser(claims, core if plain else beyond, plain, most)
            self.kinds = kinds_drawn(swarm, passing)
            for each in _begun(claims, order, plain=plain, queues=2 if two else 1, waiting=waiting):
                self.example.make(each)

        @rule(kind=_NUMBER, which=_NUMBER, how=_NUMBER)
        def move(self, kind: int, which: int, how: int) -> None:
            """Make one move of a drawn kind, if one is possible now."""
            if not self.example.over:
                bindings = self.example.oracle.bindings
                drawn_kind, choose = self.kinds[kind % len(self.kinds)], self.chooser.moves
                if drawn_kind == "crash" and isinstance(self.example.candidate, OnDisk):
                    drawn_kind, choose = self.kinds[which % len(self.kinds)], self.chooser.cut_off
                for drawn in choose(drawn_kind, which, how, bindings):
                    self.example.make(drawn)

        def teardown(self) -> None:
            """Come to rest."""
            self.example.end()
            progress(found)

    return Machine


def _begun(
    claims: Capabilities, order: int, *, plain: bool, queues: int, waiting: int
) -> Iterator[Move]:
    """Yield the moves with which an example begins."""
    orders = orders_drawn(claims)
    for number in range(queues):
        yield Declare(
            queue=f"q{number}",
            order=orders[(order + number) % len(orders)],
            durable=claims.durable and not plain and order % 3 != 0,
            auto_delete=claims.auto_delete and not plain and order % 5 == 0,
        )
    persistent = claims.durable or claims.order_within == "persistence"
    for number in range(waiting):
        yield Payload(persistent=persistent).publish("q0", f"m{number}")


def _was_followed(run: Run) -> bool:
    return run.broken is not None and goes_on(run.broken)
