"""The list that consumers are kept in, and entries: appended to, marked, and unlinked by walks.

Source: Qpid, pull consumers, QueueConsumerNodeList; the entry list is made the same way (Message
Delivery; `SimpleQueueEntryList`), with *dispensed* for *deleted*. The ids CL-1 to CL-5 and EL-1 to
EL-4 are those of later notes on Qpid.

Singly linked, with a dummy head and a hint where the tail is. Who appends reads the hint, helps it
on where it lags, and links its node behind the last by compare-and-swap. Who removes marks a node,
by compare-and-swap, and lets go of what it refers to. Who walks (from the head, or from any node
that was ever linked) unlinks the marked nodes that it meets, but never the last one, and returns
the others that still refer to something. An unlinked node keeps its own link.

Each access to shared state is a step, for any number of nodes and threads. An operation takes
effect at one of them: an append where it links, a removal where it marks, a walk's return of a node
where it looks whether the node is marked. The order of nodes is that in which they are linked, so
"behind the last" is what the guard of `link` says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.language import Bool, action, forall, implies, ite, leads_to, require
from brokerproof.models.qpid.threads.equivalent_mutants import by_name
from brokerproof.models.qpid.threads.equivalent_mutants_of_entries import NODE_LIST
from brokerproof.models.qpid.threads.node_list_invariants import NodeListInvariants
from brokerproof.models.qpid.threads.node_list_state import (
    Appending,
    List,
    Node,
    Remover,
    Removing,
    Walker,
    Walking,
)

__all__ = ["IT", "Node", "NodeList", "Remover", "Walker"]

IT = List.IT


class NodeList(NodeListInvariants):
    """Nodes that are appended, marked and walked over, each by threads of their own."""

    harmless: ClassVar[Mapping[str, str]] = by_name(NODE_LIST)

    # Appending.

    @action
    def read_tail(self, n: Node) -> None:
        """Who appends reads where the tail is said to be."""
        require(self.appending[n] == Appending.STARTS)
        self.saw_tail[n] = self.tail[IT]
        self.appending[n] = Appending.READS_NEXT

    @action
    def read_next(self, n: Node) -> None:
        """Is there something behind it? Then the hint lags."""
        require(self.appending[n] == Appending.READS_NEXT)
        lags = self.has_next[self.saw_tail[n]]
        self.saw_next[n] = self.next[self.saw_tail[n]]
        self.appending[n] = ite(lags, Appending.HELPS, Appending.LINKS)

    @action
    def help(self, n: Node) -> None:
        """The hint is moved on, unless somebody has done so."""
        require(self.appending[n] == Appending.HELPS)
        same = self.tail[IT] == self.saw_tail[n]
        self.tail[IT] = ite(same, self.saw_next[n], self.tail[IT])
        self.appending[n] = Appending.STARTS

    @action
    def link(self, n: Node) -> None:
        """There is nothing behind what was the tail still: the node is linked there."""
        require(self.appending[n] == Appending.LINKS)
        require(~self.has_next[self.saw_tail[n]])
        require(forall(Node, lambda m: implies(self.linked[m], self.before(m, n))))
        self.next[self.saw_tail[n]] = n
        self.has_next[self.saw_tail[n]] = True
        self.linked[n] = True
        self.appending[n] = Appending.MOVES_TAIL

    @action
    def find_another_linked(self, n: Node) -> None:
        """Somebody was faster."""
        require(self.appending[n] == Appending.LINKS)
        require(self.has_next[self.saw_tail[n]])
        self.appending[n] = Appending.STARTS

    @action
    def move_tail(self, n: Node) -> None:
        """The hint is moved to the node, unless somebody has moved it."""
        require(self.appending[n] == Appending.MOVES_TAIL)
        same = self.tail[IT] == self.saw_tail[n]
        self.tail[IT] = ite(same, n, self.tail[IT])
        self.appending[n] = Appending.COUNTS

    @action
    def count(self, n: Node) -> None:
        """The node counts; from now on it is known to whoever may remove it."""
        require(self.appending[n] == Appending.COUNTS)
        self.counted[n] = True
        self.size[IT] = self.size[IT] + 1
        self.appending[n] = Appending.IS_DONE

    # Removing.

    @action
    def mark(self, who: Remover, n: Node) -> None:
        """A node is marked by the one that is told that it did."""
        require(self.removing[who] == Removing.NOTHING)
        require((self.appending[n] == Appending.IS_DONE) & ~self.deleted[n])
        self.deleted[n] = True
        self.told[who, n] = True
        self.marked_by[n] = who
        self.throughout = self.throughout.map(lambda _, m, old: old & (m != n))
        self.target[who] = n
        self.removing[who] = Removing.LETS_GO

    @action
    def let_go(self, who: Remover) -> None:
        """A last node may stay linked for long: what it refers to must not."""
        require(self.removing[who] == Removing.LETS_GO)
        self.refers[self.target[who]] = False
        self.removing[who] = Removing.COUNTS

    @action
    def count_out(self, who: Remover) -> None:
        """The node counts no more."""
        require(self.removing[who] == Removing.COUNTS)
        self.counted[self.target[who]] = False
        self.size[IT] = self.size[IT] - 1
        self.removing[who] = Removing.NOTHING

    # Walking.

    @action
    def begin(self, who: Walker, start: Node) -> None:
        """A walk begins at the head, or at a node where somebody has stopped before."""
        require(self.walking[who] == Walking.RESTS)
        require(self.linked[start])
        self.at[who] = start
        self.throughout = self.throughout.map(
            lambda w, n, old: ite(w == who, self.is_live(n) & self.before(start, n), old)
        )
        self.returned = self.returned.map(lambda w, _, old: old & (w != who))
        self.walking[who] = Walking.READS

    @action
    def read(self, who: Walker) -> None:
        """The link is read."""
        require(self.walking[who] == Walking.READS)
        require(self.has_next[self.at[who]])
        self.following[who] = self.next[self.at[who]]
        self.walking[who] = Walking.LOOKS

    @action
    def end(self, who: Walker) -> None:
        """There is nothing behind."""
        require(self.walking[who] == Walking.READS)
        require(~self.has_next[self.at[who]])
        self.walking[who] = Walking.HAS_ENDED

    @action
    def find(self, who: Walker) -> None:
        """What follows is not marked."""
        require(self.walking[who] == Walking.LOOKS)
        require(~self.deleted[self.following[who]])
        self.saw_marked[who] = self.deleted[self.following[who]]
        self.walking[who] = Walking.FOUND

    @action
    def find_marked(self, who: Walker) -> None:
        """What follows is marked."""
        require(self.walking[who] == Walking.LOOKS)
        require(self.deleted[self.following[who]])
        self.walking[who] = Walking.READS_BEYOND

    @action
    def read_beyond(self, who: Walker) -> None:
        """Its own link is read."""
        require(self.walking[who] == Walking.READS_BEYOND)
        require(self.has_next[self.following[who]])
        self.beyond[who] = self.next[self.following[who]]
        self.walking[who] = Walking.UNLINKS

    @action
    def end_at_a_marked(self, who: Walker) -> None:
        """It is the last, which stays: others append to it."""
        require(self.walking[who] == Walking.READS_BEYOND)
        require(~self.has_next[self.following[who]])
        self.walking[who] = Walking.HAS_ENDED

    @action
    def unlink(self, who: Walker) -> None:
        """The link goes past it, if it is as it was read; then it is read again."""
        require(self.walking[who] == Walking.UNLINKS)
        at = self.at[who]
        same = self.next[at] == self.following[who]
        self.next[at] = ite(same, self.beyond[who], self.next[at])
        self.walking[who] = Walking.READS

    @action
    def give(self, who: Walker) -> None:
        """What was found refers to something: it is returned."""
        require(self.walking[who] == Walking.FOUND)
        found = self.following[who]
        require(self.refers[found])
        self.twice[who] = self.twice[who] | self.returned[who, found]
        self.gave_nothing[who] = self.gave_nothing[who] | ~self.refers[found]
        self.returned[who, found] = True
        self.at[who] = found
        self.walking[who] = Walking.READS

    @action
    def pass_by(self, who: Walker) -> None:
        """It has been marked since, and refers to nothing any more."""
        require(self.walking[who] == Walking.FOUND)
        require(~self.refers[self.following[who]])
        self.at[who] = self.following[who]
        self.walking[who] = Walking.READS

    @action
    def rest(self, who: Walker) -> None:
        """The walk is over; there may be another."""
        require(self.walking[who] == Walking.HAS_ENDED)
        self.walking[who] = Walking.RESTS

    @leads_to(
        "whoever-walks-comes-to-an-end",
        fair=(
            *("read", "end", "find", "find_marked", "read_beyond", "end_at_a_marked"),
            *("unlink", "give", "pass_by"),
        ),
    )
    def walk_ends(self, who: Walker) -> tuple[Bool, Bool]:
        """Nobody has to do anything for a walk to end, and nobody can keep it up for ever."""
        return self.walking[who] == Walking.READS, self.walking[who] == Walking.HAS_ENDED

    @leads_to(
        "whoever-appends-last-comes-to-an-end",
        fair=(
            *("read_tail", "read_next", "help", "link", "find_another_linked", "move_tail"),
            "count",
        ),
    )
    def append_ends(self, n: Node) -> tuple[Bool, Bool]:
        """Where nobody else appends, the node counts in the end, wherever the hint is.

        Others would be behind it: the order is that in which nodes are linked.
        """
        others_have = forall(
            Node,
            lambda m: (m == n) | ((self.appending[m] == Appending.IS_DONE) & self.before(m, n)),
        )
        return others_have & ~self.linked[n], self.appending[n] == Appending.IS_DONE

    @leads_to("whoever-removes-comes-to-an-end", fair=("let_go", "count_out"))
    def removal_ends(self, who: Remover) -> tuple[Bool, Bool]:
        """Who has marked a node lets go of what it refers to, and takes it out of the size."""
        return self.removing[who] != Removing.NOTHING, self.removing[who] == Removing.NOTHING
