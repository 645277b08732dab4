"""The queue in which every subscription keeps a pointer.

Sources: Qpid, Message Delivery (Subscriptions; Reject and Release) and Priority Queues.

A subscription keeps the last entry that it has seen and, if entries behind that were released, the
first of them (`released`). Its next entry is the released one if that is at or behind the last seen
one, otherwise the next in the list after the last seen one. The order is any strict total order in
which entries may arrive anywhere, so one proof serves every `QueueEntryList`, FIFO or priority.

The steps are those of the document with one thread: a return and the following pass over the
subscriptions are one step. An arrival that may be ahead of pointers takes several: it is offered
first, and the subscriptions look back only if none has taken it. Until then the queue delivers
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from brokerproof.models.language import (
    FALSE,
    TRUE,
    Bool,
    Enumeration,
    Family,
    Fixed,
    Map,
    Model,
    Order,
    Part,
    Relation,
    Steps,
    action,
    axiom,
    elements,
    exists,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    least,
    ranked,
    require,
)

IS_DELIVERED = "what-a-consumer-wants-is-delivered"
DELIVERED_BY = ("one-arrives-at-a-time", "pointer-passes-nothing-of-interest")


class Entry(Family):
    """A place in the queue's list; one of them is the dummy head."""


class Subscription(Family):
    """A consumer, a browser, or a get while it lasts."""


class Status(Enumeration):
    """The stage of an entry's life."""

    ABSENT: ClassVar[Status]
    AVAILABLE: ClassVar[Status]
    ACQUIRED: ClassVar[Status]
    DEQUEUED: ClassVar[Status]


class EntryList(Model):
    """A queue's list of entries in any strict total order."""

    head: Entry
    before: Order[Entry]

    status: Map[Entry, Status]

    @axiom("head-first")
    def head_first(self, e: Entry) -> Bool:
        """The dummy head is before every entry."""
        return (e == self.head) | self.before(self.head, e)

    @initial
    def empty(self) -> None:
        """No entry has arrived, and the head is never available."""
        self.status = self.status.map(
            lambda e, _: ite(e == self.head, Status.DEQUEUED, Status.ABSENT)
        )

    def in_list(self, e: Entry) -> Bool:
        """Whether the walk still finds the entry; an unlinked one is invisible."""
        return self.status[e].is_one_of(Status.AVAILABLE, Status.ACQUIRED)

    def at_or_before(self, e: Entry, f: Entry) -> Bool:
        """Whether e is f or before it."""
        return (e == f) | self.before(e, f)

    def follows(self, e: Entry, f: Entry) -> Bool:
        """Whether f is the first entry of the list after e."""
        return (
            self.in_list(f)
            & self.before(e, f)
            & ~exists(Entry, lambda g: self.in_list(g) & self.before(e, g) & self.before(g, f))
        )


class PointerQueue(EntryList):
    """Subscriptions that each keep a pointer into one queue of any order."""

    browser: Fixed[Subscription, Bool]

    holds: Relation[Subscription, Entry]
    shown: Relation[Subscription, Entry]
    overtaken: Map[Subscription, Bool]
    active: Map[Subscription, Bool]
    last_seen: Map[Subscription, Entry]
    rewound: Map[Subscription, Bool]
    released: Map[Subscription, Entry]
    arriving: Map[Entry, Bool]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no subscription exists."""
        super().empty()
        self.holds.fill(False)
        self.shown.fill(False)
        self.overtaken.fill(False)
        self.active.fill(False)
        self.last_seen.fill(self.head)
        self.rewound.fill(False)
        self.released.fill(self.head)
        self.arriving.fill(False)

    def only_arrival(self, entry: Entry) -> Bool:
        """Whether no other entry is just arriving."""
        return forall(Entry, lambda e: implies(self.arriving[e], e == entry))

    def nothing_arrives(self) -> Bool:
        """Whether no entry is just arriving."""
        return forall(Entry, lambda e: ~self.arriving[e])

    def is_wanted(self, consumer: Subscription, e: Entry) -> Bool:  # noqa: ARG002 (selectors look at it)
        """Whether the subscription wants the entry; here it wants every entry."""
        return TRUE

    def is_held_back(self, e: Entry) -> Bool:  # noqa: ARG002 (a clock looks at it)
        """Whether the entry's time has not come; here no entry has to wait."""
        return FALSE

    def can_have(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the entry is available and due, and the subscription wants it."""
        there = (self.status[e] == Status.AVAILABLE) & ~self.is_held_back(e)
        return there & self.is_wanted(consumer, e)

    def candidate(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether e is the next entry for the consumer."""
        back = self.rewound[consumer] & self.at_or_before(
            self.released[consumer], self.last_seen[consumer]
        )
        return ite(back, self.released[consumer] == e, self.follows(self.last_seen[consumer], e))

    @action
    def subscribe(self, consumer: Subscription) -> None:
        """A subscription starts at the head of the list."""
        require(~self.active[consumer])
        require(forall(Entry, lambda e: ~self.holds[consumer, e]))
        require(self.nothing_arrives())
        self.active[consumer] = True
        self.last_seen[consumer] = self.head
        self.rewound[consumer] = False
        self.overtaken[consumer] = False
        self.shown = self.shown.map(lambda c, _, old: old & (c != consumer))

    @action
    def unsubscribe(self, consumer: Subscription) -> None:
        """A subscription leaves; the entries that it holds stay acquired."""
        require(self.active[consumer])
        self.active[consumer] = False

    @action
    def append(self, entry: Entry) -> None:
        """An entry arrives behind all others, so no pointer can be ahead of it."""
        require(self.status[entry] == Status.ABSENT)
        require(
            forall(Entry, lambda e: implies(self.status[e] != Status.ABSENT, self.before(e, entry)))
        )
        self.status[entry] = Status.AVAILABLE

    @action
    def insert(self, entry: Entry) -> None:
        """An entry arrives anywhere, and is offered to subscriptions with nothing before it."""
        require(self.status[entry] == Status.ABSENT)
        require(self.nothing_arrives())
        self.status[entry] = Status.AVAILABLE
        self.arriving[entry] = True

    @action
    def look_back(self, entry: Entry) -> None:
        """If no subscription took an offered arrival, every subscription looks back at it.

        This includes browsers, even those that were just shown it.
        """
        require(self.arriving[entry])
        self.arriving[entry] = False
        still_there = self.status[entry] == Status.AVAILABLE
        self.overtaken = self.overtaken.map(
            lambda consumer, old: old | (still_there & self.browser[consumer])
        )
        self._rewind_to(entry, browsers=True, unless=~still_there)

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate is available: the subscription acquires it and gets it (deliverMessage)."""
        require(self.active[consumer] & ~self.browser[consumer])
        require(self.candidate(consumer, entry))
        require(self.can_have(consumer, entry))
        require(self.only_arrival(entry))
        self.status[entry] = Status.ACQUIRED
        self.holds[consumer, entry] = True
        self._move_to(consumer, entry)

    @action
    def browse(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate is available: the browser is shown it and takes nothing."""
        require(self.active[consumer] & self.browser[consumer])
        require(self.candidate(consumer, entry))
        require(self.can_have(consumer, entry))
        require(self.only_arrival(entry))
        self.shown[consumer, entry] = True
        self._move_to(consumer, entry)

    @action
    def pass_over(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate is not available: the pointer moves onto it and forgets `released`."""
        require(self.active[consumer])
        require(self.candidate(consumer, entry))
        require(~self.can_have(consumer, entry))
        self.last_seen[consumer] = entry
        self.rewound[consumer] = False

    @action
    def acknowledge(self, consumer: Subscription, entry: Entry) -> None:
        """The entry is settled and leaves the list."""
        require(self.holds[consumer, entry])
        self.status[entry] = Status.DEQUEUED
        self.holds[consumer, entry] = False

    @action
    def release(self, consumer: Subscription, entry: Entry) -> None:
        """The entry returns to its place, and consumers past it come back; browsers do not."""
        require(self.holds[consumer, entry])
        self.status[entry] = Status.AVAILABLE
        self.holds[consumer, entry] = False
        self._rewind_to(entry, browsers=False)

    def _move_to(self, consumer: Subscription, entry: Entry) -> None:
        self.rewound[consumer] &= self.released[consumer] != entry
        self.last_seen[consumer] = entry

    def _rewind_to(self, entry: Entry, *, browsers: bool, unless: Bool = FALSE) -> None:
        """Set `released` to the earlier of its value and the entry: the result of the loop."""

        def concerned(consumer: Subscription) -> Bool:
            return ~unless & self.active[consumer] & (~self.browser[consumer] | browsers)

        def earlier(consumer: Subscription) -> Bool:
            return ~self.rewound[consumer] | self.before(entry, self.released[consumer])

        self.released = self.released.map(
            lambda consumer, old: ite(concerned(consumer) & earlier(consumer), entry, old)
        )
        self.rewound = self.rewound.map(lambda consumer, old: old | concerned(consumer))

    @invariant("head-is-never-had")
    def head_dequeued(self) -> Bool:
        """The dummy head stays dequeued."""
        return self.status[self.head] == Status.DEQUEUED

    @invariant("pointers-know-their-entries")
    def pointers_known(self, consumer: Subscription) -> Bool:
        """A pointer stands on the head or on an entry that has arrived."""
        return (self.status[self.last_seen[consumer]] != Status.ABSENT) & (
            self.status[self.released[consumer]] != Status.ABSENT
        )

    @invariant("held-is-acquired")
    def held_is_acquired(self) -> Bool:
        """An entry that a subscription holds is acquired, and no other subscription holds it."""
        return forall(
            Subscription,
            Entry,
            lambda consumer, e: implies(self.holds[consumer, e], self.status[e] == Status.ACQUIRED),
        ) & forall(
            Subscription,
            Subscription,
            Entry,
            lambda consumer, other, e: implies(
                self.holds[consumer, e] & self.holds[other, e], consumer == other
            ),
        )

    def is_for_all(self, e: Entry) -> Bool:
        """Whether the entry is available, due, and known to all subscriptions."""
        return (self.status[e] == Status.AVAILABLE) & ~self.arriving[e] & ~self.is_held_back(e)

    @invariant("one-arrives-at-a-time")
    def one_arrives(self, e: Entry, f: Entry) -> Bool:
        """No two entries are just arriving."""
        return implies(self.arriving[e] & self.arriving[f], e == f)

    @invariant("pointer-passes-nothing-of-interest")
    def passes_nothing(self, consumer: Subscription, e: Entry) -> Bool:
        """An available entry is ahead of each consumer's pointer, or of where that returns to.

        Only for subscriptions that want the entry.
        """
        return implies(
            self.active[consumer]
            & ~self.browser[consumer]
            & self.is_for_all(e)
            & self.is_wanted(consumer, e),
            self.before(self.last_seen[consumer], e)
            | (self.rewound[consumer] & self.at_or_before(self.released[consumer], e)),
        )

    @invariant("candidate-is-first")
    def candidate_is_first(self, consumer: Subscription, e: Entry, f: Entry) -> Bool:
        """No available entry that a consumer wants is before its candidate."""
        return implies(
            self.active[consumer] & ~self.browser[consumer] & self.candidate(consumer, e),
            ~(self.is_for_all(f) & self.is_wanted(consumer, f) & self.before(f, e)),
        )

    @invariant("browser-shown-once-in-order")
    def browser_goes_forward(self, consumer: Subscription, e: Entry) -> Bool:
        """Without an arrival ahead of others, an entry shown to a browser stays behind it."""
        return implies(
            self.active[consumer] & self.browser[consumer] & ~self.overtaken[consumer],
            ~self.rewound[consumer]
            & implies(self.shown[consumer, e], self.at_or_before(e, self.last_seen[consumer])),
        )

    @invariant("browser-takes-nothing")
    def browser_holds_nothing(self, consumer: Subscription, e: Entry) -> Bool:
        """A browser never holds an entry."""
        return implies(self.holds[consumer, e], ~self.browser[consumer])

    def has_arrived(self, e: Entry) -> Bool:
        """Whether the entry is in the list or has been."""
        return self.status[e] != Status.ABSENT

    def is_still_to_see(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the entry is ahead of the pointer, or of where that goes back to."""
        back = self.rewound[consumer] & self.at_or_before(
            self.released[consumer], self.last_seen[consumer]
        )
        return self.before(self.last_seen[consumer], e) | (
            back & self.at_or_before(self.released[consumer], e)
        )

    @leads_to(IS_DELIVERED, fair=("look_back", "deliver", "pass_over"), by=DELIVERED_BY)
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """An available entry that a consumer wants is delivered in the end, to any consumer.

        The exceptions: the consumer leaves; entries are inserted again and again; entries return to
        a place at or before this one again and again.
        """
        finitely(insert=lambda _: TRUE, release=lambda _, e: self.at_or_before(e, m))
        self.ranked_up_to(m, consumer)
        takes = self.active[consumer] & ~self.browser[consumer]
        waits = takes & self.is_for_all(m) & self.is_wanted(consumer, m)
        return waits, ~takes | ~self.can_have(consumer, m)

    def ranked_up_to(
        self, m: Entry, consumer: Subscription, *first: Bool | Part, **also: Steps
    ) -> None:
        """Rank the entries that the consumer comes to at or before this one.

        An arrival is offered, or looked back at, before all else. Then entries up to this one are
        delivered or leave the list, or the pointer goes forward.
        """

        def up_to_it(members: Callable[[Entry], Bool]) -> Part:
            return elements(
                Entry, lambda e: members(e) & self.at_or_before(e, m), within=self.has_arrived
            )

        least(self.before, lambda e: self.arriving[e])
        least(self.before, lambda e: self.in_list(e) & self.before(self.last_seen[consumer], e))
        ranked(
            *first,
            elements(Entry, lambda e: self.arriving[e]),
            up_to_it(lambda e: self.status[e] == Status.AVAILABLE),
            up_to_it(self.in_list),
            up_to_it(lambda e: self.has_arrived(e) & self.is_still_to_see(consumer, e)),
            lowered_by={
                "look_back": lambda _: TRUE,
                "deliver": lambda c, _: c == consumer,
                "pass_over": lambda c, _: c == consumer,
                **also,
            },
            words="the arrivals not looked back at; then the entries up to this one that are "
            "available, in the list, or ahead of the consumer's pointer",
        )
