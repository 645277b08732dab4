"""The pytest plugin: `pytest --brokerproof mypackage:make_broker` has one test a requirement.

The file owns the options. It imports nothing of ours in a session that does not use them, since
pytest loads it wherever the distribution is installed. The tests are in `pytest_items`.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; the configuration file supplies those that are not set."""
    group = parser.getgroup("brokerproof", "conformance of message queues")
    group.addoption(
        "--brokerproof",
        action="append",
        default=[],
        metavar="CANDIDATE",
        help="hold this candidate against the requirements, one test each; may be repeated",
    )
    for name, kind, about in (
        ("seed", int, "seed of the stateful stage"),
        ("examples", int, "examples of the stateful stage"),
        ("operations", int, "operations at most for each scope of the exhaustive stage"),
        ("interleavings", int, "classes of interleavings at most of each concurrent case"),
        ("budget", float, "cap on the time in seconds; what it cuts short is inconclusive"),
        ("requirements", str, "the set of requirements to judge by"),
        ("known", str, "list of failures that are accepted for a time"),
    ):
        group.addoption(f"--brokerproof-{name}", type=kind, default=None, help=about)
    group.addoption(
        "--brokerproof-accept-inconclusive",
        action="store_true",
        default=None,
        help="skip what is inconclusive instead of failing it",
    )
    group.addoption(
        "--brokerproof-strict",
        action="store_true",
        default=None,
        help="let recommendations (SHOULD) fail too",
    )


# First, so that `-k` and other plugins also select among these tests.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each requirement and candidate."""
    if config.getoption("brokerproof"):
        # The gate is imported only if it is used.
        from brokerproof.checks.commands.pytest_items import collected  # noqa: PLC0415

        items.extend(collected(session, config))
