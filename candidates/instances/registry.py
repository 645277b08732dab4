"""The private instances there are, the choice of one by its address, and what it lacks here.

The file owns the form ``private:NAME?protocol=..&version=..&sizes=small``. The instances are data
(`registry.toml`); how each is started is not known here.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec

from brokerproof.candidates.extras import missing_client
from brokerproof.candidates.instances.java import find_java
from brokerproof.candidates.instances.maven import Files
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.nearest import meant

PRIVATE = "private:"


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release: the seconds to its first answer, as measured, and the Java that it needs.

    `profile` is that of a server that does not name itself.

    `java` is the least version, 0 if it needs none; `java_most` the last that runs it, if known.
    """

    start_s: float
    java: int = 0
    java_most: int | None = None
    profile: str = ""


class Instance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One private instance: its protocols and releases, the default first, and what it needs.

    `programs` are of packages that `install` installs. `compiler` asks for a JDK. `durable` is
    whether messages outlive a kill. `sizes` is whether small limits can be asked for.
    """

    product: str
    protocols: tuple[str, ...]
    releases: dict[str, Release]
    programs: tuple[str, ...] = ()
    install: str = ""
    compiler: bool = False
    durable: bool = False
    sizes: bool = False


@functools.cache
def instances() -> dict[str, Instance]:
    """Return all private instances by name."""
    text = resources.files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=dict[str, Instance])


@dataclass(frozen=True)
class Choice:
    """One release of a private instance, by one protocol; `small` limits if asked for."""

    name: str
    version: str
    protocol: str
    small: bool = False

    @property
    def instance(self) -> Instance:
        """The instance that was chosen."""
        return instances()[self.name]

    @property
    def release(self) -> Release:
        """The release of it that was chosen."""
        return self.instance.releases[self.version]

    @property
    def title(self) -> str:
        """The product and the release, for messages: "a private RabbitMQ"."""
        version = "" if self.version == "packaged" else f" {self.version}"
        return f"a private {self.instance.product}{version}"

    @property
    def java(self) -> Path | None:
        """A Java that runs the release; None if it needs none, or there is none."""
        release = self.release
        if not release.java:
            return None
        return find_java(release.java, release.java_most, compiler=self.instance.compiler)

    @property
    def files(self) -> Files:
        """The files of Maven Central that the release is made of; there may be none."""
        return Files(self.name, self.version)

    def missing(self) -> CandidateUnavailable | None:
        """Return what this machine lacks, and the command that installs it; None if nothing."""
        for name in self.instance.programs:
            if program(name) is None:
                # Another Python's pip would install it where it is not looked for.
                install = self.instance.install.replace("pip ", f"{sys.executable} -m pip ")
                remedy = f"install it with: {install}"
                return CandidateUnavailable(self.title, what=f"there is no {name}", remedy=remedy)
        least, most = self.release.java, self.release.java_most
        if least and self.java is None:
            compiler = self.instance.compiler
            kind = "jdk" if compiler else "jre"
            return CandidateUnavailable(
                self.title,
                what=f"there is no Java {least} {f'to {most}' if most else 'or later'}"
                + " with a compiler (a JDK)" * compiler,
                remedy="install one and name it by JAVA_HOME, or: sudo apt-get install "
                f"--no-install-recommends openjdk-{least}-{kind}-headless",
            )
        absent = self.files.absent()
        if absent is None:
            return missing_client(self.protocol, self.title)
        default = self.version == next(iter(self.instance.releases))
        name = self.name if default else f"'{self.name}?version={self.version}'"
        return CandidateUnavailable(
            self.title, what=absent, remedy=f"run: brokerproof instances install {name}"
        )


def chosen(address: str) -> Choice:
    """Return the choice that an address names, with or without ``private:``.

    Raises `CandidateUnavailable` with the names that there are.

    >>> chosen("private:broker-j?protocol=amqp10")
    Choice(name='broker-j', version='9.2.1', protocol='amqp10', small=False)
    """
    name, _, query = address.removeprefix(PRIVATE).partition("?")
    instance = instances().get(name)
    if instance is None:
        what = f"there is no such private broker{meant(name, instances())}"
        raise CandidateUnavailable(address, what=what, remedy=f"name {_listed(instances())}")
    given = dict(parse_qsl(query, keep_blank_values=True))
    allowed = {"protocol": [*instance.protocols], "version": [*instance.releases]}
    if instance.sizes:
        allowed["sizes"] = ["usual", "small"]
    for key, value in given.items():
        if key not in allowed:
            what, remedy = f"there is no parameter {key!r}", f"leave it, or name {_listed(allowed)}"
        elif value not in allowed[key]:
            what, remedy = f"there is no {key} {value!r}", f"name {_listed(allowed[key])}"
        else:
            continue
        raise CandidateUnavailable(address, what=what, remedy=remedy)
    picked = {key: given.get(key, values[0]) for key, values in allowed.items()}
    return Choice(name, picked["version"], picked["protocol"], picked.get("sizes") == "small")


def _listed(names: object) -> str:
    *most, last = map(str, names)  # type: ignore[call-overload]
    return f"{', '.join(most)} or {last}" if most else last


def program(name: str) -> Path | None:
    """Return a program by its path or name, also one that pip put beside this Python."""
    beside = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    found = shutil.which(name, path=beside)
    return None if found is None else Path(found)
