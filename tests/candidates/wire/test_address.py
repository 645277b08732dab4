"""Addresses of brokers on the wire: their parts, and what is refused."""

from __future__ import annotations

import ssl

import pytest

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire.address import PORTS, PROTOCOLS, Address, WireProtocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_protocol_has_a_plain_and_an_encrypted_scheme(protocol: WireProtocol) -> None:
    plain = Address.parse(f"{protocol}://host", protocol)
    assert plain.port == PORTS[protocol]
    assert plain.tls() is None
    secret = Address.parse(f"{protocol}s://host", protocol)
    assert secret.port == PORTS[f"{protocol}s"]
    context = secret.tls()
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert f"{secret}" == f"{protocol}s://guest@host:{secret.port}/"


def test_the_parameters_name_a_profile_certificates_and_a_port() -> None:
    url = "amqp10://me:secret@host/v?profile=my.toml&ca=%2Fca.pem&manage=5673"
    address = Address.parse(url, "amqp10")
    assert (address.profile, address.ca, address.manage) == ("my.toml", "/ca.pem", 5673)
    assert "secret" not in f"{address} {address!r}"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("stomp://host/", "it does not begin with amqp10:// and a host"),
        ("amqp10://me:secret@host/?heartbeat=1", "its parameter heartbeat is not known"),
        ("amqp10://host/?profile", "bad query field"),
        ("amqp10://host/?manage=x", "manage is no port"),
        ("amqp10://host/#x", "its parameter #x is not known"),
        ("amqp10://host:port/", "Port could not be cast"),
    ],
)
def test_a_bad_address_is_refused_without_its_password(url: str, complaint: str) -> None:
    with pytest.raises(CandidateUnavailable) as caught:
        Address.parse(url, "amqp10")
    line = str(caught.value)
    assert complaint in line
    assert "secret" not in line
    assert "amqp10://user:password@host:port/vhost" in line


def test_certificates_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(CandidateUnavailable, match="cannot be read"):
        Address.parse("stomps://host/?ca=/none.pem", "stomp").tls()
