"""The page's drawings: the contents of queues after each step, and the arrows."""

from __future__ import annotations

import msgspec
import pytest

from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.report import diagram
from brokerproof.checks.report.content import content_of
from brokerproof.checks.report.diagram import BROKER, CLIENT, Arrow, diagram_of
from brokerproof.checks.search.counterexamples import Certificate, Counterexample, Line
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.answers import ConsumerClosed, Delivered, Error, Event
from brokerproof.spec.protocol.capabilities import Capabilities, EventOrder, ReleasePosition
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Drain,
    Get,
    Publish,
    Purge,
)

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    modes=("acknowledge", "automatic", "browse"),
    browse=True,
    get=True,
    credit=("messages",),
    release_position="original",
)
LATE = Error("timeout", "no answer")


def declare(order: Order | None = None) -> Line:
    return Line(Declare(queue="q0", order=order or Fifo()), "ok")


def publish(message: str, *events: Event, priority: int = 4, error: Error | None = None) -> Line:
    move = Publish(queue="q0", message=Message(id=message, priority=priority))
    return Line(move, "ok", events, error)


def consume(consumer: str, *events: Event, mode: ConsumeMode = "acknowledge") -> Line:
    move = Consume(
        channel="ch0", queue="q0", consumer=consumer, mode=mode, credit=Credit(messages=None)
    )
    return Line(move, "ok", events)


def get(message: str | None) -> Line:
    move = Get(channel="ch0", queue="q0")
    return Line(move, "", () if message is None else (given(message, None),))


def settle(how: str, message: str, *events: Event, error: Error | None = None) -> Line:
    move = msgspec.convert({"op": "settle", "how": how, "message": message}, Settle)
    return Line(move, "ok", events, error)


def given(message: str, consumer: str | None, *, number: int = 0, again: bool = False) -> Delivered:
    return Delivered(
        delivery=f"{message}-{consumer}-{number}",
        consumer=consumer,
        queue="q0",
        message=message,
        redelivered=again,
    )


def found(*steps: Line, event_order: EventOrder = "total", witness: str = "m0") -> Counterexample:
    """Return a counterexample with these steps, whether they break anything or not."""
    return Counterexample(
        format="brokerproof-counterexample/1",
        candidate="x",
        requirement="fifo-order",
        expected="m0",
        seen="m1",
        witnesses=(witness,),
        steps=steps,
        certificate=Certificate(grade="not certified", reason="made by hand"),
        claims=msgspec.structs.replace(CLAIMS, event_order=event_order),
    )


def contents(counterexample: Counterexample) -> list[str]:
    """Return the queue's contents after each step, in one line each."""
    shown = content_of(counterexample)
    assert shown.reason == ""
    lines = []
    for step in shown.steps:
        [queue] = step.queues
        words = [
            f"{e.message}:{'|'.join(e.may_be) or e.state}"
            + (f"({e.holder})" if e.holder else "")
            + ("*" if e.returned else "")
            for e in queue.entries
        ]
        lines.append(" ".join(words))
    return lines


def test_messages_are_available_held_settled_and_then_left_out() -> None:
    steps = (
        declare(),
        publish("m0"),
        publish("m1"),
        get("m0"),
        consume("c0", given("m1", "c0")),
        settle("release", "m0", given("m0", "c0", again=True)),
        settle("acknowledge", "m1"),
        Line(Drain(), "ok"),
    )
    assert contents(found(*steps)) == [
        "",
        "m0:available",
        "m0:available m1:available",
        "m0:held(a get on ch0) m1:available",
        "m0:held(a get on ch0) m1:held(c0)",
        "m0:held(c0) m1:held(c0)",
        "m0:held(c0) m1:gone",
        "m0:held(c0)",
    ]


def test_what_came_back_is_marked_and_stands_in_its_place() -> None:
    steps = (declare(), publish("m0"), publish("m1"), get("m0"), settle("release", "m0"))
    assert contents(found(*steps))[-1] == "m0:available* m1:available"
    closed = (*steps[:4], Line(CloseChannel(channel="ch0"), "ok"))
    assert contents(found(*closed))[-1] == "m0:available* m1:available"


def test_entries_stand_in_the_order_of_their_priorities() -> None:
    steps = (
        declare(Priority(10)),
        publish("m0", priority=1),
        publish("m1", priority=9),
        publish("m2", priority=9),
    )
    assert contents(found(*steps))[-1] == "m1:available m2:available m0:available"


@pytest.mark.parametrize(
    ("position", "content"),
    [
        ("original", "m0:available* m1:available"),
        ("head", "m0:available* m1:available"),
        ("tail", "m1:available m0:available*"),
    ],
)
def test_what_came_back_stands_where_the_candidate_puts_it(
    position: ReleasePosition, content: str
) -> None:
    steps = (declare(), publish("m0"), publish("m1"), get("m0"), settle("release", "m0"))
    counterexample = found(*steps)
    claims = msgspec.structs.replace(CLAIMS, release_position=position)
    assert contents(msgspec.structs.replace(counterexample, claims=claims))[-1] == content


def test_what_was_dropped_says_how() -> None:
    claims = msgspec.structs.replace(CLAIMS, purge=True)
    drop = (Line(Purge(queue="q0"), "ok"), Line(Drain(), "ok"))
    counterexample = found(declare(), publish("m0"), publish("m1"), get("m0"), *drop)
    shown = content_of(msgspec.structs.replace(counterexample, claims=claims))
    assert shown.reason == ""
    ends = [[(e.message, e.state, e.end) for e in step.queues[0].entries] for step in shown.steps]
    assert ends[-2:] == [[("m0", "held", ""), ("m1", "gone", "purged")], [("m0", "held", "")]]


def test_what_may_have_happened_is_shown_as_open() -> None:
    steps = (declare(), publish("m0", error=LATE))
    assert contents(found(*steps))[-1] == "m0:absent|available"
    certain = (declare(), publish("m0"))
    assert contents(found(*certain))[-1] == "m0:available"
    refused = (declare(), publish("m0"), publish("m1", error=Error("refused", "no room")))
    shown = content_of(found(*refused))
    assert [e.message for e in shown.steps[1].queues[0].entries] == ["m0"]


def test_a_browser_takes_nothing() -> None:
    steps = (declare(), publish("m0"), consume("c0", given("m0", "c0"), mode="browse"))
    assert contents(found(*steps))[-1] == "m0:available"
    taking = (declare(), publish("m0"), consume("c0", given("m0", "c0"), mode="automatic"))
    assert contents(found(*taking))[-1] == "m0:gone"


def test_where_the_order_of_events_is_unknown_what_was_told_is_shown_all_the_same() -> None:
    steps = (
        declare(),
        consume("c0"),
        publish("m0"),
        publish("m1", given("m0", "c0"), given("m1", "c0")),
        settle("acknowledge", "m0"),
        Line(Drain(), "ok"),
    )
    assert contents(found(*steps, event_order="per_consumer"))[2:] == [
        "m0:available",
        "m0:held(c0) m1:held(c0)",
        "m0:gone m1:held(c0)",
        "m1:held(c0)",
    ]


def test_at_the_breach_the_queue_is_as_it_was() -> None:
    steps = (declare(), publish("m0"), publish("m1"), get("m1"))
    assert contents(found(*steps))[-1] == "m0:available m1:available"


def test_what_cannot_be_followed_says_why() -> None:
    steps = (declare(), publish("m0"), publish("m1"), get("m1"), Line(Drain(), "ok"))
    shown = content_of(found(*steps))
    assert (len(shown.steps), shown.reason) == (4, "it broke a requirement before its end")
    assert len(diagram_of(found(*steps)).rows) == 5
    old = msgspec.structs.replace(found(*steps), claims=None)
    assert "before answers were recorded" in content_of(old).reason
    unused = found(declare(), settle("release", "m0"))
    assert content_of(unused).reason == "step 2 settles a message that is not held"


def test_an_error_of_ours_costs_no_more_than_the_rest_of_one_drawing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> list[Breach]:
        raise AssertionError("impossible")

    monkeypatch.setattr(Oracle, "observe", fails)
    drawn = diagram_of(found(declare(), publish("m0")))
    assert drawn.reason == "our own oracle failed: impossible"
    assert [len(row.arrows) for row in drawn.rows] == [1, 2]


# Arrows.


def arrows(*steps: Line) -> list[tuple[int, int, str, str, bool]]:
    """Return the arrows of the last step."""
    last = diagram_of(found(*steps)).rows[-1]
    return [(a.start, a.end, a.text, a.kind, a.marked) for a in last.arrows]


def test_operations_go_to_the_broker_and_deliveries_to_their_receivers() -> None:
    steps = (declare(), consume("c0"), consume("c1"), publish("m0", given("m0", "c1")))
    assert diagram_of(found(*steps)).lanes == ("client", "broker", "c0", "c1")
    assert arrows(*steps) == [
        (CLIENT, BROKER, "publish m0 to q0", "operation", True),
        (BROKER, 3, "m0", "delivery", True),
    ]
    assert arrows(declare(), publish("m0"), publish("m1"), get("m0"))[1][:3] == (
        BROKER,
        CLIENT,
        "m0",
    )


def test_only_witnesses_are_marked() -> None:
    assert not any(marked for *_, marked in arrows(declare(), publish("m1")))


def test_a_plain_ok_is_drawn_only_where_it_may_be_what_is_wrong() -> None:
    rows = diagram_of(found(declare(), publish("m0"))).rows
    assert [[a.text for a in row.arrows] for row in rows] == [
        ["declare q0 fifo"],
        ["publish m0 to q0", "ok"],
    ]


def test_a_settlement_comes_from_the_holder_of_the_message() -> None:
    steps = (declare(), consume("c0"), publish("m0", given("m0", "c0")), settle("release", "m0"))
    assert arrows(*steps)[0][:3] == (2, BROKER, "release m0")
    by_get = (declare(), publish("m0"), get("m0"), settle("release", "m0"))
    assert arrows(*by_get)[0][:3] == (CLIENT, BROKER, "release m0")


def test_errors_and_other_events_are_told() -> None:
    steps = (declare(), publish("m0", error=Error("refused", "no room")))
    assert arrows(*steps)[1][:4] == (BROKER, CLIENT, "refused: no room", "error")
    closed = (declare(), consume("c0", ConsumerClosed(consumer="c0")))
    assert arrows(*closed)[1][:4] == (BROKER, 2, "closed", "event")
    old = msgspec.structs.replace(get(None), answered="m0 → the get")
    assert arrows(declare(), old)[1][:4] == (BROKER, CLIENT, "m0 → the get", "event")


def test_what_is_told_many_times_is_drawn_once_and_a_flood_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = [given("m0", "c0", number=n) for n in range(5)]
    assert [a[2] for a in arrows(declare(), consume("c0"), publish("m0", *same))][1:] == [
        "m0 (5 times)"
    ]
    monkeypatch.setattr(diagram, "ARROWS_MAX", 2)
    flood = [given(f"m{n}", "c0") for n in range(5)]
    texts = [a[2] for a in arrows(declare(), consume("c0"), publish("m0", *flood))]
    assert texts[1:] == ["m0", "m1", "more, 5 events in all"]


def test_a_consumer_that_was_never_subscribed_has_a_lane() -> None:
    stranger = publish("m0", given("m0", "ghost"))
    assert diagram_of(found(declare(), stranger)).lanes == ("client", "broker", "ghost")


def test_lanes_are_alive_from_subscribing_to_leaving() -> None:
    leave: Move = Cancel(consumer="c0")
    steps = (declare(), consume("c0"), Line(leave, "ok"), Line(Drain(), "ok"))
    assert [row.alive[2] for row in diagram_of(found(*steps)).rows] == [False, True, True, False]


def test_an_arrow_ends_in_the_middle_of_its_lanes() -> None:
    right, left = Arrow(CLIENT, BROKER, "", "operation"), Arrow(3, BROKER, "", "operation")
    assert (right.left, right.right, right.leftwards) == (2, 4, False)
    assert (left.left, left.right, left.leftwards) == (4, 8, True)
