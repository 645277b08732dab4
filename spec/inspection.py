"""The part of a queue's view that all documented systems share."""

from __future__ import annotations

from typing import Self

import msgspec

from brokerproof.spec.messages import Order


class QueueView(msgspec.Struct, frozen=True, cache_hash=True):
    """A queue as the broker keeps it, not as it should be; its text is one line."""

    order: Order

    @property
    def kind(self) -> str:
        """The tag that names the kind of view."""
        return str(self.__struct_config__.tag)

    def fault(self) -> str:
        """Return the first error in the view that its types do not exclude, or an empty text."""
        return ""

    def without_counters(self) -> Self:
        """Return the view without the broker's internal counters."""
        return self
