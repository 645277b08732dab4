"""A conformance gate for message queues.

What belongs here: the version and the few names that a user's own code imports; everything else
lives in the rooms named on the architecture page. No behaviour.
"""

from brokerproof.version import __version__

__all__ = ["__version__"]
