"""An entry's state changes on threads as the model says, access by access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from brokerproof.models.language import action, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.watch.path_query import Valuation, valuation
from brokerproof.models.qpid.threads.entry_states import (
    Consumer,
    Doing,
    Entry,
    EntryStates,
    State,
    Worker,
)
from tests.faults.overlay import Edit
from tests.models.qpid.threads.test_entry_states import DropsWhatComesBack
from tests.models.qpid.threads.tie import (
    AT_MOST_ONE,
    Naming,
    Tie,
    names_of,
    steps_by,
    tied,
)
from tests.reference.qpid.push.stealing_scenes import Scene, Stage, case_of, word_of
from tests.reference.qpid.push.test_stealing_on_threads import (
    GIVES_UP,
    PAIRS,
    RELEASES_ONCE,
    RETURNED,
    RETURNED_AT_THE_END,
    SENT_AT_THE_END,
    SETTLED,
    SETTLED_AT_THE_END,
    STEALS,
    TRIPLES,
)

SCENES = {each.name: each for each in PAIRS if each.mode == "acknowledge"}
DELETES = ("look_to_delete", "find_it_gone", "delete", "look_again", "dispose")
TAKES = ("take_for_queue", "steal", *DELETES)
SETTLES = ("settle", "lock", "come_too_late")
RELEASES = ("look_to_release", "release_nothing", "release", "look_again_to_release")
DOES: Final = {
    "deliver": (0, ("look", "acquire", "miss", "send", "unlock", *TAKES)),
    "acknowledge": (1, (*SETTLES, *DELETES)),
    "release": (1, (*SETTLES, *RELEASES, *TAKES)),
    "delete": (2, TAKES),
}
"""The worker of each thread, and what it may do."""

AT_REST = valuation(doing=[Doing.values.index("NOTHING")] * 3)


def shows(stage: Stage) -> Valuation:
    """Return the state of the entry, and whether its consumer has it to settle."""
    unsettled = stage.entry in stage.broker.outbox.unsettled.values()
    return valuation(
        state=[State.values.index(word_of(stage.entry.state.value))],
        unsettled=frozenset([(0, 0)] if unsettled else []),
    )


def counts(stage: Stage, _: str, cell: object, result: object) -> range:
    """Return how many steps an access is: the queue looks at what it has taken as it swaps."""
    return range(1, 3) if cell is stage.entry.state and result is True else AT_MOST_ONE


def tie_of(
    scene: Scene, model: type[Model] = EntryStates, edits: Sequence[Edit] = ()
) -> Tie[Stage]:
    """Return the tie of a scene, whose one entry is available or sent at first."""
    steps = {
        name: [*steps_by(model, names, worker), *steps_by(model, ("tell",))]
        for name, (worker, names) in DOES.items()
    }
    when_told = {f"{name} when told": steps[name] for name in ("acknowledge", "release")}
    return Tie(
        case=case_of(scene, edits),
        system=trace(model),
        scope=Scope(
            {Entry: 1, Consumer: 1, Worker: 3}, range(2), {"anybody": 0, "nothing": 0, "idle": 0}
        ),
        namings=[
            Naming(
                steps | when_told | {"cancel": []},
                shows,
                lambda _: AT_REST,
            )
        ],
        counts=counts,
        before=[
            *steps_by(model, ("enqueue",)),
            *steps_by(model, ("look", "acquire", "send", "unlock"), 0),
        ],
        rests=AT_REST,
    )


def test_each_access_is_a_step_of_the_model() -> None:
    never = names_of(EntryStates)
    for name, scene in SCENES.items():
        found = tied(tie_of(scene))
        assert (found.complaints, found.explored.complete) == ((), True), name
        never -= found.taken
    # Each scene begins with its entry, and has no clock. No thread takes what another has locked.
    assert never == {"enqueue", "expire", "find_it_gone", "release_nothing"}


class KeepsItUnstealable(EntryStates):
    """Leaves a sent entry as it is, so that no queue can take it."""

    @action
    def unlock(self, w: Worker) -> None:
        """The send lock is given back."""
        require(self.doing[w] == Doing.UNLOCKS)
        self.doing[w] = Doing.NOTHING


@pytest.mark.parametrize(
    ("model", "scene"),
    [(KeepsItUnstealable, SETTLED), (DropsWhatComesBack, RETURNED)],
)
def test_a_wrong_model_is_refused(model: type[Model], scene: Scene) -> None:
    [complaint] = tied(tie_of(scene, model)).complaints
    assert f" of {model.__name__} " in complaint


RELEASES_WHAT_IS_LOST = (
    Edit(
        "qpid/push/stealing.py",
        "            if not entry.make_unstealable(subscription):\n                continue\n",
        "",
    ),
    Edit(
        "qpid/push/entries.py",
        "        while state.holder is holder:\n",
        "        while True:\n",
    ),
)
MISTAKES = {
    "the queue steals what is being sent": ((STEALS,), SENT_AT_THE_END),
    "the queue steals what is being settled": ((STEALS,), SETTLED_AT_THE_END),
    "a worker that has lost it releases it": (RELEASES_WHAT_IS_LOST, RETURNED_AT_THE_END),
    "a delete gives up when the state has just changed (QPID-6419)": ((GIVES_UP,), SETTLED),
    "a release gives up when the state has just changed": ((RELEASES_ONCE,), RETURNED),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_no_run_of_the_model(mistake: str) -> None:
    edits, scene = MISTAKES[mistake]
    [complaint, *_] = tied(tie_of(scene, edits=edits)).complaints
    assert " of EntryStates " in complaint


@pytest.mark.thorough
def test_a_release_must_check_the_holder_with_its_swap_as_well() -> None:
    """Between its first look and the swap, the sender may let the deletion take the entry."""
    _, looks_once = RELEASES_WHAT_IS_LOST
    [complaint] = tied(tie_of(TRIPLES[1], edits=(looks_once,))).complaints
    assert " of EntryStates " in complaint
