"""What the rules report no choice of moments explains; what they miss is counted.

As a program it measures the share of wrong small histories that the rules miss::

    python tests/pipeline/rules/test_rules_are_sound.py --histories 20000
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest
from msgspec.structs import replace

from tests.pipeline.recorders import as_streams, blurred, given, published

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from brokerproof.models.contract.history import GIVEN, LEFT, PUBLISHED, Rule
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.spec.histories import Record, Result
from tests.pipeline.altered import CLASSES, altered_history
from tests.pipeline.random_histories import simulated
from tests.pipeline.rules.brute_force import EVENTS_MAX, can_be_explained
from tests.pipeline.rules.dense import dense_history
from tests.pipeline.rules.naive import accused, judged_naively

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.pipeline.plain_queues import Shape

COMPLETE = ("first in, first out", "empty gets", "drained")
"""The classes of histories of which the rules miss none that is wrong."""


@dataclass
class Measured:
    """How many histories of a class are right, and wrong, and how the rules judged them.

    `alarms` and `missed` are the seeds of the right ones that they accuse, and of the wrong ones
    that they let pass.
    """

    right: int = 0
    wrong: int = 0
    alarms: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)


SOURCES: Final[dict[str, Callable[[int, Shape], list[Record] | None]]] = {
    "runs altered": altered_history,
    "spans thrown": dense_history,
}
"""Where small histories come from: runs that were altered, and spans without any queue."""


def measured(name: str, seeds: range, source: str) -> Measured:
    """Judge random small histories by the rules, and by trying all moments."""
    counted = Measured()
    for seed in seeds:
        records = SOURCES[source](seed, CLASSES[name])
        if records is None:
            continue
        violations = judged_naively(records)
        if can_be_explained(records):
            counted.right += 1
            if violations:
                counted.alarms.append(seed)
        else:
            counted.wrong += 1
            if not violations:
                counted.missed.append(seed)
    return counted


@pytest.mark.each_time(5)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", CLASSES)
def test_what_is_reported_cannot_be_explained(name: str, source: str) -> None:
    counted = measured(name, range(400), source)
    assert counted.right > 30
    assert counted.wrong > 100
    assert counted.alarms == []


@pytest.mark.each_time(2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", COMPLETE)
def test_where_the_rules_are_complete_no_wrong_history_is_missed(name: str, source: str) -> None:
    counted = measured(name, range(10_000, 12_000), source)
    assert counted.wrong > 500
    assert counted.missed == []


def test_an_eager_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    eager = Rule(((PUBLISHED, GIVEN),), ((GIVEN, LEFT),))
    known = RULES["overtakes-an-equal"]
    monkeypatch.setitem(RULES, known.name, dataclasses.replace(known, formula=eager))
    assert measured(COMPLETE[0], range(100), "runs altered").alarms


def test_a_lazy_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = Rule(((PUBLISHED, PUBLISHED), (LEFT, PUBLISHED)), ((GIVEN, LEFT),))
    known = RULES["overtakes-an-equal"]
    monkeypatch.setitem(RULES, known.name, dataclasses.replace(known, formula=lazy))
    assert measured(COMPLETE[0], range(100), "runs altered").missed


def test_without_the_rules_about_turns_something_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Rule, "shown_at_each_moment", lambda *_: False)
    assert measured("drained", range(1200, 1500), "spans thrown").missed


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_sound_queue_did_can_be_explained(name: str) -> None:
    for seed in range(100):
        happened = simulated(seed, CLASSES[name]).happened
        for natural in (False, True):
            records = blurred(happened, seed, 40, natural=natural)
            if len(records) <= EVENTS_MAX:
                assert can_be_explained(records)


def _settled(kind: Literal["acknowledge", "release"], message: str, at: int) -> Record:
    return Record(op=kind, queue="q", message=message, consumer="c", position=0, start=at, end=at)


def _closed(at: int) -> Record:
    return Record(op="close", channel="channel of c", start=at, end=at)


def _found_nothing(start: int, end: int) -> Record:
    return Record(op="empty", queue="q", consumer="g", start=start, end=end)


SPARED: dict[str, list[Record]] = {
    "what was held when its queue was deleted does not return": [
        published("a", 1, 1),
        given("a", 2, 2),
        Record(op="delete", queue="q", start=3, end=3),
        _closed(4),
        Record(op="drained", queue="q", start=5, end=5),
    ],
    "after a crash it may be told as new": [
        Record(op="declare", queue="q", start=0, end=0, durable=True),
        published("a", 1, 1, persistent=True),
        given("a", 2, 2),
        Record(op="crash", start=3, end=3),
        Record(op="restart", start=4, end=4),
        given("a", 5, 5, subscriber="d", redelivered=False),
    ],
    "a settlement after the channel closed is in vain": [
        published("a", 1, 1),
        given("a", 2, 2),
        _closed(3),
        _settled("acknowledge", "a", 4),
        given("a", 5, 5, subscriber="d", redelivered=True),
    ],
    "what returned to another place a browser may see later": [
        Record(op="declare", queue="q", start=0, end=0, returns="elsewhere"),
        published("a", 1, 1),
        published("b", 2, 2),
        given("a", 3, 3),
        _settled("release", "a", 4),
        given("b", 5, 5, subscriber="e", mode="browse"),
        given("a", 6, 6, position=1, subscriber="e", mode="browse"),
    ],
    "a purge that was not answered may never have ended": [
        published("a", 2, 2),
        Record(op="purge", queue="q", start=3, end=4, outcome="unknown"),
        given("a", 5, 5),
    ],
}
"""Histories that a sound queue can have made, though a hasty rule would accuse it."""


@pytest.mark.parametrize("why", SPARED)
def test_a_history_with_an_explanation_is_spared(why: str) -> None:
    records = SPARED[why]
    assert can_be_explained(records)
    assert accused(records) == set()


def _shown_again(returns: Literal["original", "elsewhere"], *between: Record) -> list[Record]:
    """Show a browser a message, let something happen, and show the message again."""
    shown = [
        given("a", at, at, position=position, subscriber="e", mode="browse")
        for at, position in ((5, 0), (20, 1))
    ]
    return [
        Record(op="declare", queue="q", start=0, end=0, returns=returns),
        published("a", 1, 1),
        shown[0],
        *between,
        shown[1],
    ]


RETURNED = [given("a", 7, 7), _settled("release", "a", 8)]
LEFT_UNSEEN = [
    Record(op="consume", queue="q", consumer="gone", channel="gone", start=0, end=0),
    Record(op="close", channel="gone", start=7, end=8),
]


def test_a_browser_may_see_a_message_again_at_its_new_place() -> None:
    records = _shown_again("elsewhere", *RETURNED)
    assert can_be_explained(records)
    assert accused(records) == set()
    assert accused(_shown_again("elsewhere", *LEFT_UNSEEN)) == set()


def test_a_browser_may_not_see_a_message_again_that_kept_its_place() -> None:
    broken = {
        "browser-never-rewound": _shown_again("original", *RETURNED),
        "browser-once": _shown_again("elsewhere"),
    }
    for requirement, records in broken.items():
        assert not can_be_explained(records)
        assert accused(records) == {requirement}
    assert accused(_shown_again("original", *LEFT_UNSEEN)) == {"browser-once"}


def test_a_return_before_the_first_view_is_no_reason_for_a_second() -> None:
    before = [given("a", 2, 2), _settled("release", "a", 3)]
    records = _shown_again("elsewhere", *before)
    assert not can_be_explained(records)
    assert accused(records) == {"browser-once"}


def _given_twice(first: int, second: int) -> list[Record]:
    """Give a message to d, return it, and give it to c for good, seen at two times."""
    return [
        published("a", 1, 1),
        given("a", 2, first, subscriber="d"),
        Record(op="close", channel="channel of d", start=first, end=first),
        given("a", 2, second, subscriber="c", mode="automatic"),
        Record(op="drained", queue="q", start=9, end=9),
    ]


def test_deliveries_seen_at_one_time_may_have_been_made_in_any_order() -> None:
    """The name of the one that was made last comes first."""
    records = _given_twice(5, 5)
    assert can_be_explained(records)
    assert accused(records) == set()


def test_what_returned_after_the_last_delivery_is_lost() -> None:
    assert "close-releases" in accused(_given_twice(6, 5))


def _lost_in_a_crash(answer: Result, shown_by: Sequence[Record]) -> list[Record]:
    """Give a persistent message, let the broker crash, and let it not come back."""
    first = published("a", 1, 2, priority=1, persistent=True)
    if answer != "ok":
        first = replace(first, outcome="unknown", end=None)
    return [
        Record(op="declare", queue="q", start=0, end=0, levels=2, durable=True),
        first,
        given("a", 3, 4, subscriber="d"),
        Record(op="crash", start=5, end=6),
        Record(op="restart", start=7, end=8),
        *shown_by,
    ]


LOSSES: dict[str, list[Record]] = {
    "survives-restart": [Record(op="drained", queue="q", start=20, end=21)],
    "get-finds": [_found_nothing(20, 21)],
    "release-rewinds": [
        published("b", 10, 11, priority=0, persistent=True),
        given("b", 20, 21, subscriber="e"),
    ],
}
"""What shows that a message did not come back, by the promise that is broken."""


@pytest.mark.parametrize("promise", LOSSES)
def test_a_crash_may_lose_a_message_whose_publish_was_not_answered(promise: str) -> None:
    records = _lost_in_a_crash("unknown", LOSSES[promise])
    assert can_be_explained(records)
    assert accused(records) == set()


@pytest.mark.parametrize("promise", LOSSES)
def test_a_crash_may_not_lose_a_message_whose_publish_was_answered(promise: str) -> None:
    records = _lost_in_a_crash("ok", LOSSES[promise])
    assert not can_be_explained(records)
    assert accused(records) == {promise}


def _comes_back(settlement: Record, *, crash: int = 7) -> list[Record]:
    """Settle a delivery, let the broker crash, and let the message be given again."""
    return [
        Record(op="declare", queue="q", start=0, end=0, durable=True),
        published("a", 1, 2, persistent=True),
        given("a", 3, 4),
        settlement,
        Record(op="crash", start=crash, end=8),
        Record(op="restart", start=9, end=10),
        given("a", 11, 12, subscriber="d", redelivered=True),
    ]


@pytest.mark.parametrize("kind", ["acknowledge", "reject"])
def test_what_was_settled_for_good_does_not_come_back_after_a_crash(
    kind: Literal["acknowledge", "reject"],
) -> None:
    records = _comes_back(replace(_settled("acknowledge", "a", 5), op=kind))
    assert not can_be_explained(records)
    assert accused(records) == {"settlement-survives-crash"}


SETTLED_OPENLY = {
    "it had no answer": _comes_back(
        replace(_settled("acknowledge", "a", 5), outcome="unknown", end=None)
    ),
    "it was a release": _comes_back(_settled("release", "a", 5)),
}


@pytest.mark.parametrize("why", SETTLED_OPENLY)
def test_a_crash_may_undo_what_was_not_settled_for_good_before_it(why: str) -> None:
    assert can_be_explained(SETTLED_OPENLY[why])
    assert accused(SETTLED_OPENLY[why]) == set()


def test_a_settlement_that_was_answered_while_the_broker_crashed_is_not_judged() -> None:
    assert accused(_comes_back(replace(_settled("acknowledge", "a", 5), end=8), crash=6)) == set()


def test_simulated_crashes_lose_messages_that_were_given_and_whose_publish_was_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that keep each message that may survive are accused of what the simulation does."""
    source, name = "runs altered", "crashes"
    assert measured(name, range(300, 400), source).alarms == []
    monkeypatch.setattr(
        "tests.pipeline.intervals.naive_intervals.Message.survives",
        lambda message, facts: message.publish.persistent and facts.durable("run", message.queue),
    )
    assert measured(name, range(300, 400), source).alarms


def _second_first(*leaving: Record) -> list[Record]:
    """Give b before a, and let something happen before a is given."""
    return [
        Record(op="declare", queue="q", start=0, end=0, durable=True),
        Record(op="consume", queue="q", consumer="gone", channel="gone", start=0, end=0),
        published("a", 1, 2, persistent=True),
        published("b", 3, 4, persistent=True),
        given("b", 5, 6, subscriber="e"),
        *leaving,
        given("a", 11, 12, subscriber="d", redelivered=True),
    ]


CLOSED = Record(op="close", channel="gone", start=7, end=8)
LEAVINGS = {
    "a crash": [Record(op="crash", start=7, end=8), Record(op="restart", start=9, end=10)],
    "a consumer whose channel closed": [CLOSED],
    "a consumer that did not wait for its leave": [
        Record(op="cancel", consumer="gone", start=7, end=8, outcome="unknown"),
        CLOSED,
    ],
    "a channel that was lost": [Record(op="close", channel="other", start=7, outcome="unknown")],
}


@pytest.mark.parametrize("leaving", LEAVINGS)
def test_a_message_on_its_way_to_a_consumer_that_went_may_have_been_given(leaving: str) -> None:
    assert accused(_second_first(*LEAVINGS[leaving])) == set()


def test_a_consumer_that_left_in_order_has_seen_all() -> None:
    left = Record(op="cancel", consumer="gone", start=5, end=6)
    assert accused(_second_first(left, CLOSED)) == {"fifo-order"}
    assert accused(_second_first()) == {"fifo-order"}
    late = Record(op="close", channel="gone", start=13, end=14)
    assert accused(_second_first(late)) == {"fifo-order"}


def test_a_drained_queue_has_lost_its_message_though_a_consumer_leaves_later() -> None:
    records = [
        Record(op="consume", queue="q", consumer="gone", channel="gone", start=0, end=0),
        published("a", 1, 2),
        Record(op="drained", queue="q", start=5, end=6),
        CLOSED,
    ]
    assert accused(records) == {"nothing-lost"}


def test_messages_that_together_leave_no_moment_for_an_empty_get_are_found() -> None:
    """Each alone leaves a moment."""
    records = [
        published("a", 0, 10),
        published("b", 20, 21),
        given("a", 30, 40),
        _found_nothing(15, 50),
        given("b", 60, 61, position=1),
    ]
    assert not can_be_explained(records)
    assert accused(records) == {"get-finds"}
    for name in ("a", "b"):
        others = [each for each in records if each.message != name]
        assert can_be_explained(others)
        assert accused(others) == set()


def test_what_a_stream_says_of_moments_must_stand_in_its_spans() -> None:
    """A recorder that does not write it down is no liar, but hides what is wrong from the rules."""
    records = [
        Record(op="declare", queue="q", start=0, end=0),
        published("a", 0, 1),
        published("b", 2, 3),
        published("c", 0, 9),
        given("c", 10, 11),
        given("a", 0, 12, position=1),
        given("b", 0, 5, subscriber="d"),
    ]
    assert not can_be_explained(records)
    assert judged_naively(records) == set()
    assert judged_naively(as_streams(records)) != set()


def main() -> int:
    """Print how many wrong histories of each class the rules miss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    alarms = 0
    titles = f"{'right':>8}{'wrong':>8}{'missed':>8}{'share':>9}{'alarms':>8}"
    print(f"{'class':22}{'source':14}{titles}")  # noqa: T201
    for name, source in itertools.product(CLASSES, SOURCES):
        counted = measured(name, range(asked.first, asked.first + asked.histories), source)
        share = 100 * len(counted.missed) / max(1, counted.wrong)
        print(  # noqa: T201
            f"{name:22}{source:14}{counted.right:8}{counted.wrong:8}{len(counted.missed):8}{share:8.2f}%"
            f"{len(counted.alarms):8}",
            flush=True,
        )
        alarms += len(counted.alarms)
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
