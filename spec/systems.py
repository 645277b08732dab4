"""The documented systems, by the kind of view that their queues show.

A system's module is imported when its first view arrives, so that a change to one system does not
affect the others.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any, Final, Protocol, cast

SYSTEM_OF: Final = {
    "pointer-queue": "qpid",
    "paging-queue": "rabbitmq",
    "cursor-queue": "activemq",
}
"""The folder of a documented system by the tag of a view."""

CALLED: Final = {
    "qpid": "a queue of pointers",
    "rabbitmq": "a queue that pages",
    "activemq": "a queue with cursors",
}
"""The description of each system's queue for readers."""


class ViewRules(Protocol):
    """Rules on a single view that no model states."""

    IDS: frozenset[str]

    def judged(self, view: Any, *, rests: bool) -> Iterator[tuple[str, str]]:
        """Yield the id of each rule that applies to the view, with a complaint or an empty text."""


@functools.cache
def rules_of(kind: str) -> ViewRules:
    """Return the rules for views with a tag."""
    module = importlib.import_module(f"brokerproof.spec.{SYSTEM_OF[kind]}.view_rules")
    return cast("ViewRules", module)
