"""`brokerproof where`: each id leads to its lines, and each line has the right content."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands import where
from brokerproof.checks.commands.command_line import main
from brokerproof.checks.commands.where import ROOT, lines_about
from brokerproof.models.contract.ledger.whole_promises import WholeLedgerOfContract
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language.core.model import trace
from brokerproof.models.refinements import REFINEMENTS
from brokerproof.spec.invariants import ByModel, invariants
from brokerproof.spec.requirements import catalogue

PLACE = re.compile(r"([\w/.-]+\.(?:py|md)):(\d+)$")
EVERYTHING = sorted({*catalogue(), *invariants()})


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    """Return the places of each id."""
    return {name: [*lines_about(name)] for name in EVERYTHING}


def test_each_place_is_there(told: dict[str, list[str]]) -> None:
    places = [found for lines in told.values() for each in lines if (found := PLACE.search(each))]
    assert len(places) > 800
    lengths = {
        path: len((ROOT / path).read_text("utf-8").splitlines())
        for path, _ in {found.groups() for found in places}
    }
    assert all(int(found[2]) <= lengths[found[1]] for found in places)


def test_a_source_is_followed_by_its_web_address(told: dict[str, list[str]]) -> None:
    at = told["release-rewinds"].index(
        "  source: Qpid Design - Message Delivery, Reject and Release"
    )
    assert told["release-rewinds"][at + 1].startswith("    http://cwiki.apache.org/")
    assert not any("http" in line for line in told["protocol"])


def test_a_guard_leads_to_its_label(told: dict[str, list[str]]) -> None:
    labels = {guard.label for each in trace(WholeContract).actions for guard in each.guards}
    for name in labels & catalogue().keys():
        assert any(line.startswith("  guard: models/contract/") for line in told[name]), name


def test_a_guard_is_no_line_that_only_counts(told: dict[str, list[str]]) -> None:
    contract = (ROOT / "models/contract/core.py").read_text("utf-8").splitlines()
    counted = [number for number, line in enumerate(contract, 1) if "exercises(" in line]
    guards = {line for name in catalogue() for line in told[name] if "  guard: " in line}
    assert not guards & {f"  guard: models/contract/core.py:{number}" for number in counted}
    [last] = [line for line in told["nothing-lost"] if line.startswith("  guard: ")]
    assert "require(" in contract[int(last.rpartition(":")[2]) - 1]


def test_a_guard_of_job_queues_is_found_too(told: dict[str, list[str]]) -> None:
    [guard] = [line for line in told["lease-holds"] if line.startswith("  guard: ")]
    assert guard.startswith("  guard: models/contract/jobs_guards.py:")


def test_all_rules_and_promises_of_a_requirement_are_named(told: dict[str, list[str]]) -> None:
    kinds = Counter(line.partition(":")[0] for line in told["browser-never-rewound"])
    assert kinds["  promise"] == 2
    assert (
        Counter(line.partition(":")[0] for line in told["nothing-lost"])["  rule on histories"] == 3
    )


def test_a_guard_leads_to_the_promise_that_states_it(told: dict[str, list[str]]) -> None:
    for name in catalogue():
        promises = [line for line in told[name] if line.startswith("  promise: models/contract/")]
        stated = [each for each in trace(WholeLedgerOfContract).invariants if name in each.states]
        assert bool(promises) == bool(stated), name


def test_a_guard_of_the_contract_leads_to_the_theorem_of_each_algorithm(
    told: dict[str, list[str]],
) -> None:
    def models(name: str) -> list[str]:
        said = [line for line in told[name] if line.startswith("  theorem of ")]
        return [line.removeprefix("  theorem of ").partition(":")[0] for line in said]

    assert models("nothing-lost") == [*REFINEMENTS]
    places = [line for line in told["nothing-lost"] if line.startswith("    refinement, for any")]
    assert len(places) == len(REFINEMENTS)
    assert models("consumer-priority") == [*REFINEMENTS]
    assert models("protocol") == []


def test_a_statement_of_a_model_leads_to_its_text(told: dict[str, list[str]]) -> None:
    for each in invariants().values():
        for binding in each.held:
            if isinstance(binding, ByModel):
                [at] = [
                    n for n, t in enumerate(told[each.id]) if t.startswith(f"  held by: {binding},")
                ]
                assert PLACE.search(told[each.id][at + 1]), binding


def test_every_requirement_leads_to_a_planted_fault_or_to_threads(
    told: dict[str, list[str]],
) -> None:
    without = {name for name in catalogue() if not any("planted fault" in t for t in told[name])}
    assert without <= {"as-in-some-order", "every-thread-ends", "no-data-race"}


def test_a_text_that_is_nowhere_has_no_place() -> None:
    assert [*where._lines("no such promise", "models/**/*.py")] == []


def test_a_models_own_invariant_leads_to_its_line() -> None:
    said = CliRunner().invoke(main, ["where", "pointer-passes-nothing-of-interest"])
    assert said.exit_code == 0
    assert re.search(r"^models/qpid/pointer_queue.py:\d+ ", said.output, re.MULTILINE)


def test_a_word_lists_the_ids_whose_sentence_has_it() -> None:
    said = CliRunner().invoke(main, ["where", "redelivered"])
    assert said.exit_code == 0
    assert "redelivered-flag" in said.output
    assert "credit-used" not in said.output


@pytest.mark.parametrize(
    ("term", "line", "statement"),
    [
        ("storage pointer", "cursors/store_cursor.py", "models/activemq/cursor_page_in.py"),
        ("BetaDeltaFun", "push_betas_to_deltas", "models/rabbitmq/paging_reduction.py"),
        ("IO_BATCH_SIZE", "paging/moves.py", "models/rabbitmq/paging_reduction.py"),
        ("countdown", "process_queue", "reschedule"),
        ("push_alphas_to_betas", "paging/moves.py", "page_q1_to_q2"),
        ("maybe_deltas_to_betas", "paging/moves.py", "_reloads_all"),
        ("NotInterested", "NodeState", "Listed"),
        ("QueueEntryList", "push/entry_list.py", "models/qpid/pointer_queue.py"),
        ("deliverMessage", "deliver_message", "deliver:"),
    ],
)
def test_a_term_of_a_document_leads_to_the_reference_and_the_model(
    term: str, line: str, statement: str
) -> None:
    said = CliRunner().invoke(main, ["where", term]).output.splitlines()
    assert any(each.startswith("reference/") and line in each for each in said)
    assert any(each.startswith("models/") and statement in each for each in said)


def test_a_word_that_nothing_says_ends_in_one_line() -> None:
    said = CliRunner().invoke(main, ["where", "release-rewind5"])
    assert said.exit_code == 2
    assert "did you mean" in said.output or "release-rewinds" in said.output
    assert len(said.output.strip().splitlines()) == 1


def test_what_was_proved_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = "  held by: model paging-reduction: the-length-is-the-sum, "
    assert (
        f"{line}not proved on this machine yet; run: brokerproof prove paging-reduction"
        in lines_about("I1")
    )
    assert CliRunner().invoke(main, ["prove", "paging-reduction"]).exit_code == 0
    assert f"{line}proved" in lines_about("I1")
