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

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.inside.cursor_state_invariants import text_of_cursors
from brokerproof.checks.inside.paging_state_invariants import text_of_queue
from brokerproof.checks.inside.views import malformed
from brokerproof.checks.oracle.bindings import Book
from brokerproof.models.activemq import cursor_steps
from brokerproof.models.language.watch.client_step import Happening, NotAQueue, happening
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.models.qpid import pointer_queue_steps, pull_queue_steps
from brokerproof.models.rabbitmq import paging_steps
from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.messages import Message, Order, level_of
from brokerproof.spec.protocol.operations import Drain, Inspect, Operation, Restart, name_of
from brokerproof.spec.qpid.counters import Accounts
from brokerproof.spec.qpid.view import Inspection, PointerQueueView
from brokerproof.spec.rabbitmq.view import PagingQueueView

REQUIREMENT = "documented-steps"

MODELS: Mapping[str, Mapping[str, str]] = {
    "pointer-queue": pointer_queue_steps.UNTAKEN,
    "pull-queue": pull_queue_steps.UNTAKEN,
    "paging-places": paging_steps.UNTAKEN,
    "cursor-page-in": cursor_steps.UNTAKEN,
}
"""The models that views are read as states of: each with what has not happened where one of its
transitions was never taken."""

MODEL_OF: Mapping[type[Inspection], str] = {
    PointerQueueView: "pointer-queue",
    PagingQueueView: "paging-places",
    CursorQueueView: "cursor-page-in",
}
"""The model that a view is read as a state of, by its kind."""

NOT_SPOKEN_OF = "not spoken of"
"""What stands for a model where steps are counted of which theirs says nothing, by the reason."""


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

    __slots__ = ("accounts", "given_up", "taken", "views")

    def __init__(self) -> None:
        """Start right after a reset."""
        self.views: dict[str, Inspection | None] = {}
        """None is of a queue that showed nothing that could be read: its next step is unknown."""
        self.accounts: dict[str, Accounts | None] = {}
        """What was shown beside each view at the last look; no step is asked of it."""
        self.taken: Counter[tuple[str, str]] = Counter()
        self.given_up = 0

    def fork(self) -> Self:
        """Return an independent copy, its transitions counted from zero."""
        other = object.__new__(type(self))
        other.views, other.taken, other.given_up = self.views, Counter(), 0
        other.accounts = {}
        return other

    def look(
        self, candidate: Candidate, operation: Operation, answer: Answer, settled: str, book: Book
    ) -> bool:
        """Look at every queue after an operation, and say whether anything in them has moved.

        `settled` is the message whose delivery the operation settled, if it did. Raises
        `Departure`; the candidate can be followed beyond it, unless it hangs.
        """
        if book.down:
            self.views, self.accounts = {}, {}
            return False
        happened = operation if answer.ok else Drain()
        closed = frozenset(e.consumer for e in answer.events if isinstance(e, ConsumerClosed))
        before, self.views, self.accounts = self.views, {}, {}
        departures: list[Departure] = []
        moved = 0
        for queue in book.queues:
            self.views[queue] = None
            try:
                shown = _view(candidate, queue, book.order_of(queue))
                if isinstance(shown, PointerQueueView):
                    self.accounts[queue] = shown.accounts
                    shown = without_accounts(shown)
                view = self.views[queue] = shown
                last = before[queue] if queue in before else nothing_in(view, book.order_of(queue))
                if last is None or isinstance(operation, Restart):
                    continue
                if answer.error is not None and not answer.error.definite:
                    continue
                moved += self._explain(queue, last, view, happened, settled, closed, book)
                if isinstance(operation, Drain) and answer.ok:
                    self._rests(queue, view)
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
        model = MODEL_OF.get(type(after), "pointer-queue")
        try:
            steps = _steps(before, after, happened)
        except NotAQueue as error:
            raise Departure(f"{queue} after {name_of(operation)}: {error}", "a view") from error
        except cursor_steps.NotSpokenOf as why:
            self.taken[NOT_SPOKEN_OF, str(why)] += 1
            return 0
        except TooFar:
            self.given_up += 1
            return 0
        if steps is None:
            raise Departure(
                f"{queue} after {name_of(operation)}: {text_of(after)}",
                f"what steps of the model {model} make of {text_of(before)}",
            )
        if steps:
            self.taken.update((model, action) for action in steps)
        return len(steps)

    def _rests(self, queue: str, view: Inspection) -> None:
        """Count a rest of a queue that is pulled from; `Departure` where it could not be one."""
        if not isinstance(view, PointerQueueView) or view.lists is None:
            return
        if not pull_queue_steps.may_rest(view):
            raise Departure(
                f"{queue} after drain: {text_of(view)}; {_lists_of(view)}",
                "nobody notified, and nothing left for whoever wants messages",
            )
        self.taken.update([("pull-queue", "come_to_rest")])


def nothing_in(view: Inspection, order: Order) -> Inspection:
    """Return what a new queue of `order` shows, of the kind that a view is of."""
    if isinstance(view, PagingQueueView):
        return paging_steps.nothing_in(view, order)
    if isinstance(view, CursorQueueView):
        return cursor_steps.nothing_in(view, order)
    return PointerQueueView(order)


def _steps(before: Inspection, after: Inspection, happened: Happening) -> tuple[str, ...] | None:
    """Return what leads from one view to the next; raises `NotAQueue` and `TooFar`."""
    if isinstance(before, PointerQueueView) and isinstance(after, PointerQueueView):
        return pointer_queue_steps.explained(_places(before), _places(after), happened)
    if isinstance(before, PagingQueueView) and isinstance(after, PagingQueueView):
        return paging_steps.explained(before, after, happened)
    if isinstance(before, CursorQueueView) and isinstance(after, CursorQueueView):
        return cursor_steps.explained(before, after, happened)
    raise NotAQueue("it shows itself as a queue of another kind than before")


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


def without_accounts(view: PointerQueueView) -> PointerQueueView:
    """Return what steps are asked of, so that views which differ in accounts alone are one."""
    if view.accounts is None:
        return view
    return PointerQueueView(view.order, view.entries, view.subscriptions, view.lists)


def _places(view: PointerQueueView) -> PointerQueueView:
    """Return what the queue of pointers is asked of: not who is told, where consumers pull."""
    if view.lists is None:
        return view
    return PointerQueueView(view.order, view.entries, view.subscriptions)


def _lists_of(view: PointerQueueView) -> str:
    """Return in one line who is in which list."""
    return ", ".join(
        f"{name.replace('_', ' ')} "
        + " ".join(str(view.subscriptions[who].consumer) for who in getattr(view.lists, name))
        for name in pull_queue_steps.LISTS
        if getattr(view.lists, name)
    )


def text_of(view: Inspection) -> str:
    """Return a view in one line."""
    if isinstance(view, PagingQueueView):
        return "; ".join(map(text_of_queue, view.levels))
    if isinstance(view, CursorQueueView):
        return text_of_cursors(view)
    return _text_of_pointers(view)


def _text_of_pointers(view: PointerQueueView) -> str:
    """Return a queue's entries, and where each subscription stands."""
    entries = [
        entry.message
        + {"available": "", "held": " (not due)", "dequeued": " (gone)"}.get(entry.state, "")
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


def left_out(taken: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Return how many steps were asked for no path, by why their model says nothing of them."""
    return {why: times for (model, why), times in sorted(taken.items()) if model == NOT_SPOKEN_OF}
