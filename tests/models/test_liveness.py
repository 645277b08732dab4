"""What leads to what in the end: with fairness, without, and the run that breaks it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from brokerproof.checks.explore_command import explore
from brokerproof.models.catalogue import CATALOGUE, Listed
from brokerproof.models.language import Bool, Family, Map, Model, action, exists, initial, require
from brokerproof.models.language import liveness as liveness_module
from brokerproof.models.language.liveness import check
from brokerproof.models.language.model import ModelError, leads_to, trace
from brokerproof.models.language.scope import Scope


class Guest(Family):
    """Somebody who waits to be served."""


class Restaurant(Model):
    """Guests who come, are served and go."""

    waits: Map[Guest, Bool]
    eats: Map[Guest, Bool]

    @initial
    def empty(self) -> None:
        """Nobody is there."""
        self.waits.fill(False)
        self.eats.fill(False)

    @action
    def come(self, guest: Guest) -> None:
        """A guest sits down."""
        require(~self.waits[guest] & ~self.eats[guest])
        self.waits[guest] = True

    @action
    def serve(self, guest: Guest) -> None:
        """A guest gets what there is only one of."""
        require(self.waits[guest] & ~exists(Guest, lambda other: self.eats[other]))
        self.waits[guest] = False
        self.eats[guest] = True

    @action
    def leave(self, guest: Guest) -> None:
        """A guest is done."""
        require(self.eats[guest])
        self.eats[guest] = False

    @leads_to("whoever-eats-leaves", fair=("leave",))
    def eats_leaves(self, guest: Guest) -> tuple[Bool, Bool]:
        """Nobody stays for ever."""
        return self.eats[guest], ~self.eats[guest]

    @leads_to("whoever-eats-leaves-by-themselves")
    def unfair(self, guest: Guest) -> tuple[Bool, Bool]:
        """Wrong: without fairness nothing has to happen."""
        return self.eats[guest], ~self.eats[guest]

    @leads_to("whoever-waits-eats", fair=("serve", "leave"))
    def waits_eats(self, guest: Guest) -> tuple[Bool, Bool]:
        """Wrong with two guests: the other may be served again and again."""
        return self.waits[guest], self.eats[guest]


def test_fairness_decides_what_happens_in_the_end() -> None:
    kept = check(trace(Restaurant), Scope({Guest: 1}, range(1)))
    assert [each.kept for each in kept] == [True, False, True]
    assert kept[1].circle == 1
    assert [step.action for step in kept[1].trace] == ["", "come", "serve"]


def test_one_guest_can_be_passed_over_for_ever() -> None:
    kept = check(trace(Restaurant), Scope({Guest: 2}, range(1)))
    assert [each.kept for each in kept] == [True, False, False]
    starving = kept[2]
    assert starving.arguments == {"guest": "guest0"}
    assert starving.circle == 3
    last = starving.trace[-1].state
    assert last["waits[guest0]"] is True
    assert last["eats[guest0]"] is False


def test_a_scope_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness_module, "STATES_MAX", 3)
    with pytest.raises(ModelError, match="at most 3 states: make the scope smaller"):
        check(trace(Restaurant), Scope({Guest: 2}, range(1)))


def test_the_command_shows_the_run_that_goes_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Listed(Restaurant, Scope({Guest: 2}, range(1)))
    monkeypatch.setitem(CATALOGUE, "restaurant", listed)
    result = CliRunner().invoke(explore, ["restaurant"])
    assert result.exit_code == 1
    assert "  kept in the end: whoever-eats-leaves\n" in result.output
    assert "  broken: whoever-waits-eats(guest=guest0)\n" in result.output
    assert "    and so on for ever, in 3 states" in result.output
    monkeypatch.setattr(liveness_module, "STATES_MAX", 3)
    result = CliRunner().invoke(explore, ["restaurant"])
    assert result.exit_code == 3
    assert "  not checked: whoever-eats-leaves, whoever" in result.output


def test_only_actions_can_be_fair() -> None:
    class Odd(Restaurant):
        """Wants what is not there to be fair."""

        @leads_to("nothing", fair=("dance",))
        def nothing(self, guest: Guest) -> tuple[Bool, Bool]:
            """About an action that does not exist."""
            return self.eats[guest], self.eats[guest]

    with pytest.raises(ModelError, match="wants dance to be fair, which is no action"):
        check(trace(Odd), Scope({Guest: 1}, range(1)))
