"""Profiles: those that are shipped are well formed, and a faulty one is refused in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.profile import (
    RoundTrips,
    by_name,
    profile_for,
    read,
    shipped,
)
from brokerproof.spec.protocol.differences import claimed_differences

if TYPE_CHECKING:
    from pathlib import Path

    from brokerproof.candidates.wire.address import WireProtocol

SOUND = """
name = "mine"
protocol = "amqp091"
[claims]
modes = ["acknowledge"]
purge = true
purge_takes = "everything"
[barrier]
kind = "silence"
[sources]
purge_takes = "the manual, Purging"
[dialect]
levels = "x"
"""


class Levels(msgspec.Struct, forbid_unknown_fields=True):
    """A dialect of one setting."""

    levels: str


def refusal(text: str) -> str:
    """Return why a profile is refused, having checked that it is one line."""
    with pytest.raises(CandidateUnavailable) as caught:
        read(text, "mine.toml").read_dialect(Levels)
    line = str(caught.value)
    assert "\n" not in line
    assert "docs/guide/profiles.md" in line
    return line


def test_a_sound_profile_is_read() -> None:
    profile = read(SOUND, "mine.toml")
    assert profile.read_dialect(Levels).levels == "x"
    assert [each.claim for each in claimed_differences(profile.claims)] == ["purge_takes"]
    assert profile.capabilities(durable=True).durable


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("[claims]", "[claims", "Expected ']'"),
        ('"amqp091"', '"mqtt"', "Invalid enum value 'mqtt'"),
        ("purge = true", "purges = true", "there is no claim purges"),
        ("purge = true", "durable = true", "[on_disk]"),
        ('"everything"', '"some"', "Invalid enum value 'some'"),
        ('purge_takes = "the', 'purge = "the', "[sources] lacks document and section"),
        ('"silence"', '"hope"', "Invalid value 'hope'"),
        ('levels = "x"', "levels = 3", "in dialect: Expected `str`"),
        ('levels = "x"', 'level = "x"', "in dialect: Object contains unknown"),
        ('name = "mine"', 'nome = "mine"', "unknown field `nome`"),
    ],
)
def test_a_faulty_profile_is_refused(before: str, after: str, complaint: str) -> None:
    assert before in SOUND
    assert complaint in refusal(SOUND.replace(before, after))


def test_the_shipped_profiles_are_sound_and_named_after_their_files() -> None:
    assert "rabbitmq-amqp091" in shipped()
    for name, profile in shipped().items():
        assert profile.name == name
        assert name.endswith(f"-{profile.protocol}")


def address(suffix: str = "") -> Address:
    """Return an address with parameters."""
    return Address.parse(f"amqp091://host/{suffix}", "amqp091")


def test_the_product_chooses_the_profile_unless_the_address_does(tmp_path: Path) -> None:
    assert profile_for(address(), "RabbitMQ", "3.10.8") is by_name("rabbitmq-amqp091")
    file = tmp_path / "mine.toml"
    file.write_text(SOUND, "utf-8")
    assert profile_for(address(f"?profile={file}"), "RabbitMQ", "3.10.8").name == "mine"
    named = address("?profile=rabbitmq-amqp091")
    assert isinstance(profile_for(named, "Other", "1").barrier, RoundTrips)


@pytest.mark.parametrize(
    ("product", "version", "profile"),
    [
        ("qpid", "6.1.7", "broker-j-6.1"),
        ("Apache Qpid Broker-J Core", "9.2.1", "broker-j"),
        ("Apache Qpid Broker-J Core", "10.1.0", "broker-j"),
    ],
)
@pytest.mark.parametrize("protocol", ["amqp091", "amqp10"])
def test_each_private_broker_j_has_a_profile_by_both_protocols(
    product: str, version: str, profile: str, protocol: WireProtocol
) -> None:
    address = Address.parse(f"{protocol}://host/", protocol)
    assert profile_for(address, product, version) is by_name(f"{profile}-{protocol}")
    with pytest.raises(CandidateUnavailable, match="there is no profile for"):
        profile_for(address, product, "6.0.1")


@pytest.mark.parametrize(
    ("suffix", "complaint"),
    [
        ("", "there is no profile for Other 1; try ?profile=generic-amqp091"),
        ("?profile=missing", "name a file.toml, or one of: "),
        ("?profile=missing.toml", "cannot be read"),
        ("?profile=stomp.toml", "it is for stomp, not amqp091"),
    ],
)
def test_where_no_profile_fits_one_line_says_what_to_do(
    suffix: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stomp.toml").write_text(SOUND.replace("amqp091", "stomp"), "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CandidateUnavailable) as caught:
        profile_for(address(suffix), "Other", "1")
    assert complaint in str(caught.value)


def test_a_version_of_another_beginning_has_another_profile() -> None:
    profile = msgspec.structs.replace(by_name("rabbitmq-amqp091"), versions=("3.", "4."))
    assert profile.is_for("RabbitMQ", "3.10.8")
    assert not profile.is_for("RabbitMQ", "5.0")
    assert not profile.is_for("Rabbit", "3.10.8")
    assert profile.no_durability("3.10.8") == ""
    assert "is not known" in profile.no_durability("4.0")
