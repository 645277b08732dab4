"""Redis as a queue in lists: LMOVE to a processing list, as its documentation recommends.

Each queue is a list, and each channel has a processing list of each queue:

    publish             LPUSH queue
    get                 LMOVE queue processing RIGHT LEFT; in mode automatic, RPOP queue
    acknowledge         LREM processing
    reject              the same
    release             LREM processing, then LPUSH queue, in one script
    close_channel       LMOVE processing queue RIGHT LEFT until it is empty, in one script

Delivery ids and the names of queues and channels are the adapter's. A settlement removes a value
from a list, so it names the message and no delivery. A message is a value of its id and its body.

Two wrong ways to do it are here too: one pops without a processing list, one looks and then takes.

    brokerproof check examples/recipes/redis_list.py:make_queue

`docs/findings/redis.md` has the verdicts and their reasons.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Declare, Extend, Release, Settlement

if TYPE_CHECKING or __package__:
    from .adapter import Adapter, Held, Taken
    from .redis_server import RedisServer, redis_of_this_process
else:
    from adapter import Adapter, Held, Taken
    from redis_server import RedisServer, redis_of_this_process

RELEASE = """
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[1])
return 1
"""

LEAVE = """
for i = 1, #KEYS, 2 do
  while redis.call('LMOVE', KEYS[i], KEYS[i + 1], 'RIGHT', 'LEFT') do end
end
"""


def make_queue() -> RedisList:
    """Return the reliable queue."""
    return RedisList(redis_of_this_process())


def make_queue_that_only_pops() -> RedisListThatOnlyPops:
    """Return the queue without processing lists: a message is lost with its consumer."""
    return RedisListThatOnlyPops(redis_of_this_process())


def make_queue_that_looks_first() -> RedisListThatLooksFirst:
    """Return the queue that reads the next message and then takes it, which two threads can do."""
    return RedisListThatLooksFirst(redis_of_this_process())


class RedisList(Adapter):
    """Queues in lists, with processing lists."""

    name = "redis-list"
    claims = Capabilities(
        get=True,
        get_modes=("acknowledge", "automatic"),
        settle_by="message",
        redelivered="none",
        release_position="tail",
    )

    def __init__(self, server: RedisServer) -> None:
        super().__init__()
        self._redis, self.version = server.client, server.version
        self._release = self._redis.register_script(RELEASE)
        self._leave = self._redis.register_script(LEAVE)

    def empty(self) -> None:
        """Empty the server."""
        self._redis.flushall()

    def publish(self, queue: Declare, message: Message) -> None:
        """Push to the left; the right end is the head."""
        self._redis.lpush(_list(queue.queue), json.dumps([message.id, "x" * message.size]))

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Move the head to the channel's processing list."""
        source = _list(queue.queue)
        if automatic:
            return _taken(self._redis.rpop(source))
        processing = _processing(queue.queue, channel)
        return _taken(self._redis.lmove(source, processing, "RIGHT", "LEFT"))

    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Remove the message from the processing list; a release pushes it to the tail."""
        queue, value = held.queue.queue, held.taken.key
        processing = _processing(queue, held.channel)
        if isinstance(settlement, Release):
            return bool(self._release([processing, _list(queue)], [value]))
        return bool(self._redis.lrem(processing, 1, value))

    def leave(self, channel: str, queues: list[str]) -> None:
        """Move the processing lists of the channel back, in the order of delivery."""
        keys = [key for queue in queues for key in (_processing(queue, channel), _list(queue))]
        self._leave(keys)


class RedisListThatOnlyPops(RedisList):
    """Wrong: the popped message is in no list until its client pushes it again."""

    name = "redis-list-that-only-pops"

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:  # noqa: ARG002
        """Pop the head."""
        return _taken(self._redis.rpop(_list(queue.queue)))

    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Push a released message again; there is nothing to acknowledge."""
        if isinstance(settlement, Release):
            self._redis.lpush(_list(held.queue.queue), held.taken.key)
        return True


class RedisListThatLooksFirst(RedisList):
    """Wrong: another client may read the head between the two commands."""

    name = "redis-list-that-looks-first"

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Read the head, copy it to the processing list, then remove it."""
        source = _list(queue.queue)
        taken = _taken(self._redis.lindex(source, -1))
        if taken is not None:
            if not automatic:
                self._redis.lpush(_processing(queue.queue, channel), taken.key)
            self._redis.lrem(source, -1, taken.key)
        return taken


def _list(queue: str) -> str:
    return f"queue:{queue}"


def _processing(queue: str, channel: str) -> str:
    return f"processing:{queue}:{channel}"


def _taken(value: object) -> Taken | None:
    if value is None:
        return None
    assert isinstance(value, str), "the client decodes values"
    return Taken(json.loads(value)[0], value)
