"""Java on this machine: which one is new enough, and the options that suit a private server."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

HOMES = Path("/usr/lib/jvm")
_VERSION = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)


def server_command(
    java: Path | None, folder: Path, memory_mib: int, opened: tuple[str, ...] = ()
) -> list[str]:
    """Return the start of a command line: quick to start, little memory, nothing outside `folder`.

    `opened` are packages of Java's own that the server looks into by reflection.
    """
    assert java is not None, "the server was started although its Java is missing"
    return [
        str(java),
        "-Xms32m",
        f"-Xmx{memory_mib}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # A Java that is killed would leave a file with its counters.
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={folder}",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened),
    ]


def find_java(least: int, most: int | None = None, *, compiler: bool = False) -> Path | None:
    """Return a Java of version `least` to `most`, with a `compiler` if that is asked for.

    Looks at JAVA_HOME, then the PATH, then Debian's folder. The version is read from the file
    ``release`` that each Java has, which is quicker than to start it.
    """
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path is not None:
        homes.append(Path(on_path).resolve().parents[1])
    homes += sorted(HOMES.glob("*"))
    for home in homes:
        run, release = home / "bin" / "java", home / "release"
        if run.exists() and release.exists() and (not compiler or run.with_name("javac").exists()):
            version = _VERSION.search(release.read_text(encoding="utf-8"))
            if version is not None and least <= int(version[1]) <= (most or int(version[1])):
                return run
    return None
