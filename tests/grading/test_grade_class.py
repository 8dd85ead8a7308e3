"""A class is graded by a function: typed in, typed out, nothing printed, and a watcher told on the way."""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.domain.errors import SandboxError, UsageError
from grader.domain.score import GradeStatus
from grader.gradebook import Gradebook
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.grade_class import ClassResult, GradeRequest, TakenIn, grade_class
from grader.grading.time_estimate import Workload
from grader.results.class_pages import noted

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RIGHT, WRONG, REFUSED = "400101201", "400101202", "400101203"
CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return {factor} * x
"""


class Told:
    """A watcher that keeps what it is told, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.done: set[str] = set()

    def secret_is_public(self) -> None:
        self.events.append("secret")

    def taken_in(self, taken_in: TakenIn) -> None:
        self.events.append((len(taken_in.uploads.submissions), taken_in.download.source))

    def starting(self) -> None:
        self.events.append("starting")

    @contextlib.contextmanager
    def grading(self, plan: Workload, *, trains: bool) -> Iterator[Watcher]:
        self.events.append((plan.submissions, plan.unchanged, trains))
        yield self._progress
        self.events.append("graded")

    def _progress(self, progress: Progress) -> None:
        if progress.stage is GradingStage.DONE:
            self.done.add(progress.student_id)


def submissions(folder: Path) -> Path:
    for student, factor in ((RIGHT, "2"), (WRONG, "3"), (REFUSED, "(")):
        path = folder / "class" / student / f"{student}_homework.py"
        path.parent.mkdir(parents=True)
        path.write_text(CODE.format(factor=factor), "utf-8")
    return folder / "class"


def graded(request: GradeRequest, watch: Told) -> ClassResult:
    try:
        return grade_class(request, clock=lambda: NOW, watch=watch)
    except SandboxError as error:
        pytest.skip(f"this machine does not isolate enough to grade: {error}")


def test_a_class_is_graded_and_graded_on(
    tmp_path: Path, tiny_course: Path, on_warm_hosts: None, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    request = GradeRequest(submissions(tmp_path), "tiny", out, "ta1", jobs=2, course=tiny_course)
    told = Told()
    first = graded(request, told)
    assert told.events == [(3, "class"), "starting", (3, 0, False), "graded"]
    assert told.done == {RIGHT, WRONG, REFUSED}
    assert {one.score.student_id: one.score.total for one in first.results} == {
        RIGHT: 4, WRONG: 2, REFUSED: None,
    }  # fmt: skip
    assert first.students == first.submissions == dict.fromkeys((RIGHT, WRONG, REFUSED), False)
    assert first.overview.students == 3 and first.results_of_run == list(first.results)
    refused = next(one.score for one in first.results if one.score.student_id == REFUSED)
    assert refused.status is GradeStatus.REFUSED
    for name in ("index.html", "scores.csv", "results.json", f"students/{RIGHT}/report.html"):
        assert (out / name).exists()
    with Gradebook(out) as book:
        note = noted(out)
        assert note is not None and note.state == book.state()
        assert [run.who for run in book.run_records(RIGHT)] == ["ta1"]

    (out / "results.json").unlink()
    again = Told()
    second = graded(GradeRequest(request.path, "tiny", out, "ta2", only=(WRONG,), course=tiny_course), again)
    assert again.events[0] == (3, "class") and (out / "results.json").exists()
    assert second.students == {WRONG: True} and len(second.results) == 3
    assert [one.score.student_id for one in second.results_of_run] == [WRONG]

    with pytest.raises(UsageError, match="there is no submission of that student"):
        graded(GradeRequest(request.path, "tiny", out, "ta1", only=("40010120",), course=tiny_course), Told())
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == "", "commands print, functions do not"
