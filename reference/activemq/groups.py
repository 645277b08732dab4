"""Message groups: all messages of a group go to one consumer, who owns the group meanwhile.

Owns who owns which group, in the three maps that ActiveMQ has for it, and the rule by which a
consumer may take a message of a group. Refuses to know queues, windows and selectors: it is asked
last, when the consumer would take the message if it were not for its group, since the answer may
make it the owner (AMQ-2952).

Source: ActiveMQ's queue, 5.1 to current; maps by bucket are the default of 5.1, those that forget
are the current one. How many groups a consumer owns is counted in current releases only, which give
the next group to who has fewer.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from typing import Final, NamedTuple, Protocol

from msgspec import structs

from brokerproof.reference.activemq.bit_array import int32
from brokerproof.spec.protocol.messages import Message

BUCKETS: Final = 1024
"""How many buckets groups share."""

CACHED: Final = 1024
"""How many groups are remembered by a map that forgets."""

GROUP_PROPERTY: Final = "JMSXGroupID"
SEQUENCE_PROPERTY: Final = "JMSXGroupSeq"


class Membership(NamedTuple):
    """The group of a message, and its number in the group: 1 begins it anew, below 0 ends it."""

    group: str
    sequence: int = 0


def membership_of(message: Message) -> Membership | None:
    """Return which group a message says it belongs to; None if it says nothing, or no name."""
    group = message.properties.get(GROUP_PROPERTY)
    sequence = message.properties.get(SEQUENCE_PROPERTY, 0)
    if not isinstance(group, str):
        return None
    return Membership(group, sequence if isinstance(sequence, int) else 0)


def without_content(message: Message) -> Message:
    """Return what has to be known of a message whose content is not in memory.

    >>> without_content(Message(id="m", properties={"JMSXGroupID": "g", "k": "long"})).properties
    {'JMSXGroupID': 'g'}
    """
    if not message.properties:
        return message
    known = (GROUP_PROPERTY, SEQUENCE_PROPERTY)
    kept = {name: value for name, value in message.properties.items() if name in known}
    return structs.replace(message, properties=kept)


class Taking(enum.Enum):
    """What the rule says of a consumer and a message."""

    REFUSED = "refused"
    """Another consumer owns the group."""
    TAKEN = "taken"
    """It takes the message, and had the group already, or there is no group."""
    TAKEN_FIRST = "taken first"
    """It takes the message and the group with it: the message is flagged as its first one."""


class GroupMap(Protocol):
    """Who owns which group; a consumer is named."""

    def put(self, group: str, owner: str) -> str | None:
        """Make a consumer the owner; return who has lost a group by that, if anybody has."""

    def get(self, group: str) -> str | None:
        """Return who owns a group; a map that forgets does so later for it."""

    def remove_group(self, group: str) -> str | None:
        """Let nobody own a group; return who did."""

    def remove_consumer(self, owner: str) -> None:
        """Let nobody own what this consumer owns."""

    def fork(self) -> GroupMap:
        """Return an independent copy."""

    def fingerprint(self) -> Hashable:
        """Return what is equal for maps that behave alike."""


class SimpleGroupMap:
    """Each group has its owner."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def put(self, group: str, owner: str) -> str | None:
        """Make a consumer the owner; return who was."""
        before = self._owners.get(group)
        self._owners[group] = owner
        return before

    def get(self, group: str) -> str | None:
        """Return who owns a group."""
        return self._owners.get(group)

    def remove_group(self, group: str) -> str | None:
        """Let nobody own a group; return who did."""
        return self._owners.pop(group, None)

    def remove_consumer(self, owner: str) -> None:
        """Let nobody own what this consumer owns."""
        self._owners = {group: each for group, each in self._owners.items() if each != owner}

    def fork(self) -> SimpleGroupMap:
        """Return an independent copy."""
        copy = object.__new__(SimpleGroupMap)
        copy._owners = self._owners.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return all owners."""
        return frozenset(self._owners.items())


class BucketGroupMap:
    """Groups share buckets by their hashes; whoever owns a bucket owns all groups of it.

    To remove one group frees all of its bucket.
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
        """Make a consumer the owner of the bucket; return who was."""
        bucket = self.bucket_of(group)
        before = self._owners.get(bucket)
        self._owners[bucket] = owner
        return before

    def get(self, group: str) -> str | None:
        """Return who owns the bucket."""
        return self._owners.get(self.bucket_of(group))

    def remove_group(self, group: str) -> str | None:
        """Let nobody own the bucket; return who did."""
        return self._owners.pop(self.bucket_of(group), None)

    def remove_consumer(self, owner: str) -> None:
        """Let nobody own what this consumer owns."""
        self._owners = {bucket: each for bucket, each in self._owners.items() if each != owner}

    def fork(self) -> BucketGroupMap:
        """Return an independent copy."""
        copy = object.__new__(BucketGroupMap)
        copy.buckets = self.buckets
        copy._owners = self._owners.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return the owners of all buckets."""
        return self.buckets, frozenset(self._owners.items())


class CachedGroupMap:
    """Each group has its owner, but only so many are remembered.

    The one asked for longest ago is forgotten first, and then belongs to nobody.
    """

    __slots__ = ("_owners", "most")

    def __init__(self, most: int = CACHED) -> None:
        if most < 1:
            raise ValueError("at least one group is remembered")
        self.most = most
        # The one asked for longest ago is the first.
        self._owners: dict[str, str] = {}

    def put(self, group: str, owner: str) -> str | None:
        """Make a consumer the owner; return who was, or whose other group is forgotten for it."""
        before = self._owners.pop(group, None)
        self._owners[group] = owner
        if len(self._owners) <= self.most:
            return before
        return self._owners.pop(next(iter(self._owners)))

    def get(self, group: str) -> str | None:
        """Return who owns a group, which is then the last to be forgotten."""
        owner = self._owners.pop(group, None)
        if owner is not None:
            self._owners[group] = owner
        return owner

    def remove_group(self, group: str) -> str | None:
        """Let nobody own a group; return who did."""
        return self._owners.pop(group, None)

    def remove_consumer(self, owner: str) -> None:
        """Let nobody own what this consumer owns."""
        self._owners = {group: each for group, each in self._owners.items() if each != owner}

    def fork(self) -> CachedGroupMap:
        """Return an independent copy."""
        copy = object.__new__(CachedGroupMap)
        copy.most = self.most
        copy._owners = self._owners.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return all owners, in the order in which they are forgotten."""
        return self.most, tuple(self._owners.items())


class GroupRule:
    """Whether a consumer may take a message of a group, and how many groups each consumer owns.

    A consumer's count goes down when a group is closed, forgotten (AMQ-5483) or given to another,
    and is gone with the consumer. It counts what the map has for it, so buckets where there are
    buckets.
    """

    __slots__ = ("_counts", "owners")

    def __init__(self, owners: GroupMap) -> None:
        self.owners = owners
        self._counts: dict[str, int] = {}

    def count(self, consumer: str) -> int:
        """Return how many groups a consumer owns."""
        return self._counts.get(consumer, 0)

    def take(self, consumer: str, member: Membership | None) -> Taking:
        """Let a consumer take a message, unless another owns its group.

        The number 1 gives the group to whoever is asked first, whoever owned it. A number below 0
        is the group's last, but only where it comes to an owner: of a group without one it is the
        beginning.
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
        """Let a consumer leave; its groups belong to nobody."""
        self.owners.remove_consumer(consumer)
        self._counts.pop(consumer, None)

    def fork(self) -> GroupRule:
        """Return an independent copy."""
        copy = object.__new__(GroupRule)
        copy.owners = self.owners.fork()
        copy._counts = self._counts.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return what is equal for rules that behave alike; counts follow from who owns what."""
        return self.owners.fingerprint()


def java_hash(text: str) -> int:
    """Return a text's hash as Java has it: over 16-bit units, in 32 bits.

    >>> java_hash("group")
    98629247
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = int32(31 * value + int.from_bytes(units[at : at + 2], "big"))
    return value
