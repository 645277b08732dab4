"""The election of the exclusive consumer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.activemq.exclusive import ALWAYS, ExclusiveElection
from brokerproof.reference.shared.copies import copied

if TYPE_CHECKING:
    from collections.abc import Callable


def elected(election: ExclusiveElection, text: str) -> str:
    """Let consumers come (``a5``, with a priority) and leave (``-a``); return the elected ones.

    ``.`` means that none is elected.
    """
    said = []
    for each in text.split():
        if each.startswith("-"):
            election.remove(each[1:])
        else:
            won = election.add(each[0], int(each[1:] or 0))
            assert won == (election.elected == each[0])
        said.append(election.elected or ".")
    return "".join(said)


def outdoes_by_priority(election: ExclusiveElection) -> None:
    """Demand that only a higher priority, or the one that always wins, replaces the elected one."""
    assert elected(election, "a b5 c5 d4 e6 f127 g127 h126") == "abbbefgg"


class Latest(ExclusiveElection):
    """Elects a newcomer of the same priority."""

    __slots__ = ()

    def _outdoes(self, priority: int) -> bool:
        return self.elected is None or priority >= self._priorities[self.elected]


class NoneAlways(ExclusiveElection):
    """Knows no priority that always wins, as before AMQ-3218."""

    __slots__ = ()

    def _outdoes(self, priority: int) -> bool:
        return self.elected is None or priority > self._priorities[self.elected]


def test_only_a_higher_priority_or_127_replaces_the_elected_consumer() -> None:
    outdoes_by_priority(ExclusiveElection())
    for mistaken in (Latest, NoneAlways):
        with pytest.raises(AssertionError):
            outdoes_by_priority(mistaken())


def goes_to_the_best(election: ExclusiveElection) -> None:
    """Demand that the remaining one of highest priority is next, of equals the first to come."""
    assert elected(election, "a3 b c2 d2 -a -c -x -d -b e") == "aaaacddb.e"
    election.remove("e")
    assert elected(election, "a127 b127 -a -b") == "abb."
    assert elected(election, "c127 d127 e -e -d") == "cdddc", "an outdone consumer is elected again"


class InTurn(ExclusiveElection):
    """Elects the first to come of the remaining ones, whatever its priority."""

    __slots__ = ()

    def remove(self, consumer: str) -> None:
        """Let a consumer leave."""
        self._priorities.pop(consumer, None)
        if self.elected == consumer:
            self.elected = next(iter(self._priorities), None)


def test_when_it_leaves_the_best_of_the_others_is_elected() -> None:
    goes_to_the_best(ExclusiveElection())
    with pytest.raises(AssertionError):
        goes_to_the_best(InTurn())


def test_while_a_consumer_is_elected_no_other_is_admitted() -> None:
    election = ExclusiveElection()
    assert election.admits("ordinary")
    election.add("a", 1)
    election.add("b", 0)
    assert [election.admits(each) for each in ("a", "b", "ordinary")] == [True, False, False]
    election.remove("ordinary")
    election.remove("a")
    assert [election.admits(each) for each in ("b", "ordinary")] == [True, False]
    election.remove("b")
    assert election.admits("ordinary")


def drawn(election: ExclusiveElection, seed: int, check: Callable[[], None]) -> None:
    """Let consumers come and leave at random, and check after each."""
    draw = random.Random(seed)  # noqa: S311
    here: list[str] = []
    for number in range(60):
        if here and draw.randrange(2):
            election.remove(here.pop(draw.randrange(len(here))))
        else:
            here.append(str(number))
            election.add(here[-1], draw.choice((0, 1, 2, ALWAYS)))
        assert (election.elected in here) == bool(here)
        assert [each for each in here if election.admits(each)] == [election.elected] * bool(here)
        check()


@pytest.mark.parametrize("seed", range(5))
def test_there_is_exactly_one_elected_if_anybody_is_here_and_copies_agree(seed: int) -> None:
    election = ExclusiveElection()

    def copies_agree() -> None:
        name, copy = election.fingerprint(), copied(election)
        assert copy.fingerprint() == name
        if copy.elected is not None:
            copy.remove(copy.elected)
            assert copy.fingerprint() != name
        assert election.fingerprint() == name

    drawn(election, seed, copies_agree)


def test_the_order_of_arrival_is_in_the_fingerprint_only_among_equals() -> None:
    names = []
    for text in ("a9 b c", "a9 c b", "a9 b5 c", "a9 c b5"):
        election = ExclusiveElection()
        elected(election, text)
        names.append(election.fingerprint())
    assert names[0] != names[1]
    assert names[2] == names[3]
