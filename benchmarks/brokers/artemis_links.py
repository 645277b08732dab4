"""Measure two habits of links of Artemis over AMQP 1.0, on a private broker.

Gets: a link is given a credit of one, and drains, while a message waits. Prints how many gets find
nothing, where all gets share a link and where each has its own. Credit: a link takes its credit
back while another client publishes. Prints how many messages stay with the link, neither sent on it
nor left in the queue, how many of them come once it has credit again, and how many are lost if the
link leaves instead.

    python benchmarks/brokers/artemis_links.py [GETS]
"""

from __future__ import annotations

import sys

import proton

from brokerproof.candidates.amqp10.connection import Connection, connect, heard
from brokerproof.candidates.amqp10.dialect import Dialect
from brokerproof.candidates.instances.servers import private_server
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import Deadline

GETS = 2_000
LINKS, EACH, CREDIT, SILENCE_S = 500, 20, 100_000, 0.02
DIALECT = Dialect(capability="queue")


class Client:
    """One connection with a session, a sender to a queue, and receivers from it."""

    def __init__(self, url: str, queue: str) -> None:
        self.deadline = Deadline()
        self.deadline.start(600)
        self.connection: Connection = connect(Address.parse(url, "amqp10"), self.deadline, None)
        self.session, self.queue = self.connection.session(), queue
        self.sender = self.session.sender(self.connection.link_name())
        DIALECT.set_up(self.sender.target, queue)
        self.connection.attach(self.sender)
        self.came = 0

    def send(self) -> proton.Delivery:
        """Send a message, and wait for credit only."""
        self.connection.until(lambda: self.sender.credit > 0)
        delivery = proton.Message(body=b"x", inferred=True).send(self.sender)
        self.connection.flush()
        return delivery

    def confirmed(self, delivery: proton.Delivery) -> None:
        """Wait for the broker's outcome."""
        self.connection.until(lambda: bool(delivery.remote_state))
        delivery.settle()

    def receiver(self, *, settled: bool = False) -> proton.Receiver:
        """Attach a link that takes messages away."""
        link = self.session.receiver(self.connection.link_name())
        DIALECT.set_up(link.source, self.queue)
        if settled:
            link.snd_settle_mode = proton.Link.SND_SETTLED
        self.connection.receivers[link.name] = self.take
        return self.connection.attach(link)

    def take(self, delivery: proton.Delivery, _message: bytes) -> None:
        """Count a message and settle it."""
        self.came += 1
        delivery.update(proton.Delivery.ACCEPTED)
        delivery.settle()

    def get(self, link: proton.Receiver, most: int = 1) -> None:
        """Take at most so many messages."""
        self.connection.drain(link, most)

    def take_the_rest(self) -> None:
        """Empty the queue."""
        link = self.receiver()
        self.get(link, CREDIT)
        self.connection.detach(link)


def gets(url: str, count: int, *, shared: bool) -> int:
    """Return how many gets find nothing while a message waits."""
    client = Client(url, f"gets-{shared}")
    link = client.receiver()
    empty = 0
    for _ in range(count):
        client.confirmed(client.send())
        before = client.came
        while client.came == before:
            if not shared:
                client.connection.detach(link)
                link = client.receiver()
            client.get(link)
            empty += client.came == before
    return empty


def stuck(url: str, *, settled: bool, again: bool) -> tuple[int, int]:
    """Return how many messages stay with a link without credit, and how many come in the end.

    The end is that the link is given credit `again`, or that it leaves and the queue is emptied.
    """
    client, other = (Client(url, f"credit-{settled}-{again}") for _ in range(2))
    stay = end = 0
    for _ in range(LINKS):
        client.came = other.came = 0
        link = client.receiver(settled=settled)
        link.flow(CREDIT)
        client.connection.flush()
        deliveries = [other.send() for _ in range(EACH)]
        link.flow(-link.credit)
        client.connection.end(client.connection.session())
        for delivery in deliveries:
            other.confirmed(delivery)
        other.take_the_rest()
        before = client.came + other.came
        if again:
            link.flow(CREDIT)
            while heard([client.connection], SILENCE_S):
                pass
        client.connection.detach(link)
        other.take_the_rest()
        stay += EACH - before
        end += client.came + other.came - before
    return stay, end


def main() -> None:
    """Print both."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else GETS
    with private_server("private:artemis?protocol=amqp10") as server:
        for shared in (True, False):
            where = "one link for all" if shared else "a link for each"
            print(f"gets, {where}: {gets(server.url, count, shared=shared)} empty, {count} found")
        for settled in (True, False):
            for again in (True, False):
                stay, end = stuck(server.url, settled=settled, again=again)
                link = "settled link" if settled else "link"
                how = "it has credit again" if again else "it has left"
                print(f"{stay} of {LINKS * EACH} stay with a {link}, {end} come when {how}")


if __name__ == "__main__":
    main()
