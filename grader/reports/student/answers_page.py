"""What a student wrote, page by page, beside the items that people mark: an HTML file without scripts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import SPACE, counted, listed
from grader.domain.limits import MEGABYTE
from grader.domain.score import PartScore, Score
from grader.domain.submission import ANSWERS_FILE, Answers, Undrawn
from grader.reports.typesetting import environment, language_of, picture_uri

_WHY = {
    Undrawn.PROTECTED: "The PDF opens only with a password, so none of its pages could be drawn.",
    Undrawn.DAMAGED: "The PDF is damaged, or has no pages, so none of it could be drawn.",
    Undrawn.ENDED: "Drawing the PDF took more time or memory than is allowed, or failed.",
    Undrawn.FULL: "The PDF's pages take more space than is allowed.",
}


@dataclass(frozen=True)
class ShownPage:
    """A page of the PDF.

    Attributes:
        picture: A data URI; empty where it could not be drawn.
        width, height: In pixels.
    """

    number: int
    picture: str
    width: int = 0
    height: int = 0


@dataclass(frozen=True)
class MarkedItem:
    """A rubric item that people mark, with its current marks and comments.

    Attributes:
        points: None while nobody has marked it.
    """

    title: str
    points: float | None
    maximum: float
    comments: tuple[str, ...] = ()
    parts: tuple[PartScore, ...] = ()


def answers_page(
    assignment: Assignment,
    evidence: Evidence,
    score: Score,
    *,
    images: Mapping[str, bytes],
    generated_at: datetime,
    code: bool = False,
) -> str | None:
    """The pages of the PDF that was handed in, and what people mark, as a self-contained HTML page.

    It shows no marks that the student's report does not show, and links only to files beside it.

    Args:
        assignment: What was asked for.
        evidence: What was found out.
        score: The points.
        images: The pages' pictures by name; the page says which are missing.
        generated_at: When the page is made.
        code: Whether there is a page beside it that shows the code.

    Returns:
        HTML text, the same for the same arguments; None where no PDF was accepted.
    """
    answers = evidence.answers
    if answers is None:
        return None
    return (
        environment(language_of(assignment))
        .get_template("answers.html.j2")
        .render(
            assignment=assignment,
            evidence=evidence,
            answers=answers,
            file=ANSWERS_FILE if answers.kept else "",
            size=_size(answers),
            pages=tuple(_pages(answers, images)),
            remarks=(*undrawn_remarks(answers), *_limits(answers)),
            items=marked_items(assignment, score),
            code=code,
            generated_at=generated_at,
        )
    )


def undrawn_remarks(answers: Answers) -> tuple[str, ...]:
    """The parts of a PDF that should have been drawn and could not be, one sentence each."""
    remarks = [] if answers.undrawn is None else [_WHY[answers.undrawn]]
    if missing := [str(number) for number in answers.missing]:
        remarks.append(f"{'Page' if len(missing) == 1 else 'Pages'} {listed(missing)} could not be drawn.")
    return tuple(remarks)


def marked_items(assignment: Assignment, score: Score) -> tuple[MarkedItem, ...]:
    """The items that people mark, in the rubric's order; without a line in the score they are open."""
    lines = {line.id: line for line in score.lines}
    return tuple(
        MarkedItem(line.title, line.points, line.maximum, line.comments, line.parts)
        if (line := lines.get(item.id)) is not None
        else MarkedItem(item.title, None, item.points)
        for item in assignment.rubric
        if item.by_person
    )


def _limits(answers: Answers) -> Iterator[str]:
    """What is left out because it is too much."""
    if answers.pages is not None and 0 < answers.tried < answers.pages:
        yield f"It has {counted(answers.pages, 'page')}; the first {answers.tried} are shown."
    if not answers.kept:
        yield f"The PDF itself is too large to be kept here ({_size(answers)}): it is in the download."


def _size(answers: Answers) -> str:
    """`1.4 MB`, `38 kB`."""
    if answers.size < MEGABYTE:
        return f"{max(round(answers.size / 1000), 1)}{SPACE}kB"
    return f"{answers.size / MEGABYTE:.1f}{SPACE}MB"


def _pages(answers: Answers, images: Mapping[str, bytes]) -> Iterator[ShownPage]:
    drawn = {page.number: page for page in answers.drawn}
    for number in range(1, answers.tried + 1):
        if (page := drawn.get(number)) is None:
            yield ShownPage(number, "")
        else:
            yield ShownPage(number, _webp(images.get(page.image, b"")), page.width, page.height)


def _webp(data: bytes) -> str:
    """A WebP picture as a data URI; empty when it is missing or not WebP."""
    return picture_uri("webp", data) if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""
