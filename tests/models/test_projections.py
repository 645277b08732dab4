"""Shared by the projections of all systems: path queries, their quotients, and patterns."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from brokerproof.models.language.watch import path_query
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue
from brokerproof.models.language.watch.path_query import (
    PathQuery,
    find_steps,
    quotient,
    reading_of,
    state_of,
)
from brokerproof.models.language.watch.paths import ANY, Taken, TooFar, enabled
from brokerproof.models.projections import MODEL_OF, projection_of
from brokerproof.spec.messages import Fifo, Priority
from brokerproof.spec.protocol.operations import Drain
from brokerproof.spec.systems import SYSTEM_OF
from tests.models.activemq import cursor_walks
from tests.models.qpid import test_projection as qpid
from tests.models.rabbitmq import test_projection as rabbitmq

BY_THE_BROKER = {
    "pointer-queue": ("deliver", "browse", "pass_over", "come_due"),
    "paging-queue": (
        *("fetch_from_q4", "fetch_from_q3", "fetch_last"),
        *("fetch_last_and_reload", "fetch_last_and_reload_all"),
        *("page_q1_to_q3", "page_q1_to_q2", "page_q4", "page_q3", "page_q2", "limit_ram_acks"),
    ),
    "cursor-queue": ("give", "page_in", "read", "pass_over", "clear", "cache_again"),
}
"""The broker's own steps: a projection offers those that the next view does not exclude."""
SMALL = 5


def looks(kind: str) -> Iterator[tuple[object, object, ClientStep]]:
    """Yield a reference's views before and after a client's steps."""
    match kind:
        case "pointer-queue":
            for seed in range(10):
                order = Priority(2) if seed % 2 else Fifo()
                for look in qpid.looks(seed, order, 14):
                    yield look.before, look.after, look.happened
        case "paging-queue":
            for paging in rabbitmq.looks(1):
                yield paging.before, paging.after, paging.happened
        case _:
            for cursor in cursor_walks.looks(1):
                yield cursor.before, cursor.after, cursor.happened


def queries(kind: str) -> Iterator[PathQuery]:
    """Yield small queries: of steps of a reference, and of steps that nothing explains."""
    for before, after, step in looks(kind):
        for happened in (step, ClientStep(Drain())):
            try:
                asked = [*projection_of(kind).queries(before, after, happened)]
            except NotAQueue:
                continue
            yield from (each for each in asked if 0 < each.many <= SMALL)


each_kind = pytest.mark.parametrize("kind", MODEL_OF)


def test_each_kind_of_view_has_a_projection() -> None:
    assert MODEL_OF.keys() == SYSTEM_OF.keys() == BY_THE_BROKER.keys()


@each_kind
def test_a_long_queue_is_answered_as_the_shorter_one(kind: str) -> None:
    shorter, found = 0, Counter[bool]()
    for query in queries(kind):
        short = quotient(query)
        try:
            is_path = find_steps(query) is not None
        except TooFar:
            continue
        shorter += short.many < query.many
        found[is_path] += 1
        assert (find_steps(short) is not None) == is_path, query
    assert shorter > 10
    assert min(found[True], found[False]) > 10


@each_kind
def test_patterns_leave_out_no_step_whose_guard_holds(kind: str) -> None:
    met: Counter[str] = Counter()
    for query in dict.fromkeys(map(quotient, queries(kind))):
        reading = reading_of(query)
        state = state_of(reading, query.before)
        there = {*enabled(reading, state, query.steps)}
        for pattern in query.steps:
            for arguments in reading.arguments(pattern.action):
                pairs = zip(pattern.arguments, arguments, strict=True)
                if all(one in (ANY, other) for one, other in pairs) and reading.enabled(
                    pattern.action, state, arguments
                ):
                    met[pattern.action] += 1
                    assert Taken(pattern.action, arguments) in there
    assert len(met) > 5


@each_kind
def test_what_a_projection_does_not_offer_makes_no_path(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hints of a projection against every step that a broker may take by itself."""
    monkeypatch.setattr(path_query, "STATES_MAX", 100_000)
    asked = 0
    for query in itertools.islice(dict.fromkeys(map(quotient, queries(kind))), 150):
        if query.many >= SMALL:
            continue
        system = reading_of(query).system
        everything = tuple(
            Taken(name, (ANY,) * len(system.action(name).parameters))
            for name in BY_THE_BROKER[kind]
        )
        more = query._replace(steps=(*query.steps, *everything))
        assert (find_steps(more) is None) == (find_steps(query) is None), query
        asked += 1
    assert asked > 40
