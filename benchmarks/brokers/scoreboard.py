"""Hold every private broker against the requirements, and write the page and picture of it.

    python benchmarks/brokers/scoreboard.py [--effort normal] [--seed 0] [--only broker-j]

Writes below docs/findings: brokers.md, brokers.svg, and traces/ with a file for each fault, which
`brokerproof replay` plays again. `scoreboard.toml` says against what each known fault was checked;
a fault without that is marked on the page. Fetch the brokers first: `brokerproof instances install
--all`. A broker that is not here keeps no place on the page. The whole takes about half an hour.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brokerproof.candidates.instances.registry import PRIVATE, chosen, instances
from brokerproof.candidates.wire.address import Address, WireProtocol
from brokerproof.candidates.wire.profile import profile_for
from brokerproof.checks.report.verdict_file import CandidateRecord, VerdictFile, VerdictRecord
from brokerproof.checks.search.counterexamples import Counterexample, write
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.differences import claimed_differences
from brokerproof.spec.requirements import Level, catalogue

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
CHECKED = Path(__file__).with_suffix(".toml")

WHERE = {"amqp091": "AMQP 0-9-1", "amqp10": "AMQP 1.0", "stomp": "STOMP"}
SMALL = ("activemq-5.1.0", "activemq-5.2.0", "activemq-5.3.0")
"""With small sizes a handful of messages crosses what takes hundreds otherwise."""

BUDGET_S = 300
"""The cap on each check; a broker that often does not answer in time reaches it."""

State: TypeAlias = Literal["kept", "departure", "advice", "fault", "undecided", "not claimed"]

SHOWN: dict[State, tuple[str, str, str]] = {
    "kept": ("#2da44e", "", "kept"),
    "departure": ("#d4a72c", "d", "kept, with a lawful departure"),
    "advice": ("#bf8700", "!", "a recommendation that is not followed"),
    "fault": ("#cf222e", "x", "broken"),
    "undecided": ("#8c959f", "?", "inconclusive"),
    "not claimed": ("#eaeef2", "", "not claimed"),
}
"""The colour, the sign and the words of each state."""


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Against what a fault of some brokers was checked: a document, or a place in the source.

    `requirements` are its names. `brokers` are the beginnings of their addresses. `each_time` is
    whether the fault shows each time that its trace is played; if it is not given, either may be.
    """

    brokers: tuple[str, ...]
    requirements: tuple[str, ...]
    against: str
    each_time: bool | None = None


@dataclass(frozen=True)
class Seen:
    """What the gate said of the broker at a private address."""

    address: str
    title: str
    record: CandidateRecord

    def states(self) -> dict[str, State]:
        """Return the state of each requirement."""
        weakened = {
            requirement
            for each in claimed_differences(self.record.claims)
            for requirement in each.weakens
        }
        return {each.requirement: _state(each, weakened) for each in self.record.verdicts}

    def sources(self) -> dict[str, str]:
        """Return the place that allows each departure, as the broker's profile names it."""
        choice = chosen(self.address)
        named = f"?profile={choice.release.profile}" if choice.release.profile else ""
        url = f"{choice.protocol}://127.0.0.1{named}"
        protocol = msgspec.convert(choice.protocol, WireProtocol)
        broker = Address.parse(url, protocol), self.record.name, self.record.version
        return profile_for(*broker).sources

    def broken(self) -> tuple[VerdictRecord, ...]:
        """Return the verdicts that are broken."""
        return tuple(each for each in self.record.verdicts if each.verdict is Outcome.BROKEN)


def _state(verdict: VerdictRecord, weakened: set[str]) -> State:
    match verdict.verdict:
        case Outcome.KEPT:
            return "departure" if verdict.requirement in weakened else "kept"
        case Outcome.BROKEN:
            return "fault" if verdict.level is Level.MUST else "advice"
        case Outcome.INCONCLUSIVE:
            return "undecided"
        case Outcome.NOT_CLAIMED:
            return "not claimed"


def addresses() -> Iterator[tuple[str, str]]:
    """Yield the address and the title of each private broker in each of its protocols."""
    for name, instance in instances().items():
        for version in instance.releases:
            for protocol in instance.protocols:
                small = "&sizes=small" if name in SMALL else ""
                address = f"{PRIVATE}{name}?protocol={protocol}&version={version}{small}"
                release = "" if version == "packaged" else f" {version}"
                sizes = ", small sizes" if small else ""
                yield address, f"{instance.product}{release}, {WHERE[protocol]}{sizes}"


def judged(address: str, title: str, effort: str, seed: int, keep: Path) -> Seen | str:
    """Return what the gate says of a broker, or why it says nothing.

    Its report is kept below `keep`, and taken from there if it is there already.
    """
    folder = keep / named(address)
    path = folder / "verdict.json"
    if not path.is_file():
        if (missing := chosen(address).missing()) is not None:
            return f"{title}: {missing}"
        command = [
            sys.executable,
            "-m",
            "brokerproof",
            "check",
            "--no-progress",
            "--seed",
            str(seed),
        ]
        command += ["--effort", effort, "--budget", str(BUDGET_S), "--report", str(folder), address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 2 or not path.is_file():
            return f"{title}: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
        print(f"{title}: status {done.returncode}", flush=True)
    verdict = msgspec.json.decode(path.read_bytes(), type=VerdictFile)
    return Seen(address, title, verdict.candidates[0])


def named(address: str) -> str:
    """Return an address as the name of a folder.

    >>> named("private:artemis?protocol=stomp&version=2.40.0")
    'artemis-protocol-stomp-version-2.40.0'
    """
    return address.removeprefix(PRIVATE).translate(str.maketrans("?&=", "---"))


# The picture.

CELL, ROW, LEFT, TOP = 22, 18, 230, 260


def picture(all_seen: Sequence[Seen], requirements: Sequence[str]) -> str:
    """Return the matrix of brokers and requirements as SVG."""
    width, below = LEFT + CELL * len(all_seen) + 150, TOP + ROW * len(requirements)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {below + 84}" '
            f'font-family="sans-serif" font-size="11">'
        ),
        "<title>What each broker keeps</title>",
        f'<rect width="{width}" height="{below + 84}" fill="#ffffff"/>',
    ]
    for column, seen in enumerate(all_seen):
        x = LEFT + CELL * column + CELL // 2 + 4
        lines.append(
            f'<text transform="translate({x},{TOP - 8}) rotate(-60)">{escape(seen.title)}</text>'
        )
    for number, requirement in enumerate(requirements):
        y = TOP + ROW * number
        lines.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{requirement}</text>')
        for column, seen in enumerate(all_seen):
            state = seen.states().get(requirement, "not claimed")
            where = f"{requirement}, {seen.title}"
            lines += _cell(LEFT + CELL * column, y, state, where)
    for number, (state, (_, _, words)) in enumerate(SHOWN.items()):
        x, y = LEFT + 260 * (number % 2), below + 14 + 22 * (number // 2)
        lines += [*_cell(x, y, state, words), f'<text x="{x + 26}" y="{y + 13}">{words}</text>']
    return "\n".join((*lines, "</svg>", ""))


def _cell(x: int, y: int, state: State, words: str) -> Iterator[str]:
    colour, sign, meaning = SHOWN[state]
    yield (
        f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{ROW - 2}" rx="3" fill="{colour}">'
        f"<title>{escape(words)}: {meaning}</title></rect>"
    )
    if sign:
        yield (
            f'<text x="{x + CELL // 2 - 1}" y="{y + 12}" text-anchor="middle" fill="#ffffff" '
            f'font-weight="bold">{sign}</text>'
        )


# The page.

HEAD = """# What each broker keeps

![Brokers by requirement: kept, lawful departure, fault](brokers.svg)

Written by `make scoreboard` (effort `{effort}`). Each broker is a
[private one](../guide/private-brokers.md), judged by the claims of its profile. A *lawful
departure* is a claim by which its protocol or its documentation asks for less than the strictest
requirement. *Broken* is a fault, with a trace that `brokerproof replay FILE` plays again on a
broker of the same release. A fault of a race shows in some runs only, so another seed can find more
or fewer. Requirements that no broker claims are left out.
"""


def page(
    all_seen: Sequence[Seen], absent: Sequence[str], checked: Sequence[Checked], effort: str
) -> str:
    """Return the page, which shows the picture and lists faults and departures."""
    lines = [HEAD.format(effort=effort)]
    for seen in all_seen:
        lines += [f"## {seen.title}", "", *_of_one(seen, checked), ""]
    if absent:
        lines += ["## Not judged", "", *(f"* {each}" for each in absent), ""]
    return "\n".join(lines)


def _of_one(seen: Seen, checked: Sequence[Checked]) -> Iterator[str]:
    counts = [*seen.states().values()]
    kept = counts.count("kept") + counts.count("departure")
    undecided = counts.count("undecided")
    broken = len(seen.broken())
    said = f"{kept} kept, {broken} broken, {undecided} inconclusive (seed {seen.record.seed})"
    yield f"`{seen.address}`: {said}."
    if seen.broken():
        yield ""
    for each in seen.broken():
        found = each.counterexample
        assert found is not None
        often = f", {found.how_often}" if found.how_often else ""
        against = next((c.against for c in checked if _is_about(c, seen, each)), "")
        yield (
            f"* **{each.requirement}** ({each.level.value}), [{len(found.steps)} steps]"
            f"({_trace_of(seen, found).as_posix()}){often}. "
            + (f"Checked: {against}" if against else "Not checked against its source.")
        )
    departures = [*claimed_differences(seen.record.claims)]
    sources = seen.sources() if departures else {}
    if departures:
        yield ""
        yield "Departures:"
        yield ""
    for difference in departures:
        source = sources[difference.claim]
        yield f"* `{difference.claim} = {difference.value}`: {difference.sentence} ({source})"


def _is_about(checked: Checked, seen: Seen, verdict: VerdictRecord) -> bool:
    assert verdict.counterexample is not None
    times, tries = verdict.counterexample.again or (1, 1)
    return (
        verdict.requirement in checked.requirements
        and seen.address.startswith(checked.brokers)
        and checked.each_time in {None, times == tries}
    )


def _trace_of(seen: Seen, found: Counterexample) -> Path:
    return Path("traces") / named(seen.address) / f"{found.requirement}.json"


def main() -> None:
    """Judge all, and write the page, the picture and the traces."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="judge the brokers whose address has this text")
    parser.add_argument("--keep", type=Path, help="keep reports here, and go on from those here")
    options = parser.parse_args()
    checked = msgspec.convert(
        tomllib.loads(CHECKED.read_text(encoding="utf-8"))["checked"], tuple[Checked, ...]
    )
    wanted = [each for each in addresses() if options.only in each[0]]

    with (
        tempfile.TemporaryDirectory() as scratch,
        ThreadPoolExecutor(options.jobs) as workers,
    ):
        keep = options.keep or Path(scratch)

        def judge(broker: tuple[str, str]) -> Seen | str:
            return judged(*broker, options.effort, options.seed, keep)

        outcomes = [*workers.map(judge, wanted)]
    all_seen = [each for each in outcomes if isinstance(each, Seen)]
    absent = [each for each in outcomes if isinstance(each, str)]
    claimed = {
        name for seen in all_seen for name, at in seen.states().items() if at != "not claimed"
    }
    requirements = [name for name in catalogue() if name in claimed]
    shutil.rmtree(FINDINGS / "traces", ignore_errors=True)
    for seen in all_seen:
        for each in seen.broken():
            assert each.counterexample is not None
            write(each.counterexample, FINDINGS / _trace_of(seen, each.counterexample).parent)
    text = page(all_seen, absent, checked, options.effort)
    (FINDINGS / "brokers.md").write_text(text, encoding="utf-8")
    (FINDINGS / "brokers.svg").write_text(picture(all_seen, requirements), encoding="utf-8")
    print("\n".join(absent))


if __name__ == "__main__":
    main()
