"""Repeated second settlements: no row of the window, and the same judgement.

The oracle is compared with one that keeps a row for each, on random runs with brokers that send
events late, and with broken ones. The twins show that the comparison sees a missing note.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.oracle import possibilities
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import goes_on
from brokerproof.checks.search.scopes.scope import Kind, Scope
from brokerproof.checks.trace.moves import Move, Settle, operation_of
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Consume,
    Declare,
    Get,
    Operation,
    Publish,
    Release,
    Reset,
)
from examples import whole_broker
from tests.faults.catalogue import make_faulty

RUNS = 12
STEPS_MAX = 20

WORLD = Scope(
    "browsers, and settling again",
    (Fifo(),),
    messages=2,
    channels=2,
    consumers=2,
    kinds=(Kind("browse"), Kind("acknowledge", 1)),
    gets=("acknowledge",),
    settlements=("release", "acknowledge"),
    cancels=True,
    settles_again=True,
)

BROWSE = Consume(channel="ch0", queue="q0", consumer="c0", mode="browse", credit=Credit(None, None))

MAKERS: dict[str, Callable[[], Candidate]] = {
    "reference": lambda: make("qpid-push"),
    "lazy": whole_broker.make_lazy_broker,
    "settled again discards": partial(make_faulty, "settled-again-discards"),
    "acknowledged is there again": partial(make_faulty, "acknowledged-is-there-again"),
}

RELEASED_BEHIND_A_BROWSER: tuple[Move, ...] = (
    Declare(queue="q0", order=Fifo()),
    Publish(queue="q0", message=Message(id="m0")),
    Get(channel="ch0", queue="q0", mode="acknowledge"),
    BROWSE,
    Settle(how="release", message="m0"),
)

Judged = list[tuple[Operation, Answer, object]]


def moves_of_a_run(seed: int, oracle: Oracle) -> Iterator[Move]:
    """Yield random moves; every other one repeats a settlement, if possible."""
    yield from RELEASED_BEHIND_A_BROWSER
    chance = random.Random(seed)  # noqa: S311 (nothing is secret)
    for number in range(STEPS_MAX):
        moves = list(WORLD.moves(oracle.bindings))
        again = [move for move in moves if isinstance(move, Settle) and move.again]
        yield chance.choice(again if again and number % 2 else moves)


def walked(start: Callable[[], Candidate], seed: int) -> tuple[Judged, int]:
    """Return an oracle's results on a random run, step by step, and its largest number of rows."""
    candidate = start()
    candidate.handle(Reset())
    oracle = Oracle(candidate.hello().capabilities)
    judged: Judged = []
    rows = 1
    for move in moves_of_a_run(seed, oracle):
        operation = operation_of(move, oracle.bindings)
        if operation is None:
            continue
        answer = ask(candidate, operation)
        assert not isinstance(answer, Misbehaviour)
        try:
            breaches = oracle.observe(operation, answer)
        except Unfollowable as error:
            judged.append((operation, answer, str(error)))
            break
        counted = sorted(oracle.exercised.items()), sorted(oracle.actions.items())
        judged.append((operation, answer, (breaches, counted)))
        if not all(map(goes_on, breaches)):
            break
        rows = max(rows, len(oracle.window.rows))
    return judged, rows


@pytest.mark.parametrize("name", MAKERS)
def test_a_row_that_is_left_out_changes_no_judgement(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = [walked(MAKERS[name], seed) for seed in range(RUNS)]
    monkeypatch.setattr(possibilities, "NOTED_ONCE", frozenset())
    full = [walked(MAKERS[name], seed) for seed in range(RUNS)]
    assert [judged for judged, _ in short] == [judged for judged, _ in full]
    assert sum(rows for _, rows in short) < sum(rows for _, rows in full)


def given(delivery: str, *, redelivered: bool = False) -> Answer:
    """Return the answer to a get that gives m0."""
    event = Delivered(
        delivery=delivery, consumer=None, queue="q0", message="m0", redelivered=redelivered
    )
    return Answer((event,))


def after_settling_again(times: int) -> Oracle:
    """Return the oracle of a queue with a browser that may still be shown a released message."""
    oracle = Oracle(Capabilities(get=True, modes=("browse",), browse=True))
    run: list[tuple[Operation, Answer]] = [
        (Declare(queue="q0", order=Fifo()), OK),
        (Publish(queue="q0", message=Message(id="m0")), OK),
        (Get(channel="ch0", queue="q0", mode="acknowledge"), given("d0")),
        (BROWSE, OK),
        (Release(delivery="d0"), OK),
        *((Release(delivery="d0"), OK) for _ in range(times)),
    ]
    for operation, answer in run:
        assert not oracle.observe(operation, answer)
    return oracle


def test_the_window_does_not_grow_with_what_changes_nothing() -> None:
    assert after_settling_again(9).key() == after_settling_again(1).key()
    assert after_settling_again(1).key() != after_settling_again(0).key()


def test_it_does_grow_where_each_time_has_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(possibilities, "NOTED_ONCE", frozenset())
    assert len(after_settling_again(9).window.rows) == 9 + len(after_settling_again(0).window.rows)


def blamed_for_a_message_given_twice_after_settling_again() -> str:
    """Return the requirement broken by delivering an acquired message, after d0 came twice."""
    oracle = Oracle(Capabilities(get=True))
    get = Get(channel="ch0", queue="q0", mode="acknowledge")
    run: list[tuple[Operation, Answer]] = [
        (Declare(queue="q0", order=Fifo()), OK),
        (Publish(queue="q0", message=Message(id="m0")), OK),
        (get, given("d0")),
        (Release(delivery="d0"), OK),
        (get, given("d1", redelivered=True)),
        (Release(delivery="d0"), OK),
    ]
    for operation, answer in run:
        assert not oracle.observe(operation, answer)
    [breach] = oracle.observe(get, given("d2", redelivered=True))
    return breach.requirement


def test_the_first_time_is_noted() -> None:
    assert blamed_for_a_message_given_twice_after_settling_again() == "settled-once"


def test_a_note_that_is_not_taken_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(possibilities.EventWindow, "_has_noted", lambda *_: True)
    assert blamed_for_a_message_given_twice_after_settling_again() == "nothing-twice"
