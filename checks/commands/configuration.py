"""The configuration file: the options of `check`, kept in `brokerproof.toml` or `pyproject.toml`.

The file owns the place and the content of the configuration: the options by their own names, and
the candidates. The command line wins over it. An unknown key is refused, since a misspelled option
would be ignored silently.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, TypeAlias, get_args

import msgspec

from brokerproof.checks.gate.gate_run import Effort
from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.requirements import Requirement
from brokerproof.spec.requirements.frozen import read_set, requirements_of

OWN_FILE = "brokerproof.toml"
SHARED_FILE = "pyproject.toml"

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Settings(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True
):
    """The options that a configuration file may set; None stands for one that it does not set."""

    candidates: tuple[str, ...] | None = None
    seed: Natural | None = None
    effort: Effort | None = None
    examples: Natural | None = None
    operations: Annotated[int, msgspec.Meta(ge=1)] | None = None
    interleavings: Natural | None = None
    budget: Annotated[float, msgspec.Meta(gt=0)] | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    requirements: str | None = None
    only: tuple[str, ...] | None = None
    expect: tuple[str, ...] | None = None
    known: str | None = None
    crash_command: str | None = None
    restart_command: str | None = None
    than: str | None = msgspec.field(default=None, name="as")
    strict: bool | None = None
    accept_inconclusive: bool | None = None
    report: str | None = None
    traceback: bool | None = None
    progress: bool | None = None
    verbose: bool | None = None

    def named(self) -> dict[str, object]:
        """Return the options that are set, by their names in Python."""
        return {
            name: value for name, value in msgspec.structs.asdict(self).items() if value is not None
        }


class WrongConfiguration(Exception):
    """A configuration file cannot be used; the message is one line with file and key."""


def read_settings(folder: Path) -> Settings:
    """Return the settings for a folder; raises `WrongConfiguration`.

    `brokerproof.toml` wins over the table `[tool.brokerproof]` of `pyproject.toml`.
    """
    own, shared = folder / OWN_FILE, folder / SHARED_FILE
    if own.is_file():
        return _settings(own.name, _table(own), "")
    if not shared.is_file():
        return Settings()
    tools = _table(shared).get("tool")
    table = tools.get("brokerproof", {}) if isinstance(tools, dict) else {}
    return _settings(shared.name, table, "tool.brokerproof.")


def _table(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise WrongConfiguration(f"{path.name}: {error}") from error


def _settings(name: str, table: object, prefix: str) -> Settings:
    if isinstance(table, dict):
        for key in table:
            if key not in Settings.__struct_encode_fields__:
                allowed = ", ".join(Settings.__struct_encode_fields__)
                raise WrongConfiguration(
                    f"{name}: {prefix}{key}: there is no such key; there are {allowed}"
                )
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        option = place.strip("`.")
        key = (prefix + option).rstrip(".")
        if option == "effort":
            what += f"; there are {', '.join(get_args(Effort))}"
        raise WrongConfiguration(f"{name}: {key}: {what}") from error


def asked(name: str) -> dict[str, Requirement]:
    """Return the requirements of a published set, or of a file with a set of the user's own.

    A name that ends in `.toml` is a file. Raises `CatalogueError`.
    """
    if not name.endswith(".toml"):
        return requirements_of(name)
    try:
        return read_set(name, Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CatalogueError(f"{name}: {reason}") from error
