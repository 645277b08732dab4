"""The refinement of the whole contract by the pushed queue, for any number of messages.

One queue, in the order of arrival, of levels or of keys, with selectors, browsers, a clock, windows
and its end. An entry that has arrived is available, acquired or gone in both models, except an
expired one: the queue removes it, and in the contract it stays and is never due again. The dummy
head has no counterpart. A get is no consumer of the contract. To look back, to pass over an entry,
to let a held one go and to remove an expired one stutter. The queue replaces no values, all its
consumers have one rank, and it has no disk.
"""

from __future__ import annotations

from brokerproof.models.contract import core as contract
from brokerproof.models.contract.core import Mode
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.contract.whole_state import PLAIN_QUEUE, End
from brokerproof.models.language import FALSE, TRUE, Bool, Map, implies, initial, invariant, ite
from brokerproof.models.language.prove.refinement import (
    Assumption,
    Refinement,
    Witness,
    does,
    stutters,
)
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_history import (
    ANOTHER_BROWSER,
    DOCUMENTED,
    SHOWN_AGAIN,
    RememberingQueue,
)
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pointer_queue_removal import RemovingQueue


class RememberingRemovingQueue(RemovingQueue, RememberingQueue):
    """The pushed queue with the history variables of the whole contract."""

    end: Map[Entry, End]
    spared: Map[Entry, Bool]
    lowered: Map[Subscription, Bool]
    used: Map[contract.Queue, Bool]

    @initial
    def empty(self) -> None:
        """No event has happened."""
        super().empty()
        self.end.fill(End.NONE)
        self.spared.fill(False)
        self.lowered.fill(False)
        self.used.fill(False)

    @invariant("what-is-there-has-not-ended")
    def there_has_not_ended(self, e: Entry) -> Bool:
        """An entry in the list, or one that has not arrived, has no end; nor has the head."""
        there = self.in_list(e) | (e == self.head) | ~self.has_arrived(e)
        return implies(there, self.end[e] == End.NONE)

    @invariant("what-left-without-an-end-has-expired")
    def left_without_end_is_over(self, e: Entry) -> Bool:
        """An entry that the contract still has, and the list has not, is over."""
        left = (self.status[e] == Status.DEQUEUED) & (e != self.head)
        return implies(left & (self.end[e] == End.NONE), self.is_over(e))

    @invariant("what-is-held-back-is-excused")
    def held_back_is_excused(self, consumer: Subscription, e: Entry) -> Bool:
        """A browser that passes an entry which is held back need not be shown it."""
        return implies(self.is_browsing(consumer) & self.held_back[e], self.excused[consumer, e])

    @invariant("a-queue-that-was-used-looks-whether-it-is-still")
    def used_looks(self) -> Bool:
        """A queue looks only after a consumer left, and does so where it has none any more."""
        used = self.used[self.queue]
        left = used & ~self.has_consumers()
        return implies(left, self.has_to_look | self.shut | ~self.deletes_itself) & implies(
            self.has_to_look | self.has_consumers(), used
        )


def status(queue: RememberingRemovingQueue, entry: Entry) -> contract.Status:
    """Map an entry's status; one that has expired stays available, since it is due no more."""
    now = queue.status[entry]
    left = ite(queue.end[entry] == End.NONE, contract.Status.AVAILABLE, contract.Status.DEQUEUED)
    known = ite(now == Status.ACQUIRED, contract.Status.ACQUIRED, left)
    there = ite(now == Status.AVAILABLE, contract.Status.AVAILABLE, known)
    absent = (now == Status.ABSENT) | (entry == queue.head)
    return ite(absent, contract.Status.ABSENT, there)


def mode(queue: RememberingRemovingQueue, consumer: Subscription) -> Mode:
    """Map a subscription's mode."""
    settled = ite(queue.settles_when_sent[consumer], Mode.AUTOMATIC, Mode.ACKNOWLEDGE)
    return ite(queue.browser[consumer], Mode.BROWSE, settled)


def here(queue: RememberingRemovingQueue, home: contract.Queue) -> Bool:
    """Return whether it is the one queue that is modelled."""
    return home == queue.queue


def invisible(_queue: RememberingRemovingQueue, *_: object) -> Witness:
    """A step that clients do not see."""
    return stutters()


HIDDEN = ("begin_get", "end_get", "come_due", "expire", "shut_down", "stay")
"""The steps that clients do not see, besides those of the document."""

NO_MESSAGES_NO_BYTES = Assumption(
    "that windows are counts: what holds no message holds no bytes",
    lambda queue, consumer, _entry: (
        implies(queue.unsettled[consumer] == 0, queue.unsettled_bytes[consumer] == 0)
        & implies(
            queue.in_pool[queue.channel[consumer]] == 0,
            queue.bytes_in_pool[queue.channel[consumer]] == 0,
        )
    ),
)

POINTER_QUEUE_REFINES_CONTRACT = Refinement(
    name="pointer-queue refines whole-contract",
    concrete=RemovingQueue,
    abstract=WholeContract,
    remembering=RememberingRemovingQueue,
    families={contract.Entry: Entry, contract.Consumer: Subscription, contract.Channel: Channel},
    abstraction={
        "status": status,
        "consuming": lambda queue, consumer: queue.is_consumer(consumer),
        "shown": lambda queue, consumer, entry: queue.ever_shown[consumer, entry],
        "mode": mode,
        "home": PLAIN_QUEUE["home"],
        "fifo": lambda queue, _home: queue.fifo,
        "is_sorted_by_key": lambda queue, _home: queue.by_key,
        "ties": lambda queue, e, f: queue.level[e] == queue.level[f],
        "subscribed": lambda queue, _consumer, home: here(queue, home),
        "deletes_itself": lambda queue, home: here(queue, home) & queue.deletes_itself,
        "gone": lambda queue, home: here(queue, home) & queue.gone,
        "now": lambda queue, _home: queue.now,
        **dict.fromkeys(("returns_to_place", "when_idle"), lambda _queue: TRUE),
        **dict.fromkeys(("to_tail", "to_head"), lambda _queue: FALSE),
        **{name: PLAIN_QUEUE[name] for name in ("concerned", "rank", "replaces", "superseded")},
        **dict.fromkeys(("survives", "restarted", "either_flag"), PLAIN_QUEUE["superseded"]),
        **dict.fromkeys(("stamp", "stamps"), PLAIN_QUEUE["rank"]),
    },
    witnesses={
        **DOCUMENTED,
        **dict.fromkeys(HIDDEN, invisible),
        "hold": DOCUMENTED["append"],
        "come_to_rest": lambda _queue: does("quiesce_by_size"),
        "advance": lambda _queue, seconds: does("advance", seconds),
        "set_limits": lambda _queue, *window: does("set_credit", *window),
        "share_limits": lambda _queue, *window: does("set_pool", *window),
        "flush": lambda _queue, consumer: does("flush", consumer),
        "purge": lambda queue: does("purge", queue.queue),
        "dismiss": lambda _queue, consumer: does("leave", consumer),
        "drop_everything": lambda queue: does("delete", queue.queue),
        "delete_if_unused": lambda queue: does("queue_deleted", queue.queue),
        **dict.fromkeys(
            ("close_itself", "tell"), lambda _queue, consumer: does("consumer_closed", consumer)
        ),
        "come_to_an_end": lambda _queue: does("nothing_is_left_to_close"),
    },
    assumptions={"subscribe": ANOTHER_BROWSER, "deliver": NO_MESSAGES_NO_BYTES},
    left_out=(SHOWN_AGAIN,),
)
