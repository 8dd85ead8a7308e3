"""What a person should look at in one result, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Finding, Status, TrainingOutcome
from grader.domain.formatting import about_file, counted, listed, named, percent, points
from grader.domain.score import GradeStatus, Score, ScoreLine
from grader.domain.submission_result import pried_sentence, unproven_sentence
from grader.reports.student.answers_page import undrawn_remarks
from grader.reports.student.fixes import forbidden_rows
from grader.reports.whole_class.class_charts import claim_apart, claim_of
from grader.scoring.decided_by_people import with_acceptance, with_waived
from grader.scoring.grade_state import is_reviewed, what_is_open
from grader.scoring.measurements import shows_more_epochs


@dataclass(frozen=True)
class Cause:
    """A reason for a person to look at something.

    Attributes:
        id: The anchor of its section of the queue on the page.
        title: What it is, in a few words.
        advice: What to do about it, in a sentence.
        holds: Grades cannot be handed out before it is settled.
        noun: What is counted.
    """

    id: str
    title: str
    advice: str
    holds: bool = False
    noun: str = "submission"


ENGINE = Cause(
    "engine-error",
    "The grader failed",
    "It costs nobody points. Grade these again (the previous run is kept), or give the points of every "
    "item by hand, with `grader marks set`.",
    holds=True,
)
REFUSED = Cause(
    "refused",
    "Nothing in it could be graded",
    "Read the reason: ask for a file that opens, or have the last word. `grader rule RESULTS STUDENT "
    "--why ...` gives no points; with `--lift`, what people mark counts.",
    holds=True,
)
MISSING = Cause(
    "incomplete",
    "A required file is missing",
    "The total is withheld until `grader rule` applies the course's rule, or lifts it. `grader accept` takes "
    "a file that was set aside as the report.",
    holds=True,
)
LACKING = Cause(
    "lacking",
    "Listed by the LMS, but not in its download",
    "There is a submission of theirs that nobody has graded: download it again and grade that. If there is "
    "none after all, `grader rule RESULTS STUDENT --why ...` says so.",
    holds=True,
    noun="student",
)
UNDECIDED = Cause(
    "undecided",
    "Points that the grader could not decide",
    "Look at the report, then give the points: `grader marks set`.",
    holds=True,
)
CHECKS = Cause(
    "undecided-checks",
    "Checks that could not be decided",
    "They cost nothing and give nothing. Fix the check and grade again, or `grader waive` it.",
    holds=True,
)
MARKS = Cause(
    "marks",
    "Marks that people give",
    "`grader marks export RESULTS marks.xlsx --open` writes the sheet of what is open (`--split 3` for three "
    "assistants), `grader marks import` takes it in.",
    holds=True,
)
RESUBMISSION = Cause(
    "resubmission",
    "A resubmission that the grader failed on",
    "The points from before the deadline stand. Grade it again: what it regains is not known.",
    holds=True,
)
NOT_RUN = Cause(
    "not-run",
    "Training was not run",
    "Grade with `--data` to measure the accuracy, or give the points by hand.",
    holds=True,
)
ORAL = Cause(
    "oral",
    "An oral check holds the grade",
    "`grader oral RESULTS` says who is to be asked and why, and writes the questions. It records how each "
    "check went (`--outcome`). Not passed takes no points: `grader rule` says what follows.",
    holds=True,
)
REQUESTS = Cause(
    "requests",
    "A student disputes points",
    "`grader requests list` shows each with the mark, `grader requests answer` answers it. A grade that was "
    "released stands until then.",
    noun="student",
)
INQUIRIES = Cause(
    "inquiries",
    "A question about the work is open",
    "It takes no points. `grader inquiries list` shows it with the answer; `grader inquiries settle` says "
    "what follows, with a reason.",
    noun="student",
)
UNREVIEWED = Cause(
    "unreviewed",
    "Nobody has reviewed the grade",
    "The assignment asks for it (`[review]`). `grader review RESULTS --all`, `--section` or `--only` records "
    "who has looked over which grades.",
    holds=True,
)
CHANGED = Cause(
    "changed-since-review",
    "Changed since it was reviewed",
    "The review was about other points, or another submission. Look again, then `grader review`.",
)
LATE_ASKED = Cause(
    "late-decide",
    "Late, and a person decides",
    "Nothing was taken off. `grader received` says when it came, or that it came in time; `[late]` in "
    "assignment.toml is the course's rule.",
    holds=True,
)
FALLEN = Cause(
    "fallen",
    "A total that a student saw has fallen",
    "The last attempt counts. `grader count` says that it does (`latest`), or which run counts instead.",
    holds=True,
)
OWNER = Cause(
    "owner",
    "Nobody knows whose it is",
    "Its points reach nobody: exports, feedback and publications leave it out until `grader owner` says "
    "whose it is. A class list with the LMS's numbers (`grade --roster`) may say so as well.",
)
LOWER = Cause(
    "lower-run",
    "Examined again, the same files gave less",
    "The higher total stands. Why do they differ? `grader count` with `latest` takes the lower one.",
)
ABSENT = Cause(
    "no-result",
    "In the download, but without a result",
    "These ids are on files in the download, but nothing of theirs was graded.",
    noun="student",
)
NOTHING = Cause(
    "handed-in-nothing",
    "On the class list, but handed in nothing",
    "They have neither a result nor a file in a download. They have no grade, which is not zero: "
    "`grader rule RESULTS STUDENT --why ...` makes it one.",
    noun="student",
)
UNLISTED = Cause(
    "unlisted",
    "Handed in, but not on the class list",
    "Is the id mistyped, or has somebody left the course?",
    noun="student",
)
LATE = Cause("late", "Late, with the rule applied", "See whether somebody has an extension.")
LATE_UNKNOWN = Cause(
    "late-unknown",
    "When it came is not known",
    "Nothing was taken off. Look for late ones in the LMS.",
)
FORBIDDEN = Cause(
    "forbidden",
    "A forbidden part costs points",
    "Make sure that the graded part really uses it.",
)
FLAGGED = Cause(
    "flagged",
    "Allowed, but not what was asked for",
    "It cost nothing. If it should, change `[policies]` or `[[forbidden]]` and grade again.",
)
CLAIM = Cause(
    "claims",
    "Claimed and measured accuracy differ",
    "By more than 5 points, or in epochs: different weights, a different split, a different number from "
    "the one in the code? It changes no points by itself.",
)
NOTES = Cause(
    "suspicious",
    "Code that does something unusual",
    "Data written out, text that is executed, a seed that is read, a look into the running program: read "
    "these lines.",
)
DISTURBED = Cause(
    "disturbed-watch",
    "The watch for forbidden parts was disturbed",
    "What the code used is not known, so points that a forbidden part would cost are open. Read the source, "
    "then `grader marks set`.",
)
WEIGHTS = Cause(
    "weights", "Weights that do not fit", "The submitted weights are not those of the submitted model."
)
FILES = Cause("files", "Files that were set aside", "Was something among them meant to count?", noun="file")
ATTEMPTS = Cause("attempts", "Earlier attempts", "The last one counts; the reason says why.", noun="file")
SUSPECT = Cause(
    "suspect-checks",
    "Failed by over 40 % of the class",
    "Of those who wrote the part. Suspect the check, or the handout, before the class: where many mistakes "
    "have no name, read a few. `grader waive` gives the points back.",
    noun="check",
)
SIMILAR = Cause(
    "similar",
    "Much in common with another submission",
    "Evidence for a person, and never a deduction: `similarity.html` shows each pair side by side.",
    noun="pair",
)
UNDRAWN = Cause(
    "undrawn",
    "Answers that could not be drawn",
    "Open the PDF beside the student's report. If it does not open either, ask for another file; it costs no "
    "points by itself.",
)
BOUNDARY = Cause(
    "boundary",
    "Within 2 points of a boundary",
    "A closer look is worth most here, before students ask for one.",
)
UNOFFICIAL = Cause("unofficial", "Unofficial grades", "Isolation was incomplete: `grader doctor` says why.")
PARTIAL = Cause("partial", "A single file was graded", "Other files were not looked for.")

CAUSES = (
    ENGINE, REFUSED, MISSING, RESUBMISSION, LACKING, UNDECIDED, CHECKS, MARKS, NOT_RUN, ORAL, LATE_ASKED,
    FALLEN, UNREVIEWED, OWNER, REQUESTS, INQUIRIES, CHANGED, SUSPECT, LOWER, SIMILAR, CLAIM, FORBIDDEN,
    DISTURBED, FLAGGED, NOTES, WEIGHTS, BOUNDARY, LATE, LATE_UNKNOWN, NOTHING, UNLISTED, ABSENT, UNDRAWN,
    FILES, ATTEMPTS, UNOFFICIAL, PARTIAL,
)  # fmt: skip
"""In the order of the queue: what holds the grades up comes first."""


@dataclass(frozen=True)
class Case:
    """One thing for a person to look at.

    Attributes:
        text: As the queue says it; cases with equal texts are shown together.
        student_id: Whose it is; empty when it is not about a single student.
        short: As the table of students says it; empty when the table says it already.
        count: How many of its cause's nouns it stands for.
        apart: Cases with the same text are shown together only where this is the same.
        link: Where to read more, as an address relative to the class page; empty where there is nothing more.
    """

    cause: Cause
    text: str
    student_id: str = ""
    short: str = ""
    count: int = 1
    apart: str = ""
    link: str = ""


def cases(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[Case, ...]:
    """What a person should look at in one result, in the order of the causes.

    If nobody knows whose result it is, that is the only case: it holds up nobody's grade.
    """
    if score.ownership is not None and score.held:
        sentence = f"{evidence.origin.upload or score.student_id}: {score.ownership.reason}"
        return (Case(OWNER, sentence, score.student_id, "Nobody knows whose it is"),)
    evidence = with_waived(assignment, with_acceptance(evidence, score.accepted), dict(score.waived))
    unsorted = [
        Case(cause, text, score.student_id, short)
        for cause, text, short in (
            *_outcome_cases(evidence, score),
            *_open_cases(assignment, evidence, score),
            *_review_cases(assignment, score),
            *_late_cases(evidence, score),
            *_code_cases(assignment, evidence),
            *_measured_cases(evidence, score),
            *_circumstance_cases(evidence),
        )
    ]
    return tuple(sorted(unsorted, key=lambda case: CAUSES.index(case.cause)))


CaseParts = Iterator[tuple[Cause, str, str]]
"""(cause, text, short)."""


def _outcome_cases(evidence: Evidence, score: Score) -> CaseParts:
    reason = score.reason or evidence.reason or "No reason was given."
    if score.status is GradeStatus.ENGINE_ERROR and score.lacks_total:
        yield ENGINE, reason, reason
    if score.status is GradeStatus.REFUSED and score.lacks_total:
        yield REFUSED, reason, reason
    if score.status is GradeStatus.INCOMPLETE and score.lacks_total:
        text = f"Missing: {listed(list(map(str, evidence.missing)))}"
        yield MISSING, text, text
    if score.oral is not None and score.awaits_oral:
        ruled = score.oral.to_be_ruled
        yield ORAL, "Not passed: a person rules" if ruled else "To be asked", "Oral check"
    disputed = [request for request in score.requests if request.is_open]
    for index, request in enumerate(disputed):
        yield REQUESTS, f"{request.target}: {request.reason}", "" if index else "Disputes points"
    for inquiry in score.inquiries:
        if inquiry.is_open:
            about = f"Question {inquiry.number}, {inquiry.place or 'the work as a whole'}"
            answered = f"answered: {inquiry.explanation}" if inquiry.to_be_settled else "not answered yet"
            yield INQUIRIES, f"{about}: {answered}", "Answered a question" if inquiry.to_be_settled else ""
    if score.resubmission is not None and score.resubmission.asked:
        yield RESUBMISSION, evidence.reason or score.resubmission.reason, "The grader failed"
    if score.lower is not None:
        yield (
            LOWER if score.lower.kept else FALLEN,
            score.lower.reason,
            "A later run gave less" if score.lower.kept else "The total fell",
        )


def _open_cases(assignment: Assignment, evidence: Evidence, score: Score) -> CaseParts:
    """What has no points yet."""
    if not score.gradable:
        return
    by_person = {item.id for item in assignment.rubric if item.by_person}
    measures = {item.id: item.measured for item in assignment.rubric if item.measured is not None}
    for line in score.lines:
        if line.id in score.awaiting and line.id in by_person:
            yield MARKS, f"{line.title} ({points(line.maximum)} points)", ""
        elif line.id in score.awaiting:
            measured = evidence.of_measure(measures[line.id]) if line.id in measures else None
            rebuilding = _rebuilding_notes(measured) if measured else ""
            text = f"{line.id.replace('_', ' ').capitalize()}: {line.reason}{rebuilding}"
            yield UNDECIDED, text, _why_open(line, measured)
        elif line.id in score.not_run:
            yield NOT_RUN, f"{line.title} ({points(line.maximum)} points)", ""
    by_hand = _marked_components(assignment, score)
    errored = [
        finding
        for finding in evidence.findings
        if finding.status is Status.ERRORED and finding.component not in by_hand
    ]
    for index, finding in enumerate(errored):
        short = f"{counted(len(errored), 'check')} could not be decided"
        yield CHECKS, f"`{finding.check}`: {finding.message or finding.title}", "" if index else short


def _review_cases(assignment: Assignment, score: Score) -> CaseParts:
    """A grade of which nothing is open, and which nobody has looked over as it is."""
    review = score.review
    if is_reviewed(score) or (review is None and not assignment.review_required) or what_is_open(score):
        return
    text = "Nobody has looked over it." if review is None else f"Since its review, {review.differences}."
    short = "Not reviewed" if review is None else "Changed since its review"
    yield UNREVIEWED if assignment.review_required else CHANGED, text, short


def _marked_components(assignment: Assignment, score: Score) -> set[str]:
    """The components whose points a person gave by hand, so that their checks decide nothing."""
    marked = {line.id for line in score.lines if line.edits and line.edits[-1].new is not None}
    return {name for item in assignment.rubric if item.id in marked for name in (item.components or {})} - {
        name for item in assignment.rubric if item.id not in marked for name in (item.components or {})
    }


def _rebuilding_notes(evidence: Evidence) -> str:
    """Why training was rebuilt, which the student's page does not say."""
    training = evidence.training
    return f" {' '.join(map(str, training.notes))}" if training.rebuilt and training.notes else ""


def _why_open(line: ScoreLine, measured: Evidence | None) -> str:
    """Why a line has no points yet.

    Args:
        measured: The evidence about the model that decides it, where one does.
    """
    if measured is not None:
        training = measured.training
        if training.outcome is TrainingOutcome.BUDGET:
            return "Training was stopped by the time limit"
        if training.outcome is TrainingOutcome.UNKNOWN:
            return training.reason or "Training could not be judged"
        if training.unfinished:
            return "A repetition of the training was not completed"
    return f"Undecided: {line.id.replace('_', ' ')}"


def _late_cases(evidence: Evidence, score: Score) -> CaseParts:
    record = score.late
    if record is None or score.closed:
        return  # whenever it came, there is nothing to take off
    late = record.how_late
    if record.asked:
        text = late or "Marked as late: look up by how much"
        yield LATE_ASKED, text, text
    elif late:
        text = f"{late}: {points(record.penalty)} points less" if record.penalty else late
        yield LATE, text, text
    elif record.state == "unknown" and not evidence.partial:
        hint = evidence.delivery.hint
        yield LATE_UNKNOWN, f"Nothing shows when it came{f' ({hint} is only a hint)' if hint else ''}.", ""


def _code_cases(assignment: Assignment, evidence: Evidence) -> CaseParts:
    """What the source uses, and the remarks of checks that passed."""
    rows = forbidden_rows(assignment, evidence)
    reached = {str(use.place) for use in evidence.forbidden if use.reached_from}
    for cause, word, shown in (
        (FORBIDDEN, "Forbidden part used", [row for row in rows if row.loses_points]),
        (FLAGGED, "Decide about", [row for row in rows if not row.loses_points and row.where in reached]),
    ):
        names = dict.fromkeys(row.name for row in shown)
        for index, row in enumerate({(row.name, row.consequence): row for row in shown}.values()):
            short = "" if index else f"{word}: {listed(list(names), 1)}"
            yield cause, f"{named(row.name)}: {row.consequence}", short
    remarks: dict[str, Finding] = {}
    for finding in evidence.findings:
        if finding.flagged:
            remarks.setdefault(finding.policy or finding.check, finding)
    for index, (name, finding) in enumerate(remarks.items()):
        short = f"Decide about: {listed([remark.replace('_', ' ') for remark in remarks])}"
        yield FLAGGED, f"`{name}`: {finding.message}", "" if index else short
    for stage in evidence.unproven:
        yield DISTURBED, unproven_sentence(stage), "The watch was disturbed"
    notes = (note for training in evidence.trainings for note in training.notes)
    looks = [note.text for note in (*evidence.notes, *notes) if note.ask_person]
    looks += dict.fromkeys(map(pried_sentence, evidence.pried))
    for index, note in enumerate(looks):
        yield NOTES, note, "" if index else "Unusual code"


def _measured_cases(evidence: Evidence, score: Score) -> CaseParts:
    claim, training = claim_of(score), evidence.training
    ended = training.outcome in (TrainingOutcome.FAILED, TrainingOutcome.DIVERGED)
    if claim is not None and training.accuracy is None and ended:
        text = f"{percent(claim.accuracy)} claimed, and the training {training.outcome}"
        yield CLAIM, f"{text} ({claim.source})", text
    if claim is not None and training.accuracy is not None and claim_apart(claim.accuracy, training.accuracy):
        text = f"{percent(claim.accuracy)} claimed, {percent(training.accuracy)} measured"
        yield CLAIM, f"{text} ({claim.source})", text
    if shows_more_epochs(evidence):
        text = f"Outputs of {evidence.shown_epochs} epochs, code of {training.planned_epochs}"
        yield CLAIM, text, text
    for checkpoint in (evidence.checkpoint, *(model.checkpoint for model in evidence.further.values())):
        if checkpoint.status in ("mismatch", "refused"):
            mismatch = checkpoint.status == "mismatch"
            yield WEIGHTS, checkpoint.reason, "Weights do not fit" if mismatch else "Weights refused"


def _circumstance_cases(evidence: Evidence) -> CaseParts:
    for file in evidence.refused_files:
        yield FILES, about_file(file.name, file.reason), ""
    for index, text in enumerate(undrawn_remarks(evidence.answers) if evidence.answers else ()):
        yield UNDRAWN, text, "" if index else "Answers not all drawn"
    if evidence.attestation.weak:
        text = " ".join(evidence.attestation.missing) or "Isolation was incomplete."
        yield UNOFFICIAL, text, "Unofficial: isolation was incomplete"
    if evidence.partial:
        yield PARTIAL, "A single file was graded.", "Partial: a single file was graded"
