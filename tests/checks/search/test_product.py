"""The product grade beside its ideal: candidates whose copies fail in the middle of a search.

Earlier findings stay, and the scope is searched by sequences instead: no requirement counts as kept
without a search.
"""

from __future__ import annotations

from typing import Self

import pytest

from brokerproof.checks.conversation import CannotCopy, Copier, copier_of
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.gate.gate_run import Report
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.product import search
from brokerproof.checks.search.scopes.scope import Payload, Scope
from brokerproof.checks.search.searches import Search
from brokerproof.checks.subjects import Subject
from brokerproof.spec.messages import Fifo, Priority
from brokerproof.spec.protocol.operations import Reset
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Stack, fresh

OPERATIONS = 700
TWO = Scope("two messages", (Fifo(),), messages=2, gets=("acknowledge",))


class Fragile(Stack):
    """Gives the last first, and cannot be copied any more when two messages wait."""

    def __deepcopy__(self, _: dict[int, object]) -> Self:
        """Copy it as long as that works."""
        if sum(map(len, self.queues.values())) >= self.copied_with:
            raise RuntimeError("out of paper")
        copy = type(self)()
        copy.queues = {queue: list(kept) for queue, kept in self.queues.items()}
        copy.held, copy.count = dict(self.held), self.count
        return copy

    copied_with = 2


class Sturdy(Fragile):
    """The same, copied whatever it holds."""

    copied_with = 1_000


def judged(start: type[Box]) -> Report:
    subject = Subject(start.__name__, start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(OPERATIONS, 0), 0)


def test_a_copy_that_fails_ends_the_search_with_what_was_found() -> None:
    candidate = Fragile()
    candidate.handle(Reset())
    copier = copier_of(candidate)
    assert isinstance(copier, Copier)
    found = Search(TWO, "product")
    start = candidate, Oracle(candidate.hello().capabilities)
    with pytest.raises(CannotCopy, match="out of paper"):
        search(found, start, copier, OPERATIONS, lambda: "")
    assert not found.complete
    assert found.operations > 0
    assert found.pairs > 0
    assert found.exercised["protocol"] > 0


def test_the_gate_goes_on_by_sequences() -> None:
    report = judged(Fragile)
    grades = [stage.name for stage in report.stages]
    assert grades[0] == "product"
    assert "stopped by it cannot be copied (RuntimeError: out of paper)" in report.stages[0].did
    assert not report.stages[0].complete
    assert {*grades[1:]} == {"sequences", "adaptive"}
    assert len(grades) > 2
    found = next(v for v in report.verdicts if v.requirement.id == "fifo-order").counterexample
    assert found is not None
    assert found.certificate.grade == "sequences"


def test_the_twin_that_can_be_copied_is_searched_by_pairs_to_the_end() -> None:
    report = judged(Sturdy)
    searched = [stage for stage in report.stages if stage.name == "product"]
    assert all(stage.complete or "operations" in stage.did for stage in searched)
    assert {stage.name for stage in report.stages} == {"product", "adaptive"}
    found = next(v for v in report.verdicts if v.requirement.id == "fifo-order").counterexample
    assert found is not None
    assert found.certificate.grade == "product"


@pytest.mark.parametrize(("levels", "broken"), [((1,), set()), ((1, 2), {"priority-order"})])
def test_a_queue_that_disregards_its_levels_is_not_taken_for_one_without(
    levels: tuple[int, ...], broken: set[str]
) -> None:
    orders = tuple(map(Priority, levels))
    payloads = (Payload(0), Payload(9))
    scope = Scope("levels", orders, messages=2, payloads=payloads, gets=("acknowledge",))
    found, copier = Search(scope, "product"), copier_of(Box())
    assert isinstance(copier, Copier)
    search(found, fresh(Box), copier, 20_000, lambda: "")
    assert set(found.broken) - {"release-rewinds"} == broken
