"""A message's entry in a queue: its state and its holder.

Owns the states of an entry and the moves between them. It tells its list when it is deleted; the
queue acts on subscriptions.

Source: Qpid, Message Delivery, where entries are acquired, released and deleted by
compare-and-swap. The separate steps *dequeued* and *deleted* are those of the later releases:
between them the message no longer counts, though its entry is still linked.

With stealable acquisition (Qpid since 0.30) a subscription holds an entry in one of two states. It
is unstealable, the subscription's `owning_state`, while it is sent or settled. In between it is
stealable: the queue may take it away. The steps are those of `models/qpid/threads/entry_states.py`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from brokerproof.reference.shared.atomics import AtomicReference
from brokerproof.reference.shared.copies import constant

if TYPE_CHECKING:
    from brokerproof.reference.qpid.push.entry_list import StandardEntryList
    from brokerproof.reference.qpid.push.subscriptions import Subscription
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.messages import Message


class Phase(enum.Enum):
    """The phase of an entry's life."""

    AVAILABLE = "available"
    HELD = "held"
    ACQUIRED = "acquired"
    DEQUEUED = "dequeued"
    DELETED = "deleted"


IN_THE_QUEUE = (Phase.AVAILABLE, Phase.HELD, Phase.ACQUIRED)
"""The phases in which an entry still needs an action."""


LEGAL_MOVES = frozenset(
    (
        (Phase.AVAILABLE, Phase.ACQUIRED),  # given to a subscription, or taken by the queue itself
        (Phase.HELD, Phase.AVAILABLE),  # its time has come
        (Phase.HELD, Phase.ACQUIRED),  # taken by the queue itself: it is over, or the queue goes
        (Phase.ACQUIRED, Phase.AVAILABLE),  # released
        (
            Phase.ACQUIRED,
            Phase.DEQUEUED,
        ),  # acknowledged, rejected, purged: only what is acquired goes
        (Phase.ACQUIRED, Phase.ACQUIRED),  # stealable or no more, by its holder; or stolen
        (Phase.DEQUEUED, Phase.DELETED),  # for good
    )
)
"""Every legal move of an entry; each change of state asserts that it is one."""


class EntryState:
    """A state of an entry. The holder is part of it, so that one swap settles both.

    The queue may take a `stealable` entry from its holder.
    """

    __slots__ = ("dispensed", "holder", "phase", "stealable")

    def __init__(
        self, phase: Phase, holder: Subscription | None = None, *, stealable: bool = False
    ) -> None:
        self.phase = phase
        self.holder = holder
        self.stealable = stealable
        self.dispensed = phase in (Phase.DEQUEUED, Phase.DELETED)


AVAILABLE = EntryState(Phase.AVAILABLE)
"""On the queue, and may be acquired."""
HELD = EntryState(Phase.HELD)
"""On the queue, and may not be acquired before its time."""
ACQUIRED_BY_QUEUE = EntryState(Phase.ACQUIRED)
"""Acquired by no subscription: a purge or a deletion is under way."""
DEQUEUED = EntryState(Phase.DEQUEUED)
"""No longer counted, not yet unlinked."""
DELETED = EntryState(Phase.DELETED)
"""Gone; also the state of every list's dummy head, so that no search stops there."""
constant(AVAILABLE, HELD, ACQUIRED_BY_QUEUE, DEQUEUED, DELETED)


class QueueEntry:
    """A message in one queue; `times` limit when it may be delivered.

    `id` grows along a list; together with the list it gives the order (`compare_to`). An unlinked
    entry keeps its own `next`, so that a pointer parked on it still reaches all that follow.
    """

    __slots__ = ("id", "message", "next", "redelivered", "state", "sub_list", "times")

    def __init__(
        self, sub_list: StandardEntryList, message: Message | None, times: Times | None = None
    ) -> None:
        self.id = 0
        self.sub_list = sub_list
        self.message = message
        self.redelivered = False
        self.times = times
        self.next: AtomicReference[QueueEntry | None] = AtomicReference(None)
        is_held = times is not None and times.due is not None
        self.state = AtomicReference(DELETED if message is None else HELD if is_held else AVAILABLE)

    def __repr__(self) -> str:
        name = "head" if self.message is None else self.message.id
        return f"<{name} #{self.id} {self.state.value.phase.value}>"

    def is_available(self) -> bool:
        """Return whether it may be acquired."""
        return self.state.get() is AVAILABLE

    def is_acquired(self) -> bool:
        """Return whether it is neither available nor held back."""
        state = self.state.get()
        return state is not AVAILABLE and state is not HELD

    def is_dispensed(self) -> bool:
        """Return whether it has left the queue for good, unlinked or not."""
        return self.state.get().dispensed

    def holder(self) -> Subscription | None:
        """Return the subscription that holds it; None if there is none."""
        return self.state.get().holder

    def compare_to(self, other: QueueEntry) -> int:
        """Return below, at or above 0 as this entry comes before, at or after `other` in the queue.

        Sub-lists compare first, the highest level before all others, and then ids, which each
        sub-list numbers itself (Qpid, Priority Queues). The level is the sub-list's; several
        message priorities may share one.
        """
        if self.sub_list is other.sub_list:
            return self.id - other.id
        return other.sub_list.level - self.sub_list.level

    def acquire(self, owning_state: EntryState) -> bool:
        """Acquire it if it is available; of several threads, one succeeds."""
        assert owning_state.phase is Phase.ACQUIRED
        return self.state.compare_and_set(AVAILABLE, owning_state)

    def acquire_held(self, owning_state: EntryState) -> bool:
        """Acquire it before its time, as only the queue itself may."""
        assert owning_state.phase is Phase.ACQUIRED
        return self.state.compare_and_set(HELD, owning_state)

    def let_go(self) -> bool:
        """Make it available if it was held back; of several threads, one succeeds."""
        return self.state.compare_and_set(HELD, AVAILABLE)

    def release(self, owning_state: EntryState) -> bool:
        """Make it available again, if it is still in the given state."""
        assert owning_state.phase is Phase.ACQUIRED
        return self.state.compare_and_set(owning_state, AVAILABLE)

    def delete(self, owning_state: EntryState) -> bool:
        """Remove it from the queue for good, if it is still in the given state."""
        assert owning_state.phase is Phase.ACQUIRED, "only what is acquired can be deleted"
        if not self.state.compare_and_set(owning_state, DEQUEUED):
            return False
        deleted = self.state.compare_and_set(DEQUEUED, DELETED)
        assert deleted, "no other thread touches a dequeued entry"
        self.sub_list.entry_deleted(self)
        return True

    def make_stealable(self, holder: Subscription) -> bool:
        """Let the queue take it from now on; False if its holder has settled it already."""
        assert holder.stealable_state is not None, "this acquisition is firm"
        return self.state.compare_and_set(holder.owning_state, holder.stealable_state)

    def make_unstealable(self, holder: Subscription) -> bool:
        """Protect it from the queue from now on; False if its holder has lost it.

        The holder cannot settle it then. The state is read before the swap: the sending thread may
        be making it stealable now, and after a failed swap it would seem lost.
        """
        state = self.state.get()
        if state is holder.owning_state:
            return True
        return state is holder.stealable_state and self.state.compare_and_set(
            state, holder.owning_state
        )

    def steal(self) -> bool:
        """Take it for the queue from a subscription that neither sends nor settles it now."""
        state = self.state.get()
        return state.stealable and self.state.compare_and_set(state, ACQUIRED_BY_QUEUE)

    def release_stealable(self, holder: Subscription) -> bool:
        """Make it available again if its holder still has it, stealable or not.

        It retries while that is so. Qpid swaps once, which is enough where one thread sends and
        settles; here the sending thread may be making it stealable now.
        """
        state = self.state.get()
        while state.holder is holder:
            if self.state.compare_and_set(state, AVAILABLE):
                return True
            state = self.state.get()
        return False

    def delete_stealable(self) -> bool:
        """Remove an acquired entry from the queue, whatever its holder; False if not acquired.

        It retries while it is acquired. Qpid once did not, and an entry settled while it became
        stealable stayed acquired for ever (QPID-6419).
        """
        state = self.state.get()
        while state.phase is Phase.ACQUIRED:
            if self.delete(state):
                return True
            state = self.state.get()
        return False

    def next_valid(self) -> QueueEntry | None:
        """Return the next entry of its list that is not dispensed, and unlink those between.

        A dispensed last entry stays linked, because the next arrival is appended to it; it is never
        returned.
        """
        following = self.next.get()
        while following is not None and following.state.get().dispensed:
            beyond = following.next.get()
            if beyond is None:
                return None
            self.next.compare_and_set(following, beyond)
            following = self.next.get()
        return following
