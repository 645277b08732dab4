"""ActiveMQ's queue with a correct cursor, which reads the store as far as memory allows.

Sources: the analysis of ActiveMQ's queue (5.1), and the releases to 5.3.0 with their repairs; the
ids are those of later notes on these releases.

While the cache of the cursor (the document's storage pointer) is on and there is room, an arriving
message joins the cursor's batch. The first message without room ends the cache, and the position is
where the cache ended (AMQ-2020). From then on the cursor reads the store, passes over entries in
memory, and stops without moving if there is no room. Room is left open: a read without room is no
step, so the proofs cover any memory. If the position's entry or the entry recovered last is
removed, the next read starts over. The audit forgets messages below its window, so the cursor looks
up whether an entry is in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.activemq.cursor_invariants import CursorInvariants
from brokerproof.models.activemq.cursor_state import Channel, Consumer, Message
from brokerproof.models.language import Bool, action, exists, forall, implies, ite, require

__all__ = ["Channel", "Consumer", "CursorPageIn", "Message"]


class CursorPageIn(CursorInvariants):
    """A queue whose messages are stored, and paged in as its consumers take them."""

    # Arrivals.

    @action
    def send_cached(self, m: Message) -> None:
        """A message arrives and joins the batch: the cache is on, and there is room in memory."""
        require(~self.spent[m] & self.caches)
        self._arrives(m)
        self._joins_batch(m)

    @action
    def send_uncached(self, m: Message) -> None:
        """A message arrives while the cache is off."""
        require(~self.spent[m] & ~self.caches)
        self._arrives(m)

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room in memory: the cache ends, its last entry is the position."""
        require(~self.spent[m] & self.caches)
        require(self.is_latest(cached) & self.stored[cached])
        self._arrives(m)
        self.caches = False
        self._stands_at(cached)

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room, and the message cached last is gone: there is no position."""
        require(~self.spent[m] & self.caches)
        require(forall(Message, lambda n: ~(self.is_latest(n) & self.stored[n])))
        self._arrives(m)
        self.caches = False
        self._starts_over()

    def _arrives(self, m: Message) -> None:
        self.spent = self.spent.map(lambda n, old: old | self.at_or_before(n, m))
        self.stored[m] = True

    def _joins_batch(self, m: Message) -> None:
        """Add the message to the batch and the audit, whose window may slide and forget others."""
        self.batch[m] = True
        self.below = self.below.map(lambda n, old: old | self.slides[m, n])
        self.recorded = self.recorded.map(lambda n, old: (old | (n == m)) & ~self.below[n])

    @action
    def cache_again(self) -> None:
        """No message is left to page in: the cache is on again (AMQ-1984).

        So do the store cursors of 5.2 and of the current releases; that of 5.3 also requires an
        empty store, which is a case of this. The position stays, and is set anew where the cache
        ends.
        """
        require(self.all_are_paged())
        self.caches = True

    def all_are_paged(self) -> Bool:
        """Whether no message is left to page in."""
        return forall(Message, lambda m: implies(self.stored[m], self.paged[m]))

    # Reads.

    @action
    def read(self, m: Message) -> None:
        """The next entry is new, and there is room: it joins the batch."""
        require(self.is_next(m) & ~self.is_duplicate(m))
        self._joins_batch(m)
        self._stands_at(m)
        self.read_last = self.read_last.map(lambda n, _: n == m)

    @action
    def pass_over(self, m: Message) -> None:
        """The next entry is a duplicate, and stays where it is."""
        require(self.is_next(m) & self.is_duplicate(m))
        self._stands_at(m)

    @action
    def clear(self) -> None:
        """Memory is short: the batch is dropped and rolled back, and the next read starts over."""
        self._clears()

    def _clears(self) -> None:
        self._rolls_back()
        self.batch.fill(False)
        self.caches = False
        self._starts_over()

    def _rolls_back(self) -> None:
        """Let the audit forget the messages in the batch."""
        self.recorded = self.recorded.map(lambda n, old: old & ~self.batch[n])

    def _stands_at(self, m: Message) -> None:
        self.behind = self.behind.map(lambda n, _: self.at_or_before(n, m))

    def _starts_over(self) -> None:
        self.behind.fill(False)
        self.read_last.fill(False)

    # Deliveries.

    @action
    def page_in(self, m: Message) -> None:
        """The head of the batch is paged in."""
        require(self.is_first_in_batch(m))
        self.batch[m] = False
        self.paged[m] = True
        self.waiting[m] = True

    @action
    def give(self, consumer: Consumer, m: Message) -> None:
        """A consumer is given the first returned message, otherwise the first waiting one."""
        require(self.may_be_given(consumer) & self.is_first_to_give(m))
        self._gives(consumer, m)

    def may_be_given(self, consumer: Consumer) -> Bool:
        """Whether the queue delivers to the consumer: to any that takes messages."""
        return self.takes[consumer]

    def _gives(self, consumer: Consumer, m: Message) -> None:
        """Give the message to the consumer, and note whether that was out of turn."""
        self.out_of_turn[m] = self.overtakes(m)
        self.sooner = self.sooner.map(
            lambda n, k, old: ite(k == m, self.is_held(n) & (n != m), old & (n != m))
        )
        self.waiting[m] = False
        self.returned[m] = False
        self.holds[consumer, m] = True
        self.given[m] = True

    def overtakes(self, m: Message) -> Bool:
        """Whether another message goes before this one: a returned one, or an older one."""

        def goes_before(n: Message) -> Bool:
            new = self.stored[n] & ~self.given[n] & self.before(n, m)
            return ite(self.given[m], self.returned[n] & self.sooner[n, m], self.returned[n] | new)

        return exists(Message, goes_before)

    # Settlements.

    @action
    def acknowledge(self, consumer: Consumer, m: Message) -> None:
        """A consumer acknowledges a message, which leaves the store."""
        require(self.holds[consumer, m])
        self._ends(m)

    def _ends(self, m: Message) -> None:
        """Remove the entry; the cursor starts over if it stood there or had recovered it last."""
        starts_over = self.is_position(m) | self.read_last[m]
        self.behind = self.behind.map(lambda _, old: old & ~starts_over)
        self.read_last = self.read_last.map(lambda _, old: old & ~starts_over)
        self._leaves_the_order(m)
        self.stored[m] = False
        self.paged[m] = False
        self.waiting[m] = False
        self.returned[m] = False
        self.holds = self.holds.map(lambda _, n, old: old & (n != m))

    def _leaves_the_order(self, m: Message) -> None:
        self.sooner = self.sooner.map(lambda n, k, old: old & (n != m) & (k != m))

    @action
    def release(self, consumer: Consumer, m: Message) -> None:
        """A consumer returns a message, which becomes the last of the returned ones."""
        require(self.holds[consumer, m])
        self._return(lambda n: n == m)
        self.holds[consumer, m] = False

    def _return(self, goes_back: Callable[[Message], Bool]) -> None:
        """Return messages in the order of their delivery, behind those already returned."""
        self.sooner = self.sooner.map(
            lambda n, k, old: ite(
                goes_back(k), self.returned[n] | (goes_back(n) & old), old & ~goes_back(n)
            )
        )
        self.returned = self.returned.map(lambda n, old: old | goes_back(n))

    # Consumers.

    @action
    def attach(self, consumer: Consumer) -> None:
        """A consumer attaches."""
        require(~self.takes[consumer])
        self.attached[consumer] = True
        self.takes[consumer] = True

    @action
    def cancel(self, consumer: Consumer) -> None:
        """A consumer takes no more; it may still settle the messages that it holds."""
        require(self.takes[consumer])
        self.takes[consumer] = False

    @action
    def close(self, which: Channel) -> None:
        """A channel closes: its consumers leave, and all their messages are returned."""
        self._return(lambda m: self.goes_back(which, m))
        self._leave(which)

    def _leave(self, which: Channel) -> None:
        self.holds = self.holds.map(lambda c, _, old: old & (self.channel[c] != which))
        self.attached = self.attached.map(lambda c, old: old & (self.channel[c] != which))
        self.takes = self.takes.map(lambda c, old: old & (self.channel[c] != which))
