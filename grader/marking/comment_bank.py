"""The comments for a question that markers have used or may use, with how often each was given."""

from dataclasses import dataclass
from datetime import datetime

from grader.marking.desk import Desk


@dataclass(frozen=True)
class BankComment:
    """A comment that can be given again.

    Attributes:
        id: In comments.toml; empty: a marker wrote it freely.
        uses: In how many marks of the question it stands now.
        by: Who wrote it freely first; empty for comments with an id.
    """

    id: str
    text: str
    uses: int
    by: str


def comment_bank(
    desk: Desk, target: str, now: datetime, *, search: str = "", limit: int = 50
) -> tuple[BankComment, ...]:
    """The comments for a question, those used most first; rubric items are not among them.

    Args:
        search: Words of which a comment must have all, in any order and case.

    Raises:
        UnknownTask: There is no such question.
    """
    raise NotImplementedError
