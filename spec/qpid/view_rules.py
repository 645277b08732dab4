"""The rules on a single view of a Qpid queue that no model states, each by its id.

The models contain neither the internal counters, hints and marks of a broker (`counters`) nor the
result of a walk over the links. A rule returns None if a fault against it could not show in the
view, an empty text if the view is right, and otherwise a complaint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from brokerproof.spec.qpid.counters import Counters, PullCounters
from brokerproof.spec.qpid.view import PointerQueueView

Complaint: TypeAlias = str


@dataclass(frozen=True)
class _Shown:
    """A view with its internal counters."""

    view: PointerQueueView

    @property
    def counters(self) -> Counters:
        """The internal counters; only rules of a part that has them read this."""
        assert self.view.counters is not None
        return self.view.counters

    @property
    def pull(self) -> PullCounters:
        """The further counters of a queue whose consumers pull."""
        assert self.counters.pull is not None
        return self.counters.pull

    @property
    def active(self) -> list[int]:
        """The numbers of the active subscriptions."""
        return [at for at, each in enumerate(self.view.subscriptions) if each.active]


# Each rule returns None if the invariant does not apply to the view.


def _gone(shown: _Shown) -> Complaint | None:
    """A walk over a list returns no entry that is gone (EL-3)."""
    view = shown.view
    if not view.entries:
        return None
    stood_on = {
        at for each in view.subscriptions if each.active for at in (each.last_seen, each.released)
    }
    for at, entry in enumerate(view.entries, start=1):
        if entry.state == "dequeued" and at not in stood_on:
            return f"{entry.message} is gone, and no place is on it"
    return ""


def _numbers(shown: _Shown) -> Complaint | None:
    """Entry numbers grow along the links (EL-1)."""
    if all(len(each.numbers) < 2 for each in shown.counters.lists):
        return None
    for each in shown.counters.lists:
        if any(after <= before for before, after in pairwise(each.numbers)):
            return f"entries numbered {', '.join(map(str, each.numbers))} from the first"
    return ""


def _tails(shown: _Shown) -> Complaint | None:
    """The last entry of a list can be reached from the list's tail reference (EL-4)."""
    if not shown.view.entries:
        return None
    lost = [each for each in shown.counters.lists if each.to_the_end is None]
    return "a list whose last entry is not reached from its tail" if lost else ""


def _counted(shown: _Shown) -> Complaint | None:
    """A list counts its active subscriptions (CL-1)."""
    there, counted = len(shown.active), shown.counters.counted
    if not there and not counted:
        return None
    return "" if there == counted else f"{counted} subscriptions counted of {there}"


def _used(shown: _Shown) -> Complaint | None:
    """A window counts as many messages as its consumer holds (CR-1)."""
    held = Counter(entry.holder for entry in shown.view.entries)
    asked = None
    for at in shown.active:
        used = shown.counters.subscriptions[at].used
        if used is None or not (used or held[at]):
            continue
        asked = ""
        if used != held[at]:
            name = shown.view.subscriptions[at].consumer
            return f"the window of {name} counts {used}, and it holds {held[at]}"
    return asked


def _waiting(shown: _Shown) -> Complaint | None:
    """The queue counts exactly the subscriptions that wait at an entry (RUN-5)."""
    waits = sum(shown.counters.subscriptions[at].waits for at in shown.active)
    counted = shown.counters.waiting
    if not waits and not counted:
        return None
    return "" if waits == counted else f"{counted} counted as waiting at an entry, of {waits}"


INTERESTED, NOTIFIED, LOOKING = "interested", "notified", "non-acquiring"
_BY_PRIORITY = (INTERESTED, NOTIFIED)


def _listed(shown: _Shown) -> Complaint | None:
    """Each consumer is in the list of its state, and in no other (QCM-1)."""
    if not shown.pull.listed:
        return None
    if len(shown.pull.listed) > len(shown.view.subscriptions):
        return "a consumer is in a list, and not in that of all"
    both = zip(shown.pull.listed, shown.counters.subscriptions, strict=True)
    for at, (listed, each) in enumerate(both):
        priority = each.priority if each.state in _BY_PRIORITY else 0
        own = ((each.state, priority),) if shown.view.subscriptions[at].active else ()
        if listed != own:
            name = shown.view.subscriptions[at].consumer
            lists = ", ".join(name for name, _ in listed) or "none"
            return f"{name} is {each.state or 'nothing'}, and in these lists: {lists}"
    return ""


def _separate(shown: _Shown) -> Complaint | None:
    """A browser is never in the lists of consumers, nor a consumer in that of browsers (QCM-2)."""
    if not shown.active:
        return None
    for at in shown.active:
        each, state = shown.view.subscriptions[at], shown.counters.subscriptions[at].state
        if state in (_BY_PRIORITY if each.browses else (LOOKING,)):
            kind = "browser" if each.browses else "consumer"
            return f"the {kind} {each.consumer} is {state}"
    return ""


def _priorities(shown: _Shown) -> Complaint | None:
    """The lists by priority have the same priorities, the highest first (QCM-3)."""
    if not any(shown.pull.priorities):
        return None
    wrong = any(
        each != shown.pull.priorities[0] or any(low >= high for high, low in pairwise(each))
        for each in shown.pull.priorities
    )
    return f"lists of these priorities: {shown.pull.priorities}" if wrong else ""


def _wanting(shown: _Shown) -> Complaint | None:
    """The queue counts exactly the consumers that want messages (QCM-4)."""
    states = [shown.counters.subscriptions[at].state for at in shown.active]
    want = sum(state in (*_BY_PRIORITY, LOOKING) for state in states)
    if not states and not shown.pull.wanting:
        return None
    wrong = f"{shown.pull.wanting} counted as wanting messages, of {want}"
    return "" if want == shown.pull.wanting else wrong


def _marks(shown: _Shown) -> Complaint | None:
    """Exactly those that wait for a turn are marked as waiting (SCH-1)."""
    if not shown.active:
        return None
    for mark in shown.pull.marks:
        if mark.says_so != mark.waits:
            return f"{mark.name} {'waits' if mark.waits else 'is marked'} for a turn alone"
    return ""


RULES: Final[Mapping[str, Mapping[str, Callable[[_Shown], Complaint | None]]]] = {
    "places": {"EL-3": _gone},
    "counters": {
        "EL-1": _numbers,
        "EL-4": _tails,
        "CL-1": _counted,
        "CR-1": _used,
        "RUN-5": _waiting,
    },
    "consumer-lists": {
        "QCM-1": _listed,
        "QCM-2": _separate,
        "QCM-3": _priorities,
        "QCM-4": _wanting,
        "SCH-1": _marks,
    },
}
"""The rules by the part of a view that they need."""

IDS: Final = frozenset(name for rules in RULES.values() for name in rules)


def judged(view: PointerQueueView, *, rests: bool) -> Iterator[tuple[str, Complaint]]:  # noqa: ARG001 - no rule is about a rest
    """Yield the id of each rule that applies to the view, with a complaint or an empty text."""
    counters = view.counters
    is_pulled = counters is not None and counters.pull is not None
    has = {"places": True, "counters": counters is not None, "consumer-lists": is_pulled}
    for part, rules in RULES.items():
        for name, rule in rules.items() if has[part] else ():
            complaint = rule(_Shown(view))
            if complaint is not None:
                yield name, complaint
