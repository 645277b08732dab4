"""The line of targets that wait for a turn on a connection: each is in it once, none is forgotten.

Source: Qpid, pull consumers, Simple Flow (steps 4 to 9); `ScheduledConsumerTargetSet` and the
scheduling of connections of the releases. The id SCH-1 is that of later notes on Qpid.

A notified target is marked as scheduled by compare-and-set, and only the thread that set the mark
puts it in the line. The job takes the first target out of the line, clears its mark, and then lets
it work, so a notification during the work puts it in the line again. The connection is scheduled in
the same way: a mark, and a job for the thread that set it. The job gives turns up to its slice,
clears the connection's mark, and schedules the connection again if the line is not empty.

Each access to shared state is a step, for any number of targets and of threads that notify.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Map,
    Model,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
    step,
)


class Target(Family):
    """A target that may want a turn."""


class Notifier(Family):
    """A thread that notifies a target of work."""


class Connection(Enumeration):
    """The connection whose job gives the turns; there is exactly one."""

    IT: ClassVar[Connection]


class Notifying(Enumeration):
    """The next step of a thread that notifies."""

    NOTIFIES: ClassVar[Notifying]
    MARKS: ClassVar[Notifying]
    APPENDS: ClassVar[Notifying]
    SCHEDULES: ClassVar[Notifying]
    HANDS_OVER: ClassVar[Notifying]


class Working(Enumeration):
    """The next step of the connection's job."""

    IS_IDLE: ClassVar[Working]
    IS_HANDED_OVER: ClassVar[Working]
    TAKES: ClassVar[Working]
    CLEARS: ClassVar[Working]
    WORKS: ClassVar[Working]
    ENDS: ClassVar[Working]
    LOOKS_AGAIN: ClassVar[Working]
    SCHEDULES: ClassVar[Working]


IT = Connection.IT


class WaitingTurns(Model):
    """Targets with work, the line in which they wait, and the job that gives them turns."""

    anybody: Target
    idle: Notifier

    has_work: Map[Target, Bool]
    scheduled: Map[Target, Bool]
    waits: Map[Target, Bool]
    marked_by: Map[Target, Notifier]

    notifying: Map[Notifier, Notifying]
    notified: Map[Notifier, Target]

    is_scheduled: Map[Connection, Bool]
    working: Map[Connection, Working]
    turn: Map[Connection, Target]
    scheduler: Map[Connection, Notifier]
    has_taken: Map[Connection, Bool]

    @initial
    def at_rest(self) -> None:
        """No target has work or waits."""
        self.has_work.fill(False)
        self.scheduled.fill(False)
        self.waits.fill(False)
        self.marked_by.fill(self.idle)
        self.notifying.fill(Notifying.NOTIFIES)
        self.notified.fill(self.anybody)
        self.is_scheduled.fill(False)
        self.working.fill(Working.IS_IDLE)
        self.turn.fill(self.anybody)
        self.scheduler.fill(self.idle)
        self.has_taken.fill(False)

    def does(self, what: Working) -> Bool:
        """Whether this is the job's next step."""
        return self.working[IT] == what

    def line_is_empty(self) -> Bool:
        """Whether no target waits."""
        return forall(Target, lambda t: ~self.waits[t])

    # Notifications.

    @step(Notifying.NOTIFIES, Notifying.MARKS)
    def notify(self, n: Notifier, t: Target) -> None:
        """A thread brings work for a target."""
        self.has_work[t] = True
        self.notified[n] = t

    @step(Notifying.MARKS)
    def mark(self, n: Notifier) -> None:
        """The target is marked; if it was marked before, it is in the line or will be."""
        target = self.notified[n]
        is_marked = self.scheduled[target]
        self.marked_by[target] = ite(is_marked, self.marked_by[target], n)
        self.scheduled[target] = True
        self.notifying[n] = ite(is_marked, Notifying.SCHEDULES, Notifying.APPENDS)

    @step(Notifying.APPENDS, Notifying.SCHEDULES)
    def append(self, n: Notifier) -> None:
        """The thread that set the mark puts the target in the line."""
        self.waits[self.notified[n]] = True

    @step(Notifying.SCHEDULES)
    def schedule(self, n: Notifier) -> None:
        """The connection is marked, if it was not."""
        is_marked = self.is_scheduled[IT]
        self.scheduler[IT] = ite(is_marked, self.scheduler[IT], n)
        self.is_scheduled[IT] = True
        self.notifying[n] = ite(is_marked, Notifying.NOTIFIES, Notifying.HANDS_OVER)

    @action
    def hand_over(self, n: Notifier) -> None:
        """The thread that set the mark hands over the job, which begins after the last run."""
        require(self.notifying[n] == Notifying.HANDS_OVER)
        require(self.does(Working.IS_IDLE))
        self.working[IT] = Working.IS_HANDED_OVER
        self.notifying[n] = Notifying.NOTIFIES

    # The job.

    @action
    def begin(self) -> None:
        """The scheduler runs the job."""
        require(self.does(Working.IS_HANDED_OVER))
        self.has_taken[IT] = False
        self.working[IT] = Working.TAKES

    @action
    def take(self, t: Target) -> None:
        """The job takes a target out of the line."""
        require(self.does(Working.TAKES) & self.waits[t])
        self.waits[t] = False
        self.turn[IT] = t
        self.has_taken[IT] = True
        self.working[IT] = Working.CLEARS

    @action
    def clear(self) -> None:
        """The job clears the target's mark, so the target can be put in the line again."""
        require(self.does(Working.CLEARS))
        self.scheduled[self.turn[IT]] = False
        self.working[IT] = Working.WORKS

    @action
    def work(self) -> None:
        """The target works on all that it has been notified of by now."""
        require(self.does(Working.WORKS))
        self.has_work[self.turn[IT]] = False
        self.working[IT] = Working.TAKES

    @action
    def use_up(self) -> None:
        """The line is empty, or the slice is used up, which is one turn at least."""
        require(self.does(Working.TAKES))
        require(self.line_is_empty() | self.has_taken[IT])
        self.working[IT] = Working.ENDS

    @action
    def end(self) -> None:
        """The job clears the connection's mark."""
        require(self.does(Working.ENDS))
        self.is_scheduled[IT] = False
        self.working[IT] = Working.LOOKS_AGAIN

    @action
    def look_again(self) -> None:
        """The job looks for targets that came too late for this run or had no turn."""
        require(self.does(Working.LOOKS_AGAIN))
        self.working[IT] = ite(self.line_is_empty(), Working.IS_IDLE, Working.SCHEDULES)

    @action
    def schedule_again(self) -> None:
        """The job marks the connection itself, unless another thread has done so."""
        require(self.does(Working.SCHEDULES))
        self.working[IT] = ite(self.is_scheduled[IT], Working.IS_IDLE, Working.IS_HANDED_OVER)
        self.is_scheduled[IT] = True

    # Invariants.

    @invariant("who-is-marked-waits")
    def marked_waits(self) -> Bool:
        """Exactly the marked targets wait, give or take one step under way (SCH-1)."""

        def holds(t: Target) -> Bool:
            by = self.marked_by[t]
            comes = (self.notifying[by] == Notifying.APPENDS) & (self.notified[by] == t)
            goes = self.does(Working.CLEARS) & (self.turn[IT] == t)
            return implies(self.waits[t], self.scheduled[t] & ~comes & ~goes) & implies(
                self.scheduled[t], self.waits[t] | comes | goes
            )

        turn = self.turn[IT]
        return forall(Target, holds) & implies(
            self.does(Working.CLEARS), self.scheduled[turn] & ~self.waits[turn]
        )

    @invariant("who-puts-it-in-the-line-has-marked-it")
    def who_marks_appends(self) -> Bool:
        """One thread puts a target in the line: the one that has set its mark (SCH-1)."""
        return forall(
            Notifier,
            lambda n: implies(
                self.notifying[n] == Notifying.APPENDS,
                self.scheduled[self.notified[n]]
                & (self.marked_by[self.notified[n]] == n)
                & ~(self.does(Working.CLEARS) & (self.turn[IT] == self.notified[n])),
            ),
        )

    @invariant("no-target-with-work-is-forgotten")
    def nobody_is_forgotten(self) -> Bool:
        """A target with work is about to be marked, marked, or about to work (SCH-1)."""

        def holds(t: Target) -> Bool:
            will_be = exists(
                Notifier,
                lambda n: (self.notifying[n] == Notifying.MARKS) & (self.notified[n] == t),
            )
            works = self.does(Working.WORKS) & (self.turn[IT] == t)
            return implies(self.has_work[t], will_be | self.scheduled[t] | works)

        return forall(Target, holds)

    @invariant("one-job-for-a-mark")
    def one_job(self) -> Bool:
        """The connection is marked from before its job is handed over until that ends (SCH-1)."""
        by = self.scheduler[IT]
        hands_over = self.notifying[by] == Notifying.HANDS_OVER
        at_it = (
            self.does(Working.IS_HANDED_OVER)
            | self.does(Working.TAKES)
            | self.does(Working.CLEARS)
            | self.does(Working.WORKS)
            | self.does(Working.ENDS)
        )
        return (
            implies(at_it, self.is_scheduled[IT] & ~hands_over)
            & implies(self.is_scheduled[IT], at_it | hands_over)
            & forall(
                Notifier,
                lambda n: implies(
                    self.notifying[n] == Notifying.HANDS_OVER,
                    self.is_scheduled[IT] & (self.scheduler[IT] == n),
                ),
            )
        )

    @invariant("no-target-waits-without-a-job")
    def nobody_waits_in_vain(self) -> Bool:
        """While a target waits, the connection is marked, or a thread is about to mark it."""
        marks = exists(Notifier, lambda n: self.notifying[n] == Notifying.SCHEDULES)
        looks = self.does(Working.LOOKS_AGAIN) | self.does(Working.SCHEDULES)
        return self.line_is_empty() | self.is_scheduled[IT] | marks | looks

    @invariant("who-works-was-taken-from-the-line")
    def works_when_taken(self) -> Bool:
        """The job gives a turn only to a target that it took out of the line in this run."""
        return implies(self.does(Working.CLEARS) | self.does(Working.WORKS), self.has_taken[IT])

    @invariant("the-job-comes-back-for-a-target")
    def comes_back_for_somebody(self) -> Bool:
        """The job marks its connection itself only while a target waits."""
        return implies(self.does(Working.SCHEDULES), ~self.line_is_empty())

    @leads_to(
        "each-waiting-target-has-a-turn",
        fair=(
            *("mark", "append", "schedule", "hand_over", "begin", "take", "clear", "work"),
            *("use_up", "end", "look_again", "schedule_again"),
        ),
    )
    def is_worked_on(self, t: Target) -> tuple[Bool, Bool]:
        """A waiting target has a turn in the end."""
        return self.waits[t], ~self.waits[t]

    @leads_to(
        "each-notification-ends",
        fair=(
            *("mark", "append", "schedule", "hand_over", "begin", "take", "clear", "work"),
            *("use_up", "end", "look_again", "schedule_again"),
        ),
    )
    def notifying_ends(self, n: Notifier) -> tuple[Bool, Bool]:
        """A notification ends, and waits only for the job's last run."""
        return (
            self.notifying[n] == Notifying.MARKS,
            self.notifying[n] == Notifying.NOTIFIES,
        )

    @leads_to(
        "each-target-does-its-work",
        fair=(
            *("mark", "append", "schedule", "hand_over", "begin", "take", "clear", "work"),
            *("use_up", "end", "look_again", "schedule_again"),
        ),
    )
    def work_is_done(self, t: Target) -> tuple[Bool, Bool]:
        """A target works on each notification in the end, even one during its work (SCH-1)."""
        return self.has_work[t], self.does(Working.WORKS) & (self.turn[IT] == t)
