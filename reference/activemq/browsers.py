"""The browsers of an ActiveMQ queue: who is shown what, and nothing twice.

Owns what each browser was shown, or need not be shown since somebody was given it meanwhile.
Refuses to know consumers and cursors: the queue says what is paged in, given out, returned, gone.

A browser takes nothing, and what it is shown stays where it is. What somebody has when it comes, or
is given while it is there, it has passed, and is not shown when that comes back.

Source: ActiveMQ's browser subscriptions, current, each of which has an exact set of what it has
seen. There a browser ends when a pass finds nothing new, and is shown what consumers have as well;
here it stays until it leaves, and is shown what is available, arrivals too (driver protocol 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from brokerproof.reference.activemq.cursors.references import Reference
    from brokerproof.reference.front.consumers import RankedConsumer


class Browser:
    """One browser; `unseen` is what it is to be shown, `passed` what it is not shown again."""

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
    """All browsers of one queue, in the order in which they came."""

    __slots__ = ("there",)

    def __init__(self) -> None:
        self.there: list[Browser] = []

    def __len__(self) -> int:
        return len(self.there)

    def __iter__(self) -> Iterator[Browser]:
        return iter(self.there)

    def add(self, consumer: RankedConsumer, paged_in: Iterable[Reference]) -> None:
        """Let a browser come, which is to be shown what is paged in and with nobody."""
        self.there.append(Browser(consumer, paged_in))

    def remove(self, consumer: RankedConsumer) -> bool:
        """Let a browser leave; say whether it was there."""
        left = [each for each in self.there if each.consumer is not consumer]
        was_there = len(left) < len(self.there)
        self.there = left
        return was_there

    def note_available(self, reference: Reference) -> None:
        """Note that a message is available, paged in or returned."""
        for browser in self.there:
            if reference.id not in browser.passed:
                browser.unseen[reference.id] = reference

    def note_given(self, reference: Reference) -> None:
        """Note that a message was given to somebody: where it was is passed by then."""
        for browser in self.there:
            browser.unseen.pop(reference.id, None)
            browser.passed.add(reference.id)

    def note_gone(self, reference: Reference) -> None:
        """Note that a message is done with."""
        for browser in self.there:
            browser.unseen.pop(reference.id, None)
            browser.passed.discard(reference.id)

    def want_more(self) -> bool:
        """Whether somebody is there who looks at what there is."""
        return any(not each.consumer.is_suspended() for each in self.there)

    def show(
        self,
        in_order: Callable[[], Iterable[Reference]],
        send: Callable[[RankedConsumer, Reference], None],
    ) -> bool:
        """Show everybody what is unseen, in the queue's order; say whether anything was."""
        shown = False
        for browser in self.there:
            if not browser.unseen or browser.consumer.is_suspended():
                continue
            # Mostly it is one arrival, for which nobody has to go through the queue.
            unseen: Iterable[Reference] = browser.unseen.values()
            if len(browser.unseen) > 1:
                unseen = [each for each in in_order() if each.id in browser.unseen]
            for reference in list(unseen):
                del browser.unseen[reference.id]
                browser.passed.add(reference.id)
                send(browser.consumer, reference)
                shown = True
        return shown

    def fork(
        self,
        consumers: Mapping[RankedConsumer, RankedConsumer],
        copy_of: Callable[[Reference], Reference],
    ) -> Browsers:
        """Return the same of copies."""
        copy = Browsers()
        for original in self.there:
            browser = Browser(consumers[original.consumer], ())
            browser.unseen = {name: copy_of(each) for name, each in original.unseen.items()}
            browser.passed = original.passed.copy()
            copy.there.append(browser)
        return copy

    def fingerprint(self) -> Hashable:
        """Return what is equal for browsers that go on alike, beside the consumers themselves."""
        return tuple([(frozenset(each.unseen), frozenset(each.passed)) for each in self.there])
