"""Mistakes in a model's text that would otherwise be silent are errors, for every reading."""

from __future__ import annotations

import pytest

from brokerproof.models.language import (
    Bool,
    Family,
    Int,
    Map,
    Model,
    ModelError,
    action,
    axiom,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
)
from brokerproof.models.language.core.model import SetOf, trace
from brokerproof.models.language.core.scope import INTEGER_BOUND, Scope, default_scope
from brokerproof.models.language.core.terms import FALSE, TRUE
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.bounded import check_bounded
from brokerproof.models.language.prove.prover import prove_invariant


class Lamp(Family):
    """A lamp, on or off."""


class Lamps(Model):
    """Lamps that are switched; nothing is wrong with this text."""

    on: Map[Lamp, Bool]

    @initial
    def off(self) -> None:
        """All are off."""
        self.on.fill(False)

    @action
    def switch(self, which: Lamp) -> None:
        """One is switched."""
        self.on[which] = ~self.on[which]


class AboutState(Lamps):
    """An axiom about a changing symbol would prove anything."""

    @axiom("never-on")
    def never_on(self) -> Bool:
        """No lamp is ever on."""
        return forall(Lamp, lambda lamp: ~self.on[lamp])


class Twice(Lamps):
    """Two statements under one name."""

    @invariant("same")
    def one(self) -> Bool:
        """One thing."""
        return exists(Lamp, lambda lamp: self.on[lamp])

    @invariant("same")
    def other(self) -> Bool:
        """Anything else."""
        return FALSE


class Unfair(Lamps):
    """Fair to an action that there is not."""

    @leads_to("on-in-the-end", fair=("swich",))
    def lights(self, which: Lamp) -> tuple[Bool, Bool]:
        """A lamp goes on."""
        return ~self.on[which], self.on[which]


class Meddling(Lamps):
    """A promise that changes something."""

    @leads_to("on-in-the-end")
    def lights(self, which: Lamp) -> tuple[Bool, Bool]:
        """A lamp goes on."""
        self.on[which] = True
        return ~self.on[which], self.on[which]


class Demanding(Lamps):
    """A start that requires instead of assigning."""

    @initial
    def off(self) -> None:
        """Nothing can be."""
        require(FALSE)
        self.on.fill(False)


class Idle(Model):
    """Nothing ever happens."""

    on: Map[Lamp, Bool]

    @initial
    def off(self) -> None:
        """All are off."""
        self.on.fill(False)


class Comparing(Lamps):
    """A comparison where an assignment was meant."""

    @action
    def light(self, which: Lamp) -> None:
        """Light it."""
        self.on[which] == TRUE  # noqa: B015 (the mistake)


class Forgetting(Lamps):
    """A map's new value, which is not assigned."""

    @action
    def light(self, which: Lamp) -> None:
        """Light all others."""
        self.on.map(lambda lamp, old: old | ~(lamp == which))


class ForgettingByName(Lamps):
    """The same where the text does not show it."""

    @action
    def light(self, which: Lamp) -> None:
        """Light all others."""
        all_lit = self.on.map(lambda lamp, old: old | ~(lamp == which))
        require(~self.on[which])
        del all_lit


class Requiring(Lamps):
    """A quantifier outside of `require`."""

    @action
    def light(self, which: Lamp) -> None:
        """Light it where none is lit."""
        forall(Lamp, lambda lamp: ~self.on[lamp])
        self.on[which] = True


class SameName(Lamps):
    """Two actions of one name, of which Python keeps the second."""

    @action
    def light(self, which: Lamp) -> None:
        """Light it."""
        self.on[which] = True

    @action  # type: ignore[no-redef]
    def light(self, which: Lamp) -> None:  # noqa: F811 (the mistake)
        """Darken it."""
        self.on[which] = False


class Identical(Lamps):
    """Compares two symbols with `is`."""

    @invariant("dark")
    def dark(self) -> Bool:
        """It is decided while the text is read."""
        return forall(Lamp, lambda lamp: self.on[lamp] is not TRUE)


class Promising(Lamps):
    """Promises nothing."""

    @invariant("anything")
    def anything(self) -> Bool:
        """It is so."""
        return implies(TRUE, TRUE)


class Dark(Lamps):
    """No lamp is ever on, which is wrong."""

    @invariant("dark")
    def dark(self) -> Bool:
        """None is on."""
        return forall(Lamp, lambda lamp: ~self.on[lamp])


class Losing(Dark):
    """Overrides a promise, and does not say that it is one."""

    def dark(self) -> Bool:
        """None is on."""
        return forall(Lamp, lambda lamp: self.on[lamp])


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (Identical, r"`self.on\[lamp\] is not TRUE` is decided once: write == or !="),
        (Promising, "anything is true of every state, so it says nothing"),
        (Losing, "Losing.dark overrides an @invariant: mark it as one"),
        (Comparing, r"Comparing, line \d+: `self.on\[which\] == TRUE` does nothing"),
        (Forgetting, r"Forgetting, line \d+: `self.on.map.* does nothing"),
        (ForgettingByName, r"self.on.map\(...\) changes nothing by itself"),
        (Requiring, r"line \d+: `forall.* does nothing: require or assign it"),
        (SameName, r"SameName, line \d+: light is there already, in line \d+"),
        (AboutState, "the axiom never-on reads on, which changes"),
        (Twice, "2 statements are called same"),
        (Unfair, "wants swich to be fair, which is no action: there are switch"),
        (Meddling, "must not change anything"),
        (Demanding, "@initial assigns"),
        (Idle, "has no @action"),
    ],
)
def test_a_mistake_that_would_be_silent_is_refused(model: type[Model], complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        trace(model)
    assert trace(Lamps).name == "Lamps"


@pytest.mark.parametrize("mark", [invariant, axiom, leads_to])
def test_a_statement_without_a_name_is_refused(mark: object) -> None:
    def states() -> Bool:
        return TRUE

    assert callable(mark)
    with pytest.raises(ModelError, match='"its-name"'):
        mark(states)


def test_an_action_with_a_name_is_refused() -> None:
    with pytest.raises(ModelError, match="without a name"):
        action("go")  # type: ignore[type-var]


def test_plain_values_stand_where_terms_do() -> None:
    assert ite(TRUE, True, FALSE) is TRUE  # users write this
    assert isinstance(ite(FALSE, 1, 2), Int)


class Turned(Model):
    """An initial state that reads its predecessor: any state, negated."""

    on: Map[Lamp, Bool]

    @initial
    def turned(self) -> None:
        """Negate each value."""
        self.on = self.on.map(lambda _, old: ~old)

    @action
    def switch(self, which: Lamp) -> None:
        """One is switched."""
        self.on[which] = ~self.on[which]

    @invariant("dark")
    def dark(self) -> Bool:
        """No lamp is on."""
        return forall(Lamp, lambda lamp: ~self.on[lamp])


def test_a_start_that_reads_what_was_before_it_is_searched_too() -> None:
    found = check_bounded(trace(Turned), {Lamp: 2}, 2)
    assert found.violation is not None
    assert found.steps == 0


class Nowhere(Turned):
    """Axioms that contradict each other."""

    first: Lamp

    @axiom("one")
    def one(self) -> Bool:
        """It is itself."""
        return forall(Lamp, lambda lamp: lamp == self.first)

    @axiom("other")
    def other(self) -> Bool:
        """It is not."""
        return forall(Lamp, lambda lamp: ~(lamp == self.first))


def test_where_nothing_can_begin_nothing_is_called_searched() -> None:
    with pytest.raises(ModelError, match="no initial state"):
        check_bounded(trace(Nowhere), {Lamp: 2}, 2)


def test_a_search_for_nothing_is_refused() -> None:
    with pytest.raises(ModelError, match="there is nothing to search for"):
        check_bounded(trace(Lamps), {Lamp: 2}, 2)


class Counting(Lamps):
    """Counts up to the largest number that a text can name."""

    times: Map[Lamp, Int]

    @initial
    def off(self) -> None:
        """All have been switched nearly as often as can be."""
        self.on.fill(False)
        self.times.fill(INTEGER_BOUND - 1)

    @action
    def switch(self, which: Lamp) -> None:
        """One is switched once more."""
        self.times[which] = self.times[which] + 1

    @invariant("not-too-often")
    def few(self) -> Bool:
        """Wrong after a step, where integers have no end."""
        return forall(Lamp, lambda lamp: self.times[lamp] <= INTEGER_BOUND - 1)


def test_behind_the_largest_integer_that_can_be_named_nothing_is_called_kept() -> None:
    with pytest.raises(ModelError, match=f"times becomes {INTEGER_BOUND}, outside of"):
        check_bounded(trace(Counting), {Lamp: 1}, 2)


class Everywhere(Counting):
    """A liveness property of all integers, which are unbounded."""

    @leads_to("past-all")
    def passes(self, which: Lamp) -> tuple[Bool, Bool]:
        """Be above each."""
        return self.on[which], forall(Int, lambda k: k <= self.times[which])


def test_a_promise_about_all_integers_is_refused() -> None:
    with pytest.raises(ModelError, match="is about all integers"):
        Scope({Lamp: 1}, range(3)).check(trace(Everywhere))


class Wire(Family):
    """A family that only a set uses."""


class Sets(Lamps):
    """A family that is in no symbol, only in a set and a quantifier."""

    @action
    def cut(self, which: SetOf[Wire], lamp: Lamp) -> None:
        """Cut all of the wires."""
        require(forall(Wire, lambda wire: which[wire]))
        self.on[lamp] = False

    @invariant("no-more-lamps-than-there-are")
    def some(self) -> Bool:
        """Wrong."""
        return forall(Lamp, lambda lamp: ~self.on[lamp])


def test_a_family_that_only_a_set_names_has_a_size_too() -> None:
    scope = default_scope(trace(Sets), 2)
    assert scope.sizes == {Lamp: 2, Wire: 2}
    assert explore(trace(Sets), scope).violation is not None
    assert prove_invariant(trace(Sets), trace(Sets).invariants[0]).outcome == "refuted"
