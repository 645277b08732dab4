"""The invariants of the node list.

Three of them imply that a walk reaches each live node: links go forward, they skip no live node,
and a linked node without a link is the last. So from any node that was ever linked, even if
unlinked by now, a walk reaches each live node behind it.
"""

from __future__ import annotations

from brokerproof.models.language import Bool, forall, implies, invariant
from brokerproof.models.qpid.threads.node_list_state import (
    Appending,
    Node,
    Remover,
    Removing,
    StateOfNodeList,
    Walker,
    Walking,
)

FORWARD = "links-go-forward"
KNOWN = "threads-know-linked-nodes"
APPENDED = "what-is-appended-was-not-there"
WALK = "what-a-walk-read-passes-nothing-live"
UNMARKED = "what-is-returned-was-not-marked"
ONE = "of-several-that-remove-one-did"
SIZE = "the-size-is-what-is-there"


class NodeListInvariants(StateOfNodeList):
    """Statements about every state of the list and its threads."""

    @invariant(FORWARD)
    def links_go_forward(self, n: Node) -> Bool:
        """A link leads to a node that was linked later (EL-1)."""
        return implies(
            self.has_next[n],
            self.linked[n] & self.linked[self.next[n]] & self.before(n, self.next[n]),
        )

    @invariant("links-pass-nothing-live")
    def links_pass_nothing(self, n: Node, x: Node) -> Bool:
        """Between a node and the one that it links to, all nodes are marked (EL-2, CL-2, CL-5)."""
        return implies(self.has_next[n] & self.is_live(x), ~self.is_between(n, x, self.next[n]))

    @invariant("where-no-link-is-nothing-is-behind", by=(KNOWN,))
    def end_is_last(self, n: Node, x: Node) -> Bool:
        """A linked node without a link is the last: it was never unlinked (EL-4, CL-5)."""
        return implies(self.linked[n] & ~self.has_next[n] & self.linked[x], self.at_or_before(x, n))

    @invariant(KNOWN, by=(FORWARD, APPENDED))
    def threads_know_linked(self) -> Bool:
        """Every node that the hint or a thread refers to was linked (EL-4)."""

        def appends(n: Node) -> Bool:
            helps = self.appending[n] == Appending.HELPS
            saw_tail, saw_next = self.saw_tail[n], self.saw_next[n]
            later = self.linked[saw_next] & self.before(saw_tail, saw_next)
            return self.linked[saw_tail] & implies(helps, later)

        def walks(w: Walker) -> Bool:
            return (
                self.linked[self.at[w]]
                & self.linked[self.following[w]]
                & self.linked[self.beyond[w]]
            )

        return self.linked[self.tail] & forall(Node, appends) & forall(Walker, walks)

    @invariant(APPENDED, by=(KNOWN, SIZE))
    def appended_was_not_there(self) -> Bool:
        """A node is linked once, by its thread; before, it is not marked, counted or returned."""

        def holds(n: Node) -> Bool:
            is_there = self.appending[n].is_one_of(
                Appending.MOVES_TAIL, Appending.COUNTS, Appending.IS_DONE
            )
            is_new = ~self.deleted[n] & ~self.counted[n]
            return (
                (self.linked[n] == is_there)
                & implies(~self.linked[n], is_new & self.refers[n] & ~self.has_next[n])
                & implies(is_there & (self.appending[n] != Appending.IS_DONE), is_new)
            )

        head = self.linked[self.head] & self.deleted[self.head] & ~self.counted[self.head]
        return (
            head
            & (self.appending[self.head] == Appending.IS_DONE)
            & forall(Node, holds)
            & forall(
                Walker,
                Node,
                lambda w, n: implies(
                    ~self.linked[n], ~self.returned[w, n] & ~self.throughout[w, n]
                ),
            )
        )

    @invariant(WALK)
    def walk_passes_nothing(self) -> Bool:
        """Between a walk's node and the one that it has read, all nodes are marked (EL-2)."""

        def holds(w: Walker, x: Node) -> Bool:
            at, following, beyond = self.at[w], self.following[w], self.beyond[w]
            unlinks = self.walking[w] == Walking.UNLINKS
            return implies(
                self.has_read(w) & self.is_live(x), ~self.is_between(at, x, following)
            ) & implies(unlinks & self.is_live(x), ~self.is_between(following, x, beyond))

        def reads(w: Walker) -> Bool:
            at, following, beyond = self.at[w], self.following[w], self.beyond[w]
            unlinks = self.walking[w] == Walking.UNLINKS
            meets_marked = (self.walking[w] == Walking.READS_BEYOND) | unlinks
            return (
                implies(
                    self.has_read(w),
                    self.before(at, following)
                    & self.has_next[at]
                    & self.at_or_before(following, self.next[at]),
                )
                & implies(meets_marked, self.deleted[following])
                & implies(unlinks, self.before(following, beyond))
            )

        return forall(Walker, Node, holds) & forall(Walker, reads)

    @invariant("what-is-there-throughout-is-returned")
    def throughout_is_returned(self, w: Walker, n: Node) -> Bool:
        """A walk returns each node that is live from its beginning to its end (CL-4)."""
        return implies(
            self.throughout[w, n],
            self.is_live(n)
            & implies(self.walks(w) & self.at_or_before(n, self.at[w]), self.returned[w, n])
            & implies(self.walking[w] == Walking.HAS_ENDED, self.returned[w, n]),
        )

    @invariant("nothing-is-returned-twice", by=(WALK,))
    def returned_once(self) -> Bool:
        """A walk goes forward, and returns no node twice (CL-4)."""
        return forall(Walker, lambda w: ~self.twice[w]) & forall(
            Walker,
            Node,
            lambda w, n: implies(
                self.walks(w) & self.returned[w, n], self.at_or_before(n, self.at[w])
            ),
        )

    @invariant(UNMARKED, by=(UNMARKED,))
    def returned_was_not_marked(self, w: Walker) -> Bool:
        """A node that a walk returns was not marked when the walk looked (EL-3, CL-4)."""
        return implies(self.walking[w] == Walking.FOUND, ~self.saw_marked[w])

    @invariant("what-is-returned-refers-to-something", by=(UNMARKED,))
    def returned_refers(self, w: Walker) -> Bool:
        """A walk returns no node whose reference has been cleared (CL-4)."""
        return ~self.gave_nothing[w]

    @invariant("what-is-removed-is-let-go-of", by=(APPENDED, ONE, SIZE))
    def removed_is_let_go_of(self, n: Node) -> Bool:
        """A marked node has no reference once its remover has passed that step, even if linked.

        The last node stays linked until another one is appended (QPID-7593).
        """
        remover = self.marked_by[n]
        lets_go = (self.removing[remover] == Removing.LETS_GO) & (self.target[remover] == n)
        return implies(self.deleted[n] & self.refers[n], lets_go)

    @invariant("what-is-live-refers-to-something", by=(APPENDED, SIZE))
    def live_refers(self, n: Node) -> Bool:
        """Only marked nodes lose their reference."""
        return implies(self.is_live(n), self.refers[n])

    @invariant(ONE, by=(ONE,))
    def one_removes(self) -> Bool:
        """A node is marked once, and exactly one remover is told so (CL-3)."""
        return forall(
            Remover,
            Node,
            lambda r, n: implies(self.told[r, n], self.deleted[n] & (self.marked_by[n] == r)),
        ) & forall(
            Node,
            lambda n: implies(self.deleted[n] & (n != self.head), self.told[self.marked_by[n], n]),
        )

    @invariant(SIZE, by=(APPENDED, ONE))
    def size_is_what_is_there(self) -> Bool:
        """Live nodes are counted, give or take the node that each thread adds or removes (CL-1)."""

        def holds(n: Node) -> Bool:
            is_done = self.appending[n] == Appending.IS_DONE
            remover = self.marked_by[n]
            leaves = (self.removing[remover] != Removing.NOTHING) & (self.target[remover] == n)
            return implies(self.is_live(n) & is_done, self.counted[n]) & implies(
                self.counted[n] & self.deleted[n], leaves
            )

        return forall(Node, holds) & forall(
            Remover,
            lambda r: implies(
                self.removing[r] != Removing.NOTHING,
                self.counted[self.target[r]]
                & self.deleted[self.target[r]]
                & self.told[r, self.target[r]],
            ),
        )
