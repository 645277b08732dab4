"""An ActiveMQ Classic of our own, of any release from 5.1.0 on, with STOMP.

The releases share one program of ours, `PrivateActiveMQ.java`, which Java compiles as it starts.
Small limits let a handful of messages cross what otherwise takes hundreds.
"""

from __future__ import annotations

import socket
from importlib import resources
from pathlib import Path

from brokerproof.candidates.instances.java import server_command
from brokerproof.candidates.instances.server import Launch, PrivateServer

PROGRAM = "PrivateActiveMQ.java"
OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.net")

CONNECTOR = "stomp://127.0.0.1:{port}?transport.closeAsync=false&transport.tcpNoDelay=true"
"""Nagle's algorithm would add 40 ms to each message; a close is done when it is answered."""

BROKER = {"useJmx": "false", "persistent": "true", "brokerName": "private"}
QUEUES = {"producerFlowControl": "false"}
LATER_QUEUES = {"prioritizedMessages": "true", "gcInactiveDestinations": "true"}
"""What releases from 5.4 on have; left-over queues slow a broker down."""

LATER_BROKER = {"schedulerSupport": "false", "schedulePeriodForDestinationPurge": "5000"}

SMALL = {"maxPageSize": "4", "maxQueueAuditDepth": "1"}
SMALL_BROWSE = {"maxBrowsePageSize": "4"}
"""5.1.0 has no page size of its own for browsers."""

MEMORY_BYTES = 64 << 20


class PrivateActiveMQ(PrivateServer):
    """One ActiveMQ Classic, with its usual store on disk, and STOMP."""

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Say all settings on the command line; there is no configuration file."""
        release = tuple(map(int, self.choice.version.split(".")))
        queues, broker = dict(QUEUES), dict(BROKER)
        if release >= (5, 4):
            queues |= LATER_QUEUES
            broker |= LATER_BROKER
        if self.choice.small:
            queues |= SMALL | (SMALL_BROWSE if release >= (5, 2) else {})
        # 5.1.0 and 5.2.0 bind every address if theirs is that of the host's name, which on many
        # machines is 127.0.0.1; so the name is given another one.
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n127.0.0.2 {socket.gethostname()}\n")
        program = folder / PROGRAM
        text = resources.files(__package__).joinpath(PROGRAM).read_text(encoding="utf-8")
        program.write_text(text, encoding="utf-8")
        return Launch(
            [
                *server_command(self.choice.java, folder, 256, OPENED),
                f"-Djdk.net.hosts.file={hosts}",
                *("-cp", f"{self.choice.files.folder}/*", str(program)),
                # First: what follows makes the store.
                f"broker.dataDirectory={folder / 'data'}",
                *(f"broker.{name}={value}" for name, value in broker.items()),
                *(f"queues.{name}={value}" for name, value in queues.items()),
                f"memory={MEMORY_BYTES}",
                f"connector={CONNECTOR.format(port=ports[0])}",
            ]
        )
