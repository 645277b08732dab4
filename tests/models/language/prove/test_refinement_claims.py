"""Obligations of a refinement: rigid symbols, the laws of orders, and whole initial states."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    Map,
    Model,
    ModelError,
    Order,
    action,
    forall,
    implies,
    initial,
    invariant,
    require,
)
from brokerproof.models.language.core.model import SetOf, trace
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.cache import canonical
from brokerproof.models.language.prove.refinement import Refinement, does


class Task(Family):
    """Something to be done."""


class InTurn(Model):
    """Tasks that are done in their order, and the first of which is urgent."""

    before: Order[Task]
    urgent: Fixed[Task, Bool]
    done: Map[Task, Bool]
    told: Map[Task, Bool]

    @initial
    def nothing(self) -> None:
        """No task is done; the urgent ones, and any others, were told."""
        self.done.fill(False)
        self.told = self.told.map(lambda task, old: old | self.urgent[task])

    @action
    def do(self, task: Task) -> None:
        """Do one, when all before it are done."""
        require(~self.done[task])
        require(forall(Task, lambda other: implies(self.before(other, task), self.done[other])))
        self.done[task] = True


class Worker(Model):
    """Does tasks in their order; all tasks were told."""

    before: Order[Task]
    urgent: Fixed[Task, Bool]
    done: Map[Task, Bool]
    told: Map[Task, Bool]

    @initial
    def nothing(self) -> None:
        """No task is done, all are told."""
        self.done.fill(False)
        self.told.fill(True)

    @action
    def do(self, task: Task) -> None:
        """Do the next one."""
        require(~self.done[task])
        require(forall(Task, lambda other: implies(self.before(other, task), self.done[other])))
        self.done[task] = True


class Idler(Worker):
    """Does tasks as it likes."""

    @action
    def do(self, task: Task) -> None:
        """Do any."""
        require(~self.done[task])
        self.done[task] = True


class Silent(Worker):
    """No task was told."""

    @initial
    def nothing(self) -> None:
        """No task is done or told."""
        self.done.fill(False)
        self.told.fill(False)


GOOD = Refinement(
    name="worker refines in-turn",
    concrete=Worker,
    abstract=InTurn,
    remembering=Worker,
    families={},
    abstraction={},
    witnesses={"do": lambda _model, task: does("do", task)},
)


def broken(refinement: Refinement) -> set[str]:
    return {a.name for a in bind(refinement).proof().answers if a.outcome != "proved"}


def test_what_is_refined_is_proved_and_what_is_not_is_refuted() -> None:
    assert broken(GOOD) == set()
    idler = dataclasses.replace(GOOD, concrete=Idler, remembering=Idler)
    assert broken(idler) == {"guard 2 of do"}


def test_an_order_must_be_read_as_an_order() -> None:
    idler = dataclasses.replace(
        GOOD,
        concrete=Idler,
        remembering=Idler,
        abstraction={"before": lambda _model, one, _other: one != one},  # noqa: PLR0124
    )
    assert "before is an order, law 3" in broken(idler)


def test_what_is_given_of_a_start_is_asked_though_the_rest_is_anything() -> None:
    silent = dataclasses.replace(GOOD, concrete=Silent, remembering=Silent)
    assert broken(silent) == {"told initially"}


def test_what_never_changes_is_not_read_as_what_does() -> None:
    moving = dataclasses.replace(GOOD, abstraction={"urgent": lambda model, task: model.done[task]})
    with pytest.raises(ModelError, match="urgent never changes, and is read as done"):
        bind(moving)


def test_what_holds_by_construction_is_told_of_the_start_too() -> None:
    trivial = {a.name for a in bind(GOOD).proof().answers if a.by_construction and not a.action}
    laws = {f"before is an order, law {number}" for number in (1, 2, 3)}
    assert trivial == {"done initially", "told initially", *laws}


class Marked(Model):
    """Two of one name: a map, and a set that an action is given."""

    ok: Map[Task, Bool]
    bad: Map[Task, Bool]

    @initial
    def none(self) -> None:
        """Nothing is marked."""
        self.ok.fill(False)
        self.bad.fill(False)

    @action
    def mark(self, task: Task, ok: SetOf[Task]) -> None:
        """Mark one that is ok, whatever the set has."""
        require(self.ok[task] & implies(ok[task], self.bad[task] | ok[task]))
        self.bad[task] = True

    @invariant("only-what-is-ok")
    def only_ok(self) -> Bool:
        """Marked ones are ok."""
        return forall(Task, lambda task: implies(self.bad[task], self.ok[task]))


class MarkedBySet(Marked):
    """The same, but for which of the two the guard reads."""

    @action
    def mark(self, task: Task, ok: SetOf[Task]) -> None:
        """Mark one that is in the set."""
        require(ok[task] & implies(ok[task], self.bad[task] | ok[task]))
        self.bad[task] = True


def test_a_set_and_a_map_of_one_name_are_not_one_text() -> None:
    texts = {
        canonical(trace(model)).replace("MarkedBySet", "Marked") for model in (Marked, MarkedBySet)
    }
    assert len(texts) == 2
    assert canonical(trace(Marked)) == canonical(trace(Marked))
