"""A broker in memory that keeps every promise of driver protocol 1, written to be read.

It is an example for those who implement a broker, and a second opinion: it was written from the
protocol's text alone and shares no algorithm with the reference broker or the contract. It is as
simple as it can be: an operation changes the state, and then one loop goes round until nothing more
can happen. Three neighbours each own a part:

  * `whole_broker_queue`: what is in a queue, in which order, and where a returned message goes;
  * `whole_broker_state`: consumers, windows, and the loop;
  * `whole_broker_claims`: what is claimed, and what an operation asks beyond that.

Here is what clients ask for, and when they are told. Numbers in brackets are the rules of the
protocol. Try it, then break a rule and try again:

    brokerproof check examples/whole_broker.py:make_broker
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from msgspec.structs import replace

from brokerproof.spec.protocol.answers import OK, Answer, ConsumerClosed, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello, Oversize, ReleasePosition
from brokerproof.spec.protocol.messages import Credit, PriorityMapping
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
    from .whole_broker_claims import everything, not_claimed
    from .whole_broker_queue import Queue, entry_for, fault_of
    from .whole_broker_state import UNLIMITED, Consumer, Options, State, hold_of
else:
    from whole_broker_claims import everything, not_claimed
    from whole_broker_queue import Queue, entry_for, fault_of
    from whole_broker_state import UNLIMITED, Consumer, Options, State, hold_of

Tells: TypeAlias = Literal["at_once", "at_drain"]


class WholeBroker:
    """A broker that claims everything, or what `claims` says if that is less.

    `parks_above` is how many messages a queue may hold until publishes to it wait. A broker that
    tells `at_drain` is lazy: consumers are given something at drain and flush only, and what else
    happens is told as late as the protocol allows.
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
        """Carry out one operation, let things come to rest, and tell what has happened."""
        answer = self.admit(operation) or self.carry_out(operation)
        if self.tells == "at_once" or isinstance(operation, Drain | Flush):
            self.state.rest()
        else:
            # A consumer with nothing left ahead closes as soon as that is so (6), whenever that is
            # told; only deliveries, and what makes room for them, may wait for drain.
            while self.state.close_one():
                pass
            # What get gives is told by its own answer, and so what went before it; of what happened
            # before a crash nothing can be told later (2).
            if not isinstance(operation, Get | Crash):
                return answer
        told, self.state.outstanding = tuple(self.state.outstanding), []
        return Answer(told, answer.error, parked=answer.parked)

    def admit(self, operation: Operation) -> Answer | None:
        """Answer what is not taken while the broker is down (28), or not claimed (15, 38)."""
        if self.state.is_down and not isinstance(operation, Reset | Restart):
            return refused("the broker is down")
        missing = not_claimed(operation, self.claims)
        return unsupported(missing) if missing else None

    def carry_out(self, operation: Operation) -> Answer:
        """Carry out one operation that is claimed; refuse what makes no sense."""
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
        """Make a queue; once more with everything equal changes nothing (26)."""
        queue = self.state.queues.setdefault(declare.queue, Queue(declare))
        return OK if queue.declared == declare else refused(f"{queue.name} was declared otherwise")

    def publish(self, publish: Publish) -> Answer:
        """Put a message into its queue, or let it wait until there is room, behind those before."""
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
        """Let a consumer or a browser subscribe, where no exclusive one stands against it."""
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
        """Replace both limits of a window; what is held counts against the new ones too (22)."""
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
        """Stop delivering to a consumer; what it holds stays acquired (32)."""
        consumer = self.state.consumers.get(cancel.consumer)
        if consumer is None:
            return refused(f"no consumer {cancel.consumer}")
        self.state.drop_unused(self.state.leave([consumer]))
        return OK

    def get(self, get: Get) -> Answer:
        """Give the first message that is available, whatever windows and consumers say (18, 19)."""
        queue = self.state.queues.get(get.queue)
        if queue is None:
            return refused(f"no queue {get.queue}")
        at = queue.first()
        if at is not None:
            self.state.give(queue, at, None, get.channel, get.mode)
        return OK

    def settle(self, settlement: Acknowledge | Release | Reject) -> Answer:
        """Let a message go: back to the queue, or for good. What is not held is refused (13).

        What is shown to a browser, or taken by one that settles nothing, is not held.
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
        """Let all its consumers leave, release what it holds, then drop unused queues (33).

        Messages return in the order of delivery (14). Closing an unknown channel is well (25).
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

        Its consumers did not ask for that and are told; the queue's end is not (8). One of several
        queues leaves the others too, which may go with it: a closing comes before that (21).
        """
        if self.state.queues.pop(delete.queue, None) is None:
            return refused(f"no queue {delete.queue}")
        leaving = self.state.consumers_of(delete.queue)
        self.state.outstanding += [ConsumerClosed(consumer=consumer.name) for consumer in leaving]
        self.state.drop_unused(self.state.leave(leaving))
        return OK

    def crash(self) -> None:
        """Lose all but persistent messages of durable queues (27, 37); nothing tells it (8)."""
        self.state.queues = {
            name: queue.after_crash()
            for name, queue in self.state.queues.items()
            if queue.declared.durable
        }
        self.state.consumers, self.state.channels, self.state.is_down = {}, {}, True

    def advance(self, advance: Advance) -> Answer:
        """Let time go by for all that waits or expires."""
        if advance.seconds < 0:
            return refused("time does not go back")
        for queue in self.state.queues.values():
            queue.advance(advance.seconds)
        return OK

    # For searches that copy a broker and ask whether two are in the same state.

    def fork(self) -> Self:
        """Return an independent copy."""
        other = copy.copy(self)
        other.state = self.state.copy()
        return other

    def fingerprint(self) -> Hashable:
        """Return what is equal for states that behave alike up to the names of deliveries."""
        return self.state.fingerprint()


def _is_negative(window: Credit) -> bool:
    return min(window.messages or 0, window.bytes or 0) < 0


def make_broker() -> WholeBroker:
    """Return a broker that puts what is returned back where it was."""
    return WholeBroker()


def make_tail_broker() -> WholeBroker:
    """Return a broker that puts what is returned behind its level."""
    return WholeBroker(release_position="tail")


def make_head_broker() -> WholeBroker:
    """Return a broker that puts what is returned ahead of all that was never delivered."""
    return WholeBroker(release_position="head")


def make_lazy_broker() -> WholeBroker:
    """Return a broker that gives its consumers something, and tells, at drain only."""
    return WholeBroker(tells="at_drain")


def make_parking_broker() -> WholeBroker:
    """Return a broker whose queues hold two messages, and let further publishes wait."""
    return WholeBroker(parks_above=2)
