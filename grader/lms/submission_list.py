"""An LMS's list of the submissions in its export: which of a student's counts, and who shares it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.domain.submission import Lacking
from grader.files.names import sanitized

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class ListedSubmission:
    """One submission of an export.

    Attributes:
        folder: The name of its folder.
        students: The ids of those who handed it in, as the LMS knows them; empty where it knows none.
        created_at: When it was handed in.
        earlier: How many earlier attempts the LMS has that are not in the export.
        names: What the LMS calls the students, in their order; empty where it does not say.
    """

    folder: str
    students: tuple[str, ...]
    created_at: datetime | None
    earlier: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubmissionList:
    """The submissions of an export.

    Attributes:
        lms: Whose list it is.
        known: The submissions by the names of their folders.
        last: The folder that counts for each student.
    """

    lms: str
    known: dict[str, ListedSubmission]
    last: dict[str, str]

    def owner(self, folder: str) -> str | None:
        """The student under whose id a submission is listed: the first of those for whom it counts."""
        students = self.known[folder].students
        counting = [student for student in students if self.last[student] == folder]
        return next(iter([*counting, *students]), None)

    def counting(self, folder: str) -> str:
        """The submission that counts for the student under whose id `folder` is listed: maybe itself."""
        owner = self.owner(folder)
        return folder if owner is None else self.last[owner]

    def members(self, folder: str) -> tuple[str, ...]:
        """Those besides the owner for whom a submission counts."""
        owner = self.owner(folder)
        own = dict.fromkeys(self.known[folder].students)
        return tuple(one for one in own if one != owner and self.last[one] == folder)

    def shared(self, folder: str) -> list[str]:
        """What the report says of those who handed in together, and of attempts before this one."""
        one = self.known[folder]
        notes = []
        if len(one.students) > 1:
            # who the others are stands on the class page: no report names anybody else
            notes.append(
                f"Handed in together by {len(one.students)} students: graded once, for each of them."
            )
        if one.earlier:
            notes.append(f"{self.lms} has earlier attempts ({one.earlier}), which are not in the export.")
        return notes

    def lacking(self, there: Collection[str]) -> list[Lacking]:
        """The submissions of those of whom nothing is in the export.

        Args:
            there: The names of the folders that are in it.
        """
        present = {
            student for folder, one in self.known.items() if folder in there for student in one.students
        }
        whose = [(student, folder) for student, folder in self.last.items() if student not in present]
        whose += [(folder, folder) for folder, one in self.known.items() if not one.students]
        return [
            Lacking(sanitized(student), self.lms, folder, f"{self.lms}:{student}")
            for student, folder in whose
            if folder not in there
        ]

    def notes(self, there: Collection[str]) -> list[str]:
        """What a person should know of the export as a whole.

        Args:
            there: The names of the folders that are in it.
        """
        notes = []
        for folder, one in self.known.items():
            others = self.members(folder)
            if folder not in there:
                whose = ", ".join(one.students) or "nobody known"
                notes.append(
                    f"{folder} of {whose} is listed by {self.lms} and not in the export. Export it again."
                )
            elif others and self.counting(folder) == folder:
                notes.append(
                    f"{self.owner(folder)}: handed in together with {', '.join(others)}. It is graded once, "
                    "and each has a report."
                )
            elif not one.students:
                notes.append(f"{folder}: {self.lms} knows no student id for it. Find out whose it is.")
        return notes


def submissions_in_time(lms: str, submissions: Iterable[ListedSubmission]) -> SubmissionList:
    """The list of an LMS, in which of a student's submissions the last in time counts."""
    known = {one.folder: one for one in submissions}
    in_time = sorted(known.values(), key=lambda one: (one.created_at or _LONG_AGO, one.folder))
    return SubmissionList(lms, known, {student: one.folder for one in in_time for student in one.students})
