"""Stop a thread of a private Broker-J at a chosen instruction, and let it go on.

The file owns the broker that listens for a debugger, the search for the instruction in the
bytecode of the release that runs, and the conversation with `Stopper.java`. A method or an access
that a release does not have raises an error.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from brokerproof.candidates.instances.broker_j import PrivateBrokerJ
from brokerproof.candidates.instances.java import find_java
from brokerproof.candidates.instances.server import Launch

PACKAGE = "org.apache.qpid.server.queue"
STOP_S_MAX = 20
END_S_MAX = 20.0


class DebuggedBrokerJ(PrivateBrokerJ):
    """A private Broker-J that a debugger can reach on loopback, at `debugger_port`."""

    debugger_port = 0

    def furnish(self, folder: Path, ports: list[int]) -> Launch:
        """Add the debugger's port to the command line."""
        launch = super().furnish(folder, ports)
        self.debugger_port = ports[1]
        java, *rest = launch.command
        agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n"
        listens = f"{agent},address=127.0.0.1:{self.debugger_port}"
        return replace(launch, command=[java, listens, *rest])

    @property
    def core(self) -> Path:
        """The jar that holds the queues of the release."""
        version = self.choice.version
        name = f"qpid-broker-core-{version}.jar"
        return self.choice.files.folder / "qpid-broker" / version / "lib" / name


@dataclass(frozen=True)
class Place:
    """The first instruction of a method that names `access`; the very first if that is empty."""

    type_name: str
    method: str
    access: str = ""

    def found_in(self, jar: Path, javap: Path) -> str:
        """Return class, method, descriptor and index; raises `LookupError` if any is missing."""
        name = f"{PACKAGE}.{self.type_name}"
        done = subprocess.run(
            [javap, "-c", "-p", "-s", "-classpath", jar, name],
            capture_output=True,
            text=True,
            check=True,
        )
        head = re.compile(rf"^  \S.* {self.method}\(", re.MULTILINE)
        methods = [each for each in done.stdout.split("\n\n") if head.search(each)]
        if len(methods) != 1:
            raise LookupError(f"{jar.name}: {len(methods)} methods {name}.{self.method}")
        descriptor = re.search(r"descriptor: (\S+)", methods[0])
        code = re.findall(r"^ +(\d+): (\S.*)$", methods[0], re.MULTILINE)
        indices = [index for index, text in code if self.access in text]
        if descriptor is None or not indices:
            raise LookupError(f"{jar.name}: {name}.{self.method} has no {self.access}")
        return f"{name} {self.method} {descriptor[1]} {indices[0]}"


class Stopper:
    """A debugger that stops one thread at a time; a context manager."""

    def __init__(self, server: DebuggedBrokerJ) -> None:
        java = find_java(17, compiler=True)
        if java is None:
            raise LookupError("there is no Java 17 or later with a compiler (a JDK)")
        self._jar, self._javap = server.core, java.with_name("javap")
        program = Path(__file__).with_name("Stopper.java")
        self._process = subprocess.Popen(
            [java, "--add-modules", "jdk.jdi", str(program), str(server.debugger_port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._expect("attached")

    def arm(self, place: Place) -> None:
        """Stop the next thread that comes to `place`."""
        self._say(f"arm {place.found_in(self._jar, self._javap)}")
        self._expect("armed")

    def wait(self) -> str:
        """Return the name of the thread that has stopped; raises `TimeoutError` if none has."""
        self._say(f"wait {STOP_S_MAX}")
        name = self._answer()
        if name == "none":
            raise TimeoutError("no thread came to the place")
        return name

    def go(self) -> None:
        """Let the stopped thread go on."""
        self._say("go")
        self._expect("gone")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(END_S_MAX)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"the debugger ended with status {self._process.wait(END_S_MAX)}")
        return line

    def _expect(self, word: str) -> None:
        if (answer := self._answer()) != word:
            raise RuntimeError(f"the debugger said {answer!r}, not {word!r}")
