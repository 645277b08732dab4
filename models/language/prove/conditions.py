"""The result for a statement: an invariant, a counter or a leads-to property.

The first two have one condition for the start and one for each action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.z3_queries import Outcome


@dataclass(frozen=True)
class Condition:
    """One condition of an invariant: that `action` keeps it, or that it holds initially (None).

    `witness` shows a refutation: the state before and the step, or the initial state. `run` is a
    shortest run from an initial state to a violation, if a quick search finds one; without it, the
    witness is only a counterexample to induction. `reason` says why the outcome is unknown, and
    `of` in words which condition of a leads-to property it is.
    """

    action: str | None
    outcome: Outcome
    seconds: float
    witness: tuple[Step, ...] = ()
    reason: str = ""
    run: tuple[Step, ...] = ()
    of: str = ""


@dataclass(frozen=True)
class InvariantProof:
    """A statement, with its conditions and the assumptions beyond the model's axioms.

    An invariant that `says_nothing` is true of every state, also of unreachable ones. A leads-to
    property says nothing if no state that satisfies the invariants has its premise alone.
    """

    name: str
    conditions: tuple[Condition, ...]
    assumptions: tuple[str, ...] = ()
    says_nothing: bool = False

    @property
    def outcome(self) -> Outcome:
        """Refuted if a condition is, otherwise unknown if one is, otherwise proved."""
        outcomes = {condition.outcome for condition in self.conditions}
        for outcome in ("refuted", "unknown"):
            if outcome in outcomes:
                return cast("Outcome", outcome)
        return "proved"

    @property
    def seconds(self) -> float:
        """The total time of the conditions."""
        return sum(condition.seconds for condition in self.conditions)
