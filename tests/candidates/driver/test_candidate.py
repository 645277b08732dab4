"""Driver protocol 1 from the asking side: requests as they leave, answers as they are understood.

The drivers here are a few lines each, written for the one thing that is looked at. What drivers do
wrong under the gate is in tests/checks/gate/test_bad_candidates.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brokerproof.candidates.driver import guard as driver_guard
from brokerproof.candidates.driver import process as driver_process
from brokerproof.candidates.driver.candidate import DriverCandidate, DriverFault
from brokerproof.candidates.driver.process import (
    LAST_WORDS_CHARACTERS_MAX,
    DriverProcess,
    Ending,
    Limits,
    NoAnswer,
    has_members,
)
from brokerproof.candidates.driver.self_check import BrokerproofErrs
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.messages import Credit, Message, Priority
from brokerproof.spec.protocol.answers import (
    Accepted,
    Answer,
    ConsumerClosed,
    Delivered,
    Error,
    QueueDeleted,
)
from brokerproof.spec.protocol.driver import LINE_BYTES_MAX
from brokerproof.spec.protocol.operations import (
    Consume,
    Declare,
    Drain,
    Get,
    Inspect,
    Operation,
    Publish,
    Reset,
    SetCredit,
)

HELLO = {"ok": True, "name": "tiny", "version": "1", "capabilities": {"get": True}}
GET = Get(channel="ch0", queue="q0")

# Answers hello, and then with the lines that it was given, in turn; it keeps what it was asked.
RECITER = """
import json, sys
answers = iter(json.loads(sys.argv[1]))
log = open(sys.argv[2], "w")
for line in sys.stdin:
    log.write(line)
    log.flush()
    sys.stdout.write(next(answers) + "\\n")
    sys.stdout.flush()
"""


@contextmanager
def reciting(
    folder: Path, *answers: dict[str, Any] | str, hello: dict[str, Any] = HELLO
) -> Iterator[tuple[DriverCandidate, Path]]:
    """Yield a candidate that answers as told, and the file of what it was asked."""
    lines = [
        answer if isinstance(answer, str) else json.dumps({"id": number, **answer})
        for number, answer in enumerate((hello, *answers))
    ]
    log = folder / "asked.jsonl"
    command = [sys.executable, "-I", "-S", "-c", RECITER, json.dumps(lines), str(log)]
    candidate = DriverCandidate(f"exec:{shlex.join(command)}")
    try:
        yield candidate, log
    finally:
        candidate.close()


def fault_of(candidate: DriverCandidate, operation: Operation) -> str:
    """Return what is said of the answer to an operation, which is wrong."""
    with pytest.raises(DriverFault) as raised:
        candidate.handle(operation)
    return str(raised.value)


def ok(*events: dict[str, Any], **more: object) -> dict[str, Any]:
    """Return an answer without an error."""
    return {"ok": True, "events": list(events), **more}


# What is sent.


def test_every_field_is_sent_and_ids_count_from_hello(tmp_path: Path) -> None:
    with reciting(tmp_path, ok(), ok(), ok(), ok(), ok()) as (candidate, log):
        for operation in (
            Reset(),
            Declare(queue="q", order=Priority(10), durable=True),
            Publish(queue="q", message=Message(id="m0", properties={"colour": "red"})),
            Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(2)),
            SetCredit(consumer="c0", messages=0),
        ):
            candidate.handle(operation)
        asked = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["id"] for each in asked] == [0, 1, 2, 3, 4, 5]
    assert asked[0] == {"id": 0, "op": "hello", "protocol": 1}
    assert asked[1] == {"id": 1, "op": "reset"}
    assert asked[2] == {
        "id": 2,
        "op": "declare",
        "queue": "q",
        "order": {"kind": "priority", "levels": 10},
        "durable": True,
        "auto_delete": False,
        "lease_s": None,
        "deliveries": None,
        "dead_letters": None,
        "length": None,
        "overflow": None,
    }
    assert asked[3]["message"] == {
        "id": "m0",
        "priority": 4,
        "size": 1,
        "persistent": False,
        "properties": {"colour": "red"},
        "group": None,
    }
    assert asked[4]["credit"] == {"messages": 2, "bytes": None}
    assert asked[4].keys() > {"channel", "queue", "consumer", "mode", "selector", "priority"}
    assert (asked[5]["consumer"], asked[5]["channel"]) == ("c0", None)
    assert list(asked[5])[:2] == ["id", "op"]


@pytest.mark.parametrize(
    "operation",
    [
        Inspect(queue="q"),
        Declare(queue="", order=Priority(1)),
        Publish(queue="q", message=Message(id="\ud800")),
        Publish(queue="q", message=Message(id="m", properties={"n": float("inf")})),
    ],
)
def test_a_wrong_request_accuses_brokerproof_and_does_not_leave(
    operation: Operation, tmp_path: Path
) -> None:
    with reciting(tmp_path, ok()) as (candidate, log):
        with pytest.raises(BrokerproofErrs):
            candidate.handle(operation)
        assert candidate.handle(Reset()) == Answer()
        assert [json.loads(line)["op"] for line in log.read_text().splitlines()] == [
            "hello",
            "reset",
        ]


# What is understood.


def test_hello_is_what_the_driver_says_of_itself(tmp_path: Path) -> None:
    claims = {"orders": ["priority"], "modes": ["browse"], "browse": True, "mood": 3}
    hello = HELLO | {"capabilities": claims, "since": 1999}
    with reciting(tmp_path, hello=hello) as (candidate, _):
        told = candidate.hello()
    assert (told.name, told.version) == ("tiny", "1")
    assert told.capabilities.orders == ("priority",)
    assert told.capabilities.browse
    assert not told.capabilities.get


def test_inspect_is_taken_for_false_over_the_wire(tmp_path: Path) -> None:
    hello = HELLO | {"capabilities": {"get": True, "inspect": True}}
    with reciting(tmp_path, hello=hello) as (candidate, _):
        assert not candidate.hello().capabilities.inspect
        assert candidate.hello().capabilities.get


DELIVERED = {"event": "delivered", "delivery": "d0", "consumer": None, "queue": "q", "message": "m"}


@pytest.mark.parametrize(
    ("said", "understood"),
    [
        (ok(), Answer()),
        (
            ok(DELIVERED | {"redelivered": True, "mood": "good"}),
            Answer(
                (Delivered(delivery="d0", consumer=None, queue="q", message="m", redelivered=True),)
            ),
        ),
        (
            ok(
                {"event": "consumer_closed", "consumer": "c"},
                {"event": "queue_deleted", "queue": "q"},
            ),
            Answer((ConsumerClosed(consumer="c"), QueueDeleted(queue="q"))),
        ),
        (ok(parked=True), Answer(parked=True)),
        (ok({"event": "accepted", "message": "m"}), Answer((Accepted(message="m"),))),
        (
            {"ok": False, "error": {"code": "refused", "message": ""}},
            Answer(error=Error("refused", "")),
        ),
        (
            {
                "ok": False,
                "error": {"code": "timeout", "message": "later"},
                "events": [{"event": "consumer_closed", "consumer": "c"}],
            },
            Answer((ConsumerClosed(consumer="c"),), Error("timeout", "later")),
        ),
        (ok(error=None), Answer()),
    ],
)
def test_an_answer_is_understood(said: dict[str, Any], understood: Answer, tmp_path: Path) -> None:
    with reciting(tmp_path, ok(), said) as (candidate, _):
        candidate.handle(Reset())
        assert candidate.handle(Drain()) == understood


@pytest.mark.parametrize("name", ["delivery", "consumer", "queue", "message", "redelivered"])
def test_an_event_that_lacks_a_field_is_refused_with_the_field(name: str, tmp_path: Path) -> None:
    event = DELIVERED | {"redelivered": False}
    with reciting(tmp_path, ok({k: v for k, v in event.items() if k != name})) as (candidate, _):
        complaint = rf"reset: .*field `{name}` - at `\$.events\[0\]`"
        assert re.match(complaint, fault_of(candidate, Reset()))


@pytest.mark.parametrize(
    "text",
    [
        '{"id":1,"ok":true,"events":[],}',
        '{"id":1,"ok":true,"events":[]} x',
        "{'id':1}",
        '{"id":1,"ok":true,"events":[],"x":NaN}',
        '{"id":1,"ok":true,"events":[],"x":"\\ud800"}',
        '{"id":1.0,"ok":true,"events":[]}',
        '{"id":1,"ok":1,"events":[]}',
        '{"id":1,"ok":true,"events":{}}',
        "null",
        "",
        "   ",
        "\u2028",
    ],
)
def test_what_is_no_strict_json_is_refused(text: str, tmp_path: Path) -> None:
    with reciting(tmp_path, text) as (candidate, _):
        assert fault_of(candidate, Reset()).startswith("reset: it")


def test_the_answer_before_may_not_come_again(tmp_path: Path) -> None:
    with reciting(tmp_path, ok(), '{"id":1,"ok":true,"events":[]}') as (candidate, _):
        candidate.handle(Reset())
        with pytest.raises(DriverFault, match="drain: request 1 was answered twice"):
            candidate.handle(Drain())


# Failing, and being started again.


def test_after_a_fault_only_a_reset_is_taken_and_starts_it_again(tmp_path: Path) -> None:
    with reciting(tmp_path, ok(), "what?") as (candidate, _):
        candidate.handle(Reset())
        with pytest.raises(DriverFault, match="get: its answer is not in form") as first:
            candidate.handle(GET)
        with pytest.raises(DriverFault) as again:
            candidate.handle(GET)
        assert str(again.value) == str(first.value)
        assert candidate.handle(Reset()) == Answer()


def test_given_up_it_is_started_again_too(tmp_path: Path) -> None:
    with reciting(tmp_path, ok()) as (candidate, _):
        candidate.handle(Reset())
        candidate.give_up("enough")
        with pytest.raises(DriverFault, match=r"^enough$"):
            candidate.handle(GET)
        assert candidate.handle(Reset()) == Answer()


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("exec:", "this names no program"),
        ("exec:   ", "this names no program"),
        ("exec:'unclosed", "no closing quotation"),
        ("exec:./no-such-program --flag", "cannot be started: No such file or directory"),
    ],
)
def test_a_command_that_is_none_is_told(address: str, complaint: str) -> None:
    with pytest.raises(CandidateUnavailable, match=complaint):
        DriverCandidate(address)


def test_words_of_a_command_are_those_of_a_shell_and_no_shell_reads_them() -> None:
    code = "import sys; sys.stderr.write(repr(sys.argv[1:]))"
    command = shlex.join([sys.executable, "-S", "-c", code, "two words", "$HOME;`date`"])
    with pytest.raises(CandidateUnavailable) as raised:
        DriverCandidate(f"exec:{command}")
    assert "it said last: ['two words', '$HOME;`date`']" in str(raised.value)


# The process.

UPPER = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line.upper())
    sys.stdout.flush()
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf now", flush=True)
time.sleep(600)
"""


@contextmanager
def process_of(code: str) -> Iterator[DriverProcess]:
    """Yield a process that runs some Python, and end it."""
    process = DriverProcess([sys.executable, "-I", "-S", "-c", code])
    try:
        yield process
    finally:
        process.end(0.05)
    assert not has_members(process.group)


def test_lines_of_every_size_come_back_whole() -> None:
    with process_of(UPPER) as process:
        for size in (1, 2**16 - 1, 2**16, 2**16 + 1, 3 * 10**6, LINE_BYTES_MAX):
            assert process.exchange(b"a" * size + b"\n", 20) == b"A" * size


def test_a_carriage_return_belongs_to_the_end_of_a_line() -> None:
    with process_of(UPPER) as process:
        assert process.exchange(b"a" * LINE_BYTES_MAX + b"\r\n", 20) == b"A" * LINE_BYTES_MAX
        assert process.exchange(b"a\rb\r\n", 20) == b"A\rB"


def test_one_byte_more_than_the_longest_line_is_too_much() -> None:
    with (
        process_of(UPPER) as process,
        pytest.raises(NoAnswer, match="more than 16777216 bytes"),
    ):
        process.exchange(b"a" * (LINE_BYTES_MAX + 1) + b"\n", 20)


def test_a_large_request_to_one_that_talks_first_does_not_get_stuck() -> None:
    # It fills the pipe of standard error before it reads a byte.
    talk = "import sys\nsys.stderr.write('x' * 10**6 + 'last'); sys.stderr.flush()\n"
    with process_of(talk + UPPER) as process:
        assert process.exchange(b"a" * 10**6 + b"\n", 20) == b"A" * 10**6
        process.end(5)
        assert process.last_words.endswith("xlast")
        assert len(process.last_words) == LAST_WORDS_CHARACTERS_MAX


def test_one_that_never_reads_is_given_its_time_and_no_more() -> None:
    with process_of("import time; time.sleep(600)") as process:
        with pytest.raises(NoAnswer) as raised:
            process.exchange(b"a" * 10**6 + b"\n", 0.05)
        assert raised.value.hangs


def test_one_that_answers_before_it_has_read_is_found_out() -> None:
    code = "import sys, time\nprint('here', flush=True)\ntime.sleep(600)"
    with (
        process_of(code) as process,
        pytest.raises(NoAnswer, match="answered before it had read the request"),
    ):
        process.exchange(b"a" * 10**6 + b"\n", 20)


def test_drips_do_not_prolong_the_limit() -> None:
    code = (
        "import os, select\nwhile True:\n os.write(1, b'.'); os.write(2, b'.')\n"
        " select.select([], [], [], 0.005)"
    )
    with process_of(code) as process:
        with pytest.raises(NoAnswer) as raised:
            process.exchange(b"a\n", 0.1)
        assert raised.value.hangs


def test_the_status_and_the_last_words_are_told() -> None:
    with process_of("import sys; sys.stderr.write('one\\n\\n two \\n'); sys.exit(3)") as process:
        with pytest.raises(NoAnswer):
            process.exchange(b"a\n", 20)
        assert str(process.end(20)) == "exited with status 3"
        assert process.last_words == "one / two"


@pytest.mark.parametrize(
    ("pipe", "complaint"), [(0, "its input was closed"), (1, "its output ended")]
)
def test_one_that_closes_a_pipe_and_stays_is_told(pipe: int, complaint: str) -> None:
    hello = json.dumps({"id": 0, **HELLO})
    code = (
        "import os, sys, time\n"
        "sys.stdin.readline()\n"
        f"if {pipe} == 0: os.close(0)\n"
        "os.write(1, sys.argv[1].encode())\n"
        f"if {pipe} == 1: os.close(1)\n"
        "time.sleep(600)"
    )
    command = shlex.join([sys.executable, "-S", "-c", code, f"{hello}\n"])
    candidate = DriverCandidate(f"exec:{command}", Limits(ending_s=0.02))
    assert fault_of(candidate, Reset()) == f"reset: no answer, {complaint}"


def test_a_process_that_the_driver_leaves_may_put_its_things_in_order(tmp_path: Path) -> None:
    note = tmp_path / "note"
    child = (
        "import signal, sys, time\n"
        f"def end(*_): open({str(note)!r}, 'w').write('in order'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    leader = (
        "import subprocess, sys\n"
        f"command = [sys.executable, '-I', '-S', '-c', {child!r}]\n"
        "child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
    )
    with process_of(leader + UPPER) as process:
        assert process.exchange(b"a\n", 20) == b"A"
        assert process.end(20) == Ending(0)
    assert note.read_text() == "in order"


def test_signals_are_named() -> None:
    assert driver_process.signal_name(signal.SIGSEGV) == "SIGSEGV"
    assert driver_process.signal_name(1000) == "signal 1000"


def test_the_limits_are_those_of_the_protocol() -> None:
    assert Limits() == Limits(hello_s=10, operation_s=10, drain_s=30, ending_s=5)


def test_a_drain_has_more_time_than_an_operation() -> None:
    code = "import sys, json\nprint(json.dumps({'id': 0, **json.loads(sys.argv[1])}), flush=True)\n"
    code += "sys.stdin.read()"
    command = shlex.join([sys.executable, "-S", "-c", code, json.dumps(HELLO)])
    limits = Limits(operation_s=0.02, drain_s=0.05)
    for operation, limit in ((Drain(), "0.05"), (GET, "0.02")):
        candidate = DriverCandidate(f"exec:{command}", limits)
        with pytest.raises(DriverFault, match=rf"no answer within {limit} s") as raised:
            candidate.handle(operation)
        assert raised.value.hangs
        candidate.close()


# The guard.


def test_the_guard_keeps_track() -> None:
    assert driver_guard.watched(["watch 5\n", "watch 7\n", "forget 5\n", "forget 9\n"]) == {7}


def test_the_guard_ends_what_was_not_forgotten() -> None:
    command = [sys.executable, "-I", "-S", "-c", DEAF]
    script = str(Path(driver_guard.__file__))
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as watched,
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as forgotten,
    ):
        for each in (watched, forgotten):
            assert each.stdout is not None
            assert each.stdout.readline()
        orders = f"watch {watched.pid}\nwatch {forgotten.pid}\nforget {forgotten.pid}\n"
        subprocess.run([sys.executable, script, "0.02"], input=orders, text=True, check=True)
        assert watched.wait(20) == -signal.SIGKILL
        assert forgotten.poll() is None
        os.killpg(forgotten.pid, signal.SIGKILL)
