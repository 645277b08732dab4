"""The paging queue keeps the contract: proved for any number of messages; twins do not.

So clients cannot see its paging (I24): moves between places, and out of memory, are stutters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import z3

from brokerproof.models.language import FALSE, Bool, action, ite, require
from brokerproof.models.language.attack.mutants import mutants
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore import explorer
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.reaching import reached
from brokerproof.models.language.prove import refining
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.ranking import HELPED, prove_leads_to
from brokerproof.models.language.prove.refinement import Refinement, Witness, does, stutters
from brokerproof.models.rabbitmq.paging_places import IS_FETCHED
from brokerproof.models.rabbitmq.paging_queue import Channel, Consumer, Message, PagingQueue
from brokerproof.models.rabbitmq.paging_queue_refines_contract import (
    DISK,
    PAGING,
    PAGING_QUEUE_REFINES_CONTRACT,
)
from brokerproof.models.rabbitmq.paging_queue_refines_contract import (
    RememberingPagingQueue as Remembering,
)
from brokerproof.models.rabbitmq.paging_state import Place, Segment

GOOD = PAGING_QUEUE_REFINES_CONTRACT


class RestsBesideQ3(PagingQueue):
    """Announces rest, and emptiness, when q4 is empty."""

    @action
    def come_to_rest(self) -> None:
        """Nothing is in q4."""
        require(self.has_none(Place.Q4) & self.nothing_is_offered())

    @action
    def find_nothing(self, consumer: Consumer) -> None:
        """A get finds nothing in q4."""
        del consumer
        require(self.has_none(Place.Q4) & self.nothing_is_offered())


class RestingRemembering(RestsBesideQ3, Remembering):
    """The same with all that the contract remembers of it."""


class FetchesQ3First(PagingQueue):
    """Fetches from q3, though something be in q4."""

    @action
    def fetch_from_q3(self, m: Message, keeps: Bool) -> None:
        """The first of q3 is fetched."""
        require(self.serves(keeps=keeps))
        require(self.is_first_of(Place.Q3, m) & ~self.is_only_one_of(Place.Q3, m))
        self._fetches(m, keeps)


class FetchingRemembering(FetchesQ3First, Remembering):
    """The same with all that the contract remembers of it."""


class ServesOneKind(PagingQueue):
    """Leaves a message in q4 to consumers that acknowledge."""

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """The consumer acknowledges."""
        require(keeps)
        super().fetch_from_q4(m, keeps)


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("model", "failing"),
    [(PagingQueue, set()), (ServesOneKind, {(HELPED, None)})],
)
def test_a_ready_message_is_given_in_the_end(
    model: type[PagingQueue], failing: set[tuple[str, str | None]]
) -> None:
    [progress] = [each for each in trace(model).leads_to if each.name == IS_FETCHED]
    proof = prove_leads_to(trace(model), progress)
    assert {(c.of, c.action) for c in proof.conditions if c.outcome == "refuted"} == failing
    assert proof.outcome == ("refuted" if failing else "proved")


class LosesWhatTheChannelHeld(PagingQueue):
    """Drops the messages of a closed channel, instead of requeueing them."""

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel's consumers leave."""
        require(self.has_none(Place.Q3))
        self._leave(which)
        self.place = self.place.map(lambda m, old: ite(self.returns(which, m), Place.GONE, old))


class LosingRemembering(LosesWhatTheChannelHeld, Remembering):
    """The same with all that the contract remembers of it."""


class PurgesThePending(PagingQueue):
    """Drops acquired messages, too."""

    @action
    def purge(self) -> None:
        """All is dropped."""
        require(self.nothing_is_offered())
        self._forgets(lambda m: self.is_ready(m) | self.is_in(m, Place.PENDING))


class PurgingRemembering(PurgesThePending, Remembering):
    """The same with all that the contract remembers of it."""


class KeepsTransients(PagingQueue):
    """Finds messages after a crash that are not persistent."""

    def is_kept(self, m: Message) -> Bool:
        """Whether a crash leaves the message."""
        return self.is_there(m)


class KeepingRemembering(KeepsTransients, Remembering):
    """The same with all that the contract remembers of it."""


class LosesWhatWasPending(PagingQueue):
    """Loses the messages that a consumer held when the node stopped."""

    def is_kept(self, m: Message) -> Bool:
        """Whether a crash leaves the message."""
        return self.is_ready(m) & self.persistent[m]


class PendingRemembering(LosesWhatWasPending, Remembering):
    """The same with all that the contract remembers of it."""


class SyncsNoAcknowledgement(PagingQueue):
    """Brings acknowledged messages back, as the release may: it syncs no acknowledgement."""

    def is_kept(self, m: Message) -> Bool:
        """Whether a crash leaves the message."""
        return self.persistent[m] & (self.is_there(m) | self.acked[m])


class UnsyncedRemembering(SyncsNoAcknowledgement, Remembering):
    """The same with all that the contract remembers of it."""


class StartsEmpty(PagingQueue):
    """Starts without the messages on its disk."""

    @action
    def restart(self) -> None:
        """The node starts."""
        require(self.down)
        self._forgets(self.is_ready)
        self._starts()


class EmptyRemembering(StartsEmpty, Remembering):
    """The same with all that the contract remembers of it."""


class AnswersWhileDown(PagingQueue):
    """Tells a get that there is no message while the node is down."""

    @action
    def find_nothing(self, consumer: Consumer) -> None:
        """A get finds q4 and q3 empty."""
        del consumer
        require(self.has_none(Place.Q4, Place.Q3) & self.nothing_is_offered())


class AnsweringRemembering(AnswersWhileDown, Remembering):
    """The same with all that the contract remembers of it."""


def unproved(refinement: Refinement, *only: str) -> dict[tuple[str, str], str]:
    """Return the obligations of these actions that are not proved, and their outcomes."""
    proof = bind(refinement).proof(only)
    assert len(proof.answers) > 5 * len(only)
    return {(a.action, a.name): a.outcome for a in proof.answers if a.outcome != "proved"}


def of(concrete: type[PagingQueue], remembering: type[Remembering]) -> Refinement:
    """Return the same refinement of a queue that is written otherwise."""
    return dataclasses.replace(GOOD, concrete=concrete, remembering=remembering)


def silent(_queue: Remembering, *_: object) -> Witness:
    """Take the step for a stutter."""
    return stutters()


def unflagged(queue: Remembering, m: Message, _keeps: Bool) -> Witness:
    """The flag is always false."""
    return does("deliver", queue.holder[m], m, FALSE)


@pytest.mark.each_time(2)
@pytest.mark.parametrize(
    ("concrete", "remembering", "broken"),
    [
        (KeepsTransients, KeepingRemembering, {("crash", "status")}),
        (LosesWhatWasPending, PendingRemembering, {("crash", "status")}),
        (SyncsNoAcknowledgement, UnsyncedRemembering, {("crash", "status")}),
        (StartsEmpty, EmptyRemembering, {("restart", "status stays")}),
        (
            AnswersWhileDown,
            AnsweringRemembering,
            {("find_nothing", "get-finds"), ("final_drain", "survives-restart")},
        ),
    ],
)
def test_a_crash_that_loses_or_brings_back_what_it_must_not_is_refuted(
    concrete: type[PagingQueue],
    remembering: type[Remembering],
    broken: set[tuple[str, str]],
) -> None:
    steps = {step for step, _ in broken}
    assert broken <= set(unproved(of(concrete, remembering), *steps))


@pytest.mark.thorough
def test_each_kind_of_step_is_one_of_the_contract_or_none() -> None:
    """All of them together take half a minute: they are the next test."""
    kinds = "arrive", "publish_delivered", "fetch_last_and_reload_all", "get_from_q3", "page_q3"
    ends = "requeue_to_delta", "acknowledge", "close_channel_beside_q3", "purge", "come_to_rest"
    stops = "crash", "lose", "restart", "restart_and_reload", "restart_and_reload_all"
    assert unproved(GOOD, *kinds, *ends, *stops, "find_nothing", "final_drain") == {}


@pytest.mark.thorough
def test_the_paging_queue_refines_the_contract() -> None:
    proof = bind(GOOD).proof()
    assert proof.complete
    assert len(proof.answers) > 2000
    assert proof.left_out == ()
    assert proof.assumptions == ("what a consumer has not settled is a count, so not below 0",)
    assert {"reject", "settle_again", "browse", "rest", "crash"} <= set(proof.never)
    assert {proof.witnesses[each] for each in (*PAGING, *DISK)} == {"a stutter"}
    lasting = "survives-restart", "transient-is-lost", "settlement-survives-crash"
    assert {proof.standing(each) for each in lasting} == {"proved"}


@pytest.mark.thorough
def test_what_is_not_the_contract_is_refuted() -> None:
    said = "come_to_rest", "find_nothing", "final_drain"
    assert unproved(of(RestsBesideQ3, RestingRemembering), *said) == {
        ("come_to_rest", "quiescence"): "refuted",
        ("find_nothing", "get-finds"): "refuted",
        ("final_drain", "close-releases"): "refuted",
        ("final_drain", "nothing-lost"): "refuted",
        ("final_drain", "survives-restart"): "refuted",
        ("final_drain", "purge-leaves-acquired"): "refuted",
    }
    fetching = unproved(of(FetchesQ3First, FetchingRemembering), "fetch_from_q3")
    assert set(fetching) == {("fetch_from_q3", "release-rewinds"), ("fetch_from_q3", "fifo-order")}
    losing = unproved(of(LosesWhatTheChannelHeld, LosingRemembering), "close_channel")
    assert set(losing) == {("close_channel", "status")}
    purging = unproved(of(PurgesThePending, PurgingRemembering), "purge")
    assert set(purging) == {("purge", "status")}


@pytest.mark.thorough
def test_a_wrong_witness_is_refuted() -> None:
    wrong: dict[str, Callable[..., Witness]] = {
        **GOOD.witnesses,
        "requeue_to_delta": silent,
        "fetch_from_q4": unflagged,
    }
    found = unproved(
        dataclasses.replace(GOOD, witnesses=wrong), "requeue_to_delta", "fetch_from_q4"
    )
    assert ("requeue_to_delta", "status stays") in found
    assert ("fetch_from_q4", "redelivered-flag") in found


def test_two_messages_and_two_consumers_keep_all_of_it() -> None:
    scope = Scope(
        {Message: 2, Segment: 2, Consumer: 2, Channel: 1},
        range(1),
        {"persistent": (1, 0), "asks": (1, 0), "segment": (0, 1), "acknowledges": (1, 0)},
    )
    found = explore(trace(PagingQueue), scope, limit_states=1_000_000)
    assert (found.violation, found.incomplete) == (None, "")
    never = {name for name, times in found.firings.items() if not times}
    assert never == {
        "fetch_last_and_reload",
        "get_last_and_reload",
        "put_back_and_reload",
        "restart_and_reload",
        "page_q1_to_q2",
        "page_q2",
        "requeue_to_delta",
    }


def attacked(*names: str) -> dict[str, tuple[str, ...]]:
    """Return the obligations of the refinement that each change of the queue loses."""
    bound = bind(GOOD)
    system = bound.concrete
    return {
        mutant.name: bound.broken_by(mutant.within(system))
        for mutant in mutants(system)
        if mutant.name in names
    }


def test_a_change_is_refuted_by_the_contract_and_never_by_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong, harmless = (
        "fetch_from_q4: holder: stays as it was",
        "page_q2: from_start: stays as it was",
    )
    monkeypatch.setattr(refining, "asked", lambda *_: (z3.unknown, "tired"))
    assert attacked(wrong, harmless) == {wrong: ("holder",), harmless: ()}


def test_the_quick_search_for_a_run_calls_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three elements of each family begin with more states than the search visits at all."""

    def compiled(*_: object) -> None:
        raise AssertionError("a compiler takes longer than the whole search")

    monkeypatch.setattr(explorer, "CompiledSearch", compiled)
    assert reached(trace(PagingQueue)) is None
