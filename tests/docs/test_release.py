"""What `make release` hands out: an example that can be checked, every file, and one home."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from brokerproof.version import HOME

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
KINDS = (".py", ".toml", ".html", ".css", "py.typed")


def test_the_home_is_the_same_everywhere() -> None:
    assert PROJECT["project"]["urls"]["Homepage"] == HOME
    page = (ROOT / "docs" / "guide" / "in-ci.md").read_text(encoding="utf-8")
    used = re.findall(r"uses: (brokerproof/\S+)", page)
    assert used == [f"{HOME.removeprefix('https://github.com/')}@VERSION"]


def test_the_example_of_a_release_is_there() -> None:
    [example] = re.findall(r"(?m)^EXAMPLE := (\w+\.py):(\w+)", (ROOT / "Makefile").read_text())
    file, maker = example
    assert f"def {maker}(" in (ROOT / "examples" / file).read_text(encoding="utf-8")


def sources() -> set[str]:
    """Return the path in a wheel of each file of the packages."""
    return {
        f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}"
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.name.endswith(KINDS)
    }


def missing(wheel: Path) -> set[str]:
    """Return the files of the packages that a wheel leaves out."""
    return sources() - set(zipfile.ZipFile(wheel).namelist())


def built(folder: Path, change: Iterable[tuple[str, str]] = ()) -> tuple[Path, Path]:
    """Build both distributions from a copy of the tree; return the source and the wheel."""
    tree = folder / "tree"
    for each in (*FOLDERS.values(), "examples"):
        shutil.copytree(ROOT / each, tree / each, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for old, new in change:
            text = text.replace(old, new)
        (tree / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)]
    subprocess.run(command, check=True, capture_output=True)
    [source], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


def test_the_wheel_has_every_file_and_the_source_has_the_examples(tmp_path: Path) -> None:
    source, wheel = built(tmp_path)
    assert missing(wheel) == set()
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    examples = {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")}
    assert examples <= names


def test_a_wheel_that_leaves_something_out_is_noticed(tmp_path: Path) -> None:
    _, wheel = built(tmp_path, [('"brokerproof.spec.requirements" = ["*.toml"]', "")])
    assert "brokerproof/spec/requirements/core.toml" in missing(wheel)
