"""The recorded facts about a violation: its subscribers, windows, levels and places.

Owns how the records of a witness are looked up, and the words for a record. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, TypeAlias

import pyarrow as pa

from brokerproof.checks.search.counterexamples import RecordedEvent
from brokerproof.pipeline.intervals.subscriptions import NUMBERED, happened_by
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.tables import PLACE, file_and_line, records_of
from brokerproof.spec.histories import Record

RANKS: Final = 2
"""Records of a higher rank are only in the file of a violation."""

EVENTS_MAX: Final = 12
"""The largest number of events shown of a violation; all of them are in its file."""

Placed: TypeAlias = tuple[Record, int]
"""A record, and its place in the recording; the line is 0 for a record in no file."""


@dataclass(frozen=True)
class Violation:
    """A row of the table of violations, and further values for its run.

    `chain` is the covering chain of waiting messages in the order in which they left, if the
    violation has one and it is known. The witness is the last message that was present.
    """

    requirement: str
    run: str
    queue: str
    message: str
    rule: str
    witness: str | None
    late: tuple[int, int]
    early: tuple[int, int]
    chain: tuple[str, ...] = ()
    strength: int = 0

    @classmethod
    def of(cls, row: dict[str, Any]) -> Violation:
        """Return the violation of a row of the table."""
        return cls(
            row["requirement"],
            row["run"],
            row["queue"],
            row["message"],
            row["rule"],
            row["witness"],
            (row["late_start"], row["late_end"]),
            (row["early_start"], row["early_end"]),
            strength=row["strength"],
        )


@dataclass(frozen=True)
class RecordedFacts:
    """The recorded facts about a violation; empty if only its row is known.

    `files` are the names behind the numbers in places.
    """

    found: Violation
    records: Sequence[Placed] = ()
    files: Sequence[str] = ()

    @classmethod
    def of(cls, found: Violation, records: pa.Table, files: Sequence[str]) -> RecordedFacts:
        """Return the facts in the records of a witness."""
        rows = [record for batch in records.to_batches() for record in records_of(batch)]
        return cls(found, list(zip(rows, records.column(PLACE).to_pylist(), strict=True)), files)

    def _of(self, *kinds: str) -> Iterator[Record]:
        return (r for r, _ in self.records if r.op in kinds and r.outcome != "failed")

    @cached_property
    def late(self) -> Record | None:
        """The wrong delivery, view or get; None if the violation is none of these."""
        found = self.found
        for each in self._of("deliver", "empty"):
            is_it = each.message == found.message and each.end == found.late[1]
            is_it |= each.op == "empty" and f"{each.consumer} at {each.start}" == found.message
            if is_it and each.queue == found.queue:
                return each
        return None

    @cached_property
    def early(self) -> Record | None:
        """The earlier delivery of the same message that the late one is compared with, or None."""
        found = self.found
        for each in self._of("deliver"):
            is_it = (each.message, each.consumer) == (found.message, _plain(found.witness))
            if is_it and each.end == found.early[1] and each is not self.late:
                return each
        return None

    @cached_property
    def declaration(self) -> Record | None:
        """The last declaration of its queue."""
        queue = self.found.queue
        return next((r for r in reversed([*self._of("declare")]) if r.queue == queue), None)

    def publish(self, message: str) -> Record | None:
        """Return the publish of a message of its queue."""
        where = (message, self.found.queue)
        return next((r for r in self._of("publish") if (r.message, r.queue) == where), None)

    def subscription(self, consumer: str | None) -> Record | None:
        """Return the last subscription of a consumer to its queue before the late event."""
        name = _plain(consumer)
        until = self.found.late[1]
        of_name = [
            r
            for r in self._of("consume")
            if (r.consumer, r.queue) == (name, self.found.queue) and r.start <= until
        ]
        return of_name[-1] if of_name else None

    def window(self, consumer: str | None) -> int | None:
        """Return the number of unsettled messages a consumer may hold; None without a limit."""
        subscribed = self.subscription(consumer)
        return None if subscribed is None else subscribed.window or None

    def subscriber(self, taken: Record | None) -> str:
        """Return the subscriber of a delivery and its channel, in words."""
        return "a consumer" if taken is None else self._named(taken.consumer or "", taken)

    def named(self, consumer: str) -> str:
        """Return a subscriber by name, in words."""
        given = (r for r in self._of("deliver", "empty") if r.consumer == _plain(consumer))
        return self._named(consumer, next(given, None))

    def is_get(self, consumer: str) -> bool:
        """Return whether a subscriber made a single get, and has no subscription."""
        of_subscriber = [r for r in self._of("empty", "get", "deliver") if r.consumer == consumer]
        if any(r.op != "deliver" for r in of_subscriber):
            return True
        others_subscribed = any(True for _ in self._of("consume"))
        return others_subscribed and [r.position for r in of_subscriber] == [0]

    def _named(self, consumer: str, taken: Record | None) -> str:
        subscribed = self.subscription(consumer)
        if subscribed is not None:
            kind = "browser " if subscribed.mode == "browse" else "consumer "
        else:
            kind = "get " if self.is_get(consumer) else ""
        channel = (taken and taken.channel) or (subscribed and subscribed.channel)
        return f"{kind}{consumer}" + (f" on channel {channel}" if channel else "")

    # The recorded names and numbers, for the run that shows the same.

    @cached_property
    def subscribers(self) -> frozenset[str]:
        """All subscribers that got a message or asked for one."""
        return frozenset(r.consumer for r in self._of("deliver", "empty", "get") if r.consumer)

    @cached_property
    def late_subscriber(self) -> str | None:
        """The consumer that got a message wrongly."""
        is_given = self.late is not None and not self.browses(self.late)
        return self.late.consumer if self.late is not None and is_given else None

    @cached_property
    def browser(self) -> str | None:
        """The browser that was shown it."""
        views = (r for r in self._of("deliver") if self.browses(r))
        seen = (r for r in views if r.message == self.found.message)
        view = self.late if self.late is not None and self.browses(self.late) else None
        return (view or next(seen, Record(op="get", start=0))).consumer

    @cached_property
    def first_subscriber(self) -> str | None:
        """The consumer that held the message before, or held the overtaken one."""
        if self.early is not None and not self.browses(self.early):
            return self.early.consumer
        is_of_another = RULES[self.found.rule].sides is not None
        message = self.found.witness if is_of_another else self.found.message
        had = [
            r.consumer
            for r in self._of("deliver")
            if r.message == message and not self.browses(r) and r is not self.late
            if r.start <= self.found.late[1]
        ]
        return had[-1] if had else None

    def held_by(self, subscriber: str | None) -> tuple[str, ...]:
        """Return the messages that a subscriber held before the late one, not yet being settled."""
        until = self.found.late[1]
        settled = {
            (r.consumer, r.position)
            for r in self._of("acknowledge", "reject", "release")
            if r.start <= until
        }
        given = [
            r for r in self._of("deliver") if r.consumer == subscriber and (r.end or 0) <= until
        ]
        held = [r for r in given if (r.consumer, r.position) not in settled]
        held = [r for r in held if r.message != self.found.message]
        ordered = sorted(held, key=lambda each: each.position or 0)
        return tuple(dict.fromkeys(r.message or "" for r in ordered))

    @cached_property
    def levels(self) -> int | None:
        """The number of levels of its queue, 0 without any; None if unknown."""
        return None if self.declaration is None else self.declaration.levels or 0

    @cached_property
    def priorities(self) -> dict[str, int]:
        """The priorities of its messages."""
        return {r.message: r.priority for r in self._of("publish") if r.message}

    @cached_property
    def channels(self) -> dict[str, str]:
        """The channels of subscribers."""
        kinds = ("deliver", "empty", "get", "consume")
        return {r.consumer: r.channel for r in self._of(*kinds) if r.consumer and r.channel}

    @cached_property
    def windows(self) -> dict[str, int | None]:
        """The windows of its queue's subscriptions."""
        of_queue = (r for r in self._of("consume") if r.queue == self.found.queue)
        return {r.consumer: r.window or None for r in of_queue if r.consumer}

    def browses(self, delivery: Record) -> bool:
        """Return whether a delivery only showed a message."""
        subscribed = self.subscription(delivery.consumer)
        return (delivery if subscribed is None else subscribed).mode == "browse"

    # The events of a violation.

    def events(self) -> tuple[RecordedEvent, ...]:
        """Return the events by time; of too many, those that matter most."""
        ranked = [(self._rank(record), record, place) for record, place in self.records]
        ranked = sorted((each for each in ranked if each[0] <= RANKS), key=itemgetter(0))
        chosen = ((record, place) for _, record, place in ranked[:EVENTS_MAX])
        ordered = sorted(chosen, key=lambda each: (each[0].start, happened_by(each[0])))
        return tuple(self._event(record, place) for record, place in ordered)

    def _rank(self, record: Record) -> int:
        """Return how much a record matters: 0 for the violation itself, over `RANKS` for others."""
        found = self.found
        of_queue = record.queue == found.queue
        if record is self.late or record is self.early:
            return 0
        if (record.start, record.end) in {found.late, found.early}:
            return 1
        if of_queue and record.message in {found.message, *found.chain, found.witness}:
            return 3 if record.op in {"acknowledge", "reject"} and not self._is_of_settling else 1
        if record.op in {"consume", "deliver"}:
            return 2 if record.consumer in self._concerned else 3
        if record.op == "close":
            return 2 if record.channel in self._channels_concerned else 3
        return 2 if record.op in {"declare", "crash", "restart"} else 3

    @property
    def _is_of_settling(self) -> bool:
        return self.found.rule == "held-by-two" or self.found.requirement == "settled-once"

    @cached_property
    def _concerned(self) -> frozenset[str | None]:
        """The subscribers that held the message, or are named by the violation."""
        had = (r.consumer for r in self._of("deliver") if r.message == self.found.message)
        return frozenset((*had, _plain(self.found.witness)))

    @cached_property
    def _channels_concerned(self) -> frozenset[str | None]:
        return frozenset(self.channels.get(each or "") for each in self._concerned) - {None}

    def _event(self, record: Record, place: int) -> RecordedEvent:
        file, line = file_and_line(place)
        where = self.files[file] if line and file < len(self.files) else ""
        return RecordedEvent(
            event=self.told(record), start=record.start, end=record.end, file=where, line=line
        )

    def told(self, record: Record) -> str:
        """Return a record in a few words."""
        words = _WORDS.get(record.op, record.op)
        match record.op:
            case "publish":
                said = f"{record.message} {words}" + (
                    f", priority {record.priority}" if self.levels else ""
                )
            case "deliver":
                seen = "shown to" if self.browses(record) else "given to"
                flag = {True: ", as redelivered", False: ", as new", None: ""}
                said = f"{record.message} {seen} {self._named(record.consumer or '', record)}"
                said += f", its delivery {record.position}{flag[record.redelivered]}"
            case "acknowledge" | "reject" | "release" | "extend":
                said = f"{record.message} {words} by {record.consumer}"
            case "empty":
                said = f"{self._named(record.consumer or '', record)} found nothing"
            case "consume":
                window = f"window {record.window}" if record.window else "no limit"
                said = f"{self._named(record.consumer or '', record)} subscribed, {window}"
            case "cancel" | "get":
                said = f"{record.consumer} {words}"
            case "close":
                said = f"channel {record.channel} {words}"
            case "declare":
                said = f"{record.queue} {words}"
                said += f" with {record.levels} levels" if record.levels else ", first in first out"
            case "crash" | "restart":
                said = f"the broker {words}"
            case _:
                said = f"{record.queue} {words}"
        return said if record.outcome == "ok" else f"{said} (not answered)"


def _plain(subscriber: str | None) -> str | None:
    """Return the name of a subscriber as it is in the recording."""
    return None if subscriber is None else subscriber.partition(NUMBERED)[0]


_WORDS: Final = {
    "publish": "published",
    "acknowledge": "acknowledged",
    "reject": "rejected",
    "release": "released",
    "extend": "renewed",
    "cancel": "cancelled",
    "get": "asked, and had no answer",
    "close": "closed",
    "declare": "declared",
    "purge": "purged",
    "delete": "deleted",
    "crash": "crashed",
    "restart": "came back",
    "drained": "found drained",
}
"""The words for each kind."""
