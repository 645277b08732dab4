"""Your own parallel case, run under every interleaving.

    .venv/bin/python examples/own_case.py [CANDIDATE]

The setup runs one operation after the other; then each list of moves is a thread. The contract
judges the result: there must be a sequential order that explains it.
"""

from __future__ import annotations

import sys

import rich

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.threads.interleavings import Explored, explore
from brokerproof.checks.threads.on_threads import on_threads
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.threads.tables import table
from brokerproof.checks.trace.moves import Settle
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.operations import Consume, Declare, Publish

RETURNED = Parallel(
    "a message comes back while another arrives",
    before=(
        Declare(queue="q", order=Fifo()),
        Consume(queue="q", consumer="c", channel="one", credit=Credit(1)),
        Publish(queue="q", message=Message(id="a")),
    ),
    at_once=(
        (Settle(how="release", message="a"),),
        (Publish(queue="q", message=Message(id="b")),),
    ),
)


def run(candidate: str) -> Explored:
    """Run the case and print the findings; raises `SystemExit` if it cannot run."""
    try:
        threaded = on_threads(open_subject(candidate))
    except CandidateUnavailable as error:
        raise SystemExit(str(error)) from error
    if isinstance(threaded, str):
        raise SystemExit(f"{candidate}: {threaded}")
    # Watched: unordered accesses of two threads are found, too.
    case = threaded.case(RETURNED, watched=True)
    found = explore(case)
    ended = "all" if found.complete else "the first"
    print(f"{case.name}: {ended} {found.runs:,} interleavings, {len(found.failed)} broken")
    for failed in found.failed:
        rich.print(table(case, failed))
    return found


if __name__ == "__main__":
    run(*sys.argv[1:] or ["reference:qpid-push"])
