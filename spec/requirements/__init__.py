"""The catalogue of requirements, each with its level and its source in a document.

This package holds the requirements on what clients see, and the loader that refuses a malformed
file. Those on the inside of a queue are the `gate` of an invariant of its system. The formal
meaning is in `models`: a requirement's id is the label of a guard or the name of an invariant
there, and a test holds the two lists together.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

import msgspec

from brokerproof.spec.catalogues import CatalogueError, all_of, decoded

OFFERED = frozenset(
    (
        "on_threads",
        *("places", "counters", "consumer-lists"),
        *("backing-queue", "on-disk", "stores", "q1", "q2", "q3", "delta", "target"),
        "behind-pending",
        "queue-process",
        *("cursor", "unread", "audit", "paged-in", "with-consumers", "returned", "by-level"),
        *("memory", "memory-limit", "parked", "spilled", "served"),
    )
)
"""What a candidate may offer beside its capabilities: optional protocols of its Python form, and
parts of the view of its queues (of pointers, with paging, with cursors)."""


OF_SYSTEMS: Final = tuple(f"brokerproof.spec.{each}" for each in ("activemq", "qpid", "rabbitmq"))
"""The packages with the invariants of a documented system."""


class Level(Enum):
    """How binding a requirement is: stated plainly in a document, or only recommended there."""

    MUST = "MUST"
    SHOULD = "SHOULD"


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source: a section of a document, or versions of a broker's code."""

    document: str
    section: str = ""
    versions: str = ""

    def __str__(self) -> str:
        return f"{self.document}, {self.section or self.versions}"

    def is_in_form(self) -> bool:
        """Whether the source names either a section or versions, and not both."""
        return bool(self.section) != bool(self.versions)


ADDRESSES: Final[Mapping[str, str]] = {
    "Qpid Design - Message Delivery": (
        "http://cwiki.apache.org/confluence/display/qpid/Qpid+Design+-+Message+Delivery"
    ),
    "Amazon SQS Developer Guide": (
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    ),
    "beanstalkd: Protocol": (
        "https://github.com/beanstalkd/beanstalkd/blob/master/doc/protocol.txt"
    ),
    "AMQP 1.0, Part 3: Messaging": (
        "https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-messaging-v1.0-os.html"
    ),
    "RabbitMQ: Quorum Queues": "https://www.rabbitmq.com/docs/quorum-queues",
    "RabbitMQ: Dead Letter Exchanges": "https://www.rabbitmq.com/docs/dlx",
    "RabbitMQ: Queue Length Limit": "https://www.rabbitmq.com/docs/maxlength",
    "Apache Qpid Broker-J: Handling Undeliverable Messages": (
        "https://qpid.apache.org/components/broker-j/"
    ),
    "STOMP Protocol Specification, Version 1.2": (
        "https://stomp.github.io/stomp-specification-1.2.html"
    ),
    "AMQP 0-9-1 Reference": "https://www.rabbitmq.com/amqp-0-9-1-reference",
    "RabbitMQ: Consumer Cancel Notification": "https://www.rabbitmq.com/docs/consumer-cancel",
    "Apache Qpid, issues": "https://issues.apache.org/jira/projects/QPID",
    "Java Message Service 1.1": "https://jcp.org/aboutJava/communityprocess/final/jsr914/",
    "Qpid Java broker, releases": "https://github.com/apache/qpid-broker-j",
    "RabbitMQ, releases": "https://github.com/rabbitmq/rabbitmq-server",
    "ActiveMQ, releases": "https://github.com/apache/activemq",
}
"""The web address of each cited document that has a known one."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One requirement.

    `situation` says in words when a fault against it would show; only such situations count as
    exercise. `needs` are the capabilities without which it is not checked: ``get``, ``browse``,
    ``credit:messages``, ``orders:priority``, ``modes:acknowledge`` and the like, or a name in
    `OFFERED`; alternatives are separated by ``|``.
    """

    id: str
    level: Level
    statement: str
    situation: str
    sources: tuple[Source, ...]
    needs: tuple[str, ...] = ()
    core: bool = False


class OfAView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the gate asks of a view of a queue; `situation` and `needs` are those of a requirement.

    `statement` is set if a view shows only a part of the invariant. `broken_by` is the planted
    fault that only this requirement finds.
    """

    statement: str = ""
    situation: str
    needs: tuple[str, ...]
    broken_by: str


class _Invariant(msgspec.Struct, frozen=True):
    """The part of an invariant that makes a requirement; `invariants` reads all of it."""

    id: str
    statement: str
    sources: tuple[Source, ...]
    gate: OfAView | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    requirement: tuple[Requirement, ...] = ()
    invariant: tuple[_Invariant, ...] = ()


def _requirements(file: _File) -> Iterator[Requirement]:
    yield from file.requirement
    for each in file.invariant:
        if gate := each.gate:
            yield Requirement(
                id=each.id,
                level=Level.MUST,
                statement=gate.statement or each.statement,
                situation=gate.situation,
                sources=each.sources,
                needs=("inspect", *gate.needs),
            )


def read_catalogue(name: str, text: str) -> tuple[Requirement, ...]:
    """Return the requirements of one catalogue file; raises `CatalogueError`."""
    file = decoded(name, text, _File)
    if not file.requirement and not file.invariant:
        raise CatalogueError(f"{name}: no requirement and no invariant")
    found = tuple(_requirements(file))
    for requirement in found:
        if not requirement.sources:
            raise CatalogueError(f"{name}: {requirement.id} has no source")
        if not all(source.is_in_form() for source in requirement.sources):
            raise CatalogueError(f"{name}: {requirement.id}: a source names a section, or versions")
    return found


@functools.cache
def catalogue() -> dict[str, Requirement]:
    """Return all requirements by id, in the order of the files and of their lines."""
    return all_of((__package__ or __name__, *OF_SYSTEMS), read_catalogue)
