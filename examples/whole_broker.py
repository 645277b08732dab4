"""A broker in memory that keeps every requirement of driver protocol 1, written to be read.

It is an example for implementers of a broker, and a second opinion: it was written from the
protocol's text alone and shares no algorithm with the reference broker or the contract. It is
simple: an operation changes the state, and then one loop runs until nothing more can happen. Three
neighbours each own a part:

  * `whole_broker_queue`: the entries of a queue, their order, and the place of a returned message;
  * `whole_broker_state`: consumers, windows, and the loop;
  * `whole_broker_claims`: the claims.

This file owns the operations, and when events are sent. Numbers in brackets are the rules of the
protocol. Try it, then break a rule and try again:

    brokerproof check examples/whole_broker.py:make_broker
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from msgspec.structs import replace

from brokerproof.spec.messages import Credit, PriorityMapping
from brokerproof.spec.protocol.answers import OK, Answer, ConsumerClosed, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello, Oversize, ReleasePosition
from brokerproof.spec.protocol.claimed import unclaimed
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Flush,
    Get,
    Inspect,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
)

# A file that the gate loads finds its neighbours by their bare names, a module by its package.
if TYPE_CHECKING or __package__:
    from .whole_broker_claims import everything
    from .whole_broker_queue import Queue, entry_for, fault_of
    from .whole_broker_state import UNLIMITED, Consumer, Options, State, hold_of
else:
    from whole_broker_claims import everything
    from whole_broker_queue import Queue, entry_for, fault_of
    from whole_broker_state import UNLIMITED, Consumer, Options, State, hold_of

Tells: TypeAlias = Literal["at_once", "at_drain"]


class WholeBroker:
    """A broker that claims everything, or less with `claims`.

    `parks_above` is the number of messages in a queue above which publishes to it wait. A broker
    that tells `at_drain` is lazy: it delivers to consumers at drain and flush only, and sends other
    events as late as the protocol allows.
    """

    def __init__(
        self,
        *,
        release_position: ReleasePosition = "original",
        oversize: Oversize = "never",
        priority_mapping: PriorityMapping = "amqp",
        parks_above: int | None = None,
        tells: Tells = "at_once",
        claims: Capabilities | None = None,
    ) -> None:
        if parks_above is not None and parks_above < 1:
            raise ValueError("a queue that never has room would park for ever")
        self.tells = tells
        self.claims = claims or everything(
            release_position=release_position,
            oversize=oversize,
            priority_mapping=priority_mapping,
            parks=parks_above is not None,
        )
        self.options = Options(
            release_position=release_position,
            oversize=oversize,
            priority_mapping=priority_mapping,
            parks_above=parks_above if self.claims.parks else None,
        )
        self.state = State(self.options)

    def hello(self) -> Hello:
        """Return name, version and claims; without effect (47)."""
        return Hello(name="whole-broker", version="1", capabilities=self.claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, let the broker come to rest, and return the events."""
        answer = self.admit(operation) or self.carry_out(operation)
        if self.tells == "at_once" or isinstance(operation, Drain | Flush):
            self.state.rest()
        else:
            # A consumer with nothing left ahead closes at once (6), even if its event comes
            # later; only deliveries, and events that make room for them, may wait for drain.
            while self.state.close_one():
                pass
            # The answer to a get has its own delivery, and so all earlier events; events from
            # before a crash cannot be sent later (2).
            if not isinstance(operation, Get | Crash):
                return answer
        told, self.state.outstanding = tuple(self.state.outstanding), []
        return Answer(told, answer.error, parked=answer.parked)

    def admit(self, operation: Operation) -> Answer | None:
        """Return an error while the broker is down (28), or if not claimed (15, 38)."""
        if self.state.is_down and not isinstance(operation, Reset | Restart):
            return refused("the broker is down")
        missing = unclaimed(operation, self.claims)
        return unsupported(missing) if missing else None

    def carry_out(self, operation: Operation) -> Answer:
        """Carry out one claimed operation; refuse invalid ones."""
        match operation:
            case Reset():
                self.state = State(self.options)  # what was not yet told is forgotten too (30)
            case Declare():
                return self.declare(operation)
            case Publish():
                return self.publish(operation)
            case Consume():
                return self.consume(operation)
            case SetCredit():
                return self.set_credit(operation)
            case Cancel():
                return self.cancel(operation)
            case Get():
                return self.get(operation)
            case Acknowledge() | Release() | Reject():
                return self.settle(operation)
            case CloseChannel():
                self.close_channel(operation.channel)
            case Purge():
                if operation.queue not in self.state.queues:
                    return refused(f"no queue {operation.queue}")
                self.state.queues[operation.queue].purge()
            case Delete():
                return self.delete(operation)
            case Crash():
                self.crash()
            case Restart():
                if not self.state.is_down:
                    return refused("the broker is up")
                self.state.is_down = False
            case Flush():
                if operation.consumer not in self.state.consumers:
                    return refused(f"no consumer {operation.consumer}")
            case Advance():
                return self.advance(operation)
            case Drain():
                pass  # rest does it
            case Inspect():
                return unsupported("inspect")
        return OK

    # What clients ask for.

    def declare(self, declare: Declare) -> Answer:
        """Make a queue; again with equal arguments changes nothing (26)."""
        queue = self.state.queues.setdefault(declare.queue, Queue(declare))
        return OK if queue.declared == declare else refused(f"{queue.name} was declared otherwise")

    def publish(self, publish: Publish) -> Answer:
        """Put a message into its queue, or park it behind the others until there is room."""
        queue = self.state.queues.get(publish.queue)
        if queue is None:
            return refused(f"no queue {publish.queue}")
        if fault := fault_of(publish, queue):
            return refused(fault)
        entry = entry_for(publish, queue.declared.order, self.options.priority_mapping)
        if queue.parked or not self.state.has_place(queue):
            queue.parked.append(entry)
            return Answer(parked=True)
        queue.add(entry)
        return OK

    def consume(self, consume: Consume) -> Answer:
        """Let a consumer or a browser subscribe, unless an exclusive one forbids it."""
        consumer = Consumer(consume, consume.credit)
        if consumer.name in self.state.consumers:
            return refused(f"{consumer.name} is in use")
        if consumer.queues[0] != consume.queue or len({*consumer.queues}) < len(consumer.queues):
            return refused("queues must begin with queue, and name each once")
        if _is_negative(consume.credit):
            return refused("a window below 0")
        for name in consumer.queues:
            if name not in self.state.queues:
                return refused(f"no queue {name}")
            others = self.state.consumers_of(name)
            if others and (consume.exclusive or any(other.asked.exclusive for other in others)):
                return refused(f"{name} has a consumer, and one of the two is exclusive")
        self.state.consumers[consumer.name] = consumer
        return OK

    def set_credit(self, credit: SetCredit) -> Answer:
        """Replace both limits of a window; unsettled deliveries count against them too (22)."""
        window = Credit(credit.messages, credit.bytes)
        if _is_negative(window) or (credit.consumer is None) == (credit.channel is None):
            return refused("a window below 0, or not of one consumer or one channel")
        if credit.channel is not None:
            self.state.channels[credit.channel] = window  # a channel is made by its first use (25)
            if window == UNLIMITED:
                del self.state.channels[credit.channel]
            return OK
        consumer = self.state.consumers.get(credit.consumer or "")
        if consumer is None:
            return refused(f"no consumer {credit.consumer}")  # or one that has just closed (39)
        self.state.consumers[consumer.name] = replace(consumer, window=window)
        return OK

    def cancel(self, cancel: Cancel) -> Answer:
        """Stop delivering to a consumer; its deliveries stay acquired (32)."""
        consumer = self.state.consumers.get(cancel.consumer)
        if consumer is None:
            return refused(f"no consumer {cancel.consumer}")
        self.state.drop_unused(self.state.leave([consumer]))
        return OK

    def get(self, get: Get) -> Answer:
        """Give the first available message, regardless of windows and consumers (18, 19)."""
        queue = self.state.queues.get(get.queue)
        if queue is None:
            return refused(f"no queue {get.queue}")
        at = queue.first()
        if at is not None:
            self.state.give(queue, at, None, get.channel, get.mode)
        return OK

    def settle(self, settlement: Acknowledge | Release | Reject) -> Answer:
        """Settle a delivery: back to the queue, or for good. One that is not held is refused (13).

        Deliveries to browsers and automatic consumers are not held.
        """
        for queue in self.state.queues.values():
            at = queue.held_as(settlement.delivery)
            if at is not None:
                if isinstance(settlement, Release):
                    queue.put_back(at, self.options.release_position)
                else:
                    del queue.entries[at]
                return OK
        return refused(f"no delivery {settlement.delivery}")

    def close_channel(self, channel: str) -> None:
        """Cancel the channel's consumers, release its deliveries, then drop unused queues (33).

        Messages return in the order of delivery (14). Closing an unknown channel is `ok` (25).
        """
        left = self.state.leave(
            [c for c in self.state.consumers.values() if c.asked.channel == channel]
        )
        for hold in [hold_of(entry) for entry in self.state.held()]:
            if hold.channel == channel:
                self.settle(Release(delivery=hold.delivery))
        self.state.channels.pop(channel, None)
        self.state.drop_unused(left)

    def delete(self, delete: Delete) -> Answer:
        """Drop a queue with everything in it, held or parked (17).

        Its consumers get an event, the queue's end has none (8). A consumer of several queues
        leaves the others too, which may be deleted with it: its closing comes before that (21).
        """
        if self.state.queues.pop(delete.queue, None) is None:
            return refused(f"no queue {delete.queue}")
        leaving = self.state.consumers_of(delete.queue)
        self.state.outstanding += [ConsumerClosed(consumer=consumer.name) for consumer in leaving]
        self.state.drop_unused(self.state.leave(leaving))
        return OK

    def crash(self) -> None:
        """Lose all but persistent messages of durable queues (27, 37), without an event (8)."""
        self.state.queues = {
            name: queue.after_crash()
            for name, queue in self.state.queues.items()
            if queue.declared.durable
        }
        self.state.consumers, self.state.channels, self.state.is_down = {}, {}, True

    def advance(self, advance: Advance) -> Answer:
        """Let time pass for delayed and expiring messages."""
        if advance.seconds < 0:
            return refused("time does not go back")
        for queue in self.state.queues.values():
            queue.advance(advance.seconds)
        return OK

    # For searches that copy a broker and compare two states.

    def fork(self) -> Self:
        """Return an independent copy."""
        other = copy.copy(self)
        other.state = self.state.copy()
        return other

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike up to names of deliveries."""
        return self.state.fingerprint()


def _is_negative(window: Credit) -> bool:
    return min(window.messages or 0, window.bytes or 0) < 0


def make_broker() -> WholeBroker:
    """Return a broker that puts returned messages back in their places."""
    return WholeBroker()


def make_tail_broker() -> WholeBroker:
    """Return a broker that puts returned messages behind their level."""
    return WholeBroker(release_position="tail")


def make_head_broker() -> WholeBroker:
    """Return a broker that puts returned messages ahead of all never delivered ones."""
    return WholeBroker(release_position="head")


def make_lazy_broker() -> WholeBroker:
    """Return a broker that delivers to consumers, and sends events, at drain only."""
    return WholeBroker(tells="at_drain")


def make_parking_broker() -> WholeBroker:
    """Return a broker whose queues hold two messages, and let further publishes wait."""
    return WholeBroker(parks_above=2)
