"""The documented systems by the kind of view that their queues show.

A system's module is imported when such a view is met, so that a change in one system concerns no
other.
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
"""What a queue of each system is called."""


class ViewRules(Protocol):
    """What holds of a view by itself, of which no model has the words."""

    IDS: frozenset[str]

    def judged(self, view: Any, *, rests: bool) -> Iterator[tuple[str, str]]:
        """Yield each rule that says something of a view, with what is wrong, if anything is."""


@functools.cache
def rules_of(kind: str) -> ViewRules:
    """Return the rules for views with a tag."""
    module = importlib.import_module(f"brokerproof.spec.{SYSTEM_OF[kind]}.view_rules")
    return cast("ViewRules", module)
