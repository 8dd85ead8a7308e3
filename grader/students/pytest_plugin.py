"""The pytest plugin for a student's folder, where bare `pytest` runs the public checks on `homework.py`.

`pytest --submission homework.ipynb` runs it on another file. A failure is shown as a sentence, a hint and a
place, not as a traceback of the check. Outside such a folder (`assignment.toml` beside public checks) it
does nothing. It is loaded in every run of pytest, so it imports nothing slow until a check needs it.
"""

import zlib
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grader.domain.assignment import CHECK_MARKERS, SUBMISSION
from grader.files.known_folders import ASSIGNMENT_FILE, PUBLIC_CHECKS, is_complete

if TYPE_CHECKING:
    from grader.domain.assignment import Assignment, CheckSpec
    from grader.domain.assignment_versions import StudentValues
    from grader.domain.evidence import Finding
    from grader.judge.student import Student
    from grader.students.own_machine import OwnWorkers


# --- hooks ------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--submission`."""
    group = parser.getgroup("grader", "checks of a homework (vit-grader)")
    group.addoption(
        "--submission",
        dest="grader_submission",
        metavar="FILE",
        help="the homework that the public checks are run on; homework.py beside them by default",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Find the file that `--submission` names."""
    option = config.getoption("grader_submission")
    path = config.invocation_params.dir / option if option else None
    if path is not None and not path.is_file():
        raise pytest.UsageError(
            f"--submission: {option} does not exist. Give the homework's .py or .ipynb file."
        )
    config.stash[_SUBMISSIONS] = _Submissions(path)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the workers."""
    if (submissions := config.stash.get(_SUBMISSIONS, None)) is not None:
        submissions.close()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which file is checked."""
    folder = config.invocation_params.dir
    if not _is_students(folder):
        return None
    option = config.getoption("grader_submission")
    return f"submission: {option or 'homework.py'} (another one: pytest --submission FILE)"


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Register the markers that the checks use."""
    if _is_students(module_path.parent):
        for marker in CHECK_MARKERS:
            if marker not in parent.config.getini("markers"):
                parent.config.addinivalue_line("markers", marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Word a check's failure for the student."""
    report = yield
    ours = _is_students(item.path.parent) and not item.config.getoption("fulltrace", False)
    if ours and call.excinfo is not None and report.failed:
        submission = item.config.stash[_SUBMISSIONS].of(item.path.parent)
        report.longrepr = submission.failure_text(item, call.excinfo.value)
    return report


# --- fixtures ---------------------------------------------------------------------------------------------


@pytest.fixture
def student(request: pytest.FixtureRequest) -> "Student":
    """The student's homework, for the public checks that the course hands out."""
    submission = _submission_of(request)
    spec = submission.spec(request.node)
    if reason := submission.hung.get(spec.component):
        pytest.skip(f"It could not be tried: {reason}.")
    if not spec.tried_anyway and (cause := submission.cause_of(spec)):
        submission.failed.add(spec.id)
        pytest.skip(f"It says nothing until test_{cause} passes.")
    student = submission.student()
    student.new_random(zlib.crc32(request.node.nodeid.rpartition("::")[2].encode()))
    return student


@pytest.fixture
def class_names(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The names of the homework's classes, in the order of the labels."""
    return _submission_of(request).assignment().class_names


@pytest.fixture
def variant(request: pytest.FixtureRequest) -> "StudentValues":
    """The values that were drawn for this copy of the homework, by name."""
    from grader.course.variant_values import own_values
    from grader.domain.assignment_versions import StudentValues

    stated = _submission_of(request).assignment().variant
    return StudentValues(own_values(request.path.parent, stated))


# --- submissions ------------------------------------------------------------------------------------------


class _Submissions:
    """One submission for each folder with public checks; nearly always there is only one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._by_folder: dict[Path, _Submission] = {}

    def of(self, folder: Path) -> "_Submission":
        """The submission that the checks in the folder are run on."""
        if folder not in self._by_folder:
            self._by_folder[folder] = _Submission(folder, self._path)
        return self._by_folder[folder]

    def close(self) -> None:
        """End all workers."""
        for submission in self._by_folder.values():
            submission.close()


_SUBMISSIONS = pytest.StashKey[_Submissions]()


class _Submission:
    """A homework, read and put into a worker when the first check asks for it.

    Attributes:
        hung: Component -> what hung in it, as a clause; its other checks are skipped.
        failed: The checks that have not passed so far.
    """

    def __init__(self, folder: Path, path: Path | None) -> None:
        self._folder = folder
        self._path = path
        self._assignment: Assignment | None = None
        self._student: Student | None = None
        self._workers: OwnWorkers | None = None
        self._failure: str | None = None
        self.hung: dict[str, str] = {}
        self.failed: set[str] = set()

    def assignment(self) -> "Assignment":
        """The assignment of the folder.

        Raises:
            CourseError: One of its files is malformed.
        """
        if self._assignment is None:
            from grader.course.locate import student_assignment
            from grader.students.own_machine import with_own_machine_limits

            self._assignment = with_own_machine_limits(student_assignment(self._folder))
        return self._assignment

    def student(self) -> "Student":
        """The homework in a worker.

        Raises:
            GraderError: It cannot be read or started; from the second time on, the test is skipped instead.
        """
        if self._failure is not None:
            pytest.skip(self._failure)
        if self._student is None:
            from grader.domain.errors import GraderError

            try:
                self._student = self._started()
            except GraderError:
                self._failure = "the submission cannot be read (see the first error)"
                raise
        return self._student

    def _started(self) -> "Student":
        from grader.students.own_machine import OwnWorkers, homework_file, own_program, own_student

        assignment = self.assignment()
        path = self._path or homework_file(self._folder)
        self._workers = OwnWorkers(assignment, path.parent)
        return own_student(path, own_program(path, assignment), assignment, self._workers)

    def spec(self, item: pytest.Item) -> "CheckSpec":
        """The check that a test is; a test that the student added is about the file as a whole."""
        from grader.domain.assignment import CheckSpec

        check_id = item.name.partition("[")[0].removeprefix("test_")
        specs = {spec.id: spec for spec in self.assignment().checks}
        return specs.get(check_id) or CheckSpec(check_id, SUBMISSION, item.name, file=item.path.name)

    def cause_of(self, spec: "CheckSpec") -> str:
        """The failed check that causes a failure of this one; empty where there is none."""
        return next((check for check in spec.because if check in self.failed), "")

    def failure_text(self, item: pytest.Item, error: BaseException) -> "_FailureText":
        """How a test's failure reads."""
        from grader.domain.errors import GraderError
        from grader.judge.source_places import looked_for, place_of
        from grader.judge.verdict import explained, finding
        from grader.protocol.link import WorkerFault

        if isinstance(error, GraderError):
            return _FailureText(str(error))
        spec = self.spec(item)
        sought = looked_for(getattr(error, "look_for", ""), spec.file)
        where = place_of(self._student.program, spec.component, sought) if self._student else ""
        verdict = finding(spec, error, where=where)
        if isinstance(error, WorkerFault) and error.kind == "time":
            self.hung[spec.component] = explained(error)
        if verdict.status == "failed":
            self.failed.add(spec.id)
            if cause := self.cause_of(spec):
                return _FailureText(
                    f"It fails for the same reason as test_{cause}.", f"Asked: {verdict.title}"
                )
        return _FailureText(verdict.message, *self._lines(verdict))

    def _lines(self, verdict: "Finding") -> tuple[str, ...]:
        lines = [f"Asked: {verdict.title}"]
        if verdict.hint:
            lines.append(f"Try: {verdict.hint}")
        if verdict.where:
            lines.append(f"{verdict.where}{self._line_at(verdict.where)}")
        if verdict.status == "errored":
            lines.append("`pytest --full-trace` shows the whole traceback.")
        return tuple(lines)

    def _line_at(self, where: str) -> str:
        """The student's line at a place, to be shown after the place; empty if unknown."""
        from grader.domain.analyzed_program import line_at, place_of

        place = place_of(where)
        line = line_at(self._student.program.source, place) if self._student and place else None
        return f"    {line[:100]}" if line else ""

    def close(self) -> None:
        """End the worker."""
        if self._workers is not None:
            self._workers.close()


class _FailureText:
    """A failure as pytest prints it: a message, which the summary repeats, and further lines."""

    def __init__(self, message: str, *lines: str) -> None:
        self.message = message
        self._lines = lines
        self.reprcrash = self  # where pytest looks for the summary's `message`

    def toterminal(self, terminal: Any) -> None:
        """Print it."""
        terminal.line(self.message, red=True)
        for line in self._lines:
            terminal.line(line)

    def __str__(self) -> str:
        return "\n".join([self.message, *self._lines])


def _submission_of(request: pytest.FixtureRequest) -> _Submission:
    folder = request.path.parent
    if not _is_students(folder):
        raise pytest.UsageError(
            f"This fixture is for the checks of a homework, but {folder} is not a folder that a "
            f"course handed out: it has no {ASSIGNMENT_FILE} beside {PUBLIC_CHECKS}."
        )
    return request.config.stash[_SUBMISSIONS].of(folder)


def _is_students(folder: Path) -> bool:
    """Whether the folder is one that a course handed out."""
    return is_complete(folder)
