"""The contract's actions for an operation, with their arguments.

The file translates operations that were carried out, or may have been. It does not judge: whether
a step is possible is found out when it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeGuard

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.possibilities import NOTHING, Step, one_of
from brokerproof.checks.trace.bindings import Bindings, Held
from brokerproof.checks.trace.leases import lapsed, leases_over, may_be_over, renewed
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
    Extend,
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
            home, entry = bindings.place_of(message.id)
            return (("publish", (entry,)), *_drops(bindings, (home,)))
        case Consume(consumer=consumer) if consumer in bindings.consumers:
            return _consuming(operation, bindings)
        case SetCredit(consumer=str(consumer)) if consumer in bindings.consumers:
            windows = window_of((operation.messages, operation.bytes))
            return (("set_credit", (bindings.element_of(consumer), *windows)),)
        case SetCredit(channel=str(channel)) if channel in bindings.channels:
            windows = window_of((operation.messages, operation.bytes))
            return (("set_pool", (bindings.channels[channel], *windows)),)
        case Cancel(consumer=consumer) if consumer in bindings.active:
            leaves: Step = ("cancel", (bindings.element_of(consumer),))
            return (leaves, *_returning(operation, bindings))
        case Acknowledge() | Release() | Reject() | Extend():
            return _settling(operation, bindings)
        case CloseChannel(channel=channel) if channel in bindings.channels:
            return (
                *_returning(operation, bindings),
                ("close_channel", (bindings.channels[channel],)),
            )
        case Purge(queue=queue) if queue in bindings.queues:
            return (("purge", (bindings.queues[queue],)), *_forgetting(queue, bindings))
        case Delete(queue=queue) if queue in bindings.queues:
            users = bindings.subscribed_to(queue)
            leave: list[Step] = [("leave", (bindings.element_of(name),)) for name in users]
            return (*leave, ("delete", (bindings.queues[queue],)))
        case Advance(seconds=seconds):
            ended = [held for _, held in leases_over(bindings, bindings.now + seconds)]
            return (
                ("advance", (seconds,)),
                *(("lease_ends", (held.entry,)) for held in ended),
                *_drops(bindings, {held.home for held in ended}),
            )
        case Crash():
            return (("crash", ()),)
        case Flush(consumer=consumer) if consumer in bindings.active:
            return (("flush", (bindings.element_of(consumer),)),)
        case _:
            return ()


def _consuming(consume: Consume, bindings: Bindings) -> tuple[Step, ...]:
    consumer = bindings.element_of(consume.consumer)
    if "set_credit" not in bindings.contract.actions:
        return (("consume", (consumer,)),)
    windows = window_of((consume.credit.messages, consume.credit.bytes))
    return (("consume", (consumer,)), ("set_credit", (consumer, *windows)))


def _settling(
    operation: Acknowledge | Release | Reject | Extend, bindings: Bindings
) -> tuple[Step, ...]:
    held = bindings.held.get(operation.delivery)
    if held is not None and held.due is None and isinstance(operation, Extend):
        return ()  # a queue without leases has none to renew
    if held is not None:
        step: Step = (name_of(operation), (held.entry,))
        if isinstance(operation, Release) and operation.delay_s is not None:
            step = "release_later", (held.entry, operation.delay_s)
        if may_be_over(held, bindings):
            step = one_of(step, ("settle_late", (held.entry,)))
        if held.voided:
            step = one_of(step, ("settle_again", (held.entry,)))
        return (step, *_drops(bindings, (held.home,)))
    if operation.delivery in bindings.doubtful:
        raise Unfollowable(f"it is not certain that {operation.delivery} was settled")
    entry = bindings.entry_of_settled(operation.delivery)
    if entry is None:
        return ()
    by_message = bindings.claims.settle_by == "message"
    if by_message and isinstance(operation, Extend):
        raise Unfollowable(f"it is not certain that {operation.delivery} renewed a lease")
    if by_message:
        by_name = "release" if isinstance(operation, Release) else "settle_by_name"
        return (one_of((by_name, (entry,)), NOTHING),)
    is_late = bindings.name_of_entry(entry) in bindings.lapsed
    return (("settle_late" if is_late else "settle_again", (entry,)),)


def leases_that_may_end(bindings: Bindings) -> Iterator[Step]:
    """Yield the ends of the leases that a broker in real time may see as over."""
    for held in bindings.held.values():
        if may_be_over(held, bindings):
            yield "lease_ends", (held.entry,)


def _drops(bindings: Bindings, homes: Iterable[int]) -> Iterator[Step]:
    """Yield the possible losses of queues that drop their first message when they are too long."""
    for name, home in bindings.queues.items():
        if home in homes and bindings.declared[name].overflow == "drop_head":
            drop: list[Step] = [
                ("drop_head", (home, entry))
                for message, entry in bindings.messages.items()
                if bindings.place_of(message)[0] == home
            ]
            yield one_of(*drop, ("keep_all", (home,)))


def returns_in_order(bindings: Bindings) -> bool:
    """Whether the order in which messages are returned makes a difference."""
    claims = bindings.claims
    moves = claims.release_position in ("head", "tail")
    return moves or claims.groups or "drop_head" in claims.length_limit


def held_when_leaving(operation: Cancel | CloseChannel, bindings: Bindings) -> list[str]:
    """Return the deliveries that go back with a cancelled consumer, or with a closed channel."""
    if isinstance(operation, CloseChannel):
        return [name for name, held in bindings.held.items() if held.channel == operation.channel]
    if bindings.claims.cancel == "keeps":
        return []
    return [name for name, held in bindings.held.items() if held.consumer == operation.consumer]


def leaves_by_consumer(operation: Operation, bindings: Bindings) -> TypeGuard[CloseChannel]:
    """Whether the consumers of a closing channel leave one after another.

    Then what one held may be given to the next one before that leaves too.
    """
    return isinstance(operation, CloseChannel) and bindings.claims.close == "each"


def told_to_leavers(
    operation: CloseChannel, answer: Answer, bindings: Bindings
) -> tuple[list[tuple[str, list[Event]]], tuple[Event, ...]]:
    """Return a closing channel's consumers as they leave, their events, and all others.

    What was told to a consumer happened before it left. No document says which consumer leaves
    first. Those with something held or told leave as they subscribed, and the others before them:
    the broker then owes these nothing, so this asks the least of it.
    """
    leavers = [
        name
        for name, subscriber in bindings.consumers.items()
        if name in bindings.active and subscriber.channel == operation.channel
    ]
    told: dict[str, list[Event]] = {name: [] for name in leavers}
    others: list[Event] = []
    for event in answer.events:
        consumer = event.consumer if isinstance(event, Delivered) else None
        told.get(consumer or "", others).append(event)
    concerned = {held.consumer for held in bindings.held.values()}
    in_turn = sorted(told.items(), key=lambda each: bool(each[1]) or each[0] in concerned)
    return in_turn, tuple(others)


def leaving(consumer: str, bindings: Bindings) -> tuple[tuple[Step, ...], Bindings]:
    """Return the steps by which a consumer of a closing channel leaves, and the bindings then."""
    held = [name for name, each in bindings.held.items() if each.consumer == consumer]
    back = tuple(_returned(bindings.held[name], bindings) for name in held)
    leaves: Step = ("cancel", (bindings.element_of(consumer),))
    return (leaves, *back), bindings.without_consumer(consumer).without_held(held)


def _returned(held: Held, bindings: Bindings) -> Step:
    back: Step = ("release_at_close", (held.entry,))
    loses = bindings.claims.release == "none"
    return one_of(("reject", (held.entry,)), back) if loses else back


def _returning(operation: Cancel | CloseChannel, bindings: Bindings) -> tuple[Step, ...]:
    """Return the releases of what goes back, in the order of delivery.

    A channel closes in one step if its messages return to their own places.
    """
    may_lose = bindings.claims.release == "none"
    if isinstance(operation, CloseChannel) and not (may_lose or returns_in_order(bindings)):
        return ()
    held = [bindings.held[name] for name in held_when_leaving(operation, bindings)]
    return tuple(
        step
        for each in held
        for step in (_returned(each, bindings), *_drops(bindings, (each.home,)))
    )


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
    closing: tuple[str, ...] = ()
    if isinstance(operation, Consume) and operation.auto_close:
        closing = (operation.queue, *operation.queues)
    refuse_lost_deletions(bindings_after(operation, bindings), *closing)
    quiet = isinstance(operation, CERTAIN) and not answer.events and not bindings.active
    return ("crash" if quiet else "crash_at_work"), ()


def refuse_lost_deletions(bindings: Bindings, *closing: str) -> None:
    """Raise `Unfollowable` if a crash now may hide that a durable queue has deleted itself.

    Then its event is lost. `closing` are the queues of a consumer that may have closed itself too.
    """
    for name, declared in bindings.declared.items():
        if declared.durable and bindings.may_be_gone(name, used=name in closing):
            raise Unfollowable(f"the broker went down, and {name} may have deleted itself before")


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
    if not _gives_back_one_by_one(operation, bindings):
        return (), answer.events
    own = [_is_of_the_leaving(event, operation, bindings) for event in answer.events]
    if in_order:
        last = len(own) - own[::-1].index(True) if any(own) else 0
        return answer.events[:last], answer.events[last:]
    told = list(zip(answer.events, own, strict=True))
    return tuple(e for e, is_own in told if is_own), tuple(e for e, is_own in told if not is_own)


def _gives_back_one_by_one(operation: Operation, bindings: Bindings) -> bool:
    """Whether messages go back by steps of their own as a consumer or a channel leaves."""
    claims = bindings.claims
    if isinstance(operation, CloseChannel):
        return claims.release == "none" or returns_in_order(bindings)
    return isinstance(operation, Cancel) and claims.cancel == "returns"


def _is_of_the_leaving(event: Event, operation: Operation, bindings: Bindings) -> bool:
    """Whether an event is a delivery to a consumer that leaves."""
    if not isinstance(event, Delivered) or event.consumer not in bindings.consumers:
        return False
    if isinstance(operation, Cancel):
        return event.consumer == operation.consumer
    assert isinstance(operation, CloseChannel)
    return bindings.consumers[event.consumer].channel == operation.channel


def was_settled_late(operation: Operation, bindings: Bindings) -> bool:
    """Whether the message of a settlement was settled by a delivery whose lease was over."""
    held = bindings.held.get(getattr(operation, "delivery", ""))
    return held is not None and bindings.name_of_entry(held.entry) in bindings.late


def bindings_after(operation: Operation, bindings: Bindings) -> Bindings:
    """Return the bindings after an operation was carried out: names that end, and the clock.

    Raises `Unfollowable` for a crash that may hide the deletion of a queue.
    """
    match operation:
        case Acknowledge() | Release() | Reject():
            return _without_delivery(operation.delivery, bindings)
        case Extend(delivery=delivery) if delivery in bindings.held:
            return renewed(bindings, delivery)
        case CloseChannel(channel=channel):
            return bindings.without_channel(channel)
        case Cancel(consumer=consumer):
            back = held_when_leaving(operation, bindings)
            return bindings.without_consumer(consumer).without_held(back)
        case Purge(queue=queue) if bindings.claims.purge_takes == "everything":
            return _voided(queue, bindings)
        case Delete(queue=queue) if queue in bindings.queues:
            return bindings.without_queue(queue)
        case Advance(seconds=seconds):
            now = bindings.now + seconds
            for delivery, _ in leases_over(bindings, now):
                bindings = lapsed(bindings, delivery)
            return bindings.changed(now=now)
        case Crash():
            refuse_lost_deletions(bindings)
            return bindings.after_crash()
        case _:
            return bindings


def _forgetting(queue: str, bindings: Bindings) -> Iterator[Step]:
    """Yield what a purge of held messages may do to their windows: free the room, or not yet."""
    if bindings.claims.purge_takes == "everything":
        for held in bindings.held.values():
            if held.home == bindings.queues[queue]:
                yield one_of(("forget_held", (held.entry,)), NOTHING)


def with_doubts_about(operation: Operation, bindings: Bindings) -> Bindings:
    """Return the bindings after an operation that may have happened.

    Deliveries that it would have settled are doubtful: no later operation uses them.
    """
    unanswered, leaving = bindings.unanswered, frozenset[str]()
    gone: Iterable[str] = ()
    match operation:
        case Publish(message=message) if message.id in bindings.messages:
            unanswered |= {message.id}
        case Acknowledge() | Release() | Reject():
            gone = {operation.delivery} & bindings.held.keys()
        case Cancel(consumer=consumer):
            gone = held_when_leaving(operation, bindings)
            leaving = frozenset((consumer,)) & bindings.active
        case CloseChannel(channel=channel):
            gone = held_when_leaving(operation, bindings)
            leaving = frozenset(
                name for name in bindings.active if bindings.consumers[name].channel == channel
            )
        case _:
            pass
    doubtful = frozenset(gone)
    return bindings.changed(
        held={name: held for name, held in bindings.held.items() if name not in doubtful},
        doubtful=bindings.doubtful | doubtful,
        perhaps_left=bindings.perhaps_left | leaving,
        unanswered=unanswered,
    )


def _voided(queue: str, bindings: Bindings) -> Bindings:
    """Return the bindings after a purge of what consumers hold, too."""
    home = bindings.queues.get(queue)
    return bindings.changed(
        held={
            name: replace(held, voided=held.voided or held.home == home)
            for name, held in bindings.held.items()
        }
    )


def _without_delivery(delivery: str, bindings: Bindings) -> Bindings:
    """Settle a delivery; one that names its message may have settled a later one with it."""
    known = bindings.held.get(delivery)
    entry = bindings.entry_of_settled(delivery) if known is None else known.entry
    bindings = bindings.without_delivery(delivery)
    if known is None and entry is not None and bindings.name_of_entry(entry) in bindings.lapsed:
        bindings = bindings.changed(late=bindings.late | {bindings.name_of_entry(entry)})
    if bindings.claims.settle_by == "message":
        for other in [name for name, held in bindings.held.items() if held.entry == entry]:
            bindings = bindings.without_delivery(other)
    return bindings
