"""Stealable acquisition on threads: a delivery, a settlement and a deletion meet at one entry.

Cases of two are explored to the end; of three, only the first runs. A planted fault breaks each
rule that threads can show, and a case that is otherwise sound finds it.
"""

from __future__ import annotations

import pytest

from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.trace.moves import Settle
from brokerproof.reference import make
from brokerproof.spec.protocol.operations import Delete
from tests.faults.historic.table import case_of as case_of_clients
from tests.faults.overlay import Edit
from tests.reference.qpid.push.stealing_scenes import ADDRESS, Scene, case_of
from tests.reference.qpid.push.test_windows_on_threads import consume, declare, publish

RUNS = 100

SETTLED = Scene("what is told is acknowledged", ["deliver"], told="acknowledge")
RETURNED = Scene("what is told is released", ["deliver"], told="release")
SETTLED_AT_THE_END = Scene("acknowledged as the queue goes", ["acknowledge", "delete"])
RETURNED_AT_THE_END = Scene("released as the queue goes", ["release", "delete"])
SENT_AT_THE_END = Scene("a leaving consumer is sent it", ["deliver", "delete"], leaves=True)
DONE_AT_THE_END = Scene(
    "a leaving consumer is sent it, and that settles it",
    ["deliver", "delete"],
    mode="automatic",
    leaves=True,
)
PAIRS = (
    *(SETTLED, RETURNED, SETTLED_AT_THE_END, RETURNED_AT_THE_END, SENT_AT_THE_END),
    DONE_AT_THE_END,
    Scene("delivered as the queue goes", ["deliver", "delete"]),
)
TRIPLES = (
    Scene("told and acknowledged", ["deliver", "delete"], told="acknowledge", leaves=True),
    Scene("told and released", ["deliver", "delete"], told="release", leaves=True),
    Scene("delivered, and its consumer is cancelled", ["deliver", "cancel", "delete"]),
)


@pytest.mark.parametrize("scene", PAIRS, ids=lambda scene: scene.name)
def test_two_at_one_entry_forget_nothing(scene: Scene) -> None:
    found = explore(case_of(scene))
    assert (found.failed, found.complete) == ([], True)
    assert found.overlapping > 0


@pytest.mark.parametrize("scene", TRIPLES, ids=lambda scene: scene.name)
def test_three_at_one_entry_forget_nothing_in_the_first_interleavings(scene: Scene) -> None:
    case = case_of(scene)
    assert explore(case, runs_max=RUNS).failed == []
    assert with_few_switches(case, switches_max=2, runs_max=RUNS).failed is None


@pytest.mark.thorough
@pytest.mark.parametrize("scene", TRIPLES, ids=lambda scene: scene.name)
def test_three_at_one_entry_forget_nothing_in_every_interleaving(scene: Scene) -> None:
    found = explore(case_of(scene))
    assert (found.failed, found.complete) == ([], True)


DOES_NOT_WAIT = Edit(
    "qpid/push/queue.py",
    "                with holder.sending():\n                    entry.delete(holding)\n",
    "                entry.delete(holding)\n",
)


@pytest.mark.parametrize(
    ("scene", "complaint"),
    [
        (DONE_AT_THE_END, "deliver raised AssertionError: an entry was taken from the one"),
        (SENT_AT_THE_END, "the queue has gone, and its message can be settled still"),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_firm_acquisition_is_deleted_when_it_was_sent(scene: Scene, complaint: str) -> None:
    found = explore(case_of(scene, address="qpid-push"))
    assert (found.failed, found.complete) == ([], True)
    [failed] = explore(case_of(scene, [DOES_NOT_WAIT], address="qpid-push")).failed
    assert failed.complaints[0].startswith(complaint)


STEALS = Edit(
    "qpid/push/entries.py",
    "return state.stealable and self.state.",
    "return state.holder is not None and self.state.",
)
GIVES_UP = Edit(
    "qpid/push/entries.py",
    "            if self.delete(state):\n                return True\n            state = self.",
    "            return self.delete(state)\n            state = self.",
)
RELEASES_ONCE = Edit(
    "qpid/push/entries.py",
    "            if self.state.compare_and_set(state, AVAILABLE):\n                return True\n",
    "            return self.state.compare_and_set(state, AVAILABLE)\n",
)
LOOKS_AFTER = Edit(
    "qpid/push/entries.py",
    """        state = self.state.get()
        if state is holder.owning_state:
            return True
        return state is holder.stealable_state and self.state.compare_and_set(
            state, holder.owning_state
        )
""",
    """        if self.state.compare_and_set(holder.stealable_state, holder.owning_state):
            return True
        return self.state.get() is holder.owning_state
""",
)
FORGOTTEN = "what is STEALABLE is unsettled 0 times"
LEFT = "the queue has gone, and what was in it is"
MISTAKES = {
    "the queue steals what is settled by being sent": (
        (STEALS,),
        DONE_AT_THE_END,
        "deliver raised",
    ),
    "a delete gives up when the state has just changed (QPID-6419)": (
        (GIVES_UP,),
        SETTLED,
        FORGOTTEN,
    ),
    "a release gives up when the state has just changed": (
        (RELEASES_ONCE,),
        RETURNED,
        FORGOTTEN,
    ),
    "the settler looks after a swap that failed": ((LOOKS_AFTER,), SETTLED, FORGOTTEN),
    "the sender does not ask whether the queue goes": (
        (
            Edit(
                "qpid/push/stealing.py",
                "        if self.goes():\n            self._drop",
                "        if not self.name:\n            self._drop",
            ),
        ),
        SENT_AT_THE_END,
        LEFT,
    ),
    "the returner does not ask whether the queue goes": (
        (
            Edit(
                "qpid/push/stealing.py",
                "            if self.goes():\n                self.take",
                "            if not self.name:\n                self.take",
            ),
        ),
        RETURNED_AT_THE_END,
        LEFT,
    ),
    "the queue says that it goes when it has looked at all": (
        (
            Edit("front/queue.py", "if self.registrations.shut() else None", "if True else None"),
            Edit(
                "qpid/push/queue.py",
                "        self.executor.withdraw(self)\n        return leaving\n",
                "        self.registrations.shut()\n        return leaving\n",
            ),
        ),
        SENT_AT_THE_END,
        LEFT,
    ),
    "what is dropped late can be settled still": (
        (Edit("qpid/push/stealing.py", "            self.outbox.forget_what_has_gone()\n", ""),),
        SENT_AT_THE_END,
        "the queue has gone, and its message can be settled still",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_rule_is_needed(mistake: str) -> None:
    edits, scene, complaint = MISTAKES[mistake]
    [failed] = explore(case_of(scene, edits)).failed
    assert failed.complaints[0].startswith(complaint)


HELD = (declare(), consume("c", 2), publish("a"), publish("b"))
OF_CLIENTS = (
    Parallel(
        "one is acknowledged while another is released",
        HELD,
        ((Settle(how="acknowledge", message="a"),), (Settle(how="release", message="b"),)),
    ),
    Parallel(
        "one is acknowledged while the queue is deleted",
        HELD,
        ((Settle(how="acknowledge", message="a"),), (Delete(queue="q"),)),
    ),
    Parallel(
        "one is released while the queue is deleted",
        HELD,
        ((Settle(how="release", message="a"),), (Delete(queue="q"),)),
    ),
    Parallel(
        "one is delivered while the queue is deleted",
        (declare(), consume("c", 1)),
        ((publish("a"),), (Delete(queue="q"),)),
    ),
)


@pytest.mark.parametrize("parallel", OF_CLIENTS, ids=lambda parallel: parallel.name)
def test_clients_are_kept_all_promises_meanwhile(parallel: Parallel) -> None:
    case = case_of_clients(make(ADDRESS), parallel)
    assert explore(case, runs_max=RUNS).failed == []
    assert with_few_switches(case, switches_max=2, runs_max=RUNS).failed is None
