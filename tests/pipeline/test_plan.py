"""How long a class will take is told before it begins, from what was measured."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader import __version__
from grader.cli.live import Board, plan_sentence
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.submission import Submission
from grader.gradebook import Gradebook
from grader.pipeline.plan import Plan, Rates, StageRate, kind_of_work, planned
from grader.pipeline.progress import UNCHANGED, Progress, Stage
from grader.reporting.class_time import StageTime

READING, CHECKS = StageRate(0.5, 40), StageRate(3.5, 40)
RATES = {"reading": READING, "checks": CHECKS}


def test_rates_are_kept_for_each_kind_of_work(tmp_path: Path) -> None:
    rates = Rates(tmp_path / "cache")
    assert rates.known("vit_defects", "checks") == {}
    rates.keep("vit_defects", "checks", [StageTime("checks", 40, 140.0, 3.0, 9.0, 1.0)])
    training = kind_of_work("cpu", 1260)
    rates.keep("vit_defects", training, [StageTime("training", 3, 90.0, 30.0, 31.0, 1.0)])
    rates.keep("vit_defects", "checks", [])  # nothing was examined
    again = Rates(tmp_path / "cache")
    assert again.known("vit_defects", kind_of_work("cpu", None)) == {"checks": CHECKS}
    assert again.known("vit_defects", training) == {"training": StageRate(30.0, 3)}
    for other in (kind_of_work("cpu", 42), kind_of_work("cuda", 1260)):
        assert again.known("vit_defects", other) == {}
    assert again.known("another", "checks") == {}


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"vit_defects, checks": 3}', '{"vit_defects, checks": {"a": {}}}']
)
def test_rates_that_cannot_be_read_are_done_without(tmp_path: Path, content: str) -> None:
    (tmp_path / "rates.json").write_text(content, encoding="utf-8")
    rates = Rates(tmp_path)
    assert rates.known("vit_defects", "checks") == {}
    rates.keep("vit_defects", "checks", [StageTime("checks", 40, 140.0, 3.0, 9.0, 1.0)])
    assert rates.known("vit_defects", "checks") == {"checks": CHECKS}


def test_what_nothing_has_changed_about_is_not_planned(assignment: Assignment, tmp_path: Path) -> None:
    now = datetime(2026, 2, 1, tzinfo=UTC)
    submissions = [Submission(f"40010120{n}", assignment.id, (), f"digest {n}") for n in range(4)]
    same = Evidence(
        "400101200", assignment.id, "digest 0", now, engine=__version__, assignment_digest=assignment.digest
    )
    with Gradebook(tmp_path, assignment_id=assignment.id) as book:
        assert planned(assignment, book, submissions, {}, jobs=2, force=False).submissions == 4
        book.record(same, {})
        book.record(replace(same, student_id="400101201", submission_digest="an older one"), {})
        book.record(replace(same, student_id="400101202", engine="0.0"), {})
        plan = planned(assignment, book, submissions, RATES, jobs=2, force=False)
        assert (plan.submissions, plan.unchanged) == (3, 1)
        assert plan.seconds == 2 * 4.0, "two rounds of two at once"
        forced = planned(assignment, book, submissions, RATES, jobs=2, force=True)
        assert (forced.submissions, forced.unchanged) == (4, 0)


def test_the_plan_is_told_in_a_sentence() -> None:
    told = plan_sentence(Plan(120, 3, 2, RATES)).replace("\xa0", " ").replace("\u202f", " ")
    assert told == (
        "120 submissions to grade, 3 unchanged; 2 at once; about 4 min 00 s: reading 0.5 s, checks 3.5 s "
        "on average, as 40 submissions took on this machine."
    )
    assert "nothing like it was graded on this machine yet" in plan_sentence(Plan(120, 0, 2, {}))
    assert plan_sentence(Plan(0, 3, 2, RATES)).endswith("2 at once.")


def test_the_board_tells_the_time_left_by_the_plan_then_by_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    board = Board(Plan(4, 1, 2, RATES), trains=False)
    assert board.overall() == ("0 of 5 done", 0.0, "0 s, about 8 s left")
    board.note(Progress("a", Stage.DONE, 1.0, UNCHANGED))
    board.note(Progress("b", Stage.CHECKS, 0.5))
    now = 4.0
    assert board.overall()[2] == "4 s, about 24 s left", "9 of 16 parts of one of four"
    board.note(Progress("b", Stage.DONE, 1.0))
    assert board.overall()[:2] == ("2 of 5 done, 1 of them unchanged", 0.25)
    for student in "cde":
        board.note(Progress(student, Stage.DONE, 1.0))
    assert board.overall() == ("5 of 5 done, 1 of them unchanged", 1.0, "4 s")
    board.note(Progress("c", Stage.TRAINING, 0.5))  # it gets more time
    assert board.overall()[0].startswith("4 of 5 done")


def test_without_rates_the_board_estimates_once_it_can() -> None:
    board = Board(Plan(4, 0, 2, {}), trains=True)
    assert board.overall()[2].endswith("estimating")
