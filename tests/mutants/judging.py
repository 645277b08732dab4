"""What the gate says of a mutant: killed, and under which requirement, or not.

Owns what counts as killed. A mutant is given to the gate as it is, then with more to try, and at
last as each other form of the reference, until it is killed. In each form it is killed by what the
unchanged reference keeps; what is only recommended kills nothing, as it does not turn the gate red.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.requirements import Level, catalogue
from tests.faults.overlay import CannotPlant, Edit, plant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from brokerproof.spec.protocol.candidate import Candidate


class Trial(msgspec.Struct, frozen=True):
    """A form of the reference and how much of the gate it is given."""

    address: str
    operations: int
    examples: int


FIRST: Final = Trial("qpid-push", 125, 0)
TRIALS: Final = (
    FIRST,
    Trial("qpid-push", 300, 20),
    Trial("qpid-push?runner=drain", 125, 0),
    Trial("qpid-push?pointer=inclusive", 125, 0),
)


class Fate(Enum):
    """The outcome of a mutant."""

    KILLED = "killed"
    CANNOT_RUN = "cannot be run"
    UNDECIDED = "undecided"
    SURVIVED = "survived"


class Judged(msgspec.Struct, frozen=True):
    """A mutant's fate; `by` is the requirement whose counterexample is the shortest.

    `all_of` are all requirements that it breaks or, if it is undecided, leaves without a verdict.
    """

    fate: Fate
    by: str = ""
    all_of: tuple[str, ...] = ()
    trial: Trial = FIRST


def judged(edits: Sequence[Edit], seed: int = 0, trials: Sequence[Trial] = TRIALS) -> Judged:
    """Return what becomes of the reference with these edits; ends with the first that kills."""
    found = Judged(Fate.SURVIVED)
    for trial in trials:
        result = _judged_once(edits, seed, trial)
        if result.fate in {Fate.KILLED, Fate.CANNOT_RUN}:
            return result
        # What lacks a verdict may get one with more to try; of the other forms less is tried.
        if trial.address == FIRST.address:
            found = result
    return found


def warm_up(seed: int = 0) -> None:
    """Hear what is said of the reference, so that processes forked from now on know it."""
    for trial in TRIALS:
        _said_of_the_reference(seed, trial)


def _judged_once(edits: Sequence[Edit], seed: int, trial: Trial) -> Judged:
    try:
        broken, without = _said(edits, seed, trial)
    except CannotStart:
        return Judged(Fate.CANNOT_RUN, trial=trial)
    sound_broken, sound_without = _said_of_the_reference(seed, trial)
    names = [name for name in catalogue() if name in broken and name not in sound_broken]
    if names:
        shortest = min(names, key=lambda name: broken[name])
        return Judged(Fate.KILLED, shortest, tuple(names), trial)
    left = tuple(name for name in without if name not in sound_without)
    return Judged(Fate.UNDECIDED if left else Fate.SURVIVED, all_of=left, trial=trial)


@functools.cache
def _said_of_the_reference(seed: int, trial: Trial) -> tuple[dict[str, int], tuple[str, ...]]:
    return _said((), seed, trial)


def _planted(edits: Sequence[Edit], address: str) -> Callable[[], Candidate]:
    try:
        return plant(edits, address)
    except CannotPlant:
        raise
    # What the mutant's own modules raise as they are loaded: it is no broker at all.
    except Exception as error:
        raise CannotStart(str(error)) from error


def _introduced(start: Callable[[], Candidate]) -> Hello:
    try:
        hello: object = start().hello()
    # Whatever keeps a mutant from being asked anything, it is told from a sound broker by that.
    except Exception as error:
        raise CannotStart(str(error)) from error
    if not isinstance(hello, Hello):
        raise CannotStart("it does not introduce itself")
    return hello


def _said(edits: Sequence[Edit], seed: int, trial: Trial) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the lengths of what is broken, and what has no verdict, of the binding ones."""
    start = _planted(edits, trial.address)
    subject = Subject("mutant", _introduced(start), start, in_process=True)
    report = run_gate(subject, catalogue(), Budget(trial.operations, trial.examples), seed)
    binding = [each for each in report.verdicts if each.requirement.level is Level.MUST]
    broken = {
        each.requirement.id: len(each.counterexample.steps)
        for each in binding
        if each.outcome is Outcome.BROKEN and each.counterexample is not None
    }
    without = [each.requirement.id for each in binding if each.outcome is Outcome.INCONCLUSIVE]
    return broken, tuple(without)
