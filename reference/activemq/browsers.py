"""The browsers of an ActiveMQ queue; a browser is shown no message twice.

Owns, for each browser, the messages still to be shown and the messages it has passed. The queue
reports which messages are paged in, given out, returned and gone.

Browsing removes nothing. A browser has passed a message that a consumer holds when the browser
arrives, or is given later; when that message returns, the browser is not shown it.

Source: ActiveMQ's browser subscriptions, current, which keep an exact set of seen messages. There a
browser ends when a pass finds nothing new, and also sees messages that consumers hold. Here it
stays until it leaves, and sees available messages and arrivals (driver protocol 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from brokerproof.reference.activemq.memory.references import Reference
    from brokerproof.reference.front.consumers import RankedConsumer


class Browser:
    """One browser; `unseen` has the messages to show, `passed` those not to show again."""

    __slots__ = ("consumer", "passed", "unseen")

    def __init__(self, consumer: RankedConsumer, paged_in: Iterable[Reference]) -> None:
        self.consumer = consumer
        self.unseen: dict[str, Reference] = {}
        self.passed: set[str] = set()
        for reference in paged_in:
            if reference.owner is None:
                self.unseen[reference.id] = reference
            else:
                self.passed.add(reference.id)


class Browsers:
    """All browsers of one queue, in the order of their arrival."""

    __slots__ = ("there",)

    def __init__(self) -> None:
        self.there: list[Browser] = []

    def __len__(self) -> int:
        return len(self.there)

    def __iter__(self) -> Iterator[Browser]:
        return iter(self.there)

    def add(self, consumer: RankedConsumer, paged_in: Iterable[Reference]) -> None:
        """Add a browser; it will see the messages that are paged in and not held."""
        self.there.append(Browser(consumer, paged_in))

    def remove(self, consumer: RankedConsumer) -> bool:
        """Remove a browser; return whether it was present."""
        left = [each for each in self.there if each.consumer is not consumer]
        was_there = len(left) < len(self.there)
        self.there = left
        return was_there

    def note_available(self, reference: Reference) -> None:
        """Note that a message is available, because it was paged in or returned."""
        for browser in self.there:
            if reference.id not in browser.passed:
                browser.unseen[reference.id] = reference

    def note_given(self, reference: Reference) -> None:
        """Note that a consumer was given a message: every browser has passed it."""
        for browser in self.there:
            browser.unseen.pop(reference.id, None)
            browser.passed.add(reference.id)

    def note_gone(self, reference: Reference) -> None:
        """Note that a message has left the queue."""
        for browser in self.there:
            browser.unseen.pop(reference.id, None)
            browser.passed.discard(reference.id)

    def want_more(self) -> bool:
        """Return whether a browser with room is present."""
        return any(not each.consumer.is_suspended() for each in self.there)

    def show(
        self,
        in_order: Callable[[], Iterable[Reference]],
        send: Callable[[RankedConsumer, Reference], None],
    ) -> bool:
        """Show each browser its unseen messages, in the queue's order; return whether any was."""
        shown = False
        for browser in self.there:
            if not browser.unseen or browser.consumer.is_suspended():
                continue
            # Usually a single arrival is unseen, and then the queue's order need not be computed.
            unseen: Iterable[Reference] = browser.unseen.values()
            if len(browser.unseen) > 1:
                unseen = [each for each in in_order() if each.id in browser.unseen]
            for reference in list(unseen):
                del browser.unseen[reference.id]
                browser.passed.add(reference.id)
                send(browser.consumer, reference)
                shown = True
        return shown

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for browsers that behave alike, consumers apart."""
        return tuple([(frozenset(each.unseen), frozenset(each.passed)) for each in self.there])
