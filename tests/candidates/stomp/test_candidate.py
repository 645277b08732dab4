"""A broker behind STOMP as a candidate, against a small broker in this process."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.stomp import candidate as stomp
from brokerproof.candidates.stomp.candidate import StompCandidate
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import barrier
from brokerproof.candidates.wire import candidate as wire
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
)
from tests.candidates.stomp.fake_broker import FakeBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROFILE = """
name = "fake"
protocol = "stomp"
product = "Fake"
[claims]
modes = ["acknowledge", "automatic"]
credit = ["messages"]
release = "by_leaving"
cancel = "returns"
close = "each"
release_position = "head"
event_order = "per_consumer"
[barrier]
kind = "silence"
request = "transaction"
floor_s = 0.0025
factor = 1
[dialect]
window = "window"
reject_by = "NACK"
{dialect}
[sources]
release = "fake_broker.py"
cancel = "fake_broker.py"
close = "fake_broker.py"
release_position = "fake_broker.py"
"""


@pytest.fixture(autouse=True)
def _little_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barrier, "MEASURED_DELIVERIES", 3)
    monkeypatch.setattr(barrier, "WARM_UP_DELIVERIES", 1)


SPLITS = 'mode = "client"\nsplit_window = 8'
UNSUBSCRIBES = 'cancel_by = "UNSUBSCRIBE"\nconnection_per = "channel"'


class Client:
    """A candidate after a reset, with the queue q and short words for what the tests do to it."""

    def __init__(self, candidate: StompCandidate) -> None:
        self.candidate = candidate
        self.log: list[Delivered] = []
        self.do(Reset())
        self.do(Declare(queue="q", order=Fifo()))

    def do(self, *operations: Operation) -> list[Delivered]:
        """Carry out what must succeed and return the deliveries told."""
        told: list[Delivered] = []
        for operation in operations:
            answer = self.candidate.handle(operation)
            assert answer.ok, (operation, answer.error)
            told += [event for event in answer.events if isinstance(event, Delivered)]
        self.log += told
        return told

    def error(self, operation: Operation) -> str:
        """Carry out what must fail and return the code of the error."""
        error = self.candidate.handle(operation).error
        assert error is not None
        assert error.message
        return error.code

    def publish(self, *ids: str) -> None:
        """Publish messages of these ids."""
        self.do(*(Publish(queue="q", message=Message(id=name)) for name in ids))

    def consume(self, name: str, window: int | None = None, channel: str = "ch") -> None:
        """Subscribe to the queue q."""
        self.do(Consume(channel=channel, queue="q", consumer=name, credit=Credit(window)))

    def drain(self) -> list[str]:
        """Drain and return the ids of all that was delivered since the last drain."""
        self.do(Drain())
        told, self.log = self.log, []
        return [delivery.message for delivery in told]

    def contents(self) -> list[str]:
        """Take everything that is available and return its ids in order."""
        self.drain()
        taker = Consume(channel="taker", queue="q", consumer="taker", mode="automatic")
        self.do(taker)
        told = self.drain()
        self.do(CloseChannel(channel="taker"))
        return told


@pytest.fixture(params=["", UNSUBSCRIBES], ids=["disconnect", "unsubscribe"])
def url_and_broker(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, FakeBroker]]:
    profile = tmp_path / "fake.toml"
    profile.write_text(PROFILE.format(dialect=request.param), "utf-8")
    with FakeBroker() as broker:
        yield broker.url.replace("generic-stomp", str(profile)), broker


@pytest.fixture
def broker(url_and_broker: tuple[str, FakeBroker]) -> FakeBroker:
    return url_and_broker[1]


@pytest.fixture
def client(url_and_broker: tuple[str, FakeBroker]) -> Iterator[Client]:
    with closing(StompCandidate(url_and_broker[0])) as candidate:
        yield Client(candidate)


def test_it_introduces_itself_and_tells_the_silence(client: Client) -> None:
    hello = client.candidate.hello()
    assert (hello.name, hello.version) == ("Fake", "1.0")
    [notice] = client.candidate.notices
    assert "is awaited for" in notice


def test_a_window_of_two_holds_two_and_an_acknowledgement_gives_the_next(client: Client) -> None:
    client.publish("a", "b", "c", "d")
    client.consume("c0", window=2)
    assert client.drain() == ["a", "b"]
    client.do(Acknowledge(delivery="d2"))
    assert client.drain() == ["c"]
    assert client.error(Acknowledge(delivery="d2")) == "refused"


def test_a_consumer_is_served_when_it_is_said_to_be_there(
    client: Client, broker: FakeBroker
) -> None:
    broker.opens_late = True
    client.consume("c0")
    assert broker.serves_all


@pytest.mark.parametrize("late_s", [0.0, 0.02])
def test_a_drain_waits_for_what_receipts_have_overtaken(
    client: Client, broker: FakeBroker, late_s: float
) -> None:
    broker.late_s = late_s
    client.consume("c0", window=1)
    client.publish("a", "b", "c")
    for name in "abc":
        assert client.drain() == [name]
        client.do(Acknowledge(delivery=f"d{'abc'.index(name) + 1}"))
    assert client.drain() == []


def test_a_lost_message_ends_the_drain_after_the_silence(
    client: Client, broker: FakeBroker
) -> None:
    broker.loses.add("b")
    client.consume("c0")
    client.publish("a", "b", "c")
    start = time.monotonic()
    assert client.drain() == ["a", "c"]
    assert time.monotonic() - start >= 0.0025 * barrier.PATIENCE


def test_the_silence_is_shorter_for_a_broker_that_often_does_not_pay(
    client: Client, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier, "UNPAID_MAX", 1)
    client.candidate._patience.silence_s = 0.5 / barrier.PATIENCE
    broker.loses.add("a")
    client.publish("a")
    client.consume("c0")
    waits = []
    for _ in range(3):
        start = time.monotonic()
        assert client.drain() == []
        waits.append(time.monotonic() - start >= 0.5)
    assert waits == [True, True, False]


def test_nothing_is_waited_for_when_nothing_is_owed(client: Client) -> None:
    client.candidate._patience.silence_s = 5.0
    client.consume("c0", window=1)
    client.publish("a", "b")
    start = time.monotonic()
    assert client.drain() == ["a"]
    assert client.drain() == []
    assert time.monotonic() - start < 5.0


def test_cancel_returns_what_is_held(client: Client) -> None:
    client.consume("c0", window=1)
    client.publish("a", "b")
    told = client.do(Cancel(consumer="c0"))
    assert [each.message for each in told] == ["a"]
    assert client.error(Acknowledge(delivery="d1")) == "refused"
    assert client.error(Cancel(consumer="c0")) == "refused"
    assert client.contents() == ["a", "b"]


def test_another_consumer_of_the_channel_stays_and_is_given_what_returns(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", window=1)
    client.drain()
    client.consume("c1", window=2)
    assert client.drain() == ["b"]
    client.do(Cancel(consumer="c0"), Drain())
    assert [(each.consumer, each.message, each.redelivered) for each in client.log] == [
        ("c1", "a", True)
    ]


@pytest.mark.parametrize("splits", [True, False])
def test_a_split_window_makes_a_cumulative_acknowledgement_settle_one_message(
    tmp_path: Path, *, splits: bool
) -> None:
    profile = tmp_path / "fake.toml"
    dialect = f"{UNSUBSCRIBES}\n{SPLITS if splits else ''}"
    profile.write_text(PROFILE.format(dialect=dialect), "utf-8")
    with FakeBroker("1.0") as broker:
        broker.is_cumulative = True
        url = broker.url.replace("generic-stomp", str(profile))
        with closing(StompCandidate(url)) as candidate:
            client = Client(candidate)
            client.publish("a", "b", "c", "d")
            client.consume("c0", window=3)
            assert client.drain() == ["a", "b", "c"]
            client.do(Acknowledge(delivery="d2"))
            assert client.drain() == ["d"]
            assert client.do(Cancel(consumer="c0")) == []
            assert ("a" in client.contents()) == splits


@pytest.mark.parametrize("widens", [True, False])
def test_a_split_consumer_without_a_limit_is_given_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, widens: bool
) -> None:
    if not widens:
        monkeypatch.setattr(StompCandidate, "_widen_what_is_full", lambda _: False)
    profile = tmp_path / "fake.toml"
    profile.write_text(PROFILE.format(dialect=SPLITS), "utf-8")
    with FakeBroker("1.0") as broker:
        url = broker.url.replace("generic-stomp", str(profile))
        with closing(StompCandidate(url)) as candidate:
            client = Client(candidate)
            sent = [f"m{number}" for number in range(20)]
            client.publish(*sent)
            client.consume("c0")
            assert client.drain() == (sent if widens else sent[:8])
            assert client.do(Cancel(consumer="c0")) == []
            assert {*client.contents()} == {*sent}


def test_closing_a_channel_tells_what_it_was_given_and_returns_it(client: Client) -> None:
    client.consume("c0", window=2)
    client.publish("a", "b", "c")
    told = client.do(CloseChannel(channel="ch"))
    assert [each.message for each in told] == ["a", "b"]
    assert client.error(Acknowledge(delivery="d1")) == "refused"
    assert client.contents() == ["a", "b", "c"]
    client.do(CloseChannel(channel="never used"))


def told_at_the_closing(client: Client, broker: FakeBroker) -> list[str]:
    """Return the consumers that are told a message as a channel of two consumers closes."""
    client.publish("a")
    client.consume("c0", window=1)
    client.consume("c1", window=1)
    assert client.drain() == ["a"]
    broker.late_s = 0.02
    told = [str(each.consumer) for each in client.do(CloseChannel(channel="ch"))]
    client.consume("c2")
    assert [each.consumer for each in client.do(Drain())] == ["c2"]
    return told


@pytest.mark.parametrize("url_and_broker", [""], indirect=True, ids=["disconnect"])
def test_consumers_whose_connections_end_leave_at_once(client: Client, broker: FakeBroker) -> None:
    assert told_at_the_closing(client, broker) == []


@pytest.mark.parametrize("url_and_broker", [UNSUBSCRIBES], indirect=True, ids=["unsubscribe"])
def test_consumers_that_unsubscribe_leave_in_turn(client: Client, broker: FakeBroker) -> None:
    # What the first gives back goes to the second: untold, it would return in an order of its own.
    assert told_at_the_closing(client, broker) == ["c1"]


def test_a_message_for_a_consumer_that_had_left_before_is_told(tmp_path: Path) -> None:
    profile = tmp_path / "fake.toml"
    profile.write_text(PROFILE.format(dialect=UNSUBSCRIBES), "utf-8")
    with FakeBroker() as broker:
        url = broker.url.replace("generic-stomp", str(profile))
        with closing(StompCandidate(url)) as candidate:
            client = Client(candidate)
            client.consume("c0")
            client.consume("c1")
            broker.forgets_no_one = True
            client.do(Cancel(consumer="c0"))
            client.publish("a")
            assert [each.consumer for each in client.do(Drain())] == ["c0"]


def given_to_an_automatic_consumer(client: Client) -> list[str]:
    """Return what such a consumer is told as a channel closes, on which another one held "a"."""
    client.consume("c0", window=1)
    client.publish("a")
    client.drain()
    automatic = Consume(channel="ch", queue="q", consumer="c1", mode="automatic")
    told = [each.message for each in client.do(automatic, CloseChannel(channel="ch"))]
    assert [*told, *client.contents()] == ["a"]
    return told


@pytest.mark.parametrize("url_and_broker", [""], indirect=True, ids=["disconnect"])
def test_an_automatic_consumer_leaves_before_others_give_back(client: Client) -> None:
    assert given_to_an_automatic_consumer(client) == []


@pytest.mark.parametrize("url_and_broker", [UNSUBSCRIBES], indirect=True, ids=["unsubscribe"])
def test_an_automatic_consumer_leaves_in_its_turn(client: Client) -> None:
    assert given_to_an_automatic_consumer(client) == ["a"]


def test_a_reject_discards_the_message(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", window=1)
    client.drain()
    client.do(Reject(delivery="d1"), CloseChannel(channel="ch"))
    assert client.contents() == ["b"]


def test_a_reset_takes_away_what_is_left(client: Client, broker: FakeBroker) -> None:
    client.publish("a", "b", "c")
    client.consume("c0", window=1)
    client.drain()
    client.do(Reset())
    assert not any(broker._queues.values())
    assert client.error(Publish(queue="q", message=Message(id="d"))) == "refused"
    client.do(Declare(queue="q", order=Fifo()))
    assert client.contents() == []


def test_the_body_has_exactly_the_size_asked_for(client: Client, broker: FakeBroker) -> None:
    for size in (0, 1, 100_000):
        client.do(Publish(queue="q", message=Message(id=f"m{size}", size=size)))
    sizes = [len(frame.body) for frame in broker.seen if frame.command == "SEND"]
    assert sizes[-3:] == [0, 1, 100_000]


def test_a_refused_message_is_refused_and_costs_nothing(client: Client, broker: FakeBroker) -> None:
    client.consume("c0")
    broker.refuses.add("SEND")
    assert client.error(Publish(queue="q", message=Message(id="a"))) == "refused"
    broker.refuses.clear()
    client.publish("b")
    assert client.drain() == ["b"]


@pytest.mark.parametrize(
    "operation",
    [
        Crash(),
        Release(delivery="d1"),
        Get(channel="ch", queue="q"),
        Purge(queue="q"),
        Delete(queue="q"),
        Consume(channel="ch", queue="q", consumer="c1", credit=Credit(0)),
        Consume(channel="ch", queue="q", consumer="c1", mode="browse"),
        Publish(queue="q", message=Message(id="m", properties={"k": "v" * 10_000})),
    ],
)
def test_what_is_not_claimed_is_unsupported(client: Client, operation: Operation) -> None:
    client.publish("a")
    client.consume("c0", window=1)
    client.drain()
    assert client.error(operation) == "unsupported"
    # A release that is not carried out leaves the delivery as it was.
    client.do(Acknowledge(delivery="d1"))


def test_a_window_below_zero_is_refused(client: Client) -> None:
    consume = Consume(channel="ch", queue="q", consumer="c0", credit=Credit(-1))
    assert client.error(consume) == "refused"


def test_a_broker_that_hangs_is_a_timeout_until_the_next_reset(
    client: Client, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.deaf_to.add("SEND")
    with monkeypatch.context() as impatient:
        impatient.setattr(wire, "ANSWER_DEADLINE_S", 0.1)
        late = client.candidate.handle(Publish(queue="q", message=Message(id="a"))).error
        assert late is not None
        assert (late.code, late.message) == (
            "timeout",
            "no answer within 0 s: there is no RECEIPT for SEND",
        )
        assert client.error(Drain()) == "timeout"
    broker.deaf_to.clear()
    client.do(Reset(), Declare(queue="q", order=Fifo()))
    client.publish("b")
    assert client.contents() == ["b"]


def test_a_broker_that_hangs_up_is_a_crash_until_the_next_reset(
    client: Client, broker: FakeBroker
) -> None:
    client.consume("c0")
    broker.drop_all()
    assert client.error(Publish(queue="q", message=Message(id="a"))) == "crashed"
    assert client.error(Drain()) == "refused"
    client.do(Reset(), Declare(queue="q", order=Fifo()))
    client.publish("b")
    assert client.contents() == ["b"]


def test_an_error_on_a_consumers_connection_is_internal_until_the_next_reset(
    client: Client, broker: FakeBroker
) -> None:
    client.publish("a")
    client.consume("c0")
    client.drain()
    broker.refuses.add("ACK")
    assert client.error(Acknowledge(delivery="d1")) == "internal"
    assert client.error(Drain()) == "internal"
    broker.refuses.clear()
    client.do(Reset())


def test_a_message_for_no_consumer_is_an_internal_error(client: Client) -> None:
    client.consume("c0")
    client.publish("a")
    client.candidate._now.subscriptions.clear()
    assert client.error(Drain()) == "internal"


def test_a_broker_that_cannot_be_reached_again_is_a_crash(
    client: Client, broker: FakeBroker
) -> None:
    broker.end()
    assert client.error(Publish(queue="q", message=Message(id="a"))) == "crashed"
    assert client.error(Reset()) == "crashed"
    assert client.error(Drain()) == "refused"


def test_without_a_profile_the_next_command_is_named() -> None:
    with FakeBroker() as broker, pytest.raises(CandidateUnavailable) as caught:
        StompCandidate(broker.url.split("?")[0])
    assert "there is no profile for Fake 1.0" in str(caught.value)
    assert "?profile=generic-stomp" in str(caught.value)


def test_a_broker_that_refuses_later_versions_is_asked_for_an_older_one() -> None:
    with FakeBroker("1.1") as broker:
        broker.is_afraid_of = "1.2"
        with closing(StompCandidate(broker.url)):
            offered = [f.headers["accept-version"] for f in broker.seen if f.command == "CONNECT"]
        assert offered[:3] == ["1.0,1.1,1.2", "1.0,1.1", "1.1"]


def test_the_generic_profile_needs_no_more_than_the_specification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeBroker("1.0") as broker, closing(StompCandidate(broker.url)) as candidate:
        client = Client(candidate)
        client.consume("c0")
        client.publish("a", "b")
        assert client.drain() == ["a", "b"]
        client.do(Reject(delivery="d1"), Acknowledge(delivery="d2"))
        monkeypatch.setattr(stomp, "LEFTOVER_S", 0.01)
        client.do(Cancel(consumer="c0"), Reset())
        used = {frame.command for frame in broker.seen}
        assert used <= {"CONNECT", "DISCONNECT", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK"}
