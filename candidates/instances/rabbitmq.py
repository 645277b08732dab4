"""A RabbitMQ of our own, with its plugins for STOMP and AMQP 1.0 where they are asked for.

The file owns how RabbitMQ is started, with the port mapper (epmd) that it needs. Debian's
`/usr/sbin/rabbitmq-server` serves only root and the user rabbitmq, so the script behind it is run.
As root we drop root for the children: a server under test does not need it.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from brokerproof.candidates.instances.processes import ordinary_user
from brokerproof.candidates.instances.registry import Choice, chosen
from brokerproof.candidates.instances.server import Launch, PrivateServer

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")

PLUGINS = {"amqp091": "[]", "stomp": "[rabbitmq_stomp]", "amqp10": "[rabbitmq_amqp1_0]"}


class PrivateRabbitMQ(PrivateServer):
    """One RabbitMQ; AMQP 0-9-1 and AMQP 1.0 share a port, STOMP has its own.

    >>> with PrivateRabbitMQ() as server:  # doctest: +SKIP
    ...     print(server.url)
    amqp091://guest:guest@127.0.0.1:23017/
    """

    start_deadline_s = 120.0

    def __init__(self, choice: Choice | None = None) -> None:
        super().__init__(choice or chosen("rabbitmq"))

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Write cookie, list of plugins and configuration."""
        first, second, distribution, mapper = ports
        protocol = self.choice.protocol
        amqp, stomp = (second, first) if protocol == "stomp" else (first, second)
        cookie = folder / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(20))
        cookie.chmod(0o400)
        (folder / "plugins").write_text(f"{PLUGINS[protocol]}.\n")
        (folder / "rabbit.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{amqp}\n"
            "collect_statistics = none\n"
            "disk_free_limit.absolute = 1MB\n"
            + (f"stomp.listeners.tcp.1 = 127.0.0.1:{stomp}\n" if protocol == "stomp" else "")
        )
        return Launch(
            [str(SERVER)],
            _environment(folder, amqp, distribution, mapper),
            ([shutil.which("epmd") or "epmd", "-address", "127.0.0.1", "-port", str(mapper)],),
            ordinary_user(self.name, "rabbitmq"),
        )


def _environment(folder: Path, port: int, distribution: int, epmd: int) -> dict[str, str]:
    return {
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd),
        "RABBITMQ_NODENAME": f"brokerproof{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        # Makes the script become the virtual machine, so that our child is the server itself;
        # -noinput must then be given by hand. Idle schedulers do not spin, which helps small
        # machines.
        "RABBITMQ_ALLOW_INPUT": "1",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "-noinput +S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}"
        ),
    }
