"""A queue that consumers pull from, watched: how its lists are read, and when it may be at rest.

Owns the reading of a view with lists as a state of `PullQueue`. Entries and places move as those of
the queue of pointers, which watches them (`pointer_queue_steps`). Between two views any consumer
may have lost its interest and found it again, and been told of what has gone since, so whatever
lists are in form can have come about; a browser may have been shown all that its place is past.
What is asked is that the model may come to rest where the broker says that it has.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.client_step import Happening
from brokerproof.models.qpid.pointer_queue import Entry, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pointer_queue_questions import shortened, state_of
from brokerproof.models.qpid.pointer_queue_steps import question
from brokerproof.models.qpid.pull_queue import PullQueue
from brokerproof.models.qpid.threads.consumer_lists import Listed
from brokerproof.spec.protocol.operations import Drain
from brokerproof.spec.qpid.view import ConsumerListsView, PointerQueueView

UNTAKEN: Mapping[str, str] = {"come_to_rest": "nothing was drained"}
"""What has not happened where the transition of the model that is asked for was never taken."""

LISTS: Mapping[str, str] = {
    "interested": "INTERESTED",
    "notified": "NOTIFIED",
    "not_interested": "NOT_INTERESTED",
    "non_acquiring": "NON_ACQUIRING",
}
"""The lists of a view, by what the model calls them."""


def may_rest(view: PointerQueueView) -> bool:
    """Whether the model may be at rest in the state that a view shows."""
    assert view.lists is not None, "only a queue that is pulled from has lists"
    reading, state = _read(view, view.lists)
    return reading.enabled("come_to_rest", state, ())


@functools.lru_cache(maxsize=1 << 14)
def _read(view: PointerQueueView, lists: ConsumerListsView) -> tuple[PlainReading, State]:
    """Return a view as a state of the model, in the scope that it needs."""
    asked = shortened(question(view, view, Happening(Drain())))
    reading = _reading(len(asked.entries) + 1, len(asked.subscriptions))
    state = list(state_of(reading, asked, after=True))
    listed: dict[int, tuple[int, int]] = {}
    for name, called in LISTS.items():
        for place, who in enumerate(getattr(lists, name)):
            listed[who] = Listed.values.index(called), place
    nowhere = Listed.values.index("REMOVED"), 0
    for position, cell in enumerate(reading.cells):
        if cell.symbol.name == "listed":
            state[position] = listed.get(cell.indices[0], nowhere)[0]
        elif cell.symbol.name == "ahead":
            first, second = (listed.get(who, nowhere) for who in cell.indices)
            there = first[0] == second[0] != nowhere[0]
            state[position] = int(there and first[1] < second[1])
        elif cell.symbol.name == "shown":
            subscription, entry = cell.indices
            browser = asked.subscriptions[subscription]
            state[position] = int(browser.browses and entry <= browser.after.last_seen)
    return reading, tuple(state)


@functools.cache
def _reading(entries: int, subscriptions: int) -> PlainReading:
    scope = Scope({Entry: entries, Subscription: subscriptions, Channel: 1}, range(1))
    return PlainReading(trace(PullQueue), scope)
