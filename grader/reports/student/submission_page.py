"""What a student handed in, with the findings at its lines: an HTML file without scripts.

It makes the page of the code and the notebook, and makes hostile HTML harmless: only markup for text is
kept, and pictures that are embedded in the page. The page's Content-Security-Policy is a second wall: what
slipped through could neither run nor load anything. It never decides which notes belong to a line
(`findings` does).
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import nh3
from markupsafe import Markup, escape

from grader.domain.analyzed_program import Place, cell_number
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import printable, revealed
from grader.domain.score import Score
from grader.domain.submission import CellKind, CodeLine, View, ViewCell, plain_lines, text_of
from grader.language.translation import Language
from grader.reports.student.code_lines import CodeLinks
from grader.reports.student.findings import LineNote, component_reports, line_notes, notes_by_line
from grader.reports.typesetting import environment, language_of
from grader.scoring.decided_by_people import with_waived

_TAGS = {
    *("p", "br", "hr", "div", "span", "pre", "code", "kbd", "samp", "blockquote"),
    *("b", "i", "em", "strong", "u", "s", "del", "ins", "mark", "small", "sub", "sup", "abbr"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd"),
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "img"),
}
_ATTRIBUTES = {
    "img": {"src"},
    "th": {"colspan", "rowspan"},
    "td": {"colspan", "rowspan"},
    "ol": {"start"},
    "span": {"class"},
    "div": {"class"},
}
_WITH_CONTENT = {
    *("script", "style", "template", "noscript", "iframe", "object", "svg", "math", "title", "textarea"),
    *("select", "audio", "video", "canvas"),
}
# nbconvert's names for the colors of a terminal, and for what was printed as an error
_CLASSES = re.compile(r"ansi-[a-z]+(?:-intense)?-(?:fg|bg)|ansi-(?:bold|underline|inverse)|output_stderr")
_OWN_PICTURE = re.compile(r"data:image/jpeg;base64,[A-Za-z0-9+/]+={0,2}")
MOST_SPANNED = 50  # columns or rows, by one cell: a browser lays out each of them, even the empty ones
_SMALL_NUMBER = re.compile(r"[1-9][0-9]{0,2}")
_HEADING = re.compile(r"<h([1-6])>|</h[1-6]>")
_NO_SOURCE = re.compile(r"<img(?![^>]* src=)[^>]*>")
PICTURE_LEFT_OUT = '<span class="left-out">(a picture from elsewhere is not loaded)</span>'


def cleaned(html: str) -> Markup:
    """The HTML of a cell without scripts, styles, links, forms, frames, identifiers and loads.

    Its headings become `<div class="title-1">` and so on: they do not belong to the page's outline.

    Args:
        html: As it was received; nothing in it is trusted.
    """
    safe = nh3.clean(
        html,
        tags=_TAGS,
        clean_content_tags=_WITH_CONTENT,
        attributes=_ATTRIBUTES,
        attribute_filter=_safe_attribute,
        # what scrolls must be reachable by keyboard
        set_tag_attribute_values={"img": {"alt": "A picture among the outputs"}, "pre": {"tabindex": "0"}},
        url_schemes={"data"},
        link_rel=None,
        strip_comments=True,
        generic_attribute_prefixes=set(),
    )
    safe = _HEADING.sub(lambda heading: f'<div class="title-{heading[1]}">' if heading[1] else "</div>", safe)
    safe = _NO_SOURCE.sub(PICTURE_LEFT_OUT, safe)
    return Markup(printable(safe))  # nh3 escaped its text


def _safe_attribute(tag: str, name: str, value: str) -> str | None:
    if name == "class":
        return " ".join(css_class for css_class in value.split() if _CLASSES.fullmatch(css_class)) or None
    if name == "src":
        return value if _OWN_PICTURE.fullmatch(value) else None
    if name in ("colspan", "rowspan"):
        return value if _SMALL_NUMBER.fullmatch(value) and int(value) <= MOST_SPANNED else None
    if name == "start":
        return value if _SMALL_NUMBER.fullmatch(value) else None
    return value


# --- submission page -------------------------------------------------------------------------------------


MOST_LINES = 20_000
LONGEST = 2_000  # characters of a line
CONTINUES = "the line continues"
NOT_RENDERED = "It could not be rendered, so only the code that the grader read is shown."
_KIND = re.compile(r"[a-z]{0,12}")


@dataclass(frozen=True)
class ShownLines:
    """Lines of code, one below the other, and the notes about the last of them.

    Attributes:
        html: The lines with their numbers, which are links to them, and their colors.
    """

    html: Markup
    notes: tuple[LineNote, ...]


@dataclass(frozen=True)
class ShownCell:
    """A cell, or a whole script, as the page shows it.

    Attributes:
        name: `In [4], cell 9`, or the script's name.
        html: The text, or what the code printed and drew, cleaned.
        notes: The notes about its outputs.
    """

    id: str
    name: str
    kind: CellKind
    lines: tuple[ShownLines, ...]
    html: Markup
    notes: tuple[LineNote, ...]


def submission_page(
    assignment: Assignment, evidence: Evidence, shown: "ShownSubmission", *, generated_at: datetime
) -> str | None:
    """The handed-in code, read-only, with the findings at their lines, as a self-contained HTML page.

    It shows no findings that the student's report does not show, and links only to that report.

    Args:
        assignment: What was asked for.
        evidence: What was found out.
        shown: The code, by `shown_submission`.
        generated_at: When the page is made.

    Returns:
        HTML text, the same for the same arguments; None where no readable code was handed in.
    """
    if not shown.cells:
        return None
    return (
        environment(language_of(assignment))
        .get_template("submission.html.j2")
        .render(
            assignment=assignment,
            evidence=evidence,
            file=shown.file,
            cells=shown.cells,
            cuts=shown.cuts,
            notebook=shown.is_notebook,
            findings=shown.findings,
            elsewhere=shown.elsewhere,
            generated_at=generated_at,
        )
    )


@dataclass(frozen=True)
class ShownSubmission:
    """The code as pages show it.

    Attributes:
        file: The name of the file that was handed in.
        links: The links to its lines on the page that `submission_page` makes, if it makes one.
        cuts: Sentences on what is not shown.
        is_notebook: Whether the cells are those of a notebook.
        findings: The notes that ask for something, each with the id of its line; empty: it has none.
        elsewhere: How many of the report's messages about checks do not name a line.
    """

    file: str
    cells: tuple[ShownCell, ...]
    links: CodeLinks
    cuts: tuple[str, ...]
    is_notebook: bool
    findings: tuple[tuple[LineNote, str], ...]
    elsewhere: int


def shown_submission(
    assignment: Assignment, evidence: Evidence, score: Score, view: View | None
) -> ShownSubmission:
    """The code with the findings at its lines; without cells if no readable code was handed in.

    Args:
        view: The rendered file; nothing in it is trusted. None where it could not be rendered.
    """
    cells, cuts = _cells_and_cuts(evidence, view)
    evidence = with_waived(assignment, evidence, dict(score.waived))
    reports = component_reports(assignment, evidence, score)
    notes = line_notes(assignment, evidence, score, reports)
    by_line = notes_by_line(notes)
    language = language_of(assignment)
    links = CodeLinks({cell.file: len(cell.lines) for cell in cells})
    shown = tuple(_shown_cell(cell, links, by_line, language) for cell in cells)
    return ShownSubmission(
        evidence.code_file or (view.file if view else ""),
        shown,
        links,
        cuts,
        any(cell_number(cell.file) is not None for cell in cells),
        tuple((note, _anchor_of(note, links, shown)) for note in notes if note.asks),
        sum(bool(remark.message) and not remark.where for report in reports for remark in report.remarks),
    )


def _cells_and_cuts(evidence: Evidence, view: View | None) -> tuple[tuple[ViewCell, ...], tuple[str, ...]]:
    """The cells to show, and sentences on what is not shown.

    Findings name lines of the evidence's source; where a view has other lines, the evidence's are shown.
    """
    source = evidence.source or {}
    if view is None:
        cells = tuple(ViewCell(name, CellKind.CODE, plain_lines(text)) for name, text in source.items())
        return _within_limit(cells, (NOT_RENDERED,))
    cells = tuple(
        ViewCell(cell.file, cell.kind, plain_lines(source[cell.file]), cell.html)
        if cell.file in source and text_of(cell.lines) != source[cell.file]
        else cell
        for cell in view.cells
    )
    return _within_limit(cells, view.cuts)


def _within_limit(
    cells: Sequence[ViewCell], cuts: Sequence[str]
) -> tuple[tuple[ViewCell, ...], tuple[str, ...]]:
    lines_left, shown = MOST_LINES, []
    for cell in cells:
        shown.append(ViewCell(cell.file, cell.kind, cell.lines[:lines_left], cell.html))
        lines_left -= len(shown[-1].lines)
    if sum(len(cell.lines) for cell in cells) > MOST_LINES:
        cuts = (*cuts, f"Only the first {MOST_LINES} lines of code are shown.")
    return tuple(shown), tuple(cuts)


def _shown_cell(
    cell: ViewCell,
    links: CodeLinks,
    by_line: Mapping[tuple[str, int], Sequence[LineNote]],
    language: Language,
) -> ShownCell:
    return ShownCell(
        id=links.cell_anchor(cell.file),
        name=cell.file if cell_number(cell.file) is None else cell.file[:1].upper() + cell.file[1:],
        kind=cell.kind,
        lines=tuple(_shown_lines(cell, links, by_line, language)),
        html=cleaned(cell.html) if cell.html else Markup(""),
        notes=tuple(by_line.get((cell.file, 0), ())),
    )


def _shown_lines(
    cell: ViewCell,
    links: CodeLinks,
    by_line: Mapping[tuple[str, int], Sequence[LineNote]],
    language: Language,
) -> Iterator[ShownLines]:
    """The lines of a cell; one with notes is the last of its group."""
    left_out = Markup('<span class="left-out"> … {}</span>').format(language.gettext(CONTINUES))
    rows: list[str] = []
    for number, line in enumerate(cell.lines, start=1):
        place = Place(cell.file, number)
        notes = tuple(by_line.get((cell.file, number), ()))
        rows.append(_row(links.anchor(place), number, line, _marked(notes), left_out))
        if notes or number == len(cell.lines):
            # each token is escaped, a kind is a few letters, and anchors are made of words and numbers
            yield ShownLines(Markup("\n".join(rows)), notes)
            rows.clear()


def _row(anchor_id: str, number: int, line: CodeLine, marked: str, left_out: Markup) -> str:
    """The first `LONGEST` characters of a line as HTML; its tokens are untrusted, kinds included."""
    characters_left, code = LONGEST, ""
    for kind, text in line:
        if characters_left > 0:
            code += _token(kind, text[:characters_left])
        characters_left -= len(text)
    return (
        f'<div class="row{marked}" id="{anchor_id}"><a class="number" href="#{anchor_id}">{number}</a>'
        f"<code>{code}{left_out if characters_left < 0 else ''}</code></div>"
    )


@functools.lru_cache(maxsize=4096)  # a class writes the same few words and signs again and again
def _token(kind: str, text: str) -> str:
    shown = str(escape(revealed(text)))
    return f'<span class="{kind}">{shown}</span>' if kind and _KIND.fullmatch(kind) else shown


def _marked(notes: Sequence[LineNote]) -> str:
    """How a line is marked: ` bad` where something needs fixing, else ` good` or not at all."""
    kinds = {note.kind for note in notes if note.asks}
    return " bad" if "failed" in kinds else " good" if kinds else ""


def _anchor_of(note: LineNote, links: CodeLinks, cells: Sequence[ShownCell]) -> str:
    """The anchor of a finding on the page; empty where its line is not shown."""
    if links.shows(note.place):
        return links.anchor(note.place)
    cell_id = links.cell_anchor(note.place.file)
    return cell_id if note.place.line == 0 and any(cell.id == cell_id for cell in cells) else ""
