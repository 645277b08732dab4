"""The sizes of a paging queue.

Owns their meaning and their values in RabbitMQ 2.8.2. No size, nor the target of messages in RAM,
may be visible outside of a queue: they decide where a message is, not which is fetched next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SEGMENT_MAX = 1 << 14
"""The largest segment: a segment file's record has 14 bits for the place."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Sizes; the defaults are the release's, except that it caches all of the current file.

    A segment of the index has `segment` sequence numbers. At most `batch` messages are paged at
    once (the document's `IO_BATCH_SIZE`). The journal is flushed after `journal_limit` operations.
    A store file of `file_size` bytes is followed by a new one. The store keeps `cache_bytes` of
    recent writes for reading.

    `surplus` says when queue indices go to disk. The release waits until a whole batch of them is
    beyond the permitted number, and leaves up to `batch - 1` there; since 3.3 *any* surplus of at
    least a batch goes whole. `recovered` is the state of a message after a crash: delivered, as in
    the release, or as known to the index.
    """

    segment: int = SEGMENT_MAX
    batch: int = 64
    journal_limit: int = 262_144
    file_size: int = 16 * 1024 * 1024
    cache_bytes: int = 256 * 1024
    surplus: Literal["whole batch", "any"] = "whole batch"
    recovered: Literal["delivered", "known"] = "delivered"

    def __post_init__(self) -> None:
        if not 1 <= self.segment <= SEGMENT_MAX:
            raise ValueError(f"a segment has 1 to {SEGMENT_MAX} entries, not {self.segment}")
        if self.batch < 1 or self.journal_limit < 0 or self.file_size < 1 or self.cache_bytes < 0:
            raise ValueError(f"a size is too small: {self}")
