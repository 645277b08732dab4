"""The draws of a stateful example; a seed gives the same verdict in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.draws import (
    CHANNELS,
    CONSUMERS_MAX,
    MANY,
    MESSAGES_MAX,
    OPTIONAL,
    Chooser,
    KindOfMove,
    kinds_beyond,
    kinds_drawn,
    orders_drawn,
)
from brokerproof.checks.search.scopes.catalogue import kinds_for
from brokerproof.checks.search.scopes.invalid_operations import invalid_operations
from brokerproof.checks.search.scopes.scope import Payload
from brokerproof.checks.trace.moves import Move, operation_of
from brokerproof.spec.messages import Fifo, LastValue, Priority, Sorted
from brokerproof.spec.protocol.answers import OK, Answer
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Consume,
    Crash,
    Declare,
    Delete,
    Get,
    Publish,
    Reset,
    Restart,
    SetCredit,
)
from examples.whole_broker import WholeBroker
from examples.whole_broker_claims import everything

WHOLE = everything()
ALL = (1 << len(OPTIONAL)) - 1
ONLY_GET = Capabilities(get=True)
ROOT = Path(__file__).parents[3]


def chooser(claims: Capabilities = WHOLE, *, plain: bool = False) -> Chooser:
    """Return a chooser of all kinds of consumers that are claimed."""
    return Chooser(claims, (*kinds_for(claims), *kinds_beyond(claims)), plain)


def after(*moves: Move, claims: Capabilities = WHOLE) -> Oracle:
    """Return an oracle that has followed a sound broker making these moves."""
    broker, oracle = WholeBroker(claims=claims), Oracle(claims)
    broker.handle(Reset())
    for move in (Declare(queue="q0", order=Fifo()), *moves):
        operation = operation_of(move, oracle.bindings)
        assert operation is not None
        assert oracle.observe(operation, broker.handle(operation)) == []
    return oracle


def drawn(kind: KindOfMove, which: int, how: int, oracle: Oracle) -> list[Move]:
    """Return the moves that two numbers make of a kind."""
    return list(chooser().moves(kind, which, how, oracle.bindings))


# Kinds.


def test_what_is_not_claimed_is_never_drawn() -> None:
    few = set(kinds_drawn(ALL, ONLY_GET))
    assert not few & {"purge", "delete", "credit", "pool", "flush", "advance", "crash"}
    assert {"publish", "get", "settle", "drain"} <= few
    assert set(kinds_drawn(ALL, WHOLE)) > few


def test_an_example_draws_from_the_kinds_that_its_swarm_names() -> None:
    none = set(kinds_drawn(0, WHOLE))
    assert not none & set(OPTIONAL)
    for number, kind in enumerate(OPTIONAL):
        assert set(kinds_drawn(1 << number, WHOLE)) == none | {kind}


def test_queues_fill_before_anything_else() -> None:
    kinds = kinds_drawn(ALL, WHOLE)
    assert all(kinds.count("publish") > kinds.count(kind) for kind in set(kinds) - {"publish"})


def test_the_orders_are_those_that_are_claimed() -> None:
    assert orders_drawn(ONLY_GET) == [Fifo()]
    assert orders_drawn(replace(ONLY_GET, orders=("priority",), priority_levels=2)) == [
        Priority(1),
        Priority(2),
    ]
    assert orders_drawn(replace(ONLY_GET, orders=("sorted", "last_value"))) == [
        Sorted("k"),
        LastValue("k"),
    ]


def test_the_kinds_of_consumers_are_those_that_are_claimed() -> None:
    assert list(kinds_beyond(ONLY_GET)) == []
    asked = replace(ONLY_GET, modes=("acknowledge",), selectors=True)
    assert [kind.selector is not None for kind in kinds_beyond(asked)] == [True, True]
    wide = list(kinds_beyond(WHOLE))
    assert len(set(wide)) == len(wide)
    assert {kind.mode for kind in wide} == {"acknowledge", "automatic", "browse"}


# Moves.

OF_SOMETHING_THERE: tuple[KindOfMove, ...] = (
    "settle",
    "settle again",
    "cancel",
    "credit",
    "flush",
    "close_channel",
    "pool",
)
OF_A_QUEUE: tuple[KindOfMove, ...] = ("publish", "consume", "get", "purge", "delete", "invalid")


def test_what_means_nothing_now_is_no_move() -> None:
    empty = Oracle(WHOLE)
    fresh = after()
    for kind in OF_SOMETHING_THERE:
        assert drawn(kind, 0, 0, fresh) == []
    for kind in OF_A_QUEUE:
        assert drawn(kind, 0, 0, empty) == []


@pytest.mark.parametrize("number", [0, 1, 7, 59])
def test_numbers_are_taken_modulo_what_there_is(number: int) -> None:
    oracle = after(*(each for name in ("m0", "m1") for each in held(name)))
    [settled] = drawn("settle", number, 0, oracle)
    assert settled == drawn("settle", number % 2, 0, oracle)[0]
    [asked] = drawn("get", number, number, oracle)
    assert isinstance(asked, Get)
    assert asked.channel == CHANNELS[number % len(CHANNELS)]


def held(name: str) -> tuple[Move, ...]:
    """Return the moves after which a message is held."""
    return Payload().publish("q0", name), Get(channel="ch0", queue="q0")


def test_there_are_so_many_messages_and_consumers_and_no_more() -> None:
    oracle, broker = after(), WholeBroker()
    broker.handle(Reset())
    broker.handle(Declare(queue="q0", order=Fifo()))
    published: list[str] = []
    for _ in range(8):
        for move in drawn("publish many", 0, 1, oracle):
            assert isinstance(move, Publish)
            published.append(move.message.id)
            oracle.observe(move, broker.handle(move))
    assert len(set(published)) == len(published) >= MESSAGES_MAX > MANY
    assert drawn("publish many", 0, 1, oracle) == drawn("publish", 0, 1, oracle) == []
    for number in range(CONSUMERS_MAX):
        [consume] = drawn("consume", 0, 0, oracle)
        assert isinstance(consume, Consume)
        assert consume.consumer == f"c{number}"
        oracle.observe(consume, broker.handle(consume))
    assert drawn("consume", 0, 0, oracle) == []


@pytest.mark.parametrize("gone", ["delete", "crash"])
def test_no_name_is_used_again_though_its_publish_went_while_it_was_parked(gone: str) -> None:
    oracle = after(Declare(queue="q1", order=Fifo()))
    [first] = drawn("publish", 0, 0, oracle)
    assert isinstance(first, Publish)
    oracle.observe(first, Answer(parked=True))
    oracle.observe(Delete(queue="q0") if gone == "delete" else Crash(), OK)
    if gone == "crash":
        oracle.observe(Restart(), OK)
        oracle.observe(Declare(queue="q1", order=Fifo()), OK)
    [second] = drawn("publish", 0, 0, oracle)
    assert isinstance(second, Publish)
    assert (first.message.id, second.message.id) == ("m0", "m1")


def test_the_last_queue_is_not_deleted() -> None:
    assert drawn("delete", 0, 0, after()) == []
    assert drawn("delete", 1, 0, after(Declare(queue="q1", order=Fifo()))) != []


def test_while_down_there_is_only_a_restart() -> None:
    oracle = after()
    [crash] = drawn("crash", 0, 0, oracle)
    operation = operation_of(crash, oracle.bindings)
    assert operation is not None
    oracle.observe(operation, OK)
    for kind in kinds_drawn(ALL, WHOLE):
        assert drawn(kind, 3, 5, oracle) in ([], [Restart()])
    assert drawn("drain", 0, 0, oracle) == [Restart()]


def test_a_plain_example_asks_for_nothing_beyond_the_core() -> None:
    oracle = after()
    for how in range(60):
        for move in chooser(plain=True).moves("publish", 0, how, oracle.bindings):
            assert isinstance(move, Publish)
            assert (move.not_before_s, move.expires_s) == (None, None)
            assert (move.message.size, move.message.persistent) == (1, False)


def test_windows_are_of_what_is_claimed() -> None:
    for credit, counts in ((("change", "messages"), False), (("change", "bytes"), True)):
        claims = replace(WHOLE, credit=credit)
        oracle = after(Consume(channel="ch0", queue="q0", consumer="c0"), claims=claims)
        moves = [
            move
            for how in range(10)
            for move in Chooser(claims, (), plain=False).moves("credit", 0, how, oracle.bindings)
        ]
        assert any(isinstance(m, SetCredit) and m.bytes is not None for m in moves) == counts
        assert any(isinstance(m, SetCredit) and m.messages is not None for m in moves) != counts


# The same seed, in processes that order their sets otherwise.

VERDICTS = """
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.spec.requirements import catalogue

subject = open_subject({address!r})
report = run_gate(subject, catalogue(), Budget(operations={operations}, examples=6), seed={seed})
for stage in report.stages:
    print(stage)
for verdict in report.verdicts:
    print(verdict.requirement.id, verdict.outcome, verdict.exercised, verdict.reason)
    if verdict.counterexample is not None:
        print(text_of_counterexample(verdict.counterexample))
"""


def verdicts(address: str, operations: int, seed: int, hash_seed: int) -> str:
    """Return the gate's verdict on a candidate in a separate process."""
    script = VERDICTS.format(address=address, operations=operations, seed=seed)
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(
    "address",
    ["examples/whole_broker.py:make_lazy_broker", "tests.checks.broken_candidates:Stack"],
)
def test_a_seed_gives_the_same_bytes_in_every_process(address: str) -> None:
    one, other = (verdicts(address, 120, 5, hash_seed) for hash_seed in (1, 2))
    assert one == other
    assert "fifo-order" in one
    # Another seed is another run, so the comparison is meaningful.
    assert verdicts(address, 120, 6, 1) != one


def test_invalid_operations_are_of_many_kinds_and_are_refused_by_a_sound_broker() -> None:
    oracle = after(Consume(channel="ch0", queue="q0", consumer="c0"))
    moves = [move for how in range(60) for move in drawn("invalid", 0, how, oracle)]
    assert len(moves) == 60
    assert len(set(map(repr, moves))) == len(list(invalid_operations(oracle.bindings)))
