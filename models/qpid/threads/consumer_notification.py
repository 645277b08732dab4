"""Which consumers a queue notifies of work if they pull: none waits while a message is available.

Source: Qpid, pull consumers (the two obligations of queue and consumer; the lists Interested,
NotInterested and Notified); the ids PULL-1 to PULL-4 are those of later notes on Qpid.

A thread that brings a message makes it available first, and then walks over the interested
consumers until it can notify one. A notified consumer returns to the interested first and then
looks, so a later arrival finds it. After taking a message it is notified again at once. A consumer
without room leaves the interested and hands over: it walks as an arrival does. A consumer that
gains room becomes interested and checks for available messages.

Each move between lists is a step, and so is each look of a walk. All consumers have one priority,
take, and want every message. A client pauses at most once: one that pauses for ever leaves a
message without any fault of the queue.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Map,
    Model,
    Relation,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
    step,
)


class Message(Family):
    """A message, and the thread that brings it."""


class Consumer(Family):
    """A consumer, and its connection's thread."""


class Bringing(Enumeration):
    """The next step of the thread that brings a message."""

    ENQUEUES: ClassVar[Bringing]
    WALKS: ClassVar[Bringing]
    SCHEDULES: ClassVar[Bringing]
    IS_DONE: ClassVar[Bringing]


class Listed(Enumeration):
    """The list that a consumer is in."""

    NOT_INTERESTED: ClassVar[Listed]
    INTERESTED: ClassVar[Listed]
    NOTIFIED: ClassVar[Listed]


class Working(Enumeration):
    """The next step of a consumer's thread."""

    WAITS: ClassVar[Working]
    COMES: ClassVar[Working]
    LOOKS: ClassVar[Working]
    STAYS: ClassVar[Working]
    ASKS: ClassVar[Working]
    DECLINES: ClassVar[Working]
    WALKS: ClassVar[Working]
    SCHEDULES: ClassVar[Working]


class ConsumerNotification(Model):
    """Messages that arrive, and consumers that are notified of them."""

    anybody: Consumer

    bringing: Map[Message, Bringing]
    available: Map[Message, Bool]
    passed: Relation[Message, Consumer]
    told: Map[Message, Consumer]
    has_told: Map[Message, Bool]

    listed: Map[Consumer, Listed]
    scheduled: Map[Consumer, Bool]
    working: Map[Consumer, Working]
    passed_by: Relation[Consumer, Consumer]
    handed_to: Map[Consumer, Consumer]
    paused: Map[Consumer, Bool]

    @initial
    def nothing_there(self) -> None:
        """No message has arrived, and no consumer has room."""
        self.bringing.fill(Bringing.ENQUEUES)
        self.available.fill(False)
        self.passed.fill(False)
        self.told.fill(self.anybody)
        self.has_told.fill(False)
        self.listed.fill(Listed.NOT_INTERESTED)
        self.scheduled.fill(False)
        self.working.fill(Working.WAITS)
        self.passed_by.fill(False)
        self.handed_to.fill(self.anybody)
        self.paused.fill(False)

    @step(Bringing.ENQUEUES, Bringing.WALKS)
    def enqueue(self, m: Message) -> None:
        """A message becomes available to all consumers."""
        self.available[m] = True

    @action
    def notify(self, m: Message, c: Consumer) -> None:
        """An arrival's walk notifies one interested consumer of the message."""
        require((self.bringing[m] == Bringing.WALKS) & self.available[m])
        require(self.listed[c] == Listed.INTERESTED)
        self.listed[c] = Listed.NOTIFIED
        self.told[m] = c
        self.has_told[m] = True
        self.bringing[m] = Bringing.SCHEDULES

    @step(Bringing.SCHEDULES, Bringing.IS_DONE)
    def schedule(self, m: Message) -> None:
        """The notified consumer's connection is scheduled."""
        self.scheduled = self.scheduled.map(lambda c, old: old | (c == self.told[m]))

    @action
    def pass_over(self, m: Message, c: Consumer) -> None:
        """The walk passes over a consumer that is not interested, or notified already."""
        require((self.bringing[m] == Bringing.WALKS) & (self.listed[c] != Listed.INTERESTED))
        self.passed[m, c] = True

    @step(Bringing.WALKS, Bringing.IS_DONE)
    def end_walk(self, m: Message) -> None:
        """The walk ends: it has looked at all consumers, or the message is gone."""
        require(~self.available[m] | forall(Consumer, lambda c: self.passed[m, c]))

    @action
    def come(self, c: Consumer) -> None:
        """The connection's thread begins the work that was scheduled."""
        require((self.working[c] == Working.WAITS) & self.scheduled[c])
        self.scheduled[c] = False
        self.working[c] = Working.COMES

    @step(Working.COMES, Working.LOOKS)
    def return_to_interested(self, c: Consumer) -> None:
        """The consumer becomes interested again before it looks, so it can be notified anew."""
        self._moves(c, Listed.NOTIFIED, Listed.INTERESTED)

    @step(Working.LOOKS)
    def take(self, c: Consumer, m: Message, last: Bool) -> None:
        """The consumer takes a message, which may be the last for which it has room."""
        require(self.available[m] & (self.listed[c] != Listed.NOT_INTERESTED))
        self.available[m] = False
        self.working[c] = ite(last, Working.DECLINES, Working.STAYS)

    @step(Working.LOOKS, Working.WAITS)
    def find_nothing(self, c: Consumer) -> None:
        """The consumer finds no message, or has no room, and waits to be notified."""
        require(
            forall(Message, lambda m: ~self.available[m])
            | (self.listed[c] == Listed.NOT_INTERESTED)
        )

    @step(Working.STAYS, Working.WAITS)
    def stay(self, c: Consumer) -> None:
        """A consumer that has taken a message is notified, because there may be more."""
        self._moves(c, Listed.INTERESTED, Listed.NOTIFIED)
        self.scheduled[c] = True

    @action
    def lose_room(self, c: Consumer) -> None:
        """The client pauses the consumer."""
        require((self.working[c] == Working.WAITS) & (self.listed[c] != Listed.NOT_INTERESTED))
        require(~self.paused[c])
        self.paused[c] = True
        self.working[c] = Working.DECLINES

    @step(Working.DECLINES, Working.WALKS)
    def decline(self, c: Consumer) -> None:
        """The consumer leaves the interested, and has to hand over to another one."""
        self.listed[c] = Listed.NOT_INTERESTED
        self.passed_by = self.passed_by.map(lambda a, _, old: old & (a != c))

    @step(Working.WALKS, Working.SCHEDULES)
    def hand_over(self, c: Consumer, other: Consumer) -> None:
        """There is work, and an interested consumer is notified of it."""
        require(exists(Message, lambda m: self.available[m]))
        require(self.listed[other] == Listed.INTERESTED)
        self.listed[other] = Listed.NOTIFIED
        self.handed_to[c] = other

    @step(Working.SCHEDULES, Working.WAITS)
    def schedule_other(self, c: Consumer) -> None:
        """The notified consumer's connection is scheduled."""
        self.scheduled = self.scheduled.map(lambda d, old: old | (d == self.handed_to[c]))

    @step(Working.WALKS)
    def pass_over_other(self, c: Consumer, other: Consumer) -> None:
        """The walk passes over another consumer that is not interested, or notified already."""
        require(self.listed[other] != Listed.INTERESTED)
        self.passed_by[c, other] = True

    @step(Working.WALKS, Working.WAITS)
    def end_hand_over(self, c: Consumer) -> None:
        """The hand-over ends: it has looked at all consumers, or no message is available."""
        require(
            forall(Message, lambda m: ~self.available[m])
            | forall(Consumer, lambda d: self.passed_by[c, d])
        )

    @action
    def gain_room(self, c: Consumer) -> None:
        """The client takes messages again: the consumer becomes interested."""
        require((self.working[c] == Working.WAITS) & (self.listed[c] == Listed.NOT_INTERESTED))
        self.listed[c] = Listed.INTERESTED
        self.working[c] = Working.ASKS

    @step(Working.ASKS, Working.WAITS)
    def ask(self, c: Consumer) -> None:
        """If there is work already, the consumer notifies itself."""
        work = exists(Message, lambda m: self.available[m])
        own = work & (self.listed[c] == Listed.INTERESTED)
        self.scheduled[c] = self.scheduled[c] | own
        self.listed[c] = ite(own, Listed.NOTIFIED, self.listed[c])

    def _moves(self, c: Consumer, source: Listed, target: Listed) -> None:
        self.listed[c] = ite(self.listed[c] == source, target, self.listed[c])

    def is_idle(self, c: Consumer) -> Bool:
        """Whether a consumer is interested and its thread waits."""
        return (self.listed[c] == Listed.INTERESTED) & (self.working[c] == Working.WAITS)

    def sees_to(self, d: Consumer, c: Consumer) -> Bool:
        """Whether a consumer will take an available message, or notify another one of it."""
        looks = (self.listed[d] != Listed.NOT_INTERESTED) & (self.working[d] != Working.WAITS)
        return (
            (self.listed[d] == Listed.NOTIFIED)
            | looks
            | (self.working[d] == Working.DECLINES)
            | ((self.working[d] == Working.WALKS) & ~self.passed_by[d, c])
        )

    @invariant(
        "no-consumer-waits-beside-a-message",
        by=("walks-begin-with-a-message", "who-walks-is-not-interested"),
    )
    def nobody_waits(self) -> Bool:
        """If a consumer waits while a message is available, a thread will notify one (PULL-1)."""

        def holds(m: Message, c: Consumer) -> Bool:
            will_be_told = (self.bringing[m] == Bringing.WALKS) & ~self.passed[m, c]
            return implies(
                self.available[m] & self.is_idle(c),
                will_be_told | exists(Consumer, lambda d: self.sees_to(d, c)),
            )

        return forall(Message, Consumer, holds)

    @invariant("who-is-notified-comes")
    def notified_comes(self) -> Bool:
        """A notified consumer is scheduled or at work, or about to be scheduled (PULL-2)."""
        return forall(
            Consumer,
            lambda c: implies(
                (self.listed[c] == Listed.NOTIFIED) & (self.working[c] != Working.COMES),
                self.scheduled[c]
                | exists(
                    Message,
                    lambda m: (self.bringing[m] == Bringing.SCHEDULES) & (self.told[m] == c),
                )
                | exists(
                    Consumer,
                    lambda d: (self.working[d] == Working.SCHEDULES) & (self.handed_to[d] == c),
                ),
            ),
        )

    @invariant("who-walks-is-not-interested")
    def walks_uninterested(self) -> Bool:
        """A consumer that hands over is not interested, and only it can change that."""
        return forall(
            Consumer,
            lambda c: implies(
                (self.working[c] == Working.WALKS) | (self.working[c] == Working.SCHEDULES),
                self.listed[c] == Listed.NOT_INTERESTED,
            ),
        )

    @invariant("who-is-not-interested-takes-nothing")
    def takes_when_interested(self) -> Bool:
        """A consumer that stays, declines or asks is still interested or notified."""

        def at_it(c: Consumer) -> Bool:
            doing = self.working[c]
            return (doing == Working.STAYS) | (doing == Working.DECLINES) | (doing == Working.ASKS)

        return forall(
            Consumer, lambda c: implies(at_it(c), self.listed[c] != Listed.NOT_INTERESTED)
        )

    @invariant("an-arrival-notifies-one")
    def notifies_one(self) -> Bool:
        """An arrival notifies one consumer: its walk goes on only before that (PULL-4)."""
        return forall(
            Message,
            lambda m: implies(
                (self.bringing[m] == Bringing.ENQUEUES) | (self.bringing[m] == Bringing.WALKS),
                ~self.has_told[m],
            ),
        ) & forall(
            Message, lambda m: implies(self.bringing[m] == Bringing.SCHEDULES, self.has_told[m])
        )

    @invariant("walks-begin-with-a-message")
    def walks_begin(self) -> Bool:
        """Before its message is available, an arrival has passed over no consumer."""
        return forall(
            Message,
            Consumer,
            lambda m, c: implies(
                self.bringing[m] == Bringing.ENQUEUES, ~self.passed[m, c] & ~self.available[m]
            ),
        )

    @leads_to(
        "interested-consumers-let-no-message-wait",
        fair=(
            *("notify", "schedule", "pass_over", "end_walk", "come", "return_to_interested"),
            *("take", "find_nothing", "stay", "decline", "hand_over", "schedule_other"),
            *("pass_over_other", "end_hand_over", "gain_room", "ask"),
        ),
    )
    def is_taken(self, m: Message) -> tuple[Bool, Bool]:
        """If consumers without room gain room in the end, each message is taken (PULL-3)."""
        return self.available[m], ~self.available[m]

    @leads_to(
        "each-arrival-ends",
        fair=("notify", "schedule", "pass_over", "end_walk"),
    )
    def bringing_ends(self, m: Message) -> tuple[Bool, Bool]:
        """An arrival's walk ends without waiting for a consumer."""
        return self.bringing[m] == Bringing.WALKS, self.bringing[m] == Bringing.IS_DONE

    @leads_to(
        "each-consumer-waits-again",
        fair=(
            *("return_to_interested", "take", "find_nothing", "stay", "decline", "hand_over"),
            *("schedule_other", "pass_over_other", "end_hand_over", "ask"),
        ),
    )
    def working_ends(self, c: Consumer) -> tuple[Bool, Bool]:
        """A consumer's thread waits again in the end, without waiting for another consumer."""
        return self.working[c] != Working.WAITS, self.working[c] == Working.WAITS
