"""Invariants of the whole contract, which hold for every broker that conforms."""

from __future__ import annotations

from brokerproof.models.contract.core_state import Consumer, Entry, Mode, Status
from brokerproof.models.contract.whole_state import End, WholeContractState
from brokerproof.models.language import Bool, implies, invariant


class WholeContractInvariants(WholeContractState):
    """Statements about every state of a conforming broker, with all capabilities."""

    @invariant("window-is-never-exceeded")
    def window_is_never_exceeded(self, c: Consumer) -> Bool:
        """A consumer's unsettled messages fit its window, unless the window was lowered since."""
        return implies(
            self.limited[c]
            & ~self.lowered[c]
            & self.consuming[c]
            & (self.mode[c] == Mode.ACKNOWLEDGE),
            self.unsettled[c] <= self.limit[c],
        )

    @invariant("what-is-gone-has-ended")
    def gone_has_ended(self, e: Entry) -> Bool:
        """An entry is dequeued exactly if it has an end."""
        return (self.status[e] == Status.DEQUEUED) == (self.end[e] != End.NONE)

    @invariant("what-survives-is-not-lost")
    def survivors_are_not_lost(self, e: Entry) -> Bool:
        """A crash loses no message that has to survive it."""
        return implies(self.survives[e], self.end[e] != End.LOST)
