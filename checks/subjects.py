"""Subjects: what a CANDIDATE argument names, and how a run of it is started.

The one place where the forms of a candidate's address are told apart. A subject in this process is
made anew for each run and can perhaps be copied; one on the wire is kept open and reset. So is a
driver, which is started again when it has failed.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.driver import FORM, DriverCandidate
from brokerproof.candidates.driver_process import Limits
from brokerproof.candidates.python_object import load_python_object
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.conversation import CannotStart, Misbehaviour, reset
from brokerproof.checks.crashable import Crashable
from brokerproof.checks.oracle import Oracle
from brokerproof.reference import DOCUMENTED_SYSTEMS, make
from brokerproof.spec.candidate import Candidate, Closable
from brokerproof.spec.capabilities import Hello

REFERENCE = "reference:"
WIRE = "amqp091://"
PRIVATE = "private:"
PRIVATE_RABBITMQ = f"{PRIVATE}rabbitmq"
LATER = ("stomp://", "amqp10://")

DRIVER_LIMITS = Limits()


@dataclass
class Subject:
    """A candidate under the gate: its address, its claims, and how to begin a run with it."""

    address: str
    hello: Hello
    start: Callable[[], Candidate]
    in_process: bool
    _kept: Candidate | None = field(default=None, repr=False)
    _last: Candidate | None = field(default=None, repr=False)

    @property
    def crashable(self) -> Crashable | None:
        """The candidate, if it is a broker behind a connection that can be killed."""
        return self._kept if isinstance(self._kept, Crashable) else None

    def fresh(self) -> tuple[Candidate, Oracle]:
        """Return the candidate right after a reset, and an oracle for it; raises `CannotStart`.

        A driver whose reset fails now is returned all the same: its fault is told as the answer to
        the first operation, and so becomes a finding with a trace (driver protocol 1, rule 48).
        """
        candidate = self._kept
        if candidate is None:
            self._end_last()
            candidate = self._last = self.start()
        try:
            reset(candidate)
        except CannotStart as error:
            if not isinstance(candidate, DriverCandidate):
                raise
            candidate.give_up(str(error))
        return candidate, Oracle(self.hello.capabilities)

    def end(self) -> Misbehaviour | None:
        """End a driver in order, and return what was wrong with its end; it is not needed any more.

        Nothing is known of how other candidates end.
        """
        if not isinstance(self._kept, DriverCandidate):
            return None
        what = self._kept.end()
        return Misbehaviour(what) if what else None

    def close(self) -> None:
        """Give back what the candidate holds outside this process."""
        self._end_last()
        _close(self._kept)

    def _end_last(self) -> None:
        """One run at a time: the one before is over when the next begins."""
        _close(self._last)
        self._last = None


def _close(candidate: Candidate | None) -> None:
    """Close what can be closed; a `close` that wants arguments is something else."""
    if isinstance(candidate, Closable):
        try:
            inspect.signature(candidate.close).bind()
        except TypeError:
            return
        candidate.close()


def default_addresses() -> tuple[str, ...]:
    """Return the candidates that are checked when none is named: the documented systems."""
    return tuple(f"{REFERENCE}{system}" for system in DOCUMENTED_SYSTEMS)


def open_subject(
    address: str, limits: Limits = DRIVER_LIMITS, power: Power | None = None
) -> Subject:
    """Return the subject that an address names; raises `CandidateUnavailable` with one line.

    `limits` are those of drivers, `power` is that over a broker on the wire.
    """
    if address.startswith(LATER):
        raise CandidateUnavailable(
            address,
            what="this form of candidate is not supported yet",
            remedy="name reference:SYSTEM, package.module:factory, exec:COMMAND or amqp091://…",
        )
    if address.startswith(FORM):
        return _driver(address, limits)
    if address.startswith(WIRE):
        _need_the_client(address)
        return _on_the_wire(address, address, power)
    if address.startswith(PRIVATE):
        return _private(address)
    if address.startswith(REFERENCE):
        return _in_process(address, lambda: _reference(address))
    return _in_process(address, lambda: load_python_object(address))


def _in_process(address: str, start: Callable[[], Candidate]) -> Subject:
    first = start()
    subject = Subject(address, first.hello(), start, in_process=True, _last=first)
    _try(subject)
    return subject


def _reference(address: str) -> Candidate:
    try:
        return make(address.removeprefix(REFERENCE))
    except ValueError as error:
        raise CandidateUnavailable(
            address, what=str(error), remedy=f"name one of {', '.join(default_addresses())}"
        ) from error


def _need_the_client(address: str) -> None:
    if importlib.util.find_spec("amqp") is None:
        raise CandidateUnavailable(
            address,
            what="the client for AMQP 0-9-1 is not installed",
            remedy="pip install 'brokerproof[amqp]'",
        )


def _on_the_wire(address: str, url: str, power: Power | None) -> Subject:
    """Connect to a broker; with `power` over it, which is given back when that fails."""
    from brokerproof.candidates.amqp091 import Amqp091Candidate  # noqa: PLC0415 (an extra)

    candidate = Amqp091Candidate(url, power)
    kept = candidate if power is None else Crashable(candidate)
    subject = Subject(address, candidate.hello(), lambda: kept, in_process=False, _kept=kept)
    _try(subject)
    return subject


def _private(address: str) -> Subject:
    """Start a broker of our own; it ends with the subject, or here where that fails."""
    if address != PRIVATE_RABBITMQ:
        raise CandidateUnavailable(
            address, what="there is no such private broker", remedy=f"name {PRIVATE_RABBITMQ}"
        )
    _need_the_client(address)
    from brokerproof.candidates.private_rabbitmq import PrivateRabbitMQ  # noqa: PLC0415 (an extra)

    server = PrivateRabbitMQ()
    server.start()
    try:
        return _on_the_wire(address, server.url, server)
    except BaseException:
        server.stop()
        raise


def _driver(address: str, limits: Limits) -> Subject:
    """Start a driver; one that does not answer its first reset in form cannot be run (rule 48)."""
    candidate = DriverCandidate(address, limits)
    try:
        reset(candidate)
    except CannotStart as error:
        candidate.close()
        raise CandidateUnavailable(
            address, what=str(error), remedy="answer it as docs/protocol.md says"
        ) from error
    return Subject(address, candidate.hello(), lambda: candidate, in_process=False, _kept=candidate)


def _try(subject: Subject) -> None:
    try:
        subject.fresh()
    except CannotStart as error:
        raise CandidateUnavailable(
            subject.address,
            what=str(error),
            remedy="answer reset with Answer() and an empty list of events",
        ) from error
