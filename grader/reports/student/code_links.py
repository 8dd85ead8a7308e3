"""Where a line of the handed-in code stands on the page that shows it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.domain.answers import ANSWERS_FILE
from grader.domain.program import Place, cell_number, place_of
from grader.files.page_names import ANSWERS_PAGE, SUBMISSION_PAGE

SCRIPT = "code"  # the id of a script
_BESIDE = "|".join(map(re.escape, (SUBMISSION_PAGE, ANSWERS_PAGE, ANSWERS_FILE)))
_LINK = re.compile(rf'<a href="(?:{_BESIDE})(?:#[a-z0-9-]+)?">(.*?)</a>', re.DOTALL)


@dataclass(frozen=True)
class CodeLinks:
    """The links from a report into the page beside it; without a page, none.

    Attributes:
        lines: File or cell -> how many lines of it the page shows.
    """

    lines: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines)

    def to(self, where: str) -> str:
        """The address of a place, as `Place` writes it; empty where no such line is shown."""
        place = place_of(where)
        return f"{SUBMISSION_PAGE}#{anchor(place)}" if place is not None and self.shows(place) else ""

    def shows(self, place: Place) -> bool:
        """Whether the page has the line."""
        return 1 <= place.line <= self.lines.get(place.file, 0)


def anchor(place: Place) -> str:
    """The id of a line on the page: `line-41`, `cell-9-line-3`."""
    cell = cell_anchor(place.file)
    return f"line-{place.line}" if cell == SCRIPT else f"{cell}-line-{place.line}"


def cell_anchor(file: str) -> str:
    """The id of a cell, or of a script as a whole: `cell-9`, `code`."""
    number = cell_number(file)
    return SCRIPT if number is None else f"cell-{number}"


def alone(report: str) -> str:
    """A report that is sent without the pages beside it: its links there become plain text."""
    return _LINK.sub(r"\1", report)
