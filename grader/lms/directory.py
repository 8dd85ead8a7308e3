"""What an LMS's list of the class says of the LMS's own numbers, which its downloads have too."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from grader.domain.submission import Origin


@dataclass(frozen=True)
class ListedStudent:
    """A student on an LMS's list of the class.

    Attributes:
        student_id: As results are listed; empty where the list knows no more than the LMS's own number.
        sure: It is the student's number; else a login or an address.
        person: The name; empty where the list has none.
    """

    student_id: str
    sure: bool
    person: str = ""


@dataclass(frozen=True)
class Directory:
    """What an LMS's list of the class says of the LMS's own numbers.

    Attributes:
        lms: Whose numbers they are.
        students: Number -> who that is.
    """

    lms: str = ""
    students: Mapping[str, ListedStudent] = field(default_factory=dict)

    def of(self, origin: Origin) -> ListedStudent | None:
        """Who handed an upload in; None where the list does not tell."""
        return self.students.get(origin.number) if origin.number and origin.lms == self.lms else None

    def others(self, origin: Origin) -> bool:
        """Whether the id that an upload carries is by the list that of somebody with another number."""
        if not (origin.carries and origin.number) or origin.lms != self.lms:
            return False
        owner = self._numbers.get(origin.carries.casefold(), origin.number)
        return owner != origin.number

    def unsure(self) -> "Directory":
        """The same where the students' numbers are not those by which files are named."""
        students = {number: replace(one, sure=False) for number, one in self.students.items()}
        return replace(self, students=students)

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """Student's id, as it compares -> the LMS's number."""
        return {one.student_id.casefold(): number for number, one in self.students.items() if one.student_id}
