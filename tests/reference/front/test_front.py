"""The broker's introduction, its refusals, and its address."""

from __future__ import annotations

import pytest

from brokerproof.reference import DOCUMENTED_SYSTEMS, make
from brokerproof.spec.messages import Credit, Fifo, Message, Priority, Sorted
from brokerproof.spec.protocol.candidate import Fingerprinted, Forkable
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Flush,
    Get,
    Inspect,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
)
from tests.reference.front.reference_bench import Bench

SYSTEM_NAMES = "qpid-push, qpid-pull, rabbitmq-paging, activemq-cursor, activemq-cursor-5.1"

REFUSED: list[Operation] = [
    Publish(queue="unknown", message=Message(id="a")),
    Publish(queue="q", message=Message(id="a", priority=10)),
    Publish(queue="q", message=Message(id="a", priority=-1)),
    Publish(queue="q", message=Message(id="a", size=-1)),
    Declare(queue="q", order=Priority(2)),
    Declare(queue="q", order=Fifo(), auto_delete=True),
    Consume(channel="ch0", queue="unknown", consumer="new"),
    Consume(channel="ch0", queue="q", consumer="c0"),
    Consume(channel="ch0", queue="q", consumer="new", credit=Credit(-1)),
    Consume(channel="ch0", queue="q", consumer="new", credit=Credit(None, -1)),
    Consume(channel="ch0", queue="q", consumer="new", exclusive=True),
    SetCredit(consumer="unknown", messages=1),
    SetCredit(consumer="c0", messages=-1),
    SetCredit(messages=1),
    SetCredit(consumer="c0", bytes=-1),
    SetCredit(channel="channel of c0", messages=-1),
    SetCredit(consumer="c0", channel="channel of c0", messages=1),
    Flush(consumer="unknown"),
    Cancel(consumer="unknown"),
    Inspect(queue="unknown"),
    Get(channel="ch0", queue="unknown"),
    Acknowledge(delivery="d9"),
    Release(delivery="d9"),
    Reject(delivery="d9"),
    Purge(queue="unknown"),
    Delete(queue="unknown"),
]
UNSUPPORTED: list[Operation] = [
    Declare(queue="new", order=Fifo(), durable=True),
    Declare(queue="new", order=Priority(0)),
    Declare(queue="new", order=Priority(11)),
    Consume(channel="ch0", queue="q", consumer="new", priority=1),
    Crash(),
    Restart(),
    Declare(queue="other", order=Sorted("key")),
    Consume(channel="ch0", queue="q", consumer="c9", queues=("q", "q1")),
]


@pytest.mark.parametrize(
    ("operation", "code"),
    [(one, "refused") for one in REFUSED] + [(one, "unsupported") for one in UNSUPPORTED],
    ids=str,
)
def test_what_is_not_there_or_not_claimed_is_answered_so_and_changes_nothing(
    operation: Operation, code: str
) -> None:
    bench = Bench()
    bench.consume("c0", 1)
    bench.publish("b", "c")
    before = bench.broker.fingerprint()
    answer = bench.do(operation)
    assert answer.error is not None
    assert answer.error.code == code
    assert answer.events == ()
    assert bench.broker.fingerprint() == before


def test_a_delivery_is_settled_once() -> None:
    bench = Bench()
    bench.publish("a")
    bench.get()
    bench.release("a")
    answer = bench.do(Acknowledge(delivery="d0"))
    assert answer.error is not None
    assert bench.get() == ["a"]


def test_declaring_a_queue_again_as_it_is_changes_nothing() -> None:
    bench = Bench()
    bench.publish("a")
    bench.ok(Declare(queue="q", order=Fifo()))
    assert bench.get() == ["a"]


def test_a_reset_forgets_everything() -> None:
    bench = Bench()
    fresh = make("qpid-push").fingerprint()
    bench.consume("c0")
    bench.publish("a")
    bench.ok(Reset())
    assert bench.broker.fingerprint() == fresh
    bench.ok(Declare(queue="q", order=Fifo()))
    assert bench.get() == []
    bench.publish("b")
    bench.get()
    assert bench.delivery_of["b"] == "d0"


def test_the_broker_can_be_copied_and_its_state_named() -> None:
    broker = make("qpid-push")
    assert isinstance(broker, Forkable)
    assert isinstance(broker, Fingerprinted)


def test_variants_differ_in_name_only_where_they_differ() -> None:
    assert make("qpid-push").hello().name == "reference:qpid-push"
    assert make("qpid-push?pointer=released&runner=eager").hello().name == "reference:qpid-push"
    assert "pointer=inclusive" in make("qpid-push?pointer=inclusive").hello().name


@pytest.mark.parametrize("address", DOCUMENTED_SYSTEMS)
def test_every_documented_system_comes_to_rest(address: str) -> None:
    assert Bench(address).ok(Drain()) == []


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        (
            "qpid-pushed",
            f"system must be one of {SYSTEM_NAMES}, not 'qpid-pushed'",
        ),
        ("", f"system must be one of {SYSTEM_NAMES}, not ''"),
        (
            "qpid-push?pointer=two",
            "pointer must be one of released, published, inclusive, not 'two'",
        ),
        ("qpid-push?runner=", "runner must be one of eager, drain, not ''"),
        ("qpid-push?runner", "parameter 'runner' in 'qpid-push?runner' needs a value: runner=..."),
        (
            "qpid-push?x=1",
            (
                "unknown parameter 'x' in 'qpid-push?x=1'; "
                "qpid-push has pointer, runner, acquisition"
            ),
        ),
        (
            "qpid-push?runer=eager",
            (
                "unknown parameter 'runer' in 'qpid-push?runer=eager' (did you mean 'runner'?); "
                "qpid-push has pointer, runner, acquisition"
            ),
        ),
        ("rabbitmq-paging?segment=0", "segment must be a number from 1 to 16384, not 0"),
        ("rabbitmq-paging?batch=two", "batch must be a number from 1 to 2147483647, not 'two'"),
        (
            "rabbitmq-paging?target=-1",
            "target must be a number from 0 to 2147483647, or any, not '-1'",
        ),
        (
            "rabbitmq-paging?pointer=inclusive",
            ("rabbitmq-paging knows no pointer; that is a parameter of qpid-push and qpid-pull"),
        ),
        (
            "qpid-push?target=1",
            "qpid-push knows no target; that is a parameter of rabbitmq-paging",
        ),
        (
            "qpid-push?connections=shared",
            "qpid-push knows no connections; that is a parameter of qpid-pull",
        ),
        (
            "qpid-push?runner=eager&runner=drain",
            "parameter 'runner' is given twice in 'qpid-push?runner=eager&runner=drain'",
        ),
    ],
)
def test_a_wrong_address_is_answered_by_one_clear_line(address: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as raised:
        make(address)
    assert str(raised.value) == complaint
