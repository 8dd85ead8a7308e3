"""A class: every submission examined, recorded, scored and reported."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError, GraderError
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.submission import Submission
from grader.domain.total import Total
from grader.gradebook import Gradebook, SharedParts, durable
from grader.pipeline.known_work import known_evidence
from grader.pipeline.progress import UNCHANGED, Progress, Stage, Watcher
from grader.pipeline.run import Findings, Run
from grader.pipeline.side_by_side import side_by_side
from grader.pipeline.submission_run import examined, examined_longer
from grader.pipeline.training_stage import waits_for_more_time
from grader.reporting.class_page import class_page, leaderboard_page
from grader.reporting.results_contract import DownloadRecord, ResultsDocument
from grader.reporting.results_file import results_text
from grader.reporting.scores_table import scores_csv
from grader.reporting.student_page import student_page
from grader.scoring import score

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Result:
    """A submission's evidence and what it is worth.

    Attributes:
        known: Nothing was done: an earlier run had found it out.
    """

    evidence: Evidence
    score: Score
    known: bool = False


def graded(
    run: Run,
    submissions: Sequence[Submission],
    out: Path,
    *,
    jobs: int,
    clock: Clock,
    watch: Watcher,
    book: Gradebook | None = None,
    who: str = "",
    force: bool = False,
) -> list[Result]:
    """Grade every submission and write its evidence and report as soon as it is done.

    After an interruption of any kind, the same call goes on where it was: what is in the book is not done
    again, and what was under way is done anew.

    Args:
        out: The folder of the results.
        jobs: How many at once; each uses one thread for its computations.
        book: The gradebook; by default the one in the folder.
        who: Who grades, for the record.
        force: Examine also what nothing has changed about.

    Returns:
        The results in the order of the submissions.
    """
    keeper = Keeper(run.assignment, book or Gradebook(out, assignment_id=run.assignment.id), out, who)
    recorded = frozenset(keeper.book.students())
    record, stopped = threading.Lock(), threading.Event()
    results: dict[str, Result] = {}

    def kept(submission: Submission, found: Findings) -> Result:
        with record:
            if stopped.is_set():  # what was under way failed with the run, and is no failure to be kept
                raise EngineError("The run was stopped.")
            try:
                return keeper.kept(found.evidence, found.images, clock())
            except (GraderError, OSError):
                raise  # the results cannot be written: nothing that follows could be kept either
            except Exception as error:  # noqa: BLE001 - one submission's failure never touches another's
                return keeper.kept(_without_report(run.assignment, submission, error, clock()), {}, clock())

    def grade(submission: Submission) -> Result:
        known = None
        if not force and submission.student_id in recorded:
            known = known_evidence(run, keeper.book.evidence(submission.student_id), submission)
        if known is not None:
            watch(Progress(submission.student_id, Stage.DONE, 1.0, UNCHANGED))
            with record:
                return keeper.known(known, submission, clock())
        return kept(submission, examined(run, submission, graded_at=clock(), watch=watch))

    def grade_longer(submission: Submission) -> Result:
        earlier = results[submission.student_id].evidence
        images = keeper.book.images(submission.student_id)
        found = examined_longer(run, submission, earlier, images, graded_at=clock(), watch=watch)
        return kept(submission, found)

    def each(work: Callable[[Submission], Result], chosen: Sequence[Submission]) -> dict[str, Result]:
        found = side_by_side(work, chosen, jobs, interrupted=stopped.set)
        return {one.student_id: result for one, result in zip(chosen, found, strict=True)}

    results |= each(grade, submissions)
    waiting = [
        submission
        for submission in submissions
        if waits_for_more_time(run.assignment, results[submission.student_id].evidence)
    ]
    results |= each(grade_longer, waiting)
    keeper.book.close()
    return [results[submission.student_id] for submission in submissions]


def _without_report(
    assignment: Assignment, submission: Submission, error: Exception, now: datetime
) -> Evidence:
    reason = f"Its report could not be made: {type(error).__name__}: {error}"
    return Evidence(
        submission.student_id,
        assignment.id,
        submission.digest,
        now,
        status="engine_error",
        reason=reason,
    )


@dataclass(frozen=True)
class Keeper:
    """Keeps what was found out about a submission, and writes its report."""

    assignment: Assignment
    book: Gradebook
    out: Path
    who: str
    _shared: SharedParts = field(default_factory=SharedParts)

    def kept(self, evidence: Evidence, images: Mapping[str, bytes], now: datetime) -> Result:
        """Score, record and report one submission, with the marks that people gave to the student before."""
        edits = self.book.edits(evidence.student_id)
        result = Result(evidence, score(self.assignment, evidence, edits=edits))
        total = Total.of(result.score, who=self.who, when=now, cause="grade")
        self.book.record(evidence, images, who=self.who, total=total)
        write_student(self.assignment, result, images, self.out, now)
        return self._shared.of(result)

    def known(self, evidence: Evidence, submission: Submission, now: datetime) -> Result:
        """The result of what the book has; what an interruption kept from being written is made up for.

        When it was handed in is taken from the submission as it is now.
        """
        student_id = evidence.student_id
        delivered = submission.received_at, submission.delivery
        if (evidence.received_at, evidence.delivery) != delivered:
            evidence = replace(evidence, received_at=submission.received_at, delivery=submission.delivery)
            return replace(self.kept(evidence, self.book.images(student_id), now), known=True)
        result = Result(evidence, score(self.assignment, evidence, edits=self.book.edits(student_id)), True)
        if not (self.out / "students" / student_id / "report.html").exists():
            write_student(self.assignment, result, self.book.images(student_id), self.out, now)
        return self._shared.of(result)


def write_student(
    assignment: Assignment, result: Result, images: Mapping[str, bytes], out: Path, now: datetime
) -> Path:
    """Write one student's report; its path."""
    folder = out / "students" / result.evidence.student_id
    folder.mkdir(parents=True, exist_ok=True)
    page = student_page(assignment, result.evidence, result.score, images=images, generated_at=now)
    path = folder / "report.html"
    durable.write(path, page.encode("utf-8"))
    return path


def write_class(
    assignment: Assignment,
    results: Sequence[Result],
    out: Path,
    now: datetime,
    download: DownloadRecord | None = None,
) -> None:
    """Write the class page, the leaderboard where the course wants one, scores.csv and, last, results.json.

    Each is written whole or not at all.
    """
    ordered = sorted(results, key=lambda result: result.score.student_id)
    pairs = [(result.evidence, result.score) for result in ordered]
    links = {
        result.evidence.student_id: f"students/{result.evidence.student_id}/report.html" for result in results
    }
    out.mkdir(parents=True, exist_ok=True)
    page = class_page(assignment, pairs, links=links, generated_at=now, download=download)
    durable.write(out / "index.html", page.encode("utf-8"))
    if assignment.leaderboard:
        board = leaderboard_page(assignment, pairs, generated_at=now)
        durable.write(out / "leaderboard.html", board.encode("utf-8"))
    else:
        (out / "leaderboard.html").unlink(missing_ok=True)  # of a time when the course had one
    durable.write(out / "scores.csv", scores_csv(assignment, pairs).encode("utf-8"))
    text = results_text(assignment, pairs, download)
    durable.write_pieces(out / "results.json", (piece.encode("utf-8") for piece in text))


def previous_download(out: Path) -> DownloadRecord | None:
    """The account of the files in an earlier results.json; None when there is none."""
    try:
        text = (out / "results.json").read_text(encoding="utf-8")
        return ResultsDocument.model_validate_json(text).download
    except (OSError, ValueError):  # it is written anew from the book
        return None
