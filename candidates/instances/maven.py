"""Files of Maven Central, fetched by `mvn` when asked for, and held to their pinned SHA-256.

The file owns the folder in the user's cache and the form of `maven.toml`. A folder is whole or not
there: it is made under another name, and renamed once every file is as pinned. It knows no product.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec

from brokerproof.candidates.unavailable import CandidateUnavailable, described

FETCH_S_MAX = 900.0
PLUGIN = "3.8.1"
"""The release of maven-dependency-plugin that fetches."""

CONTENTS = "contents.json"


@functools.cache
def pinned() -> dict[str, dict[str, dict[str, str]]]:
    """Return the SHA-256 of each file by instance, version and coordinates."""
    text = resources.files(__package__).joinpath("maven.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=dict[str, dict[str, dict[str, str]]])


class _Contents(msgspec.Struct):
    """What an installation put into its folder: sizes in bytes by path, and the pins it kept."""

    pinned: dict[str, str]
    sizes: dict[str, int]


@dataclass(frozen=True)
class Files:
    """The files of one release of one instance; one without files lacks none."""

    name: str
    version: str

    @property
    def pins(self) -> dict[str, str]:
        """The SHA-256 of each file by its coordinates."""
        return pinned().get(self.name, {}).get(self.version, {})

    @property
    def folder(self) -> Path:
        """Where they are, in the user's cache."""
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(cache) / "brokerproof" / self.name / self.version

    def absent(self) -> str | None:
        """Return what is not as it was installed, in a few words; None if all is."""
        if not self.pins:
            return None
        try:
            text = (self.folder / CONTENTS).read_bytes()
            contents = msgspec.json.decode(text, type=_Contents)
        except OSError:
            return "it is not installed"
        except msgspec.DecodeError:
            return f"{self.folder / CONTENTS} is damaged"
        if contents.pinned != self.pins:
            return f"{self.folder} has files of another release of brokerproof"
        for name, size in contents.sizes.items():
            path = self.folder / name
            if not path.is_file() or path.stat().st_size != size:
                return f"{path} is missing or damaged"
        return None

    def install(self) -> bool:
        """Fetch what is not there, and return whether anything was fetched.

        Raises `CandidateUnavailable` if `mvn` is missing or fails, if the folder cannot be written,
        and for a file that is not as pinned, which is removed.
        """
        if self.absent() is None:
            return False
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=f".{self.version}-", dir=self.folder.parent))
            try:
                self._fill(scratch)
                if self.folder.exists():  # what is there is not whole
                    shutil.rmtree(self.folder)
                scratch.rename(self.folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        except OSError as error:
            raise self._unavailable(
                described(error), "name another folder by XDG_CACHE_HOME"
            ) from error
        return True

    def _fill(self, scratch: Path) -> None:
        """Fetch all files into a folder, check them, and note what it then has."""
        self._fetch(scratch)
        for coordinates, digest in self.pins.items():
            self._check(scratch / _file_name(coordinates), coordinates, digest)
        sizes = {
            path.relative_to(scratch).as_posix(): path.stat().st_size
            for path in sorted(scratch.rglob("*"))
            if path.is_file()
        }
        (scratch / CONTENTS).write_bytes(msgspec.json.encode(_Contents(self.pins, sizes)))

    def _fetch(self, into: Path) -> None:
        mvn = shutil.which("mvn")
        if mvn is None:
            raise self._unavailable(
                "there is no mvn", "sudo apt-get install --no-install-recommends maven"
            )
        with tempfile.TemporaryDirectory() as project:
            (Path(project) / "pom.xml").write_text(_project(self.pins, into), encoding="utf-8")
            try:
                done = subprocess.run(  # noqa: S603 - our own command line, no shell
                    [mvn, "--batch-mode", "--quiet", "dependency:copy"],
                    cwd=project,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=FETCH_S_MAX,
                    stdin=subprocess.DEVNULL,
                )
            except subprocess.TimeoutExpired as error:
                raise self._unavailable(
                    f"mvn was not done within {FETCH_S_MAX:.0f} s", "try again"
                ) from error
        if done.returncode:
            said = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
            what = f"mvn ended with status {done.returncode}: {(said or [done.stderr])[0]}"
            raise self._unavailable(what, "see that mvn reaches Maven Central, and try again")

    def _check(self, path: Path, coordinates: str, digest: str) -> None:
        """Hold a file to its SHA-256 and unpack an archive."""
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            path.unlink()
            raise self._unavailable(
                f"{path.name} is not the file that is pinned (SHA-256 {found[:12]}…, "
                f"not {digest[:12]}…), and was removed",
                f"remove {coordinates} from Maven's local repository too, and try again",
            )
        if path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                # Python before 3.11.4 has no filters; the archive is the one that is pinned.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(path.parent)  # noqa: S202 - as above
            path.unlink()

    def _unavailable(self, what: str, remedy: str) -> CandidateUnavailable:
        return CandidateUnavailable(f"{self.name} {self.version}", what=what, remedy=remedy)


def _parts(coordinates: str) -> tuple[str, str, str, str, str]:
    group, artifact, version, kind, classifier, *_ = (*coordinates.split(":"), "", "")
    return group, artifact, version, kind or "jar", classifier


def _file_name(coordinates: str) -> str:
    _, artifact, version, kind, classifier = _parts(coordinates)
    return f"{artifact}-{version}{classifier and '-' + classifier}.{kind}"


def _project(pins: dict[str, str], into: Path) -> str:
    """Return a project that names the files, and nothing that they depend on."""
    names = ("groupId", "artifactId", "version", "type", "classifier")
    items = "".join(
        f"<artifactItem>{''.join(map(_tag, names, _parts(each)))}</artifactItem>" for each in pins
    )
    settings = _tag("outputDirectory", str(into)) + f"<artifactItems>{items}</artifactItems>"
    plugin = (
        _tag("groupId", "org.apache.maven.plugins")
        + _tag("artifactId", "maven-dependency-plugin")
        + _tag("version", PLUGIN)
        + f"<configuration>{settings}</configuration>"
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>private</groupId><artifactId>instances</artifactId><version>1</version>"
        f"<build><plugins><plugin>{plugin}</plugin></plugins></build></project>"
    )


def _tag(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>" if text else ""
