"""Liveness: with fairness, without, and the run that breaks it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.explore import explore
from brokerproof.models.catalogue import CATALOGUE, Listed
from brokerproof.models.language import (
    Bool,
    Family,
    Map,
    Model,
    action,
    exists,
    finitely,
    initial,
    require,
)
from brokerproof.models.language.core.marks import leads_to
from brokerproof.models.language.core.model import ModelError, trace
from brokerproof.models.language.core.scope import Scope, arguments_in_words, state_in_words
from brokerproof.models.language.explore import liveness as liveness_module
from brokerproof.models.language.explore.itf import itf
from brokerproof.models.language.explore.liveness import Kept, check
from brokerproof.models.language.read.columns import ColumnReading, Mask
from brokerproof.models.language.read.plain import PlainReading, State
from tests.models.language.explore.test_explorer import naive, replays


class Guest(Family):
    """A guest who waits to be served."""


class Restaurant(Model):
    """Guests come, are served and go."""

    waits: Map[Guest, Bool]
    eats: Map[Guest, Bool]

    @initial
    def empty(self) -> None:
        """No guest is there."""
        self.waits.fill(False)
        self.eats.fill(False)

    @action
    def come(self, guest: Guest) -> None:
        """A guest sits down."""
        require(~self.waits[guest] & ~self.eats[guest])
        self.waits[guest] = True

    @action
    def serve(self, guest: Guest) -> None:
        """A guest is served if no other one eats."""
        require(self.waits[guest] & ~exists(Guest, lambda other: self.eats[other]))
        self.waits[guest] = False
        self.eats[guest] = True

    @action
    def leave(self, guest: Guest) -> None:
        """A guest is done."""
        require(self.eats[guest])
        self.eats[guest] = False

    @leads_to("each-eater-leaves", fair=("leave",))
    def eats_leaves(self, guest: Guest) -> tuple[Bool, Bool]:
        """No guest stays for ever."""
        return self.eats[guest], ~self.eats[guest]

    @leads_to("each-eater-leaves-by-itself")
    def unfair(self, guest: Guest) -> tuple[Bool, Bool]:
        """Wrong: without fairness nothing has to happen."""
        return self.eats[guest], ~self.eats[guest]

    @leads_to("each-waiting-guest-eats", fair=("serve", "leave"))
    def waits_eats(self, guest: Guest) -> tuple[Bool, Bool]:
        """Wrong with two guests: the other may be served again and again."""
        return self.waits[guest], self.eats[guest]


def is_fair_lasso(plain: PlainReading, found: Kept, fair: tuple[str, ...]) -> bool:
    """Return whether the plain reading can take the run, and the run's loop closes and is fair.

    This is a second statement of fairness: each instance of a fair action is taken in the loop, or
    impossible in one of its states.
    """
    run = [*found.trace, *found.loop]
    circle = run[len(found.trace) - 1 :]
    if not replays(plain, tuple(run)) or circle[0].state != circle[-1].state:
        return False
    packed = {tuple(state_in_words(plain.cells, s).items()): s for s in reachable(plain)}
    states = [packed[tuple(step.state.items())] for step in circle]
    for act in plain.system.actions:
        for arguments in plain.arguments(act.name) if act.name in fair else ():
            words = arguments_in_words(plain.scope, act, arguments)
            taken = any((s.action, s.arguments) == (act.name, words) for s in found.loop)
            if not taken and all(plain.enabled(act.name, state, arguments) for state in states):
                return False
    return True


def reachable(plain: PlainReading) -> list[State]:
    levels, _ = naive(plain)
    return [state for level in levels for state in level]


def test_fairness_decides_what_happens_in_the_end() -> None:
    kept = check(trace(Restaurant), Scope({Guest: 1}, range(1)))
    assert [each.kept for each in kept] == [True, False, True]
    assert [step.action for step in kept[1].trace] == ["", "come", "serve"]
    assert kept[1].loop == ()


def test_one_guest_can_be_passed_over_for_ever() -> None:
    scope = Scope({Guest: 2}, range(1))
    kept = check(trace(Restaurant), scope)
    assert [each.kept for each in kept] == [True, False, False]
    starving = kept[2]
    assert starving.arguments == {"guest": "guest0"}
    for step in (starving.trace[-1], *starving.loop):
        assert step.state["eats[guest0]"] is False
        assert step.state["waits[guest0]"] is True
    assert sorted(step.action for step in starving.loop) == ["come", "leave", "serve"]
    assert all(step.arguments == {"guest": "guest1"} for step in starving.loop)
    assert is_fair_lasso(PlainReading(trace(Restaurant), scope), starving, ("serve", "leave"))


class FewGuests(Restaurant):
    """Guests who come again and again, or finitely often."""

    @leads_to("each-guest-eats-if-others-come-finitely-often", fair=("serve", "leave"))
    def waits_eats_in_the_end(self, guest: Guest) -> tuple[Bool, Bool]:
        """Right: in the end no other guest is served again."""
        finitely(come=lambda other: other != guest)
        return self.waits[guest], self.eats[guest]

    @leads_to("each-guest-eats-if-they-come-finitely-often", fair=("serve", "leave"))
    def waits_eats_alone(self, guest: Guest) -> tuple[Bool, Bool]:
        """Wrong: only this guest's own coming is limited."""
        finitely(come=lambda other: other == guest)
        return self.waits[guest], self.eats[guest]


def test_steps_that_happen_finitely_often_are_in_no_loop() -> None:
    kept = check(trace(FewGuests), Scope({Guest: 2}, range(1)))
    assert [each.kept for each in kept[2:]] == [False, True, False]


def test_a_circle_that_is_open_or_unfair_is_no_counterexample() -> None:
    scope = Scope({Guest: 2}, range(1))
    plain = PlainReading(trace(Restaurant), scope)
    starving = check(trace(Restaurant), scope)[2]
    broken_open = replace(starving, loop=starving.loop[:-1])
    assert not is_fair_lasso(plain, broken_open, ("serve", "leave"))
    still = replace(starving, loop=())
    assert not is_fair_lasso(plain, still, ("serve", "leave"))
    assert is_fair_lasso(plain, still, ())


class Crossing(Model):
    """Three lamps that are switched on and off, and a wish that is never granted."""

    on: Map[Guest, Bool]
    granted: Map[Guest, Bool]

    @initial
    def dark(self) -> None:
        """Nothing is on."""
        self.on.fill(False)
        self.granted.fill(False)

    @action
    def switch_on(self, lamp: Guest) -> None:
        """One lamp goes on."""
        require(~self.on[lamp])
        self.on[lamp] = True

    @action
    def switch_off(self, lamp: Guest) -> None:
        """One lamp goes off."""
        require(self.on[lamp])
        self.on[lamp] = False

    @leads_to("wishes-come-true", fair=("switch_on", "switch_off"))
    def wishes(self, lamp: Guest) -> tuple[Bool, Bool]:
        """Wrong: no action grants anything."""
        return self.on[lamp], self.granted[lamp]


def test_a_circle_takes_each_fair_action_or_passes_where_it_is_impossible() -> None:
    scope = Scope({Guest: 3}, range(1))
    [broken] = check(trace(Crossing), scope)
    assert is_fair_lasso(PlainReading(trace(Crossing), scope), broken, ("switch_on", "switch_off"))
    taken = {step.arguments["lamp"] for step in broken.loop}
    assert taken == {"guest0", "guest1", "guest2"}


def fair_components(
    transitions: liveness_module._Transitions, waiting: Mask, fair: list[list[int]], often: Mask
) -> set[frozenset[int]]:
    """Return the components in which a fair run can stay, by networkx, one state at a time."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(np.flatnonzero(waiting).tolist())
    for state in [*graph]:
        for number, after in transitions._after(state, often):
            if waiting[after]:
                graph.add_edge(state, after, key=number)
    found = set()
    for component in nx.strongly_connected_components(graph):
        taken = {number for _, _, number in graph.subgraph(component).edges(keys=True)}
        if all(
            not taken.isdisjoint(due)
            or not all(any(transitions.enabled[n][state] for n in due) for state in component)
            for due in fair
        ):
            found.add(frozenset(component))
    return found


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("model", [Restaurant, Crossing])
def test_components_are_those_that_networkx_finds(
    model: type[Model], share: float, together: bool
) -> None:
    system, names = trace(model), frozenset(("serve", "leave", "switch_on"))
    reading = ColumnReading(system, Scope({Guest: 3}, range(1)))
    transitions = liveness_module._Transitions(reading, 1_000, names)
    numbers = [*transitions.enabled]
    fair = [numbers] if together else [[number] for number in numbers]
    for seed in range(20):
        drawn = np.random.default_rng(seed)
        waiting = drawn.random(len(transitions.words)) < share
        often = drawn.random(len(transitions.source)) < (1.0 if seed % 2 else 0.8)
        component, is_fair = transitions._fair_components(waiting, fair, often)
        found: dict[int, set[int]] = {}
        for state in np.flatnonzero(waiting & is_fair[component]).tolist():
            found.setdefault(int(component[state]), set()).add(state)
        expected = fair_components(transitions, waiting, fair, often)
        assert {*map(frozenset, found.values())} == expected


def test_a_run_without_end_is_an_itf_trace_with_a_loop() -> None:
    starving = check(trace(Restaurant), Scope({Guest: 2}, range(1)))[2]
    text = itf(starving.trace, model="m", description="d", loop=starving.loop)
    document = json.loads(text)
    states, loop = document["states"], document["loop"]
    assert len(states) == len(starving.trace) + len(starving.loop)
    assert [state["#meta"]["action"] for state in states[loop:]] == [
        step.action for step in starving.loop
    ]
    assert states[loop - 1]["waits"] == states[-1]["waits"]
    assert states[loop - 1]["eats"] == states[-1]["eats"]
    still = json.loads(itf(starving.trace, model="m", description="d", loop=()))
    assert still["loop"] == len(starving.trace) - 1 == len(still["states"]) - 1
    assert "loop" not in json.loads(itf(starving.trace, model="m", description="d"))


def test_a_scope_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness_module, "STATES_MAX", 3)
    with pytest.raises(ModelError, match="at most 3 states: make the scope smaller"):
        check(trace(Restaurant), Scope({Guest: 2}, range(1)))


def test_the_command_shows_the_run_that_goes_on_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = Listed(Restaurant, Scope({Guest: 2}, range(1)))
    monkeypatch.setitem(CATALOGUE, "restaurant", listed)
    path = tmp_path / "run.itf.json"
    result = CliRunner().invoke(explore, ["restaurant", "--itf", str(path)])
    assert result.exit_code == 1
    assert json.loads(path.read_text(encoding="utf-8"))["loop"] == 2
    assert "  kept in the end: each-eater-leaves\n" in result.output
    assert "  broken: each-waiting-guest-eats(guest=guest0)\n" in result.output
    circle = result.output.rsplit("    from here on for ever:\n", 1)[1]
    assert re.findall(r"^    \d+\. (\w+)", circle, re.MULTILINE) == ["come", "serve", "leave"]
    assert "    and nothing happens any more, which is fair\n" in result.output
    monkeypatch.setattr(liveness_module, "STATES_MAX", 3)
    result = CliRunner().invoke(explore, ["restaurant"])
    assert result.exit_code == 3
    assert "  not checked: each-eater-leaves, each" in result.output


def test_only_actions_can_be_fair() -> None:
    class Odd(Restaurant):
        """Names an unknown action as fair."""

        @leads_to("nothing", fair=("dance",))
        def nothing(self, guest: Guest) -> tuple[Bool, Bool]:
            """About an action that does not exist."""
            return self.eats[guest], self.eats[guest]

    with pytest.raises(ModelError, match="wants dance to be fair, which is no action"):
        check(trace(Odd), Scope({Guest: 1}, range(1)))
