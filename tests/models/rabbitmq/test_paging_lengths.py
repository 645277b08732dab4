"""The lengths of the paging queue's places: proved for any lengths, and each rule is needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Int, action, implies, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.prove.prover import prove, prove_invariant
from brokerproof.models.rabbitmq.paging_lengths import (
    DELTA_BESIDE_Q3,
    EMPTY,
    NOT_NEGATIVE,
    Q1_BESIDE_Q3,
    Q2_BESIDE_DELTA,
    RUNS_OUT,
    SUM,
    PagingLengths,
    Part,
    Whole,
)

SCOPE = Scope({}, range(-5, 6), {"most": 5})
"""Five messages at most."""


class PublishesToQ4(PagingLengths):
    """Appends arrivals to q4, whatever is in q3."""

    @action
    def publish(self) -> None:
        """A message goes to q4."""
        require(self.total[Whole.IT] < self.most)
        self._gains(Part.Q4, 1)
        self.total[Whole.IT] = self.total[Whole.IT] + 1


class PublishesToQ1(PagingLengths):
    """Appends arrivals to q1, though q3 is empty."""

    @action
    def publish(self) -> None:
        """A message goes to q1."""
        require(self.total[Whole.IT] < self.most)
        self._gains(Part.Q1, 1)
        self.total[Whole.IT] = self.total[Whole.IT] + 1


class PagesQ1ToQ2(PagingLengths):
    """Pages q1 to q2, though delta be blank."""

    @action
    def page_q1(self) -> None:
        """The first of q1 goes to q2."""
        require(self.length[Part.Q1] > 0)
        self._loses(Part.Q1, 1)
        self._gains(Part.Q2, 1)


class PagesAllOfQ3(PagingLengths):
    """Pages q3 to delta without a limit, and so its first, too."""

    @action
    def page_q3(self, count: Int) -> None:
        """Some of q3 go to delta."""
        require((count > 0) & (count <= self.length[Part.Q3]))
        self._loses(Part.Q3, count)
        self._gains(Part.DELTA, count)


class KeepsQ1(PagingLengths):
    """Leaves q1 unchanged when the last of q3 leaves."""

    def _q1_becomes_q4(self) -> None:
        pass


class LeavesQ2(PagingLengths):
    """Reads all of delta, and leaves q2 unchanged."""

    def _reloads_all(self) -> None:
        self._gains(Part.Q3, self.length[Part.DELTA])
        self.length[Part.DELTA] = 0


class ReadsNothing(PagingLengths):
    """Ends a fetch after a segment of which nothing is left."""

    @action
    def fetch_last_and_reload(self, read: Int) -> None:
        """The last of q3 is fetched."""
        require(self.has_only_one_in_q3() & (read >= 0) & (read < self.length[Part.DELTA]))
        self._loses(Part.Q3, 1)
        self._reloads(read)
        self._leaves()


class ReadsTooMuch(PagingLengths):
    """Reads more than delta has counted."""

    @action
    def fetch_last_and_reload(self, read: Int) -> None:
        """The last of q3 is fetched."""
        require(self.has_only_one_in_q3() & ~self.is_blank() & (read > 0))
        self._loses(Part.Q3, 1)
        self._reloads(read)
        self._leaves()


class RequeuesIntoBlankDelta(PagingLengths):
    """Lets messages return to delta, though nothing be there, nor in q3."""

    @action
    def requeue(self, to_q4: Int, to_q3: Int, to_delta: Int) -> None:
        """Messages return."""
        returning = to_q4 + to_q3 + to_delta
        require((to_q4 >= 0) & (to_q3 >= 0) & (to_delta >= 0))
        require(self.total[Whole.IT] + returning <= self.most)
        require(implies(self.length[Part.Q3] == 0, to_q3 == 0))
        self._gains(Part.Q4, to_q4)
        self._gains(Part.Q3, to_q3)
        self._gains(Part.DELTA, to_delta)
        self.total[Whole.IT] = self.total[Whole.IT] + returning


class RecoversIntoDelta(PagingLengths):
    """Starts anew without reading a segment."""

    @action
    def recover(self, in_delta: Int, in_q3: Int) -> None:
        """The queue starts anew."""
        require((in_delta >= 0) & (in_q3 == 0) & (in_delta <= self.most))
        self.length.fill(0)
        self.length[Part.DELTA] = in_delta
        self.total[Whole.IT] = in_delta


class PutsBackUncounted(PagingLengths):
    """Forgets requeued messages."""

    @action
    def put_back_into_q4(self) -> None:
        """The last of q3 is put back."""
        super().put_back_into_q4()
        self._loses(Part.Q4, 1)


def explored(model: type[Model], scope: Scope, *invariants: str) -> Exploration:
    """Explore; all invariants, or those named."""
    return explore(trace(model), scope, invariants=invariants or None)


def test_it_is_proved_for_any_lengths() -> None:
    proof = prove(trace(PagingLengths))
    assert proof.complete
    assert {EMPTY, RUNS_OUT, SUM} <= {each.name for each in proof.invariants}


def test_up_to_five_messages_keep_all_of_it() -> None:
    found = explored(PagingLengths, SCOPE)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


def test_lengths_do_not_see_what_is_published_before_others() -> None:
    """The order does: `test_paging_places` refutes the same change."""
    assert prove(trace(PublishesToQ4)).complete


@pytest.mark.each_time(4)
@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (PublishesToQ1, Q1_BESIDE_Q3, 1),
        (PagesQ1ToQ2, Q2_BESIDE_DELTA, 3),
        (PagesAllOfQ3, DELTA_BESIDE_Q3, 2),
        (KeepsQ1, Q1_BESIDE_Q3, 3),
        (LeavesQ2, Q2_BESIDE_DELTA, 4),
        (LeavesQ2, RUNS_OUT, 4),
        (ReadsNothing, DELTA_BESIDE_Q3, 2),
        (ReadsTooMuch, NOT_NEGATIVE, 2),
        (RequeuesIntoBlankDelta, DELTA_BESIDE_Q3, 1),
        (RecoversIntoDelta, EMPTY, 1),
        (PutsBackUncounted, SUM, 3),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int) -> None:
    system = trace(model)
    [stated] = [each for each in system.invariants if each.name == broken]
    assert prove_invariant(system, stated).outcome == "refuted"
    found = explored(model, SCOPE, broken)
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps
