"""What a run of a candidate covered, in counts that every stage keeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Fate
from brokerproof.checks.search.findings import Run


@dataclass(kw_only=True)
class Coverage:
    """How often each situation, answer and action was seen.

    `actions` are counted for the contract, `taken` for the models of inspected queues. `given_up`
    counts the steps between two views for which the search for a path was too large.
    """

    exercised: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    actions: Counter[tuple[str, Fate]] = field(default_factory=Counter)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    given_up: int = 0

    def add(self, other: Coverage) -> None:
        """Add the counts of another part of the run."""
        self.exercised.update(other.exercised)
        self.outcomes.update(other.outcomes)
        self.actions.update(other.actions)
        self.taken.update(other.taken)
        self.given_up += other.given_up


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
