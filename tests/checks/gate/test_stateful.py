"""What the stateful stage draws for a broker on the wire."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from msgspec.json import encode
from msgspec.structs import replace

from brokerproof.checks.gate import gate, stateful
from brokerproof.checks.gate.gate import Budget, Report, run_stateful
from brokerproof.checks.gate.gate_run import Clock, GateRun
from brokerproof.checks.gate.stateful import WAITING, Sampling, sample
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.search.counterexamples import Certificate
from brokerproof.checks.search.draws import MESSAGES_MAX
from brokerproof.checks.search.findings import Run
from brokerproof.checks.search.root_cause import Repeated, RootCause
from brokerproof.checks.subjects import OnTheWire, Subject
from brokerproof.checks.verdicts import Outcome, judge
from brokerproof.reference import make
from brokerproof.spec.protocol.answers import OK, Answer
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import Publish
from brokerproof.spec.requirements import catalogue

if TYPE_CHECKING:
    from brokerproof.spec.protocol.candidate import Candidate
    from brokerproof.spec.protocol.operations import Operation

CLAIMS = Capabilities(
    orders=("fifo",), modes=("acknowledge",), credit=("messages",), release_position="original"
)
ON_THE_WIRE = cast("OnTheWire", object())


def broker() -> Candidate:
    """Return a sound broker."""
    return make("qpid-push")


@pytest.mark.parametrize("wire", [None, ON_THE_WIRE], ids=["in process", "on the wire"])
def test_many_messages_wait_in_some_examples_on_the_wire(wire: OnTheWire | None) -> None:
    hello = replace(broker().hello(), capabilities=CLAIMS)
    subject = Subject("sound", hello, broker, in_process=True, wire=wire)
    found = Sampling()
    sample(subject, found, seed=0, examples=8, interrupted=lambda: "")
    assert not found.broken
    assert (found.largest >= WAITING) == (wire is not None)
    assert found.largest <= MESSAGES_MAX + WAITING


class Loses:
    """A broker that takes one message, the hundredth, and never delivers it."""

    lost = "m99"

    def __init__(self) -> None:
        self.behind = broker()

    def hello(self) -> Hello:
        """Claim what the tests use."""
        return replace(self.behind.hello(), capabilities=CLAIMS)

    def handle(self, operation: Operation) -> Answer:
        """Carry out an operation, except for one publish."""
        if isinstance(operation, Publish) and operation.message.id == self.lost:
            return OK
        return self.behind.handle(operation)


class LosesTheFirst(Loses):
    """A broker that every example finds broken."""

    lost = "m0"
    made = 0

    def __init__(self) -> None:
        super().__init__()
        LosesTheFirst.made += 1


@pytest.mark.parametrize("known", [(), ("nothing-lost", "credit-used")])
def test_what_a_search_has_found_is_not_shrunk_once_more(known: tuple[str, ...]) -> None:
    subject = Subject("lossy", Loses().hello(), LosesTheFirst, in_process=True)
    found, LosesTheFirst.made = Sampling(known=frozenset(known)), 0
    sample(subject, found, seed=0, examples=8, interrupted=lambda: "")
    assert ("nothing-lost" in found.broken) == (not known)
    assert (LosesTheFirst.made == found.examples == 8) == bool(known)


@pytest.mark.parametrize(("seconds", "is_short"), [(15.0, True), (0.0, False)])
def test_what_is_drawn_on_the_wire_is_shortened_within_a_time(
    seconds: float, *, is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "SHORTENING_S", seconds)
    subject = Subject("lossy", Loses().hello(), Loses, in_process=True, wire=ON_THE_WIRE)
    report = Report("lossy", "lossy", "1", 0)
    run = GateRun(subject, Budget(examples=8), Clock(None), report, lambda *_: None)
    run.grade = "adaptive"
    run_stateful(run)
    steps = run.evidence.broken["nothing-lost"].steps
    assert (len(steps) <= 6) == is_short
    assert run.evidence.largest > 1


def test_a_shorter_form_that_does_not_recur_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject("lossy", Loses().hello(), Loses, in_process=True, wire=ON_THE_WIRE)
    run = GateRun(
        subject, Budget(examples=8), Clock(None), Report("lossy", "lossy", "1", 0), lambda *_: None
    )
    run.grade = "adaptive"
    monkeypatch.setattr(gate, "shortest_form", lambda run, _: Run(run.steps[-2:], run.broken))
    run_stateful(run)
    found = run.evidence.broken["nothing-lost"]
    assert len(found.steps) > 2
    assert found.again is not None
    assert found.again[0] == found.again[1]


@pytest.mark.parametrize(
    ("action", "times", "wire", "is_broken"),
    [
        ("quiesce", 0, ON_THE_WIRE, False),
        ("quiesce", 1, ON_THE_WIRE, True),
        ("quiesce", 0, None, True),
        ("deliver", 0, ON_THE_WIRE, True),
    ],
    ids=["once on the wire", "twice on the wire", "once in this process", "in the wrong order"],
)
def test_what_came_late_once_on_the_wire_is_doubted(
    action: str, times: int, wire: OnTheWire | None, *, is_broken: bool
) -> None:
    subject = Subject("late", broker().hello(), broker, in_process=True, wire=wire)
    report = Report("late", "late", "1", 0)
    run = GateRun(subject, Budget(), Clock(None), report, lambda *_: None)
    seen = RootCause(Run((), Breach("credit-used", action)), Repeated(times, 3))
    run.keep_finding(seen, Certificate(grade="not certified", reason="a test"))
    assert ("credit-used" in run.evidence.broken) == is_broken
    verdict = {v.requirement.id: v for v in judge(catalogue(), CLAIMS, run.evidence)}["credit-used"]
    assert verdict.outcome is (Outcome.BROKEN if is_broken else Outcome.INCONCLUSIVE)
    assert ("the machine may have been too busy" in verdict.reason) != is_broken


def drawn_beside(constants: Sequence[int]) -> list[int]:
    """Return numbers drawn while a local module with these constants is loaded."""
    drawn: list[int] = []

    @seed(0)
    @settings(max_examples=400, database=None)
    @given(st.integers(0, 4_095))
    def draw(number: int) -> None:
        drawn.append(number)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "constants_of_a_user.py"
        path.write_text(f"NUMBERS = {list(constants)}\n", encoding="utf-8")
        spec = spec_from_file_location(path.stem, path)
        assert spec is not None
        if constants:
            patch.setitem(sys.modules, path.stem, module_from_spec(spec))
        # What Hypothesis has read once it keeps.
        patch.setattr(providers, "CONSTANTS_CACHE", LRUCache(1_024))
        draw()
    return drawn


def test_constants_in_the_source_of_a_candidate_do_not_change_what_is_drawn() -> None:
    with stateful._each_drawn_anew():
        assert drawn_beside(range(101, 3_000, 7)) == drawn_beside(())
    plain = drawn_beside(())
    assert drawn_beside(range(102, 3_000, 7)) != plain


@pytest.mark.parametrize("anew", [True, False])
def test_no_two_examples_begin_alike(*, anew: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not anew:
        monkeypatch.setattr(stateful, "_each_drawn_anew", nullcontext)
    subject = Subject("sound", broker().hello(), broker, in_process=True)
    beginnings: set[bytes] = set()
    found = Sampling(heard=lambda steps: beginnings.add(encode([each.move for each in steps[:6]])))
    sample(subject, found, seed=0, examples=16, interrupted=lambda: "")
    assert (len(beginnings) == found.examples) == anew
