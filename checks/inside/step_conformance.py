"""Step conformance: the inside that a candidate shows moves as the model of its document.

A candidate that claims `inspect` is inspected after every operation. Its view is read as a state of
the model of the documented algorithm, and a path of the model's transitions must lead from one
view to the next. The projection of each system (`models/*/projection.py`) reads a view as a state,
and says which steps an operation may be.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Self, TypeAlias, cast, get_args

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.inside.views import Malformed, well_formed
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.watch.client_step import (
    ClientStep,
    NotAQueue,
    OutsideTheModel,
    client_step,
)
from brokerproof.models.language.watch.path_query import PathQuery, find_steps, quotient
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.models.projections import MODEL_OF, projection_of
from brokerproof.spec.messages import Message, Order, level_of
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed, Inspection
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Drain, Inspect, Operation, Restart, name_of

REQUIREMENT = "documented-steps"

KNOWN_MAX = 1 << 16
"""The most steps whose explanations are cached; a search meets few steps, but those often."""

Steps: TypeAlias = tuple[tuple[str, str], ...]
"""Steps of models, each as the model's name and the action."""

OUTSIDE = "outside the model"
"""The name under which steps are counted that their model does not cover."""


class Departure(Exception):
    """A step that no path of the model explains, or no view at all; the message is one line.

    `hangs` says that the candidate did not return from the inspection.
    """

    def __init__(
        self, seen: str, expected: str = "a view of the queue", *, hangs: bool = False
    ) -> None:
        super().__init__(seen)
        self.expected = expected
        self.hangs = hangs


class Watch:
    """The last views of a candidate's queues, and the transitions taken so far.

    `given_up` counts the steps for which the search for a path was too large.
    """

    __slots__ = ("given_up", "shown", "taken", "views")

    def __init__(self) -> None:
        """Start right after a reset."""
        self.views: dict[str, Inspection | None] = {}
        """None stands for a queue without a readable view: its next step is unknown."""
        self.shown: dict[str, Inspection] = {}
        """The last views, with the broker's own counters."""
        self.taken: Counter[tuple[str, str]] = Counter()
        self.given_up = 0

    def fork(self) -> Self:
        """Return an independent copy, its transitions counted from zero."""
        other = object.__new__(type(self))
        other.views, other.taken, other.given_up = self.views, Counter(), 0
        other.shown = {}
        return other

    def look(
        self,
        candidate: Candidate,
        operation: Operation,
        answer: Answer,
        settled: str,
        bindings: Bindings,
    ) -> bool:
        """Inspect every queue after an operation, and return whether anything in them has moved.

        `settled` is the message whose delivery the operation settled, if it did. Raises
        `Departure`; the candidate can be followed beyond it, unless it hangs.
        """
        if bindings.down:
            self.views, self.shown = {}, {}
            return False
        happened = operation if answer.ok else Drain()
        closed = frozenset(e.consumer for e in answer.events if isinstance(e, ConsumerClosed))
        before, self.views, self.shown = self.views, {}, {}
        departures: list[Departure] = []
        moved = 0
        for queue in bindings.queues:
            self.views[queue] = None
            try:
                shown = self.shown[queue] = _view(candidate, queue, bindings.order_of(queue))
                view = self.views[queue] = shown.without_counters()
                last = (
                    before[queue] if queue in before else new_queue(view, bindings.order_of(queue))
                )
                if last is None or isinstance(operation, Restart):
                    continue
                if answer.error is not None and not answer.error.definite:
                    continue
                moved += self._explain(queue, last, view, happened, settled, closed, bindings)
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
        bindings: Bindings,
    ) -> int:
        """Count the transitions between two views, and return their number."""

        def level(message: Message) -> int:
            return level_of(
                message.priority, bindings.order_of(queue), bindings.claims.priority_mapping
            )

        step = client_step(operation, settled, queue, level, closed)
        try:
            steps = explained(before, after, step)
        except NotAQueue as error:
            raise Departure(f"{queue} after {name_of(operation)}: {error}", "a view") from error
        except OutsideTheModel as why:
            self.taken[OUTSIDE, str(why)] += 1
            return 0
        except TooFar:
            self.given_up += 1
            return 0
        if isinstance(steps, str):
            raise Departure(
                f"{queue} after {name_of(operation)}: {after}",
                f"what steps of the model {steps} make of {before}",
            )
        self.taken.update(steps)
        return len(steps)

    def _rests(self, queue: str, view: Inspection) -> None:
        """Count the rests of a queue; raises `Departure` if its model could not be at rest."""
        steps = _rest_explained(view)
        if isinstance(steps, str):
            raise Departure(
                f"{queue} after drain: {view}",
                "no consumer notified, and nothing left for a consumer that wants messages",
            )
        self.taken.update(steps)


def new_queue(view: Inspection, order: Order) -> Inspection:
    """Return the view of a new queue of `order`, of the same kind as `view`."""
    return cast("Inspection", projection_of(view.kind).new_queue(view, order))


def explained(before: Inspection, after: Inspection, step: ClientStep) -> Steps | str:
    """Return the steps between two views; the name of the model if it has no path.

    Raises `NotAQueue`, `OutsideTheModel` and `TooFar`.
    """
    if type(before) is not type(after):
        raise NotAQueue("it shows itself as a queue of another kind than before")
    details = _DETAILS_OF[type(step.operation)](step.operation)
    key = before, after, step.arrival, step.settled, step.closed, type(step.operation), details
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        known = _KNOWN[key] = _explained(before, after, step)
    return known


def _explained(before: Inspection, after: Inspection, step: ClientStep) -> Steps | str:
    return _steps_of(projection_of(after.kind).queries(before, after, step))


def _steps_of(queries: Iterable[PathQuery]) -> Steps | str:
    taken: list[tuple[str, str]] = []
    for query in queries:
        steps = find_steps(quotient(query))
        if steps is None:
            return query.name
        taken += [(query.name, action) for action in steps]
    return tuple(taken)


@functools.lru_cache(maxsize=KNOWN_MAX)
def _rest_explained(view: Inspection) -> Steps | str:
    return _steps_of(projection_of(view.kind).queries_at_rest(view))


_KNOWN: dict[Hashable, Steps | str] = {}
_DETAILS = (
    *("consumer", "channel", "mode", "selects"),
    *("not_before_s", "expires_s", "message.persistent"),
)
"""What projections read of an operation or of its message, besides its type."""


def _reader(kind: type[Operation]) -> Callable[[Operation], Hashable]:
    """Return the function that reads the details that a kind of operation has."""
    names = [each for each in _DETAILS if hasattr(kind, each.partition(".")[0])]
    return operator.attrgetter(*names) if names else type


_DETAILS_OF = {kind: _reader(kind) for kind in get_args(Operation)}


def _view(candidate: Candidate, queue: str, order: Order) -> Inspection:
    """Return a candidate's view of a queue; raises `Departure` if the answer is no view of it."""
    answer = ask(candidate, Inspect(queue=queue))
    if isinstance(answer, Misbehaviour):
        raise Departure(answer.what, hangs=answer.hangs)
    if answer.error is not None:
        raise Departure(f"inspect was answered {answer.error.code}: {answer.error.message}")
    if answer.inspection is None:
        raise Departure("inspect was answered without a view")
    try:
        return well_formed(answer.inspection, order)
    except Malformed as what:
        raise Departure(f"inspect of {queue} showed {what}", "a view in form") from what


def never_taken(taken: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the actions that no step took, each with the model's own sentence for it."""
    known = {*taken}
    return {
        f"{action.name} of {model}": action.doc.partition("\n")[0]
        for kind, model in MODEL_OF.items()
        if any(model == each for each, _ in known)
        for action in trace(projection_of(kind).MODEL).actions
        if (model, action.name) not in known
    }


def outside_the_model(taken: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Return how many steps were not judged, by the subject that their model does not cover."""
    return {why: times for (model, why), times in sorted(taken.items()) if model == OUTSIDE}
