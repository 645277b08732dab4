"""Message groups: all messages of a group go to the consumer that owns the group.

Owns the ownership of groups, in ActiveMQ's three kinds of map, and the rule by which a consumer may
take a message of a group. The queue asks it last, after credit and exclusivity, since the answer
may make the consumer the owner (AMQ-2952).

Source: ActiveMQ's queue, 5.1 to current. Maps by bucket are the default of 5.1; the map that
forgets is the current one. Only current releases count a consumer's groups, and give the next group
to the consumer with fewer.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from typing import Final, NamedTuple, Protocol

from msgspec import structs

from brokerproof.reference.activemq.bit_array import int32
from brokerproof.spec.messages import Message

BUCKETS: Final = 1024
"""The number of buckets that groups share."""

CACHED: Final = 1024
"""The number of groups that a `CachedGroupMap` remembers."""

GROUP_PROPERTY: Final = "JMSXGroupID"
SEQUENCE_PROPERTY: Final = "JMSXGroupSeq"


class Membership(NamedTuple):
    """A message's group and its number there: 1 starts the group anew, a negative one ends it."""

    group: str
    sequence: int = 0


def membership_of(message: Message) -> Membership | None:
    """Return the group that a message names; None if it names none."""
    group = message.properties.get(GROUP_PROPERTY)
    sequence = message.properties.get(SEQUENCE_PROPERTY, 0)
    if not isinstance(group, str):
        return None
    return Membership(group, sequence if isinstance(sequence, int) else 0)


def without_content(message: Message) -> Message:
    """Return the part of a message that the queue needs while its content is not in memory.

    >>> without_content(Message(id="m", properties={"JMSXGroupID": "g", "k": "long"})).properties
    {'JMSXGroupID': 'g'}
    """
    if not message.properties:
        return message
    known = (GROUP_PROPERTY, SEQUENCE_PROPERTY)
    kept = {name: value for name, value in message.properties.items() if name in known}
    return structs.replace(message, properties=kept)


class Taking(enum.Enum):
    """The rule's answer for a consumer and a message."""

    REFUSED = "refused"
    """Another consumer owns the group."""
    TAKEN = "taken"
    """It takes the message; it owned the group already, or there is no group."""
    TAKEN_FIRST = "taken first"
    """It takes the message and becomes the owner; the message is flagged as the group's first."""


class GroupMap(Protocol):
    """The owner of each group; a consumer is known by its name."""

    def put(self, group: str, owner: str) -> str | None:
        """Set the owner; return the consumer that lost a group by that, or None."""

    def get(self, group: str) -> str | None:
        """Return the owner of a group, or None; a map that forgets counts this as a use."""

    def remove_group(self, group: str) -> str | None:
        """Remove the owner of a group; return the previous one."""

    def remove_consumer(self, owner: str) -> None:
        """Remove a consumer as the owner of all its groups."""

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for maps that behave alike."""


class SimpleGroupMap:
    """An exact map: each group has its own owner."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def put(self, group: str, owner: str) -> str | None:
        """Set the owner; return the previous one."""
        before = self._owners.get(group)
        self._owners[group] = owner
        return before

    def get(self, group: str) -> str | None:
        """Return the owner of a group, or None."""
        return self._owners.get(group)

    def remove_group(self, group: str) -> str | None:
        """Remove the owner of a group; return the previous one."""
        return self._owners.pop(group, None)

    def remove_consumer(self, owner: str) -> None:
        """Remove a consumer as the owner of all its groups."""
        self._owners = {group: each for group, each in self._owners.items() if each != owner}

    def fingerprint(self) -> Hashable:
        """Return all owners."""
        return frozenset(self._owners.items())


class BucketGroupMap:
    """Groups share buckets by their hashes; the owner of a bucket owns all its groups.

    Removing one group frees its whole bucket.
    """

    __slots__ = ("_owners", "buckets")

    def __init__(self, buckets: int = BUCKETS) -> None:
        if buckets < 1:
            raise ValueError("there is at least one bucket")
        self.buckets = buckets
        self._owners: dict[int, str] = {}

    def bucket_of(self, group: str) -> int:
        """Return the number of a group's bucket."""
        return abs(java_hash(group)) % self.buckets

    def put(self, group: str, owner: str) -> str | None:
        """Set the owner of the bucket; return the previous one."""
        bucket = self.bucket_of(group)
        before = self._owners.get(bucket)
        self._owners[bucket] = owner
        return before

    def get(self, group: str) -> str | None:
        """Return the owner of the bucket, or None."""
        return self._owners.get(self.bucket_of(group))

    def remove_group(self, group: str) -> str | None:
        """Remove the owner of the bucket; return the previous one."""
        return self._owners.pop(self.bucket_of(group), None)

    def remove_consumer(self, owner: str) -> None:
        """Remove a consumer as the owner of all its buckets."""
        self._owners = {bucket: each for bucket, each in self._owners.items() if each != owner}

    def fingerprint(self) -> Hashable:
        """Return the owners of all buckets."""
        return self.buckets, frozenset(self._owners.items())


class CachedGroupMap:
    """Each group has its own owner, but only `most` groups are remembered.

    The group used least recently is forgotten first, and then has no owner.
    """

    __slots__ = ("_owners", "most")

    def __init__(self, most: int = CACHED) -> None:
        if most < 1:
            raise ValueError("at least one group is remembered")
        self.most = most
        # Ordered by use: the group used least recently is the first.
        self._owners: dict[str, str] = {}

    def put(self, group: str, owner: str) -> str | None:
        """Set the owner; return the previous one, or the owner of the group forgotten for it."""
        before = self._owners.pop(group, None)
        self._owners[group] = owner
        if len(self._owners) <= self.most:
            return before
        return self._owners.pop(next(iter(self._owners)))

    def get(self, group: str) -> str | None:
        """Return the owner of a group, or None; the group becomes the last to be forgotten."""
        owner = self._owners.pop(group, None)
        if owner is not None:
            self._owners[group] = owner
        return owner

    def remove_group(self, group: str) -> str | None:
        """Remove the owner of a group; return the previous one."""
        return self._owners.pop(group, None)

    def remove_consumer(self, owner: str) -> None:
        """Remove a consumer as the owner of all its groups."""
        self._owners = {group: each for group, each in self._owners.items() if each != owner}

    def fingerprint(self) -> Hashable:
        """Return all owners, in the order in which they are forgotten."""
        return self.most, tuple(self._owners.items())


class GroupRule:
    """The rule whether a consumer may take a message of a group, and each consumer's groups.

    A consumer's count goes down when a group is closed, forgotten (AMQ-5483) or given to another
    consumer, and goes away with the consumer. With buckets it counts buckets.
    """

    __slots__ = ("_counts", "owners")

    def __init__(self, owners: GroupMap) -> None:
        self.owners = owners
        self._counts: dict[str, int] = {}

    def count(self, consumer: str) -> int:
        """Return the number of groups that a consumer owns."""
        return self._counts.get(consumer, 0)

    def take(self, consumer: str, member: Membership | None) -> Taking:
        """Let a consumer take a message, unless another consumer owns its group.

        The number 1 gives the group to the first consumer asked, whatever the owner. A negative
        number ends the group if its owner takes it; without an owner it starts the group.
        """
        if member is None:
            return Taking.TAKEN
        if member.sequence == 1:
            return self._assign(consumer, member.group)
        owner = self.owners.get(member.group)
        if owner is None:
            return self._assign(consumer, member.group)
        if owner != consumer:
            return Taking.REFUSED
        if member.sequence < 0:
            self._count_down(self.owners.remove_group(member.group))
        return Taking.TAKEN

    def _assign(self, consumer: str, group: str) -> Taking:
        self._counts[consumer] = self.count(consumer) + 1
        self._count_down(self.owners.put(group, consumer))
        return Taking.TAKEN_FIRST

    def _count_down(self, consumer: str | None) -> None:
        if consumer is None:
            return
        left = self._counts.pop(consumer) - 1
        if left:
            self._counts[consumer] = left

    def remove_consumer(self, consumer: str) -> None:
        """Remove a consumer; its groups have no owner then."""
        self.owners.remove_consumer(consumer)
        self._counts.pop(consumer, None)

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for rules that behave alike; counts follow from owners."""
        return self.owners.fingerprint()


def java_hash(text: str) -> int:
    """Return Java's hash of a text: over 16-bit units, in 32 bits.

    >>> java_hash("group")
    98629247
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = int32(31 * value + int.from_bytes(units[at : at + 2], "big"))
    return value
