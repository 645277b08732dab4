"""A get without an answer explains one loss: k of them explain k, and not one more."""

from __future__ import annotations

import itertools
import random

import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.rules.unanswered_gets import explained
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import published, recorded, table_of
from tests.pipeline.rules.naive import judged_naively


def losses(many: int, *, gets: int, channel: str | None = None) -> list[Record]:
    """Publish messages, ask for some without an answer, and find the queue drained."""
    return [
        recorded("declare", 0, 0),
        *(published(f"m{number}", 1 + number, 2 + number) for number in range(many)),
        *(a_get(number, 200 + number, channel) for number in range(gets)),
        recorded("drained", 900, 901),
    ]


def a_get(number: int, start: int, channel: str | None = None, **more: object) -> Record:
    fields = {"mode": "automatic", "outcome": "unknown", **more}
    return recorded("get", start, None, consumer=f"get {number}", channel=channel, **fields)


def lost(records: list[Record]) -> list[str]:
    """Return the messages that are reported as lost, on which both judges agree."""
    found = judged_alone(table_of(records)).violations.to_pylist()
    naive = {(each.message, each.rule, each.requirement) for each in judged_naively(records)}
    assert {(each["message"], each["rule"], each["requirement"]) for each in found} == naive
    assert {each["requirement"] for each in found} <= {"nothing-lost"}
    return [each["message"] for each in found]


def test_one_get_without_an_answer_explains_one_loss_of_a_hundred() -> None:
    assert len(lost(losses(100, gets=1))) == 99


@pytest.mark.parametrize("many", [1, 2, 5, 20])
def test_as_many_gets_as_losses_explain_them_all_and_one_less_does_not(many: int) -> None:
    assert lost(losses(many, gets=many)) == []
    assert lost(losses(many, gets=many + 3)) == []
    assert len(lost(losses(many, gets=many - 1))) == 1


def test_a_get_of_another_queue_or_run_explains_nothing() -> None:
    for other in ({"queue": "other"}, {"run": "another"}):
        assert lost([*losses(1, gets=0), a_get(0, 200, **other)]) == ["m0"]


def test_a_get_that_began_after_the_queue_was_drained_explains_nothing() -> None:
    assert lost([*losses(1, gets=0), a_get(0, 902)]) == ["m0"]
    assert lost([*losses(1, gets=0), a_get(0, 901)]) == []


def test_a_get_whose_channel_had_closed_explains_no_later_message() -> None:
    closed = recorded("close", 300, 301, channel="ch")
    late = published("late", 302, 303)
    assert lost([*losses(0, gets=1, channel="ch"), closed, late]) == ["late"]
    assert lost([*losses(0, gets=1, channel="other"), closed, late]) == []


def test_a_get_that_held_what_it_took_gave_it_back_when_its_channel_closed() -> None:
    closed = recorded("close", 300, 301, channel="ch")
    held = a_get(0, 200, "ch", mode="acknowledge")
    assert lost([*losses(1, gets=0), held, closed]) == ["m0"]
    assert lost([*losses(1, gets=0), held]) == []


def test_a_message_that_was_given_later_was_not_taken_by_a_get() -> None:
    later = recorded("deliver", 950, 960, message="m0", consumer="c", position=0)
    assert lost([*losses(2, gets=1), later]) == ["m0"]


def most_explained(some: list[tuple[int, int]], gets: list[tuple[int, int]]) -> int:
    """Return how many losses gets can explain, by trying every assignment."""
    if not some:
        return 0
    (start, end), *others = some
    best = most_explained(others, gets)
    for number, get in enumerate(gets):
        if get[0] <= end and start <= get[1]:
            left = gets[:number] + gets[number + 1 :]
            best = max(best, 1 + most_explained(others, left))
    return best


def test_no_choice_explains_more_losses() -> None:
    chance = random.Random(0)  # noqa: S311
    for _, many, gets in itertools.product(range(12), range(6), range(5)):

        def spans(size: int) -> list[tuple[int, int]]:
            drawn = [sorted((chance.randrange(12), chance.randrange(12))) for _ in range(size)]
            return [(start, end) for start, end in drawn]

        some, of_gets = spans(many), spans(gets)
        assert explained(some, of_gets).sum() == most_explained(some, of_gets)
