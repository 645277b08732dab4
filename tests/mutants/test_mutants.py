"""A few mutants of the reference and what becomes of them; the rest is a benchmark.

`benchmarks/reference_mutants.py` takes all of them, or a large sample. Here are some of every rule,
each with the requirement that kills it within the smallest budget, and the reference itself.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.reference_mutants import lines_of, sample
from tests.faults.overlay import REFERENCE, CannotPlant, Edit
from tests.mutants.judging import FIRST, Fate, Judged, judged
from tests.mutants.mutations import Mutant, mutants, mutants_of
from tests.mutants.page import explanations

ROOT = Path(__file__).parents[2]

SOURCE = """
LIMIT = 3
class A:
    __slots__ = ("a", 1)
    def __repr__(self): return str(1)
    def f(self, a=False, *, b: int = 0):
        "Documented."
        assert a < 1
        if not a or b:
            self.a = f"{1}"
        while a <= b:
            break
        return None
"""
"""Something of every rule, and of what is left out."""


@functools.cache
def by_name() -> dict[str, Mutant]:
    """Return every mutant by its name."""
    return {each.name: each for each in mutants()}


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        ("broker.py Broker._purge: queue.purge() -> dropped", "purge-drops"),
        ("front/credit.py Window._replace: self.limit = limit -> dropped", "protocol"),
        ("qpid/push/delivery.py flush_subscription: not done -> done", "get-finds"),
        (
            (
                "qpid/push/delivery.py deliver_message: "
                "queue.outbox.send(subscription, entry) -> dropped"
            ),
            "nothing-lost",
        ),
        (
            (
                "qpid/push/delivery.py deliver_to_subscription: "
                "not subscription.mode.acquires -> subscription.mode.acquires"
            ),
            "nothing-twice",
        ),
        ("qpid/push/delivery.py process_queue: slot.set(None) -> dropped", "quiescence"),
        ("qpid/inspection.py view_of: 1 -> 0", "documented-steps"),
        ("front/consumers.py BROWSE: False -> True", "CR-1"),
        ("front/credit.py Window.restore: self.used -= 1 -> dropped", "CR-1"),
        (
            (
                "broker.py Broker._carry_out: (beyond := unclaimed(operation, self.claimed))"
                " -> not (beyond := unclaimed(operation, self.claimed))"
            ),
            "does-what-it-claims",
        ),
    ],
)
def test_a_mutant_is_killed_under_its_requirement(name: str, requirement: str) -> None:
    found = judged([by_name()[name].edit], trials=[FIRST])
    assert (found.fate, found.by) == (Fate.KILLED, requirement), found


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "front/outbox.py Outbox.__init__: 0 -> 1",  # deliveries may be called anything
        "qpid/push/delivery.py STRAIGHT_THROUGH_LAPS: 2 -> 3",  # the rest comes in a later lap
    ],
)
def test_a_harmless_mutant_survives(name: str) -> None:
    assert judged([by_name()[name].edit], trials=[FIRST]).fate is Fate.SURVIVED


def test_the_reference_survives() -> None:
    assert judged([], trials=[FIRST]) == Judged(Fate.SURVIVED, trial=FIRST)


def test_a_mutant_that_does_not_introduce_itself_cannot_be_run() -> None:
    [silent] = [
        each
        for each in mutants()
        if each.where == "Broker.hello" and each.old.startswith("return") and each.new == "pass"
    ]
    assert judged([silent.edit], trials=[FIRST]).fate is Fate.CANNOT_RUN


def test_a_mutant_that_cannot_be_loaded_cannot_be_run() -> None:
    beyond = Edit("systems.py", "LEVELS_MAX = 10", "LEVELS_MAX = 11")  # none claim so many
    assert judged([beyond], trials=[FIRST]).fate is Fate.CANNOT_RUN


def test_a_mutant_that_cannot_be_made_is_no_fate_of_it() -> None:
    with pytest.raises(CannotPlant):
        judged([Edit("broker.py", "no such line", "pass")], trials=[FIRST])


@pytest.mark.thorough
def test_a_mutant_that_leaves_a_requirement_without_a_verdict_is_undecided() -> None:
    copying = "        return copied(self)\n"
    sharing = copying.replace("return", "copy =") + (
        "        copy.channels = self.channels\n        return copy\n"
    )
    found = judged([Edit("broker.py", copying, sharing)], trials=[FIRST])
    assert found.fate is Fate.UNDECIDED
    assert "protocol" in found.all_of


def test_every_rule_makes_its_mutants() -> None:
    assert [each.name.removeprefix("a.py ") for each in mutants_of("a.py", SOURCE)] == [
        "LIMIT: 3 -> 4",
        "LIMIT: 3 -> 2",
        "A.f: False -> True",
        "A.f: 0 -> 1",
        "A.f: 0 -> -1",
        "A.f: not a or b -> not (not a or b)",
        "A.f: not a or b -> not a and b",
        "A.f: not a -> a",
        "A.f: b -> not b",
        "A.f: self.a = f'{1}' -> dropped",
        "A.f: a <= b -> not a <= b",
        "A.f: a <= b -> a < b",
        "A.f: break -> dropped",
    ]


@pytest.mark.thorough
def test_every_mutant_can_be_planted_compiles_and_has_its_own_name() -> None:
    every = mutants()
    assert len(every) > 500
    assert len(by_name()) == len(every)
    sound = REFERENCE.sources()
    for each in every:
        text = sound[each.file]
        assert text.count(each.edit.old) == 1
        changed = text.replace(each.edit.old, each.edit.new)
        assert changed != text
        compile(changed, each.file, "exec")


def test_a_sample_hangs_on_its_seed_and_a_larger_one_holds_it() -> None:
    every = mutants()
    few = sample(every, 10, 7)
    assert few == sample(every, 10, 7) != sample(every, 10, 8)
    assert few == sample(every, 20, 7)[:10]
    assert {each.name for each in sample(every, 0, 7)} == {each.name for each in every}


def test_every_explained_survivor_is_a_mutant_of_today() -> None:
    explained = explanations()
    assert explained
    assert sorted(set(explained) - set(by_name())) == []


def test_the_page_is_read_by_its_headings() -> None:
    page = "# A\n\n## Why\n\n- `a.py f: 1 -> 2`\n\n## Else\n\n- `a.py g: x -> dropped`\n- no\n"
    assert explanations(page) == {"a.py f: 1 -> 2": "Why", "a.py g: x -> dropped": "Else"}
    with pytest.raises(ValueError, match="explained twice"):
        explanations(page + page)


def test_survivors_are_printed_with_their_reason_and_all_are_counted() -> None:
    first, second, third, *_ = mutants()
    killed = Judged(Fate.KILLED, "fifo-order", ("fifo-order", "nothing-lost"))
    printed = list(lines_of([(first, killed), (second, Judged(Fate.SURVIVED)), (third, "hangs")]))
    assert printed[0] == "killed 1 of 3: 33.3%"
    assert "     1    1 fifo-order" in printed
    assert "     0    1 nothing-lost" in printed
    assert f"not judged: {third}: hangs" in printed
    [survivor] = [line for line in printed if line.startswith("survived: ")]
    assert str(second) in survivor


@pytest.mark.thorough
def test_the_command_judges_a_sample() -> None:
    command = [sys.executable, "benchmarks/reference_mutants.py", "--limit", "2", "--seed", "3"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.startswith(f"2 of {len(mutants())} mutants, seed 3\nkilled ")
    told = run.stderr.splitlines()
    assert [line.split()[0] for line in told] == ["1", "2"]
    for line, mutant in zip(told, sample(mutants(), 2, 3), strict=True):
        assert str(mutant) in line
