"""RabbitMQ's paging queue beneath any broker: a backing queue, its index, its store, its disk.

What belongs here: the documented algorithm by which a queue keeps some of its messages in RAM and
the rest on disk, and what it needs to find them again: the segmented index with its journal, the
message store, the two disks (real files, and a simulated disk that can lose its power), recovery,
and the invariants that hold between operations. What does not: consumers, channels, prefetch and
the queue process that decides when something is delivered, expires or is confirmed to a client;
and clocks, since time is handed in.

The source is the analysis of RabbitMQ 2.8.2's queue mechanism; where its prose is wrong the code
follows the release, and the place says so. A message here is an id of 16 bytes and a body of bytes:
what they mean is the business of the layer above.
"""

from brokerproof.reference.rabbitmq.paging.inspection import view_of
from brokerproof.reference.rabbitmq.paging.node import Node
from brokerproof.reference.rabbitmq.paging.parameters import Parameters
from brokerproof.reference.rabbitmq.paging.snapshots import fingerprint_node, fork_node
from brokerproof.reference.rabbitmq.paging.statuses import Fetched
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from brokerproof.reference.shared.disk import Disk, PowerLost, RealDirectory, SimulatedDisk

__all__ = [
    "Disk",
    "Fetched",
    "Node",
    "Parameters",
    "PowerLost",
    "RealDirectory",
    "SimulatedDisk",
    "VariableQueue",
    "fingerprint_node",
    "fork_node",
    "view_of",
]
