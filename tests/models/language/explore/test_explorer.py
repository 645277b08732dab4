"""The explorer against a naive search, its counterexamples, and its ends."""

from __future__ import annotations

from collections import Counter

import pytest

from brokerproof.models.language import Bool, action, forall, implies, invariant, require
from brokerproof.models.language.core.model import ModelError, System, trace
from brokerproof.models.language.core.scope import Scope, arguments_in_words, state_in_words
from brokerproof.models.language.core.traces import Step, trace_text
from brokerproof.models.language.explore.explorer import Progress, explore
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Status, Subscription
from tests.models.small_models import Counters, Item, Place, Shelves, Unlimited

POINTERS = trace(PointerQueue)
COUNTERS = trace(Counters)
SHELVES = trace(Shelves)


def naive(plain: PlainReading) -> tuple[list[list[State]], Counter[str]]:
    """Return the states by depth and how often each action fires, by the plain reading alone."""
    levels = [list(plain.initial_states())]
    seen = set(levels[0])
    firings: Counter[str] = Counter()
    while levels[-1]:
        new: dict[State, None] = {}
        for state in levels[-1]:
            for act in plain.system.actions:
                for arguments in plain.arguments(act.name):
                    if plain.enabled(act.name, state, arguments):
                        firings[act.name] += 1
                        after = plain.step(act.name, state, arguments)
                        if after not in seen:
                            seen.add(after)
                            new[after] = None
        levels.append(list(new))
    return levels[:-1], firings


@pytest.mark.parametrize(
    ("system", "scope"),
    [
        (POINTERS, Scope({Entry: 3, Subscription: 1}, range(1))),
        (POINTERS, Scope({Entry: 2, Subscription: 2}, range(1))),
        (COUNTERS, Scope({Item: 2}, range(4))),
        (SHELVES, Scope({Item: 2, Place: 2}, range(1))),
        (SHELVES, Scope({Item: 2, Place: 3}, range(1), {"careful": 1, "hub": 0})),
    ],
)
def test_counts_are_those_of_a_naive_search(system: System, scope: Scope) -> None:
    levels, firings = naive(PlainReading(system, scope))
    found = explore(system, scope, invariants=[])
    assert found.levels == tuple(map(len, levels))
    assert found.states == sum(map(len, levels))
    assert found.depth == len(levels) - 1
    assert found.firings == {act.name: firings[act.name] for act in system.actions}
    assert found.transitions == firings.total()
    assert found.incomplete == ""
    assert found.violation is None


def test_all_invariants_hold_in_a_small_scope_of_the_pointer_queue() -> None:
    found = explore(POINTERS, Scope({Entry: 3, Subscription: 2}, range(1)))
    assert found.violation is None
    assert found.never_taken == ()
    assert (found.states, found.transitions, found.depth) == (54_732, 176_128, 23)


class Hopeful(PointerQueue):
    """Claims wrongly that no place ever passes a returned entry."""

    @invariant("what-was-held-is-never-available-again")
    def gone(self) -> Bool:
        """Wrong: a release makes it available."""
        return forall(
            Subscription,
            Entry,
            lambda consumer, e: implies(
                (self.status[e] == Status.AVAILABLE) & self.active[consumer],
                self.before(self.last_seen[consumer], e),
            ),
        )


def replays(plain: PlainReading, steps: tuple[Step, ...]) -> bool:
    """Return whether the plain reading can take the very steps."""
    states = [s for s in plain.initial_states() if state_in_words(plain.cells, s) == steps[0].state]
    for step in steps[1:]:
        act = plain.system.action(step.action)
        states = [
            after
            for state in states
            for arguments in plain.arguments(act.name)
            if arguments_in_words(plain.scope, act, arguments) == step.arguments
            and plain.enabled(act.name, state, arguments)
            for after in [plain.step(act.name, state, arguments)]
            if state_in_words(plain.cells, after) == step.state
        ]
    return bool(states)


def test_a_planted_wrong_invariant_gets_a_shortest_counterexample() -> None:
    system = trace(Hopeful)
    scope = Scope({Entry: 3, Subscription: 1}, range(1))
    name = "what-was-held-is-never-available-again"
    plain = PlainReading(system, scope)
    levels, _ = naive(plain)
    depths = [
        depth
        for depth, level in enumerate(levels)
        if not all(plain.holds(name, state) for state in level)
    ]
    violation = explore(system, scope).violation
    assert violation is not None
    assert violation.invariant == name
    assert len(violation.trace) - 1 == depths[0] == 3
    assert replays(plain, violation.trace)


def test_a_trace_shows_what_each_step_changes() -> None:
    scope = Scope({Entry: 2, Subscription: 1}, range(1), {"browser": 0})
    violation = explore(trace(Hopeful), scope).violation
    assert violation is not None
    assert trace_text(violation.trace).splitlines() == [
        "initially",
        "    head: entry0",
        "    status: entry0 DEQUEUED, entry1 ABSENT",
        "    browser: none",
        "    holds: none",
        "    shown: none",
        "    overtaken: none",
        "    active: none",
        "    last_seen: subscription0 entry0",
        "    rewound: none",
        "    released: subscription0 entry0",
        "    arriving: none",
        "1. append(entry=entry1)",
        "    status[entry1]: ABSENT -> AVAILABLE",
        "2. subscribe(consumer=subscription0)",
        "    active[subscription0]: false -> true",
        "3. deliver(consumer=subscription0, entry=entry1)",
        "    status[entry1]: AVAILABLE -> ACQUIRED",
        "    holds[subscription0, entry1]: false -> true",
        "    last_seen[subscription0]: entry0 -> entry1",
        "4. release(consumer=subscription0, entry=entry1)",
        "    status[entry1]: ACQUIRED -> AVAILABLE",
        "    holds[subscription0, entry1]: true -> false",
        "    rewound[subscription0]: false -> true",
        "    released[subscription0]: entry0 -> entry1",
    ]


def test_only_the_invariants_that_are_asked_for_are_checked() -> None:
    scope = Scope({Item: 2, Place: 2}, range(1))
    assert explore(SHELVES, scope, invariants=["never-below-the-hub"]).violation is None
    with pytest.raises(ModelError, match="Shelves has no invariant nothing: it has never-below"):
        explore(SHELVES, scope, invariants=["nothing"])


def test_a_limit_ends_the_search_at_just_so_many_states() -> None:
    scope = Scope({Entry: 3, Subscription: 2}, range(1))
    full = explore(POINTERS, scope)
    for limit in (1, 100, 5_000):
        found = explore(POINTERS, scope, limit_states=limit)
        assert found.states == limit
        assert found.incomplete == f"limit of {limit} states"
        assert found.levels[:-1] == full.levels[: found.depth]
    assert explore(POINTERS, scope, limit_states=full.states) == full
    with pytest.raises(ModelError, match="limit of 0 states"):
        explore(POINTERS, scope, limit_states=0)


def test_a_search_gives_the_same_result_each_time() -> None:
    scope = Scope({Entry: 3, Subscription: 2}, range(1))
    assert explore(POINTERS, scope) == explore(POINTERS, scope)
    assert explore(trace(Hopeful), scope) == explore(trace(Hopeful), scope)


def test_an_interrupted_search_returns_what_it_has_found() -> None:
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        if progress.depth == 3:
            raise KeyboardInterrupt

    scope = Scope({Entry: 3, Subscription: 2}, range(1))
    found = explore(POINTERS, scope, progress=stop)
    assert found.incomplete == "interrupted"
    assert found.states == seen[-1].states == 187
    assert [progress.depth for progress in seen] == [0, 1, 2, 3]


def test_an_integer_outside_of_the_scope_is_never_wrapped() -> None:
    with pytest.raises(ModelError, match="count becomes 4, outside of the scope's integers 0 to 3"):
        explore(trace(Unlimited), Scope({Item: 1}, range(4)), invariants=[])


class Stuck(Counters):
    """Counters with an action that is never possible."""

    @action
    def never(self, item: Item) -> None:
        """Want two things at once."""
        require((self.count[item] > 1) & (self.count[item] < 1))
        self.count[item] = 0


def test_an_action_that_is_never_taken_is_listed() -> None:
    found = explore(trace(Stuck), Scope({Item: 2}, range(3)))
    assert found.never_taken == ("never",)


def test_families_of_one_element_take_no_bits() -> None:
    found = explore(SHELVES, Scope({Item: 1, Place: 1}, range(1)), invariants=[])
    assert found.levels[0] == 2
