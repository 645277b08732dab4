"""Faults of ActiveMQ's queue in some release, one mixin class each.

Sources: the analysis of ActiveMQ's queue (5.1), later notes on its releases, and the issues that
they name. Each class changes one rule of `cursor_room`, or of `cursor_progress` if the rule is
about passes and wake-ups; `of` combines several. The analysis blames and repairs one fault:
`PassesWithoutRoom`. Release 5.1.0 had all those of `RELEASE_5_1`.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_progress import CursorProgress, Pass
from brokerproof.models.activemq.cursor_room import Channel, Consumer, CursorRoom, Message
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
    """The cursor moves past an entry for which there is no room (AMQ-2149, D2), as analysed."""

    @action
    def pass_without_room(self, m: Message) -> None:
        """There is no room for the next entry, and the position moves past it all the same."""
        require(~self.has_room() & self.may_read() & self.is_next(m))
        self._stands_at(m)


class CallsOldDuplicate(CursorRoom):
    """The audit calls every message below its window a duplicate (AMQ-1742, D1)."""

    def is_known(self, m: Message) -> Bool:
        """Whether the audit calls the message a duplicate."""
        return self.recorded[m] | self.below[m]


class GivesToConsumersThatLeft(CursorRoom):
    """The queue delivers to a list of consumers that may be out of date (AMQ-1738, D3)."""

    listed: Map[Consumer, Bool]

    @initial
    def empty(self) -> None:
        """No message has been sent, and no consumer is listed."""
        super().empty()
        self.listed.fill(False)

    @action
    def attach(self, consumer: Consumer) -> None:
        """A consumer attaches, and is listed."""
        super().attach(consumer)
        self.listed[consumer] = True

    def may_be_given(self, consumer: Consumer) -> Bool:
        """Whether the queue delivers to the consumer: to any that was ever attached."""
        return self.listed[consumer]


class ForgetsItsSize(CursorRoom):
    """The cursor takes itself for empty after its batch was dropped.

    Kin of AMQ-1940 and AMQ-1962, and no fault of 5.1.0, which leaves the size as it is.
    """

    def _clears(self) -> None:
        super()._clears()
        self.pending = 0


class ClearsWhenTheLastLeaves(CursorRoom):
    """The cursor drops its batch when the last consumer leaves (AMQ-2016)."""

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave, and no other consumer is there."""
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
        """No other action drops the batch."""
        require(self.capacity < 0)
        super().clear()


class TrustsTheAudit(CursorRoom):
    """A read consults only the audit, not whether the entry is in memory (AMQ-1957, M-23)."""

    def is_duplicate(self, m: Message) -> Bool:
        """Whether a read leaves the entry where it is."""
        return self.is_known(m)


class LeavesThePosition(CursorRoom):
    """The cache ends without a new position (AMQ-2020)."""

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room: the cache ends."""
        require(~self.has_room() & ~self.spent[m] & self.caches)
        require(self.is_latest(cached) & self.stored[cached])
        self._arrives(m)
        self.caches = False

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room, and the message cached last is gone."""
        require(~self.has_room() & ~self.spent[m] & self.caches)
        require(forall(Message, lambda n: ~(self.is_latest(n) & self.stored[n])))
        self._arrives(m)
        self.caches = False


class StandsTooFar(CursorRoom):
    """The cache ends with the position at the message that was not cached (AMQ-3167, M-11)."""

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
    """The batch is dropped without a rollback in the audit (M-17)."""

    def _rolls_back(self) -> None:
        pass


class DropsAndGoesOn(CursorRoom):
    """The batch is dropped and the position kept (M-17)."""

    def _clears(self) -> None:
        self._rolls_back()
        self.batch.fill(False)
        self.caches = False
        self.in_batch = 0


class LooksForRoomAfterwards(CursorRoom):
    """A message is added before the check for room (M-25)."""

    def has_room(self) -> Bool:
        """Whether there was room before the last message was added."""
        return self.in_batch + self.in_pages <= self.capacity


class ReturnsBehindAll(CursorRoom):
    """Returned messages are delivered only when no other message waits (AMQ-2719, M-35)."""

    def is_first_to_give(self, m: Message) -> Bool:
        """Whether the message is the first waiting one or, if none waits, the first returned."""
        nothing_waits = forall(Message, lambda n: ~self.waiting[n])
        return self.is_first_waiting(m) | (nothing_waits & self.is_first_returned(m))


class GivesTheNewPage(CursorRoom):
    """The newest page is delivered before messages of earlier pages (AMQ-1902, M-31)."""

    def is_first_waiting(self, m: Message) -> Bool:
        """Whether no waiting message was paged in later."""
        none_later = forall(Message, lambda n: ~(self.waiting[n] & self.before(m, n)))
        return self.waiting[m] & none_later


class NeverClears(CursorRoom):
    """The queue keeps its batch however short memory is: no fault, but a help to isolate faults."""

    @action
    def clear(self) -> None:
        """No action drops the batch."""
        require(self.capacity < 0)
        super().clear()


class Restarted(CursorRoom):
    """A queue that starts with all its messages in the store, and none in memory."""

    backlog: Int

    @initial
    def empty(self) -> None:
        """`backlog` messages are stored, and the cache is off."""
        super().empty()
        self.spent.fill(True)
        self.stored.fill(True)
        self.caches = False
        self.pending = self.backlog


class CountsDuplicates(CursorProgress):
    """A message that is passed over counts as read (AMQ-2149, M-05)."""

    @action
    def pass_over(self, m: Message) -> None:
        """The next entry is a duplicate, and counts."""
        super().pass_over(m)
        self.counted += 1


class SchedulesNoOther(CursorProgress):
    """A pass that has read its maximum schedules no other pass (AMQ-2483, M-05, M-43)."""

    @action
    def end_reading(self) -> None:
        """The reading ends, and no other pass is scheduled."""
        require((self.makes == Pass.READS) & ~(self.may_read_more() & self.finds_more()))
        self.counted = 0
        self.makes = Pass.GIVES


RELEASE_5_1: tuple[type[CursorRoom], ...] = (
    *(PassesWithoutRoom, CallsOldDuplicate, GivesToConsumersThatLeft, ClearsWhenTheLastLeaves),
    *(TrustsTheAudit, LeavesThePosition, CountsDuplicates, SchedulesNoOther),
)
"""The faults of release 5.1.0 that this model covers."""

_made: dict[tuple[type[CursorRoom], ...], type[CursorRoom]] = {}


def of(*faults: type[CursorRoom], among: type[CursorRoom] = CursorRoom) -> type[CursorRoom]:
    """Return a queue with all of these faults, as a subclass of `among`."""
    bases = (*faults, among)
    if bases not in _made:
        name = "And".join(each.__name__ for each in bases)
        _made[bases] = type(name, bases, {"__doc__": among.__doc__})
    return _made[bases]
