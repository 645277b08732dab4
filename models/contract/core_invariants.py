"""Invariants of the contract, which hold for every broker that conforms."""

from __future__ import annotations

from brokerproof.models.contract.core_state import Consumer, ContractWords, Entry, Mode, Status
from brokerproof.models.language import Bool, forall, implies, invariant


class ContractInvariants(ContractWords):
    """Statements about every state that a conforming broker can be in."""

    @invariant("holders-acknowledge")
    def holders_acknowledge(self) -> Bool:
        """Only a consumer that acknowledges holds messages; a browser never does."""
        return forall(
            Entry,
            lambda e: implies(
                self.status[e] == Status.ACQUIRED, self.mode[self.holder[e]] == Mode.ACKNOWLEDGE
            ),
        )

    @invariant("window-is-never-exceeded")
    def window_is_never_exceeded(self) -> Bool:
        """A consumer's unsettled messages fit its window."""
        return forall(
            Consumer,
            lambda c: implies(
                self.limited[c] & (self.mode[c] == Mode.ACKNOWLEDGE),
                self.unsettled[c] <= self.limit[c],
            ),
        )

    @invariant("absent-is-unknown")
    def absent_is_unknown(self) -> Bool:
        """An unpublished entry has not returned, and no browser has passed it."""
        return forall(
            Consumer,
            Entry,
            lambda c, e: implies(
                self.status[e] == Status.ABSENT,
                ~self.has_returned(e) & ~self.excused[c, e] & ~self.behind[c, e],
            ),
        )

    @invariant("shown-is-excused")
    def shown_is_excused(self) -> Bool:
        """An entry that a browser was shown, or that is behind its place, is excused."""
        return forall(
            Consumer,
            Entry,
            lambda c, e: implies(self.shown[c, e] | self.behind[c, e], self.excused[c, e]),
        )

    @invariant("fifo-browser-never-goes-back")
    def fifo_browser_never_goes_back(self) -> Bool:
        """On a FIFO queue an entry once shown to a browser stays behind it, despite releases."""
        return forall(
            Consumer,
            Entry,
            lambda c, e: implies(
                self.fifo[self.home[e]],
                ~self.may_repeat[c, e] & implies(self.shown[c, e], self.behind[c, e]),
            ),
        )

    @invariant("came-back-has-returned")
    def came_back_has_returned(self) -> Bool:
        """An entry that came back behind a browser's place had been acquired by a consumer."""
        return forall(
            Consumer, Entry, lambda c, e: implies(self.came_back[c, e], self.has_returned(e))
        )
