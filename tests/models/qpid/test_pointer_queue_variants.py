"""The queue of pointers with a step changed: each invariant that the steps keep is then broken."""

from __future__ import annotations

import pytest

from brokerproof.models.language import FALSE, Bool, action, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Status, Subscription

SCOPE = Scope({Entry: 3, Subscription: 2}, range(1))


class TakesWhatIsHeld(PointerQueue):
    """Gives an acquired entry to another subscription as well."""

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate need not be available."""
        require(self.active[consumer] & ~self.browser[consumer])
        require(self.candidate(consumer, entry) & self.only_arrival(entry))
        require(self.in_list(entry))
        self.status[entry] = Status.ACQUIRED
        self.holds[consumer, entry] = True
        self._move_to(consumer, entry)


class ForgetsWhatIsPast(PointerQueue):
    """A return takes back only the place of the subscription that returned the entry."""

    @action
    def release(self, consumer: Subscription, entry: Entry) -> None:
        """Others that are past the entry stay where they are."""
        rewound, released = self.rewound[consumer], self.released[consumer]
        earlier = ~rewound | self.before(entry, released)
        require(self.holds[consumer, entry])
        self.status[entry] = Status.AVAILABLE
        self.holds[consumer, entry] = False
        self.released[consumer] = ite(earlier, entry, released)
        self.rewound[consumer] = True


class GoesBackOnlyFromBeyond(PointerQueue):
    """Looks at a released entry only if the place is beyond it, not at it (B-01/QPID-5877)."""

    def candidate(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether e is the next entry of the consumer."""
        back = self.rewound[consumer] & self.before(
            self.released[consumer], self.last_seen[consumer]
        )
        return ite(back, self.released[consumer] == e, self.follows(self.last_seen[consumer], e))


class TakesBrowsersBack(PointerQueue):
    """A return takes browsers back too."""

    def _rewind_to(self, entry: Entry, *, browsers: bool, unless: Bool = FALSE) -> None:
        del browsers
        super()._rewind_to(entry, browsers=True, unless=unless)


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (TakesWhatIsHeld, "held-is-acquired"),
        (ForgetsWhatIsPast, "pointer-passes-nothing-of-interest"),
        (GoesBackOnlyFromBeyond, "candidate-is-first"),
        (TakesBrowsersBack, "browser-shown-once-in-order"),
    ],
)
def test_each_step_is_needed(model: type[Model], broken: str) -> None:
    found = explore(trace(model), SCOPE, invariants=[broken])
    assert found.violation is not None
    assert found.violation.invariant == broken


def test_the_queue_itself_keeps_them_in_the_scope() -> None:
    found = explore(trace(PointerQueue), SCOPE)
    assert (found.violation, found.incomplete) == (None, "")
