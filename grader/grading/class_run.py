"""A class: every submission examined, recorded, scored and reported."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError, GraderError
from grader.domain.evidence import Evidence
from grader.domain.run_facts import RunFacts
from grader.domain.submission import Submission
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook
from grader.grading.concurrent_work import UNCHANGED, GradingStage, Progress, Watcher, side_by_side
from grader.grading.examiner import Examiner, SubmissionWork
from grader.grading.result_writer import Keeper, attempt_number
from grader.grading.run import EvidenceBuilder, handed_on, team_representatives
from grader.grading.student_page_writers import StudentPageWriter
from grader.grading.submission_run import is_known
from grader.grading.training_stage import waits_for_more_time

Clock = Callable[[], datetime]


def graded(
    examiner: Examiner,
    submissions: Sequence[Submission],
    out: Path,
    *,
    jobs: int,
    clock: Clock,
    watch: Watcher,
    book: Gradebook,
    who: str = "",
    earlier: Mapping[str, RunFacts] | None = None,
    allow_lower: bool = False,
    pages: StudentPageWriter | None = None,
) -> list[Result]:
    """Grade every submission and write its evidence and report as soon as it is done.

    After an interruption of any kind, the same call resumes: what is in the gradebook is not repeated, and
    what was under way is started again.

    Args:
        examiner: Examines them.
        out: The folder of the results.
        jobs: How many the examiner is asked for at once; each uses one thread for its computations.
        book: The gradebook, which stays open.
        who: Who grades, for the record.
        earlier: Facts about each student's latest run, by which an unchanged submission is known; without
            any, all submissions are examined. None: they are read from the gradebook.
        allow_lower: Totals that students have seen may fall.
        pages: Writes the students' pages; None: each thread writes those of its submissions.

    Returns:
        The results in the order of the submissions.
    """
    writer = Keeper(examiner.run.assignment, book, out, who, allow_lower, pages)
    if earlier is None:
        earlier = book.latest_facts()
    work = _SubmissionsAtWork(examiner, writer, team_representatives(submissions), clock, watch, earlier)
    representatives = work.new_ones_first(
        [submission for submission in submissions if submission.student_id in work.teams]
    )
    side_by_side(work.examine, representatives, jobs, interrupted=work.stop)
    side_by_side(work.retrain_longer, work.needing_more_time(representatives), jobs, interrupted=work.stop)
    return [work.results[submission.student_id] for submission in submissions]


class _SubmissionsAtWork:
    """The work on all submissions of a run, several at a time.

    Attributes:
        teams: The id of a team's representative -> the submissions of the other members. Whoever has no team
            represents nobody else.
        results: Student -> the result so far.
    """

    def __init__(
        self,
        examiner: Examiner,
        writer: Keeper,
        teams: Mapping[str, Sequence[Submission]],
        clock: Clock,
        watch: Watcher,
        earlier: Mapping[str, RunFacts],
    ) -> None:
        self.teams = teams
        self.results: dict[str, Result] = {}
        self._examiner = examiner
        self._run = examiner.run
        self._keeper = writer
        self._clock = clock
        self._watch = watch
        self._earlier = earlier
        self._recording, self._stopped = threading.Lock(), threading.Event()

    def new_ones_first(self, submissions: Sequence[Submission]) -> list[Submission]:
        """The submissions, first those that are to be examined: the others need no machine."""
        return sorted(submissions, key=self._is_known)

    def examine(self, submission: Submission) -> None:
        """Examine a submission and record it for its whole team, unless nothing has changed about it."""
        if self._is_unchanged(submission):
            self._watch(Progress(submission.student_id, GradingStage.DONE, 1.0, UNCHANGED))
            self._hand_on(submission, None)
            return
        work = SubmissionWork(submission, attempt_number(self._keeper.book, submission))
        examination = self._examiner.examined(work, graded_at=self._clock(), watch=self._watch)
        self._keep(submission, examination)
        self._hand_on(submission, examination)

    def needing_more_time(self, submissions: Sequence[Submission]) -> list[Submission]:
        """The submissions that are to get more time, now that all others are done."""
        if self._run.splits is None:
            return []
        return [
            submission
            for submission in submissions
            if waits_for_more_time(
                self._run.assignment, self._keeper.examined(self.results[submission.student_id])
            )
        ]

    def retrain_longer(self, submission: Submission) -> None:
        """Train a submission again, with more time."""
        student_id = submission.student_id
        earlier, images = self._keeper.latest(student_id), self._keeper.latest_images(student_id)
        work = SubmissionWork(submission, earlier.attempt or 1, earlier, images)
        examination = self._examiner.examined(work, graded_at=self._clock(), watch=self._watch)
        self._keep(submission, examination)
        self._hand_on(submission, examination)

    def stop(self) -> None:
        """Keep nothing from now on: what is under way fails with the run, which is not a result to keep."""
        self._stopped.set()

    def _keep(self, submission: Submission, examination: EvidenceBuilder) -> None:
        with self._recording:
            if self._stopped.is_set():
                raise EngineError("The run was stopped.")
            now = self._clock()
            try:
                result = self._keeper.kept(
                    examination.evidence, examination.images, now, held=submission.held
                )
            except (GraderError, OSError):
                raise  # the results cannot be written: nothing that follows could be kept either
            except Exception as error:  # noqa: BLE001 - one submission's failure never touches another's
                failed = _without_report(self._run.assignment, submission, error, now)
                result = self._keeper.kept(failed, {}, now, held=submission.held)
            self.results[submission.student_id] = result

    def _is_unchanged(self, submission: Submission) -> bool:
        """Whether an earlier run has examined exactly this submission; its result is then set."""
        if not self._is_known(submission):
            return False
        with self._recording:
            earlier = self._keeper.earlier_result(submission, self._clock())
            self.results[submission.student_id] = earlier
        return True

    def _is_known(self, submission: Submission) -> bool:
        earlier = self._earlier.get(submission.student_id)
        return earlier is not None and is_known(self._run, earlier, submission)

    def _hand_on(self, submission: Submission, examination: EvidenceBuilder | None) -> None:
        """Record the same result for the other members of the team.

        Args:
            examination: What was found out just now; None: what the gradebook has of the submission.
        """
        for mate in self.teams[submission.student_id]:
            if examination is None and self._is_unchanged(mate):
                continue
            student_id = submission.student_id
            evidence = examination.evidence if examination else self._keeper.latest(student_id)
            images = examination.images if examination else self._keeper.latest_images(student_id)
            self._keep(mate, EvidenceBuilder(handed_on(evidence, submission, mate), images))


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
        origin=submission.origin,
    )
