"""What few brokers claim, what the whole broker refuses, and that it can be copied.

Numbers in brackets are the rules of driver protocol 1.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from brokerproof.candidates.python_object import load_python_object
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, LastValue, Priority, Sorted
from brokerproof.spec.protocol.answers import OK
from brokerproof.spec.protocol.candidate import Fingerprinted, Forkable
from brokerproof.spec.protocol.operations import Declare, Inspect, Reset
from brokerproof.spec.requirements import catalogue
from examples.whole_broker import (
    WholeBroker,
    make_broker,
    make_head_broker,
    make_lazy_broker,
    make_parking_broker,
    make_tail_broker,
)
from examples.whole_broker_claims import everything
from tests.examples.whole_broker_client import Talk, with_messages

FILE = Path(__file__).parents[2] / "examples" / "whole_broker.py"
FACTORIES = (make_broker, make_tail_broker, make_head_broker, make_lazy_broker, make_parking_broker)

# The clock.


def test_a_message_is_held_back_in_its_place() -> None:
    talk = Talk()
    talk.publish("late", wait=5)
    talk.publish("m0")
    talk.publish("m1")
    assert talk.get() == ["m0 → get"]
    assert talk.advance(4) == []
    assert talk.browse("b") == ["m1 → b"]
    assert talk.advance(1) == []  # it was behind the browser's place
    assert talk.take_all() == ["late", "m1"]


def test_a_waiting_consumer_is_given_what_its_time_has_come_for() -> None:
    talk = Talk()
    talk.consume("c")
    assert talk.publish("late", wait=5) == []
    assert talk.advance(5) == ["late → c"]
    assert talk.advance(-1) == ["refused"]


def test_an_expired_message_is_not_given_and_is_kept_by_its_holder() -> None:
    talk = Talk()
    talk.publish("m0", expire=5)
    talk.publish("m1", expire=5)
    talk.publish("m2", expire=5)
    talk.get()
    talk.get()
    talk.advance(4)
    talk.release("m1")
    assert talk.advance(1) == []
    assert talk.get() == []
    assert talk.acknowledge("m0") == []


def test_what_expires_while_it_is_held_does_not_return() -> None:
    talk = Talk()
    talk.publish("m0", expire=5)
    talk.publish("never", expire=0)
    talk.get()
    talk.advance(5)
    assert talk.release("m0") == []
    assert talk.get() == []


# Parking.


def test_a_publish_waits_for_room_and_is_taken_in_its_turn() -> None:
    talk = with_messages("m0", "m1", broker=make_parking_broker())
    assert talk.publish("m2") == ["parked"]
    assert talk.publish("m3") == ["parked"]
    assert talk.get() == ["m0 → get"]  # what is held takes room too
    assert talk.acknowledge("m0") == ["m2 accepted"]
    assert talk.purge() == ["m3 accepted"]
    assert talk.take_all() == ["m3"]


def test_what_is_parked_goes_with_its_queue_and_with_a_crash() -> None:
    talk = Talk(make_parking_broker())
    talk.declare("d", durable=True)
    for queue in ("q", "d"):
        for number in range(3):
            talk.publish(f"{queue}{number}", to=queue, persistent=True)
    assert talk.delete() == []
    talk.crash()
    talk.restart()
    assert talk.take_all("d") == ["d0", "d1"]


def test_a_consumer_drinks_what_is_parked_too() -> None:
    talk = with_messages("m0", "m1", broker=make_parking_broker())
    talk.publish("m2")
    told = talk.consume("c", mode="automatic")
    assert told == ["m0 → c", "m2 accepted", "m1 → c", "m2 → c"]


# Crash and restart.


def test_what_is_durable_comes_back_in_its_place() -> None:  # (10, 27, 37)
    talk = Talk()
    talk.declare("d", durable=True)
    for number in range(5):
        talk.publish(f"m{number}", to="d", persistent=number != 2)
    talk.publish("lost", persistent=True)
    talk.consume("c", "d", credit=(2, None))
    assert talk.acknowledge("m0") == ["m2 → c"]
    assert talk.crash() == []
    assert talk.drain() == ["refused"]  # (28)
    assert talk.crash() == ["refused"]
    assert talk.restart() == []
    assert talk.restart() == ["refused"]
    assert talk.get() == ["refused"]
    assert talk.acknowledge("m1") == ["refused"]
    assert talk.cancel("c") == ["refused"]
    assert talk.take_all("d") == ["m1", "m3", "m4"]


def test_what_was_never_acquired_is_not_marked_after_a_restart() -> None:  # (11)
    talk = Talk()
    talk.declare("d", durable=True)
    talk.publish("m0", to="d", persistent=True)
    talk.publish("m1", to="d", persistent=True)
    talk.consume("b", "d", mode="browse")
    talk.get("d")
    talk.crash()
    talk.restart()
    assert talk.get("d") == ["m0 → get again"]
    assert talk.get("d") == ["m1 → get"]


def test_an_auto_delete_queue_comes_back_and_waits_for_its_next_consumer() -> None:  # (27)
    talk = Talk()
    talk.declare("d", durable=True, auto_delete=True)
    talk.consume("c", "d")
    assert talk.crash() == []
    assert talk.restart() == []
    assert talk.declare("d", durable=True, auto_delete=True) == []
    talk.consume("c2", "d")
    assert talk.cancel("c2") == ["d deleted"]


def test_reset_brings_it_up_empty() -> None:  # (28)
    talk = Talk()
    talk.declare("d", durable=True)
    talk.crash()
    assert talk.broker.handle(Reset()) == OK
    assert talk.get("d") == ["refused"]


def test_delivery_ids_do_not_come_again() -> None:  # (24)
    talk = Talk()
    talk.declare("d", durable=True)
    talk.publish("m0", to="d", persistent=True)
    talk.consume("b", "d", mode="browse")
    seen = [talk.deliveries["m0"]]
    for _ in range(2):
        talk.get("d")
        seen.append(talk.deliveries["m0"])
        talk.crash()
        talk.restart()
    assert len({*seen}) == 3


# What is refused, and what is not claimed.


def test_what_does_not_exist_or_makes_no_sense_is_refused() -> None:  # (15, 22, 25, 35)
    talk = with_messages("m0")
    talk.declare("r")
    talk.consume("c", credit=(0, None))
    talk.deliveries["m0"] = "d99"
    answers = [
        talk.publish("m1", to="none"),
        talk.publish("m1", priority=10),
        talk.publish("m1", size=-1),
        talk.publish("m1", wait=-1),
        talk.get("none"),
        talk.purge("none"),
        talk.delete("none"),
        talk.consume("d", "none"),
        talk.consume("d", "q", "none"),
        talk.consume("d", "q", "q"),
        talk.consume("c"),
        talk.consume("d", credit=(-1, None)),
        talk.credit(1, of="none"),
        talk.credit(None, -1, of="c"),
        talk.credit(1),
        talk.credit(1, of="c", of_channel="ch"),
        talk.cancel("none"),
        talk.flush("none"),
        talk.acknowledge("m0"),
    ]
    assert answers == [["refused"]] * len(answers)
    assert talk.take_all() == ["m0"]


def test_what_is_not_claimed_is_unsupported() -> None:  # (15, 38)
    full = everything()
    core = type(full)(modes=("acknowledge",))
    talk = Talk(WholeBroker(claims=core))
    assert talk.broker.hello().capabilities == core
    answers = [
        talk.declare("x", Priority(2)),
        talk.declare("x", Sorted("k")),
        talk.declare("x", LastValue("k")),
        talk.declare("x", durable=True),
        talk.declare("x", auto_delete=True),
        talk.publish("m", wait=0),
        talk.publish("m", expire=9),
        talk.get(),
        talk.browse("c"),
        talk.consume("c", mode="automatic"),
        talk.consume("c", credit=(1, None)),
        talk.consume("c", credit=(None, 1)),
        talk.consume("c", selector={}),
        talk.consume("c", priority=1),
        talk.consume("c", auto_close=True),
        talk.consume("c", exclusive=True),
        talk.consume("c", "q", "r"),
        talk.credit(of="c"),
        talk.flush("c"),
        talk.advance(1),
        talk.crash(),
        talk.restart(),
        talk.ask(Inspect(queue="q")),
    ]
    assert answers == [["unsupported"]] * len(answers)
    talk.publish("m0")
    assert talk.consume("c") == ["m0 → c"]


def test_a_broker_that_does_not_claim_to_park_does_not() -> None:
    claims = msgspec.structs.replace(everything(), parks=False)
    talk = with_messages("m0", broker=WholeBroker(parks_above=1, claims=claims))
    assert talk.publish("m1") == []


# The lazy broker.


def test_a_lazy_broker_gives_at_drain() -> None:  # (2)
    talk = with_messages("m0", "m1", broker=make_lazy_broker())
    assert talk.consume("c", credit=(1, None)) == []
    assert talk.browse("b") == []
    assert talk.get() == ["m0 → get"]
    assert talk.drain() == ["m1 → b", "m1 → c"]
    assert talk.publish("m2") == []
    assert talk.acknowledge("m1") == []
    assert talk.flush("c") == ["m2 → b", "m2 → c"]


def test_a_lazy_broker_tells_in_order_and_late() -> None:  # (2, 21)
    talk = Talk(make_lazy_broker())
    talk.declare("t", auto_delete=True)
    assert talk.consume("c", "t", auto_close=True) == []
    assert talk.publish("m0", to="t") == ["refused"]  # both are gone already
    assert talk.publish("m0") == []
    assert talk.get() == ["c closed", "t deleted", "m0 → get"]
    talk.consume("d", auto_close=True)
    assert talk.crash() == ["d closed"]


def test_reset_discards_what_a_lazy_broker_has_not_told() -> None:  # (30)
    talk = Talk(make_lazy_broker())
    assert talk.consume("c", auto_close=True) == []
    assert talk.broker.handle(Reset()) == OK
    assert talk.drain() == []


# Copies.


def busy() -> Talk:
    talk = Talk(WholeBroker(parks_above=4), Priority(3))
    talk.credit(5, of_channel="ch")
    talk.consume("c", credit=(2, 9), selector={"n": 1})
    talk.browse("b")
    for number in range(6):
        talk.publish(f"m{number}", n=number % 2, wait=number, expire=10)
    return talk


@pytest.mark.parametrize("copied", [WholeBroker.fork, copy.deepcopy])
def test_a_copy_behaves_alike_and_is_independent(
    copied: Callable[[WholeBroker], WholeBroker],
) -> None:
    one, other = busy(), busy()
    before = one.broker.fingerprint()
    other.broker = copied(one.broker)
    assert other.broker.fingerprint() == before
    told = [other.advance(4), other.get(), other.close(), other.take_all()]
    assert one.broker.fingerprint() == before
    assert told == [one.advance(4), one.get(), one.close(), one.take_all()]
    assert one.broker.fingerprint() == other.broker.fingerprint() != before


def test_a_pickled_broker_is_the_same() -> None:
    broker = busy().broker
    again = pickle.loads(pickle.dumps(broker))  # noqa: S301
    assert again.fingerprint() == broker.fingerprint()


def test_fingerprints_forget_how_many_deliveries_and_seconds_there_were() -> None:
    quick, slow = with_messages("m0"), with_messages("gone", "m0")
    slow.advance(100)
    slow.acknowledge(slow.get()[0].split()[0])
    for talk in (quick, slow):
        talk.publish("late", wait=3)
        talk.get()
    assert quick.deliveries["m0"] != slow.deliveries["m0"]
    assert quick.broker.fingerprint() == slow.broker.fingerprint()
    quick.release("m0")
    assert quick.broker.fingerprint() != slow.broker.fingerprint()


def test_the_file_can_be_loaded_by_its_path() -> None:
    for factory in FACTORIES:
        broker = load_python_object(f"{FILE}:{factory.__name__}")
        assert isinstance(broker, Forkable)
        assert isinstance(broker, Fingerprinted)
        assert broker.handle(Declare(queue="q", order=Fifo())) == OK


@pytest.mark.each_time(1)
@pytest.mark.parametrize("factory", ["make_broker", "make_lazy_broker"])
def test_the_gate_finds_no_broken_promise(factory: str) -> None:
    subject = open_subject(f"{FILE}:{factory}")
    try:
        report = run_gate(subject, catalogue(), Budget(operations=200, examples=4), seed=0)
    finally:
        subject.close()
    assert [v.requirement.id for v in report.verdicts if v.outcome is Outcome.BROKEN] == []
