"""A candidate without claims is tested for the core, by its own way to take messages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import ExitStatus, Outcome, exit_status
from brokerproof.reference.broker import Broker
from brokerproof.spec.protocol.answers import Answer, refused, unsupported
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import Consume, Get, Operation, Publish, Reset
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box


class Claiming(Broker):
    """The reference without claims, and without the operations in `without`."""

    claims = Capabilities()
    without: tuple[type[Operation], ...] = ()
    refusal = staticmethod(unsupported)

    def hello(self) -> Hello:
        """Return the preset claims."""
        return Hello(name="claiming", version="1", capabilities=self.claims)

    def handle(self, operation: Operation) -> Answer:
        """Refuse the operations that are left out."""
        if isinstance(operation, type(self).without):
            return type(self).refusal("not here")
        return super().handle(operation)


class OnlyGets(Claiming):
    """Has no consumers."""

    without: tuple[type[Operation], ...] = (Consume,)


class OnlyConsumers(Claiming):
    """Cannot be got from."""

    without: tuple[type[Operation], ...] = (Get,)


class Neither(Claiming):
    """Delivers no messages."""

    without: tuple[type[Operation], ...] = (Get, Consume)


class RefusesBoth(Neither):
    """Delivers no messages, and refuses gets and consumers without calling them unsupported."""

    refusal = staticmethod(refused)


class Raises(Neither):
    """Fails at each operation that takes messages."""

    without: tuple[type[Operation], ...] = ()

    def handle(self, operation: Operation) -> Answer:
        """Fail."""
        if isinstance(operation, Get | Consume):
            raise KeyError(operation.queue)
        return super().handle(operation)


class OnlyAutomatic(OnlyConsumers):
    """Claims only modes without settlement."""

    claims = Capabilities(modes=("automatic",))


class NoOrder(OnlyGets):
    """Claims no order of its messages."""

    claims = Capabilities(orders=(), get=True)


class CannotBeReset(Claiming):
    """Is not to be started."""

    without: tuple[type[Operation], ...] = (Reset,)


def subject_of(start: type[Candidate]) -> Subject:
    """Return a candidate as the gate sees it."""
    return Subject("core", start().hello(), start, in_process=True)


def report_on(start: type[Candidate]) -> Report:
    """Return the gate's report."""
    return run_gate(subject_of(start), catalogue(), Budget(100, 0), 0)


BOTH = Capabilities(get=True, modes=("acknowledge",))


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (Claiming, BOTH),
        (OnlyGets, Capabilities(get=True)),
        (OnlyConsumers, Capabilities(modes=("acknowledge",))),
        (Neither, BOTH),
        (RefusesBoth, BOTH),
        (Raises, BOTH),
        (OnlyAutomatic, Capabilities(modes=("acknowledge", "automatic"))),
        (NoOrder, Capabilities(get=True)),
        (CannotBeReset, Capabilities()),
    ],
)
def test_it_is_held_to_the_way_that_it_has(kind: type[Claiming], asked: Capabilities) -> None:
    if kind is Claiming:
        # One way is enough: the first that works.
        asked = replace(asked, modes=())
    assert subject_of(kind).hello.capabilities == asked


def test_a_broker_that_claims_a_way_is_asked_for_no_other() -> None:
    for claims in (Capabilities(get=True), Capabilities(modes=("acknowledge",)), BOTH):

        class Claims(Neither):
            pass

        Claims.claims = claims
        assert subject_of(Claims).hello.capabilities is claims


@pytest.mark.parametrize("kind", [OnlyGets, OnlyConsumers, OnlyAutomatic, NoOrder])
def test_a_broker_that_has_the_core_and_does_not_say_so_keeps_it(kind: type[Claiming]) -> None:
    report = report_on(kind)
    of = {each.requirement.id: each.outcome for each in report.verdicts}
    for name in ("nothing-lost", "nothing-twice", "fifo-order", "does-what-it-claims"):
        assert of[name] is Outcome.KEPT, name
    assert Outcome.BROKEN not in of.values()


@pytest.mark.parametrize("kind", [Neither, RefusesBoth])
def test_a_broker_without_the_core_does_not_do_what_it_claims(kind: type[Claiming]) -> None:
    report = report_on(kind)
    broken = {each.requirement.id for each in report.verdicts if each.outcome is Outcome.BROKEN}
    assert broken == {"does-what-it-claims"}
    assert exit_status(report.verdicts) is ExitStatus.BROKEN


def test_a_broker_that_raises_breaks_the_protocol() -> None:
    broken = [each for each in report_on(Raises).verdicts if each.outcome is Outcome.BROKEN]
    assert "protocol" in {each.requirement.id for each in broken}


class Silent(Box):
    """An honest queue that claims nothing."""

    def hello(self) -> Hello:
        """Claim nothing."""
        return Hello(name="silent", version="1", capabilities=Capabilities())


class Loses(Silent):
    """Loses every second message, and claims nothing."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or lose the message."""
        if isinstance(operation, Publish) and operation.message.id.endswith("1"):
            return Answer()
        return super().handle(operation)


def test_to_claim_nothing_is_no_way_to_lose_messages() -> None:
    of = {each.requirement.id: each.outcome for each in report_on(Loses).verdicts}
    assert of["nothing-lost"] is Outcome.BROKEN
    honest = {each.requirement.id: each.outcome for each in report_on(Silent).verdicts}
    assert honest["nothing-lost"] is Outcome.KEPT
