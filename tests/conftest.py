"""What several rooms' tests share: one private RabbitMQ for the whole run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from brokerproof.candidates.instances.rabbitmq import INSTALL, SERVER, PrivateRabbitMQ

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[PrivateRabbitMQ]:
    """Return a server that runs; where there is none to run, skip, but never on a CI host."""
    if not SERVER.exists() and not os.environ.get("CI"):
        pytest.skip(f"there is no {SERVER}; {INSTALL}")
    with PrivateRabbitMQ() as server:
        yield server
