"""The way of a notification from a consumer's target to the wire.

Owns steps 4 to 9 of the document. A target that wants to work notifies its session, a session its
connection, and the connection schedules itself. The scheduler runs it, and the work goes back the
same way. Queues are not known here.

Each of the three keeps its waiting members in a `ScheduledSet`. A member is not added twice, and
once taken out can be added again at once, even while it works. So no notification is lost.

A connection's thread is a lock, held for each operation on the connection and for its own work
("Consumers are always invoked from the consuming connection's IO-Thread").

Source: Qpid, pull consumers, sections Thread Model and Simple Flow; `ScheduledConsumerTargetSet`
and the iterators over pending members are those of the releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypeVar

from brokerproof.reference.shared.atomics import AtomicFlag, AtomicMap, Lock, atomic_steps

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.front.consumers import Consumer
    from brokerproof.reference.front.outbox import Executor
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.qpid.pull.targets import ConsumerTarget

ConnectionForm: TypeAlias = Literal["channel", "shared"]
"""Whether each channel has a connection of its own."""

DELIVERIES_A_RUN_MAX = 10
"""The number of turns a connection takes before others have theirs; the runner of a push queue
delivers as many."""


class Schedulable(Protocol):
    """A member of a `ScheduledSet`, with a flag that is set while it waits."""

    @property
    def scheduled(self) -> AtomicFlag:
        """The flag."""
        ...


Item = TypeVar("Item", bound=Schedulable)


@atomic_steps(reads=("is_empty",), writes=("append", "take_first", "remove"))
class WaitingLine(Generic[Item]):
    """First in, first out; each method is one atomic step, as in Java's concurrent queue."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Item] = []

    def append(self, item: Item) -> None:
        """Put an item at the end."""
        self.items.append(item)

    def take_first(self) -> Item | None:
        """Remove and return the first item, or None."""
        return self.items.pop(0) if self.items else None

    def remove(self, item: Item) -> None:
        """Remove an item, wherever it is."""
        if item in self.items:
            self.items.remove(item)

    def is_empty(self) -> bool:
        """Return whether no item waits."""
        return not self.items


class ScheduledSet(Generic[Item]):
    """The items that wait for a turn; an item is in it exactly while its flag is set (SCH-1)."""

    __slots__ = ("line",)

    def __init__(self) -> None:
        self.line: WaitingLine[Item] = WaitingLine()

    def add(self, item: Item) -> None:
        """Add an item, unless it waits already."""
        if item.scheduled.compare_and_set(False, True):
            self.line.append(item)

    def take(self) -> Item | None:
        """Remove the item that has waited longest; it can be added again from now on."""
        item = self.line.take_first()
        if item is not None:
            item.scheduled.compare_and_set(True, False)
        return item

    def remove(self, item: Item) -> None:
        """Remove an item that will have no turn any more."""
        self.line.remove(item)
        item.scheduled.compare_and_set(True, False)

    def is_empty(self) -> bool:
        """Return whether no item waits."""
        return self.line.is_empty()


class Session:
    """A client's channel with its consumers."""

    __slots__ = ("all_targets", "channel", "connection", "scheduled", "targets")

    def __init__(self, channel: str, connection: Connection) -> None:
        self.channel = channel
        self.connection = connection
        self.targets: ScheduledSet[ConsumerTarget] = ScheduledSet()
        self.scheduled = AtomicFlag()
        self.all_targets: list[ConsumerTarget] = []

    def credit_changed(self) -> None:
        """Update the interest of all targets: they share a window."""
        for target in list(self.all_targets):
            target.credit_changed()

    def notify_work(self, target: ConsumerTarget) -> None:
        """Schedule a target (step 4) and this session (step 5)."""
        self.targets.add(target)
        self.connection.notify_work(self)

    def process_pending(self) -> bool:
        """Give one target its turn (step 9); return whether any target waits.

        A target that has delivered a message waits for another turn, behind the others.
        """
        target = self.targets.take()
        if target is not None and target.process_pending():
            self.targets.add(target)
        return not self.targets.is_empty()


class Connection:
    """A client's connection: a job, whenever one of its sessions wants to work."""

    __slots__ = ("executor", "io_thread", "name_of_client", "scheduled", "sessions")

    def __init__(self, name_of_client: str, executor: Executor) -> None:
        self.name_of_client = name_of_client
        self.executor = executor
        self.io_thread = Lock()
        self.sessions: ScheduledSet[Session] = ScheduledSet()
        self.scheduled = AtomicFlag()

    def __repr__(self) -> str:
        return f"the work of {self.name_of_client}"

    def notify_work(self, session: Session) -> None:
        """Schedule a session, and this connection (step 6)."""
        self.sessions.add(session)
        self._schedule()

    def run(self) -> None:
        """Give sessions their turns (step 8), and schedule this job again if some are left.

        Notifications that come during a run do not schedule it; the check at the end finds them.
        """
        with self.io_thread:
            for _ in range(DELIVERIES_A_RUN_MAX):
                session = self.sessions.take()
                if session is None:
                    break
                if session.process_pending():
                    self.sessions.add(session)
        self.scheduled.compare_and_set(True, False)
        if not self.sessions.is_empty():
            self._schedule()

    def serves(self, leaving: AnyQueue | Consumer) -> bool:  # noqa: ARG002 - unasked
        """Return False: it serves other consumers too."""
        return False

    def name(self) -> Hashable:
        """Return the name of its client."""
        return self.name_of_client

    def _schedule(self) -> None:
        if self.scheduled.compare_and_set(False, True):
            self.executor.execute(self)


class Clients:
    """The consuming sessions of a broker, by their channels."""

    __slots__ = ("executor", "sessions", "shared")

    def __init__(self, form: ConnectionForm, executor: Executor) -> None:
        self.executor = executor
        self.sessions: AtomicMap[str, Session] = AtomicMap()
        self.shared = Connection("all channels", executor) if form == "shared" else None

    def session(self, channel: str) -> Session:
        """Return the session of a channel, on the shared connection or on one of its own.

        A channel is one thread of its client, so no other thread asks for the same session.
        """
        session = self.sessions.get(channel)
        if session is None:
            connection = self.shared or Connection(channel, self.executor)
            session = self.sessions[channel] = Session(channel, connection)
        return session

    def credit_changed(self, channel: str) -> None:
        """Handle a replaced window of a channel, if the channel consumes anything."""
        session = self.sessions.get(channel)
        if session is not None:
            with session.connection.io_thread:
                session.credit_changed()

    def leave(self, session: Session) -> None:
        """Forget a session without consumers."""
        session.connection.sessions.remove(session)
        self.sessions.pop(session.channel, None)
