"""The queue: it pages messages in from its cursors, and gives them to consumers with room.

Owns the messages that are paged in and not settled, when a message is paged in, and its consumer.
`queue_cursor` keeps pending messages, and `storage` the disk.

Returned messages come first, then paged-in ones, then pending ones. In a priority queue the level
decides before that. A pass pages in no more than consumers have room for, so that a later and more
urgent message need not overtake them. Messages that consumers hold give up their memory to
deliverable ones, since their content can be read again by its id.

Source: the analysis of ActiveMQ's queue (5.1), doPageIn; ActiveMQ 5.3 and later where the analysis
is silent. `parameters` has the differences of 5.1 that matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from brokerproof.reference.activemq.audit import MessageAudit
from brokerproof.reference.activemq.browsers import Browsers
from brokerproof.reference.activemq.cursors.transient_cursors import FileCursor
from brokerproof.reference.activemq.groups import without_content
from brokerproof.reference.activemq.memory.queue_memory import QueueMemory
from brokerproof.reference.activemq.memory.references import Reference, Stored
from brokerproof.reference.activemq.pending_lists import DispatchPendingList
from brokerproof.reference.activemq.storage import CursorStorage
from brokerproof.reference.activemq.subscribers import GROUP_MAPS, Subscribers
from brokerproof.reference.front.consumers import RankedConsumer, Terms
from brokerproof.reference.front.credit import Window
from brokerproof.reference.front.ranked_queue import RankedQueue
from brokerproof.spec.messages import Priority, level_of
from brokerproof.spec.protocol.answers import Accepted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from brokerproof.reference.activemq.memory.queue_memory import GivesWay
    from brokerproof.reference.front.consumers import Consumer, Mode
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.front.storage import Definition
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.messages import Message


@dataclass(slots=True, eq=False)
class Late:
    """Messages paged in, and the consumers present then; the next event gives them out."""

    references: list[Reference]
    consumers: list[RankedConsumer]


class CursorQueue(RankedQueue[Reference]):
    """One queue; `arrivals` is the number of messages that have arrived.

    `resident` has the paged-in messages with their content in memory. `fresh` has the ids paged in
    by the current pass, which do not give way. `late` is given out at the next event. `replaced`
    has messages that were paged in again while a consumer held them (AMQ-1957).
    """

    __slots__ = (
        "arrivals",
        "audit",
        "browsers",
        "cursor",
        "fresh",
        "last_waits",
        "late",
        "memory",
        "paged_in",
        "parameters",
        "parked",
        "pending",
        "replaced",
        "resident",
        "storage",
        "subscribers",
    )

    def __init__(
        self,
        definition: Definition,
        outbox: Outbox,
        executor: Executor,
        storage: CursorStorage,
    ) -> None:
        order = definition.order
        super().__init__(definition.name, order, outbox, executor)
        self.storage = storage
        self.parameters = parameters = storage.parameters
        self.memory = QueueMemory(parameters)
        self.audit = MessageAudit(
            parameters.depth, parameters.producers, parameters.audit, parameters.word
        )
        self.paged_in: dict[str, Reference] = {}
        self.resident: dict[str, Reference] = {}
        self.replaced: list[Reference] = []
        self.fresh: set[str] = set()
        self.pending = DispatchPendingList[Reference](prioritized=isinstance(order, Priority))
        self.subscribers = Subscribers(GROUP_MAPS[parameters.groups](), parameters.pages)
        self.browsers = Browsers()
        self.parked: dict[str, Message] = {}
        self.late: Late | None = None
        self.last_waits = False
        self.cursor, self.arrivals = storage.open(definition, self.memory, self)

    # Arriving.

    def enqueue(self, message: Message, times: Times | None = None) -> None:
        """Accept a message, or park it until there is memory for it."""
        assert times is None, "here nothing has a time"
        self._give_what_is_late()
        self.last_waits = bool(self.parked) or self._must_wait(message)
        if self.last_waits:
            self.parked[message.id] = message
        else:
            self._take_in(message)
        self.wake_up()

    def has_parked_last(self) -> bool:
        """Return whether the last published message had to wait for memory."""
        return self.last_waits

    def _must_wait(self, message: Message) -> bool:
        if self.parameters.flow == "full":
            return self.memory.usage.is_full()
        if self._is_kept(message) or isinstance(self.cursor.levels[0].transient, FileCursor):
            return False
        return not self.memory.fits(self.memory.size_of(message))

    def _is_kept(self, message: Message) -> bool:
        return self.durable and message.persistent

    def _take_in(self, message: Message) -> None:
        kept = self._is_kept(message)
        self.arrivals += 1
        stored = Stored(self.arrivals, message)
        self.cursor.add_last(stored, level_of(message.priority, self.order), kept=kept)
        if kept:
            self.storage.sync()

    def _take_parked(self) -> bool:
        """Accept parked messages in order, while there is memory (AMQ-2523)."""
        were = len(self.parked)
        for name, message in list(self.parked.items()):
            if self._must_wait(message):
                break
            del self.parked[name]
            self._take_in(message)
            self.outbox.tell(Accepted(message=name))
        return len(self.parked) < were

    # Waking up.

    def wake_up(self) -> None:
        """Run passes until nothing moves; 5.1 runs one pass for each event."""
        while self._pass() and self.parameters.passes == "again":
            pass

    def _pass(self, *, forced: bool = False) -> bool:
        """Deliver paged-in messages, then page in as there is room; return whether any moved.

        In 5.1 a `forced` pass reads on where the size says that nothing is pending.
        """
        page = self.parameters.page
        moved = self._take_parked()
        moved |= self._give_what_is_late()
        first = self.pending.first()
        if first is not None and self._is_cursor_more_urgent_than(first):
            moved |= self._page_in(self.subscribers.room(page), above=True)
        moved |= self._dispatch()
        wanted = self.subscribers.wanted(page, len(self.pending), len(self.paged_in))
        if (forced or not self.cursor.is_empty()) and self._page_in(wanted):
            moved = True
            if self.parameters.detached == "accepted":
                # Outside of any lock, with the consumers of that time: they may have left by then.
                self.late = Late(self._take_fresh(), list(self.subscribers))
                return False
            self._dispatch()
        self.fresh.clear()
        return self._show() or moved

    def _show(self) -> bool:
        """Show browsers new messages; while one has room, all pending messages are paged in."""
        if not self.browsers.want_more():
            return False
        while (reference := self.cursor.take_next(self.parameters.page)) is not None:
            self._is_paged_in(reference)
            # No consumer is given it in this pass.
            self.fresh.clear()
        return self.browsers.show(self.pending.values, self._send_to_browser)

    def _send_to_browser(self, browser: RankedConsumer, reference: Reference) -> None:
        self._load(reference)
        self.outbox.send(browser, reference)

    def _is_cursor_more_urgent_than(self, reference: Reference) -> bool:
        return self.parameters.levels == "apart" and self.cursor.level() > reference.level

    def _page_in(self, wanted: int, *, above: bool = False) -> bool:
        """Page in up to `wanted` messages; with `above`, of the highest level only."""
        level = self.cursor.level()
        moved = False
        for left in range(wanted, 0, -1):
            if above and self.cursor.level() != level:
                break
            reference = self.cursor.take_next(left)
            if reference is None:
                break
            moved |= self._is_paged_in(reference)
        return moved

    def _is_paged_in(self, reference: Reference) -> bool:
        """Register a paged-in message; return False if it was paged in already."""
        if reference.id in self.paged_in and self.parameters.paged == "checked":
            assert reference.content is not None, "what is paged in is in memory"
            reference.content.release()
            return False
        if reference.id in self.paged_in:
            self.replaced.append(self.paged_in[reference.id])
        self.paged_in[reference.id] = reference
        self.resident[reference.id] = reference
        self.pending.remove(reference)
        self.pending.add_last(reference)
        self.fresh.add(reference.id)
        self.browsers.note_available(reference)
        return True

    def _take_fresh(self) -> list[Reference]:
        taken = [each for each in self.pending.paged_in if each.id in self.fresh]
        for each in taken:
            self.pending.remove(each)
        self.fresh.clear()
        return taken

    def others(self, cursor: GivesWay) -> Iterator[GivesWay]:
        """Yield the parts that give way to a message that a cursor reads: held messages first."""
        yield self
        for each in self.cursor.cursors():
            if each is not cursor:
                yield each

    def give_way(self) -> bool:
        """Drop the content of a message that is not being delivered; return whether there was one.

        A consumer holds it, or held it. It is read again if it comes back.
        """
        if self.parameters.in_flight == "stays":
            return False
        for reference in self.resident.values():
            if reference.id not in self.fresh and self.cursor.of(reference).can_let_go(reference):
                self._let_go(reference)
                return True
        return False

    def _let_go(self, reference: Reference) -> None:
        """Drop the content of a message, if it is in memory."""
        if reference.content is not None:
            reference.content.release()
            reference.content = None
            reference.message = without_content(reference.message)
            if self.resident.get(reference.id) is reference:
                del self.resident[reference.id]

    # Giving out.

    def _dispatch(self) -> bool:
        """Deliver paged-in messages to the consumers next in line; return whether any was given.

        A message that no consumer may take now stays, and does not block those behind it.
        """
        given = []
        try:
            for reference in self.pending:
                if not self.subscribers.room(1) or self._is_cursor_more_urgent_than(reference):
                    break
                subscriber = self.subscribers.subscriber_of(reference.message)
                if subscriber is not None:
                    given.append(reference)
                    self._hand_out(reference, subscriber)
        finally:
            # Remove afterwards: a list must not change during an iteration, and a copy would cost.
            for reference in given:
                self.pending.remove(reference)
        return bool(given)

    def _hand_out(self, reference: Reference, subscriber: RankedConsumer) -> None:
        has_room = subscriber.allocate_credit(reference)
        assert has_room, "whose turn it is has room"
        self._load(reference)
        self.browsers.note_given(reference)
        if subscriber.mode.settled_when_sent:
            self._forget(reference)
            self._sync_for([reference])
        else:
            reference.owner = subscriber
            self.subscribers.unacknowledged += 1
        self.outbox.send(subscriber, reference)

    def _load(self, reference: Reference) -> None:
        """Load the content of a message; anything else in memory gives way."""
        fresh, self.fresh = self.fresh, {reference.id}
        self.cursor.of(reference).load(reference, self.others(self))
        self.resident[reference.id] = reference
        fresh.discard(reference.id)
        self.fresh = fresh

    def _give_what_is_late(self) -> bool:
        """Deliver the messages of an earlier pass to the consumers of that time (AMQ-1738)."""
        if self.late is None:
            return False
        late, self.late = self.late, None
        for reference in late.references:
            subscriber = next((each for each in late.consumers if _takes_late(each)), None)
            if subscriber is None:
                self.pending.remove(reference)
                self.pending.add_last(reference)
            elif subscriber.is_closed():
                # The consumer has left: it holds the message for ever, unknown to any client.
                reference.owner = subscriber
                self.browsers.note_given(reference)
            else:
                late.consumers.remove(subscriber)
                late.consumers.append(subscriber)
                self._hand_out(reference, subscriber)
        return True

    def credit_restored(self) -> None:
        """Do nothing: consumers of this system share no window."""

    # Consumers.

    def subscribe(self, subscription: RankedConsumer, others: Sequence[CursorQueue] = ()) -> bool:
        """Add a consumer to the line and serve it; return whether it was accepted."""
        assert not others, "here a consumer is of one queue"
        # An exclusive consumer may join others, and others may join it.
        alone = False
        if not self.registrations.enter(alone):
            return False
        self._give_what_is_late()
        subscription.open()
        if subscription.mode.acquires:
            self.subscribers.add(subscription)
        else:
            self.browsers.add(subscription, self.paged_in.values())
        if self.parameters.passes == "once":
            # One pass at once, and one for the wake-up.
            self._pass(forced=True)
        self.wake_up()
        return True

    def unsubscribe(self, subscription: RankedConsumer) -> bool:
        """Remove a consumer and free its groups; it keeps the deliveries that it holds."""
        was_there = self._leave(subscription)
        if was_there:
            self.wake_up()
        return was_there

    def _leave(self, subscription: RankedConsumer) -> bool:
        """Remove a consumer; after the last one the cursor drops its batch (5.1, 5.2)."""
        is_browser = self.browsers.remove(subscription)
        if not (is_browser or self.subscribers.remove(subscription)):
            return False
        subscription.close()
        self.registrations.leave()
        subscription.leave_channel()
        if not is_browser and not len(self.subscribers) and self.parameters.leaving == "clears":
            self.cursor.clear()
        return True

    def get(self, channel: str, mode: Mode) -> bool:
        """Give the first message to a `get`, ahead of all consumers in line."""
        subscriber = self.new_subscription(Terms(channel, mode, Window(1)))
        subscriber.open()
        self._give_what_is_late()
        first = self.pending.first()
        if first is None or self._is_cursor_more_urgent_than(first):
            self._page_in(1)
            first = self.pending.first()
        if first is not None:
            self.pending.remove(first)
            self._hand_out(first, subscriber)
        self.fresh.clear()
        subscriber.close()
        self.wake_up()
        return first is not None

    def set_limits(
        self, subscription: RankedConsumer, limit: int | None, byte_limit: int | None
    ) -> None:
        """Replace a consumer's window."""
        self._give_what_is_late()
        subscription.set_limits(limit, byte_limit)
        self.wake_up()

    # Settling.

    def remove(self, entry: Reference, subscription: RankedConsumer) -> None:
        """Settle a delivery for good."""
        self._give_what_is_late()
        self._forget(entry)
        self.subscribers.unacknowledged -= 1
        self._sync_for([entry])
        subscription.restore_credit(entry)
        self.wake_up()

    def _forget(self, reference: Reference) -> None:
        """Remove a paged-in message from memory and disk."""
        cursor = self.cursor.of(reference)
        cursor.remove(reference)
        if self.paged_in.get(reference.id) is reference:
            del self.paged_in[reference.id]
        elif reference in self.replaced:
            self.replaced.remove(reference)
        self.browsers.note_gone(reference)
        self._let_go(reference)

    def _sync_for(self, references: Iterable[Reference]) -> None:
        if any(each.kept for each in references):
            self.storage.sync()

    def release(self, deliveries: Iterable[tuple[Reference, RankedConsumer]]) -> None:
        """Return messages, in their order, ahead of all that was never given out (AMQ-2719)."""
        self._give_what_is_late()
        for reference, subscriber in deliveries:
            reference.owner = None
            reference.redelivered = True
            # Of two references to one message (AMQ-1957), the later one is delivered again.
            self.pending.remove(reference)
            self.pending.add_for_redelivery([reference])
            self.browsers.note_available(reference)
            subscriber.restore_credit(reference)
        self.wake_up()

    def purge(self) -> None:
        """Drop the available messages for good."""
        self._give_what_is_late()
        dropped = self.pending.values()
        for reference in dropped:
            self.pending.remove(reference)
            self._forget(reference)
        self.cursor.purge()
        self.storage.sync()
        self.wake_up()

    def come_to_rest(self, *, drained: bool) -> None:
        """At a drain, deliver late messages until there are none."""
        while drained and self._give_what_is_late():
            self.wake_up()

    def drop_everything(self) -> list[RankedConsumer]:
        """Remove all consumers and drop all messages, held ones too."""
        self.late = None
        leaving = [each for each in self._all_consumers() if self._leave(each)]
        for reference in (*self.paged_in.values(), *self.replaced):
            reference.is_gone = True
        self.paged_in.clear()
        self.replaced.clear()
        self.pending.clear()
        self.parked.clear()
        self.outbox.forget_what_has_gone()
        self.storage.delete(self.name, self.order)
        return leaving

    def _all_consumers(self) -> list[RankedConsumer]:
        return [*self.subscribers, *(each.consumer for each in self.browsers)]


def _takes_late(consumer: Consumer) -> bool:
    return consumer.is_closed() or not consumer.is_suspended()
