"""Consumers that stay and pause: one that goes on and is forgotten stalls its round."""

from __future__ import annotations

import pytest

from brokerproof.checks.subjects import open_subject
from brokerproof.pipeline.rounds import stayers
from brokerproof.pipeline.rounds.clients import QUEUE, Fault, Producer, Shared
from brokerproof.pipeline.rounds.shape import Shape
from brokerproof.pipeline.rounds.stayers import Stayer
from brokerproof.pipeline.rounds.threads import Threads
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Declare, Operation, SetCredit
from tests.pipeline.rounds.test_hunt import Locked


class Forgetting(Locked):
    """Tells a consumer that goes on nothing of what waits for it."""

    def handle(self, operation: Operation) -> Answer:
        """Answer all else as the candidate does."""
        if isinstance(operation, SetCredit) and operation.messages != 0:
            return Answer()
        return super().handle(operation)


def stalls(candidate: Candidate) -> list[Fault]:
    """Let two consumers bounce one message until it is acknowledged or waits in vain."""
    shared = Shared("run", Shape(messages=1, returns=0.8), candidate.hello().capabilities)
    candidate.handle(Declare(queue=QUEUE, order=Fifo()))
    Producer("p0", candidate, shared, "seed").run(range(1))
    threads = Threads()
    takers = [Stayer(name, candidate, shared, "seed 1") for name in ("c0", "c1")]
    assert not threads.run([each.run for each in takers], 60.0)
    threads.end()
    assert not shared.faults
    return list(shared.stalls)


@pytest.fixture(autouse=True)
def always_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pause before each settlement, and give up a message soon."""
    monkeypatch.setattr(stayers, "PAUSES", (1.0,))
    monkeypatch.setattr(stayers, "STALLED_S", 0.3)


def test_consumers_that_pause_and_go_on_settle_all() -> None:
    assert stalls(Locked(open_subject("reference:qpid-push").start())) == []


def test_a_consumer_that_goes_on_and_is_forgotten_is_found() -> None:
    (stall,) = stalls(Forgetting(open_subject("reference:qpid-push").start()))
    assert stall.requirement in {"quiescence", "credit-used"}
    assert stall.what.startswith("1 of 1 messages waited")
    assert stall.what.endswith("where each pauses before it settles")
