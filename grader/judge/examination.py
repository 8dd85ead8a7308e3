"""The checks of an assignment, collected once by pytest and run for one submission after another.

pytest is driven through its public hooks: `pytest_runtestloop` hands control to the caller with submissions.
It decides which checks are tried, in which order and for how long. It folds findings under another with the
same cause, by what checks declare and by facts that the judge itself saw. Folding changes what is shown, not
the points. `verdict` decides what an outcome means, and `grader.scoring` how many points it costs.

Tests: tests/judge/test_examination.py, tests/judge/test_folding.py, tests/judge/test_policies.py
"""

import contextlib
import io
import os
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from grader.domain.analyzed_program import Program
from grader.domain.assignment import CHECK_MARKERS, Assignment, CheckSpec
from grader.domain.assignment_versions import StudentValues, Value, first_choices
from grader.domain.errors import CourseError, EngineError
from grader.domain.evidence import Blame, Finding, LayerSummary, Status
from grader.domain.formatting import clipped
from grader.domain.measure import TrainingCall
from grader.domain.program_run import NOTHING_SEEN, Watched
from grader.judge.course_code import CourseCode, freshly_imported
from grader.judge.repeated_calls import MeasuredModel, RandomPart, TrainedModel, trained_model
from grader.judge.source_places import looked_for, place_of, with_own_names
from grader.judge.student import Student
from grader.judge.untrusted_replies import OutOfPatienceError, Picture, patience
from grader.judge.verdict import decisive, explained, finding, noted, shown, skipped, worst
from grader.kit import Cause, Mismatch
from grader.protocol.link import WorkerFault
from grader.protocol.replies import Module

Shared = tuple[str, Cause, str]  # the component, the kind of cause, and what it concerns


class Folding:
    """The student's failures so far, so that later ones with the same cause are folded.

    A check may declare which checks have the cause of its failure. Otherwise only facts count: the judge
    itself saw the same kind of cause, about the same thing, in the same component. A recognized mistake is a
    separate cause, unless its check declares another.
    """

    def __init__(self) -> None:
        self._cause_of: dict[str, str] = {}  # check that did not pass -> the one that has its cause
        self._shared: dict[str, Shared] = {}  # check -> what the judge saw
        self._first: dict[Shared, str] = {}

    def declared(self, spec: CheckSpec) -> str | None:
        """The check that has the cause if this one fails, by what it declares; None: it has its own."""
        return next((self._cause_of[check] for check in spec.because if check in self._cause_of), None)

    def cause_of(self, check: str) -> str:
        """The check that has the cause of one that did not pass; the check itself if it is not folded."""
        return self._cause_of.get(check, check)

    def says_nothing_new(self, spec: CheckSpec, error: BaseException | None) -> bool:
        """Whether a check fails for the same cause that was seen in one that it declares."""
        shared = _shared(spec, error)
        return shared is not None and shared in [self._shared.get(check) for check in spec.because]

    def folded(self, spec: CheckSpec, result: Finding, error: BaseException | None) -> Finding:
        """The finding, folded if another check has its cause, and noted for later ones.

        Args:
            error: What the check raised.
        """
        lost = result.status in (Status.FAILED, Status.SKIPPED) and result.blame is Blame.STUDENT
        if not lost:
            return result
        shared = _shared(spec, error) if result.status is Status.FAILED else None
        cause = result.because or self.declared(spec)
        if cause is None and shared in self._first and result.diagnosis is None:
            cause = self._cause_of[self._first[shared]]
        self._cause_of[spec.id] = cause or spec.id
        if shared is not None:
            self._shared[spec.id] = shared
            self._first.setdefault(shared, spec.id)
        return replace(result, because=cause)


def _shared(spec: CheckSpec, error: BaseException | None) -> Shared | None:
    """The key by which failures with the same cause are recognized; None if the cause is not known."""
    if not isinstance(error, Mismatch) or error.cause is None:
        return None
    return spec.component, error.cause, error.concerns or spec.component


# --- examination -----------------------------------------------------------------------------------------


MAX_ABSENT_MODULES, MAX_NAME = 50, 100  # that are reported, and characters of each
CHECK_CALLS = 2  # a check may take this many times the limit on a call


@dataclass(frozen=True)
class Examined:
    """What the checks found out.

    Attributes:
        findings: One per check of the assignment, in its order.
        parameters, layers: Of the model as the student configured it; None and () when it cannot be built.
        figures: (component, picture).
        absent_modules: Modules that are not installed here and were replaced by inert placeholders.
        watched: What was seen of forbidden parts at run time.
        output_cut: Whether more was printed than is kept.
    """

    findings: tuple[Finding, ...]
    parameters: int | None = None
    layers: tuple[LayerSummary, ...] = ()
    figures: tuple[tuple[str, Picture], ...] = ()
    absent_modules: tuple[str, ...] = ()
    watched: Watched = NOTHING_SEEN
    output_cut: bool = False


@dataclass(frozen=True)
class _End:
    """How a check ended with one of its parameters.

    Attributes:
        error: What it raised; None if it passed.
    """

    finding: Finding
    error: BaseException | None


@dataclass
class _SoFar:
    """What the checks that were run have shown of a submission.

    Attributes:
        hung: Component -> the check that hung in it, and how, as a clause; its other checks are not tried.
        waited: Component -> the seconds that the worker took for its checks.
        held: The checks that were run and passed with all their parameters, and had nothing to say.
    """

    random_part: RandomPart
    folding: Folding = field(default_factory=Folding)
    hung: dict[str, tuple[str, str]] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    _places: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def place(self, program: Program, component: str, names: tuple[str, ...] = ()) -> str:
        """The place of a component in the source, or of what is looked for in it: see `place_of`."""
        if (component, names) not in self._places:
            self._places[component, names] = place_of(program, component, names)
        return self._places[component, names]


class Checks:
    """The pytest plugin that holds the collected checks; its fixtures are what a check may ask for.

    Attributes:
        values: The values drawn for the submission's student, by name.
        code: The instructors' code with these values in it; None on a student's own machine.
    """

    def __init__(
        self, assignment: Assignment, use: Callable[["Checks"], None], code: CourseCode | None
    ) -> None:
        self.assignment = assignment
        self._use = use
        self.values: Mapping[str, Value] = first_choices(assignment.variant)
        self.code = code
        self._specs = {spec.id: spec for spec in assignment.checks}
        self._items: dict[str, list[pytest.Item]] = {}  # by the check's id
        self._student: Student | None = None
        self._trained: TrainedModel | None = None
        self._error: BaseException | None = None
        self.uncollectable: CourseError | None = None  # why, where pytest says it of a file
        self.collected = False
        # called with how each check ended and what it printed; for the instructor's own machine
        self.traced: Callable[[CheckSpec, BaseException | None, str], None] = lambda spec, error, text: None

    # --- fixtures ----------------------------------------------------------------------------------------

    @pytest.fixture
    def student(self) -> Student:
        """The submission."""
        assert self._student is not None
        return self._student

    @pytest.fixture
    def trained(self) -> TrainedModel:
        """The submission's trained model."""
        if self._trained is None:
            raise CourseError("A check of the untrained parts asks for the trained model.")
        return self._trained

    @pytest.fixture
    def reference(self) -> CourseCode:
        """The reference solution's and the mistakes' classes and functions."""
        if self.code is None:
            raise CourseError("A public check asks for the reference, which students do not have.")
        return self.code

    @pytest.fixture
    def variant(self) -> StudentValues:
        """The values that were drawn for the submission's student, by name."""
        return StudentValues(self.values)

    @pytest.fixture
    def edition(self) -> tuple[str, ...]:
        """The edition of the assignment that the class got: one choice from each list in `editions`."""
        return self.assignment.edition.chosen

    @pytest.fixture
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the labels."""
        return self.assignment.class_names

    # --- hooks -------------------------------------------------------------------------------------------

    def pytest_configure(self, config: pytest.Config) -> None:
        """Announce the markers."""
        for marker in CHECK_MARKERS:
            config.addinivalue_line("markers", marker)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Hand over control once everything is collected."""
        for item in session.items:
            self._items.setdefault(_id(item), []).append(item)
            item.location  # noqa: B018 - found once here, not for each submission
        self.collected = not session.testsfailed
        if self.collected:
            with _unreported(session.config.pluginmanager):
                self._use(self)
        return True

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]
    ) -> None:
        """Keep the first reason for which a file's checks cannot be collected."""
        if self.uncollectable is None and not self.collected and call.excinfo is not None:
            folder = self.assignment.folder.resolve()
            self.uncollectable = _uncollectable(node.path, call.excinfo.value, folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Keep the exception with which a check ended.

        Pytest's account of it, for which it parses the check's source, took as long as the checks themselves,
        and nobody reads it.
        """
        if call.excinfo is None or call.when == "collect":
            return None
        if self._error is None:
            self._error = call.excinfo.value
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", None, call.when)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """What a check leaves to be sent is sent for its own account, not for that of the next one."""
        if self._student is None:
            return (yield)
        try:
            called = yield
        except BaseException:
            with contextlib.suppress(Mismatch, WorkerFault, EngineError):
                self._student.settle()
            raise
        self._student.settle()
        return called

    # --- running -----------------------------------------------------------------------------------------

    def examined(
        self,
        student: Student,
        *,
        report: Callable[[Finding], None] = lambda _: None,
        components: Collection[str] | None = None,
    ) -> Examined:
        """Run all checks for one submission.

        Args:
            report: Called with each finding as it is made.
            components: Run only the checks of these.
        """
        self._student = student
        so_far = _SoFar(RandomPart(self.assignment.limits.call_seconds))
        findings = []
        for spec in self.assignment.checks:
            if components is not None and spec.component not in components:
                continue
            result = self._finding_of(spec, student, so_far)
            findings.append(result)
            report(result)
        parameters, layers = _summary(student)
        absent_modules: tuple[str, ...] = ()
        with contextlib.suppress(Mismatch, WorkerFault, EngineError):
            absent_modules = tuple(
                name[:MAX_NAME] for name in student.loaded.absent_modules[:MAX_ABSENT_MODULES]
            )
        student.worker.prove_watch()
        student.close()
        figures, cut = tuple(student.figures), student.worker.output_cut
        return Examined(
            tuple(findings), parameters, layers, figures, absent_modules, student.worker.watched, cut
        )

    def examined_trained(
        self, student: Student, then: MeasuredModel, component: str | None = None
    ) -> tuple[Finding, ...]:
        """Run the checks of trained models for one submission.

        Args:
            student: The submission.
            then: The trained model.
            component: Run only the checks of this graded class; None: run all.

        Returns:
            The findings that did not pass or that a person should look at.
        """
        self._student = student
        specs = [spec for spec in self.assignment.trained_checks if component in (None, spec.component)]
        try:
            self._trained = trained_model(student, then, self._call_of(component))
        except (Mismatch, WorkerFault, EngineError) as error:
            return (finding(specs[0], error, where=place_of(student.program, specs[0].component)),)
        so_far = _SoFar(RandomPart(self.assignment.limits.call_seconds))
        results = [self._finding_of(spec, student, so_far) for spec in specs]
        return tuple(result for result in results if result.status is not Status.PASSED or result.has_remark)

    def _call_of(self, component: str | None) -> TrainingCall | None:
        """The call that trains the model of this graded name; None: the student's own program trains it."""
        called = (measure.call for measure in self.assignment.measures if measure.call is not None)
        return next((call for call in called if component in (None, call.model)), None)

    def _finding_of(self, spec: CheckSpec, student: Student, so_far: _SoFar) -> Finding:
        where = so_far.place(student.program, spec.component)
        items = self._items.get(spec.id, [])
        if not items:
            return finding(spec, CourseError("pytest did not collect it."), where=where)
        folding = so_far.folding
        if spec.shown_by and so_far.held.issuperset(spec.shown_by):
            return shown(spec)
        reason, because = self._untried(spec, student, so_far)
        if reason:
            return folding.folded(spec, skipped(spec, reason, where=where, because=because), None)
        before = student.worker.waited
        ends = self._ends(spec, items, student, so_far)
        took = student.worker.waited - before
        so_far.waited[spec.component] = so_far.waited.get(spec.component, 0.0) + took
        # what could not be judged at some sizes is shown where the property holds at the others
        elsewhere = [end for end in ends if not folding.says_nothing_new(spec, end.error)]
        result = worst([end.finding for end in elsewhere or ends])
        if all(end.finding.status is Status.PASSED and not end.finding.has_remark for end in ends):
            so_far.held.add(spec.id)
        return folding.folded(spec, result, next(end.error for end in ends if end.finding is result))

    def _untried(self, spec: CheckSpec, student: Student, so_far: _SoFar) -> tuple[str, str | None]:
        """Why a check is not tried, and because of which other check; empty if it is tried."""
        if spec.component in so_far.hung:
            check, clause = so_far.hung[spec.component]
            return f"It could not be tried: {clause}.", so_far.folding.cause_of(check)
        cause = so_far.folding.declared(spec)
        if cause is not None and not spec.tried_anyway:
            return f"It was not tried: it says nothing until `{cause}` passes.", cause
        seconds, parts = self.assignment.limits.checks_seconds, len(self.assignment.components)
        # a slow part costs its own checks: the others may use their share of the time all the same
        used_up = so_far.waited.get(spec.component, 0.0) >= seconds / max(parts, 1)
        if used_up and student.worker.is_out_of_time(seconds):
            limit = f"{seconds:.0f} s, the limit for all checks together"
            return f"It could not be tried: the code took over {limit}.", None
        return "", None

    def _ends(
        self, spec: CheckSpec, items: Sequence[pytest.Item], student: Student, so_far: _SoFar
    ) -> list[_End]:
        """How a check ended with each of its parameters, up to the first that says something new."""
        ends = []
        for item in items:
            started = time.monotonic()
            error = self._error_of(item, student, spec)
            seconds = time.monotonic() - started
            error = so_far.random_part.failure(error, student, spec) or error
            sought: tuple[str, ...] = ()
            noted_names: tuple[str, ...] = ()
            first = decisive(student.notes)
            try:
                sought = self._names_of(error)
                if first is not None:
                    noted_names = looked_for(first.look_for, first.sentence)
            except CourseError as unreadable:  # this check is wrong: it alone breaks
                error = unreadable
            where = so_far.place(student.program, spec.component, sought)
            result = self._in_own_names(finding(spec, error, where=where, seconds=seconds), student)
            if first is not None:
                where = so_far.place(student.program, spec.component, noted_names)
            result = noted(result, student.notes, where)
            ends.append(_End(result, error))
            if isinstance(error, WorkerFault) and error.kind == "time":
                so_far.hung[spec.component] = spec.id, explained(error)
                break
            if result.status is not Status.PASSED and not so_far.folding.says_nothing_new(spec, error):
                break  # the other parameters of the check would say the same again
        return ends

    def _in_own_names(self, result: Finding, student: Student) -> Finding:
        """A finding whose hint, if it is a known mistake's, has the student's own names."""
        mistakes = self.code.mistakes if self.code is not None else {}
        mistake = mistakes.get(result.diagnosis or "")
        if mistake is None or result.hint != mistake.hint:
            return result
        return replace(result, hint=with_own_names(result.hint, student.program, result.component))

    def _names_of(self, error: BaseException | None) -> tuple[str, ...]:
        """What to look for in the student's source: what the check says, or the mistake that is named."""
        if isinstance(error, Mismatch) and error.look_for:
            return looked_for(error.look_for, str(error))
        diagnosis = getattr(error, "diagnosis", None)
        mistakes = self.code.mistakes if self.code is not None else {}
        return mistakes[diagnosis].look_for if diagnosis in mistakes else ()

    def _error_of(self, item: pytest.Item, student: Student, spec: CheckSpec) -> BaseException | None:
        """Run one test function and return the exception that it raised."""
        printed = io.StringIO()
        error = self._ended(item, student, printed)
        self.traced(spec, error, printed.getvalue())
        return error

    def _ended(self, item: pytest.Item, student: Student, printed: io.StringIO) -> BaseException | None:
        self._error = None
        student.notes.clear()
        student.built.clear()
        seconds = CHECK_CALLS * self.assignment.limits.call_seconds
        student.allow(seconds)
        student.new_random(zlib.crc32(item.nodeid.rpartition("::")[2].encode()))
        try:
            with contextlib.redirect_stdout(printed), patience(seconds):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        except OutOfPatienceError as error:  # it was raised between the check and pytest's own code
            return error
        return self._error


_ADDED_OPTIONS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


def run_pytest(
    paths: Sequence[Path], assignment: Assignment, code: CourseCode | None, use: Callable[[Checks], None]
) -> None:
    """Collect the check files and call `use` with them.

    Raises:
        CourseError: They could not be collected.
    """
    outside, here, folder = sys.stdout, Path.cwd(), assignment.folder.absolute()

    def used(checks: Checks) -> None:
        # only pytest's own output is kept away from it
        with contextlib.redirect_stdout(outside), contextlib.chdir(here):
            use(checks)

    checks = Checks(assignment, used, code)
    arguments = [
        *("-c", "/dev/null" if Path("/dev/null").exists() else "NUL"),
        *("--rootdir", str(folder), "--confcutdir", str(folder)),
        *("--import-mode=importlib", "-s", "-q"),
        *("-p", "no:cacheprovider", "-p", "no:grader", "-p", "no:warnings", "-p", "no:faulthandler"),
        *("-p", "no:logging", "-p", "no:unraisableexception", "-p", "no:threadexception"),
        *("-p", "no:xdist", "-p", "no:hypothesispytest"),
        *(str(path.absolute().relative_to(folder)) for path in paths),
    ]
    output = io.StringIO()
    # by names within the folder: in a path, pytest takes `[` and `::` for a test's name and its parameters
    with (
        contextlib.redirect_stdout(output),
        _own_options(),
        _own_modules(paths, assignment.folder),
        contextlib.chdir(folder),
    ):
        pytest.main(arguments, plugins=[checks])
    if not checks.collected:
        if checks.uncollectable is not None:
            raise checks.uncollectable
        raise CourseError(
            f"{assignment.id}: its checks could not be collected by pytest. Run pytest on the check files to "
            f"see all of it; the end of what it said:\n{output.getvalue()[-1500:]}"
        )


MOST_WORDS = 300  # characters of what collecting a file raised


def _uncollectable(path: Path, error: BaseException, folder: Path) -> CourseError:
    """Why the checks of a file cannot be collected, with the line of the assignment's that it comes from."""
    if isinstance(error, pytest.Collector.CollectError) and error.__cause__ is not None:
        error = error.__cause__  # what importing the file raised, which pytest shows as a whole page
    frames = traceback.extract_tb(error.__traceback__)
    lines = [
        f"{Path(frame.filename).relative_to(folder).as_posix()}:{frame.lineno}"
        for frame in frames
        if Path(frame.filename).is_relative_to(folder)
    ]
    resolved = path.resolve()
    name = resolved.relative_to(folder).as_posix() if resolved.is_relative_to(folder) else path.name
    text = clipped(" ".join(str(error).split()).rstrip("."), MOST_WORDS)
    if isinstance(error, pytest.fail.Exception | pytest.Collector.CollectError):
        return CourseError(f"{name}: pytest cannot collect its checks: {text}. Fix it.")
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return CourseError(f"{lines[-1] if lines else name}: importing it raised {what}. Fix it.")


@contextlib.contextmanager
def _unreported(plugins: pytest.PytestPluginManager) -> Iterator[None]:
    """Without pytest's own report of each check, which nobody reads."""
    reporter = plugins.unregister(name="terminalreporter")
    try:
        yield
    finally:
        plugins.register(reporter, "terminalreporter")


@contextlib.contextmanager
def _own_options() -> Iterator[None]:
    """For a while, without what the environment adds to a person's own tests."""
    added = {name: os.environ.pop(name) for name in _ADDED_OPTIONS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(added)


@contextlib.contextmanager
def _own_modules(paths: Sequence[Path], root: Path) -> Iterator[None]:
    """Import check files anew: pytest mistakes another assignment's module of the same name for them.

    Args:
        root: What their modules' names are relative to.
    """
    names = set()
    for path in paths:
        parts = (*path.resolve().parent.relative_to(root.resolve()).parts, path.stem)
        names |= {".".join(parts[: count + 1]) for count in range(len(parts))}
    with freshly_imported(names):
        yield


def _id(item: pytest.Item) -> str:
    """The check's id: the function's name without `test_` and parameters."""
    return item.name.partition("[")[0].removeprefix("test_")


def _summary(student: Student) -> tuple[int | None, tuple[LayerSummary, ...]]:
    """Parameters and layers of the model as the student configured it."""
    try:
        model = student.configured_model()
    except (Mismatch, WorkerFault, EngineError):
        return None, ()
    return model.parameter_count, tuple(_layer(module) for module in model.modules)


def _layer(module: Module) -> LayerSummary:
    depth = 0 if not module.path else module.path.count(".") + 1
    return LayerSummary(module.path, module.type, module.parameters, depth)
