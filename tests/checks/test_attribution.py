"""The tables of attribution speak of requirements that exist, and of guards that have witnesses."""

from __future__ import annotations

from brokerproof.checks.attribution import (
    KINDS,
    LATE_OR_GONE,
    NOT_YET_OR_NO_LONGER,
    TOLD_TOO_LATE,
    least,
)
from brokerproof.checks.book import CONTRACT
from brokerproof.models.language.pointwise import Blame
from brokerproof.spec.requirements import catalogue


def test_every_promise_in_the_tables_is_in_the_catalogue() -> None:
    named = LATE_OR_GONE.union(NOT_YET_OR_NO_LONGER, TOLD_TOO_LATE, *KINDS)
    assert named <= catalogue().keys()
    assert not named | {"nonsense"} <= catalogue().keys()


def test_what_a_census_decides_is_every_guard_about_a_message_that_was_not_given() -> None:
    """Guards of the broker's own actions that look at other entries are about what was overdue."""
    about_others = {
        label
        for name in ("deliver", "get", "get_nothing", "browse", "quiesce")
        for label, _ in CONTRACT.actions[name].each
    }
    assert about_others == LATE_OR_GONE


def test_a_message_that_was_not_there_yet_is_the_last_thing_to_be_blamed() -> None:
    too_early: Blame = {"nothing-invented": ()}
    out_of_order: Blame = {"fifo-order": (0,), "get-finds": (1,)}
    assert least([out_of_order, too_early]) == out_of_order
    assert least([too_early]) == too_early


def test_of_equal_explanations_the_latest_placement_counts() -> None:
    assert least([{"fifo-order": (0,)}, {"nothing-twice": ()}]) == {"nothing-twice": ()}
    assert least([{"fifo-order": (0,)}, {"": ()}]) == {"fifo-order": (0,)}
