"""Tries an assignment's checks on versions of a homework whose worth is known.

It lists the versions (reference, template, mistakes, forms) and runs the checks on them: by a judge and
workers as in grading or, if there are no hosts, one after another in plain processes. For authors of checks
it keeps what a check raised, where in its own files, and what it printed. `mutation_report` decides what an
outcome means.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from grader.analysis.forbidden_uses import run_time_uses
from grader.course.homework_versions import HomeworkVersion, Kind, reference_files
from grader.course.locate import Course
from grader.domain.analyzed_program import Program
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_versions import Value, each_choice, first_choices
from grader.domain.errors import GraderError, UsageError
from grader.domain.evidence import Finding
from grader.domain.submission_result import looks
from grader.grading.concurrent_work import side_by_side
from grader.sandbox.host_client import Host
from grader.sandbox.readable_files import enter_folders, given_files, lay_out
from grader.students.own_machine import OwnWorkers, with_own_machine_limits

if TYPE_CHECKING:
    from grader.grading.judging import Judged
    from grader.judge.examination import Checks, Examined


MOST_FRAMES = 8  # of the assignment's own files
MOST_PRINTED = 4000  # characters


@dataclass(frozen=True)
class CheckTrace:
    """Details of a check's run that its finding does not hold.

    Attributes:
        check: Its id.
        raised: `IndexError: list index out of range`; empty: nothing.
        lines: The places: file, line, function and code, the outermost first.
        printed: The check's printed output.
    """

    check: str
    raised: str = ""
    lines: tuple[str, ...] = ()
    printed: str = ""


def check_trace(check: str, error: BaseException | None, printed: str, folder: Path) -> CheckTrace:
    """The trace of a check.

    Args:
        error: The exception that it raised.
        printed: The check's printed output.
        folder: The assignment's folder: only the last frame in other files is kept.
    """
    text = printed[:MOST_PRINTED].rstrip()
    if error is None:
        return CheckTrace(check, printed=text)
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    frames_kept = [*own_frames[-MOST_FRAMES:], *(frames[-1:] if frames[-1:] != own_frames[-1:] else ())]
    return CheckTrace(check, _raised(error), tuple(_line(frame, folder) for frame in frames_kept), text)


def _raised(error: BaseException) -> str:
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _line(frame: traceback.FrameSummary, folder: Path) -> str:
    path = Path(frame.filename)
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return f"{name}:{frame.lineno} in {frame.name}: {(frame.line or '').strip()}"


# --- trials ----------------------------------------------------------------------------------------------


HOMEWORK = "homework.py"


@dataclass(frozen=True)
class Trial:
    """A version, and the checks to run on it.

    Attributes:
        components: The components whose checks are run; None: all.
        values: The drawn values by name, with which the version is made.
    """

    version: HomeworkVersion
    components: tuple[str, ...] | None = None
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial.

    Attributes:
        findings: One per check that was run.
        parameters: Trainable numbers of the model as the version configures it; None if it has no model.
        forbidden: The forbidden parts that it uses, as `assignment.toml` writes them.
        flagged: The parts that a person looks at, written likewise.
        looks: What else a person is asked to look at, in sentences.
        seconds: Wall-clock seconds.
        fault: Why it could not be judged at all, in a sentence; empty if it was judged.
        traces: The traces of checks that raised or printed something, if they were asked for.
    """

    version: HomeworkVersion
    findings: tuple[Finding, ...] = ()
    parameters: int | None = None
    forbidden: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    seconds: float = 0.0
    fault: str = ""
    traces: tuple[CheckTrace, ...] = ()


Judge = Callable[[Trial], TrialOutcome]
Report = Callable[[TrialOutcome], object]


def chosen(versions: Sequence[HomeworkVersion], pattern: str | None) -> tuple[HomeworkVersion, ...]:
    """The versions whose name matches a pattern with `*`; all if there is no pattern.

    Raises:
        UsageError: No name matches.
    """
    matching = tuple(v for v in versions if pattern is None or fnmatchcase(v.name, pattern))
    if not matching:
        raise UsageError(
            f"--only {pattern}: no version has such a name. There are reference, template, and the files in "
            "forms/ and mistakes/, without `.py`; quote a pattern, as in --only 'scale_*'."
        )
    return matching


def trials(
    assignment: Assignment,
    versions: Sequence[HomeworkVersion],
    values: Mapping[str, Value] | None = None,
    *,
    thorough: bool = False,
) -> tuple[Trial, ...]:
    """The checks to run on each version.

    All checks are run on the reference, the template and pairs of mistakes. They are also run on one mistake
    in every component, which shows that its failure costs no other component. On forms and all other
    mistakes, only the checks of their own parts are run: other components see a fake.

    Args:
        values: The values with which the versions are made; None: the first choice of each.
        thorough: Whether every check is run on every version.
    """
    values = first_choices(assignment.variant) if values is None else values
    graded = [component.name for component in assignment.components]
    parts_tried: set[str] = set()
    all_trials = []
    for version in versions:
        is_first = version.kind is Kind.MISTAKE and not parts_tried.issuperset(version.parts)
        parts_tried.update(version.parts if is_first else ())
        if thorough or is_first or not version.parts or version.kind is Kind.PAIR:
            all_trials.append(Trial(version, None, values))
        else:
            parts = (*(name for name in graded if name in version.parts), SUBMISSION)
            all_trials.append(Trial(version, parts, values))
    return tuple(all_trials)


def value_sets(course: Course, assignment: Assignment, *, every: bool) -> list[dict[str, Value]]:
    """The sets of drawn values to try: this term's, in which each student's value is its first choice.

    Args:
        every: Whether each choice of each value is tried as well, with the others at their first choice.
    """
    sets = [course.values(assignment.id, assignment.variant)]
    for values in each_choice(assignment.variant) if every else ():
        if values not in sets:
            sets.append(values)
    return sets


def timed_outcome(judge: Judge, trial: Trial) -> TrialOutcome:
    """The outcome of one trial with its time; a failure of the judge is an outcome too."""
    started = time.monotonic()
    try:
        trial_outcome = judge(trial)
    except GraderError as error:
        trial_outcome = TrialOutcome(trial.version, fault=str(error))
    return replace(trial_outcome, seconds=time.monotonic() - started)


def outcome(
    assignment: Assignment, trial: Trial, program: Program, examined: "Judged | Examined"
) -> TrialOutcome:
    """The judge's findings about a trial, with the forbidden parts seen in the source or at run time."""
    uses = (
        *program.forbidden,
        *run_time_uses(assignment, program, program.forbidden, examined.watched.reached),
    )
    reached_rules = {use.rule for use in uses if use.reached_from}
    rules = [rule for rule in assignment.forbidden if rule.pattern in reached_rules]
    return TrialOutcome(
        trial.version,
        examined.findings,
        examined.parameters,
        tuple(rule.pattern for rule in rules if rule.policy == "forbid"),
        tuple(rule.pattern for rule in rules if rule.policy == "flag"),
        (*(note.text for note in program.notes if note.ask_person), *looks(examined.watched)),
    )


def program_of(assignment: Assignment, trial: Trial) -> Program:
    """The program of a version."""
    from grader.analysis import program

    source = trial.version.source.encode()
    return program(HOMEWORK, source, assignment.program_rules)


def seed_of(version: HomeworkVersion) -> int:
    """The seed of all randomness in a version, derived from its source, so that it never changes."""
    digest = hashlib.sha256(version.source.encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


# --- without hosts ---------------------------------------------------------------------------------------


def local_outcomes(
    assignment: Assignment,
    planned: Sequence[Trial],
    *,
    report: Report = lambda outcome: None,
    traced: bool = False,
) -> tuple[TrialOutcome, ...]:
    """Run the checks on every version, each in a new process that has to load PyTorch first.

    Args:
        report: Called with each outcome as soon as it is there.
        traced: Keep how checks ended.

    Returns:
        The outcomes in the order of the trials.

    Raises:
        CourseError: The solution, a mistake or the checks cannot be loaded.
    """
    with _among_provided(assignment):
        return _local_outcomes(assignment, planned, report, traced=traced)


@contextlib.contextmanager
def _among_provided(assignment: Assignment) -> Iterator[None]:
    """Change to a folder with the files that the assignment provides."""
    if not assignment.provided:
        yield
        return
    working_folder, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        try:
            if (root := lay_out(given_files(assignment), Path(folder))) is not None:
                enter_folders(root)
            yield
        finally:
            os.chdir(working_folder)
            os.environ.clear()
            os.environ.update(environment)


def _local_outcomes(
    assignment: Assignment, planned: Sequence[Trial], report: Report, *, traced: bool
) -> tuple[TrialOutcome, ...]:
    from grader.judge.course_code import CodeByValues
    from grader.judge.examination import run_pytest
    from grader.judge.student import Student

    assignment, files = with_own_machine_limits(assignment), reference_files(assignment)
    code = CodeByValues(assignment)
    all_outcomes: list[TrialOutcome] = []
    errors: list[BaseException] = []

    def use(checks: "Checks") -> None:
        def judge(trial: Trial) -> TrialOutcome:
            program = program_of(assignment, trial)
            checks.values, checks.code = trial.values, code.of(trial.values)
            traces: list[CheckTrace] = []
            if traced:
                checks.traced = lambda spec, error, printed: traces.append(
                    check_trace(spec.id, error, printed, assignment.folder.resolve())
                )
            with OwnWorkers(assignment, Path.cwd()) as workers:
                handed_in = trial.version.handed_in(files)
                student = Student(workers, program, assignment, seed=seed_of(trial.version), files=handed_in)
                try:
                    examined = checks.examined(student, components=trial.components)
                finally:
                    student.close()
            traces_kept = tuple(trace for trace in traces if trace.raised or trace.printed)
            return replace(outcome(assignment, trial, program, examined), traces=traces_kept)

        try:
            for trial in planned:
                all_outcomes.append(timed_outcome(judge, trial))
                report(all_outcomes[-1])
        except BaseException as error:  # noqa: BLE001 - pytest would keep it to itself; raised again below
            errors.append(error)

    paths = sorted((assignment.folder / "checks").glob("test_*.py"))
    run_pytest(paths, assignment, code.of(first_choices(assignment.variant)), use)
    if errors:
        raise errors[0]
    return tuple(all_outcomes)


# --- judged trials ---------------------------------------------------------------------------------------


def outcomes(
    course: Course,
    assignment: Assignment,
    planned: Sequence[Trial],
    *,
    jobs: int,
    report: Report = lambda outcome: None,
    traced: bool = False,
) -> tuple[TrialOutcome, ...]:
    """Run the checks on every version.

    Only the instructors' own code is run, so a machine with too little isolation for grading is sufficient.

    Args:
        jobs: How many at once; each uses one thread for its computations.
        report: Called with each outcome as soon as it is there, one at a time.
        traced: Keep how checks ended. They then run in this process, one version after the other.

    Returns:
        The outcomes in the order of the trials.

    Raises:
        EngineError: A host could not be started: a check, a mistake or the solution cannot be loaded.
    """
    if traced or sys.platform != "linux":
        return local_outcomes(assignment, planned, report=report, traced=traced)
    with _judge(course, assignment) as judge:
        return tuple(side_by_side(lambda trial: timed_outcome(judge, trial), planned, jobs, report=report))


@contextlib.contextmanager
def _judge(course: Course, assignment: Assignment) -> Iterator[Judge]:
    """A judge as in grading, with the same hosts. The sources are read here, because they are trusted."""
    from grader.grading.judging import judged

    with _hosts(course, assignment) as (judges, workers):
        files = reference_files(assignment)

        def judge(trial: Trial) -> TrialOutcome:
            program = program_of(assignment, trial)
            judgment = judged(
                judges,
                workers,
                program,
                assignment,
                seed=seed_of(trial.version),
                report=lambda finding: None,
                components=trial.components,
                pictures=False,
                files=trial.version.handed_in(files),
                values=trial.values,
            )
            return outcome(assignment, trial, program, judgment)

        yield judge


@contextlib.contextmanager
def _hosts(course: Course, assignment: Assignment) -> Iterator[tuple[Host, Host]]:
    """The judge host and the worker host, started in parallel, as each loads PyTorch for seconds."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(max_workers=1) as pool:
        judges = pool.submit(Host.start, "grader.judge", [str(assignment.folder)])
        try:
            workers = stack.enter_context(host_of_workers(course, assignment))
        finally:
            if judges.exception() is None:
                stack.callback(judges.result().close)
        yield judges.result(), workers


@contextlib.contextmanager
def host_of_workers(course: Course, assignment: Assignment) -> Iterator[Host]:
    """The worker host, in which the instructors' own versions are executed."""
    workers = Host.start(
        "grader.worker", hidden=(course.root,), unofficial=True, wrapped=True, given=given_files(assignment)
    )
    with contextlib.closing(workers):
        yield workers
