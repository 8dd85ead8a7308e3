"""Trials of an assignment's checks: versions of a homework whose worth is known, and their outcomes.

It lists the versions (reference, template, mistakes, variants) and runs the checks on them: by a judge
and workers as in grading, or, where there are no hosts, one after another in plain processes. For whoever
writes a check it keeps what the check raised, where in its own files, and what it printed. What an
outcome means, `mutation_report` decides.
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
from grader.course.locate import Course
from grader.course.variants import Kind, Variant, reference_files
from grader.domain.analyzed_program import Program
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_versions import Value, first_choices
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
    """What a check did that a finding does not tell.

    Attributes:
        check: Its id.
        raised: `IndexError: list index out of range`; empty: nothing.
        lines: Where: file, line, function and code, the outermost first.
        printed: What it wrote.
    """

    check: str
    raised: str = ""
    lines: tuple[str, ...] = ()
    printed: str = ""


def check_trace(check: str, error: BaseException | None, printed: str, folder: Path) -> CheckTrace:
    """What is to be told of a check.

    Args:
        error: What it raised.
        printed: What it wrote.
        folder: The assignment's: of other files the last frame alone is told.
    """
    text = printed[:MOST_PRINTED].rstrip()
    if error is None:
        return CheckTrace(check, printed=text)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    shown = [*own[-MOST_FRAMES:], *(frames[-1:] if frames[-1:] != own[-1:] else ())]
    return CheckTrace(check, _raised(error), tuple(_line(frame, folder) for frame in shown), text)


def _raised(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _line(frame: traceback.FrameSummary, folder: Path) -> str:
    path = Path(frame.filename)
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return f"{name}:{frame.lineno} in {frame.name}: {(frame.line or '').strip()}"


# --- trials ----------------------------------------------------------------------------------------------


HOMEWORK = "homework.py"


@dataclass(frozen=True)
class Trial:
    """A variant, and what is to be run on it.

    Attributes:
        components: The components whose checks are run; None: all.
        values: What is drawn, by name: the variant is made with it.
    """

    variant: Variant
    components: tuple[str, ...] | None = None
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial.

    Attributes:
        findings: One per check that was run.
        parameters: Trainable numbers of the model as the variant configures it; None when it has none.
        forbidden: The forbidden parts that it uses, as `assignment.toml` writes them.
        flagged: The same of those that a person looks at.
        looks: What else a person is asked to look at, in sentences.
        seconds: Wall-clock seconds.
        fault: Why it could not be judged at all, in a sentence; empty when it was.
        traces: How checks ended that raised or printed something, where that was asked for.
    """

    variant: Variant
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


def chosen(variants: Sequence[Variant], pattern: str | None) -> tuple[Variant, ...]:
    """The variants whose name matches a pattern with `*`; all when there is no pattern.

    Raises:
        UsageError: No name matches.
    """
    found = tuple(v for v in variants if pattern is None or fnmatchcase(v.name, pattern))
    if not found:
        raise UsageError(
            f"--only {pattern}: no variant has such a name. There are reference, template, and the files in "
            "forms/ and mistakes/, without `.py`; quote a pattern, as in --only 'scale_*'."
        )
    return found


def trials(
    assignment: Assignment,
    variants: Sequence[Variant],
    values: Mapping[str, Value] | None = None,
    *,
    thorough: bool = False,
) -> tuple[Trial, ...]:
    """What to run on each variant.

    The reference and the template meet every check, and so does one mistake of every component, which shows
    that the component's failure costs no other component. A form and any other mistake meet the checks of
    their own parts: whatever uses those sees a stand-in. A pair of mistakes meets every check.

    Args:
        values: With which the variants are made; None: each first choice.
        thorough: Every variant meets every check.
    """
    values = first_choices(assignment.variant) if values is None else values
    graded = [component.name for component in assignment.components]
    seen: set[str] = set()
    found = []
    for variant in variants:
        first = variant.kind is Kind.MISTAKE and not seen.issuperset(variant.parts)
        seen.update(variant.parts if first else ())
        if thorough or first or not variant.parts or variant.kind is Kind.PAIR:
            found.append(Trial(variant, None, values))
        else:
            parts = (*(name for name in graded if name in variant.parts), SUBMISSION)
            found.append(Trial(variant, parts, values))
    return tuple(found)


def timed_outcome(judge: Judge, trial: Trial) -> TrialOutcome:
    """The outcome of one trial with its time; a failure of the judge's is an outcome too."""
    started = time.monotonic()
    try:
        found = judge(trial)
    except GraderError as error:
        found = TrialOutcome(trial.variant, fault=str(error))
    return replace(found, seconds=time.monotonic() - started)


def outcome(
    assignment: Assignment, trial: Trial, program: Program, found: "Judged | Examined"
) -> TrialOutcome:
    """What the judge said of a trial, with the forbidden parts seen in the source or at run time."""
    uses = (*program.forbidden, *run_time_uses(assignment, program, program.forbidden, found.watched.reached))
    seen = {use.rule for use in uses if use.reached_from}
    rules = [rule for rule in assignment.forbidden if rule.pattern in seen]
    return TrialOutcome(
        trial.variant,
        found.findings,
        found.parameters,
        tuple(rule.pattern for rule in rules if rule.policy == "forbid"),
        tuple(rule.pattern for rule in rules if rule.policy == "flag"),
        (*(note.text for note in program.notes if note.ask_person), *looks(found.watched)),
    )


def program_of(assignment: Assignment, trial: Trial) -> Program:
    """The program of a variant."""
    from grader.analysis import program

    source = trial.variant.source.encode()
    return program(HOMEWORK, source, assignment.program_rules)


def seed_of(variant: Variant) -> int:
    """The seed of everything random about a variant: from its source, so the same on every run."""
    digest = hashlib.sha256(variant.source.encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


# --- without hosts ---------------------------------------------------------------------------------------


def local_outcomes(
    assignment: Assignment,
    planned: Sequence[Trial],
    *,
    report: Report = lambda outcome: None,
    traced: bool = False,
) -> tuple[TrialOutcome, ...]:
    """Run the checks on every variant, each in a new process that has to load PyTorch first.

    Args:
        report: Told each outcome as soon as it is there.
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
    """Work where the files lie that the assignment provides."""
    if not assignment.provided:
        yield
        return
    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        try:
            if (root := lay_out(given_files(assignment), Path(folder))) is not None:
                enter_folders(root)
            yield
        finally:
            os.chdir(before)
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
    found: list[TrialOutcome] = []
    raised: list[BaseException] = []

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
                handed_in = trial.variant.handed_in(files)
                student = Student(workers, program, assignment, seed=seed_of(trial.variant), files=handed_in)
                try:
                    examined = checks.examined(student, components=trial.components)
                finally:
                    student.close()
            told = tuple(trace for trace in traces if trace.raised or trace.printed)
            return replace(outcome(assignment, trial, program, examined), traces=told)

        try:
            for trial in planned:
                found.append(timed_outcome(judge, trial))
                report(found[-1])
        except BaseException as error:  # noqa: BLE001 - pytest would keep it to itself; raised again below
            raised.append(error)

    paths = sorted((assignment.folder / "checks").glob("test_*.py"))
    run_pytest(paths, assignment, code.of(first_choices(assignment.variant)), use)
    if raised:
        raise raised[0]
    return tuple(found)


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
    """Run the checks on every variant.

    The instructors' own code is run, so a machine that isolates too little for grading is good enough.

    Args:
        jobs: How many at once; each uses one thread for its computations.
        report: Told each outcome as soon as it is there, one at a time.
        traced: Keep how checks ended. They run in this process then, one variant after the other.

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
    """A judge as in grading, in the same hosts. The sources are read here, because they are ours."""
    from grader.grading.judging import judged

    with _hosts(course, assignment) as (judges, workers):
        files = reference_files(assignment)

        def judge(trial: Trial) -> TrialOutcome:
            program = program_of(assignment, trial)
            found = judged(
                judges,
                workers,
                program,
                assignment,
                seed=seed_of(trial.variant),
                report=lambda finding: None,
                components=trial.components,
                pictures=False,
                files=trial.variant.handed_in(files),
                values=trial.values,
            )
            return outcome(assignment, trial, program, found)

        yield judge


@contextlib.contextmanager
def _hosts(course: Course, assignment: Assignment) -> Iterator[tuple[Host, Host]]:
    """The judge host and the worker host, which start at the same time: each loads PyTorch for seconds."""
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
