"""Requirements beyond the core: for each a conversation that keeps it, and a twin.

Each example is a conversation written by hand, like those in `test_oracle.py`; no broker takes
part. The twin differs in one thing and is refused under exactly that id. Where only a final drain
check decides (is a message late, or gone?), a script answers. The details of the protocol are in
`test_oracle_whole_windows.py` and its neighbours.
"""

from __future__ import annotations

from functools import partial

import pytest

from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import play
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.spec.messages import (
    Credit,
    Fifo,
    LastValue,
    Message,
    Order,
    PropertyValue,
    Sorted,
)
from brokerproof.spec.protocol.answers import (
    OK,
    Accepted,
    Answer,
    ConsumerClosed,
    Event,
    QueueDeleted,
)
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Consume,
    ConsumeMode,
    Crash,
    Declare,
    Delete,
    Flush,
    Publish,
    Purge,
    Restart,
    SetCredit,
)
from examples.whole_broker_claims import everything
from tests.checks.oracle.test_oracle import (
    Pair,
    Script,
    Told,
    acknowledge,
    breaches,
    cancel,
    close,
    drain,
    failed,
    get,
    given,
    release,
    stated_in,
)

WHOLE = everything()
PARKS = everything(parks=True)
TAIL, HEAD = everything(release_position="tail"), everything(release_position="head")


# The words of a conversation, besides those of the core.


def make(
    queue: str = "q",
    order: Order | None = None,
    *,
    durable: bool = False,
    auto_delete: bool = False,
) -> Told:
    """Make a queue."""
    chosen = Fifo() if order is None else order
    return Declare(queue=queue, order=chosen, durable=durable, auto_delete=auto_delete), OK


def put(
    message: str,
    *events: Event,
    queue: str = "q",
    priority: int = 4,
    size: int = 1,
    persistent: bool = False,
    due: int | None = None,
    expires: int | None = None,
    **properties: PropertyValue,
) -> Told:
    """Hand over a message."""
    what = Message(
        id=message, priority=priority, size=size, persistent=persistent, properties=properties
    )
    operation = Publish(queue=queue, message=what, not_before_s=due, expires_s=expires)
    return operation, Answer(events)


def subscribe(
    consumer: str,
    *events: Event,
    messages: int | None = None,
    size: int | None = None,
    mode: ConsumeMode = "acknowledge",
    channel: str = "ch0",
    queues: tuple[str, ...] = ("q",),
    selector: dict[str, PropertyValue] | None = None,
    priority: int = 0,
    auto_close: bool = False,
    exclusive: bool = False,
) -> Told:
    """Subscribe to one queue or several."""
    operation = Consume(
        channel=channel,
        queue=queues[0],
        consumer=consumer,
        mode=mode,
        credit=Credit(messages, size),
        selector=selector,
        priority=priority,
        auto_close=auto_close,
        queues=queues if len(queues) > 1 else (),
        exclusive=exclusive,
    )
    return operation, Answer(events)


def window(
    consumer: str, *events: Event, messages: int | None = None, size: int | None = None
) -> Told:
    """Replace a consumer's windows."""
    return SetCredit(consumer=consumer, messages=messages, bytes=size), Answer(events)


def pool(
    channel: str, *events: Event, messages: int | None = None, size: int | None = None
) -> Told:
    """Replace the windows that a channel's consumers share."""
    return SetCredit(channel=channel, messages=messages, bytes=size), Answer(events)


def parked(told: Told) -> Told:
    """Return the same publish, answered that it waits."""
    operation, answer = told
    return operation, Answer(answer.events, parked=True)


def purge(*events: Event, queue: str = "q") -> Told:
    """Drop the available messages."""
    return Purge(queue=queue), Answer(events)


def delete(*events: Event, queue: str = "q") -> Told:
    """Drop a queue and everything in it."""
    return Delete(queue=queue), Answer(events)


def flush(consumer: str, *events: Event) -> Told:
    """Let a consumer be given all that it has room for."""
    return Flush(consumer=consumer), Answer(events)


def advance(seconds: int, *events: Event) -> Told:
    """Move the clock."""
    return Advance(seconds=seconds), Answer(events)


def crash(*events: Event) -> Told:
    """Stop without warning."""
    return Crash(), Answer(events)


RESTART: Told = (Restart(), OK)


def closed(consumer: str) -> ConsumerClosed:
    """Return the event of a consumer that closed by itself."""
    return ConsumerClosed(consumer=consumer)


def deleted(queue: str = "q") -> QueueDeleted:
    """Return the event that a queue has deleted itself."""
    return QueueDeleted(queue=queue)


# Each requirement: a conversation that keeps it, and one that breaks it.


Whole = partial(Pair, claims=WHOLE)

AGAIN = given("m0", None, delivery="g0", again=True)
DURABLE = (make(durable=True), put("m0", persistent=True))
HELD = get(given("m0", None))

PAIRS = [
    Whole(
        "refuses-what-it-must",
        (make(),),
        (failed(put("m0", queue="nowhere"), "refused"),),
        (put("m0", queue="nowhere"),),
    ),
    Whole(
        "selector-respected",
        (make(), put("m0", colour="blue")),
        (subscribe("c", selector={"colour": "blue"}), drain(given("m0", "c"))),
        (subscribe("c", selector={"colour": "red"}), drain(given("m0", "c"))),
        ("m0",),
    ),
    Whole(
        "byte-credit-not-exceeded",
        (make(), subscribe("c", size=2), put("m0", given("m0", "c"), size=2), put("m1")),
        (acknowledge("d0"), drain(given("m1", "c"))),
        (drain(given("m1", "c")),),
        ("m1",),
    ),
    Whole(
        "channel-credit-not-exceeded",
        (
            make(),
            subscribe("c"),
            subscribe("d"),
            pool("ch0", messages=1),
            put("m0", given("m0", "c")),
            put("m1"),
        ),
        (drain(), acknowledge("d0"), drain(given("m1", "d"))),
        (drain(given("m1", "d")),),
        ("m1",),
    ),
    Whole(
        "consumer-priority",
        (make(), subscribe("low"), subscribe("high", priority=1), put("m0")),
        (drain(given("m0", "high")),),
        (drain(given("m0", "low")),),
        ("m0",),
    ),
    Whole(
        "auto-close-at-the-end",
        (make(), put("m0"), subscribe("c", auto_close=True)),
        (drain(given("m0", "c"), closed("c")),),
        (drain(closed("c")),),
        ("m0",),
    ),
    Whole(
        "closes-only-when-asked",
        (make(), subscribe("c")),
        (delete(closed("c")),),
        (drain(closed("c")),),
    ),
    Whole(
        "auto-close-happens",
        (make(), subscribe("c", auto_close=True)),
        (drain(closed("c")),),
        (drain(),),
    ),
    Whole(
        "auto-delete-when-unused",
        (make(auto_delete=True), subscribe("c"), subscribe("d"), cancel("d")),
        (cancel("c"), drain(deleted())),
        (drain(deleted()),),
    ),
    Whole(
        "auto-delete-happens",
        (make(auto_delete=True), subscribe("c"), cancel("c")),
        (drain(deleted()),),
        (drain(),),
    ),
    Whole(
        "parked-publish-taken",
        (make(), put("m0"), parked(put("m1")), drain(), purge()),
        (drain(Accepted(message="m1")),),
        (drain(),),
        claims=PARKS,
    ),
    Whole(
        "deletion-is-told",
        (make(), subscribe("c"), delete()),
        (drain(closed("c")),),
        (drain(),),
    ),
    Whole("purge-drops", (make(), put("m0"), purge()), (get(),), (HELD,), ("m0",)),
    Whole(
        "delete-drops",
        (make(), put("m0"), delete(), make()),
        (get(),),
        (HELD,),
        ("m0",),
    ),
    Whole(
        "delete-drops",
        (make(), put("m0"), HELD, delete(), make()),
        (get(),),
        (get(AGAIN),),
        ("m0",),
    ),
    Whole(
        "exclusive-is-alone",
        (make(), subscribe("c", exclusive=True)),
        (failed(subscribe("d"), "refused"),),
        (subscribe("d"),),
    ),
    Whole(
        "exclusive-is-alone",
        (make(), subscribe("c")),
        (failed(subscribe("d", exclusive=True), "refused"), cancel("c")),
        (subscribe("d", exclusive=True),),
    ),
    Whole(
        "flush-delivers",
        (make(), subscribe("c"), put("m0")),
        (flush("c", given("m0", "c")), drain()),
        # Which message it was, is not said: the guard relates several.
        (flush("c"), drain()),
    ),
    Whole(
        "held-until-its-time",
        (make(), put("m0", due=2), advance(1)),
        (get(), advance(1), HELD),
        (HELD,),
        ("m0",),
    ),
    Whole(
        "gone-when-expired",
        (make(), put("m0", expires=2), advance(1)),
        (HELD,),
        (advance(1), HELD),
        ("m0",),
    ),
    Whole(
        "sorted-order",
        (make(order=Sorted("k")), put("m0", k=2), put("m1", k=1)),
        (get(given("m1", None)),),
        (HELD,),
        ("m1", "m0"),
    ),
    Whole(
        "last-value-only",
        (make(order=LastValue("k")), put("m0", k=1), put("m1", k=1)),
        (get(given("m1", None)),),
        (HELD,),
        ("m0",),
    ),
    Whole(
        "returns-where-claimed",
        (make(), put("m0"), put("m1"), HELD, release("d0")),
        (get(given("m1", None)), get(AGAIN)),
        (get(AGAIN),),
        ("m1", "m0"),
        claims=TAIL,
    ),
    Whole(
        "returns-where-claimed",
        (make(), put("m0"), put("m1"), put("m2"), HELD, get(given("m1", None)), release("d1")),
        (release("d0"), get(given("m1", None, again=True)), get(AGAIN)),
        (release("d0"), get(AGAIN)),
        ("m1", "m0"),
        claims=HEAD,
    ),
    Whole(
        "transient-is-lost",
        (make(durable=True), put("m0"), crash(), RESTART),
        (get(),),
        (HELD,),
        ("m0",),
    ),
    Whole(
        "transient-is-lost",
        (make(), put("m0", persistent=True), crash(), RESTART, make()),
        (get(),),
        (HELD,),
        ("m0",),
    ),
    Whole(
        "settlement-survives-crash",
        (*DURABLE, HELD, acknowledge("d0"), crash(), RESTART),
        (get(),),
        (get(AGAIN),),
        ("m0",),
    ),
    Whole(
        "purge-drops",
        (*DURABLE, purge(), crash(), RESTART),
        (get(),),
        (HELD,),
        ("m0",),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.requirement)
def test_what_keeps_a_promise_is_accepted(pair: Pair) -> None:
    assert breaches([*pair.start, *pair.lawful], pair.claims) == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.requirement)
def test_what_breaks_a_promise_is_refused_under_its_id(pair: Pair) -> None:
    [breach] = breaches([*pair.start, *pair.unlawful], pair.claims)
    assert (breach.requirement, breach.witnesses) == (pair.requirement, pair.witnesses)


# Late, or gone: a script goes on answering in the final drain check.


def played(conversation: tuple[Told, ...], left: tuple[str, ...]) -> Breach | None:
    """Return the breach at the end of a script's run, after the final drain check."""
    script = Script([answer for _, answer in conversation], left)
    return play(script, Oracle(WHOLE), [move_of(told) for told in conversation]).broken


def move_of(told: Told) -> Move:
    """Return the operation as a step of a trace; settlements are releases of m0 here."""
    operation, _ = told
    if isinstance(operation, Acknowledge):
        return Settle(how="acknowledge", message=f"m{operation.delivery[1:]}")
    assert isinstance(operation, Move)
    return operation


BY_FINAL_DRAIN = {
    "purge-leaves-acquired": (make(), put("m0"), HELD, purge(), close("ch0")),
    "survives-restart": (*DURABLE, crash(), RESTART),
}


@pytest.mark.parametrize("requirement", BY_FINAL_DRAIN)
def test_what_should_have_been_left_and_is_gone_breaks_the_promise_that_left_it(
    requirement: str,
) -> None:
    start = BY_FINAL_DRAIN[requirement]
    breach = played((*start, get()), ())
    assert breach is not None
    assert (breach.requirement, breach.witnesses) == (requirement, ("m0",))
    late = played((*start, get()), ("m0",))
    assert late is not None
    assert late.requirement == "get-finds"


def test_what_was_left_is_found_again() -> None:
    assert played((*BY_FINAL_DRAIN["purge-leaves-acquired"], get(AGAIN)), ()) is None
    assert played((*BY_FINAL_DRAIN["survives-restart"], HELD), ()) is None


def test_every_requirement_beyond_the_core_has_a_pair_or_is_told_by_the_final_drain() -> None:
    told = {pair.requirement for pair in PAIRS} | set(BY_FINAL_DRAIN)
    assert told == stated_in("whole.toml")
