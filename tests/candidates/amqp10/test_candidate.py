"""A broker behind AMQP 1.0, against a RabbitMQ that runs with its plugin."""

from __future__ import annotations

import os
import select
import socket
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from brokerproof.candidates.amqp10 import candidate as amqp10
from brokerproof.candidates.amqp10 import connection as connections
from brokerproof.candidates.amqp10.candidate import Amqp10Candidate
from brokerproof.candidates.instances.registry import chosen
from brokerproof.candidates.instances.servers import private_server
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
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
    SetCredit,
)
from tests.candidates.wire.tls_proxy import encrypted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
    from brokerproof.spec.protocol.operations import ConsumeMode

# RabbitMQ 3.10 ends a session after an attach, once in 10,000 (docs/findings/rabbitmq.md).
pytestmark = pytest.mark.flaky(reruns=2, only_rerun="amqp:internal-error")


@pytest.fixture(scope="module")
def url(rabbitmq: PrivateRabbitMQ) -> Iterator[str]:
    """Return the address of a server with the plugin; that of the session has none."""
    del rabbitmq  # skips where there is none
    with private_server("private:rabbitmq?protocol=amqp10") as server:
        yield server.url


class Client:
    """A candidate after a reset, with one queue and short words for what the tests do to it."""

    def __init__(self, candidate: Amqp10Candidate) -> None:
        self.candidate = candidate
        self.log: list[Delivered] = []
        self.do(Reset())
        self.do(Declare(queue="q", order=Fifo()))

    def do(self, operation: Operation) -> None:
        """Carry out what must succeed and keep the deliveries told with it."""
        answer = self.candidate.handle(operation)
        assert answer.ok, (operation, answer.error)
        self.log += [event for event in answer.events if isinstance(event, Delivered)]

    def error(self, operation: Operation) -> str:
        """Carry out what must fail and return the code of the error."""
        error = self.candidate.handle(operation).error
        assert error is not None
        assert error.message
        return error.code

    def publish(self, *ids: str) -> None:
        """Publish messages of these ids, one after the other."""
        for name in ids:
            self.do(Publish(queue="q", message=Message(id=name)))

    def consume(
        self,
        consumer: str,
        channel: str = "ch",
        window: int | None = None,
        mode: ConsumeMode = "acknowledge",
    ) -> None:
        """Subscribe to the queue q."""
        window_of = Credit(window)
        self.do(Consume(channel=channel, queue="q", consumer=consumer, mode=mode, credit=window_of))

    def drain(self) -> list[Delivered]:
        """Drain and return everything delivered since the last drain."""
        self.do(Drain())
        told, self.log = self.log, []
        return told

    def contents(self) -> list[str]:
        """Take everything that is available and return its ids in order."""
        self.drain()
        self.consume("emptier", "emptier", mode="automatic")
        found = ids(self.drain())
        self.do(CloseChannel(channel="emptier"))
        return found


def ids(deliveries: list[Delivered]) -> list[str]:
    return [delivery.message for delivery in deliveries]


@pytest.fixture(scope="module")
def candidate(url: str) -> Iterator[Amqp10Candidate]:
    with closing(Amqp10Candidate(url)) as connected:
        yield connected


@pytest.fixture
def client(candidate: Amqp10Candidate) -> Client:
    return Client(candidate)


@pytest.mark.rabbitmq
def test_it_introduces_itself_as_the_broker_that_it_is(candidate: Amqp10Candidate) -> None:
    hello = candidate.hello()
    assert (hello.name, hello.version[0]) == ("RabbitMQ", "3")
    assert not hello.capabilities.get
    assert candidate.notices == ()


@pytest.mark.rabbitmq
def test_a_window_is_exact_and_each_settlement_gives_one_more(client: Client) -> None:
    client.publish("a", "b", "c", "d", "e")
    client.consume("c0", window=2)
    first, second = client.drain()
    assert ids([first, second]) == ["a", "b"]
    client.do(Acknowledge(delivery=second.delivery))
    [third] = client.drain()
    client.do(Reject(delivery=third.delivery))
    assert ids(client.drain()) == ["d"]
    client.do(CloseChannel(channel="ch"))
    assert client.contents() == ["a", "d", "e"]


@pytest.mark.rabbitmq
def test_a_window_of_0_gets_nothing(client: Client) -> None:
    client.publish("a")
    client.consume("c0", window=0)
    assert client.drain() == []


@pytest.mark.rabbitmq
def test_a_window_that_changes_is_exact_again(client: Client) -> None:
    client.publish("a", "b", "c", "d", "e")
    client.consume("c0", window=1)
    [first] = client.drain()
    client.do(SetCredit(consumer="c0", messages=0))
    client.do(Acknowledge(delivery=first.delivery))
    assert client.drain() == []
    client.do(SetCredit(consumer="c0", messages=3))
    assert ids(client.drain()) == ["b", "c", "d"]
    client.do(SetCredit(consumer="c0", messages=None))
    assert ids(client.drain()) == ["e"]
    assert client.error(SetCredit(consumer="c0", messages=-1)) == "refused"
    assert client.error(SetCredit(consumer="c1", messages=1)) == "refused"


@pytest.mark.rabbitmq
def test_a_pause_leaves_messages_to_others(client: Client) -> None:
    client.consume("c0", mode="automatic")
    client.do(SetCredit(consumer="c0", messages=0))
    client.publish("a")
    client.consume("c1", "other")
    assert [each.consumer for each in client.drain()] == ["c1"]


@pytest.mark.rabbitmq
@pytest.mark.parametrize("window", [1, None])
def test_an_automatic_consumer_does_not_fill_its_window(client: Client, window: int | None) -> None:
    client.publish(*(f"m{n}" for n in range(20)))
    client.consume("c0", window=window, mode="automatic")
    told = client.drain()
    assert ids(told) == [f"m{n}" for n in range(20)]
    assert client.error(Acknowledge(delivery=told[0].delivery)) == "refused"


@pytest.mark.rabbitmq
def test_a_released_message_is_not_passed_by_the_credit_that_it_frees(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", window=1)
    for number in range(30):
        [delivery] = client.drain()
        assert delivery.message == "a"
        assert delivery.redelivered == (number > 0)
        client.do(Release(delivery=delivery.delivery))


@pytest.mark.rabbitmq
def test_a_drain_always_brings_the_delivery_that_an_acknowledgement_allows(client: Client) -> None:
    client.consume("c0", window=1)
    client.publish(*(f"m{n}" for n in range(100)))
    for number in range(100):
        [delivery] = client.drain()
        assert delivery.message == f"m{number}"
        client.do(Acknowledge(delivery=delivery.delivery))


@pytest.mark.rabbitmq
def test_cancel_leaves_what_is_held_with_the_channel(client: Client) -> None:
    client.consume("c0")
    client.publish("a", "b")
    client.do(Cancel(consumer="c0"))
    client.publish("c")
    assert ids(client.drain()) == ["a", "b"]
    client.do(Acknowledge(delivery=client.candidate._now.unsettled.copy().popitem()[0]))
    client.do(CloseChannel(channel="ch"))
    assert client.contents() == ["a", "c"]


@pytest.mark.rabbitmq
def test_a_cancel_with_nothing_held_leaves_no_link(client: Client) -> None:
    client.consume("c0")
    client.do(Cancel(consumer="c0"))
    assert client.candidate._now.channels["ch"].links == []
    client.publish("a")
    assert client.drain() == []


@pytest.mark.rabbitmq
def test_closing_a_channel_releases_what_it_holds_to_another(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", "ch0", window=2)
    for number in range(1, 20):
        client.consume(f"c{number}", f"ch{number}", window=2)
        assert ids(client.drain()) == ["a", "b"]
        client.do(CloseChannel(channel=f"ch{number - 1}"))


@pytest.mark.rabbitmq
def test_a_purge_goes_over_the_other_protocol(client: Client) -> None:
    client.publish("a", "b")
    client.consume("c0", window=1)
    client.drain()
    client.do(Purge(queue="q"))
    client.do(CloseChannel(channel="ch"))
    assert client.contents() == ["a"]


class Overheard:
    """A socket that keeps what is sent."""

    def __init__(self, behind: socket.socket) -> None:
        self.behind, self.sent = behind, b""

    def sendall(self, sent: bytes) -> None:
        """Send, and keep a copy."""
        self.sent += sent
        self.behind.sendall(sent)

    def __getattr__(self, name: str) -> object:
        return getattr(self.behind, name)


@pytest.mark.rabbitmq
def test_a_broker_that_does_not_answer_the_end_of_a_session_is_sent_an_empty_frame(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = client.candidate._pool.control
    session = connection.session()
    overheard = Overheard(connection._socket)
    monkeypatch.setattr(connection, "_socket", overheard)
    waits = iter([False, False])
    real = select.select

    def select_late(*arguments: Any) -> Any:
        """Let the first two waits end without an answer."""
        return real(*arguments) if next(waits, True) else ([], [], [])

    monkeypatch.setattr(select, "select", select_late)
    connection.end(session)
    assert overheard.sent.endswith(2 * connections.EMPTY_FRAME)
    monkeypatch.undo()
    client.publish("a")
    assert client.contents() == ["a"]


@pytest.mark.brokers
def test_a_broker_that_ends_the_link_of_a_message_has_refused_it() -> None:
    address = "private:broker-j?protocol=amqp10"
    if (missing := chosen(address).missing()) is not None and not os.environ.get("CI"):
        pytest.skip(str(missing))
    with private_server(address) as server, closing(Amqp10Candidate(server.url)) as candidate:
        client = Client(candidate)
        durable = Publish(queue="q", message=Message(id="a", persistent=True))
        assert client.error(durable) == "refused"
        client.publish("b")
        assert client.contents() == ["b"]


@pytest.mark.rabbitmq
def test_messages_keep_their_size_and_properties(client: Client) -> None:
    for size in (0, 1, 200_000):
        message = Message(id=f"m{size}", size=size, properties={"colour": "red", "n": 3, "x": True})
        client.do(Publish(queue="q", message=message))
    assert client.contents() == ["m0", "m1", "m200000"]


@pytest.mark.rabbitmq
@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (Publish(queue="none", message=Message(id="m")), "refused"),
        (Publish(queue="q", message=Message(id="m", priority=10)), "refused"),
        (Publish(queue="q", message=Message(id="m" * 256)), "unsupported"),
        (Consume(channel="ch", queue="none", consumer="c"), "refused"),
        (Consume(channel="ch", queue="q", consumer="c", credit=Credit(-1)), "refused"),
        (Consume(channel="ch", queue="q", consumer="c", selector={}), "unsupported"),
        (Cancel(consumer="none"), "refused"),
        (Get(channel="ch", queue="q"), "unsupported"),
        (Delete(queue="q"), "unsupported"),
        (Declare(queue="p", order=Priority(2)), "unsupported"),
        (Declare(queue="p", order=Fifo(), durable=True), "unsupported"),
    ],
)
def test_what_does_not_fit_is_refused_and_what_is_not_claimed_is_unsupported(
    client: Client, operation: Operation, code: str
) -> None:
    assert client.error(operation) == code
    client.publish("a")
    assert client.contents() == ["a"]


@pytest.mark.rabbitmq
def test_a_connection_that_dies_is_a_crash_until_the_next_reset(client: Client) -> None:
    client.consume("c0")
    client.candidate._pool.control._socket.shutdown(socket.SHUT_RDWR)
    assert client.error(Publish(queue="q", message=Message(id="a"))) == "crashed"
    assert client.error(Drain()) == "refused"
    again = Client(client.candidate)
    again.publish("b")
    assert again.contents() == ["b"]


@pytest.mark.rabbitmq
def test_messages_pass_through_tls(url: str, tmp_path: Path) -> None:
    plain = urlsplit(url).port or 0
    with encrypted(plain, tmp_path) as (port, certificate):
        # The queues are declared on the same port, and so through the proxy.
        with closing(Amqp10Candidate(f"amqp10s://127.0.0.1:{port}/?ca={certificate}")) as candidate:
            client = Client(candidate)
            for number in range(10):
                message = Message(id=f"m{number}", size=50_000)
                client.do(Publish(queue="q", message=message))
            assert client.contents() == [f"m{number}" for number in range(10)]
        assert "TLS failed" in refusal(f"amqp10s://127.0.0.1:{port}/")


def refusal(url: str) -> str:
    """Return why there is no candidate at `url`, having checked that it is one line."""
    with pytest.raises(CandidateUnavailable) as caught:
        Amqp10Candidate(url)
    line = str(caught.value)
    assert "\n" not in line
    assert "secret" not in line
    return line


@pytest.mark.rabbitmq
def test_a_wrong_password_has_no_candidate(url: str) -> None:
    assert "which users may log in" in refusal(url.replace("guest:guest", "guest:secret"))


@pytest.mark.rabbitmq
def test_a_profile_of_another_protocol_is_refused(url: str) -> None:
    line = refusal(f"{url}?profile=rabbitmq-amqp091")
    assert "it is for amqp091, not amqp10" in line


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_an_address_without_a_server_has_no_candidate() -> None:
    assert "no server listens there" in refusal(f"amqp10://me:secret@127.0.0.1:{unused_port()}/")


def test_a_server_that_never_greets_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp10, "CONNECT_DEADLINE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "did not greet us in time" in refusal(f"amqp10://127.0.0.1:{port}/")


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
        refusal(f"amqp10://127.0.0.1:{server.getsockname()[1]}/")
        greeter.join()
