"""Pages that other processes write are those that would be written here, and none is missing in the end."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.submission_result import Result
from grader.grading.student_page_writers import student_page_writer
from grader.scoring import score

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STUDENTS = [str(400101200 + number) for number in range(9)]


@pytest.fixture
def result(assignment: Assignment) -> Callable[[str], Result]:
    """`result(student_id)`: of a submission that passed its checks."""
    findings = tuple(
        Finding(check.id, check.component, check.title, Status.PASSED) for check in assignment.checks
    )

    def made(student_id: str) -> Result:
        evidence = Evidence(student_id, assignment.id, "digest", NOW, findings=findings)
        return Result(evidence, score(assignment, evidence))

    return made


def written(folder: Path) -> dict[str, bytes]:
    """Name -> content of what lies in a folder of results, without what is only locked."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size
    }


def test_what_processes_write_is_what_is_written_here(
    assignment: Assignment, result: Callable[[str], Result], tmp_path: Path
) -> None:
    for processes in (0, 2):
        with student_page_writer(assignment, tmp_path / str(processes), processes) as writer:
            for student_id in STUDENTS:
                writer.write(result(student_id), {}, NOW)
    here, there = written(tmp_path / "0"), written(tmp_path / "2")
    assert here == there
    assert {f"students/{student_id}/report.html" for student_id in STUDENTS} <= here.keys()


@pytest.mark.parametrize("processes", [0, 1])
def test_a_page_that_cannot_be_written_is_told(
    assignment: Assignment, result: Callable[[str], Result], tmp_path: Path, processes: int
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "students").write_text("a file in the way", encoding="utf-8")
    with (
        pytest.raises(UsageError, match="students"),
        student_page_writer(assignment, tmp_path / "out", processes) as writer,
    ):
        writer.write(result(STUDENTS[0]), {}, NOW)


def test_an_interruption_waits_for_no_page(
    assignment: Assignment, result: Callable[[str], Result], tmp_path: Path
) -> None:
    def interrupted() -> None:
        with student_page_writer(assignment, tmp_path, 1) as writer:
            writer.write(result(STUDENTS[0]), {}, NOW)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


HOLD = """
import os, time
from pathlib import Path
from grader.grading.student_page_writers import student_page_writer
with student_page_writer(None, Path("."), 1) as writer:
    print(writer._pool.submit(os.getpid).result(), flush=True)
    time.sleep(300)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="only POSIX kills without a word")
def test_no_process_outlives_a_run_that_is_killed() -> None:
    run = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        writing = psutil.Process(int(run.stdout.readline()))
    finally:
        run.kill()
        run.communicate()
    _, alive = psutil.wait_procs([writing], timeout=20)
    assert not alive
