"""The clients and other packages that are extras: whether one is here, and how to install it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from brokerproof.candidates.unavailable import CandidateUnavailable

_SOURCES: Final = Path(__file__).resolve().parents[1]

CLIENTS: Final[Mapping[str, tuple[str, str]]] = {
    "amqp091": ("amqp", "amqp"),
    "amqp10": ("proton", "amqp10"),
}
"""The module that speaks a protocol, and the extra that has it."""


def installs(extra: str) -> str:
    """Return the command that installs an extra: `make` in a checkout, else `pip`."""
    if (_SOURCES / "Makefile").is_file():
        return f"make -C {_SOURCES} pipeline"
    return f"pip install '.[{extra}]', in the folder of brokerproof's sources"


def not_installed(module: str, extra: str) -> str:
    """Return that a module is missing, and the command that installs it."""
    return f"{module} is not installed; run: {installs(extra)}"


def missing_client(protocol: str, where: str) -> CandidateUnavailable | None:
    """Return why a protocol cannot be spoken with a broker, and what to do; None if it can."""
    module, extra = CLIENTS.get(protocol, ("", ""))
    if not module or importlib.util.find_spec(module) is not None:
        return None
    return CandidateUnavailable(
        where, what=f"the client {module} is not installed", remedy=f"run: {installs(extra)}"
    )
