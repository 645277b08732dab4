"""Levels are those of the documents, and what goes over the wire comes back as it was."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from brokerproof.spec.messages import (
    PRIORITIES,
    Credit,
    Fifo,
    Message,
    Priority,
    PriorityMapping,
    level_of,
)
from brokerproof.spec.protocol.answers import (
    OK,
    Answer,
    ConsumerClosed,
    Delivered,
    Error,
    LeaseExpired,
    QueueDeleted,
    refused,
    unsupported,
)
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
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
    Extend,
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
    name_of,
)

LEVELS = range(1, 11)

# One row for each number of levels, one digit for the level of each priority from 0 to 9.
AMQP = {
    1: "0000000000",
    2: "0000011111",
    3: "0000122222",
    4: "0000123333",
    5: "0001234444",
    6: "0001234555",
    7: "0012345666",
    8: "0012345677",
    9: "0123456788",
    10: "0123456789",
}
CLAMP = {n: "".join(str(min(priority, n - 1)) for priority in range(10)) for n in range(1, 11)}


def levels(number: int, mapping: PriorityMapping) -> str:
    """Return the levels of all priorities, as a row of the table."""
    return "".join(str(level_of(priority, Priority(number), mapping)) for priority in PRIORITIES)


@pytest.mark.parametrize("number", LEVELS)
def test_the_levels_are_those_of_the_table(number: int) -> None:
    assert levels(number, "amqp") == AMQP[number]
    assert levels(number, "clamp") == CLAMP[number]


def test_the_examples_of_the_protocol_are_in_the_table() -> None:
    def classes(row: str) -> str:
        ends = [(row.index(level), row.rindex(level)) for level in sorted(set(row))]
        return "|".join(f"{low}-{high}" if low != high else f"{low}" for low, high in ends)

    assert [classes(AMQP[n]) for n in (2, 3, 4)] == ["0-4|5-9", "0-3|4|5-9", "0-3|4|5|6-9"]


@pytest.mark.parametrize("number", LEVELS)
def test_the_formula_of_the_document_agrees(number: int) -> None:
    # PriorityQueueList: offset = 5 - (n + 1) / 2 in integers; index = clamp(p - offset, 0, n - 1).
    offset = 5 - (number + 1) // 2
    for priority in PRIORITIES:
        assert level_of(priority, Priority(number)) == max(0, min(priority - offset, number - 1))


def is_a_mapping(row: str, number: int) -> bool:
    """Whether a row is monotone, uses every level, and stays within them."""
    return list(row) == sorted(row) and set(row) == {str(level) for level in range(number)}


@pytest.mark.parametrize("number", LEVELS)
@pytest.mark.parametrize("mapping", ["amqp", "clamp"])
def test_levels_are_monotone_and_all_of_them_are_used(
    number: int, mapping: PriorityMapping
) -> None:
    assert is_a_mapping(levels(number, mapping), number)


@pytest.mark.parametrize("row", ["0000011112", "0101011111", "0000000000"])
def test_a_row_that_is_no_mapping_is_noticed(row: str) -> None:
    assert not is_a_mapping(row, 2)


def test_a_fifo_queue_has_one_level() -> None:
    assert {level_of(priority, Fifo()) for priority in PRIORITIES} == {0}


# On the wire.

OPERATIONS: list[tuple[Operation, str]] = [
    (Reset(), '{"op":"reset"}'),
    (
        Declare(queue="q", order=Priority(10), durable=True),
        (
            '{"op":"declare","queue":"q","order":{"kind":"priority","levels":10},"durable":true,'
            '"auto_delete":false,"lease_s":null,"deliveries":null,"dead_letters":null,'
            '"length":null,"overflow":null}'
        ),
    ),
    (
        Declare(queue="q", order=Fifo(), lease_s=2, length=1, overflow="refuse"),
        (
            '{"op":"declare","queue":"q","order":{"kind":"fifo"},"durable":false,'
            '"auto_delete":false,"lease_s":2,"deliveries":null,"dead_letters":null,'
            '"length":1,"overflow":"refuse"}'
        ),
    ),
    (
        Publish(queue="q", message=Message(id="m0", persistent=True, properties={"colour": "red"})),
        (
            '{"op":"publish","queue":"q","message":{"id":"m0","priority":4,"size":1,"persistent":true,'
            '"properties":{"colour":"red"},"group":null},"not_before_s":null,"expires_s":null}'
        ),
    ),
    (
        Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(2)),
        (
            '{"op":"consume","channel":"ch0","queue":"q","consumer":"c0","mode":"acknowledge",'
            '"credit":{"messages":2,"bytes":null},"selector":null,"priority":0,"auto_close":false,'
            '"queues":[],"exclusive":false}'
        ),
    ),
    (
        SetCredit(consumer="c0", messages=0),
        '{"op":"credit","consumer":"c0","channel":null,"messages":0,"bytes":null}',
    ),
    (Cancel(consumer="c0"), '{"op":"cancel","consumer":"c0"}'),
    (
        Get(channel="ch0", queue="q", mode="automatic"),
        '{"op":"get","channel":"ch0","queue":"q","mode":"automatic"}',
    ),
    (Acknowledge(delivery="d0"), '{"op":"acknowledge","delivery":"d0"}'),
    (Release(delivery="d0"), '{"op":"release","delivery":"d0","delay_s":null}'),
    (Extend(delivery="d0"), '{"op":"extend","delivery":"d0"}'),
    (Reject(delivery="d0"), '{"op":"reject","delivery":"d0"}'),
    (CloseChannel(channel="ch0"), '{"op":"close_channel","channel":"ch0"}'),
    (Purge(queue="q"), '{"op":"purge","queue":"q"}'),
    (Delete(queue="q"), '{"op":"delete","queue":"q"}'),
    (Crash(), '{"op":"crash"}'),
    (Restart(), '{"op":"restart"}'),
    (Drain(), '{"op":"drain"}'),
    (Flush(consumer="c0"), '{"op":"flush","consumer":"c0"}'),
    (Advance(seconds=3), '{"op":"advance","seconds":3}'),
    (Inspect(queue="q"), '{"op":"inspect","queue":"q"}'),
]


@pytest.mark.parametrize(("operation", "text"), OPERATIONS, ids=lambda each: str(each)[:24])
def test_an_operation_is_written_as_the_protocol_shows_it_and_read_again(
    operation: Operation, text: str
) -> None:
    assert msgspec.json.encode(operation).decode() == text
    assert msgspec.json.decode(text, type=Operation) == operation
    assert text.startswith(f'{{"op":"{name_of(operation)}"')


def test_every_operation_is_among_the_examples() -> None:
    assert {type(operation) for operation, _ in OPERATIONS} == set(Operation.__args__)


ANSWERS = [
    OK,
    Answer((Delivered(delivery="d0", consumer="c0", queue="q", message="m0", redelivered=True),)),
    Answer((Delivered(delivery="d0", consumer=None, queue="q", message="m0"),)),
    Answer((ConsumerClosed(consumer="c0"), QueueDeleted(queue="q"))),
    Answer((LeaseExpired(message="m0"),)),
    refused("no such queue"),
    unsupported("no selectors", (ConsumerClosed(consumer="c0"),)),
    Answer((), Error("timeout")),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_an_answer_is_read_as_it_was_written(answer: Answer) -> None:
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer


def test_an_event_is_written_as_the_protocol_shows_it() -> None:
    event = Delivered(delivery="d0", consumer="c0", queue="q", message="m0")
    assert msgspec.json.encode(event).decode() == (
        '{"event":"delivered","delivery":"d0","consumer":"c0","queue":"q","message":"m0",'
        '"redelivered":false,"count":null}'
    )


@pytest.mark.parametrize("code", ["unsupported", "refused", "timeout", "crashed", "internal"])
def test_only_two_errors_say_that_nothing_happened(code: str) -> None:
    error = msgspec.convert({"code": code}, Error)
    assert error.definite == (code in ("unsupported", "refused"))
    assert not Answer((), error).ok


@pytest.mark.parametrize(
    ("kind", "text", "path"),
    [
        (Operation, '{"op":"dance"}', "$.op"),
        (Operation, '{"queue":"q"}', "field `op`"),
        (Operation, '{"op":"publish","queue":"q"}', "field `message`"),
        (Operation, '{"op":"publish","queue":1,"message":{"id":"m0"}}', "$.queue"),
        (
            Operation,
            '{"op":"publish","queue":"q","message":{"id":"m0","size":"1"}}',
            "$.message.size",
        ),
        (
            Operation,
            '{"op":"publish","queue":"q","message":{"id":"m0","size":1.5}}',
            "$.message.size",
        ),
        (
            Operation,
            '{"op":"publish","queue":"q","message":{"id":"m0","properties":{"a":[1]}}}',
            "$.message.properties[...]",
        ),
        (Operation, '{"op":"declare","queue":"q","order":{"kind":"lifo"}}', "$.order.kind"),
        (Operation, '{"op":"declare","queue":"q","order":{"kind":"priority"}}', "$.order"),
        (Operation, '{"op":"get","channel":"ch0","queue":"q","mode":"browse"}', "$.mode"),
        (
            Operation,
            '{"op":"consume","channel":"a","queue":"q","consumer":"c","credit":{"messages":"2"}}',
            "$.credit.messages",
        ),
        (Answer, '{"events":[{"event":"delivered","consumer":"c0"}]}', "$.events[0]"),
        (Answer, '{"events":[{"event":"sung"}]}', "$.events[0].event"),
        (Answer, '{"error":{"code":"tired"}}', "$.error.code"),
        (Hello, '{"name":"a","version":"1","capabilities":{"get":"yes"}}', "$.capabilities.get"),
        (
            Hello,
            '{"name":"a","version":"1","capabilities":{"modes":["x"]}}',
            "$.capabilities.modes[0]",
        ),
        (Hello, '{"name":"a","version":"1","capabilities":{"browse":true}}', "$.capabilities"),
        (
            Hello,
            '{"name":"a","version":"1","capabilities":{"priority_levels":11}}',
            "$.capabilities",
        ),
        (Hello, '{"name":"a","capabilities":{}}', "field `version`"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(kind: object, text: str, path: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(text, type=kind)
    assert path in str(raised.value)


def test_fields_that_are_not_known_are_ignored() -> None:
    text = '{"op":"drain","hurry":true}'
    assert msgspec.json.decode(text, type=Operation) == Drain()


@pytest.mark.parametrize(
    ("claim", "complaint"),
    [
        (lambda: Capabilities(browse=True), "browse must be claimed"),
        (lambda: Capabilities(modes=("browse",)), "browse must be claimed"),
        (lambda: Capabilities(priority_levels=0), "priority_levels must be 1 to 10, not 0"),
        (lambda: Capabilities(priority_levels=11), "priority_levels must be 1 to 10, not 11"),
    ],
)
def test_claims_that_contradict_each_other_cannot_be_made(
    claim: Callable[[], Capabilities], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        claim()


def test_what_is_not_named_is_not_claimed() -> None:
    read = msgspec.json.decode('{"name":"a","version":"1","capabilities":{}}', type=Hello)
    assert read.capabilities == Capabilities()
    assert read.capabilities.modes == ()
    assert not read.capabilities.get
