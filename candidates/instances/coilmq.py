"""A CoilMQ of our own, from its Python package; its queues are in memory."""

from __future__ import annotations

from pathlib import Path

from brokerproof.candidates.instances.registry import program
from brokerproof.candidates.instances.server import Launch, PrivateServer


class PrivateCoilMQ(PrivateServer):
    """One CoilMQ: STOMP 1.0 to 1.2, any user."""

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Say all on the command line; the package's own configuration is right."""
        del folder
        # As our own user: another one may not read the folder of our Python packages.
        return Launch([str(program("coilmq")), "-b", "127.0.0.1", "-p", str(ports[0])])
