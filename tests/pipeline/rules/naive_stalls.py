"""Messages that waited too long while a consumer was free, record by record with plain loops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from brokerproof.spec.histories import NEVER, Record
from tests.pipeline.intervals.naive_intervals import (
    Facts,
    Wait,
    certain_end,
    latest,
    seen,
    unseen_until,
)


@dataclass(frozen=True)
class Free:
    """A span in which a consumer was free, until its next delivery; `seen` is when that was."""

    consumer: str
    queue: str
    run: str
    position: int | None
    since: int
    until: int
    seen: int


@dataclass(frozen=True)
class Stall:
    """A message that certainly waited since `begun`, and meanwhile for a consumer that was free."""

    wait: Wait
    begun: int
    free: Free
    start: int
    end: int


def stalls_of(
    waits: Sequence[Wait],
    lost: Sequence[Wait],
    facts: Facts,
    records: Sequence[Record],
    bound: int,
) -> Iterator[Stall]:
    """Yield the messages that were stalled for longer than a bound; `lost` are lost, not late."""
    free = [each for consume in records for each in _free(consume, records)]
    for wait in waits:
        left = -1 if any(wait is each for each in lost) else certain_end(wait, facts)
        begun = max(int(wait.begun.end), unseen_until(wait, facts))
        of_queue = [
            each
            for each in free
            if (each.run, each.queue) == (wait.message.run, wait.message.queue)
        ]
        while_waiting = [
            each for each in of_queue if min(each.until, left) - max(each.since, begun) > bound
        ]
        if while_waiting:
            one = min(while_waiting, key=lambda each: (-each.until, each.consumer))
            yield Stall(wait, begun, one, max(one.since, begun), min(one.until, left))
        if wait.given is None or not wait.sure or left < wait.left:
            continue
        given = (wait.given.record.consumer, wait.given.record.position)
        for each in of_queue:
            start = max(each.since, begun)
            if (each.consumer, each.position) == given and each.seen - start > bound:
                yield Stall(wait, begun, each, start, each.seen)


def _free(consume: Record, records: Sequence[Record]) -> Iterator[Free]:
    """Yield when a consumer was free before each of its deliveries, and after the last."""
    if consume.op != "consume" or consume.outcome == "failed":
        return
    of_run = [each for each in records if each.run == consume.run and each.outcome != "failed"]
    namesakes = [e for e in of_run if (e.op, e.consumer) == ("consume", consume.consumer)]
    if consume.mode == "browse" or consume.selective or len(namesakes) > 1:
        return
    own = [each for each in of_run if each.consumer == consume.consumer]
    given = sorted((e for e in own if e.op == "deliver"), key=lambda e: e.position or 0)
    follow = all(one.position == number for number, one in enumerate(given))
    if not follow or any(seen(b) < seen(a) for a, b in itertools.pairwise(given)):
        return
    ends = max(each.start for each in records if each.run == consume.run)
    stays = min([ends, *(each.start for each in of_run if _may_end(each, consume))])
    limit = consume.window if consume.mode == "acknowledge" else None
    for number in range(len(given) + 1):
        before = given[:number]
        since = max([latest(consume), *map(seen, before)])
        if limit and number >= limit:
            settled = sorted(_settled(each, own) for each in before)
            since = max(since, settled[number - limit])
        last = number == len(given)
        until = stays if last else min(given[number].start, stays)
        arrived = stays if last else min(seen(given[number]), stays)
        yield Free(
            str(consume.consumer),
            str(consume.queue),
            consume.run,
            None if last else number,
            since,
            until,
            arrived,
        )


def _settled(delivery: Record, own: Sequence[Record]) -> int:
    ends = [
        latest(each)
        for each in own
        if each.op in {"acknowledge", "reject", "release"} and each.position == delivery.position
    ]
    return max(min(ends, default=NEVER), seen(delivery))


def _may_end(record: Record, consume: Record) -> bool:
    """Whether a record may be what ended a consumer."""
    if latest(record) < consume.start:
        return False
    match record.op:
        case "cancel":
            return record.consumer == consume.consumer
        case "close":
            return consume.channel in {None, record.channel}
        case "delete":
            return record.queue == consume.queue
        case "crash":
            return True
        case _:
            return False
