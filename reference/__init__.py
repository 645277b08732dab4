"""The reference broker: the documented algorithms as code that runs.

Here: the algorithms of the documented systems, each in its document's own terms and traceable to it
paragraph by paragraph, behind one broker that implements the candidate interface. Elsewhere: the
requirements (`spec`), the proofs (`models`), every check (`checks`), and planted faults, which the
tests lay over these files. Imports `brokerproof.spec` alone.
"""

from brokerproof.reference.addresses import DOCUMENTED_SYSTEMS, make
from brokerproof.reference.broker import Broker

__all__ = ["DOCUMENTED_SYSTEMS", "Broker", "make"]
