"""No file says where it was written, where it came from, or what is left to do; prose is plain.

The words are put together from halves here, so that this file may lie in the tree that it judges.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tokenize
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEFTOVERS = ("TO" + "DO", "FIX" + "ME", "X" * 3)
MACHINE_FOLDERS = ("work", "root", "home")
REGISTRY_HOSTS = (
    "pypi" + r"\.org",
    "python" + r"hosted\.org",
    "npm" + r"js\.(?:org|com)",
    "crates" + r"\.io",
    "ruby" + r"gems\.org",
    "proxy" + r"\.golang\.org",
    "(?:deb|security|archive)" + r"\.(?:debian|ubuntu)\.(?:org|com)",
)

BANNED = {
    "a path of one machine": re.compile(rf"(?<![\w.~$}}-])/(?:{'|'.join(MACHINE_FOLDERS)})/"),
    "the host of a registry": re.compile("|".join(REGISTRY_HOSTS)),
    # The options that pip-compile is told to leave out of the lock files begin with no-emit.
    "the choice of a registry": re.compile(
        r"(?:^|\s)--(?:" + "(?:extra-)?index" + "-url|trusted" + "-host|find" + r"-links)\b"
    ),
    "a leftover; do it or drop it": re.compile(rf"\b(?:{'|'.join(LEFTOVERS)})\b"),
}


def banned_words(files: list[Path], root: Path) -> Iterator[str]:
    """Complain, ``path:line: what is wrong``, about each line with a banned word."""
    for path in files:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # not text
        for number, line in enumerate(lines, 1):
            for what, pattern in BANNED.items():
                if found := pattern.search(line):
                    where = path.relative_to(root)
                    yield f"{where}:{number}: {found[0].strip()} is {what}"


RETIRED = {
    "who" + "ever": "name the subject",
    "no" + "body": "name the subject",
    "some" + "body": "name the subject",
    "every" + "body": "name the subject",
    "cens" + "us": "write final drain",
    "passag" + "es": "write waiting intervals",
    "set " + "aside": "write rejected",
    "happen" + "ings": "write client steps",
    "glan" + "ces": "write snapshots",
    "tak" + "er": "write subscriber",
    "tak" + "ers": "write subscriber",
    "survivors" + "_of": "write equivalent mutants",
}
"""Words that prose had, and what to write instead."""


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of docstrings and comments, or of Markdown outside of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        is_code = False
        for number, line in enumerate(text.splitlines(), 1):
            is_code ^= line.startswith("```")
            if not is_code and not line.startswith("|"):
                yield number, line
    elif path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_docstring = token.type == tokenize.STRING and token.string.startswith('"""')
            if is_docstring or token.type == tokenize.COMMENT:
                yield from enumerate(token.string.splitlines(), token.start[0])


def retired_words(files: list[Path], root: Path) -> Iterator[str]:
    """Complain about prose with a word that says too little; the changelog keeps its history."""
    pattern = re.compile(rf"\b({'|'.join(RETIRED)})\b", re.IGNORECASE)
    for path in files:
        if path.name != "CHANGELOG.md" and path.suffix in {".py", ".md"}:
            for number, line in prose_of(path):
                if found := pattern.search(line):
                    where = f"{path.relative_to(root)}:{number}"
                    yield f"{where}: {found[0]}; {RETIRED[found[0].lower()]}"


def test_prose_has_no_retired_word(house: Path, files_of: Callable[[Path], list[Path]]) -> None:
    assert list(retired_words(files_of(house), house)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "It is read by {}."),
        ("code.py", 'def f():\n    """Return what {} reads."""\n'),
        ("code.py", "a = 1  # for {}\n"),
    ],
)
def test_a_retired_word_is_found_and_one_in_code_is_not(
    tmp_path: Path, name: str, text: str
) -> None:
    path, word = tmp_path / name, "no" + "body"
    path.write_text(text.format(word))
    [complaint] = retired_words([path], tmp_path)
    assert complaint.endswith(": " + word + "; name the subject")
    path.write_text(f"```\n{word}\n```\n" if path.suffix == ".md" else f"a = '{word}'\n")
    assert list(retired_words([path], tmp_path)) == []


UNNAMED = {"who", *(word for word, instead in RETIRED.items() if instead == "name the subject")}
"""Words in a name that does not name its subject."""


def unnamed_subjects(files: list[Path], root: Path) -> Iterator[str]:
    """Complain about each name in code that says who, and not which consumer."""
    for path in files:
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.NAME and UNNAMED & {*token.string.lower().split("_")}:
                    where = f"{path.relative_to(root)}:{token.start[0]}"
                    yield f"{where}: {token.string}; name the subject"


def test_each_name_names_its_subject(house: Path, files_of: Callable[[Path], list[Path]]) -> None:
    assert list(unnamed_subjects(files_of(house), house)) == []


@pytest.mark.parametrize("word", sorted(UNNAMED))
@pytest.mark.parametrize("name", ["{}", "test_{}_waits", "given_to_{}", "A_{}"])
def test_a_name_without_a_named_subject_is_found(tmp_path: Path, name: str, word: str) -> None:
    path, bad = tmp_path / "code.py", name.format(word)
    path.write_text(f"class Tests:\n    def f(self, {bad}) -> None: ...\n")
    assert list(unnamed_subjects([path], tmp_path)) == [f"code.py:2: {bad}; name the subject"]


@pytest.mark.parametrize("line", ["the_{}le = 1", 'a = "{}"', "a = 1  # for {}"])
def test_a_name_without_such_a_word_and_text_are_left(tmp_path: Path, line: str) -> None:
    path = tmp_path / "code.py"
    path.write_text(line.format("who") + "\n")
    assert list(unnamed_subjects([path], tmp_path)) == []


def test_no_file_has_a_banned_word(house: Path, files_of: Callable[[Path], list[Path]]) -> None:
    files = files_of(house)
    assert house / "pyproject.toml" in files
    assert list(banned_words(files, house)) == []


@pytest.mark.parametrize(
    "line",
    [
        "open('/" + "work/main/x')",
        "cd /" + "home/me",
        "# TO" + "DO: later",
        "FIX" + "ME",
        "x = 1  # " + "X" * 3,
        "https://pypi" + ".org/simple",
        "http://deb" + ".debian.org/debian",
        "--index" + "-url http://mirror/simple",
        "pip install --trusted" + "-host mirror x",
    ],
)
def test_a_banned_word_is_found_with_its_line(
    tmp_path: Path, files_of: Callable[[Path], list[Path]], line: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text(f"fine\n{line}\n")
    [complaint] = banned_words(files_of(tmp_path), tmp_path)
    assert complaint.startswith("folder/notes.txt:2: ")


@pytest.mark.parametrize(
    "line", ["tests/home" + "/x", "$D/work" + "/x", "todo list", "XX" + "XX", "--no-emit-index-url"]
)
def test_a_harmless_word_is_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(line)
    assert list(banned_words([path], tmp_path)) == []


def test_what_git_ignores_and_what_is_not_text_is_not_judged(
    tmp_path: Path, files_of: Callable[[Path], list[Path]]
) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".gitignore").write_text(".venv/\n")
    (tmp_path / ".venv" / "notes.txt").write_text("TO" + "DO")
    (tmp_path / "image").write_bytes(b"\xff\xfe TO" + b"DO")
    names = [".gitignore", "image"]
    assert [path.name for path in files_of(tmp_path)] == names
    if shutil.which("git") is not None:
        subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
        assert [path.name for path in files_of(tmp_path)] == names
    assert list(banned_words(files_of(tmp_path), tmp_path)) == []
