"""What must hold of a queue at one glance: invariants of its document, asked of every view shown.

Beside the steps between two views (`step_conformance`) each view by itself is held against what the
documented system keeps inside, under the ids of `spec/invariants`. Where a model states the
invariant, its own text is read on the view. Stated here is only what the models do not speak of:
counts, hints and marks that a broker keeps beside what they stand for (`spec/qpid/counters.py`).
What is asked of a queue that pages is `paging_state_invariants`'s, and of one with cursors
`cursor_state_invariants`'s.

Owns the asking, and which parts of a view each id needs. A view that is wrong in form is refused
before it comes here (`views`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from brokerproof.checks.inside import cursor_state_invariants, paging_state_invariants
from brokerproof.checks.inside.step_conformance import REQUIREMENT
from brokerproof.models.language.watch.client_step import NotAQueue
from brokerproof.models.projections import lost_in
from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.protocol.answers import Inspection
from brokerproof.spec.qpid.counters import Accounts, PullAccount
from brokerproof.spec.qpid.view import PointerQueueView
from brokerproof.spec.rabbitmq.view import PagingQueueView

Complaint: TypeAlias = str
"""What is wrong, in a few words; nothing where all is well."""


@dataclass(frozen=True)
class Glance:
    """Which invariants a view says something of, and what each that is broken shows."""

    exercised: frozenset[str]
    broken: tuple[tuple[str, Complaint], ...]


NOTHING: Final = Glance(frozenset(), ())


@dataclass(frozen=True)
class _Shown:
    """A view with its accounts."""

    view: PointerQueueView
    accounts: Accounts

    @property
    def active(self) -> list[int]:
        """The numbers of those subscriptions that are there."""
        return [at for at, each in enumerate(self.view.subscriptions) if each.active]


# Each returns None where the invariant says nothing of what is shown.


def _places(view: PointerQueueView) -> Complaint | None:
    """Nothing available lies before a place (PTR-1), by the text of the model."""
    if not any(entry.state == "available" for entry in view.entries) or not any(
        each.active and not each.browses for each in view.subscriptions
    ):
        return None
    try:
        if "pointer-passes-nothing-of-interest" not in lost_in(view):
            return ""
    except NotAQueue:
        return None  # not in the order of its levels, which `documented-steps` says
    return "something available lies before the place of a consumer that wants it"


def _gone(view: PointerQueueView) -> Complaint | None:
    """A walk returns nothing that is gone (EL-3)."""
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
    """Numbers grow along the links (EL-1)."""
    if all(len(each.numbers) < 2 for each in shown.accounts.lists):
        return None
    for each in shown.accounts.lists:
        if any(after <= before for before, after in pairwise(each.numbers)):
            return f"entries numbered {', '.join(map(str, each.numbers))} from the first"
    return ""


def _tails(shown: _Shown) -> Complaint | None:
    """The last entry is reached from where a list says its end is (EL-4)."""
    if not shown.view.entries:
        return None
    lost = [each for each in shown.accounts.lists if each.to_the_end is None]
    return "a list whose last entry is not reached from its tail" if lost else ""


def _counted(shown: _Shown) -> Complaint | None:
    """A list counts who is in it (CL-1)."""
    there, counted = len(shown.active), shown.accounts.counted
    if not there and not counted:
        return None
    return "" if there == counted else f"{counted} subscriptions counted of {there}"


def _used(shown: _Shown) -> Complaint | None:
    """A window counts as many as its consumer holds (CR-1)."""
    held = Counter(entry.holder for entry in shown.view.entries)
    asked = None
    for at in shown.active:
        used = shown.accounts.subscriptions[at].used
        if used is None or not (used or held[at]):
            continue
        asked = ""
        if used != held[at]:
            name = shown.view.subscriptions[at].consumer
            return f"the window of {name} counts {used}, who holds {held[at]}"
    return asked


def _waiting(shown: _Shown) -> Complaint | None:
    """Who waits at an entry is counted, and nobody else (RUN-5)."""
    waits = sum(shown.accounts.subscriptions[at].waits for at in shown.active)
    counted = shown.accounts.waiting
    if not waits and not counted:
        return None
    return "" if waits == counted else f"{counted} counted as waiting at an entry, of {waits}"


INTERESTED, NOTIFIED, LOOKING = "interested", "notified", "non-acquiring"
_BY_PRIORITY = (INTERESTED, NOTIFIED)


def _listed(shown: _Shown, pull: PullAccount) -> Complaint | None:
    """Each consumer is in the list of its state, and in no other (QCM-1)."""
    if not pull.listed:
        return None
    if len(pull.listed) > len(shown.view.subscriptions):
        return "somebody is in a list, and not in that of all"
    both = zip(pull.listed, shown.accounts.subscriptions, strict=True)
    for at, (listed, each) in enumerate(both):
        priority = each.priority if each.state in _BY_PRIORITY else 0
        own = ((each.state, priority),) if shown.view.subscriptions[at].active else ()
        if listed != own:
            name = shown.view.subscriptions[at].consumer
            lists = ", ".join(name for name, _ in listed) or "none"
            return f"{name} is {each.state or 'nothing'}, and in these lists: {lists}"
    return ""


def _separate(shown: _Shown, pull: PullAccount) -> Complaint | None:  # noqa: ARG001 - one shape
    """Who takes nothing is never told like the others (QCM-2)."""
    if not shown.active:
        return None
    for at in shown.active:
        each, state = shown.view.subscriptions[at], shown.accounts.subscriptions[at].state
        if state in (_BY_PRIORITY if each.browses else (LOOKING,)):
            kind = "browser" if each.browses else "consumer"
            return f"the {kind} {each.consumer} is {state}"
    return ""


def _priorities(shown: _Shown, pull: PullAccount) -> Complaint | None:  # noqa: ARG001 - one shape
    """The lists by priority have the same ones, the highest first (QCM-3)."""
    if not any(pull.priorities):
        return None
    wrong = any(
        each != pull.priorities[0] or any(low >= high for high, low in pairwise(each))
        for each in pull.priorities
    )
    return f"lists of these priorities: {pull.priorities}" if wrong else ""


def _wanting(shown: _Shown, pull: PullAccount) -> Complaint | None:
    """Those who want messages are counted (QCM-4)."""
    states = [shown.accounts.subscriptions[at].state for at in shown.active]
    want = sum(state in (*_BY_PRIORITY, LOOKING) for state in states)
    if not states and not pull.wanting:
        return None
    return "" if want == pull.wanting else f"{pull.wanting} counted as wanting messages, of {want}"


def _marks(shown: _Shown, pull: PullAccount) -> Complaint | None:
    """Who waits for a turn says so, and nobody else (SCH-1)."""
    if not shown.active:
        return None
    for mark in pull.marks:
        if mark.says_so != mark.waits:
            return f"{mark.name} {'waits' if mark.waits else 'is marked'} for a turn alone"
    return ""


OF_VIEWS: Mapping[str, Callable[[PointerQueueView], Complaint | None]] = {
    "PTR-1": _places,
    "EL-3": _gone,
}
OF_ACCOUNTS: Mapping[str, Callable[[_Shown], Complaint | None]] = {
    "EL-1": _numbers,
    "EL-4": _tails,
    "CL-1": _counted,
    "CR-1": _used,
    "RUN-5": _waiting,
}
OF_PULL: Mapping[str, Callable[[_Shown, PullAccount], Complaint | None]] = {
    "QCM-1": _listed,
    "QCM-2": _separate,
    "QCM-3": _priorities,
    "QCM-4": _wanting,
    "SCH-1": _marks,
}
OF_POINTERS: Final[Mapping[str, Iterable[str]]] = {
    "places": OF_VIEWS,
    "accounts": OF_ACCOUNTS,
    "consumer-lists": OF_PULL,
}
OF_PARTS: Final[Mapping[str, Iterable[str]]] = {
    **OF_POINTERS,
    **paging_state_invariants.OF_PARTS,
    **cursor_state_invariants.OF_PARTS,
}
"""The parts of a view that requirements need (`OFFERED`), each with its invariants."""

KINDS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(each for names in parts.values() for each in names)
    for name, parts in (
        ("a queue of pointers", OF_POINTERS),
        ("a queue that pages", paging_state_invariants.OF_PARTS),
        ("a queue with cursors", cursor_state_invariants.OF_PARTS),
    )
}
"""The kinds of queues that views are of, each with what is asked of a view by itself."""

GLANCED: Final = tuple(name for names in OF_PARTS.values() for name in names)
INSIDE: Final = frozenset((REQUIREMENT, *GLANCED))
"""The requirements that are about the inside of a candidate."""


def expected_of(requirement: str) -> str:
    """Return what a view that breaks an invariant should be instead."""
    return f"a view of which {requirement} holds"


def _asked(view: PointerQueueView, accounts: Accounts | None) -> Iterator[tuple[str, Complaint]]:
    """Yield each invariant that says something of a view, with what is wrong, if anything is."""
    found = [(name, look(view)) for name, look in OF_VIEWS.items()]
    if accounts is not None:
        shown = _Shown(view, accounts)
        found += [(name, look_at(shown)) for name, look_at in OF_ACCOUNTS.items()]
        if accounts.pull is not None:
            pull = accounts.pull
            found += [(name, look_into(shown, pull)) for name, look_into in OF_PULL.items()]
    for name, complaint in found:
        if complaint is not None:
            yield name, complaint


KNOWN_MAX: Final = 1 << 16
"""So many views are remembered with what was said of them."""

_KNOWN: dict[Hashable, Glance] = {}


def glance(view: Inspection, *, rests: bool = False) -> Glance:
    """Return what is to be said of a view by itself; `rests` says that the broker has drained."""
    key = view, rests and not isinstance(view, PointerQueueView)
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        if isinstance(view, PagingQueueView):
            asked = [*paging_state_invariants.asked_of(view, rests=rests)]
        elif isinstance(view, CursorQueueView):
            asked = [*cursor_state_invariants.asked_of(view, rests=rests)]
        else:
            asked = [*_asked(view, view.accounts)]
        known = _KNOWN[key] = Glance(
            frozenset(name for name, _ in asked),
            tuple((name, complaint) for name, complaint in asked if complaint),
        )
    return known


def parts_in(exercised: Mapping[str, int]) -> frozenset[str]:
    """Return which parts the views have had that these counts are of."""
    return frozenset(
        part for part, names in OF_PARTS.items() if any(exercised.get(name) for name in names)
    )
