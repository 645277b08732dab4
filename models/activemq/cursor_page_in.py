"""ActiveMQ's queue as it should be: a cursor that reads the store as far as memory allows.

Sources: the analysis of ActiveMQ's queue (5.1), and the releases to 5.3.0 that mended what it found
and what it did not; the ids are those of later notes on these releases.

A message that arrives is stored. While the cache is on and there is room it joins the cursor's
batch at once; the first that finds no room ends the cache, and the position is where the cache has
ended (AMQ-2020). From then on the store is read, entry by entry. An entry that is in memory is
passed over; where there is no room for another one the read stops, and the position stays. Whether
there is room is left open here: a read that finds none is no step, so whatever memory there is, and
whoever else uses it, is covered. The head of the batch is paged in, and given to a consumer that
takes messages. What consumers give back goes before all that was never given.

When the entry of the position goes, or the one that was recovered last, the position is forgotten:
the next read starts at the store's first entry, and meets what is in memory once more. Under
pressure the batch may be dropped at any time. What the audit remembers is not the truth: it forgets
what falls below its window. That an entry is in memory is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from brokerproof.models.activemq.cursor_invariants import CursorInvariants
from brokerproof.models.activemq.cursor_state import IT, Channel, Consumer, Cursor, Message
from brokerproof.models.activemq.equivalent_mutants import CURSOR_PAGE_IN
from brokerproof.models.language import Bool, action, exists, forall, implies, ite, require
from brokerproof.models.qpid.threads.equivalent_mutants import by_name

__all__ = ["Channel", "Consumer", "Cursor", "CursorPageIn", "Message"]


class CursorPageIn(CursorInvariants):
    """A queue whose messages are stored, and paged in as its consumers take them."""

    harmless: ClassVar[Mapping[str, str]] = by_name(CURSOR_PAGE_IN)

    # Arriving.

    @action
    def send_cached(self, m: Message) -> None:
        """A message arrives; the cache is on and there is room: it joins the batch."""
        require(~self.spent[m] & self.caches[IT])
        self._arrives(m)
        self._joins_batch(m)

    @action
    def send_uncached(self, m: Message) -> None:
        """A message arrives, and the cache is off."""
        require(~self.spent[m] & ~self.caches[IT])
        self._arrives(m)

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room: the cache ends, and its last entry is the position."""
        require(~self.spent[m] & self.caches[IT])
        require(self.is_latest(cached) & self.stored[cached])
        self._arrives(m)
        self.caches[IT] = False
        self._stands_at(cached)

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room, and the last that was cached is gone: there is no position."""
        require(~self.spent[m] & self.caches[IT])
        require(forall(Message, lambda n: ~(self.is_latest(n) & self.stored[n])))
        self._arrives(m)
        self.caches[IT] = False
        self._starts_over()

    def _arrives(self, m: Message) -> None:
        self.spent = self.spent.map(lambda n, old: old | self.at_or_before(n, m))
        self.stored[m] = True

    def _joins_batch(self, m: Message) -> None:
        """Let the audit record the message: its window may slide, and forgets what falls below."""
        self.batch[m] = True
        self.below = self.below.map(lambda n, old: old | self.slides[m, n])
        self.recorded = self.recorded.map(lambda n, old: (old | (n == m)) & ~self.below[n])

    @action
    def cache_again(self) -> None:
        """Nothing is pending, though something be paged in: what comes is cached again (AMQ-1984).

        So the store cursors of 5.2 and of the current releases have it. That of 5.3 asks for an
        empty store besides, which is one case of this. The position stays where it is: where the
        cache ends it is set anew.
        """
        require(forall(Message, lambda m: implies(self.stored[m], self.paged[m])))
        self.caches[IT] = True

    # Reading.

    @action
    def read(self, m: Message) -> None:
        """The next entry is new, and there is room: it joins the batch."""
        require(self.is_next(m) & ~self.is_duplicate(m))
        self._joins_batch(m)
        self._stands_at(m)
        self.read_last = self.read_last.map(lambda n, _: n == m)

    @action
    def pass_over(self, m: Message) -> None:
        """The next entry is a duplicate, and left where it is."""
        require(self.is_next(m) & self.is_duplicate(m))
        self._stands_at(m)

    @action
    def clear(self) -> None:
        """Memory is short: the batch is dropped and forgotten, and the next read starts over."""
        self._clears()

    def _clears(self) -> None:
        self._rolls_back()
        self.batch.fill(False)
        self.caches.fill(False)
        self._starts_over()

    def _rolls_back(self) -> None:
        """Let the audit forget what is in the batch."""
        self.recorded = self.recorded.map(lambda n, old: old & ~self.batch[n])

    def _stands_at(self, m: Message) -> None:
        self.behind = self.behind.map(lambda n, _: self.at_or_before(n, m))

    def _starts_over(self) -> None:
        self.behind.fill(False)
        self.read_last.fill(False)

    # Giving.

    @action
    def page_in(self, m: Message) -> None:
        """The head of the batch is paged in."""
        require(self.is_first_in_batch(m))
        self.batch[m] = False
        self.paged[m] = True
        self.waiting[m] = True

    @action
    def give(self, who: Consumer, m: Message) -> None:
        """A consumer is given the first that was returned, or else the first that waits."""
        require(self.may_be_given(who) & self.is_first_to_give(m))
        self._gives(who, m)

    def may_be_given(self, who: Consumer) -> Bool:
        """Whether the queue gives to the consumer: to any that takes messages."""
        return self.takes[who]

    def _gives(self, who: Consumer, m: Message) -> None:
        """Note, too, whether the message was given before its turn."""
        self.out_of_turn[m] = self.overtakes(m)
        self.sooner = self.sooner.map(
            lambda n, k, old: ite(k == m, self.is_held(n) & (n != m), old & (n != m))
        )
        self.waiting[m] = False
        self.returned[m] = False
        self.holds[who, m] = True
        self.given[m] = True

    def overtakes(self, m: Message) -> Bool:
        """Whether some message goes before this one: what was returned, or else an older one."""

        def goes_before(n: Message) -> Bool:
            new = self.stored[n] & ~self.given[n] & self.before(n, m)
            return ite(self.given[m], self.returned[n] & self.sooner[n, m], self.returned[n] | new)

        return exists(Message, goes_before)

    # Settling.

    @action
    def acknowledge(self, who: Consumer, m: Message) -> None:
        """A consumer is done with a message: it leaves the store."""
        require(self.holds[who, m])
        self._ends(m)

    def _ends(self, m: Message) -> None:
        """Remove the entry; if the cursor stood at it, or had recovered it last, it starts over."""
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
    def release(self, who: Consumer, m: Message) -> None:
        """A consumer returns a message: it is the last of those that were returned."""
        require(self.holds[who, m])
        self._return(lambda n: n == m)
        self.holds[who, m] = False

    def _return(self, goes_back: Callable[[Message], Bool]) -> None:
        """Return messages in the order of their delivery, behind those that are returned."""
        self.sooner = self.sooner.map(
            lambda n, k, old: ite(
                goes_back(k), self.returned[n] | (goes_back(n) & old), old & ~goes_back(n)
            )
        )
        self.returned = self.returned.map(lambda n, old: old | goes_back(n))

    # Consumers.

    @action
    def attach(self, who: Consumer) -> None:
        """A consumer comes."""
        require(~self.takes[who])
        self.attached[who] = True
        self.takes[who] = True

    @action
    def cancel(self, who: Consumer) -> None:
        """A consumer takes no more; what it holds it may still settle."""
        require(self.takes[who])
        self.takes[who] = False

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave, and all that they hold is returned."""
        self._return(lambda m: self.goes_back(which, m))
        self._leave(which)

    def _leave(self, which: Channel) -> None:
        self.holds = self.holds.map(lambda c, _, old: old & (self.channel[c] != which))
        self.attached = self.attached.map(lambda c, old: old & (self.channel[c] != which))
        self.takes = self.takes.map(lambda c, old: old & (self.channel[c] != which))
