"""The engine on Spark for a history of any size: its workers, and its shuffles between them.

`parts/judging.py` has the steps. The rows of a parcel go through a shuffle as one value, so Spark
moves a few large values, and no row is an object of its own. A worker compresses them before they
go through Java, which is told not to. If a worker is lost with its shuffle files, Spark does the
work again that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import pyarrow as pa

from brokerproof.pipeline.parts.judging import Made
from brokerproof.pipeline.parts.parcels import Parcel, Piece

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

Item = TypeVar("Item")

_Packed: TypeAlias = tuple[int, tuple[int, bytes]]
"""The number of a part, and its parcel compressed, after the size that it had."""

_CODEC: Final = "lz4_raw"


@dataclass(frozen=True)
class OnSpark:
    """The workers of a Spark session; they must reach the history's files."""

    spark: SparkSession

    @property
    def jobs(self) -> int:
        """The number of items that the workers take at once."""
        return int(self.spark.sparkContext.defaultParallelism)

    def of(self, pieces: Sequence[Piece]) -> _Items[Piece]:
        """Return the pieces of a history for work by these workers."""
        return _Items(self.spark.sparkContext.parallelize(pieces, max(1, len(pieces))))


@dataclass(frozen=True)
class _Items(Generic[Item]):
    """The items of an RDD, each in a partition of its own."""

    rdd: RDD[Any]

    def each(self, work: Callable[[Item], Made]) -> list[Made]:
        """Return the results of work on each item."""
        known = self.rdd.context.broadcast(work)
        # A worker looks the value up when it works.
        found = self.rdd.map(lambda item: known.value(item)).collect()  # noqa: PLW0108
        known.destroy()
        return found

    def exchanged(
        self, work: Callable[[Item], Iterable[Parcel]], parts: int
    ) -> _Items[Sequence[bytes]]:
        """Shuffle the parcels of each item to their parts."""
        known = self.rdd.context.broadcast(work)
        sent = self.rdd.flatMap(lambda item: map(_packed, known.value(item)))
        sent = sent.partitionBy(parts, int)
        return _Items(sent.mapPartitions(lambda parcels: [[_content(each) for each in parcels]]))


def _packed(parcel: Parcel) -> _Packed:
    part, content = parcel
    return part, (len(content), pa.compress(content, codec=_CODEC, asbytes=True))


def _content(parcel: _Packed) -> bytes:
    _, (size, packed) = parcel
    content: bytes = pa.decompress(packed, size, codec=_CODEC, asbytes=True)
    return content
