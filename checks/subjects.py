"""Subjects: what a CANDIDATE argument names, and how a run of it is started.

Only this file tells the forms of a candidate's address apart. A subject in this process is made
anew for each run and may be copied. A subject on the wire stays open and is reset. So does a
driver, which is started again after a failure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from brokerproof.candidates.crash_commands import CRASH, RESTART, Power
from brokerproof.candidates.driver.candidate import FORM, DriverCandidate
from brokerproof.candidates.driver.process import Limits
from brokerproof.candidates.extras import missing_client
from brokerproof.candidates.instances.registry import PRIVATE
from brokerproof.candidates.instances.servers import private_server
from brokerproof.candidates.python_object import starting
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.conversation import CannotStart, Misbehaviour, ask, reset
from brokerproof.checks.core_profile import is_claimed, with_the_core
from brokerproof.checks.crash.crashable import Crashable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.workers.watchdog import CapReached
from brokerproof.reference import DOCUMENTED_SYSTEMS, make
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate, Closable
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import Crash, Restart, name_of

if TYPE_CHECKING:
    from brokerproof.candidates.wire.candidate import WireCandidate

REFERENCE = "reference:"
WIRE = "amqp091://"
STOMP = ("stomp://", "stomps://")
AMQP10 = ("amqp10://", "amqp10s://")
ON_THE_WIRE = (WIRE, "amqp091s://", *AMQP10, *STOMP)
PRIVATE_RABBITMQ = f"{PRIVATE}rabbitmq"

DRIVER_LIMITS = Limits()


@dataclass(frozen=True)
class OnTheWire:
    """The adapter of a broker on the wire, and how to connect a `guest` that joins its queues."""

    host: WireCandidate[Any, Any]
    guest: Callable[[], WireCandidate[Any, Any]]


@dataclass
class Subject:
    """A candidate under the gate: its address, its claims, and how to begin a run with it.

    `warnings` name the parts of its hello that mean nothing, and say what limits the check.
    """

    address: str
    hello: Hello
    start: Callable[[], Candidate]
    in_process: bool
    warnings: tuple[str, ...] = ()
    wire: OnTheWire | None = field(default=None, repr=False)
    out_of_time: Callable[[], bool] = field(default=lambda: False, repr=False)
    holds_something: bool = field(default=False, init=False)
    _kept: Candidate | None = field(default=None, repr=False)
    _last: Candidate | None = field(default=None, repr=False)
    _oracle: Oracle | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Add the core profile to the claims (driver protocol 1, rule 49)."""
        claims = self.hello.capabilities
        if not is_claimed(claims):
            asked = with_the_core(claims, lambda: self.fresh()[0])
            self.hello = replace(self.hello, capabilities=asked)

    @property
    def crashable(self) -> Crashable | None:
        """The candidate, if it is a broker on the wire that can be killed."""
        return self._kept if isinstance(self._kept, Crashable) else None

    def fresh(self) -> tuple[Candidate, Oracle]:
        """Return the candidate right after a reset, and an oracle for it.

        Raises `CannotStart`, and `CapReached` once the cap in seconds has passed. If the reset of a
        driver fails, the driver is returned all the same. The fault becomes the answer to the first
        operation, and so a finding with a trace (driver protocol 1, rule 48).
        """
        if self.out_of_time():
            raise CapReached
        candidate = self._kept
        if candidate is None:
            self._end_last()
            candidate = self._last = self.start()
            self.holds_something = hasattr(candidate, "close")
        try:
            reset(candidate)
        except CannotStart as error:
            if not isinstance(candidate, DriverCandidate):
                raise
            candidate.give_up(str(error))
        claims = self.hello.capabilities
        if self._oracle is None or self._oracle.bindings.claims is not claims:
            self._oracle = Oracle(claims)
        return candidate, self._oracle.fork()

    def end(self) -> Misbehaviour | None:
        """End a driver in order and return what was wrong with its end.

        Other candidates have no end that the gate can check.
        """
        if not isinstance(self._kept, DriverCandidate):
            return None
        what = self._kept.end()
        return Misbehaviour(what) if what else None

    def close(self) -> None:
        """Release what the candidate holds outside this process."""
        self._end_last()
        _close(self._kept)

    def hurry(self) -> None:
        """Shorten the time that a driver has to end."""
        if isinstance(self._kept, DriverCandidate):
            self._kept.hurry()

    def rest(self) -> None:
        """Close a candidate in this process: a forked process must not share it."""
        if self.in_process:
            self._end_last()

    def _end_last(self) -> None:
        """Close the candidate of the run before: only one run is open at a time."""
        _close(self._last)
        self._last = None


def _close(candidate: Candidate | None) -> None:
    """Close a candidate whose `close` takes no arguments; any other `close` is not ours."""
    # `callable` stands in for `Closable`: a protocol check costs more than many an operation.
    if callable(getattr(candidate, "close", None)):
        closable = cast("Closable", candidate)
        try:
            inspect.signature(closable.close).bind()
        except TypeError:
            return
        closable.close()


def default_addresses() -> tuple[str, ...]:
    """Return the candidates checked when none is named: the documented systems."""
    return tuple(f"{REFERENCE}{system}" for system in DOCUMENTED_SYSTEMS)


def open_subject(
    address: str, limits: Limits = DRIVER_LIMITS, power: Power | None = None
) -> Subject:
    """Return the subject of an address; raises `CandidateUnavailable` with one line.

    `limits` apply to drivers. `power` kills and starts a broker on the wire.
    """
    if address.startswith(FORM):
        return _driver(address, limits)
    if address.startswith(ON_THE_WIRE):
        scheme = address.partition("://")[0].removesuffix("s")  # with TLS there is an s
        missing = missing_client(scheme, address)
        if missing is not None:
            raise missing
        return _on_the_wire(address, address, power)
    if address.startswith(PRIVATE):
        return _private(address)
    if address.startswith(REFERENCE):
        return _in_process(address, lambda: _reference(address))
    scheme, is_url, _ = address.partition("://")
    if is_url:
        raise CandidateUnavailable(
            address,
            what=f"the scheme {scheme} is not known",
            remedy=f"use one of {', '.join(ON_THE_WIRE)}",
        )
    return _in_process(address, starting(address))


def _in_process(address: str, start: Callable[[], Candidate]) -> Subject:
    first = start()
    subject = Subject(address, first.hello(), start, in_process=True, _last=first)
    _try(subject)
    return subject


def _reference(address: str) -> Candidate:
    try:
        return make(address.removeprefix(REFERENCE))
    except ValueError as error:
        remedy = "correct the address"
        raise CandidateUnavailable(address, what=str(error), remedy=remedy) from error


def _on_the_wire(address: str, url: str, power: Power | None) -> Subject:
    """Connect to a broker; with `power`, check that it can be killed and started."""
    candidate = _connected(url, power)
    kept = Crashable(candidate) if candidate.hello().capabilities.durable else candidate
    subject = Subject(
        address,
        candidate.hello(),
        lambda: kept,
        in_process=False,
        warnings=candidate.notices,
        wire=OnTheWire(candidate, partial(_connected, url, None)),
        _kept=kept,
    )
    try:
        _try(subject)
        if power is not None and not power.is_ours:
            _rehearse(subject)
    except BaseException:
        candidate.close()
        raise
    return subject


def _connected(url: str, power: Power | None) -> WireCandidate[Any, Any]:
    """Return the adapter of the address's protocol; its client may be an extra."""
    if url.startswith(STOMP):
        from brokerproof.candidates.stomp.candidate import StompCandidate  # noqa: PLC0415

        return StompCandidate(url, power)
    if url.startswith(AMQP10):
        from brokerproof.candidates.amqp10.candidate import Amqp10Candidate  # noqa: PLC0415

        return Amqp10Candidate(url, power)
    from brokerproof.candidates.amqp091.candidate import Amqp091Candidate  # noqa: PLC0415

    return Amqp091Candidate(url, power)


def _rehearse(subject: Subject) -> None:
    """Crash and restart an empty broker: a failure now is a fault of the commands.

    Later, a broker that does not come back is a finding.
    """
    candidate, _ = subject.fresh()
    for operation in (Crash(), Restart()):
        what = _why_not(ask(candidate, operation))
        if what:
            raise CandidateUnavailable(
                subject.address,
                what=f"{name_of(operation)} failed while there was nothing to lose: {what}",
                remedy=f"try {CRASH} and {RESTART} by hand",
            )
    _try(subject)


def _why_not(answer: Answer | Misbehaviour) -> str:
    """Return why an answer is not `ok`, or an empty text."""
    if isinstance(answer, Misbehaviour):
        return answer.what
    return "" if answer.error is None else answer.error.message


def _private(address: str) -> Subject:
    """Start a broker of our own; it ends with the subject, or here on failure."""
    server = private_server(address)
    server.start()
    try:
        return _on_the_wire(address, server.url, server)
    except BaseException:
        server.stop()
        raise


def _driver(address: str, limits: Limits) -> Subject:
    """Start a driver; it cannot be run if its first reset fails (driver protocol 1, rule 48)."""
    candidate = DriverCandidate(address, limits)
    try:
        reset(candidate)
    except CannotStart as error:
        candidate.close()
        raise CandidateUnavailable(
            address, what=str(error), remedy="answer it as docs/reference/protocol.md says"
        ) from error
    return Subject(
        address,
        candidate.hello(),
        lambda: candidate,
        in_process=False,
        warnings=candidate.warnings,
        _kept=candidate,
    )


def _try(subject: Subject) -> None:
    try:
        subject.fresh()
    except CannotStart as error:
        raise CandidateUnavailable(
            subject.address,
            what=str(error),
            remedy="answer reset with Answer() and an empty list of events",
        ) from error
