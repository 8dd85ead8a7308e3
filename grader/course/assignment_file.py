"""Reads `assignment.toml`, its check files, comment bank and oral questions into an `Assignment`.

Each part is read by its own module; this one checks what concerns several parts, and computes the digest
of all files that grades depend on. The comment bank, `comments.toml`, has sentences for students, which
markers choose by their ids. It never changes a file of the course.
"""

import ast
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import Field

from grader.course.assignment_tables import (
    AssignmentTable,
    ComponentTable,
    DataTable,
    LateTable,
)
from grader.course.check_files import checks, trained_checks
from grader.course.course_files import file_content
from grader.course.editions import edition_of
from grader.course.homework_files import file_stem, provided_files, submitted_files
from grader.course.marking_file import NO_MARKING_ITEMS, read_marking_items
from grader.course.measures import MEASURES_FILE, measures, require_functions, study_table
from grader.course.oral_questions import oral_questions
from grader.course.rubric import forbidden_rules, hidden_checks_of_copy, rubric_items
from grader.course.submission_rules import regrade_rules, resubmission, tries
from grader.course.toml_file import (
    FILE,
    Table,
    fault,
    listing,
    remedy,
    require_cell_id,
    require_different,
    require_file_name,
    toml_table,
)
from grader.course.variant_values import stated_values
from grader.domain.assignment import (
    SUBMISSION,
    Assignment,
    Component,
    DataUse,
    Remark,
    maximum_of,
)
from grader.domain.assignment_files import PROVIDED
from grader.domain.assignment_rules import LatePolicy
from grader.domain.assignment_versions import DRAWN_VALUES_CHECK, ONE_EDITION, Edition
from grader.domain.errors import CourseError
from grader.domain.formatting import moment_problem
from grader.domain.limits import Limits
from grader.domain.measure import Measure
from grader.domain.submission import Role
from grader.files.known_folders import PUBLIC_GLOB, visible

COMMENTS_FILE = "comments.toml"


class _CommentTable(Table):
    """`[[comment]]`: one sentence or a few."""

    id: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    item: str = ""


class _BankTable(Table):
    comment: list[_CommentTable] = Field(default_factory=list)


def remarks(folder: Path, items: Sequence[str], edition: Edition = ONE_EDITION) -> tuple[Remark, ...]:
    """The comment bank of an assignment; empty when it has none.

    Args:
        folder: `reference/<id>`.
        items: The ids of the rubric's items.
        edition: Some comments belong to some editions only.

    Raises:
        CourseError: The file is malformed, an id occurs twice or an item does not exist.
    """
    if not (folder / COMMENTS_FILE).exists():
        return ()
    remarks_by_id: dict[str, Remark] = {}
    for table in toml_table(folder / COMMENTS_FILE, _BankTable, edition).comment:
        require_cell_id(table.id, f"{COMMENTS_FILE}: comment")
        if table.id in remarks_by_id:
            raise CourseError(f"{COMMENTS_FILE}: comment '{table.id}' is there twice. Remove or rename one.")
        if table.item and table.item not in items:
            advice = remedy(table.item, items, f"There are {listing(items)}.")
            raise CourseError(
                f"{COMMENTS_FILE}: comment '{table.id}' is about '{table.item}', which is not a rubric item. "
                f"{advice}"
            )
        remarks_by_id[table.id] = Remark(table.id, table.text, table.item)
    return tuple(remarks_by_id.values())


# --- assignment file -------------------------------------------------------------------------------------


_INSTRUCTORS_FILES = (
    FILE,
    "*.py",
    "checks/**/*",  # also what they read: tables of expected values
    "trained/**/*",
    "mistakes/**/*.py",
    "oracle/**/*",
    "handin/*",
)
_STUDENTS_FILES = (
    FILE,
    PUBLIC_GLOB,
    MEASURES_FILE,
)  # without the homework beside them, which changes every day


def read_assignment(folder: Path, *, public_only: bool = False) -> Assignment:
    """The assignment whose files are in the folder.

    Args:
        folder: `reference/<id>`, or a student's folder.
        public_only: The folder is a student's: only the public checks are there, and its name is the
            student's choice.

    Returns:
        The assignment with its checks.

    Raises:
        CourseError: A file is missing, malformed or contradicts itself.
    """
    edition = edition_of(folder)
    table = toml_table(folder / FILE, AssignmentTable, edition)
    require_file_name(table.id, "id")
    if not public_only and table.id != folder.resolve().name:
        raise fault(f"id is '{table.id}' but the folder is '{folder.resolve().name}'. Make them the same.")
    files = submitted_files(table.files)
    own_roles = [file.role for file in files if file.role not in tuple(Role)]
    components = _components(table.component, own_roles)
    names = [component.name for component in components]
    data = _data(table.data) if table.data is not None else None
    if data is None:
        _require_nothing_measured(table)
    found_checks = checks(folder, names, public_only=public_only, left_out=edition.left_out)
    if table.variant and DRAWN_VALUES_CHECK in [check.id for check in found_checks]:
        raise fault(
            f"a check is called '{DRAWN_VALUES_CHECK}', like the grader's own about [variant]. Rename it."
        )
    measured = measures(table.measure, table.program, components)
    require_functions(folder, measured, public_only=public_only)
    if not public_only:
        _require_accepted(folder, measured)
    if data is not None and not data.are_images:
        _require_measured_by_call(measured)
    classes = len(data.classes) if data is not None else 0
    rubric = rubric_items(table.rubric, names, measured, classes)
    study = study_table(table.study, components, own_roles) if table.study is not None else None
    if study is None and (study_items := [item.id for item in rubric if item.study]):
        raise fault(f"rubric item '{study_items[0]}' is by = \"study\", and there is no [study]. Add it.")
    bank = () if public_only else remarks(folder, [item.id for item in rubric], edition)
    marking = NO_MARKING_ITEMS if public_only else read_marking_items(folder, rubric, bank, edition)
    return Assignment(
        id=table.id,
        title=table.title,
        folder=folder,
        file_stem=file_stem(table.files),
        files=files,
        components=components,
        checks=found_checks,
        trained_checks=() if public_only else trained_checks(folder, names, edition.left_out),
        rubric=rubric,
        forbidden=forbidden_rules(table.forbidden, [item.id for item in rubric], names),
        limits=Limits(**table.limits.model_dump()),
        data=data,
        deadline=_deadline(table.deadline),
        late=_late(table.late, table.deadline),
        resubmission=resubmission(table.resubmission, table.deadline),
        tries=tries(table.tries, table.deadline),
        regrade_rules=regrade_rules(table.regrade_requests),
        review_required=table.review.required,
        policies=dict(table.policies),
        boundaries=_boundaries(table.boundaries, maximum_of(rubric)),
        leaderboard=table.leaderboard,
        public_only=public_only,
        remarks=() if public_only else (*bank, *marking.items),
        from_zero=() if public_only else marking.from_zero,
        oral_questions=() if public_only else oral_questions(folder, components, edition),
        measures=measured,
        study=study,
        provided=provided_files(table.provided, None if public_only else folder / PROVIDED),
        variant=stated_values(table.variant),
        edition=edition,
        digest=digest(folder, public_only=public_only),
        hidden_checks=hidden_checks_of_copy(table.hidden_check, names, public_only=public_only),
        example_id=table.handed_out.student_id if table.handed_out is not None else "",
    )


def _require_accepted(folder: Path, measured: Sequence[Measure]) -> None:
    """Check that each mistake that `accepts` names is a known one."""
    known_mistakes = [path.stem for path in visible(folder / "mistakes", "*.py")]
    for name in (name for measure in measured if measure.call for name in measure.call.accepts):
        if name not in known_mistakes:
            advice = remedy(name, known_mistakes, "Name a file of mistakes/ without '.py'.")
            raise fault(f"[measure.call]: accepts names '{name}', which is not a known mistake. {advice}")


def digest(folder: Path, *, public_only: bool = False) -> str:
    """SHA-256, hexadecimal, over the names and contents of all files that grades depend on.

    Raises:
        CourseError: A file cannot be read.
    """
    paths = visible(folder, *(_STUDENTS_FILES if public_only else _INSTRUCTORS_FILES))
    total = sha256()
    for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in paths):
        if path.is_dir() and path.suffix != ".py":
            continue
        content = file_content(path, name)
        # The lengths keep "ab" + "c" apart from "a" + "bc".
        total.update(f"{len(name.encode())} {name} {len(content)} ".encode() + content)
    return total.hexdigest()


def _deadline(deadline: datetime | None) -> datetime | None:
    if deadline is not None and (problem := moment_problem(deadline, "the deadline")):
        raise fault(problem)
    return deadline


def _late(table: LateTable | None, deadline: datetime | None) -> LatePolicy:
    if table is None:
        return LatePolicy()
    if deadline is None:
        raise fault("[late] has no deadline to count from. Add 'deadline' above the first table.")
    if table.most_points is not None and table.points_per_day is None:
        raise fault("[late]: 'most_points' bounds nothing without 'points_per_day'. Add that, or remove it.")
    return LatePolicy(**table.model_dump())


def _boundaries(points: Sequence[float], maximum: float) -> tuple[float, ...]:
    if list(points) != sorted(set(points)):
        raise fault("'boundaries' is not in ascending order. Sort it, each value once.")
    if points and points[-1] > maximum:
        raise fault(
            f"'boundaries' has {points[-1]:g}, and the rubric has {maximum:g} points in all. Lower it."
        )
    return tuple(points)


def _require_nothing_measured(table: AssignmentTable) -> None:
    """Refuse what needs data where there is none."""
    needing = [f"rubric item '{item.id}' is measured" for item in table.rubric if item.measured is not None]
    needing += [f"[[measure]] '{measure.id}' measures a model" for measure in table.measure]
    needing += ["'leaderboard' lists accuracies"] if table.leaderboard else []
    if needing:
        raise fault(
            f"{needing[0]}, but there is no [data] to measure on. Add [data] with 'real', 'synthetic' and "
            "'classes', or measure nothing."
        )


def _require_measured_by_call(measured: Sequence[Measure]) -> None:
    """Refuse measures that only work for images."""
    for measure in measured:
        if measure.call is None or not measure.function:
            raise fault(
                f"[data] kind is 'arrays', and [[measure]] '{measure.id}' has no "
                f"'{'call' if measure.call is None else 'function'}'. Add it."
            )


def _data(table: DataTable) -> DataUse:
    for name in (table.real, table.synthetic):
        if not name.isidentifier():
            raise fault(
                f"[data]: '{name}' is not the name of a file in datasets/ without its '.py'. Change it."
            )
    if len(table.classes) == 1 or (table.kind == "images" and not table.classes):
        problem = "names one class" if table.classes else "is missing"
        raise fault(f"[data]: 'classes' {problem}. Name at least two.")
    require_different(table.classes, "[data]: the class", "Remove one.")
    return DataUse(
        real=table.real,
        synthetic=table.synthetic,
        classes=tuple(table.classes),
        student_seed=table.student_seed,
        train_share=table.train_share,
        train_per_class=table.train_per_class,
        test_per_class=table.test_per_class,
        without=tuple(table.without),
        in_parts=table.layout == "parts",
        size=(table.size[0], table.size[1]),
        channels=table.channels,
        are_images=table.kind == "images",
    )


def _components(tables: Sequence[ComponentTable], roles: Sequence[str]) -> tuple[Component, ...]:
    require_different((table.name for table in tables), "component", "Remove or rename one.")
    return tuple(_component(table, roles) for table in tables)


def _component(table: ComponentTable, roles: Sequence[str]) -> Component:
    name = table.name
    if table.kind == "file" and (name not in roles or table.signature):
        there = f"the roles of your own are {listing(roles)}" if roles else "it names no role of your own"
        raise fault(
            f"component '{name}' is a file. Give it no signature, and a role of [files] as its name: {there}."
        )
    if not name.isidentifier():
        raise fault(f"component '{name}' is not a Python name. Change it.")
    if name == SUBMISSION:
        raise fault(f"a component cannot be called '{name}', which means the files as a whole. Rename it.")
    signature = " ".join(table.signature.split())
    try:
        ast.parse(f"def stub({signature}): ...")
    except (SyntaxError, ValueError):
        raise fault(f"component '{name}': the signature '{signature}' is not valid Python. Fix it.") from None
    return Component(name, table.kind, signature)
