"""A private Redis for the recipes: on a socket in its own folder, with one client for all threads.

The client of redis-py takes a connection of its pool for each command, so that several threads may
use it at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from brokerproof.candidates.unavailable import CandidateUnavailable

if TYPE_CHECKING or __package__:
    from .private_server import PrivateServer, once
else:
    from private_server import PrivateServer, once

NAME = "a private Redis"
PROGRAM = Path("/usr/bin/redis-server")
INSTALL = "install it with: sudo apt-get install --no-install-recommends redis-server"

try:
    import redis
except ImportError as error:
    raise CandidateUnavailable(
        NAME, what="the client redis is not installed", remedy="pip install redis"
    ) from error


class RedisServer:
    """The server, and a client of it."""

    def __init__(self) -> None:
        self._server = PrivateServer(NAME, PROGRAM, INSTALL, user="redis")
        socket = str(self._server.folder / "redis.sock")
        self.client = redis.Redis(unix_socket_path=socket, decode_responses=True)
        self._server.start(
            ["--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no"],
            self._answers,
        )
        self.version: str = self.client.info("server")["redis_version"]

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def close(self) -> None:
        """End the client and the server."""
        self.client.close()
        self._server.close()


def redis_of_this_process() -> RedisServer:
    """Return the one server of this process."""
    return once(NAME, RedisServer, RedisServer.close)
