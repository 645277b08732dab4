"""Random histories of a plain queue that keeps its promises, or that breaks one of them.

A run is simulated step by step, each step at one exact moment, so what really happened is known.
How it is recorded is told by `recorders.py`. Faults are planted in the simulation, never there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from brokerproof.spec.histories import Record
from tests.pipeline.plain_queues import Entry, Fault, Held, Queue, Shape, Subscriber
from tests.pipeline.recorders import Happened


class Simulation:
    """A run of a queue, step by step; `happened` is what it did.

    `planted` says whether there was an occasion for the fault.
    """

    def __init__(self, seed: int, shape: Shape, fault: Fault | None = None) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.chance = random.Random(seed + 1)  # noqa: S311
        self.shape = shape
        self.fault = fault
        self.planted = False
        self.happened: list[Happened] = []
        self.now = 0
        self.names = 0
        self.queues: list[Queue] = []
        self.subscribers: list[Subscriber] = []
        self.channels: list[str] = []
        for number in range(shape.queues):
            self._declare(number)

    def run(self) -> None:
        """Take all steps, and the closing ones."""
        for _ in range(3):
            self._subscribe()
        steps: list[tuple[int, Callable[[], None]]] = [
            (20, self._publish),
            (20, self._deliver),
            (4, self._subscribe),
            (14, self._settle),
            (1, self._cancel),
            (1, self._drop),
        ]
        if self.shape.gets:
            steps.append((8, self._get))
        if self.shape.browsers:
            steps.append((14, self._browse))
        if self.shape.returns:
            steps.append((2, self._close))
        if self.shape.breaks and self.random.random() < 0.6:
            steps += [(1, self._purge), (1, self._delete), (1, self._crash)]
        if self.shape.leases:
            steps += [(8, self._lapse), (8, self._renew)]
        if self.shape.crashes:
            steps.append((self.shape.crashes, self._crash))
        weights, actions = zip(*steps, strict=True)
        for _ in range(self.shape.steps):
            self.random.choices(actions, weights)[0]()
        if self.random.random() < self.shape.drained:
            self._drain()

    # What is recorded.

    def _tell(self, *, happens: bool = True, **fields: Any) -> None:
        self.now += 10
        record = Record(start=self.now, end=self.now, **fields)
        if record.outcome == "unknown":
            record = msgspec.structs.replace(record, end=None)
        self.happened.append(Happened(record, self.now if happens else None))

    def _name(self, of: str) -> str:
        self.names += 1
        return f"{of}{self.names}"

    def _outcome(self) -> tuple[Literal["ok", "failed", "unknown"], bool]:
        """Return an outcome, and whether it happened."""
        if self.random.random() < self.shape.unknown:
            if self.random.random() < 0.3:
                return "failed", False
            return "unknown", self.random.random() < 0.5
        return "ok", True

    def _faulty(self, *faults: Fault) -> bool:
        """Whether to do it wrong, now that there is an occasion."""
        if self.fault not in faults or self.chance.random() < 0.3:
            return False
        self.planted = True
        return True

    # What clients do.

    def _declare(self, number: int) -> None:
        queue = Queue(
            f"q{number}",
            self.random.choice(self.shape.levels),
            self.random.random() < 0.5,
            "elsewhere" if self.random.random() < self.shape.elsewhere else "original",
            self.random.random() < self.shape.may_drop,
        )
        if self.shape.leases and self.random.random() < self.shape.leases:
            queue.lease = self.random.choice((40, 100))
        if self.shape.unordered and self.random.random() < self.shape.unordered:
            queue.unordered, queue.levels = True, None
        self.queues.append(queue)
        self._redeclare(queue)

    def _redeclare(self, queue: Queue) -> None:
        self._tell(
            op="declare",
            queue=queue.name,
            levels=queue.levels,
            durable=queue.durable,
            returns=queue.returns,
            lease=queue.lease,
            unordered=queue.unordered,
            may_drop=queue.may_drop,
        )

    def _publish(self) -> None:
        if sum(each.record.op == "publish" for each in self.happened) >= self.shape.messages:
            return
        queue = self.random.choice(self.queues)
        name = self._name("m")
        priority = self.random.randrange(5)
        persistent = self.random.random() < 0.7
        outcome, happens = self._outcome()
        self._tell(
            op="publish",
            queue=queue.name,
            message=name,
            priority=priority,
            persistent=persistent,
            outcome=outcome,
            happens=happens,
        )
        if happens:
            level = min(priority, queue.levels - 1) if queue.levels else 0
            kept, answered = persistent and queue.durable, outcome == "ok"
            queue.entries.append(Entry(name, self.now, level, kept, answered))

    def _subscribe(self) -> None:
        queue = self.random.choice(self.queues)
        draw = self.random.random()
        mode: Literal["acknowledge", "automatic", "browse"] = "acknowledge"
        if draw < 0.2:
            mode = "automatic"
        elif draw < 0.5 and self.shape.browsers:
            mode = "browse"
        windows = (None, 1, 2) if mode == "acknowledge" and self.shape.windows else (None,)
        window = self.random.choice(windows)
        selective = self.random.random() < self.shape.selective
        subscriber = Subscriber(self._name("c"), queue, self._channel(), mode, window, selective)
        self.subscribers.append(subscriber)
        self._tell(
            op="consume",
            queue=queue.name,
            consumer=subscriber.name,
            channel=subscriber.channel,
            mode=mode,
            window=window,
            selective=selective,
        )

    def _channel(self) -> str:
        if not self.channels or self.random.random() < 0.5:
            self.channels.append(self._name("ch"))
        return self.random.choice(self.channels)

    def _cancel(self) -> None:
        if there := [each for each in self.subscribers if each.there]:
            subscriber = self.random.choice(there)
            subscriber.there = False
            self._tell(op="cancel", consumer=subscriber.name)

    # What the broker gives.

    def _deliver(self) -> None:
        subscribers = [each for each in self.subscribers if each.there and each.mode != "browse"]
        if not subscribers:
            return
        subscriber = self.random.choice(subscribers)
        has_room = subscriber.window is None or len(subscriber.holds) < subscriber.window
        if not has_room and not self._faulty("exceeds-a-window"):
            return
        wanted = [
            each
            for each in subscriber.queue.waiting()
            if not subscriber.selective or each.name[-1] in "02468"
        ]
        self._give(subscriber, wanted)

    def _give(self, subscriber: Subscriber, wanted: Sequence[Entry]) -> None:
        """Give the first of what is wanted, or what a fault puts in its stead."""
        entry = wanted[0] if wanted else None
        equals = [each for each in wanted if each.level == wanted[0].level]
        less = [each for each in wanted if each.level < wanted[0].level]
        never = [each for each in (*equals[:1], *less) if not each.acquired]
        plain = not subscriber.selective and subscriber.queue.returns == "original"
        fresh = [each for each in equals[:2] if not each.acquired]
        if len(fresh) > 1 and plain and self._faulty("overtakes-an-equal"):
            entry = equals[1]
        if less and plain and len(never) > 1 and self._faulty("ignores-priority"):
            entry = less[0]
        held = [each for each in subscriber.queue.entries if each.held and not each.held.meddled]
        if held and self._faulty("gives-twice"):
            entry = held[0]
        meddled = [each for each in subscriber.queue.entries if each.held and each.held.meddled]
        if meddled and self._faulty("gives-twice-when-meddled"):
            entry = meddled[0]
        if self._faulty("invents"):
            entry = Entry(self._name("x"), self.now, 0, persistent=False)
        if entry is not None:
            self._hand_over(subscriber, entry)
        if self._faulty("foresees"):
            early = Entry(self._name("x"), self.now, 0, persistent=False)
            self._hand_over(subscriber, early)
            self._tell(op="publish", queue=subscriber.queue.name, message=early.name)

    def _flag(self, entry: Entry) -> bool | None:
        if self.random.random() < self.shape.unknown:
            return None
        if entry.either_flag:
            return self.random.random() < 0.5
        return entry.came_back and not self._faulty("forgets-the-flag")

    def _hand_over(self, subscriber: Subscriber, entry: Entry) -> None:
        self._tell(
            op="deliver",
            queue=subscriber.queue.name,
            message=entry.name,
            consumer=subscriber.name,
            channel=subscriber.channel,
            position=subscriber.given,
            mode=subscriber.mode,
            redelivered=self._flag(entry),
        )
        entry.acquired = True
        if subscriber.mode == "automatic":
            subscriber.queue.entries = [
                each for each in subscriber.queue.entries if each is not entry
            ]
        else:
            entry.held = Held(entry, subscriber, subscriber.given)
            entry.held.due = self.now + (subscriber.queue.lease or 0)
            subscriber.holds.append(entry.held)
        subscriber.given += 1

    def _get(self) -> None:
        queue = self.random.choice(self.queues)
        subscriber = Subscriber(self._name("g"), queue, self._channel(), there=False)
        self.subscribers.append(subscriber)
        if self.random.random() < 0.2:
            subscriber.mode = "automatic"
        waiting = queue.waiting()
        if self.shape.unanswered and self.random.random() < self.shape.unanswered:
            self._get_without_an_answer(subscriber, waiting)
            return
        if waiting and not (not queue.may_drop and self._faulty("finds-nothing")):
            self._give(subscriber, waiting)
        else:
            self._tell(op="empty", queue=queue.name, consumer=subscriber.name)

    def _get_without_an_answer(self, subscriber: Subscriber, waiting: Sequence[Entry]) -> None:
        """Take the first message for good, or none; no client is told."""
        takes = bool(waiting) and self.random.random() < 0.7
        self._tell(
            op="get",
            queue=subscriber.queue.name,
            consumer=subscriber.name,
            channel=subscriber.channel,
            mode="automatic",
            outcome="unknown",
            happens=takes,
        )
        if takes:
            self._forget(subscriber.queue, waiting[0])

    def _browse(self) -> None:
        browsers = [each for each in self.subscribers if each.there and each.mode == "browse"]
        if not browsers:
            return
        subscriber = self.random.choice(browsers)
        new = [each for each in subscriber.queue.waiting() if each not in subscriber.passed]
        if subscriber.queue.levels is None:
            self._plant_in_browsing(subscriber, new)
        if not new:
            return
        entry = new[0] if subscriber.queue.levels is None else self.random.choice(new)
        behind = [each for each in subscriber.queue.entries if each.place <= entry.place]
        subscriber.passed += behind if subscriber.queue.levels is None else [entry]
        self._show(subscriber, entry)

    def _plant_in_browsing(self, subscriber: Subscriber, new: list[Entry]) -> None:
        again = [
            each
            for each in subscriber.shown
            if each.held is None and each in subscriber.queue.entries
        ]
        never = [each for each in again if not each.acquired]
        returned = [each for each in again if each.acquired]
        if never and self._faulty("shows-twice"):
            new.insert(0, never[0])
        to_place = subscriber.queue.returns == "original"
        if returned and to_place and self._faulty("shows-again-what-returned"):
            new.insert(0, returned[0])
        if len(new) > 1 and self._faulty("shows-out-of-order"):
            new.reverse()
            self._show(subscriber, new.pop(0))
        held = [
            each for each in subscriber.queue.entries if each.held and each not in subscriber.shown
        ]
        if held and self._faulty("shows-what-is-held"):
            new.insert(0, held[0])

    def _show(self, subscriber: Subscriber, entry: Entry) -> None:
        self._tell(
            op="deliver",
            queue=subscriber.queue.name,
            message=entry.name,
            consumer=subscriber.name,
            position=subscriber.given,
            mode="browse",
        )
        subscriber.given += 1
        subscriber.shown.append(entry)
        entry.shown = True
        if entry.held is None and self._faulty("loses-what-was-shown"):
            self._forget(subscriber.queue, entry)

    # What is settled, and what returns.

    def _settle(self) -> None:
        held = [each for subscriber in self.subscribers for each in subscriber.holds]
        if not held:
            return
        chosen = self.random.choice(held)
        kinds: tuple[Literal["acknowledge", "release", "reject"], ...]
        kinds = ("acknowledge", "release", "reject") if self.shape.returns else ("acknowledge",)
        kind = self.random.choice(kinds)
        outcome, happens = self._outcome()
        again = happens and self.random.random() < self.shape.unknown
        self._tell_settled(kind, chosen, outcome, happens=happens)
        if outcome == "unknown":
            chosen.meddled = True
        if happens:
            chosen.subscriber.holds.remove(chosen)
            if kind == "release":
                self._return(chosen, "came_back")
            elif chosen.entry.held is chosen:
                self._forget(chosen.subscriber.queue, chosen.entry)
        if again:
            self._tell_settled(self.random.choice(kinds), chosen, "ok")
            self._meddle(chosen)

    def _tell_settled(self, kind: str, held: Held, outcome: str, *, happens: bool = True) -> None:
        self._tell(
            op=kind,
            queue=held.subscriber.queue.name,
            message=held.entry.name,
            consumer=held.subscriber.name,
            position=held.position,
            outcome=outcome,
            happens=happens,
        )

    def _meddle(self, held: Held) -> None:
        """Do what only a broker does that is confused by a second settlement."""
        queue, entry = held.subscriber.queue, held.entry
        if entry in queue.entries and entry.held is None and self._faulty("loses-when-meddled"):
            self._forget(queue, entry)
        elif entry not in queue.entries and self._faulty("gives-twice-when-meddled"):
            entry.held = None
            queue.entries.append(entry)

    def _return(self, held: Held, how: str) -> None:
        entry, queue = held.entry, held.subscriber.queue
        if entry not in queue.entries or entry.held is not held:
            return
        entry.held = None
        setattr(entry, how, True)
        if queue.returns == "elsewhere":
            entry.place = self.random.randint(0, self.now)
            self._lies_ahead_of_browsers(entry)
        elif self._faulty("returns-to-the-tail"):
            entry.place = self.now

    def _lies_ahead_of_browsers(self, entry: Entry) -> None:
        """Let browsers see an entry again if its new place is behind all that they have passed."""
        for subscriber in self.subscribers:
            others = [each for each in subscriber.passed if each is not entry]
            if all(each.place < entry.place for each in others):
                subscriber.passed = others

    def _leased(self) -> list[Held]:
        """Return what is held for a time, or was."""
        return [
            held
            for subscriber in self.subscribers
            for held in subscriber.holds
            if subscriber.queue.lease is not None
        ]

    def _lapse(self) -> None:
        """End a lease, which no client is told; its holder may settle in vain later."""
        held = [each for each in self._leased() if each.entry.held is each]
        over = [each for each in held if each.due <= self.now]
        early = [each for each in held if each.due > self.now + 20]
        if early and self._faulty("ends-a-lease-early"):
            over = early
        if over:
            chosen = self.random.choice(over)
            self._return(chosen, "came_back")
            if self.random.random() < 0.5:
                chosen.subscriber.holds.remove(chosen)

    def _renew(self) -> None:
        if not (held := self._leased()):
            return
        chosen = self.random.choice(held)
        outcome, happens = self._outcome()
        self._tell_settled("extend", chosen, outcome, happens=happens)
        if happens and chosen.entry.held is chosen:
            assert chosen.subscriber.queue.lease is not None
            ends = self._faulty("ends-a-lease-when-renewed")
            chosen.due = self.now + (0 if ends else chosen.subscriber.queue.lease)

    def _may_settle_in_vain(self, subscriber: Subscriber) -> None:
        """Let a client that holds nothing any more believe that it does, now and then."""
        if self.random.random() < 0.7:
            subscriber.holds.clear()

    def _forget(self, queue: Queue, entry: Entry) -> None:
        queue.entries = [each for each in queue.entries if each is not entry]

    def _close(self) -> None:
        if self.channels:
            self._close_channel(self.random.choice(self.channels))

    def _close_channel(self, channel: str) -> None:
        self.channels.remove(channel)
        outcome, happens = self._outcome()
        self._tell(op="close", channel=channel, outcome=outcome, happens=happens)
        if not happens:
            return
        for subscriber in self.subscribers:
            if subscriber.channel == channel:
                subscriber.there = False
                for held in subscriber.holds:
                    lost = held.entry.held is held and self._faulty("loses-at-close")
                    self._return(held, "came_back")
                    if lost:
                        self._forget(subscriber.queue, held.entry)
                self._may_settle_in_vain(subscriber)

    # What ends messages without anybody.

    def _purge(self) -> None:
        queue = self.random.choice(self.queues)
        outcome, happens = self._outcome()
        self._tell(op="purge", queue=queue.name, outcome=outcome, happens=happens)
        if happens:
            waiting = queue.waiting()
            kept = waiting[:1] if waiting and self._faulty("keeps-after-a-purge") else []
            queue.entries = [each for each in queue.entries if each.held or each in kept]

    def _delete(self) -> None:
        queue = self.random.choice(self.queues)
        outcome, happens = self._outcome()
        self._tell(op="delete", queue=queue.name, outcome=outcome, happens=happens)
        if not happens:
            return
        waiting = queue.waiting()
        kept = waiting[:1] if waiting and self._faulty("keeps-after-a-deletion") else []
        queue.entries = kept
        for subscriber in self.subscribers:
            if subscriber.queue is queue:
                subscriber.there = False
                self._may_settle_in_vain(subscriber)
        self._redeclare(queue)

    def _crash(self) -> None:
        self._tell(op="crash")
        for subscriber in self.subscribers:
            subscriber.there = False
            self._may_settle_in_vain(subscriber)
        self.channels.clear()
        for queue in self.queues:
            kept = []
            for entry in queue.entries:
                survives = entry.persistent and (entry.answered or self.random.random() < 0.5)
                must = survives and entry.answered and not queue.may_drop
                if must and self._faulty("loses-in-a-crash"):
                    survives = False
                elif not entry.persistent and entry.held is None:
                    survives = self._faulty("keeps-what-is-transient")
                if survives:
                    kept.append(_back_in_place(entry))
            queue.entries = kept
        self._tell(op="restart")
        for queue in self.queues:
            if not queue.durable and queue.entries == []:
                self._redeclare(queue)

    def _drop(self) -> None:
        queue = self.random.choice(self.queues)
        may = queue.may_drop or self._faulty("loses")
        if may and (waiting := queue.waiting()):
            self._forget(queue, self.random.choice(waiting))

    def _drain(self) -> None:
        for channel in [*self.channels] if self.shape.returns else []:
            self._close_channel(channel)
        for queue in self.queues:
            subscriber = Subscriber(self._name("d"), queue, self._name("ch"), "automatic")
            self._tell(op="consume", queue=queue.name, consumer=subscriber.name, mode="automatic")
            while waiting := queue.waiting():
                self._hand_over(subscriber, waiting[0])
            self._tell(op="drained", queue=queue.name)


def _back_in_place(entry: Entry) -> Entry:
    """Return an entry to its place as a crash does; that it was held may be forgotten."""
    entry.held = None
    entry.either_flag = entry.acquired
    return entry


def simulated(seed: int, shape: Shape, fault: Fault | None = None) -> Simulation:
    """Return a run that was taken to its end."""
    simulation = Simulation(seed, shape, fault)
    simulation.run()
    return simulation
