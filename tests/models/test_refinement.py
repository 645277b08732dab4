"""Refinements and swaps: the true ones are proved, and a wrong word in them is refuted."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models import contract, swaps
from brokerproof.models.contract import Contract
from brokerproof.models.language import FALSE, Bool, ite
from brokerproof.models.language.commutation import commute
from brokerproof.models.language.model import trace
from brokerproof.models.language.refinement import (
    LeftOut,
    Refinement,
    RefinementProof,
    Witness,
    does,
    stutters,
)
from brokerproof.models.language.refining import prove_refinement
from brokerproof.models.pointer_queue import Entry, Status, Subscription
from brokerproof.models.pointer_queue_refines_contract import (
    POINTER_QUEUE_REFINES_CONTRACT as GOOD,
)
from brokerproof.models.pointer_queue_refines_contract import RememberingQueue

pytestmark = pytest.mark.slow


def refuted(refinement: Refinement, *only: str) -> dict[tuple[str, str], RefinementProof]:
    """Return what is not proved, by action and obligation."""
    proof = prove_refinement(refinement, only)
    return {(a.action, a.name): proof for a in proof.answers if a.outcome != "proved"}


def test_the_pointer_queue_refines_the_contract() -> None:
    proof = prove_refinement(GOOD)
    assert proof.complete
    assert [label for label, _ in proof.left_out] == [
        "browser-never-rewound",
        "browser-once-by-priority",
    ]
    assert len(proof.assumptions) == 2


def test_a_wrong_abstraction_is_refuted_with_a_step() -> None:
    def nothing_is_done_with(queue: RememberingQueue, entry: Entry) -> contract.Status:
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
    def silent(_queue: RememberingQueue, _who: Subscription, _entry: Entry) -> Witness:
        return stutters()

    def unflagged(_queue: RememberingQueue, who: Subscription, entry: Entry) -> Witness:
        return does("deliver", who, entry, FALSE)

    wrong = dict(GOOD.witnesses) | {
        "release": silent,
        "deliver": unflagged,
    }
    found = refuted(dataclasses.replace(GOOD, witnesses=wrong), "release", "deliver")
    assert ("release", "status stays") in found
    assert ("deliver", "redelivered-flag") in found


def test_what_is_left_out_in_vain_is_told() -> None:
    def always(queue: RememberingQueue, *_: object) -> Bool:
        return ~queue.fifo | queue.fifo

    vain = LeftOut("nothing-invented", always, "for no reason")
    left_out = (*GOOD.left_out, vain)
    found = refuted(dataclasses.replace(GOOD, left_out=left_out), "deliver")
    assert ("deliver", "nothing-invented") in found


def test_without_the_assumption_about_arrivals_browsers_are_in_disorder() -> None:
    assumptions = {
        "subscribe": GOOD.assumptions["subscribe"],
    }
    found = refuted(dataclasses.replace(GOOD, assumptions=assumptions), "")
    assert ("", "nothing-overtakes-first-in-first-out") in found


@pytest.mark.parametrize(("second", "where", "side"), swaps.SWAPPED)
def test_a_delivery_is_swapped_with(second: str, where: str, side: swaps.Side) -> None:
    assert commute(trace(Contract), "deliver", second, side).complete, where


@pytest.mark.parametrize(("second", "where", "side"), swaps.NOT_SWAPPED)
def test_a_delivery_is_not_swapped_with(second: str, where: str, side: swaps.Side) -> None:
    found = commute(trace(Contract), "deliver", second, side)
    assert not found.complete, where
    assert [step.action for step in found.witness] == ["", "deliver"]


def test_one_message_is_not_shown_after_it_was_taken() -> None:
    _, _, side = swaps.NOT_SWAPPED[0]
    found = commute(trace(Contract), "deliver", "browse", side)
    assert (found.leaves_possible, found.labels) == ("refuted", ("browser-sees-available",))


def test_two_deliveries_to_one_consumer_are_not_swapped() -> None:
    found = commute(trace(Contract), "deliver", "deliver", lambda _w, e, _f, _o, its, _g: e != its)
    assert found.leaves_possible == "refuted"
    assert found.labels == ("credit-not-exceeded",)
