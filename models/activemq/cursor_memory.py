"""The memory of ActiveMQ's queue: who may add to it, and who waits until there is room.

Sources: the analysis of ActiveMQ's queue (5.1), which has the rule that memory is asked for before
a message is added, and the releases to 5.4.0; the ids are those of later notes on these releases.

A message is added where it fits beside what is there, and one that is larger than the limit fits
where nothing is. A publish whose message does not fit is parked, and so is one that comes while
others are: they are taken in the order of their parking. When a message leaves memory and anything
is parked, the queue is woken. It takes what fits, from the first on, and when it stops beside
others it asks to be woken again (AMQ-2523). The releases woke it only when memory that had been
full was so no more. That is not enough where a message may not fit though memory is not full, which
is what keeps it below its limit: here any message that leaves is enough.

What is added may leave whenever it likes: when that may be is the queue's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.activemq.equivalent_mutants import CURSOR_MEMORY
from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Order,
    action,
    axiom,
    counts,
    exists,
    forall,
    implies,
    initial,
    invariant,
    leads_to,
    require,
)
from brokerproof.models.qpid.threads.equivalent_mutants import by_name

WITHIN = "memory-is-within-its-limit-or-one-message-is-alone"
IN_ORDER = "what-was-taken-came-before-what-is-parked"
ONE_PLACE = "what-is-in-memory-is-not-parked"
ARRIVED = "what-has-not-come-is-nowhere"
IS_ASKED = "while-something-is-parked-somebody-will-look"
IS_WOKEN = "where-the-first-that-is-parked-fits-the-queue-is-woken"
ENDS = "the-queue-comes-to-the-end-of-what-it-takes"
IS_TAKEN = "what-is-parked-is-taken-or-given-up"


class Message(Family):
    """A message, in the order of arrival."""


class Memory(Enumeration):
    """The memory of one queue."""

    IT: ClassVar[Memory]


IT = Memory.IT


class CursorMemory(Model):
    """Messages in memory, publishes that are parked, and what wakes the queue."""

    harmless: ClassVar[Mapping[str, str]] = by_name(CURSOR_MEMORY)

    before: Order[Message]
    size: Fixed[Message, Int]
    limit: Int

    spent: Map[Message, Bool]
    loaded: Map[Message, Bool]
    parked: Map[Message, Bool]
    taken: Map[Message, Bool]
    used: Map[Memory, Int]
    asked: Map[Memory, Bool]
    woken: Map[Memory, Bool]
    takes: Map[Memory, Bool]

    @axiom("messages-have-a-size")
    def messages_have_a_size(self) -> Bool:
        """A message takes some memory."""
        return forall(Message, lambda m: self.size[m] >= 1)

    @initial
    def empty(self) -> None:
        """Nothing has come."""
        for truth in (self.spent, self.loaded, self.parked, self.taken):
            truth.fill(False)
        self.used.fill(0)
        for truth_of_all in (self.asked, self.woken, self.takes):
            truth_of_all.fill(False)

    @counts("used", weighing="size")
    def is_counted(self, it: Memory, m: Message) -> Bool:
        """What is used is the size of what is there (I15)."""
        return (it == IT) & self.loaded[m]

    # The words.

    def is_bare(self) -> Bool:
        """Whether nothing is in memory."""
        return forall(Message, lambda m: ~self.loaded[m])

    def fits(self, m: Message) -> Bool:
        """Whether the message may be added: asked before it is, never afterwards (I17)."""
        return (self.used[IT] + self.size[m] <= self.limit) | self.is_bare()

    def is_first(self, m: Message) -> Bool:
        """Whether the message is the first that is parked."""
        none_before = forall(Message, lambda n: ~(self.parked[n] & self.before(n, m)))
        return self.parked[m] & none_before

    def anything_parked(self) -> Bool:
        """Whether any publish is parked."""
        return exists(Message, lambda m: self.parked[m])

    # Publishes.

    @action
    def publish(self, m: Message) -> None:
        """Nothing is parked, and the message fits: it is added."""
        require(~self.spent[m] & ~self.anything_parked() & self.fits(m))
        self._comes(m)
        self._adds(m)

    @action
    def park(self, m: Message) -> None:
        """It does not fit, or others are parked: it is parked, and the queue asks to be woken."""
        require(~self.spent[m] & (self.anything_parked() | ~self.fits(m)))
        self._comes(m)
        self.parked[m] = True
        self.asked[IT] = True

    def _comes(self, m: Message) -> None:
        self.spent = self.spent.map(lambda n, old: old | (n == m) | self.before(n, m))

    def _adds(self, m: Message) -> None:
        self.loaded[m] = True
        self.taken[m] = True
        self.used[IT] = self.used[IT] + self.size[m]

    @action
    def give_up(self, m: Message) -> None:
        """A publish is parked too long and refused: what is behind it may fit."""
        require(self.parked[m])
        self._wakes()
        self.parked[m] = False

    # Memory.

    @action
    def leave(self, m: Message) -> None:
        """A message leaves memory."""
        require(self.loaded[m])
        self.loaded[m] = False
        self.used[IT] = self.used[IT] - self.size[m]
        self._wakes()

    def _wakes(self) -> None:
        """Let the queue be woken if it has asked for that: once for each time that it asks."""
        self.woken[IT] = self.woken[IT] | self.asked[IT]
        self.asked[IT] = False

    # The queue.

    @action
    def begin(self) -> None:
        """The queue was woken: it takes what is parked."""
        require(self.woken[IT] & ~self.takes[IT])
        self.woken[IT] = False
        self.takes[IT] = True

    @action
    def take(self, m: Message) -> None:
        """The first that is parked fits: it is added."""
        require(self.takes[IT] & self.is_first(m) & self.fits(m))
        self.parked[m] = False
        self._adds(m)

    @action
    def end(self) -> None:
        """The first does not fit, or nothing is parked: the queue asks again if there is any."""
        require(self.takes[IT])
        require(forall(Message, lambda m: ~(self.is_first(m) & self.fits(m))))
        self.asked[IT] = self.asked[IT] | self.anything_parked()
        self.takes[IT] = False

    # What holds.

    @invariant(WITHIN)
    def memory_is_within(self) -> Bool:
        """No sum of sizes is above the limit; one message alone may be (I17)."""
        alone = forall(
            Message, Message, lambda m, n: implies(self.loaded[m] & self.loaded[n], m == n)
        )
        return (self.used[IT] <= self.limit) | alone

    @invariant(IN_ORDER)
    def taken_in_order(self) -> Bool:
        """No publish overtakes one that is parked (I18)."""
        return forall(
            Message,
            Message,
            lambda m, n: implies(self.taken[m] & self.parked[n], self.before(m, n)),
        )

    @invariant(ONE_PLACE)
    def parked_is_not_loaded(self) -> Bool:
        """What is parked takes no memory yet, and what is in memory was taken (I15)."""
        return forall(
            Message,
            lambda m: (
                implies(self.parked[m], ~self.taken[m]) & implies(self.loaded[m], self.taken[m])
            ),
        )

    @invariant(ARRIVED)
    def unsent_is_nowhere(self) -> Bool:
        """Messages come in their order, each once."""
        return forall(
            Message,
            Message,
            lambda m, n: (
                implies(self.parked[m] | self.taken[m], self.spent[m])
                & implies(self.before(m, n) & self.spent[n], self.spent[m])
            ),
        )

    @invariant(IS_ASKED)
    def somebody_will_look(self) -> Bool:
        """Parked, and not taking: the queue is woken, or has asked to be (I18)."""
        will = self.asked[IT] | self.woken[IT] | self.takes[IT]
        return forall(Message, lambda m: implies(self.parked[m], will))

    @invariant(IS_WOKEN)
    def is_woken_where_there_is_room(self) -> Bool:
        """To have asked is not enough where there is room already (I18)."""
        return forall(
            Message,
            lambda m: implies(self.is_first(m) & self.fits(m), self.woken[IT] | self.takes[IT]),
        )

    # What comes about.

    @leads_to(IS_TAKEN, fair=("begin", "take", "end", "leave"))
    def parked_is_taken(self, m: Message) -> tuple[Bool, Bool]:
        """Where messages leave memory, each publish is taken, or is given up (I18)."""
        return self.parked[m], ~self.parked[m]

    @leads_to(ENDS, fair=("take", "end"))
    def taking_ends(self) -> tuple[Bool, Bool]:
        """The queue goes on to other things."""
        return self.takes[IT], ~self.takes[IT]
