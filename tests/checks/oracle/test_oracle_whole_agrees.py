"""On conversations within the core, the whole contract agrees with the core.

Both follow the same conversations: of a sound broker, with prompt or late events, and with a fault
in them. The oracles must refuse the same step for the same reason, and count the same situations. A
twin of the whole contract shows that the comparison notices a difference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from brokerproof.checks.oracle import contracts
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.contracts import TOLERATED
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Rules
from brokerproof.checks.search.findings import goes_on
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.trace.moves import operation_of
from brokerproof.models.contract.core import Entry
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language import Bool
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.read.pointwise import Pointwise
from brokerproof.reference import make
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Reset
from examples.naive_queue import NaiveBroker
from tests.checks.oracle.test_oracle import CLAIMS, PER_CONSUMER, Told, stated_in
from tests.checks.oracle.test_streams import histories, spoilt

CORE = stated_in("core.toml")
SOUND: dict[str, Candidate] = {"reference": make("qpid-push"), "naive": NaiveBroker()}


def conversations(candidate: Candidate, number: int) -> Iterator[list[Told]]:
    """Yield a broker's answers to random walks in the scopes of the core."""
    scopes = scopes_for(CLAIMS)
    for seed in range(number):
        chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
        scope = scopes[seed % len(scopes)]
        candidate.handle(Reset())
        guide, told = Oracle(CLAIMS), list[Told]()
        for _ in range(14):
            operation = operation_of(
                chosen.choice(list(scope.moves(guide.bindings))), guide.bindings
            )
            if operation is not None:
                told.append((operation, candidate.handle(operation)))
                guide.observe(*told[-1])
        yield told
        if deliveries := [e for _, answer in told for e in answer.events]:
            assert all(isinstance(event, Delivered) for event in deliveries)
            yield spoilt(told, chosen)


def judged(
    conversation: list[Told], claims: Capabilities, *, whole: bool
) -> tuple[list[tuple[str, tuple[str, ...]]], Counter[str]]:
    """Return an oracle's breaches, and the situations of the core that it counts."""
    oracle = Oracle(claims, beyond_the_core=whole)
    found: list[tuple[str, tuple[str, ...]]] = []
    for operation, answer in conversation:
        try:
            breaches = oracle.observe(operation, answer)
        except Unfollowable:
            found.append(("not followed", ()))
            break
        found += [(breach.requirement, breach.witnesses) for breach in breaches]
        if not all(map(goes_on, breaches)):
            break
    exercised = {label: times for label, times in oracle.exercised.items() if label in CORE}
    return found, Counter(exercised)


def differences(told: Iterator[list[Told]], claims: Capabilities) -> tuple[list[str], Counter[str]]:
    """Return where the oracles differ, and how often each requirement was broken."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for number, conversation in enumerate(told):
        core = judged(conversation, claims, whole=False)
        whole = judged(conversation, claims, whole=True)
        seen.update(requirement for requirement, _ in core[0] or [("accepted", ())])
        if core[0] != whole[0]:
            found.append(f"{number}: {core[0]} in the core, {whole[0]} in the whole")
        elif core[1] != whole[1]:
            found.append(f"{number}: only in the core {core[1] - whole[1]}, {whole[1] - core[1]}")
    return found, seen


@pytest.mark.parametrize("name", SOUND)
def test_both_judge_what_a_broker_answers_alike(name: str) -> None:
    found, seen = differences(conversations(SOUND[name], 120), CLAIMS)
    assert found == []
    assert seen.pop("accepted") > 60
    assert len(seen) > 5


@pytest.mark.parametrize("claims", [CLAIMS, PER_CONSUMER], ids=["total", "per-consumer"])
def test_both_judge_what_is_told_late_alike(claims: Capabilities) -> None:
    found, seen = differences(histories(80, claims), claims)
    assert found == []
    assert seen.pop("accepted") > 40
    assert len(seen) > 5


class Deaf(WholeContract):
    """Never hears whether a message had come back."""

    def is_told_as(self, f: Entry, redelivered: Bool) -> Bool:
        """Whether a flag is one or the other."""
        return super().is_told_as(f, redelivered) | ~super().is_told_as(f, redelivered)


def test_a_whole_contract_that_forgets_something_of_the_core_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deaf = Rules(Pointwise(trace(Deaf), Entry), TOLERATED)
    monkeypatch.setattr(contracts, "whole", lambda: deaf)
    found, _ = differences(conversations(SOUND["reference"], 60), CLAIMS)
    assert any("redelivered-flag" in each for each in found)
