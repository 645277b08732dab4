"""The concurrent stage of the gate: its findings, their texts, and its limits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from brokerproof.checks.gate import threads_stage
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.gate.gate_run import EFFORTS, Clock, GateRun
from brokerproof.checks.replay import Replay, rejudge, replay_on
from brokerproof.checks.report.forms import write_report
from brokerproof.checks.report.verdict_file import candidate_record, verdict_file
from brokerproof.checks.report.verdict_file import read as read_verdict
from brokerproof.checks.search.counterexamples import (
    Counterexample,
    read,
    text_of_counterexample,
    write,
)
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.checks.threads.case_catalogue import case_name, cases_for
from brokerproof.checks.threads.on_threads import on_threads
from brokerproof.checks.verdicts import ExitStatus, Outcome, Verdict, judgement
from brokerproof.reference import make
from brokerproof.reference.shared.atomics import AtomicInteger
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import Operation, Publish
from brokerproof.spec.requirements import catalogue
from examples.locked_queue import LockedQueue
from examples.naive_queue import NaiveBroker
from tests.faults.overlay import plant
from tests.faults.threads.catalogue import ThreadFault, thread_faults

INTERLEAVINGS = EFFORTS["deep"].interleavings
LOCKED = Path(__file__).parents[3] / "examples" / "locked_queue.py"
ONE_CASE = "fifo: enqueue, acknowledge"


def subject_of(start: Callable[[], Candidate], address: str = "ours") -> Subject:
    """Return a broker of ours as the gate sees candidates."""
    return Subject(address, start().hello(), start, in_process=True)


def only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stage run one case alone."""
    monkeypatch.setattr(
        threads_stage,
        "cases_for",
        lambda claims: [each for each in cases_for(claims) if case_name(*each) == name],
    )


def a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stage run every eighth case: these tests do not depend on the case."""
    monkeypatch.setattr(threads_stage, "cases_for", lambda claims: [*cases_for(claims)][::8])


def run_on(
    subject: Subject, interleavings: int = INTERLEAVINGS, seconds: float | None = None
) -> GateRun:
    """Run the stage alone."""
    report = Report(subject.address, "", "", 0)
    budget = Budget(1, 0, seconds, interleavings)
    run = GateRun(subject, budget, Clock(seconds), report, lambda _stage, _steps: None)
    run.evidence.offered = frozenset(("on_threads",))
    threads_stage.run_concurrent(run)
    return run


EACH_FAULT = [pytest.param(fault, id=fault.id) for fault in thread_faults()]


@pytest.mark.each_time(4)
@pytest.mark.parametrize("fault", EACH_FAULT)
def test_a_fault_that_needs_threads_is_named_and_shown_again(
    fault: ThreadFault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is found in its case under its requirement, and the file of it runs again."""
    only(fault.case, monkeypatch)
    broken = subject_of(plant(fault.edits, fault.broker), fault.id)
    run = run_on(broken)
    assert [*run.evidence.broken] == [fault.requirement]
    found = read(write(run.evidence.broken[fault.requirement], tmp_path))
    assert found.also == ((fault.breaks,) if fault.breaks else ())
    again = replay_on(found, broken)
    assert again.outcome is Replay.SAME, again.lines
    without = replay_on(found, subject_of(plant((), fault.broker)))
    assert without.outcome is Replay.KEPT, without.lines


@pytest.mark.parametrize("fault", EACH_FAULT)
def test_the_reference_keeps_all_where_a_fault_shows(
    fault: ThreadFault, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(fault.case, monkeypatch)
    assert run_on(subject_of(lambda: make(fault.broker)), 60).evidence.broken == {}


def test_a_thread_that_runs_a_job_comes_after_the_one_that_scheduled_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only("fifo: acknowledge meets publish, publish, runner", monkeypatch)
    assert run_on(subject_of(lambda: make("qpid-push"))).evidence.broken == {}


def judged(start: Callable[[], Candidate], interleavings: int = 5) -> Report:
    """Return the gate's report on a broker."""
    asked = {name: catalogue()[name] for name in sorted(threads_stage.REQUIREMENTS)}
    return run_gate(subject_of(start), asked, Budget(1, 0, None, interleavings), 0)


def outcomes(report: Report) -> dict[str, Outcome]:
    return {each.requirement.id: each.outcome for each in report.verdicts}


def test_a_broker_of_ones_own_keeps_what_is_promised_on_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_few(monkeypatch)
    report = judged(LockedQueue, 10)
    assert {*outcomes(report).values()} == {Outcome.KEPT}
    assert all(each.exercised for each in report.verdicts)
    [told] = [each for each in report.stages if each.name == "concurrent"]
    assert told.complete
    assert told.operations > 100


def test_a_lock_given_back_too_early_is_a_data_race_and_the_rest_is_inconclusive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_few(monkeypatch)
    hasty = open_subject(f"{LOCKED}:make_hasty_broker")
    report = judged(hasty.start)
    assert outcomes(report) == {
        "as-in-some-order": Outcome.INCONCLUSIVE,
        "every-thread-ends": Outcome.INCONCLUSIVE,
        "no-data-race": Outcome.BROKEN,
    }
    assert "more can happen between two steps" in report.verdicts[0].reason


def test_without_on_threads_nothing_is_claimed_and_nothing_run() -> None:
    report = judged(NaiveBroker)
    assert {*outcomes(report).values()} == {Outcome.NOT_CLAIMED}
    assert "concurrent" not in [each.name for each in report.stages]


def test_what_cannot_be_copied_is_inconclusive_and_says_why() -> None:
    report = judged(Uncopied)
    assert {*outcomes(report).values()} == {Outcome.INCONCLUSIVE}
    [told] = [each for each in report.stages if each.name == "concurrent"]
    assert told.did.startswith("left: it cannot be copied (")


def test_other_requirements_leave_the_stage_out() -> None:
    asked = {"fifo-order": catalogue()["fifo-order"]}
    report = run_gate(subject_of(LockedQueue), asked, Budget(1, 0, None, 5), 0)
    assert "concurrent" not in [each.name for each in report.stages]


def test_a_cap_in_seconds_ends_it_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    only(ONE_CASE, monkeypatch)
    run = run_on(subject_of(LockedQueue), seconds=1e-9)
    assert run.report.stages == []
    assert "the cap of 1e-09 s was reached" in run.clock.reason()


def test_ctrl_c_leaves_what_was_counted() -> None:
    subject = subject_of(lambda: make("qpid-push"))
    report = Report(subject.address, "", "", 0)

    def pressed(told: str, steps: int) -> None:
        del told
        if steps:
            raise KeyboardInterrupt

    run = GateRun(subject, Budget(1, 0, None, 60), Clock(None), report, pressed)
    run.evidence.offered = frozenset(("on_threads",))
    with pytest.raises(KeyboardInterrupt):
        threads_stage.run_concurrent(run)
    [told] = run.report.stages
    assert told.operations > 0
    assert not told.complete
    assert run.evidence.exercised["as-in-some-order"] > 0


# A fault without threads does not count here.


class Forgetful(LockedQueue):
    """It forgets every second message that is published, under its lock."""

    def __init__(self) -> None:
        super().__init__()
        self.published = AtomicInteger()

    def handle(self, operation: Operation) -> Answer:
        """Say that it was done."""
        if isinstance(operation, Publish) and self.published.increment_and_get() % 2 == 0:
            return Answer()
        return super().handle(operation)


def test_a_mistake_that_needs_no_threads_is_charged_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_few(monkeypatch)
    asked = {name: catalogue()[name] for name in (*threads_stage.REQUIREMENTS, "nothing-lost")}
    report = run_gate(subject_of(Forgetful), asked, Budget(200, 0, None, 5), 0)
    found = outcomes(report)
    assert found["nothing-lost"] is Outcome.BROKEN
    assert found["as-in-some-order"] is not Outcome.BROKEN


class Uncopied(LockedQueue):
    """It holds an object that cannot be copied."""

    def __deepcopy__(self, memo: dict[int, object]) -> Uncopied:
        raise TypeError("no copies")


class OfGets(LockedQueue):
    """It has no consumers."""

    def hello(self) -> Hello:
        """Claim gets and nothing else."""
        return Hello(name="gets", version="1", capabilities=Capabilities(get=True))


def test_a_broker_without_consumers_is_asked_what_gets_can_show() -> None:
    threaded = on_threads(subject_of(OfGets))
    assert not isinstance(threaded, str)
    cases = [*cases_for(threaded.subject.hello.capabilities)]
    assert len(cases) > 5
    assert run_on(subject_of(OfGets)).evidence.broken == {}
    assert run_on(subject_of(OfGets)).report.stages[0].complete


# Texts of findings.


@pytest.fixture(scope="module")
def race() -> Counterexample:
    """Return the gate's report on the hasty queue."""
    with pytest.MonkeyPatch.context() as patched:
        only(ONE_CASE, patched)
        hasty = open_subject(f"{LOCKED}:make_hasty_broker")
        return run_on(hasty, 5).evidence.broken["no-data-race"]


def test_a_counterexample_shows_a_column_for_each_thread(race: Counterexample) -> None:
    text = text_of_counterexample(race)
    assert "client 1: publish m to q" in text
    assert "lock.given back" in text
    assert "nothing orders the two" in text
    assert race.certificate.grade == "switches"


def test_what_threads_did_is_not_judged_without_them(race: Counterexample) -> None:
    again = rejudge(race, frozenset(catalogue()))
    assert again.outcome is Replay.UNFOLLOWED


def test_what_cannot_be_used_on_threads_cannot_run_it_again(race: Counterexample) -> None:
    assert replay_on(race, subject_of(NaiveBroker)).outcome is Replay.UNFOLLOWED
    assert replay_on(race, subject_of(Uncopied)).outcome is Replay.UNFOLLOWED


def test_a_copy_of_the_counterexample_is_equal(race: Counterexample, tmp_path: Path) -> None:
    assert read(write(race, tmp_path)) == copy.deepcopy(race)


def test_events_are_told_by_whom(race: Counterexample) -> None:
    assert race.interleaved is not None
    assert "client 1: publish m to q: ok" in race.interleaved.happened


def test_every_form_of_the_report_shows_what_the_threads_did(
    race: Counterexample, tmp_path: Path
) -> None:
    verdict = Verdict(catalogue()["no-data-race"], Outcome.BROKEN, 1, race.summary, race)
    report = Report(race.candidate, "locked", "1", 0, (verdict,))
    claims = LockedQueue().hello().capabilities
    record = verdict_file(
        (candidate_record(report, claims, (judgement(verdict),)),), ExitStatus.BROKEN
    )
    path = write_report(record, tmp_path)
    assert read_verdict(path) == record
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("lock.given back") == 2
    assert "<th>client 2</th>" in page
    [run] = msgspec.json.decode((tmp_path / "verdict.sarif").read_bytes())["runs"]
    [result] = run["results"]
    flows = msgspec.convert(result["codeFlows"], list[dict[str, list[dict[str, object]]]])
    assert [each.get("id") for each in flows[0]["threadFlows"]] == [None, "client 1", "client 2"]
    assert "lock.given back" in (tmp_path / "junit.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("asked", "searched"), [(("no-data-race",), False), (("no-data-race", "fifo-order"), True)]
)
def test_what_only_threads_can_break_is_asked_of_threads_only(
    asked: tuple[str, ...], searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(ONE_CASE, monkeypatch)
    with closing(open_subject(f"{LOCKED}:make_hasty_broker")) as subject:
        requirements = {name: catalogue()[name] for name in asked}
        report = run_gate(subject, requirements, Budget(20, 1, None, INTERLEAVINGS), seed=0)
    assert ("product" in {each.name for each in report.stages}) == searched
    verdicts = {verdict.requirement.id: verdict.outcome for verdict in report.verdicts}
    assert verdicts["no-data-race"] is Outcome.BROKEN
