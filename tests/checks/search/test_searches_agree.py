"""The searches find what their plain forms find, move for move and count for count.

Sound brokers and broken ones, brokers that send events late or park, and those with forbidden names
of deliveries. The twins show that the comparison sees a cache key that is too coarse, and names of
deliveries that are ignored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.search import step_cache
from brokerproof.checks.search.adaptive import search_adaptively
from brokerproof.checks.search.product import search
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.search.scopes.scope import Kind, Scope
from brokerproof.checks.search.searches import Search
from brokerproof.checks.search.sequences import LENGTH_MAX, search_sequences
from brokerproof.reference import make
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Acknowledge, Operation, Reject, Release, Reset
from examples import whole_broker
from examples.naive_queue import make_broker
from tests.checks.broken_candidates import Box, Sieve, Stack, fresh
from tests.checks.search.plain_searches import plain_product, plain_sequences, plain_walk
from tests.faults.catalogue import faults, make_faulty

OPERATIONS = 200
FAULTS = tuple([fault.id for fault in faults().values() if not fault.outside])[::29]
"""Not those whose broken states have the fingerprint of a sound one."""


class Repeater(Box):
    """Names every delivery alike."""

    def __init__(self) -> None:
        super().__init__()
        self.inner: dict[str, str] = {}

    def name(self) -> str:
        """Return the name of the next delivery."""
        return "d0"

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, with other names."""
        if isinstance(operation, Reset):
            Repeater.__init__(self)
        if isinstance(operation, Acknowledge | Release | Reject):
            inner = self.inner.get(operation.delivery, "")
            return super().handle(type(operation)(delivery=inner))
        answer = super().handle(operation)
        for event in answer.events:
            assert isinstance(event, Delivered)
            name = self.name()
            self.inner[name] = event.delivery
            return Answer((replace(event, delivery=name),))
        return answer


class Nameless(Repeater):
    """Names no delivery at all."""

    def name(self) -> str:
        """Return nothing."""
        return ""


MAKERS: dict[str, Callable[[], Candidate]] = {
    "reference": lambda: make("qpid-push"),
    "naive": make_broker,
    "whole": whole_broker.make_broker,
    "lazy": whole_broker.make_lazy_broker,
    "parking": whole_broker.make_parking_broker,
    "tail": whole_broker.make_tail_broker,
    "stack": Stack,
    "sieve": Sieve,
    "repeater": Repeater,
    "nameless": Nameless,
    **{fault: functools.partial(make_faulty, fault) for fault in FAULTS},
}

WORLD = Scope(
    "a small world",
    (Fifo(),),
    messages=2,
    consumers=1,
    kinds=(Kind("acknowledge"),),
    gets=("acknowledge",),
    closes=True,
    cancels=True,
    settles_again=True,
)


def seen(found: Search) -> dict[str, Any]:
    """Return all that a search has found, in values that can be compared."""
    broken = {
        requirement: [([repr(told) for told in run.steps], run.broken) for run in runs]
        for requirement, runs in found.broken.items()
    }
    return vars(found) | {"broken": broken}


def by_pairs(scope: Scope, start: Callable[[], Candidate]) -> tuple[Search, Search]:
    copier = copier_of(start())
    assert isinstance(copier, Copier)
    found, plain = Search(scope, "product"), Search(scope, "product")
    search(found, fresh(start), copier, OPERATIONS, lambda: "")
    plain_product(plain, fresh(start), copier, OPERATIONS)
    return found, plain


def by_sequences(scope: Scope, start: Callable[[], Candidate]) -> tuple[Search, Search]:
    found, plain = Search(scope, "sequences"), Search(scope, "sequences")
    begin = functools.partial(fresh, start)
    search_sequences(found, begin, OPERATIONS, lambda: "")
    plain_sequences(plain, begin, OPERATIONS, LENGTH_MAX)
    return found, plain


def by_walking(scope: Scope, start: Callable[[], Candidate]) -> tuple[Search, Search]:
    found, plain = Search(scope, "adaptive"), Search(scope, "adaptive")
    begin = functools.partial(fresh, start)
    search_adaptively(found, begin, OPERATIONS, lambda: "")
    plain_walk(plain, begin, OPERATIONS)
    return found, plain


GRADES = pytest.mark.parametrize("how", [by_pairs, by_sequences, by_walking])


@pytest.mark.each_time(12)
@GRADES
@pytest.mark.parametrize("name", MAKERS)
def test_a_small_world_is_searched_as_plainly(
    name: str, how: Callable[[Scope, Callable[[], Candidate]], tuple[Search, Search]]
) -> None:
    found, plain = how(WORLD, MAKERS[name])
    assert seen(found) == seen(plain)


@pytest.mark.each_time(1)
@GRADES
@pytest.mark.parametrize("name", MAKERS)
def test_every_scope_is_searched_as_plainly(
    name: str, how: Callable[[Scope, Callable[[], Candidate]], tuple[Search, Search]]
) -> None:
    start = MAKERS[name]
    for scope in scopes_for(start().hello().capabilities):
        found, plain = how(scope, start)
        assert seen(found) == seen(plain), scope.name


def test_names_that_no_broker_may_use_are_found_by_both() -> None:
    for start in (Repeater, Nameless):
        for found in by_pairs(WORLD, start):
            assert "protocol" in found.broken


# Twins.


def test_a_cache_that_does_not_look_at_names_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_cache, "_are_new", lambda _names, _told: True)
    found, plain = by_pairs(WORLD, Repeater)
    assert seen(found) != seen(plain)


def test_a_cache_that_takes_different_bindings_for_one_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_cache.Numbers, "form_of", lambda _self, value: type(value))
    found, plain = by_pairs(WORLD, Box)
    assert seen(found) != seen(plain)
