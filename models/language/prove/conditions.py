"""What became of an invariant or a counter: its conditions, one for the start and for each action.

Owns these values and nothing of how they come about.
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
    shortest run from the beginning to where the invariant fails, if a quick search finds one;
    without it, the witness is no more than a counterexample to induction. `reason` says why nothing
    is known.
    """

    action: str | None
    outcome: Outcome
    seconds: float
    witness: tuple[Step, ...] = ()
    reason: str = ""
    run: tuple[Step, ...] = ()


@dataclass(frozen=True)
class InvariantProof:
    """An invariant, with its conditions and what was assumed beyond the model's axioms.

    One that `says_nothing` is true of every state, whatever the model does.
    """

    name: str
    conditions: tuple[Condition, ...]
    assumptions: tuple[str, ...] = ()
    says_nothing: bool = False

    @property
    def outcome(self) -> Outcome:
        """Refuted where a condition is, else unknown where one is, else proved."""
        outcomes = {condition.outcome for condition in self.conditions}
        for outcome in ("refuted", "unknown"):
            if outcome in outcomes:
                return cast("Outcome", outcome)
        return "proved"

    @property
    def seconds(self) -> float:
        """How long the conditions took together."""
        return sum(condition.seconds for condition in self.conditions)
