"""The candidate interface in its Python form: two methods, typed operations and answers.

A candidate is held against the promises by handing it one typed operation at a time. What it does
not implement it answers with `unsupported`; it never raises for what a client did wrong. The two
optional protocols below let the gate copy a candidate, which turns sampling into a search of every
behaviour.

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
        """Return name, version and claims; without effect, and always the same."""
        ...

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation and tell the events that have happened since the last answer."""
        ...


@runtime_checkable
class Forkable(Protocol):
    """A candidate that can be copied faster than `pickle` would."""

    def fork(self) -> Self:
        """Return an independent copy: what is done to one is never seen by the other."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """A candidate that can name its state.

    Two states with equal fingerprints must behave alike for ever, up to the names of deliveries
    still to come. The search visits one of them.
    """

    def fingerprint(self) -> Hashable:
        """Return a value that is equal exactly for states that behave alike."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A candidate that holds something outside this process: a connection, a child, a folder."""

    def close(self) -> None:
        """Give it back; nothing is asked of the candidate afterwards."""
        ...


Unsynced: TypeAlias = Literal["lost", "torn", "kept"]
"""What a loss of power leaves of what was written and not synced: nothing, the first half of each
file's, or all."""


@runtime_checkable
class OnDisk(Protocol):
    """A candidate on a disk of its own whose power can go at any change: write, sync, removal.

    The operation meanwhile is answered `crashed`, with all that happened before; the candidate is
    down, and a restart brings it back. So it claims `durable`.
    """

    def changes(self) -> int:
        """Return how many changes the disk has been asked for; it grows, but for a reset."""
        ...

    def power_lasts(self, changes: int | None, unsynced: Unsynced = "lost") -> None:
        """Let the power go instead of the change after so many more; None is never."""
        ...


Start: TypeAlias = Callable[[str, Callable[[], None]], None]
"""Starts a thread, given its name and what it does."""


@runtime_checkable
class OnThreads(Protocol):
    """A candidate that several threads may hand operations to at once.

    What they share is cells and locks of `reference/shared/atomics.py`. It is handed over at rest.
    """

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Start what goes on by itself with `start` from now on; hand each event to `tell`.

        An event is told at the moment at which it happens, and is in no answer then.
        """
        ...
