"""The state of the node list: families, variables and initial state."""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Int,
    Map,
    Model,
    Order,
    Relation,
    Value,
    axiom,
    counts,
    initial,
    ite,
)


class Node(Family):
    """A place in the list, and the thread that appends it; one of them is the dummy head."""


class Walker(Family):
    """A thread that walks over the list."""


class Remover(Family):
    """A thread that removes nodes."""


class Appending(Enumeration):
    """The next step of the thread that appends a node."""

    STARTS: ClassVar[Appending]
    READS_NEXT: ClassVar[Appending]
    HELPS: ClassVar[Appending]
    LINKS: ClassVar[Appending]
    MOVES_TAIL: ClassVar[Appending]
    COUNTS: ClassVar[Appending]
    IS_DONE: ClassVar[Appending]


class Removing(Enumeration):
    """The next step of a thread that removes a node."""

    NOTHING: ClassVar[Removing]
    LETS_GO: ClassVar[Removing]
    COUNTS: ClassVar[Removing]


class Walking(Enumeration):
    """The next step of a thread that walks."""

    RESTS: ClassVar[Walking]
    READS: ClassVar[Walking]
    LOOKS: ClassVar[Walking]
    READS_BEYOND: ClassVar[Walking]
    UNLINKS: ClassVar[Walking]
    FOUND: ClassVar[Walking]
    HAS_ENDED: ClassVar[Walking]


class StateOfNodeList(Model):
    """The list, what threads have read of it, and what walks must return and have returned."""

    head: Node
    no_remover: Remover
    before: Order[Node]

    linked: Map[Node, Bool]
    next: Map[Node, Node]
    has_next: Map[Node, Bool]
    deleted: Map[Node, Bool]
    refers: Map[Node, Bool]
    tail: Value[Node]
    counted: Map[Node, Bool]
    size: Value[Int]

    appending: Map[Node, Appending]
    saw_tail: Map[Node, Node]
    saw_next: Map[Node, Node]

    removing: Map[Remover, Removing]
    target: Map[Remover, Node]
    told: Relation[Remover, Node]
    marked_by: Map[Node, Remover]

    walking: Map[Walker, Walking]
    at: Map[Walker, Node]
    following: Map[Walker, Node]
    beyond: Map[Walker, Node]
    throughout: Relation[Walker, Node]
    returned: Relation[Walker, Node]
    twice: Map[Walker, Bool]
    gave_nothing: Map[Walker, Bool]
    saw_marked: Map[Walker, Bool]

    @axiom("head-first")
    def head_first(self, n: Node) -> Bool:
        """The dummy head is before every node."""
        return (n == self.head) | self.before(self.head, n)

    @initial
    def empty(self) -> None:
        """Only the dummy head is linked; it counts as marked, and has no appender."""
        self.linked = self.linked.map(lambda n, _: n == self.head)
        self.next.fill(self.head)
        self.has_next.fill(False)
        self.deleted = self.deleted.map(lambda n, _: n == self.head)
        self.refers = self.refers.map(lambda n, _: n != self.head)
        self.tail = self.head
        self.counted.fill(False)
        self.size = 0
        self.appending = self.appending.map(
            lambda n, _: ite(n == self.head, Appending.IS_DONE, Appending.STARTS)
        )
        self.saw_tail.fill(self.head)
        self.saw_next.fill(self.head)
        self.removing.fill(Removing.NOTHING)
        self.target.fill(self.head)
        self.told.fill(False)
        self.marked_by.fill(self.no_remover)
        self.walking.fill(Walking.RESTS)
        self.at.fill(self.head)
        self.following.fill(self.head)
        self.beyond.fill(self.head)
        self.throughout.fill(False)
        self.returned.fill(False)
        self.twice.fill(False)
        self.gave_nothing.fill(False)
        self.saw_marked.fill(False)

    @counts("size", by=("what-is-appended-was-not-there", "the-size-is-what-is-there"))
    def is_counted(self, n: Node) -> Bool:
        """The size is the number of counted nodes."""
        return self.counted[n]

    def is_live(self, n: Node) -> Bool:
        """Whether the node is in the list and not marked."""
        return self.linked[n] & ~self.deleted[n]

    def at_or_before(self, n: Node, m: Node) -> Bool:
        """Whether n is m or before it."""
        return (n == m) | self.before(n, m)

    def is_between(self, n: Node, x: Node, m: Node) -> Bool:
        """Whether x is after n and before m."""
        return self.before(n, x) & self.before(x, m)

    def walks(self, w: Walker) -> Bool:
        """Whether a walk has begun and is not over."""
        return (self.walking[w] != Walking.RESTS) & (self.walking[w] != Walking.HAS_ENDED)

    def has_read(self, w: Walker) -> Bool:
        """Whether a walk has read the following node."""
        return self.walks(w) & (self.walking[w] != Walking.READS)
