"""Files of Maven Central: fetched once, held to their sums, and whole or not there.

A small program stands for `mvn`: it reads the project that it is given, and writes what it names.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from brokerproof.candidates.instances import maven
from brokerproof.candidates.instances.maven import CONTENTS, Files
from brokerproof.candidates.unavailable import CandidateUnavailable

MVN = f"""#!{sys.executable}
import io, pathlib, tarfile
import xml.etree.ElementTree as tree
project = tree.parse("pom.xml").getroot()
def text(item, name):
    found = item.find("{{*}}" + name)
    return None if found is None else found.text
into = pathlib.Path(project.find(".//{{*}}outputDirectory").text)
for item in project.iter("{{http://maven.apache.org/POM/4.0.0}}artifactItem"):
    name = "-".join(filter(None, (text(item, k) for k in ("artifactId", "version", "classifier"))))
    path = into / f"{{name}}.{{text(item, 'type')}}"
    if path.suffix == ".jar":
        path.write_text(name)
    else:
        with tarfile.open(path, "w") as archive:
            member = tarfile.TarInfo("box/lib/in.jar")
            member.size = 2
            archive.addfile(member, io.BytesIO(b"ok"))
with open({{log!r}}, "a") as log:
    log.write("called\\n")
"""


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


JAR = {"org.example:one:1.0": digest(b"one-1.0")}
TESTS = {"org.example:two:2.0:jar:tests": digest(b"two-2.0-tests")}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file with a line for each call of `mvn`; the cache is empty."""
    log = tmp_path / "log"
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(MVN.replace("{log!r}", repr(str(log))))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return log


def files(monkeypatch: pytest.MonkeyPatch, pins: dict[str, str]) -> Files:
    """Return the files of an instance that is pinned so."""
    monkeypatch.setattr(maven, "pinned", lambda: {"box": {"1": pins}})
    return Files("box", "1")


@pytest.mark.usefixtures("log")
def test_an_instance_without_files_lacks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert files(monkeypatch, {}).absent() is None
    assert files(monkeypatch, JAR).absent() == "it is not installed"


def test_files_are_fetched_once(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    box = files(monkeypatch, JAR | TESTS)
    assert box.install()
    assert box.absent() is None
    assert not box.install()
    assert log.read_text() == "called\n"
    assert sorted(path.name for path in box.folder.iterdir()) == [
        CONTENTS,
        "one-1.0.jar",
        "two-2.0-tests.jar",
    ]
    assert [path.name for path in box.folder.parent.iterdir()] == ["1"]


def test_a_jar_that_is_gone_or_damaged_is_seen_and_fetched_again(
    monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    box = files(monkeypatch, JAR)
    for damage in (Path.unlink, lambda path: path.write_text("longer than it was")):
        box.install()
        damage(box.folder / "one-1.0.jar")
        assert str(box.absent()).endswith("one-1.0.jar is missing or damaged")
    assert box.install()
    assert box.absent() is None
    assert log.read_text() == "called\n" * 3


def test_pins_that_changed_are_fetched_anew(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    files(monkeypatch, JAR).install()
    box = files(monkeypatch, JAR | TESTS)
    assert "another release" in str(box.absent())
    assert box.install()
    assert log.read_text() == "called\n" * 2


@pytest.mark.usefixtures("log")
def test_a_file_that_is_not_as_pinned_is_refused_and_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = files(monkeypatch, JAR | {"org.example:two:2.0": digest(b"other")})
    with pytest.raises(CandidateUnavailable) as caught:
        box.install()
    assert "two-2.0.jar is not the file that is pinned" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [*box.folder.parent.iterdir()] == []


def test_a_folder_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    log.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(log))
    with pytest.raises(CandidateUnavailable, match=r"^box 1: .*; name another folder by"):
        files(monkeypatch, JAR).install()


@pytest.mark.usefixtures("log")
def test_an_archive_is_unpacked_and_each_of_its_files_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = files(monkeypatch, {"org.example:box:1.0:tar.gz:bin": digest(b"")})
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: hashlib.sha256(b""))
    assert box.install()
    assert sorted(path.name for path in box.folder.iterdir()) == ["box", CONTENTS]
    (box.folder / "box" / "lib" / "in.jar").unlink()
    assert str(box.absent()).endswith("box/lib/in.jar is missing or damaged")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (None, "there is no mvn; sudo apt-get install --no-install-recommends maven"),
        ("echo '[INFO] x'; echo '[ERROR] no such artifact'; exit 1", "status 1: .* no such artif"),
        ("echo out of memory >&2; exit 2", "mvn ended with status 2: out of memory"),
        ("exec sleep 20", "mvn was not done within 0 s"),
    ],
)
def test_an_mvn_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, log: Path, program: str | None, told: str
) -> None:
    mvn = log.parent / "bin" / "mvn"
    mvn.unlink()
    if program is not None:
        mvn.write_text(f"#!/bin/sh\nexport PATH=/usr/bin:/bin\n{program}\n")
        mvn.chmod(0o755)
    monkeypatch.setattr(maven, "FETCH_S_MAX", 0.3)
    box = files(monkeypatch, JAR)
    with pytest.raises(CandidateUnavailable, match=told) as caught:
        box.install()
    assert "\n" not in str(caught.value)
    assert [*box.folder.parent.iterdir()] == []
