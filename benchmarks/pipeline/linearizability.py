"""Judge the order of one queue by our rules and by Porcupine.

Porcupine handles any kind of object and so has to search for an order; our rules are for queues.
Both judge the same sound history, and one in which two messages were delivered in the wrong order,
and must agree. Porcupine gives up after a minute. Needs Go, which fetches and builds it:

    python benchmarks/pipeline/linearizability.py [EVENTS]...
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.pipeline.traffic import Traffic, batches
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.tables import batch_of, records_of
from brokerproof.spec.histories import Record

SIZES = (300, 3_000, 30_000)
PORCUPINE = Path(__file__).parent / "porcupine"


def one_queue(events: int) -> list[Record]:
    """Return a sound history of one queue."""
    made = [each for batch in batches(Traffic(events, hot_share=1.0)) for each in records_of(batch)]
    return [each for each in made if each.queue == "q0"]


def with_two_swapped(records: list[Record]) -> list[Record]:
    """Return the same history with the first message and the last exchanged.

    Closer messages may overlap, and then only the order of a consumer's stream shows the fault,
    which Porcupine does not see.
    """
    names = [each.message for each in records if each.op == "publish"]
    one, other = names[0], names[-1]
    swap = {one: other, other: one}
    return [
        each
        if each.op == "publish" or each.message not in swap
        else msgspec.structs.replace(each, message=swap[each.message])
        for each in records
    ]


def ours(records: list[Record]) -> tuple[str, float]:
    """Return the verdict of the rules, and the seconds."""
    table = pa.Table.from_batches([batch_of(records, range(1, len(records) + 1))])
    start = time.perf_counter()
    broken = judged_alone(table).violations.num_rows
    return "Illegal" if broken else "Ok", time.perf_counter() - start


def theirs(program: Path, records: list[Record], folder: Path) -> tuple[str, float]:
    """Return Porcupine's verdict, and the seconds that it reports."""
    path = folder / "history.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, records)) + b"\n")
    said = subprocess.run([program, path], capture_output=True, text=True, check=True).stdout
    verdict, seconds = said.split()
    return verdict, float(seconds)


def main() -> None:
    """Judge histories of each size by both."""
    go = shutil.which("go")
    if go is None:
        sys.exit("Porcupine is a Go module, and there is no Go here")
    print("    events history     ours seconds  porcupine  seconds")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "porcupine"
        subprocess.run([go, "build", "-o", program, "."], cwd=PORCUPINE, check=True)
        for events in [int(each) for each in sys.argv[1:]] or SIZES:
            sound = one_queue(events)
            for name, records in (("sound", sound), ("swapped", with_two_swapped(sound))):
                own, own_s = ours(records)
                other, other_s = theirs(program, records, Path(scratch))
                print(f"{events:>10,} {name:8} {own:>8} {own_s:7.3f} {other:>10} {other_s:8.3f}")
                if other not in {"Unknown", own}:
                    sys.exit("they do not agree")


if __name__ == "__main__":
    main()
