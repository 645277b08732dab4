"""Every planted fault is found: under the right name, by a shortest trace, and nowhere else.

What the counterexamples of those that show at once have recorded is judged again as it was found,
and drawn.

The faults and what must be said of them are recorded in `tests/faults`. Each is given to the whole
gate once, within the smallest budget that shows it. Of each requirement to clients, and of each
kind of queue, one fault is found soonest. Every run of the tests has a twelfth of these;
`make thorough` has all.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

import msgspec
import pytest

from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.inside.state_invariants import INSIDE, kinds
from brokerproof.checks.replay import Replay, rejudge, replay_on
from brokerproof.checks.report.diagram import diagram_of
from brokerproof.checks.search.counterexamples import Counterexample, text_of_counterexample
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.requirements import Level, catalogue
from examples.whole_broker import WholeBroker
from tests.faults.catalogue import Fault, faults
from tests.faults.kill_table import seen_aside
from tests.faults.overlay import CannotPlant, Edit, edited, ground_of, plant
from tests.faults.threads.catalogue import thread_faults

SOON_OPERATIONS_MAX = 300
RECORDED_OPERATIONS_MAX = 125
"""Faults that take more are of the same kinds as those that show at once."""


def subject_of(name: str, start: Callable[[], Candidate]) -> Subject:
    """Return a broker of ours as the gate sees candidates."""
    return Subject(name, start().hello(), start, in_process=True)


@functools.cache
def found_broken(fault_id: str) -> dict[str, Counterexample]:
    """Return what the gate finds broken within the fault's budget, as files have it."""
    fault = faults()[fault_id]
    budget = Budget(fault.operations, fault.examples)
    subject = subject_of(fault_id, fault.faulty())
    report = run_gate(subject, catalogue(), budget, fault.seed)
    claims = subject.hello.capabilities
    return {
        verdict.requirement.id: msgspec.structs.replace(verdict.counterexample, claims=claims)
        for verdict in report.verdicts
        if verdict.outcome is Outcome.BROKEN and verdict.counterexample is not None
    }


def is_named_with_a_shortest_trace(fault: Fault) -> None:
    broken = found_broken(fault.id)
    assert fault.requirement in broken, sorted(broken)
    found = broken[fault.requirement]
    assert len(found.steps) <= fault.length, text_of_counterexample(found)
    assert found.certificate.grade == ("not certified" if fault.outside else "product")


def is_named_for_what_it_breaks_and_nothing_else(fault: Fault) -> None:
    broken = found_broken(fault.id)
    binding = {name for name in broken if catalogue()[name].level is Level.MUST}
    counted = binding - seen_aside(fault)
    assert counted - {*fault.also} <= {fault.requirement}, sorted(binding)


def is_shown_again_and_not_without_it(fault: Fault) -> None:
    found = found_broken(fault.id)[fault.requirement]
    again = replay_on(found, subject_of(fault.id, fault.faulty()))
    assert again.outcome is Replay.SAME, "\n".join(again.lines)
    without = replay_on(found, subject_of("sound", fault.sound()))
    assert without.outcome is Replay.KEPT, "\n".join(without.lines)


def recorded(fault: Fault) -> Iterator[Counterexample]:
    """Yield what is recorded; what was seen inside is not."""
    for name, found in found_broken(fault.id).items():
        if name not in INSIDE:
            yield found


def is_the_same_when_judged_again(fault: Fault) -> None:
    for found in recorded(fault):
        assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME


def is_drawn_with_the_queues_at_every_step(fault: Fault) -> None:
    for found in recorded(fault):
        drawn = diagram_of(found)
        assert drawn.reason == ""
        assert all(row.known for row in drawn.rows)


def found_soonest() -> frozenset[str]:
    """Return the ids of one fault for each requirement; of inside ones for each kind of queue."""
    part_of = {name: kind for kind, names in kinds().items() for name in names}
    soonest = sorted(faults().values(), key=lambda fault: (fault.operations, fault.examples))
    found = {part_of.get(each.requirement, each.requirement): each for each in reversed(soonest)}
    return frozenset(each.id for each in found.values() if is_soon(each))


def is_soon(fault: Fault) -> bool:
    """Whether the gate finds a fault within the budget that most need."""
    return fault.operations <= SOON_OPERATIONS_MAX and not fault.examples


def all_faults() -> Iterator[object]:
    """Yield each fault; every run of the tests asks for a twentieth of those found soonest."""
    each_time = sorted(found_soonest())[::20]
    for fault in faults().values():
        marks = [] if fault.id in each_time else [pytest.mark.thorough]
        yield pytest.param(fault, id=fault.id, marks=marks)


@pytest.mark.parametrize("fault", list(all_faults()))
def test_a_planted_fault(fault: Fault) -> None:
    """The gate is run once for all that is asked of a fault."""
    is_named_with_a_shortest_trace(fault)
    is_named_for_what_it_breaks_and_nothing_else(fault)
    is_shown_again_and_not_without_it(fault)
    if fault.operations <= RECORDED_OPERATIONS_MAX and not fault.examples:
        is_the_same_when_judged_again(fault)
        is_drawn_with_the_queues_at_every_step(fault)


@pytest.mark.parametrize("fault", faults().values(), ids=lambda fault: fault.id)
def test_the_lines_that_a_fault_replaces_are_there(fault: Fault) -> None:
    """Most faults are given to the gate by `make thorough` alone."""
    edited(ground_of(fault.broker), fault.edits)
    edited(ground_of(fault.sound_broker or fault.broker), fault.twin)


def test_some_faults_show_at_once_and_are_recorded() -> None:
    at_once = [f for f in faults().values() if f.operations <= RECORDED_OPERATIONS_MAX]
    assert len(at_once) > 100
    assert any(True for _ in recorded(at_once[0]))


ON_THREADS = {fault.requirement for fault in thread_faults()}
"""What faults break that need threads; `tests/checks/gate/test_threads_stage.py` finds each."""


def test_every_requirement_has_a_fault() -> None:
    assert ON_THREADS | {fault.requirement for fault in faults().values()} == set(catalogue())


NEVER_ALONE = {"A4", "A5", "A6", "D1", "F1", "I19", "R1"}
"""What follows from others that are asked of the same view; the faults say from which."""


def test_every_requirement_has_a_fault_that_breaks_it_alone() -> None:
    alone = {fault.requirement for fault in faults().values() if not fault.also}
    assert ON_THREADS | alone == set(catalogue()) - NEVER_ALONE


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (Edit("broker.py", "no such line", ""), "has this 0 times"),
        (Edit("broker.py", "return None", ""), "times, not once:\nreturn None"),
        (Edit("broker.py", "", "more"), "has this 0 times"),
        (Edit("nowhere.py", "a", "b"), "there is no reference/nowhere.py"),
    ],
)
def test_a_fault_whose_lines_are_gone_is_not_planted(edit: Edit, complaint: str) -> None:
    with pytest.raises(CannotPlant) as refusal:
        plant([edit])
    assert complaint in str(refusal.value)


def test_the_whole_broker_is_planted_from_its_own_files_only() -> None:
    with pytest.raises(CannotPlant, match=re.escape("there is no examples/naive_queue.py")):
        plant([Edit("naive_queue.py", "a", "b")], "whole")
    with pytest.raises(CannotPlant, match=re.escape("examples/whole_broker.py has this 0 times")):
        plant([Edit("whole_broker.py", "no such line", "")], "whole")


def test_planting_leaves_the_reference_alone() -> None:
    planted = plant([Edit("broker.py", 'version="1"', 'version="planted"')])()
    assert planted.hello().version == "planted"
    assert plant(())().hello().version == "1"
    assert type(planted).__module__.startswith("planted_reference_")


def test_planting_leaves_the_whole_broker_alone() -> None:
    version = Edit("whole_broker.py", 'version="1"', 'version="planted"')
    planted = plant([version], "whole:make_tail_broker")()
    assert planted.hello().version == "planted"
    assert planted.hello().capabilities.release_position == "tail"
    sound = plant((), "whole")()
    assert sound.hello() == WholeBroker().hello()
    assert type(sound).__module__.startswith("planted_examples_")
    assert not isinstance(sound, WholeBroker)
