"""A class's submissions made ready to be compared, each file read in a parser of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from grader.course.student_template import HandedOutCopy, student_files
from grader.domain.assignment import Assignment
from grader.domain.drawn_values import first_choices
from grader.domain.errors import SubmissionError
from grader.domain.quoting import about_file
from grader.domain.submission import Intake, Role, Submission
from grader.intake import intake
from grader.parser.client.compared_work import ParserReader
from grader.parser.client.opened_files import ParserOpener
from grader.sandbox.processes import Processes
from grader.similarity.code import given_forms, read_code
from grader.similarity.pictures import notebook_figures
from grader.similarity.work import Code, ComparedPicture, SampledWeights, Work

Report = Callable[[int, int], None]
"""Told (submissions read, submissions in all)."""


def read_works(
    parsers: Processes,
    assignment: Assignment,
    submissions: Sequence[tuple[Submission, bool]],
    *,
    jobs: int,
    report: Report = lambda done, whole: None,
) -> tuple[Work, ...]:
    """What is compared of each submission, in the order given.

    Args:
        submissions: Each with whether it is of an earlier class.
        jobs: How many are read at once.
        report: Told how far it is.
    """
    opened = ParserOpener(parsers)
    with ThreadPoolExecutor(jobs) as pool:
        reading = [pool.submit(_work, opened, assignment, one, before) for one, before in submissions]
        try:
            for count, done in enumerate(as_completed(reading), start=1):
                done.result()
                report(count, len(reading))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(one.result() for one in reading)


def handed_out(assignment: Assignment) -> tuple[frozenset[tuple[str, ...]], frozenset[str]]:
    """What students received: the forms of its code's units, and its pictures by their digests.

    Raises:
        CourseError: The reference, from which it is made, is malformed.
    """
    forms: frozenset[tuple[str, ...]] = frozenset()
    figures: set[str] = set()
    # what one student's copy has in another's place is a number, or a text, which no two are compared by
    copy = HandedOutCopy(assignment.variant, first_choices(assignment.variant))
    for name, text in student_files(assignment.folder, copy=copy).items():
        data = text.encode("utf-8")
        if name.endswith(".ipynb"):
            figures |= {figure.digest for figure in notebook_figures(data)}
        if name.endswith((".py", ".ipynb")):
            forms |= given_forms(read_code(name, data))
    return forms, frozenset(figures)


def _work(opened: ParserOpener, assignment: Assignment, submission: Submission, before: bool) -> Work:
    accepted = intake(submission, assignment, opened)
    reader = ParserReader(opened)
    left_out: list[str] = []
    code = _whole_code(reader, accepted, left_out)
    weights = _weights(reader, accepted.checkpoint, left_out)
    figures: list[ComparedPicture] = []
    for path in (accepted.code, accepted.report):
        if path is not None and path.suffix.lower() in (".ipynb", ".pdf"):
            _add_figures(reader, path, figures, left_out)
    roles = [Role.CODE, Role.CHECKPOINT, Role.REPORT]
    paths = [accepted.code, accepted.checkpoint, accepted.report]
    wanted = {file.role for file in assignment.files}
    if lacking := [
        str(role) for role, path in zip(roles, paths, strict=True) if path is None and role in wanted
    ]:
        left_out.append(f"Nothing was accepted as {' or '.join(lacking)}, so it was not compared.")
    left_out += [about_file(file.name, file.reason) for file in accepted.refused if code is None]
    return Work(submission.student_id, before, code, weights, tuple(figures), tuple(left_out))


def _whole_code(reader: ParserReader, accepted: Intake, left_out: list[str]) -> Code | None:
    """The code of the homework, and of the modules that it may import."""
    code = _code(reader, accepted.code, left_out)
    if code is None:
        return None
    for name, path in accepted.modules.items():
        module = _code(reader, path, left_out)
        if module is not None:
            text = code.text | {name: "\n".join(module.text.values())}
            code = Code(text, (*code.units, *(replace(unit, file=name) for unit in module.units)))
    return code


def _code(reader: ParserReader, path: Path | None, left_out: list[str]) -> Code | None:
    if path is None:
        return None
    try:
        return reader.code(path)
    except SubmissionError as error:
        left_out.append(f"The code was not compared. {error}")
        return None


def _weights(reader: ParserReader, path: Path | None, left_out: list[str]) -> SampledWeights | None:
    if path is None:
        return None
    try:
        return reader.weights(path)
    except SubmissionError as error:
        left_out.append(f"The checkpoint was not compared. {error}")
        return None


def _add_figures(
    reader: ParserReader, path: Path, figures: list[ComparedPicture], left_out: list[str]
) -> None:
    try:
        reader.figures(path, figures)
    except SubmissionError as error:
        left_out.append(f"Not all pictures were compared. {error}")
