"""The contract's actions for an operation, with their arguments.

The file translates operations that were carried out, or may have been. It does not judge: whether
a step is possible is found out when it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.possibilities import Step
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.spec.protocol.answers import Answer, Delivered, Event
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Delete,
    Drain,
    Flush,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    SetCredit,
    name_of,
)

MAY_FLOAT = (
    Publish,
    Cancel,
    Acknowledge,
    Release,
    Reject,
    CloseChannel,
    Purge,
)
"""Operations of a single step; without an answer, that step may happen at any time."""


def window_of(credit: tuple[int | None, int | None]) -> tuple[int, int, int, int]:
    """Return windows of messages and bytes as the contract's actions take them."""
    messages, size = credit
    return int(messages is not None), messages or 0, int(size is not None), size or 0


def steps_of(operation: Operation, bindings: Bindings) -> tuple[Step, ...]:
    """Return the contract's actions for an operation; the bindings know all names in it."""
    match operation:
        case Publish(message=message) if message.id in bindings.messages:
            return (("publish", (bindings.messages[message.id],)),)
        case Consume(consumer=consumer) if consumer in bindings.consumers:
            return _consuming(operation, bindings)
        case SetCredit(consumer=str(consumer)) if consumer in bindings.consumers:
            windows = window_of((operation.messages, operation.bytes))
            return (("set_credit", (bindings.element_of(consumer), *windows)),)
        case SetCredit(channel=str(channel)) if channel in bindings.channels:
            windows = window_of((operation.messages, operation.bytes))
            return (("set_pool", (bindings.channels[channel], *windows)),)
        case Cancel(consumer=consumer) if consumer in bindings.active:
            return (("cancel", (bindings.element_of(consumer),)),)
        case Acknowledge() | Release() | Reject():
            return _settling(operation, bindings)
        case CloseChannel(channel=channel) if channel in bindings.channels:
            return (
                *_returning(channel, bindings),
                ("close_channel", (bindings.channels[channel],)),
            )
        case Purge(queue=queue) if queue in bindings.queues:
            return (("purge", (bindings.queues[queue],)),)
        case Delete(queue=queue) if queue in bindings.queues:
            users = bindings.subscribed_to(queue)
            leave: list[Step] = [("leave", (bindings.element_of(name),)) for name in users]
            return (*leave, ("delete", (bindings.queues[queue],)))
        case Advance(seconds=seconds):
            return (("advance", (seconds,)),)
        case Crash():
            return (("crash", ()),)
        case Flush(consumer=consumer) if consumer in bindings.active:
            return (("flush", (bindings.element_of(consumer),)),)
        case _:
            return ()


def _consuming(consume: Consume, bindings: Bindings) -> tuple[Step, ...]:
    who = bindings.element_of(consume.consumer)
    if "set_credit" not in bindings.contract.actions:
        return (("consume", (who,)),)
    windows = window_of((consume.credit.messages, consume.credit.bytes))
    return (("consume", (who,)), ("set_credit", (who, *windows)))


def _settling(operation: Acknowledge | Release | Reject, bindings: Bindings) -> tuple[Step, ...]:
    held = bindings.held.get(operation.delivery)
    if held is not None:
        return ((name_of(operation), (held.entry,)),)
    if operation.delivery in bindings.doubtful:
        raise Unfollowable(f"it is not certain that {operation.delivery} was settled")
    entry = bindings.entry_of_settled(operation.delivery)
    return () if entry is None else (("settle_again", (entry,)),)


def returns_in_order(bindings: Bindings) -> bool:
    """Whether the order in which messages are returned makes a difference."""
    return bindings.claims.release_position in ("head", "tail")


def _returning(channel: str, bindings: Bindings) -> tuple[Step, ...]:
    """Return the releases at the closing of a channel, in the order of delivery.

    If messages return to their own places the order makes no difference, and closing is one step.
    """
    if not returns_in_order(bindings):
        return ()
    held = (held.entry for held in bindings.held.values() if held.channel == channel)
    return tuple(("release_at_close", (entry,)) for entry in held)


CERTAIN = (Publish, Acknowledge, Release, Reject)
"""Operations that deliver nothing by themselves: cut off, they have happened or not."""

VOLATILE = (Get, Consume, Cancel, CloseChannel, SetCredit, Drain)
"""Operations that leave no trace in a broker that is down, except that a message was acquired."""


def own_crash(operation: Operation, answer: Answer, bindings: Bindings) -> Step:
    """Return the crash that an answer of `crashed` reports (driver protocol 1, rules 15 and 29).

    The operation happened before the crash or not at all; a restart comes next. Its deliveries may
    be lost on their way to the gate, so their messages count as acquired or not; so do those that a
    purge has left. Raises `Unfollowable` if the rest cannot be judged: a consumer that settles
    nothing may have got untold messages, or a queue may exist or not.
    """
    if not bindings.claims.durable:
        raise Unfollowable("the broker went down by itself, and comes back only by a reset")
    settles_nothing = any(bindings.consumers[name].automatic for name in bindings.active)
    if isinstance(operation, Get | Consume):
        settles_nothing |= operation.mode == "automatic"
    if settles_nothing:
        raise Unfollowable("the broker went down by itself, and may have handed something out")
    if not isinstance(operation, (*CERTAIN, *VOLATILE, Purge)):
        raise Unfollowable(f"the broker went down by itself during {name_of(operation)}")
    quiet = isinstance(operation, CERTAIN) and not answer.events and not bindings.active
    return ("crash" if quiet else "crash_at_work"), ()


def drops_in(step: Step, bindings: Bindings) -> Iterator[Step]:
    """Yield the possible losses in a crash: messages whose publish had no answer."""
    for message in sorted(bindings.unanswered) if step[0].startswith("crash") else ():
        yield "drop_in_a_crash", bindings.place_of(message)


def events_around(
    operation: Operation, answer: Answer, bindings: Bindings, *, in_order: bool
) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Return the events that certainly happened before the operation, and the others.

    Only a get's own delivery marks the operation's place among events, and only if they are told
    `in_order`. It is left out here, since the operation itself reports it. Events told with a crash
    precede it, and so do those told with a closing channel that returns messages in order.
    """
    if isinstance(operation, Get):
        for index, event in enumerate(answer.events):
            if isinstance(event, Delivered) and event.consumer is None:
                before, after = answer.events[:index], answer.events[index + 1 :]
                return (before, after) if in_order else ((), (*before, *after))
    if isinstance(operation, Crash | Flush):
        return answer.events, ()
    if isinstance(operation, CloseChannel) and returns_in_order(bindings):
        last = 0
        for number, event in enumerate(answer.events, start=1):
            if isinstance(event, Delivered) and event.consumer in bindings.consumers:
                subscriber = bindings.consumers[event.consumer]
                last = number if subscriber.channel == operation.channel else last
        return answer.events[:last], answer.events[last:]
    return (), answer.events
