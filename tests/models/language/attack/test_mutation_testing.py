"""The attack: a weak place is found, a strong one is refuted, and silence needs a reason."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.proof_lines import attack_lines
from brokerproof.checks.commands.prove import prove
from brokerproof.models import equivalent_mutants
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.contract.core import Contract
from brokerproof.models.language import (
    Bool,
    Family,
    Map,
    Model,
    Relation,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.language.attack.mutants import Mutant, mutants
from brokerproof.models.language.attack.mutation_testing import attack
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.qpid.pointer_queue_progress import ProgressingQueue
from tests.faults.catalogue import faults


class Lamp(Family):
    """A lamp."""


class Lamps(Model):
    """Lamps that are lit only when they are plugged in, and wear out unseen."""

    plugged: Map[Lamp, Bool]
    lit: Map[Lamp, Bool]
    worn: Map[Lamp, Bool]

    @initial
    def dark(self) -> None:
        """Nothing is plugged in."""
        self.plugged.fill(False)
        self.lit.fill(False)
        self.worn.fill(False)

    @action
    def plug(self, lamp: Lamp) -> None:
        """Plug it in, unless it is lit without that, which never happens."""
        require(implies(self.lit[lamp], self.plugged[lamp]))
        self.plugged[lamp] = True

    @action
    def light(self, lamp: Lamp) -> None:
        """Light it, which wears it."""
        require(self.plugged[lamp])
        require(~self.worn[lamp], "worn-lamps-stay-dark")
        self.lit[lamp] = True
        self.worn[lamp] = True

    @action
    def unplug(self, lamp: Lamp) -> None:
        """Unplug it."""
        require(self.plugged[lamp])
        self.plugged[lamp] = False
        self.lit[lamp] = False

    @invariant("lit-is-plugged")
    def lit_is_plugged(self) -> Bool:
        """A lamp that is lit is plugged in."""
        return forall(Lamp, lambda lamp: implies(self.lit[lamp], self.plugged[lamp]))


class Wires(Model):
    """Lamps with wires between them, which may be turned round while they are lit."""

    lit: Map[Lamp, Bool]
    wired: Relation[Lamp, Lamp]

    @initial
    def bare(self) -> None:
        """Nothing is lit, and there is no wire."""
        self.lit.fill(False)
        self.wired.fill(False)

    @action
    def turn(self) -> None:
        """Turn the wires round that come from a lamp which is lit."""
        self.wired = self.wired.map(lambda a, b, old: ite(self.lit[a], self.wired[b, a], old))


def outcomes() -> dict[str, str]:
    """Return the outcome of each mutant of the lamps."""
    return {each.name: each.outcome for each in attack(trace(Lamps), {}).judged}


def test_a_guard_that_an_invariant_needs_is_refuted_by_a_run() -> None:
    [judged] = [
        each for each in attack(trace(Lamps), {}).judged if each.name == "light: guard 1: dropped"
    ]
    assert (judged.outcome, judged.by) == ("reachable", ("lit-is-plugged",))
    assert [step.action for step in judged.witness] == ["", "light"]


def test_a_guard_that_is_a_promise_is_held_by_the_gate_and_an_update_by_what_it_changes() -> None:
    found = outcomes()
    assert found["light: worn-lamps-stay-dark: dropped"] == "requirement"
    assert found["light: worn: stays as it was"] == "requirement"


def test_what_does_the_same_is_no_mutant() -> None:
    assert outcomes()["plug: guard 1: dropped"] == "equivalent"


def test_a_weak_place_survives_and_fails_without_a_reason() -> None:
    found = attack(trace(Lamps), {})
    weak = "plug: plugged: stays as it was"
    assert [each.name for each in found.unexplained if each.name == weak] == [weak]
    assert not found.complete
    assert f"  without a reason: {weak}" in list(attack_lines(found))


def test_reasons_make_it_complete_and_idle_ones_are_told() -> None:
    names = [each.name for each in attack(trace(Lamps), {}).unexplained]
    assert attack(trace(Lamps), dict.fromkeys(names, "It is only a lamp.")).complete
    idle = attack(trace(Lamps), dict.fromkeys([*names, "no such mutant"], "It is only a lamp."))
    assert idle.idle == ("no such mutant",)
    assert not idle.complete


def test_names_of_mutants_are_unique_and_reasons_are_about_them() -> None:
    for name, model in (("contract", Contract), ("pointer-queue", ProgressingQueue)):
        names = [mutant.name for mutant in mutants(trace(model))]
        assert len(set(names)) == len(names)
        assert set(equivalent_mutants.EQUIVALENT_MUTANTS[name]) <= set(names)


def test_what_is_read_at_other_places_is_not_what_it_was() -> None:
    """One branch is the old value, so taking it always equals no update; the other does not."""
    stays, turns_all = [each for each in mutants(trace(Wires)) if each.name.startswith("turn")]
    assert stays.name == "turn: wired: stays as it was"
    assert turns_all.name.endswith("always, not only if lit[l]")
    assert isinstance(turns_all, Mutant)
    [function] = turns_all.action.updates.values()
    assert all(map(operator.is_, function.body.args, reversed(function.parameters)))


def test_each_guard_that_is_a_promise_has_a_planted_fault_that_breaks_it() -> None:
    labels = {guard.label for a in trace(Contract).actions for guard in a.guards if guard.label}
    planted = {fault.requirement for fault in faults().values()}
    assert labels <= planted


def test_the_command_fails_for_a_survivor_without_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(
        CATALOGUE, "lamps", type(CATALOGUE["contract"])(Lamps, Scope({Lamp: 2}, range(1)))
    )
    result = CliRunner().invoke(prove, ["--attack", "lamps"])
    assert result.exit_code == 1
    assert "without a reason: plug: plugged: stays as it was" in result.output
    names = [each.name for each in attack(trace(Lamps), {}).unexplained]
    monkeypatch.setitem(
        equivalent_mutants.EQUIVALENT_MUTANTS, "lamps", dict.fromkeys(names, "It is only a lamp.")
    )
    assert CliRunner().invoke(prove, ["--attack", "lamps"]).exit_code == 0
