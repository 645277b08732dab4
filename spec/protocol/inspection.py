"""What every view of a queue has that `inspect` shows, whatever documented system it is of."""

from __future__ import annotations

from typing import Self

import msgspec

from brokerproof.spec.protocol.messages import Order


class QueueView(msgspec.Struct, frozen=True):
    """A queue as it is kept, not as it should be; its text is one line."""

    order: Order

    @property
    def kind(self) -> str:
        """The tag that says of which kind the view is."""
        return str(self.__struct_config__.tag)

    def fault(self) -> str:
        """Return what is wrong with the view that its types do not exclude, or nothing."""
        return ""

    def without_counters(self) -> Self:
        """Return the view without what the broker counts beside the queue itself."""
        return self
