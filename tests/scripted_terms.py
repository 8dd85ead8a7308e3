"""A course of small assignments, and a term in it: who handed in what, when, and what became of it.

Nothing is executed: what the checks would find is stated. Everything after that is what `grader grade` and
`grader regrade` do: results are recorded in one gradebook, scored, reported and read back.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from grader.course.locate import Course, located_course
from grader.decisions.corrections import Regrade, regrade
from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.reports.results_json.results_schema import DownloadRecord, RosterRecord
from grader.results.class_pages import write_pages
from grader.results.current_state import DownloadAccount, keep_download_account
from grader.results.session import ClassSession

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
STUDENT = "400101204"
PUBLIC, HIDDEN = 2, 8

_COURSE = """
title = "A course"
secret = "a secret of its own"
"""
_ASSIGNMENT = """
id = "{id}"
title = "Assignment {id}"
deadline = {deadline}

[files]
stem = "{{student_id}}_{id}"

[files.required]
code = [".py"]

[[component]]
name = "work"
kind = "function"
signature = "values"

[[rubric]]
id = "parts"
title = "The parts"
points = 100
components = {{ work = 100 }}

{report}
{more}
"""
_REPORT = """
[[rubric]]
id = "report"
title = "The report"
points = 20
by = "person"
"""


def _checks(names: list[str]) -> str:
    tests = [
        f'@pytest.mark.component("work")\ndef test_{name}(student):\n    """It does {name}."""\n'
        for name in names
    ]
    return "\n\n".join(['"""Checks."""\n\nimport pytest', *tests])


@dataclass
class Term:
    """A course that is graded for a term.

    Attributes:
        root: The folder of everything.
        now: The time of the next command.
    """

    root: Path
    now: datetime = START
    counts: dict[str, int] = field(default_factory=dict)

    def course(self, more: str = "") -> None:
        """Write `course.toml`."""
        (self.root / "course").mkdir(exist_ok=True)
        (self.root / "course" / "course.toml").write_text(_COURSE + more)

    def assignment(self, name: str, deadline: datetime, more: str = "", *, report: bool = False) -> None:
        """Write an assignment."""
        folder = self.root / "course" / "reference" / name
        (folder / "checks").mkdir(parents=True, exist_ok=True)
        text = _ASSIGNMENT.format(
            id=name, deadline=deadline.isoformat(), more=more, report=_REPORT if report else ""
        )
        (folder / "assignment.toml").write_text(text)
        public = [f"public_{number}" for number in range(PUBLIC)]
        hidden = [f"hidden_{number}" for number in range(HIDDEN)]
        (folder / "checks" / "test_public.py").write_text(_checks(public))
        (folder / "checks" / "test_hidden.py").write_text(_checks(hidden))

    def located(self) -> Course:
        """The course."""
        return located_course(self.root / "course", environment={})

    def read(self, name: str) -> Assignment:
        """An assignment as it is now."""
        return self.located().assignment(name)

    def out(self, name: str) -> Path:
        """The results folder of an assignment."""
        return self.root / f"results_{name}"

    def book(self, name: str) -> Gradebook:
        """The gradebook of the course, for one assignment."""
        return Gradebook(self.out(name), f"sqlite:///{self.root / 'course.sqlite'}", assignment_id=name)

    def hand_in(
        self,
        name: str,
        came: datetime | None,
        passed: int,
        *,
        student: str = STUDENT,
        files: str = "",
        graded: datetime | None = None,
        **evidence: Any,
    ) -> Result:
        """Grade what a student handed in, and write all pages.

        Args:
            came: When; None: nothing tells.
            passed: How many of the ten checks pass.
            files: Which files these are; by default others than before.
            graded: When it is graded; by default now.
        """
        self.counts[name] = self.counts.get(name, 0) + 1
        assignment, when = self.read(name), graded or self.now
        findings = tuple(
            Finding(
                check.id, check.component, check.title, Status.PASSED if number < passed else Status.FAILED
            )
            for number, check in enumerate(sorted(assignment.checks, key=lambda one: not one.public))
        )
        found = Evidence(
            student,
            name,
            files or f"files {self.counts[name]}",
            when,
            **{
                "findings": findings,
                "received_at": came,
                **evidence,
            },
        )
        with self.book(name) as book:
            result = Keeper(assignment, book, self.out(name), "ta1").kept(found, {}, when)
            write_pages(assignment, book, self.out(name), when, always_class=True)
        return result

    def list_class(self, name: str, students: Collection[str]) -> None:
        """Keep a class list, as `grader grade --roster` does."""
        with self.book(name) as book:
            there = set(book.students())
            roster = RosterRecord(
                source="class.csv",
                students=sorted(students),
                missing=sorted(set(students) - there),
                unlisted=sorted(there - set(students)),
                notes=[],
            )
            counts = {"matched": 0, "superseded": 0, "refused": 0}
            account = DownloadRecord(source=f"{name}.zip", files=[], notes=[], roster=roster, **counts)
            keep_download_account(book, self.out(name), DownloadAccount(account), who="ta1", when=self.now)

    def mark(self, name: str, points: float, *, item: str = "report", student: str = STUDENT) -> None:
        """Give the points of an item by hand."""
        edit = Marked(who="ta1", when=self.now, why="Read.", student_id=student, target=item, points=points)
        with self.book(name) as book:
            self.session(name, book).revised("mark", decide=lambda *_: [edit], allow_lower=True)

    def regrade(self, name: str, **more: Any) -> Regrade:
        """Score everything again, as `grader regrade`."""
        with self.book(name) as book:
            return regrade(self.session(name, book), **more)

    def session(self, name: str, book: Gradebook) -> ClassSession:
        """What people decide about an assignment goes through it."""
        return ClassSession(self.out(name), book, self.read(name), "ta1", lambda: self.now)

    def record(self, name: str, student: str = STUDENT) -> Mapping[str, Any]:
        """What `results.json` says of a student."""
        content = json.loads((self.out(name) / "results.json").read_text())
        return next(one for one in content["submissions"] if one["student_id"] == student)

    def page(self, name: str, student: str = STUDENT) -> str:
        """The student's report, as HTML."""
        return (self.out(name) / "students" / student / "report.html").read_text()
