"""Profiles: what a broker claims on one protocol, and how its adapter must speak to it, as data.

The file owns the form of a profile, and finds the one for a broker: by its name, as a file, or by
the product and version that the server tells. It does not know what a dialect's settings mean; each
adapter reads those with a struct of its own. A claim that departs from the strict value is lawful
only with its source, so a profile without that source is refused.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import structs

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire import profiles
from brokerproof.candidates.wire.address import PROTOCOLS, WireProtocol
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.differences import claimed_differences

if TYPE_CHECKING:
    from brokerproof.candidates.wire.address import Address

Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]

Dialect = TypeVar("Dialect")


PAGE = "docs/guide/profiles.md"


class RoundTrips(msgspec.Struct, frozen=True, tag_field="kind", tag="round_trips"):
    """All that a broker was about to deliver comes before the answers to some requests.

    A sweep makes `times` requests, named by the protocol's adapter, on each connection with a
    consumer. With `chains`, a hand-over may cause the next one, and there is a sweep more for each
    consumer.
    """

    request: str
    times: Count = 1
    chains: bool = False


class Silence(msgspec.Struct, frozen=True, tag_field="kind", tag="silence"):
    """Nothing more comes once nothing has come for some time, which is measured at the start.

    The time is that of the slowest of some hundred deliveries, times `factor`, and at least
    `floor_s`. A drain ends with a `request` on each connection, which brings in what the broker
    sent without owing it; over STOMP, a subscription ends with one too, since a broker may answer
    it before it serves the consumer. An empty text is none.
    """

    request: str = ""
    floor_s: Seconds = 0.05
    factor: Annotated[float, msgspec.Meta(ge=1)] = 4.0


Barrier: TypeAlias = RoundTrips | Silence


class OnDisk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an answered operation survives a kill; it is known for `versions` (their beginnings).

    A durable queue is on disk `declared_s` seconds after its declare, a settlement `settled_s`
    seconds after its answer.
    """

    versions: tuple[str, ...]
    declared_s: Seconds
    settled_s: Seconds


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a broker on one protocol.

    `product` is the server's own name, and `versions` are the beginnings of the versions that the
    profile is for; empty means all. A profile without a product is used only by name. `sources`
    gives document and section of each lawful departure, by the claim's name.
    """

    name: str
    protocol: WireProtocol
    product: str = ""
    versions: tuple[str, ...] = ()
    claims: Capabilities
    dialect: dict[str, object] = {}
    barrier: Barrier
    on_disk: OnDisk | None = None
    sources: dict[str, str] = {}

    def is_for(self, product: str, version: str) -> bool:
        """Return whether a server of this name and version chooses the profile by itself."""
        return self.product == product and version.startswith(self.versions or ("",))

    def capabilities(self, *, durable: bool) -> Capabilities:
        """Return the claims; `durable` says that the broker can be crashed."""
        return structs.replace(self.claims, durable=durable)

    def no_durability(self, version: str) -> str:
        """Return why `durable` cannot be claimed for a version, or an empty text."""
        if self.on_disk is not None and version.startswith(self.on_disk.versions):
            return ""
        return f"when {self.product or self.name} {version} has a settlement on disk is not known"

    def check_request(self, known: tuple[str, ...]) -> None:
        """Raise `CandidateUnavailable` if the barrier makes a request that the protocol has not."""
        if self.barrier.request not in ("", *known):
            raise CandidateUnavailable(
                f"profile {self.name}",
                what=f"there is no request {self.barrier.request}",
                remedy=f"name one of: {', '.join(known)}",
            )

    def read_dialect(self, form: type[Dialect]) -> Dialect:
        """Return the settings of the protocol's adapter; raises `CandidateUnavailable`."""
        try:
            return msgspec.convert(self.dialect, form)
        except msgspec.ValidationError as error:
            raise _bad(self.name, f"in dialect: {error}") from error


def profile_for(address: Address, product: str, version: str) -> Profile:
    """Return the profile that the address names, or that of the server's product and version.

    Raises `CandidateUnavailable` when there is none, or when it is for another protocol.
    """
    named = address.profile
    if named is not None:
        profile = from_file(Path(named)) if named.endswith(".toml") else by_name(named)
        if profile.protocol != address.protocol:
            raise _bad(profile.name, f"it is for {profile.protocol}, not {address.protocol}")
        return profile
    for profile in shipped().values():
        if profile.protocol == address.protocol and profile.is_for(product, version):
            return profile
    raise CandidateUnavailable(
        str(address),
        what=f"there is no profile for {product} {version}",
        remedy=f"try ?profile=generic-{address.protocol}, and write a profile of your own "
        f"from it ({'docs/guide/stomp.md' if address.protocol == 'stomp' else PAGE})",
    )


def by_name(name: str) -> Profile:
    """Return a profile that is shipped; raises `CandidateUnavailable` with the names of all."""
    known = shipped()
    if name not in known:
        raise CandidateUnavailable(
            f"profile {name}",
            what="there is none of this name",
            remedy=f"name a file.toml, or one of: {', '.join(sorted(known))}",
        )
    return known[name]


def from_file(path: Path) -> Profile:
    """Return the profile in a user's file; raises `CandidateUnavailable` with what is wrong."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CandidateUnavailable(
            f"profile {path}", what=f"it cannot be read: {error}", remedy="check the path"
        ) from error
    return read(text, str(path))


@functools.cache
def shipped() -> dict[str, Profile]:
    """Return the profiles of this distribution by name."""
    folders = [path for path in resources.files(profiles).iterdir() if path.name in PROTOCOLS]
    files = {path.name.removesuffix(".toml"): path for each in folders for path in each.iterdir()}
    return {name: read(files[name].read_text("utf-8"), name) for name in sorted(files)}


def read(text: str, where: str) -> Profile:
    """Return the profile in a text; raises `CandidateUnavailable` naming `where` and the fault."""
    try:
        raw = tomllib.loads(text)
        profile = msgspec.convert(raw, Profile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _bad(where, str(error)) from error
    if unknown := sorted(set(raw["claims"]) - set(Capabilities.__struct_fields__)):
        raise _bad(where, f"there is no claim {unknown[0]}")
    if profile.claims.durable:
        raise _bad(where, "durable is claimed by [on_disk], not in [claims]")
    if missing := sorted(
        {each.claim for each in claimed_differences(profile.claims)} - {*profile.sources}
    ):
        raise _bad(where, f"[sources] lacks document and section of the departure {missing[0]}")
    return profile


def _bad(where: str, what: str) -> CandidateUnavailable:
    return CandidateUnavailable(f"profile {where}", what=what, remedy=f"write it as {PAGE} says")
