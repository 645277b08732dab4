"""A consumer that waits at the one entry that does not fit goes on when it has gone (QPID-1187).

The scopes of the catalogue have no message behind the one that does not fit, and no other
subscriber for it. This one has both: a consumer with a window of bytes, and gets.
"""

from __future__ import annotations

import pytest

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.product import search
from brokerproof.checks.search.scopes.scope import Kind, Payload, Scope
from brokerproof.checks.search.searches import Search
from brokerproof.reference import make
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Reset
from tests.faults.overlay import Edit, plant

SCOPE = Scope(
    "what does not fit is taken by others",
    (Fifo(),),
    messages=3,
    payloads=(Payload(size=1), Payload(size=3)),
    consumers=1,
    kinds=(Kind("acknowledge", bytes=3),),
    gets=("acknowledge",),
    settlements=(),
)
OPERATIONS = 2_000
NO_CONSUMER_WAITS = Edit(
    "qpid/push/delivery.py",
    "    before = subscription.awaits.get_and_set(entry)\n",
    "    before = subscription.awaits.get_and_set(None)\n",
)
NO_CONSUMER_IS_WOKEN = Edit(
    "qpid/push/delivery.py",
    "            if subscription is not by:\n                queue.may_go_on(subscription)\n",
    "            assert queue.waiting.get() >= 0\n",
)


def searched(broker: Candidate) -> Search:
    broker.handle(Reset())
    copier = copier_of(broker)
    assert isinstance(copier, Copier)
    found = Search(SCOPE, "product")
    search(found, (broker, Oracle(broker.hello().capabilities)), copier, OPERATIONS, lambda: "")
    return found


@pytest.mark.parametrize("address", ["qpid-push", "qpid-push?runner=drain", "qpid-pull"])
def test_a_consumer_that_waits_goes_on_in_a_scope_that_shows_it(address: str) -> None:
    found = searched(make(address))
    assert found.broken == {}
    assert found.operations >= OPERATIONS or found.complete


@pytest.mark.parametrize(
    "edit", [NO_CONSUMER_WAITS, NO_CONSUMER_IS_WOKEN], ids=["waits", "is woken"]
)
def test_the_scope_shows_a_consumer_that_stays_where_it_is(edit: Edit) -> None:
    found = searched(plant([edit])())
    assert "quiescence" in found.broken
