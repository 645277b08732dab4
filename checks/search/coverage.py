"""What a run of a candidate covered, in counts that every stage keeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Fate
from brokerproof.checks.search.findings import Run


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far the searches of one scope came.

    `whole` is whether every behaviour of the scope was tried, and `depth` the operations up to
    which all were. `transitions` are moves in states of the contract, `chains` those of
    `chains.py`. Of both, `met` counts those that were one step away from a run.
    """

    whole: bool = False
    depth: int = 0
    transitions: int = 0
    transitions_met: int = 0
    chains: int = 0
    chains_met: int = 0

    def with_(self, other: Reach) -> Reach:
        """Return how far two searches of the scope came: the further one of each count."""
        return Reach(
            whole=self.whole or other.whole,
            depth=max(self.depth, other.depth),
            transitions=max(self.transitions, other.transitions),
            transitions_met=max(self.transitions_met, other.transitions_met),
            chains=max(self.chains, other.chains),
            chains_met=max(self.chains_met, other.chains_met),
        )


@dataclass(kw_only=True)
class Coverage:
    """How often each situation, answer and action was seen, and how far each scope was searched.

    `actions` are counted for the contract, `taken` for the models of inspected queues. `given_up`
    counts the steps between two views for which the search for a path was too large. `largest` is
    the most messages in one example.
    """

    exercised: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    actions: Counter[tuple[str, Fate]] = field(default_factory=Counter)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    given_up: int = 0
    largest: int = 0
    reached: dict[str, Reach] = field(default_factory=dict)

    def add(self, other: Coverage) -> None:
        """Add the counts of another part of the run."""
        self.exercised.update(other.exercised)
        self.outcomes.update(other.outcomes)
        self.actions.update(other.actions)
        self.taken.update(other.taken)
        self.given_up += other.given_up
        self.largest = max(self.largest, other.largest)
        for scope, reach in other.reached.items():
            self.reached[scope] = reach.with_(self.reached.get(scope, Reach()))


@dataclass(kw_only=True)
class Examples(Coverage):
    """What a stage of single examples did and found: for each broken requirement, one run."""

    examples: int = 0
    operations: int = 0
    unfollowed: int = 0
    stopped_by: str = ""
    broken: dict[str, Run] = field(default_factory=dict)

    def count(self, oracle: Oracle) -> None:
        """Add an example that has ended, with what its oracle counted."""
        self.examples += 1
        self.exercised.update(oracle.exercised)
        self.outcomes.update(oracle.outcomes)
        self.actions.update(oracle.actions)
        if oracle.watch is not None:
            self.taken.update(oracle.watch.taken)
            self.given_up += oracle.watch.given_up
