"""Redis as a queue of jobs in a stream: a consumer group, and min-idle as the lease.

Each queue is a stream with one group, and each channel is a consumer of the group:

    publish             XADD
    get                 XAUTOCLAIM of what has idled for the lease; else XREADGROUP; then XPENDING
    acknowledge         XACK; in mode automatic, at once
    reject              the same
    extend              XCLAIM JUSTID to the same consumer, if XPENDING shows the same delivery
    release             XCLAIM JUSTID to the consumer `released` with IDLE, if XPENDING shows it
    close_channel       the same for all that the consumer holds

Each of these is one command or one script. The names of queues and deliveries are the adapter's;
the group counts deliveries, and the count tells a delivery from earlier ones. XACK knows entries
and no deliveries, so a settlement names the message.

The client chooses the lease with each XAUTOCLAIM, in milliseconds. So a second of the protocol
takes `SECOND_S` here, and runs stay short.

    brokerproof check examples/recipes/redis_stream.py:make_queue

Two wrong ways are here too: a consumer that is deleted, and a cursor that is ignored.

`docs/findings/redis.md` has the verdicts and their reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Declare, Extend, Release, Settlement

if TYPE_CHECKING or __package__:
    from .adapter import Adapter, Held, Taken
    from .redis_server import RedisServer, redis_of_this_process
else:
    from adapter import Adapter, Held, Taken
    from redis_server import RedisServer, redis_of_this_process

SECOND_S = 0.2
GROUP = "workers"
RELEASED = "released"

IDLE_MS = 365 * 24 * 3600 * 1000
"""How long a released entry seems to have idled: longer than any lease."""

EVERY_PENDING = "until found or cursor == '0-0'"
"""XAUTOCLAIM looks at ten pending entries for each that it may claim; the cursor leads on."""

GET = f"""
local cursor, found = '0-0', nil
repeat
  local reply = redis.call(
    'XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], cursor, 'COUNT', 1)
  cursor, found = reply[1], reply[2][1]
{EVERY_PENDING}
if not found then
  local read = redis.call(
    'XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', KEYS[1], '>')
  if not read then return nil end
  found = read[1][2][1]
end
local times = redis.call('XPENDING', KEYS[1], ARGV[1], found[1], found[1], 1)[1][4]
if ARGV[4] == 'automatic' then redis.call('XACK', KEYS[1], ARGV[1], found[1]) end
return {{found[1], found[2][2], times}}
"""

MOVE = """
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not pending or pending[2] ~= ARGV[3] or pending[4] ~= tonumber(ARGV[4])
  or pending[3] >= tonumber(ARGV[5]) then return 0 end
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[6], 0, ARGV[2], 'IDLE', ARGV[7], 'JUSTID')
return 1
"""

LEAVE = """
for _, key in ipairs(KEYS) do
  for _, each in ipairs(redis.call('XPENDING', key, ARGV[1], '-', '+', 1000000, ARGV[2])) do
    redis.call('XCLAIM', key, ARGV[1], ARGV[3], 0, each[1], 'IDLE', ARGV[4], 'JUSTID')
  end
end
"""


def make_queue() -> RedisStream:
    """Return the stream with its group."""
    return RedisStream(redis_of_this_process())


def make_queue_that_deletes_consumers() -> RedisStreamThatDeletesConsumers:
    """Return the same with XGROUP DELCONSUMER when a channel closes."""
    return RedisStreamThatDeletesConsumers(redis_of_this_process())


def make_queue_that_ignores_the_cursor() -> RedisStreamThatIgnoresTheCursor:
    """Return the same with one XAUTOCLAIM, which looks at ten pending entries only."""
    return RedisStreamThatIgnoresTheCursor(redis_of_this_process())


class RedisStream(Adapter):
    """Queues in streams, each with one consumer group."""

    name = "redis-stream"
    get_script = GET
    second_s = SECOND_S
    claims = Capabilities(
        get=True,
        get_modes=("acknowledge", "automatic"),
        settle_by="message",
        redelivered="count",
        release_position="original",
        clock=True,
        tolerance_s=1,
        lease="silent",
        extend=True,
    )

    def __init__(self, server: RedisServer) -> None:
        super().__init__()
        self._redis, self.version = server.client, server.version
        self._take = self._redis.register_script(self.get_script)
        self._move = self._redis.register_script(MOVE)
        self._leave = self._redis.register_script(LEAVE)

    def empty(self) -> None:
        """Empty the server."""
        self._redis.flushall()

    def create(self, declare: Declare) -> None:
        """Make the stream and its group."""
        self._redis.xgroup_create(declare.queue, GROUP, id="0", mkstream=True)

    def publish(self, queue: Declare, message: Message) -> None:
        """Add an entry."""
        self._redis.xadd(queue.queue, {"message": message.id, "body": "x" * message.size})

    def take(self, queue: Declare, channel: str, *, automatic: bool) -> Taken | None:
        """Claim the first entry that has idled for the lease, or else read a new one."""
        mode = "automatic" if automatic else "acknowledge"
        found = self._take([queue.queue], [GROUP, channel, _lease_ms(queue), mode])
        if found is None:
            return None
        entry, message, times = cast("tuple[str, str, int]", found)
        return Taken(message, entry, before=times - 1)

    def settle(self, settlement: Settlement | Extend, held: Held) -> bool:
        """Acknowledge an entry, or claim it for its holder or for `RELEASED`."""
        queue, entry = held.queue, held.taken.key
        if isinstance(settlement, Extend):
            to, idle = held.channel, 0
        elif isinstance(settlement, Release):
            to, idle = RELEASED, IDLE_MS
        else:
            return bool(self._redis.xack(queue.queue, GROUP, entry))
        times = held.taken.before + 1
        is_held = (GROUP, entry, held.channel, times, _lease_ms(queue))
        return bool(self._move([queue.queue], [*is_held, to, idle]))

    def leave(self, channel: str, queues: list[str]) -> None:
        """Claim what the channel holds for `RELEASED`."""
        self._leave(queues, [GROUP, channel, RELEASED, IDLE_MS])


class RedisStreamThatDeletesConsumers(RedisStream):
    """Wrong: the group forgets what a deleted consumer held, and never gives it again."""

    name = "redis-stream-that-deletes-consumers"

    def leave(self, channel: str, queues: list[str]) -> None:
        """Delete the consumer."""
        for queue in queues:
            self._redis.xgroup_delconsumer(queue, GROUP, channel)


class RedisStreamThatIgnoresTheCursor(RedisStream):
    """Wrong: a message that came back is not found behind ten that are held."""

    name = "redis-stream-that-ignores-the-cursor"
    get_script = GET.replace(EVERY_PENDING, "until true")


def _lease_ms(queue: Declare) -> int:
    """Return for how long an entry must idle; without a lease, only released entries do so."""
    return IDLE_MS if queue.lease_s is None else int(queue.lease_s * SECOND_S * 1000)
