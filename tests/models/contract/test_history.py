"""Rules on histories: proved of every run of the contract, with twins that must be refuted."""

from __future__ import annotations

import pytest

from brokerproof.models.contract import history_of_contract, lemmas
from brokerproof.models.contract.core import Consumer, Entry
from brokerproof.models.contract.history import (
    BEGUN,
    GIVEN,
    LEFT,
    OVERTAKES_AN_EQUAL,
    PUBLISHED,
    TAKEN_WHILE_SOME_WAITED,
    Rule,
    Span,
    WaitingInterval,
)
from brokerproof.models.contract.history_of_contract import HistoryOfContract
from brokerproof.models.contract.lemmas import HoldsOfContract
from brokerproof.models.language import FALSE, Bool, action
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.prove.prover import can_fire, initial_state_exists, prove_invariant

OWN = [
    (model, statement.name)
    for model in (HistoryOfContract, HoldsOfContract)
    for statement in trace(model).invariants
    if model is HistoryOfContract
    or statement.name in {"returns-are-between-deliveries", "no-two-hold-a-message"}
]


def outcome(model: type[HistoryOfContract], name: str) -> str:
    [statement] = [s for s in trace(model).invariants if s.name == name]
    proof = prove_invariant(trace(model), statement)
    assert not proof.says_nothing
    return proof.outcome


@pytest.mark.each_time(6)
@pytest.mark.parametrize(("model", "name"), OWN)
def test_no_run_of_the_contract_shows_what_a_rule_says(
    model: type[HistoryOfContract], name: str
) -> None:
    assert outcome(model, name) == "proved"


@pytest.mark.parametrize("model", [HistoryOfContract, HoldsOfContract])
def test_the_theorem_is_about_runs_in_which_something_happens(
    model: type[HistoryOfContract],
) -> None:
    system = trace(model)
    assert initial_state_exists(system).outcome == "fires"
    for each in system.actions:
        assert can_fire(system, each).outcome == "fires", each.name


class Overtaking(HistoryOfContract):
    """A contract that lets messages overtake each other."""

    def _requires_the_first(self, consumer: Consumer, entry: Entry) -> None:
        """Let any be given."""


class Jumping(HistoryOfContract):
    """A contract in which a message may arrive ahead of others of its level."""

    def has_arrived_behind(self, entry: Entry, f: Entry) -> Bool:  # noqa: ARG002 (none is behind)
        """Let it arrive anywhere."""
        return FALSE


class Misremembering(HistoryOfContract):
    """A recording with an arbitrary time for each delivery."""

    def _requires_its_moment(self, entry: Entry) -> None:
        """Let it be given at any time."""


class Vague(HistoryOfContract):
    """A recording with an arbitrary time for a return."""

    @action
    def release(self, entry: Entry) -> None:
        """Return at any time."""
        super(HistoryOfContract, self).release(entry)
        self._begin_intervals()


class Generous(HoldsOfContract):
    """A contract that delivers acquired messages."""

    def _requires_a_true_account(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """Deliver any message to any consumer."""


class Forgetful(HistoryOfContract):
    """A contract that loses confirmed messages in a crash."""

    def may_be_lost(self, e: Entry) -> Bool:
        """Lose whatever is there."""
        return self.has_arrived(e)


class Trusting(HistoryOfContract):
    """A rule that assumes that a crash keeps persistent messages, answered or not."""

    def must_be_kept(self, e: Entry) -> Bool:
        """Ask for no answer."""
        return self.lasts[e]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "lost"),
    [
        (Overtaking, "given-in-order"),
        (Jumping, "equals-stand-as-they-were-published"),
        (Misremembering, "moments-are-within-their-spans"),
        (Vague, "moments-are-within-their-spans"),
        (Generous, "waiting-intervals-follow-the-status"),
        (Forgetful, "only-what-need-not-be-kept-is-lost"),
        (Trusting, "only-what-need-not-be-kept-is-lost"),
    ],
)
def test_without_what_it_rests_on_the_theorem_falls(
    model: type[HistoryOfContract], lost: str
) -> None:
    assert outcome(model, lost) == "refuted"


SEEN_FIRST = Rule(((PUBLISHED, PUBLISHED),), ((GIVEN, GIVEN),))
"""Forgets that the early one may have been given before."""

HAD_BEGUN = Rule(((PUBLISHED, PUBLISHED), (PUBLISHED, GIVEN)), ((GIVEN, LEFT),))
"""Takes an old message for one that has waited since its publish, though it may have been given."""

IN_ANY_ORDER = Rule(((BEGUN, GIVEN),), ((GIVEN, LEFT),))
"""Takes the later message for the first."""


NOT_YET_SEEN = Rule(((BEGUN, GIVEN),), ((GIVEN, GIVEN),))
"""Takes a message that may have left for one that waits, until its delivery was received."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "hasty",
    [
        NOT_YET_SEEN,
        Rule(((PUBLISHED, GIVEN),), ((GIVEN, LEFT),)),
        Rule((), ((GIVEN, LEFT),)),
    ],
)
def test_a_consumer_that_waits_at_a_moment_is_not_guessed(
    hasty: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_of_contract, "TAKEN_WHILE_SOME_WAITED", hasty)

    class Hasty(HistoryOfContract):
        """The same contract, under a rule that is wrong."""

    assert outcome(Hasty, "no-moment-is-one-at-which-some-waited") == "refuted"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "hasty"),
    [
        ("OVERTAKES_AN_EQUAL", SEEN_FIRST),
        ("OVERTAKES_WHAT_RETURNED", HAD_BEGUN),
        ("OVERTAKES_WHAT_RETURNED", IN_ANY_ORDER),
        ("TAKEN_WHILE_ANOTHER_WAITED", Rule(((PUBLISHED, GIVEN),), ((GIVEN, LEFT),))),
    ],
)
def test_a_rule_that_knows_too_much_is_refuted(
    name: str, hasty: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_of_contract, name, hasty)

    class Hasty(HistoryOfContract):
        """The same contract, under a rule that is wrong."""

    assert outcome(Hasty, "no-rule-is-shown") == "refuted"


def test_two_may_have_had_a_message_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lemmas, "HELD_BY_TWO", Rule(((GIVEN, GIVEN),), ()))

    class Hasty(HoldsOfContract):
        """The same contract, under a rule that no message may be given twice."""

    assert outcome(Hasty, "no-two-hold-a-message") == "refuted"


def interval(published: tuple[int, int], given: tuple[int, int], begun: int = 0) -> WaitingInterval:
    nothing = Span(0, 0)
    waited = Span(begun, begun)
    return WaitingInterval(
        Span(*published), waited, Span(*given), Span(*given), place=nothing, back=nothing
    )


def test_a_rule_may_be_shown_by_one_message_after_the_other() -> None:
    late = interval((0, 0), (5, 20))
    a, b = interval((0, 1), (12, 13), begun=1), interval((0, 9), (30, 30), begun=9)
    assert not any(TAKEN_WHILE_SOME_WAITED.shown_by(late, each) for each in (a, b))
    assert TAKEN_WHILE_SOME_WAITED.shown_at_each_moment(late, [a, b])
    assert not TAKEN_WHILE_SOME_WAITED.shown_at_each_moment(late, [a])
    assert not TAKEN_WHILE_SOME_WAITED.shown_at_each_moment(late, [])
    came_later = interval((0, 12), (30, 30), begun=12)
    assert not TAKEN_WHILE_SOME_WAITED.shown_at_each_moment(late, [a, came_later])


def test_a_rule_asks_for_certainty() -> None:
    rule = OVERTAKES_AN_EQUAL
    early, late = interval((0, 1), (8, 9)), interval((2, 3), (4, 7))
    assert rule.shown_by(late, early)
    assert not rule.shown_by(early, late)
    assert not rule.shown_by(interval((1, 3), (4, 7)), early)  # it may have been published first
    assert not rule.shown_by(interval((2, 3), (4, 8)), early)  # it may have been given later
