"""The contract: the behaviours that a conforming broker may show.

The oracle that follows a running broker reads this text, and each documented algorithm refines it.
The label of a guard is a requirement's id: an event whose guard is false breaks that requirement.

Two rules let the oracle keep the possible statuses of each entry separately without loss. A guard
relates the action's own entry to at most one other entry at a time. No guard counts entries: a
counter, changed by each action, has the number that a consumer holds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from brokerproof.models.contract.core_state import (
    Channel,
    Consumer,
    ContractState,
    Entry,
    Mode,
    Origin,
    Queue,
    Status,
)
from brokerproof.models.language import (
    Bool,
    action,
    exercises,
    exists,
    forall,
    ite,
    require,
)

__all__ = ["Channel", "Consumer", "Contract", "Entry", "Mode", "Origin", "Queue", "Status"]


class Contract(ContractState):
    """The behaviours that a conforming broker may show."""

    # The actions of clients.

    @action
    def publish(self, entry: Entry) -> None:
        """The broker has taken responsibility for a message, the last of its level.

        An arrival ahead of other entries takes a browser back to it, in the documents' own loop on
        arrival. The browser then shows the arrival and the entries behind it once more, so none of
        these is certainly behind the browser's place any more. That is why "shown once" is only a
        SHOULD for a browser of a priority queue.
        """
        require(~self.has_arrived(entry))
        require(~exists(Entry, lambda f: self.has_arrived_behind(entry, f)))
        self.status[entry] = Status.AVAILABLE
        self._stands_last(entry)

        def walked_once_more(c: Consumer, f: Entry) -> Bool:
            here = self.home[f] == self.home[entry]
            from_there_on = here & ((f == entry) | self.precedes(entry, f))
            return from_there_on & ~self.fifo[self.home[f]] & self.consuming[c]

        self.may_repeat = self.may_repeat.map(lambda c, f, old: old | walked_once_more(c, f))
        self.behind = self.behind.map(lambda c, f, old: old & ~walked_once_more(c, f))

    @action
    def consume(self, consumer: Consumer) -> None:
        """A client subscribes; a new browser need not be shown acquired or settled entries."""
        require(~self.consuming[consumer])
        self.consuming[consumer] = True
        self.excused = self.excused.map(
            lambda c, f, old: (
                old | ((c == consumer) & (self.mode[c] == Mode.BROWSE) & self.taken(f))
            )
        )

    @action
    def cancel(self, consumer: Consumer) -> None:
        """A client cancels a consumer; the messages that it holds stay acquired."""
        require(self.can_be_cancelled(consumer))
        self.consuming[consumer] = False

    @action
    def acknowledge(self, entry: Entry) -> None:
        """A client acknowledges a delivery: the message is settled."""
        require(self.status[entry] == Status.ACQUIRED)
        self.status[entry] = Status.DEQUEUED
        self._gives_back_credit(entry)

    @action
    def reject(self, entry: Entry) -> None:
        """A client rejects a delivery: the message is discarded."""
        require(self.status[entry] == Status.ACQUIRED)
        self.status[entry] = Status.DEQUEUED
        self._gives_back_credit(entry)

    @action
    def release(self, entry: Entry) -> None:
        """A client releases a delivery: the message returns to the queue."""
        require(self.status[entry] == Status.ACQUIRED)
        self.status[entry] = Status.AVAILABLE
        self.origin[entry] = Origin.RELEASED
        self.came_back = self.came_back.map(
            lambda c, f, old: old | ((f == entry) & self.behind[c, f])
        )
        self._gives_back_credit(entry)

    @action
    def settle_again(self, entry: Entry) -> None:
        """A client settles a delivery again that is already settled: nothing changes."""
        require(self.status[entry] != Status.ABSENT)
        exercises("settled-once")
        self.meddled[entry] = True

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel closes: its consumers leave and their messages are released, as one step."""
        goes_back = functools.partial(self.goes_back, which)
        exercises("close-releases", exists(Entry, goes_back))
        self.came_back = self.came_back.map(
            lambda c, e, old: old | (goes_back(e) & self.behind[c, e])
        )
        self.origin = self.origin.map(lambda e, old: ite(goes_back(e), Origin.CLOSED, old))
        self.unsettled = self.unsettled.map(lambda c, old: ite(self.channel[c] != which, old, 0))
        self.consuming = self.consuming.map(lambda c, old: old & (self.channel[c] != which))
        self.status = self.status.map(lambda e, old: ite(goes_back(e), Status.AVAILABLE, old))

    def _stops(self, is_lost: Callable[[Entry], Bool]) -> None:
        """Stop, and restart without the lost entries; what was acquired is available again."""
        self.status = self.status.map(lambda e, old: ite(is_lost(e), Status.DEQUEUED, old))
        self.status = self.status.map(
            lambda _, old: ite(old == Status.ACQUIRED, Status.AVAILABLE, old)
        )
        self.consuming.fill(False)
        self.unsettled.fill(0)

    def _gives_back_credit(self, entry: Entry) -> None:
        consumer = self.holder[entry]
        self.unsettled = self.unsettled.map(lambda c, old: ite(c == consumer, old - 1, old))

    # The actions and reports of the broker.

    @action
    def deliver(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker delivers an entry to a consumer that is no browser."""
        require(self.mode[consumer] != Mode.BROWSE)
        require(self.consuming[consumer], "only-to-subscribers")
        self._requires_a_true_account(consumer, entry, redelivered)
        self._requires_the_first(consumer, entry)
        self._requires_room(consumer, entry)
        exercises("nothing-lost", self.origin[entry] == Origin.PUBLISHED)
        self._takes(consumer, entry)
        self.served[consumer] = True

    @action
    def get(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker answers a get with the first available entry."""
        require((self.mode[consumer] != Mode.BROWSE) & ~self.limited[consumer])
        self._requires_a_true_account(consumer, entry, redelivered)
        self._requires_the_first(consumer, entry)
        exercises("nothing-lost", self.origin[entry] == Origin.PUBLISHED)
        exercises("get-finds")
        self._takes(consumer, entry)

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """The broker answers a get without a message."""
        require(forall(Entry, lambda f: ~self.is_missed(consumer, f)), "get-finds")
        exercises("nothing-twice", exists(Entry, lambda f: self.wants[consumer, f] & self.taken(f)))
        exercises("right-queue", exists(Entry, lambda f: self.elsewhere_for(consumer, f)))

    @action
    def browse(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker shows an entry to a browser.

        A browser's place is not visible. The browser may have passed any entry that was taken while
        it was there, so such an entry is `excused` from being shown. It has certainly passed the
        entries that it was shown, and the excused entries before them: these are `behind`. On a
        priority queue an arrival may take the place back.
        """
        require(self.mode[consumer] == Mode.BROWSE)
        require(self.consuming[consumer], "only-to-subscribers")
        require(self.concerns(consumer, entry), "right-queue")
        require(self.status[entry] != Status.ABSENT, "nothing-invented")
        require(self.can_be_shown(consumer, entry), "browser-sees-available")
        in_order = self.fifo[self.home[entry]]
        again = self.behind[consumer, entry] & ~self.may_repeat[consumer, entry]
        came_back = self.came_back[consumer, entry]
        require(~(again & came_back), "browser-never-rewound")
        require(~(again & ~came_back & in_order), "browser-once")
        require(
            ~(self.shown[consumer, entry] & ~(again & came_back) & ~in_order),
            "browser-once-by-priority",
        )
        require(
            forall(
                Entry,
                lambda f: (
                    ~(self.is_overtaken(consumer, f, entry) & ~self.excused[consumer, f] & in_order)
                ),
            ),
            "browser-in-order",
        )
        self._requires_room(consumer, entry)
        require(self.is_shown_as(consumer, entry, redelivered), "redelivered-flag")
        exercises("redelivered-flag", self.has_returned(entry))
        exercises("browser-sees-all")
        exercises(
            "browser-in-order",
            in_order & exists(Entry, lambda f: self.later_for(consumer, entry, f)),
        )
        exercises(
            "browser-sees-available",
            exists(Entry, lambda f: self.wants[consumer, f] & self.taken(f)),
        )

        def left_behind(c: Consumer, f: Entry) -> Bool:
            shown_for_good = (f == entry) & ~self.may_repeat[c, f]
            passed = self.precedes(f, entry) & self.excused[c, f]
            return (c == consumer) & (shown_for_good | passed)

        self.behind = self.behind.map(lambda c, f, old: old | left_behind(c, f))
        self.excused[consumer, entry] = True
        # An arrival may be shown before it takes the place back, and then once more.
        self.may_repeat[consumer, entry] = (
            self.may_repeat[consumer, entry] & ~self.shown[consumer, entry]
        )
        self.shown[consumer, entry] = True
        self.served[consumer] = True

    @action
    def quiesce(self) -> None:
        """The broker reports that no further event follows until a client acts."""
        self._requires_rest(self.there_for)

    def _requires_rest(self, is_next: Callable[[Consumer, Entry], Bool]) -> None:
        """Require that no delivery is owed.

        `is_next` says what a consumer reaches without waiting.
        """

        def owed(c: Consumer, f: Entry) -> Bool:
            return self.takes(c) & self.must_take(c, f) & is_next(c, f)

        require(
            forall(Consumer, Entry, lambda c, f: ~(owed(c, f) & self.works_within_a_window(c))),
            "credit-used",
        )
        require(
            forall(Consumer, Entry, lambda c, f: ~(owed(c, f) & ~self.works_within_a_window(c))),
            "quiescence",
        )
        require(
            forall(
                Consumer,
                Entry,
                lambda c, f: (
                    ~(self.looks(c) & self.must_take(c, f) & is_next(c, f) & ~self.excused[c, f])
                ),
            ),
            "browser-sees-all",
        )
        self._exercises_subscribers_at_rest()
        self._exercises_browsers_at_rest()

    def _exercises_subscribers_at_rest(self) -> None:
        def was_given(c: Consumer, f: Entry) -> Bool:
            return self.takes(c) & self.has_room(c, f) & self.wants[c, f] & self.taken(f)

        _at_rest("quiescence", lambda c, f: was_given(c, f) & ~self.works_within_a_window(c))
        _at_rest("credit-used", lambda c, f: was_given(c, f) & self.works_within_a_window(c))
        _at_rest("nothing-twice", was_given)
        _at_rest(
            "credit-not-exceeded",
            lambda c, f: self.consuming[c] & ~self.has_messages_left(c) & self.there_for(c, f),
        )
        _at_rest(
            "only-to-subscribers",
            lambda c, f: ~self.consuming[c] & self.served[c] & self.there_for(c, f),
        )
        _at_rest(
            "right-queue",
            lambda c, f: self.consuming[c] & self.elsewhere_for(c, f),
        )

    def _exercises_browsers_at_rest(self) -> None:
        def would_see_again(c: Consumer, f: Entry) -> Bool:
            seen = self.there_for(c, f) & self.shown[c, f]
            return self.looks(c) & self.has_room(c, f) & seen

        _at_rest("browser-never-rewound", lambda c, f: would_see_again(c, f) & self.came_back[c, f])
        _at_rest("browser-once", lambda c, f: would_see_again(c, f) & self.fifo[self.home[f]])
        _at_rest(
            "browser-once-by-priority",
            lambda c, f: would_see_again(c, f) & ~self.fifo[self.home[f]],
        )

    @action
    def rest(self) -> None:
        """The broker can do nothing more by itself without breaking a MUST."""
        require(
            forall(
                Consumer,
                Entry,
                lambda c, f: (
                    ~(
                        self.consuming[c]
                        & self.has_room(c, f)
                        & self.there_for(c, f)
                        & ((self.mode[c] != Mode.BROWSE) | self.may_be_shown(c, f))
                    )
                ),
            )
        )

    @action
    def final_drain(self, consumer: Consumer) -> None:
        """Final drain check, after a consumer without limits took all that it was given.

        All other channels were closed before. A message that is still available is lost; its
        history decides which requirement that breaks.
        """

        def is_there(f: Entry) -> Bool:
            return self.there_for(consumer, f)

        remains: Callable[[Entry], Bool] = is_there
        for label, has_happened in self.histories():
            self._requires_none(label, remains, has_happened)
            remains = self._without(remains, has_happened)
        require(forall(Entry, lambda f: ~remains(f)), "nothing-lost")

    def histories(self) -> tuple[tuple[str, Callable[[Entry], Bool]], ...]:
        """Return the requirements that a lost message can break, by what had happened to it."""
        return (
            ("settled-once", lambda f: self.meddled[f]),
            ("close-releases", lambda f: self.origin[f] == Origin.CLOSED),
            ("browser-takes-nothing", lambda f: exists(Consumer, lambda c: self.shown[c, f])),
        )

    @staticmethod
    def _requires_none(
        label: str, remaining: Callable[[Entry], Bool], has_happened: Callable[[Entry], Bool]
    ) -> None:
        require(forall(Entry, lambda f: ~(remaining(f) & has_happened(f))), label)

    @staticmethod
    def _without(
        remaining: Callable[[Entry], Bool], has_happened: Callable[[Entry], Bool]
    ) -> Callable[[Entry], Bool]:
        return lambda f: remaining(f) & ~has_happened(f)

    # Guards that several actions share.

    def _requires_a_true_account(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        require(self.concerns(consumer, entry), "right-queue")
        require(self.status[entry] != Status.ABSENT, "nothing-invented")
        require(~(self.is_held_or_settled(entry) & ~self.meddled[entry]), "nothing-twice")
        require(~(self.is_held_or_settled(entry) & self.meddled[entry]), "settled-once")
        require(self.is_told_as(entry, redelivered), "redelivered-flag")
        exercises("nothing-invented")
        exercises("right-queue", exists(Entry, lambda f: self.elsewhere_for(consumer, f)))
        exercises("redelivered-flag", self.has_returned(entry))
        exercises("browser-takes-nothing", exists(Consumer, lambda c: self.shown[c, entry]))

    def _requires_the_first(self, consumer: Consumer, entry: Entry) -> None:
        """Name each kind of overtaking: of a returned entry, a more urgent one, an older one."""

        def overtaken(f: Entry) -> Bool:
            return self.is_overtaken(consumer, f, entry)

        def is_placed(f: Entry) -> Bool:
            return self.knows_places() | ~(self.has_returned(f) | self.has_returned(entry))

        def came_back_to_its_place(f: Entry) -> Bool:
            return self.has_returned(f) & self.returns_to_place

        def more_urgent(f: Entry) -> Bool:
            return self.level[f] > self.level[entry]

        require(
            forall(Entry, lambda f: ~(overtaken(f) & came_back_to_its_place(f))),
            "release-rewinds",
        )
        require(
            forall(
                Entry,
                lambda f: (
                    ~(overtaken(f) & ~came_back_to_its_place(f) & more_urgent(f) & is_placed(f))
                ),
            ),
            "priority-order",
        )
        require(
            forall(
                Entry,
                lambda f: (
                    ~(overtaken(f) & ~came_back_to_its_place(f) & ~more_urgent(f) & is_placed(f))
                ),
            ),
            "fifo-order",
        )

        def later(f: Entry) -> Bool:
            return self.later_for(consumer, entry, f)

        exercises("release-rewinds", self.has_returned(entry) & exists(Entry, later))
        level = self.level[entry]
        exercises("priority-order", exists(Entry, lambda f: later(f) & (self.level[f] < level)))
        exercises("fifo-order", exists(Entry, lambda f: later(f) & (self.level[f] == level)))

    def _requires_room(self, consumer: Consumer, entry: Entry) -> None:  # noqa: ARG002
        require(self.has_messages_left(consumer), "credit-not-exceeded")

    def _takes(self, consumer: Consumer, entry: Entry) -> None:
        keeps = self.mode[consumer] == Mode.ACKNOWLEDGE
        self.status[entry] = ite(keeps, Status.ACQUIRED, Status.DEQUEUED)
        self.holder[entry] = consumer
        self.excused = self.excused.map(
            lambda c, f, old: (
                old | ((f == entry) & self.consuming[c] & (self.mode[c] == Mode.BROWSE))
            )
        )
        self.unsettled = self.unsettled.map(
            lambda c, old: ite((c == consumer) & keeps, old + 1, old)
        )


def _at_rest(label: str, situation: Callable[[Consumer, Entry], Bool]) -> None:
    exercises(label, exists(Consumer, Entry, situation))


Contract.equivalent_mutants = """
The gate takes this step itself, and only where the guard allows it: no broker is judged.
    consume: guard 1; cancel: guard 1; settle_again: guard 1
Only the rows of browsers are read in `excused`.
    deliver: excused; get: excused; consume: excused
`came_back` is read only of entries behind the browser's place.
    release: came_back; close_channel: came_back
A browser is owed the same whether or not it has begun to use its window.
    browse: served
The gate asks this to know when to stop waiting; it is no step of a broker.
    rest: guard 1*12
The theorems on histories need it, and `test_bindings` compares it with the gate's facts.
    publish: guard 2; axiom order-is-by-level: dropped
"""
