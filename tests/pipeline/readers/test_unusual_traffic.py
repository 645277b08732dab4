"""Sound traffic of an unusual kind is not accused: small histories, each with its own oddity.

Channels, queues and consumers whose names come back, queues without a declaration, gets without an
answer, modes that only the subscription tells, and messages sent to a consumer that did not
acknowledge and never saw them.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.intervals.streams import AGAINST_TIME, TWICE
from brokerproof.pipeline.readers.sources import read
from brokerproof.pipeline.stages import SETTLES_ANOTHERS
from brokerproof.pipeline.tables import batch_of
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import table_of
from tests.pipeline.rules.naive import judged_naively

SOUND = sorted((Path(__file__).parent / "recordings" / "sound").glob("*.jsonl"))


def records_in(path: Path) -> list[Record]:
    return [each for each in read(path) if isinstance(each, Record)]


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_sound_traffic_is_not_accused_in_any_order_of_its_lines(path: Path) -> None:
    records = records_in(path)
    assert any(each.op in {"deliver", "publish"} for each in records)
    for each in (records, records[::-1]):
        table = table_of(each)
        assert judged_alone(table).violations.to_pylist() == []
        assert judged_naively(each) == set()


def test_there_are_some() -> None:
    assert len(SOUND) >= 17


@pytest.mark.parametrize(
    ("name", "replaced", "by", "requirement"),
    [
        # The name comes again, and its second subscription exceeds its own window.
        ("name_again", '"start":40,"end":41', '"start":60,"end":61', "credit-not-exceeded"),
        ("name_on_two_channels", '"window":2', '"window":1', "credit-not-exceeded"),
        # The declaration comes, and says the other order.
        ("undeclared", '"queue":"other"', '"queue":"q"', "fifo-order"),
        # The get had an answer, and found nothing.
        (
            "get_unanswered",
            '"op":"get","mode":"automatic","start":10,"outcome":"unknown"',
            '"op":"empty","start":10,"end":14',
            "nothing-lost",
        ),
        # It was asked of another queue.
        (
            "get_unanswered_returns",
            '"op":"get","queue":"q"',
            '"op":"get","queue":"p"',
            "fifo-order",
        ),
        ("window_of_zero", '"window":0', '"window":1', "credit-not-exceeded"),
    ],
)
def test_what_differs_in_one_thing_is_accused(
    tmp_path: Path, name: str, replaced: str, by: str, requirement: str
) -> None:
    [path] = [each for each in SOUND if each.stem == name]
    assert replaced in path.read_text()
    wrong = tmp_path / path.name
    wrong.write_text(path.read_text().replace(replaced, by))
    records = records_in(wrong)
    table = table_of(records)
    found = judged_alone(table).violations.column("requirement").to_pylist()
    assert requirement in found
    assert {each.requirement for each in judged_naively(records)} == set(found)


def given(message: str, position: int, start: int, end: int) -> list[Record]:
    """Return a message that was published at first, and given to the one consumer."""
    about = {"queue": "q", "message": message}
    return [
        Record(op="publish", start=0, end=1, **about),  # type: ignore[arg-type]
        Record(op="deliver", consumer="c", position=position, start=start, end=end, **about),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (given("m2", 2, 6, 30), None),
        (given("m2", 1, 6, 30), TWICE),
        (given("m2", 2, 6, 7), AGAINST_TIME),
    ],
)
def test_streams_that_contradict_themselves_are_rejected(
    last: list[Record], reason: str | None
) -> None:
    records = [*given("m0", 0, 5, 6), *given("m1", 1, 10, 20), *last]
    for order in (1, -1):
        places = range(1, len(records) + 1)[::order]
        table = pa.Table.from_batches([batch_of(records[::order], places)])
        aside = judged_alone(table).aside.sort_by("place").to_pylist()
        expected = [] if reason is None else [(3, reason), (4, reason), (5, reason), (6, reason)]
        assert [(row["place"], row["reason"]) for row in aside] == expected


def test_a_settlement_by_another_than_the_holder_has_no_effect() -> None:
    settled = Record(op="acknowledge", queue="q", message="m", consumer="d", position=0, start=30)
    drained = Record(op="drained", queue="q", start=50, end=51)
    close = Record(op="close", channel="1", start=35, end=36)
    subscribed = Record(op="consume", queue="q", consumer="c", channel="1", start=2, end=3)
    records = [subscribed, *given("m", 0, 5, 20), replace(settled, end=31), close, drained]
    table = table_of(records)
    judgement = judged_alone(table)
    [row] = judgement.aside.to_pylist()
    assert (row["place"], row["reason"]) == (4, SETTLES_ANOTHERS)
    # The broker let it have one, and the message did not come back when its holder had gone.
    assert judgement.violations.column("requirement").to_pylist() == ["close-releases"]
    own = [replace(each, consumer="c") if each.op == "acknowledge" else each for each in records]
    table = table_of(own)
    assert judged_alone(table).violations.num_rows == 0
