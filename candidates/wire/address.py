"""Addresses of brokers on the wire: ``PROTOCOL://user:password@host:port/vhost``.

The file owns the form of an address, its defaults and its TLS settings. It opens no connection. The
password is never shown.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias, get_args
from urllib.parse import parse_qsl, unquote, urlsplit

from brokerproof.candidates.unavailable import CandidateUnavailable

WireProtocol: TypeAlias = Literal["amqp091", "stomp", "amqp10"]

PROTOCOLS: tuple[WireProtocol, ...] = get_args(WireProtocol)

PORTS: dict[str, int] = {
    "amqp091": 5672,
    "amqp091s": 5671,
    "stomp": 61613,
    "stomps": 61614,
    "amqp10": 5672,
    "amqp10s": 5671,
}
"""The default port of each scheme; the s at the end means TLS."""

PARAMETERS = ("profile", "ca", "manage")


@dataclass(frozen=True)
class Address:
    """A broker's address, with user and password.

    `profile` names a profile or its file; without it the server's product chooses one. `ca` is a
    file of certificates that TLS trusts instead of the system's. `manage` is the port at which the
    broker speaks AMQP 0-9-1, if queues are declared there and it is not `port`.
    """

    protocol: WireProtocol
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    virtual_host: str
    is_encrypted: bool = False
    profile: str | None = None
    ca: str | None = None
    manage: int | None = None

    @classmethod
    def parse(cls, url: str, protocol: WireProtocol) -> Self:
        """Read an address of `protocol`; all but scheme and host may be left out.

        Raises `CandidateUnavailable`. An empty virtual host is the default one, ``/``.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
            given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
        except ValueError as error:
            raise _bad_address(url, protocol, str(error)) from error
        if parts.scheme not in (protocol, f"{protocol}s") or not parts.hostname:
            raise _bad_address(url, protocol, f"it does not begin with {protocol}:// and a host")
        unknown = [name for name in given if name not in PARAMETERS]
        if unknown or parts.fragment:
            name = unknown[0] if unknown else f"#{parts.fragment}"
            raise _bad_address(url, protocol, f"its parameter {name} is not known")
        manage = given.get("manage")
        if manage is not None and not (manage.isascii() and manage.isdigit()):
            raise _bad_address(url, protocol, "its parameter manage is no port")
        return cls(
            protocol=protocol,
            host=parts.hostname,
            port=PORTS[parts.scheme] if port is None else port,
            user=unquote(parts.username or "guest"),
            password=unquote(parts.password or "guest"),
            virtual_host=unquote(parts.path[1:]) or "/",
            is_encrypted=parts.scheme != protocol,
            profile=given.get("profile"),
            ca=given.get("ca"),
            manage=None if manage is None else int(manage),
        )

    def tls(self) -> ssl.SSLContext | None:
        """Return the settings of TLS, or None for a plain connection.

        Raises `CandidateUnavailable` when the file `ca` cannot be read.
        """
        if not self.is_encrypted:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise CandidateUnavailable(
                str(self),
                what=f"the certificates in {self.ca} cannot be read: {error}",
                remedy="name a PEM file with ?ca=FILE",
            ) from error

    @property
    def host_and_port(self) -> str:
        """Both as one text, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        scheme = f"{self.protocol}s" if self.is_encrypted else self.protocol
        place = self.virtual_host.removeprefix("/")
        return f"{scheme}://{self.user}@{self.host_and_port}/{place}"


def _bad_address(url: str, protocol: str, what: str) -> CandidateUnavailable:
    return CandidateUnavailable(
        url,
        what=what,
        remedy=f"write {protocol}://user:password@host:port/vhost, with ?profile=NAME if needed",
    )
