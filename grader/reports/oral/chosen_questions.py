"""A question of an oral check, and the five that one student is asked.

Each student is asked about different things: what was found out about code, sizes, training, choices and
mistakes makes more questions than are asked, and a seed with the submission's digest decides among them. The
same work gets the same questions. This module chooses among questions; the modules beside it make them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from markupsafe import Markup

from grader.reports.student.code_lines import CodeLine

COUNT = 5
NO_CHART = Markup("")
MOST_LINES = 4  # of code beside a question: five of them fit on a page


class QuestionKind(StrEnum):
    """What a question is about."""

    PART = "part"  # a certain part, as the assignment asks it
    CODE = "code"  # a line of their own
    SIZE = "size"  # the numbers of their model
    RESULT = "result"  # their curves and confusions
    CHOICE = "choice"  # their hyperparameters
    ERROR = "error"  # what checks found, now or earlier


# one question of each kind in turn, the most personal first, as long as there are some
_TURNS = (
    QuestionKind.PART,
    QuestionKind.ERROR,
    QuestionKind.RESULT,
    QuestionKind.CHOICE,
    QuestionKind.CODE,
    QuestionKind.SIZE,
)


@dataclass(frozen=True)
class SheetQuestion:
    """One question, as the sheet shows it.

    Attributes:
        id: Unique among a student's questions.
        topic: What it is about; while there are others, no two with the same topic are asked.
        text: For the student.
        note: What a good answer holds; for the examiner alone.
        lines: The student's code beside it.
        where: The place of that code; empty if there is none.
        chart: A chart beside it.
    """

    kind: QuestionKind
    id: str
    topic: str
    text: str
    note: str
    lines: tuple[CodeLine, ...] = ()
    where: str = ""
    chart: Markup = NO_CHART


def rank(seed: str, name: str) -> bytes:
    """The place of a name in the order that a seed gives."""
    return sha256(f"{seed}\0{name}".encode()).digest()


def five(questions: Iterable[SheetQuestion], seed: str) -> tuple[SheetQuestion, ...]:
    """The questions that are asked, at most COUNT; only one of them has a chart.

    Args:
        questions: All that can be asked about the work.
        seed: Of the draw and the submission.
    """
    left = sorted(questions, key=lambda question: rank(seed, question.id))
    asked: list[SheetQuestion] = []
    while left and len(asked) < COUNT:
        count = len(asked)
        for kind in _TURNS:
            chosen = _next(left, kind, [question.topic for question in asked])
            if chosen is not None and len(asked) < COUNT:
                left.remove(chosen)
                asked.append(chosen)
        if len(asked) == count:  # all topics are used up
            asked += left[: COUNT - count]
            break
    has_chart = [question for question in asked if question.chart]
    shown = [
        replace(question, chart=NO_CHART) if question in has_chart[1:] else question for question in asked
    ]
    return tuple(sorted(shown, key=lambda question: _TURNS.index(question.kind)))


def _next(left: Sequence[SheetQuestion], kind: QuestionKind, used: Sequence[str]) -> SheetQuestion | None:
    """The first question of a kind whose topic is new."""
    return next((question for question in left if question.kind is kind and question.topic not in used), None)
