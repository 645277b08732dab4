"""Models that are not about queues, from textbooks: each holds, and has a wrong variant."""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    FixedRelation,
    Int,
    Map,
    Model,
    Order,
    Relation,
    Value,
    action,
    axiom,
    exists,
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


class Process(Enumeration):
    """One of two processes."""

    LEFT: ClassVar[Process]
    RIGHT: ClassVar[Process]


class At(Enumeration):
    """Where a process is."""

    RESTS: ClassVar[At]
    ASKS: ClassVar[At]
    WAITS: ClassVar[At]
    WORKS: ClassVar[At]


def other(process: Process) -> Process:
    """Return the other of the two."""
    return ite(process == Process.LEFT, Process.RIGHT, Process.LEFT)


class Peterson(Model):
    """Mutual exclusion of two processes (Peterson, Myths about the mutual exclusion problem)."""

    at: Map[Process, At]
    wants: Map[Process, Bool]
    turn: Value[Process]

    @initial
    def rest(self) -> None:
        """Both rest."""
        self.at.fill(At.RESTS)
        self.wants.fill(False)
        self.turn = Process.LEFT

    @step(At.RESTS, At.ASKS)
    def ask(self, p: Process) -> None:
        """Raise its flag."""
        self.wants[p] = True

    @step(At.ASKS, At.WAITS)
    def give_way(self, p: Process) -> None:
        """Give the turn to the other."""
        self.turn = other(p)

    @step(At.WAITS, At.WORKS)
    def enter(self, p: Process) -> None:
        """Enter when the other rests or has given way."""
        require(~self.wants[other(p)] | (self.turn == p))

    @step(At.WORKS, At.RESTS)
    def leave(self, p: Process) -> None:
        """Lower its flag."""
        self.wants[p] = False

    @invariant("a-flag-is-up-outside-of-rest")
    def flags(self, p: Process) -> Bool:
        """A process has its flag up unless it rests."""
        return self.wants[p] == (self.at[p] != At.RESTS)

    @invariant("the-turn-is-of-the-one-that-works")
    def turns(self, p: Process) -> Bool:
        """A process that waits beside one that works has given way."""
        waits = (self.at[p] == At.WORKS) & (self.at[other(p)] == At.WAITS)
        return implies(waits, self.turn == p)

    @invariant("one-works")
    def one_works(self, p: Process) -> Bool:
        """Never both work."""
        return ~((self.at[p] == At.WORKS) & (self.at[other(p)] == At.WORKS))

    @leads_to("a-process-that-asks-works", fair=("give_way", "enter", "leave"))
    def works(self, p: Process) -> tuple[Bool, Bool]:
        """A process that asks works in the end."""
        waits = self.at[p] == At.WAITS
        its = self.at[other(p)]
        others_way = ite(its == At.WAITS, 4, ite(its == At.WORKS, 3, ite(its == At.RESTS, 2, 1)))
        ranked(
            self.at[p] == At.ASKS,
            ite(self.turn == p, 0, others_way),
            lowered_by={
                "give_way": lambda q: (q == p) | (waits & (self.turn != p)),
                "enter": lambda q: (q == p) | waits,
                "leave": lambda q: (q == other(p)) & waits,
            },
            pending=self.wants[p],
        )
        return self.at[p] == At.ASKS, self.at[p] == At.WORKS


class Selfish(Peterson):
    """The turn is taken, not given."""

    @step(At.ASKS, At.WAITS)
    def give_way(self, p: Process) -> None:
        """Take the turn."""
        self.turn = p


class Item(Family):
    """An item; items come in the order of `before`."""


class RingBuffer(Model):
    """A buffer of any capacity whose slots are used in turn."""

    capacity: Int
    before: Order[Item]
    slot: Map[Item, Int]
    came: Map[Item, Bool]
    went: Map[Item, Bool]
    first: Value[Int]
    free: Value[Int]
    used: Value[Int]

    @axiom("there-is-a-slot")
    def has_slots(self) -> Bool:
        """The buffer has a slot at least."""
        return self.capacity > 0

    @initial
    def empty(self) -> None:
        """No item has come."""
        self.slot.fill(0)
        self.came.fill(False)
        self.went.fill(False)
        self.first = 0
        self.free = 0
        self.used = 0

    def has_room(self) -> Bool:
        """Whether a slot is free."""
        return self.used < self.capacity

    def after(self, slot: Int) -> Int:
        """Return the slot behind this one."""
        return ite(slot + 1 == self.capacity, 0, slot + 1)

    def holds(self, i: Item) -> Bool:
        """Whether the item is in the buffer."""
        return self.came[i] & ~self.went[i]

    def ahead(self, i: Item) -> Int:
        """Return how many slots lie between the first one and that of an item."""
        past = self.slot[i] - self.first
        return ite(past >= 0, past, past + self.capacity)

    @action
    def put(self, i: Item) -> None:
        """The next item goes into the free slot."""
        require(~self.came[i] & forall(Item, lambda j: implies(self.before(j, i), self.came[j])))
        require(self.has_room())
        self.came[i] = True
        self.slot[i] = self.free
        self.free = self.after(self.free)
        self.used = self.used + 1

    @action
    def take(self, i: Item) -> None:
        """The item of the first slot goes."""
        require(self.holds(i) & (self.slot[i] == self.first))
        self.went[i] = True
        self.first = self.after(self.first)
        self.used = self.used - 1

    @invariant("slots-are-in-the-ring")
    def in_the_ring(self) -> Bool:
        """The used slots are those from the first to the free one."""
        end = self.first + self.used
        ends = self.free == ite(end < self.capacity, end, end - self.capacity)
        inside = (self.first >= 0) & (self.first < self.capacity) & (self.used >= 0)
        return inside & (self.used <= self.capacity) & ends

    @invariant("items-are-in-used-slots")
    def in_used_slots(self, i: Item) -> Bool:
        """An item in the buffer is in a used slot, and one that went had come."""
        inside = (self.slot[i] >= 0) & (self.slot[i] < self.capacity)
        used = implies(self.holds(i), inside & (self.ahead(i) < self.used))
        return used & implies(self.went[i], self.came[i])

    @invariant("slots-are-in-the-order-of-items")
    def in_order(self, i: Item, j: Item) -> Bool:
        """Items are in the slots in their order, so no two share one."""
        both = self.holds(i) & self.holds(j) & self.before(i, j)
        return implies(both, self.ahead(i) < self.ahead(j))

    @invariant("items-come-in-order")
    def comes_in_order(self, i: Item, j: Item) -> Bool:
        """No item comes before an earlier one."""
        return implies(self.before(i, j) & self.came[j], self.came[i])

    @invariant("first-in-first-out")
    def goes_in_order(self, i: Item, j: Item) -> Bool:
        """No item goes before an earlier one."""
        return implies(self.before(i, j) & self.went[j], self.went[i])


class OneTooMany(RingBuffer):
    """The buffer takes one item more than it has slots."""

    def has_room(self) -> Bool:
        """Whether the buffer is not above its capacity."""
        return self.used <= self.capacity


class Participant(Family):
    """One that prepares, and then commits or aborts."""


class Phase(Enumeration):
    """What a participant has done."""

    WORKS: ClassVar[Phase]
    IS_PREPARED: ClassVar[Phase]
    COMMITTED: ClassVar[Phase]
    ABORTED: ClassVar[Phase]


class Decision(Enumeration):
    """What the coordinator has decided."""

    NONE: ClassVar[Decision]
    COMMIT: ClassVar[Decision]
    ABORT: ClassVar[Decision]


class TwoPhaseCommit(Model):
    """Two-phase commit (Gray, Lamport, Consensus on Transaction Commit, section 3)."""

    phase: Map[Participant, Phase]
    voted: Map[Participant, Bool]
    decision: Value[Decision]

    @initial
    def work(self) -> None:
        """All work."""
        self.phase.fill(Phase.WORKS)
        self.voted.fill(False)
        self.decision = Decision.NONE

    @action
    def prepare(self, p: Participant) -> None:
        """A participant votes for the commit."""
        require(self.phase[p] == Phase.WORKS)
        self.phase[p] = Phase.IS_PREPARED
        self.voted[p] = True

    @action
    def give_up(self, p: Participant) -> None:
        """A participant that has not voted aborts."""
        require(self.phase[p] == Phase.WORKS)
        self.phase[p] = Phase.ABORTED

    @action
    def decide_to_commit(self) -> None:
        """The coordinator has all votes."""
        require((self.decision == Decision.NONE) & self.has_votes())
        self.decision = Decision.COMMIT

    def has_votes(self) -> Bool:
        """Whether each participant voted."""
        return forall(Participant, lambda p: self.voted[p])

    @action
    def decide_to_abort(self) -> None:
        """The coordinator waits no longer."""
        require(self.decision == Decision.NONE)
        self.decision = Decision.ABORT

    @action
    def commit(self, p: Participant) -> None:
        """A participant hears of the commit."""
        require(self.decision == Decision.COMMIT)
        self.phase[p] = Phase.COMMITTED

    @action
    def abort(self, p: Participant) -> None:
        """A participant hears of the abort."""
        require(self.decision == Decision.ABORT)
        self.phase[p] = Phase.ABORTED

    @invariant("a-commit-has-all-votes")
    def is_decided(self, p: Participant) -> Bool:
        """A commit was decided with all votes, and a participant commits after it only."""
        commits = self.decision == Decision.COMMIT
        kept = implies(commits, self.voted[p] & (self.phase[p] != Phase.ABORTED))
        return kept & implies(self.phase[p] == Phase.COMMITTED, commits)

    @invariant("a-vote-binds")
    def binds(self, p: Participant) -> Bool:
        """A participant that voted works no more, and aborts after the decision only."""
        aborted = (self.phase[p] == Phase.ABORTED) & self.voted[p]
        decided = implies(aborted, self.decision == Decision.ABORT)
        return implies(self.voted[p], self.phase[p] != Phase.WORKS) & decided

    @invariant("all-end-alike")
    def alike(self, p: Participant, q: Participant) -> Bool:
        """Never does one commit and another abort."""
        return ~((self.phase[p] == Phase.COMMITTED) & (self.phase[q] == Phase.ABORTED))


class Hasty(TwoPhaseCommit):
    """The coordinator commits with one vote."""

    def has_votes(self) -> Bool:
        """Whether some participant voted."""
        return exists(Participant, lambda p: self.voted[p])


class Node(Family):
    """A node of a ring, and its name."""


class RingElection(Model):
    """The highest name of a ring becomes the leader (Chang, Roberts, CACM 22(5), 1979)."""

    below: Order[Node]
    following: Fixed[Node, Node]
    between: FixedRelation[Node, Node, Node]
    sent: Relation[Node, Node]
    passed: Relation[Node, Node, Node]
    leads: Map[Node, Bool]

    @axiom("a-ring-turns")
    def turns(self, a: Node, b: Node, c: Node) -> Bool:
        """From a over b to c is from b over c to a; of three nodes each lies between the others."""
        apart = (a != b) & (b != c) & (a != c)
        one_way = self.between[a, b, c] == ~self.between[a, c, b]
        turned = implies(self.between[a, b, c], self.between[b, c, a] & apart)
        return turned & implies(apart, one_way)

    @axiom("a-ring-is-one-way")
    def is_one_way(self, a: Node, b: Node, c: Node, d: Node) -> Bool:
        """From a over b to c, and over c to d, is over b to d."""
        return implies(self.between[a, b, c] & self.between[a, c, d], self.between[a, b, d])

    @axiom("the-following-is-next")
    def is_next(self, a: Node, b: Node) -> Bool:
        """No node lies between a node and the following one."""
        follows = self.following[a]
        is_near = (b == a) | (b == follows) | self.between[a, follows, b]
        return is_near & implies(follows == a, b == a)

    @initial
    def silent(self) -> None:
        """Nothing was sent."""
        self.sent.fill(False)
        self.passed.fill(False)
        self.leads.fill(False)

    @action
    def stand(self, n: Node) -> None:
        """A node sends its name to the following one."""
        self.sent[n, self.following[n]] = True

    @action
    def hand_on(self, name: Node, n: Node) -> None:
        """A node hands on a higher name than its own."""
        require(self.sent[name, n] & self.hands_on(name, n))
        self.sent[name, n] = False
        self.sent[name, self.following[n]] = True
        self.passed[name, n, self.following[n]] = True

    def hands_on(self, name: Node, n: Node) -> Bool:
        """Whether the node hands the name on."""
        return self.below(n, name)

    @action
    def win(self, n: Node) -> None:
        """A node whose own name came back leads."""
        require(self.sent[n, n])
        self.leads[n] = True

    @invariant("a-name-passed-lower-ones")
    def passed_lower(self, name: Node, n: Node, m: Node) -> Bool:
        """Each node that a name has passed has a lower name."""
        at = self.sent[name, n]
        way = implies(at & self.between[name, m, n], self.below(m, name))
        return way & implies(at & (name == n) & (m != n), self.below(m, n))

    @invariant("a-name-passes-what-is-lower")
    def passes_on(self, name: Node, n: Node, m: Node) -> Bool:
        """A name is handed to the following node, and by a lower one."""
        handed = self.passed[name, n, m]
        return implies(handed, self.below(n, name) & (self.following[n] == m))

    @invariant("one-leads")
    def one_leads(self, n: Node, m: Node) -> Bool:
        """The leader has the highest name."""
        return implies(self.leads[n] & (m != n), self.below(m, n))


class Polite(RingElection):
    """A node hands on every name but its own."""

    def hands_on(self, name: Node, n: Node) -> Bool:
        """Whether it is another's name."""
        return n != name
