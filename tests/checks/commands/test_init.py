"""The output of `init` passes the gate unchanged, and fails it with a fault in its queue."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.commands.init import STARTERS
from brokerproof.checks.subjects import open_subject
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.operations import Declare

TOOLS = {"node": "node", "go": "go"}
ORDERED = {
    "python": "bisect.insort(self.waiting, (place, message, True))",
    "python-driver": "bisect.insort(self.waiting, (place, message, True))",
    "node": "    this.waiting.sort((one, other) => one.place - other.place);\n",
    "go": "	slices.SortFunc(q.waiting, func(a, b entry) int { return a.place - b.place })\n",
}
"""The line that puts a returned message in its place, in each form."""
UNORDERED = {"python": "self.waiting.append((place, message, True))"}
UNORDERED["python-driver"] = UNORDERED["python"]
LITTLE = ("--operations", "200", "--examples", "2", "--jobs", "1", "--no-progress")
LINES_MAX = 140


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, on no CI host."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    """Run the command line; whatever happens, it ends with a status of its own."""
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def started(*arguments: str) -> tuple[Path, list[str]]:
    """Return the file that `init` wrote, and the words of the command that it names next."""
    result = run("init", *arguments)
    assert result.exit_code == 0, result.output
    wrote, following = result.output.splitlines()
    return Path(wrote.removeprefix("wrote ")), shlex.split(following.removeprefix("next: "))


def checked(words: list[str]) -> tuple[int, dict[str, str]]:
    """Run the suggested next command with a small budget; return status and outcomes."""
    if "&&" in words:
        build, words = words[: words.index("&&")], words[words.index("&&") + 1 :]
        subprocess.run(build, check=True)
    assert words[:2] == ["brokerproof", "check"]
    result = run("check", *words[2:], *LITTLE, "--accept-inconclusive")
    [candidate] = json.loads(Path(".brokerproof/verdict.json").read_bytes())["candidates"]
    return result.exit_code, {v["requirement"]: v["verdict"] for v in candidate["verdicts"]}


@pytest.mark.each_time(1)
@pytest.mark.parametrize("language", STARTERS)
def test_what_is_written_passes_and_with_a_mistake_fails(language: str) -> None:
    if language in TOOLS and shutil.which(TOOLS[language]) is None:
        pytest.skip(f"{TOOLS[language]} is not installed")
    path, words = started("--language", language, "a folder")
    status, outcomes = checked(words)
    assert status == 0
    assert "broken" not in outcomes.values()
    assert outcomes["release-rewinds"] == "kept"
    with closing(open_subject(words[-1])) as subject:
        answer = subject.fresh()[0].handle(Declare(queue="q", order=Fifo(), auto_delete=True))
        assert answer.error is not None
        assert answer.error.code == "unsupported"
    text = path.read_text(encoding="utf-8")
    assert text.count(ORDERED[language]) == 1
    mistaken = text.replace(ORDERED[language], UNORDERED.get(language, ""))
    path.write_text(mistaken, encoding="utf-8")
    status, outcomes = checked(words)
    assert status == 1
    assert outcomes["release-rewinds"] == "broken"


def test_the_example_is_in_python_alone() -> None:
    result = run("init", "--example", "--language", "go")
    assert (result.exit_code, [*Path().iterdir()]) == (2, [])
    assert result.output == "Error: the example is in Python; leave --language out\n"


@pytest.mark.thorough
def test_the_example_has_one_mistake() -> None:
    path, words = started("--example")
    status, outcomes = checked(words)
    assert status == 1
    assert [name for name, outcome in outcomes.items() if outcome == "broken"] == [
        "release-rewinds"
    ]
    text = path.read_text(encoding="utf-8")
    mended = text.replace(
        UNORDERED["python"], f"{UNORDERED['python']}\n        self.waiting.sort()"
    )
    assert mended != text
    path.write_text(mended, encoding="utf-8")
    assert checked(words)[0] == 0


def test_nothing_is_overwritten(folder: Path) -> None:
    (folder / "my_queue.py").write_text("mine", encoding="utf-8")
    result = run("init")
    assert result.exit_code == 2
    assert (
        result.output == "Error: my_queue.py is there already; name another folder: init FOLDER\n"
    )
    assert (folder / "my_queue.py").read_text(encoding="utf-8") == "mine"
    assert run("init", "elsewhere").exit_code == 0


def test_a_folder_that_cannot_be_made_is_told_in_one_line(folder: Path) -> None:
    (folder / "file").write_text("", encoding="utf-8")
    result = run("init", "file")
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith("Error: file")


@pytest.mark.parametrize("language", STARTERS)
def test_what_is_written_is_small(language: str) -> None:
    path, _ = started("--language", language)
    assert len(path.read_text(encoding="utf-8").splitlines()) < LINES_MAX
