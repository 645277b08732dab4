"""A RabbitMQ of our own: its processes are ours, and each of its protocols answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from brokerproof.candidates.instances.rabbitmq import PLUGINS, PrivateRabbitMQ
from brokerproof.candidates.instances.registry import chosen

pytestmark = pytest.mark.rabbitmq


def command_line_of(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def test_the_server_and_its_port_mapper_are_ours_and_not_root(rabbitmq: PrivateRabbitMQ) -> None:
    lines = {process_id: command_line_of(process_id) for process_id in rabbitmq.process_ids}
    # Beside the server there may be a tool of its own that has not ended yet.
    assert any("beam.smp" in line for line in lines.values())
    assert sum(line.startswith(("epmd", "/usr/bin/epmd")) for line in lines.values()) == 1
    for process_id in lines:
        assert Path(f"/proc/{process_id}").stat().st_uid != 0


@pytest.mark.usefixtures("rabbitmq")
def test_each_protocol_has_its_plugin() -> None:
    assert set(PLUGINS) == set(chosen("rabbitmq").instance.protocols)
