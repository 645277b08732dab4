"""The window that the consumers of a channel share: it is exact, and no consumer starves beside it.

Source: Qpid, Message Delivery, Flow Control; `Pre0_10CreditManager` for the window, and the pull
consumers for the wake-up when room comes back. The ids CR-1 to CR-5 and RUN-8 are those of later
notes on Qpid.

A channel has a limit of messages and one of bytes (0: none), and a remainder of each. A message
larger than the byte limit may go if nothing is unsettled. Room is taken before the acquisition, and
given back once: at a lost race or at the settlement. A consumer takes its messages in order, and
rests at the first without room. A thread that gives back room or changes the limits drives all
consumers that may have waited for it; a thread that makes a message a consumer's first drives that
consumer. A consumer clears its mark before it looks, so room that comes later drives it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Order,
    action,
    axiom,
    counts,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    not_negative,
    require,
)
from brokerproof.models.qpid.threads.equivalent_mutants import by_name
from brokerproof.models.qpid.threads.equivalent_mutants_of_entries import CHANNEL_CREDIT


class Channel(Family):
    """A channel, with the one window of its consumers."""


class Consumer(Family):
    """A consumer, together with the one thread at a time that delivers to it."""


class Message(Family):
    """A message for one consumer, and the thread that settles it."""


class Delivered(Enumeration):
    """The stage of a message's delivery."""

    ABSENT: ClassVar[Delivered]
    WAITS: ClassVar[Delivered]
    HAS_ROOM: ClassVar[Delivered]
    IS_SENT: ClassVar[Delivered]
    IS_FETCHED: ClassVar[Delivered]
    IS_GONE: ClassVar[Delivered]


class Taking(Enumeration):
    """What a consumer does at the moment."""

    RESTS: ClassVar[Taking]
    LOOKS: ClassVar[Taking]
    ACQUIRES: ClassVar[Taking]
    GIVES_UP: ClassVar[Taking]


class ChannelCredit(Model):
    """Channels with windows, and consumers that share them."""

    equivalent_mutants: ClassVar[Mapping[str, str]] = by_name(CHANNEL_CREDIT)

    channel: Fixed[Consumer, Channel]
    consumer: Fixed[Message, Consumer]
    size: Fixed[Message, Int]
    before: Order[Message]

    limit: Map[Channel, Int]
    byte_limit: Map[Channel, Int]
    left: Map[Channel, Int]
    bytes_left: Map[Channel, Int]
    unsettled: Map[Channel, Int]
    unsettled_bytes: Map[Channel, Int]

    delivered: Map[Message, Delivered]
    found_room: Map[Message, Bool]
    taking: Map[Consumer, Taking]
    driven: Map[Consumer, Bool]
    tells: Map[Message, Bool]
    gave_back: Map[Message, Bool]
    was_changed: Map[Channel, Bool]

    @axiom("sizes-are-not-negative")
    def sizes_are_not_negative(self) -> Bool:
        """A message's size is at least 0."""
        return forall(Message, lambda m: self.size[m] >= 0)

    @initial
    def empty(self) -> None:
        """No window is limited, and no message has arrived."""
        self.limit.fill(0)
        self.byte_limit.fill(0)
        self.left.fill(0)
        self.bytes_left.fill(0)
        self.unsettled.fill(0)
        self.unsettled_bytes.fill(0)
        self.delivered.fill(Delivered.ABSENT)
        self.found_room.fill(False)
        self.taking.fill(Taking.RESTS)
        self.driven.fill(False)
        self.tells.fill(False)
        self.gave_back.fill(False)
        self.was_changed.fill(False)

    def fills(self, which: Channel, m: Message) -> Bool:
        """Whether a message takes room of the channel's window."""
        there = (self.delivered[m] == Delivered.HAS_ROOM) | (self.delivered[m] == Delivered.IS_SENT)
        return there & (self.channel_of(m) == which)

    @counts("unsettled", by=("limits-are-not-negative",))
    def is_unsettled(self, which: Channel, m: Message) -> Bool:
        """The unsettled messages of a channel, over all its consumers (CR-4)."""
        return self.fills(which, m)

    @counts("unsettled_bytes", weighing="size", by=("limits-are-not-negative",))
    def is_unsettled_in_bytes(self, which: Channel, m: Message) -> Bool:
        """The unsettled bytes of a channel, over all its consumers."""
        return self.fills(which, m)

    def channel_of(self, m: Message) -> Channel:
        """Return the channel on which a message is sent."""
        return self.channel[self.consumer[m]]

    def is_next(self, c: Consumer, m: Message) -> Bool:
        """Whether a message is the first that waits for the consumer."""
        return self.waits_for(c, m) & ~exists(
            Message, lambda f: self.waits_for(c, f) & self.before(f, m)
        )

    def waits_for(self, c: Consumer, m: Message) -> Bool:
        """Whether a message waits for the consumer."""
        return (self.delivered[m] == Delivered.WAITS) & (self.consumer[m] == c)

    def has_room(self, which: Channel, size: Int) -> Bool:
        """Whether a message of this size may pass; one above the limit passes only alone."""
        left, limit = self.bytes_left[which], self.byte_limit[which]
        return self.has_messages_left(which) & ((limit == 0) | (left >= size) | (left == limit))

    def has_messages_left(self, which: Channel) -> Bool:
        """Whether the message window lets one more message through."""
        return (self.limit[which] == 0) | (self.left[which] > 0)

    def has_credit(self, which: Channel) -> Bool:
        """Whether at least a message without a body may pass."""
        return self.has_messages_left(which) & (
            (self.byte_limit[which] == 0) | (self.bytes_left[which] >= 0)
        )

    # The actions of clients.

    @action
    def set_limits(self, which: Channel, messages: Int, size: Int) -> None:
        """A client replaces the limits; the remainders change by the difference."""
        require((messages >= 0) & (size >= 0))
        self.left[which] = self.left[which] + messages - self.limit[which]
        self.bytes_left[which] = self.bytes_left[which] + size - self.byte_limit[which]
        self.limit[which] = messages
        self.byte_limit[which] = size
        self.was_changed[which] = True

    @action
    def settle(self, m: Message, goes_back: Bool) -> None:
        """A client settles a delivery: the room comes back, with the message or without it."""
        require(self.delivered[m] == Delivered.IS_SENT)
        self._gives_back(m, ite(goes_back, Delivered.WAITS, Delivered.IS_GONE))
        self.tells[m] = self.tells[m] | goes_back

    @action
    def send_again(self, m: Message) -> None:
        """An unsettled message is sent again; its room stays taken."""
        require(self.delivered[m] == Delivered.IS_SENT)

    @action
    def settle_fetched(self, m: Message, goes_back: Bool) -> None:
        """A client settles a message fetched by a get, which had taken no room."""
        require(self.delivered[m] == Delivered.IS_FETCHED)
        self.delivered[m] = ite(goes_back, Delivered.WAITS, Delivered.IS_GONE)
        self.tells[m] = self.tells[m] | goes_back

    # The actions of the broker.

    @action
    def arrive(self, m: Message) -> None:
        """A message arrives behind all others."""
        require(self.delivered[m] == Delivered.ABSENT)
        require(
            forall(
                Message,
                lambda f: implies(self.delivered[f] != Delivered.ABSENT, self.before(f, m)),
            )
        )
        self.delivered[m] = Delivered.WAITS
        self.tells[m] = True

    @action
    def fetch(self, m: Message) -> None:
        """A get or another subscription takes a message, so another may be the first now."""
        require(self.delivered[m] == Delivered.WAITS)
        self.delivered[m] = Delivered.IS_FETCHED
        self.tells[m] = True

    @action
    def tell(self, m: Message) -> None:
        """The consumer for which another message may be the first now is driven."""
        require(self.tells[m])
        self.tells[m] = False
        self.driven[self.consumer[m]] = True

    @action
    def drive(self, m: Message) -> None:
        """A settlement gave back room: all consumers of its channel are driven."""
        require(self.gave_back[m])
        self.gave_back[m] = False
        self._drive(self.channel_of(m))

    @action
    def drive_for_limits(self, which: Channel) -> None:
        """The limits have changed: all consumers of the channel are driven."""
        require(self.was_changed[which])
        self.was_changed[which] = False
        self._drive(which)

    @action
    def look(self, c: Consumer) -> None:
        """A driven consumer clears its mark and looks."""
        require((self.taking[c] == Taking.RESTS) & self.driven[c])
        self.driven[c] = False
        self.taking[c] = Taking.LOOKS

    @action
    def find_nothing(self, c: Consumer) -> None:
        """No message waits for the consumer."""
        require(self.taking[c] == Taking.LOOKS)
        require(forall(Message, lambda m: ~self.waits_for(c, m)))
        self.taking[c] = Taking.GIVES_UP

    @action
    def decline(self, c: Consumer, m: Message) -> None:
        """There is no room for the first message that waits for the consumer."""
        require((self.taking[c] == Taking.LOOKS) & self.is_next(c, m))
        require(~self.has_room(self.channel[c], self.size[m]))
        self.taking[c] = Taking.GIVES_UP

    @action
    def rest(self, c: Consumer) -> None:
        """The consumer rests until it is driven; that may have happened since it looked."""
        require(self.taking[c] == Taking.GIVES_UP)
        self.taking[c] = Taking.RESTS

    @action
    def take_room(self, c: Consumer, m: Message) -> None:
        """There is room for the consumer's first message, and the room is taken."""
        not_negative(self.unsettled_bytes)
        require((self.taking[c] == Taking.LOOKS) & self.is_next(c, m))
        require(self.has_room(self.channel[c], self.size[m]))
        which = self.channel[c]
        self.found_room[m] = self.has_room(which, self.size[m])
        self.left[which] = self.left[which] - 1
        self.bytes_left[which] = self.bytes_left[which] - self.size[m]
        self.unsettled[which] = self.unsettled[which] + 1
        self.unsettled_bytes[which] = self.unsettled_bytes[which] + self.size[m]
        self.delivered[m] = Delivered.HAS_ROOM
        self.taking[c] = Taking.ACQUIRES

    @action
    def send(self, m: Message) -> None:
        """The message is acquired and sent, and the consumer looks for another."""
        require(self.delivered[m] == Delivered.HAS_ROOM)
        self.delivered[m] = Delivered.IS_SENT
        self.taking[self.consumer[m]] = Taking.LOOKS

    @action
    def miss(self, m: Message) -> None:
        """Another thread was faster: the room comes back as if it had not been taken (RUN-8)."""
        require(self.delivered[m] == Delivered.HAS_ROOM)
        self._gives_back(m, Delivered.IS_FETCHED)
        self.taking[self.consumer[m]] = Taking.LOOKS

    def _gives_back(self, m: Message, then: Delivered) -> None:
        """Give back room; in a later step, consumers that may have waited for it are driven."""
        which = self.channel_of(m)
        had = self.has_credit(which)
        self.left[which] = self.left[which] + 1
        self.bytes_left[which] = self.bytes_left[which] + self.size[m]
        self.unsettled[which] = self.unsettled[which] - 1
        self.unsettled_bytes[which] = self.unsettled_bytes[which] - self.size[m]
        self.gave_back[m] = self.gave_back[m] | self.is_news(which, had)
        self.delivered[m] = then

    def is_news(self, which: Channel, had: Bool) -> Bool:
        """Whether a consumer may have gained room; with byte limits, any increase may suffice."""
        return self.has_credit(which) & (~had | (self.byte_limit[which] != 0))

    def _drive(self, which: Channel) -> None:
        self.driven = self.driven.map(lambda c, old: old | (self.channel[c] == which))

    # Invariants.

    @invariant("what-is-left-is-exact", by=("limits-are-not-negative",))
    def left_is_exact(self) -> Bool:
        """The remainder is the limit less the unsettled, of either sign (CR-1, CR-3, RUN-8)."""
        return forall(
            Channel,
            lambda ch: (
                (self.left[ch] == self.limit[ch] - self.unsettled[ch])
                & (self.bytes_left[ch] == self.byte_limit[ch] - self.unsettled_bytes[ch])
            ),
        )

    @invariant("limits-are-not-negative")
    def limits_are_not_negative(self) -> Bool:
        """A limit is at least 0; 0 means no limit."""
        return forall(Channel, lambda ch: (self.limit[ch] >= 0) & (self.byte_limit[ch] >= 0))

    @invariant("what-is-sent-found-room", by=("what-is-sent-found-room",))
    def sent_found_room(self) -> Bool:
        """Every message that takes room found that room in the window (CR-2)."""
        return forall(
            Message,
            lambda m: implies(
                (self.delivered[m] == Delivered.HAS_ROOM)
                | (self.delivered[m] == Delivered.IS_SENT),
                self.found_room[m],
            ),
        )

    @invariant("one-takes-room-at-a-time", by=("one-takes-room-at-a-time",))
    def one_takes_room(self) -> Bool:
        """A consumer acquires one message at a time."""
        return forall(
            Message,
            lambda m: implies(
                self.delivered[m] == Delivered.HAS_ROOM,
                self.taking[self.consumer[m]] == Taking.ACQUIRES,
            ),
        ) & forall(
            Message,
            Message,
            lambda m, f: implies(
                (self.delivered[m] == Delivered.HAS_ROOM)
                & (self.delivered[f] == Delivered.HAS_ROOM)
                & (self.consumer[m] == self.consumer[f]),
                m == f,
            ),
        )

    @invariant("who-has-taken-room-has-a-message", by=("one-takes-room-at-a-time",))
    def room_is_for_a_message(self) -> Bool:
        """A consumer acquires the message for which it has taken room."""
        return forall(
            Consumer,
            lambda c: implies(
                self.taking[c] == Taking.ACQUIRES,
                exists(
                    Message,
                    lambda m: (self.delivered[m] == Delivered.HAS_ROOM) & (self.consumer[m] == c),
                ),
            ),
        )

    @invariant(
        "no-consumer-rests-beside-room", by=("limits-are-not-negative", "what-is-left-is-exact")
    )
    def nobody_rests(self) -> Bool:
        """If a resting consumer has room for its next message, a thread will drive it (CR-5)."""

        def somebody_drives(c: Consumer) -> Bool:
            which = self.channel[c]
            return self.was_changed[which] | exists(
                Message,
                lambda f: (
                    (self.tells[f] & (self.consumer[f] == c))
                    | (self.gave_back[f] & (self.channel_of(f) == which))
                ),
            )

        return forall(
            Consumer,
            Message,
            lambda c, m: implies(
                ((self.taking[c] == Taking.RESTS) | (self.taking[c] == Taking.GIVES_UP))
                & ~self.driven[c]
                & self.is_next(c, m)
                & self.has_room(self.channel[c], self.size[m]),
                somebody_drives(c),
            ),
        )

    @leads_to(
        "each-consumer-with-room-looks",
        fair=("tell", "drive", "drive_for_limits", "look", "rest"),
    )
    def has_room_looks(self, c: Consumer, m: Message) -> tuple[Bool, Bool]:
        """If there is room for its next message, a consumer looks in the end (CR-5)."""
        has_room = self.has_room(self.channel[c], self.size[m])
        return self.is_next(c, m) & has_room, self.taking[c] == Taking.LOOKS

    @leads_to("each-consumer-that-took-room-looks-on", fair=("send", "miss"))
    def acquiring_ends(self, c: Consumer) -> tuple[Bool, Bool]:
        """A consumer that has taken room sends or gives the room back, and looks for more."""
        return self.taking[c] == Taking.ACQUIRES, self.taking[c] == Taking.LOOKS

    @leads_to("what-is-to-be-told-is-told", fair=("tell",))
    def telling_ends(self, m: Message) -> tuple[Bool, Bool]:
        """A thread that makes a message the first drives its consumer in the end."""
        return self.tells[m], ~self.tells[m] & self.driven[self.consumer[m]]

    @leads_to("each-thread-that-gave-back-room-drives", fair=("drive",))
    def driving_ends(self, m: Message) -> tuple[Bool, Bool]:
        """A thread that gives back room drives the channel's consumers in the end."""
        return self.gave_back[m], ~self.gave_back[m] & self.driven[self.consumer[m]]

    @leads_to("changed-limits-are-driven-for", fair=("drive_for_limits",))
    def changing_ends(self, which: Channel) -> tuple[Bool, Bool]:
        """A thread that changes the limits drives the channel's consumers in the end."""
        return self.was_changed[which], ~self.was_changed[which]
