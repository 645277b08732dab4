"""The rigid facts that bindings hand to an oracle satisfy the axioms of its contract; and twins."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.contracts import CORE, whole
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Rules
from brokerproof.checks.oracle.translation import Translator
from brokerproof.checks.trace import bindings as bindings_module
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.contract.core import Entry
from brokerproof.models.language import Bool, Int, forall
from brokerproof.models.language.core.terms import Symbol, equal, read
from brokerproof.models.language.read.pointwise import Frame, Pointwise
from brokerproof.models.language.read.python_text import PythonText
from brokerproof.models.language.read.z3_reading import order_laws
from brokerproof.spec.messages import Fifo, LastValue, Message, Order, Priority, Sorted
from brokerproof.spec.protocol.answers import OK, Answer, Error
from brokerproof.spec.protocol.operations import (
    Cancel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Operation,
    Publish,
    Restart,
)
from examples.whole_broker_claims import everything

RULES: dict[str, Callable[[], Rules]] = {"core": lambda: CORE, "whole": whole}
ORDERS: tuple[Order, ...] = (Fifo(), Priority(3), LastValue("k"), Sorted("k"))
TIMEOUT = Answer(error=Error("timeout", "no answer"))
QUEUES = ("q0", "q1")


def operations(chosen: random.Random, number: int, *, beyond: bool) -> Iterator[Operation]:
    """Yield operations on two queues, which beyond the core come and go, of any order."""
    for step in range(number):
        queue, channel, key = chosen.choice(QUEUES), f"ch{step % 2}", chosen.randrange(3)
        yield Declare(queue=queue, order=chosen.choice(ORDERS if beyond else ORDERS[:2]))
        yield Publish(
            queue=queue,
            message=Message(
                id=f"m{step}", priority=chosen.randrange(10), size=key, properties={"k": key}
            ),
        )
        yield Consume(
            channel=channel,
            queue=queue,
            consumer=f"c{step}",
            queues=QUEUES if beyond and key else (),
            selector={"k": key} if beyond else None,
        )
        others: list[Operation] = [Get(channel=channel, queue=queue), Drain()]
        others += [Cancel(consumer=f"c{step // 2}")]
        others += [Delete(queue=queue), Crash(), Restart()] if beyond else []
        yield chosen.choice(others)


def bindings_of_runs(rules: Rules, runs: int, *, unanswered: float = 0) -> Iterator[Bindings]:
    """Yield the bindings of random runs in which a share of the publishes gets no answer."""
    for seed in range(runs):
        chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
        bindings, _ = Bindings.empty(everything(), rules.contract)
        unplaced: tuple[str, ...] = ()
        for each in operations(chosen, 8, beyond=rules is not CORE):
            lost = isinstance(each, Publish) and chosen.random() < unanswered
            translator = Translator(rules, bindings, unplaced, in_order=True)
            program = translator.program(each, TIMEOUT if lost else OK)
            if program.broken is None and program.unfollowable is None:
                bindings, unplaced = program.bindings, program.unplaced
                yield bindings


@functools.cache
def laws(contract: Pointwise) -> dict[str, Callable[..., bool]]:
    """Return the axioms and the laws of its order, as functions of a frame's rows and sizes."""

    def cell(symbol: Symbol, at: list[str]) -> str:
        row = f"rows[{contract.rigid.index(symbol)}]"
        return (
            f"({row}[{at[1]}] >> {at[0]} & 1)" if len(at) == 2 else f"{row}[{at[0] if at else 0}]"
        )

    text = PythonText(cell, lambda sort: f"range(sizes[{contract.families.index(sort)}])")
    both_ways, transitive, _ = order_laws(contract.system.symbol("before"))
    terms: dict[str, Bool] = {each.name: each.term for each in contract.system.axioms}
    terms |= {"not-both-ways": both_ways, "transitive": transitive, "total": total(contract)}
    return {
        name: eval(f"lambda rows, sizes: {text.expression(term)}")  # noqa: S307 (our own terms)
        for name, term in terms.items()
    }


def total(contract: Pointwise) -> Bool:
    """Return the law that two entries of one queue have an order."""
    before, home = (contract.system.symbol(name) for name in ("before", "home"))

    def ordered(e: Entry, f: Entry) -> Bool:
        apart = ~equal(read(home, (e,)), read(home, (f,)))
        either = cast("Bool", read(before, (e, f))) | cast("Bool", read(before, (f, e)))
        return apart | (e == f) | either

    return forall(Entry, Entry, ordered)


def broken_laws(contract: Pointwise, frame: Frame) -> set[str]:
    """Return the names of the laws that the facts of a frame break."""
    return {n for n, holds in laws(contract).items() if not holds(frame.rows, frame.sizes)}


@pytest.fixture(params=RULES)
def rules(request: pytest.FixtureRequest) -> Rules:
    return RULES[request.param]()


def test_what_an_oracle_is_told_keeps_the_axioms(rules: Rules) -> None:
    for bindings in bindings_of_runs(rules, 30):
        assert broken_laws(rules.contract, bindings.frame) == set()


def test_while_a_publish_may_still_happen_its_place_alone_is_open(rules: Rules) -> None:
    found = [
        broken_laws(rules.contract, bindings.frame)
        for bindings in bindings_of_runs(rules, 30, unanswered=0.3)
    ]
    assert {*itertools.chain(*found)} == {"total"}


def test_a_wrong_fact_breaks_each_axiom(rules: Rules) -> None:
    contract = rules.contract
    frames = [bindings.frame for bindings in bindings_of_runs(rules, 5)]
    found = {
        name
        for frame in frames
        for changed in with_a_wrong_fact(contract, frame)
        for name in broken_laws(contract, changed)
    }
    assert found == laws(contract).keys()


def with_a_wrong_fact(contract: Pointwise, frame: Frame) -> Iterator[Frame]:
    """Yield frames in which one number differs: a bit of a relation, or the sign of a number."""
    for place, row in enumerate(frame.rows):
        for at, old in enumerate(row if contract.rigid[place].range in (Bool, Int) else ()):
            for new in (old ^ 1, old ^ 2, ~old):
                changed = (*row[:at], new, *row[at + 1 :])
                rows = (*frame.rows[:place], changed, *frame.rows[place + 1 :])
                yield Frame(frame.sizes, rows)


def test_an_arrival_ahead_of_its_equals_is_no_publish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings_module, "is_after", lambda *_: True)
    oracle = Oracle(everything(), beyond_the_core=False)
    first, second = (Publish(queue="q0", message=Message(id=name)) for name in ("m0", "m1"))
    for each in (Declare(queue="q0", order=Fifo()), first):
        assert oracle.observe(each, OK) == []
    with pytest.raises(Unfollowable, match="publish is impossible"):
        oracle.observe(second, OK)
