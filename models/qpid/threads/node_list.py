"""The linked list of consumers, or of entries: threads append, mark and unlink nodes.

Source: Qpid, pull consumers, QueueConsumerNodeList; the entry list is made the same way (Message
Delivery; `SimpleQueueEntryList`), with *dispensed* for *deleted*. The ids CL-1 to CL-5 and EL-1 to
EL-4 are those of later notes on Qpid.

An appender reads the tail hint, moves it on if it lags, and links its node behind the last by
compare-and-swap. A remover marks a node by compare-and-swap, and clears its reference. A walker
(from any node that was ever linked) unlinks the marked nodes that it meets, except the last, and
returns the others that still have a reference. An unlinked node keeps its own link. Each access to
shared state is a step. The linearization points are the link of an append, the mark of a removal,
and a walk's look at a node's mark. The order of nodes is the order of linking.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.language import (
    TRUE,
    Bool,
    Part,
    elements,
    finitely,
    forall,
    implies,
    ite,
    leads_to,
    ranked,
    require,
    step,
)
from brokerproof.models.qpid.threads.node_list_invariants import NodeListInvariants
from brokerproof.models.qpid.threads.node_list_state import (
    Appending,
    Node,
    Remover,
    Removing,
    Walker,
    Walking,
)

__all__ = ["Node", "NodeList", "Remover", "Walker"]

_APPENDS = (
    *("read_tail", "read_next", "help", "link", "find_another_linked", "move_tail", "count"),
)
_WALKS = (
    *("read", "end", "find", "find_marked", "read_beyond", "end_at_a_marked"),
    *("unlink", "give", "pass_by"),
)


class NodeList(NodeListInvariants):
    """Nodes that are appended, marked and walked over, each by threads of their own."""

    # Appends.

    @step(Appending.STARTS, Appending.READS_NEXT)
    def read_tail(self, n: Node) -> None:
        """An appender reads the hint of the tail."""
        self.saw_tail[n] = self.tail

    @step(Appending.READS_NEXT)
    def read_next(self, n: Node) -> None:
        """An appender checks for a node behind the hint; if there is one, the hint lags."""
        lags = self.has_next[self.saw_tail[n]]
        self.saw_next[n] = self.next[self.saw_tail[n]]
        self.appending[n] = ite(lags, Appending.HELPS, Appending.LINKS)

    @step(Appending.HELPS, Appending.STARTS)
    def help(self, n: Node) -> None:
        """The appender moves the hint on, unless another thread has done so."""
        same = self.tail == self.saw_tail[n]
        self.tail = ite(same, self.saw_next[n], self.tail)

    @step(Appending.LINKS, Appending.MOVES_TAIL)
    def link(self, n: Node) -> None:
        """The node is linked behind the last node, which still has no link."""
        require(~self.has_next[self.saw_tail[n]])
        require(forall(Node, lambda m: implies(self.linked[m], self.before(m, n))))
        self.next[self.saw_tail[n]] = n
        self.has_next[self.saw_tail[n]] = True
        self.linked[n] = True

    @step(Appending.LINKS, Appending.STARTS)
    def find_another_linked(self, n: Node) -> None:
        """Another appender was faster."""
        require(self.has_next[self.saw_tail[n]])

    @step(Appending.MOVES_TAIL, Appending.COUNTS)
    def move_tail(self, n: Node) -> None:
        """The hint is moved to the node, unless another thread has moved it."""
        same = self.tail == self.saw_tail[n]
        self.tail = ite(same, n, self.tail)

    @step(Appending.COUNTS, Appending.IS_DONE)
    def count(self, n: Node) -> None:
        """The node is counted; from now on it can be removed."""
        self.counted[n] = True
        self.size += 1

    # Removals.

    @step(Removing.NOTHING, Removing.LETS_GO)
    def mark(self, remover: Remover, n: Node) -> None:
        """One remover marks a node, and is told that it did."""
        require((self.appending[n] == Appending.IS_DONE) & ~self.deleted[n])
        self.deleted[n] = True
        self.told[remover, n] = True
        self.marked_by[n] = remover
        self.throughout = self.throughout.map(lambda _, m, old: old & (m != n))
        self.target[remover] = n

    @step(Removing.LETS_GO, Removing.COUNTS)
    def let_go(self, remover: Remover) -> None:
        """The remover clears the reference of the node, which may stay linked for long."""
        self.refers[self.target[remover]] = False

    @step(Removing.COUNTS, Removing.NOTHING)
    def count_out(self, remover: Remover) -> None:
        """The node is subtracted from the size."""
        self.counted[self.target[remover]] = False
        self.size -= 1

    # Walks.

    @step(Walking.RESTS, Walking.READS)
    def begin(self, walker: Walker, start: Node) -> None:
        """A walk begins at the head, or at another linked node where an earlier one stopped."""
        require(self.linked[start])
        self.at[walker] = start
        self.throughout = self.throughout.map(
            lambda w, n, old: ite(w == walker, self.is_live(n) & self.before(start, n), old)
        )
        self.returned = self.returned.map(lambda w, _, old: old & (w != walker))

    @step(Walking.READS, Walking.LOOKS)
    def read(self, walker: Walker) -> None:
        """The walk reads the link of its node."""
        require(self.has_next[self.at[walker]])
        self.following[walker] = self.next[self.at[walker]]

    @step(Walking.READS, Walking.HAS_ENDED)
    def end(self, walker: Walker) -> None:
        """The walk ends: its node has no link."""
        require(~self.has_next[self.at[walker]])

    @step(Walking.LOOKS, Walking.FOUND)
    def find(self, walker: Walker) -> None:
        """The following node is not marked."""
        require(~self.deleted[self.following[walker]])
        self.saw_marked[walker] = self.deleted[self.following[walker]]

    @step(Walking.LOOKS, Walking.READS_BEYOND)
    def find_marked(self, walker: Walker) -> None:
        """The following node is marked."""
        require(self.deleted[self.following[walker]])

    @step(Walking.READS_BEYOND, Walking.UNLINKS)
    def read_beyond(self, walker: Walker) -> None:
        """The walk reads the link of the marked node."""
        require(self.has_next[self.following[walker]])
        self.beyond[walker] = self.next[self.following[walker]]

    @step(Walking.READS_BEYOND, Walking.HAS_ENDED)
    def end_at_a_marked(self, walker: Walker) -> None:
        """The marked node is the last, which stays linked: others append to it."""
        require(~self.has_next[self.following[walker]])

    @step(Walking.UNLINKS, Walking.READS)
    def unlink(self, walker: Walker) -> None:
        """The link skips the marked node if it is as it was read; then it is read again."""
        at = self.at[walker]
        same = self.next[at] == self.following[walker]
        self.next[at] = ite(same, self.beyond[walker], self.next[at])

    @step(Walking.FOUND, Walking.READS)
    def give(self, walker: Walker) -> None:
        """The found node has a reference and is returned."""
        found = self.following[walker]
        require(self.refers[found])
        self.twice[walker] = self.twice[walker] | self.returned[walker, found]
        self.gave_nothing[walker] |= ~self.refers[found]
        self.returned[walker, found] = True
        self.at[walker] = found

    @step(Walking.FOUND, Walking.READS)
    def pass_by(self, walker: Walker) -> None:
        """The found node has been marked since, and has no reference any more."""
        require(~self.refers[self.following[walker]])
        self.at[walker] = self.following[walker]

    @step(Walking.HAS_ENDED, Walking.RESTS)
    def rest(self, walker: Walker) -> None:
        """The walk is over; there may be another."""

    @leads_to("each-walk-ends", fair=_WALKS)
    def walk_ends(self, walker: Walker) -> tuple[Bool, Bool]:
        """A walk ends under fairness of its own steps alone, if appends do not go on for ever.

        Either it goes on to a later node, or it looks at a later one beside its node. Removals
        meanwhile make a node marked, or take its reference.
        """
        at, following, phase = self.at[walker], self.following[walker], self.walking[walker]
        looked_at = ite(phase == Walking.READS, self.next[at], following)

        def linked(members: Callable[[Node], Bool]) -> Part:
            return elements(
                Node, lambda n: self.linked[n] & members(n), within=lambda n: self.linked[n]
            )

        finitely(link=lambda _: TRUE)
        ranked(
            linked(lambda n: self.before(at, n)),
            linked(lambda n: ~self.deleted[n]),
            linked(lambda n: self.refers[n]),
            linked(lambda n: self.at_or_before(looked_at, n)),
            phase == Walking.READS,
            phase == Walking.LOOKS,
            phase == Walking.READS_BEYOND,
            lowered_by=dict.fromkeys(_WALKS, lambda w: w == walker),
            pending=self.walks(walker),
            words="the nodes ahead of the walk, those unmarked, those with a reference, and those "
            "not yet looked at beside its node; then its steps there",
        )
        return phase == Walking.READS, phase == Walking.HAS_ENDED

    @leads_to("the-last-append-ends", fair=_APPENDS)
    def append_ends(self, n: Node) -> tuple[Bool, Bool]:
        """If no other thread appends, the node is counted in the end, wherever the hint is.

        Other appends are excluded because their nodes would be behind it in the order.
        """
        others_have = forall(
            Node,
            lambda m: (m == n) | ((self.appending[m] == Appending.IS_DONE) & self.before(m, n)),
        )
        appending, saw_tail = self.appending[n], self.saw_tail[n]
        starts = appending == Appending.STARTS
        reads = appending == Appending.READS_NEXT
        links = appending == Appending.LINKS
        knows = reads | links | (appending == Appending.HELPS)
        saw_too_little = (self.tail != saw_tail) | (links & self.has_next[saw_tail])
        ranked(
            ~self.linked[n],
            knows & saw_too_little,
            elements(
                Node,
                lambda m: self.linked[m] & self.before(self.tail, m),
                within=lambda m: self.linked[m],
            ),
            starts,
            reads,
            appending == Appending.MOVES_TAIL,
            lowered_by=dict.fromkeys(_APPENDS, lambda m: m == n),
            pending=others_have,
            words="the nodes that the hint of the tail lags behind, then the steps of one try",
        )
        return others_have & ~self.linked[n], self.appending[n] == Appending.IS_DONE

    @leads_to("each-removal-ends", fair=("let_go", "count_out"))
    def removal_ends(self, remover: Remover) -> tuple[Bool, Bool]:
        """A remover clears the reference of its marked node and subtracts it from the size."""
        ranked(
            self.removing[remover] == Removing.LETS_GO,
            lowered_by={"let_go": lambda w: w == remover, "count_out": lambda w: w == remover},
            words="the two steps that are left",
        )
        return self.removing[remover] != Removing.NOTHING, self.removing[
            remover
        ] == Removing.NOTHING


NodeList.equivalent_mutants = """
Before the link an appender only looks: the swap shows that no node is behind.
    link: guard 1
The hint may lag or go back: any linked node will do, because the swap checks its link.
    read_tail: appending; read_next: appending*3; help: tail*2, appending; link: appending;
    find_another_linked: appending; move_tail: tail*2
The value is false by the guard, and false for all other walks that have found a node.
    find: saw_marked
A walk that is over need not be followed by another.
    rest: walking*2
The value is set before it is read.
    initially: next, saw_next, target, marked_by, saw_marked*2
A thread that starts in the middle has read only the head, which is linked.
    initially: appending*2, walking*2
A walker need not walk again.
    rest: guard 1
"""
