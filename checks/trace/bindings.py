"""Bindings: which element of the contract each name of the protocol stands for.

The file owns the growing frame (queues, channels, consumers, entries with their rigid properties)
and the deliveries that clients hold. Bindings are immutable: every change returns new ones, so that
a search can fork them at no cost. They do not judge.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field

from brokerproof.checks.trace.ordering import is_after, replaces
from brokerproof.models.contract.core import Channel, Consumer, Entry, Mode, Queue
from brokerproof.models.contract.core_state import Group
from brokerproof.models.language.read.pointwise import Frame, Pointwise, World
from brokerproof.spec.messages import (
    Fifo,
    LastValue,
    Order,
    Sorted,
    Unordered,
    level_of,
    selects,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Consume,
    Declare,
    Get,
    Publish,
    Selector,
)

MODES = {
    "acknowledge": Mode.values.index("ACKNOWLEDGE"),
    "automatic": Mode.values.index("AUTOMATIC"),
    "browse": Mode.values.index("BROWSE"),
}

FOR_EVER = 1 << 40
"""The expiry time, in seconds, of a message that never expires."""


@dataclass(frozen=True)
class Held:
    """A delivery from the queue `home` that a client can settle, until its lease ends at `due`.

    A get has no `consumer`. A purge of what consumers hold leaves the delivery `voided`.
    """

    entry: int
    channel: str
    home: int
    due: int | None = None
    consumer: str | None = None
    voided: bool = False


@dataclass(frozen=True)
class Subscriber:
    """A consumer, or all gets of one queue, channel and mode: its element and its options.

    `homes` are the elements of its queues, since a name can be declared again. An `automatic` one
    settles each message as it is sent.
    """

    element: int
    homes: tuple[int, ...]
    channel: str
    selector: Selector | None = None
    auto_close: bool = False
    exclusive: bool = False
    automatic: bool = False


@dataclass(frozen=True)
class Bindings:
    """The element of each name of the protocol.

    `queues` are the present ones; a name that is declared again means another element. `consumers`
    are all that ever subscribed, `active` those that have not left. `parked` are publishes that
    wait for room, in their order and with the time of their request. `now` is how far the broker's
    clock was moved.
    """

    claims: Capabilities
    contract: Pointwise
    frame: Frame
    queues: dict[str, int] = field(default_factory=dict)
    declared: dict[str, Declare] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)
    consumers: dict[str, Subscriber] = field(default_factory=dict)
    getters: dict[tuple[str, str, str], Subscriber] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    published: dict[str, Publish] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    settled: dict[str, str] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()
    deliveries: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()
    parked: dict[str, tuple[Publish, int]] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    ranked: bool = False
    sized: bool = False
    now: int = 0
    down: bool = False
    dropped: int = 0
    """How many parked publishes went with their queue: their names are used too (rule 16)."""
    perhaps_left: frozenset[str] = frozenset()
    """Consumers that may have left: their cancel or close had no certain outcome."""
    unanswered: frozenset[str] = frozenset()
    """Messages for which the broker has not taken responsibility: a crash may lose them."""
    groups: dict[tuple[int, str | None], int] = field(default_factory=dict)
    """The element of each group, by the element of its queue and its name."""
    lapsed: frozenset[str] = frozenset()
    """Messages whose last settled delivery was settled by the end of its lease."""
    late: frozenset[str] = frozenset()
    """Messages that a client settled by a delivery whose lease was over."""
    untold: frozenset[str] = frozenset()
    """Messages whose lease has certainly ended and was not told as such."""

    @classmethod
    def empty(cls, claims: Capabilities, contract: Pointwise) -> tuple[Bindings, World]:
        """Return the bindings and the world right after a reset."""
        position = claims.release_position
        frame, world = contract.empty(
            {
                "returns_to_place": int(position == "original"),
                "to_tail": int(position == "tail"),
                "to_head": int(position == "head"),
                "when_idle": int(claims.oversize == "when_idle"),
                "horizon": FOR_EVER,
                "tells_returns": int(claims.redelivered != "none"),
                "tolerance": claims.tolerance_s,
                "one_by_one": int(claims.close == "each"),
                "snapshots": int(claims.browser == "snapshot"),
                "shows_held": int(claims.browser_sees == "all"),
                "purges_held": int(claims.purge_takes == "everything"),
                "tells_deletions": int(claims.deletion_told),
                "by_persistence": int(claims.order_within == "persistence"),
            }
        )
        return cls(claims, contract, frame), world

    def changed(self, **changes: object) -> Bindings:
        """Return bindings with some fields changed; searches do this for every operation."""
        other = object.__new__(Bindings)
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changes)
        return other

    def key(self) -> Hashable:
        """Return a value that is equal for bindings that judge alike, delivery ids aside."""
        return (
            self.frame,
            tuple(self.queues.items()),
            tuple(self.channels),
            tuple(self.declared.values()),
            tuple([self._attributes(each) for each in self.published.values()]),
            tuple([(name, each.element, _options(each)) for name, each in self.consumers.items()]),
            tuple([(key, subscriber.element) for key, subscriber in self.getters.items()]),
            self.active,
            tuple(sorted(self.settled)),
            tuple(
                sorted(
                    (h.entry, h.channel, h.due or 0, h.consumer or "", h.voided)
                    for h in self.held.values()
                )
            ),
            tuple(self.parked),
            (self.now, self.down, self.used, self.unanswered, self.lapsed, self.late, self.untold),
            self.dropped,
        )

    def _attributes(self, publish: Publish) -> Hashable:
        """Return what decides where a message goes, beside the messages and consumers of now."""
        message, declared, claims = publish.message, self.declared.get(publish.queue), self.claims
        level = declared and level_of(message.priority, declared.order, claims.priority_mapping)
        properties = repr(sorted(message.properties.items())) if message.properties else ""
        return message.id, level, message.size, message.persistent, message.group, properties

    # Queues and channels.

    def order_of(self, queue: str) -> Order:
        """Return the order of a present queue."""
        return self.declared[queue].order

    def with_queue(self, declare: Declare) -> Bindings:
        """Return the bindings with one more queue."""
        in_order_of_arrival = isinstance(declare.order, Fifo | LastValue | Unordered)
        buries = self.claims.dead_letters if declare.dead_letters is not None else ()
        element = self.frame.sizes[self.contract.families.index(Queue)]
        frame = self.contract.grow(
            self.frame,
            Queue,
            {
                "fifo": int(in_order_of_arrival),
                "deletes_itself": int(declare.auto_delete),
                "is_sorted_by_key": int(isinstance(declare.order, Sorted)),
                "ordered": int(not isinstance(declare.order, Unordered)),
                "lease": declare.lease_s or 0,
                "most": declare.deliveries or 0,
                "length": declare.length or 0,
                "drops_head": int(declare.overflow == "drop_head"),
                "buries_exhausted": int("exhausted" in buries),
                "buries_rejected": int("rejected" in buries),
                "subscribed": 0,
            },
        )
        return self.changed(
            frame=frame,
            queues=self.queues | {declare.queue: element},
            declared=self.declared | {declare.queue: declare},
            used=self.used - {declare.queue},
        )

    def without_queue(self, queue: str) -> Bindings:
        """Return the bindings after a queue has gone, with its consumers and messages.

        Its deliveries are settled: they must have no effect from now on.
        """
        home = self.queues[queue]
        gone = frozenset(self.subscribed_to(queue))
        taken = {k: v for k, v in self.held.items() if v.home == home}
        return self.changed(
            queues={k: v for k, v in self.queues.items() if k != queue},
            declared={k: v for k, v in self.declared.items() if k != queue},
            held={k: v for k, v in self.held.items() if k not in taken},
            settled=self.settled | {self.name_of_entry(v.entry): k for k, v in taken.items()},
            getters={k: v for k, v in self.getters.items() if k[0] != queue},
            parked={k: v for k, v in self.parked.items() if v[0].queue != queue},
            dropped=self.dropped + sum(v[0].queue == queue for v in self.parked.values()),
            active=self.active - gone,
        )

    def may_be_gone(self, queue: str, *, used: bool = False) -> bool:
        """Whether a queue may have deleted itself without an event so far.

        `used` says that it has had a consumer, as a subscription that may be over shows.
        """
        declared = self.declared.get(queue)
        if declared is None or not declared.auto_delete or not (used or queue in self.used):
            return False
        return all(self.consumers[name].auto_close for name in self.subscribed_to(queue))

    def subscribed_to(self, *queues: str) -> list[str]:
        """Return the active consumers of any of these queues, in the order of subscription."""
        homes = {self.queues.get(queue) for queue in queues}
        there = [name for name in self.consumers if name in self.active]
        return [name for name in there if homes & {*self.consumers[name].homes}]

    def with_channel(self, name: str) -> Bindings:
        """Return the bindings with this channel, which its first use makes."""
        if name in self.channels:
            return self
        frame = self.contract.grow(self.frame, Channel, {})
        return self.changed(frame=frame, channels=self.channels | {name: len(self.channels)})

    # Consumers and gets.

    def with_consumer(self, consume: Consume) -> Bindings:
        """Return the bindings with one more consumer."""
        credit, queues = consume.credit, consume.queues or (consume.queue,)
        bindings, subscriber = self._with_subscriber(
            Subscriber(
                self._subscribers(),
                tuple(self.queues[queue] for queue in queues),
                consume.channel,
                consume.selector,
                consume.auto_close,
                consume.exclusive,
                consume.mode == "automatic",
            ),
            {
                "mode": MODES[consume.mode],
                "limited": int(credit.messages is not None),
                "limit": credit.messages or 0,
                "rank": consume.priority,
                "closes_itself": int(consume.auto_close),
                "exclusive": int(consume.exclusive),
            },
        )
        return bindings.changed(
            consumers=bindings.consumers | {consume.consumer: subscriber},
            active=bindings.active | {consume.consumer},
            used=bindings.used | {*queues},
            ranked=bindings.ranked or consume.priority != 0,
            sized=bindings.sized or credit.bytes is not None,
        )

    def with_getter(self, get: Get) -> tuple[Bindings, int]:
        """Return the bindings with the subscriber for gets of this queue, channel and mode."""
        key = (get.queue, get.channel, get.mode)
        if key in self.getters:
            return self, self.getters[key].element
        bindings, subscriber = self._with_subscriber(
            Subscriber(self._subscribers(), (self.queues[get.queue],), get.channel),
            dict.fromkeys(("limited", "limit", "rank", "closes_itself", "exclusive"), 0)
            | {"mode": MODES[get.mode]},
        )
        return bindings.changed(getters=bindings.getters | {key: subscriber}), subscriber.element

    def _subscribers(self) -> int:
        return self.frame.sizes[self.contract.families.index(Consumer)]

    def _with_subscriber(
        self, subscriber: Subscriber, properties: dict[str, int]
    ) -> tuple[Bindings, Subscriber]:
        bindings = self.with_channel(subscriber.channel)
        at = {"channel": bindings.channels[subscriber.channel]}
        frame = bindings.contract.grow(bindings.frame, Consumer, properties | at)
        concerned = [n for n in bindings.messages if bindings.place_of(n)[0] in subscriber.homes]
        wanted = [
            n for n in concerned if selects(subscriber.selector, bindings.published[n].message)
        ]
        frame = _related(
            bindings.contract,
            frame,
            subscriber.element,
            wants=[bindings.messages[n] for n in wanted],
            concerned=[bindings.messages[n] for n in concerned],
            subscribed=[*subscriber.homes],
            visits=[e for e, grave in enumerate(self._graves()) if grave in subscriber.homes],
        )
        return bindings.changed(frame=frame), subscriber

    def element_of(self, consumer: str) -> int:
        """Return the element of a consumer."""
        return self.consumers[consumer].element

    # Messages.

    def names_used(self) -> int:
        """Return the number of messages so far: no name is used twice (rule 16)."""
        return len(self.messages) + len(self.parked) + self.dropped

    def with_group(self, publish: Publish) -> Bindings:
        """Return the bindings with the group of a message, which its first message makes."""
        key = self.queues[publish.queue], publish.message.group
        if key[1] is None or key in self.groups or not self.claims.groups:
            return self
        frame = self.contract.grow(self.frame, Group, {"home_of": key[0]})
        return self.changed(frame=frame, groups=self.groups | {key: len(self.groups)})

    def with_message(self, publish: Publish, unplaced: Collection[str] = ()) -> Bindings:
        """Return the bindings with one more entry, behind all that go before it.

        It may have arrived before an `unplaced` message, whose publish may still happen. Its times
        count from its publisher's request, parked or not.
        """
        message, home = publish.message, self.queues[publish.queue]
        order, claims = self.order_of(publish.queue), self.claims
        level = level_of(message.priority, order, claims.priority_mapping)
        element = len(self.messages)
        siblings = [
            (self.messages[name], other.message)
            for name, other in self.published.items()
            if self._home(name) == home
        ]
        later = [e for e, other in siblings if is_after(other, message, order, claims)]
        earlier = [e for e, other in siblings if is_after(message, other, order, claims)]
        ties = [e for e, _ in siblings if e not in later and e not in earlier]
        placed = {*ties} - {self.messages[name] for name in unplaced}
        replaced = [e for e, other in siblings if replaces(message, other, order)]
        subscribers = [*(self.consumers.values()), *(self.getters.values())]
        concerned = [subscriber for subscriber in subscribers if home in subscriber.homes]
        wanting = [subscriber for subscriber in concerned if selects(subscriber.selector, message)]
        group = self.groups.get((home, message.group))
        grave = self.queues.get(self.declared[publish.queue].dead_letters or "", home)
        due, until = publish.not_before_s, publish.expires_s
        _, asked = self.parked.get(message.id, (publish, self.now))
        frame = self.contract.grow(
            self.frame,
            Entry,
            {
                "before": _mask((*earlier, *placed)),
                "home": home,
                "level": level,
                "wants": _mask(subscriber.element for subscriber in wanting),
                "concerned": _mask(subscriber.element for subscriber in concerned),
                "size": message.size,
                "not_before": 0 if due is None else asked + due,
                "expires": FOR_EVER if until is None else asked + until,
                "replaces": _mask(replaced),
                "ties": _mask(ties),
                "survives": int(message.persistent and self.declared[publish.queue].durable),
                "persists": int(message.persistent),
                "grave": grave,
                "visits": _mask(s.element for s in subscribers if grave in s.homes),
                "group": 0 if group is None else group,
                "in_group": int(group is not None),
            },
        )
        return self.changed(
            frame=_related(
                self.contract, frame, element, before=later, ties=ties, replaces=replaced
            ),
            messages=self.messages | {message.id: element},
            published=self.published | {message.id: publish},
            parked={k: v for k, v in self.parked.items() if k != message.id},
        )

    def _home(self, message: str) -> int:
        return self.frame.rows[self.contract.row_of("home")][self.messages[message]]

    def _graves(self) -> tuple[int, ...]:
        """Return for each entry the element of its dead-letter queue; empty in other contracts."""
        known = [symbol.name for symbol in self.contract.rigid]
        return self.frame.rows[known.index("grave")] if "grave" in known else ()

    def dead_letters_of(self, queue: str) -> str | None:
        """Return the queue of the dead letters of a queue."""
        declared = self.declared.get(queue)
        return None if declared is None else declared.dead_letters

    def place_of(self, message: str) -> tuple[int, int]:
        """Return the elements of a message's queue and of the message, as actions take them."""
        return self._home(message), self.messages[message]

    def queue_of_message(self, message: str) -> str:
        """Return the queue that a message was published to."""
        return self.published[message].queue

    def can_be_accepted(self, message: str) -> bool:
        """Whether a publish is parked and is the first parked one of its queue.

        Parked publishes are accepted in order. That order shows only if events are told in order.
        """
        if message not in self.parked or self.claims.event_order == "per_consumer":
            return message in self.parked
        queue = self.parked[message][0].queue
        return message == next(n for n, (each, _) in self.parked.items() if each.queue == queue)

    # Deliveries.

    def with_delivery(self, delivery: str, held: Held | None) -> Bindings:
        """Return the bindings with one more delivery told; its queue may have gone with it."""
        deliveries = self.deliveries | {delivery}
        if held is None or held.home not in self.queues.values():
            return self.changed(deliveries=deliveries)
        late = self.late and self.late - {self.name_of_entry(held.entry)}
        return self.changed(deliveries=deliveries, held=self.held | {delivery: held}, late=late)

    def without_delivery(self, delivery: str) -> Bindings:
        """Return the bindings in which a delivery has been settled."""
        if delivery not in self.held:
            return self
        message = self.name_of_entry(self.held[delivery].entry)
        return self.changed(
            held={k: v for k, v in self.held.items() if k != delivery},
            settled=self.settled | {message: delivery},
            lapsed=self.lapsed - {message},
        )

    def without_consumer(self, consumer: str) -> Bindings:
        """Return the bindings in which a consumer has left; its name stays known."""
        return self.changed(active=self.active - {consumer})

    def without_channel(self, channel: str) -> Bindings:
        """Return the bindings after a channel closed: its consumers left, all held released."""
        stays = frozenset(c for c in self.active if self.consumers[c].channel != channel)
        return self.without_held(k for k, v in self.held.items() if v.channel == channel).changed(
            active=stays
        )

    def without_held(self, deliveries: Iterable[str]) -> Bindings:
        """Return the bindings after held deliveries went back with the consumers that had them."""
        gone = {name: self.name_of_entry(self.held[name].entry) for name in deliveries}
        return self.changed(
            held={k: v for k, v in self.held.items() if k not in gone},
            settled=self.settled | {message: name for name, message in gone.items()},
            lapsed=self.lapsed.difference(gone.values()),
        )

    def after_crash(self) -> Bindings:
        """Return the bindings of a broker that is down: only durable queues stay."""
        there = {name for name, declared in self.declared.items() if declared.durable}
        return self.changed(
            queues={k: v for k, v in self.queues.items() if k in there},
            declared={k: v for k, v in self.declared.items() if k in there},
            getters={k: v for k, v in self.getters.items() if k[0] in there},
            held={},
            active=frozenset(),
            parked={},
            dropped=self.dropped + len(self.parked),
            used=frozenset(),
            untold=frozenset(),
            down=True,
        )

    def entry_of_settled(self, delivery: str) -> int | None:
        """Return the entry whose last settled delivery this is."""
        found = (name for name, settled in self.settled.items() if settled == delivery)
        return next((self.messages[name] for name in found), None)

    def delivery_of(self, message: str) -> str | None:
        """Return the delivery that a client can settle for this message, if there is one."""
        entry = self.messages.get(message)
        return next((name for name, held in self.held.items() if held.entry == entry), None)

    def name_of_entry(self, entry: int) -> str:
        """Return the id of the message that an entry holds."""
        return next(name for name, element in self.messages.items() if element == entry)


def _mask(elements: Iterable[int]) -> int:
    return sum(1 << element for element in elements)


def _related(contract: Pointwise, frame: Frame, first: int, **lasts: list[int]) -> Frame:
    """Return the frame with an element in each of these relations that the contract has."""
    for symbol in contract.rigid:
        if lasts.get(symbol.name):
            frame = contract.relate(frame, symbol.name, first, lasts[symbol.name])
    return frame


def _options(subscriber: Subscriber) -> Hashable:
    """Return what decides which later messages a consumer is given, and how."""
    selector = None if subscriber.selector is None else repr(sorted(subscriber.selector.items()))
    return selector, subscriber.auto_close, subscriber.exclusive, subscriber.automatic
