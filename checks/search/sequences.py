"""The sequences grade of the exhaustive stage: every sequence of moves, shorter ones first.

For candidates with repeatable answers that cannot be copied: each sequence is played from a reset,
length by length, so the first violation found is a shortest one of its scope. The answers to a
prefix, and the oracle after it, are known from the length before; playing it again shows whether
the candidate is deterministic. If it is not, the adaptive grade takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from brokerproof.checks.conversation import first_difference
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import Exchange, judged
from brokerproof.checks.search.root_cause import Fresh
from brokerproof.checks.search.searches import Search, collecting_rarely, may_go_on
from brokerproof.checks.search.step_cache import SearchNode, StepCache
from brokerproof.spec.protocol.candidate import Candidate

LENGTH_MAX = 64
"""A scope whose every sequence has ended by itself before this length has been searched whole."""


class Nondeterministic(Exception):
    """The same operations were answered differently; the message is one line."""


@dataclass(slots=True)
class _Sequence:
    """A sequence that was played: its steps, and its node of the search."""

    steps: tuple[Exchange, ...]
    place: SearchNode


@collecting_rarely()
def search_sequences(
    found: Search,
    fresh: Fresh,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> None:
    """Play every sequence of a scope up to the length that the budget allows.

    `depth` of `found` is the length up to which all were played. Raises `Nondeterministic`, and
    `CannotStart` if a reset fails.
    """
    standings = StepCache(found)
    ends = [_Sequence((), standings.start(fresh()[1]))]
    try:
        while ends and len(ends[0].steps) < LENGTH_MAX:
            following: list[_Sequence] = []
            for sequence in ends:
                following += _continued(sequence, found, fresh, standings)
                if found.is_to_stop(interrupted, operations_max):
                    return
            found.depth += 1
            found.pairs += len(following)
            progress(found)
            ends = following
        found.complete = not found.unfollowed and not ends
    finally:
        standings.close()


def _continued(
    sequence: _Sequence, found: Search, fresh: Fresh, standings: StepCache
) -> Iterator[_Sequence]:
    """Play each continuation of a sequence by one move; yield those that can be continued."""
    steps, place = sequence.steps, sequence.place
    for number in range(place.standing.page.own):
        candidate, oracle = fresh()
        _play_again(candidate, oracle, steps, found)
        try:
            told, breaches, after = standings.step(candidate, place, number, lambda: steps)
        except Unfollowable:
            found.unfollowed += 1
            continue
        found.operations += 1
        if told is None:
            continue
        longer = (*steps, told)
        if may_go_on(longer, breaches, candidate, found) and after is not None:
            yield _Sequence(longer, after)
        if found.stopped_by:
            return


def _play_again(
    candidate: Candidate, oracle: Oracle, steps: tuple[Exchange, ...], found: Search
) -> None:
    """Play the steps of a sequence again; a different answer is judged and ends the search.

    Raises `Nondeterministic` then.
    """
    different = first_difference(candidate, steps)
    if different is None:
        found.operations += len(steps)
        return
    number, answer = different
    found.operations += number + 1
    for each in steps[:number]:
        oracle.observe(each.operation, each.answer)
    move, operation = steps[number].move, steps[number].operation
    try:
        told, breaches = judged(oracle, move, operation, answer)
        may_go_on((*steps[:number], told), breaches, candidate, found)
    except Unfollowable:
        found.unfollowed += 1
    raise Nondeterministic(
        f"another answer to step {number + 1} of the same {len(steps)} operations"
    )
