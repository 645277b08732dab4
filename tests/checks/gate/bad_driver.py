"""A driver with one fault, or with none: a queue to get from, in front of which the fault sits.

Without `--at` every operation but reset shows the fault, else the one with that number: counted
from each reset, which is 0, or with `--since start` from hello; `--of` counts requests of one kind
alone. Standard library only, as a driver is; the broker is the one of examples/drivers/driver.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Fields = dict[str, Any]

CLAIMS: Fields = {"orders": ["fifo"], "get": True, "release_position": "original"}
LONG_BYTES = 50 * 10**6
PHANTOM = {"event": "delivered", "consumer": None, "queue": "q0", "redelivered": False}


def example_broker() -> Any:
    """Return the broker of the example driver, without importing anything that is installed."""
    path = Path(__file__).parents[3] / "examples" / "drivers" / "driver.py"
    spec = importlib.util.spec_from_file_location("example_driver", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["example_driver"] = module
    spec.loader.exec_module(module)
    return module.Broker()


def say(data: bytes) -> None:
    """Write to standard output, at once."""
    os.write(1, data)


def line(answer: Fields) -> bytes:
    """Return an answer as a line."""
    return json.dumps(answer).encode() + b"\n"


def died(_: Fields) -> None:
    """Fall over with a traceback."""
    raise RuntimeError("out of paper")


def killed(_: Fields) -> None:
    """End like a crash in native code."""
    os.kill(os.getpid(), signal.SIGSEGV)


def left(_: Fields) -> None:
    """Exit in silence."""
    sys.exit(0)


def half_a_line(answer: Fields) -> None:
    """Stop in the middle of an answer."""
    say(line(answer)[:9])
    sys.exit(1)


def silent(_: Fields) -> None:
    """Answer nothing, and wait for the next request."""


def endless_line(_: Fields) -> None:
    """Write events until the pipe is closed."""
    say(b'{"id":1,"ok":true,"events":[')
    event = json.dumps(PHANTOM | {"delivery": "d", "message": "m"}).encode() + b","
    while True:
        say(event * 500)


def endless_words(answer: Fields) -> None:
    """Talk to standard error for longer than a pipe holds, then answer."""
    for number in range(40_000):
        sys.stderr.write(f"still here {number}\n")
    say(line(answer))


def told(answer: Fields, **event: object) -> None:
    """Answer with one more event."""
    say(line(answer | {"events": [*answer.get("events", ()), event]}))


def code(answer: Fields, code: str) -> None:
    """Answer with an error, whatever was done."""
    say(line({"id": answer["id"], "ok": False, "error": {"code": code, "message": "no"}}))


def slow(answer: Fields) -> None:
    """Take a while for everything."""
    time.sleep(0.05)
    say(line(answer))


def very_slow(answer: Fields) -> None:
    """Take three seconds for everything."""
    time.sleep(3)
    say(line(answer))


def endless_words_alone(_: Fields) -> None:
    """Talk to standard error, and never answer."""
    while True:
        os.write(2, b"still here\n" * 1_000)


def dribbling(answer: Fields) -> None:
    """Answer a byte at a time, and never end the line."""
    for byte in itertools.cycle(line(answer)[:-1]):
        say(bytes([byte]))
        time.sleep(0.05)


def many_events(answer: Fields) -> None:
    """Tell a hundred thousand events in one line."""
    event = json.dumps(PHANTOM | {"delivery": "d", "message": "m"}).encode()
    events = b",".join([event] * 100_000)
    say(b'{"id":%d,"ok":true,"events":[%b]}\n' % (answer["id"], events))


def allocates(answer: Fields) -> None:
    """Take ten gigabytes, a part at a time."""
    held = [b"x" * 10**8 for _ in range(100)]
    say(line(answer | {"held": len(held)}))


def forks(answer: Fields) -> None:
    """Copy the process; both answer from now on."""
    os.fork()
    say(line(answer))


def closes_output(_: Fields) -> None:
    """Close standard output, and go on."""
    os.close(1)
    while True:
        time.sleep(60)


FAULTS: dict[str, Callable[[Fields], None]] = {
    "died": died,
    "killed": killed,
    "left": left,
    "half a line": half_a_line,
    "half a line, then silence": lambda a: say(line(a)[:9]),
    "silent": silent,
    "endless line": endless_line,
    "endless words": endless_words,
    "long line": lambda a: say(line(a)[:-2] + b" " * LONG_BYTES + b"}\n"),
    "not JSON": lambda _: say(b"hello?\n"),
    "not an object": lambda _: say(b"[1]\n"),
    "two objects": lambda a: say(line(a)[:-1] * 2 + b"\n"),
    "deep": lambda a: say(line(a)[:-2] + b',"x":' + b"[" * 10**6 + b"\n"),
    "no UTF-8": lambda a: say(line(a)[:-2] + b',"x":"\xff"}\n'),
    "BOM": lambda a: say(b"\xef\xbb\xbf" + line(a)),
    "blank line": lambda a: say(b"\n" + line(a)),
    "wrong id": lambda a: say(line(a | {"id": 7777})),
    "text for id": lambda a: say(line(a | {"id": str(a["id"])})),
    "no id": lambda a: say(line({k: v for k, v in a.items() if k != "id"})),
    "two answers": lambda a: say(line(a) * 2),
    "no events": lambda a: say(line({k: v for k, v in a.items() if k != "events"})),
    "no error": lambda a: say(line(a | {"ok": False})),
    "ok with an error": lambda a: say(line(a | {"error": {"code": "refused", "message": ""}})),
    "unknown code": lambda a: code(a, "tired"),
    "unknown event": lambda a: told(a, event="dance", queue="q0"),
    "event without a field": lambda a: told(a, event="delivered", delivery="d", queue="q0"),
    "event with an empty id": lambda a: told(a, **PHANTOM, delivery="", message="m0"),
    "phantom": lambda a: told(a, **PHANTOM, delivery=f"p{a['id']}", message="never-published"),
    "internal": lambda a: code(a, "internal"),
    "refused": lambda a: code(a, "refused"),
    "unsupported": lambda a: code(a, "unsupported"),
    "wrong claim": lambda a: say(line(a | {"capabilities": {"get": "yes"}})),
    "contradicting claim": lambda a: say(line(a | {"capabilities": {"browse": True}})),
    "no claims": lambda a: say(line(a | {"capabilities": {}})),
    "no name": lambda a: say(line(a | {"name": ""})),
    "no capabilities": lambda a: say(line({k: v for k, v in a.items() if k != "capabilities"})),
    "carriage return": lambda a: say(line(a)[:-1] + b"\r\n"),
    "unknown field": lambda a: say(line(a | {"mood": "good"})),
    "slow": slow,
    "very slow": very_slow,
    "endless words alone": endless_words_alone,
    "dribbling": dribbling,
    "many events": many_events,
    "allocates": allocates,
    "forks": forks,
    "closes output": closes_output,
}


def leave_a_child(*, deaf: bool) -> None:
    """Start a process that stays in the group, and perhaps hears no signal that can be ignored."""
    ignore = "import signal; signal.signal(15, signal.SIG_IGN); " if deaf else ""
    command = [sys.executable, "-S", "-c", f"{ignore}import time; time.sleep(600)"]
    subprocess.Popen(command, stdin=subprocess.DEVNULL)


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fault", nargs="?", choices=[*FAULTS, "stubborn", "leaves a child"])
    parser.add_argument("--at", type=int)
    parser.add_argument("--since", choices=("reset", "start"), default="reset")
    parser.add_argument("--of", help="count requests of this kind alone")
    chosen = parser.parse_args()
    if chosen.fault == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if chosen.fault in ("stubborn", "leaves a child"):
        leave_a_child(deaf=chosen.fault == "stubborn")
    fault = FAULTS.get(chosen.fault)
    broker = example_broker()
    steps = itertools.count()
    for request in map(json.loads, sys.stdin.buffer):
        operation = request["op"]
        if operation == "reset" and chosen.since == "reset":
            steps = itertools.count()
        step = next(steps) if chosen.of in (None, operation) else None
        answer = broker.handle(request)
        if operation == "hello":
            answer["capabilities"] = CLAIMS
        counts = operation != "hello" or chosen.since == "start"
        hit = counts and step is not None and step == chosen.at
        if chosen.at is None:
            hit = operation not in ("hello", "reset")
        if fault is not None and hit:
            fault(answer)
        else:
            say(line(answer))
    while chosen.fault == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    main()
