"""Operations that must succeed, and those that must be refused: never both, as in a sound broker.

The whole broker of the examples was written from the protocol's text alone. Along its random runs
the test tries every operation of a long list on a copy, and compares the answer with the
obligation. The twins at the end show that the comparison notices a broker that refuses too much,
and one that refuses nothing.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.obligations import is_let_in, must_be_refused, must_succeed
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.models.language.read.pointwise import World
from brokerproof.spec.messages import Credit, Fifo, Message, Priority, Sorted
from brokerproof.spec.protocol.answers import OK, Answer, refused
from brokerproof.spec.protocol.capabilities import Capabilities
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
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
    name_of,
)
from examples.whole_broker import WholeBroker, make_lazy_broker
from examples.whole_broker_claims import everything

QUEUES = ("q0", "q1", "sorted", "nowhere")
CONSUMERS = ("c0", "c1", "closing", "nobody")


def of_queues() -> Iterator[Operation]:
    """Yield operations about queues, some of them impossible."""
    for queue in QUEUES:
        order = Sorted("k") if queue == "sorted" else Fifo()
        yield Declare(queue=queue, order=order)
        yield Declare(queue=queue, order=Priority(3))
        yield Declare(queue=queue, order=order, durable=True)
        yield Declare(queue=queue, order=order, auto_delete=True)
        yield Get(channel="ch0", queue=queue)
        yield Get(channel="ch1", queue=queue, mode="automatic")
        yield Purge(queue=queue)
        yield Delete(queue=queue)


def of_messages() -> Iterator[Operation]:
    """Yield publishes of messages of all kinds; `NEXT` stands for a message that is new."""
    for queue, priority in itertools.product(QUEUES, (0, 9, 10, -1)):
        key = {"k": 1} if queue == "sorted" else {}
        message = Message(id=NEXT, priority=priority, persistent=True, properties={**key})
        yield Publish(queue=queue, message=message)
    yield Publish(queue="q0", message=Message(id=NEXT, size=5), not_before_s=1)
    yield Publish(queue="q0", message=Message(id=NEXT), expires_s=1)
    yield Publish(queue="sorted", message=Message(id=NEXT))


def of_consumers() -> Iterator[Operation]:
    """Yield operations about consumers, their windows and their channels."""
    for name, queue in itertools.product(CONSUMERS, QUEUES):
        closes = name == "closing"
        yield Consume(channel="ch0", queue=queue, consumer=name, auto_close=closes)
    asked = Consume(channel="ch1", queue="q0", consumer="c1", credit=Credit(1))
    yield asked
    yield replace(asked, mode="browse")
    yield replace(asked, mode="automatic")
    yield replace(asked, exclusive=True)
    yield replace(asked, priority=-1, selector={"k": 1})
    yield replace(asked, queues=("q0", "q1"))
    yield replace(asked, queues=("q0", "nowhere"))
    yield replace(asked, credit=Credit(-1))
    for name in CONSUMERS:
        yield Cancel(consumer=name)
        yield Flush(consumer=name)
        for window in (0, 2, None, -1):
            yield SetCredit(consumer=name, messages=window)
            yield SetCredit(consumer=name, bytes=window)
    for channel, window in itertools.product(("ch0", "ch9"), (1, None, -1)):
        yield SetCredit(channel=channel, messages=window)


def of_the_rest() -> Iterator[Operation]:
    """Yield settlements, and operations of the whole broker."""
    for delivery in ("d0", "d1", "d2", "d3", "unknown"):
        yield from (kind(delivery=delivery) for kind in (Acknowledge, Release, Reject))
    yield from (CloseChannel(channel=channel) for channel in ("ch0", "ch1", "ch9"))
    yield from (Drain(), Crash(), Restart(), Advance(seconds=1), Advance(seconds=-1))


NEXT = "the next"
OPERATIONS = [*of_queues(), *of_messages(), *of_consumers(), *of_the_rest()]
DECLARATIONS: list[Operation] = [each for each in OPERATIONS if isinstance(each, Declare)]
COMMON: list[Operation] = [
    each for each in OPERATIONS if isinstance(each, Publish | Consume | Get | Restart)
]


def asked(operation: Operation, oracle: Oracle) -> Operation:
    """Return the operation in its current form: every message is a new one."""
    if isinstance(operation, Publish):
        name = f"m{len(oracle.bindings.messages)}"
        return replace(operation, message=replace(operation.message, id=name))
    return operation


def runs(
    broker: WholeBroker, number: int, length: int = 25
) -> Iterator[tuple[WholeBroker, Oracle]]:
    """Yield the states that random runs of a broker come to, the same each time."""
    for seed in range(number):
        chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
        broker.handle(Reset())
        oracle = Oracle(broker.hello().capabilities)
        for step in range(length):
            yield broker, oracle
            pool = DECLARATIONS if step < 2 else OPERATIONS
            pool = COMMON if step > 1 and chosen.random() < 0.6 else pool
            operation = asked(chosen.choice(pool), oracle)
            if isinstance(operation, Consume) and _has_left(operation.consumer, oracle):
                continue  # no name is used twice (rule 25)
            assert oracle.observe(operation, broker.handle(operation)) == [], operation


def _has_left(consumer: str, oracle: Oracle) -> bool:
    return consumer in oracle.bindings.consumers and consumer not in oracle.bindings.active


def contradictions(broker: WholeBroker, number: int) -> Iterator[str]:
    """Yield where a broker does not do as it is obliged to."""
    for at, oracle in runs(broker, number):
        for each in OPERATIONS:
            operation = asked(each, oracle)
            answer = at.fork().handle(operation)
            why_not = must_be_refused(operation, oracle.bindings)
            if must_succeed(operation, oracle.bindings) and not answer.ok:
                yield f"{name_of(operation)} must succeed: {answer}"
            if why_not and (answer.error is None or not answer.error.definite):
                yield f"{name_of(operation)} must be refused ({why_not}): {answer}"


def test_a_sound_broker_does_what_it_must_and_refuses_what_it_must() -> None:
    assert list(contradictions(WholeBroker(), 40)) == []


def test_nothing_must_both_succeed_and_be_refused_and_each_kind_comes_to_both() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for _, oracle in runs(WholeBroker(), 40):
        for each in OPERATIONS:
            operation = asked(each, oracle)
            why_not = must_be_refused(operation, oracle.bindings)
            succeeds = must_succeed(operation, oracle.bindings)
            assert not (why_not and succeeds), operation
            seen[name_of(operation), "refused" if why_not else "ok" if succeeds else "open"] += 1
    names = {name_of(each) for each in OPERATIONS}
    assert {name for name, what in seen if what == "ok"} == names
    assert {name for name, what in seen if what == "refused"} == names


def disagreements(
    number: int,
    is_let_in: Callable[[Consume, Bindings], bool] = is_let_in,
    may_be_gone: Callable[[Bindings, str], bool] = Bindings.may_be_gone,
) -> Iterator[str]:
    """Yield where the names disagree with the contract on exclusive consumers or unused queues."""
    for _, oracle in runs(make_lazy_broker(), number):
        bindings, contract = oracle.bindings, oracle.rules.contract
        worlds = [world for world, _, _ in oracle.window.rows[-1].cases]
        for queue, element in bindings.queues.items():
            gone = [
                contract.take(bindings.frame, w, "queue_deleted", (element,))[0] for w in worlds
            ]
            if any(gone) and not may_be_gone(bindings, queue):
                yield "unused"
        for each in OPERATIONS:
            if isinstance(each, Consume) and not must_be_refused(each, bindings):
                grown = bindings.with_consumer(each)
                step = "consume", (grown.element_of(each.consumer),)
                there = [_in(grown, world, bindings) for world in worlds]
                blames = [b for w in there for b in contract.take(grown.frame, w, *step)[1]]
                if is_let_in(each, bindings) == any("exclusive-is-alone" in b for b in blames):
                    yield "exclusive"


def _in(grown: Bindings, world: World, before: Bindings) -> World:
    contract = grown.contract
    sizes = zip(contract.families, grown.frame.sizes, before.frame.sizes, strict=True)
    for family, new, old in sizes:
        for _ in range(new - old):
            world = contract.grown(world, family)
    return world


def test_names_and_contract_agree_on_exclusive_consumers_and_unused_queues() -> None:
    assert [*disagreements(30)] == []


def test_names_that_let_all_in_or_know_no_unused_queue_are_found_out() -> None:
    found = disagreements(30, lambda *_: True, lambda *_: False)
    assert {*found} == {"exclusive", "unused"}


class Grumpy(WholeBroker):
    """Refuses a second declaration of a queue."""

    def declare(self, declare: Declare) -> Answer:
        """Make a queue, once."""
        if declare.queue in self.state.queues:
            return refused("you said so")
        return super().declare(declare)


class Obliging(WholeBroker):
    """Calls everything well."""

    def handle(self, operation: Operation) -> Answer:
        """Say ok."""
        answer = super().handle(operation)
        return answer if answer.ok else OK


@pytest.mark.parametrize(
    ("twin", "complaint"), [(Grumpy, "must succeed"), (Obliging, "must be refused")]
)
def test_a_broker_that_does_otherwise_is_found_out(twin: type[WholeBroker], complaint: str) -> None:
    started = WholeBroker()
    started.handle(Declare(queue="q0", order=Fifo()))
    oracle = Oracle(started.hello().capabilities)
    oracle.observe(Declare(queue="q0", order=Fifo()), OK)
    odd = twin()
    odd.state = started.state
    found = []
    for each in OPERATIONS:
        operation = asked(each, oracle)
        answer = odd.fork().handle(operation)
        if must_succeed(operation, oracle.bindings) and not answer.ok:
            found.append("must succeed")
        if must_be_refused(operation, oracle.bindings) and answer.ok:
            found.append("must be refused")
    assert set(found) == {complaint}


# Unclaimed operations are not required.

LESS = {
    "get": Capabilities(modes=("acknowledge",)),
    "nothing but gets": Capabilities(get=True),
    "no changes": replace(everything(), credit=("messages",)),
    "no clock": replace(everything(), clock=False),
    "two levels": replace(everything(), priority_levels=2),
    "no automatic consumers": replace(everything(), modes=("acknowledge", "browse")),
}


@pytest.mark.parametrize("name", LESS)
def test_what_is_not_claimed_need_not_succeed(name: str) -> None:
    claims = LESS[name]
    less, more = obliged(claims), obliged(everything())
    assert less
    assert set(map(repr, less)) < set(map(repr, more))
    assert [each for each in less if unclaimed(each, claims)] == []


def obliged(claims: Capabilities) -> list[Operation]:
    """Return the operations that must succeed with two queues and a consumer, or a get of one."""
    oracle = Oracle(claims)
    for queue in ("q0", "q1"):
        oracle.observe(Declare(queue=queue, order=Fifo()), OK)
    if "acknowledge" in claims.modes:
        oracle.observe(Consume(channel="ch0", queue="q0", consumer="c0"), OK)
    bindings = oracle.bindings
    return [each for each in OPERATIONS if must_succeed(asked(each, oracle), bindings)]
