"""The list of slow tests: how it is made of a report, and that it names tests that are there."""

from __future__ import annotations

from pathlib import Path

from tests.slow import measured, name_of, slow, slowest, unknown


def test_each_name_is_that_of_a_test() -> None:
    assert not list(unknown(slow())), "measure anew: python -m tests.slow REPORT"


def test_a_test_or_a_file_that_is_not_there_is_found() -> None:
    wrong = ["tests/house/test_slow.py::test_no_such" + "_thing", "tests/house/test_gone.py"]
    assert list(unknown([*wrong, "tests/house/test_slow.py"])) == wrong


def test_cases_and_classes_of_tests_count_together(tmp_path: Path) -> None:
    cases = [("a", "test_x[1]", 2), ("a", "test_x[q[0].b]", 3), ("a.TestM", "run", 4)]
    text = "".join(f'<testcase classname="{c}" name="{n}" time="{t}"/>' for c, n, t in cases)
    (tmp_path / "report.xml").write_text(f"<all>{text}</all>", encoding="utf-8")
    (tmp_path / "other.xml").write_text(f"<all>{text.replace('3', '0')}</all>", encoding="utf-8")
    both = tmp_path / "report.xml", tmp_path / "other.xml"
    assert measured(both) == {"a.py::test_x": 5, "a.py::TestM": 4}
    assert name_of("a.py::TestM::run") == "a.py::TestM"


def test_the_slowest_are_chosen_until_the_others_take_little() -> None:
    seconds = {"a.py::long": 90.0, "a.py::short": 0.9, "a.py::brief": 0.1, "b.py::long": 9.0}
    assert set(slowest(seconds)) == {"a.py::long", "b.py"}
