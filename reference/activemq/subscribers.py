"""The consumers of an ActiveMQ queue, and the choice of the one that gets a message.

Owns their line, the exclusive election, and the ownership of groups. Does not know the messages of
the queue.

Consumers are served in turn: a served consumer goes behind all of its priority. A consumer without
room is skipped, and so is one that does not own the message's group. The group is checked last,
since the check may make the consumer its owner. Source: ActiveMQ's queue, 5.2 to current
(doActualDispatch); AMQ-1902, AMQ-2952.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokerproof.reference.activemq.exclusive import ExclusiveElection
from brokerproof.reference.activemq.groups import (
    BucketGroupMap,
    CachedGroupMap,
    GroupRule,
    SimpleGroupMap,
    Taking,
    membership_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from brokerproof.reference.activemq.groups import GroupMap
    from brokerproof.reference.activemq.parameters import Pages
    from brokerproof.reference.front.consumers import RankedConsumer
    from brokerproof.spec.messages import Message


GROUP_MAPS: Final[Mapping[str, Callable[[], GroupMap]]] = {
    "cached": CachedGroupMap,
    "buckets": BucketGroupMap,
    "simple": SimpleGroupMap,
}
"""The map of group owners: of the groups used last, by buckets, or exact."""


class Subscribers:
    """The consumers in the order in which they are served.

    `unacknowledged` counts deliveries, also those that a consumer left without acknowledging.
    """

    __slots__ = ("election", "groups", "line", "pages", "unacknowledged")

    def __init__(self, owners: GroupMap, pages: Pages = "room") -> None:
        self.pages = pages
        self.unacknowledged = 0
        self.line: list[RankedConsumer] = []
        self.election = ExclusiveElection()
        self.groups = GroupRule(owners)

    def __len__(self) -> int:
        return len(self.line)

    def __iter__(self) -> Iterator[RankedConsumer]:
        return iter(self.line)

    def add(self, consumer: RankedConsumer) -> None:
        """Add a consumer."""
        self._stand_in_line(consumer)
        if consumer.exclusive:
            self.election.add(_name(consumer), consumer.priority)

    def remove(self, consumer: RankedConsumer) -> bool:
        """Remove a consumer and free its groups; return whether it was present."""
        if consumer not in self.line:
            return False
        self.line.remove(consumer)
        self.election.remove(_name(consumer))
        self.groups.remove_consumer(_name(consumer))
        return True

    def _stand_in_line(self, consumer: RankedConsumer) -> None:
        at = len(self.line)
        while at and self.line[at - 1].priority < consumer.priority:
            at -= 1
        self.line.insert(at, consumer)

    def wanted(self, page: int, waiting: int, paged_in: int) -> int:
        """Return how many messages to page in, where these numbers wait and are paged in."""
        if self.pages == "inflight":
            return page + self.unacknowledged - paged_in if self.line else 0
        return self.room(page) if waiting < page else 0

    def room(self, most: int) -> int:
        """Return the number of messages that there is room for, up to `most`."""
        room = 0
        for consumer in self.line:
            room += self._room_of(consumer, most)
            if room >= most:
                return most
        return room

    def _room_of(self, consumer: RankedConsumer, most: int) -> int:
        if consumer.is_suspended() or not self.election.admits(_name(consumer)):
            return 0
        limit, used = consumer.credit.limit, consumer.credit.used
        return most if limit is None or not consumer.mode.uses_credit else limit - used

    def subscriber_of(self, message: Message) -> RankedConsumer | None:
        """Return the consumer for a message, moved to the end of the line; None if none can."""
        member = membership_of(message)
        for at, consumer in enumerate(self.line):
            if (
                not consumer.is_suspended()
                and self.election.admits(_name(consumer))
                and self.groups.take(_name(consumer), member) is not Taking.REFUSED
            ):
                del self.line[at]
                self._stand_in_line(consumer)
                return consumer
        return None

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for lines that behave alike, consumers apart."""
        counted = self.unacknowledged if self.pages == "inflight" else 0
        return self.election.fingerprint(), self.groups.fingerprint(), counted


def _name(consumer: RankedConsumer) -> str:
    return consumer.consumer or ""
