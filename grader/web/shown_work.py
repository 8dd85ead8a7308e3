"""What a student handed in, beside a question: pages as pictures, code with findings, what was measured.

It reads one submission from the gradebook and makes the left side of a marking page. Nothing of it is
trusted: text is escaped, pictures are those that the locked-down parser drew, and while a page is blind, the
ids and names of whoever handed it in are hidden wherever they stand in text. Whose it is stays in here.
"""

import json
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from markupsafe import Markup

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import percent, points, printable
from grader.domain.score import Score
from grader.domain.submission import ANSWERS_FILE, ANSWERS_TEXT_FILE, Answers
from grader.files.stored_records import view_in
from grader.gradebook import Gradebook
from grader.marking.desk import Desk, students_of
from grader.reports.student.answers_page import undrawn_remarks
from grader.reports.student.model_figures import LayerRow, layer_rows
from grader.reports.student.submission_page import ShownSubmission, shown_submission
from grader.reports.student.trained_models import trained_models
from grader.scoring import score
from grader.web.hidden_words import HiddenWords
from grader.web.visits import templates

_KEPT = 24  # submissions whose files are kept in memory
_AROUND = 60  # characters before and after what was found
_SHORTEST_NAME = 3  # letters of a part of a name that is hidden by itself
_QUESTION = "question|exercise|task|q|frage|aufgabe|سؤال|سوال|پرسش"
_NUMBER = re.compile(r"[A-Za-z]*0*(\d+)")  # of a question, in its id
_HEADING = re.compile(rf"^\W*(?:{_QUESTION})\W{{0,3}}(\d{{1,3}})(?!\w)", re.IGNORECASE | re.MULTILINE)
_MOST_NAMED = 3  # questions on a page that is not a list of them


@dataclass(frozen=True)
class WorkPage:
    """A page of the PDF.

    Attributes:
        is_drawn: Whether there is a picture of it.
        width, height: In pixels.
    """

    number: int
    is_drawn: bool
    width: int = 0
    height: int = 0


@dataclass(frozen=True)
class ShownWork:
    """The left side of a marking page.

    Attributes:
        run: The number of the run that it shows; a part of the addresses of pictures, which browsers keep.
        answers: The PDF; None: none was accepted.
        remarks: What of the PDF could not be drawn.
        facts: (what, value) of what the question wants to see beside it.
        curves: (caption, chart) of the trainings.
        layers: Of the model, if the question asks for it.
        found: The anchor of the text of the notebook that seems to answer the question; empty: none.
        found_page: The page of the PDF on which an answer to the question seems to begin; None: none does.
    """

    run: int
    answers: Answers | None
    pages: tuple[WorkPage, ...]
    remarks: tuple[str, ...]
    code: ShownSubmission
    facts: tuple[tuple[str, str], ...]
    curves: tuple[tuple[str, Markup], ...]
    layers: tuple[LayerRow, ...]
    parameters: int | None
    found: str
    found_page: int | None


@dataclass(frozen=True)
class _Files:
    """One submission as it stands in the gradebook, by the run that counts."""

    run: int
    evidence: Evidence
    images: Mapping[str, bytes]


def work_html(desk: Desk, assignment: Assignment, handle: str, target: str) -> Markup:
    """The left side of a marking page, blind.

    Raises:
        UnknownTask: There is no such submission.
    """
    students = students_of(desk, handle)
    files = _files(desk, students[0])
    evidence = files.evidence
    scored = score(
        assignment,
        evidence,
        edits=desk.book.edits(students[0]),
        history=desk.book.student_history(students[0], attempts=assignment.compares_attempts),
    )
    work = _shown_work(assignment, files, scored, target)
    html = templates().get_template("work.html.j2").render(work=work, handle=handle, evidence=evidence)
    # of the template, which escapes
    return Markup(_identifying(desk, students, evidence).in_html(html))


def page_picture(desk: Desk, handle: str, number: str) -> bytes | None:
    """A page of the PDF as WebP; None: there is no such page, or it was not drawn.

    Raises:
        UnknownTask: There is no such submission.
    """
    files = _files(desk, students_of(desk, handle)[0])
    drawn = files.evidence.answers.drawn if files.evidence.answers else ()
    name = next((page.image for page in drawn if str(page.number) == number), None)
    content = files.images.get(name, b"") if name else b""
    return content if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


@dataclass(frozen=True)
class FoundPage:
    """A page of the PDF whose text has the searched words.

    Attributes:
        excerpt: The text around the first of them.
    """

    number: int
    excerpt: str


def pages_with(desk: Desk, handle: str, words: str) -> tuple[FoundPage, ...] | None:
    """The pages whose text has all of the words; None: the PDF has no text, as a scan.

    Names and ids are hidden before, so that nobody finds out whose it is by searching.

    Raises:
        UnknownTask: There is no such submission.
    """
    students = students_of(desk, handle)
    files = _files(desk, students[0])
    names = _identifying(desk, students, files.evidence)
    texts = {number: names.in_text(_plain(text)) for number, text in _texts(files).items()}
    if not any(texts.values()):
        return None
    wanted = [_plain(word) for word in words.split()]
    found = []
    for number, plain in sorted(texts.items()):
        if wanted and all(word in plain for word in wanted):
            at = plain.find(wanted[0])
            begin = max(at - _AROUND, 0)
            excerpt = " ".join(plain[begin : at + _AROUND].split())
            found.append(FoundPage(number, excerpt))
    return tuple(found)


def _texts(files: "_Files") -> dict[int, str]:
    """Page -> its text; none of an upload that an older version graded."""
    try:
        pages = json.loads(files.images.get(ANSWERS_TEXT_FILE, b"{}"))
    except ValueError:
        return {}
    return {int(number): str(text) for number, text in pages.items()}


def _plain(text: str) -> str:
    """A text to be searched: without the difference of cases, and with divided words joined."""
    joined = re.sub(r"(?<=\w)[-\u00ad]\s*\n\s*(?=\w)", "", unicodedata.normalize("NFKC", text))
    return " ".join(joined.casefold().split())


def pdf_of(desk: Desk, handle: str) -> bytes | None:
    """The PDF as it was handed in; None: it is not kept.

    Raises:
        UnknownTask: There is no such submission.
    """
    return desk.book.images(students_of(desk, handle)[0]).get(ANSWERS_FILE)


def _identifying(desk: Desk, students: Sequence[str], evidence: Evidence) -> HiddenWords:
    """The words by which a submission shows whose it is, as far as the LMS knows them.

    They are those of the whole team: of members who handed in other work since, too, as it may name them.

    Args:
        evidence: About the submission of the first of the students.
    """
    words: list[str] = []
    for student_id in dict.fromkeys((*students, *evidence.team)):
        person = evidence.origin.person if student_id == evidence.student_id else _person(desk, student_id)
        name = " ".join(printable(person).split())
        parts = [part for part in re.split(r"[\s,]+", name) if sum(map(str.isalpha, part)) >= _SHORTEST_NAME]
        words += [student_id, name, " ".join(reversed(parts)), *parts]
    return HiddenWords.of(words)


def _person(desk: Desk, student_id: str) -> str:
    """A student's name; empty if the gradebook does not know it."""
    try:
        return desk.book.evidence(student_id).origin.person
    except UsageError:  # of a team, whoever has no submission of their own
        return ""


_kept: "WeakKeyDictionary[Gradebook, OrderedDict[tuple[str, int], _Files]]" = WeakKeyDictionary()
_keeping = threading.Lock()


def _files(desk: Desk, student_id: str) -> _Files:
    """A submission's files; those looked at last are kept, as a run never changes."""
    key = student_id, desk.book.counting(student_id)
    with _keeping:
        kept = _kept.setdefault(desk.book, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            return kept[key]
    evidence = desk.book.evidence(student_id, key[1])
    files = _Files(key[1], evidence, desk.book.images(student_id, key[1], but=(ANSWERS_FILE,)))
    with _keeping:
        kept[key] = files
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return files


def _shown_work(assignment: Assignment, files: _Files, scored: Score, target: str) -> ShownWork:
    evidence, answers = files.evidence, files.evidence.answers
    item = next((item for item in assignment.rubric if item.id == target.partition(".")[0]), None)
    beside = item.beside if item else ()
    code = shown_submission(assignment, evidence, scored, view_in(files.images))
    curves: list[tuple[str, Markup]] = []
    if "curves" in beside:
        for shown in trained_models(assignment, evidence, files.images):
            curves += [
                (caption, chart)
                for caption, chart in (
                    (f"{shown.title} Test accuracy after each epoch".strip(), shown.accuracy_curve),
                    (f"{shown.title} Mean test loss per image".strip(), shown.loss_curve),
                )
                if chart
            ]
    return ShownWork(
        run=files.run,
        answers=answers,
        pages=_pages(answers, files.images) if answers else (),
        remarks=undrawn_remarks(answers) if answers else (),
        code=code,
        facts=tuple(_facts(assignment, evidence, scored, beside)),
        curves=tuple(curves),
        layers=layer_rows(evidence.layers) if "model" in beside else (),
        parameters=evidence.parameters if "model" in beside else None,
        found=_found(code, target),
        found_page=page_of_question(_texts(files), target) if answers else None,
    )


def _pages(answers: Answers, images: Mapping[str, bytes]) -> tuple[WorkPage, ...]:
    drawn = {page.number: page for page in answers.drawn if page.image in images}
    return tuple(
        WorkPage(number, True, drawn[number].width, drawn[number].height)
        if number in drawn
        else WorkPage(number, False)
        for number in range(1, answers.tried + 1)
    )


def _facts(
    assignment: Assignment, evidence: Evidence, scored: Score, beside: Sequence[str]
) -> Iterable[tuple[str, str]]:
    """What was measured and chosen, as far as the question asks for it."""
    if "accuracy" in beside:
        claim = scored.claim
        yield "Claimed accuracy", f"{percent(claim.accuracy)} ({claim.source})" if claim else "none found"
        for measure in (evidence.measure, *evidence.further):
            training = evidence.of_measure(measure).training
            value = training.accuracy if training.value is None else training.value
            shown = "not measured" if value is None else percent(value)
            if training.value is not None:
                shown = points(training.value)
            yield f"Measured {measure.replace('_', ' ')}", shown
        if evidence.checkpoint.accuracy is not None:
            yield "With the submitted weights", percent(evidence.checkpoint.accuracy)
    if "values" in beside and assignment.uses_chosen_values:
        for tuned in evidence.chosen[:40]:
            yield tuned.name.replace("_", " "), " ".join(tuned.value.split())


def page_of_question(texts: Mapping[int, str], target: str) -> int | None:
    """The page of a PDF on which an answer to a question seems to begin: a line begins with its name.

    A page that names many questions, as a list of contents does, is taken only if there is no other.

    Args:
        texts: Page -> its text.

    Returns:
        None if no line does.
    """
    asked = _NUMBER.match(target)
    pages = []
    for page, text in texts.items():
        named = {int(number) for number in _HEADING.findall(unicodedata.normalize("NFKC", text))}
        if asked and int(asked[1]) in named:
            pages.append((len(named) > _MOST_NAMED, page))
    return min(pages)[1] if pages else None


def _found(code: ShownSubmission, target: str) -> str:
    """The cell of text whose beginning names the question: by its id (`q6`), or its number."""
    number = _NUMBER.match(target)
    words = [re.escape(target.partition(".")[0])]
    if number:
        words += [rf"(?:{_QUESTION})\W{{0,3}}0*{number[1]}"]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)
    for cell in code.cells:
        if cell.kind.value == "text" and pattern.search(cell.html.striptags()[:400]):
            return cell.id
    return ""


__all__ = ["ShownWork", "WorkPage", "page_picture", "pages_with", "pdf_of", "work_html"]
