"""The private server that an address names: each instance's name and the class that starts it."""

from __future__ import annotations

from brokerproof.candidates.instances.activemq import PrivateActiveMQ
from brokerproof.candidates.instances.artemis import PrivateArtemis
from brokerproof.candidates.instances.broker_j import PrivateBrokerJ
from brokerproof.candidates.instances.coilmq import PrivateCoilMQ
from brokerproof.candidates.instances.garagemq import PrivateGarageMQ
from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
from brokerproof.candidates.instances.registry import chosen
from brokerproof.candidates.instances.server import PrivateServer

SERVERS: dict[str, type[PrivateServer]] = {
    "rabbitmq": PrivateRabbitMQ,
    "broker-j": PrivateBrokerJ,
    "activemq": PrivateActiveMQ,
    "activemq-5.17": PrivateActiveMQ,
    "activemq-5.3.0": PrivateActiveMQ,
    "activemq-5.2.0": PrivateActiveMQ,
    "activemq-5.1.0": PrivateActiveMQ,
    "artemis": PrivateArtemis,
    "garagemq": PrivateGarageMQ,
    "coilmq": PrivateCoilMQ,
}


def private_server(address: str) -> PrivateServer:
    """Return the server that ``private:NAME?...`` names, not started.

    Raises `CandidateUnavailable` if there is no such instance, version, protocol or parameter.

    >>> private_server("private:artemis").choice.version
    '2.40.0'
    """
    choice = chosen(address)
    return SERVERS[choice.name](choice)
