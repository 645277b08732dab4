"""Counterexamples as people read them, and as files that come back as they were."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from brokerproof.checks.gate.gate import Report, Stage
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.report import terminal
from brokerproof.checks.report.forms import write_report
from brokerproof.checks.report.verdict_file import (
    CandidateRecord,
    candidate_record,
    counted,
    covered,
    verdict_file,
)
from brokerproof.checks.search.counterexamples import (
    Certificate,
    Counterexample,
    Line,
    UnreadableCounterexample,
    answer_text,
    counterexample_of,
    line_of,
    read,
    text_of_counterexample,
    texts_of_moves,
    write,
)
from brokerproof.checks.search.coverage import Reach
from brokerproof.checks.search.findings import play
from brokerproof.checks.trace.moves import Move, Settle, text_of
from brokerproof.checks.verdicts import ExitStatus, Outcome, Verdict, judgement
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.answers import (
    OK,
    Answer,
    ConsumerClosed,
    Delivered,
    Error,
    QueueDeleted,
    refused,
)
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Publish,
    Purge,
    Restart,
    SetCredit,
)
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Sieve, Stack

GET = Get(channel="ch0", queue="q0")
MOVES: list[Move] = [
    Declare(queue="q0", order=Fifo()),
    Publish(queue="q0", message=Message(id="m0")),
    Publish(queue="q0", message=Message(id="m1")),
    GET,
]
SEARCHED = Certificate(grade="product", scope="one channel", operations=4)
SAMPLED = Certificate(grade="not certified", reason="the stage that found it searches nothing")

OVERTAKEN = """\
fifo-order (MUST): Of messages of one level that were never returned, the first to arrive is delivered first.
  source: Qpid Design - Message Delivery, Subscriptions
  source: Priority Queues, Priority Queues
   1  declare q0 fifo                      ok
   2  publish m0 to q0                     ok
   3  publish m1 to q0                     ok
   4  get from q0 on ch0 mode=acknowledge  m1 → the get
      expected  m0
      seen      m1 to the get
  {certificate}"""  # noqa: E501 (as it is printed)

GONE = """\
nothing-lost (MUST): An accepted message can be delivered until it is settled, or its queue is purged or deleted.
  source: Qpid Design - Message Delivery, Subscriptions
  source: Driver protocol 1, The operations
   1  declare q0 fifo                      ok
   2  publish m0 to q0                     ok
   3  get from q0 on ch0 mode=acknowledge  m0 → the get
   4  release m0                           ok
   5  get from q0 on ch0 mode=acknowledge  nothing
      expected  m0 to be still there
      seen      m0 is gone: after the trace the gate closed all channels and emptied the queue, and m0 did not come
  Not certified as shortest: the stage that found it searches nothing."""  # noqa: E501


def found_on(
    candidate: Box, moves: list[Move], certificate: Certificate = SEARCHED, seed: int | None = None
) -> Counterexample:
    """Return the counterexample that the moves are on a candidate."""
    run = play(candidate, Oracle(candidate.hello().capabilities), moves)
    return counterexample_of("box:make", run, certificate, seed)


def test_a_counterexample_is_printed_with_its_reasons() -> None:
    text = text_of_counterexample(found_on(Stack(), MOVES))
    assert text == OVERTAKEN.format(certificate=SEARCHED)


def test_a_counterexample_says_how_sure_it_is_that_nothing_is_shorter() -> None:
    assert str(SEARCHED) == (
        'Shortest: no run of up to 3 operations in the scope "one channel" breaks it by itself.'
    )
    text = text_of_counterexample(found_on(Stack(), MOVES, SAMPLED))
    assert text.splitlines()[-1] == (
        "  Not certified as shortest: the stage that found it searches nothing."
    )


def test_a_lost_message_is_said_to_be_gone() -> None:
    moves = [*MOVES[:2], MOVES[3], Settle(how="release", message="m0"), MOVES[3]]
    found = found_on(Sieve(), moves, SAMPLED)
    assert text_of_counterexample(found) == GONE
    assert (found.witnesses, found.also) == (("m0",), ("get-finds",))


def test_an_honest_candidate_gives_no_counterexample() -> None:
    assert play(Box(), Oracle(Box().hello().capabilities), MOVES).broken is None


# Words for steps.

EVERY_MOVE: list[tuple[Move, str]] = [
    (Declare(queue="q0", order=Fifo()), "declare q0 fifo"),
    (Declare(queue="q0", order=Priority(3)), "declare q0 priority levels=3"),
    (
        Publish(queue="q0", message=Message(id="m0", priority=9)),
        "publish m0 to q0 priority=9",
    ),
    (
        Consume(channel="ch0", queue="q0", consumer="c0", credit=Credit(2)),
        "consume q0 as c0 on ch0 mode=acknowledge credit=2",
    ),
    (
        Consume(channel="ch0", queue="q0", consumer="c0", mode="browse"),
        "consume q0 as c0 on ch0 mode=browse credit=unlimited",
    ),
    (
        Consume(channel="ch0", queue="q0", consumer="c0", credit=Credit(0)),
        "consume q0 as c0 on ch0 mode=acknowledge credit=0",
    ),
    (Get(channel="ch0", queue="q0", mode="automatic"), "get from q0 on ch0 mode=automatic"),
    (Settle(how="reject", message="m0"), "reject m0"),
    (Cancel(consumer="c0"), "cancel c0"),
    (CloseChannel(channel="ch0"), "close_channel ch0"),
    (Drain(), "drain"),
]


@pytest.mark.parametrize(("move", "text"), EVERY_MOVE, ids=[text for _, text in EVERY_MOVE])
def test_a_move_is_told_in_a_few_words(move: Move, text: str) -> None:
    assert text_of(move) == text


AGAIN = Settle(how="acknowledge", message="m0", again=True)
ENDS: list[Move] = [Settle(how="release", message="m0"), CloseChannel(channel="ch0")]


def told(*moves: Move) -> tuple[Line, ...]:
    """Return the steps that moves are on an honest candidate."""
    candidate = Box()
    run = play(candidate, Oracle(candidate.hello().capabilities), moves)
    return tuple(map(line_of, run.steps))


@pytest.mark.parametrize("end", ENDS)
def test_a_delivery_that_is_settled_once_more_is_named_with_its_end(end: Move) -> None:
    steps = told(*MOVES[:2], MOVES[3], end, AGAIN)
    assert texts_of_moves(steps)[-1] == "acknowledge m0 by d2, which ended in step 4"


def test_a_delivery_whose_end_was_not_recorded_is_not_named() -> None:
    steps = told(*MOVES[:2], MOVES[3], Settle(how="release", message="m0"), AGAIN)
    without = tuple(msgspec.structs.replace(line, events=()) for line in steps)
    assert texts_of_moves(without)[-1] == "acknowledge m0 again, by its old delivery"
    refused_first = (*steps[:3], msgspec.structs.replace(steps[3], error=Error("refused")))
    assert texts_of_moves((*refused_first, steps[4]))[-1].endswith("again, by its old delivery")


def given(message: str, consumer: str | None, *, again: bool = False) -> Delivered:
    """Return a delivery."""
    return Delivered(
        delivery="d0", consumer=consumer, queue="q0", message=message, redelivered=again
    )


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (OK, "nothing"),
        (Answer((given("m0", None),)), "m0 → the get"),
        (
            Answer((given("m0", "c0"), given("m1", "c1", again=True))),
            "m0 → c0, m1 redelivered → c1",
        ),
        (
            Answer((ConsumerClosed(consumer="c0"), QueueDeleted(queue="q0"))),
            "c0 closed, q0 deleted",
        ),
        (refused("no such queue"), "refused: no such queue"),
        (Answer((), Error("timeout")), "timeout"),
        (Answer((given("m0", "c0"),), Error("crashed", "gone")), "m0 → c0, crashed: gone"),
    ],
)
def test_an_answer_is_told_in_a_few_words(answer: Answer, text: str) -> None:
    assert answer_text(GET, answer) == text


def test_ok_is_the_answer_to_what_gets_nothing() -> None:
    assert answer_text(Drain(), OK) == "ok"


@pytest.mark.parametrize(
    "answer",
    [Answer((given("m0\n\x1b[2J", None),)), Answer((given("m0", "c\r0"),)), refused("no\x07\nno")],
)
def test_what_a_candidate_says_cannot_move_the_cursor(answer: Answer) -> None:
    assert answer_text(GET, answer).isprintable()


# Files.


def with_every_move() -> Counterexample:
    """Return a counterexample that holds each kind of move."""
    others: list[Move] = [
        SetCredit(consumer="c0", messages=1),
        Purge(queue="q0"),
        Delete(queue="q0"),
        Crash(),
        Restart(),
    ]
    moves = [*(move for move, _ in EVERY_MOVE), *others]
    found = found_on(Stack(), MOVES, seed=7)
    return msgspec.structs.replace(found, steps=tuple(Line(move, "ok") for move in moves))


@pytest.mark.parametrize("make", [with_every_move, lambda: found_on(Stack(), MOVES, SAMPLED, 7)])
def test_a_counterexample_comes_back_from_its_file_as_it_was(
    make: Callable[[], Counterexample], tmp_path: Path
) -> None:
    found = make()
    path = write(found, tmp_path / "below")
    assert path == tmp_path / "below" / "fifo-order.json"
    assert read(path) == found
    assert path.read_bytes().endswith(b"\n}\n")


def test_the_same_counterexample_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = (
        write(found_on(Stack(), MOVES), tmp_path / name).read_bytes() for name in ("one", "other")
    )
    assert one == other


def test_a_file_that_was_changed_does_not_come_back_as_it_was(tmp_path: Path) -> None:
    found = found_on(Stack(), MOVES)
    path = write(found, tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"m1"', b'"m2"'))
    assert read(path) != found
    path.write_bytes(path.read_bytes().replace(b'"answered"', b'"said"', 1))
    with pytest.raises(UnreadableCounterexample, match=r"field `answered` - at `\$\.steps\[0\]`"):
        read(path)


# The report of a run.


def report_with(*verdicts: Verdict) -> Report:
    """Return a report of one stage with these verdicts."""
    stage = Stage("product", "one channel: 2 pairs [all]", complete=True, operations=9)
    return Report("box:make", "box", "1", 0, verdicts, [stage])


def recorded(report: Report) -> CandidateRecord:
    """Return the record of a report."""
    judgements = tuple(map(judgement, report.verdicts))
    return candidate_record(report, Box().hello().capabilities, judgements)


def shown(report: Report, *, verbose: bool = False, width: int = 120) -> list[str]:
    """Return the lines that a terminal without colours shows."""
    out = StringIO()
    terminal.show(recorded(report), Console(file=out, width=width), verbose=verbose)
    return [line.rstrip() for line in out.getvalue().splitlines()]


BROKEN = found_on(Stack(), MOVES)
VERDICTS = (
    Verdict(catalogue()["nothing-lost"], Outcome.KEPT, 7),
    Verdict(catalogue()["fifo-order"], Outcome.BROKEN, 3, BROKEN.summary, BROKEN),
    Verdict(catalogue()["get-finds"], Outcome.INCONCLUSIVE, 0, "never happened"),
    Verdict(catalogue()["browser-once"], Outcome.NOT_CLAIMED),
)


TABLE = [
    "requirement   level  verdict       exercised  reason",
    "fifo-order    MUST   broken                3  expected m0; seen m1 to the get",
    "get-finds     MUST   inconclusive             never happened",
    "nothing-lost  MUST   kept                  7",
]


@pytest.mark.parametrize(("address", "title"), [("box", "box  (1)"), ("a:box", "a:box  (box 1)")])
def test_a_candidate_that_is_called_like_its_address_is_named_once(
    address: str, title: str
) -> None:
    report = report_with(*VERDICTS)
    report.address = address
    assert shown(report)[0] == title


def test_a_report_shows_verdicts_the_worst_first_then_totals_and_counterexamples() -> None:
    assert shown(report_with(*VERDICTS)) == [
        "box:make  (box 1)",
        *TABLE,
        "1 broken, 1 inconclusive, 1 kept, 1 not claimed; --verbose names what is not claimed",
        "covered: 2 of 3 situations",
        "",
        *OVERTAKEN.format(certificate=SEARCHED).splitlines(),
    ]


def covered_by(*reached: Reach, messages: int = 0) -> str:
    """Return the line on coverage of a report on scopes that were searched so far."""
    report = report_with(*VERDICTS)
    report.reached = {str(number): reach for number, reach in enumerate(reached)}
    report.messages = messages
    coverage = recorded(report).coverage
    assert coverage is not None
    return covered(coverage)


def test_coverage_adds_up_the_scopes() -> None:
    whole, one, two = Reach(whole=True, depth=9), Reach(depth=1), Reach(depth=2)
    assert covered_by(whole, whole, two, one) == (
        "covered: 2 of 3 situations; 4 scopes, 2 of them whole, the others up to 1 operation"
    )
    assert covered_by(two) == "covered: 2 of 3 situations; 1 scope, each up to 2 operations"
    walk = Reach(transitions=1200, transitions_met=3000, chains=7, chains_met=8)
    assert covered_by(walk, walk) == (
        "covered: 2 of 3 situations; 2 scopes; "
        "walks took 2,400 of 6,000 transitions that they met; 14 of 16 chains of two or three steps"
    )
    assert covered_by(whole, messages=1200).endswith("; 1,200 messages in the largest run")


def test_a_longer_report_has_stages_and_what_is_not_claimed() -> None:
    lines = shown(report_with(*VERDICTS), verbose=True)
    assert lines[:8] == [
        "box:make  (box 1)",
        "  product   one channel: 2 pairs [all]",
        *TABLE,
        "not claimed: browser-once",
        "1 broken, 1 inconclusive, 1 kept, 1 not claimed",
    ]


def test_kept_ids_inside_a_queue_share_a_line_and_broken_ones_do_not() -> None:
    inside = [catalogue()[each] for each in ("EL-1", "EL-3", "EL-4")]
    outcomes = (Outcome.KEPT, Outcome.BROKEN, Outcome.KEPT)
    report = report_with(*(Verdict(r, o, 2) for r, o in zip(inside, outcomes, strict=True)))
    rows = [line.split()[:3] for line in shown(report)[2:-2]]
    assert rows == [["EL-3", "MUST", "broken"], ["2", "ids", "inside"]]
    everything = shown(report, verbose=True)
    assert [line.split()[0] for line in everything[3:-2]] == ["EL-3", "EL-1", "EL-4"]


def test_only_a_reason_that_a_trace_follows_is_cut_off() -> None:
    lines = shown(report_with(*VERDICTS), width=60)
    assert lines[2].endswith("…")
    long = replace(VERDICTS[2], reason="never happened " * 3)
    assert "…" not in "".join(shown(report_with(long), width=60))


def test_a_recommendation_that_was_not_followed_is_called_so() -> None:
    advice = catalogue()["browser-once-by-priority"]
    broken = Verdict(advice, Outcome.BROKEN, 1, "shown twice")
    assert counted(recorded(report_with(broken))) == (
        "1 broken (of these only recommended: browser-once-by-priority)"
    )
    binding = replace(broken, requirement=catalogue()["fifo-order"])
    assert counted(recorded(report_with(binding))) == "1 broken"


@pytest.mark.parametrize("words", ["[bold]m0[/bold]", "[/bold]"])
def test_the_words_of_a_candidate_do_not_become_markup(words: str) -> None:
    broken = Verdict(catalogue()["protocol"], Outcome.BROKEN, 1, f"publish raised {words}")
    report = replace(report_with(broken), name=words)
    lines = shown(report)
    assert lines[0] == f"box:make  ({words} 1)"
    assert any(line.endswith(f"publish raised {words}") for line in lines)


def test_a_report_is_written_for_machines_too(tmp_path: Path) -> None:
    record = verdict_file((recorded(report_with(*VERDICTS)),), ExitStatus.BROKEN)
    path = write_report(record, tmp_path)
    content = msgspec.json.decode(path.read_bytes())
    assert (content["format"], content["status"]) == ("brokerproof-verdict/1", 1)
    [candidate] = content["candidates"]
    assert {key: candidate[key] for key in ("candidate", "name", "version", "seed")} == {
        "candidate": "box:make",
        "name": "box",
        "version": "1",
        "seed": 0,
    }
    verdicts = [(each["requirement"], each["verdict"]) for each in candidate["verdicts"]]
    assert verdicts == [(v.requirement.id, v.outcome.value) for v in VERDICTS]
    embedded = msgspec.convert(candidate["verdicts"][1]["counterexample"], Counterexample)
    claims = Box().hello().capabilities
    assert embedded == msgspec.structs.replace(BROKEN, claims=claims)
    assert embedded == read(tmp_path / "counterexamples" / "fifo-order.json")


@pytest.mark.parametrize(
    ("shown", "every_s", "lines"),
    [(True, 0.0, ["one", "two"]), (True, math.inf, ["one"]), (False, 0.0, [])],
)
def test_where_there_is_no_terminal_progress_is_a_line_now_and_then(
    *,
    shown: bool,
    every_s: float,
    lines: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "LINES_S", every_s)
    with terminal.progress_on(shown, "starting") as status:
        for text in ("one", "two"):
            status.update(text)
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_progress_of_a_candidate_stays_in_one_line(width: int) -> None:
    printed = StringIO()
    status = Console(file=printed, width=width).status("starting")
    did = "product: two queues, 7 moves"
    terminal.show_progress(status, {"exec:./a-driver --with options": did, "beside it": "8 moves"})
    status.console.print(status.renderable)
    first, second = printed.getvalue().splitlines()
    assert first.endswith("7 moves") is (width == 200)
    assert "Ctrl-C" in first
    assert second.endswith("beside it: 8 moves")
