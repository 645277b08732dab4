"""The list of consumers runs as the model of node lists says, access by access."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import cast

import pytest

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.threads import Body
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.watch.path_query import Valuation, valuation
from brokerproof.models.language.watch.paths import ANY, Taken
from brokerproof.models.qpid.threads.node_list import Node, NodeList, Remover, Walker
from brokerproof.models.qpid.threads.node_list_state import Appending, Removing, Walking
from brokerproof.reference.qpid.pull.consumer_lists import ConsumerNode
from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList, ConsumerNodeListEntry
from brokerproof.reference.shared.atomics import AtomicFlag
from tests.faults.overlay import Edit
from tests.models.qpid.threads.test_node_list import (
    ForgetsItsLink,
    GoesOnBeyond,
    KeepsWhatItMarked,
    UnlinksTheLast,
)
from tests.models.qpid.threads.tie import NONE, ONE, Naming, Tie, names_of, planted, steps_by, tied

APPENDS = ("read_tail", "read_next", "help", "link", "find_another_linked", "move_tail", "count")
WALKS = (
    *("read", "end", "find", "find_marked", "read_beyond", "end_at_a_marked"),
    *("unlink", "give", "pass_by"),
)
WAYS = {"add": APPENDS, "remove": ("let_go", "count_out"), "walk": WALKS}
CASES = {
    "two appends and a walk": ("", ("add a", "add b", "walk 0")),
    "an append, the removal of the last, and a walk": ("a", ("add b", "remove 0 a", "walk 0")),
    "two removals and a walk": ("ab", ("remove 0 a", "remove 1 b", "walk 0")),
    "two remove one": ("a", ("remove 0 a", "remove 1 a")),
    "two walks beside a removal": ("ab", ("remove 0 a", "walk 0", "walk 1")),
}
"""By name, the nodes in the list at first, and what its threads do; a number is the thread's."""


class Shared:
    """A list, its entries by what they hold, and what its threads were told."""

    def __init__(self, kind: type[ConsumerNodeList], first: str) -> None:
        self.list = kind()
        self.entries = {"": self.list.head}
        self.returned: set[tuple[int, str]] = set()
        self.told: set[tuple[int, str]] = set()
        self.entries |= {name: self.add(name) for name in first}

    def add(self, name: str) -> ConsumerNodeListEntry:
        """Append a node; the list does not look into it."""
        return self.list.add(cast("ConsumerNode", name))

    def remove(self, number: str, name: str) -> None:
        """Remove a node that was there at first."""
        if self.entries[name].remove():
            self.told.add((int(number), name))

    def walk(self, number: str) -> None:
        """Walk over the list."""
        self.returned |= {(int(number), cast("str", each)) for each in self.list.iterator()}

    def bodies(self, threads: tuple[str, ...]) -> Mapping[str, Body]:
        """Return the body of each thread."""
        return {
            each: partial(getattr(self, each.split()[0]), *each.split()[1:]) for each in threads
        }

    def shows(self, names: tuple[str, ...]) -> Valuation:
        """Return the cells of the list, with the nodes in this order."""
        known = [*self.entries.values()]
        for entry in known:
            following = entry.next.value
            if following is not None and following not in known:
                self.entries[cast("str", following.node.value)] = following
                known.append(following)
        entries = [self.entries.get(name) for name in names]
        links = [each.next.value if each else None for each in entries]
        return valuation(
            linked=[each is not None for each in entries],
            has_next=[each is not None for each in links],
            next=[entries.index(each) if each else None for each in links],
            deleted=[each is not None and each.deleted.value for each in entries],
            refers=[each is None or each.node.value is not None for each in entries],
            tail=entries.index(self.list.tail.value),
            size=self.list.size.value,
        )

    def ends(self, names: tuple[str, ...]) -> Valuation:
        """Return what walks have returned and removals were told."""
        return valuation(
            walking=[Walking.values.index("HAS_ENDED")] * 2,
            removing=[Removing.values.index("NOTHING")] * 2,
            appending=[Appending.values.index("IS_DONE")] * len(names),
            returned=frozenset((walker, names.index(name)) for walker, name in self.returned),
            told=frozenset((remover, names.index(name)) for remover, name in self.told),
        )


def is_silent(shared: Shared, cell: object, result: object) -> bool:
    """Whether the model has no such access: a count of removals, or a mark that was set before."""
    return cell is shared.list.scavenges or (
        isinstance(cell, AtomicFlag) and result is False and cell.value
    )


def tie_of(
    case: str, model: type[Model] = NodeList, kind: type[ConsumerNodeList] = ConsumerNodeList
) -> Tie[Shared]:
    """Return the tie of a case; the model numbers nodes in the order in which they were linked."""
    first, threads = CASES[case]
    added = [each.split()[1] for each in threads if each.startswith("add")]
    walks = [each.startswith("walk") for each in threads].count(True)
    many = 1 + len(first) + len(added)

    def steps(thread: str, names: tuple[str, ...]) -> list[Taken]:
        what, actor, *target = thread.split()
        number = names.index(actor) if what == "add" else int(actor)
        marks = [Taken("mark", (number, names.index(each))) for each in target]
        return [*marks, *steps_by(model, WAYS[what], number)]

    namings = [
        Naming(
            {each: steps(each, names) for each in threads},
            partial(Shared.shows, names=names),
            partial(Shared.ends, names=names),
        )
        for order in itertools.permutations(added)
        for names in [("", *first, *order)]
    ]
    done, starts = (Appending.values.index(each) for each in ("IS_DONE", "STARTS"))
    begun, ended = (Walking.values.index(each) for each in ("READS", "HAS_ENDED"))
    return Tie(
        case=Case(
            case,
            make=lambda _: Shared(kind, first),
            bodies=lambda shared: shared.bodies(threads),
            judge=lambda _: (),
        ),
        system=trace(model),
        scope=Scope(
            {Node: many, Remover: 2, Walker: 2}, range(many + 1), {"no_remover": 0, "head": 0}
        ),
        namings=namings,
        counts=lambda shared, _, cell, result: NONE if is_silent(shared, cell, result) else ONE,
        before=[
            *steps_by(model, (*APPENDS, "end")),
            Taken("begin", (ANY, 0)),
        ],
        rests=valuation(
            appending=[done] * (many - len(added)) + [starts] * len(added),
            walking=[begun] * walks + [ended] * (2 - walks),
        ),
    )


def test_every_access_is_one_step_of_the_model_and_every_step_is_made() -> None:
    never = names_of(NodeList)
    for case in CASES:
        found = tied(tie_of(case))
        assert (found.complaints, found.explored.complete) == ((), True), case
        never -= found.taken
    # A walk begins without an access, and a case has no second one.
    assert never == {"begin", "rest"}


@pytest.mark.parametrize(
    ("model", "case"),
    [
        (ForgetsItsLink, "two removals and a walk"),
        (GoesOnBeyond, "two removals and a walk"),
        (KeepsWhatItMarked, "two remove one"),
        (UnlinksTheLast, "an append, the removal of the last, and a walk"),
    ],
)
def test_a_wrong_model_is_refused(model: type[Model], case: str) -> None:
    [complaint] = tied(tie_of(case, model)).complaints
    assert complaint.startswith(f"no step of {model.__name__} is ")


MISTAKES = {
    "two appends and a walk": (
        "elif tail.next.compare_and_set(None, entry):",
        "elif tail.next.get_and_set(entry) is not entry:",
    ),
    "an append, the removal of the last, and a walk": (
        "            if beyond is None:\n                return None\n",
        "",
    ),
    "two removals and a walk": (
        "            following = self.next.get()\n        return following",
        "            following = beyond\n        return following",
    ),
    "two remove one": (
        "if not entry.deleted.compare_and_set(False, True):",
        "if entry.deleted.get() or entry.deleted.compare_and_set(True, True):",
    ),
}
"""By the case that shows it, the lines of the list and what is there instead."""


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_the_list_is_no_step_of_the_model(case: str) -> None:
    file = "qpid/pull/node_list.py"
    kind = planted(file, [Edit(file, *MISTAKES[case])]).ConsumerNodeList
    complaints = tied(tie_of(case, kind=kind)).complaints
    assert " of NodeList " in complaints[0]
