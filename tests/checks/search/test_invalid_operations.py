"""Invalid operations: well formed, refused by a sound broker, and without effect."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.obligations import must_be_refused, must_succeed
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.search.scopes.invalid_operations import (
    NO_CLIENT,
    NOWHERE,
    invalid_operations,
)
from brokerproof.checks.trace.moves import NOT_HELD, Move, Settle, operation_of, text_of
from brokerproof.spec.messages import NUMBER_MAX, Credit, Fifo
from brokerproof.spec.protocol.answers import OK, Answer, Error, refused
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.driver import RequestShape
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Flush,
    Get,
    Operation,
    Publish,
    Restart,
    SetCredit,
    name_of,
)
from examples.whole_broker import WholeBroker
from examples.whole_broker_claims import everything

WHOLE = everything()
ONLY_GET = Capabilities(get=True)
MADE = Declare(queue="q0", order=Fifo(), durable=True)
SUBSCRIBED = Consume(channel="ch0", queue="q0", consumer="c0")


def after(*operations: Operation, claims: Capabilities = WHOLE) -> tuple[WholeBroker, Oracle]:
    """Return a sound broker that has carried out some operations, and its oracle."""
    broker, oracle = WholeBroker(claims=claims), Oracle(claims)
    for operation in operations:
        assert oracle.observe(operation, broker.handle(operation)) == []
    return broker, oracle


SITUATIONS: dict[str, tuple[Operation, ...]] = {
    "nothing yet": (),
    "a queue": (MADE,),
    "a consumer": (MADE, SUBSCRIBED),
    "a consumer that has left": (MADE, SUBSCRIBED, Cancel(consumer="c0")),
    "down": (MADE, Crash()),
    "up again": (MADE, SUBSCRIBED, Crash(), Restart()),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_sound_broker_refuses_it_or_nothing_comes_of_it(situation: str) -> None:
    broker, oracle = after(*SITUATIONS[situation])
    for move in invalid_operations(oracle.bindings):
        operation, at = operation_of(move, oracle.bindings), broker.fork()
        assert operation is not None
        answer = at.handle(operation)
        assert oracle.fork().observe(operation, answer) == [], operation
        wide = isinstance(operation, SetCredit) and operation.messages == NUMBER_MAX
        assert wide or at.fingerprint() == broker.fingerprint(), operation
        if must_be_refused(operation, oracle.bindings):
            assert not answer.ok, operation


REASONS = {
    "nothing yet": {"there is no such queue", "there is no such consumer", "the broker is up"},
    "a queue": {"priorities are 0 to 9", "the queue exists with other arguments"},
    "a consumer": {"a window is not negative"},
    "down": {"the broker is down"},
}


def test_every_reason_for_a_refusal_is_met() -> None:
    for situation, reasons in REASONS.items():
        _, oracle = after(*SITUATIONS[situation])
        operations = [
            operation_of(move, oracle.bindings) for move in invalid_operations(oracle.bindings)
        ]
        met = {must_be_refused(each, oracle.bindings) for each in operations if each is not None}
        assert reasons <= met, situation


@pytest.mark.parametrize("claims", [ONLY_GET, WHOLE, Capabilities(modes=("automatic",))])
def test_what_is_not_claimed_is_not_asked(claims: Capabilities) -> None:
    broker, oracle = after(Declare(queue="q0", order=Fifo()), claims=claims)
    asked = {name_of(each) for each in map_operations(oracle)}
    assert {"get", "flush", "restart", "credit"} & asked == {
        name
        for name, claimed in {
            "get": claims.get,
            "flush": claims.flush,
            "restart": claims.durable,
            "credit": "change" in claims.credit,
        }.items()
        if claimed
    }
    assert broker.hello().capabilities == claims


def map_operations(oracle: Oracle) -> Iterator[Operation]:
    """Yield the operations that the moves are."""
    for move in invalid_operations(oracle.bindings):
        operation = operation_of(move, oracle.bindings)
        assert operation is not None
        yield operation


def in_form(operation: Operation) -> bool:
    """Whether the operation can be sent to a driver."""
    try:
        msgspec.convert({"id": 1, **msgspec.to_builtins(operation)}, RequestShape)
    except msgspec.ValidationError:
        return False
    return True


def every_move(claims: Capabilities, *, in_process: bool) -> Iterator[Move]:
    """Yield the moves of every scope with a queue and a consumer."""
    for scope in scopes_for(claims, in_process=in_process):
        for situation in SITUATIONS.values():
            yield from scope.moves(after(*situation, claims=claims)[1].bindings)


def test_a_driver_is_asked_nothing_that_is_not_in_form() -> None:
    oracle = after(MADE, SUBSCRIBED)[1]
    moves = list(every_move(WHOLE, in_process=False))
    operations = [operation_of(move, oracle.bindings) for move in moves]
    assert [each for each in operations if each is not None and not in_form(each)] == []


def test_a_window_below_0_from_the_start_is_asked_in_this_process_only() -> None:
    wrong = {
        each
        for each in map(str, every_move(WHOLE, in_process=True))
        if "Credit(messages=-1" in each
    }
    assert wrong
    below = replace(SUBSCRIBED, credit=Credit(-1))
    assert not in_form(below)
    assert must_be_refused(below, after(MADE)[1].bindings)


# Required refusals, and forbidden answers.

WRONG: dict[str, Operation] = {
    "get": Get(channel="ch0", queue=NOWHERE),
    "credit": SetCredit(consumer=NO_CLIENT, messages=1),
    "flush": Flush(consumer=NO_CLIENT),
    "restart": Restart(),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_broker_that_accepts_an_invalid_operation_is_found_out(name: str) -> None:
    _, oracle = after(MADE)
    [breach] = oracle.observe(WRONG[name], OK)
    assert breach.requirement == "refuses-what-it-must"
    assert after(MADE)[1].observe(WRONG[name], refused("no")) == []


def test_either_answer_will_do_to_settling_what_never_was() -> None:
    settle = Settle(how="acknowledge", message=NOT_HELD)
    assert text_of(settle) == "acknowledge a delivery that never was"
    for answer in (OK, refused("no such delivery")):
        _, oracle = after(MADE)
        operation = operation_of(settle, oracle.bindings)
        assert operation is not None
        assert oracle.observe(operation, answer) == []
        assert not must_be_refused(operation, oracle.bindings)
        assert not must_succeed(operation, oracle.bindings)


@pytest.mark.parametrize("ends", [Cancel(consumer="c0"), CloseChannel(channel="ch0")])
@pytest.mark.parametrize("then", [Cancel(consumer="c0"), SetCredit(consumer="c0", messages=1)])
def test_a_consumer_that_may_have_left_may_be_unknown(ends: Operation, then: Operation) -> None:
    _, oracle = after(MADE, SUBSCRIBED)
    assert oracle.observe(ends, Answer(error=Error("timeout"))) == []
    assert oracle.observe(then, refused("no such consumer")) == []
    _, certain = after(MADE, SUBSCRIBED)
    [breach] = certain.observe(then, refused("no such consumer"))
    assert breach.requirement == "does-what-it-claims"


def test_a_message_that_was_refused_has_used_no_name() -> None:
    _, oracle = after(MADE)
    wrong = [each for each in map_operations(oracle) if isinstance(each, Publish)]
    assert len(wrong) == 2
    for each in wrong:
        assert oracle.observe(each, refused("no")) == []
    assert oracle.bindings.names_used() == 0
