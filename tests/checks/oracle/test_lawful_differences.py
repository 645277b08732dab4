"""Lawful differences: each is kept where it is claimed, and a fault where it is not.

Each broker differs in one point only. With strict claims the guard that the claim weakens names it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.oracle import oracle
from brokerproof.checks.oracle.contracts import differs
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.streams import LawfulOrder, Streams, judged
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message, Priority
from brokerproof.spec.protocol.answers import OK, Answer, Delivered
from brokerproof.spec.protocol.capabilities import (
    STRICT,
    BrowserSees,
    Capabilities,
    ReleasePosition,
)
from brokerproof.spec.protocol.operations import (
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
)
from brokerproof.spec.requirements import catalogue
from examples.whole_broker_differences import (
    ClosesOneByOne,
    Different,
    KeepsNothingForLeavers,
    OrdersByPersistence,
    PurgesHeld,
    ReleasesByLeaving,
    ReturnsAtCancel,
    ShowsHeld,
    ShowsSnapshots,
    TellsNoDeletion,
)
from tests.examples.recipes_client import ids

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=3,
    modes=("acknowledge", "browse"),
    credit=("messages",),
    browse=True,
    get=True,
    release_position="original",
    purge=True,
    delete=True,
)
DURABLE = replace(CLAIMS, modes=("acknowledge",), browse=False, purge=False, durable=True)

BREAKS: dict[type[Different], str] = {
    ReleasesByLeaving: "does-what-it-claims",
    KeepsNothingForLeavers: "close-releases",
    ReturnsAtCancel: "nothing-twice",
    ClosesOneByOne: "release-rewinds",
    ShowsSnapshots: "browser-sees-all",
    ShowsHeld: "browser-sees-available",
    PurgesHeld: "purge-leaves-acquired",
    TellsNoDeletion: "deletion-is-told",
    OrdersByPersistence: "fifo-order",
}
"""Each broker, and the strict requirement that it breaks."""


def broken(kind: type[Different], claims: Capabilities) -> set[str]:
    subject = Subject("different", kind(claims).hello(), lambda: kind(claims), in_process=True)
    report = run_gate(subject, catalogue(), Budget(operations=250, examples=3), seed=0)
    return ids(report, Outcome.BROKEN)


def differences(kind: type[Different]) -> dict[str, str | bool]:
    """Return the claims of a broker that are not the strict ones."""
    claimed, strict = asdict(kind.lawful), asdict(kind.lawful) | {**STRICT} | {"reject": True}
    return {name: value for name, value in claimed.items() if value != strict[name]}


def strict_claims(kind: type[Different]) -> Capabilities:
    return DURABLE if kind is OrdersByPersistence else CLAIMS


@pytest.mark.each_time(3)
@pytest.mark.parametrize("kind", BREAKS, ids=lambda kind: kind.__name__)
def test_a_difference_that_is_claimed_is_kept(kind: type[Different]) -> None:
    assert broken(kind, replace(strict_claims(kind), **differences(kind))) == set()


@pytest.mark.each_time(1)
@pytest.mark.parametrize("kind", BREAKS, ids=lambda kind: kind.__name__)
def test_the_same_without_the_claim_is_a_fault(kind: type[Different]) -> None:
    assert BREAKS[kind] in broken(kind, strict_claims(kind))


def test_every_difference_has_a_broker() -> None:
    assert {name for kind in BREAKS for name in differences(kind)} - {"reject"} == {*STRICT}
    assert all(differs(replace(CLAIMS, **differences(kind))) for kind in BREAKS)


def test_a_message_may_go_from_one_leaving_consumer_to_the_next() -> None:
    claims = replace(CLAIMS, event_order="per_consumer", close="each")
    given = [
        Delivered(delivery=f"d{n}", consumer=f"c{n}", queue="q", message="m", redelivered=n > 0)
        for n in range(2)
    ]
    steps: list[tuple[Operation, Answer]] = [
        (Declare(queue="q", order=Fifo()), OK),
        (Publish(queue="q", message=Message(id="m")), OK),
        *((Consume(channel="ch", queue="q", consumer=f"c{n}"), OK) for n in range(2)),
        (CloseChannel(channel="ch"), Answer(tuple(given))),
        (Drain(), OK),
    ]

    def breaches(oracle: Oracle) -> list[str]:
        return [each.requirement for step in steps for each in oracle.observe(*step)]

    assert breaches(Oracle(claims)) == []
    assert breaches(Oracle(replace(claims, close="atomic"))) == ["nothing-twice"]


@pytest.mark.parametrize("rests", [True, False])
def test_a_get_may_miss_what_a_closed_channel_held_until_the_next_rest(*, rests: bool) -> None:
    claims = replace(CLAIMS, close="each")
    held = Delivered(delivery="d", queue="q", message="m", redelivered=False, consumer=None)
    steps: list[tuple[Operation, Answer]] = [
        (Declare(queue="q", order=Fifo()), OK),
        (Publish(queue="q", message=Message(id="m")), OK),
        (Get(channel="ch", queue="q"), Answer((held,))),
        (CloseChannel(channel="ch"), OK),
        *([(Drain(), OK)] if rests else []),
        (Get(channel="other", queue="q"), OK),
    ]

    def breaches(oracle: Oracle) -> list[str]:
        return [each.requirement for step in steps for each in oracle.observe(*step)]

    assert breaches(Oracle(claims)) == (["get-finds"] if rests else [])
    assert breaches(Oracle(replace(claims, close="atomic"))) == ["get-finds"]


@pytest.mark.parametrize("is_idle", [True, False])
def test_an_idle_consumer_may_leave_before_those_that_hold_something(*, is_idle: bool) -> None:
    claims = replace(CLAIMS, event_order="per_consumer", close="each", consumer_priority=True)
    consumers = [
        Consume(channel="ch", queue="q", consumer="c0"),
        Consume(channel="ch", queue="q", consumer="c1"),
        Consume(channel="ch", queue="q", consumer="urgent", priority=1),
    ]
    given = [
        Delivered(delivery="d0", consumer="c0", queue="q", message="m", redelivered=False),
        Delivered(delivery="d1", consumer="c1", queue="q", message="m", redelivered=True),
    ]
    own = Delivered(delivery="d2", consumer="urgent", queue="q", message="n", redelivered=False)
    steps: list[tuple[Operation, Answer]] = [
        (Declare(queue="q", order=Fifo()), OK),
        (Publish(queue="q", message=Message(id="m")), OK),
        (consumers[0], OK),
        (Drain(), Answer((given[0],))),
        *((each, OK) for each in consumers[1:]),
        *([] if is_idle else [(Publish(queue="q", message=Message(id="n")), Answer((own,)))]),
        (CloseChannel(channel="ch"), Answer((given[1],))),
        (Drain(), OK),
    ]
    oracle = Oracle(claims)
    found = [each.requirement for step in steps for each in oracle.observe(*step)]
    assert found == ([] if is_idle else ["consumer-priority"])


@pytest.mark.parametrize(
    ("sees", "alarms"), [("all", []), ("available", ["browser-sees-available"])]
)
def test_a_browser_may_see_what_is_on_its_way_to_an_automatic_consumer(
    sees: BrowserSees, alarms: list[str]
) -> None:
    modes: tuple[ConsumeMode, ...] = ("automatic", "browse")
    claims = replace(CLAIMS, event_order="per_consumer", modes=modes, browser_sees=sees)
    events = [
        Delivered(delivery=f"d{n}", consumer=consumer, queue="q", message=of, redelivered=False)
        for n, (consumer, of) in enumerate((("c", "low"), ("c", "high"), ("b", "low")))
    ]
    steps: list[tuple[Operation, Answer]] = [
        (Declare(queue="q", order=Priority(3)), OK),
        (Consume(channel="ch", queue="q", consumer="c", mode="automatic"), OK),
        (Publish(queue="q", message=Message(id="low", priority=0)), OK),
        (Publish(queue="q", message=Message(id="high", priority=9)), OK),
        (Consume(channel="ch", queue="q", consumer="b", mode="browse"), OK),
        (Drain(), Answer(tuple(events))),
    ]
    oracle = Oracle(claims)
    found = [each.requirement for step in steps for each in oracle.observe(*step)]
    assert found == alarms


@pytest.mark.parametrize("rests", [False, True])
def test_a_browser_may_pass_what_is_on_its_way_back(*, rests: bool) -> None:
    position: ReleasePosition = "head"
    claims = replace(
        CLAIMS, event_order="per_consumer", close="each", release_position=position, purge=False
    )
    given = [
        Delivered(delivery=f"d{n}", consumer=consumer, queue="q", message=of, redelivered=n > 1)
        for n, (consumer, of) in enumerate(
            (("c0", "m0"), ("c0", "m1"), ("c1", "m1"), ("b", "m1"), ("b", "m0"))
        )
    ]
    holders = [Consume(channel="ch", queue="q", consumer=each) for each in ("c0", "c1")]
    steps: list[tuple[Operation, Answer]] = [
        (Declare(queue="q", order=Fifo()), OK),
        *((Publish(queue="q", message=Message(id=each)), OK) for each in ("m0", "m1")),
        (holders[0], OK),
        (Drain(), Answer(tuple(given[:2]))),
        (holders[1], OK),
        (CloseChannel(channel="ch"), Answer((given[2],))),
        *([(Drain(), OK)] if rests else []),
        (Consume(channel="other", queue="q", consumer="b", mode="browse"), OK),
        (Drain(), Answer(tuple(given[3:]))),
    ]
    oracle = Oracle(claims)
    found = [each.requirement for step in steps for each in oracle.observe(*step)]
    assert found == (["browser-in-order"] if rests else [])


class Late(Different):
    """Delivers at drain, so that its events may lie anywhere among the operations before."""

    def __init__(self, claims: Capabilities) -> None:
        super().__init__(claims)
        self.tells = "at_drain"


@pytest.mark.each_time(1)
@pytest.mark.parametrize("browse", [False, True])
def test_where_one_order_suffices_all_orders_end_alike(
    monkeypatch: pytest.MonkeyPatch, *, browse: bool
) -> None:
    """With browsers they do not, and the oracle follows all orders."""
    alike: Counter[bool] = Counter()
    steps: set[str] = set()

    def compared(streams: Streams, *given: Any, every_order: bool) -> LawfulOrder:
        found = judged(streams, *given, every_order=every_order)
        if streams.ends_alike:
            other = judged(streams, *given, every_order=not every_order)
            alike[found.cases == other.cases] += 1
            steps.update(step[0] for step in streams.operations if step)
        return found

    monkeypatch.setattr(oracle, "judged", compared)
    modes: tuple[ConsumeMode, ...] = ("acknowledge", "browse") if browse else ("acknowledge",)
    claims = replace(CLAIMS, event_order="per_consumer", modes=modes, browse=browse)
    changing = replace(claims, close="each", credit=("messages", "change"))
    assert broken(Late, changing) == set()
    assert alike[True] > 500
    assert {"set_credit", "release_at_close"} <= steps
    assert (alike[False] > 0) == browse
