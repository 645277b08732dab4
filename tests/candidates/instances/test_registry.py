"""The choice of a private broker by its address, and what is told when something is missing."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from brokerproof.candidates.instances import java
from brokerproof.candidates.instances.java import find_java
from brokerproof.candidates.instances.maven import pinned
from brokerproof.candidates.instances.registry import Choice, chosen, instances
from brokerproof.candidates.instances.servers import SERVERS, private_server
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire.profile import by_name

BEFORE_JAVA_17 = 'JAVA_VERSION="11.0.2"\n'
JAVA_17 = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.21.1"\n'


def test_each_instance_has_a_server_and_each_pin_an_instance() -> None:
    assert set(SERVERS) == set(instances())
    for name, versions in pinned().items():
        assert set(versions) == set(instances()[name].releases)
        for pins in versions.values():
            assert all(len(digest) == 64 for digest in pins.values())
    for name, instance in instances().items():
        assert name in pinned() or instance.programs, f"{name} needs nothing"


def test_a_server_that_does_not_name_itself_has_a_profile_in_its_address() -> None:
    for name, instance in instances().items():
        for version, release in instance.releases.items():
            if release.profile:
                assert by_name(release.profile).protocol == instance.protocols[0], (name, version)
    assert private_server("private:activemq-5.1.0").url.endswith("/?profile=activemq-5.1-stomp")
    assert private_server("private:activemq").url.endswith("/")


@pytest.mark.parametrize(
    ("address", "choice"),
    [
        ("private:broker-j", Choice("broker-j", "9.2.1", "amqp091")),
        ("broker-j?version=6.1.7", Choice("broker-j", "6.1.7", "amqp091")),
        (
            "private:broker-j?protocol=amqp10&version=10.1.0",
            Choice("broker-j", "10.1.0", "amqp10"),
        ),
        ("private:rabbitmq?protocol=stomp", Choice("rabbitmq", "packaged", "stomp")),
        ("private:activemq-5.1.0", Choice("activemq-5.1.0", "5.1.0", "stomp")),
        (
            "private:activemq-5.1.0?sizes=small",
            Choice("activemq-5.1.0", "5.1.0", "stomp", small=True),
        ),
    ],
)
def test_an_address_chooses(address: str, choice: Choice) -> None:
    assert chosen(address) == choice
    assert private_server(address).url.startswith(f"{choice.protocol}://guest:guest@127.0.0.1:")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("private:brokerj", r"no such private broker \(did you mean 'broker-j'\?\); name rabbitmq"),
        ("private:", "there is no such private broker; name"),
        ("private:artemis?protocol=amqp091", "no protocol 'amqp091'; name amqp10 or stomp"),
        ("private:artemis?version=1.0", "there is no version '1.0'; name 2.40.0"),
        ("private:artemis?sizes=small", "no parameter 'sizes'; leave it, or name protocol or vers"),
        ("private:activemq?sizes=tiny", "there is no sizes 'tiny'; name usual or small"),
        ("private:artemis?protocol", "there is no protocol ''"),
    ],
)
def test_an_address_of_nothing_says_what_there_is(address: str, told: str) -> None:
    with pytest.raises(CandidateUnavailable, match=told) as caught:
        chosen(address)
    assert str(caught.value).startswith(address)


def made(home: Path, release: str, *programs: str) -> Path:
    """Make a folder that looks like an installed Java."""
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(release)
    for name in programs:
        (home / "bin" / name).touch(0o755)
    return home


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, the only one in which Java is looked for."""
    monkeypatch.setattr(java, "HOMES", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def test_the_first_java_that_is_new_enough_is_found(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(homes / "a-11", BEFORE_JAVA_17, "java", "javac")
    jre = made(homes / "b-17", JAVA_17, "java")
    jdk = made(homes / "c-17", JAVA_17, "java", "javac")
    assert find_java(17) == jre / "bin" / "java"
    assert find_java(17, compiler=True) == jdk / "bin" / "java"
    assert find_java(18) is None
    assert find_java(11, 16) == homes / "a-11" / "bin" / "java"
    assert find_java(12, 16) is None
    monkeypatch.setenv("JAVA_HOME", str(jdk))
    assert find_java(17) == jdk / "bin" / "java"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broker-j", "Broker-J 9.2.1: there is no Java 17 to 22; .* openjdk-17-jre-headless"),
        ("activemq", r"there is no Java 17 or later with a compiler \(a JDK\); .*-17-jdk-headless"),
        ("garagemq", "there is no garagemq; install it with: sudo apt-get install .* garagemq"),
    ],
)
@pytest.mark.usefixtures("homes")
def test_without_a_program_or_java_the_command_is_told(name: str, told: str) -> None:
    with pytest.raises(CandidateUnavailable, match=told):
        private_server(f"private:{name}").start()


def test_without_files_the_command_is_told(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(homes / "cache"))
    made(homes / "b-17", JAVA_17, "java")
    made(homes / "c-25", JAVA_17.replace("17", "25"), "java")
    with pytest.raises(
        CandidateUnavailable,
        match=r"9\.2\.1: it is not installed; run: brokerproof instances install broker-j$",
    ):
        private_server("private:broker-j").start()
    with pytest.raises(CandidateUnavailable, match=r"install 'broker-j\?version=10\.1\.0'$"):
        private_server("private:broker-j?version=10.1.0").start()


def test_what_pip_installs_goes_to_the_python_that_looks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_args, **_named: None)
    missing = chosen("coilmq").missing()
    assert missing is not None
    assert missing.remedy == f"install it with: {sys.executable} -m pip install coilmq==1.1.0"
