"""A Qpid Broker-J of our own, the documents' broker, from its own archive and without Java of ours.

Its queues are in memory: what a kill leaves is nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

from brokerproof.candidates.instances.java import server_command
from brokerproof.candidates.instances.server import Launch, PrivateServer

MODEL_VERSIONS = {"6.1.7": "6.1"}
"""The version of the configuration's form; later releases all take 9.1."""

OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")
"""Packages of Java's own that 6.1.7 looks into."""

READY = "BRK-1004"
"""The log's word for a broker that is up. The port is open before the virtual host is active."""


class PrivateBrokerJ(PrivateServer):
    """One Broker-J, whose one port speaks AMQP 0-9-1 and AMQP 1.0."""

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Write the initial configuration."""
        version, files = self.choice.version, self.choice.files.folder
        home = files / "qpid-broker" / version
        configuration = folder / "broker.json"
        configuration.write_text(json.dumps(_configuration(version)), encoding="utf-8")
        return Launch(
            [
                *server_command(self.choice.java, folder, 512, OPENED),
                f"-DQPID_HOME={home}",
                f"-DQPID_WORK={folder}",
                *("-cp", f"{home}/lib/*", "org.apache.qpid.server.Main"),
                *("-st", "Memory", "-icp", str(configuration)),
                *("-prop", f"qpid.amqp_port={ports[0]}"),
            ],
            ready=READY,
        )


def _configuration(version: str) -> dict[str, object]:
    return {
        "name": "private",
        "modelVersion": MODEL_VERSIONS.get(version, "9.1"),
        "authenticationproviders": [
            {
                "name": "users",
                "type": "Plain",
                # Else PLAIN is not offered without TLS.
                "secureOnlyMechanisms": [],
                "users": [{"name": "guest", "type": "managed", "password": "guest"}],
            }
        ],
        "ports": [
            {
                "name": "AMQP",
                "port": "${qpid.amqp_port}",
                "bindingAddress": "127.0.0.1",
                "authenticationProvider": "users",
                # By its name, by none, or by the host, which AMQP 1.0 clients name by default.
                "virtualhostaliases": [
                    {"name": each, "type": each}
                    for each in ("nameAlias", "defaultAlias", "hostnameAlias")
                ],
            }
        ],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": "Memory",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps({"type": "Memory"}),
            }
        ],
    }
