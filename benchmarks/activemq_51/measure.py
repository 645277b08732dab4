"""Measure the loss of messages of ActiveMQ 5.1 on the releases themselves.

One producer sends persistent messages of 100 bytes. Then a consumer with a prefetch of 1,000 takes
100 and closes its connection, again and again until two rounds in a row are empty; or it stays
until nothing comes for two seconds. Memory is ample (64 MiB) or scarce (64 KiB). A consumer takes
messages as fast as it can, or pauses after each. Prints for each release and each of these how
many distinct messages came, with inversions and doubles if there are any; several runs are apart
by a comma. The releases run, and 5.1.0 with single repairs (`repairs.py`). Fetch the releases
first: `brokerproof instances install --all`. Then

    python benchmarks/activemq_51/measure.py [--runs 2] [--messages 5000] [--only 5.1.0]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.activemq_51.repairs import (
    ASKS_FOR_THE_ID_FIRST,
    AUDIT,
    COUNTS_ANEW,
    REFUSES_WHEN_DETACHED,
    STOPS_WITHOUT_ROOM,
    Edit,
    build,
)
from brokerproof.candidates.instances.activemq import OPENED, PrivateActiveMQ
from brokerproof.candidates.instances.java import server_command
from brokerproof.candidates.instances.registry import Choice, chosen
from brokerproof.candidates.instances.server import Launch

MESSAGES = 5_000
BODY_BYTES = 100
PREFETCH = 1_000
TAKEN = 100
QUIET_MS = 2_000
CLIENT_S_MAX = 300.0

MEMORY_BYTES = {"ample": 64 << 20, "scarce": 64 << 10}
PAUSE_MS = {
    ("leaves", "fast"): 0,
    ("leaves", "slow"): 2,
    ("stays", "fast"): 0,
    ("stays", "slow"): 1,
}


@dataclass(frozen=True)
class Subject:
    """A release, and in front of its classes the repairs of 5.1.0; `audit` is that of D1."""

    title: str
    name: str = "activemq-5.1.0"
    edits: tuple[Edit, ...] = ()
    audit: bool = False

    def furnish(self, into: Path) -> None:
        """Put the classes that differ from the release into a folder."""
        if self.edits:
            build(self.edits, chosen(self.name).files.folder, into)
        if self.audit:
            donor = chosen("activemq-5.2.0").files.folder / "activemq-core-5.2.0.jar"
            with zipfile.ZipFile(donor) as jar:
                jar.extract(AUDIT, into)


SUBJECTS = (
    Subject("5.1.0"),
    Subject("5.1.0, fix as meant", edits=STOPS_WITHOUT_ROOM),
    Subject("5.1.0, fix as printed", edits=ASKS_FOR_THE_ID_FIRST),
    Subject("5.1.0, D1 repaired", audit=True),
    Subject("5.1.0, D3 repaired", edits=REFUSES_WHEN_DETACHED),
    Subject("5.1.0, D4 repaired", edits=COUNTS_ANEW),
    Subject(
        "5.1.0, D1, D2 and D3 repaired",
        edits=(*STOPS_WITHOUT_ROOM, *REFUSES_WHEN_DETACHED),
        audit=True,
    ),
    Subject("5.2.0", "activemq-5.2.0"),
    Subject("5.3.0", "activemq-5.3.0"),
    Subject("5.17.2", "activemq-5.17"),
    Subject("6.1.7", "activemq"),
)


class MeasuredActiveMQ(PrivateActiveMQ):
    """A private ActiveMQ with OpenWire too, a limit of memory, and classes in front of its own."""

    def __init__(self, choice: Choice, memory_bytes: int, classes: Path) -> None:
        super().__init__(choice)
        self.memory_bytes, self.classes = memory_bytes, classes

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Add to what the private server says on its command line."""
        launch = super().furnish(folder, ports)
        command = [*launch.command]
        at = command.index("-cp") + 1
        command[at] = f"{self.classes}:{command[at]}"
        # What is said last holds.
        command += [f"memory={self.memory_bytes}", f"connector={self.open_wire(ports)}"]
        return replace(launch, command=command)

    def open_wire(self, ports: list[int]) -> str:
        """Return the address for clients by JMS."""
        return f"tcp://127.0.0.1:{ports[1]}"


def outcome(
    subject: Subject, classes: Path, consumer: str, memory: str, speed: str, messages: int
) -> str:
    """Run the scenario once on a new broker; return distinct messages, inversions and doubles."""
    choice = chosen(subject.name)
    server = MeasuredActiveMQ(choice, MEMORY_BYTES[memory], classes)
    with server, tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "Client.java"
        text = Path(__file__).with_name("Client.java").read_text(encoding="utf-8")
        if choice.version.startswith("6."):
            text = text.replace("javax.jms", "jakarta.jms")
        program.write_text(text, encoding="utf-8")
        taken = TAKEN if consumer == "leaves" else 0
        numbers = (messages, BODY_BYTES, PREFETCH, taken, PAUSE_MS[consumer, speed], QUIET_MS)
        done = subprocess.run(
            [
                *server_command(choice.java, Path(scratch), 256, OPENED),
                *("-cp", f"{choice.files.folder}/*", str(program)),
                *(server.open_wire(server._ports), *map(str, numbers)),  # noqa: SLF001
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=CLIENT_S_MAX,
        )
    if done.returncode:
        sys.exit(f"the client ended with status {done.returncode}: {done.stderr}")
    distinct, inversions, doubles = map(int, done.stdout.split())
    further = f" ({inversions}; {doubles})" if inversions or doubles else ""
    return f"{distinct:,}{further}"


def main() -> None:
    """Print a table for consumers that leave, and one for a consumer that stays."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--only", action="append", metavar="RELEASE")
    options = parser.parse_args()
    subjects = [s for s in SUBJECTS if not options.only or s.title in options.only]
    for subject in subjects:
        missing = chosen(subject.name).missing()
        if missing is not None:
            sys.exit(str(missing))
    with tempfile.TemporaryDirectory() as scratch:
        classes = {subject: Path(scratch) / str(at) for at, subject in enumerate(subjects)}
        for subject, into in classes.items():
            subject.furnish(into)
        for consumer in ("leaves", "stays"):
            print_table(classes, consumer, options.messages, options.runs)


def print_table(classes: dict[Subject, Path], consumer: str, messages: int, runs: int) -> None:
    """Print the outcomes for one kind of consumer, each as soon as it is known."""
    kinds = [(speed, memory) for speed in ("fast", "slow") for memory in MEMORY_BYTES]
    print(f"A consumer that {consumer}: distinct messages of {messages:,} that came")
    print("(inversions; doubles)\n")
    print(f"| what ran | {' | '.join(', '.join(kind) for kind in kinds)} |")
    print("| --- | --- | --- | --- | --- |")
    for subject, folder in classes.items():
        print(f"| {subject.title} |", end="", flush=True)
        for speed, memory in kinds:
            seen = (
                outcome(subject, folder, consumer, memory, speed, messages) for _ in range(runs)
            )
            print(f" {', '.join(seen)} |", end="", flush=True)
        print()
    print()


if __name__ == "__main__":
    main()
