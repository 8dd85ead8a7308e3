"""People's corrections after grading, each with a reason: runs, claims, files, checks, arrival times.

It records which run of a student counts, the claim of a report, the acceptance of a file, waivers of wrong
checks for the whole class, and when submissions were due and came. Every decision is recorded with its
reason; decisions elsewhere also have their reasons checked here. Where the resubmission rule or a deadline
changed, it decides anew which attempt counts. It never gives marks (`marking` does), and it never scores:
the revision of the class does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grader.course.extensions import by_known_id
from grader.course.toml_file import remedy
from grader.domain.assignment import Assignment
from grader.domain.edit import Accepted, Because, Claimed, Edit, Extended, InTime, Received, RunChosen, Waived
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import moment_problem, printable
from grader.domain.score import LateRecord
from grader.domain.submission import Role
from grader.domain.submission_result import Attempt, Result
from grader.gradebook import Snapshot
from grader.results.current_state import edits_by_student
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring import counting_instead

LATEST_RUN = "latest"
_MOST_DIGITS = 9  # of the number of a run
BY_THE_WINDOW = (Because.TOO_LATE, Because.CAME_BEFORE)  # choices that follow from the rule on resubmissions
IN_TIME, NO_TIME = "in-time", "none"
EXAMPLE = "2026-01-31T23:40+03:30"


# --- what people write -----------------------------------------------------------------------------------


def stated(why: str, readers: str = "students and colleagues") -> str:
    """A reason on one line.

    Args:
        readers: Those who read it.

    Raises:
        UsageError: It is empty.
    """
    reason = " ".join(printable(why).split())
    if not reason:
        raise UsageError(f"--why is empty. Say why in a sentence: {readers} read it.")
    return reason


def share_in(text: str) -> float | None:
    """An accuracy as people write it (`83.5`), as a share from 0 to 1; None for `none`.

    Raises:
        UsageError: It is not a percentage.
    """
    if text.strip().lower() == "none":
        return None
    try:
        percent = float(text.strip().rstrip("% ").replace(",", "."))
    except ValueError:
        percent = -1.0
    if not 1 < percent <= 100:
        raise UsageError(f"{text}: is not an accuracy in percent. Write 83.5 for 83.5 %, or none.")
    return percent / 100


def run_number_in(text: str) -> int | None:
    """The number of a run as people write it; None for `latest`.

    Raises:
        UsageError: The text is neither.
    """
    if text == LATEST_RUN:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise UsageError(
            f"There is no run '{text[:60]}'. Give a number of `grader history`, or {LATEST_RUN}."
        )
    return int(text)


def moment_in(text: str) -> datetime:
    """A moment with its time zone, as people write it.

    Raises:
        UsageError: The text is not a date and time with a zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text}: is not a date and time. Write it as in {EXAMPLE}, or {IN_TIME}, or {NO_TIME}."
        ) from None
    if problem := moment_problem(moment, f"{text}:"):
        raise UsageError(problem)
    return moment


# --- check waiver ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaivedCheck:
    """The result of a waiver.

    Attributes:
        check: The check's id, without `test_`.
    """

    check: str
    revision: Revision


def waive_check(
    session: ClassSession, check: str, *, why: str, undo: bool = False, allow_lower: bool = False
) -> WaivedCheck:
    """Count a check as passed for everybody, including later submissions. No student's code runs.

    Args:
        check: Its id, with or without `test_`.
        undo: The check counts again.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such check or reason, or a released grade would fall.
    """
    reason, check_ids = stated(why), [spec.id for spec in session.assignment.checks]
    name = check.removeprefix("test_")
    if name not in check_ids:
        advice = remedy(name, check_ids, "The class page lists them all.")
        raise UsageError(f"'{session.assignment.id}' has no check '{check}'. {advice}")

    def decide(*_: object) -> Sequence[Edit]:
        return [Waived(who=session.who, when=session.clock(), why=reason, check=name, lifted=undo)]

    revision = session.revised(
        f"{'unwaive' if undo else 'waive'} {name}", decide=decide, allow_lower=allow_lower
    )
    return WaivedCheck(name, revision)


# --- one submission --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChosenRun:
    """The run that counts now.

    Attributes:
        number: Its number, 1 for the student's first.
    """

    number: int
    revision: Revision


def choose_run(
    session: ClassSession, student_id: str, number: int | None, *, why: str, allow_lower: bool = False
) -> ChosenRun:
    """Decide which of a student's runs counts until the student hands in again. Nothing runs again.

    Args:
        number: As `grader history` numbers them; None: the latest.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student, run or reason, or a released grade would fall.
    """
    reason, chosen = stated(why), number or 0

    def decide(*_: object) -> Sequence[Edit]:
        nonlocal chosen
        runs = session.book.runs(student_id)
        chosen = runs[-1] if number is None else number
        if chosen not in runs:
            numbers = ", ".join(map(str, runs))
            raise UsageError(f"There is no run '{number}'. Give one of {numbers}, or latest.")
        return [
            RunChosen(who=session.who, when=session.clock(), why=reason, student_id=student_id, number=chosen)
        ]

    revision = session.revised(f"count {student_id}", decide=decide, allow_lower=allow_lower)
    return ChosenRun(chosen, revision)


def record_claim(
    session: ClassSession, student_id: str, accuracy: float | None, *, why: str, allow_lower: bool = False
) -> Revision:
    """Record the test accuracy that a student's report claims, if it could not be read.

    Args:
        accuracy: 0 to 1; None withdraws what was recorded before.
        why: Where the report states it.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student or reason, or a released grade would fall.
    """
    reason = stated(why)
    session.require_student(student_id)

    def decide(*_: object) -> Sequence[Edit]:
        return [
            Claimed(
                who=session.who, when=session.clock(), why=reason, student_id=student_id, accuracy=accuracy
            )
        ]

    return session.revised(f"claim {student_id}", decide=decide, allow_lower=allow_lower)


def accept_file(
    session: ClassSession, student_id: str, file: str | None, *, why: str, allow_lower: bool = False
) -> Revision:
    """Accept a file that was set aside as a student's report, as long as that submission counts.

    Args:
        file: Its name, as the report and the class page show it; None withdraws the acceptance.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student, file or reason, the file cannot be the report, or a released
            grade would fall.
    """
    reason = stated(why)
    session.require_student(student_id)

    def decide(snapshot: Snapshot, _: object) -> Sequence[Edit]:
        if file is not None:
            _require_acceptable(session.assignment, snapshot.evidence[student_id], file)
        return [Accepted(who=session.who, when=session.clock(), why=reason, student_id=student_id, file=file)]

    return session.revised(f"accept {student_id}", decide=decide, allow_lower=allow_lower)


def _require_acceptable(assignment: Assignment, evidence: Evidence, file: str) -> None:
    """Check that a file can count as the report.

    Raises:
        UsageError: It cannot.
    """
    whose = f"'{evidence.student_id}'"
    if not any(required.role == Role.REPORT for required in assignment.files):
        raise UsageError(f"{assignment.id} asks for no report, so there is nothing to accept.")
    if Role.REPORT not in evidence.missing:
        raise UsageError(f"{whose} has a report already, or was graded without one: nothing is missing.")
    names = list(dict.fromkeys(refused.name for refused in evidence.refused_files))
    if file not in names:
        advice = f"There is {', '.join(names)}." if names else "Nothing of theirs was set aside."
        raise UsageError(f"No file '{file}' of {whose} was set aside. {advice}")
    suffix = Path(file).suffix.lower()
    for required in assignment.files:
        if required.role != Role.REPORT and suffix in required.suffixes:
            raise UsageError(f"{file} is not a report: {suffix} is what the {required.role} is handed in as.")


# --- deadlines -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrivalDecision:
    """The consequence of a decision on when a submission came.

    Attributes:
        late: None if the assignment has no deadline.
    """

    late: LateRecord | None
    revision: Revision


def record_received(
    session: ClassSession, student_id: str, moment: datetime | None, *, why: str, allow_lower: bool = False
) -> ArrivalDecision:
    """Record when the graded files came. For later submissions, the LMS's time counts.

    Args:
        moment: With its zone; None withdraws earlier decisions.
        why: The source of that, for the student.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student or reason, or a released grade would fall.
    """
    in_utc = None if moment is None else moment.astimezone(UTC)

    def decided(digest: str, reason: str) -> Received:
        return Received(
            who=session.who,
            when=session.clock(),
            why=reason,
            student_id=student_id,
            digest=digest,
            moment=in_utc,
        )

    return _arrival(session, student_id, decided, why, allow_lower)


def record_in_time(
    session: ClassSession, student_id: str, *, why: str, allow_lower: bool = False
) -> ArrivalDecision:
    """Record that the graded files came in time, whatever the LMS says: see `record_received`."""

    def decided(digest: str, reason: str) -> InTime:
        return InTime(who=session.who, when=session.clock(), why=reason, student_id=student_id, digest=digest)

    return _arrival(session, student_id, decided, why, allow_lower)


def _arrival(
    session: ClassSession, student_id: str, decided: Callable[[str, str], Edit], why: str, allow_lower: bool
) -> ArrivalDecision:
    """The consequence of an edit that is made from the submission's digest and the reason."""
    reason = stated(why)
    session.require_student(student_id)

    def decide(snapshot: Snapshot, _: object) -> Sequence[Edit]:
        digest = snapshot.evidence[student_id].submission_digest
        return [decided(digest, reason)]

    revision = session.revised(f"received {student_id}", decide=decide, allow_lower=allow_lower)
    return ArrivalDecision(revision.score(student_id).late, revision)


@dataclass(frozen=True)
class Regrade:
    """The result of scoring a class again.

    Attributes:
        extensions: The number of new deadlines.
        unknown: The students with an extension but without a result, sorted.
    """

    revision: Revision
    extensions: int = 0
    unknown: tuple[str, ...] = ()


def regrade(
    session: ClassSession,
    *,
    extensions: Mapping[str, datetime] | None = None,
    source: str = "",
    allow_lower: bool = False,
) -> Regrade:
    """Score the stored evidence with the current rubric. No student's code runs.

    Args:
        extensions: Student -> a deadline of the student's own, given after the fact.
        source: The name of the list that they come from.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: A released grade would fall.
    """
    deadlines = extensions or {}

    def decide(_: object, results: Sequence[Result]) -> Sequence[Edit]:
        why, when = f"An extension, by {source}.", session.clock()
        own = by_known_id(deadlines, (result.score.student_id for result in results))
        extended = extension_edits(results, own, who=session.who, when=when, why=why)
        return [*extended, *chosen_by_the_window(session, extended)]

    decide_anew = decide if extensions is not None or chosen_by_the_window(session) else None
    revision = session.revised("regrade", decide=decide_anew, allow_lower=allow_lower)
    with_result = {result.score.student_id for result in revision.results}
    count = sum(isinstance(edit, Extended) for edit in revision.edits)
    unknown = by_known_id(deadlines, with_result).keys() - with_result
    return Regrade(revision, count, tuple(sorted(unknown)))


def extension_edits(
    results: Sequence[Result], deadlines: Mapping[str, datetime], *, who: str, when: datetime, why: str
) -> list[Extended]:
    """The edits that give students deadlines of their own, except those whose deadline stays as it is.

    It does where they have that one, or a later one that was given while grading.

    Args:
        deadlines: By student; students without a result are left out.
    """
    edits = []
    for result in results:
        student_id, late = result.score.student_id, result.score.late
        new_deadline = deadlines.get(student_id)
        if new_deadline is None:
            continue
        due = max(new_deadline, result.evidence.delivery.extension or new_deadline)
        if late is None or not late.extended or late.due != due:
            deadline = new_deadline.astimezone(UTC)
            edits.append(Extended(who=who, when=when, why=why, student_id=student_id, deadline=deadline))
    return edits


# --- attempts that count ---------------------------------------------------------------------------------


def chosen_by_the_window(session: ClassSession, new: Sequence[Edit] = ()) -> Sequence[RunChosen]:
    """The choices of runs that follow from the rule and the deadlines as they are now.

    Args:
        new: What is decided beside them, as new deadlines.

    Raises:
        UsageError: The book cannot be used.
    """
    assignment, known = session.assignment, session.book.edits()
    noted = any(isinstance(edit, RunChosen) and edit.because in BY_THE_WINDOW for edit in known)
    if assignment.resubmission is None and not noted:
        return ()
    snapshot = session.snapshot(attempts=True).with_edits(new)
    edits = edits_by_student(snapshot)
    choices = []
    for student_id, evidence in snapshot.evidence.items():
        chosen = [edit for edit in edits[student_id] if isinstance(edit, RunChosen)]
        before = chosen[-1].because if chosen else Because.LATEST
        history = snapshot.history(student_id, attempts=True)
        if before is None or not history.attempts:
            continue  # a person said so, or there is one attempt alone
        newest = _newest(history.attempts)
        instead = counting_instead(assignment, newest.evidence, edits[student_id], history)
        if instead is not None and instead.attempt.digest != evidence.submission_digest:
            number, because = instead.attempt.number, instead.because
        elif instead is None and before in BY_THE_WINDOW and newest.digest != evidence.submission_digest:
            number, because = newest.number, Because.LATEST
        else:
            continue
        choices.append(
            RunChosen(
                who=session.who,
                when=session.clock(),
                why="",
                student_id=student_id,
                number=number,
                because=because,
            )
        )
    return choices


def _newest(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt that came last; the one that was examined last, unless it is known when each came."""
    times = [attempt.evidence.received_at for attempt in attempts]
    known = [moment.timestamp() for moment in times if moment is not None]
    moments = known if len(known) == len(attempts) else [0.0] * len(attempts)
    return max(zip(moments, attempts, strict=True), key=lambda one: (one[0], one[1].first_run))[1]
