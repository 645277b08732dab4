"""Messages given again and messages lost: the history decides the name of the fault."""

from __future__ import annotations

from typing import Literal

import pytest
from msgspec.structs import replace

from brokerproof.pipeline.alone import judged_alone
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import given, published, recorded, table_of
from tests.pipeline.rules.naive import accused


def given_again(
    settled: Literal["acknowledge", "release"] | None, *, told: bool, answered: bool = True
) -> list[Record]:
    """Return a history in which m goes to a, is settled or not, and then goes to b."""
    records = [
        recorded("declare", 0, 1),
        published("m", 2, 3),
        *(
            given("m", start, start + 1, subscriber=name, redelivered=again)
            for name, start, again in (("a", 10, False), ("b", 30, told))
        ),
    ]
    if settled is not None:
        end, outcome = (21, "ok") if answered else (None, "unknown")
        of_a = {"message": "m", "consumer": "a", "position": 0}
        records.append(recorded(settled, 20, end, outcome=outcome, **of_a))
    return records


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("settled", [None, "acknowledge"])
def test_what_never_came_back_is_given_twice_whatever_its_flag_says(
    settled: Literal["acknowledge"] | None, told: bool
) -> None:
    assert accused(given_again(settled, told=told)) == {"nothing-twice"}


@pytest.mark.parametrize("answered", [False, True])
def test_the_flag_is_wrong_where_the_message_may_have_come_back(answered: bool) -> None:
    assert accused(given_again("release", told=False, answered=answered)) == {"redelivered-flag"}
    assert accused(given_again("release", told=True, answered=answered)) == set()


def test_the_flag_is_asked_only_of_what_may_have_come_back() -> None:
    asked = []
    for settled in (None, "release"):
        records = given_again(settled, told=True)
        table = table_of(records)
        asked.append(judged_alone(table).coverage.asked["redelivered-flag"])
    assert asked == [0, 1]


VIEWED = given("m", 10, 11, subscriber="b", mode="browse")
DRAINED = recorded("drained", 100, 101)


@pytest.mark.parametrize("seen", [4, 10])
def test_what_was_lost_after_a_view_is_lost_and_may_be_with_the_browser(seen: int) -> None:
    view = replace(VIEWED, start=seen, end=seen + 1)
    records = [recorded("declare", 0, 1), published("m", 2, 3), view, DRAINED]
    assert accused(records) == {"nothing-lost", "browser-takes-nothing"}
    assert accused([each for each in records if each is not view]) == {"nothing-lost"}


@pytest.mark.parametrize(
    ("settled", "broken"), [("release", "nothing-lost"), (None, "close-releases")]
)
def test_a_view_took_nothing_of_what_was_given_and_returned_after_it(
    settled: Literal["release"] | None, broken: str
) -> None:
    records = [
        *(recorded("declare", 0, 1), published("m", 2, 3), VIEWED, given("m", 20, 21)),
        recorded("close", 40, 41, channel="channel of c"),
        DRAINED,
    ]
    if settled is not None:
        records.append(recorded(settled, 30, 31, message="m", consumer="c", position=0))
    assert accused(records) == {broken}


@pytest.mark.parametrize(("restarted", "broken"), [(8, set()), (12, {"nothing-lost"})])
def test_a_crash_that_may_have_been_before_a_consumer_came_did_not_end_it(
    restarted: int, broken: set[str]
) -> None:
    came = {"consumer": "late", "channel": "ch", "mode": "automatic"}
    records = [
        recorded("declare", 0, 1, durable=True),
        recorded("consume", 6, 11, **came),
        *(recorded("crash", restarted, restarted + 1), recorded("restart", 14, 15)),
        *(published("m", 30, 31, persistent=True), DRAINED),
        recorded("close", 200, 201, channel="ch"),
    ]
    assert accused(records) == broken


@pytest.mark.parametrize(("deleted", "broken"), [(False, set()), (True, {"nothing-lost"})])
def test_a_consumer_of_a_queue_that_was_deleted_explains_no_later_loss(
    deleted: bool, broken: set[str]
) -> None:
    came = {"consumer": "late", "channel": "ch", "mode": "automatic"}
    anew = [recorded("delete", 20, 21), recorded("declare", 22, 23)]
    records = [
        recorded("declare", 0, 1),
        recorded("consume", 10, 11, **came),
        *(anew if deleted else ()),
        *(published("m", 30, 31), DRAINED),
        recorded("close", 200, None, channel="ch", outcome="unknown"),
    ]
    assert accused(records) == broken


@pytest.mark.parametrize(("subscribed", "broken"), [(50, set()), (110, {"nothing-lost"})])
def test_a_consumer_that_came_after_the_loss_does_not_explain_it(
    subscribed: int, broken: set[str]
) -> None:
    came = {"consumer": "late", "channel": "ch", "mode": "automatic"}
    records = [
        *(recorded("declare", 0, 1), published("m", 2, 3), DRAINED),
        recorded("consume", subscribed, subscribed + 1, **came),
        recorded("close", 200, 201, channel="ch"),
    ]
    assert accused(records) == broken
