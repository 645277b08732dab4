"""Subjects: what a CANDIDATE argument names, and how a run of it is started.

The one place where the forms of a candidate's address are told apart. A subject in this process is
made anew for each run and can perhaps be copied; one on the wire is kept open and reset.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

from brokerproof.candidates.python_object import load_python_object
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.conversation import CannotStart, reset
from brokerproof.checks.oracle import Oracle
from brokerproof.reference import DOCUMENTED_SYSTEMS, make
from brokerproof.spec.candidate import Candidate, Closable
from brokerproof.spec.capabilities import Hello

REFERENCE = "reference:"
WIRE = "amqp091://"
LATER = ("exec:", "stomp://", "amqp10://")


@dataclass
class Subject:
    """A candidate under the gate: its address, its claims, and how to begin a run with it."""

    address: str
    hello: Hello
    start: Callable[[], Candidate]
    in_process: bool
    _kept: Candidate | None = field(default=None, repr=False)
    _last: Candidate | None = field(default=None, repr=False)

    def fresh(self) -> tuple[Candidate, Oracle]:
        """Return the candidate right after a reset, and an oracle for it; raises `CannotStart`."""
        candidate = self._kept
        if candidate is None:
            self._end_last()
            candidate = self._last = self.start()
        reset(candidate)
        return candidate, Oracle(self.hello.capabilities)

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


def open_subject(address: str) -> Subject:
    """Return the subject that an address names; raises `CandidateUnavailable` with one line."""
    if address.startswith(LATER):
        raise CandidateUnavailable(
            address,
            what="this form of candidate is not supported yet",
            remedy="name reference:SYSTEM, package.module:factory or amqp091://user:password@host/",
        )
    if address.startswith(WIRE):
        return _on_the_wire(address)
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


def _on_the_wire(address: str) -> Subject:
    if importlib.util.find_spec("amqp") is None:
        raise CandidateUnavailable(
            address,
            what="the client for AMQP 0-9-1 is not installed",
            remedy="pip install 'brokerproof[amqp]'",
        )
    from brokerproof.candidates.amqp091 import Amqp091Candidate  # noqa: PLC0415 (an extra)

    candidate = Amqp091Candidate(address)
    subject = Subject(
        address, candidate.hello(), lambda: candidate, in_process=False, _kept=candidate
    )
    _try(subject)
    return subject


def _try(subject: Subject) -> None:
    try:
        subject.fresh()
    except CannotStart as error:
        raise CandidateUnavailable(
            subject.address,
            what=str(error),
            remedy="answer reset with Answer() and an empty list of events",
        ) from error
