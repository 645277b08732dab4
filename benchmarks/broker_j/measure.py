"""Try what the pages on Qpid say of the real broker, on each release of Broker-J.

Each statement is a scenario of AMQP 0-9-1 clients on a new private broker. Three of them stop one
thread of the broker by a debugger, in the order of steps that the models found. Prints for each
release what was seen. Fetch the releases first: `brokerproof instances install --all`. Then

    python benchmarks/broker_j/measure.py [--only 9.2.1] [--scenario passed_over]

It needs a JDK of Java 17 or later, and takes about a minute for each release.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import amqp

# The scripts beside this one are in no package that is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.broker_j.stopper import DebuggedBrokerJ, Place, Stopper
from brokerproof.candidates.instances.registry import chosen

RELEASES = ("6.1.7", "9.2.1", "10.1.0")
QUIET_S = 2.0
"""A message that has not come after this time does not come: many times the slowest delivery."""

MOVES = Place("AbstractQueue", "getNextAvailableEntry", "QueueContext._lastSeenUpdater")
"""Before the first of the two compare-and-sets of a consumer's place."""

REWINDS = Place("OutOfOrderQueue", "checkConsumersNotAheadOfDelivery")
SENT = Place("QueueEntryImpl", "makeAcquisitionStealable")

RACED_S = 120.0
GAP_S_MAX = 3e-4
MESSAGES = 500
ROUNDS = 20


class Client:
    """A connection with one channel, and what its consumer was given, in order."""

    def __init__(self, server: DebuggedBrokerJ) -> None:
        address = urlsplit(server.url)
        self.connection = amqp.Connection(
            host=f"{address.hostname}:{address.port}",
            userid=address.username,
            password=address.password,
            login_method="PLAIN",
        )
        self.connection.connect()
        self.channel = self.connection.channel()
        self.given: list[amqp.Message] = []
        self.last: list[amqp.Message] = []

    def declare(self, name: str, **arguments: object) -> None:
        """Declare a queue."""
        given = {key.replace("_", "-"): value for key, value in arguments.items()}
        self.channel.queue_declare(name, auto_delete=False, arguments=given)

    def depth(self, name: str) -> int:
        """Return how many messages a queue has."""
        return int(self.channel.queue_declare(name, passive=True).message_count)

    def publish(self, name: str, text: str, priority: int = 4) -> None:
        """Publish, and wait until the broker has confirmed it."""
        self.channel.basic_publish_confirm(amqp.Message(text, priority=priority), routing_key=name)

    def consume(self, name: str, *, window: int = 0, tag: str = "c", **arguments: object) -> None:
        """Consume with a window of messages; 0 is none."""
        self.channel.basic_qos(0, window, False)
        given = {key.replace("_", "-"): value for key, value in arguments.items()}
        self.channel.basic_consume(name, tag, callback=self.given.append, arguments=given)

    def flow(self, *, active: bool) -> None:
        """Ask the broker to send or not, without waiting for its answer."""
        self.channel.send_method(amqp.spec.Channel.Flow, "b", (active,))

    def hear(self, count: int = -1, within_s: float = QUIET_S) -> list[str]:
        """Return the texts given since the last call: `count`, or all until nothing comes."""
        until = time.monotonic() + within_s
        while len(self.given) != count and (left := until - time.monotonic()) > 0:
            before = len(self.given)
            try:
                self.connection.drain_events(timeout=left)
            except TimeoutError:
                break
            if len(self.given) > before:
                until = time.monotonic() + within_s
        self.last, self.given[:] = list(self.given), []
        return [message.body for message in self.last]

    def tags(self) -> list[int]:
        """Return the delivery tags of what `hear` returned last."""
        return [message.delivery_info["delivery_tag"] for message in self.last]


def passed_over(server: DebuggedBrokerJ) -> str:
    """A message returns while a thread moves a consumer's place over it (`qpid-pointers.md`)."""
    return "; ".join(_passed_over(server, f"q{stop:d}", stop=stop) for stop in (True, False))


def _passed_over(server: DebuggedBrokerJ, queue: str, *, stop: bool) -> str:
    own, seeker, other = Client(server), Client(server), Client(server)
    own.declare(queue)
    seeker.consume(queue, window=10)
    own.publish(queue, "m0")
    _must(seeker.hear(1), ["m0"])
    # The consumer's place is at m0, and m0 is returned to it, while it may not take any.
    seeker.flow(active=False)
    seeker.depth(queue)
    seeker.channel.basic_reject(seeker.tags()[0], requeue=True)
    seeker.depth(queue)
    with Stopper(server) as stopper:
        if stop:
            stopper.arm(MOVES)
        # In 6.1.7 the queue's runner seeks for all consumers once it has served one, in later
        # releases each connection seeks for its own: the first seeker to find m0 gone stops.
        other.consume(queue, window=1)
        _must(other.hear(1), ["m0"])
        other.channel.basic_cancel("c")
        seeker.flow(active=True)
        thread = stopper.wait() if stop else "no thread"
        other.channel.basic_reject(other.tags()[0], requeue=True)
        _must(other.depth(queue), 1)
        if stop:
            stopper.go()
        first = seeker.hear()
    own.publish(queue, "m1")
    then = seeker.hear()
    fresh = Client(server)
    left = fresh.channel.basic_get(queue)
    return (
        f"{thread} stopped, given {_listed(first)}, after a further publish {_listed(then)}; "
        f"a get finds {left.body if left else 'nothing'}"
    )


def raced(server: DebuggedBrokerJ) -> str:
    """The same without a debugger: of two clients one goes on as the other returns the message."""
    own, held, paused = Client(server), Client(server), Client(server)
    own.declare("q")
    held.consume("q", window=2)
    own.publish("q", "m0")
    _must(held.hear(1), ["m0"])
    paused.flow(active=False)
    paused.consume("q", window=2)
    paused.depth("q")
    began, tries = time.monotonic(), 0
    while time.monotonic() - began < RACED_S:
        tries += 1
        held.flow(active=False)
        held.depth("q")
        lag_s = random.uniform(-GAP_S_MAX, GAP_S_MAX)  # noqa: S311 - a time, not a secret
        steps = [
            partial(paused.flow, active=True),
            partial(held.channel.basic_reject, held.tags()[0], requeue=True),
        ]
        first, second = steps if lag_s > 0 else reversed(steps)
        at = time.perf_counter() + abs(lag_s)
        first()
        while time.perf_counter() < at:
            pass
        second()
        if paused.hear(1) != ["m0"]:
            return f"m0 did not come in try {tries:,}, after {time.monotonic() - began:.0f} s"
        held, paused = paused, held
    return f"m0 came in each of {tries:,} tries"


def shown_twice(server: DebuggedBrokerJ) -> str:
    """A browser of a priority queue is shown an arrival that nothing went ahead of, twice."""
    return "; ".join(
        (
            f"one publisher: {_shown_twice(server, 'q1', publishers=1)}",
            f"two at once: {_shown_twice(server, 'q2', publishers=2)}",
            f"one stopped: {_shown_while_stopped(server, 'q3')}",
        )
    )


def _shown_twice(server: DebuggedBrokerJ, queue: str, publishers: int) -> str:
    own, browser = Client(server), Client(server)
    own.declare(queue, x_qpid_priorities=10)
    browser.consume(queue, x_filter_no_consume=True)
    clients = [Client(server) for _ in range(publishers)]

    def publish(number: int) -> None:
        for each in range(MESSAGES // publishers):
            clients[number].publish(queue, f"m{number}.{each}")

    threads = [threading.Thread(target=publish, args=(each,)) for each in range(publishers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown = Counter(browser.hear())
    twice = sum(times > 1 for times in shown.values())
    return f"{twice} of {len(shown)} messages twice or more, at most {max(shown.values())} times"


def _shown_while_stopped(server: DebuggedBrokerJ, queue: str) -> str:
    own, browser, one, two = (Client(server) for _ in range(4))
    own.declare(queue, x_qpid_priorities=10)
    browser.consume(queue, x_filter_no_consume=True, x_priority=0)
    own.publish(queue, "before")
    _must(browser.hear(1), ["before"])
    with Stopper(server) as stopper:
        stopper.arm(REWINDS)
        late = threading.Thread(target=one.publish, args=(queue, "m0"))
        late.start()
        stopper.wait()
        two.publish(queue, "m1")
        browser.hear(2)
        early = [message.body for message in browser.last]
        stopper.go()
        late.join()
        return f"{_listed(early)}, then {_listed(browser.hear())}"


def settled_while_sent(server: DebuggedBrokerJ) -> str:
    """A client settles a message while the thread that sends it has not made it stealable."""
    outcomes = []
    for how in ("acknowledged", "returned"):
        own, consumer = Client(server), Client(server)
        own.declare(how)
        consumer.consume(how, window=1)
        own.publish(how, "warm")
        _must(consumer.hear(1), ["warm"])
        consumer.channel.basic_ack(consumer.tags()[0])
        consumer.depth(how)
        with Stopper(server) as stopper:
            stopper.arm(SENT)
            publisher = threading.Thread(target=own.publish, args=(how, "m0"))
            publisher.start()
            thread = stopper.wait()
            # The tag is known, so the client need not have read the message.
            if how == "acknowledged":
                consumer.channel.basic_ack(2)
            else:
                consumer.channel.basic_reject(2, requeue=True)
            time.sleep(QUIET_S)
            looker = Client(server)
            waits = looker.depth(how)
            stopper.go()
            publisher.join()
            given = consumer.hear()
        outcomes.append(
            f"{how}: {waits} in the queue while {thread} is stopped, then given {_listed(given)}, "
            f"and {looker.depth(how)} in the queue"
        )
    return "; ".join(outcomes)


def left_waiting(server: DebuggedBrokerJ) -> str:
    """Two messages come at once, and the better consumer has room for one."""
    waiting = 0
    for number in range(ROUNDS):
        queue = f"q{number}"
        own, low, high = Client(server), Client(server), Client(server)
        own.declare(queue)
        low.consume(queue, window=1, x_priority=0)
        high.consume(queue, window=1, x_priority=1)
        own.channel.tx_select()
        for each in ("m0", "m1"):
            own.channel.basic_publish(amqp.Message(each), routing_key=queue)
        own.channel.tx_commit()
        _must(high.hear(1), ["m0"])
        waiting += not low.hear(1)
        for client in (low, high, own):
            client.connection.close()
    return f"the second message waited in {waiting} of {ROUNDS} rounds"


def declines_for_ever(server: DebuggedBrokerJ) -> str:
    """Two consumers have room by bytes, and the next message is too large for either."""
    own, *both = (Client(server) for _ in range(3))
    own.declare("q")
    for client in both:
        client.channel.basic_qos(80, 0, False)
        client.channel.basic_consume("q", "c", callback=client.given.append)
    for number in range(2):
        own.publish("q", f"m{number}".ljust(60))
    given = [len(client.hear()) for client in both]
    idle = _busy(server)
    own.publish("q", "large".ljust(100))
    late = [len(client.hear()) for client in both]
    return (
        f"given {given}, then {late}; processor {idle:.0%} before, "
        f"{_busy(server):.0%} with the large message waiting"
    )


def browser_gives_way(server: DebuggedBrokerJ) -> str:
    """A consumer of priority 1 has room by bytes, but not for the next message; a browser looks."""
    missed = {0: 0, 1: 0}
    for number in range(ROUNDS):
        for priority in missed:
            queue = f"q{number}.{priority}"
            own, browser, better = (Client(server) for _ in range(3))
            own.declare(queue)
            better.channel.basic_qos(80, 0, False)
            better.channel.basic_consume(
                queue, "c", callback=better.given.append, arguments={"x-priority": 1}
            )
            own.publish(queue, "m0".ljust(60))
            _must(len(better.hear(1)), 1)
            browser.consume(queue, x_filter_no_consume=True, x_priority=priority)
            own.publish(queue, "m1".ljust(60))
            missed[priority] += not browser.hear(1)
            for client in (browser, better, own):
                client.connection.close()
    return "; ".join(
        f"a browser of priority {priority} missed it in {times} of {ROUNDS} rounds"
        for priority, times in missed.items()
    )


def _busy(server: DebuggedBrokerJ, during_s: float = 5.0) -> float:
    """Return the share of one processor that the broker uses."""

    def ticks() -> int:
        return sum(
            sum(map(int, Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:13]))
            for each in server.process_ids
        )

    before = ticks()
    time.sleep(during_s)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / during_s


def first_queue_starves(server: DebuggedBrokerJ) -> str:
    """A consumer of two queues with a window of one message."""
    own, consumer = Client(server), Client(server)
    for queue in ("a", "b"):
        own.declare(queue)
        for number in range(6):
            own.publish(queue, f"{queue}{number}")
    consumer.consume("a", window=1, x_multiqueue=["a", "b"])
    order = ""
    while given := consumer.hear(1):
        order += given[0][0]
        consumer.channel.basic_ack(consumer.tags()[0])
    return f"taken from {order}"


def closes_the_connection(server: DebuggedBrokerJ) -> str:
    """The broker closes a channel for a missing queue, and the client confirms that."""
    closed = 0
    for _ in range(ROUNDS):
        client = Client(server)
        try:
            client.depth("missing")
        except (amqp.NotFound, amqp.exceptions.ChannelNotOpen):
            closed += not client.connection.connected
    return f"{closed} of {ROUNDS} connections closed with it"


SCENARIOS: dict[str, Callable[[DebuggedBrokerJ], str]] = {
    scenario.__name__: scenario
    for scenario in (
        passed_over,
        raced,
        shown_twice,
        settled_while_sent,
        left_waiting,
        declines_for_ever,
        browser_gives_way,
        first_queue_starves,
        closes_the_connection,
    )
}


def _must(seen: object, expected: object) -> None:
    """Stop the measurement where its beginning did not do what it is built on."""
    if seen != expected:
        raise RuntimeError(f"saw {seen!r}, not {expected!r}")


def _listed(texts: list[str]) -> str:
    return " ".join(texts) or "nothing"


def main() -> None:
    """Print what was seen, one line for each scenario and release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="RELEASE", choices=RELEASES)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    options = parser.parse_args()
    choices = [chosen(f"broker-j?version={each}") for each in options.only or RELEASES]
    for choice in choices:
        if (missing := choice.missing()) is not None:
            sys.exit(str(missing))
    for name in options.scenario or SCENARIOS:
        print(f"{name}: {SCENARIOS[name].__doc__}")
        for choice in choices:
            with DebuggedBrokerJ(choice) as server:
                print(f"  {choice.version}: {SCENARIOS[name](server)}", flush=True)


if __name__ == "__main__":
    main()
