"""Step conformance: what a candidate shows of its inside moves as the model of its document says.

A candidate that claims `inspect` is looked at after every operation. What it shows is read as a
state of the model of the documented algorithm, and from one look to the next there must be a path
of the model's transitions. Owns the looking and the counting; how a view is read as a state, and
which transitions an operation may be, belongs to each model (`models/*_steps.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Self

from brokerproof.checks.book import Book
from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.views import malformed
from brokerproof.models import pointer_queue_steps
from brokerproof.models.language.paths import TooFar
from brokerproof.models.pointer_queue_steps import NotAQueue, happening
from brokerproof.spec.answers import Answer, ConsumerClosed
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.inspections import Inspection, PointerQueueView
from brokerproof.spec.messages import Message, Order, level_of
from brokerproof.spec.operations import Drain, Inspect, Operation, name_of

REQUIREMENT = "documented-steps"

MODELS: Mapping[str, Mapping[str, str]] = {"pointer-queue": pointer_queue_steps.UNTAKEN}
"""The models that views are read as states of: each with what has not happened where one of its
transitions was never taken."""


class Departure(Exception):
    """A step that no path of the model explains, or no view at all; the message is one line.

    With `hangs` the candidate did not come back when it was asked for a view.
    """

    def __init__(
        self, seen: str, expected: str = "a view of the queue", *, hangs: bool = False
    ) -> None:
        super().__init__(seen)
        self.expected = expected
        self.hangs = hangs


class Watch:
    """What was seen of a candidate's queues at the last look, and which transitions it has taken.

    `given_up` counts the steps for which the search for a path was too large.
    """

    __slots__ = ("given_up", "taken", "views")

    def __init__(self) -> None:
        """Start right after a reset."""
        self.views: dict[str, Inspection | None] = {}
        """None is of a queue that showed nothing that could be read: its next step is unknown."""
        self.taken: Counter[tuple[str, str]] = Counter()
        self.given_up = 0

    def fork(self) -> Self:
        """Return an independent copy, its transitions counted from zero."""
        other = object.__new__(type(self))
        other.views, other.taken, other.given_up = self.views, Counter(), 0
        return other

    def look(
        self, candidate: Candidate, operation: Operation, answer: Answer, settled: str, book: Book
    ) -> bool:
        """Look at every queue after an operation, and say whether anything in them has moved.

        `settled` is the message whose delivery the operation settled, if it did. Raises
        `Departure`; the candidate can be followed beyond it, unless it hangs.
        """
        happened = operation if answer.ok else Drain()
        closed = frozenset(e.consumer for e in answer.events if isinstance(e, ConsumerClosed))
        before, self.views = self.views, {}
        departures: list[Departure] = []
        moved = 0
        for queue in book.queues:
            self.views[queue] = None
            last = before.get(queue, PointerQueueView(book.order_of(queue)))
            try:
                view = self.views[queue] = _view(candidate, queue, book.order_of(queue))
                if last is None or (answer.error is not None and not answer.error.definite):
                    continue
                moved += self._explain(queue, last, view, happened, settled, closed, book)
            except Departure as departure:
                if departure.hangs:
                    raise
                departures.append(departure)
        if departures:
            raise departures[0]
        return moved > 0

    def _explain(
        self,
        queue: str,
        before: Inspection,
        after: Inspection,
        operation: Operation,
        settled: str,
        closed: frozenset[str],
        book: Book,
    ) -> int:
        """Count the transitions between two views, and return how many there are."""

        def level(message: Message) -> int:
            return level_of(message.priority, book.order_of(queue), book.claims.priority_mapping)

        happened = happening(operation, settled, queue, level, closed)
        try:
            steps = pointer_queue_steps.explained(before, after, happened)
        except NotAQueue as error:
            raise Departure(f"{queue} after {name_of(operation)}: {error}", "a view") from error
        except TooFar:
            self.given_up += 1
            return 0
        if steps is None:
            raise Departure(
                f"{queue} after {name_of(operation)}: {text_of(after)}",
                f"what steps of the model pointer-queue make of {text_of(before)}",
            )
        if steps:
            self.taken.update(("pointer-queue", action) for action in steps)
        return len(steps)


def _view(candidate: Candidate, queue: str, order: Order) -> Inspection:
    """Return what a candidate shows of a queue; raises `Departure` where that is no view of it."""
    answer = ask(candidate, Inspect(queue=queue))
    if isinstance(answer, Misbehaviour):
        raise Departure(answer.what, hangs=answer.hangs)
    if answer.error is not None:
        raise Departure(f"inspect was answered {answer.error.code}: {answer.error.message}")
    if answer.inspection is None:
        raise Departure("inspect was answered without a view")
    what = malformed(answer.inspection, order)
    if what:
        raise Departure(f"inspect of {queue} showed {what}", "a view in form")
    return answer.inspection


def text_of(view: PointerQueueView) -> str:
    """Return a view in one line: its entries, and where each subscription stands."""
    entries = [
        entry.message + {"available": "", "dequeued": " (gone)"}.get(entry.state, "")
        if entry.holder is None
        else f"{entry.message} (held by {view.subscriptions[entry.holder].consumer or 'a get'})"
        for entry in view.entries
    ]
    places = [
        f"{each.consumer} at {_name(view, each.last_seen)}"
        + ("" if each.released is None else f", back to {_name(view, each.released)}")
        for each in view.subscriptions
        if each.active
    ]
    return f"[{', '.join(entries)}]" + "".join(f", {place}" for place in places)


def _name(view: PointerQueueView, number: int) -> str:
    return "the head" if number == 0 else view.entries[number - 1].message


def never_taken(taken: Mapping[tuple[str, str], int]) -> dict[str, str]:
    """Return the transitions of the models met that were never taken, each with the reason."""
    met = {model for model, _ in taken}
    return {
        f"{action} of {model}": reason
        for model in MODELS
        if model in met
        for action, reason in MODELS[model].items()
        if not taken.get((model, action))
    }
