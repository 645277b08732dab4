"""The self-check finds each way in which the gate's own requests could be wrong.

Every wrong request has a twin that differs in nothing but the mistake, and passes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from brokerproof.candidates.driver.self_check import BrokerproofErrs, SelfCheck
from brokerproof.spec.protocol.answers import OK, Answer, Error, refused
from brokerproof.spec.protocol.driver import LINE_BYTES_MAX, OPERATIONS, REQUESTS

Fields = dict[str, Any]

MESSAGE: Fields = {
    "id": "m0",
    "priority": 4,
    "size": 1,
    "persistent": False,
    "properties": {},
    "group": None,
}
PUBLISH: Fields = {
    "op": "publish",
    "queue": "q0",
    "message": MESSAGE,
    "not_before_s": None,
    "expires_s": None,
}
WINDOW: Fields = {"messages": None, "bytes": None}
CONSUME: Fields = {
    "op": "consume",
    "channel": "ch0",
    "queue": "q0",
    "consumer": "c0",
    "mode": "acknowledge",
    "credit": WINDOW,
    "selector": None,
    "priority": 0,
    "auto_close": False,
    "queues": [],
    "exclusive": False,
}
DECLARE: Fields = {
    "op": "declare",
    "queue": "q0",
    "order": {"kind": "fifo"},
    "durable": False,
    "auto_delete": False,
    "lease_s": None,
    "deliveries": None,
    "dead_letters": None,
    "length": None,
    "overflow": None,
}
GET: Fields = {"op": "get", "channel": "ch0", "queue": "q0", "mode": "acknowledge"}
CREDIT: Fields = {"op": "credit", "consumer": "c0", "channel": None, **WINDOW}
HELLO: Fields = {"op": "hello", "protocol": 1}
ACKNOWLEDGE: Fields = {"op": "acknowledge", "delivery": "d0"}
RESET: Fields = {"op": "reset"}


def line(number: int, fields: Fields) -> bytes:
    """Return a request as a line."""
    return json.dumps({"id": number, **fields}, allow_nan=True).encode() + b"\n"


def sent(*requests: Fields, answer: Answer = OK) -> SelfCheck:
    """Return a check that has seen hello and these requests, each answered alike."""
    check = SelfCheck()
    for number, fields in enumerate((HELLO, *requests)):
        check.before(line(number, fields))
        check.after(answer)
    return check


def prioritized(levels: object) -> Fields:
    """Return a declaration of so many levels."""
    return DECLARE | {"order": {"kind": "priority", "levels": levels}}


def carrying(**fields: object) -> Fields:
    """Return a publish whose message has these fields."""
    return PUBLISH | {"message": MESSAGE | fields}


def without(fields: Fields, name: str) -> Fields:
    """Return a request that lacks a field."""
    return {key: value for key, value in fields.items() if key != name}


def test_every_operation_of_a_driver_is_a_request_with_an_id() -> None:
    assert set(REQUESTS) == {"hello", *(each.__struct_config__.tag for each in OPERATIONS)}
    assert "inspect" not in REQUESTS
    assert all("id" in shape.__struct_fields__ for shape in REQUESTS.values())


WRONG: list[tuple[Fields, Fields, str]] = [
    # The wrong request, its twin, and what is complained of.
    (without(GET, "mode"), GET, "missing required field `mode`"),
    (without(DECLARE, "durable"), DECLARE, "missing required field `durable`"),
    (without(CONSUME, "credit"), CONSUME, "missing required field `credit`"),
    (CONSUME | {"credit": {"messages": 1}}, CONSUME, "`bytes` - at `$.credit`"),
    (carrying(size=1) | {"message": without(MESSAGE, "size")}, PUBLISH, "`size` - at `$.message`"),
    (GET | {"mood": "good"}, GET, "unknown field `mood`"),
    (GET | {"op": "inspect"}, GET, "Invalid value 'inspect' - at `$.op`"),
    (GET | {"mode": "browse"}, CONSUME | {"mode": "browse"}, "`$.mode`"),
    (GET | {"queue": ""}, GET | {"queue": "q"}, "length >= 1 - at `$.queue`"),
    (GET | {"channel": "c" * 1025}, GET | {"channel": "c" * 1024}, "length <= 1024"),
    (ACKNOWLEDGE | {"delivery": ""}, ACKNOWLEDGE, "`$.delivery`"),
    (CONSUME | {"consumer": ""}, CONSUME, "`$.consumer`"),
    (carrying(id=""), carrying(id="m"), "`$.message.id`"),
    (GET | {"queue": 7}, GET | {"queue": "7"}, "Expected `str`, got `int`"),
    (carrying(priority=2**31), carrying(priority=10), "`$.message.priority`"),
    (carrying(priority=4.0), carrying(priority=4), "Expected `int`, got `float`"),
    (carrying(size=2**31), carrying(size=2**31 - 1), "`$.message.size`"),
    (carrying(size=-1), carrying(size=0), "`$.message.size`"),
    (carrying(persistent=1), carrying(persistent=True), "`$.message.persistent`"),
    (carrying(properties={"a": None}), carrying(properties={"a": 1.5}), "`$.message.properties"),
    (carrying(properties={"a": [1]}), carrying(properties={"a": "1"}), "`$.message.properties"),
    (carrying(properties={"a": float("nan")}), carrying(properties={"a": 0.5}), "malformed"),
    (prioritized(0), prioritized(1), ">= 1 - at `$.order.levels`"),
    (prioritized(11), prioritized(10), "<= 10 - at `$.order.levels`"),
    (prioritized(True), prioritized(2), "`$.order.levels`"),
    (CONSUME | {"credit": WINDOW | {"messages": -1}}, CONSUME, "`$.credit.messages`"),
    (CREDIT | {"bytes": 2**31}, CREDIT | {"bytes": 2**31 - 1}, "`$.bytes`"),
    (CONSUME | {"priority": 2**31}, CONSUME | {"priority": 2**31 - 1}, "`$.priority`"),
    (CONSUME | {"priority": -(2**31) - 1}, CONSUME | {"priority": -(2**31)}, "`$.priority`"),
    (CONSUME | {"selector": {"a": None}}, CONSUME | {"selector": {"a": True}}, "`$.selector"),
    (HELLO | {"protocol": 2}, HELLO, "`$.protocol`"),
    (CREDIT | {"channel": "ch0"}, CREDIT, "credit is for either a consumer or a channel"),
    (CREDIT | {"consumer": None}, CREDIT | {"consumer": None, "channel": "ch0"}, "credit is for"),
]


@pytest.mark.parametrize(("wrong", "twin", "complaint"), WRONG, ids=lambda each: str(each)[:60])
def test_a_request_that_is_not_in_form_does_not_leave(
    wrong: Fields, twin: Fields, complaint: str
) -> None:
    with pytest.raises(BrokerproofErrs) as raised:
        sent(wrong)
    assert str(raised.value).startswith("brokerproof itself is wrong")
    assert complaint in str(raised.value)
    sent(twin)


def test_hello_comes_first() -> None:
    with pytest.raises(BrokerproofErrs, match=r"before hello \(rule 47\)"):
        SelfCheck().before(line(0, RESET))
    SelfCheck().before(line(0, HELLO))
    sent(HELLO, RESET, HELLO)


@pytest.mark.parametrize("number", [0, 1, 3, 2**53, -1])
def test_an_id_is_the_next(number: int) -> None:
    check = sent(RESET)
    with pytest.raises(BrokerproofErrs, match=r"rules? .*4[23]"):
        check.before(line(number, RESET))
    check.before(line(2, RESET))


def test_one_request_is_under_way_at_a_time() -> None:
    check = sent(RESET)
    check.before(line(2, GET))
    with pytest.raises(BrokerproofErrs, match=r"not answered yet \(rule 41\)"):
        check.before(line(3, GET))
    check.after(OK)
    check.before(line(3, GET))


@pytest.mark.parametrize(
    "wrong",
    [
        line(1, GET)[:-1],
        line(1, GET) * 2,
        line(1, GET)[:-1] + b"\r\n",
        b"\n" + line(1, GET),
        b"",
        line(1, GET)[:-2] + b"\n",
        line(1, GET).replace(b"q0", b"\xff"),
        b"\xef\xbb\xbf" + line(1, GET),
    ],
)
def test_a_line_is_a_line(wrong: bytes) -> None:
    with pytest.raises(BrokerproofErrs, match=r"43"):
        sent().before(wrong)
    sent().before(line(1, GET))


def test_a_line_is_not_longer_than_the_longest() -> None:
    def padded(length: int) -> bytes:
        bare = line(1, carrying(properties={"a": ""}))[:-1]
        text = b'"a": "' + b"x" * (length - len(bare))
        return bare.replace(b'"a": "', text) + b"\n"

    with pytest.raises(BrokerproofErrs, match=rf"more than {LINE_BYTES_MAX} bytes"):
        sent().before(padded(LINE_BYTES_MAX + 1))
    sent().before(padded(LINE_BYTES_MAX))


@pytest.mark.parametrize(("request_", "rule"), [(PUBLISH, 16), (CONSUME, 25)])
def test_an_id_is_not_used_twice_between_resets(request_: Fields, rule: int) -> None:
    with pytest.raises(BrokerproofErrs, match=rf"second time since the last reset \(rule {rule}\)"):
        sent(RESET, request_, GET, request_)
    sent(RESET, request_, RESET, request_)
    another = json.loads(json.dumps(request_).replace("m0", "m1").replace("c0", "c1"))
    sent(RESET, request_, another)


def test_an_id_may_be_used_again_only_if_nothing_happened_for_certain() -> None:
    sent(PUBLISH, PUBLISH, answer=refused("no"))
    with pytest.raises(BrokerproofErrs, match="second time"):
        sent(PUBLISH, PUBLISH, answer=Answer(error=Error("timeout", "perhaps")))


def test_what_is_wrong_is_shown_with_the_request() -> None:
    with pytest.raises(BrokerproofErrs) as raised:
        sent(GET | {"queue": ""})
    assert '{"id": 1, "op": "get", "channel": "ch0", "queue": ""' in str(raised.value)
    assert not isinstance(raised.value, Exception)


# What is remembered of requests.

RESET_BODY = b'"op":"reset"}\n'
PUBLISH_BODY = (
    b'"op":"publish","queue":"q0","message":{"id":"m0","priority":4,"size":1,"persistent":false,'
    b'"properties":{},"group":null},"not_before_s":null,"expires_s":null}\n'
)


def test_a_request_that_is_known_is_still_held_against_its_turn() -> None:
    check = SelfCheck()
    check.before(b'{"id":0,"op":"hello","protocol":1}\n')
    check.after()
    check.before(b'{"id":1,' + RESET_BODY)
    check.after()
    check.before(b'{"id":2,' + PUBLISH_BODY)
    check.after()
    with pytest.raises(BrokerproofErrs, match=r"second time since the last reset \(rule 16\)"):
        check.before(b'{"id":3,' + PUBLISH_BODY)
    check.before(b'{"id":3,' + RESET_BODY)
    with pytest.raises(BrokerproofErrs, match="rule 41"):
        check.before(b'{"id":4,' + RESET_BODY)
    check.after()
    check.before(b'{"id":4,' + PUBLISH_BODY)
    check.after()
    with pytest.raises(BrokerproofErrs, match="rule 42"):
        check.before(b'{"id":9,' + RESET_BODY)


def test_a_request_with_an_id_of_its_own_is_not_remembered() -> None:
    check = SelfCheck()
    check.before(b'{"id":0,"op":"hello","protocol":1}\n')
    check.after()
    check.before(b'{"id":7,"op":"reset","id":1}\n')
    check.after()
    with pytest.raises(BrokerproofErrs, match=r"the id 1 where 2 is the next \(rule 42\)"):
        check.before(b'{"id":2,"op":"reset","id":1}\n')
