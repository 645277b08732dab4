"""The tables of attribution speak of requirements that exist, and of guards that have witnesses."""

from __future__ import annotations

from brokerproof.checks.oracle.attribution import (
    KINDS,
    LATE_OR_GONE,
    MISSED,
    NOT_YET_OR_NO_LONGER,
    TOLD_TOO_LATE,
    least,
)
from brokerproof.checks.oracle.contracts import CONTRACT, jobs, whole
from brokerproof.models.language.read.pointwise import Blame
from brokerproof.spec.requirements import catalogue


def test_every_promise_in_the_tables_is_in_the_catalogue() -> None:
    named = LATE_OR_GONE.union(NOT_YET_OR_NO_LONGER, TOLD_TOO_LATE, *KINDS)
    assert named <= catalogue().keys()
    assert not named | {"nonsense"} <= catalogue().keys()


def test_what_a_final_drain_decides_is_every_guard_about_a_message_that_was_not_given() -> None:
    """Guards of the broker's own actions that read other entries are about overdue messages."""
    about_others = {
        label
        for contract in (CONTRACT, whole().contract, jobs().contract)
        for name, action in contract.actions.items()
        for label, _ in action.each
        if label and name not in ("publish", "final_drain", "rest")
    }
    # The guard on waiting at an earlier entry reads two entries at once, so it is not entry by
    # entry.
    assert about_others | {"flush-delivers"} == LATE_OR_GONE


def test_what_a_final_drain_says_is_what_the_contract_asks_at_a_final_drain() -> None:
    asked = {label for label, _ in jobs().contract.actions["final_drain"].each}
    assert asked == MISSED


def test_promises_about_turns_that_name_the_same_entries_count_once() -> None:
    twice_taken: Blame = {"nothing-twice": ()}
    overtaken: Blame = {"returns-where-claimed": (0,), "fifo-order": (0,)}
    assert least([twice_taken, overtaken]) == overtaken
    assert least([overtaken, twice_taken]) == twice_taken
    by_another: Blame = {"release-rewinds": (0,), "fifo-order": (1,)}
    assert least([twice_taken, by_another]) == twice_taken


def test_a_message_that_was_not_there_yet_is_the_last_thing_to_be_blamed() -> None:
    too_early: Blame = {"nothing-invented": ()}
    out_of_order: Blame = {"fifo-order": (0,), "get-finds": (1,)}
    assert least([out_of_order, too_early]) == out_of_order
    assert least([too_early]) == too_early


def test_of_equal_explanations_the_latest_placement_counts() -> None:
    assert least([{"fifo-order": (0,)}, {"nothing-twice": ()}]) == {"nothing-twice": ()}
    assert least([{"fifo-order": (0,)}, {"": ()}]) == {"fifo-order": (0,)}
