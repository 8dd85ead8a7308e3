"""Writes grades and reports in the format of an LMS or another program, and notes their release."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.submission_result import Result
from grader.files import atomic
from grader.files.file_names import REPORT
from grader.gradebook import Gradebook
from grader.lms.export_format import Choices, Export, ExportData, ExportFormat
from grader.lms.matching import candidates
from grader.publishing.releases import exported_grades, release_problem, require_complete, warnings
from grader.reports.student.code_lines import without_links
from grader.results.class_files import rendered_student, report_path
from grader.results.class_pages import may_show_more
from grader.results.current_state import current_downloads, reported_results
from grader.results.folder_use import EXPORT, make_noted_folder, note_written

FOLDER = "exports"
ELSEWHERE = "Give another place with --to."


@dataclass(frozen=True)
class ExportRequest:
    """An export that is asked for.

    Attributes:
        template: A file made by the LMS, which is filled or whose names are read; None: none was given.
        to: Where the export goes; None: into the folder of the results.
        partial: Leave out grades that await a person.
    """

    format: ExportFormat
    template: Path | None = None
    to: Path | None = None
    choices: Choices = field(default_factory=Choices)
    partial: bool = False


@dataclass(frozen=True)
class WrittenExport:
    """What was written.

    Attributes:
        place: The file, or the folder of several.
        export: The export; its remarks are all that a person should know about it.
        not_recorded: Why the release of these grades was not recorded in the gradebook; empty if it was.
    """

    place: Path
    export: Export
    not_recorded: str = ""


def export_grades(
    assignment: Assignment, book: Gradebook, out: Path, request: ExportRequest, *, who: str, now: datetime
) -> WrittenExport:
    """Write the results of a folder in a format, and note in the book that the grades were released.

    Args:
        out: The folder of the results.
        now: When they are released.

    Raises:
        UsageError: The reports are not up to date, the LMS's file does not fit, or the export cannot be
            written. Or a grade awaits a person, or a submission is missing, without `partial`.
    """
    snapshot = book.snapshot(attempts=assignment.compares_attempts)
    results = reported_results(assignment, snapshot)
    downloads = current_downloads(book, out, snapshot)
    if not request.partial:
        require_complete(results, downloads)
    file = None if request.template is None else _template_file(request.template)
    export_data = ExportData(
        assignment,
        [(result.evidence, result.score) for result in results],
        grades={},
        candidates=(),
        file=file,
        choices=request.choices,
        reports=standalone_reports(assignment, book, out, results, now),
        account=tuple((file.name, file.student_id) for download in downloads for file in download.files),
    )
    export = exported(request.format, export_data, partial=request.partial)
    place, export = _written(request, export, book, out)
    way = request.format.name
    not_recorded = release_problem(
        book, snapshot, results, export.grades, way=way, who=who, when=now, out=out
    )
    return WrittenExport(place, export, not_recorded)


def exported(export_format: ExportFormat, export_data: ExportData, *, partial: bool) -> Export:
    """The export of results, with all that a person should know about it.

    Args:
        export_data: What is to be written; grades and candidates follow from its results.
        partial: Leave out grades that await a person.

    Raises:
        UsageError: Grades await a person, and that is not allowed; or the LMS's file does not fit.
    """
    only_reviewed = export_data.assignment.review_required
    grades = exported_grades(export_data.results, partial=partial, only_reviewed=only_reviewed)
    export = export_format.write(
        replace(export_data, grades=grades, candidates=candidates(export_data.results))
    )
    return replace(export, remarks=(*export.remarks, *warnings(export_data.results)))


def _template_file(path: Path) -> tuple[str, bytes]:
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}). Give another file with --into."
        ) from None


def standalone_reports(
    assignment: Assignment, book: Gradebook, out: Path, results: Sequence[Result], now: datetime
) -> Callable[[Sequence[str]], Mapping[str, bytes]]:
    """Student ids -> the existing reports as they are read now, without links to the pages beside them.

    Args:
        out: The folder of the results.
        results: Of the class.
        now: Reports that were written before the deadline, and leave out what need not be left out any more,
            are made again, and not written.
    """
    renewed = {result.score.student_id: result for result in results if may_show_more(result.score, now)}

    def report(student_id: str) -> str:
        if student_id not in renewed:
            return report_path(out, student_id).read_text("utf-8")
        pages = rendered_student(assignment, renewed[student_id], book.images(student_id), now)
        return pages[REPORT].decode("utf-8")

    def reports(student_ids: Sequence[str]) -> Mapping[str, bytes]:
        there = [student_id for student_id in student_ids if report_path(out, student_id).is_file()]
        return {student_id: without_links(report(student_id)).encode("utf-8") for student_id in there}

    return reports


def require_untouched(template: Path | None, place: Path) -> None:
    """Check that a filled copy does not replace the file that was given.

    Args:
        template: The file that the LMS made; None: none was given.

    Raises:
        UsageError: It would.
    """
    if template is not None and place.exists() and place.samefile(template):
        raise UsageError(f"{template} stays as the LMS made it, and this would replace it. {ELSEWHERE}")


def _written(request: ExportRequest, export: Export, book: Gradebook, out: Path) -> tuple[Path, Export]:
    """Write the files, each whole or not at all; the export with remarks on files of an earlier one."""
    if not request.format.several:
        ((name, content),) = export.files.items()
        place = request.to or out / FOLDER / name
        require_untouched(request.template, place)
        atomic.make_folder(place.parent, remedy=ELSEWHERE)
        if request.to is not None:  # what lies in the results folder is found anyway
            note_written(book, [place], EXPORT)
        atomic.write(place, content, remedy=ELSEWHERE)
        return place, export
    place = request.to or out / FOLDER / request.format.name
    if export.files:  # nobody's grades need no folder
        noted_in = [] if request.to is None else [book]
        make_noted_folder(noted_in, place, export.files, EXPORT, remedy=ELSEWHERE)
    for name, content in export.files.items():
        atomic.make_folder((place / name).parent, remedy=ELSEWHERE)
        atomic.write(place / name, content, remedy=ELSEWHERE)
    there = sorted(path.relative_to(place).as_posix() for path in place.glob(request.format.several))
    stale = [f"{name}: is of an earlier export" for name in there if name not in export.files]
    return place, replace(export, remarks=(*export.remarks, *stale))
