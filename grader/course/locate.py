"""Finds the course, and reads its `course.toml`."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from grader.course.assignment_file import read_assignment
from grader.course.submission_rules import course_late_days
from grader.course.term_files import PeopleTable, TotalTable, term_plan
from grader.course.toml_file import FILE as ASSIGNMENT_FILE
from grader.course.toml_file import Table, listing, remedy, toml_table
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import DrawnValue, PackedValues, Value, drawn_values
from grader.domain.errors import CourseError, UsageError
from grader.domain.term_total import NO_PLAN, TermPlan
from grader.files.known_folders import PUBLIC_CHECKS, public_checks
from grader.language import ENGLISH, language, require_language
from grader.language.translation import FOLDER as CATALOG_FOLDER

FILE = "course.toml"
COURSE_VARIABLE = "GRADER_COURSE"
SECRET_VARIABLE = "GRADER_SECRET"
PLACEHOLDER = "change-me"


class _SandboxTable(Table):
    minimum: Literal["strict", "standard"] = "standard"


class _CourseLateTable(Table):
    """`[late]`: what students have for all assignments together."""

    tokens: Annotated[int, Field(ge=1)]


class _CourseTable(Table):
    title: Annotated[str, Field(min_length=1)]
    secret: Annotated[str, Field(min_length=1)]
    term: str = ""
    language: Annotated[str, Field(min_length=1)] = ENGLISH.code
    sandbox: _SandboxTable = _SandboxTable()
    late: _CourseLateTable | None = None
    total: TotalTable | None = None
    people: PeopleTable = PeopleTable()


@dataclass(frozen=True)
class Course:
    """A course folder.

    Attributes:
        root: The folder of `course.toml`.
        secret: The hidden splits and all seeds are derived from it.
        minimum_level: The least isolation that a grade needs, `strict` or `standard`.
        term: `2026-fall`; in each term, assignments draw other values.
        language: The code of the language that students' reports are written in.
        course_late_days: The late days of a student for all assignments together; 0: there is no such rule.
        plan: What it says about the whole term: weights, sections, groups.
        packed_values: What a package has in place of the secret to draw values from; None: nothing is packed.
    """

    root: Path
    title: str
    secret: str = field(repr=False)
    minimum_level: str = "standard"
    term: str = ""
    language: str = ENGLISH.code
    course_late_days: int = 0
    plan: TermPlan = NO_PLAN
    packed_values: PackedValues | None = None

    @property
    def datasets(self) -> Path:
        """The folder of the data set files."""
        return self.root / "datasets"

    @property
    def split_seed(self) -> int:
        """The seed that a data set is loaded with: the first 8 bytes of the secret's SHA-256.

        It decides which images a synthetic data set contains. The hidden splits are drawn from all of these
        images; older versions of the grader used the split that resulted from this seed.
        """
        return int.from_bytes(sha256(self.secret.encode()).digest()[:8], "big")

    @property
    def secret_is_public(self) -> bool:
        """Whether the secret is still the one that the course was handed out with."""
        return self.secret == PLACEHOLDER

    def require_secret(self) -> None:
        """Refuse to draw final values while the secret is the one that everybody knows.

        Raises:
            UsageError: The secret is still the one that the course was handed out with.
        """
        if self.secret_is_public:
            raise UsageError(
                f"The course has no secret of its own to draw values from ('{PLACEHOLDER}' is known to "
                f"everybody). Put a long random text into {FILE} as 'secret', or into ${SECRET_VARIABLE}."
            )

    def values(
        self, assignment_id: str, drawn: Sequence[DrawnValue], student_id: str = ""
    ) -> dict[str, Value]:
        """The values of an assignment that are drawn this term.

        Args:
            student_id: If it is empty, values that differ between students take their first choice.
        """
        if self.packed_values is not None:
            return self.packed_values.of(drawn, student_id)
        return drawn_values(self.secret, assignment_id, drawn, self.term, student_id)

    def assignments(self) -> tuple[str, ...]:
        """The ids of the assignments, sorted."""
        return tuple(sorted(path.parent.name for path in self.root.glob(f"reference/*/{ASSIGNMENT_FILE}")))

    def assignment(self, assignment_id: str) -> Assignment:
        """The assignment, whose reports are in the course's language.

        Raises:
            UsageError: There is no such assignment, or Babel is missing.
            CourseError: One of its files is malformed, a catalog among them.
        """
        assignment = read_assignment(self.reference(assignment_id))
        # raises if a catalog is malformed
        language(self.language, (self.root / CATALOG_FOLDER, assignment.folder / CATALOG_FOLDER))
        late_days = course_late_days(self.root, assignment, self.course_late_days)
        return replace(assignment, language=self.language, course_late_days=late_days)

    def reference(self, assignment_id: str) -> Path:
        """The assignment's folder, which only instructors see.

        Raises:
            UsageError: There is no such assignment.
        """
        assignment_ids = self.assignments()
        if assignment_id in assignment_ids:
            return self.root / "reference" / assignment_id
        if not assignment_ids:
            raise UsageError(
                f"The course in {self.root} has no assignments. "
                f"Begin one: grader new-assignment {assignment_id}"
            )
        choices = f"The course has {listing(assignment_ids)}."
        advice = remedy(assignment_id, assignment_ids, "Choose one of them.")
        raise UsageError(f"There is no assignment '{assignment_id}'. {choices} {advice}")


def located_course(
    given: Path | None = None, *, environment: Mapping[str, str] | None = None, working: Path | None = None
) -> Course:
    """The course that a command works on.

    Args:
        given: The folder that the operator names (`--course`), if any.
        environment: The environment variables; the process's own by default. `GRADER_COURSE` names the
            folder if it is not given, `GRADER_SECRET` replaces the secret of `course.toml`.
        working: Where the search upward for `course.toml` starts; the working directory by default.

    Raises:
        UsageError: There is no course.
        CourseError: Its `course.toml` is malformed.
    """
    environment = os.environ if environment is None else environment
    root = _root(given, environment.get(COURSE_VARIABLE, ""), working or Path.cwd())
    table = toml_table(root / FILE, _CourseTable)
    if table.term:
        require_term(table.term, f"{FILE}: 'term'")
    require_language(table.language, f"{FILE}: 'language'", root / CATALOG_FOLDER)
    return Course(
        root=root,
        title=table.title,
        secret=environment.get(SECRET_VARIABLE, "") or table.secret,
        minimum_level=table.sandbox.minimum,
        term=table.term,
        language=table.language,
        course_late_days=table.late.tokens if table.late is not None else 0,
        plan=term_plan(root, table.total, table.people),
    )


def require_term(term: str, what: str) -> None:
    """Refuse what is not the name of a term.

    Raises:
        CourseError: It is empty, or holds a reserved character: it becomes part of a text from which values
            are drawn.
    """
    if not re.fullmatch(r"\w[\w ./-]*", term):
        raise CourseError(
            f"{what} is '{term}', which is not a name of a term. Use letters, digits, spaces and . / - _, as "
            "in '2026-fall'."
        )


def student_assignment(folder: Path) -> Assignment:
    """The assignment as a student has it: the public file and the public checks beside the homework.

    Args:
        folder: The folder that the course handed out, with `assignment.toml` and public checks.

    Raises:
        UsageError: The folder is not such a folder.
        CourseError: One of its files is malformed.
    """
    for name, there in (
        (ASSIGNMENT_FILE, (folder / ASSIGNMENT_FILE).is_file()),
        (PUBLIC_CHECKS, bool(public_checks(folder))),
    ):
        if not there:
            raise UsageError(
                f"{folder} has no {name}. "
                "Run this in the folder that the course handed out, or copy the file back."
            )
    return read_assignment(folder, public_only=True)


def _root(given: Path | None, variable: str, working: Path) -> Path:
    if given is not None:
        return _course_folder(given, "--course")
    if variable:
        return _course_folder(Path(variable), f"${COURSE_VARIABLE}")
    start = working.resolve()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    raise UsageError(
        f"No course was found: there is no {FILE} in {start} or above it. "
        f"Go to the course's folder, give it with --course, or set {COURSE_VARIABLE}."
    )


def _course_folder(path: Path, source: str) -> Path:
    folder = path.expanduser().resolve()
    if folder.is_file() and folder.name == FILE:
        return folder.parent
    if not (folder / FILE).is_file():
        raise UsageError(f"{source} names {path}, which holds no {FILE}. Give the folder that holds it.")
    return folder
