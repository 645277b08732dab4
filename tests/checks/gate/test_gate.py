"""The gate on candidates that misbehave: each is one finding, and none stops the gate."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from brokerproof.checks.gate import exhaustive
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.search.scopes.mixed_scopes import mixed_scopes
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.checks.workers import watchdog
from brokerproof.reference import make
from brokerproof.spec.protocol.answers import Answer, Error
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    Inspect,
    Operation,
    Publish,
)
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Stack
from tests.faults.catalogue import faults
from tests.faults.kill_table import hunt, subject_of

SMALL = Budget(operations=150, examples=6)
SMALLER = Budget(operations=60, examples=3)


@dataclass
class Behind:
    """The reference broker, with answers replaced by a function of the operation."""

    instead: Callable[[Operation], Answer | None]
    behind: Candidate = field(default_factory=lambda: make("qpid-push"))

    def hello(self) -> Hello:
        """Return the reference's claims."""
        return self.behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Answer instead of the reference, or let it answer."""
        answer = self.instead(operation)
        return self.behind.handle(operation) if answer is None else answer


def judged(instead: Callable[[Operation], Answer | None], budget: Budget = SMALL) -> Report:
    """Return the gate's report on the reference behind such a function."""
    hello = make("qpid-push").hello()
    subject = Subject("behind", hello, lambda: Behind(instead), in_process=True)
    return run_gate(subject, catalogue(), budget, seed=0)


def verdict(report: Report, requirement: str) -> Verdict:
    return next(v for v in report.verdicts if v.requirement.id == requirement)


def exits(operation: Operation) -> Answer | None:
    if isinstance(operation, Cancel):
        sys.exit(0)
    return None


def sleeps_for_ever(operation: Operation) -> Answer | None:
    while isinstance(operation, Publish):
        pass
    return None


def never_settles(operation: Operation) -> Answer | None:
    late = Error("timeout", "no answer")
    return Answer(error=late) if isinstance(operation, Acknowledge) else None


def nothing_else(operation: Operation) -> Answer | None:
    del operation
    return None


@pytest.mark.thorough
def test_a_candidate_that_tries_to_end_the_process_is_a_finding() -> None:
    report = judged(exits, Budget(operations=40, examples=1))
    assert verdict(report, "protocol").outcome is Outcome.BROKEN
    assert "SystemExit" in verdict(report, "protocol").reason


def test_a_candidate_that_does_not_come_back_is_a_finding_and_ends_the_stages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 0.05)
    monkeypatch.setattr(watchdog, "TICK_S", 0.05)
    report = judged(sleeps_for_ever)
    assert "did not come back" in verdict(report, "protocol").reason
    assert verdict(report, "fifo-order").outcome is Outcome.INCONCLUSIVE
    assert "hangs" in verdict(report, "fifo-order").reason


def test_a_pause_of_the_whole_process_is_not_held_against_the_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 0.05)
    monkeypatch.setattr(watchdog, "TICK_S", 0.04)

    def takes_long(*, paused: bool) -> None:
        with watchdog.watching(), watchdog.asking(Inspect(queue="q")):
            if paused:  # no Python code runs meanwhile, which is when a signal has to wait
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            time.sleep(0.5)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])

    takes_long(paused=True)
    with pytest.raises(watchdog.Hangs):
        takes_long(paused=False)


def test_what_a_callback_of_the_garbage_collector_drops_is_raised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 0.05)
    monkeypatch.setattr(watchdog, "TICK_S", 0.04)

    def hangs(*, dropped: int) -> None:
        for _ in range(dropped):
            with contextlib.suppress(watchdog.Hangs):
                time.sleep(60)
        time.sleep(60)

    with pytest.raises(watchdog.Hangs), watchdog.watching(), watchdog.asking(Inspect(queue="q")):
        hangs(dropped=3)


def test_an_operation_that_never_has_a_certain_outcome_is_not_called_carried_out() -> None:
    report = judged(never_settles, SMALLER)
    assert verdict(report, "does-what-it-claims").outcome is Outcome.INCONCLUSIVE
    assert "acknowledge" in verdict(report, "does-what-it-claims").reason


def test_without_any_of_this_the_same_budget_keeps_both() -> None:
    report = judged(nothing_else, SMALLER)
    for requirement in ("protocol", "does-what-it-claims"):
        assert verdict(report, requirement).outcome is Outcome.KEPT


@pytest.mark.each_time(1)
@pytest.mark.parametrize("candidate", [Box, Stack])
def test_first_passes_over_all_scopes_leave_no_trace_in_the_report(
    candidate: type[Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject("box", candidate().hello(), candidate, in_process=True)
    reports = []
    for passes in (exhaustive.FIRST_OPERATIONS, ()):
        monkeypatch.setattr(exhaustive, "FIRST_OPERATIONS", passes)
        report = run_gate(subject, catalogue(), Budget(operations=2_000, examples=6), seed=0)
        # Scopes that a first pass searches whole come first.
        report.stages.sort(key=str)
        reports.append(report)
    assert reports[0] == reports[1]
    assert reports[0].messages > 1
    assert (verdict(reports[0], "fifo-order").outcome is Outcome.KEPT) == (candidate is Box)


class NotCopied:
    """A candidate in this process that refuses to be copied."""

    def __init__(self, behind: Candidate) -> None:
        self.behind = behind

    def hello(self) -> Hello:
        """Return the candidate's claims."""
        return self.behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Let the candidate answer."""
        return self.behind.handle(operation)

    def __deepcopy__(self, memo: object) -> NotCopied:
        raise TypeError("it has a thread")


FIRST = Budget(operations=30)


def report_of_one_that_is_not_copied(
    candidate: type[Box],
    monkeypatch: pytest.MonkeyPatch,
    first: Budget,
    *,
    interrupted_from: str = "",
) -> Report:
    """Return the gate's report after such a first pass.

    `interrupted_from` names a scope: Ctrl-C is pressed when it is searched for the second time.
    """
    searched: list[str] = []

    def progress(stage: str, _operations: int) -> None:
        if not searched or searched[-1] != stage:
            searched.append(stage)
        if interrupted_from and searched.count(interrupted_from) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(exhaustive, "FIRST_BUDGET", first)
    claims = candidate().hello()
    subject = Subject("box", claims, lambda: NotCopied(candidate()), in_process=True)
    budget = Budget(operations=120, examples=6)
    return run_gate(subject, catalogue(), budget, seed=0, progress=progress)


@pytest.mark.each_time(1)
@pytest.mark.parametrize("candidate", [Box, Stack])
def test_a_first_pass_without_copies_leaves_no_trace_in_the_report(
    candidate: type[Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = [
        report_of_one_that_is_not_copied(candidate, monkeypatch, first)
        for first in (FIRST, Budget(operations=120))
    ]
    assert reports[0] == reports[1]
    assert {each.name for each in reports[0].stages} >= {"sequences", "adaptive"}
    assert (verdict(reports[0], "fifo-order").outcome is Outcome.KEPT) == (candidate is Box)


def test_a_second_pass_that_is_cut_short_does_not_cost_the_evidence_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = report_of_one_that_is_not_copied(Box, monkeypatch, FIRST)
    first = next(each for each in whole.stages if each.name == "sequences")
    scope = "sequences: " + first.did.partition(":")[0]
    cut = report_of_one_that_is_not_copied(Box, monkeypatch, FIRST, interrupted_from=scope)
    assert cut.interrupted
    assert not whole.interrupted
    assert cut.reached.keys() == whole.reached.keys()


def operations_to(fault_id: str, operations: int, *, copied: bool = True) -> int:
    """Return how many operations find a planted fault, with so many for each scope."""
    fault = faults()[fault_id]
    budget = Budget(operations=operations, examples=0)
    subject = subject_of(fault)
    if not copied:
        subject = replace(subject, in_process=False)
    hunted = hunt(subject, budget, 0, frozenset((fault.requirement,)))
    assert hunted.is_found
    return hunted.operations


def test_a_brief_walk_finds_what_takes_two_features_before_the_scopes_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exhaustive, "FIRST_OPERATIONS", ())
    claims = faults()["a-channel-has-one-limit"].faulty()().hello().capabilities
    walk = 2_000 * exhaustive.BRIEF_WALK // exhaustive.OUTSIDE_PART
    assert operations_to("a-channel-has-one-limit", 2_000) < len(mixed_scopes(claims)) * walk


def test_a_first_pass_finds_what_shows_soon_before_a_scope_is_searched_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exhaustive, "mixed_scopes", lambda _: ())  # their walk finds it, too
    with_ = operations_to("a-full-rank-stays", 1_000)
    monkeypatch.setattr(exhaustive, "FIRST_OPERATIONS", ())
    without = operations_to("a-full-rank-stays", 1_000)
    assert with_ < without / 3


def test_without_copies_a_first_pass_finds_what_shows_on_a_walk_before_long_sequences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_ = operations_to("a-channel-has-one-limit", 3_000, copied=False)
    monkeypatch.setattr(exhaustive, "FIRST_BUDGET", Budget(operations=3_000))
    without = operations_to("a-channel-has-one-limit", 3_000, copied=False)
    assert with_ < without / 3
