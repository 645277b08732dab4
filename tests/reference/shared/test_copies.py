"""A copy of a broker has the graph of its original, and shares no object that changes.

The oracle is a plain walk over both graphs at once. It knows no class: it follows slots, containers
and bound methods, and requires that the copies are as many and linked as the originals are.
"""

from __future__ import annotations

import enum
import random
import threading
from array import array
from collections import deque
from dataclasses import dataclass
from io import BytesIO
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

import msgspec
import pytest

from brokerproof.checks.threads.plain_attributes import slots_of
from brokerproof.reference import make
from brokerproof.reference.shared import copies
from brokerproof.reference.shared.atomics import AtomicReference
from brokerproof.reference.shared.copies import constant, copied
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Get,
    Inspect,
    Operation,
    Publish,
    Release,
    Reset,
    SetCredit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESSES = [
    "qpid-push",
    "qpid-push?pointer=inclusive&runner=drain",
    "qpid-push?pointer=published&acquisition=stealable",
    "qpid-pull?runner=drain",
    "qpid-pull?connections=shared",
    "rabbitmq-paging?segment=2&batch=1&target=1",
    "activemq-cursor?page=2&memory=3000",
    "activemq-cursor-5.1",
]
VALUES = (str, bytes, int, float, type(None), enum.Enum, type, msgspec.Struct)


def parts_of(whole: object) -> Iterator[object]:
    """Yield all that an object refers to, always in the same order."""
    if isinstance(whole, MethodType):
        yield from (whole.__func__, whole.__self__)
    elif isinstance(whole, FunctionType):
        yield from (each.cell_contents for each in whole.__closure__ or ())
    elif isinstance(whole, dict):
        for item in whole.items():
            yield from item
    elif isinstance(whole, set):
        yield from sorted(whole)
    elif isinstance(whole, list | tuple | deque | bytearray | array):
        yield from whole
    else:
        yield from (getattr(whole, slot) for slot in slots_of(type(whole)))


def is_shared(whole: object) -> bool:
    """Return whether nothing in an object can change."""
    if isinstance(whole, VALUES) or any(whole is each for each in copies._CONSTANTS):
        return True
    form = getattr(type(whole), "__dataclass_params__", None)
    is_frozen = isinstance(whole, tuple | FunctionType) or getattr(form, "frozen", False)
    return is_frozen and all(map(is_shared, parts_of(whole)))


def difference(original: object, copy: object) -> str:
    """Return the first difference of two graphs, as the path to it; empty if there is none."""
    pairs: dict[int, object] = {}
    copies_met: set[int] = set()
    kept: list[object] = []
    front = [("it", original, copy)]
    for path, one, other in front:
        kept += [one, other]
        if type(one) is not type(other):
            return f"{path} is a {type(one)} and a {type(other)}"
        if is_shared(one):
            if one is not other and one != other:
                return f"{path} differs"
            continue
        if isinstance(one, tuple | MethodType):
            pass
        elif id(one) in pairs or id(other) in copies_met:
            if pairs.get(id(one)) is not other:
                return f"{path} is linked otherwise"
            continue
        elif one is other:
            return f"{path} is shared"
        pairs[id(one)] = other
        copies_met.add(id(other))
        ones, others = list(parts_of(one)), list(parts_of(other))
        if len(ones) != len(others):
            return f"{path} has {len(ones)} and {len(others)} parts"
        front += [
            (f"{path}, {type(one).__name__} {at}", *both)
            for at, both in enumerate(zip(ones, others, strict=True))
        ]
    return ""


def operations(seed: int, *, durable: bool) -> Iterator[Operation]:
    """Yield a run of two queues; what a broker does not claim it refuses."""
    draw = random.Random(seed)  # noqa: S311 - a repeatable choice is wanted
    yield Reset()
    yield Declare(queue="q", order=Priority(2) if seed % 2 else Fifo(), durable=durable)
    yield Declare(queue="p", order=Fifo())
    for number in range(80):
        queue, channel = draw.choice("qqp"), draw.choice("xy")
        consumer = f"c{number // 8}"
        message = Message(id=f"m{number}", size=draw.choice((0, 700)), persistent=number % 2 == 0)
        mode: ConsumeMode = draw.choice(("acknowledge", "browse"))
        window = Credit(draw.choice((0, 1, 3)))
        several = ("q", "p") if draw.random() < 0.5 and queue == "q" else ()
        delivery = f"d{draw.randrange(number + 1)}"
        match draw.choice(("publish", "publish", "consume", "get", "settle", "leave", "window")):
            case "publish":
                expires = draw.choice((None, 2))
                yield Publish(queue=queue, message=message)
                yield Publish(queue=queue, message=Message(id=f"n{number}"), expires_s=expires)
            case "consume":
                yield Consume(
                    queue=queue,
                    queues=several,
                    channel=channel,
                    consumer=consumer,
                    mode=mode,
                    credit=window,
                )
            case "get":
                yield Get(queue=queue, channel=channel)
            case "settle":
                release = Release(delivery=delivery)
                yield draw.choice((release, Acknowledge(delivery=delivery)))
            case "leave":
                yield Cancel(consumer=consumer)
                yield draw.choice((Advance(seconds=1), CloseChannel(channel=channel)))
            case "window":
                yield SetCredit(channel=channel, messages=draw.choice((1, 5)))
        yield Inspect(queue="q")


def first_difference(address: str) -> str:
    """Compare the broker with its copy in the course of a few runs."""
    for seed in range(2):
        broker = make(address)
        durable = broker.hello().capabilities.durable
        for number, operation in enumerate(operations(seed, durable=durable)):
            broker.handle(operation)
            found = difference(broker, broker.fork()) if number % 5 == 0 else ""
            if found:
                return found
    return ""


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_copy_has_the_graph_of_its_original(address: str) -> None:
    assert first_difference(address) == ""


def test_a_common_cell_that_is_not_declared_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COMMON_CELLS", ())
    monkeypatch.setattr(copies, "_COPIERS", copies._Copiers())
    assert "linked otherwise" in first_difference("qpid-pull?runner=drain")


class Part:
    """An object that is not shared, with a cell and a container."""

    __slots__ = ("cell", "held", "other")

    def __init__(self, other: Part | None) -> None:
        self.cell: AtomicReference[object] = AtomicReference(other)
        self.held: list[object] = [1]
        self.other: object = other


def test_one_object_has_one_copy_and_a_ring_stays_a_ring() -> None:
    ring = Part(None)
    ring.cell.value = ring.other = ring
    copy = copied([ring, ring])
    assert difference([ring, ring], copy) == ""
    assert copy[0] is copy[1] is copy[0].cell.value is copy[0].other
    assert copy[0] is not ring


def test_a_long_list_is_copied_on_a_short_stack() -> None:
    last = Part(None)
    for _ in range(5_000):
        before = Part(None)
        before.cell.value = last
        last = before
    length, node = 0, copied(last)
    while isinstance(node.cell.value, Part):
        node, length = node.cell.value, length + 1
    assert length == 5_000


def test_a_constant_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_CONSTANTS", {})
    fixed = Part(None)
    constant(fixed)
    assert copied(Part(fixed)).other is fixed


class Extended(Part):
    """A class as a user adds one to a broker: it has no slots of its own."""


def test_the_attributes_that_a_subclass_adds_are_copied() -> None:
    original = Extended(None)
    original.noted = [original]  # type: ignore[attr-defined]
    copy = copied(original)
    assert type(copy) is Extended
    assert copy.noted == [copy]  # type: ignore[attr-defined]


@pytest.mark.parametrize("foreign", [threading.Thread(), [].append, BytesIO()], ids=type)
def test_an_object_from_elsewhere_is_refused(foreign: object) -> None:
    with pytest.raises(TypeError, match="cannot be copied"):
        copied([foreign])


@dataclass(frozen=True, slots=True)
class Frozen:
    """It claims to hold values alone, and does not."""

    held: list[int]


def shared_container() -> object:
    one, other = Part(None), Part(None)
    one.held = other.held
    return [one, other]


def common_cell() -> object:
    one, other = Part(None), Part(None)
    one.cell = other.cell
    return [one, other]


def closure() -> object:
    held = [1]
    part = Part(None)
    part.other = lambda: held
    return part


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (shared_container(), "linked otherwise"),
        (common_cell(), "linked otherwise"),
        (Frozen([1]), "shared"),
        (closure(), "shared"),
    ],
)
def test_a_graph_that_breaks_the_rules_of_copying_is_found_out(what: object, said: str) -> None:
    assert said in difference(what, copied(what))
