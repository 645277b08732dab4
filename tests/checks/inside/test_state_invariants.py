"""Single views: the reference's keep every invariant, and each can be broken."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import INSIDE, parts, parts_in, snapshot
from brokerproof.checks.inside.views import Malformed, well_formed
from brokerproof.checks.verdicts import Outcome
from brokerproof.reference.broker import Broker
from brokerproof.reference.qpid.inspection import view_of
from brokerproof.spec.messages import Credit
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.operations import Consume, Operation
from brokerproof.spec.qpid.counters import Counters, ListCounters, Mark, PullCounters
from brokerproof.spec.qpid.view import PointerQueueView
from brokerproof.spec.requirements import OFFERED, catalogue
from tests.checks.inside.shown_views import outcomes, report_on
from tests.reference.front.reference_bench import Bench, queue_in


def shown(system: str = "qpid-pull") -> PointerQueueView:
    """Return a queue with two that hold, one that waits for more bytes, and a browser."""
    bench = Bench(system)
    for name, priority in (("c", 0), ("d", 1)) if system == "qpid-pull" else (("c", 0), ("d", 0)):
        bench.ok(
            Consume(
                channel=f"channel of {name}",
                queue="q",
                consumer=name,
                credit=Credit(1),
                priority=priority,
            )
        )
    bench.consume("w", mode="browse")
    bench.publish("a", "b", "x", "y")
    bench.consume("large", size=0)
    return view_of(queue_in(bench.broker))


def counters_in(view: PointerQueueView) -> Counters:
    assert view.counters is not None
    return view.counters


def pull_in(counters: Counters) -> PullCounters:
    assert counters.pull is not None
    return counters.pull


def looked(view: PointerQueueView) -> tuple[frozenset[str], tuple[str, ...]]:
    found = snapshot(view)
    return found.exercised, tuple(name for name, _ in found.broken)


@pytest.mark.parametrize("system", ["qpid-push", "qpid-pull"])
def test_what_the_reference_shows_is_well(system: str) -> None:
    exercised, broken = looked(shown(system))
    assert broken == ()
    asked = {*parts()["places"], *parts()["counters"]}
    asked |= {*parts()["consumer-lists"]} if system == "qpid-pull" else set()
    assert exercised == asked - {"RUN-5"}


def test_a_view_without_accounts_is_asked_for_less() -> None:
    exercised, broken = looked(shown().without_counters())
    assert (exercised, broken) == (frozenset(parts()["places"]), ())
    assert looked(PointerQueueView(shown().order)) == (frozenset(), ())


Change = Callable[[PointerQueueView], PointerQueueView]


def of_counters(**changes: object) -> Change:
    def changed(view: PointerQueueView) -> PointerQueueView:
        return replace(view, counters=replace(counters_in(view), **changes))

    return changed


def of_pull(change: Callable[[PullCounters], dict[str, object]]) -> Change:
    def changed(view: PointerQueueView) -> PointerQueueView:
        counters = counters_in(view)
        pull = replace(pull_in(counters), **change(pull_in(counters)))
        return replace(view, counters=replace(counters, pull=pull))

    return changed


def ahead(view: PointerQueueView) -> PointerQueueView:
    first, *others = view.subscriptions
    return replace(view, subscriptions=(replace(first, last_seen=len(view.entries)), *others))


def gone(view: PointerQueueView) -> PointerQueueView:
    first, second, third, *others = view.entries
    return replace(view, entries=(first, second, replace(third, state="dequeued"), *others))


def holds_more(view: PointerQueueView) -> PointerQueueView:
    counters = counters_in(view)
    first, *others = counters.subscriptions
    assert first.used is not None
    more = replace(first, used=first.used + 1)
    return replace(view, counters=replace(counters, subscriptions=(more, *others)))


def told_as_another(view: PointerQueueView) -> PointerQueueView:
    """Put all consumers among the interested."""
    counters = counters_in(view)
    states = tuple(replace(each, state="interested") for each in counters.subscriptions)
    pull = pull_in(counters)
    listed = tuple((("interested", each.priority),) for each in states)
    return replace(
        view,
        counters=replace(
            counters,
            subscriptions=states,
            pull=replace(pull, listed=listed, wanting=len(states)),
        ),
    )


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (ahead, "PTR-1"),
        (gone, "EL-3"),
        (of_counters(lists=(ListCounters(0, (0, 2, 2), 0),)), "EL-1"),
        (of_counters(lists=(ListCounters(0, (0, 1), None),)), "EL-4"),
        (of_counters(counted=9), "CL-1"),
        (holds_more, "CR-1"),
        (of_counters(waiting=1), "RUN-5"),
        (of_pull(lambda pull: {"listed": ((), *pull.listed[1:])}), "QCM-1"),
        (of_pull(lambda pull: {"listed": (*pull.listed, (("interested", 0),))}), "QCM-1"),
        (told_as_another, "QCM-2"),
        (of_pull(lambda _: {"priorities": ((0, 1), (0, 1), (0, 1))}), "QCM-3"),
        (of_pull(lambda _: {"priorities": ((1, 0), (1,), (1, 0))}), "QCM-3"),
        (of_pull(lambda pull: {"wanting": pull.wanting + 1}), "QCM-4"),
        (of_pull(lambda _: {"marks": (Mark("c", True, False),)}), "SCH-1"),
    ],
)
def test_each_invariant_can_be_broken_alone(change: Change, broken: str) -> None:
    assert looked(change(shown()))[1] == (broken,)


def test_every_invariant_that_is_asked_is_a_requirement_with_its_part() -> None:
    assert set(parts()) == OFFERED - {"on_threads"}
    for part, asked in parts().items():
        for name in asked:
            assert {"inspect", part} <= {*catalogue()[name].needs}
    assert {each.id for each in catalogue().values() if "inspect" in each.needs} == INSIDE


# The form of internal counters, which a candidate may get wrong.


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (of_counters(counted="four"), "Expected `int`, got `str` - at `$.counters.counted`"),
        (of_counters(lists=7), "at `$.counters.lists`"),
        (of_counters(subscriptions=()), "counters of 0 subscriptions of 4"),
        (of_pull(lambda _: {"listed": ()}), "lists of 0 subscriptions of 4"),
    ],
)
def test_counters_in_no_form_are_no_view(change: Change, complaint: str) -> None:
    view = shown()
    assert well_formed(view, view.order) == view
    with pytest.raises(Malformed) as said:
        well_formed(change(view), view.order)
    assert complaint in str(said.value)


# In the gate.


class Counts(Broker):
    """The reference, with internal counters changed by `shows`."""

    shows: Callable[[Counters], Counters | None] = staticmethod(lambda counters: counters)

    def handle(self, operation: Operation) -> Answer:
        """Show something else."""
        answer = super().handle(operation)
        view = answer.inspection
        if not isinstance(view, PointerQueueView) or view.counters is None:
            return answer
        return Answer(inspection=replace(view, counters=type(self).shows(view.counters)))


def test_what_is_not_shown_is_not_claimed() -> None:
    class Silent(Counts):
        """Shows no internal counters."""

        shows = staticmethod(lambda _: None)

    found = outcomes(report_on(Silent, 30))
    assert {found[name] for name in (*parts()["counters"], *parts()["consumer-lists"])} == {
        Outcome.NOT_CLAIMED
    }
    assert found["EL-3"] is Outcome.KEPT


def test_a_wrong_count_is_one_finding_with_a_shortest_trace() -> None:
    class Miscounts(Counts):
        """Counts one too many as soon as there is one."""

        shows = staticmethod(
            lambda counters: replace(counters, counted=counters.counted + bool(counters.counted))
        )

    report = report_on(Miscounts, 30)
    broken = {name for name, outcome in outcomes(report).items() if outcome is Outcome.BROKEN}
    assert broken == {"CL-1"}
    (found,) = [each.counterexample for each in report.verdicts if each.counterexample]
    assert len(found.steps) == 2
    assert found.certificate.grade == "product"
    assert "2 subscriptions counted of 1" in found.seen
    assert found.expected == "a view of which CL-1 holds"


def test_the_stage_says_how_often_each_was_asked() -> None:
    (stage,) = [each for each in report_on(Counts, 30).stages if each.name == "snapshot"]
    assert "; of each view by itself: " in stage.did
    assert "CL-1 " in stage.did
    assert "QCM-1" not in stage.did


def test_the_parts_of_a_view_are_known_by_what_was_asked_of_them() -> None:
    assert parts_in({}) == frozenset()
    assert parts_in({"EL-3": 2, "CL-1": 0, "fifo-order": 7}) == {"places"}
    assert parts_in({"EL-3": 2, "CL-1": 1, "QCM-1": 1}) == {"places", "counters", "consumer-lists"}
    assert parts_in({"I1": 1, "I17": 3, "A2": 0}) == {"backing-queue", "target"}


def test_accounts_are_plain_values() -> None:
    counters = counters_in(shown())
    assert msgspec.convert(msgspec.to_builtins(counters), Counters) == counters
