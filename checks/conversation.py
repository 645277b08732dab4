"""One question, one answer: how the gate talks to a candidate in this process.

Owns the rule that nothing a candidate does becomes a traceback of ours: what it raises and what it
answers in the wrong form is returned as `Misbehaviour`, a finding. Also owns how a candidate is
copied.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from brokerproof.spec.answers import Answer, ConsumerClosed, Delivered, QueueDeleted
from brokerproof.spec.candidate import Candidate, Fingerprinted, Forkable
from brokerproof.spec.operations import Operation, Reset, name_of


@dataclass(frozen=True)
class Misbehaviour:
    """A candidate did what no answer may be; `what` is one line."""

    what: str


def ask(candidate: Candidate, operation: Operation) -> Answer | Misbehaviour:
    """Hand over one operation and return the answer, or what came instead of one."""
    try:
        answer = candidate.handle(operation)
    except Exception as error:  # noqa: BLE001 (a candidate may raise anything; all of it is a finding)
        text = str(error).splitlines()[0][:200] if str(error) else ""
        return Misbehaviour(f"{name_of(operation)} raised {type(error).__name__}: {text}")
    if not isinstance(answer, Answer):
        return Misbehaviour(f"{name_of(operation)} returned {type(answer).__name__}, not an Answer")
    for event in answer.events:
        if not isinstance(event, Delivered | ConsumerClosed | QueueDeleted):
            return Misbehaviour(f"{name_of(operation)} told {type(event).__name__}, not an event")
    return answer


class CannotStart(Exception):
    """A candidate does not answer its first reset in form; the message is one line."""


def reset(candidate: Candidate) -> None:
    """Reset a candidate; raises `CannotStart` where that does not succeed."""
    answer = ask(candidate, Reset())
    if isinstance(answer, Misbehaviour):
        raise CannotStart(answer.what)
    if answer.error is not None:
        raise CannotStart(f"reset was answered {answer.error.code}: {answer.error.message}")
    if answer.events:
        raise CannotStart("reset was answered with events; its list of events is empty")


@dataclass(frozen=True)
class Copier:
    """How a candidate is copied, and how equal states of it are told."""

    fork: Callable[[Candidate], Candidate]
    fingerprint: Callable[[Candidate], Hashable]


def copier_of(candidate: Candidate) -> Copier | str:
    """Return how to copy a candidate, or in one line why it cannot be copied."""
    if isinstance(candidate, Forkable):
        fork: Callable[[Candidate], Candidate] = lambda each: each.fork()  # type: ignore[attr-defined]  # noqa: E731
    else:
        try:
            pickle.loads(pickle.dumps(candidate))  # noqa: S301 (our own bytes)
            copy.deepcopy(candidate)
        except Exception as error:  # noqa: BLE001 (whatever keeps it from being copied is the reason)
            return f"it cannot be copied ({type(error).__name__}: {str(error)[:100]})"
        fork = copy.deepcopy
    if isinstance(candidate, Fingerprinted):
        return Copier(fork, lambda each: each.fingerprint())  # type: ignore[attr-defined]
    return Copier(fork, pickle.dumps)
