"""Rules on histories: proved of every run of the contract, and found where a history is wrong."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from brokerproof.models import history
from brokerproof.models.contract import Consumer, Entry
from brokerproof.models.history import (
    ABOUT_ONE,
    ABOUT_TWO,
    Course,
    HistoryOfContract,
    Span,
    Truth,
)
from brokerproof.models.language import Bool, action
from brokerproof.models.language.model import trace
from brokerproof.models.language.prover import can_fire, initial_state_exists, prove_invariant

Times = NDArray[np.int64]


def outcome(model: type[HistoryOfContract], name: str) -> str:
    [statement] = [s for s in trace(model).invariants if s.name == name]
    proof = prove_invariant(trace(model), statement)
    assert not proof.says_nothing
    return proof.outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", [s.name for s in trace(HistoryOfContract).invariants])
def test_no_run_of_the_contract_breaks_a_rule(name: str) -> None:
    assert outcome(HistoryOfContract, name) == "proved"


@pytest.mark.slow
def test_the_theorem_is_about_runs_in_which_something_happens() -> None:
    system = trace(HistoryOfContract)
    assert initial_state_exists(system).outcome == "fires"
    for name in ("publish", "deliver", "get", "acknowledge", "release"):
        assert can_fire(system, system.action(name)).outcome == "fires", name


class Overtaking(HistoryOfContract):
    """A contract that lets messages overtake each other."""

    def _requires_the_first(self, who: Consumer, entry: Entry) -> None:
        """Let any be given."""


class Misremembering(HistoryOfContract):
    """A recording that says of each delivery when it likes that it was."""

    @action
    def deliver(self, who: Consumer, entry: Entry, redelivered: Bool) -> None:
        """Be given at any time."""
        now = self.now[self.run]
        super(HistoryOfContract, self).deliver(who, entry, redelivered)
        self._is_given(entry, now)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "lost"),
    [(Overtaking, "given-in-order"), (Misremembering, "moments-are-within-their-spans")],
)
def test_without_what_it_rests_on_the_theorem_falls(
    model: type[HistoryOfContract], lost: str
) -> None:
    assert outcome(model, lost) == "refuted"


def two_ends(late: Course, early: Course) -> Truth:
    """Say that the message that was seen first was given first, which nobody knows."""
    seen_first = ~early.was_given | (late.given.end < early.given.end)
    return late.was_given & seen_first & early.published.before(late.published)


def published_at_its_end(late: Course, early: Course) -> Truth:
    """Say that a publish happened when it was confirmed."""
    sooner = early.published.end < late.published.end
    return late.was_given & (~early.was_given | late.given.before(early.given)) & sooner


@pytest.mark.slow
@pytest.mark.parametrize("hasty", [two_ends, published_at_its_end])
def test_a_rule_that_knows_too_much_is_refuted(
    hasty: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(history.ABOUT_TWO, "fifo-order", hasty)

    class Hasty(HistoryOfContract):
        """The same contract, under a rule that is wrong."""

    assert outcome(Hasty, "no-rule-is-broken") == "refuted"


@dataclass(frozen=True)
class Recorded:
    """A history in columns, one place for each message."""

    course: Course
    level: Times

    def broken(self) -> set[tuple[str, int, int]]:
        """Return each rule that is broken, with the message and what it overtook, or itself."""
        found = set()
        for requirement, rule in ABOUT_ONE.items():
            found |= {(requirement, int(n), int(n)) for n in np.flatnonzero(rule(self.course))}
        late, early = _turned(self.course, (-1, 1)), _turned(self.course, (1, -1))
        urgent = self.level.reshape(1, -1) > self.level.reshape(-1, 1)
        equal = self.level.reshape(1, -1) == self.level.reshape(-1, 1)
        for requirement, of_two in ABOUT_TWO.items():
            concerned = equal if requirement == "fifo-order" else urgent
            pairs = np.argwhere(of_two(late, early) & concerned)
            found |= {(requirement, int(f), int(e)) for f, e in pairs}
        return found


def _turned(course: Course, shape: tuple[int, int]) -> Course:
    def turned(span: Span) -> Span:
        return Span(span.start.reshape(shape), span.end.reshape(shape))

    given = course.was_given.reshape(shape)
    return Course(turned(course.published), turned(course.given), given)


def recorded(moments: Times, given: Times, level: Times, draw: random.Random) -> Recorded:
    """Return a recording of these moments, -1 for never, in spans of any width."""

    def span(at: Times) -> Span:
        wide = np.array([[draw.randrange(6), draw.randrange(6)] for _ in at], dtype=np.int64)
        return Span(at - wide[:, 0], at + wide[:, 1])

    return Recorded(Course(span(moments), span(given), given >= 0), level)


def sound_run(count: int, draw: random.Random) -> tuple[Times, Times, Times]:
    """Return when each message was published and given, and its level, in a queue by priority."""
    level = np.array([draw.randrange(3) for _ in range(count)], dtype=np.int64)
    published, given = np.full(count, -1), np.full(count, -1)
    waiting: list[int] = []
    coming = list(range(count))
    now = 0
    while coming or (waiting and draw.randrange(8)):
        if coming and (not waiting or draw.randrange(2)):
            waiting.append(coming.pop(0))
            published[waiting[-1]] = now
        else:
            first = min(waiting, key=lambda n: (-level[n], n))
            waiting.remove(first)
            given[first] = now
        now += 1
    return published, given, level


@pytest.mark.parametrize("seed", range(50))
def test_a_sound_history_breaks_no_rule_however_vague_it_is(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 (variety, no secrets)
    published, given, level = sound_run(40, draw)
    assert recorded(published, given, level, draw).broken() == set()


@pytest.mark.parametrize("seed", range(50))
def test_a_wrong_history_breaks_the_rule_for_what_is_wrong(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 (variety, no secrets)
    published, given, level = sound_run(40, draw)
    exact = Recorded(Course(Span(published, published), Span(given, given), given >= 0), level)
    assert exact.broken() == set()
    taken = [int(n) for n in np.flatnonzero(given >= 0)]
    waited_together = [
        (e, f)
        for e in taken
        for f in taken
        if e < f and level[e] == level[f] and published[f] < given[e]
    ]
    early, late = draw.choice(waited_together)
    swapped = given.copy()
    swapped[[early, late]] = given[[late, early]]
    spans = replace(exact.course, given=Span(swapped, swapped))
    assert ("fifo-order", late, early) in Recorded(spans, level).broken()
    invented = published.copy()
    invented[late] = given[late] + 1
    spans = replace(exact.course, published=Span(invented, invented))
    assert ("nothing-invented", late, late) in Recorded(spans, level).broken()
    waits = [e for e in taken if any(published[e] < given[f] < given[e] for f in taken)]
    urgent = level.copy()
    urgent[waits[0]] = 9
    broken = Recorded(exact.course, urgent).broken()
    assert {early for rule, _, early in broken if rule == "priority-order"} == {waits[0]}
