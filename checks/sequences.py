"""The sequences grade of the exhaustive stage: every sequence of moves, shorter ones first.

For candidates that answer the same to the same, and cannot be copied: each sequence is played from
a reset, length by length, so the first violation found is a shortest one of its scope. What a
prefix was answered is known from the length before, and so is the oracle after it; playing it again
shows whether the candidate is deterministic at all. One that is not is left to the adaptive grade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from brokerproof.checks.breaches import Unfollowable
from brokerproof.checks.charges import Fresh
from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.findings import Told, step
from brokerproof.checks.oracle import Oracle
from brokerproof.checks.searches import Search, may_go_on

LENGTH_MAX = 64
"""A scope whose every sequence has ended by itself before this length has been searched whole."""


class Nondeterministic(Exception):
    """The same operations were answered differently; the message is one line."""


@dataclass
class _Prefix:
    """A sequence that was played: its last step, the oracle after it, and what continues it."""

    told: Told | None
    oracle: Oracle
    longer: list[_Prefix] = field(default_factory=list)


def search_sequences(
    found: Search,
    fresh: Fresh,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> None:
    """Play every sequence of a scope up to the length that the budget allows.

    `depth` of what was found is the length up to which all were played. Raises
    `Nondeterministic`, and `CannotStart` where a reset fails.
    """
    root = _Prefix(None, fresh()[1])
    ends = [[root]]
    while ends and len(ends[0]) <= LENGTH_MAX:
        following: list[list[_Prefix]] = []
        for path in ends:
            following += _continued(path, found, fresh)
            found.stopped_by = (
                found.stopped_by
                or interrupted()
                or (f"{operations_max} operations" if found.operations >= operations_max else "")
            )
            if found.stopped_by:
                return
        found.depth += 1
        found.pairs += len(following)
        progress(found)
        ends = following
    found.complete = not found.unfollowed and not ends


def _continued(path: list[_Prefix], found: Search, fresh: Fresh) -> Iterator[list[_Prefix]]:
    """Play each continuation of a sequence by one move; yield those that can be continued."""
    last = path[-1]
    steps = tuple(prefix.told for prefix in path if prefix.told is not None)
    for move in list(found.scope.moves(last.oracle.book)):
        candidate, _ = fresh()
        oracle = last.oracle.fork()
        for number, earlier in enumerate(steps, start=1):
            found.operations += 1
            answer = ask(candidate, earlier.operation)
            if isinstance(answer, Misbehaviour) or answer != earlier.answer:
                raise Nondeterministic(
                    f"step {number} of the same {len(steps)} operations was answered differently"
                )
        try:
            told, breaches = step(candidate, oracle, move)
        except Unfollowable:
            found.unfollowed += 1
            continue
        found.operations += 1
        if told is None:
            continue
        found.count(oracle)
        if may_go_on((*steps, told), breaches, candidate, found):
            yield [*path, _Prefix(told, oracle)]
        if found.stopped_by:
            return
