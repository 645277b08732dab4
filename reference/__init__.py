"""The reference broker: how the documents say it is done, as code that runs.

What belongs here: the algorithms of the documented systems, each in its document's own terms and
traceable to it paragraph by paragraph, behind one broker that implements the candidate interface.
What does not: what a broker must do (that is `spec`), why the algorithms keep it (that is
`models`), anything that judges, and switches for faults (those are laid over these files by the
tests). Imports `brokerproof.spec` alone.
"""

from brokerproof.reference.broker import Broker
from brokerproof.reference.front.addresses import DOCUMENTED_SYSTEMS, make

__all__ = ["DOCUMENTED_SYSTEMS", "Broker", "make"]
