"""Invariants of the contract, which hold for every broker that conforms."""

from __future__ import annotations

from brokerproof.models.contract.core_state import Consumer, ContractState, Entry, Mode, Status
from brokerproof.models.language import Bool, implies, invariant


class ContractInvariants(ContractState):
    """Statements about every state that a conforming broker can be in."""

    @invariant("holders-acknowledge")
    def holders_acknowledge(self, e: Entry) -> Bool:
        """Only a consumer that acknowledges holds messages; a browser never does."""
        return implies(
            self.status[e] == Status.ACQUIRED, self.mode[self.holder[e]] == Mode.ACKNOWLEDGE
        )

    @invariant("window-is-never-exceeded")
    def window_is_never_exceeded(self, c: Consumer) -> Bool:
        """A consumer's unsettled messages fit its window."""
        return implies(
            self.limited[c] & (self.mode[c] == Mode.ACKNOWLEDGE),
            self.unsettled[c] <= self.limit[c],
        )

    @invariant("absent-is-unknown")
    def absent_is_unknown(self, c: Consumer, e: Entry) -> Bool:
        """An unpublished entry has not returned, and no browser has passed it."""
        return implies(
            self.status[e] == Status.ABSENT,
            ~self.has_returned(e) & ~self.excused[c, e] & ~self.behind[c, e],
        )

    @invariant("shown-is-excused")
    def shown_is_excused(self, c: Consumer, e: Entry) -> Bool:
        """An entry that a browser was shown, or that is behind its place, is excused."""
        return implies(self.shown[c, e] | self.behind[c, e], self.excused[c, e])

    @invariant("fifo-browser-never-goes-back")
    def fifo_browser_never_goes_back(self, c: Consumer, e: Entry) -> Bool:
        """On a FIFO queue an entry once shown to a browser stays behind it, despite releases."""
        return implies(
            self.fifo[self.home[e]],
            ~self.may_repeat[c, e] & implies(self.shown[c, e], self.behind[c, e]),
        )

    @invariant("came-back-has-returned")
    def came_back_has_returned(self, c: Consumer, e: Entry) -> Bool:
        """An entry that came back behind a browser's place had been acquired by a consumer."""
        return implies(self.came_back[c, e], self.has_returned(e))
