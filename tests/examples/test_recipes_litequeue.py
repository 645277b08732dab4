"""The gate on litequeue; each verdict was checked by hand.

`docs/findings/litequeue.md` has the reasons. A verdict that changes here is news about the gate, or
about a new version of the library: read its source again before you change it.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import litequeue
import pytest

from brokerproof.candidates.python_object import load_python_object
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.gate.gate import Budget
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Declare, Get, Publish
from tests.examples.recipes_client import RECIPES, ids, judged, trace

SEARCH_ALONE = Budget(operations=500, examples=0)

KEPT = frozenset(
    {
        # put commits its row before it returns, and only prune deletes rows.
        "nothing-lost",
        "nothing-invented",
        "right-queue",
        # pop takes the smallest message_id that is ready, and retry leaves it alone.
        "fifo-order",
        "release-rewinds",
        "get-finds",
        # retry sets one row; the adapter calls it for each delivery of the channel.
        "close-releases",
        # The trigger of maxsize counts the rows that are ready.
        "length-limit-kept",
        "does-what-it-claims",
        "refuses-what-it-must",
        "protocol",
    }
)

REVIVED = [
    "declare q0 fifo: ok",
    "publish m0 to q0: ok",
    "get from q0 on ch0 mode=acknowledge: m0 → the get",
    "acknowledge m0: ok",
    "release m0 again, by its old delivery: ok",
    "get from q0 on ch0 mode=acknowledge: m0 → the get",
]
"""retry sets the status of a row that is done, too."""


def test_a_message_that_is_done_can_be_retried() -> None:
    report = judged("litequeue_queue.py:make_queue", SEARCH_ALONE)
    assert ids(report, Outcome.BROKEN) == {"nothing-twice"}
    assert trace(report, "nothing-twice") == REVIVED
    assert ids(report, Outcome.KEPT) == KEPT | {"refused-only-when-full"}


def test_settlements_name_rows_and_not_deliveries() -> None:
    report = judged("litequeue_queue.py:make_queue_claiming_deliveries", SEARCH_ALONE)
    assert ids(report, Outcome.BROKEN) == {"settled-once"}
    assert trace(report, "settled-once") == REVIVED
    assert ids(report, Outcome.KEPT) == KEPT | {"refused-only-when-full", "nothing-twice"}


def test_taking_by_peek_is_refuted() -> None:
    report = judged("litequeue_queue.py:make_queue_that_peeks", SEARCH_ALONE)
    assert ids(report, Outcome.BROKEN) == {"nothing-twice", "refused-only-when-full"}
    assert trace(report, "nothing-twice")[1:] == [
        "publish m0 to q0: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
    ]
    # What peek shows stays ready, so a client that works on it still fills the queue.
    assert trace(report, "refused-only-when-full")[1:] == [
        "publish m0 to q0: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
        "publish m1 to q0: refused: Max queue length reached: 1",
    ]
    assert ids(report, Outcome.KEPT) == KEPT


@pytest.fixture
def filled(request: pytest.FixtureRequest) -> Iterator[Candidate]:
    """Yield the candidate of a factory, with 40 messages in its queue."""
    candidate = load_python_object(f"{RECIPES}/litequeue_queue.py:{request.param}")
    candidate.handle(Declare(queue="q", order=Fifo()))
    for number in range(40):
        candidate.handle(Publish(queue="q", message=Message(id=f"m{number}")))
    yield candidate
    candidate.close()  # type: ignore[attr-defined]


def taken_by_threads(candidate: Candidate) -> Counter[str]:
    """Return how often each message is taken when four threads take ten each."""

    def take(channel: str) -> list[str]:
        got = [candidate.handle(Get(channel=channel, queue="q")).events for _ in range(10)]
        return [event.message for events in got for event in events]  # type: ignore[union-attr]

    with ThreadPoolExecutor(4) as threads:
        return Counter(itertools.chain(*threads.map(take, "abcd")))


@pytest.mark.parametrize("filled", ["make_queue"], indirect=True)
def test_threads_take_each_message_once(filled: Candidate) -> None:
    assert taken_by_threads(filled) == Counter(f"m{number}" for number in range(40))


@pytest.mark.parametrize("filled", ["make_queue_that_peeks"], indirect=True)
def test_threads_that_peek_take_one_message_many_times(filled: Candidate) -> None:
    assert taken_by_threads(filled) == Counter({"m0": 40})


def test_the_order_is_that_of_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    # The gate cannot set the clock back. message_id begins with it, and pop orders by message_id.
    queue = litequeue.LiteQueue(memory=True)
    for time_ns, message in ((2 * 10**9, "first"), (10**9, "second")):
        monkeypatch.setattr(litequeue, "time_ns", lambda now=time_ns: now)
        queue.put(message)
    assert queue.pop().data == "second"
    queue.close()


def test_what_was_popped_stays_locked_when_its_process_ends(tmp_path: Path) -> None:
    # The reason why durability is not claimed: a restart must bring back what was taken.
    first = litequeue.LiteQueue(tmp_path / "queue")
    first.put("job")
    first.pop()
    first.close()
    second = litequeue.LiteQueue(tmp_path / "queue")
    assert second.pop() is None
    [locked] = second.list_locked(threshold_seconds=0)
    second.retry(locked.message_id)
    assert second.pop().data == "job"
    second.close()


def test_without_the_library_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / "litequeue_queue.py"
    copy.write_text((RECIPES / copy.name).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setitem(sys.modules, "litequeue", None)
    with pytest.raises(CandidateUnavailable) as unavailable:
        load_python_object(f"{copy}:make_queue")
    assert str(unavailable.value) == "litequeue: it is not installed; pip install litequeue"
