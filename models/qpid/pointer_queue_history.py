"""The contract's history of a queue of pointers: shared by the refinements of pushed and pulled.

The contract records whether an entry has come back, and what clients can know of a browser's place.
These are history variables of the queue of pointers; invariants relate them to the pointers. The
steps of the document are the same of both queues, and so are their steps of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from brokerproof.models.contract import core as contract
from brokerproof.models.contract.core import Origin
from brokerproof.models.language import (
    Bool,
    Map,
    Relation,
    forall,
    implies,
    initial,
    invariant,
)
from brokerproof.models.language.prove.refinement import (
    Assumption,
    LeftOut,
    Witness,
    does,
    stutters,
)
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_progress import ProgressingQueue


class RememberingQueue(ProgressingQueue):
    """The queue of pointers with the history variables of the contract."""

    queue: contract.Queue

    holder: Map[Entry, Subscription]
    origin: Map[Entry, Origin]
    meddled: Map[Entry, Bool]
    excused: Relation[Subscription, Entry]
    behind: Relation[Subscription, Entry]
    may_repeat: Relation[Subscription, Entry]
    ever_shown: Relation[Subscription, Entry]
    came_back: Relation[Subscription, Entry]
    served: Map[Subscription, Bool]

    @initial
    def empty(self) -> None:
        """No event has happened."""
        super().empty()
        self.holder = self.holder.map(lambda _, old: old)
        self.origin.fill(Origin.PUBLISHED)
        self.meddled.fill(False)
        for relation in (
            self.excused,
            self.behind,
            self.may_repeat,
            self.ever_shown,
            self.came_back,
        ):
            relation.fill(False)
        self.served.fill(False)

    def is_browsing(self, consumer: Subscription) -> Bool:
        """Whether the subscription is an active browser."""
        return self.active[consumer] & self.browser[consumer]

    @invariant("what-is-taken-is-excused")
    def taken_is_excused(self, consumer: Subscription, e: Entry) -> Bool:
        """An entry that a consumer holds while a browser is there is excused for the browser."""
        return implies(
            self.is_browsing(consumer) & (self.status[e] == Status.ACQUIRED),
            self.excused[consumer, e],
        )

    @invariant("what-a-browser-passed-is-excused")
    def passed_is_excused(self, consumer: Subscription, e: Entry) -> Bool:
        """A browser passes only entries excused, unwanted or arriving, or goes back to them."""
        return implies(
            self.is_browsing(consumer)
            & self.in_list(e)
            & self.at_or_before(e, self.last_seen[consumer]),
            self.excused[consumer, e]
            | ~self.wants[consumer, e]
            | self.arriving[e]
            | (self.rewound[consumer] & self.at_or_before(self.released[consumer], e)),
        )

    @invariant("what-is-acquired-is-held")
    def acquired_is_held(self, e: Entry) -> Bool:
        """An acquired entry is held by the subscription that it was given to."""
        return implies(self.status[e] == Status.ACQUIRED, self.holds[self.holder[e], e])

    @invariant("what-is-absent-is-unknown")
    def absent_is_unknown(self, consumer: Subscription, e: Entry) -> Bool:
        """No browser has met an entry that has not arrived."""
        return implies(
            self.status[e] == Status.ABSENT,
            ~self.excused[consumer, e] & ~self.behind[consumer, e] & ~self.ever_shown[consumer, e],
        )

    @invariant("what-is-behind-was-passed")
    def behind_was_passed(self, consumer: Subscription, e: Entry) -> Bool:
        """An entry that is certainly behind a browser was passed and is not returned to.

        Dequeued entries are excepted: they never come back.
        """
        return implies(
            self.is_browsing(consumer)
            & self.behind[consumer, e]
            & (self.status[e] != Status.DEQUEUED),
            self.at_or_before(e, self.last_seen[consumer])
            & ~(self.rewound[consumer] & self.at_or_before(self.released[consumer], e)),
        )

    @invariant("a-browser-taken-back-may-repeat")
    def taken_back_may_repeat(self, consumer: Subscription, e: Entry) -> Bool:
        """An entry ahead of a browser's place, and not before its `released`, may repeat."""
        return implies(
            self.is_browsing(consumer)
            & self.rewound[consumer]
            & self.at_or_before(self.released[consumer], e)
            & self.before(self.last_seen[consumer], e),
            self.may_repeat[consumer, e],
        )

    @invariant("an-arrival-is-behind-no-browser")
    def arrival_is_behind_no_browser(self, consumer: Subscription, e: Entry, f: Entry) -> Bool:
        """While an arrival is offered, no entry from it on is behind a browser; each may repeat."""
        return implies(
            self.is_browsing(consumer) & self.arriving[e] & self.at_or_before(e, f),
            ~self.behind[consumer, f]
            & (self.may_repeat[consumer, f] | ((e == f) & self.ever_shown[consumer, e])),
        )

    @invariant("an-arrival-is-shown-twice-at-most")
    def arrival_is_shown_twice(self, consumer: Subscription, e: Entry) -> Bool:
        """A browser is shown an arrival again only if it still goes back to a dequeued entry.

        The search then first steps back to that entry, and afterwards finds the arrival anew.
        """
        return implies(
            self.is_browsing(consumer) & self.arriving[e],
            implies(self.rewound[consumer], self.released[consumer] != e)
            & implies(
                self.ever_shown[consumer, e] & self.rewound[consumer],
                self.at_or_before(self.released[consumer], self.last_seen[consumer])
                | self.at_or_before(e, self.last_seen[consumer]),
            )
            & implies(
                ~self.may_repeat[consumer, e],
                ~self.rewound[consumer] & self.at_or_before(e, self.last_seen[consumer]),
            ),
        )

    @invariant("nothing-overtakes-first-in-first-out")
    def nothing_overtakes(self) -> Bool:
        """In a FIFO queue every arrival is last, so no browser is taken back."""
        return implies(
            self.fifo,
            forall(
                Subscription,
                Entry,
                lambda consumer, e: (
                    ~self.overtaken[consumer] & ~self.may_repeat[consumer, e] & ~self.arriving[e]
                ),
            ),
        )


def has_returned(queue: RememberingQueue, entry: Entry) -> Bool:
    """Return the redelivered flag of a delivery."""
    return queue.origin[entry] != Origin.PUBLISHED


def delivers(queue: RememberingQueue, consumer: Subscription, entry: Entry) -> Witness:
    """A delivery reports whether the entry had come back."""
    return does("deliver", consumer, entry, has_returned(queue, entry))


def browses(queue: RememberingQueue, consumer: Subscription, entry: Entry) -> Witness:
    """A browser's delivery reports whether the entry had come back."""
    return does("browse", consumer, entry, has_returned(queue, entry))


def gets(queue: RememberingQueue, consumer: Subscription, entry: Entry) -> Witness:
    """The answer to a get reports whether the entry had come back."""
    return does("get", consumer, entry, has_returned(queue, entry))


DOCUMENTED: Final[Mapping[str, Callable[..., Witness]]] = {
    "subscribe": lambda _queue, consumer: does("consume", consumer),
    "unsubscribe": lambda _queue, consumer: does("cancel", consumer),
    "append": lambda _queue, entry: does("publish", entry),
    "insert": lambda _queue, entry: does("publish", entry),
    "look_back": lambda _queue, _entry: stutters(),
    "deliver": delivers,
    "browse": browses,
    "pass_over": lambda _queue, _consumer, _entry: stutters(),
    "acknowledge": lambda _queue, _consumer, entry: does("acknowledge", entry),
    "reject": lambda _queue, _consumer, entry: does("reject", entry),
    "settle_again": lambda _queue, entry: does("settle_again", entry),
    "release": lambda _queue, _consumer, entry: does("release", entry),
    "come_to_rest": lambda _queue: does("quiesce"),
    "get": gets,
    "find_nothing": lambda _queue, consumer: does("get_nothing", consumer),
    "final_drain": lambda _queue, consumer: does("final_drain", consumer),
    "close_channel": lambda _queue, which, _first: does("close_channel", which),
    "close_idle_channel": lambda _queue, which: does("close_channel", which),
}
"""The steps of the contract that the documented steps are."""

ANOTHER_BROWSER: Final = Assumption(
    "that a browser that subscribes again is another one: nothing is behind it yet",
    lambda queue, consumer: forall(Entry, lambda e: ~queue.behind[consumer, e]),
)

SHOWN_AGAIN: Final = LeftOut(
    "browser-once-by-priority",
    lambda queue, _consumer, _entry, _flag: ~queue.fifo,
    "an arrival takes a browser's pointer back, in the document's own loop, and it walks "
    "over all behind the arrival once more; the requirement is advice",
)
