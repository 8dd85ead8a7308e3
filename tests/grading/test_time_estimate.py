"""How long a class will take is told before it begins, from what was measured."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader import __version__
from grader.domain.assignment import Assignment
from grader.domain.evidence import Attestation, Evidence, Training, TrainingOutcome
from grader.domain.submission import Submission
from grader.domain.submission_result import StageTime
from grader.gradebook import Gradebook
from grader.grading import examiner
from grader.grading.class_run import graded
from grader.grading.concurrent_work import UNCHANGED, GradingStage, Progress
from grader.grading.examiner import OnThisMachine
from grader.grading.progress_board import Board, workload_sentence
from grader.grading.run import EvidenceBuilder, Run
from grader.grading.time_estimate import Rates, StageRate, Workload, kind_of_work, planned
from tests.graded_results import nothing_drawn

NOW = datetime(2026, 2, 1, tzinfo=UTC)
READING, CHECKS = StageRate(0.5, 40), StageRate(3.5, 40)
RATES = {"reading": READING, "checks": CHECKS}


def test_rates_are_kept_for_each_kind_of_work(tmp_path: Path) -> None:
    rates = Rates(tmp_path / "cache")
    assert rates.stored("vit_defects", "checks") == {}
    rates.keep("vit_defects", "checks", [StageTime("checks", 40, 140.0, 3.0, 9.0, 1.0)])
    training = kind_of_work("cpu", 1260)
    rates.keep("vit_defects", training, [StageTime("training", 3, 90.0, 30.0, 31.0, 1.0)])
    rates.keep("vit_defects", "checks", [])  # nothing was examined
    again = Rates(tmp_path / "cache")
    assert again.stored("vit_defects", kind_of_work("cpu", None)) == {"checks": CHECKS}
    assert again.stored("vit_defects", training) == {"training": StageRate(30.0, 3)}
    for other in (kind_of_work("cpu", 42), kind_of_work("cuda", 1260)):
        assert again.stored("vit_defects", other) == {}
    assert again.stored("another", "checks") == {}


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"vit_defects, checks": 3}', '{"vit_defects, checks": {"a": {}}}']
)
def test_rates_that_cannot_be_read_are_done_without(tmp_path: Path, content: str) -> None:
    (tmp_path / "rates.json").write_text(content, encoding="utf-8")
    rates = Rates(tmp_path)
    assert rates.stored("vit_defects", "checks") == {}
    rates.keep("vit_defects", "checks", [StageTime("checks", 40, 140.0, 3.0, 9.0, 1.0)])
    assert rates.stored("vit_defects", "checks") == {"checks": CHECKS}


class Split:
    """The images of a run, as far as it matters here."""

    def digest(self, attempt: int) -> str:
        return f"images {attempt}"

    def are_those_of(self, found: Evidence) -> bool:
        return found.attempt is not None and found.data_digest == self.digest(found.attempt)


def run_of(assignment: Assignment, *, trains: bool) -> Run:
    return cast(
        Run,
        SimpleNamespace(
            assignment=assignment,
            splits=Split() if trains else None,
            draw=nothing_drawn,
        ),
    )


def earlier_runs(assignment: Assignment) -> Iterator[tuple[Submission, Evidence]]:
    """Submissions of all kinds, and what the book has of each."""
    strict = Attestation("strict", {"seccomp": "2"})
    stopped = Training(TrainingOutcome.BUDGET, projected_seconds=10.0)
    trained = {"attempt": 1, "data_digest": "images 1"}
    kinds: tuple[dict[str, Any], ...] = (
        {"data_digest": ""},
        trained,
        {"attempt": 1, "data_digest": "other images"},
        {"submission_digest": "an older one", **trained},
        {"engine": "0.0", **trained},
        {"status": "engine_error", **trained},
        {"status": "refused", **trained},
        {"partial": True, **trained},
        {"attestation": Attestation("unofficial", {}), **trained},
        {"training": stopped, **trained},
    )
    for number, found in enumerate(kinds):
        student_id, digest = f"4001012{number:02}", f"digest {number}"
        evidence = Evidence(
            student_id, assignment.id, digest, NOW, engine=__version__, assignment_digest=assignment.digest
        )
        made = replace(evidence, attestation=strict)
        yield Submission(student_id, assignment.id, (), digest), replace(made, **found)


@pytest.mark.parametrize(("trains", "unchanged"), [(False, 6), (True, 3)])
def test_the_plan_is_what_is_done(
    assignment: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trains: bool, unchanged: int
) -> None:
    """Whatever is in the book: checks alone, other images, refused, unofficial, a training that waits."""
    longer = replace(assignment, limits=replace(assignment.limits, queued_training_seconds=10_000))
    submissions, done = [], set()
    with Gradebook(tmp_path, assignment_id=assignment.id) as book:
        for submission, evidence in earlier_runs(longer):
            submissions.append(submission)
            book.record(evidence, {})
        # two who hand in together, whom the book knows, and two of whom it knows nobody
        for digest, pair in (("pair", ("400101301", "400101302")), ("new", ("400101303", "400101304"))):
            for student_id in pair:
                submissions.append(Submission(student_id, longer.id, (), digest, team=pair))
                if digest == "pair":
                    trained = dict(list(earlier_runs(longer)))[submissions[1]]
                    book.record(replace(trained, student_id=student_id, submission_digest=digest), {})

        def examine(_: Run, submission: Submission, *more: Any, **given: Any) -> EvidenceBuilder:
            done.add(submission.student_id)
            given["watch"](Progress(submission.student_id, GradingStage.DONE, 1.0))
            found = Evidence(submission.student_id, longer.id, submission.digest, NOW, status="refused")
            return EvidenceBuilder(found)

        monkeypatch.setattr(examiner, "examined", examine)
        monkeypatch.setattr(examiner, "examined_longer", examine)
        run = run_of(longer, trains=trains)
        plan = planned(run, book, submissions, RATES, jobs=2, earlier=book.latest_facts())
        board = Board(plan, trains=trains)
        assert (plan.submissions, plan.unchanged) == (12 - unchanged, unchanged)
        graded(
            OnThisMachine(run), submissions, tmp_path, jobs=1, clock=lambda: NOW, watch=board.note, book=book
        )
        assert len(done) == plan.submissions
        assert f"12 of 12 done, {plan.unchanged} of them unchanged" in board.overall()[0]
        forced = planned(run, book, submissions, RATES, jobs=2, earlier={})
        assert (forced.submissions, forced.unchanged) == (12, 0)
        assert forced.seconds == 6 * 4.0, "rounds of two at once"


def test_the_plan_is_told_in_a_sentence() -> None:
    told = workload_sentence(Workload(120, 3, 2, RATES)).replace("\xa0", " ").replace("\u202f", " ")
    assert told == (
        "120 submissions to grade, 3 unchanged; 2 at once; about 4 min 00 s: reading 0.5 s, checks 3.5 s "
        "on average, as 40 submissions took on this machine."
    )
    assert "nothing like it has been graded on this machine yet" in workload_sentence(Workload(120, 0, 2, {}))
    assert workload_sentence(Workload(0, 3, 2, RATES)).endswith("2 at once.")


def test_the_board_tells_the_time_left_by_the_plan_then_by_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    board = Board(Workload(4, 1, 2, RATES), trains=False)
    assert board.overall() == ("0 of 5 done", 0.0, "0 s, about 8 s left")
    board.note(Progress("a", GradingStage.DONE, 1.0, UNCHANGED))
    board.note(Progress("b", GradingStage.CHECKS, 0.5))
    now = 4.0
    assert board.overall()[2] == "4 s, about 24 s left", "9 of 16 parts of one of four"
    board.note(Progress("b", GradingStage.DONE, 1.0))
    assert board.overall()[:2] == ("2 of 5 done, 1 of them unchanged", 0.25)
    for student in "cde":
        board.note(Progress(student, GradingStage.DONE, 1.0))
    assert board.overall() == ("5 of 5 done, 1 of them unchanged", 1.0, "4 s")
    board.note(Progress("c", GradingStage.TRAINING, 0.5))  # it gets more time
    assert board.overall()[0].startswith("4 of 5 done")


def test_without_rates_the_board_estimates_once_it_can() -> None:
    board = Board(Workload(4, 0, 2, {}), trains=True)
    assert board.overall()[2].endswith("estimating")
