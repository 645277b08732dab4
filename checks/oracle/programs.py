"""Scripts: what an operation and its answer are to every oracle that has the same book.

An oracle's book says who is who, and its window what may be the case. The book never asks the
window: what becomes of it, and which steps the window has to take, follows from the operation, the
answer and the book alone. So a `Scribe` writes that down once, and each oracle with that book takes
the steps that are written. Both are the oracle's own methods; nothing is stated here a second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from brokerproof.checks.oracle.bindings import Book
from brokerproof.checks.oracle.breaches import Breach, Broken, Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.oracle.possibilities import Step
from brokerproof.models.contract.core import Channel, Consumer, Entry, Queue
from brokerproof.models.language.read.pointwise import TooManyCases
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import Cancel, CloseChannel, Operation

Line: TypeAlias = tuple[Book, Callable[..., object], tuple[object, ...]]
"""What the window has to do, and the book at that time."""


@dataclass(frozen=True, slots=True)
class Script:
    """What an oracle has to do, what it knows of names afterwards, and what ends the run, if so."""

    lines: tuple[Line, ...]
    book: Book
    unplaced: tuple[str, ...]
    exercised: Counter[str]
    outcomes: Counter[tuple[str, bool]]
    broken: Breach | None
    unfollowable: str | None


class Scribe(Oracle):
    """An oracle that takes no step: it notes each with the book at that time.

    It has no window, so that whatever in an oracle looks at the window, and is not noted here,
    fails.
    """

    __slots__ = ("lines",)

    def __init__(self, oracle: Oracle) -> None:
        """Begin where an oracle stands."""
        self.rules, self.book, self.unplaced = oracle.rules, oracle.book, oracle.unplaced
        self.streams = oracle.streams
        self.exercised, self.outcomes, self.watch = Counter(), Counter(), None
        self.lines: list[Line] = []

    def script(self, operation: Operation, answer: Answer) -> Script:
        """Return what an operation and its answer are."""
        broken = unfollowable = None
        try:
            self._observe(operation, answer)
        except Broken as error:
            broken = error.breach
        except Unfollowable as error:
            unfollowable = str(error)
        return Script(
            tuple(self.lines),
            self.book,
            self.unplaced,
            self.exercised,
            self.outcomes,
            broken,
            unfollowable,
        )

    def _note(self, method: Callable[..., object], *arguments: object) -> None:
        self.lines.append((self.book, method, arguments))

    def _trim(self) -> None:
        self._note(Oracle._trim)  # noqa: SLF001 (a scribe is an oracle)

    def _rest(self) -> list[Breach]:
        self._note(Oracle._rest)  # noqa: SLF001
        self.unplaced = ()
        return []

    def _begin_anew(self) -> None:
        self._note(Oracle._begin_anew)  # noqa: SLF001
        self.book, _ = Book.empty(self.book.claims, self.rules.contract)
        self.unplaced = ()

    def _float(self, step: Step) -> None:
        self._note(Oracle._float, step)  # noqa: SLF001

    def _nothing_earlier(self, event: Delivered) -> None:
        self._note(Oracle._nothing_earlier, event)  # noqa: SLF001

    def _forget_all_but_the_last(self) -> None:
        self._note(Oracle._forget_all_but_the_last)  # noqa: SLF001

    def _take(self, step: Step, event: Delivered | None) -> None:
        self._note(Oracle._take, step, event)  # noqa: SLF001

    def _place(self, who: int, step: Step, event: Delivered | None = None) -> None:
        self._note(Oracle._place, who, step, event)  # noqa: SLF001

    def _tells_all_before(self, operation: Cancel | CloseChannel) -> None:
        self._note(Oracle._tells_all_before, operation)  # noqa: SLF001

    def _grow(self, book: Book, family: type[Channel | Consumer | Entry | Queue]) -> None:
        self._note(Oracle._grow, book, family)  # noqa: SLF001
        self.book = book


def perform(script: Script, oracle: Oracle) -> list[Breach]:
    """Let an oracle do what is written, as `Oracle.observe` does it. Raises `Unfollowable`.

    What the script itself has counted is not counted once more.
    """
    said: object = []
    try:
        for book, method, arguments in script.lines:
            oracle.book = book
            said = method(oracle, *arguments)
    except Broken as error:
        return [error.breach]
    except TooManyCases as error:
        raise Unfollowable(str(error)) from error
    if script.unfollowable is not None:
        raise Unfollowable(script.unfollowable)
    if script.broken is not None:
        return [script.broken]
    oracle.book, oracle.unplaced = script.book, script.unplaced
    return said if isinstance(said, list) else []
