"""ActiveMQ's queue with the disk under its store: what a crash leaves, and how a start reads it.

Sources: as for `cursor_page_in`; the AMQ store of 5.1 to 5.3. The journal has a record of each
addition and each removal. It is synced before a client is answered, so a record is on disk in the
step to which the answer belongs, and a crash before the sync is a crash before that step. Index,
audit, batch and position are never synced: a start makes the index from the journal, has no
position, and turns the cache on if nothing is stored. Messages that do not outlive a crash are in
another cursor, not here.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_page_in import CursorPageIn
from brokerproof.models.activemq.cursor_state import Consumer, Message
from brokerproof.models.language import (
    Bool,
    Map,
    Value,
    action,
    exists,
    implies,
    initial,
    invariant,
    ite,
    require,
)

ON_DISK = "the-store-has-what-was-added-and-not-removed"


class CursorStore(CursorPageIn):
    """A queue whose store is made from a journal, and whose broker stops and starts again."""

    added: Map[Message, Bool]
    removed: Map[Message, Bool]
    down: Value[Bool]

    @initial
    def empty(self) -> None:
        """The journal has no record, and the broker runs."""
        super().empty()
        self.added.fill(False)
        self.removed.fill(False)
        self.down = False

    def is_kept(self, m: Message) -> Bool:
        """Whether a start finds the message in the journal."""
        return self.added[m] & ~self.removed[m]

    def is_there(self, m: Message) -> Bool:
        """Whether the message is stored or, while the broker is down, comes back."""
        return ite(self.down, self.is_kept(m), self.stored[m])

    def _arrives(self, m: Message) -> None:
        require(~self.down)
        super()._arrives(m)
        self.added[m] = True

    def _ends(self, m: Message) -> None:
        super()._ends(m)
        self.removed[m] = True

    @action
    def attach(self, consumer: Consumer) -> None:
        """A consumer attaches to a broker that runs."""
        require(~self.down)
        super().attach(consumer)

    @action
    def crash(self) -> None:
        """The broker stops without warning: only the journal is left."""
        require(~self.down)
        for truth in (
            *(self.stored, self.batch, self.paged, self.waiting, self.returned, self.given),
            *(self.attached, self.takes, self.behind, self.read_last, self.recorded, self.below),
        ):
            truth.fill(False)
        self.holds.fill(False)
        self.sooner.fill(False)
        self.down = True

    @action
    def restart(self) -> None:
        """The broker starts: all that is kept is stored in its order, and nothing is in memory."""
        require(self.down)
        self.stored = self.stored.map(lambda m, _: self.is_kept(m))
        self.caches = ~exists(Message, self.is_kept)
        self.down = False

    @invariant(ON_DISK)
    def store_has_what_is_kept(self, m: Message) -> Bool:
        """A start finds exactly the stored messages (I31). A broker that is down stores none."""
        known = self.stored[m] | self.behind[m] | self.recorded[m] | self.given[m]
        return (
            ite(self.down, ~known, self.stored[m] == self.is_kept(m))
            & implies(self.added[m], self.spent[m])
            & implies(self.removed[m], self.added[m])
        )
