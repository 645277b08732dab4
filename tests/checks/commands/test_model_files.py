"""Models in a user's own files: the output of the commands, and their exit status.

Each case is one command line, with its status: a vacuous model must not be green.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import z3
from click.testing import CliRunner, Result

from brokerproof.checks.commands import explore as explore_command
from brokerproof.checks.commands import prove as prove_command
from brokerproof.checks.commands.options import model_argument
from brokerproof.models import refinements
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.prove import interruption

LAMPS = '''
from __future__ import annotations
from brokerproof.models.language import *

class Lamp(Family):
    """Lit or not."""

class Lamps(Model):
    lit: Map[Lamp, Bool]
    used: Map[Lamp, Int]

    @initial
    def dark(self) -> None:
        self.lit.fill(False)
        self.used.fill(0)

    @action
    def light(self, which: Lamp) -> None:
        require(~self.lit[which])
        self.lit[which] = True

    @action
    def darken(self, which: Lamp) -> None:
        require(self.lit[which])
        self.lit[which] = False

    @leads_to("lit-in-the-end", fair=("light",))
    def lights(self, which: Lamp) -> tuple[Bool, Bool]:
        return ~self.lit[which], self.lit[which]

class Silent(Lamps):
    @leads_to("never-asked")
    def asks(self, which: Lamp) -> tuple[Bool, Bool]:
        return self.lit[which] & ~self.lit[which], self.lit[which]

class Broken(Lamps):
    @leads_to("dark-in-the-end")
    def darkens(self, which: Lamp) -> tuple[Bool, Bool]:
        return self.lit[which], ~self.lit[which]

class Counting(Lamps):
    @action
    def use(self, which: Lamp) -> None:
        self.used[which] = self.used[which] + 1

class Circular(Lamps):
    @leads_to("lit-when-lit")
    def circular(self, which: Lamp) -> tuple[Bool, Bool]:
        return self.lit[which], self.lit[which]

class Vacuous(Lamps):
    @invariant("two-at-once")
    def two(self) -> Bool:
        return forall(Lamp, lambda lamp: implies(self.used[lamp] > 0, self.lit[lamp]))

    @invariant("used-when-lit")
    def one(self) -> Bool:
        return forall(Lamp, lambda lamp: implies(self.lit[lamp], self.used[lamp] >= 0))

class Impossible(Lamps):
    @action
    def burn(self, which: Lamp) -> None:
        require(self.used[which] > 0)
        self.lit[which] = False

class Asking(Lamps):
    @action
    def ask(self, which: Lamp) -> None:
        require(self.lit[which])

class Tautology(Lamps):
    @invariant("lit-or-not")
    def either(self) -> Bool:
        return forall(Lamp, lambda lamp: (self.used[lamp] >= 0) | (self.used[lamp] < 1))

class TooFew(Lamps):
    @action
    def use(self, which: Lamp) -> None:
        require(self.used[which] < 4)
        self.used[which] = self.used[which] + 1

    @invariant("at-most-one")
    def few(self) -> Bool:
        return forall(Lamp, lambda lamp: self.used[lamp] < 4)

class True_(Lamps):
    equivalent_mutants = """
        lighting twice is lighting once
            light: guard 1
        darkening twice is darkening once
            darken: guard 1
        no invariant is about light
            darken: lit*2; light: lit; initially: lit*2
        only a negative number breaks the invariant
            initially: used
    """

    @invariant("use-is-not-negative")
    def natural(self) -> Bool:
        return forall(Lamp, lambda lamp: self.used[lamp] >= 0)
'''


@pytest.fixture
def lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with models, which leave the catalogue at the end."""
    table = dict(CATALOGUE)
    for module in (model_argument, explore_command, prove_command, refinements):
        monkeypatch.setattr(module, "CATALOGUE", table)
    monkeypatch.chdir(tmp_path)
    Path("lamps.py").write_text(LAMPS, encoding="utf-8")
    return tmp_path


def run(line: str) -> Result:
    command, *arguments = line.split()
    chosen = {"explore": explore_command.explore, "prove": prove_command.prove}[command]
    return CliRunner().invoke(chosen, arguments)


@pytest.mark.usefixtures("lamps")
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("explore lamps.py:Lamps", 0, "  kept in the end: lit-in-the-end"),
        ("explore lamps.py:Lamps", 0, "  no invariant: nothing was checked in these states"),
        ("explore lamps.py:Silent", 3, "  says nothing here: never-asked, whose premise never"),
        ("explore lamps.py:Circular", 3, "  says nothing here: lit-when-lit, whose premise never"),
        ("explore lamps.py:Broken", 1, "  broken: dark-in-the-end(which=lamp0)"),
        ("explore lamps.py:Impossible", 3, "  actions never taken: burn"),
        ("explore lamps.py:Impossible --never burn", 0, "never taken: burn (accepted)"),
        ("explore lamps.py:Lamps --never light", 0, "none; taken after all: light"),
        ("explore lamps.py:Lamps --never burn", 2, "no action burn: light, darken"),
        (
            "explore lamps.py:Impossible --limit-states 2",
            3,
            "  actions not taken so far: darken, burn",
        ),
        ("explore lamps.py:Lamps --size 3", 0, "in the scope Lamp 3, integers 0 to 3"),
        ("explore lamps.py:Lamps --size Lamp=1 --integers 7", 0, "Lamp 1, integers 0 to 7"),
        ("explore lamps.py:Lamps --integers -1..1", 0, "integers -1 to 1"),
        ("explore lamps.py:Lamps --integers 2..1", 2, "neither HIGH, from 0 on, nor LOW..HIGH"),
        ("explore lamps.py:Lamps --size Lamp=0", 2, "neither a number from 1 on nor FAMILY"),
        ("explore lamps.py:Lamps --size Bulb=1", 2, "there is no family Bulb: Lamp"),
        ("explore lamps.py:Lamps --svg no/such.svg", 2, "no/such.svg: No such file or directory"),
        ("explore lamps.py:Broken --itf way.json", 1, "  written      way.json"),
        ("explore lamps.py:Lamps --itf way.json", 0, "so way.json is not written"),
        ("explore lamps.py:Asking", 0, "  actions that change nothing: ask"),
        ("prove lamps.py:Asking", 1, "  actions that change nothing: ask"),
        ("prove lamps.py:Tautology", 1, "    it is true of every state"),
        ("prove lamps.py:TooFew --attack", 2, "does not keep at-most-one as it is: prove it first"),
        ("prove lamps.py:TooFew", 1, "    reachable, in 4 steps and no fewer in this scope:"),
        ("prove lamps.py:Lamps", 1, "  NOTHING TO PROVE: the model has no @invariant"),
        ("prove lamps.py:True_", 0, "  not proved: lit-in-the-end; `explore` checks"),
        ("prove lamps.py:True_", 0, "\n1 statements of models: 1 proved\n"),
        ("prove lamps.py:Lamps --bounded 2", 2, "there is nothing to search for"),
        ("prove lamps.py:Lamps --bounded 2 --attack", 2, "two questions: ask one at a time"),
        ("prove lamps.py:True_ --attack", 0, "darkening twice is darkening once"),
        ("prove lamps.py:True_ --attack", 0, "10 mutants: 2 broken by a run, 8 survive"),
    ],
)
def test_what_is_said_and_how_it_ends(line: str, status: int, said: str) -> None:
    result = run(line)
    assert (result.exit_code, said in result.output) == (status, True), result.output


MISTAKES = {
    "Wrong: the initial state says nothing of more": """
    more: Map[Lamp, Int]  # here
""",
    "never-fair wants burn to be fair, which is no action: there are darken, light": """
    @leads_to("never-fair", fair=("burn",))
    def never(self, which: Lamp) -> tuple[Bool, Bool]:  # here
        return self.lit[which], ~self.lit[which]
""",
    "press: the parameter which has no sort": """
    @action
    def press(self, which) -> None:  # here
        self.lit[which] = True
""",
    "some-number: (exists n: (3 < n)) is about all integers, which have no end": """
    @invariant("some-number")
    def some(self) -> Bool:  # here
        return exists(Int, lambda n: n > 3)
""",
    "Wrong: always is true of every state, so it says nothing": """
    @invariant("always")
    def lit_or_not(self) -> Bool:  # here
        return forall(Lamp, lambda lamp: ~self.lit[lamp] | self.lit[lamp])
""",
    "AttributeError: 'Wrong' object has no attribute 'litt' (did you mean 'lit'?)": """
    @invariant("always")
    def lit_or_not(self) -> Bool:
        return forall(Lamp, lambda lamp: self.litt[lamp])  # here
""",
}


@pytest.mark.usefixtures("lamps")
@pytest.mark.parametrize(("said", "part"), MISTAKES.items())
@pytest.mark.parametrize("command", ["prove", "explore"])
def test_a_mistake_of_the_author_is_one_line_with_its_place(
    command: str, said: str, part: str
) -> None:
    text = f"{LAMPS}\nclass Wrong(Lamps):{part}"
    Path("wrong.py").write_text(text, encoding="utf-8")
    [line] = [number for number, each in enumerate(text.splitlines(), 1) if "# here" in each]
    result = run(f"{command} wrong.py:Wrong")
    assert (result.exit_code, result.output) == (2, f"Error: wrong.py, line {line}: {said}\n")


@pytest.mark.usefixtures("lamps")
@pytest.mark.parametrize("size", ["2", "9"])
def test_an_integer_that_leaves_the_scope_comes_with_the_way_to_it(size: str) -> None:
    result = run(f"explore lamps.py:Counting --size {size} --integers 1")
    assert result.exit_code == 2
    assert "    1. use(which=lamp0)\n        used[lamp0]: 0 -> 1\n    2. use(" in result.output
    assert "used becomes 2, outside of the scope's integers 0 to 1: widen" in result.output


def test_ctrl_c_while_z3_is_asked_is_raised_after_the_question() -> None:
    solver = z3.Solver()
    with interruption.between_questions():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interruption.checked(solver, 1000)
    with interruption.between_questions():
        assert interruption.checked(solver, 1000) == (z3.sat, "")


class Cancelled:
    """A solver that gave up after so many steps, and does not say whether by itself."""

    def __init__(self, steps: int) -> None:
        self.steps, self.taken = steps, 7

    def check(self) -> z3.CheckSatResult:
        """Take the steps and give up."""
        self.taken += self.steps
        return z3.unknown

    def reason_unknown(self) -> str:
        """Return Z3's answer about either."""
        return "canceled"

    def statistics(self) -> Cancelled:
        """Return what knows the steps."""
        return self

    def keys(self) -> list[str]:
        """Return what is known."""
        return ["rlimit count"]

    def get_key_value(self, _name: str) -> int:
        """Return the steps taken so far."""
        return self.taken


def test_what_was_cancelled_early_was_ctrl_c_and_what_used_its_steps_was_not() -> None:
    with pytest.raises(KeyboardInterrupt):
        interruption.checked(Cancelled(steps=99), 100)
    assert interruption.checked(Cancelled(steps=100), 100) == (z3.unknown, interruption.LIMIT)
    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", 20_000)
    numbers = [z3.Int(f"x{n}", ctx=solver.ctx) for n in range(12)]
    solver.add(sum(n * n * n for n in numbers) == 123_457, *(n > 3 for n in numbers))
    assert interruption.checked(solver, 20_000) == (z3.unknown, interruption.LIMIT)


@pytest.mark.usefixtures("lamps")
def test_what_was_judged_before_ctrl_c_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[z3.Solver] = []

    def checked(solver: z3.Solver, _steps: int) -> tuple[z3.CheckSatResult, str]:
        asked.append(solver)
        if len(asked) > 20:
            raise KeyboardInterrupt
        return solver.check(), ""

    monkeypatch.setattr(prove_command, "cores", lambda: 1)
    monkeypatch.setattr("brokerproof.models.language.prove.z3_queries.checked", checked)
    monkeypatch.setattr("brokerproof.models.language.prove.witness.checked", checked)
    result = run("prove lamps.py:True_ --attack --no-cache")
    assert result.exit_code == 3
    assert "  light: guard 1: dropped      survives: lighting twice" in result.output
    assert result.output.endswith("what stands above was decided, the rest was not\n")


@pytest.mark.usefixtures("lamps")
def test_only_an_invariant_whose_premise_never_holds_says_nothing() -> None:
    said = [line for line in run("explore lamps.py:Vacuous").output.splitlines() if "says" in line]
    assert said == ["  says nothing in the first 4 states: two-at-once"]
