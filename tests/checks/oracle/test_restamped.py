"""Stamps as small as their order allows: a finite number of states, and the same judgement.

The oracle is compared with one whose stamps only grow, on random runs with brokers that put
returned messages at the head or the tail, also where the oracle expects the other end. The twins
show that the comparison sees stamps whose order is lost.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator

import pytest

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.oracle import possibilities
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Rules
from brokerproof.checks.search.scopes.scope import Kind, Scope
from brokerproof.checks.trace.moves import operation_of
from brokerproof.models.language.read.pointwise import World, locals_of
from brokerproof.spec.messages import Priority
from brokerproof.spec.protocol.capabilities import ReleasePosition
from brokerproof.spec.protocol.operations import Reset
from examples.whole_broker import WholeBroker
from examples.whole_broker_claims import everything
from tests.checks.oracle.test_oracle import declare, get, given, publish, release

RUNS = 40
STEPS_MAX = 30

RETURNS = Scope(
    "returns",
    (Priority(2),),
    messages=3,
    queues=2,
    consumers=1,
    kinds=(Kind("acknowledge", 1),),
    gets=("acknowledge",),
    settlements=("release", "acknowledge"),
    closes=True,
)

Judged = list[tuple[int, list[Breach]]]


def judged(puts: ReleasePosition, claims: ReleasePosition) -> Iterator[Judged]:
    """Yield the result of each step of random runs: the breaches, and how much was exercised."""
    for seed in range(RUNS):
        chance = random.Random(seed)  # noqa: S311 (nothing is secret)
        candidate, oracle = (
            WholeBroker(release_position=puts),
            Oracle(everything(release_position=claims)),
        )
        oracle.rules._applied.clear()
        candidate.handle(Reset())
        found: Judged = []
        while len(found) < STEPS_MAX and not (found and found[-1][1]):
            move = chance.choice(list(RETURNS.moves(oracle.bindings)))
            operation = operation_of(move, oracle.bindings)
            if operation is not None:
                answer = ask(candidate, operation)
                assert not isinstance(answer, Misbehaviour)
                breaches = oracle.observe(operation, answer)
                found.append((oracle.exercised.total(), breaches))
        yield found


def mixed_up(world: World, entries: int, queues: int, homes: tuple[int, ...]) -> World:
    """Give all entries one stamp."""
    rest, possible = world
    locals_ = [next(iter(locals_of(each))) for each in possible]
    alike = tuple((*each[:entries], 0, *each[entries + 1 :]) for each in locals_)
    del queues, homes
    return rest, alike


@pytest.mark.parametrize("claims", ["head", "tail"])
@pytest.mark.parametrize("puts", ["head", "tail"])
def test_small_stamps_change_no_judgement(
    puts: ReleasePosition, claims: ReleasePosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [*judged(puts, claims)]
    assert any(run[-1][1] for run in small) == (puts != claims)
    monkeypatch.setattr(Rules, "_stamps_in", lambda *_: None)
    assert small == [*judged(puts, claims)]


def test_stamps_without_their_order_change_the_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    small = [*judged("tail", "head")]
    monkeypatch.setattr(possibilities, "_restamped", mixed_up)
    assert small != [*judged("tail", "head")]


def key_after(*orders: tuple[int, int]) -> Hashable:
    """Return an oracle's key after rounds in which two messages return to the tail in an order."""
    oracle = Oracle(everything(release_position="tail"))
    told = [declare(), publish("m0"), publish("m1")]
    standing = 0, 1
    for count, order in enumerate(orders):
        told += [
            get(given(f"m{n}", None, again=count > 0, delivery=f"{count}{n}")) for n in standing
        ]
        told += [release(f"{count}{n}") for n in order]
        standing = order
    for operation, answer in told:
        assert oracle.observe(operation, answer) == []
    return oracle.bindings.frame, oracle.window


def test_messages_that_return_again_and_again_make_no_new_states() -> None:
    assert key_after((0, 1)) == key_after((0, 1), (0, 1), (1, 0), (0, 1))
    assert key_after((0, 1)) != key_after((1, 0))
