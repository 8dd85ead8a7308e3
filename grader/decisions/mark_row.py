"""One row of a marking sheet: a student and an item, or a part of one."""

from dataclasses import dataclass
from hashlib import sha256

from grader.domain.edit import Marked
from grader.domain.score import rounded

# in the order of the sheet; markers fill in the three that are FILLED
FILLED = ("points", "comment", "comment_ids")
COLUMNS = (
    "student_id",
    "item",
    "title",
    "max",
    *FILLED,
    "marked_by",
    "claimed_accuracy",
    "measured_accuracy",
    "checkpoint_accuracy",
    "hyperparameters",
    "note",
    "report",
    "answers",
    "exported",
)
_SEPARATOR = "-"  # between the token of a mark and how many there had been
NEEDED = ("student_id", "item", "points")


@dataclass(frozen=True)
class Mark:
    """What a marker filled in.

    Attributes:
        points: None: no mark.
        comment: Free text for the student.
        remarks: Ids of the comment bank.
    """

    points: float | None = None
    comment: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        """A short text that another mark does not have, which tells an untouched row from a filled one.

        It begins with a letter, or a spreadsheet would take some for numbers.
        """
        told = f"{self.points}\x1f{self.comment}\x1f{' '.join(self.remarks)}"
        return f"v{sha256(told.encode('utf-8', 'replace')).hexdigest()[:10]}"


@dataclass(frozen=True)
class MarkRow:
    """A row as it is exported.

    Attributes:
        student_id: Whose; of a team, the first's.
        target: The item (`q6`), or the part of one (`q10.class_token`).
        mark: The mark that stands.
        number: How many marks were given or taken back so far.
        marked_by: Whose it is; empty while there is none.
        evidence: Column -> text: what helps to mark.
        report: The relative address of the student's report.
        answers: Of the page that shows the student's PDF; empty where none was accepted.
        awaiting: Whether a person still has to mark it.
        team: All who handed it in together, sorted; () for a student's own.
    """

    student_id: str
    target: str
    title: str
    maximum: float
    mark: Mark
    marked_by: str
    evidence: dict[str, str]
    report: str
    answers: str
    awaiting: bool
    number: int = 0
    team: tuple[str, ...] = ()

    @property
    def exported(self) -> str:
        """What the sheet keeps of the mark that stood when it was made."""
        return f"{self.mark.token}{_SEPARATOR}{self.number}"


def mark_of(edit: Marked | None) -> Mark:
    """The mark that an edit gave; none for no edit, and for one that took a mark back."""
    if edit is None or edit.points is None:
        return Mark()
    return Mark(rounded(edit.points), edit.comment, tuple(remark_id for remark_id, _ in edit.remarks))


def stood(exported: str) -> tuple[str, int | None]:
    """(the token of the mark that stood, how many there had been) when a sheet was made.

    Sheets of older versions do not tell the number.
    """
    token, _, number = exported.partition(_SEPARATOR)
    return token, int(number) if number.isdecimal() else None
