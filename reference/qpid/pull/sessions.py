"""The way of a notification from a consumer's target to the wire, and who carries it out.

Owns steps 4 to 9 of the document: targets that want to work make their session want to, sessions
their connection, and the connection schedules itself; the scheduler then runs it, and the work goes
back the same way. Refuses to know queues.

Each of the three keeps those who wait for it in a `ScheduledSet`: who is in it already is not added
again, and who is taken out can be added again at once, also while it still works. So nobody waits
twice, and no notification that comes after the taking is lost.

A connection's thread is a lock: whatever arrives on the connection is done under it, and so is the
connection's own work ("Consumers are always invoked from the consuming connection's IO-Thread").

Source: Qpid, pull consumers, sections Thread Model and Simple Flow; `ScheduledConsumerTargetSet`
and the iterators over what is pending are those of the releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from brokerproof.reference.shared.atomics import AtomicFlag, AtomicMap, Lock, atomic_steps

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.front.consumers import Consumer
    from brokerproof.reference.front.outbox import Executor
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.front.settings import ConnectionForm
    from brokerproof.reference.qpid.pull.targets import ConsumerTarget
    from brokerproof.reference.qpid.push.snapshots import Copies

DELIVERIES_A_RUN_MAX = 10
"""How many turns a connection takes before others have theirs; as many as the runner of a queue
delivers where queues push."""


class Schedulable(Protocol):
    """What can wait in a set, once: it carries the mark that it does."""

    @property
    def scheduled(self) -> AtomicFlag:
        """The mark."""
        ...


Item = TypeVar("Item", bound=Schedulable)


@atomic_steps(reads=("is_empty",), writes=("append", "take_first", "remove"))
class WaitingLine(Generic[Item]):
    """First in, first out; each method is one step, as those of Java's concurrent queue are."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Item] = []

    def append(self, item: Item) -> None:
        """Put an item at the end."""
        self.items.append(item)

    def take_first(self) -> Item | None:
        """Take the first item out, if there is one."""
        return self.items.pop(0) if self.items else None

    def remove(self, item: Item) -> None:
        """Take an item out, wherever it is."""
        if item in self.items:
            self.items.remove(item)

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self.items


class ScheduledSet(Generic[Item]):
    """Those who wait for a turn; each is in it exactly while it is marked (SCH-1)."""

    __slots__ = ("line",)

    def __init__(self) -> None:
        self.line: WaitingLine[Item] = WaitingLine()

    def add(self, item: Item) -> None:
        """Let an item wait, unless it does."""
        if item.scheduled.compare_and_set(False, True):
            self.line.append(item)

    def take(self) -> Item | None:
        """Take out who has waited longest; from now on it can be added again."""
        item = self.line.take_first()
        if item is not None:
            item.scheduled.compare_and_set(True, False)
        return item

    def remove(self, item: Item) -> None:
        """Take an item out that will have no turn any more."""
        self.line.remove(item)
        item.scheduled.compare_and_set(True, False)

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return self.line.is_empty()


class Session:
    """A client's channel, as far as it consumes."""

    __slots__ = ("all_targets", "channel", "connection", "scheduled", "targets")

    def __init__(self, channel: str, connection: Connection) -> None:
        self.channel = channel
        self.connection = connection
        self.targets: ScheduledSet[ConsumerTarget] = ScheduledSet()
        self.scheduled = AtomicFlag()
        self.all_targets: list[ConsumerTarget] = []

    def credit_changed(self) -> None:
        """Let all targets say again whether they want messages: they share a window."""
        for target in list(self.all_targets):
            target.credit_changed()

    def notify_work(self, target: ConsumerTarget) -> None:
        """Give a target a turn (step 4), and therefore want one itself (step 5)."""
        self.targets.add(target)
        self.connection.notify_work(self)

    def process_pending(self) -> bool:
        """Give one target its turn (step 9), and say whether any waits for one.

        Who has delivered something gets another turn, behind those who wait.
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
        """Give a session a turn, and therefore be run (step 6)."""
        self.sessions.add(session)
        self._schedule()

    def run(self) -> None:
        """Give sessions their turns (step 8), and schedule itself again if some are left.

        It can be scheduled again only when it has ended; what comes in between is looked for then.
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
        """Return that it serves others too: it is withdrawn for nobody."""
        return False

    def name(self) -> Hashable:
        """Return whose connection it is."""
        return self.name_of_client

    def fork(self, copies: Copies) -> Connection:
        """Return the connection of the copied broker."""
        return copies.clients.connection(self)

    def _schedule(self) -> None:
        if self.scheduled.compare_and_set(False, True):
            self.executor.execute(self)


class Clients:
    """The sessions of a broker that consume something, by their channels."""

    __slots__ = ("executor", "sessions", "shared")

    def __init__(self, form: ConnectionForm, executor: Executor) -> None:
        self.executor = executor
        self.sessions: AtomicMap[str, Session] = AtomicMap()
        self.shared = Connection("all channels", executor) if form == "shared" else None

    def session(self, channel: str) -> Session:
        """Return the session of a channel, on the connection that all share or on one of its own.

        A channel is one thread of its client, so nobody else asks for the same one meanwhile.
        """
        session = self.sessions.get(channel)
        if session is None:
            connection = self.shared or Connection(channel, self.executor)
            session = self.sessions[channel] = Session(channel, connection)
        return session

    def credit_changed(self, channel: str) -> None:
        """Note that the window of a channel was replaced, if it consumes anything."""
        session = self.sessions.get(channel)
        if session is not None:
            with session.connection.io_thread:
                session.credit_changed()

    def leave(self, session: Session) -> None:
        """Forget a session that consumes nothing any more."""
        session.connection.sessions.remove(session)
        self.sessions.pop(session.channel, None)
