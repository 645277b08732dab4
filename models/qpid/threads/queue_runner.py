"""The one asynchronous runner of a queue: every change is followed by a run that sees it.

Source: Qpid, Message Delivery, Asynchronous Delivery (`deliverAsync`, `processQueue`); the ids
RUN-1, RUN-2 and RUN-7 are those of later notes on Qpid.

A thread that changes something (an arrival, a return, room) increments the queue's state-change
count, and tries to put a runner into the queue's empty slot by compare-and-set. A runner first
leaves the slot. Before each walk over the subscriptions it reads the count and takes the slot, or
ends if the slot is taken; after the walk it gives the slot back. It also ends if the count is
unchanged since before its last walk and that was complete. A walk that delivers nothing is complete
only if the one before it delivered nothing either. A runner that has used up its slice tries to
take the slot again. Each access to shared state is a step, and a count is modelled as the
set of counted changes. A walk sees the changes made before it began.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from brokerproof.models.language import (
    TRUE,
    Bool,
    Enumeration,
    Family,
    Map,
    Model,
    Part,
    Relation,
    elements,
    exists,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    ranked,
    require,
    step,
)

ONE = "one-in-the-slot"
THEIRS = "in-the-slot-while-scheduled-or-walking"
NO_LOST = "no-lost-wake-up"
TO_WALK = "a-runner-that-walks-has-a-walk-to-make"


class Change(Family):
    """A change that makes a delivery possible, and the thread that makes it."""


class Runner(Family):
    """A runner, which may be put into the slot again and again."""


class Announcing(Enumeration):
    """The next step of a change's thread."""

    CHANGES: ClassVar[Announcing]
    COUNTS: ClassVar[Announcing]
    TRIES: ClassVar[Announcing]
    IS_DONE: ClassVar[Announcing]


class Running(Enumeration):
    """The next step of a runner."""

    IS_IDLE: ClassVar[Running]
    IS_HANDED_OVER: ClassVar[Running]
    BEGINS: ClassVar[Running]
    READS: ClassVar[Running]
    TAKES: ClassVar[Running]
    WALKS: ClassVar[Running]
    GIVES_BACK: ClassVar[Running]
    WANTS_MORE: ClassVar[Running]


_RUNS = (
    *("hand_over", "begin", "read", "end", "take", "complete", "go_again", "give_back"),
    "reschedule",
)
_LEAVES = ("step_aside", "leave_the_rest")


class Walks(Enumeration):
    """How many walks without a delivery a runner has to make before it may end."""

    NONE: ClassVar[Walks]
    ONE: ClassVar[Walks]
    TWO: ClassVar[Walks]


class QueueRunner(Model):
    """Changes that announce themselves, and runners that must not miss one."""

    announcing: Map[Change, Announcing]
    seen: Map[Change, Bool]
    delivered: Map[Change, Bool]

    running: Map[Runner, Running]
    in_slot: Map[Runner, Bool]
    counted: Relation[Runner, Change]
    looks_at: Relation[Runner, Change]
    left: Map[Runner, Walks]
    spent: Map[Runner, Bool]

    @initial
    def at_rest(self) -> None:
        """No change was made, and no runner runs."""
        self.announcing.fill(Announcing.CHANGES)
        self.seen.fill(False)
        self.delivered.fill(False)
        self.running.fill(Running.IS_IDLE)
        self.in_slot.fill(False)
        self.counted.fill(False)
        self.looks_at.fill(False)
        self.left.fill(Walks.NONE)
        self.spent.fill(False)

    def is_made(self, c: Change) -> Bool:
        """Whether a walk that begins now sees the change."""
        return self.announcing[c] != Announcing.CHANGES

    def is_counted(self, c: Change) -> Bool:
        """Whether the count includes the change."""
        return self.announcing[c].is_one_of(Announcing.TRIES, Announcing.IS_DONE)

    def slot_is_free(self) -> Bool:
        """Whether no runner is in the slot."""
        return forall(Runner, lambda r: ~self.in_slot[r])

    @step(Announcing.CHANGES, Announcing.COUNTS)
    def change(self, c: Change) -> None:
        """A change makes a delivery possible."""

    @step(Announcing.COUNTS, Announcing.TRIES)
    def count(self, c: Change) -> None:
        """The change is counted."""

    @step(Announcing.TRIES, Announcing.IS_DONE)
    def start(self, c: Change, r: Runner) -> None:
        """The slot is free, and a runner is put there."""
        require(self.slot_is_free())
        require(self.running[r] == Running.IS_IDLE)
        self.in_slot[r] = True
        self.running[r] = Running.IS_HANDED_OVER

    @step(Announcing.TRIES, Announcing.IS_DONE)
    def leave_it(self, c: Change) -> None:
        """The slot has a runner already."""
        require(~self.slot_is_free())

    @step(Running.IS_HANDED_OVER, Running.BEGINS)
    def hand_over(self, r: Runner) -> None:
        """The executor begins the runner."""

    @step(Running.BEGINS, Running.READS)
    def begin(self, r: Runner) -> None:
        """The runner leaves the slot; it has not walked yet."""
        self.in_slot[r] = False
        self.left[r] = Walks.TWO
        self.spent[r] = False

    @step(Running.READS, Running.TAKES)
    def read(self, r: Runner) -> None:
        """The runner reads the count, and has work."""
        changed = self.has_changes_to_count(r)
        require((self.left[r] != Walks.NONE) | changed)
        self.left[r] = ite(changed, Walks.TWO, self.left[r])
        self._read(r)

    @step(Running.READS, Running.IS_IDLE)
    def end(self, r: Runner) -> None:
        """The runner ends: the count is unchanged, and the last walk was complete."""
        require(self.left[r] == Walks.NONE)
        require(~self.has_changes_to_count(r))

    def has_changes_to_count(self, r: Runner) -> Bool:
        """Whether the count has changed since the runner read it."""
        return exists(Change, lambda c: self.is_counted(c) & ~self.counted[r, c])

    def _read(self, r: Runner) -> None:
        self.counted = self.counted.map(lambda s, c, old: ite(s == r, self.is_counted(c), old))

    @step(Running.TAKES, Running.WALKS)
    def take(self, r: Runner) -> None:
        """The slot is free, and the walk begins."""
        require(self.slot_is_free())
        self.in_slot[r] = True
        self.looks_at = self.looks_at.map(lambda s, c, old: ite(s == r, self.is_made(c), old))

    @step(Running.TAKES, Running.IS_IDLE)
    def step_aside(self, r: Runner) -> None:
        """The slot has another runner, which will do the work."""
        require(~self.slot_is_free())

    @step(Running.WALKS, Running.GIVES_BACK)
    def complete(self, r: Runner) -> None:
        """The walk is complete: no work is left of the changes that it saw."""
        require(self.left[r] == Walks.ONE)
        self.seen = self.seen.map(lambda c, old: old | self.looks_at[r, c])
        self.left[r] = Walks.NONE

    @step(Running.WALKS, Running.GIVES_BACK)
    def go_again(self, r: Runner) -> None:
        """The walk delivers nothing, and is made once more: its last step may help its first."""
        require(self.left[r] == Walks.TWO)
        self.left[r] = Walks.ONE

    @step(Running.WALKS, Running.GIVES_BACK)
    def go_on(self, r: Runner, c: Change) -> None:
        """The walk delivers, so another walk is needed."""
        self._deliver(r, c)
        self.left[r] = Walks.TWO

    @step(Running.WALKS, Running.GIVES_BACK)
    def use_up(self, r: Runner, c: Change) -> None:
        """The walk delivers as much as one run may."""
        self._deliver(r, c)
        self.spent[r] = True

    def _deliver(self, r: Runner, c: Change) -> None:
        require(self.looks_at[r, c] & ~self.delivered[c])
        self.delivered[c] = True

    @step(Running.GIVES_BACK)
    def give_back(self, r: Runner) -> None:
        """The slot is free again."""
        self.in_slot[r] = False
        self.running[r] = ite(self.spent[r], Running.WANTS_MORE, Running.READS)

    @step(Running.WANTS_MORE, Running.IS_HANDED_OVER)
    def reschedule(self, r: Runner) -> None:
        """The countdown of deliveries ended the run: the runner is scheduled again."""
        require(self.slot_is_free())
        self.in_slot[r] = True

    @step(Running.WANTS_MORE, Running.IS_IDLE)
    def leave_the_rest(self, r: Runner) -> None:
        """Another thread was faster, and its runner does the rest."""
        require(~self.slot_is_free())

    def will_see(self, r: Runner, c: Change) -> Bool:
        """Whether the runner cannot end before a walk sees the change, its own or another's."""
        running = self.running[r]
        late, goes_on = ~self.counted[r, c], self.left[r] != Walks.NONE
        return (
            running.is_one_of(
                Running.IS_HANDED_OVER, Running.BEGINS, Running.TAKES, Running.WANTS_MORE
            )
            | ((running == Running.READS) & (goes_on | late))
            | ((running == Running.WALKS) & (self.looks_at[r, c] | late))
            | ((running == Running.GIVES_BACK) & (self.spent[r] | goes_on | late))
        )

    @invariant(ONE)
    def one_in_the_slot(self, r: Runner, s: Runner) -> Bool:
        """At most one runner is in the slot: scheduled or walking (RUN-1)."""
        return implies(self.in_slot[r] & self.in_slot[s], r == s)

    @invariant(THEIRS)
    def slot_is_theirs(self, r: Runner) -> Bool:
        """A runner is in the slot from its scheduling to its begin, and during each walk."""
        return self.in_slot[r] == self.running[r].is_one_of(
            Running.IS_HANDED_OVER, Running.BEGINS, Running.WALKS, Running.GIVES_BACK
        )

    @invariant("what-is-counted-is-looked-at")
    def counted_is_looked_at(self, r: Runner, c: Change) -> Bool:
        """A walk looks at each change that its runner read as counted, and marks it as seen."""
        walks = self.running[r] == Running.WALKS
        after = self.running[r].is_one_of(Running.GIVES_BACK, Running.READS)
        return implies(walks & self.counted[r, c], self.looks_at[r, c]) & implies(
            after & (self.left[r] == Walks.NONE) & ~self.spent[r] & self.counted[r, c], self.seen[c]
        )

    @invariant("counted-was-made")
    def counted_was_made(self, r: Runner, c: Change) -> Bool:
        """A runner has read as counted only changes that were counted."""
        return implies(self.counted[r, c], self.is_counted(c))

    @invariant("what-is-seen-was-made")
    def seen_was_made(self) -> Bool:
        """Only changes that were made are looked at, seen or delivered."""
        return forall(
            Runner, Change, lambda r, c: implies(self.looks_at[r, c], self.is_made(c))
        ) & forall(Change, lambda c: implies(self.seen[c] | self.delivered[c], self.is_made(c)))

    @invariant(NO_LOST)
    def no_lost_wake_up(self, c: Change) -> Bool:
        """An announced change has been seen, or a runner will see it (RUN-2)."""
        return implies(
            (self.announcing[c] == Announcing.IS_DONE) & ~self.seen[c],
            exists(Runner, lambda r: self.will_see(r, c)),
        )

    @invariant(TO_WALK, by=(TO_WALK,))
    def walks_have_a_walk_to_make(self, r: Runner) -> Bool:
        """A runner in its slice has deliveries left, and one that walks a walk without any."""
        walks = self.running[r].is_one_of(Running.TAKES, Running.WALKS)
        return implies(walks, self.left[r] != Walks.NONE) & implies(
            walks | (self.running[r] == Running.READS), ~self.spent[r]
        )

    def ranked_by_what_is_to_do(self, pending: Bool | bool = True) -> None:
        """Rank by what all threads still have to do, if changes do not go on for ever.

        Announcements come first, then deliveries, then runs that begin again, then walks.
        """

        def changes(members: Callable[[Change], Bool]) -> Part:
            return elements(Change, members, within=self.is_made)

        def runners(members: Callable[[Runner], Bool]) -> Part:
            return elements(
                Runner,
                lambda r: (self.running[r] != Running.IS_IDLE) & members(r),
                within=lambda r: self.running[r] != Running.IS_IDLE,
            )

        def at(place: Running) -> Part:
            return runners(lambda r: self.running[r] == place)

        finitely(change=lambda _: TRUE)
        ranked(
            changes(lambda c: self.announcing[c] == Announcing.COUNTS),
            changes(lambda c: self.announcing[c] == Announcing.TRIES),
            changes(lambda c: self.is_made(c) & ~self.delivered[c]),
            runners(lambda r: (self.running[r] == Running.GIVES_BACK) & self.spent[r]),
            at(Running.WANTS_MORE),
            at(Running.IS_HANDED_OVER),
            at(Running.BEGINS),
            runners(self.has_changes_to_count),
            runners(lambda r: self.left[r] == Walks.TWO),
            runners(lambda r: self.left[r] != Walks.NONE),
            at(Running.GIVES_BACK),
            at(Running.READS),
            at(Running.TAKES),
            pending=pending,
            words="the announcements under way, then changes not delivered, then runs to begin, "
            "then the walks of each run",
        )

    @leads_to("each-announced-change-is-seen", fair=_RUNS, by=(THEIRS, NO_LOST, TO_WALK))
    def is_seen(self, c: Change) -> tuple[Bool, Bool]:
        """Each announced change is seen in the end: a run does not go round for ever (RUN-7)."""
        self.ranked_by_what_is_to_do()
        return self.announcing[c] == Announcing.IS_DONE, self.seen[c]

    @leads_to(
        "each-announcement-ends",
        fair=("count", "start", "leave_it", *_RUNS, *_LEAVES),
        by=(THEIRS, TO_WALK),
    )
    def announcing_ends(self, c: Change) -> tuple[Bool, Bool]:
        """A thread that makes a change counts it and tries the slot once, without waiting."""
        here = self.announcing[c]
        waits = here.is_one_of(Announcing.COUNTS, Announcing.TRIES)
        self.ranked_by_what_is_to_do(pending=waits)
        return here == Announcing.COUNTS, here == Announcing.IS_DONE

    @leads_to("each-run-ends", fair=(*_RUNS, *_LEAVES), by=(THEIRS, TO_WALK))
    def running_ends(self, r: Runner) -> tuple[Bool, Bool]:
        """With finitely many changes, every run ends (RUN-7)."""
        self.ranked_by_what_is_to_do()
        return self.running[r] != Running.IS_IDLE, self.running[r] == Running.IS_IDLE


QueueRunner.equivalent_mutants = """
Other threads may announce their changes at once too: the started runner sees them.
    start: announcing; leave_it: announcing
A runner that is put in the slot while it runs begins again, and walks before it ends.
    start: guard 3
The executor's own step is left out, as if it took no time.
    start: running; reschedule: running
The count was read earlier, which costs one walk at most.
    begin: running
A thread that has counted its change and not yet tried the slot starts a runner itself.
    end: guard 3*2; shared: has_changes_to_count*2, is_counted*2
No other runner walks, and `looks_at` is set again before one does.
    take: looks_at
A delivering walk may have any length: it goes on in the slot, or begins again there.
    go_on: running*4; use_up: running*2, spent*2
Any number of walks without a delivery will do, from one on.
    begin: left*2; read: left; complete: guard 2; go_again: running*2, left; go_on: left*3
A runner that begins sets the value.
    initially: left*3, spent*2
A runner that gives back is still in the slot, and may deliver there.
    go_on: guard 1; use_up: guard 1
"""
