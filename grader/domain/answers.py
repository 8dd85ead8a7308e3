"""The PDF that a student handed in beside the code: what people mark, kept and drawn page by page."""

from dataclasses import dataclass
from enum import StrEnum

ANSWERS_FILE = "answers.pdf"  # among the files that belong to the evidence, and beside the student's report


class Undrawn(StrEnum):
    """Why none of the pages was drawn, or not all of them."""

    PROTECTED = "protected"  # it opens with a password only
    DAMAGED = "damaged"  # it is not a PDF that can be opened, or has no pages
    ENDED = "ended"  # opening it ended badly: a crash, or more time or memory than is granted
    FULL = "full"  # its pages take more room than is granted


@dataclass(frozen=True)
class DrawnPage:
    """A page as a picture.

    Attributes:
        number: 1-based.
        width, height: In pixels.
    """

    number: int
    width: int
    height: int

    @property
    def image(self) -> str:
        """The name of one of the images that belong to the evidence (WebP)."""
        return f"answers-{self.number:02}.webp"


@dataclass(frozen=True)
class Answers:
    """The PDF that was accepted as the student's report.

    Attributes:
        file: Its name as it was handed in.
        digest: SHA-256 of its bytes, in hexadecimal digits.
        size: In bytes.
        kept: Its bytes are among the files that belong to the evidence, as `ANSWERS_FILE`.
        pages: How many it has; None where that could not be found out.
        tried: How many, from the first on, were to be drawn before it ended; there is a most.
        drawn: Those of them that were drawn, in order.
        undrawn: Why it ended before that most, or before the first.
    """

    file: str
    digest: str
    size: int
    kept: bool = False
    pages: int | None = None
    tried: int = 0
    drawn: tuple[DrawnPage, ...] = ()
    undrawn: Undrawn | None = None

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the pages that could not be drawn, although those after them were tried."""
        drawn = {page.number for page in self.drawn}
        return tuple(number for number in range(1, self.tried + 1) if number not in drawn)
