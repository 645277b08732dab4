"""A GarageMQ of our own, from Debian's package."""

from __future__ import annotations

import json
from pathlib import Path

from brokerproof.candidates.instances.processes import ordinary_user
from brokerproof.candidates.instances.registry import program
from brokerproof.candidates.instances.server import Launch, PrivateServer

GUEST_MD5 = "084e0343a0486ff05530df6c705c8bb4"
"""The password guest, in the form that the packaged configuration has."""


class PrivateGarageMQ(PrivateServer):
    """One GarageMQ: AMQP 0-9-1, with a store on disk."""

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Write the configuration; it has no default for any key."""
        configuration = folder / "config.yaml"
        # YAML takes JSON.
        configuration.write_text(json.dumps(_configuration(folder, ports)), encoding="utf-8")
        command = [str(program("garagemq")), "--config", str(configuration)]
        return Launch(command, owner=ordinary_user(self.name))


def _configuration(folder: Path, ports: list[int]) -> dict[str, object]:
    buffer_bytes = 196_608
    return {
        "proto": "amqp-rabbit",
        "users": [{"username": "guest", "password": GUEST_MD5}],
        "tcp": {
            "ip": "127.0.0.1",
            "port": ports[0],
            "nodelay": True,
            "readBufSize": buffer_bytes,
            "writeBufSize": buffer_bytes,
        },
        "admin": {"ip": "127.0.0.1", "port": ports[1]},
        "queue": {"shardSize": 8192, "maxMessagesInRam": 131_072},
        "db": {"defaultPath": str(folder / "db"), "engine": "badger"},
        "vhost": {"defaultPath": "/"},
        "security": {"passwordCheck": "md5"},
        "connection": {"channelsMax": 4096, "frameMaxSize": 65_536},
    }
