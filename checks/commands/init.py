"""The command `init`: a starting point for the user's own queue, or a queue with one mistake.

The file owns the names of the files, the next command to type, and that no file is overwritten. The
texts are those of `starters`; the mistake of the example is put into the Python one.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import click

from brokerproof.checks.errors import CannotRun


class Starter(NamedTuple):
    """A file of `starters`, the changes to it, and the next command for its path."""

    source: str
    next_command: Callable[[Path], str]
    name: str = ""
    changes: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Return the file's text."""
        folder = resources.files("brokerproof.checks.commands.starters")
        text = (folder / self.source).read_text(encoding="utf-8")
        for old, new in self.changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text


def _in_process(path: Path) -> str:
    return f"brokerproof check {shlex.quote(f'{path}:make_broker')}"


def _driven(program: str) -> Callable[[Path], str]:
    return lambda path: (
        "brokerproof check " + shlex.quote(f"exec:{program} {shlex.quote(str(path))}")
    )


def _built(path: Path) -> str:
    program = path.with_suffix("")
    shown = program if program.parent != Path() else f"./{program}"
    build = f"go build -o {shlex.quote(str(program))} {shlex.quote(str(path))}"
    return f"{build} && brokerproof check {shlex.quote(f'exec:{shlex.quote(str(shown))}')}"


STARTERS = {
    "python": Starter("my_queue.py", _in_process),
    "python-driver": Starter("driver.py", _driven("python3")),
    "node": Starter("driver.mjs", _driven("node")),
    "go": Starter("driver.go", _built),
}
EXAMPLE = Starter(
    "my_queue.py",
    _in_process,
    "impatient_queue.py",
    (
        (
            "My queue under the gate: replace the queue in memory by yours.",
            "A queue with one mistake: a returned message goes behind those that wait.",
        ),
        ("my_queue.py", "impatient_queue.py"),
        (
            "`Queue` is what you replace. `Adapter` changes when you claim more in `hello`.",
            "The mistake is in `give_back`; mend it and check again.",
        ),
        ("import bisect\n\n", ""),
        ("REPLACE: let each method call your own queue.", "Messages wait in a list."),
        ("to its place.", "to its place, or so it should."),
        (
            "bisect.insort(self.waiting, (place, message, True))",
            "self.waiting.append((place, message, True))",
        ),
        ('name="my queue"', 'name="impatient queue"'),
    ),
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--language",
    type=click.Choice(list(STARTERS)),
    default="python",
    show_default=True,
    help="An object in Python, or a driver in Python, JavaScript or Go.",
)
@click.option("--example", is_flag=True, help="Write a Python queue with one mistake instead.")
def init(folder: Path, language: str, *, example: bool) -> None:
    """Write a starting point for your own queue to FOLDER, by default the present one.

    It passes `brokerproof check` as it is, with a queue in memory, which you replace by yours.
    Nothing is overwritten.

    Exit status: 0 written; 2 it could not be.
    """
    if example and language != "python":
        raise CannotRun("the example is in Python; leave --language out")
    starter = EXAMPLE if example else STARTERS[language]
    path = folder / (starter.name or starter.source)
    text = starter.text()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise CannotRun(f"{path} is there already; name another folder: init FOLDER") from error
    except OSError as error:
        raise CannotRun(f"{path}: {error.strerror or error}; name another folder") from error
    click.echo(f"wrote {path}")
    click.echo(f"next: {starter.next_command(path)}")
