"""Whose turn it is to be notified: while one waits, each other is notified once at most.

Source: Qpid, pull consumers, the "Notified" list: who can get nothing more goes to the back of the
interested, which is to ensure "some level of fairness". It may be notified and find that the
message has gone; "the assumption is that while this may happen it is unlikely to always happen to
the same consumer leading to a kind of asymptotic fairness". The id PULL-6 is that of later notes on
Qpid.

Consumers of one priority that all have room and want everything. A message comes when the last one
has gone, and the first in the line is notified of it, unless it has gone by then. Any notified
consumer may take it. Who has taken one stays notified and looks again; who finds nothing goes to
the back of the line.
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
    """Whose message it is: there is one."""

    IT: ClassVar[Queue]


IT = Queue.IT


_ANY_MESSAGE = (
    "Which messages come and who takes them is open: whatever it is, the line keeps its order."
)
_LESS_HISTORY = "What is remembered only for the promise then remembers less, and nothing else."


class InterestedLine(Model):
    """Consumers that wait in a line to be notified, and take what is there."""

    harmless: ClassVar[dict[str, str]] = {
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
        """Nothing is there, and all wait in the order in which they came."""
        self.is_there.fill(False)
        self.is_to_be_told.fill(False)
        self.notified.fill(False)
        self.ahead = self.ahead.map(lambda a, b, _: self.came(a, b))
        self.passed_by.fill(False)
        self.passed_twice.fill(False)
        self.took.fill(False)

    def is_first(self, c: Consumer) -> Bool:
        """Whether a consumer waits, and nobody waits ahead of it."""
        return ~self.notified[c] & forall(Consumer, lambda d: ~self.ahead[d, c])

    @action
    def arrive(self) -> None:
        """A message comes."""
        require(~self.is_there[IT] & ~self.is_to_be_told[IT])
        self.is_there[IT] = True
        self.is_to_be_told[IT] = True

    @action
    def notify(self, c: Consumer) -> None:
        """The first in the line is notified of it; the others have been passed by."""
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
        """The message has gone, or all have been notified of others."""
        require(self.is_to_be_told[IT])
        require(~self.is_there[IT] | forall(Consumer, lambda c: self.notified[c]))
        self.is_to_be_told[IT] = False

    @action
    def take(self, c: Consumer) -> None:
        """A notified consumer takes it, and looks again."""
        require(self.notified[c] & self.is_there[IT])
        self.is_there[IT] = False
        self.took[c] = True

    @action
    def find_nothing(self, c: Consumer) -> None:
        """A notified consumer finds nothing: it goes to the back of the line."""
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
        """Of two who wait one is ahead, and who is notified waits nowhere."""

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
        """Who was notified while another waited, and waits again, is behind that one."""
        return forall(
            Consumer,
            Consumer,
            lambda c, d: implies(
                self.passed_by[c, d],
                (c != d) & ~self.notified[c] & (self.notified[d] | self.ahead[c, d]),
            ),
        )

    @invariant("nobody-is-passed-by-twice")
    def nobody_is_passed_twice(self) -> Bool:
        """While one waits, no other is notified out of the line more than once (PULL-6)."""
        return forall(Consumer, lambda c: ~self.passed_twice[c])
