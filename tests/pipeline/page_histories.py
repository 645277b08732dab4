"""Random histories of a correct broker, written from docs/reference/histories.md alone.

It imports nothing of the product: it writes the lines of that page. A broker does one thing at a
time; its clients see it through delays, so spans overlap, answers are lost with a channel or a
crash, and deliveries on their way are not recorded. A publish or a get without an answer may take
effect late. A crash may undo what had no answer. A coarse clock makes ties. Faults are planted in
the broker, never in what is recorded. Leases, selectors and names used again are left out.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Line: TypeAlias = dict[str, Any]

FAULTS: Final = {
    "loses": "nothing-lost",
    "loses-beside-gets": "nothing-lost",
    "loses-at-close": "close-releases",
    "loses-in-a-crash": "survives-restart",
    "gives-twice": "nothing-twice",
    "undoes-an-answered-settlement": "settlement-survives-crash",
    "overtakes": "fifo-order",
    "ignores-priority": "priority-order",
    "returns-to-the-tail": "release-rewinds",
    "keeps-after-a-purge": "purge-drops",
    "keeps-after-a-deletion": "delete-drops",
    "keeps-what-is-transient": "transient-is-lost",
    "shows-twice": "browser-once",
    "shows-what-returned": "browser-never-rewound",
    "shows-out-of-order": "browser-in-order",
    "shows-what-is-held": "browser-sees-available",
    "exceeds-a-window": "credit-not-exceeded",
    "invents": "nothing-invented",
    "forgets-the-flag": "redelivered-flag",
    "finds-nothing": "get-finds",
    "drops-at-publish": "nothing-lost",
    "loses-at-release": "nothing-lost",
    "takes-what-it-shows": "browser-takes-nothing",
    "doubles-at-publish": "nothing-twice",
    "undoes-a-rejection": "nothing-twice",
    "loses-when-settled-twice": "settled-once",
    "gives-when-settled-twice": "settled-once",
    "foresees": "nothing-invented",
    "shows-what-was-never-published": "nothing-invented",
    "returns-as-the-least-urgent": "release-rewinds",
    "gives-after-a-cancel": "only-to-subscribers",
    "flags-what-is-new": "redelivered-flag",
    "leaves-out-of-a-browse": "browser-sees-all",
}
"""The faults, and the requirement that each breaks."""

MISSED: Final = frozenset({"gives-after-a-cancel", "flags-what-is-new", "leaves-out-of-a-browse"})
"""The faults that no rule finds."""

BY_LEVEL: Final = frozenset({"ignores-priority", "returns-as-the-least-urgent"})
"""The faults of queues with priorities only."""

UNDONE_MAX: Final = 60
"""How many settlements a crash may undo."""

REPEATED_MAX: Final = 8
"""How many settlements clients may send again."""


@dataclass(eq=False)
class Message:
    """A message in a queue; `held` while a subscriber has it."""

    name: str
    place: float
    level: int
    line: Line
    held: bool = False
    taken: bool = False
    either: bool = False
    shown_to: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Delivery:
    """A message on its way to a subscriber, or with it until it is settled."""

    message: Message
    line: Line
    position: int


@dataclass(eq=False)
class Subscriber:
    """A consumer, a browser or a get; `at` is a browser's place.

    It has `given` deliveries so far, the last one received at `received`, and `holds` some.
    """

    name: str
    queue: Queue
    channel: str
    line: Line
    given: int = 0
    received: int = 0
    holds: list[Delivery] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    at: float = -1
    there: bool = True

    def stops(self) -> None:
        """Be given nothing more, and hold nothing."""
        self.there = False
        self.holds = []

    @property
    def is_get(self) -> bool:
        """Whether it asks for one message, once."""
        return "op" not in self.line

    @property
    def mode(self) -> str:
        """How it takes."""
        return str(self.line["mode"])


@dataclass(eq=False)
class Queue:
    """A queue, and the facts by which it is declared."""

    name: str
    facts: Line
    messages: list[Message] = field(default_factory=list)

    def available(self) -> list[Message]:
        """Return what can be given, the next one first."""
        there = [each for each in self.messages if not each.held]
        return sorted(there, key=lambda each: (-each.level, each.place))


class Broker:
    """A run of a broker and its clients; `lines` is what they recorded."""

    def __init__(self, seed: int, fault: str | None = None, most: int | None = None) -> None:
        """Make a broker with a fault.

        With `most` it is done that often at most, spread over the run. The queue lets it show then,
        times are narrow, nearly all is answered and each close is, consumers cancel before their
        channel closes, and no crash meets an automatic one.
        """
        self.random = random.Random(seed)  # noqa: S311
        self.fault, self.most, self.planted, self.done = fault, most, 0, 0.0
        self.run, self.now, self.names = f"run {seed}", 1000, 0
        self.jitter, self.tick = self.random.choice((0, 3, 20, 100)), self.random.choice((1, 1, 7))
        self.lines: list[Line] = []
        self.recent: list[Line] = []
        self.unseen: set[int] = set()
        self.later: list[Callable[[], object]] = []
        self.subscribers: list[Subscriber] = []
        self.finals: deque[tuple[Message, Line]] = deque(maxlen=UNDONE_MAX)
        self.settled: deque[tuple[Subscriber, Delivery, Line]] = deque(maxlen=REPEATED_MAX)
        self.channels = [self.name("ch") for _ in range(3)]
        facts: Line = {
            "levels": self.random.choice((None, None, 3)),
            "durable": self.random.random() < 0.6,
            "returns": self.random.choice(("original", "original", "elsewhere")),
            "may_drop": fault is None and self.random.random() < 0.05,
        }
        if most is not None:
            levels = 3 if fault in BY_LEVEL else None
            facts |= {"levels": levels, "durable": True, "returns": "original"}
            self.jitter, self.tick = 3, 1
        self.queue = Queue("q", facts)
        self.note("declare", **self.queue.facts)

    # What is recorded.

    def name(self, of: str) -> str:
        """Return a name that is not used."""
        self.names += 1
        return f"{of}{self.names}"

    def delay(self) -> int:
        """Return how long something is on its way."""
        return self.random.randint(0, self.jitter)

    def note(self, op: str, *, least: int = 0, answered: bool = True, **fields: Any) -> Line:
        """Record what happens now, by a span around it."""
        line = {"op": op, "run": self.run, "start": max(least, self.now - self.delay())}
        if op not in {"crash", "restart", "close"}:
            line["queue"] = self.queue.name
        line |= {"end": self.now + self.delay()} if answered else {"outcome": "unknown"}
        self.lines.append(line | fields)
        self.recent.append(self.lines[-1])
        return self.lines[-1]

    def is_answered(self) -> bool:
        """Whether an operation is answered."""
        return self.random.random() < (0.9 if self.most is None else 0.999)

    def faulty(self, fault: str) -> bool:
        """Whether to do something wrong, now that there is an occasion."""
        is_due = self.most is None or self.planted < self.most * self.done
        wrong = self.fault == fault and is_due and self.random.random() < 0.7
        self.planted += wrong
        return wrong

    # What clients do.

    def publish(self) -> None:
        """Publish a message; without an answer it may come later, or never."""
        priority, persistent = self.random.randrange(3), self.random.random() < 0.6
        fields: Line = {"priority": priority, "persistent": persistent, "message": self.name("m")}
        answered = self.is_answered()
        line = self.note("publish", answered=answered, **fields)

        def arrives() -> None:
            level = priority if self.queue.facts["levels"] else 0
            self.names += 1
            self.queue.messages.append(Message(line["message"], self.names, level, line))

        if answered and self.faulty("drops-at-publish"):
            return
        if answered or self.random.random() < 0.4:
            arrives()
            if self.faulty("doubles-at-publish"):
                arrives()
        elif self.random.random() < 0.5:
            self.later.append(arrives)

    def subscribe(self, mode: str | None = None, channel: str | None = None) -> Subscriber:
        """Let a consumer or a browser come."""
        mode = mode or self.random.choice(("acknowledge", "acknowledge", "automatic", "browse"))
        channel = channel or self.random.choice(self.channels)
        window = self.random.choice((None, 1, 3)) if mode == "acknowledge" else None
        fields: Line = {
            "consumer": self.name("c"),
            "channel": channel,
            "mode": mode,
            "window": window,
        }
        line = self.note("consume", **fields)
        self.subscribers = [
            e for e in self.subscribers if e.there or e.holds or e.received > self.now
        ]
        self.subscribers.append(Subscriber(fields["consumer"], self.queue, channel, line))
        return self.subscribers[-1]

    def cancel(self) -> None:
        """Let a consumer go, which has received all its deliveries when that is answered."""
        if there := [each for each in self.subscribers if each.there]:
            self.leaves_by_itself(self.random.choice(there))

    def leaves_by_itself(self, gone: Subscriber) -> None:
        """Let a consumer cancel, and wait for the answer."""
        gone.there = False
        line = self.note("cancel", consumer=gone.name, channel=gone.channel)
        line["end"] = max(line["end"], gone.received)

    def settle(self) -> None:
        """Settle a delivery that was received."""
        held = [
            (subscriber, each)
            for subscriber in self.subscribers
            for each in subscriber.holds
            if each.line["op"] == "deliver" and each.line["end"] <= self.now
        ]
        if not held:
            return
        subscriber, of = self.random.choice(held)
        op, answered = self.random.choice(("acknowledge", "reject", "release")), self.is_answered()
        fields = {"message": of.message.name, "consumer": subscriber.name, "position": of.position}
        line = self.note(op, least=of.line["end"], answered=answered, **fields)
        if not answered and self.random.random() < 0.5:
            # It never arrives, and the client does not try again.
            of.line = of.line | {"op": "given up"}
            return
        subscriber.holds.remove(of)
        subscriber.settled.append(line["start"])
        self.settled.append((subscriber, of, line))
        if op == "release":
            self.put_back(of.message)
            if self.faulty("loses-at-release"):
                self.remove(of.message)
            return
        self.finals.append((of.message, line))
        self.remove(of.message)
        if op == "reject" and self.faulty("undoes-a-rejection"):
            self.bring_back(of.message)

    def settle_again(self) -> None:
        """Settle a delivery that was certainly settled, which has no effect."""
        over = [each for each in self.settled if each[2].get("end", self.now) < self.now]
        over = [each for each in over if each[0].channel in self.channels]
        if not over:
            return
        subscriber, of, before = self.random.choice(over)
        op, there = self.random.choice(("acknowledge", "release")), self.queue.available()
        fields: Line = {
            "message": of.message.name,
            "consumer": subscriber.name,
            "position": of.position,
        }
        self.note(op, least=before["end"] + 1, **fields)
        if op == "acknowledge":
            if of.message in there and self.faulty("loses-when-settled-twice"):
                self.remove(of.message)
        elif before["op"] != "release" and self.faulty("gives-when-settled-twice"):
            self.bring_back(of.message)

    def close(self, channel: str | None = None, *, answered: bool | None = None) -> None:
        """Close a channel: what was received goes back, and so does what was on its way."""
        channel = channel or self.random.choice(self.channels)
        if self.most is not None:
            for each in self.subscribers:
                if each.there and each.channel == channel:
                    self.leaves_by_itself(each)
            self.now += 2 * self.jitter + 1
            answered = True
        self.channels[self.channels.index(channel)] = self.name("ch")
        answered = self.is_answered() if answered is None else answered
        self.note("close", channel=channel, answered=answered)
        for line in self.without_an_answer():
            if line.get("channel") == channel and line["op"] in {"cancel", "deliver", "empty"}:
                self.loses_its_answer(line)
        for subscriber in self.subscribers:
            if subscriber.channel == channel:
                self.leaves(subscriber)

    def leaves(self, subscriber: Subscriber) -> None:
        """Return what a subscriber holds, and what was on its way to it."""
        held = subscriber.holds
        subscriber.stops()
        for each in held:
            self.put_back(each.message)
            if each.message in self.queue.messages and self.faulty("loses-at-close"):
                self.remove(each.message)

    # What the broker does.

    def remove(self, message: Message) -> None:
        """Forget a message."""
        self.queue.messages = [each for each in self.queue.messages if each is not message]

    def bring_back(self, message: Message) -> None:
        """Let a message that was done with be there again, by a fault."""
        if message not in self.queue.messages:
            self.queue.messages.append(message)
            message.held = False

    def put_back(self, message: Message) -> None:
        """Let a message return to its place, or to any."""
        message.held = False
        if self.queue.facts["returns"] == "elsewhere":
            self.names += 1
            message.place = self.random.uniform(0, self.names)
        elif self.faulty("returns-to-the-tail"):
            self.names += 1
            message.place = self.names
        elif message.level and self.faulty("returns-as-the-least-urgent"):
            message.level = -1

    def deliver(self) -> None:
        """Give a consumer the next message."""
        consumers = [e for e in self.subscribers if not e.is_get and e.mode != "browse"]
        there = [each for each in consumers if each.there]
        gone = [e for e in consumers if not e.there and e.channel in self.channels]
        if gone and self.queue.available() and self.faulty("gives-after-a-cancel"):
            there = gone
        if not there:
            return
        subscriber = self.random.choice(there)
        window = subscriber.line["window"]
        if window and len(subscriber.holds) >= window and not self.faulty("exceeds-a-window"):
            return
        if (message := self.chosen()) is not None:
            self.give(subscriber, message)

    def chosen(self) -> Message | None:
        """Return the message to give, or another by a fault."""
        available = self.queue.available()
        fresh = [each for each in available if not each.taken]
        equals = [each for each in fresh if each.level == available[0].level]
        if len(equals) > 1 and equals[0] is available[0] and self.faulty("overtakes"):
            return equals[1]
        less = [each for each in fresh if each.level < available[0].level]
        if less and available[0] in fresh and self.faulty("ignores-priority"):
            return less[0]
        held = [each for each in self.queue.messages if each.held]
        if held and self.faulty("gives-twice"):
            return held[0]
        if self.faulty("invents"):
            return self.never_published()
        if self.faulty("foresees"):
            message = self.never_published()
            fields: Line = {"message": message.name, "priority": 0, "persistent": False}
            self.later.append(lambda: self.note("publish", **fields))
            return message
        return available[0] if available else None

    def never_published(self) -> Message:
        """Return a message that the broker invents."""
        return Message(self.name("x"), 0, 0, {"persistent": False})

    def give(self, subscriber: Subscriber, message: Message) -> None:
        """Send a message to a consumer."""
        position, window = subscriber.given, subscriber.line["window"]
        start = subscriber.line["start"]
        if window and len(subscriber.settled) > position - window >= 0:
            start = max(start, sorted(subscriber.settled)[position - window])
        line = self.sent(subscriber, message, start)
        automatic = subscriber.mode == "automatic"
        self.take(subscriber, message, line, automatic=automatic)

    def take(
        self, subscriber: Subscriber, message: Message, line: Line, *, automatic: bool
    ) -> None:
        """Let a subscriber have a message, for good or until it settles it."""
        message.taken = message.held = True
        message.either = False
        if not automatic:
            subscriber.holds.append(Delivery(message, line, max(subscriber.given - 1, 0)))
        else:
            self.finals.append((message, {"outcome": "unknown"}))
            self.remove(message)

    def sent(self, subscriber: Subscriber, message: Message, start: int) -> Line:
        """Record a delivery, which is received in its order, after a while."""
        position, before = subscriber.given, subscriber.received
        fault = "forgets-the-flag" if message.taken else "flags-what-is-new"
        flag: bool | None = message.taken is not self.faulty(fault)
        if self.random.random() < 0.1:
            flag = None
        elif message.either:
            flag = self.random.random() < 0.5
        line = self.note(
            "deliver", consumer=subscriber.name, channel=subscriber.channel, mode=subscriber.mode
        )
        line |= {"message": message.name, "position": position, "redelivered": flag}
        line |= {"start": min(start, self.now), "end": max(before, self.now + self.delay())}
        subscriber.given, subscriber.received = position + 1, line["end"]
        return line

    def get(self) -> None:
        """Ask for one message; without an answer it may be taken later, or none."""
        mode, channel = (
            self.random.choice(("acknowledge", "automatic")),
            self.random.choice(self.channels),
        )
        subscriber = Subscriber(self.name("g"), self.queue, channel, {"mode": mode}, there=False)
        self.subscribers.append(subscriber)
        available = self.queue.available()
        fields: Line = {"consumer": subscriber.name, "channel": channel}
        if not self.is_answered():
            line = self.note("get", answered=False, mode=mode, **fields)

            def takes() -> None:
                open_ = channel in self.channels
                for message in self.queue.available()[:open_]:
                    self.take(subscriber, message, line, automatic=mode == "automatic")

            if self.random.random() < 0.4:
                takes()
            elif self.random.random() < 0.5 and mode == "automatic":
                self.later.append(takes)
        elif available and (self.queue.facts["may_drop"] or not self.faulty("finds-nothing")):
            self.take(
                subscriber,
                available[0],
                self.sent(subscriber, available[0], self.now - self.delay()),
                automatic=mode == "automatic",
            )
        else:
            subscriber.received = self.note("empty", **fields)["end"]

    def browse(self) -> None:
        """Show a browser the next message, and move its place there."""
        there = [each for each in self.subscribers if each.there and each.mode == "browse"]
        if not there:
            return
        subscriber, fifo = self.random.choice(there), self.queue.facts["levels"] is None
        new = [each for each in self.queue.available() if subscriber.name not in each.shown_to]
        if fifo:
            new = [each for each in self.queue.available() if each.place > subscriber.at]
            new = self.wrongly_shown(subscriber, new)
        if not new:
            return
        if fifo and len(new) > 1 and self.faulty("leaves-out-of-a-browse"):
            new = new[1:]
        new[0].shown_to.add(subscriber.name)
        subscriber.at = max(subscriber.at, new[0].place)
        self.sent(subscriber, new[0], subscriber.line["start"])
        if not new[0].held and self.faulty("takes-what-it-shows"):
            self.remove(new[0])

    def wrongly_shown(self, subscriber: Subscriber, new: list[Message]) -> list[Message]:
        """Return what a browser is shown, the wrong one first by a fault."""
        to_place = self.queue.facts["returns"] == "original"
        again = [each for each in self.queue.available() if subscriber.name in each.shown_to]
        never = [each for each in again if not each.taken]
        returned = [each for each in again if each.taken and to_place]
        held = [e for e in self.queue.messages if e.held and subscriber.name not in e.shown_to]
        if self.faulty("shows-what-was-never-published"):
            return [self.never_published()]
        if never and self.faulty("shows-twice"):
            return never
        if returned and self.faulty("shows-what-returned"):
            return returned
        if held and self.faulty("shows-what-is-held"):
            return held
        fresh = [each for each in new if not each.taken]
        if len(fresh) > 1 and to_place and self.faulty("shows-out-of-order"):
            self.sent(subscriber, fresh[1], subscriber.line["start"])
            fresh[1].shown_to.add(subscriber.name)
            return fresh[:1]
        return new

    def lose(self) -> None:
        """Drop a message, if the queue may."""
        available = self.queue.available()
        beside = self.fault == "loses-beside-gets"
        may = self.queue.facts["may_drop"] or self.faulty("loses")
        if available and (may or (beside and self.faulty("loses-beside-gets"))):
            self.remove(self.random.choice(available))

    # What ends messages.

    def purge(self) -> None:
        """Drop all that is available."""
        answered = self.is_answered()
        self.note("purge", answered=answered)
        if answered or self.random.random() < 0.5:
            kept = 1 if self.faulty("keeps-after-a-purge") else 0
            for each in self.queue.available()[kept:]:
                self.remove(each)

    def delete(self) -> None:
        """Drop the queue with all that is in it, and declare it anew."""
        line = self.note("delete")
        kept = self.queue.available()[:1] if self.faulty("keeps-after-a-deletion") else []
        self.queue.messages = kept
        self.finals.clear()
        for subscriber in self.subscribers:
            subscriber.stops()
        self.now = max(self.now, line["end"])
        self.note("declare", least=line["end"], **self.queue.facts)

    def crash(self) -> None:
        """Stop, lose what is not on disk and what was under way, and come back."""
        if self.most is not None and any(
            e.there and e.mode == "automatic" for e in self.subscribers
        ):
            return
        self.later.clear()
        for line in self.without_an_answer():
            self.loses_its_answer(line)
        for subscriber in self.subscribers:
            subscriber.stops()
        self.channels = [self.name("ch") for _ in self.channels]
        self.queue.messages = [each for each in self.queue.messages if self.survives(each)]
        for message, line in self.finals:
            answered = "outcome" not in line
            undone = self.undoes(message) if answered else self.random.random() < 0.5
            if undone and self.is_on_disk(message) and message not in self.queue.messages:
                self.queue.messages.append(message)
        self.finals.clear()
        for each in self.queue.messages:
            each.held, each.either = False, each.taken
        line = self.note("crash")
        self.now = line["end"] + self.delay() + 1
        line = self.note("restart", least=line["end"])
        self.now = line["end"]
        self.note("declare", least=line["end"], **self.queue.facts)

    def without_an_answer(self) -> list[Line]:
        """Return what is under way now."""
        self.recent = [each for each in self.recent if each.get("end", 0) > self.now]
        return [e for e in self.recent if e["op"] != "declare" and id(e) not in self.unseen]

    def loses_its_answer(self, line: Line) -> None:
        """Record that what is under way is not seen; a delivery leaves nothing but its get."""
        if line["op"] in {"deliver", "empty"}:
            self.unseen.add(id(line))
            gets = [e for e in self.subscribers if e.name == line["consumer"] and e.is_get]
            for get in gets:
                asked = {key: line[key] for key in ("run", "queue", "consumer", "channel", "start")}
                self.lines.append({"op": "get", "mode": get.mode, "outcome": "unknown"} | asked)
            return
        del line["end"]
        line["outcome"] = "unknown"

    def undoes(self, message: Message) -> bool:
        """Whether a fault undoes an answered settlement."""
        return self.is_on_disk(message) and self.faulty("undoes-an-answered-settlement")

    def is_on_disk(self, message: Message) -> bool:
        """Whether a message may come back after a crash."""
        return bool(self.queue.facts["durable"] and message.line["persistent"])

    def survives(self, message: Message) -> bool:
        """Whether a crash leaves a message; one whose publish had no answer may be lost."""
        if not self.is_on_disk(message):
            return not message.held and self.faulty("keeps-what-is-transient")
        if "outcome" in message.line:
            return self.random.random() < 0.5
        return bool(self.queue.facts["may_drop"] or not self.faulty("loses-in-a-crash"))

    # The whole.

    def play(self, steps: int = 60, rests: int = 1) -> list[Line]:
        """Take random steps, draining the queue at each rest and at the end; return the lines."""
        weights: list[tuple[float, Callable[[], object]]] = [
            (20, self.publish),
            (18, self.deliver),
            (14, self.settle),
            (8, self.get),
            (8, self.browse),
            (4, self.subscribe),
            (2, self.close),
            (2, self.lose),
            (1, self.cancel),
            (3, self.settle_again),
        ]
        if self.most is not None or self.random.random() < 0.6:
            rare = min(1, 60 * rests / steps)
            weights += [(rare, self.purge), (rare, self.delete), (rare, self.crash)]
        often, steps_of = zip(*weights, strict=True)
        self.subscribe()
        for number in range(steps):
            self.done = number / steps
            self.now += self.random.randint(0, 4)
            if self.later and self.random.random() < 0.2:
                self.later.pop(self.random.randrange(len(self.later)))()
            self.random.choices(steps_of, often)[0]()
            if (number + 1) % (steps // rests) == 0:
                self.later.clear()
                self.drain()
        return [self.on_the_clock(each) for each in self.lines if id(each) not in self.unseen]

    def drain(self) -> None:
        """Close all channels, let one consumer take all that is left, and find nothing more."""
        self.now += self.jitter + 1
        for channel in [*self.channels]:
            self.close(channel, answered=True)
        self.now += self.jitter + 1
        last = self.subscribe("automatic", self.name("ch"))
        for message in self.queue.available():
            self.now += self.random.randint(0, 2)
            self.give(last, message)
        self.now += 1
        self.note("drained")
        self.now += self.jitter + 1
        self.leaves_by_itself(last)

    def on_the_clock(self, line: Line) -> Line:
        """Return a line with the times that a coarse clock shows."""
        times = {name: line[name] // self.tick for name in ("start", "end") if name in line}
        return line | times
