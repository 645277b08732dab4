"""RabbitMQ's paging queue beneath any broker: a backing queue with its disk.

Here: the documented algorithm by which a queue keeps some of its messages in RAM and the rest on
disk, the node that starts and stops such queues, and the invariants between operations. `disk` has
the index, the store and their recovery. Consumers, channels, prefetch, and the process that decides
on deliveries, expiry and confirms are above; callers pass in the time.

Source: the analysis of RabbitMQ 2.8.2's queue mechanism. Where its prose is wrong the code follows
the release, and says so there. A message here is an id of 16 bytes and a body of bytes; the layer
above interprets them.
"""

from brokerproof.reference.rabbitmq.paging.fingerprints import fingerprint_node
from brokerproof.reference.rabbitmq.paging.inspection import view_of
from brokerproof.reference.rabbitmq.paging.node import Node
from brokerproof.reference.rabbitmq.paging.statuses import Fetched
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from brokerproof.reference.rabbitmq.parameters import Parameters
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
    "view_of",
]
