"""The page of requirements: the guard, the theorem of each algorithm and a fault of each.

python -m tests.docs.requirements_page
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from brokerproof.checks.commands.where import planted_faults, theorems
from brokerproof.models.contract.ledger.core import LedgerOfContract
from brokerproof.models.contract.ledger.whole_promises import WholeLedgerOfContract
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language.attack.mutation_testing import promises_lost, weaker_guards
from brokerproof.models.language.core.model import System, trace
from brokerproof.models.refinements import REFINEMENTS, carried_by
from brokerproof.spec.requirements import catalogue
from tests.models.contract.unbroken import UNBROKEN

PAGE = Path(__file__).parents[2] / "docs/reference/requirement-proofs.md"
CORE = ("nothing-lost", "priority-order", "release-rewinds", "browser-never-rewound")
"""The invariants that this project began with; they come first."""
ALGORITHMS = {
    "pointer-queue": "Qpid, pushed",
    "pull-queue": "Qpid, pulled",
    "paging-places": "RabbitMQ, paging",
    "cursor-page-in": "ActiveMQ, cursor",
}

INTRODUCTION = """\
# Requirements: guard, theorems and faults

Each requirement of the contract is the guard of the steps in the second column
(`models/contract/`). The next four columns say what `brokerproof prove` shows of each documented
algorithm, for any number of messages and consumers ([proofs](../explanation/proofs.md)):

* **proved**: each step keeps the requirement, by the algorithm's own text; **in part** where the
  proof says which states are left out, and why;
* **by construction**: true of any algorithm, because of the way its state is read;
* **no step**: the algorithm's model has none of the contract's steps that the requirement guards.

The column after that names the invariants over the ledger of what clients have seen that state the
requirement, each with the number of weaker guards that break it: `prove --attack contract` drops or
weakens the guard in each possible way, and shows what each change breaks. A requirement that the
core lacks is stated over the ledger of the whole contract (`prove --attack whole-contract`). A
number of 0 says that another guard of the same steps forbids the same.

The last column has the planted fault that `check` finds in the fewest steps, with their number, and
how many faults are planted against the requirement. `brokerproof where ID` shows all of them, with
the lines of the guard and the steps of each theorem, and so does `brokerproof requirements ID`. The
four core invariants come first.

Made by `python -m tests.docs.requirements_page`; a test compares.
"""


def page() -> str:
    """Return the page; what is not proved yet is proved first, which takes minutes."""
    return "\n".join([INTRODUCTION, *rows(standings, broken_promises)]) + "\n"


def standings(label: str) -> dict[str, str]:
    """Return the standing of a requirement in the refinement of each algorithm."""
    return {model: re.split("[:,]", said)[0] for model, said in theorems(label, deciding=True)}


def ledger_of(label: str) -> System:
    """Return the ledger that states a requirement: that of the core, if the core has it."""
    core = trace(LedgerOfContract)
    stated = any(label in each.states for each in core.invariants)
    return core if stated else trace(WholeLedgerOfContract)


def promises(label: str) -> dict[str, int]:
    """Return the invariants that state a requirement, each with 0."""
    return {each.name: 0 for each in ledger_of(label).invariants if label in each.states}


def broken_promises(label: str) -> dict[str, int]:
    """Return the invariants that state a requirement, and how many weaker guards break each."""
    ledger = ledger_of(label)
    found = Counter(promises(label))
    for mutant in weaker_guards(ledger).values():
        if mutant.guard == label and mutant.name not in UNBROKEN:
            found.update(promises_lost(ledger, mutant))
    return found


def rows(
    standing: Callable[[str], Mapping[str, str]], broken: Callable[[str], Mapping[str, int]]
) -> Iterator[str]:
    """Yield the lines of the table."""
    assert ALGORITHMS.keys() == REFINEMENTS.keys(), "each refinement has a column"
    carried = carried_by(trace(WholeContract))
    headings = ["requirement", "guard of", *ALGORITHMS.values(), "weaker guards break"]
    yield f"| {' | '.join(headings)} | planted fault |"
    yield "| --- " * (len(headings) + 1) + "|"
    for label in (*CORE, *(each for each in carried if each not in CORE)):
        said = standing(label)
        cells = [said[model] for model in ALGORITHMS]
        stated = [f"`{name}` ({many})" for name, many in broken(label).items()]
        cells.append(", ".join(stated))
        yield _row(label, carried[label], cells)


def _row(label: str, actions: tuple[str, ...], cells: list[str]) -> str:
    guards = ", ".join(f"`{each}`" for each in actions)
    level = catalogue()[label].level.value
    return "| " + " | ".join([f"`{label}` ({level})", guards, *cells, _fault(label)]) + " |"


def _fault(label: str) -> str:
    planted = [each for _, each in planted_faults() if each.get("requirement") == label]
    if not planted:
        return "none"

    def steps(fault: dict[str, Any]) -> tuple[int, str]:
        return fault["length"], fault["id"]

    first = min(planted, key=steps)
    return f"`{first['id']}` ({first['length']}), of {len(planted)}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
