"""The oracle accepts lawful conversations and names the requirement that any other breaks.

Each example is a conversation written by hand, operation by operation with its answer; no broker
takes part. For each requirement of the catalogue there is a lawful conversation and its twin, which
differs in one thing and is refused under exactly that id. Where only a final drain check decides
(is a message late, or gone?), a script goes on answering.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from importlib import resources
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import goes_on, play
from brokerproof.checks.trace.moves import Move, Settle, SettlementName
from brokerproof.spec import requirements
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.answers import (
    OK,
    Answer,
    ConsumerClosed,
    Delivered,
    Error,
    ErrorCode,
    Event,
    QueueDeleted,
)
from brokerproof.spec.protocol.capabilities import Capabilities, EventOrder, Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    GetMode,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    Restart,
    SetCredit,
)
from examples.whole_broker_claims import everything

Told: TypeAlias = tuple[Operation, Answer]

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages",),
    get=True,
    browse=True,
    release_position="original",
)
PER_CONSUMER = Capabilities(
    orders=("fifo", "priority"),
    modes=("acknowledge", "automatic", "browse"),
    credit=("messages",),
    get=True,
    browse=True,
    release_position="original",
    event_order="per_consumer",
)


# The words of a conversation. A delivery of m0 is called d0, and when it comes back e0.


def given(
    message: str,
    consumer: str | None,
    *,
    again: bool = False,
    delivery: str = "",
    queue: str = "q",
) -> Delivered:
    """Return the event that a message was given to a consumer, or to a get."""
    return Delivered(
        delivery=delivery or f"{'e' if again else 'd'}{message[1:]}",
        consumer=consumer,
        queue=queue,
        message=message,
        redelivered=again,
    )


def declare(queue: str = "q", order: Order | None = None) -> Told:
    """Make a queue, first in, first out unless another order is given."""
    return Declare(queue=queue, order=Fifo() if order is None else order), OK


def publish(message: str, *events: Event, priority: int = 4, queue: str = "q") -> Told:
    """Hand over a message."""
    return Publish(queue=queue, message=Message(id=message, priority=priority)), Answer(events)


def consume(
    consumer: str,
    *events: Event,
    credit: int | None = None,
    mode: ConsumeMode = "acknowledge",
    channel: str = "ch0",
    queue: str = "q",
) -> Told:
    """Subscribe."""
    operation = Consume(
        channel=channel, queue=queue, consumer=consumer, mode=mode, credit=Credit(credit)
    )
    return operation, Answer(events)


def get(
    *events: Event, mode: GetMode = "acknowledge", channel: str = "ch0", queue: str = "q"
) -> Told:
    """Take one message."""
    return Get(channel=channel, queue=queue, mode=mode), Answer(events)


def acknowledge(delivery: str, *events: Event) -> Told:
    """Settle a delivery for good."""
    return Acknowledge(delivery=delivery), Answer(events)


def release(delivery: str, *events: Event) -> Told:
    """Return a message to the queue."""
    return Release(delivery=delivery), Answer(events)


def cancel(consumer: str, *events: Event) -> Told:
    """Stop delivering to a consumer."""
    return Cancel(consumer=consumer), Answer(events)


def close(channel: str, *events: Event) -> Told:
    """Close a channel."""
    return CloseChannel(channel=channel), Answer(events)


def drain(*events: Event) -> Told:
    """Come to rest."""
    return Drain(), Answer(events)


def failed(told: Told, code: ErrorCode) -> Told:
    """Return the same operation, answered with an error and the same events."""
    operation, answer = told
    return operation, Answer(answer.events, Error(code, "so it is"))


def breaches(conversation: Iterable[Told], claims: Capabilities = CLAIMS) -> list[Breach]:
    """Return the oracle's breaches, up to the first one that ends a run."""
    oracle, found = Oracle(claims), []
    for operation, answer in conversation:
        found += oracle.observe(operation, answer)
        if not all(map(goes_on, found)):
            break
    return found


def broken(conversation: Iterable[Told], claims: Capabilities = CLAIMS) -> list[str]:
    """Return the ids of the broken requirements."""
    return [breach.requirement for breach in breaches(conversation, claims)]


# Each requirement: a conversation that keeps it, and one that breaks it.


@dataclass(frozen=True)
class Pair:
    """A beginning, a lawful end, and one that breaks a requirement, with its witnesses."""

    requirement: str
    start: tuple[Told, ...]
    lawful: tuple[Told, ...]
    unlawful: tuple[Told, ...]
    witnesses: tuple[str, ...] = ()
    claims: Capabilities = CLAIMS


TWO_IN_A_QUEUE = (declare(), publish("m0"), publish("m1"))
URGENT_SECOND = (declare(order=Priority(10)), publish("m0", priority=0), publish("m1", priority=9))
BROWSED = (
    declare(),
    publish("m0"),
    publish("m1"),
    consume("b", given("m0", "b"), given("m1", "b"), mode="browse"),
)
BROWSED_AND_TAKEN = (*BROWSED, get(given("m0", None, delivery="g0")))

PAIRS = [
    Pair(
        "nothing-twice",
        (*TWO_IN_A_QUEUE, get(given("m0", None))),
        (get(given("m1", None)),),
        (get(given("m0", None, delivery="other")),),
        ("m0",),
    ),
    Pair(
        "nothing-twice",
        (*TWO_IN_A_QUEUE, consume("c", given("m0", "c"), credit=1), acknowledge("d0")),
        (drain(given("m1", "c")),),
        (drain(given("m0", "c", delivery="other")),),
        ("m0",),
    ),
    Pair(
        "settled-once",
        (declare(), publish("m0"), get(given("m0", None)), acknowledge("d0"), release("d0")),
        (get(), drain()),
        (get(given("m0", None, again=True)),),
        ("m0",),
    ),
    Pair(
        "settled-once",
        (
            declare(),
            publish("m0"),
            get(given("m0", None)),
            release("d0"),
            failed(acknowledge("d0"), "refused"),
            get(given("m0", None, again=True)),
            failed(release("d0"), "refused"),
        ),
        (get(), acknowledge("e0"), get()),
        (get(given("m0", None, delivery="f0", again=True)),),
        ("m0",),
    ),
    Pair(
        "nothing-invented",
        (declare(), consume("c")),
        (publish("m0", given("m0", "c")),),
        (publish("m0", given("m7", "c")),),
    ),
    Pair(
        "nothing-invented",
        (declare(), failed(publish("m0"), "timeout"), publish("m1")),
        (get(given("m0", None)),),
        # The get that passed m0 over shows that it was never accepted.
        (get(given("m1", None)), drain(), get(), get(given("m0", None))),
        ("m0",),
    ),
    Pair(
        "right-queue",
        (declare(), declare("other"), consume("c")),
        (publish("m0", given("m0", "c")),),
        (publish("m0", given("m0", "c", queue="other"), queue="other"),),
        ("m0",),
    ),
    Pair(
        "only-to-subscribers",
        (declare(), consume("c"), publish("m0"), cancel("c"), consume("d")),
        (drain(given("m0", "d")),),
        (drain(given("m0", "c")),),
        ("m0",),
    ),
    Pair(
        "only-to-subscribers",
        (declare(), consume("c"), publish("m0")),
        (drain(given("m0", "c")),),
        (drain(given("m0", "nobody")),),
    ),
    Pair(
        "fifo-order",
        TWO_IN_A_QUEUE,
        (get(given("m0", None)),),
        (get(given("m1", None)),),
        ("m0", "m1"),
    ),
    Pair(
        "priority-order",
        URGENT_SECOND,
        (get(given("m1", None)),),
        (get(given("m0", None)),),
        ("m1", "m0"),
    ),
    Pair(
        "release-rewinds",
        (*TWO_IN_A_QUEUE, get(given("m0", None)), release("d0")),
        (get(given("m0", None, again=True)),),
        (get(given("m1", None)),),
        ("m0", "m1"),
    ),
    Pair(
        "redelivered-flag",
        (declare(), publish("m0"), get(given("m0", None)), release("d0")),
        (get(given("m0", None, again=True)),),
        (get(given("m0", None, delivery="other")), drain()),
        ("m0",),
    ),
    Pair(
        "redelivered-flag",
        (declare(), publish("m0")),
        (get(given("m0", None)),),
        (get(given("m0", None, again=True)), drain()),
        ("m0",),
    ),
    Pair(
        "get-finds",
        (declare(), publish("m0")),
        (get(given("m0", None)),),
        (get(),),
        ("m0",),
    ),
    Pair(
        "quiescence",
        (declare(), consume("c"), publish("m0")),
        (drain(given("m0", "c")),),
        (drain(),),
        ("m0",),
    ),
    Pair(
        "credit-not-exceeded",
        (declare(), consume("c", credit=1), publish("m0", given("m0", "c")), publish("m1")),
        (acknowledge("d0"), drain(given("m1", "c"))),
        (drain(given("m1", "c")),),
        ("m1",),
    ),
    Pair(
        "credit-used",
        (*TWO_IN_A_QUEUE, consume("c", given("m0", "c"), credit=1), acknowledge("d0")),
        (drain(given("m1", "c")),),
        (drain(),),
        ("m1",),
    ),
    Pair(
        "browser-sees-available",
        (*TWO_IN_A_QUEUE, get(given("m0", None)), consume("b", mode="browse")),
        (drain(given("m1", "b")),),
        (drain(given("m0", "b", delivery="b0")),),
        ("m0",),
    ),
    Pair(
        "browser-sees-all",
        (*TWO_IN_A_QUEUE, consume("b", given("m0", "b"), mode="browse")),
        (drain(given("m1", "b")),),
        (drain(),),
        ("m1",),
    ),
    Pair(
        "browser-in-order",
        (*TWO_IN_A_QUEUE, consume("b", mode="browse")),
        (drain(given("m0", "b"), given("m1", "b")),),
        (drain(given("m1", "b"), given("m0", "b")),),
        ("m0", "m1"),
    ),
    Pair(
        "browser-once",
        BROWSED,
        (drain(),),
        (drain(given("m0", "b", delivery="other")),),
        ("m0",),
    ),
    Pair(
        "browser-once-by-priority",
        (
            declare(order=Priority(10)),
            publish("m0", priority=0),
            consume("b", given("m0", "b"), mode="browse"),
            publish("m1", priority=9),
        ),
        (drain(given("m1", "b")),),
        (drain(given("m1", "b"), given("m0", "b", delivery="other")),),
        ("m0",),
    ),
    Pair(
        "browser-never-rewound",
        (*BROWSED_AND_TAKEN, release("g0")),
        (drain(),),
        (drain(given("m0", "b", again=True)),),
        ("m0",),
    ),
    Pair(
        "does-what-it-claims",
        (declare(), publish("m0"), get(given("m0", None))),
        (acknowledge("d0"),),
        (failed(acknowledge("d0"), "refused"),),
    ),
    Pair(
        "does-what-it-claims",
        (declare(),),
        (publish("m0"),),
        (failed(publish("m0"), "unsupported"),),
    ),
    Pair(
        "protocol",
        TWO_IN_A_QUEUE,
        (get(given("m0", None)), get(given("m1", None))),
        (get(given("m0", None), given("m1", None)),),
    ),
    Pair(
        "protocol",
        TWO_IN_A_QUEUE,
        (get(given("m0", None)), get(given("m1", None))),
        (get(given("m0", None)), get(given("m1", None, delivery="d0"))),
    ),
    Pair(
        "protocol",
        (declare(), consume("c")),
        (publish("m0", given("m0", "c")),),
        (publish("m0", given("m0", None)),),
    ),
    Pair(
        "protocol",
        (declare(), consume("c")),
        (drain(),),
        (drain(ConsumerClosed(consumer="c")),),
    ),
    Pair(
        "protocol",
        (declare(), consume("c")),
        (drain(),),
        (drain(QueueDeleted(queue="q")),),
    ),
]
BY_FINAL_DRAIN = frozenset(("nothing-lost", "close-releases", "browser-takes-nothing"))
BY_A_LOOK_INSIDE = frozenset(("documented-steps",))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.requirement)
def test_what_keeps_a_promise_is_accepted(pair: Pair) -> None:
    assert breaches([*pair.start, *pair.lawful], pair.claims) == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.requirement)
def test_what_breaks_a_promise_is_refused_under_its_id(pair: Pair) -> None:
    [breach] = breaches([*pair.start, *pair.unlawful], pair.claims)
    assert breach.requirement == pair.requirement
    assert breach.witnesses == pair.witnesses


def stated_in(name: str) -> set[str]:
    """Return the ids of the requirements that one file of the catalogue states."""
    file = resources.files(requirements) / name
    return {each.id for each in requirements.read_catalogue(name, file.read_text("utf-8"))}


def test_every_requirement_has_a_pair_or_is_told_by_the_final_drain() -> None:
    told = {pair.requirement for pair in PAIRS} | BY_FINAL_DRAIN | BY_A_LOOK_INSIDE
    # Those of `whole.toml` have theirs in `test_oracle_whole.py`.
    assert told == stated_in("core.toml") | stated_in("qpid.toml")


def test_a_broken_promise_names_the_others_that_the_same_moment_speaks_against() -> None:
    elsewhere = [declare("other"), *TWO_IN_A_QUEUE, get(given("m0", None))]
    [breach] = breaches([*elsewhere, get(given("m0", None, delivery="g"), queue="other")])
    assert (breach.requirement, breach.also) == ("right-queue", ("nothing-twice",))


# Late, or gone: a script goes on answering in the final drain check.


@dataclass
class Script:
    """A candidate that reads its answers from a list, and then has only `left` to deliver."""

    answers: list[Answer]
    left: tuple[str, ...]
    final_drain: bool = field(default=False)

    def hello(self) -> Hello:
        """Introduce itself."""
        return Hello(name="script", version="1", capabilities=CLAIMS)

    def handle(self, operation: Operation) -> Answer:
        """Read the next answer; then give the final drain check the remaining messages."""
        if self.answers:
            return self.answers.pop(0)
        if isinstance(operation, Consume):
            self.final_drain = True
        if isinstance(operation, Drain) and self.final_drain:
            return Answer(tuple(given(message, "final-drain-q") for message in self.left))
        return OK


def played(conversation: tuple[Told, ...], left: tuple[str, ...]) -> Breach | None:
    """Return the breach at the end of a script's run, after the final drain check."""
    script = Script([answer for _, answer in conversation], left)
    moves = [move_of(operation) for operation, _ in conversation]
    return play(script, Oracle(CLAIMS), moves).broken


def move_of(operation: Operation) -> Move:
    """Return the operation as a step of a trace, in which settlements name the message."""
    settles: dict[type[Operation], SettlementName] = {
        Acknowledge: "acknowledge",
        Release: "release",
        Reject: "reject",
    }
    if isinstance(operation, Acknowledge | Release | Reject):
        return Settle(how=settles[type(operation)], message=f"m{operation.delivery[1:]}")
    assert isinstance(operation, Declare | Publish | Consume | Get | Cancel | CloseChannel | Drain)
    return operation


HELD_AND_CLOSED = (declare(), publish("m0"), get(given("m0", None)), close("ch0"))
SHOWN = (declare(), publish("m0"), consume("b", given("m0", "b"), mode="browse"), cancel("b"))
LATE_OR_GONE = [
    ("nothing-lost", (declare(), publish("m0")), given("m0", None)),
    ("close-releases", HELD_AND_CLOSED, given("m0", None, again=True)),
    ("browser-takes-nothing", SHOWN, given("m0", None, delivery="g0")),
]


@pytest.mark.parametrize(("requirement", "start", "found"), LATE_OR_GONE)
def test_a_message_that_no_get_ever_finds_is_gone(
    requirement: str, start: tuple[Told, ...], found: Delivered
) -> None:
    assert played((*start, get(found)), ()) is None
    breach = played((*start, get()), ())
    assert breach is not None
    assert (breach.requirement, breach.witnesses) == (requirement, ("m0",))
    assert breach.also == ("get-finds",)


@pytest.mark.parametrize(("requirement", "start", "found"), LATE_OR_GONE)
def test_a_message_that_a_new_consumer_gets_was_only_late(
    requirement: str, start: tuple[Told, ...], found: Delivered
) -> None:
    breach = played((*start, get()), (found.message,))
    assert breach is not None
    assert breach.requirement == "get-finds" != requirement


def test_the_final_drain_covers_what_no_pair_does() -> None:
    assert {requirement for requirement, _, _ in LATE_OR_GONE} == BY_FINAL_DRAIN


# When an event happened (rules 1 and 2 of the protocol).


def test_an_event_withheld_until_drain_explains_an_earlier_empty_get() -> None:
    start = [declare(), consume("c"), publish("m0"), get()]
    assert broken([*start, drain(given("m0", "c"))]) == []
    # Without the event nothing explains the empty get; that is known at drain and not before.
    assert broken(start) == []
    assert broken([*start, drain()]) == ["get-finds"]


def test_an_empty_get_is_refused_at_once_where_no_consumer_could_have_the_message() -> None:
    assert broken([declare(), publish("m0"), get()]) == ["get-finds"]
    paused = [declare(), consume("c", credit=0), publish("m0"), get()]
    assert broken(paused) == ["get-finds"]


def test_an_operation_takes_effect_anywhere_among_the_events_of_its_answer() -> None:
    held = [declare(), publish("m0"), get(given("m0", None), channel="ch1"), consume("c")]
    start = [*held, publish("m1")]
    # m1 was given before the release took effect; m2 never was first.
    assert broken([*start, release("d0", given("m1", "c"), given("m0", "c", again=True))]) == []
    assert broken([*start, publish("m2"), release("d0", given("m2", "c"), given("m1", "c"))]) == [
        "fifo-order"
    ]


def test_events_of_one_list_keep_their_order_in_every_placement() -> None:
    start = [declare(), consume("c"), consume("d"), publish("m0"), publish("m1")]
    assert broken([*start, drain(given("m0", "c"), given("m1", "d"))]) == []
    assert broken([*start, drain(given("m1", "d"), given("m0", "c"))]) == ["fifo-order"]


def test_events_may_be_told_with_a_refusal() -> None:
    start = [declare(), consume("c"), publish("m0")]
    refusal = failed(acknowledge("unknown", given("m0", "c")), "refused")
    assert broken([*start, refusal, drain()]) == []
    wrong = failed(acknowledge("unknown", given("m7", "c")), "refused")
    assert broken([*start, wrong]) == ["nothing-invented"]


@pytest.mark.parametrize("claims", [CLAIMS, PER_CONSUMER], ids=["total", "per-consumer"])
def test_what_was_delivered_before_a_cancel_is_told_with_its_answer_at_the_latest(
    claims: Capabilities,
) -> None:
    start = [declare(), consume("c"), publish("m0")]
    assert broken([*start, cancel("c", given("m0", "c")), drain()], claims) == []
    assert broken([*start, cancel("c"), drain(given("m0", "c"))], claims) == ["only-to-subscribers"]
    assert broken([*start, cancel("c"), drain()], claims) == []


@pytest.mark.parametrize("claims", [CLAIMS, PER_CONSUMER], ids=["total", "per-consumer"])
def test_what_was_delivered_before_a_channel_closed_is_told_with_its_answer_at_the_latest(
    claims: Capabilities,
) -> None:
    start = [declare(), consume("c"), publish("m0")]
    assert broken([*start, close("ch0", given("m0", "c")), drain()], claims) == []
    assert broken([*start, close("ch0"), drain(given("m0", "c"))], claims) == [
        "only-to-subscribers"
    ]


def test_a_cancel_says_nothing_about_the_events_of_others() -> None:
    start = [declare(), consume("c"), consume("d"), publish("m0"), get(), cancel("c")]
    assert broken([*start, drain(given("m0", "d"))]) == []


@pytest.mark.parametrize(("order", "verdict"), [("total", ["fifo-order"]), ("per_consumer", [])])
def test_a_gets_own_delivery_fixes_the_order_of_the_list_where_there_is_one(
    order: EventOrder, verdict: list[str]
) -> None:
    claims = CLAIMS if order == "total" else PER_CONSUMER
    start = [declare(), consume("c"), publish("m0"), publish("m1")]
    after = [*start, get(given("m1", None), given("m0", "c")), drain()]
    assert broken(after, claims) == verdict
    before = [*start, get(given("m0", "c"), given("m1", None)), drain()]
    assert broken(before, claims) == []


def test_what_is_told_after_a_gets_answer_happened_after_the_get() -> None:
    start = [declare(), consume("c"), publish("m0"), publish("m1"), get(given("m1", None))]
    assert broken(start) == ["fifo-order"]
    assert broken([*start, drain(given("m0", "c"))], PER_CONSUMER) == []


def test_an_empty_get_leaves_open_what_happened_before_it() -> None:
    start = [declare(), consume("c"), publish("m0"), get(), publish("m1"), get()]
    assert broken([*start, drain(given("m0", "c"), given("m1", "c"))]) == []
    assert broken([*start, drain(given("m0", "c"))]) == ["get-finds"]


def test_nothing_is_outstanding_after_a_drain() -> None:
    start = [declare(), consume("c", credit=1), publish("m0", given("m0", "c")), publish("m1")]
    assert broken([*start, acknowledge("d0"), get(), drain(given("m1", "c"))]) == []
    early = [*start, acknowledge("d0"), drain(given("m1", "c")), publish("m2"), get()]
    assert broken([*early, drain(given("m2", "c"))]) == ["get-finds"]


# Closing, cancelling, returning (rules 13, 32 to 34).


@pytest.mark.parametrize("claims", [CLAIMS, PER_CONSUMER], ids=["total", "per-consumer"])
def test_what_is_told_with_the_closing_of_its_channel_is_already_released(
    claims: Capabilities,
) -> None:
    start = [declare(), consume("c"), publish("m0"), close("ch0", given("m0", "c"))]
    found = [*start, get(given("m0", None, again=True), channel="ch1"), drain()]
    assert broken(found, claims) == []
    assert broken([*start, get(channel="ch1"), drain()], claims) == ["get-finds"]
    # It is not acquired any more, so its settlement may be refused.
    assert broken([*start, failed(acknowledge("d0"), "refused"), drain()], claims) == []


def test_what_a_closing_releases_may_be_given_on_in_the_same_answer() -> None:
    start = [declare(), publish("m0"), get(given("m0", None)), consume("c", channel="ch1")]
    assert broken([*start, close("ch0", given("m0", "c", again=True)), drain()]) == []
    wrong = given("m0", "c", delivery="other")
    assert broken([*start, close("ch0", wrong), drain()]) == ["redelivered-flag"]


def test_what_a_cancelled_consumer_holds_stays_acquired() -> None:
    start = [declare(), consume("c"), publish("m0", given("m0", "c")), cancel("c")]
    assert broken([*start, get(), acknowledge("d0"), drain(), get()]) == []
    assert broken([*start, get(given("m0", None, delivery="g"))]) == ["nothing-twice"]
    assert broken([*start, failed(acknowledge("d0"), "refused")]) == ["does-what-it-claims"]


def test_a_released_message_may_and_must_go_back_to_the_same_consumer() -> None:
    start = [declare(), consume("c", credit=1), publish("m0", given("m0", "c"))]
    assert broken([*start, release("d0", given("m0", "c", again=True)), drain()]) == []
    assert broken([*start, release("d0"), drain()]) == ["credit-used"]


def test_a_refused_settlement_is_fine_where_the_delivery_is_not_held() -> None:
    start = [declare(), publish("m0"), get(given("m0", None)), acknowledge("d0")]
    assert broken([*start, failed(acknowledge("d0"), "refused")]) == []
    assert broken([*start, failed(release("nothing"), "refused")]) == []
    # The gate does not mind an ok either, as long as it has no effect.
    assert broken([*start, release("d0"), drain(), get()]) == []
    assert broken([*start, release("d0"), get(given("m0", None, again=True))]) == ["settled-once"]


def test_a_refused_settlement_of_what_is_held_is_not_fine() -> None:
    start = [declare(), publish("m0"), get(given("m0", None))]
    told: Told
    for told in (acknowledge("d0"), release("d0"), (Reject(delivery="d0"), OK)):
        assert broken([*start, failed(told, "refused")]) == ["does-what-it-claims"]


def test_refusals_of_what_does_not_exist_are_fine() -> None:
    start = [declare(), consume("c"), cancel("c")]
    for told in (
        publish("m0", queue="nowhere"),
        get(queue="nowhere"),
        consume("d", queue="nowhere"),
        consume("c"),
        cancel("nobody"),
    ):
        assert broken([*start, failed(told, "refused")]) == []


# Operations without a certain outcome (rule 29).


def test_a_publish_without_an_answer_may_have_happened_or_not() -> None:
    start = [declare(), failed(publish("m0"), "timeout"), publish("m1")]
    skips = [*start, get(given("m1", None)), drain(), get()]
    finds = [*start, get(given("m0", None)), get(given("m1", None)), drain(), get()]
    # Its place is unknown too: it may have arrived after m1.
    late = [*start, get(given("m1", None)), get(given("m0", None)), drain(), get()]
    for conversation in (skips, finds, late):
        assert broken(conversation) == []
        assert broken(conversation, PER_CONSUMER) == []


@pytest.mark.parametrize("claims", [CLAIMS, PER_CONSUMER], ids=["total", "per-consumer"])
def test_a_publish_without_an_answer_happens_once_at_most(claims: Capabilities) -> None:
    twice = get(given("m0", None, delivery="other"))
    start = [declare(), failed(publish("m0"), "timeout"), get(given("m0", None))]
    assert broken([*start, get(), drain()], claims) == []
    assert broken([*start, twice, drain()], claims) == ["nothing-twice"]


def test_a_publish_that_was_never_seen_may_be_available_after_the_drain() -> None:
    start = [declare(), failed(publish("m0"), "timeout"), drain(), publish("m1")]
    assert broken([*start, get(given("m0", None)), get(given("m1", None))]) == []
    assert broken([*start, get(given("m1", None)), get()]) == []
    # Now it has its place: m1 was delivered as the first, so m0 is not there.
    assert broken([*start, get(given("m1", None)), get(given("m0", None))]) == ["nothing-invented"]


def test_a_publish_without_an_answer_is_of_its_level_all_the_same() -> None:
    start = [declare(order=Priority(10)), failed(publish("m0", priority=0), "timeout")]
    start.append(publish("m1", priority=9))
    assert broken([*start, get(given("m1", None)), get(given("m0", None))]) == []
    assert broken([*start, get(given("m0", None))]) == ["priority-order"]


def test_a_drain_with_a_free_consumer_settles_whether_a_publish_happened() -> None:
    start = [declare(), consume("c"), failed(publish("m0"), "timeout"), drain()]
    assert broken([*start, drain()]) == []
    assert broken([*start, publish("m1", given("m0", "c"))]) == ["nothing-invented"]


def test_a_settlement_without_an_answer_may_take_effect_until_the_next_drain() -> None:
    start = [declare(), publish("m0"), get(given("m0", None)), failed(release("d0"), "timeout")]
    again = given("m0", None, again=True)
    assert broken([*start, get(), get(again)]) == []
    assert broken([*start, get(), drain(), get()]) == []
    assert broken([*start, get(), drain(), get(again)]) == []
    # A state that an empty get has ruled out after the drain does not come back.
    assert broken([*start, drain(), get(), get(again)]) == ["nothing-twice"]


def test_an_acknowledge_without_an_answer_leaves_the_message_held_or_done() -> None:
    start = [declare(), publish("m0"), get(given("m0", None)), failed(acknowledge("d0"), "timeout")]
    closed = [*start, drain(), close("ch0")]
    assert broken([*closed, get(channel="ch1")]) == []
    assert broken([*closed, get(given("m0", None, again=True), channel="ch1")]) == []
    assert broken([*start, get(given("m0", None, again=True))]) == ["nothing-twice"]


def test_a_cancel_without_an_answer_leaves_open_whether_deliveries_go_on() -> None:
    start = [declare(), consume("c"), failed(cancel("c"), "timeout"), publish("m0")]
    assert broken([*start, drain(given("m0", "c"))]) == []
    assert broken([*start, drain(), get(given("m0", None))]) == []


@pytest.mark.parametrize("told", [get(), declare("other")])
def test_where_too_much_is_uncertain_the_run_is_not_judged(told: Told) -> None:
    with pytest.raises(Unfollowable):
        breaches([declare(), failed(told, "timeout")])


def test_a_broker_that_cannot_come_to_rest_does_not_do_what_it_claims() -> None:
    assert broken([declare(), failed(drain(), "timeout")]) == ["does-what-it-claims"]


# Details of late events, and of uncertain outcomes.

IMPATIENT = (declare(), consume("c"), publish("m0"), get())
"""Lawful only if c was given m0 before the get, by an event that is still outstanding."""


@pytest.mark.parametrize("told", [cancel("c"), close("ch0")])
def test_a_late_event_of_a_consumer_that_left_is_refused_though_it_would_explain_a_get(
    told: Told,
) -> None:
    [named] = broken([*IMPATIENT, told, drain(given("m0", "c"))])
    assert named in ("only-to-subscribers", "get-finds")


def test_after_an_uncertain_cancel_events_may_come_until_the_next_drain() -> None:
    told = failed(cancel("c"), "timeout")
    assert broken([*IMPATIENT, told, drain(given("m0", "c"))]) == []


def test_advice_not_followed_before_a_cancel_is_no_more_than_that() -> None:
    start = [
        declare(order=Priority(10)),
        publish("m0", priority=0),
        consume("b", given("m0", "b"), mode="browse"),
    ]
    again = given("m0", "b", delivery="other")
    assert broken([*start, drain(again), cancel("b"), drain()]) == ["browser-once-by-priority"]
    assert broken([*start, cancel("b", again), drain()]) == ["browser-once-by-priority"]


def test_what_may_have_happened_did_not_happen_before_it_was_asked() -> None:
    start = [declare(), consume("c"), publish("m0"), publish("m1")]
    unsure = failed(publish("m2", given("m0", "c")), "timeout")
    assert broken([*start, unsure, drain(given("m1", "c"), given("m2", "c"))]) == []
    assert broken([*start, unsure, drain(given("m2", "c"), given("m1", "c"))]) == ["fifo-order"]


def test_what_may_have_happened_explains_nothing_that_was_told_before() -> None:
    start = [
        declare(),
        consume("c", credit=1),
        consume("d", channel="ch1"),
        publish("m0", given("m0", "c")),
    ]
    again, unsure = given("m0", "d", again=True), failed(release("d0"), "timeout")
    assert broken([*start, unsure, drain(again)], PER_CONSUMER) == []
    before = [*start, failed(cancel("nobody", again), "refused"), unsure, drain()]
    assert broken(before) == ["nothing-twice"]
    assert broken(before, PER_CONSUMER) == ["nothing-twice"]


def test_what_follows_a_settlement_of_something_uncertain_is_not_judged() -> None:
    start = [declare(), publish("m0"), get(given("m0", None)), failed(close("ch0"), "timeout")]
    with pytest.raises(Unfollowable, match="not certain that d0 was settled"):
        broken([*start, acknowledge("d0"), drain()])


ONLY_GET = Capabilities(get=True)
ONLY_CONSUMERS = Capabilities(modes=("acknowledge",))
LAWFUL_REFUSALS = {
    "get, not claimed": ([declare()], failed(get(), "unsupported"), ONLY_CONSUMERS),
    "consume, not claimed": ([declare()], failed(consume("c"), "unsupported"), ONLY_GET),
    "browse, not claimed": (
        [declare()],
        failed(consume("c", mode="browse"), "unsupported"),
        ONLY_CONSUMERS,
    ),
    "priority queue, not claimed": (
        [],
        failed(declare(order=Priority(2)), "unsupported"),
        ONLY_GET,
    ),
    "declare with another order": (
        [declare()],
        failed(declare(order=Priority(3)), "refused"),
        CLAIMS,
    ),
    "cancel of a consumer that has left": (
        [declare(), consume("c"), cancel("c")],
        failed(cancel("c"), "refused"),
        CLAIMS,
    ),
    "cancel after the channel has closed": (
        [declare(), consume("c"), close("ch0")],
        failed(cancel("c"), "refused"),
        CLAIMS,
    ),
}


@pytest.mark.parametrize("name", LAWFUL_REFUSALS)
def test_a_lawful_refusal_is_accepted(name: str) -> None:
    start, told, claims = LAWFUL_REFUSALS[name]
    assert broken([*start, told], claims) == []


def test_a_cancel_of_a_consumer_that_has_left_may_be_answered_without_effect() -> None:
    assert broken([declare(), consume("c"), cancel("c"), cancel("c"), drain()]) == []


NOT_FOLLOWED = {
    "purge": ([declare(), publish("m0"), (Purge(queue="q"), OK)], get()),
    "credit": (
        [
            declare(),
            consume("c", credit=1),
            publish("m0", given("m0", "c")),
            (SetCredit(consumer="c", messages=2), OK),
        ],
        publish("m1", given("m1", "c")),
    ),
    "reset": ([declare(), publish("m0"), (Reset(), OK), declare()], get()),
}


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_cannot_be_followed_is_not_judged(name: str) -> None:
    start, told = NOT_FOLLOWED[name]
    with contextlib.suppress(Unfollowable):
        assert broken([*start, told]) == []


# Counts.


def test_a_requirement_is_exercised_only_where_its_fault_would_show() -> None:
    def counted(*conversation: Told) -> set[str]:
        oracle = Oracle(CLAIMS)
        for operation, answer in conversation:
            assert oracle.observe(operation, answer) == []
        return set(oracle.exercised) - {"does-what-it-claims", "protocol"}

    one = counted(declare(), publish("m0"), get(given("m0", None)))
    assert one == {"nothing-lost", "nothing-invented", "get-finds"}
    two = counted(*TWO_IN_A_QUEUE, get(given("m0", None)))
    assert two - one == {"fifo-order"}


def test_the_conversation_itself_is_exercised_by_every_answer_and_by_every_success() -> None:
    oracle = Oracle(CLAIMS)
    for operation, answer in (declare(), failed(publish("m0"), "timeout"), get()):
        oracle.observe(operation, answer)
    assert oracle.exercised["protocol"] == 3
    assert oracle.exercised["does-what-it-claims"] == 2
    assert oracle.outcomes == {("declare", True): 1, ("publish", False): 1, ("get", True): 1}


DECLARED = Declare(queue="q", order=Fifo())
RANKED = replace(DECLARED, order=Priority(2))
PUBLISHED = Publish(queue="q", message=Message(id="m0"))
HIGH = replace(PUBLISHED, message=Message(id="m0", priority=9))
RED = replace(PUBLISHED, message=Message(id="m0", properties={"colour": "red"}))
CONSUMED = Consume(channel="ch0", queue="q", consumer="c")
SELECTING = replace(CONSUMED, selector={"colour": "red"})


def key_after(*operations: Operation) -> Hashable:
    """Return the key of an oracle that has seen operations carried out without an event."""
    oracle = Oracle(everything())
    for operation in operations:
        assert oracle.observe(operation, OK) == []
    return oracle.key()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([RANKED], [replace(RANKED, order=Priority(7))]),
        ([DECLARED], [replace(DECLARED, durable=True)]),
        ([RANKED, PUBLISHED], [RANKED, HIGH]),
        ([DECLARED, PUBLISHED], [DECLARED, RED]),
        ([DECLARED, CONSUMED], [DECLARED, SELECTING]),
    ],
)
def test_keys_differ_where_later_messages_will_be_judged_differently(
    one: list[Operation], other: list[Operation]
) -> None:
    assert key_after(*one) != key_after(*other)


def test_keys_are_equal_where_a_queue_disregards_the_difference() -> None:
    assert key_after(DECLARED, PUBLISHED) == key_after(DECLARED, HIGH)


def test_a_crash_that_changes_nothing_leads_to_the_same_key() -> None:
    gets, crash = Get(channel="ch0", queue="q"), (Crash(), Restart())
    stays = replace(DECLARED, durable=True)
    assert key_after(stays, gets, *crash, gets) == key_after(stays, gets)
    assert key_after(DECLARED, gets, *crash, DECLARED, gets) != key_after(DECLARED, gets)


def test_keys_differ_by_the_name_of_a_publish_that_went_with_its_queue() -> None:
    def key(*, parks: bool) -> Hashable:
        oracle = Oracle(everything(parks=True))
        told: list[Told] = [(DECLARED, OK), (PUBLISHED, OK)]
        if parks:
            waits = replace(PUBLISHED, message=Message(id="m1"))
            told.append((waits, Answer(parked=True)))
        told += [(Delete(queue="q"), OK), (DECLARED, OK)]
        for operation, answer in told:
            assert oracle.observe(operation, answer) == []
        return oracle.key()

    assert key(parks=True) != key(parks=False)
    assert key(parks=True) == key(parks=True)


def test_a_fork_follows_its_own_conversation_and_counts_from_zero() -> None:
    oracle = Oracle(CLAIMS)
    for operation, answer in (declare(), publish("m0")):
        oracle.observe(operation, answer)
    one, other = oracle.fork(), oracle.fork()
    assert one.key() == other.key() == oracle.key()
    assert one.observe(*get(given("m0", None))) == []
    assert one.exercised["get-finds"] == 1
    assert not other.exercised
    assert one.key() != other.key()
    [breach] = other.observe(*get())
    assert breach.requirement == "get-finds"
