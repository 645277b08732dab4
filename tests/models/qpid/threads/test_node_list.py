"""The list that walks unlink from: proved for any number of nodes and threads, and twins."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.language import Bool, action, exists, forall, implies, invariant, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.counting import prove_counter, with_counts
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.language.prove.ranking import HELPED, STEP, prove_leads_to
from brokerproof.models.qpid.threads.node_list import Node, NodeList, Remover, Walker
from brokerproof.models.qpid.threads.node_list_state import Appending, Removing, Walking

THROUGHOUT = "what-is-there-throughout-is-returned"


def scope(nodes: int, removers: int = 1, walkers: int = 1) -> Scope:
    """Return a scope of so many nodes besides the head, in the order in which they are numbered."""
    sizes: dict[type[Term], int] = {Node: nodes + 1, Remover: removers, Walker: walkers}
    return Scope(sizes, range(-1, nodes + 1), {"no_remover": 0, "head": 0})


def explored(model: type[Model], broken: str, nodes: int = 2, removers: int = 1) -> Exploration:
    """Explore for one invariant."""
    wanted = scope(nodes, removers)
    return explore(trace(model), wanted, invariants=[broken], limit_states=2_000_000)


class UnlinksTheLast(NodeList):
    """Unlinks a marked node though nothing is behind it."""

    @action
    def end_at_a_marked(self, walker: Walker) -> None:
        """The link ends before it."""
        super().end_at_a_marked(walker)
        self.has_next[self.at[walker]] = False


class LinksBlindly(NodeList):
    """Links its node behind the old tail, whatever is there by now."""

    @action
    def link(self, n: Node) -> None:
        """The node is linked."""
        require(self.appending[n] == Appending.LINKS)
        require(forall(Node, lambda m: implies(self.linked[m], self.before(m, n))))
        self.next[self.saw_tail[n]] = n
        self.has_next[self.saw_tail[n]] = True
        self.linked[n] = True
        self.appending[n] = Appending.MOVES_TAIL


class MarksAgain(NodeList):
    """Marks a node without a look whether it is."""

    @action
    def mark(self, remover: Remover, n: Node) -> None:
        """A node is marked."""
        require(self.removing[remover] == Removing.NOTHING)
        require((self.appending[n] == Appending.IS_DONE) & (n != self.head))
        self.deleted[n] = True
        self.told[remover, n] = True
        self.marked_by[n] = remover
        self.throughout = self.throughout.map(lambda _, m, old: old & (m != n))
        self.target[remover] = n
        self.removing[remover] = Removing.LETS_GO


class ReturnsWhatIsMarked(NodeList):
    """Returns whatever follows (QPID-3219)."""

    @action
    def find(self, walker: Walker) -> None:
        """The next node is found."""
        require(self.walking[walker] == Walking.LOOKS)
        self.saw_marked[walker] = self.deleted[self.following[walker]]
        self.walking[walker] = Walking.FOUND


class ForgetsItsLink(NodeList):
    """An unlinked node clears its link, under the walks that stand on it."""

    @action
    def unlink(self, walker: Walker) -> None:
        """The link goes past it."""
        super().unlink(walker)
        self.has_next[self.following[walker]] = False


class GoesOnBeyond(NodeList):
    """Goes on behind the unlinked node, without a look at the node before."""

    @action
    def unlink(self, walker: Walker) -> None:
        """The node beyond is taken as found."""
        super().unlink(walker)
        self.at[walker] = self.beyond[walker]


class KeepsWhatItMarked(NodeList):
    """Unlinks marked nodes later, and keeps their elements until then (QPID-7593)."""

    @action
    def let_go(self, remover: Remover) -> None:
        """The node keeps its element."""
        require(self.removing[remover] == Removing.LETS_GO)
        self.removing[remover] = Removing.COUNTS


class GivesWithoutALook(NodeList):
    """Returns the found node, even if it was removed since (QPID-7514)."""

    @action
    def give(self, walker: Walker) -> None:
        """The found node is returned."""
        require(self.walking[walker] == Walking.FOUND)
        found = self.following[walker]
        self.gave_nothing[walker] = self.gave_nothing[walker] | ~self.refers[found]
        self.returned[walker, found] = True
        self.at[walker] = found
        self.walking[walker] = Walking.READS


class TailStaysLinked(NodeList):
    """As documented, with more promised of the tail: that a walk from the head comes to it."""

    @invariant("no-link-passes-the-tail")
    def tail_stays_linked(self) -> Bool:
        """No walk unlinks the node of the hint."""
        return ~exists(
            Node,
            lambda n: self.has_next[n] & self.is_between(n, self.tail, self.next[n]),
        )


def test_it_is_proved_for_any_number_of_nodes_and_threads() -> None:
    system = trace(NodeList)
    stated = [prove_invariant(system, each) for each in system.invariants]
    stated += [prove_counter(system, each) for each in system.ghosts]
    assert [each.name for each in stated if each.outcome != "proved"] == []
    assert {THROUGHOUT, "size-moves"} <= {each.name for each in stated}


def test_two_nodes_and_three_threads_keep_all_of_it_and_the_size_is_the_count() -> None:
    found = explore(with_counts(trace(NodeList), scope(2)), scope(2), limit_states=2_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.each_time(4)
@pytest.mark.parametrize(
    ("model", "broken", "nodes", "removers"),
    [
        (UnlinksTheLast, "where-no-link-is-nothing-is-behind", 2, 1),
        (LinksBlindly, "where-no-link-is-nothing-is-behind", 2, 1),
        (MarksAgain, "of-several-that-remove-one-did", 1, 2),
        (ReturnsWhatIsMarked, "what-is-returned-was-not-marked", 1, 1),
        (ForgetsItsLink, "where-no-link-is-nothing-is-behind", 2, 1),
        (GoesOnBeyond, THROUGHOUT, 2, 1),
        (KeepsWhatItMarked, "what-is-removed-is-let-go-of", 1, 1),
        (GivesWithoutALook, "what-is-returned-refers-to-something", 1, 1),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, nodes: int, removers: int) -> None:
    found = explored(model, broken, nodes, removers)
    assert found.violation is not None
    assert found.violation.invariant == broken


def test_the_hint_may_stand_on_a_node_that_a_walk_has_unlinked() -> None:
    found = explored(TailStaysLinked, "no-link-passes-the-tail")
    assert found.violation is not None
    tail = found.violation.trace[-1].state["tail"]
    assert found.violation.trace[-1].state[f"deleted[{tail}]"]


def test_every_walk_append_and_removal_comes_to_an_end() -> None:
    assert all(each.kept for each in check(trace(NodeList), scope(1)))


class WaitsForOthers(NodeList):
    """A remover counts its node only if no other remover is at work."""

    @action
    def count_out(self, remover: Remover) -> None:
        """The others are done."""
        others = forall(Remover, lambda r: (r == remover) | (self.removing[r] == Removing.NOTHING))
        require(others)
        super().count_out(remover)


class StartsOver(NodeList):
    """A walk starts at the head again after it has met a marked node."""

    @action
    def unlink(self, walker: Walker) -> None:
        """The link skips the marked node."""
        super().unlink(walker)
        self.at[walker] = self.head


class HelpsNone(NodeList):
    """An appender finds that the hint lags, and leaves it there."""

    @action
    def help(self, n: Node) -> None:
        """The hint stays."""
        tail = self.tail
        super().help(n)
        self.tail = tail


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("model", "ended", "failing"),
    [
        (NodeList, "each-removal-ends", set()),
        (NodeList, "each-walk-ends", set()),
        (NodeList, "the-last-append-ends", set()),
        (WaitsForOthers, "each-removal-ends", {(HELPED, None), (STEP, "mark")}),
        (StartsOver, "each-walk-ends", {(STEP, "unlink")}),
        (HelpsNone, "the-last-append-ends", {(STEP, "help")}),
    ],
)
def test_threads_end_with_any_number_of_others_and_need_their_own_steps_alone(
    model: type[Model], ended: str, failing: set[tuple[str, str | None]]
) -> None:
    [progress] = [each for each in trace(model).leads_to if each.name == ended]
    conditions = prove_leads_to(trace(model), progress).conditions
    assert {(c.of, c.action) for c in conditions if c.outcome != "proved"} == failing


def test_a_walk_need_not_end_while_nodes_are_appended_for_ever() -> None:
    [progress] = [each for each in trace(NodeList).leads_to if each.name == "each-walk-ends"]
    for_ever = prove_leads_to(trace(NodeList), dataclasses.replace(progress, finitely={}))
    assert [c.action for c in for_ever.conditions if c.outcome != "proved"] == ["link"]
