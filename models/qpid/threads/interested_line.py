"""The order of notification: while a consumer waits, each other is notified at most once.

Source: Qpid, pull consumers, the "Notified" list: a consumer without further messages goes to the
back of the interested, which is to ensure "some level of fairness". It may be notified and find
that the message has gone; "the assumption is that while this may happen it is unlikely to always
happen to the same consumer leading to a kind of asymptotic fairness". The id PULL-6 is that of
later notes on Qpid.

All consumers have one priority and room, and want every message. A message comes when the last one
is gone, and the first consumer in the line is notified unless the message is gone by then. Any
notified consumer may take it. A consumer that has taken it stays notified and looks again; one that
finds no message goes to the back of the line.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Map,
    Model,
    Order,
    Relation,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)


class Consumer(Family):
    """A consumer that always has room."""


class Queue(Enumeration):
    """The queue with its message; there is exactly one."""

    IT: ClassVar[Queue]


IT = Queue.IT


_ANY_MESSAGE = (
    "Which messages come and who takes them is open: whatever it is, the line keeps its order."
)
_LESS_HISTORY = "What is remembered only for the promise then remembers less, and nothing else."


class InterestedLine(Model):
    """Consumers that wait in a line to be notified, and take messages."""

    equivalent_mutants: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            (
                "arrive: guard 1: dropped",
                "arrive: guard 1: without ~is_there[IT]",
                "arrive: guard 1: without ~is_to_be_told[IT]",
                "arrive: is_there: stays as it was",
                "arrive: is_to_be_told: stays as it was",
                "notify: guard 1: without is_to_be_told[IT]",
                "notify: guard 1: without is_there[IT]",
                "notify: is_to_be_told: stays as it was",
                "tell_nobody: guard 1: dropped",
                "tell_nobody: guard 2: dropped",
                "tell_nobody: is_to_be_told: stays as it was",
                "take: guard 1: dropped",
                "take: guard 1: without notified[c]",
                "take: guard 1: without is_there[IT]",
                "take: is_there: stays as it was",
                "take: took: stays as it was",
                "take: took: without took[c]",
                "find_nothing: guard 1: without ~is_there[IT]",
                "find_nothing: took: stays as it was",
                "find_nothing: took: without took[c]",
                "initially: is_there: anything",
                "initially: is_there: true instead of false",
                "initially: is_to_be_told: anything",
                "initially: is_to_be_told: true instead of false",
                "initially: took: anything",
                "initially: took: true instead of false",
            ),
            _ANY_MESSAGE,
        ),
        **dict.fromkeys(
            (
                "notify: passed_by: without passed_by[c, c]",
                "notify: passed_by: without (~notified[c] & (c = c))",
            ),
            _LESS_HISTORY,
        ),
    }

    came: Order[Consumer]

    is_there: Map[Queue, Bool]
    is_to_be_told: Map[Queue, Bool]
    notified: Map[Consumer, Bool]
    ahead: Relation[Consumer, Consumer]
    passed_by: Relation[Consumer, Consumer]
    passed_twice: Map[Consumer, Bool]
    took: Map[Consumer, Bool]

    @initial
    def empty(self) -> None:
        """No message is there, and all consumers wait in the order in which they came."""
        self.is_there.fill(False)
        self.is_to_be_told.fill(False)
        self.notified.fill(False)
        self.ahead = self.ahead.map(lambda a, b, _: self.came(a, b))
        self.passed_by.fill(False)
        self.passed_twice.fill(False)
        self.took.fill(False)

    def is_first(self, c: Consumer) -> Bool:
        """Whether a consumer waits, and no other waits ahead of it."""
        return ~self.notified[c] & forall(Consumer, lambda d: ~self.ahead[d, c])

    @action
    def arrive(self) -> None:
        """A message comes."""
        require(~self.is_there[IT] & ~self.is_to_be_told[IT])
        self.is_there[IT] = True
        self.is_to_be_told[IT] = True

    @action
    def notify(self, c: Consumer) -> None:
        """The first consumer in the line is notified, and passes by the others."""
        require(self.is_to_be_told[IT] & self.is_there[IT] & self.is_first(c))
        self.is_to_be_told[IT] = False
        self._notify(c)

    def _notify(self, c: Consumer) -> None:
        self.passed_twice = self.passed_twice.map(
            lambda d, old: old | (~self.notified[d] & (d != c) & self.passed_by[d, c])
        )
        self.passed_by = self.passed_by.map(
            lambda d, other, old: (d != c) & (old | (~self.notified[d] & (other == c)))
        )
        self.notified[c] = True
        self.ahead = self.ahead.map(lambda a, b, old: old & (a != c) & (b != c))

    @action
    def tell_nobody(self) -> None:
        """No consumer is notified: the message is gone, or all are notified already."""
        require(self.is_to_be_told[IT])
        require(~self.is_there[IT] | forall(Consumer, lambda c: self.notified[c]))
        self.is_to_be_told[IT] = False

    @action
    def take(self, c: Consumer) -> None:
        """A notified consumer takes the message, and looks again."""
        require(self.notified[c] & self.is_there[IT])
        self.is_there[IT] = False
        self.took[c] = True

    @action
    def find_nothing(self, c: Consumer) -> None:
        """A notified consumer finds no message, and goes to the back of the line."""
        require(self.notified[c] & ~self.is_there[IT])
        self._return(c)
        self.took[c] = False

    def _return(self, c: Consumer) -> None:
        self.ahead = self.ahead.map(
            lambda a, b, old: ite(b == c, ~self.notified[a] & (a != c), old)
        )
        self.notified[c] = False

    @invariant("those-who-wait-are-in-one-order")
    def they_are_in_order(self) -> Bool:
        """The waiting consumers are totally ordered, and a notified one does not wait."""

        def wait(a: Consumer, b: Consumer) -> Bool:
            return ~self.notified[a] & ~self.notified[b]

        return forall(
            Consumer,
            Consumer,
            lambda a, b: (
                implies(self.ahead[a, b], wait(a, b) & ~self.ahead[b, a])
                & implies(wait(a, b) & (a != b), self.ahead[a, b] | self.ahead[b, a])
            ),
        )

    @invariant("who-was-passed-by-is-ahead-now")
    def passed_is_ahead(self) -> Bool:
        """A consumer notified while another waited is behind that one when it waits again."""
        return forall(
            Consumer,
            Consumer,
            lambda c, d: implies(
                self.passed_by[c, d],
                (c != d) & ~self.notified[c] & (self.notified[d] | self.ahead[c, d]),
            ),
        )

    @invariant("no-consumer-is-passed-by-twice")
    def nobody_is_passed_twice(self) -> Bool:
        """While a consumer waits, no other is notified out of the line more than once (PULL-6)."""
        return forall(Consumer, lambda c: ~self.passed_twice[c])
