"""Root-cause attribution: which of a requirement's traces show a fault of its own.

Breadth-first search finds a shortest trace for every guard that was ever false, and one mistake
falsifies several similar guards. A message that is stuck is late for every consumer that waits for
it, whatever the requirement for each is called. So among requirements of one kind, a trace counts
for its requirement only if no shorter form of it breaks another of the kind; otherwise it counts
for that one. Requirements of different kinds never stand in for each other.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

import msgspec

from brokerproof.checks.oracle.attribution import KINDS, MISSED
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.endings import LAST
from brokerproof.checks.search.findings import Run, play
from brokerproof.checks.trace.moves import Move
from brokerproof.checks.workers.watchdog import CapReached
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Consume, Drain, Get

Fresh = Callable[[], tuple[Candidate, Oracle]]
"""Returns a candidate just reset and an oracle for it."""

TRIES = 10
"""How often a finding is repeated."""

SURE_TRIES = 3
"""A trace that recurs in so many first tries is taken to recur always."""

RARE_TRIES = 300
REPEATING_S = 5.0
"""A finding that does not recur is tried up to `RARE_TRIES` times, within so many seconds."""

TRYING_S = 30.0
"""So long are more than `SURE_TRIES` made: a broker that hangs takes ten seconds for each."""


@dataclass
class Repeated:
    """How often a trace was tried again, and how often it broke the same requirement."""

    times: int = 0
    tries: int = 0

    @property
    def always(self) -> bool:
        """Whether each try broke it."""
        return 0 < self.times == self.tries

    def try_again(self, run: Run, fresh: Fresh, tries: int) -> None:
        """Try up to `tries` times in all; raises `CapReached`, with the tries before counted."""
        requirement, start = requirement_of(run), time.monotonic()
        while self.tries < tries:
            if self.tries >= SURE_TRIES:
                limit_s = REPEATING_S if self.tries >= TRIES else TRYING_S
                if self.always or time.monotonic() - start > limit_s:
                    return
            again = fails(run.moves, fresh, requirement)
            self.tries += 1
            self.times += again is not None and requirement_of(again) == requirement


@dataclass(frozen=True)
class RootCause:
    """The run attributed to a requirement, and how often it was seen again.

    Without a run, `instead` breaks the requirement that explains all its traces.
    """

    run: Run | None
    repeated: Repeated | None = None
    instead: Run | None = None


def root_cause_of(
    traces: Sequence[Run], fresh: Fresh, *, tries: int = TRIES, shortens: bool = True
) -> RootCause:
    """Return the attribution for the traces of one requirement; a trace that fails is always kept.

    A trace that recurs is shortened, if `shortens`. One that does not is tried up to `tries` times
    and kept as it was seen. When the cap in seconds has passed, the shortest trace is kept so too.
    """
    first = min(traces, key=lambda run: len(run.steps))
    repeated = Repeated()
    if first.broken is not None and first.broken.hangs:
        return RootCause(first)
    own = None
    try:
        repeated.try_again(first, fresh, 1)
        if repeated.always and shortens:
            own, instead = attributed(traces, fresh)
            if own is None and instead is not None:
                return RootCause(None, instead=instead)
        first = first if own is None else own
        repeated.try_again(first, fresh, tries if own is None else TRIES)
    except CapReached:
        return RootCause(first, repeated)
    return RootCause(first, None if repeated.always and own is not None else repeated)


def attributed(traces: Sequence[Run], fresh: Fresh) -> tuple[Run | None, Run | None]:
    """Return the first trace whose root cause is this requirement, or a run that explains all.

    With neither, the candidate did not behave alike twice.
    """
    instead = None
    for run in traces:
        requirement = requirement_of(run)
        if run.broken is not None and run.broken.hangs:
            return run, None
        again = fails(run.moves, fresh, requirement)
        if again is None or requirement_of(again) != requirement:
            continue
        other = _breaks_another_of_its_kind(again, fresh)
        if other is None:
            own = shortest_form(again, fresh)
            # In a long walk a later step may lose the same message once more.
            if requirement in MISSED and len(own.steps) < len(again.steps):
                other = _breaks_another_of_its_kind(own, fresh)
            if other is None:
                return own, None
        instead = other
    return None, None if instead is None else shortest_form(instead, fresh)


def _breaks_another_of_its_kind(run: Run, fresh: Fresh) -> Run | None:
    requirement = requirement_of(run)
    kin = kin_of(requirement)
    for part in _without(run.moves, 1) if kin else ():
        shorter = fails(part, fresh, requirement)
        if shorter is not None and requirement_of(shorter) in kin:
            return shorter
    return None


def kin_of(requirement: str) -> frozenset[str]:
    """Return the other requirements of its kind, which the same mistake may break."""
    kinds = (kind for kind in KINDS if requirement in kind)
    return frozenset().union(*kinds) - {requirement}


def fails(moves: Sequence[Move], fresh: Fresh, requirement: str) -> Run | None:
    """Return the run of moves and a closing drain, if it breaks that requirement or ends early."""
    candidate, oracle = fresh()
    try:
        run = play(candidate, oracle, [*moves, Drain()], stop_at=requirement)
    except Unfollowable:
        return None
    return run if run.broken is not None else None


def within(seconds: float, fresh: Fresh) -> Fresh:
    """Return `fresh` for so long; later it raises `CapReached`."""
    end = time.monotonic() + seconds

    def begin() -> tuple[Candidate, Oracle]:
        if time.monotonic() > end:
            raise CapReached
        return fresh()

    return begin


Fails = Callable[[Sequence[Move], Fresh, str], Run | None]
"""Returns the run of moves, if it breaks that requirement or ends early, as `fails` does."""


def shortest_form(run: Run, fresh: Fresh, again: Fails = fails) -> Run:
    """Leave out steps and values as long as the same requirement stays broken: a local minimum.

    Halves are tried before quarters and so on (delta debugging, Zeller and Hildebrandt 2002), down
    to single steps. A get may then show what a consumer at the end showed. At last each field that
    can have its default gets it, and names are numbered as they come. When the cap in seconds
    passes, the shortest run so far is returned.
    """
    size = max(1, len(run.moves) // 2)
    try:
        while size:
            attempts = _without(run.moves, size)
            if size == 1:
                attempts = chain(attempts, _with_a_last_get(run.moves))
            shorter = _still_broken(run, attempts, len(run.steps) - 1, fresh, again)
            run = shorter or run
            size = min(size, max(1, len(run.moves) // 2)) if shorter else size // 2
        while plainer := _still_broken(
            run, _with_a_default(run.moves), len(run.steps), fresh, again
        ):
            run = plainer
        attempts = _numbered_anew(run.moves)
        run = _still_broken(run, attempts, len(run.steps), fresh, again) or run
    except CapReached:
        pass
    return run


def _still_broken(
    run: Run, attempts: Iterable[Sequence[Move]], steps_max: int, fresh: Fresh, again: Fails
) -> Run | None:
    """Return the first attempt that breaks the same requirement in at most so many steps."""
    requirement = requirement_of(run)
    for moves in attempts:
        found = again(moves, fresh, requirement)
        same = found is not None and requirement_of(found) == requirement
        if found is not None and same and len(found.steps) <= steps_max:
            return found
    return None


def _without(moves: Sequence[Move], size: int) -> Iterator[Sequence[Move]]:
    """Yield the moves without some `size` in a row."""
    for first in range(0, len(moves), size):
        yield [*moves[:first], *moves[first + size :]]


def _with_a_last_get(moves: Sequence[Move]) -> Iterator[Sequence[Move]]:
    """Yield the moves without a consumer on the channel `LAST`, and with a get there at the end.

    The get asks for the messages that the consumer was to take.
    """
    for at, move in enumerate(moves):
        if isinstance(move, Consume) and move.channel == LAST:
            rest = [*moves[:at], *moves[at + 1 :]]
            while rest and isinstance(rest[-1], Drain):
                rest.pop()
            yield [*rest, Get(channel=LAST, queue=move.queue)]


def _with_a_default(moves: Sequence[Move]) -> Iterator[Sequence[Move]]:
    """Yield the moves with the default in one more field."""
    for at, move in enumerate(moves):
        for plainer in _plainer(move):
            yield [*moves[:at], plainer, *moves[at + 1 :]]


_NUMBERED: Final = re.compile(rb'"(q|ch|c|m)[0-9]+"')


def _numbered_anew(moves: Sequence[Move]) -> Iterator[Sequence[Move]]:
    """Yield the moves with queues, channels, consumers and messages numbered as they come.

    Nothing is yielded where they are.
    """
    numbers: defaultdict[bytes, dict[bytes, int]] = defaultdict(dict)

    def anew(name: re.Match[bytes]) -> bytes:
        known = numbers[name[1]]
        return b'"%b%d"' % (name[1], known.setdefault(name[0], len(known)))

    written = msgspec.json.encode(moves)
    renamed = _NUMBERED.sub(anew, written)
    if renamed != written:
        yield msgspec.json.decode(renamed, type=list[Move])


Plain = TypeVar("Plain", bound=msgspec.Struct)

_ALONE: Final = frozenset(
    (
        *("priority", "size", "persistent", "properties", "group", "not_before_s", "expires_s"),
        *("selector", "messages", "bytes", "auto_close", "exclusive", "durable", "auto_delete"),
    )
)
"""The fields whose default goes with any value of the others, and with any claims."""


def _plainer(value: Plain) -> Iterator[Plain]:
    """Yield a move, or a part of one, with the default in one field that has another value."""
    for field in msgspec.structs.fields(value):
        given, plain = getattr(value, field.name), []
        if isinstance(given, msgspec.Struct):
            plain = [*_plainer(given)]
        elif field.name in _ALONE and field.default_factory is not msgspec.NODEFAULT:
            plain = [field.default_factory()]
        elif field.name in _ALONE and field.default is not msgspec.NODEFAULT:
            plain = [field.default]
        yield from (
            msgspec.structs.replace(value, **{field.name: each}) for each in plain if each != given
        )


def requirement_of(run: Run) -> str:
    """Return the id of the requirement that a failing run breaks."""
    return "" if run.broken is None else run.broken.requirement
