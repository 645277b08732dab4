"""A broker behind AMQP 0-9-1, against a RabbitMQ that runs: what it does arrives as events."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import amqp
import pytest

from brokerproof.candidates.amqp091 import candidate as amqp091
from brokerproof.candidates.amqp091.candidate import Amqp091Candidate
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import candidate as wire
from brokerproof.candidates.wire.address import Address
from brokerproof.spec.messages import (
    PRIORITIES,
    Credit,
    Fifo,
    Message,
    Order,
    Priority,
    level_of,
)
from brokerproof.spec.protocol.answers import ConsumerClosed, Delivered, Error
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
    from brokerproof.spec.protocol.operations import ConsumeMode

pytestmark = pytest.mark.rabbitmq


class Client:
    """A candidate after a reset, with one queue and short words for what the tests do to it."""

    def __init__(self, candidate: Amqp091Candidate) -> None:
        self.candidate = candidate
        self.log: list[Delivered] = []
        self.closed: list[str] = []
        self.published = 0
        self.do(Reset())

    def do(self, operation: Operation) -> list[Delivered]:
        """Carry out what must succeed and return the deliveries told with it."""
        answer = self.candidate.handle(operation)
        assert answer.ok, (operation, answer.error)
        deliveries = [event for event in answer.events if isinstance(event, Delivered)]
        self.closed += [e.consumer for e in answer.events if isinstance(e, ConsumerClosed)]
        self.log += deliveries
        return deliveries

    def error(self, operation: Operation) -> str:
        """Carry out what must fail and return the code of the error."""
        error = self.candidate.handle(operation).error
        assert error is not None
        assert error.message
        return error.code

    def declare(self, queue: str = "q", order: Order | None = None) -> None:
        """Make a queue, in order of arrival unless said otherwise."""
        self.do(Declare(queue=queue, order=order or Fifo()))

    def publish(self, *ids: str, queue: str = "q") -> None:
        """Publish messages of these ids, one after the other."""
        for name in ids:
            self.do(Publish(queue=queue, message=Message(id=name)))

    def get(self, channel: str = "getter", queue: str = "q") -> Delivered | None:
        """Take at most one message and check that no more came."""
        told = [d for d in self.do(Get(channel=channel, queue=queue)) if d.consumer is None]
        assert len(told) <= 1
        return told[0] if told else None

    def consume(
        self,
        consumer: str,
        channel: str = "ch",
        window: int | None = None,
        mode: ConsumeMode = "acknowledge",
    ) -> None:
        """Subscribe to the queue q."""
        self.do(
            Consume(channel=channel, queue="q", consumer=consumer, mode=mode, credit=Credit(window))
        )

    def drain(self) -> list[Delivered]:
        """Drain and return everything delivered since the last drain."""
        self.do(Drain())
        told, self.log = self.log, []
        return told

    def contents(self) -> list[str]:
        """Take everything that is available and return its ids in order."""
        found = []
        while (delivery := self.get("emptier")) is not None:
            found.append(delivery.message)
        return found


@pytest.fixture(scope="module")
def candidate(rabbitmq: PrivateRabbitMQ) -> Iterator[Amqp091Candidate]:
    with closing(Amqp091Candidate(rabbitmq.url)) as connected:
        yield connected


@pytest.fixture
def client(candidate: Amqp091Candidate) -> Client:
    made = Client(candidate)
    made.declare()
    return made


def ids(deliveries: list[Delivered]) -> list[str]:
    return [delivery.message for delivery in deliveries]


def test_it_introduces_itself_as_the_broker_that_it_is(candidate: Amqp091Candidate) -> None:
    hello = candidate.hello()
    assert hello.name == "RabbitMQ"
    assert hello.version[0].isdigit()
    assert hello == candidate.hello()


def test_get_takes_messages_in_the_order_of_their_arrival(client: Client) -> None:
    client.publish("a", "b", "c")
    assert client.contents() == ["a", "b", "c"]
    assert client.get() is None


def test_get_of_mode_automatic_leaves_nothing_to_settle(client: Client) -> None:
    client.publish("a")
    [delivery] = client.do(Get(channel="ch", queue="q", mode="automatic"))
    assert client.error(Acknowledge(delivery=delivery.delivery)) == "refused"
    client.do(CloseChannel(channel="ch"))
    assert client.contents() == []


def test_a_window_of_two_holds_two_and_an_acknowledgement_gives_the_next(client: Client) -> None:
    client.publish("a", "b", "c", "d")
    client.consume("c0", window=2)
    first, second = client.drain()
    assert ids([first, second]) == ["a", "b"]
    client.do(Acknowledge(delivery=second.delivery))
    assert ids(client.drain()) == ["c"]


def test_an_unlimited_window_takes_everything(client: Client) -> None:
    client.consume("c0")
    client.publish(*(f"m{i}" for i in range(30)))
    assert ids(client.drain()) == [f"m{i}" for i in range(30)]


def test_an_automatic_consumer_does_not_fill_its_window(client: Client) -> None:
    client.publish("a", "b", "c")
    client.consume("c0", window=1, mode="automatic")
    assert ids(client.drain()) == ["a", "b", "c"]
    assert client.error(Acknowledge(delivery="d1")) == "refused"


def test_a_release_returns_a_message_to_its_place_and_marks_it(client: Client) -> None:
    client.publish("a", "b", "c")
    taken = [client.get() for _ in range(2)]
    for delivery in taken:
        assert delivery is not None
        assert not delivery.redelivered
        client.do(Release(delivery=delivery.delivery))
    seen = [client.get() for _ in range(3)]
    assert [(d.message, d.redelivered) for d in seen if d] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]


def test_a_release_is_available_to_another_channel_at_once(client: Client) -> None:
    client.publish("a")
    for _ in range(50):
        delivery = client.get("one")
        assert delivery is not None
        client.do(Release(delivery=delivery.delivery))
        again = client.get("another")
        assert again is not None
        client.do(Release(delivery=again.delivery))


def test_a_reject_discards_the_message(client: Client) -> None:
    client.publish("a", "b")
    delivery = client.get()
    assert delivery is not None
    client.do(Reject(delivery=delivery.delivery))
    client.do(CloseChannel(channel="getter"))
    assert client.contents() == ["b"]


def test_closing_a_channel_releases_all_that_it_holds_and_ends_its_consumers(
    client: Client,
) -> None:
    client.publish("a", "b", "c", "d")
    client.consume("c0", window=2)
    client.get("ch")
    client.drain()
    client.do(CloseChannel(channel="ch"))
    assert client.error(Cancel(consumer="c0")) == "refused"
    assert client.error(Acknowledge(delivery="d1")) == "refused"
    assert client.contents() == ["a", "b", "c", "d"]


def test_closing_a_channel_tells_what_it_was_given_before(client: Client) -> None:
    client.consume("c0")
    client.publish("a", "b")
    client.do(CloseChannel(channel="ch"))
    assert ids(client.log) == ["a", "b"]
    assert all(delivery.redelivered for delivery in [client.get(), client.get()] if delivery)


def test_closing_an_unknown_channel_is_no_error(client: Client) -> None:
    assert client.do(CloseChannel(channel="never used")) == []


def test_cancel_leaves_what_is_held_with_the_channel(client: Client) -> None:
    client.consume("c0")
    client.publish("a", "b")
    client.do(Cancel(consumer="c0"))
    client.publish("c")
    assert ids(client.drain()) == ["a", "b"]
    client.do(Acknowledge(delivery="d1"))
    client.do(CloseChannel(channel="ch"))
    assert client.contents() == ["b", "c"]


@pytest.mark.parametrize("levels", [1, 2, 4, 10])
def test_priorities_above_the_highest_level_count_as_the_highest(
    candidate: Amqp091Candidate, levels: int
) -> None:
    client = Client(candidate)
    order = Priority(levels)
    client.declare(order=order)
    for priority in PRIORITIES:
        client.do(Publish(queue="q", message=Message(id=f"m{priority}", priority=priority)))
    mapping = candidate.hello().capabilities.priority_mapping
    assert mapping == "clamp"
    expected = sorted(PRIORITIES, key=lambda p: -level_of(p, order, mapping))
    assert client.contents() == [f"m{priority}" for priority in expected]


def test_a_fifo_queue_disregards_priorities(client: Client) -> None:
    for priority in (0, 9, 4):
        client.do(Publish(queue="q", message=Message(id=f"m{priority}", priority=priority)))
    assert client.contents() == ["m0", "m9", "m4"]


def test_a_drain_always_brings_the_delivery_that_an_acknowledgement_allows(client: Client) -> None:
    client.consume("c0", window=1)
    client.publish(*(f"m{i}" for i in range(200)))
    for i in range(200):
        [delivery] = client.drain()
        assert delivery.message == f"m{i}"
        client.do(Acknowledge(delivery=delivery.delivery))
    assert client.drain() == []


def test_a_drain_always_brings_what_another_channel_returned(client: Client) -> None:
    client.publish("a")
    client.consume("c0", channel="one", window=1)
    client.consume("c1", channel="another", window=1)
    for _ in range(200):
        [delivery] = client.drain()
        client.do(Release(delivery=delivery.delivery))


def test_a_drain_always_brings_what_a_closed_channel_returned(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", channel="ch0", window=2)
    for i in range(1, 100):
        client.consume(f"c{i}", channel=f"ch{i}", window=2)
        assert ids(client.drain()) == ["a", "b"]
        client.do(CloseChannel(channel=f"ch{i - 1}"))


def test_a_drain_waits_for_what_a_closed_channel_had_got(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.publish("a")
    client.get("ch")
    client.consume("c0", channel="reader")
    client.drain()
    close, later = amqp.Channel.close, list[amqp.Channel]()
    monkeypatch.setattr(amqp.Channel, "close", lambda channel: later.insert(0, channel))
    client.do(CloseChannel(channel="ch"))
    hear = client.candidate._hear

    def closing_before_it_hears(seconds: float) -> bool:
        while later:
            close(later.pop())
        return hear(seconds)

    monkeypatch.setattr(client.candidate, "_hear", closing_before_it_hears)
    assert ids(client.drain()) == ["a"]


def test_settling_twice_is_refused_and_costs_nothing(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", window=1)
    [delivery] = client.drain()
    client.do(Acknowledge(delivery=delivery.delivery))
    for settle in (Acknowledge, Release, Reject):
        assert client.error(settle(delivery=delivery.delivery)) == "refused"
        assert client.error(settle(delivery="never made")) == "refused"
    assert ids(client.drain()) == ["b"]


def test_a_reset_forgets_queues_consumers_and_deliveries(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0")
    client.do(Reset())
    assert client.error(Publish(queue="q", message=Message(id="c"))) == "refused"
    client.declare()
    assert client.error(Acknowledge(delivery="d1")) == "refused"
    assert client.contents() == []
    client.consume("c0")


def test_two_candidates_on_one_broker_do_not_meet(
    client: Client, rabbitmq: PrivateRabbitMQ
) -> None:
    client.publish("a")
    with closing(Amqp091Candidate(rabbitmq.url)) as other:
        neighbour = Client(other)
        neighbour.declare()
        assert neighbour.get() is None
    assert client.contents() == ["a"]


def test_purge_drops_what_is_available_and_leaves_what_is_held(client: Client) -> None:
    client.publish("a", "b", "c")
    client.consume("c0", window=1)
    client.drain()
    client.do(Purge(queue="q"))
    client.do(CloseChannel(channel="ch"))
    assert client.contents() == ["a"]


def test_delete_tells_the_consumers_and_takes_everything_with_it(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", window=1)
    client.consume("c1", channel="another", window=1)
    client.do(Delete(queue="q"))
    assert sorted(client.closed) == ["c0", "c1"]
    assert sorted(ids(client.log)) == ["a", "b"]
    assert client.error(Acknowledge(delivery="d1")) == "refused"
    assert client.error(Get(channel="ch", queue="q")) == "refused"
    client.declare()
    assert client.contents() == []


def test_declaring_again_is_accepted_when_equal_and_refused_when_not(client: Client) -> None:
    client.publish("a")
    client.declare()
    for order in (Priority(1), Priority(3)):
        assert client.error(Declare(queue="q", order=order)) == "refused"
    assert client.contents() == ["a"]


def test_the_body_has_exactly_the_size_asked_for(client: Client) -> None:
    for size in (0, 1, 200_000):
        message = Message(id=f"m{size}", size=size, properties={"colour": "red", "n": 3, "x": True})
        client.do(Publish(queue="q", message=message))
    assert client.contents() == ["m0", "m1", "m200000"]


@pytest.mark.parametrize(
    "operation",
    [
        Publish(queue="none", message=Message(id="m")),
        Publish(queue="q", message=Message(id="m", priority=10)),
        Publish(queue="q", message=Message(id="m", size=-1)),
        Consume(channel="ch", queue="none", consumer="c"),
        Consume(channel="ch", queue="q", consumer="c", credit=Credit(-1)),
        Get(channel="ch", queue="none"),
        Cancel(consumer="none"),
        Purge(queue="none"),
        Delete(queue="none"),
    ],
)
def test_what_does_not_fit_the_state_is_refused(client: Client, operation: Operation) -> None:
    assert client.error(operation) == "refused"


@pytest.mark.parametrize(
    "operation",
    [
        Crash(),
        Restart(),
        Inspect(queue="q"),
        SetCredit(consumer="c", messages=1),
        Declare(queue="p", order=Fifo(), durable=True),
        Declare(queue="p", order=Fifo(), auto_delete=True),
        Declare(queue="p", order=Priority(11)),
        Declare(queue="p", order=Priority(0)),
        Consume(channel="ch", queue="q", consumer="c", mode="browse"),
        Consume(channel="ch", queue="q", consumer="c", credit=Credit(0)),
        Consume(channel="ch", queue="q", consumer="c", credit=Credit(None, 10)),
        Consume(channel="ch", queue="q", consumer="c", selector={}),
        Consume(channel="ch", queue="q", consumer="c", priority=1),
        Consume(channel="ch", queue="q", consumer="c", auto_close=True),
        Publish(queue="q", message=Message(id="m" * 256)),
        Publish(queue="q", message=Message(id="\ud800")),
        Publish(queue="q", message=Message(id="m", properties={"k": 2**64})),
        Publish(queue="q", message=Message(id="m", properties={"k": "v" * 2**17})),
    ],
)
def test_what_is_not_claimed_is_unsupported(client: Client, operation: Operation) -> None:
    assert client.error(operation) == "unsupported"


def test_a_consumer_name_in_use_is_refused(client: Client) -> None:
    client.consume("c0")
    assert client.error(Consume(channel="other", queue="q", consumer="c0")) == "refused"


def test_a_broker_that_hangs_is_a_timeout_until_the_next_reset(
    rabbitmq: PrivateRabbitMQ, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.publish("a")
    with monkeypatch.context() as impatient:
        impatient.setattr(wire, "ANSWER_DEADLINE_S", 0.2)
        for process_id in rabbitmq.process_ids:
            os.kill(process_id, signal.SIGSTOP)
        try:
            assert client.error(Get(channel="ch", queue="q")) == "timeout"
            assert client.error(Drain()) == "timeout"
        finally:
            for process_id in rabbitmq.process_ids:
                os.kill(process_id, signal.SIGCONT)
    client.do(Reset())
    client.declare()
    client.publish("b")
    assert client.contents() == ["b"]


def test_a_connection_that_dies_is_a_crash_until_the_next_reset(client: Client) -> None:
    client.consume("c0")
    client.candidate._pool.control.sock.shutdown(socket.SHUT_RDWR)
    assert client.error(Publish(queue="q", message=Message(id="a"))) == "crashed"
    assert client.error(Drain()) == "refused"
    client.do(Reset())
    client.declare()
    client.publish("b")
    assert client.contents() == ["b"]


def test_a_channel_that_the_broker_closes_is_an_internal_error_until_the_next_reset(
    client: Client,
) -> None:
    client.consume("c0")
    name = client.candidate._now.queues["q"].name
    client.publish("a")
    client.drain()
    client.candidate._control.queue_delete(name)
    assert client.error(Acknowledge(delivery="d1")) == "internal"
    assert client.error(Drain()) == "internal"
    client.do(Reset())


def test_a_broker_that_cannot_be_reached_again_is_a_crash(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused = Address.parse(f"amqp091://127.0.0.1:{unused_port()}/", "amqp091")
    candidate = client.candidate
    with monkeypatch.context() as moved:
        moved.setattr(candidate, "_address", unused)
        candidate._pool.control.sock.shutdown(socket.SHUT_RDWR)
        assert client.error(Reset()) == "crashed"
        assert client.error(Drain()) == "refused"
    client.do(Reset())


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refusal(url: str) -> str:
    """Return why there is no candidate at `url`, having checked that it is one line."""
    with pytest.raises(CandidateUnavailable) as caught:
        Amqp091Candidate(url)
    line = str(caught.value)
    assert "\n" not in line
    assert "secret" not in line
    return line


def test_without_a_listening_server_there_is_no_candidate() -> None:
    assert "no server listens there" in refusal(f"amqp091://me:secret@127.0.0.1:{unused_port()}/")


def test_a_refused_login_gives_no_candidate(rabbitmq: PrivateRabbitMQ) -> None:
    assert "ACCESS_REFUSED" in refusal(rabbitmq.url.replace("guest:guest", "guest:secret"))


def test_an_unknown_virtual_host_is_named(rabbitmq: PrivateRabbitMQ) -> None:
    assert "elsewhere" in refusal(f"{rabbitmq.url}elsewhere")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "amqp091://me:secret@/",
        "amqp091://me:secret@127.0.0.1:port/",
        "amqp091://127.0.0.1/?heartbeat=1",
    ],
)
def test_a_bad_address_is_refused_with_the_form_of_a_good_one(url: str) -> None:
    assert "amqp091://user:password@host:port/vhost" in refusal(url)


def test_a_server_that_never_greets_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp091, "CONNECT_DEADLINE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "did not greet us in time" in refusal(f"amqp091://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    "greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9, b"AMQP\0\0\x09\x01", b""]
)
def test_a_server_that_speaks_something_else_is_refused(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)

        greeter = threading.Thread(target=greet)
        greeter.start()
        refusal(f"amqp091://127.0.0.1:{server.getsockname()[1]}/")
        greeter.join()


def test_an_address_hides_its_password_and_reads_escapes() -> None:
    address = Address.parse("amqp091://me:se%2Fcret@[::1]:5673/a%2Fb", "amqp091")
    assert (address.host, address.port, address.password) == ("::1", 5673, "se/cret")
    assert address.virtual_host == "a/b"
    assert "cret" not in f"{address} {address!r}"
    assert Address.parse("amqp091://host", "amqp091").port == 5672
    assert Address.parse("amqp091://host/", "amqp091").virtual_host == "/"


def test_every_error_says_how_definite_it_is(client: Client) -> None:
    error = client.candidate.handle(Cancel(consumer="none")).error
    assert isinstance(error, Error)
    assert error.definite
