"""Power losses during operations: the moves of the search, its findings, and their texts.

The reference on its disk keeps all requirements at every change. Planted faults in the order of
writing, which no crash between two operations can show, must be found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

import msgspec
import pytest

from brokerproof.checks.conversation import copier_of, reset
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import play
from brokerproof.checks.search.product import search
from brokerproof.checks.search.root_cause import attributed
from brokerproof.checks.search.scopes.crash_scopes import scopes_of_crashes
from brokerproof.checks.search.searches import Search
from brokerproof.checks.trace.moves import Cut, Move, Settle, text_of
from brokerproof.reference import make
from brokerproof.reference.durable_broker import PoweredBroker
from brokerproof.reference.settings import settings_from
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.candidate import OnDisk, Unsynced
from brokerproof.spec.protocol.operations import (
    Consume,
    Crash,
    Declare,
    Drain,
    Get,
    Publish,
    Purge,
    Reset,
    Restart,
)
from tests.faults.overlay import Edit, plant

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerproof.spec.protocol.candidate import Candidate

TIGHT = "rabbitmq-paging?segment=2&batch=2&journal=1&file=200&target=0"
DECLARE = Declare(queue="q0", order=Fifo(), durable=True)


def searched(start: Callable[[], Candidate], scope: str, operations: int = 1500) -> Search:
    candidate = start()
    reset(candidate)
    claims = candidate.hello().capabilities
    [chosen] = [
        each
        for each in scopes_of_crashes(claims, (Fifo(),), ("acknowledge",), on_disk=True)
        if each.name.endswith(scope)
    ]
    found, copier = Search(chosen, "product"), copier_of(candidate)
    assert not isinstance(copier, str)

    def is_found() -> str:
        return "something found" if found.broken else ""

    search(found, (candidate, Oracle(claims)), copier, operations, is_found)
    return found


def published(name: str = "m0", *, persistent: bool = True) -> Publish:
    return Publish(queue="q0", message=Message(id=name, persistent=persistent))


@pytest.mark.parametrize("scope", ["gets", "consumer", "purge", "priorities"])
def test_the_reference_keeps_what_it_promises_wherever_the_power_goes(scope: str) -> None:
    found = searched(lambda: make(TIGHT), scope)
    assert found.broken == {}
    assert found.cuts > 700
    # The outcome of a declaration alone is unknown.
    assert found.cuts_unjudged < 20


MISTAKES = {
    "the journal is emptied before the files have what it had": (
        (
            Edit(
                "rabbitmq/disk/queue_index.py",
                "        for number in sorted(self.segments):\n"
                "            segment = self.segments[number]\n"
                "            if segment.unacknowledged == 0:\n",
                "        if self.dirty_count:\n"
                "            self._disk.truncate(self.journal_name, 0)\n"
                "        for number in sorted(self.segments):\n"
                "            segment = self.segments[number]\n"
                "            if segment.unacknowledged == 0:\n",
            ),
        ),
        "survives-restart",
    ),
    "a file is believed to be synced that is only written": (
        (
            Edit(
                "rabbitmq/disk/queue_index.py",
                "            self._disk.sync(name)\n            segment.has_file = True\n",
                "            segment.has_file = True\n",
            ),
        ),
        "survives-restart",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_order_of_writing_is_found(mistake: str) -> None:
    edits, requirement = MISTAKES[mistake]
    start = plant(edits, TIGHT)
    found = searched(start, "gets", 20_000)
    assert requirement in found.broken

    def fresh() -> tuple[Candidate, Oracle]:
        candidate = start()
        reset(candidate)
        return candidate, Oracle(candidate.hello().capabilities)

    own, instead = attributed(found.broken[requirement], fresh)
    assert own is not None, instead
    assert any(isinstance(move, Cut) for move in own.moves)


# One cut at a time, judged.


def after(*moves: Move, address: str = TIGHT) -> str:
    """Return which requirement a run breaks; nothing if none."""
    candidate = make(address)
    reset(candidate)
    run = play(candidate, Oracle(candidate.hello().capabilities), moves)
    assert len(run.steps) == len(moves) or run.broken is not None
    return "" if run.broken is None else run.broken.requirement


@pytest.mark.parametrize("unsynced", get_args(Unsynced))
@pytest.mark.parametrize("change", range(8))
def test_what_is_cut_off_has_happened_or_not(change: int, unsynced: Unsynced) -> None:
    held = Get(channel="ch0", queue="q0")
    for move in (
        published("m1"),
        Settle(how="acknowledge", message="m0"),
        Settle(how="release", message="m0"),
        Purge(queue="q0"),
        Get(channel="ch0", queue="q0"),
        Consume(channel="ch0", queue="q0", consumer="c0", mode="acknowledge"),
        Drain(),
    ):
        cut = Cut(move=move, change=change, unsynced=unsynced)
        before = (DECLARE, published(), published("m9"), held)
        assert after(*before, cut) == ""
        candidate = make(TIGHT)
        assert isinstance(candidate, OnDisk)
        reset(candidate)
        oracle = Oracle(candidate.hello().capabilities)
        if oracle.bindings.down or play(candidate, oracle, (*before, cut)).broken:
            continue
        if oracle.bindings.down:
            rest = (Restart(), *(Get(channel="ch1", queue="q0"),) * 3, Drain())
            assert play(candidate, oracle, rest).broken is None


def test_a_restart_that_is_cut_off_is_tried_again() -> None:
    moves: list[Move] = [DECLARE, published(), published("m1"), Crash()]
    moves += [Cut(move=Restart(), change=change) for change in (0, 1, 1)]
    assert after(*moves, Restart(), Get(channel="ch0", queue="q0"), Drain()) == ""


def test_where_the_power_lasts_the_move_is_made_and_the_next_one_is_not_cut_off() -> None:
    moves = (DECLARE, Cut(move=published(), change=50), published("m1"), Drain())
    assert after(*moves) == ""


def test_a_candidate_without_a_disk_cannot_be_cut_off() -> None:
    with pytest.raises(Unfollowable, match="has no disk"):
        after(Cut(move=Drain(), change=0), address="qpid-push")


class GoesOn(PoweredBroker):
    """A broker whose power never goes."""

    __slots__ = ()

    def power_lasts(self, changes: int | None, unsynced: Unsynced | None = None) -> None:
        """Do nothing."""


class Raises(PoweredBroker):
    """A broker that cannot be told how long its power lasts."""

    __slots__ = ()

    def power_lasts(self, changes: int | None, unsynced: Unsynced | None = None) -> None:
        """Fail."""
        raise TypeError(f"no {unsynced} at {changes}")


class Uncounted(PoweredBroker):
    """A broker that does not count the changes of its disk."""

    __slots__ = ()

    def changes(self) -> int:
        """Fail."""
        raise NotImplementedError


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (GoesOn, "was not answered `crashed`"),
        (Raises, "power_lasts raised TypeError"),
        (Uncounted, "power_lasts raised NotImplementedError"),
    ],
)
def test_a_broker_that_does_not_lose_its_power_is_no_witness(
    kind: type[PoweredBroker], told: str
) -> None:
    settings = settings_from({"system": "rabbitmq-paging"})
    candidate = kind(settings)
    reset(candidate)
    oracle = Oracle(candidate.hello().capabilities)
    run = play(candidate, oracle, (DECLARE, Cut(move=published(), change=0)))
    assert run.broken is not None
    assert run.broken.requirement == "protocol"
    assert told in run.broken.reason
    found = searched(lambda: kind(settings), "gets", 100)
    assert "protocol" in found.broken


def test_a_cut_is_written_and_read_like_any_move() -> None:
    cut = Cut(move=published(), change=2, unsynced="torn")
    text = msgspec.json.encode(cut)
    assert msgspec.json.decode(text, type=cast("type[Move]", Move)) == cut
    assert text_of(cut) == (
        "publish m0 to q0 persistent, power lost at change 2 of the disk (torn)"
    )


def test_reset_ends_a_loss_of_power() -> None:
    candidate = make(TIGHT)
    assert isinstance(candidate, OnDisk)
    reset(candidate)
    candidate.power_lasts(0)
    assert not candidate.handle(DECLARE).ok
    assert candidate.handle(Reset()).ok
    assert candidate.handle(DECLARE).ok
