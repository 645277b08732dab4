"""The table of historic faults: each with what finds it here, how short the trace is, and how soon.

Faults of one thread are given to the gate within the budget of their records, those of several are
run under the interleavings of the gate's own cases. Seconds are of the processor, and of the
machine that made the page; a test compares all but them.

    python -m tests.faults.historic.table docs/findings/qpid-historic-faults.md [B-01 ...]
    python -m tests.faults.historic.table docs/findings/rabbitmq-historic-faults.md [BV1 ...]
    python -m tests.faults.historic.table docs/findings/activemq-historic-faults.md [M-01 ...]

The page's name says whose faults. With ids, only these are run; the others are left as they are on
the page.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokerproof.checks.conversation import Copier, copier_of, reset
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.threads.case_catalogue import case_name, cases_for
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.parallel import Parallel, Recorded, parallel_case
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.threads.tables import accesses
from brokerproof.spec.invariants import Binding
from brokerproof.spec.protocol.candidate import Candidate
from tests.faults.catalogue import faults
from tests.faults.historic.catalogue import Historic, historic_faults
from tests.faults.kill_table import lines_on, seconds_to, table_of
from tests.faults.overlay import plant
from tests.faults.threads.catalogue import ThreadFault, thread_faults

PLANTED = Path(__file__).parents[3] / "docs" / "findings" / "planted-faults.md"
RUNS = 3_000
SWITCHES_MAX = 2

HEADINGS = ("fault", "what went wrong", "system", "found by", "requirement", "steps", "seconds")

_OF_QPID = """\
# Historic faults of Qpid's Java broker

Each row is a mistake that a release of Qpid's Java broker, or its development, once had, told in
our own words, and what finds it when it is planted here. A promise is what finds it, not a check
written for it:

* **check**: the fault is planted into a copy of the reference, or of `examples/whole_broker.py`,
  and `brokerproof check` says that the requirement is broken; *steps* are the operations of the
  shortest trace, as on the page of all [planted faults](planted-faults.md).
* **interleavings**: it needs threads; `brokerproof interleave` finds it. *Steps* are the accesses
  to what threads share in the run that failed, and the switches away from a thread that could go
  on.
* **test** and **model**: it breaks no promise to clients that the gate could ask for, or has a
  place in a model alone; the twin named is found.
"""

_OF_RABBITMQ = """\
# Historic faults of RabbitMQ's queues

Each row is a mistake that a release of RabbitMQ, or its development, once had in its queues, or one
of the same kind, told in our own words, and what finds it when it is planted here. The ids of
commits are those of its public history.

* **check**: the fault is planted into a copy of the reference, or of `examples/whole_broker.py`,
  and `brokerproof check` says that the requirement is broken; *steps* are the operations of the
  shortest trace, as on the page of all [planted faults](planted-faults.md). `protocol` is what an
  operation breaks that does not come to its end, here mostly since the reference holds itself to
  [what the release asserts](../reference/rabbitmq-invariants.md).
* **test**: no operation of a client shows it, because it costs memory or leaves files, or takes a
  clean stop, a crash within an operation, or a target that changes; the twin named is found.
"""

_OF_ACTIVEMQ = """\
# Historic faults of ActiveMQ's queues

Each row is a mistake that a release of ActiveMQ Classic once had in its queues, or one of the same
kind, told in our own words, with its public issue and the release that mended it, and what finds it
when it is planted here. M-01 and so on are numbers in notes on its releases, which are a sample;
other pages here use them too. A fault has a row for each of its findings.

AMQ-1742, which lost most in 5.1.0, is not in that sample. It is the parameter `audit=5.1`, and on
the page about [the loss](activemq-5.1-loss.md) it is D1, with the trace that shows it.

* **check**: the fault is planted into a copy of the reference, or of `examples/whole_broker.py`, or
  is one of the rules of 5.1 that an address of the reference names (`read=advance`), and
  `brokerproof check` says that the requirement is broken; *steps* are the operations of the trace,
  as on the page of all [planted faults](planted-faults.md), which says whether a search certifies
  that none is shorter.
* **test**: no operation of a client shows it, because it costs memory or leaves files, because it
  is about groups, which no promise names, or because it takes more messages than anybody sends; the
  twin named is found, or the test has both.
"""

_SECONDS = """
What cannot be planted is listed below with the reason. *Seconds* are those of one core of the
machine that made this page (an x86-64 virtual machine, Python 3.11), until the counterexample was
there. Made by `python -m tests.faults.historic.table docs/findings/{family}-historic-faults.md`.
"""

_INTRODUCTIONS = {"qpid": _OF_QPID, "rabbitmq": _OF_RABBITMQ, "activemq": _OF_ACTIVEMQ}


def introduction(family: str) -> str:
    """Return how the page of a family begins."""
    return _INTRODUCTIONS[family] + _SECONDS.format(family=family)


@dataclass(frozen=True)
class Finding:
    """What found one planted fault."""

    name: str
    by: str
    requirement: str
    steps: str
    seconds: float | None = None


def findings_of(historic: Historic) -> Iterator[Finding]:
    """Run what finds a fault, one after the other."""
    threaded = {each.id: each for each in thread_faults()}
    for name in historic.faults:
        yield by_threads(threaded[name]) if name in threaded else by_gate(name)
    yield from map(_by_binding, historic.held)


def by_gate(name: str) -> Finding:
    """Time the gate until it has a fault of one thread; the page of all has its shortest trace."""
    fault = faults()[name]
    seconds = seconds_to(fault)
    found = f"`{fault.requirement}`" if seconds is not None else "not found"
    return Finding(name, f"check `{name}`", found, steps_on_the_page(name), seconds)


def steps_on_the_page(name: str) -> str:
    """Return how many operations show a fault of one thread, none of which can be left out."""
    line = lines_on(PLANTED).get(name, "")
    return line.strip("| \n").split(" | ")[-2] if line else ""


def by_threads(fault: ThreadFault) -> Finding:
    """Run a fault that needs threads in its case, under few switches, and then in every order."""
    make = plant(fault.edits, fault.broker)
    parallel = next(
        each
        for order, each in cases_for(make().hello().capabilities)
        if case_name(order, each) == fault.case
    )
    case = case_of(make(), parallel)
    began = time.process_time()
    tried = with_few_switches(case, switches_max=SWITCHES_MAX, runs_max=RUNS)
    failed = tried.failed or next(iter(explore(case, runs_max=RUNS).failed), None)
    seconds = time.process_time() - began
    if failed is None:
        return Finding(fault.id, f"interleavings `{fault.id}`", "not found", "")
    steps = f"{len(accesses(case, failed))} accesses"
    if tried.failed is not None:
        many = "1 switch" if tried.switches == 1 else f"{tried.switches} switches"
        steps += f", {many}"
    named = f"`{fault.requirement}`" + (f", by `{fault.breaks}`" if fault.breaks else "")
    by = f"interleavings of *{fault.case}* `{fault.id}`"
    return Finding(fault.id, by, named, steps, seconds)


def case_of(candidate: Candidate, parallel: Parallel) -> Case[Recorded]:
    """Return the case of a candidate that is asked these operations at once."""
    reset(candidate)
    copier = copier_of(candidate)
    assert isinstance(copier, Copier), copier
    return parallel_case(parallel, candidate, copier, Oracle(candidate.hello().capabilities))


def _by_binding(binding: Binding) -> Finding:
    kind, _, name = str(binding).partition(" ")
    twin = binding.broken_by.rpartition(":")[2]
    its_twin = f"twin `{twin}`" if twin else "which has its twin"
    return Finding(twin, f"{kind} `{name.rpartition(':')[2].strip()}`, {its_twin}", "", "")


def cells_of(historic: Historic) -> list[list[str]]:
    """Return the rows of a fault, run now."""
    what = historic.what + (f" (Here: {historic.differs}.)" if historic.differs else "")
    return [
        [
            f"{historic.id} ({historic.issue})",
            what,
            f"`{historic.system}`",
            found.by,
            found.requirement,
            found.steps,
            "" if found.seconds is None else f"{found.seconds:.1f}",
        ]
        for found in findings_of(historic)
    ]


def rows_on(page: str) -> dict[str, list[list[str]]]:
    """Return the rows of a page by the id of their fault."""
    rows: dict[str, list[list[str]]] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" |")]
        if re.match(r"\| (B(-|[A-Z])|M-)\d", line) and len(cells) == len(HEADINGS):
            rows.setdefault(cells[0].partition(" ")[0], []).append(cells)
    return rows


def page_of(rows: Mapping[str, Sequence[Sequence[str]]], family: str) -> str:
    """Return the page of what was found."""
    listed = historic_faults(family)
    bare = [each for each in listed if each.unplanted]
    counts = (
        f"{len(listed)} faults, {len(listed) - len(bare)} planted and found, "
        f"{len(bare)} not planted.\n"
    )
    found = [row for each in listed for row in rows.get(each.id, ())]
    left = [[f"{each.id} ({each.issue})", each.what, each.unplanted] for each in bare]
    return "\n".join(
        [
            introduction(family),
            counts,
            table_of(found, HEADINGS),
            "## Not planted, and why\n",
            table_of(left, ("fault", "what went wrong", "why it is not planted")),
        ]
    )


def main() -> None:
    """Run all faults, or those that are named, and write the page."""
    path, names = Path(sys.argv[1]), sys.argv[2:]
    family = path.name.partition("-")[0]
    rows = rows_on(path.read_text(encoding="utf-8")) if names and path.is_file() else {}
    for each in historic_faults(family):
        if not each.unplanted and (not names or each.id in names):
            rows[each.id] = cells_of(each)
            sys.stdout.writelines(f"{cells}\n" for cells in rows[each.id])
            sys.stdout.flush()
    path.write_text(page_of(rows, family), encoding="utf-8")


if __name__ == "__main__":
    main()
