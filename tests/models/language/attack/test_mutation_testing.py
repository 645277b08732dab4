"""The attack: a weak place is found, a strong one is refuted, and silence needs a reason."""

from __future__ import annotations

import multiprocessing
import operator
import os
import re
import signal
from collections import Counter
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands import prove as prove_command
from brokerproof.checks.commands.prove import prove
from brokerproof.models.catalogue import CATALOGUE, Listed
from brokerproof.models.contract.core import Contract
from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Int,
    Map,
    Model,
    Order,
    Relation,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.language.attack import mutation_testing
from brokerproof.models.language.attack.lost_statements import lost_by_step
from brokerproof.models.language.attack.mutants import AnyMutant, Mutant, mutants
from brokerproof.models.language.attack.mutation_testing import (
    Subject,
    attack,
    explained,
    is_equivalent,
)
from brokerproof.models.language.attack.outcomes import JudgedMutant
from brokerproof.models.language.core.model import ModelError, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.refinements import attack_on
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
    return {each.name: each.outcome for each in attack(Subject(trace(Lamps))).judged}


def test_a_guard_that_an_invariant_needs_is_refuted_by_a_run() -> None:
    [judged] = [
        each
        for each in attack(Subject(trace(Lamps))).judged
        if each.name == "light: guard 1: dropped"
    ]
    assert (judged.outcome, judged.by) == ("reachable", ("lit-is-plugged",))
    assert [step.action for step in judged.witness] == ["", "light"]


def test_a_label_alone_says_little_and_an_update_is_held_by_the_labels_that_it_changes() -> None:
    found = outcomes()
    assert found["light: worn-lamps-stay-dark: dropped"] == "label"
    assert found["light: worn: stays as it was"] == "requirement"


class LampsRemembered(Lamps):
    """The same lamps, with the number of times that each was lit."""

    times: Map[Lamp, Int]

    @initial
    def dark(self) -> None:
        """None was lit."""
        super().dark()
        self.times.fill(0)

    @action
    def light(self, lamp: Lamp) -> None:
        """Light it, and count that."""
        super().light(lamp)
        self.times[lamp] = self.times[lamp] + 1

    @invariant("lit-once", states=("worn-lamps-stay-dark",))
    def lit_once(self, lamp: Lamp) -> Bool:
        """A lamp is lit once, and then it is worn."""
        return self.times[lamp] == ite(self.worn[lamp], 1, 0)


class LampsMiscounted(LampsRemembered):
    """A ledger that states the requirement of no guard."""

    @invariant("lit-once")
    def lit_once(self, lamp: Lamp) -> Bool:
        """A lamp is lit once."""
        return self.times[lamp] == ite(self.worn[lamp], 1, 0)


class LampsForbidden(LampsRemembered):
    """A ledger that forbids a little more than the model."""

    @action
    def unplug(self, lamp: Lamp) -> None:
        """Unplug it where it was lit."""
        require(self.worn[lamp], "lit-lamps-are-unplugged")
        super().unplug(lamp)


def test_a_weaker_guard_breaks_the_promise_of_the_ledger_that_states_it() -> None:
    def judged(ledger: type[Lamps]) -> tuple[str, tuple[str, ...]]:
        found = attack(Subject(trace(Lamps), ledger=trace(ledger))).judged
        [weaker] = [each for each in found if each.place == "light: worn-lamps-stay-dark"]
        return weaker.outcome, weaker.by

    assert judged(LampsRemembered) == ("promise", ("lit-once",))
    assert judged(LampsMiscounted) == ("label", ("worn-lamps-stay-dark",))
    with pytest.raises(ModelError, match="other guards than Lamps: unplug: lit-lamps"):
        judged(LampsForbidden)


class LampsWatched(LampsRemembered):
    """A ledger that notes which lamps are plugged in."""

    seen: Map[Lamp, Bool]

    @initial
    def dark(self) -> None:
        """None is seen plugged in."""
        super().dark()
        self.seen.fill(False)

    @action
    def plug(self, lamp: Lamp) -> None:
        """Plug it in, and see it."""
        super().plug(lamp)
        self.seen[lamp] = True

    @action
    def unplug(self, lamp: Lamp) -> None:
        """Unplug it, and see it."""
        super().unplug(lamp)
        self.seen[lamp] = False

    @invariant("seen-is-plugged")
    def seen_is_plugged(self, lamp: Lamp) -> Bool:
        """What was seen is so."""
        return self.seen[lamp] == self.plugged[lamp]


def test_a_change_that_survives_is_held_by_what_the_ledger_saw() -> None:
    def judged(ledger: type[Lamps], name: str) -> tuple[str, tuple[str, ...]]:
        found = attack(Subject(trace(Lamps), ledger=trace(ledger))).judged
        [one] = [each for each in found if each.name == name]
        return one.outcome, one.by

    for name in ("plug: plugged: stays as it was", "initially: plugged: true instead of false"):
        assert judged(LampsWatched, name) == ("promise", ("seen-is-plugged",))
        assert judged(LampsRemembered, name)[0] == "survivor"


class Side(Enumeration):
    """Where a coin lies."""

    HEADS: ClassVar[Side]
    TAILS: ClassVar[Side]
    EDGE: ClassVar[Side]


class Coins(Model):
    """Coins that are turned over; the first of them is spent first."""

    before: Order[Lamp]
    side: Map[Lamp, Side]
    spent: Map[Lamp, Bool]

    @initial
    def tossed(self) -> None:
        """All lie heads up."""
        self.side.fill(Side.HEADS)
        self.spent.fill(False)

    @action
    def turn(self, coin: Lamp) -> None:
        """Turn a coin over that stands on its edge or lies heads up."""
        require(self.side[coin].is_one_of(Side.HEADS, Side.EDGE))
        self.side[coin] = Side.TAILS

    @action
    def spend(self, coin: Lamp) -> None:
        """Spend the first of the others."""
        require(forall(Lamp, lambda c: implies(self.before(c, coin), self.spent[c])))
        self.spent[coin] = True

    @invariant("first-come-first-spent")
    def in_order(self, c: Lamp, d: Lamp) -> Bool:
        """No coin is spent before an earlier one."""
        return implies(self.before(c, d) & self.spent[d], self.spent[c])

    @invariant("none-on-edge")
    def none_on_edge(self, c: Lamp) -> Bool:
        """No coin stands on its edge."""
        return self.side[c] != Side.EDGE


TURNS_TAILS = "turn: guard 1: (TAILS = side[coin]) instead of (HEADS = side[coin])"


def outcomes_of(model: type[Model]) -> dict[str, str]:
    """Return the outcome of each mutant of a model."""
    return {each.name: each.outcome for each in attack(Subject(trace(model))).judged}


def test_an_order_is_turned_and_a_value_compared_with_the_next() -> None:
    found = outcomes_of(Coins)
    assert found["spend: guard 1: (coin before c) instead"] == "reachable"
    assert (
        found["turn: guard 1: (TAILS = side[coin]) instead of (HEADS = side[coin])"] == "survivor"
    )
    assert (
        found["turn: guard 1: (HEADS = side[coin]) instead of (EDGE = side[coin])"] == "equivalent"
    )
    assert found["turn: side: EDGE instead of TAILS"] == "reachable"


def test_a_guard_that_allows_less_is_named() -> None:
    class Kept(Coins):
        @action
        def keep(self, coin: Lamp) -> None:
            require((self.side[coin] == Side.TAILS) & ~self.spent[coin])
            self.spent[coin] = False
            self.side[coin] = Side.HEADS

    found = outcomes_of(Kept)
    assert found["keep: guard 1: (EDGE = side[coin]) instead of (TAILS = side[coin])"] == "stronger"
    assert (
        found["turn: guard 1: (TAILS = side[coin]) instead of (HEADS = side[coin])"] == "survivor"
    )


def test_a_mutant_of_a_model_below_is_judged_there() -> None:
    class Brighter(Lamps):
        @action
        def unplug(self, lamp: Lamp) -> None:
            require(self.lit[lamp])
            super().unplug(lamp)

    alone = Subject(trace(Brighter)).mutants()
    above = Subject(trace(Brighter), below=(trace(Lamps),)).mutants()
    [own] = above
    assert own.name == "unplug: guard 1: dropped"  # `lit`, where the model below has `plugged`
    assert len(alone) > len(above)


def heated(alike: bool) -> dict[str, Mutant]:
    """Return the mutants of lamps that heat, and wear by the same condition or by another."""

    class Heated(Lamps):
        hot: Map[Lamp, Bool]

        @initial
        def dark(self) -> None:
            super().dark()
            self.hot.fill(False)

        @action
        def heat(self) -> None:
            def burns(x: Lamp) -> Bool:
                return self.plugged[x] & self.lit[x]

            def wears(x: Lamp) -> Bool:
                return burns(x) if alike else self.plugged[x] & ~self.lit[x]

            self.hot = self.hot.map(lambda x, old: old | burns(x))
            self.worn = self.worn.map(lambda x, old: old & ~wears(x))

    every = (each for each in mutants(trace(Heated)) if isinstance(each, Mutant))
    return {each.name: each for each in every if each.name.startswith("heat: ")}


def symbols_changed(mutant: Mutant) -> set[str]:
    """Return the names of the symbols whose updates are not the original's."""
    original, changed = mutant.original.updates, mutant.action.updates
    return {symbol.name for symbol, function in original.items() if changed[symbol] is not function}


def test_a_condition_at_several_places_is_changed_at_all_of_them() -> None:
    found = heated(alike=True)
    assert symbols_changed(found["heat: worn: without plugged[l]"]) == {"worn", "hot"}
    assert "heat: hot: without plugged[l]" not in found
    assert symbols_changed(found["heat: worn: without worn[l]"]) == {"worn"}


def test_conditions_that_are_not_alike_are_changed_alone() -> None:
    found = heated(alike=False)
    for symbol in ("hot", "worn"):
        assert symbols_changed(found[f"heat: {symbol}: without plugged[l]"]) == {symbol}


def test_what_does_the_same_is_no_mutant() -> None:
    assert outcomes()["plug: guard 1: dropped"] == "equivalent"


def test_a_weak_place_survives_and_fails_without_a_reason() -> None:
    found = attack(Subject(trace(Lamps)))
    assert found.different["plug: plugged"] == ["plug: plugged: stays as it was"]
    assert not found.complete


def test_a_survivor_is_shown_with_all_reasons_of_its_place() -> None:
    found = attack(
        Subject(trace(Lamps), "It wears out.\n    light: lit\nIt is dark.\n    light: lit")
    )
    shown = {each.name: each.by for each in found.judged if each.place == "light: lit"}
    assert set(shown.values()) == {("It wears out.", "It is dark.")}
    assert "light: lit" not in found.different


@pytest.mark.parametrize(
    "reasons",
    ["It has no place.", "No number.\n    light: lit*two", "None.\n    light: lit*0, *2"],
)
def test_reasons_of_another_form_are_refused(reasons: str) -> None:
    with pytest.raises(ModelError, match="is not like 'take: guard 1, symbol"):
        attack(Subject(trace(Lamps), reasons))


def test_the_same_model_loses_no_statement() -> None:
    """So the outcome does not depend on which of the two is asked first."""
    system = trace(CATALOGUE["cursor-audit"].model)
    answers = {
        (is_equivalent(system, each), bool(lost_by_step(system, each.action, system.invariants)))
        for each in mutants(system)
        if isinstance(each, Mutant)
    }
    assert answers == {(True, False), (False, True), (False, False)}


ATTACKED_AS_ANOTHER = ("pointer-queue-clock", "paging-syncs")
"""The models that are parts of the ones attacked as `pointer-queue` and `paging-places`."""


@pytest.mark.each_time(3)
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in ATTACKED_AS_ANOTHER])
def test_names_of_mutants_are_unique_and_reasons_are_about_them(name: str) -> None:
    subject = attack_on(name)
    names = [mutant.name for mutant in subject.mutants()]
    assert len(set(names)) == len(names)
    places = Counter(JudgedMutant(name, "survivor").place for name in names)
    for place, reasons in explained(subject.reasons).items():
        assert sum(reasons.values()) <= places[place]


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


REASONS = """
It is only a lamp.
    plug: plugged; light: lit*2; unplug: guard 1, plugged*2; initially: plugged*2
"""


@pytest.mark.parametrize(
    ("reasons", "status", "said"),
    [
        (REASONS, 0, "light: lit: stays as it was                survives: It is only a lamp.\n"),
        ("", 1, "  plug: plugged: 1 survive, 0 explained\n    plug: plugged: stays as it was\n"),
        (
            REASONS.replace("lit*2", "lit"),
            1,
            "  light: lit: 2 survive, 1 explained\n    light: lit: stays as it was\n",
        ),
        (REASONS.replace("lit*2", "lit*3"), 1, "  light: lit: 2 survive, 3 explained\n"),
        (f"{REASONS}It shone.\n    light: shines", 1, "  light: shines: 0 survive, 1 explained\n"),
    ],
)
def test_the_command_fails_unless_as_many_mutants_survive_as_reasons_explain(
    reasons: str, status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, "lamps", Listed(Lamps, Scope({Lamp: 2}, range(1))))
    monkeypatch.setattr(Lamps, "equivalent_mutants", reasons)
    result = CliRunner().invoke(prove, ["--attack", "lamps", "--no-cache"])
    assert said in result.output
    assert result.exit_code == status


def attacked(processes: int, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Return what the command says of the lamps, with so many processes."""
    monkeypatch.setattr(prove_command, "cores", lambda: processes)
    monkeypatch.setitem(CATALOGUE, "lamps", Listed(Lamps, Scope({Lamp: 2}, range(1))))
    return CliRunner().invoke(prove, ["--attack", "lamps", "--no-cache"])


def test_two_processes_judge_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (
        re.sub(r"  \d+ s\n", "\n", attacked(number, monkeypatch).output) for number in (1, 2)
    )
    assert one == two


def test_a_process_that_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    this = os.getpid()

    def ends(_: object, mutant: AnyMutant, *__: object) -> None:
        assert os.getpid() != this
        if mutant.name != "initially: plugged: anything":
            signal.pause()
        os._exit(7)

    monkeypatch.setattr(mutation_testing, "judged_frame", ends)
    result = attacked(2, monkeypatch)
    assert result.exit_code == 2
    assert re.search(r"the process that judges mutant \d+ ended with status 7", result.output)
    assert result.exc_info  # It holds the frames in which the other processes are waited for.
    left = multiprocessing.active_children()
    for each in left:
        each.kill()
    assert left == []
