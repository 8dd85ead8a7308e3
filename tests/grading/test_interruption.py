"""A run that is killed: what is there afterwards is whole, and is not more than what was finished."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.gradebook import Gradebook
from grader.reports.results_json.results_schema import ResultsDocument
from grader.results.revision import revised
from tests.warm_python import Start

# grades two submissions, and is killed (as by a power cut) at the n-th step that makes something durable
RUN = """
import os, signal, sys, threading
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock
from grader.course.assignment_file import read_assignment
from grader.domain.evidence import Attestation, Evidence, Finding, Status
from grader.domain.submission import Submission
from grader.results import class_files
from grader.gradebook import Gradebook
from grader.grading import class_run, examiner
from grader.grading.examiner import OnThisMachine
from grader.grading.submission_draws import SubmissionDraws
from grader.grading.run import EvidenceBuilder
from sqlalchemy import Engine, event

course, out, fatal = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
assignment = read_assignment(course / "reference" / "tiny")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
steps = 0

def stepping(call):
    def stepped(*arguments):
        global steps
        steps += 1
        if steps == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)
    return stepped

def examined(run, submission, **more):
    findings = tuple(
        Finding(s.id, s.component, s.title, Status.PASSED) for s in assignment.checks
    )
    evidence = Evidence(submission.student_id, "tiny", submission.digest, NOW, findings=findings)
    return EvidenceBuilder(evidence, {"figure-0.png": b"x" * 100})

class Run:
    pass

run = Run()
run.assignment, run.splits = assignment, None
run.draw = lambda _: SubmissionDraws({}, 0, '', {})
os.fsync, os.replace = stepping(os.fsync), stepping(os.replace)
event.listen(Engine, "commit", stepping(lambda connection: None))
event.listen(Engine, "before_cursor_execute", stepping(lambda *statement: None))
with mock.patch.object(examiner, "examined", examined):
    submissions = [Submission(name, "tiny", (), "0") for name in ("400101204", "400101205")]
    with Gradebook(out, assignment_id=assignment.id) as book:
        results = class_run.graded(
            OnThisMachine(run), submissions, out, jobs=1, clock=lambda: NOW, book=book, watch=lambda p: None
        )
class_files.write_class(assignment, results, out, NOW)
print(steps)
"""


@pytest.fixture
def run(tiny_course: Path, start_script: Start) -> Callable[[Path, int], tuple[int, str]]:
    """Grade two submissions and be killed at the step: (exit code, what it printed)."""

    def ran(out: Path, fatal: int) -> tuple[int, str]:
        script = start_script(RUN, tiny_course, out, fatal)
        told = script.rest()
        return script.ended(), told or script.complaint()

    return ran


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="only POSIX kills in the middle of a step")
def test_nothing_half_written_is_believed(
    tiny_course: Path, tmp_path: Path, run: Callable[[Path, int], tuple[int, str]]
) -> None:
    """Killed at any step: evidence is whole or absent, results come last, regrading goes on from there."""
    code, told = run(tmp_path / "whole", 0)
    assert code == 0, told
    assignment = read_assignment(tiny_course / "reference" / "tiny")
    steps = int(told)
    assert steps > 60
    seen = set()
    for fatal in sorted({*range(1, steps, 9), steps - 1, steps}):  # each in a folder of its own
        out = tmp_path / str(fatal)
        assert run(out, fatal)[0] == -signal.SIGKILL
        gradebook = Gradebook(out, assignment_id="tiny")
        students = gradebook.students()
        seen.add(len(students))
        for student in students:
            assert len(gradebook.evidence(student).findings) == len(assignment.checks)
            assert gradebook.images(student) == {"figure-0.png": b"x" * 100}
        results = out / "results.json"
        if results.exists():
            document = ResultsDocument.model_validate_json(results.read_text("utf-8"))
            assert len(document.submissions) == len(students) == 2
            for name in ("index.html", "scores.csv"):
                assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        if students:
            when = gradebook.evidence(students[0]).graded_at
            revision = revised(
                assignment, gradebook, out, who="ta1", cause="regrade", clock=lambda when=when: when
            )
            assert len(revision.results) == len(students) and revision.changes == ()
            assert len(json.loads(results.read_text("utf-8"))["submissions"]) == len(students)
    assert seen == {0, 1, 2}


@pytest.mark.slow
def test_a_second_run_replaces_results_only_when_it_is_done(
    tmp_path: Path, run: Callable[[Path, int], tuple[int, str]]
) -> None:
    """The results of an earlier run stay as they were until the later one is whole."""
    out = tmp_path / "out"
    assert run(tmp_path / "whole", 0)[0] == run(out, 0)[0] == 0
    before = (out / "results.json").read_bytes()
    code, steps = run(tmp_path / "whole", 0)
    assert code == 0
    late = int(steps) * 9 // 10  # the first student's run is recorded, and the results are not written
    assert run(out, late)[0] != 0
    assert (out / "results.json").read_bytes() == before
    assert run(out, 0)[0] == 0
    with Gradebook(out) as book:
        assert book.runs("400101204") == (1, 2, 3)
    assert (out / "results.json").read_bytes() == before
