"""A candidate for parallel cases: whether it can be used on threads, and with what.

The file gives in one line the reason why not, and chooses which classes of a broker are watched.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.subjects import Subject
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.parallel import Parallel, Recorded, parallel_case
from brokerproof.spec.protocol.candidate import Candidate, OnThreads

CLASSES_THAT_CANNOT_CHANGE = 1 << 8
"""The flag of Python's own classes and those of its extensions, which cannot be watched."""


@dataclass(frozen=True)
class Threaded:
    """A candidate that can be used on threads: how it is copied, which classes are watched."""

    subject: Subject
    copier: Copier
    watches: Sequence[type]

    def case(self, parallel: Parallel, *, watched: bool = False) -> Case[Recorded]:
        """Return a case on a new candidate; raises `CannotBegin`, and what `fresh` raises."""
        candidate, oracle = self.subject.fresh()
        watches = self.watches if watched else ()
        return parallel_case(parallel, candidate, self.copier, oracle, watches=watches)


def offers_threads(subject: Subject) -> bool:
    """Whether a candidate can be handed to threads; raises `CannotStart`."""
    return subject.in_process and isinstance(subject.fresh()[0], OnThreads)


def on_threads(subject: Subject) -> Threaded | str:
    """Return a candidate for parallel cases, or in one line why it cannot have any."""
    if not offers_threads(subject):
        return (
            "it cannot be used on threads: it has no `on_threads`"
            " (see brokerproof.spec.protocol.candidate.OnThreads)"
        )
    candidate, _ = subject.fresh()
    copier = copier_of(candidate)
    if isinstance(copier, str):
        return copier
    return Threaded(subject, copier, classes_beside(candidate))


def classes_beside(candidate: Candidate) -> Sequence[type]:
    """Return the classes of a candidate's module, and of those beside it or further in."""
    home = type(candidate).__module__
    folder, package = _folder(sys.modules[home]), home.rpartition(".")[0]
    found = {
        each: None
        for name, module in list(sys.modules.items())
        if (folder is not None and _folder(module) == folder)
        or (package and name.startswith(f"{package}."))
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == name and _can_be_watched(each)
    }
    return [*found]


def _folder(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve().parent


def _can_be_watched(kind: type) -> bool:
    """Whether objects of a class have attributes of their own that can be watched."""
    is_cell = kind.__module__ == "brokerproof.reference.shared.atomics"
    is_open = not kind.__flags__ & CLASSES_THAT_CANNOT_CHANGE
    return is_open and not (
        is_cell or issubclass(kind, (enum.Enum, BaseException, tuple, dict, list))
    )
