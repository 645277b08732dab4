"""The rules on a single view of an ActiveMQ queue, each by its id.

The models have one level, one persistence class, and no counts, sizes or lists. A view has all of
these, so each rule is a function of the view. A rule returns None if a fault against it could not
show, an empty text if the view is right, and otherwise a complaint. The model `cursor-page-in`
checks invariants of a step on two views, such as the messages that the position may pass (AMQ-I4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from brokerproof.spec.activemq.view import (
    CursorLevelView,
    CursorQueueView,
    PendingView,
    ReferenceView,
    StoredView,
)
from brokerproof.spec.messages import Priority

Complaint: TypeAlias = str


@dataclass(frozen=True)
class _Shown:
    """A view, and whether no work is left, as after a drain."""

    view: CursorQueueView
    rests: bool

    @property
    def paged(self) -> frozenset[str]:
        """The names of the paged-in messages."""
        return frozenset(each.message for each in self.view.paged_in)

    @property
    def places(self) -> list[str]:
        """The names in each place that a paged-in message can have."""
        view = self.view
        held = [each.message for each in view.held]
        return [*view.returned, *view.waiting, *view.late, *held]

    def unread(self, level: CursorLevelView) -> Iterator[tuple[int, StoredView]]:
        """Yield each stored message that is not in memory, with the number of those before it."""
        known = self.paged | {each.message for each in level.batch}
        for at, each in enumerate(level.stored):
            if each.message not in known:
                yield at, each

    def pending(self) -> Iterator[StoredView | PendingView]:
        """Yield the messages that are not paged in yet, the next one of each list first."""
        for level in self.view.levels:
            yield from level.batch
            yield from (each for _, each in self.unread(level))
            yield from level.in_memory
            yield from level.on_disk

    def in_memory(self) -> list[tuple[str, int]]:
        """Return the name and size of each content in memory, once for each place."""
        everything: list[PendingView | ReferenceView] = [*self.view.paged_in]
        for level in self.view.levels:
            everything += (*level.batch, *level.in_memory, *level.on_disk)
        return [(each.message, each.size) for each in everything if each.references]

    def is_a_consumer_served(self) -> bool:
        """Whether a consumer has room and may be given any message that comes next."""
        waits = {*self.view.returned, *self.view.waiting}
        is_grouped = any(each.grouped for each in self.view.paged_in if each.message in waits)
        return not is_grouped and any(each.has_room for each in self.view.subscribers)

    def has_space(self, size: int) -> bool:
        """Whether there is memory for a message of `size` bytes if no other message leaves."""
        memory = self.view.memory
        return memory.limit == 0 or memory.used == 0 or memory.used + size <= memory.limit


# Each rule returns None if it does not apply to the view.


def _placed(shown: _Shown) -> Complaint | None:
    """A stored message is in the batch, paged in, or ahead of the position (AMQ-I1)."""
    if not any(level.stored or level.batch for level in shown.view.levels):
        return None
    for level in shown.view.levels:
        both = shown.paged & {each.message for each in level.batch}
        if both:
            return f"in the batch and paged in: {_text(both)}"
        lost = [each.message for at, each in shown.unread(level) if at < level.passed]
        if lost:
            return f"stored, not in memory, and behind the position: {_text(lost)}"
    return ""


def _complete(shown: _Shown) -> Complaint | None:
    """A paged-in message was returned, waits, or is held (AMQ-I2)."""
    places = {*shown.places}
    if not shown.paged and not places:
        return None
    if nowhere := shown.paged - places:
        return f"paged in, and neither waiting nor with anybody: {_text(nowhere)}"
    others = places - shown.paged
    return f"not paged in, and waiting or held: {_text(others)}" if others else ""


def _owned(shown: _Shown) -> Complaint | None:
    """Exactly the consumer that a message belongs to holds it (AMQ-I3)."""
    owners = {
        (each.message, each.channel, each.holder)
        for each in shown.view.paged_in
        if each.channel is not None or each.holder is not None
    }
    held = {(each.message, each.channel, each.consumer) for each in shown.view.held}
    if not owners and not held:
        return None
    if wrong := {message for message, _, _ in owners - held}:
        return f"belonging to a consumer that does not hold it: {_text(wrong)}"
    wrong = {message for message, _, _ in held - owners} & shown.paged
    return f"held by a consumer that it does not belong to: {_text(wrong)}" if wrong else ""


def _sized(shown: _Shown) -> Complaint | None:
    """A cursor counts the stored messages that are not paged in (AMQ-I6)."""
    levels = shown.view.levels
    if not any(level.stored or level.size for level in levels):
        return None
    for level in levels:
        pending = sum(each.message not in shown.paged for each in level.stored)
        if level.size != pending:
            return f"counted {level.size} pending of {pending}"
    return ""


def _emptied(shown: _Shown) -> Complaint | None:
    """At rest, if a consumer has room and no message is held, no message is left (AMQ-I7)."""
    if not shown.rests or shown.view.held or not shown.is_a_consumer_served():
        return None
    left = [*shown.view.returned, *shown.view.waiting]
    left += [each.message for each in shown.pending()]
    return f"left for a consumer that has room: {_text(left)}" if left else ""


def _goes_on(shown: _Shown) -> Complaint | None:
    """At rest, no pending message could be read for a consumer that has room (AMQ-I8)."""
    if not shown.rests or not shown.is_a_consumer_served():
        return None
    first = next(iter(shown.pending()), None)
    if first is None:
        return ""
    is_there = isinstance(first, PendingView) and first.references > 0
    if not is_there and not shown.has_space(first.size):
        return ""
    return f"{first.message} is pending, there is space, and a consumer has room"


def _new(shown: _Shown) -> Complaint | None:
    """The audit calls no message a duplicate that is still to be read (AMQ-I9)."""
    ahead = [
        each
        for level in shown.view.levels
        for at, each in shown.unread(level)
        if at >= level.passed
    ]
    if not ahead:
        return None
    wrong = [each.message for each in ahead if each.suppressed]
    return f"still to be read, and duplicates to the audit: {_text(wrong)}" if wrong else ""


def _known(shown: _Shown) -> Complaint | None:
    """The audit knows the messages in memory, as far as its window covers them (AMQ-I10)."""
    first = shown.view.audit.first
    inside = []
    for level in shown.view.levels:
        known = shown.paged | {each.message for each in level.batch}
        inside += [
            each
            for each in level.stored
            if each.message in known and (first is None or each.number >= first)
        ]
    if not inside:
        return None
    wrong = [each.message for each in inside if not each.suppressed]
    return f"in memory, and new to the audit: {_text(wrong)}" if wrong else ""


def _aligned(shown: _Shown) -> Complaint | None:
    """The audit's window begins with a word (AMQ-I13)."""
    audit = shown.view.audit
    if audit.first is None:
        return None
    wrong = audit.first < 0 or audit.first % audit.word_bits
    return f"a window from {audit.first} on, of words of {audit.word_bits}" if wrong else ""


def _once(shown: _Shown) -> Complaint | None:
    """No message is paged in twice, or in two places (AMQ-I14)."""
    places = shown.places
    paged = [each.message for each in shown.view.paged_in]
    if not places and not paged:
        return None
    twice = _repeated(places) | _repeated(paged)
    return f"there twice: {_text(twice)}" if twice else ""


def _charged(shown: _Shown) -> Complaint | None:
    """The memory counted as used is the size of the contents in memory (AMQ-I15)."""
    used, charged = shown.view.memory.used, sum(size for _, size in shown.in_memory())
    if not used and not charged:
        return None
    return "" if used == charged else f"{used} bytes counted as used, of {charged}"


def _referred(shown: _Shown) -> Complaint | None:
    """A content in memory has one reference, from the place that has the message (AMQ-I16)."""
    has_some, wrong = False, []
    for level in shown.view.levels:
        for lists, most in (((*level.batch, *level.in_memory), 1), (level.on_disk, 0)):
            has_some |= bool(lists)
            wrong += [each.message for each in lists if each.references != most]
    for each in shown.view.paged_in:
        has_some = True
        if each.references not in (0, 1):
            wrong.append(each.message)
    if not has_some:
        return None
    return f"referred to otherwise than once, where it is: {_text(wrong)}" if wrong else ""


def _limited(shown: _Shown) -> Complaint | None:
    """Memory is within its limit, or holds one message alone (AMQ-I17)."""
    memory = shown.view.memory
    if not memory.limit or not memory.used:
        return None
    if memory.used <= memory.limit or len(shown.in_memory()) == 1:
        return ""
    return f"{memory.used} bytes used of {memory.limit}"


def _parked(shown: _Shown) -> Complaint | None:
    """A publish waits for memory only while there is none for it (AMQ-I18)."""
    if not shown.view.parked:
        return None
    first = shown.view.parked[0]
    if not shown.has_space(first.size):
        return ""
    return f"{first.message} waits for memory, and there is room for it"


def _is_order(numbers: Iterable[int]) -> bool:
    return all(first < second for first, second in pairwise(numbers))


def _in_order(shown: _Shown) -> Complaint | None:
    """Pending messages are in the order of their arrival (AMQ-I21)."""
    lists: list[list[int]] = []
    for level in shown.view.levels:
        lists.append([each.number for each in level.stored])
        lists.append([each.number for each in level.batch])
        lists.append([each.number for each in level.on_disk])
        lists.append([each.number for each in level.in_memory])
    if not any(len(each) > 1 for each in lists):
        return None
    wrong = next((each for each in lists if not _is_order(each)), None)
    return f"in another order than that of arrival: {wrong}" if wrong else ""


def _first_time(shown: _Shown) -> Complaint | None:
    """Within a level and kind, messages that were given came before all others (AMQ-I20)."""
    asked = None
    known = {each.message: each for each in shown.view.paged_in}
    held = {each.message for each in shown.view.held}
    for (level, persistent), new in _not_paged(shown).items():
        ours = {
            name: each
            for name, each in known.items()
            if (each.level, each.persistent) == (level, persistent)
        }
        given = [e.number for name, e in ours.items() if name in held or e.redelivered]
        new_here = [ours[name] for name in shown.view.waiting if name in ours]
        waits = [each.number for each in new_here if not each.redelivered]
        if len(waits) < 2 and not (given and (waits or new)):
            continue
        if any(each.grouped for each in ours.values()):
            continue
        asked = ""
        if not _is_order(waits):
            return "what waits is in another order than that of arrival"
        if given and (waits or new) and max(given) > min([*waits, *new]):
            return "something was given before what had arrived before it"
    return asked


def _not_paged(shown: _Shown) -> Mapping[tuple[int, bool], list[int]]:
    """Return the numbers of the pending messages by level and kind.

    Each level and kind of the paged-in messages has a list. If several levels share one store, the
    levels of the stored messages are unknown, and the lists stay empty.
    """
    view = shown.view
    found: dict[tuple[int, bool], list[int]] = {
        (each.level, each.persistent): [] for each in view.paged_in
    }
    if len(view.levels) == 1 and isinstance(view.order, Priority):
        return found
    for level in view.levels:
        kept = [each.number for each in level.batch]
        kept += [each.number for _, each in shown.unread(level)]
        found.setdefault((level.level, True), []).extend(kept)
        others = [each.number for each in (*level.in_memory, *level.on_disk)]
        found.setdefault((level.level, False), []).extend(others)
    return found


def _came_back(shown: _Shown) -> Complaint | None:
    """Exactly the messages that were given back are among the returned (AMQ-I22)."""
    view = shown.view
    returned = {*view.returned}
    back = {e.message for e in view.paged_in if e.redelivered and e.channel is None}
    if not returned and not back:
        return None
    if wrong := back - returned:
        return f"given back, and not among the returned: {_text(wrong)}"
    wrong = (returned & shown.paged) - back
    return f"among the returned, and never given back: {_text(wrong)}" if wrong else ""


def _by_level(shown: _Shown) -> Complaint | None:
    """The highest level comes first, among cursors and among the next messages (AMQ-I24)."""
    view = shown.view
    if not isinstance(view.order, Priority):
        return None
    levels = [each.level for each in view.levels]
    if any(first <= second for first, second in pairwise(levels)):
        return f"levels {', '.join(map(str, levels))} in this order"
    known = {each.message: each.level for each in view.paged_in}
    for name, names in (("returned", view.returned), ("waiting", view.waiting)):
        found = [known[each] for each in names if each in known]
        if any(first < second for first, second in pairwise(found)):
            return f"{name} are messages of levels {', '.join(map(str, found))} in this order"
    return ""


def _spilled(shown: _Shown) -> Complaint | None:
    """While any message is on disk, no message is in memory (AMQ-I33)."""
    spilled = [level for level in shown.view.levels if level.on_disk]
    if not spilled:
        return None
    wrong = [each.message for level in spilled for each in level.in_memory]
    return f"in memory, though others are on disk: {_text(wrong)}" if wrong else ""


Look: TypeAlias = Callable[[_Shown], Complaint | None]

RULES: Final[Mapping[str, Mapping[str, Look]]] = {
    "cursor": {
        "AMQ-I1": _placed,
        "AMQ-I6": _sized,
        "AMQ-I21": _in_order,
    },
    "unread": {"AMQ-I9": _new},
    "audit": {"AMQ-I10": _known, "AMQ-I13": _aligned},
    "paged-in": {"AMQ-I2": _complete, "AMQ-I14": _once},
    "with-consumers": {"AMQ-I3": _owned, "AMQ-I20": _first_time},
    "returned": {"AMQ-I22": _came_back},
    "by-level": {"AMQ-I24": _by_level},
    "memory": {"AMQ-I15": _charged, "AMQ-I16": _referred},
    "memory-limit": {"AMQ-I17": _limited},
    "parked": {"AMQ-I18": _parked},
    "spilled": {"AMQ-I33": _spilled},
    "served": {"AMQ-I7": _emptied, "AMQ-I8": _goes_on},
}
"""The rules by the part of a view that they need."""

_ALL: Final = {name: look for looks in RULES.values() for name, look in looks.items()}


IDS: Final = frozenset(_ALL)


def judged(view: CursorQueueView, *, rests: bool) -> Iterator[tuple[str, Complaint]]:
    """Yield the id of each rule that applies to the view, with a complaint or an empty text.

    `rests` says that no work is left, as after a drain.
    """
    shown = _Shown(view, rests)
    for name, look in _ALL.items():
        complaint = look(shown)
        if complaint is not None:
            yield name, complaint and f"{complaint}; {view}"


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def _text(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
