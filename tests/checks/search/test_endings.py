"""The end of a run shows what a broker has lost on the way, and its twin finds nothing."""

from __future__ import annotations

import pytest

from brokerproof.checks.search import adaptive
from brokerproof.checks.search.adaptive import search_adaptively
from brokerproof.checks.search.scopes.scope import Kind, Scope
from brokerproof.checks.search.searches import Search
from brokerproof.spec.messages import Fifo
from tests.faults.catalogue import faults
from tests.faults.kill_table import subject_of

LEAVES = Scope(
    "one consumer that leaves",
    (Fifo(),),
    messages=1,
    consumers=1,
    kinds=(Kind("acknowledge"),),
    cancels=True,
    closes=True,
)
"""No further consumer can subscribe, so nothing in it asks for what was lost."""


def broken(monkeypatch: pytest.MonkeyPatch, *, ends: bool) -> set[str]:
    """Walk through a broker whose closing channel forgets what a cancelled consumer held."""
    if not ends:
        monkeypatch.setattr(adaptive, "take_what_is_left", lambda *_: None)
    subject, found = subject_of(faults()["close-forgets-cancelled"]), Search(LEAVES, "adaptive")
    search_adaptively(found, subject.fresh, 500, lambda: "")
    return {*found.broken}


def test_what_is_lost_shows_at_the_end_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults()["close-forgets-cancelled"].requirement in broken(monkeypatch, ends=True)


def test_without_that_end_it_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(monkeypatch, ends=False) == set()
