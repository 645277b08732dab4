"""Sound traffic of an unusual kind is not accused: small histories, each with its own oddity.

Channels and queues whose names come back, modes that only the subscription tells, and messages that
went to somebody who did not acknowledge and never saw them.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.sources import read
from brokerproof.pipeline.tables import batch_of
from brokerproof.spec.histories import Record
from tests.pipeline.naive import judged_naively

SOUND = sorted((Path(__file__).parent / "recordings" / "sound").glob("*.jsonl"))


def records_in(path: Path) -> list[Record]:
    return [each for each in read(path) if isinstance(each, Record)]


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_sound_traffic_is_not_accused_in_any_order_of_its_lines(path: Path) -> None:
    records = records_in(path)
    assert any(each.op in {"deliver", "publish"} for each in records)
    for each in (records, records[::-1]):
        table = pa.Table.from_batches([batch_of(each, range(1, len(each) + 1))])
        assert judged_alone(table).violations.to_pylist() == []
        assert judged_naively(each) == set()


def test_there_are_some() -> None:
    assert len(SOUND) >= 12
