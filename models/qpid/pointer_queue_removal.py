"""The queue of pointers to its end: exclusive and auto-close consumers, purge and deletion.

Sources: Qpid, Message Delivery (Removal; a subscription at the tail that asked for it is closed);
QPID-6393 (only if nothing is available to it); driver protocol 1, rule 7. The code is
`reference/front/registrations.py`, `close_or_wait` and `close_by_itself` of the queue, and
`delete_if_unused`. A get is not registered: it is no consumer for any of these rules.

An exclusive consumer is `alone`. A consumer that leaves has the queue look whether it is unused
(`has_to_look`). A deletion first shuts the queue for consumers, then dismisses those that are
there, then drops all entries, and then tells each dismissed consumer (`untold`).
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.language import (
    FALSE,
    Bool,
    Fixed,
    Map,
    Value,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    least,
    require,
)
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_credit import CreditQueue
from brokerproof.models.qpid.pointer_queue_progress import Channel


class RemovingQueue(CreditQueue):
    """The pushed queue as its clients meet it, to its end."""

    deletes_itself: Bool
    exclusive: Fixed[Subscription, Bool]
    closes_itself: Fixed[Subscription, Bool]

    alone: Value[Bool]
    has_to_look: Value[Bool]
    shut: Value[Bool]
    gone: Value[Bool]
    untold: Map[Subscription, Bool]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no consumer has come or left."""
        super().empty()
        self.alone = False
        self.has_to_look = False
        self.shut = False
        self.gone = False
        self.untold.fill(False)

    def has_consumers(self) -> Bool:
        """Whether a consumer is registered."""
        return exists(Subscription, self.is_consumer)

    # Arrivals.

    @action
    def append(self, entry: Entry) -> None:
        """An entry arrives in a queue that is there."""
        require(~self.gone)
        super().append(entry)

    @action
    def insert(self, entry: Entry) -> None:
        """An entry arrives in a queue that is there."""
        require(~self.gone)
        super().insert(entry)

    @action
    def hold(self, entry: Entry) -> None:
        """An entry arrives in a queue that is there."""
        require(~self.gone)
        super().hold(entry)

    # Registration.

    @action
    def subscribe(self, consumer: Subscription) -> None:
        """A consumer is registered unless exclusivity or a deletion forbids it (`enter`)."""
        require(~self.shut)
        require(~self.alone & ~(self.exclusive[consumer] & self.has_consumers()))
        super().subscribe(consumer)
        self.alone = self.exclusive[consumer]

    @action
    def unsubscribe(self, consumer: Subscription) -> None:
        """A consumer leaves: an exclusive one was the only one (`leave`)."""
        super().unsubscribe(consumer)
        self._left(FALSE)

    def _left(self, unless: Bool) -> None:
        self.alone &= unless
        self.has_to_look |= ~unless

    def _leave(self, which: Channel) -> None:
        """Unregister the consumers of a channel that closes."""
        none = ~exists(Subscription, lambda c: self.is_consumer(c) & (self.channel[c] == which))
        super()._leave(which)
        self._left(none)

    @action
    def close_itself(self, consumer: Subscription) -> None:
        """An auto-close consumer for which no entry is left is removed, and told."""
        least(self.before, lambda e: self.is_ahead(consumer, e))
        require(self.nothing_arrives())
        require(self.closes_itself[consumer])
        require(self.is_at_the_tail(consumer))
        self.unsubscribe(consumer)

    # The end of the queue.

    @action
    def purge(self) -> None:
        """The queue takes off the entries that are available; those held back stay."""
        require(self.nothing_arrives())
        self._takes_off(lambda e: (self.status[e] == Status.AVAILABLE) & ~self.held_back[e])

    def _takes_off(self, goes: Callable[[Entry], Bool]) -> None:
        self.status = self.status.map(lambda e, old: ite(goes(e), Status.DEQUEUED, old))

    @action
    def shut_down(self) -> None:
        """A client's deletion of the queue begins: no consumer is registered any more."""
        require(~self.shut)
        self.shut = True

    @action
    def dismiss(self, consumer: Subscription) -> None:
        """A deletion removes a consumer."""
        require(self.shut)
        self.unsubscribe(consumer)
        self.untold[consumer] = True

    @action
    def drop_everything(self) -> None:
        """A deletion drops all entries, and the queue is gone."""
        require(self.shut & ~self.gone)
        self._drops()

    def _drops(self) -> None:
        require(~self.has_consumers())
        require(self.nothing_arrives())
        self._takes_off(self.in_list)
        self.held_back.fill(False)
        self.holds.fill(False)
        self.shut = True
        self.gone = True

    @action
    def tell(self, consumer: Subscription) -> None:
        """A deletion has ended, and tells a consumer that it dismissed."""
        require(self.gone & self.untold[consumer])
        self.untold[consumer] = False

    @action
    def delete_if_unused(self) -> None:
        """An auto-delete queue without consumers shuts and drops all (`shut_if_empty`)."""
        require(self.has_to_look & self.deletes_itself & ~self.shut)
        self._drops()

    @action
    def stay(self) -> None:
        """The queue has looked, and it stays, or another deletion has it."""
        require(self.has_to_look)
        require(self.shut | ~self.deletes_itself | self.has_consumers())
        self.has_to_look = False

    @action
    def come_to_an_end(self) -> None:
        """No consumer and no queue has still to end, and each consumer has been told.

        An auto-close consumer that is still there waits at an entry for room.
        """
        require(self.nothing_arrives())
        require(~self.has_to_look & implies(self.shut, self.gone))
        require(forall(Subscription, lambda consumer: ~self.untold[consumer]))
        require(
            forall(
                Subscription,
                lambda consumer: implies(
                    self.is_consumer(consumer) & self.closes_itself[consumer],
                    self.is_waiting(consumer),
                ),
            )
        )

    @invariant("an-exclusive-consumer-is-alone")
    def exclusive_is_alone(self, consumer: Subscription, other: Subscription) -> Bool:
        """Where an exclusive consumer is, `alone` says so, and there is no other consumer."""
        here = self.is_consumer(consumer) & self.exclusive[consumer]
        return implies(here, self.alone & implies(self.is_consumer(other), consumer == other))

    @invariant("alone-is-an-exclusive-consumer")
    def alone_is_exclusive(self) -> Bool:
        """Others are kept out only while an exclusive consumer is there."""
        there = exists(Subscription, lambda c: self.is_consumer(c) & self.exclusive[c])
        return implies(self.alone, there)

    @invariant("what-is-gone-is-shut")
    def gone_is_shut(self) -> Bool:
        """A queue that is gone was shut, and has no consumer."""
        return implies(self.gone, self.shut & ~self.has_consumers())

    @invariant("a-consumer-to-be-told-has-left")
    def untold_has_left(self, consumer: Subscription) -> Bool:
        """A consumer that has still to be told of a deletion was dismissed by it."""
        return implies(self.untold[consumer], self.shut & ~self.is_consumer(consumer))


RemovingQueue.equivalent_mutants = """
A pointer may go back too far or too often: that costs steps and breaks no requirement.
    deliver: rewound*3; pass_over: guard 2; release: released; get: rewound*3;
    close_channel: guard 1, released; come_due: released
The pointer of a closed subscription is not read; a new one starts at the head.
    pass_over: guard 1; release: rewound, released; close_channel: rewound*2, released*2;
    look_back: rewound, released; come_due: rewound, released
An available entry that is not ahead of the pointer is just arriving, and is the first.
    deliver: guard 5*2; get: guard 4*3
A skipped entry is acquired: the pointer would have passed over it in a step of its own.
    deliver: guard 5*2; pass_over: guard 2*3; get: guard 4*2; come_to_rest: guard 2*2;
    flush: guard 3*2
No entry that a subscription could have lies at or before its place.
    come_to_rest: guard 2*3; flush: guard 3*3
Entries that a subscription holds from earlier do not affect its pointer.
    subscribe: guard 5
Only an invariant reads the value and then states less; the contract remembers the same.
    subscribe: overtaken; look_back: overtaken*2; browse: shown*2
No subscription exists at first, and a new one sets the value.
    initially: shown*2, rewound*2
The contract asks nothing of a consumer that fills no window, where bytes are counted.
    come_to_rest: guard 2*2; flush: guard 3*2; shared: has_room*2
A message may arrive, or come due, before such a step or after it.
    insert: guard 6*2; browse: guard 6*2; begin_get: guard 4*4; purge: guard 1;
    drop_everything: guard 3*4; delete_if_unused: guard 3*4; come_to_an_end: guard 1*4
An entry that stays held back stays due, and the queue cannot rest while an entry is due.
    come_due: held_back
The last of its level is in order, and what comes due takes no browser back.
    hold: guard 4
A get is no step of the contract before its answer, and selects nothing there.
    begin_get: guard 2, guard 3, shown, overtaken, active, rewound; get: guard 5;
    end_get: guard 2, active
The window of a consumer that left is not read, and nothing is left to flush for it or for a get.
    set_limits: guard 1; flush: guard 2*3
A queue may look once more whether it is used, and need not if it is shut.
    dismiss: has_to_look*2; stay: guard 1, has_to_look*2
The contract deletes a queue in one step: how a deletion begins is not seen.
    shut_down: guard 1, shut*2; drop_everything: guard 1*3; tell: guard 1; initially: shut*2
An auto-close consumer for which an entry is left need not have closed itself.
    come_to_an_end: guard 4*32
Where no entry is the last one ahead, none is ahead: a list is finite.
    find_nothing: guard 3; final_drain: guard 3; close_itself: guard 3; come_to_rest: guard 2;
    flush: guard 3
A queue that waits for a held entry does nothing meanwhile, and delivers later.
    shared: is_overdue*2
"""
