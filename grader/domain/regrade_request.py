"""Regrade requests: a student disputes the points of an item, and a person answers.

It holds one request as a score knows it. It takes no points and gives none: the answer may come with a new
mark, which counts as any mark does. It never says when requests are taken (`RegradeRules` does).
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256


@dataclass(frozen=True)
class RegradeRequest:
    """One request of a student.

    Attributes:
        target: The rubric item (`q6`), or the part of one (`q10.patches`).
        reason: The student's words.
        asked: When the student asked.
        before: The disputed points; None: they were open.
        answer: What the student reads; empty: nobody has answered yet.
        answered: When that was; None: nobody has.
        after: The points that the answer left or gave; None: there is no answer, or they are open.
    """

    target: str
    reason: str
    asked: datetime
    before: float | None
    answer: str = ""
    answered: datetime | None = None
    after: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to answer."""
        return self.answered is None

    @property
    def changed(self) -> bool:
        """Whether the answer changed the points."""
        return not self.is_open and self.after != self.before

    @property
    def answer_anchor(self) -> str:
        """The id of the answer on a report, another one for another answer, also in the same words."""
        when = self.answered.isoformat() if self.answered is not None else ""
        asked = f"{self.target}\0{self.reason}\0{self.asked.isoformat()}"
        text = f"{asked}\0{self.answer}\0{self.after}\0{when}"
        return f"answer-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
