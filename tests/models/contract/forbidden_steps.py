"""Runs of the contract that end before a forbidden step, kept in a file with the guards to blame.

The file is the memory of the guards: `test_guards.py` takes each run again, so a guard that is
deleted or weakened is not to blame for a step that it used to forbid. `python -m
tests.models.contract.forbidden_steps` makes the file anew after the contract was changed on
purpose: it walks at random through small worlds, and keeps a run for each change of a guard
(`mutants`) that it shows. Changes that no run shows are listed in the file too.
"""

from __future__ import annotations

import random
from copy import copy
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from brokerproof.models.contract.core import Contract, Entry, Mode
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language.attack.mutants import Mutant, mutants
from brokerproof.models.language.core.model import Action, System, trace
from brokerproof.models.language.core.terms import Bool, Int
from brokerproof.models.language.read.pointwise import Frame, Pointwise, World
from brokerproof.models.language.read.pointwise_code import Compiled, Compiler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE = Path(__file__).with_name("forbidden_steps.json")
CONTRACTS = {"core": Contract, "whole": WholeContract}

FRAMES = 90
WALKS = 100
STEPS_MAX = 24
TRIES = 30
"""Instances of actions that are tried in each state of a walk."""

WEIGHTS = {
    **dict.fromkeys(("publish", "consume", "deliver", "browse", "release", "acknowledge"), 12),
    **dict.fromkeys(("crash", "crash_at_work", "delete", "queue_deleted", "leave", "purge"), 1),
    **dict.fromkeys(("drop_in_a_crash", "close_channel", "advance", "set_pool", "cancel"), 2),
}
"""How often an action is tried; others have 4."""

SIZES = {"Queue": 2, "Channel": 2, "Consumer": 3, "Entry": 4}
WHOLE_NUMBERS = {"limit": 2, "byte_limit": 3, "seconds": 2, "size": 3, "rank": 1, "level": 1}
"""The largest value of a number, by its name; others are at most 1."""

Step: TypeAlias = tuple[str, tuple[int, ...]]


class Forbidden(msgspec.Struct, frozen=True):
    """A run that ends before a forbidden step.

    Attributes:
        guard: the label of a guard that forbids the last step.
        frame: the number of the small world.
        steps: actions with their arguments; all but the last one are lawful.
        changes: changes of the guard after which it forbids the last step no more.
    """

    guard: str
    frame: int
    steps: list[Step]
    changes: list[str]


class Memory(msgspec.Struct, frozen=True):
    """The small worlds of a contract, its forbidden steps, and the changes that none shows."""

    frames: list[Frame]
    forbidden: list[Forbidden]
    not_shown: list[str]


@cache
def remembered() -> dict[str, Memory]:
    """Return the file, by contract."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Memory])


@cache
def reading(contract: str) -> Pointwise:
    """Return the pointwise reading of a contract, by which the oracle follows a broker."""
    return Pointwise(trace(CONTRACTS[contract]), Entry)


def beginning(contract: Pointwise, frame: Frame) -> World:
    """Return the initial world with all elements of a frame."""
    _, world = contract.empty({symbol.name: 0 for symbol in contract.rigid if not symbol.domain})
    for family, size in zip(contract.families, frame.sizes, strict=True):
        for _ in range(size):
            world = contract.grown(world, family)
    return world


def changed(contract: Pointwise, mutant: Mutant) -> Pointwise:
    """Return a reading with one action changed."""
    code = Compiler(contract.system, Entry).compile(mutant.action)
    reading = copy(contract)
    reading.actions = {**contract.actions, mutant.original.name: code}
    return reading


def blamed(contract: Pointwise, frame: Frame, world: World, step: Step) -> set[str]:
    """Return the labels of the guards that forbid a step; none if it is lawful."""
    _, cases = contract.take(frame, world, *step)
    return {label for blame in cases for label in blame}


def allows(code: Compiled, frame: Frame, world: World, arguments: Sequence[int]) -> bool:
    """Whether an action is lawful in a world that leaves nothing open."""
    rest, entries = world
    own = None if code.focus_at is None else entries[arguments[code.focus_at]]
    return code.lawful(frame.rows, frame.sizes, rest, entries, own, *arguments)


def taken(contract: Pointwise, frame: Frame, world: World, step: Step) -> World:
    """Return the world after a lawful step."""
    code, (rest, entries) = contract.actions[step[0]], world
    own = None if code.focus_at is None else entries[step[1][code.focus_at]]
    return code.after(frame.rows, frame.sizes, rest, entries, own, *step[1])


def after(contract: Pointwise, frame: Frame, steps: Sequence[Step]) -> World | None:
    """Return the world after some steps; None if one of them is forbidden."""
    world = beginning(contract, frame)
    for step in steps:
        if not allows(contract.actions[step[0]], frame, world, step[1]):
            return None
        world = taken(contract, frame, world, step)
    return world


# Making the file.


def random_frame(contract: Pointwise, draw: random.Random) -> Frame:
    """Return a small world at random that keeps the contract's axioms."""
    sizes = {family: SIZES[family.__name__] for family in contract.families}
    entries = range(SIZES["Entry"])
    queues, levels = draw.choice((1, 1, 2)), draw.choice((1, 2))
    home = [draw.randrange(queues) for _ in entries]
    level = [draw.randrange(levels) for _ in entries]
    first = sorted(entries, key=lambda e: (home[e], -level[e], e))
    subscribed = [draw.choice((1, 2, 3, 3, 3)) for _ in range(SIZES["Consumer"])]
    concerned = [sum((subscribed[c] >> home[e] & 1) << c for c in range(3)) for e in entries]
    returns = draw.choice(("returns_to_place", "returns_to_place", "to_tail", "to_head", ""))
    known: dict[str, Any] = {
        "home": home,
        "level": level,
        "before": [sum(1 << e for e in first[: first.index(f)]) for f in entries],
        "fifo": [draw.randrange(2) for _ in range(SIZES["Queue"])],
        "wants": [each & draw.choice((7, 7, 7, draw.randrange(8))) for each in concerned],
        "concerned": concerned,
        "subscribed": [sum((subscribed[c] >> q & 1) << c for c in range(3)) for q in range(2)],
        "ties": [
            sum(1 << e for e in entries if e != f and (home[e], level[e]) == (home[f], level[f]))
            for f in entries
        ],
        "horizon": [9],
        "expires": [draw.choice((9, 9, 1)) for _ in entries],
        "not_before": [draw.choice((0, 0, 0, 1)) for _ in entries],
        "replaces": [draw.choice((0, 0, 0, (1 << e) - 1)) for e in entries],
        **{name: [int(name == returns)] for name in ("returns_to_place", "to_tail", "to_head")},
    }
    rows = []
    for symbol in contract.rigid:
        size = sizes[symbol.domain[-1]] if symbol.domain else 1
        largest = 2 if symbol.range is Mode else WHOLE_NUMBERS.get(symbol.name, 1)
        values = known.get(symbol.name) or [draw.randint(0, largest) for _ in range(size)]
        rows.append(tuple(values))
    return Frame(tuple(sizes.values()), tuple(rows))


def random_arguments(action: Action, draw: random.Random) -> tuple[int, ...]:
    """Return arguments for an action at random."""
    return tuple(
        draw.randrange(2)
        if isinstance(each, Bool)
        else draw.randint(0, WHOLE_NUMBERS.get(str(each), 1))
        if isinstance(each, Int)
        else draw.randrange(SIZES[type(each).__name__])
        for each in action.parameters
    )


def guard_changes(system: System) -> list[Mutant]:
    """Return the changes of labelled guards."""
    return [each for each in mutants(system) if isinstance(each, Mutant) and each.guard]


def walked(
    contract: Pointwise, frame: Frame, draw: random.Random
) -> Iterator[tuple[list[Step], World, Step]]:
    """Yield each forbidden step that is tried on a walk, after the lawful steps before it."""
    steps: list[Step] = []
    world = beginning(contract, frame)
    actions = contract.system.actions
    weights = [WEIGHTS.get(each.name, 4) for each in actions]
    for _ in range(STEPS_MAX):
        next_ones = []
        for each in draw.choices(actions, weights, k=TRIES):
            step = each.name, random_arguments(each, draw)
            if allows(contract.actions[each.name], frame, world, step[1]):
                next_ones.append(step)
            else:
                yield steps, world, step
        moved = [
            (then, step)
            for step in next_ones
            if (then := taken(contract, frame, world, step)) != world
        ]
        if moved:
            world, step = draw.choice(moved)
            steps = [*steps, step]
        if (
            moved
            and step[0] == "consume"
            and "set_credit" in contract.actions
            and draw.random() < 0.8
        ):
            step = "set_credit", (*step[1], 0, 0, 0, 0)
            world, steps = taken(contract, frame, world, step), [*steps, step]


def shortened(
    contract: Pointwise, frame: Frame, steps: list[Step], guard: str, other: Pointwise
) -> list[Step]:
    """Return the run without steps that the last one does not need to show a change of a guard."""
    place = 0
    while place < len(steps) - 1:
        shorter = [*steps[:place], *steps[place + 1 :]]
        world = after(contract, frame, shorter[:-1])
        shows = (
            world is not None
            and guard in blamed(contract, frame, world, shorter[-1])
            and guard not in blamed(other, frame, world, shorter[-1])
        )
        steps, place = (shorter, 0) if shows else (steps, place + 1)
    return steps


def made(contract: str, seed: int = 0) -> Memory:
    """Walk through small worlds, and keep a run for each change of a guard that one shows."""
    draw, read = random.Random(seed), reading(contract)  # noqa: S311 - walks, not secrets
    left: dict[str, list[tuple[Mutant, Pointwise]]] = {}
    for each in guard_changes(read.system):
        left.setdefault(each.original.name, []).append((each, changed(read, each)))
    frames = [random_frame(read, draw) for _ in range(FRAMES)]
    found: list[Forbidden] = []
    for (number, frame), _ in product(enumerate(frames), range(WALKS)):
        for steps, world, step in walked(read, frame, draw):
            here = left.get(step[0], [])
            guards = blamed(read, frame, world, step) if here else set()
            for mutant, other in here:
                guard = mutant.guard
                if guard not in guards or guard in blamed(other, frame, world, step):
                    continue
                *before, last = shortened(read, frame, [*steps, step], guard, other)
                there = after(read, frame, before)
                assert there is not None
                shown = [
                    each
                    for each, changed_one in here
                    if each.guard == guard and guard not in blamed(changed_one, frame, there, last)
                ]
                changes = [each.name for each in shown]
                found.append(Forbidden(guard, number, [*before, last], changes))
                left[step[0]] = [each for each in here if each[0] not in shown]
                break
    return Memory(frames, found, sorted(each.name for many in left.values() for each, _ in many))


def written() -> None:
    """Make the file anew."""
    lines = msgspec.json.encode({name: made(name) for name in CONTRACTS})
    FILE.write_bytes(msgspec.json.format(lines, indent=0))


if __name__ == "__main__":
    written()
