"""The findings and exit statuses of `prove` and `explore`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands.explore import explore
from brokerproof.checks.commands.prove import prove
from brokerproof.models import catalogue
from brokerproof.models.catalogue import CATALOGUE, Listed
from brokerproof.models.language import Bool, action, invariant, require
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription


class Impatient(PointerQueue):
    """Claims that no entry is ever held, and requires the impossible."""

    @action
    def vanish(self, entry: Entry) -> None:
        """Be before oneself."""
        require(self.before(self.head, entry) & self.before(entry, self.head))
        self.status[entry] = self.status[self.head]

    @invariant("no-entry-is-held")
    def no_consumer_holds(self, consumer: Subscription, e: Entry) -> Bool:
        """Wrong after a delivery."""
        return ~self.holds[consumer, e]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """List the models with small scopes, and one that is wrong."""
    scope = Scope({Entry: 2, Subscription: 2}, range(1))
    listed = {name: Listed(each, scope) for name, each in MODELS.items()}
    for name in list(CATALOGUE):
        monkeypatch.delitem(catalogue.CATALOGUE, name)
    for name, each in listed.items():
        monkeypatch.setitem(catalogue.CATALOGUE, name, each)


MODELS: dict[str, type[PointerQueue]] = {"pointers": PointerQueue, "impatient": Impatient}


def run_prove(*arguments: str) -> Result:
    return CliRunner().invoke(prove, arguments)


def run_explore(*arguments: str) -> Result:
    return CliRunner().invoke(explore, arguments)


def test_prove_says_what_is_proved_and_what_breaks_an_invariant() -> None:
    result = run_prove()
    assert result.exit_code == 1
    assert "  browser-takes-nothing               proved for any size" in result.output
    assert "    with Entry 2, Subscription 2: append, insert, deliver, browse, " in result.output
    assert "no-entry-is-held                    refuted" in result.output
    assert "    broken by deliver\n      in this state\n          head: entry0" in result.output
    assert "          holds[subscription0, entry1]: false -> true" in result.output
    never = "    NEVER, impossible with any number of elements: acknowledge, release, vanish"
    assert never in result.output


def test_prove_leaves_out_what_was_not_named() -> None:
    result = run_prove("impatient")
    assert result.exit_code == 1
    assert "no-entry-is-held                    refuted" in result.output
    assert not any(line.startswith("pointers") for line in result.output.splitlines())


def test_explore_counts_and_says_what_held() -> None:
    result = run_explore("pointers")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "pointers in the scope Entry 2, Subscription 2"
    assert lines[1].startswith("  states       ")
    assert "  actions never taken: none" in lines
    assert lines[-2:] == [
        "    browser-takes-nothing",
        "  kept in the end: what-a-consumer-wants-is-delivered",
    ]


def test_explore_shows_the_shortest_way_to_a_broken_invariant() -> None:
    result = run_explore("impatient")
    assert result.exit_code == 1
    assert "  broken: no-entry-is-held, after 3 steps and no fewer" in result.output
    assert "    3. deliver(consumer=subscription0, entry=entry1)" in result.output


def test_a_search_that_ends_early_is_not_green() -> None:
    result = run_explore("pointers", "--size", "3", "--limit-states", "50")
    assert result.exit_code == 3
    assert "  incomplete   limit of 50 states" in result.output
    assert "  invariants held so far:" in result.output


@pytest.mark.parametrize("run", [run_prove, run_explore])
def test_an_unknown_model_is_one_clear_line(run: Callable[[str], Result]) -> None:
    result = run("no-such")
    assert result.exit_code == 2
    assert "there is no model 'no-such': try pointers, impatient" in result.output


@pytest.mark.parametrize("run", [run_prove, run_explore])
@pytest.mark.parametrize(
    ("name", "meant"), [("a-sistem", "a-system"), ("a", None), ("pointer", "pointers")]
)
def test_of_an_unknown_model_what_may_have_been_meant_is_said(
    run: Callable[[str], Result], name: str, meant: str | None, system: str
) -> None:
    result = run(name)
    assert result.exit_code == 2
    suggestion = f" (did you mean {meant!r}?)" if meant else ""
    assert f"there is no model {name!r}{suggestion}: try " in result.output
    assert system in result.output


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> str:
    """List a system of both models, the one that is wrong first."""
    monkeypatch.setitem(catalogue.SYSTEMS, "a-system", ("impatient", "pointers"))
    return "a-system"


def test_a_system_stands_for_all_its_models_and_the_worst_of_them_counts(system: str) -> None:
    proved = run_prove(system, "--bounded", "3")
    assert proved.exit_code == 1
    named = [line for line in proved.output.splitlines() if not line.startswith(" ")]
    assert named == ["impatient", "pointers"]
    assert "  no violation within 3 steps" in proved.output
    explored = run_explore(system)
    assert explored.exit_code == 1
    assert "impatient in the scope Entry 2, Subscription 2" in explored.output
    assert "pointers in the scope Entry 2, Subscription 2" in explored.output


def test_a_system_ends_with_the_status_of_what_was_not_all_visited(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalogue.SYSTEMS, system, ("pointers", "pointers"))
    assert run_explore(system).exit_code == 0
    assert run_explore(system, "--limit-states", "50").exit_code == 3


@pytest.mark.parametrize("option", [("--size", "2"), ("--never", "get"), ("--itf", "way.itf")])
def test_what_is_about_one_model_is_refused_for_a_system(
    system: str, option: tuple[str, str]
) -> None:
    result = run_explore(system, *option)
    assert result.exit_code == 2
    assert "name one of impatient, pointers" in result.output


@pytest.mark.parametrize("run", [run_prove, run_explore])
def test_the_line_about_an_unknown_model_lists_the_systems(
    run: Callable[[str], Result], system: str
) -> None:
    said = [line for line in run("no-such").output.splitlines() if "no model" in line]
    assert len(said) == 1
    assert "qpid-push, qpid-pull, rabbitmq-paging" in said[0]
    assert said[0].endswith(f"{system}, or FILE.py:CLASS")


def test_a_scope_that_is_too_large_is_an_error_of_usage() -> None:
    result = run_explore("pointers", "--size", "9")
    assert result.exit_code == 2
    assert "make the scope smaller" in result.output
