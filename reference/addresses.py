"""The address of a reference broker: a system, then parameters.

Owns the form `SYSTEM[?NAME=VALUE[&NAME=VALUE]...]`; `settings` owns the values.
"""

from __future__ import annotations

from brokerproof.reference.broker import Broker
from brokerproof.reference.durable_broker import BrokerOnFiles, PoweredBroker
from brokerproof.reference.settings import DURABLE, PARAMETERS, settings_from
from brokerproof.spec.nearest import meant

DOCUMENTED_SYSTEMS = (
    "qpid-push",
    "qpid-pull",
    "rabbitmq-paging?segment=2&batch=2&journal=4&file=200&target=1",
    "activemq-cursor?memory=2200&page=2&depth=1&word=2",
)
"""The brokers checked when no address is given: the documents' systems without known faults. Sizes
are small, so that small scopes exceed them."""


def _known_to(system: str, name: str) -> str:
    """Return the end of an error sentence, the parameters of a system; empty for an unknown one."""
    known = [each for each, parameter in PARAMETERS.items() if system in parameter.systems]
    return f"{meant(name, known)}; {system} has {', '.join(known)}" if known else ""


def make(address: str) -> Broker:
    """Return the broker that `address` describes; a one-line ValueError says what is wrong.

    >>> make("qpid-push?pointer=inclusive&runner=drain").hello().name
    'reference:qpid-push?pointer=inclusive&runner=drain'
    """
    system, _, query = address.partition("?")
    parameters = {"system": system}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if name not in PARAMETERS:
            raise ValueError(f"unknown parameter {name!r} in {address!r}{_known_to(system, name)}")
        if not equals:
            raise ValueError(f"parameter {name!r} in {address!r} needs a value: {name}=...")
        if name in parameters:
            raise ValueError(f"parameter {name!r} is given twice in {address!r}")
        parameters[name] = value
    settings = settings_from(parameters)
    if settings.system not in DURABLE:
        return Broker(settings)
    return BrokerOnFiles(settings) if settings.disk == "files" else PoweredBroker(settings)
