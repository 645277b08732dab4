"""Random histories as one table: each a run of its own, sound or with a fault."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from tests.pipeline.recorders import table_of
from tests.pipeline.rules.test_kernels_agree import recording


def history_table(seeds: Iterable[int]) -> pa.Table:
    """Return the random histories of some seeds, by the run `r<seed>` each."""
    records = [
        msgspec.structs.replace(record, run=f"r{seed}")
        for seed in seeds
        for record in recording(seed)[0]
    ]
    return table_of(records)
