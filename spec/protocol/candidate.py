"""The candidate interface in its Python form: two methods, typed operations and answers.

The gate checks a candidate by handing it one typed operation at a time. A candidate answers an
operation that it does not implement with `unsupported`, and never raises for a client's mistake.
The first two optional protocols below let the gate copy a candidate, which turns sampling into a
search of every behaviour.

A whole candidate can be this small::

    class Box:
        def hello(self) -> Hello:
            return Hello(name="box", version="1", capabilities=Capabilities(get=True))

        def handle(self, operation: Operation) -> Answer:
            match operation:
                case Reset():
                    self.messages = []
                    return OK
                case Publish(queue=queue, message=message):
                    ...
                case _:
                    return unsupported(name_of(operation))
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Literal, Protocol, Self, TypeAlias, runtime_checkable

from brokerproof.spec.protocol.answers import Answer, Event
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import Operation


class Candidate(Protocol):
    """A broker under the gate."""

    def hello(self) -> Hello:
        """Return name, version and capabilities; without effect, and always the same."""
        ...

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation and report the events since the last answer."""
        ...


@runtime_checkable
class Forkable(Protocol):
    """A candidate that can be copied faster than `pickle` would."""

    def fork(self) -> Self:
        """Return an independent copy: no change to one of the two is visible in the other."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """A candidate that can name its state.

    Two states with equal fingerprints must behave alike for ever, up to the names of later
    deliveries. The search visits one of them.
    """

    def fingerprint(self) -> Hashable:
        """Return a value that is equal exactly for states that behave alike."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A candidate that holds a resource outside this process: a connection, a child, a folder."""

    def close(self) -> None:
        """Give the resource back; the gate makes no further calls."""
        ...


Unsynced: TypeAlias = Literal["lost", "torn", "kept"]
"""What a power failure leaves of unsynced writes: nothing, the first half of each file's, or
all."""


@runtime_checkable
class OnDisk(Protocol):
    """A candidate on a disk of its own whose power can fail at any change: write, sync, removal.

    The interrupted operation is answered `crashed`, with all events so far. The candidate is then
    down until a restart, so it must claim `durable`.
    """

    def changes(self) -> int:
        """Return how many changes the disk was asked for; only a reset lowers the number."""
        ...

    def power_lasts(self, changes: int | None, unsynced: Unsynced = "lost") -> None:
        """Let the power fail instead of the change after `changes` more; None means never."""
        ...


Start: TypeAlias = Callable[[str, Callable[[], None]], None]
"""A function that starts a thread, given its name and its body."""


@runtime_checkable
class OnThreads(Protocol):
    """A candidate that several threads may hand operations to at once.

    The threads share only cells and locks of `reference/shared/atomics.py`. The gate hands the
    candidate over at rest.
    """

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Start the candidate's own threads with `start` from now on; pass each event to `tell`.

        `tell` is called at the moment of the event; no answer repeats the event.
        """
        ...
