"""A driver asked again what it was asked before: what differs, and what is only remembered.

Answers that are known are not read again, so the twins here differ where one might not look: in the
id, behind it, or in the order of the fields.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import Drain, Operation, Reset
from tests.candidates.driver.test_candidate import GET, fault_of, ok, reciting


@dataclass(frozen=True)
class Step:
    """An operation that was asked, and the answer to it."""

    operation: Operation
    answer: Answer


TOLD = {"event": "delivered", "delivery": "d0", "consumer": None, "queue": "q0", "message": "m0"}
ONE = Answer((Delivered(delivery="d0", consumer=None, queue="q0", message="m0"),))
PLAYED = [Step(Reset(), Answer()), Step(GET, ONE), Step(Drain(), Answer())]


def played_again(folder: Path, *answers: dict[str, Any] | str) -> tuple[int | None, int]:
    """Return what differs when it is asked again, and how many requests were sent in all."""
    told = TOLD | {"redelivered": False}
    once = ok(), ok(told), ok()
    with reciting(folder, *once, *answers) as (candidate, log):
        assert [candidate.handle(each.operation) for each in PLAYED] == [s.answer for s in PLAYED]
        different = candidate.first_difference(PLAYED)
        return None if different is None else different[0], len(log.read_text().splitlines())


def test_what_is_answered_again_is_no_difference(tmp_path: Path) -> None:
    told = TOLD | {"redelivered": False}
    assert played_again(tmp_path, ok(), ok(told), ok()) == (None, 7)


def test_an_answer_in_another_form_is_the_same_answer(tmp_path: Path) -> None:
    told = {"redelivered": False} | TOLD
    line = json.dumps({"events": [told], "ok": True, "id": 5})
    assert played_again(tmp_path, ok(), line, ok()) == (None, 7)


@pytest.mark.parametrize(
    ("number", "answers"),
    [
        (0, (ok(TOLD | {"redelivered": False}), ok(), ok())),
        (1, (ok(), ok(TOLD | {"redelivered": True}), ok())),
        (1, (ok(), {"ok": False, "error": {"code": "refused", "message": ""}}, ok())),
        (1, (ok(), "nonsense", ok())),
        (1, (ok(), json.dumps({"id": 4, **ok(TOLD | {"redelivered": False})}), ok())),
        (2, (ok(), ok(TOLD | {"redelivered": False}), ok(TOLD | {"redelivered": False}))),
        (2, (ok(), ok(TOLD | {"redelivered": False}), '{"id":6,"id":5,"ok":true,"events":[]}')),
    ],
)
def test_the_first_difference_is_told_whatever_it_is(
    number: int, answers: tuple[dict[str, Any] | str, ...], tmp_path: Path
) -> None:
    different, sent = played_again(tmp_path, *answers)
    assert different == number
    assert sent <= 4 + number + 2


def test_a_candidate_that_ends_in_between_answers_otherwise(tmp_path: Path) -> None:
    different, _ = played_again(tmp_path, ok())
    assert different == 1


def test_an_id_of_an_earlier_request_is_noticed_in_an_answer_that_is_known(tmp_path: Path) -> None:
    known = '{"id":%d,"ok":true,"events":[]}'
    with reciting(tmp_path, known % 1, known % 2, known % 2) as (candidate, _):
        for _ in range(2):
            assert candidate.handle(Reset()) == Answer()
        assert "request 2 was answered twice" in fault_of(candidate, Reset())


def test_an_answer_that_ends_with_another_id_is_never_taken_for_a_known_one(tmp_path: Path) -> None:
    line = '{"id":%d,"ok":true,"events":[],"id":1}'
    with reciting(tmp_path, line % 1, line % 2) as (candidate, _):
        assert candidate.handle(Reset()) == Answer()
        assert "request 1 was answered twice" in fault_of(candidate, Reset())
