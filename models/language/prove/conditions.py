"""The result for an invariant or a counter: one condition for the start and for each action."""

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
    witness is only a counterexample to induction. `reason` says why the outcome is unknown.
    """

    action: str | None
    outcome: Outcome
    seconds: float
    witness: tuple[Step, ...] = ()
    reason: str = ""
    run: tuple[Step, ...] = ()


@dataclass(frozen=True)
class InvariantProof:
    """An invariant, with its conditions and the assumptions beyond the model's axioms.

    An invariant that `says_nothing` is true of every state, whatever the model does.
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
