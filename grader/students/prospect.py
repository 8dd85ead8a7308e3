"""What a check on a student's own machine says about the grade: what is sure, and what is decided later."""

import ast
import importlib.util
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum

from grader.domain.analyzed_program import Place, Program, Statement
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.evidence import Finding, FindingKind, Status
from grader.domain.measure import Measure
from grader.domain.program_run import Plan
from grader.students.own_check import STOPS, LocalCheck

# of a part of which there is nothing to check
NOT_THERE = (FindingKind.NOT_IMPLEMENTED, FindingKind.MISSING_NAME, FindingKind.BROKEN_CELL)


class Outcome(IntEnum):
    """How a check ended, as an exit code; 2 is a file that cannot be checked, 3 a fault of ours."""

    RIGHT = 0
    CHECK_FAILS = 1
    NOT_TRAINED = 4


@dataclass(frozen=True)
class OpenCheck:
    """A hidden check of something that no public check looks at.

    Attributes:
        points: How many of its component's points it decides.
    """

    component: str
    title: str
    points: float


@dataclass(frozen=True)
class KnownPoints:
    """The points of the rubric, by what decides them.

    Attributes:
        sure: Decided by public checks that pass.
        lost: Lost as things are: by public checks that do not pass, by parts that are not allowed, and all
            of a part that is not written yet.
        undecided: Of public checks that could not be decided here: a person decides, if they cannot be then.
        hidden: Decided by checks that are made only during grading.
        code: All that checks decide.
        trained: Decided by trainings.
        people: Given by people.
        open_checks: The hidden checks of what no public check looks at.
    """

    sure: float
    lost: float
    hidden: float
    code: float
    trained: float
    people: float
    open_checks: tuple[OpenCheck, ...] = ()
    undecided: float = 0.0

    @property
    def maximum(self) -> float:
        """All points."""
        return self.code + self.trained + self.people


@dataclass(frozen=True)
class PlannedTraining:
    """A model that would be trained.

    Attributes:
        rebuilt: The places where the model's variable is assigned a model, if there are several; the last
            one counts.
        absent: Modules that the training uses and that are not installed here.
        waits_for: The parts that must run through before it is tried.
    """

    measure: Measure
    plan: Plan
    rebuilt: tuple[Place, ...] = ()
    absent: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prospect:
    """All that a check on one's own machine says about a grade.

    Attributes:
        done: The parts of which every public check passes, in the order of the assignment.
        not_done: The other parts.
        forbidden: Names of library parts that are used although they are not allowed.
        trainings: What would be trained, in the order of the measures.
    """

    outcome: Outcome
    done: tuple[str, ...]
    not_done: tuple[str, ...]
    points: KnownPoints
    forbidden: tuple[str, ...]
    trainings: tuple[PlannedTraining, ...]


def prospect(assignment: Assignment, own_check: LocalCheck) -> Prospect:
    """What is known of a homework's grade after its public checks were made."""
    passed = {finding.check for finding in own_check.findings if finding.status is Status.PASSED}
    judged = {check.component for check in assignment.checks} - {SUBMISSION}
    failing = {check.component for check in assignment.checks if check.id not in passed}
    parts = [component.name for component in assignment.components if component.name in judged]
    forbidden = _forbidden_names(assignment, own_check)
    if failing or forbidden:
        outcome = Outcome.CHECK_FAILS
    else:
        outcome = Outcome.RIGHT if own_check.can_be_trained else Outcome.NOT_TRAINED
    return Prospect(
        outcome,
        tuple(name for name in parts if name not in failing),
        tuple(name for name in parts if name in failing),
        known_points(
            assignment,
            passed,
            costs=_lost_to_forbidden(assignment, own_check),
            unwritten=_unwritten(own_check.findings),
            undecided={finding.check for finding in own_check.findings if finding.status is Status.ERRORED},
        ),
        forbidden,
        tuple(_planned_trainings(assignment, own_check)),
    )


def known_points(
    assignment: Assignment,
    passed: Collection[str],
    costs: Collection[str] = (),
    unwritten: Collection[str] = (),
    undecided: Collection[str] = (),
) -> KnownPoints:
    """The points, by what decides them.

    Args:
        passed: The ids of the public checks that pass.
        costs: The items and components whose points are lost to parts that are not allowed.
        unwritten: The components of which nothing is written yet, so that no check can pass.
        undecided: The ids of the public checks of which it is not known whether they pass.
    """
    sure, lost, hidden, code, unknown = 0.0, 0.0, 0.0, 0.0, 0.0
    open_checks: list[OpenCheck] = []
    shares = [
        (component, worth, bool({item.id, component} & set(costs)) or component in unwritten)
        for item in assignment.rubric
        for component, worth in (item.components or {}).items()
    ]
    for component, worth, is_lost in shares:
        code += worth
        if is_lost:
            lost += worth
            continue
        public = [check for check in assignment.checks if check.component == component]
        further = [check for check in assignment.hidden_checks if check.component == component]
        total_weight = sum(check.weight for check in public) + sum(check.weight for check in further)
        points_per_weight = worth / (total_weight or 1.0)
        sure += points_per_weight * sum(check.weight for check in public if check.id in passed)
        unknown += points_per_weight * sum(check.weight for check in public if check.id in undecided)
        lost += points_per_weight * sum(
            check.weight for check in public if check.id not in passed and check.id not in undecided
        )
        hidden += points_per_weight * sum(check.weight for check in further)
        open_checks += [
            OpenCheck(component, check.title, points_per_weight * check.weight)
            for check in further
            if worth and not check.seen  # parts that are handed out have checks, but no points
        ]
    measured = sum(item.points for item in assignment.rubric if item.measured is not None or item.study)
    people = sum(item.points for item in assignment.rubric if item.by_person)
    return KnownPoints(sure, lost, hidden, code, measured, people, tuple(open_checks), unknown)


def _unwritten(findings: Collection[Finding]) -> set[str]:
    """The components of which nothing passes, and something is not written or not defined."""
    passing = {finding.component for finding in findings if finding.status is Status.PASSED}
    return {finding.component for finding in findings if finding.kind in NOT_THERE} - passing


def _forbidden_names(assignment: Assignment, own_check: LocalCheck) -> tuple[str, ...]:
    """The names of the library parts that are used although they are not allowed."""
    rules = {rule.pattern for rule in assignment.forbidden if rule.policy == "forbid"}
    uses = [*(use for use in own_check.program.forbidden if use.reached_from), *own_check.forbidden]
    return tuple(dict.fromkeys(use.name for use in uses if use.rule in rules))


def _lost_to_forbidden(assignment: Assignment, own_check: LocalCheck) -> set[str]:
    """The items and components lost to forbidden parts; people judge those that only the training uses."""
    rules = {rule.pattern: rule for rule in assignment.forbidden if rule.policy == "forbid"}
    uses = [use for use in (*own_check.program.forbidden, *own_check.forbidden) if use.rule in rules]
    return {rules[use.rule].costs for use in uses if use.reached_from and not use.in_training}


def _planned_trainings(assignment: Assignment, own_check: LocalCheck) -> Iterator[PlannedTraining]:
    for measure in assignment.measures:
        plan = own_check.plans.get(measure.id)
        if plan is not None:
            program = own_check.program.read_for(measure.id)
            yield PlannedTraining(
                measure,
                plan,
                _model_places(program, plan),
                _needed_modules(program, own_check.absent_modules),
                tuple(dict.fromkeys(f.component for f in own_check.findings if f.kind in STOPS)),
            )


def absent_for_training(program: Program) -> tuple[str, ...]:
    """The libraries that the training needs and that are missing here; code that uses them does nothing."""
    tops = [
        top
        for statement in _imports(program)
        for top in re.findall(r"^\s*(?:from|import)\s+(\w+)", statement.source)
    ]
    return _needed_modules(program, [top for top in dict.fromkeys(tops) if not _is_here(top)])


def _imports(program: Program) -> list[Statement]:
    """The imports at the top of the file, and those of the training script."""
    every = (*program.statements, *program.script.statements)
    return [statement for statement in every if statement.kind == "import"]


def _is_here(library: str) -> bool:
    try:
        return library in sys.modules or importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def _needed_modules(program: Program, absent_modules: Collection[str]) -> tuple[str, ...]:
    """The missing modules that the training needs; code that only reports is not part of the training."""
    imported = _imports(program)
    training_code = "\n".join(s.source for s in program.script.statements if s.kind != "import")
    needed = (
        module
        for module in absent_modules
        for statement in imported
        if re.search(rf"\b{re.escape(module)}\b", statement.source)
        and any(re.search(rf"\b{re.escape(name)}\b", training_code) for name in statement.binds)
    )
    return tuple(dict.fromkeys(needed))


def _model_places(program: Program, plan: Plan) -> tuple[Place, ...]:
    """Where, outside functions, the variable of the model that counts is assigned a new model.

    A single place is not worth mentioning. Of several, the last one before the training loop counts, as a
    trial has shown; the student may have meant another one.
    """
    stages = plan.rehearsal.stages if plan.rehearsal is not None else ()
    trained = (stages[-1].called or stages[-1].loop) if stages else None
    if trained is None:
        return ()
    files = list(program.source or {})
    model, kind = program.script.model, program.script.model_class
    if not model.isidentifier() or not kind:
        return ()
    places = []
    for file, text in (program.source or {}).items():
        if file in program.modules:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue  # a cell with magics is reported elsewhere
        places += [
            Place(file, node.lineno)
            for node in _outside_functions(tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == model for target in node.targets)
            and _constructs(node.value, kind)
        ]
    before = [place for place in places if _place_order(place, files) <= _place_order(trained, files)]
    return tuple(before) if len(before) > 1 else ()


def _place_order(place: Place, files: list[str]) -> tuple[int, int]:
    return files.index(place.file) if place.file in files else len(files), place.line


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from _outside_functions(child)


def _constructs(value: ast.AST, kind: str) -> bool:
    """Whether an expression calls a class by its name."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == kind
        for node in ast.walk(value)
    )
