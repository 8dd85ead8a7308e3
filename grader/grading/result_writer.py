"""Records what was found out about a submission: its attempt, the run that counts, gradebook, report.

It numbers the attempts of a student, which decides the hidden data that a training meets. It completes how
a submission was delivered by what earlier runs know of it. It decides which run counts when a submission was
examined again: a total that students saw never falls silently. Then it writes the gradebook first and the
student's report after it. It never finds anything out about a submission.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.edit import Because, Edit, Extended, OwnerAssigned, RunChosen, current_owner
from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.score import Score, Total, TotalFigures, is_less_than_released
from grader.domain.submission import Submission
from grader.domain.submission_result import Attempt, History, Result
from grader.gradebook import Gradebook
from grader.grading.student_page_writers import StudentPageWriter, WrittenHere
from grader.results.class_files import report_path
from grader.scoring import counting_instead, score


def attempt_number(book: Gradebook, submission: Submission) -> int:
    """The submission's number among the student's attempts; the same submission keeps its number.

    An attempt is a submission (its digest) that was trained. One that was superseded within a download, only
    checked, or cut off before it was recorded revealed nothing to anybody. What a team hands in is an attempt
    of each member, whoever it was trained for, and its number is beyond those of all members.

    Args:
        book: Where the attempts are recorded.
        submission: What is about to be trained.
    """
    members = dict.fromkeys((submission.student_id, *submission.team))
    numbers_by_member = [attempts(book.history(student_id)) for student_id in members]
    for numbers in numbers_by_member:
        if submission.digest in numbers:
            return numbers[submission.digest]
    return 1 + max(max(numbers.values(), default=0) for numbers in numbers_by_member)


def attempts(history: Sequence[tuple[str, Evidence | None]]) -> dict[str, int]:
    """The digests of the submissions that were trained -> their numbers.

    Args:
        history: A student's runs, oldest first: the submission's digest and the evidence, which is None where
            it can no longer be read; the submission may then have been trained.
    """
    numbers: dict[str, int] = {}
    for digest, evidence in history:
        if evidence is None or evidence.training.outcome is not TrainingOutcome.NOT_RUN:
            # a grader with one split for all attempts wrote no number
            number = (evidence and evidence.attempt) or 1 + max(numbers.values(), default=0)
            numbers.setdefault(digest, number)
    return numbers


# --- delivery --------------------------------------------------------------------------------------------


def as_known(assignment: Assignment, book: Gradebook, evidence: Evidence) -> Evidence:
    """The evidence with what earlier runs know of the delivery.

    A deadline of the student's own holds for later attempts, and for commands that do not mention it, until
    another one is given. Where a resubmission is allowed, files that came before keep the time at which they
    came first: to hand them in once more is not to hand them in late.

    Args:
        evidence: What was found out about a submission, which need not be in the gradebook yet.
    """
    before = book.history(evidence.student_id)
    delivery = evidence.delivery
    if delivery.extension is None:
        delivery = replace(delivery, extension=_known_extension(book, evidence.student_id, before))
    times = {
        run.received_at.timestamp(): run
        for digest, run in (*before, (evidence.submission_digest, evidence))
        if digest == evidence.submission_digest and run is not None and run.received_at is not None
    }
    if assignment.resubmission is None or not times:
        return replace(evidence, delivery=delivery)
    first = times[min(times)]
    first_delivery = replace(first.delivery, extension=delivery.extension)
    return replace(evidence, received_at=first.received_at, delivery=first_delivery)


def own_deadline(assignment: Assignment, book: Gradebook, submission: Submission) -> datetime | None:
    """The student's deadline, by what the submission, earlier runs and people say; None if there is none.

    Args:
        submission: What is about to be graded.
    """
    student_id = submission.student_id
    extension = submission.delivery.extension
    if extension is None:
        extension = _known_extension(book, student_id, book.history(student_id))
    decided = [edit.deadline for edit in book.edits(student_id) if isinstance(edit, Extended)]
    deadlines = (assignment.deadline, extension, *decided[-1:])
    return max((deadline for deadline in deadlines if deadline is not None), default=None)


def _known_extension(
    book: Gradebook, student_id: str, history: Sequence[tuple[str, Evidence | None]]
) -> datetime | None:
    """The student's own deadline as the last run has it; None if there is none.

    A run of the files that count that came after the one that counts gave less, and was refused.

    Args:
        history: The student's runs, oldest first: the submission's digest and the evidence.
    """
    if not history:
        return None
    counting = book.runs(student_id).index(book.counting(student_id))
    digest_that_counts, _ = history[counting]
    standing = [
        run
        for place, (digest, run) in enumerate(history)
        if run is not None and not run.absent and (place <= counting or digest != digest_that_counts)
    ]
    return standing[-1].delivery.extension if standing else None


# --- run choice ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountedRun:
    """What counts once a new run is in the gradebook.

    Attributes:
        evidence: Of the run that counts: the new one, or an earlier one.
        edits: What is decided with it.
    """

    evidence: Evidence
    score: Score
    edits: tuple[Edit, ...] = ()


def outcome(
    assignment: Assignment,
    book: Gradebook,
    evidence: Evidence,
    *,
    who: str,
    now: datetime,
    allow_lower: bool,
    held: str = "",
) -> CountedRun:
    """What counts when a new run is added to the gradebook.

    The new run does, except when it gives less than students saw: if its files are those of the run that
    counts so far, that one goes on counting if it gives more. What students saw of a grade that was released
    is what lateness leaves of it. If the last attempt gives less, it counts and a person is asked. An earlier
    attempt that a person chose outweighs the others that were there. An attempt that came after resubmissions
    had ended does not count, nor does one from before the deadline that is examined after a resubmission.

    Args:
        evidence: What the new run found out.
        who: Who grades.
        allow_lower: The new run counts, whatever it gives.
        held: Why nobody knows whose the submission is; empty when somebody or the gradebook knows.
    """
    student_id = evidence.student_id
    before = book.student_records(student_id, attempts=assignment.compares_attempts)
    edits, history, totals = before.edits, before.history, before.totals
    if held and current_owner(edits) is None:
        edit = OwnerAssigned(
            who=who,
            when=now,
            why=held,
            student_id=student_id,
            listed_as=student_id,
            by_person=False,
            held=True,
        )
        return _with(assignment, evidence, edits, (edit,), history)  # the first run of it
    new = CountedRun(evidence, score(assignment, evidence, edits=edits, history=history))
    chosen = partial(RunChosen, who=who, when=now, why="", student_id=student_id)
    instead = counting_instead(assignment, evidence, edits, history)
    if instead is not None and instead.because is Because.TOO_LATE:
        choice = chosen(number=instead.attempt.number, because=Because.TOO_LATE)
        return _instead(assignment, evidence, edits, choice, history, instead.attempt)
    if not totals:
        return new

    shown_total, new_total = totals[-1], Total.of(new.score)

    def decided(because: Because, run: int | None = None, *, fallen: bool = True) -> tuple[Edit, ...]:
        figures = (TotalFigures.of(shown_total), TotalFigures.of(new_total)) if fallen else (None, None)
        return (chosen(number=run, because=because, told=figures[0], gave=figures[1]),)

    records = {record.number: record for record in book.run_records(student_id)}
    counting, digest = book.counting(student_id), evidence.submission_digest
    earlier = [record.submission_digest for record in records.values()]
    if digest not in earlier and instead is not None:
        number = instead.attempt.number
        choice = chosen(number=number, because=instead.because)
        counted = _instead(assignment, evidence, edits, choice, history, instead.attempt)
        combined = Total.of(counted.score)
        if not allow_lower and is_less_than_released(combined.final, shown_total.final, new.score.released):
            figures = TotalFigures.of(shown_total), TotalFigures.of(combined)
            choice = chosen(number=number, because=Because.FELL, told=figures[0], gave=figures[1])
            return _instead(assignment, evidence, edits, choice, history, instead.attempt)
        return counted
    if digest != records[counting].submission_digest and digest in earlier:
        edits_of_repeat = decided(Because.CAME_AGAIN, counting, fallen=False)
        return _with(assignment, book.evidence(student_id, counting), edits, edits_of_repeat, history)

    same_files = digest == records[counting].submission_digest
    released = new.score.released
    falls = new_total.has_fewer_points_than(shown_total)
    # the time at which the same files came is not an outcome of a run, unless a released grade falls by it;
    # what lateness costs is asked where nobody knows it
    if same_files:
        falls = falls or is_less_than_released(new_total.final, shown_total.final, released)
    elif new_total.final is not None:
        falls = new_total.falls_from(shown_total)
    # a ruling that the earlier files give nothing does not concern these
    counting_evidence = book.evidence(student_id, counting)
    ruled = not same_files and score(assignment, counting_evidence, edits=edits, history=history).closed
    if allow_lower or ruled or not falls:
        stands = any(isinstance(edit, RunChosen) for edit in edits)
        latest = decided(Because.LATEST, fallen=False) if stands else ()
        return _with(assignment, evidence, edits, latest, history)
    if not same_files:
        return _with(assignment, evidence, edits, decided(Because.FELL), history)
    counting_total = Total.of(score(assignment, counting_evidence, edits=edits, history=history))
    if new_total.has_fewer_points_than(counting_total) or is_less_than_released(
        new_total.final, counting_total.final, released
    ):
        return _with(assignment, counting_evidence, edits, decided(Because.KEPT, counting), history)
    return _with(assignment, evidence, edits, decided(Because.FELL_AGAIN), history)


def _with(
    assignment: Assignment,
    evidence: Evidence,
    edits: Sequence[Edit],
    new: tuple[Edit, ...],
    history: History,
) -> CountedRun:
    return CountedRun(evidence, score(assignment, evidence, edits=(*edits, *new), history=history), new)


def _instead(
    assignment: Assignment,
    evidence: Evidence,
    edits: Sequence[Edit],
    edit: Edit,
    history: History,
    instead: Attempt,
) -> CountedRun:
    """What counts where another attempt counts in the place of the one that was examined last."""
    own = history.attempts
    if history.first_run(evidence) is None:
        # as the gradebook will have it, in a run after all others
        run = 1 + max(attempt.number for attempt in own)
        own = (*own, Attempt(evidence, run, run))
    return _with(assignment, instead.evidence, edits, (edit,), replace(history, attempts=own))


def student_history(assignment: Assignment, book: Gradebook, student_id: str) -> History:
    """What else the book holds of a student that a score depends on."""
    return book.student_history(student_id, attempts=assignment.compares_attempts)


def latest_evidence(book: Gradebook, student_id: str) -> Evidence:
    """What the student's latest run found out, whether it counts or not."""
    return book.evidence(student_id, book.runs(student_id)[-1])


# --- result writer ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keeper:
    """Keeps what was found out about a submission, and has its report written.

    Attributes:
        pages: Writes the students' pages; None: whoever calls this one's methods does.
    """

    assignment: Assignment
    book: Gradebook
    out: Path
    who: str
    allow_lower: bool = False
    pages: StudentPageWriter | None = None

    def latest(self, student_id: str) -> Evidence:
        """What the student's latest run found out, whether it counts or not."""
        return latest_evidence(self.book, student_id)

    def examined(self, result: Result) -> Evidence:
        """The evidence of the run that led to a result, even where an earlier run counts in its place."""
        return self.latest(result.evidence.student_id) if result.score.lower else result.evidence

    def latest_images(self, student_id: str) -> dict[str, bytes]:
        """The images from the student's latest run."""
        return self.book.images(student_id, self.book.runs(student_id)[-1])

    def kept(
        self, evidence: Evidence, images: Mapping[str, bytes], now: datetime, *, held: str = ""
    ) -> Result:
        """Score, record and report one submission, with the marks that people gave to the student before.

        Args:
            held: Why nobody knows whose it is; empty when somebody or the gradebook knows.
        """
        with self.book.one_reading():
            evidence = as_known(self.assignment, self.book, evidence)
            counted = outcome(
                self.assignment,
                self.book,
                evidence,
                who=self.who,
                now=now,
                allow_lower=self.allow_lower,
                held=held,
            )
        result = Result(counted.evidence, counted.score)
        total = Total.of(result.score, who=self.who, when=now, cause="grade")
        self.book.record(evidence, images, who=self.who, total=total, edits=counted.edits)
        shown_images = images if counted.evidence is evidence else self.book.images(evidence.student_id)
        self._write(result, shown_images, now)
        return result

    def earlier_result(self, submission: Submission, now: datetime) -> Result:
        """The result from the gradebook; whatever an interruption kept from being written is written now.

        When it was handed in, and by whom, is taken from the submission as it is now, if it is the one that
        counts, and if no earlier run knows better.
        """
        student_id = submission.student_id
        with self.book.one_reading():
            evidence = self.book.evidence(student_id)
            history = student_history(self.assignment, self.book, student_id)
            edits = self.book.edits(student_id)
            now_delivered = replace(
                evidence,
                received_at=submission.received_at,
                delivery=submission.delivery,
                team=submission.team or evidence.team,
                origin=submission.origin,
            )
            if evidence != now_delivered or self.assignment.resubmission is not None:
                now_delivered = as_known(self.assignment, self.book, now_delivered)
        result = Result(evidence, score(self.assignment, evidence, edits=edits, history=history), True)
        same_files = evidence.submission_digest == submission.digest
        if same_files and evidence != now_delivered and not self._was_refused(result, now_delivered):
            kept = self.kept(now_delivered, self.book.images(student_id), now)
            return replace(kept, examined_before=True)
        if not report_path(self.out, student_id).exists():
            self._write(result, self.book.images(student_id), now)
        return result

    def _was_refused(self, result: Result, now_delivered: Evidence) -> bool:
        """Whether the run that counts was kept because the last one, delivered as it is now, gave less."""
        lower = result.score.lower
        if self.allow_lower or lower is None or not lower.kept:
            return False
        latest = self.latest(result.evidence.student_id)
        return (latest.received_at, latest.delivery) == (now_delivered.received_at, now_delivered.delivery)

    def _write(self, result: Result, images: Mapping[str, bytes], now: datetime) -> None:
        writer = self.pages or WrittenHere(self.assignment, self.out)
        writer.write(result, images, now)
