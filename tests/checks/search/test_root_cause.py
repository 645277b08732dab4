"""A trace counts for its requirement only if no shorter form breaks another one of its kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from brokerproof.checks.gate.gate_run import Budget, Clock, GateRun, Report
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.search.endings import LAST
from brokerproof.checks.search.findings import Exchange, Run
from brokerproof.checks.search.root_cause import (
    Fresh,
    fails,
    requirement_of,
    root_cause_of,
    shortest_form,
)
from brokerproof.checks.subjects import Subject
from brokerproof.checks.trace.moves import Cut, Move, Settle
from brokerproof.spec.messages import Fifo, Message, Priority
from brokerproof.spec.protocol.answers import OK, Answer
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    SetCredit,
)
from tests.checks.broken_candidates import Box, Sieve, fresh
from tests.faults.catalogue import faults
from tests.faults.kill_table import subject_of


class Discards(Box):
    """Drops a message that came back when its old delivery is acknowledged once more."""

    def handle(self, operation: Operation) -> Answer:
        """Let the refused acknowledgement take what waits."""
        answer = super().handle(operation)
        if isinstance(operation, Acknowledge) and answer.error is not None:
            self.queues["q0"].clear()
        return answer


AGAIN = Settle(how="acknowledge", message="m0", again=True)
WALK: list[Move] = [
    Declare(queue="q0", order=Fifo()),
    Publish(queue="q0", message=Message(id="m0")),
    Get(channel="ch0", queue="q0"),
    Settle(how="release", message="m0"),
    AGAIN,
    AGAIN,
    Get(channel="ch0", queue="q0"),
]
"""Without one of the two acknowledgements the other still stands before the loss."""


@pytest.mark.parametrize("candidate", [Sieve, Discards])
def test_what_an_idle_step_seems_to_break_is_named_by_the_cut_trace(candidate: type[Box]) -> None:
    begin = partial(fresh, candidate)
    run = fails(WALK, begin, "settled-once")
    assert run is not None
    assert requirement_of(run) == "settled-once"
    came = root_cause_of([run], begin)
    if candidate is Discards:
        assert came.run is not None
        assert requirement_of(came.run) == "settled-once"
        assert came.instead is None
        return
    assert came.run is None
    assert came.instead is not None
    assert requirement_of(came.instead) == "nothing-lost"
    assert [move for move in came.instead.moves if move == AGAIN] == []


def test_what_explains_all_traces_is_kept_if_it_was_not_found_by_itself() -> None:
    begin = partial(fresh, Sieve)
    found = fails(WALK, begin, "settled-once")
    assert found is not None
    subject = Subject("sieve", Sieve().hello(), Sieve, in_process=True)
    report = Report("sieve", "sieve", "1", 0)
    run = GateRun(subject, Budget(), Clock(None), report, lambda *_: None)
    run.keep_masked("settled-once", root_cause_of([found], begin))
    assert run.evidence.masked == {"settled-once": "nothing-lost"}
    assert [*run.evidence.broken] == ["nothing-lost"]


class LosesTheEmpty(Box):
    """Loses each message without a byte."""

    def handle(self, operation: Operation) -> Answer:
        """Take an empty message and keep nothing of it."""
        is_empty = isinstance(operation, Publish) and operation.message.size == 0
        return OK if is_empty else super().handle(operation)


@pytest.mark.parametrize(("candidate", "size"), [(LosesTheEmpty, 0), (Sieve, 1)])
def test_only_values_that_the_fault_needs_are_left(candidate: type[Box], size: int) -> None:
    message = Message(id="m0", priority=7, size=0, persistent=True, properties={"a": 1})
    moves: list[Move] = [
        Declare(queue="q0", order=Fifo(), durable=True),
        Publish(queue="q0", message=message, expires_s=9),
        Get(channel="ch0", queue="q0"),
        Settle(how="release", message="m0"),
        Get(channel="ch0", queue="q0"),
    ]
    begin = partial(fresh, candidate)
    found = fails(moves, begin, "nothing-lost")
    assert found is not None
    declared, published, *_ = shortest_form(found, begin).moves
    assert declared == Declare(queue="q0", order=Fifo())
    assert published == Publish(queue="q0", message=Message(id="m0", size=size))


@pytest.mark.parametrize(
    ("channel", "kinds"),
    [
        (LAST, [Consume, Cancel, CloseChannel, Get]),
        ("ch1", [Consume, Cancel, Consume, CloseChannel]),
    ],
)
def test_a_get_stands_for_the_consumer_that_takes_what_is_left(
    channel: str, kinds: list[type[Operation]]
) -> None:
    begin = subject_of(faults()["close-forgets-cancelled"]).fresh
    moves: list[Move] = [
        Declare(queue="q0", order=Fifo()),
        Publish(queue="q0", message=Message(id="m0")),
        Consume(channel="ch0", queue="q0", consumer="c0"),
        Cancel(consumer="c0"),
        Consume(channel=channel, queue="q0", consumer="c1"),
        CloseChannel(channel="ch0"),
    ]
    found = fails(moves, begin, "close-releases")
    assert found is not None
    _, _, *rest = shortest_form(found, begin).moves
    assert [type(each) for each in rest if not isinstance(each, Drain)] == kinds


def test_names_are_numbered_as_they_come() -> None:
    begin = partial(fresh, LosesTheEmpty)
    moves: list[Move] = [
        Declare(queue="q1", order=Fifo()),
        Publish(queue="q1", message=Message(id="m3", size=0)),
        Get(channel="ch2", queue="q1"),
    ]
    found = fails(moves, begin, "nothing-lost")
    assert found is not None
    renamed = shortest_form(found, begin).moves
    assert renamed[:2] == (
        Declare(queue="q0", order=Fifo()),
        Publish(queue="q0", message=Message(id="m0", size=0)),
    )


def test_names_and_what_goes_with_other_values_stay() -> None:
    broken = Breach("nothing-lost", "it is gone")

    def all_of_them(moves: Sequence[Move], _fresh: Fresh, _requirement: str) -> Run | None:
        run = Run(tuple(Exchange(move, Drain(), OK) for move in moves), broken)
        return run if len(moves) == len(GIVEN) else None

    run = all_of_them(GIVEN, partial(fresh, Box), "nothing-lost")
    assert run is not None
    assert shortest_form(run, partial(fresh, Box), all_of_them).moves == PLAIN


GIVEN: tuple[Move, ...] = (
    SetCredit(consumer="c", messages=2, bytes=1),
    Declare(queue="q", order=Priority(3), auto_delete=True, deliveries=1, dead_letters="d"),
    Consume(channel="ch", queue="q", consumer="c", mode="browse", queues=("q", "r")),
    Cut(move=Publish(queue="q", message=Message(id="m", size=0)), change=2),
)
PLAIN: tuple[Move, ...] = (
    SetCredit(consumer="c"),
    Declare(queue="q", order=Priority(3), deliveries=1, dead_letters="d"),
    Consume(channel="ch", queue="q", consumer="c", mode="browse", queues=("q", "r")),
    Cut(move=Publish(queue="q", message=Message(id="m")), change=2),
)
