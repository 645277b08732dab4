"""The memory of ActiveMQ's queue: when a message may be added, and when a publish is parked.

Sources: the analysis of ActiveMQ's queue (5.1), which has the rule that memory is checked before a
message is added, and the releases to 5.4.0; the ids are those of later notes on these releases.

A message is added if it fits beside the messages in memory; one larger than the limit fits if
memory is empty. A publish is parked if its message does not fit or other publishes are parked, and
parked publishes are taken in order. When a message leaves memory, a queue with parked publishes is
woken. It takes those that fit, from the first on, and asks to be woken again if some are left
(AMQ-2523). The releases woke it only when memory had been full. That is not enough, because a
message may not fit in memory that is not full; here any leaving message wakes the queue.

A message in memory may leave at any time: the queue decides when.
"""

from __future__ import annotations

from brokerproof.models.language import (
    TRUE,
    Bool,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Order,
    Value,
    action,
    axiom,
    counts,
    elements,
    exists,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    leads_to,
    least,
    ranked,
    require,
)

WITHIN = "memory-is-within-its-limit-or-one-message-is-alone"
IN_ORDER = "what-was-taken-came-before-what-is-parked"
ONE_PLACE = "what-is-in-memory-is-not-parked"
ARRIVED = "what-has-not-come-is-nowhere"
IS_ASKED = "while-a-publish-is-parked-the-queue-will-look"
IS_WOKEN = "where-the-first-that-is-parked-fits-the-queue-is-woken"
ENDS = "the-queue-comes-to-the-end-of-what-it-takes"
IS_TAKEN = "what-is-parked-is-taken-or-given-up"


class Message(Family):
    """A message, in the order of arrival."""


class CursorMemory(Model):
    """Messages in memory, parked publishes, and the wake-ups of the queue."""

    before: Order[Message]
    size: Fixed[Message, Int]
    limit: Int

    spent: Map[Message, Bool]
    loaded: Map[Message, Bool]
    parked: Map[Message, Bool]
    taken: Map[Message, Bool]
    used: Value[Int]
    asked: Value[Bool]
    woken: Value[Bool]
    takes: Value[Bool]

    @axiom("messages-have-a-size")
    def messages_have_a_size(self, m: Message) -> Bool:
        """A message takes some memory."""
        return self.size[m] >= 1

    @initial
    def empty(self) -> None:
        """No message has been published."""
        for truth in (self.spent, self.loaded, self.parked, self.taken):
            truth.fill(False)
        self.used = 0
        self.asked = self.woken = self.takes = False

    @counts("used", weighing="size")
    def is_counted(self, m: Message) -> Bool:
        """The memory in use is the sum of the sizes in memory (I15)."""
        return self.loaded[m]

    # Terms.

    def is_bare(self) -> Bool:
        """Whether memory is empty."""
        return forall(Message, lambda m: ~self.loaded[m])

    def fits(self, m: Message) -> Bool:
        """Whether the message may be added; checked before the addition, never after (I17)."""
        return (self.used + self.size[m] <= self.limit) | self.is_bare()

    def is_first(self, m: Message) -> Bool:
        """Whether the message is the first parked one."""
        none_before = forall(Message, lambda n: ~(self.parked[n] & self.before(n, m)))
        return self.parked[m] & none_before

    def is_parked(self, m: Message) -> Bool:
        """Whether the publish of the message is parked."""
        return self.parked[m]

    def first_fits(self) -> Bool:
        """Whether the first parked publish fits."""
        return exists(Message, lambda m: self.is_first(m) & self.fits(m))

    def anything_parked(self) -> Bool:
        """Whether any publish is parked."""
        return exists(Message, lambda m: self.parked[m])

    # Publishes.

    @action
    def publish(self, m: Message) -> None:
        """A publish is added: none is parked, and the message fits."""
        require(~self.spent[m] & ~self.anything_parked() & self.fits(m))
        self._comes(m)
        self._adds(m)

    @action
    def park(self, m: Message) -> None:
        """A publish is parked if it does not fit or others are; the queue asks for a wake-up."""
        require(~self.spent[m] & (self.anything_parked() | ~self.fits(m)))
        self._comes(m)
        self.parked[m] = True
        self.asked = True

    def _comes(self, m: Message) -> None:
        self.spent = self.spent.map(lambda n, old: old | (n == m) | self.before(n, m))

    def _adds(self, m: Message) -> None:
        self.loaded[m] = True
        self.taken[m] = True
        self.used += self.size[m]

    @action
    def give_up(self, m: Message) -> None:
        """A publish is parked too long and refused; the publishes behind it may fit."""
        require(self.parked[m])
        self._wakes()
        self.parked[m] = False

    # Memory.

    @action
    def leave(self, m: Message) -> None:
        """A message leaves memory."""
        require(self.loaded[m])
        self.loaded[m] = False
        self.used -= self.size[m]
        self._wakes()

    def _wakes(self) -> None:
        """Wake the queue if it has asked for that, once for each request."""
        self.woken |= self.asked
        self.asked = False

    # The queue.

    @action
    def begin(self) -> None:
        """The queue was woken and begins to take parked publishes."""
        require(self.woken & ~self.takes)
        self.woken = False
        self.takes = True

    @action
    def take(self, m: Message) -> None:
        """The queue takes the first parked publish, which fits."""
        require(self.takes & self.is_first(m) & self.fits(m))
        self.parked[m] = False
        self._adds(m)

    @action
    def end(self) -> None:
        """The queue stops at a publish that does not fit; if any is parked, it asks again."""
        require(self.takes)
        require(forall(Message, lambda m: ~(self.is_first(m) & self.fits(m))))
        self.asked = self.asked | self.anything_parked()
        self.takes = False

    # Invariants.

    @invariant(WITHIN)
    def memory_is_within(self) -> Bool:
        """The memory in use is within the limit, or one message is alone in memory (I17)."""
        alone = forall(
            Message, Message, lambda m, n: implies(self.loaded[m] & self.loaded[n], m == n)
        )
        return (self.used <= self.limit) | alone

    @invariant(IN_ORDER)
    def taken_in_order(self, m: Message, n: Message) -> Bool:
        """No publish overtakes a parked one (I18)."""
        return implies(self.taken[m] & self.parked[n], self.before(m, n))

    @invariant(ONE_PLACE)
    def parked_is_not_loaded(self, m: Message) -> Bool:
        """A parked message takes no memory, and every message in memory was taken (I15)."""
        return implies(self.parked[m], ~self.taken[m]) & implies(self.loaded[m], self.taken[m])

    @invariant(ARRIVED)
    def unsent_is_nowhere(self, m: Message, n: Message) -> Bool:
        """Messages arrive in their order, each once."""
        return implies(self.parked[m] | self.taken[m], self.spent[m]) & implies(
            self.before(m, n) & self.spent[n], self.spent[m]
        )

    @invariant(IS_ASKED)
    def a_look_will_come(self, m: Message) -> Bool:
        """While a publish is parked, the queue takes, is woken, or has asked to be (I18)."""
        will = self.asked | self.woken | self.takes
        return implies(self.parked[m], will)

    @invariant(IS_WOKEN)
    def is_woken_where_there_is_room(self, m: Message) -> Bool:
        """If the first parked publish fits, the queue is woken or takes (I18)."""
        return implies(self.is_first(m) & self.fits(m), self.woken | self.takes)

    # Liveness.

    @leads_to(IS_TAKEN, fair=("begin", "take", "end", "leave"))
    def parked_is_taken(self, m: Message) -> tuple[Bool, Bool]:
        """If messages leave memory, each parked publish is taken or refused in the end (I18)."""
        least(self.before, lambda n: self.parked[n])
        ranked(
            elements(Message, lambda n: self.parked[n] & ~self.before(m, n), within=self.is_parked),
            elements(Message, lambda n: self.loaded[n]),
            self.first_fits() & ~self.takes,
            lowered_by={"take": lambda _: TRUE, "leave": lambda _: TRUE, "begin": self.first_fits},
            words="the publishes parked up to this one, then the messages in memory",
        )
        return self.parked[m], ~self.parked[m]

    @leads_to(ENDS, fair=("take", "end"))
    def taking_ends(self) -> tuple[Bool, Bool]:
        """The queue's taking comes to an end, unless publishes are parked again and again."""
        finitely(park=lambda _: TRUE)
        ranked(
            elements(Message, self.is_parked),
            ~self.first_fits(),
            words="the parked publishes, then whether the first of them fits",
        )
        return self.takes, ~self.takes


CursorMemory.equivalent_mutants = """
A wake-up or a look that is not needed takes no message that does not fit.
    give_up: guard 1, asked*2; leave: asked*2; begin: guard 1, woken*2; take: guard 1;
    end: guard 1; initially: asked*2, woken*2, takes*2
A publish that is parked while the queue takes is still parked at the end, or is taken.
    end: asked
A publish that is not refused now is taken later: it may be refused at any time.
    give_up: parked
A publish is parked though it would fit: no promise says how much memory is used.
    shared: fits*2
"""
