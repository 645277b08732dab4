"""The rates at which messages come and go, and how long the messages in RAM will last.

Owns the four averages of a queue. Callers pass in the time. An average is taken over the present
period and the one before it. The release takes one every five seconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_US_PER_S: Final = 1_000_000


class Counts(NamedTuple):
    """Counts of one period: messages in, out, deliveries to be acknowledged, acknowledgements."""

    ingress: int = 0
    egress: int = 0
    ack_ingress: int = 0
    ack_egress: int = 0


class Averages(NamedTuple):
    """The same in messages per second."""

    ingress: float = 0.0
    egress: float = 0.0
    ack_ingress: float = 0.0
    ack_egress: float = 0.0

    @property
    def pending_grows_faster(self) -> bool:
        """Return whether pending messages grow faster than ready ones.

        The document compares two speeds here; the release compares two growths.
        """
        return (self.ack_ingress - self.ack_egress) > (self.ingress - self.egress)


class Rates(NamedTuple):
    """Averages; the starts of the present and the previous period; the previous period's counts."""

    averages: Averages
    since_us: int
    previous_since_us: int
    previous: Counts
    ram_messages: int
    ram_acks: int

    def begin_period(
        self, now_us: int, counts: Counts, ram_messages: int, ram_acks: int
    ) -> tuple[Rates, float]:
        """Begin a new period; return it, and for how many seconds the messages in RAM last.

        Each message is counted twice, in and out, and RAM at two moments: hence the 4. Without any
        movement it is infinite.
        """
        elapsed_us = now_us - self.previous_since_us
        if now_us < self.since_us or elapsed_us <= 0:
            raise ValueError("time must have passed since the period before began")
        averages = Averages(
            *(
                _US_PER_S * (this + before) / elapsed_us
                for this, before in zip(counts, self.previous, strict=True)
            )
        )
        total = sum(averages)
        in_ram = self.ram_messages + ram_messages + self.ram_acks + ram_acks
        seconds = in_ram / (4 * total) if total else float("inf")
        return Rates(averages, now_us, self.since_us, counts, ram_messages, ram_acks), seconds

    def target(self, seconds: float) -> int | None:
        """Return how many messages in RAM last `seconds`; None for infinity."""
        if seconds == float("inf"):
            return None
        return int(seconds * sum(self.averages))


def rates_from(now_us: int) -> Rates:
    """Return the rates of a queue that starts now."""
    return Rates(Averages(), now_us, now_us, Counts(), 0, 0)
