"""Rounds over sockets: a broker that loses one message is found, and an honest one is not."""

from __future__ import annotations

from contextlib import closing

from brokerproof.checks.subjects import open_subject
from brokerproof.pipeline.rounds.hunt import Finding, Hunt, Limits
from brokerproof.pipeline.rounds.rounds import Rounds
from brokerproof.pipeline.rounds.shape import Shape
from tests.candidates.stomp.fake_broker import FakeBroker

ROUNDS = 20


def hunted(broker: FakeBroker) -> tuple[Finding | None, int]:
    """Return the finding of some rounds on a broker, and how many rounds were searched."""
    with closing(open_subject(broker.url)) as subject:
        hunt = Hunt(Rounds(subject, seed=0), Shape(messages=4), Limits(ROUNDS))
        for _ in hunt.records():
            pass
    return hunt.finding, hunt.searched


def test_a_broker_that_keeps_all_is_not_accused() -> None:
    with FakeBroker() as broker:
        assert hunted(broker) == (None, ROUNDS)


def test_one_lost_message_in_many_rounds_is_found() -> None:
    with FakeBroker() as broker:
        broker.loses = {"round-12.m2"}
        found, _ = hunted(broker)
    assert found is not None
    assert found.requirement == "nothing-lost"
