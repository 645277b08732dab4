"""`brokerproof interleave`: several threads hand operations to a broker on our atomics.

The file owns the words for the result of each case; `check` runs the same cases as a stage.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import click
import rich

from brokerproof.checks.commands.options.types import IntegerRange
from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.errors import CannotRun, opened
from brokerproof.checks.threads.case_catalogue import case_name, cases_for
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import Differs, Explored, explore
from brokerproof.checks.threads.on_threads import on_threads
from brokerproof.checks.threads.parallel import CannotBegin, Recorded
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.threads.tables import table
from brokerproof.checks.verdicts import ExitStatus

SWITCHES_MAX = 3
RUNS_FOR_FEWER_SWITCHES = 3_000
"""The runs that are spent on finding a failure with fewer switches between threads."""


@click.command("interleave")
@click.argument("candidate", default="reference:qpid-push")
@click.option(
    "--runs",
    type=IntegerRange(min=1),
    default=2_000,
    show_default=True,
    help="How many classes of interleavings of each case are run at most.",
)
@click.option(
    "--case", "words", default="", help="Only the cases in whose printed names these words stand."
)
def interleave(candidate: str, runs: int, words: str) -> None:
    """Run the broker CANDIDATE under every interleaving of a few operations at once.

    CANDIDATE is built on brokerproof.reference.shared.atomics, can be copied, and has `on_threads`.
    It ends with status 1 if a run fails, and with 0 if none does; cases with more runs than were
    made are named. If no case could begin it ends with 3.
    """
    subject = opened(candidate)
    broken = left = many = not_begun = 0
    try:
        threaded = on_threads(subject)
        if isinstance(threaded, str):
            raise CannotRun(f"{subject.address}: {threaded}")
        for order, parallel in cases_for(subject.hello.capabilities):
            name = case_name(order, parallel)
            if words not in name:
                continue
            many += 1
            try:
                case = threaded.case(parallel, watched=True)
            except CannotBegin as error:
                click.echo(f"{name}: not begun: {error}")
                not_begun += 1
                continue
            found = explore(case, runs_max=runs)
            click.echo(f"{name}: {_line(found)}")
            broken += bool(found.failed)
            left += not (found.complete or found.failed)
            if found.failed:
                _show(replace(case, name=name), found)
    except KeyboardInterrupt:
        click.echo(f"interrupted after {max(0, many - 1)} cases, {broken} broken")
        sys.exit((ExitStatus.BROKEN if broken else ExitStatus.INCONCLUSIVE).value)
    except CannotStart as error:
        raise CannotRun(f"{candidate} does not start: {error}") from error
    except Differs as error:
        raise CannotRun(f"{candidate}: {error}") from error
    if not many:
        raise CannotRun(f"no case has {words!r} in its name")
    others = {"with more to run": left, "not begun": not_begun}
    told = [f"{count} {what}" for what, count in others.items() if count]
    click.echo(", ".join((f"{many} cases", f"{broken} broken", *told)))
    kept = ExitStatus.KEPT if not_begun < many else ExitStatus.INCONCLUSIVE
    sys.exit((ExitStatus.BROKEN if broken else kept).value)


def _line(found: Explored) -> str:
    all_of = "all" if found.complete else "the first"
    broken = ": BROKEN" if found.failed else ""
    return f"{all_of} {found.runs:,} interleavings, {found.steps:,} accesses{broken}"


def _show(case: Case[Recorded], found: Explored) -> None:
    fewer = with_few_switches(
        case, switches_max=SWITCHES_MAX, runs_max=RUNS_FOR_FEWER_SWITCHES
    ).failed
    rich.print(table(case, fewer or found.failed[0]))
