"""A small STOMP broker in this process, honest or faulty, for tests of the adapter.

Queues hold messages in the order of arrival. Each consumer has a window, NACK discards, and what a
leaving consumer holds goes back to the head. Every behaviour that tests vary is a field.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from typing import Self

from brokerproof.candidates.stomp.frames import Frame, Reader, Version, encoded


@dataclass(eq=False)
class Subscriber:
    """A consumer of the fake broker."""

    link: Link
    name: str
    queue: str
    acknowledges: bool
    window: int
    is_open: bool = True
    held: list[tuple[Frame, bool]] = field(default_factory=list)


@dataclass(eq=False)
class Link:
    """One connection, and the consumers on it."""

    socket: socket.socket
    version: Version
    subscribers: list[Subscriber] = field(default_factory=list)

    def send(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Send a frame to a client that may have gone."""
        with contextlib.suppress(OSError):
            self.socket.sendall(encoded(Frame(command, headers, body), self.version))


class FakeBroker:
    """A broker for as long as the ``with`` block lasts.

    `is_afraid_of` is a version that must not be offered. `is_cumulative` makes ACK settle all
    earlier messages of the subscription too. `late_s` delays each delivery, so that receipts
    overtake it. With `opens_late` a consumer is served from the next frame of its connection on,
    although its receipt came before. Messages with an id in `loses` are taken and never delivered.
    With `forgets_no_one` a consumer stays that has left. `refuses`, `hangs_up_on` and `deaf_to` are
    commands.
    """

    def __init__(self, version: Version = "1.2", server: str = "Fake/1.0") -> None:
        self.version, self.server = version, server
        self.is_afraid_of = ""
        self.is_cumulative = False
        self.late_s = 0.0
        self.opens_late = False
        self.forgets_no_one = False
        self.loses: set[str] = set()
        self.refuses: set[str] = set()
        self.hangs_up_on: set[str] = set()
        self.deaf_to: set[str] = set()
        self.seen: list[Frame] = []
        self._queues: dict[str, list[tuple[Frame, bool]]] = {}
        self._subscribers: list[Subscriber] = []
        self._lock = threading.RLock()
        self._links: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._numbers = 0
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        """The broker's address, with the generic profile."""
        port = self._listener.getsockname()[1]
        return f"stomp://guest:guest@127.0.0.1:{port}/?profile=generic-stomp"

    @property
    def serves_all(self) -> bool:
        """Whether each consumer is served."""
        return all(subscriber.is_open for subscriber in self._subscribers)

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Take no more clients, and hang up on all."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_all()
        for thread in self._threads:
            thread.join(10)

    def drop_all(self) -> None:
        """Hang up on every client."""
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def _start(self, run: object, *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._links.append(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        link, reader = Link(client, self.version), Reader(self.version)
        with client, contextlib.suppress(OSError):
            while arrived := client.recv(65536):
                for frame in reader.read(arrived):
                    self._handle(link, frame)
        with self._lock:
            for subscriber in link.subscribers:
                self._leave(subscriber)
            self._hand_out()

    def _handle(self, link: Link, frame: Frame) -> None:
        with self._lock:
            self.seen.append(frame)
            receipt = frame.headers.get("receipt", "")
            if frame.command in self.hangs_up_on:
                link.socket.shutdown(socket.SHUT_RDWR)
            elif frame.command in self.refuses:
                link.send("ERROR", {"message": "not here", "receipt-id": receipt}, b"not here")
            elif frame.command not in self.deaf_to:
                self._carry_out(link, frame)
                if receipt:
                    link.send("RECEIPT", {"receipt-id": receipt})
                self._hand_out()

    def _carry_out(self, link: Link, frame: Frame) -> None:
        headers = frame.headers
        named = headers.get("id")
        for subscriber in link.subscribers:
            subscriber.is_open = True
        match frame.command:
            case "CONNECT" if self.is_afraid_of in headers["accept-version"].split(","):
                link.send("ERROR", {"message": "too new"})
            case "CONNECT":
                link.send("CONNECTED", {"version": self.version, "server": self.server})
            case "SEND" if headers.get("brokerproof-id") not in self.loses:
                self._queues.setdefault(headers["destination"], []).append((frame, False))
            case "SUBSCRIBE":
                window = int(headers.get("window", "1000"))
                acknowledges = headers["ack"] != "auto"
                made = Subscriber(link, headers["id"], headers["destination"], acknowledges, window)
                made.is_open = not self.opens_late
                link.subscribers.append(made)
                self._subscribers.append(made)
            case "UNSUBSCRIBE" | "DISCONNECT":
                for subscriber in link.subscribers:
                    if subscriber.name == named or frame.command == "DISCONNECT":
                        self._leave(subscriber)
            case "ACK" | "NACK":
                number = headers.get("id", headers.get("message-id"))
                for subscriber in link.subscribers:
                    numbers = [held[0].headers["number"] for held in subscriber.held]
                    if number in numbers:
                        at = numbers.index(number)
                        del subscriber.held[0 if self.is_cumulative else at : at + 1]

    def _leave(self, subscriber: Subscriber) -> None:
        if subscriber in self._subscribers and not self.forgets_no_one:
            self._subscribers.remove(subscriber)
            back = [(frame, True) for frame, _ in subscriber.held]
            self._queues[subscriber.queue] = back + self._queues.get(subscriber.queue, [])

    def _hand_out(self) -> None:
        for subscriber in self._subscribers:
            waiting = self._queues.get(subscriber.queue, [])
            while waiting and subscriber.is_open and len(subscriber.held) < subscriber.window:
                self._deliver(subscriber, *waiting.pop(0))

    def _deliver(self, subscriber: Subscriber, frame: Frame, again: bool) -> None:
        self._numbers += 1
        number = str(self._numbers)
        headers = dict(frame.headers) | {
            "subscription": subscriber.name,
            "message-id": number,
            "ack": number,
            "redelivered": "true" if again else "false",
        }
        headers.pop("content-length", None)
        if subscriber.acknowledges:
            subscriber.held.append((Frame("SEND", {**frame.headers, "number": number}), again))
        send = threading.Timer(self.late_s, subscriber.link.send, ("MESSAGE", headers, frame.body))
        if self.late_s:
            self._threads.append(send)
            send.start()
        else:
            subscriber.link.send("MESSAGE", headers, frame.body)
