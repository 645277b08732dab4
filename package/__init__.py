"""A conformance gate for message queues.

This package holds the version and the few names that a user's own code imports. It has no
behaviour; the architecture page names the packages that do.
"""

from brokerproof.version import __version__

__all__ = ["__version__"]
