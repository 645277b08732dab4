"""The sizes that the paging queue is run with.

Owns their meaning and their values in RabbitMQ 2.8.2. Refuses to know what is done with them. None
of them, nor the target of messages in RAM, may ever be seen from outside a queue: they decide where
a message is, not which is fetched next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SEGMENT_MAX = 1 << 14
"""Most entries of a segment: a record of a segment file has 14 bits for the place in it."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Sizes; the defaults are the release's, except that it keeps all of the current file.

    `segment` is how many sequence numbers a segment of the index has, `batch` how many messages are
    paged at most in one go, `journal_limit` after how many operations the journal is flushed,
    `file_size` from how many bytes on a file of the store is followed by a new one, `cache_bytes`
    how many bytes just written to it the store keeps for reading.

    `surplus` says when queue indices go to disk. The release waits until a whole batch of them is
    beyond what is permitted, and leaves up to `batch - 1` there; since 3.3 *any* surplus of at
    least a batch goes whole. `recovered` says what a message counts as after a crash: in the
    release as delivered, otherwise as what the index knows of it.
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
