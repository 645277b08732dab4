"""Each private broker starts, answers, is killed, comes back with what is durable, and stops.

A broker that this machine lacks is skipped; on a CI host those of `ON_CI` must be there.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import amqp
import pytest

from brokerproof.candidates.instances.processes import processes_at_home
from brokerproof.candidates.instances.registry import instances
from brokerproof.candidates.instances.server import PrivateServer
from brokerproof.candidates.instances.servers import private_server
from brokerproof.candidates.wire.profile import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.brokers

ON_CI = {
    "private:rabbitmq?version=packaged&protocol=stomp",
    "private:rabbitmq?version=packaged&protocol=amqp10",
    "private:broker-j?version=9.2.1&protocol=amqp091",
    "private:activemq?version=6.1.7&protocol=stomp",
}
EACH = [
    f"private:{name}?version={version}&protocol={protocol}"
    for name, instance in instances().items()
    for version in instance.releases
    for protocol in instance.protocols
]


def started(address: str) -> PrivateServer:
    """Return the server, started; skip where it is not installed."""
    server = private_server(address)
    missing = server.choice.missing()
    if missing is not None and not (os.environ.get("CI") and address in ON_CI):
        pytest.skip(str(missing))
    server.start()
    return server


class Stomp:
    """One connection, by STOMP 1.0."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10.0)
        self.heard = b""
        assert "CONNECTED" in self.ask("CONNECT\nlogin:guest\npasscode:guest\n\n")

    def ask(self, frame: str) -> str:
        """Send a frame and return the next one."""
        self.socket.sendall(f"{frame}\0".encode())
        while b"\0" not in self.heard:
            more = self.socket.recv(10_000)
            assert more, "the server closed the connection"
            self.heard += more
        frame_heard, _, self.heard = self.heard.partition(b"\0")
        return frame_heard.decode()

    def publish(self, text: str) -> None:
        """Publish a persistent message that is confirmed."""
        headers = "destination:/queue/kept\npersistent:true\nreceipt:r\n"
        assert "RECEIPT" in self.ask(f"SEND\n{headers}\n{text}")

    def take(self) -> str:
        """Return the message that a new consumer is given first."""
        return self.ask("SUBSCRIBE\nid:0\ndestination:/queue/kept\nack:client\n\n")

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


class Amqp:
    """One connection, by AMQP 0-9-1."""

    def __init__(self, port: int) -> None:
        self.connection = amqp.Connection(f"127.0.0.1:{port}", login_method="PLAIN")
        self.connection.connect()
        self.channel = self.connection.channel()
        self.channel.confirm_select()
        self.channel.queue_declare("kept", durable=True, auto_delete=False)

    def publish(self, text: str) -> None:
        """Publish a persistent message that is confirmed."""
        message = amqp.Message(text, delivery_mode=2)
        self.channel.basic_publish_confirm(message, routing_key="kept")

    def take(self) -> str:
        """Return the first message of the queue."""
        found = self.channel.basic_get("kept")
        return "" if found is None else str(found.body)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


CLIENTS: dict[str, type[Stomp | Amqp]] = {"stomp": Stomp, "amqp091": Amqp}


@pytest.fixture(scope="module", params=EACH)
def server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """Return each server that can be started here; afterwards nothing of it may be left."""
    server = started(request.param)
    folder = server._folder
    try:
        yield server
    finally:
        server.stop()
    assert folder is not None
    assert not folder.exists()
    assert processes_at_home(folder) == ()


@pytest.mark.each_time(3)
def test_what_is_durable_outlives_a_kill(server: PrivateServer) -> None:
    port = server._ports[0]
    client = CLIENTS.get(server.choice.protocol)
    if client is not None:
        with closing(client(port)) as before:
            before.publish("hello")
        profile = shipped().get(f"{server.choice.name}-{server.choice.protocol}")
        if profile is not None and profile.on_disk is not None:
            time.sleep(profile.on_disk.declared_s)
    server.crash()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 1.0)
    server.restart()
    if client is not None and server.choice.instance.durable:
        with closing(client(port)) as after:
            assert after.take().endswith("hello")


@pytest.mark.each_time(6)
def test_all_that_listens_is_on_loopback(server: PrivateServer) -> None:
    addresses = [each for number in server.process_ids for each in listening(number)]
    assert addresses
    assert [each for each in addresses if not is_loopback(each)] == []


def test_what_listens_on_every_address_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)), socket.create_server(("0.0.0.0", 0)):  # noqa: S104
        assert {is_loopback(each) for each in listening(os.getpid())} == {True, False}


def is_loopback(address: str) -> bool:
    """Return whether an address of /proc/net is one of 127.0.0.0/8, perhaps in IPv6, or ::1."""
    return address.endswith(("7F", "01000000"))


def listening(process_id: int) -> Iterator[str]:
    """Yield the addresses on which a process listens, as in /proc/net: words of 4 bytes in hex."""
    process = Path(f"/proc/{process_id}")
    own = {each.resolve().name for each in (process / "fd").iterdir()}
    for table in ("tcp", "tcp6"):
        for line in (process / "net" / table).read_text().splitlines():
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                yield fields[1].partition(":")[0]
