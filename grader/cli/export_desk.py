"""What all formats of `grader export` have in common: options, where results come from and files go."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from grader.cli.book import book_options, session, session_request
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.domain.evidence import Evidence
    from grader.domain.result import Result
    from grader.domain.score import Score
    from grader.gradebook import Snapshot
    from grader.lms.exports.filling import Choices
    from grader.reports.results_json.results_contract import DownloadRecord
    from grader.results.session import ClassSession

Command = TypeVar("Command", bound=Callable[..., Any])
FOLDER = "exports"
ELSEWHERE = "Give another place by --to."


def common_options(function: Command) -> Command:
    """What every format has: `out`, `to`, `partial`, which book it is, and who exports."""
    for option in (
        book_options,
        click.option("--partial", is_flag=True, help="Leave out grades that await a person."),
        click.option(
            "--to",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Write here. Default: in OUT/exports.",
        ),
        click.argument("out", type=click.Path(path_type=Path)),
    ):
        function = option(function)
    return function


def into_option(what: str, *, required: bool) -> Callable[[Command], Command]:
    """`--into`: the file that the LMS made."""
    return click.option(
        "--into", type=click.Path(path_type=Path), metavar="FILE", required=required, help=what
    )


def column_option(function: Command) -> Command:
    """`--column`: the column of the grades."""
    return click.option("--column", default="", metavar="NAME", help="The column of the grades.")(function)


def scale_option(function: Command) -> Command:
    """`--scale`: another maximum is no obstacle."""
    return click.option(
        "--scale", is_flag=True, help="Scale the grades if the LMS has another maximum, instead of refusing."
    )(function)


def anyway_option(function: Command) -> Command:
    """`--anyway`: doubts are no obstacle."""
    return click.option(
        "--anyway",
        is_flag=True,
        help="Write in spite of doubts: rows that fit several students stay as they are, and grades that "
        "stand in FILE may fall.",
    )(function)


@dataclass(frozen=True)
class Source:
    """Where the results are from.

    Attributes:
        downloads: The account of the files of each download.
    """

    session: "ClassSession"
    seen: "Snapshot"
    results: "Sequence[Result]"
    downloads: "tuple[DownloadRecord, ...]"

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return self.session.out

    @property
    def assignment(self) -> Assignment:
        """What was asked for."""
        return self.session.assignment

    def place(self, name: str) -> Path:
        """Where an export goes by default."""
        return self.out / FOLDER / name

    def note(self, way: str, grades: Mapping[str, float]) -> None:
        """Note in the book that grades leave for their students."""
        note_released(self.session, self.seen, self.results, grades, way)


def note_released(
    at: "ClassSession",
    seen: "Snapshot",
    results: "Sequence[Result]",
    grades: Mapping[str, float | None],
    way: str,
) -> None:
    """Note in the book that grades left; where it cannot be written, what was made stands all the same."""
    from grader.domain.formatting import printable
    from grader.publishing.releases import note_releases

    try:
        note_releases(at.book, seen, results, grades, way=way, who=at.who, when=at.clock(), out=at.out)
    except UsageError as error:
        click.echo(printable(f"note: the gradebook does not know that these grades left: {error}"), err=True)


@contextlib.contextmanager
def released(
    out: Path,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    partial: bool,
) -> Iterator[tuple[Source, "list[tuple[Evidence, Score]]", bool]]:
    """The results of a folder as they may leave it, and whether grades may be missing.

    Raises:
        UsageError: The reports say something else, or a submission is not there and that is not allowed.
    """
    from grader.publishing.release import require_nothing_lacking
    from grader.results.download_accounts import standing_downloads
    from grader.results.revision import told_results

    with session(session_request(out, assignment_id, course, gradebook, by)) as at:
        seen = at.book.snapshot()
        results = told_results(at.assignment, seen)
        downloads = standing_downloads(at.book, out, seen)
        if not partial:
            require_nothing_lacking(results, downloads)
        pairs = [(one.evidence, one.score) for one in results]
        yield Source(at, seen, results, downloads), pairs, partial


def chosen(column: str, scale: bool, anyway: bool) -> "Choices":
    """The options as a format takes them."""
    from grader.lms.exports.filling import Choices

    return Choices(column, scale, anyway)


def given(path: Path) -> tuple[str, bytes]:
    """The name and the content of a file.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}). Give another file by --into.") from None


def reports_of(out: Path, student_ids: list[str]) -> Mapping[str, bytes]:
    """The reports that are there, by student id, each as it is sent without the page beside it."""
    from grader.reports.student.code_links import alone
    from grader.results.class_files import report_path

    paths = {student_id: report_path(out, student_id) for student_id in student_ids}
    return {
        student_id: alone(path.read_text("utf-8")).encode("utf-8")
        for student_id, path in paths.items()
        if path.is_file()
    }


def written(path: Path, content: bytes, noun: str, count: int, remarks: tuple[str, ...]) -> None:
    """Write an export, whole or not at all, and tell of it."""
    from grader.files import atomic

    make_folder(path.parent)
    atomic.write(path, content, remedy=ELSEWHERE)
    told(path, noun, count, remarks)


def make_folder(folder: Path) -> None:
    """Make a folder.

    Raises:
        UsageError: It cannot be made.
    """
    from grader.files import atomic

    atomic.make_folder(folder, remedy=ELSEWHERE)


def told(path: Path, noun: str, count: int, remarks: tuple[str, ...]) -> None:
    """Print what was written, and what somebody should know of it."""
    from grader.domain.formatting import printable

    click.echo(f"{path}: {count} {noun if count != 1 else noun.removesuffix('s')}.")
    for remark in remarks:
        click.echo(printable(f"  {remark}"))
