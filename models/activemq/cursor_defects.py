"""What ActiveMQ's queue did wrong in some release, each fault alone: classes to be put before one.

Sources: the analysis of ActiveMQ's queue (5.1), later notes on its releases, and the issues that
they name. A class here changes one rule of `cursor_room` or, where it is about passes and what
wakes the queue, of `cursor_progress`. Several of them together are a class that inherits from each,
and `of` makes it. The analysis blames one fault, and mends that one: `PassesWithoutRoom`. Release
5.1.0 had all those of `RELEASE_5_1`.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_progress import CursorProgress, Pass
from brokerproof.models.activemq.cursor_room import Channel, Consumer, CursorRoom, Message
from brokerproof.models.activemq.cursor_state import IT
from brokerproof.models.language import (
    Bool,
    Int,
    Map,
    action,
    exists,
    forall,
    initial,
    not_negative,
    require,
)


class PassesWithoutRoom(CursorRoom):
    """Goes on to the next entry when there is no room for one (AMQ-2149, D2), as analysed."""

    @action
    def pass_without_room(self, m: Message) -> None:
        """There is no room for the next entry: the position moves all the same."""
        require(~self.has_room() & self.may_read() & self.is_next(m))
        self._stands_at(m)


class CallsOldDuplicate(CursorRoom):
    """Takes whatever is below the audit's window for a duplicate (AMQ-1742, D1)."""

    def is_known(self, m: Message) -> Bool:
        """Whether the audit calls the message a duplicate."""
        return self.recorded[m] | self.below[m]


class GivesToWhoHasLeft(CursorRoom):
    """Gives to whoever is in a list of consumers that may be an old one (AMQ-1738, D3)."""

    listed: Map[Consumer, Bool]

    @initial
    def empty(self) -> None:
        """Nothing has been sent, and nobody is listed."""
        super().empty()
        self.listed.fill(False)

    @action
    def attach(self, who: Consumer) -> None:
        """A consumer comes, and is listed."""
        super().attach(who)
        self.listed[who] = True

    def may_be_given(self, who: Consumer) -> Bool:
        """Whether the queue gives to the consumer: to any that has ever been there."""
        return self.listed[who]


class ForgetsItsSize(CursorRoom):
    """Takes itself for empty when its batch has been dropped (AMQ-1984, AMQ-1940, D4)."""

    def _clears(self) -> None:
        super()._clears()
        self.pending[IT] = 0


class ClearsWhenTheLastLeaves(CursorRoom):
    """Drops its batch when the last consumer leaves (AMQ-2016)."""

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave; nobody else is there."""
        require(forall(Consumer, lambda c: ~self.takes[c] | (self.channel[c] == which)))
        require(exists(Consumer, lambda c: self.takes[c]))
        not_negative(self.in_batch)
        super().close(which)
        self._clears()

    @action
    def close_beside_others(self, which: Channel) -> None:
        """The consumers of a channel leave, and others stay."""
        require(exists(Consumer, lambda c: self.takes[c] & (self.channel[c] != which)))
        super().close(which)

    @action
    def clear(self) -> None:
        """Nothing else drops the batch."""
        require(self.capacity < 0)
        super().clear()


class TrustsTheAudit(CursorRoom):
    """Does not look whether an entry is in memory: the audit would know (AMQ-1957, M-23)."""

    def is_duplicate(self, m: Message) -> Bool:
        """Whether a read leaves the entry where it is."""
        return self.is_known(m)


class LeavesThePosition(CursorRoom):
    """Ends the cache, and leaves the position where it was (AMQ-2020)."""

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room: the cache ends."""
        require(~self.has_room() & ~self.spent[m] & self.caches[IT])
        require(self.is_latest(cached) & self.stored[cached])
        self._arrives(m)
        self.caches[IT] = False

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room, and the last that was cached is gone."""
        require(~self.has_room() & ~self.spent[m] & self.caches[IT])
        require(forall(Message, lambda n: ~(self.is_latest(n) & self.stored[n])))
        self._arrives(m)
        self.caches[IT] = False


class StandsTooFar(CursorRoom):
    """Ends the cache with the position at what was not cached any more (AMQ-3167, M-11)."""

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room: the cache ends."""
        super().send_past_cache(m, cached)
        self._stands_at(m)

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room: the cache ends."""
        super().send_past_nothing(m)
        self._stands_at(m)


class DropsAndRemembers(CursorRoom):
    """Drops its batch, and lets the audit remember it (M-17)."""

    def _rolls_back(self) -> None:
        pass


class DropsAndGoesOn(CursorRoom):
    """Drops its batch, and goes on where it stood (M-17)."""

    def _clears(self) -> None:
        self._rolls_back()
        self.batch.fill(False)
        self.caches.fill(False)
        self.in_batch[IT] = 0


class LooksForRoomAfterwards(CursorRoom):
    """Adds a message, and looks then whether there was room for it (M-25)."""

    def has_room(self) -> Bool:
        """Whether there was room before what was added last."""
        return self.in_batch[IT] + self.in_pages[IT] <= self.capacity


class ReturnsBehindAll(CursorRoom):
    """Gives what was returned when nothing else waits (AMQ-2719, M-35)."""

    def is_first_to_give(self, m: Message) -> Bool:
        """Whether the message is next: of what waits or, if nothing does, of what was returned."""
        nothing_waits = forall(Message, lambda n: ~self.waiting[n])
        return self.is_first_waiting(m) | (nothing_waits & self.is_first_returned(m))


class GivesTheNewPage(CursorRoom):
    """Gives what was paged in last, before what waits from earlier pages (AMQ-1902, M-31)."""

    def is_first_waiting(self, m: Message) -> Bool:
        """Whether nothing that waits was paged in later."""
        none_later = forall(Message, lambda n: ~(self.waiting[n] & self.before(m, n)))
        return self.waiting[m] & none_later


class NeverClears(CursorRoom):
    """Keeps its batch, however short memory is: no fault, and what others are seen without."""

    @action
    def clear(self) -> None:
        """Nothing drops the batch."""
        require(self.capacity < 0)
        super().clear()


class Restarted(CursorRoom):
    """A queue that begins with all its messages in the store, and nothing of them in memory."""

    backlog: Int

    @initial
    def empty(self) -> None:
        """So many messages are stored, and the cache is off."""
        super().empty()
        self.spent.fill(True)
        self.stored.fill(True)
        self.caches.fill(False)
        self.pending.fill(self.backlog)


class CountsDuplicates(CursorProgress):
    """Counts what it passes over as if it had read it (AMQ-2149, M-05)."""

    @action
    def pass_over(self, m: Message) -> None:
        """The next entry is a duplicate, and counts."""
        super().pass_over(m)
        self.counted[IT] = self.counted[IT] + 1


class SchedulesNoOther(CursorProgress):
    """Makes no other pass when one has read as much as it may (AMQ-2483, M-05, M-43)."""

    @action
    def end_reading(self) -> None:
        """Nothing more is found, or enough was read: the pass goes on to give."""
        require((self.makes[IT] == Pass.READS) & ~(self.may_read_more() & self.finds_more()))
        self.counted[IT] = 0
        self.makes[IT] = Pass.GIVES


RELEASE_5_1: tuple[type[CursorRoom], ...] = (
    *(PassesWithoutRoom, CallsOldDuplicate, GivesToWhoHasLeft, ForgetsItsSize),
    *(ClearsWhenTheLastLeaves, TrustsTheAudit, LeavesThePosition),
    *(CountsDuplicates, SchedulesNoOther),
)
"""What release 5.1.0 did wrong, of what this model has."""

_made: dict[tuple[type[CursorRoom], ...], type[CursorRoom]] = {}


def of(*faults: type[CursorRoom], among: type[CursorRoom] = CursorRoom) -> type[CursorRoom]:
    """Return the queue with all of these faults, of the kind of `among`; by default, its room."""
    bases = (*faults, among)
    if bases not in _made:
        name = "And".join(each.__name__ for each in bases)
        _made[bases] = type(name, bases, {"__doc__": among.__doc__})
    return _made[bases]
