"""The durability stage on brokers in memory, used like one behind a connection.

An honest broker keeps all requirements; each twin forgets, or keeps, one thing across a crash.
`test_durability_rabbitmq.py` has the crashes of a real server.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from brokerproof.checks.crash.crash_examples import drawn_example, planned_examples
from brokerproof.checks.crash.crashable import Crashable
from brokerproof.checks.gate import durability
from brokerproof.checks.gate.durability import run_durability
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.gate.gate_run import Clock, GateRun
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.replay import Replay, replay_on
from brokerproof.checks.search.counterexamples import Counterexample, text_of_counterexample
from brokerproof.checks.search.findings import play
from brokerproof.checks.subjects import Subject
from brokerproof.checks.trace.moves import text_of
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.answers import OK, Answer, refused
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Crash,
    Operation,
    Publish,
    Reset,
    Restart,
)
from brokerproof.spec.requirements import catalogue
from examples.whole_broker import WholeBroker
from tests.checks.oracle.test_oracle import Told, broken, drain, failed, get, given
from tests.checks.oracle.test_oracle_whole import RESTART, WHOLE, crash, make, put, subscribe

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=10,
    modes=("acknowledge", "automatic"),
    credit=("messages",),
    get=True,
    release_position="original",
    durable=True,
    purge=True,
    delete=True,
)
"""Those of RabbitMQ."""


class Honest:
    """A broker in memory that keeps all durable messages."""

    def __init__(self) -> None:
        self.behind = WholeBroker()

    def hello(self) -> Hello:
        """Return RabbitMQ's claims."""
        return Hello(name="memory", version="1", capabilities=CLAIMS)

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation."""
        return self.behind.handle(operation)


class Transient(Honest):
    """Answers `ok` to a persistent message, and keeps it in memory only."""

    def handle(self, operation: Operation) -> Answer:
        """Publish as transient."""
        if isinstance(operation, Publish):
            message = replace(operation.message, persistent=False)
            return self.behind.handle(replace(operation, message=message))
        return self.behind.handle(operation)


class Keepsake(Honest):
    """Writes every message down, also those that are to be lost."""

    def handle(self, operation: Operation) -> Answer:
        """Publish as persistent."""
        if isinstance(operation, Publish):
            message = replace(operation.message, persistent=True)
            return self.behind.handle(replace(operation, message=message))
        return self.behind.handle(operation)


class Unsettled(Honest):
    """Keeps acknowledged messages until the next crash, which returns them."""

    def handle(self, operation: Operation) -> Answer:
        """Leave an acknowledgement out."""
        return OK if isinstance(operation, Acknowledge) else self.behind.handle(operation)


class Dead(Honest):
    """Does not come back after its second crash, nor by a reset."""

    def __init__(self) -> None:
        super().__init__()
        self.crashes = 0

    def handle(self, operation: Operation) -> Answer:
        """Count the crashes."""
        self.crashes += isinstance(operation, Crash)
        if self.crashes > 1 and isinstance(operation, Restart | Reset):
            return refused("the broker did not come back")
        return self.behind.handle(operation)


def subject_of(make_broker: Callable[[], Honest]) -> Subject:
    """Return a broker in memory as one behind a connection that can be killed."""
    kept = Crashable(make_broker())
    return Subject("memory", kept.hello(), lambda: kept, in_process=False, _kept=kept)


def stage(subject: Subject, *, examples: int = 2, seed: int = 0) -> GateRun:
    """Run the stage alone."""
    report = Report(subject.address, "memory", "1", seed)
    budget = Budget(examples=examples)
    run = GateRun(subject, budget, Clock(None), report, lambda _stage, _operations: None)
    run_durability(run)
    return run


def found_in(run: GateRun, requirement: str) -> Counterexample:
    """Return the only thing that the stage found."""
    assert set(run.evidence.broken) == {requirement}
    return run.evidence.broken[requirement]


# The stage.


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_broker_keeps_everything_and_is_really_asked(seed: int) -> None:
    subject = subject_of(Honest)
    run = stage(subject, seed=seed)
    assert run.evidence.broken == {}
    [line] = run.report.stages
    assert subject.crashable is not None
    assert f"crashes: {subject.crashable.crashes} (its process was killed" in line.did
    assert line.complete
    for requirement in ("survives-restart", "transient-is-lost", "settlement-survives-crash"):
        assert run.evidence.exercised[requirement] > 3


TWINS: dict[str, tuple[Callable[[], Honest], tuple[str, ...]]] = {
    "survives-restart": (
        Transient,
        (
            "declare q0 fifo durable",
            "publish m0 to q0 persistent",
            "crash",
            "restart",
            "consume q0 as after q0 on after mode=acknowledge credit=unlimited",
            "drain",
        ),
    ),
    "transient-is-lost": (
        Keepsake,
        (
            "declare q0 fifo durable",
            "publish m0 to q0",
            "crash",
            "restart",
            "consume q0 as after q0 on after mode=acknowledge credit=unlimited",
        ),
    ),
}


@pytest.mark.parametrize("requirement", TWINS)
def test_what_breaks_a_promise_is_told_by_the_shortest_of_its_traces(requirement: str) -> None:
    twin, trace = TWINS[requirement]
    found = found_in(stage(subject_of(twin)), requirement)
    assert tuple(map(text_of, found.moves))[: len(trace)] == trace
    assert len(found.moves) <= len(trace) + 1  # a closing drain
    assert "steps were left out one by one" in str(found.certificate)
    assert replay_on(found, subject_of(twin)).outcome is Replay.SAME
    assert replay_on(found, subject_of(Honest)).outcome is Replay.KEPT


def test_an_acknowledgement_that_was_not_written_down_is_seen() -> None:
    found = found_in(stage(subject_of(Unsettled)), "settlement-survives-crash")
    names = [text_of(move) for move in found.moves]
    assert "acknowledge m0" in names
    assert names.index("acknowledge m0") < names.index("crash")
    assert replay_on(found, subject_of(Honest)).outcome is Replay.KEPT


def test_a_broker_that_does_not_come_back_is_a_finding_and_ends_the_stage() -> None:
    run = stage(subject_of(Dead))
    assert set(run.evidence.broken) == {"does-what-it-claims", "protocol"}
    found = run.evidence.broken["does-what-it-claims"]
    assert text_of(found.moves[-1]) == "restart"
    assert "did not come back" in found.summary
    [line] = run.report.stages
    assert "stopped by a reset that failed" in line.did
    assert not line.complete


def test_what_comes_only_now_and_then_is_told_with_how_often() -> None:
    numbers = itertools.count()

    class Moody(Honest):
        """Loses the messages of every other example."""

        transient = False

        def handle(self, operation: Operation) -> Answer:
            if isinstance(operation, Reset):
                self.transient = next(numbers) % 2 == 0
            if self.transient and isinstance(operation, Publish):
                message = replace(operation.message, persistent=False)
                return self.behind.handle(replace(operation, message=message))
            return self.behind.handle(operation)

    found = found_in(stage(subject_of(Moody), examples=0), "survives-restart")
    assert found.again is not None
    times, tries = found.again
    assert 0 < times < tries == durability.TRIES


def test_crashes_for_shortening_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "SHORTENING_CRASHES_MAX", 1)
    found = found_in(stage(subject_of(Transient)), "survives-restart")
    assert "shortening ended with 1 crashes" in str(found.certificate)
    assert replay_on(found, subject_of(Transient)).outcome is Replay.SAME


def test_a_crash_beyond_the_bound_ends_its_run_unjudged() -> None:
    crashable = Crashable(Honest())
    oracle = Oracle(CLAIMS)
    moves = planned_examples(CLAIMS)[0].moves
    with crashable.at_most(0), pytest.raises(Unfollowable):
        play(crashable, oracle, moves)
    assert crashable.crashes == 0


def test_other_stages_make_no_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "planned_examples", lambda _: ())
    monkeypatch.setattr(durability, "DRAWN_MAX", 0)
    subject = subject_of(Honest)
    report = run_gate(subject, catalogue(), Budget(operations=300, examples=5), 0)
    assert subject.crashable is not None
    assert subject.crashable.crashes == 0
    outcomes = {verdict.requirement.id: verdict.outcome for verdict in report.verdicts}
    assert outcomes["survives-restart"] is Outcome.INCONCLUSIVE
    assert outcomes["nothing-lost"] is Outcome.KEPT
    assert [s.name for s in report.stages][-1] == "durability"


def test_ctrl_c_while_a_finding_is_shortened_leaves_it_as_it_was_seen() -> None:
    subject = subject_of(Transient)
    report = Report(subject.address, "memory", "1", 0)

    def progress(stage: str, _operations: int) -> None:
        if "shortening" in stage:
            raise KeyboardInterrupt

    run = GateRun(subject, Budget(), Clock(None), report, progress)
    with pytest.raises(KeyboardInterrupt):
        run_durability(run)
    assert "it was not tried again" in str(found_in(run, "survives-restart").certificate)
    assert [line.name for line in report.stages] == ["durability"]


def test_only_what_is_claimed_is_planned_and_drawn() -> None:
    few = Capabilities(modes=("acknowledge",), durable=True)
    stakes = [example.at_stake for example in planned_examples(few)]
    assert "what was settled" in stakes
    assert "what was purged" not in stakes
    oracle, broker = Oracle(CLAIMS), Honest()
    assert play(broker, oracle, drawn_example(CLAIMS, 7, oracle)).broken is None


# The page.

PAGE = (Path(__file__).parents[3] / "docs" / "explanation" / "durability.md").read_text(
    encoding="utf-8"
)


def test_the_page_shows_a_finding_as_it_prints() -> None:
    found = found_in(stage(subject_of(Transient)), "survives-restart")
    assert text_of_counterexample(found) in PAGE
    assert text_of_counterexample(found).replace("m0", "m1") not in PAGE


def test_the_page_counts_the_crashes_as_the_stage_does() -> None:
    subject = subject_of(Honest)
    stage(subject, examples=200)
    assert subject.crashable is not None
    assert f"a stage of its own, `durability`: {subject.crashable.crashes} |" in PAGE
    assert len(planned_examples(CLAIMS)) == 10
    assert "Ten small examples" in PAGE
    assert (durability.DRAWN_MAX, durability.TRIES, durability.SHORTENING_CRASHES_MAX) == (6, 3, 30)


# A broker that goes down by itself: the operation was carried out before that, or not at all.

KEPT = (make(durable=True), put("m0", persistent=True))
MAYBE = failed(put("m1", persistent=True), "crashed")
M0, M1 = given("m0", None), given("m1", None, delivery="d1")


@pytest.mark.parametrize("told", [(get(M0), get(M1)), (get(M0), get())])
def test_what_was_under_way_when_a_broker_went_down_may_be_there_or_not(
    told: tuple[Told, ...],
) -> None:
    assert broken([*KEPT, MAYBE, RESTART, *told, drain()], WHOLE) == []


@pytest.mark.parametrize(
    ("told", "requirement"),
    [
        ((MAYBE, RESTART, get()), "get-finds"),  # a final drain check would name survives-restart
        ((put("m2"), MAYBE, RESTART, get(M0), get(given("m2", None))), "transient-is-lost"),
        ((MAYBE, put("m2")), "refuses-what-it-must"),
        ((MAYBE, failed(RESTART, "refused")), "does-what-it-claims"),
    ],
)
def test_what_was_certain_before_a_broker_went_down_is_judged_as_after_any_crash(
    told: tuple[Told, ...], requirement: str
) -> None:
    assert broken([*KEPT, *told], WHOLE) == [requirement]


UNTOLD = [
    (subscribe("c"), MAYBE),
    (failed(get(), "crashed"),),
    (failed(drain(), "crashed"),),
    (failed(subscribe("c"), "crashed"),),
]


@pytest.mark.parametrize("told", UNTOLD)
@pytest.mark.parametrize("redelivered", [False, True])
def test_what_may_have_been_handed_out_untold_is_there_again(
    told: tuple[Told, ...], redelivered: bool
) -> None:
    again = given("m0", None, again=redelivered)
    assert broken([*KEPT, *told, RESTART, get(again)], WHOLE) == []


@pytest.mark.parametrize("told", UNTOLD)
def test_what_may_have_been_handed_out_untold_is_missed(told: tuple[Told, ...]) -> None:
    assert broken([*KEPT, *told, RESTART, get()], WHOLE) == ["get-finds"]


@pytest.mark.parametrize(
    "told",
    [
        (subscribe("c", mode="automatic"), MAYBE),
        (failed(subscribe("c", mode="automatic"), "crashed"),),
        (failed(make("q1", durable=True), "crashed"),),
        (failed(crash(), "crashed"),),
    ],
)
def test_what_may_be_settled_untold_or_a_queue_that_may_be_there_is_not_judged(
    told: tuple[Told, ...],
) -> None:
    with pytest.raises(Unfollowable):
        broken([*KEPT, *told], WHOLE)
