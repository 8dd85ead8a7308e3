"""A run that is killed goes on where it was, and ends as if nothing had happened."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader import __version__
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment
from grader.domain.evidence import Attestation, Evidence, Finding, Status
from grader.domain.submission import Delivery, Submission
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook, records
from grader.grading import examiner
from grader.grading.class_run import graded
from grader.grading.examiner import OnThisMachine
from grader.grading.run import EvidenceBuilder, Run
from grader.grading.time_estimate import planned
from grader.results.current_state import recorded_uploads
from tests.graded_results import nothing_drawn
from tests.warm_python import Start

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STRICT = Attestation("strict")
KILLS = 20

# grades twelve submissions, each of which takes some time, and writes the class at the end
RUN = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from grader import __version__
from grader.course.assignment_file import read_assignment
from grader.domain.evidence import Attestation, Evidence, Finding, Status
from grader.domain.submission import Submission
from grader.results import class_files
from grader.gradebook import Gradebook
from grader.grading import class_run, examiner
from grader.grading.examiner import OnThisMachine
from grader.grading.run import EvidenceBuilder

course, out = Path(sys.argv[1]), Path(sys.argv[2])
assignment = read_assignment(course / "reference" / "tiny")
NOW = datetime(2026, 1, 2, tzinfo=UTC)

def examined(run, submission, **more):
    time.sleep(0.04)
    passed = int(submission.student_id) % 2
    findings = tuple(
        Finding(s.id, s.component, s.title, Status.PASSED if passed else Status.SKIPPED)
        for s in assignment.checks
    )
    print("examined", submission.student_id, flush=True)
    evidence = Evidence(
        submission.student_id, "tiny", submission.digest, NOW, findings=findings, engine=__version__,
        assignment_digest=assignment.digest, attestation=Attestation("strict"),
    )
    return EvidenceBuilder(evidence, {"figure-0.png": submission.student_id.encode() * 100})

run = SimpleNamespace(assignment=assignment, splits=None, draw=lambda _: SimpleNamespace(values={}))
submissions = [Submission(str(400101200 + n), "tiny", (), "digest") for n in range(12)]
print("ready", flush=True)
with mock.patch.object(examiner, "examined", examined):
    with Gradebook(out, assignment_id=assignment.id) as book:
        results = class_run.graded(
            OnThisMachine(run), submissions, out, jobs=2, clock=lambda: NOW, book=book, watch=lambda p: None
        )
class_files.write_class(assignment, results, out, NOW)
print("finished", flush=True)
"""


def written(out: Path) -> dict[str, bytes]:
    """What people read."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.suffix in (".html", ".json", ".csv")
    }


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="only POSIX kills in the middle of a step")
def test_a_run_that_is_killed_at_any_moment_ends_like_one_that_is_not(
    tiny_course: Path, tmp_path: Path, start_script: Start
) -> None:
    """Killed after random times until it comes through, at most twenty times."""
    moments = random.Random(5)
    whole = start_script(RUN, tiny_course, tmp_path / "whole")
    assert whole.rest().split()[-1] == "finished"
    out, examined, kills = tmp_path / "killed", [], 0
    while kills < KILLS:
        script = start_script(RUN, tiny_course, out)
        assert script.said.readline() == "ready\n"
        time.sleep(moments.uniform(0, 0.12))
        script.kill()
        told = script.rest().split()
        script.close()
        examined += told[1::2]
        kills += 1
        if told and told[-1] == "finished":
            break
    told = start_script(RUN, tiny_course, out).rest().split()
    assert told[-1] == "finished"
    assert written(out) == written(tmp_path / "whole")
    with Gradebook(out) as book:
        runs = {student: len(book.runs(student)) for student in book.students()}
    assert set(runs.values()) == {1}, "nothing is graded twice"
    # what was under way, at most two at a time, is done again, and nothing else
    assert len(examined) + len(told[:-1]) // 2 <= 12 + 2 * kills


# --- what is done again -----------------------------------------------------------------------------------


@pytest.fixture
def tiny(tiny_course: Path) -> Assignment:
    """A small assignment."""
    return read_assignment(tiny_course / "reference" / "tiny")


class OneSplit:
    """The splits of some images, as far as it matters here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def digest(self, attempt: int) -> str:
        """Of the images and the attempt's split."""
        return f"{self._name} {attempt}"

    def are_those_of(self, found: Evidence) -> bool:
        """As `HiddenSplits` says it."""
        return found.data_digest == self.digest(found.attempt or 0)


@pytest.fixture
def grade(tiny: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Grade one submission; the result, and how often it was examined."""
    examined: list[str] = []

    def examine(run: Any, submission: Submission, **more: Any) -> EvidenceBuilder:
        examined.append(submission.digest)
        findings = tuple(Finding(s.id, s.component, s.title, Status.PASSED) for s in run.assignment.checks)
        evidence = Evidence(
            submission.student_id,
            run.assignment.id,
            submission.digest,
            NOW,
            received_at=submission.received_at,
            delivery=submission.delivery,
            partial=submission.partial,
            findings=findings,
            engine=__version__,
            assignment_digest=run.assignment.digest,
            attempt=more["attempt"] if run.splits else None,
            data_digest=run.splits.digest(more["attempt"]) if run.splits else "",
            attestation=STRICT,
        )
        return EvidenceBuilder(replace(evidence, **more_evidence))

    more_evidence: dict[str, Any] = {}
    monkeypatch.setattr(examiner, "examined", examine)

    def once(
        submission: Submission = Submission("400101204", "tiny", (), "one"),  # noqa: B008
        *,
        assignment: Assignment = tiny,
        data: str = "",
        force: bool = False,
        found: dict[str, Any] | None = None,
    ) -> tuple[Result, int]:
        more_evidence.clear()
        more_evidence.update(found or {})
        splits = OneSplit(data) if data else None
        run = cast(
            Run,
            SimpleNamespace(assignment=assignment, splits=splits, draw=nothing_drawn),
        )
        with Gradebook(tmp_path, assignment_id=assignment.id) as book:
            results = graded(
                OnThisMachine(run),
                [submission],
                tmp_path,
                jobs=1,
                clock=lambda: NOW,
                book=book,
                watch=lambda told: None,
                earlier={} if force else None,
            )
        return results[0], len(examined)

    return once


def test_what_nothing_has_changed_about_is_not_done_again(grade: Callable[..., Any], tmp_path: Path) -> None:
    """And its result is the same; a report that is gone is written again."""
    first, count = grade()
    report = tmp_path / "students" / "400101204" / "report.html"
    report.unlink()
    second, again = grade()
    assert (count, again) == (1, 1)
    assert (second.evidence, second.score) == (first.evidence, first.score)
    assert (first.examined_before, second.examined_before) == (False, True)
    assert report.exists()
    with Gradebook(tmp_path) as book:
        assert book.runs("400101204") == (1,)


def test_what_is_new_is_at_work_before_any_evidence_is_read(
    tiny: Assignment, grade: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large class would otherwise wait for minutes before its machines have anything to do."""
    known, new = Submission("400101204", "tiny", (), "one"), Submission("400101205", "tiny", (), "two")
    first, _ = grade(known)
    events: list[str] = []
    read, found = records.evidence_from, examiner.examined
    monkeypatch.setattr(records, "evidence_from", lambda text: (events.append("read"), read(text))[1])
    monkeypatch.setattr(
        examiner,
        "examined",
        lambda run, submission, **more: (
            events.append(submission.student_id),
            found(run, submission, **more),
        )[1],
    )
    run = cast(Run, SimpleNamespace(assignment=tiny, splits=None, draw=nothing_drawn))
    with Gradebook(tmp_path, assignment_id="tiny") as book:
        assert [upload.row for upload in recorded_uploads(book)] == [known.student_id]
        workload = planned(run, book, [known, new], {}, jobs=1, earlier=book.latest_facts())
        results = graded(
            OnThisMachine(run),
            [known, new],
            tmp_path,
            jobs=1,
            clock=lambda: NOW,
            book=book,
            watch=lambda told: None,
        )
    assert (workload.submissions, workload.unchanged) == (1, 1)
    assert events[0] == new.student_id and "read" in events and known.student_id not in events
    assert results[0].evidence == first.evidence


@pytest.mark.parametrize(
    "change",
    [
        {"force": True},
        {"submission": Submission("400101204", "tiny", (), "two")},
        {"submission": Submission("400101204", "tiny", (), "one", partial=True)},
        {"data": "other"},
    ],
    ids=str,
)
def test_a_change_is_a_reason_to_do_it_again(grade: Callable[..., Any], change: dict[str, Any]) -> None:
    """Of the submission, the way in which it was given, or the images."""
    grade(data="some")
    submission = change.pop("submission", None)
    arguments = {"data": "some", **change}
    assert grade(*([submission] if submission else []), **arguments)[1] == 2


def test_another_assignment_or_engine_is_a_reason(
    grade: Callable[..., Any], tiny: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their digest and version."""
    grade()
    assert grade(assignment=replace(tiny, digest="other"))[1] == 2
    monkeypatch.setattr("grader.grading.submission_run.__version__", "99")
    assert grade(assignment=replace(tiny, digest="other"))[1] == 3


@pytest.mark.parametrize(
    "found",
    [{"status": "engine_error", "reason": "Ours."}, {"attestation": Attestation("unofficial")}],
    ids=["ours", "unofficial"],
)
def test_our_own_failures_are_done_again(grade: Callable[..., Any], found: dict[str, Any]) -> None:
    """Also what was graded with too little isolation."""
    grade(found=found)
    assert grade()[1] == 2


def test_checks_alone_leave_a_known_training_as_it_is(grade: Callable[..., Any]) -> None:
    """`--no-train` after a training changes nothing."""
    grade(data="some")
    assert grade()[1] == 1


def test_another_time_or_deadline_is_recorded_without_running_anything(
    grade: Callable[..., Any], tmp_path: Path
) -> None:
    """An extension that comes later counts."""
    grade()
    extended = Delivery(extension=datetime(2026, 3, 1, tzinfo=UTC))
    later = Submission("400101204", "tiny", (), "one", delivery=extended)
    result, count = grade(later)
    assert count == 1 and result.examined_before and result.evidence.delivery == extended
    with Gradebook(tmp_path) as book:
        assert book.runs("400101204") == (1, 2)
    assert grade(later)[0].evidence == result.evidence


def test_an_interruption_records_nothing_of_what_was_under_way(
    tiny: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails because the run ends is not a failure of the submission."""

    def examine(run: Any, submission: Submission, **more: Any) -> EvidenceBuilder:
        if submission.student_id == "1":
            raise KeyboardInterrupt
        time.sleep(0.3)  # the hosts are gone by now
        return EvidenceBuilder(Evidence(submission.student_id, "tiny", "", NOW, status="engine_error"))

    monkeypatch.setattr(examiner, "examined", examine)
    run = cast(Run, SimpleNamespace(assignment=tiny, splits=None, draw=nothing_drawn))
    submissions = [Submission(name, "tiny", (), "") for name in ("1", "2")]
    with pytest.raises(KeyboardInterrupt), Gradebook(tmp_path, assignment_id=tiny.id) as book:
        graded(
            OnThisMachine(run),
            submissions,
            tmp_path,
            jobs=2,
            clock=lambda: NOW,
            book=book,
            watch=lambda told: None,
        )
    time.sleep(0.6)
    with Gradebook(tmp_path, assignment_id="tiny") as book:
        assert book.students() == ()


# --- teams ------------------------------------------------------------------------------------------------


@pytest.fixture
def grade_team(
    tiny: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[dict[str, Result], list[str]]]:
    """Grade a team and somebody alone; the results by student, and who was examined so far."""
    examined: list[str] = []

    def examine(run: Any, submission: Submission, **more: Any) -> EvidenceBuilder:
        examined.append(submission.student_id)
        findings = tuple(Finding(s.id, s.component, s.title, Status.PASSED) for s in run.assignment.checks)
        evidence = Evidence(
            submission.student_id,
            "tiny",
            submission.digest,
            NOW,
            received_at=submission.received_at,
            delivery=submission.delivery,
            findings=findings,
            engine=__version__,
            assignment_digest=run.assignment.digest,
            attestation=STRICT,
        )
        return EvidenceBuilder(evidence, {"figure-0.png": b"drawn"})

    monkeypatch.setattr(examiner, "examined", examine)

    def once(
        students: tuple[str, ...] = ("1", "2", "3"), **given: Any
    ) -> tuple[dict[str, Result], list[str]]:
        due = Delivery(extension=NOW)
        team = [
            Submission(one, "tiny", (), "pair", delivery=due if one == "2" else Delivery(), team=("1", "2"))
            for one in ("1", "2")
        ]
        chosen = [one for one in (*team, Submission("3", "tiny", (), "own")) if one.student_id in students]
        run = cast(Run, SimpleNamespace(assignment=tiny, splits=None, draw=nothing_drawn))
        clock, watch = (lambda: NOW), (lambda told: None)
        with Gradebook(tmp_path, assignment_id=tiny.id) as book:
            results = graded(
                OnThisMachine(run), chosen, tmp_path, jobs=2, clock=clock, book=book, watch=watch, **given
            )
        assert [one.evidence.student_id for one in results] == [one.student_id for one in chosen]
        return {one.evidence.student_id: one for one in results}, examined

    return once


def test_a_team_is_examined_once_and_each_has_a_result(
    grade_team: Callable[..., Any], tmp_path: Path
) -> None:
    """With a report, the images and the own deadline of each; and nothing is done again."""
    results, examined = grade_team()
    assert sorted(examined) == ["1", "3"]
    assert results["2"].score.total == results["1"].score.total
    assert results["2"].evidence.findings == results["1"].evidence.findings
    assert (results["1"].evidence.delivery.extension, results["2"].evidence.delivery.extension) == (None, NOW)
    report = (tmp_path / "students/2/report.html").read_text("utf-8")
    assert "Student <b>2</b>" in report
    with Gradebook(tmp_path) as book:
        assert book.images("2") == {"figure-0.png": b"drawn"}
    again, examined = grade_team()
    assert sorted(examined) == ["1", "3"] and all(one.examined_before for one in again.values())


def test_a_member_who_is_new_gets_what_is_known_of_the_others(grade_team: Callable[..., Any]) -> None:
    grade_team(("1", "3"))
    results, examined = grade_team()
    assert sorted(examined) == ["1", "3"]
    assert (results["1"].examined_before, results["2"].examined_before) == (True, False)
    assert results["2"].score.total == results["1"].score.total


def test_of_a_team_one_member_can_be_asked_for(grade_team: Callable[..., Any]) -> None:
    assert grade_team(("2",))[1] == ["2"]


def test_a_team_that_is_examined_again_is_so_for_all(grade_team: Callable[..., Any], tmp_path: Path) -> None:
    grade_team()
    results, examined = grade_team(earlier={})
    assert len(examined) == 4 and not any(one.examined_before for one in results.values())
    with Gradebook(tmp_path) as book:
        assert book.runs("1") == book.runs("2") == (1, 2)
