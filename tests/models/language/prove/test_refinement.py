"""Refinements and swaps: the true ones are proved, and a wrong word in them is refuted."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from brokerproof.checks.commands.proof_lines import (
    refinement_lines,
    requirement_lines,
    sum_line,
)
from brokerproof.models.contract import core as contract
from brokerproof.models.contract import swaps
from brokerproof.models.contract.core import Contract
from brokerproof.models.language import (
    FALSE,
    Bool,
    Map,
    ModelError,
    action,
    forall,
    initial,
    ite,
    require,
)
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.commutation import pair
from brokerproof.models.language.prove.refinement import (
    Assumption,
    LeftOut,
    Refinement,
    RefinementProof,
    Witness,
    does,
    stutters,
)
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel, ProgressingQueue
from brokerproof.models.qpid.pull.pull_queue import PullQueue
from brokerproof.models.qpid.pull.pull_queue_refines_contract import (
    PULL_QUEUE_REFINES_CONTRACT as GOOD,
)
from brokerproof.models.qpid.pull.pull_queue_refines_contract import RememberingPullQueue


def refuted(refinement: Refinement, *only: str) -> dict[tuple[str, str], RefinementProof]:
    """Return the unproved obligations, by action."""
    proof = bind(refinement).proof(only)
    return {(a.action, a.name): proof for a in proof.answers if a.outcome != "proved"}


def test_the_queue_that_consumers_pull_from_refines_the_contract() -> None:
    proof = bind(GOOD).proof()
    assert proof.complete
    assert [label for label, _ in proof.left_out] == ["browser-once-by-priority"]
    assert proof.assumptions[0].startswith("that a browser that subscribes again is another one")
    assert proof.assumptions[1].startswith("that each consumer with room wants messages")
    assert [text.partition(":")[0] for text in proof.assumptions[2:]] == ["least"]
    assert proof.never == ("rest",)
    lines = list(refinement_lines(proof))
    assert "    never taken: rest" in lines
    assert f"    assuming {proof.assumptions[-1]}" in lines


def test_each_requirement_is_said_to_be_proved_or_not() -> None:
    proof = bind(GOOD).proof(("deliver", "browse", "final_drain"))
    hearts = ("nothing-lost", "priority-order", "release-rewinds", "browser-never-rewound")
    assert {proof.standing(each) for each in (*hearts, "settled-once")} == {"proved"}
    assert proof.standing("credit-not-exceeded") == "by construction"
    assert proof.standing("get-finds") == "no step"
    labelled = {"nothing-lost": ("final_drain",), "get-finds": ("get_nothing",)}
    assert list(requirement_lines(proof, labelled))[1:] == [
        "      nothing-lost  proved: final_drain",
        "      get-finds     no step, since it never takes get_nothing",
    ]
    standings = {each: {"pull-queue": proof.standing(each)} for each in labelled}
    assert sum_line(Counter(proved=3, refuted=1), standings).startswith(
        "4 statements of models: 3 proved, 1 refuted; 2 requirements of the contract: 1 proved (in "
        "part where a line says so), 1 of no algorithm"
    )
    assert sum_line(Counter(proved=3), {}) == "3 statements of models: 3 proved"


@pytest.mark.thorough
def test_a_requirement_that_is_not_kept_is_said_to_be_refuted() -> None:
    proof = bind(of_another_queue(Hasty, HastyRemembering)).proof(("final_drain",))
    assert proof.standing("nothing-lost") == "refuted"
    said = sum_line(
        Counter(proved=1), {"nothing-lost": {"pull-queue": proof.standing("nothing-lost")}}
    )
    assert said.endswith("; 1 requirements of the contract: 1 refuted or unknown")


def test_a_wrong_abstraction_is_refuted_with_a_step() -> None:
    def nothing_is_done_with(queue: RememberingPullQueue, entry: Entry) -> contract.Status:
        there = ite(
            queue.status[entry] == Status.AVAILABLE,
            contract.Status.AVAILABLE,
            contract.Status.ACQUIRED,
        )
        absent = (queue.status[entry] == Status.ABSENT) | (entry == queue.head)
        return ite(absent, contract.Status.ABSENT, there)

    wrong = dict(GOOD.abstraction) | {"status": nothing_is_done_with}
    found = refuted(dataclasses.replace(GOOD, abstraction=wrong), "acknowledge")
    assert ("acknowledge", "status") in found
    [answer] = [
        a
        for a in found["acknowledge", "status"].answers
        if (a.action, a.name) == ("acknowledge", "status")
    ]
    assert [step.action for step in answer.witness] == ["", "acknowledge"]


def test_a_wrong_witness_is_refuted() -> None:
    def silent(_queue: RememberingPullQueue, _consumer: Subscription, _entry: Entry) -> Witness:
        return stutters()

    def unflagged(_queue: RememberingPullQueue, consumer: Subscription, entry: Entry) -> Witness:
        return does("deliver", consumer, entry, FALSE)

    wrong = dict(GOOD.witnesses) | {
        "release": silent,
        "deliver": unflagged,
    }
    found = refuted(dataclasses.replace(GOOD, witnesses=wrong), "release", "deliver")
    assert ("release", "status stays") in found
    assert ("deliver", "redelivered-flag") in found


def test_what_is_left_out_in_vain_is_told() -> None:
    def always(queue: RememberingPullQueue, *_: object) -> Bool:
        return ~queue.fifo | queue.fifo

    vain = LeftOut("nothing-invented", always, "for no reason")
    left_out = (*GOOD.left_out, vain)
    found = refuted(dataclasses.replace(GOOD, left_out=left_out), "deliver")
    assert ("deliver", "nothing-invented") in found


class Unforgiving(Contract):
    """A contract in which an arrival does not change the messages behind a browser's place."""

    @action
    def publish(self, entry: contract.Entry) -> None:
        """Let messages from the arrival on be repeated, and still count as behind."""
        require(self.status[entry] == contract.Status.ABSENT)
        self.status[entry] = contract.Status.AVAILABLE
        self.may_repeat = self.may_repeat.map(
            lambda c, f, old: (
                old
                | (
                    ((f == entry) | self.before(entry, f))
                    & ~self.fifo[self.home[f]]
                    & self.consuming[c]
                )
            )
        )


@pytest.mark.thorough
def test_what_an_arrival_leaves_behind_a_browser_would_be_charged_wrongly() -> None:
    found = refuted(dataclasses.replace(GOOD, abstract=Unforgiving), "")
    assert set(found) == {("", "an-arrival-is-behind-no-browser")}
    [lost] = [a for a in next(iter(found.values())).answers if a.outcome != "proved"]
    assert [step.action for step in lost.witness] == ["", "insert"]


class Hasty(PullQueue):
    """A queue that announces rest, or emptiness, at any time."""

    @action
    def come_to_rest(self) -> None:
        """Say so at any time."""

    @action
    def find_nothing(self, consumer: Subscription) -> None:
        """Say so although there may be a candidate."""
        require(self.active[consumer] & ~self.browser[consumer])


class HastyRemembering(Hasty, RememberingPullQueue):
    """The same with all that the contract remembers of it."""


class WithoutLeast(PullQueue):
    """A queue that may have something ahead and yet no first thing ahead."""

    @action
    def find_nothing(self, consumer: Subscription) -> None:
        """There is no candidate."""
        require(self.nothing_arrives())
        require(self.active[consumer] & ~self.browser[consumer])
        require(forall(Entry, lambda e: ~self.candidate(consumer, e)))


class WithoutLeastRemembering(WithoutLeast, RememberingPullQueue):
    """The same with all that the contract remembers of it."""


class Abandoning(PullQueue):
    """A queue that takes no subscription back to the messages of a closed channel."""

    @action
    def close_channel(self, which: Channel, first: Entry) -> None:
        """Release everything, and leave the pointers where they are."""
        require(self.goes_back(which, first))
        self.status = self.status.map(
            lambda e, old: ite(self.goes_back(which, e), Status.AVAILABLE, old)
        )
        self._leave(which)


class AbandoningRemembering(Abandoning, RememberingPullQueue):
    """The same with all that the contract remembers of it."""


class Jumping(PullQueue):
    """A queue in which a message may arrive ahead of its equals, first in first out or not."""

    @action
    def insert(self, entry: Entry) -> None:
        """Arrive anywhere."""
        super(ProgressingQueue, self).insert(entry)


class JumpingRemembering(Jumping, RememberingPullQueue):
    """The same with all that the contract remembers of it."""


def of_another_queue(
    concrete: type[PullQueue], remembering: type[RememberingPullQueue]
) -> Refinement:
    """Return the same refinement of a queue that is written otherwise."""
    return dataclasses.replace(GOOD, concrete=concrete, remembering=remembering)


@pytest.mark.thorough
def test_an_arrival_ahead_of_its_equals_is_no_publish_and_browsers_are_in_disorder() -> None:
    found = refuted(of_another_queue(Jumping, JumpingRemembering), "", "insert")
    assert ("", "nothing-overtakes-first-in-first-out") in found
    assert ("insert", "guard 2 of publish") in found


def test_history_that_hinders_a_step_is_refused() -> None:
    class Hindering(RememberingPullQueue):
        """A history that forbids a second release of a message."""

        @action
        def release(self, consumer: Subscription, entry: Entry) -> None:
            """Release it once at most."""
            require(self.origin[entry] == contract.Origin.PUBLISHED)
            super().release(consumer, entry)

    class StartingElsewhere(RememberingPullQueue):
        """A history that begins with a queue that is not the concrete one's."""

        @initial
        def empty(self) -> None:
            """All are subscribed already."""
            super().empty()
            self.active.fill(True)

    class Adding(RememberingPullQueue):
        """A history with a step of its own."""

        @action
        def forget(self) -> None:
            """Forget the shown messages."""
            self.ever_shown.fill(False)

    class Inventing(RememberingPullQueue):
        """A history of something that the contract does not have."""

        weather: Map[Entry, Bool]

        @initial
        def empty(self) -> None:
            """No entry has seen rain."""
            super().empty()
            self.weather.fill(False)

    for remembering, complaint in (
        (Inventing, "weather is in neither model, so it is no history"),
        (Hindering, "release is not the concrete model's: history hinders no step"),
        (StartingElsewhere, "the history changes how the concrete model starts"),
        (Adding, "the history adds or takes away actions"),
    ):
        with pytest.raises(ModelError, match=complaint):
            bind(dataclasses.replace(GOOD, remembering=remembering))


def test_what_holds_by_construction_is_told_from_what_is_proved() -> None:
    proof = bind(GOOD).proof(("deliver",))
    trivial = {answer.name for answer in proof.answers if answer.by_construction}
    assert {"credit-not-exceeded", "holder"} <= trivial
    assert not {"nothing-invented", "release-rewinds", "right-queue", "status"} & trivial
    assert "limited is false" in proof.fixed
    assert "home is queue" in proof.fixed
    assert not any(text.startswith("status") for text in proof.fixed)
    [line] = [line for line in refinement_lines(proof) if line.startswith("    deliver")]
    assert f"24 of 24 proved, {len(trivial)} of them by construction" in line


@pytest.mark.thorough
def test_a_queue_that_says_too_early_that_it_is_done_is_refuted() -> None:
    hasty = of_another_queue(Hasty, HastyRemembering)
    found = refuted(hasty, "come_to_rest", "find_nothing", "final_drain")
    assert set(found) == {
        ("final_drain", "nothing-lost"),
        ("final_drain", "settled-once"),
        ("final_drain", "close-releases"),
        ("final_drain", "browser-takes-nothing"),
        ("come_to_rest", "quiescence"),
        ("come_to_rest", "browser-sees-all"),
        ("find_nothing", "get-finds"),
    }
    answers = next(iter(found.values())).answers
    assert {a.outcome for a in answers if (a.action, a.name) in found} == {"refuted"}


@pytest.mark.thorough
def test_without_a_least_element_nothing_is_refuted_and_nothing_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("brokerproof.models.language.prove.z3_queries.STEPS_MAX", 3_000_000)
    found = refuted(of_another_queue(WithoutLeast, WithoutLeastRemembering), "find_nothing")
    assert set(found) == {("find_nothing", "get-finds")}
    [answer] = [a for p in found.values() for a in p.answers if a.outcome != "proved"]
    assert not answer.witness
    assert answer.reason.startswith("no refutation with up to 5 elements")


@pytest.mark.thorough
def test_a_close_must_move_back_the_pointers_past_what_its_channel_held() -> None:
    found = refuted(of_another_queue(Abandoning, AbandoningRemembering), "")
    assert ("", "pointer-passes-nothing-of-interest") in found


@pytest.mark.thorough
def test_a_step_that_its_assumption_excludes_is_told() -> None:
    never = Assumption(
        "that no consumer subscribes", lambda queue, consumer: queue.active[consumer]
    )
    assumptions = {**GOOD.assumptions, "subscribe": never}
    found = refuted(dataclasses.replace(GOOD, assumptions=assumptions), "subscribe")
    assert set(found) == {("subscribe", "it can happen")}


@pytest.mark.parametrize(("second", "where", "side"), swaps.SWAPPED)
def test_a_delivery_is_swapped_with(second: str, where: str, side: swaps.Side) -> None:
    assert pair(trace(Contract), "deliver", second, side).commute().complete, where


@pytest.mark.parametrize(("second", "where", "side"), swaps.NOT_SWAPPED)
def test_a_delivery_is_not_swapped_with(second: str, where: str, side: swaps.Side) -> None:
    found = pair(trace(Contract), "deliver", second, side).commute()
    assert not found.complete, where
    assert [step.action for step in found.witness] == ["", "deliver"]


def test_one_message_is_not_shown_after_it_was_taken() -> None:
    _, _, side = swaps.NOT_SWAPPED[0]
    found = pair(trace(Contract), "deliver", "browse", side).commute()
    assert (found.leaves_possible, found.labels) == ("refuted", ("browser-sees-available",))


def test_two_deliveries_to_one_consumer_are_not_swapped() -> None:
    found = pair(
        trace(Contract), "deliver", "deliver", lambda _w, e, _f, _o, its, _g: e != its
    ).commute()
    assert found.leaves_possible == "refuted"
    assert found.labels == ("credit-not-exceeded",)
