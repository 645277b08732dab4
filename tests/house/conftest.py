"""What the tests of the house share: which files belong to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

NOT_OURS = {".git", ".venv", ".brokerproof", ".hypothesis", ".benchmarks", "build", "dist"}


def files_of(root: Path) -> list[Path]:
    """Return the files that git has or would take, or where there is no git all but what is made.

    What was not yet added counts too: a fault should show before it is committed.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            env=own,
            capture_output=True,
            check=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return sorted(path for path in root.rglob("*") if path.is_file() and _is_ours(path, root))
    names = filter(None, listed.stdout.decode().split("\0"))
    return sorted(path for name in names if (path := root / name).is_file())


def _is_ours(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    return not any(
        part in NOT_OURS or part.endswith(("cache__", "_cache", ".egg-info")) for part in parts
    )


@pytest.fixture(name="files_of")
def files_of_a_tree() -> Callable[[Path], list[Path]]:
    """Return the function that lists the files of a tree."""
    return files_of


@pytest.fixture
def house() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).parents[2]
