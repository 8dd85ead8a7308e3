"""What `results.json` and `scores.csv` hold: each submission, the class's list, and a row per student.

It makes the record of one submission from evidence and a score, and the rows of the table for a
spreadsheet. It finds out who is on the list of the class and handed in nothing, and who handed in and is
not on it. It never decides which keys there are (`results_schema` does), and it neither reads nor writes
the files (`results_file` does). It never scores.
"""

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from grader.course.known_ids import id_form
from grader.domain.analyzed_program import Claim
from grader.domain.assignment import Assignment
from grader.domain.evidence import Epoch, Evidence
from grader.domain.formatting import about_file, points, printable
from grader.domain.grade_review import GradeReview
from grader.domain.measure import StudyAgain
from grader.domain.program_run import Plan, Rehearsal
from grader.domain.score import Score, ScoreEdit, ScoreLine
from grader.domain.submission_result import watch_notes
from grader.files.file_names import guarded
from grader.lms.matching import Candidate, matching
from grader.lms.roster import Roster
from grader.reports.results_json.results_schema import (
    AcceptedFileRecord,
    CheckpointRecord,
    ClassRecord,
    DownloadRecord,
    EditRecord,
    EpochRecord,
    FindingRecord,
    ForbiddenRecord,
    InquiryRecord,
    ItemRecord,
    LatenessRecord,
    LeftAloneRecord,
    Measurements,
    ModelRecord,
    PlanRecord,
    RefusedFileRecord,
    RequestRecord,
    ResubmittedRecord,
    ReviewRecord,
    RosterRecord,
    SandboxRecord,
    StageRecord,
    StudyRecord,
    StudyRowRecord,
    SubmissionRecord,
    TrainingRecord,
    TryRecord,
    TunedRecord,
    UnfinishedRunRecord,
)
from grader.reports.student.model_figures import class_figures
from grader.scoring.decided_by_people import with_acceptance


def roster_record(roster: Roster, results: Collection[Candidate]) -> RosterRecord:
    """Who is on the list of the class, under the ids of their results where they have any.

    Args:
        results: The results of the class.
    """
    match = matching(roster.table, list(roster.rows), roster.id_columns, roster.number, results)
    listed = {result.student_id for result in results if not result.held} - set(match.absent)
    listed |= {roster.rows[row] for row in (*match.unknown, *match.held)}
    # a number that is not a student's is a team's, and the LMS has no upload of its members
    numbers = roster.directory().students
    teams = roster.number is not None and any(
        result.number_in(roster.number.lms) not in ("", *numbers) for result in results
    )
    return RosterRecord(
        source=printable(roster.table.name),
        students=sorted(listed),
        submitted=[] if teams else sorted(roster.surely_submitted(match.unknown)),
        missing=[],
        unlisted=[],
        notes=[printable(f"{doubt}.") for doubt in match.doubts.values()],
    )


def attended(
    download: DownloadRecord | None,
    candidates: Iterable[Candidate],
    all_downloads: DownloadRecord | None = None,
) -> DownloadRecord | None:
    """The account, completed by who on the list handed in nothing, and who handed in and is not on it.

    Whoever has a file in the download handed something in, even without a result. So may everybody whose id
    is on a submission with an unknown owner.

    Args:
        candidates: The results of the class.
        all_downloads: The account of all downloads, where this is one of several.
    """
    if download is None or download.roster is None:
        return download
    all_downloads = all_downloads or download
    rosters = [roster for roster in (download.roster, all_downloads.roster) if roster is not None]
    results = list(candidates)
    ids = [result.student_id for result in results if not result.held]
    there = {id_form(student_id) for student_id in ids}
    there |= {id_form(result.origin.carries) for result in results if result.held}
    there |= {id_form(file.student_id) for file in all_downloads.files if file.student_id}
    listed = {id_form(student_id) for roster in rosters for student_id in roster.students}
    roster = download.roster.model_copy(
        update={
            "missing": [
                student_id for student_id in download.roster.students if id_form(student_id) not in there
            ],
            "unlisted": sorted(student_id for student_id in ids if id_form(student_id) not in listed),
        }
    )
    return download.model_copy(update={"roster": roster})


# --- results record --------------------------------------------------------------------------------------


def submission_record(evidence: Evidence, score: Score) -> SubmissionRecord:
    """The record of what was found and scored."""
    evidence = with_acceptance(evidence, score.accepted)
    attestation = evidence.attestation
    notes = (note for training in evidence.trainings for note in training.notes)
    return SubmissionRecord(
        student_id=printable(score.student_id),
        status=score.status.value,
        total=score.total,
        decided=score.decided,
        open_points=score.open_points,
        awaiting=list(score.awaiting),
        edits=[EditRecord.model_validate(_edit(edit)) for edit in score.edits],
        not_run=list(score.not_run),
        reason=printable(score.reason or evidence.reason),
        partial=evidence.partial,
        missing=list(evidence.missing),
        files=[
            AcceptedFileRecord(
                role=record.role, name=printable(record.name), size=record.size, sha256=record.digest
            )
            for record in evidence.files
        ],
        absent=evidence.absent,
        accepted=printable(score.accepted.file) if score.accepted else "",
        refused_files=[
            RefusedFileRecord(name=file.name, reason=about_file(file.name, file.reason))
            for file in evidence.refused_files
        ],
        items=[_item(line) for line in score.lines],
        findings=_findings(evidence, {check: str(waiver) for check, waiver in score.waived}),
        measurements=_measurements(evidence, score.claim),
        training=_training(evidence),
        checkpoint=_checkpoint(evidence),
        forbidden=[
            ForbiddenRecord(
                rule=use.rule,
                name=printable(use.name),
                where=printable(str(use.place)),
                reached_from=list(use.reached_from),
            )
            for use in evidence.forbidden
        ],
        tuned=[
            TunedRecord(name=record.name, value=printable(record.value), where=printable(str(record.place)))
            for record in evidence.chosen
        ],
        plan=_plan(evidence.plan),
        study=_study(evidence.study),
        models={measure: _model(evidence.of_measure(measure)) for measure in evidence.further},
        variant=dict(evidence.variant),
        notes=[
            printable(text)
            for text in dict.fromkeys(map(str, (*evidence.notes, *notes, *watch_notes(evidence))))
        ],
        sandbox=SandboxRecord(
            level=attestation.level,
            layers=dict(attestation.layers or {}),
            missing=list(attestation.missing),
            node=printable(evidence.node),
        ),
        graded_at=evidence.graded_at,
        received_at=evidence.received_at,
        received_hint=evidence.delivery.hinted_at,
        received_hint_from=evidence.delivery.hint,
        marked_late=evidence.delivery.marked_late,
        extension=evidence.delivery.extension,
        lower_run=printable(score.lower.reason) if score.lower else "",
        late=LatenessRecord.model_validate(asdict(score.late)) if score.late else None,
        resubmission=ResubmittedRecord.model_validate(asdict(score.resubmission))
        if score.resubmission
        else None,
        tries=TryRecord.model_validate(asdict(score.tries)) if score.tries else None,
        oral_check=_oral_check(score),
        requests=[RequestRecord.model_validate(asdict(request)) for request in score.requests],
        inquiries=[InquiryRecord.model_validate(asdict(inquiry)) for inquiry in score.inquiries],
        review=_review(score.review) if score.review else None,
        held=printable(score.ownership.reason) if score.ownership and score.held else "",
        carried_id=evidence.origin.carries if score.held else "",
        owner=printable(score.ownership.reason) if score.ownership and score.ownership.decided else "",
        engine=evidence.engine,
        submission_digest=evidence.submission_digest,
        assignment_digest=evidence.assignment_digest,
    )


def _oral_check(score: Score) -> Literal["", "pending", "passed", "failed", "absent", "excused"]:
    """How the oral check went, in a word."""
    if score.oral is None:
        return ""
    return "pending" if score.oral.outcome is None else score.oral.outcome.value


def _review(review: GradeReview) -> ReviewRecord:
    return ReviewRecord.model_validate(
        {
            **asdict(review),
            "who": printable(review.who),
            "note": printable(review.note),
            "stands": review.stands,
        }
    )


def _model(evidence: Evidence) -> ModelRecord:
    return ModelRecord(
        measurements=_measurements(evidence, None),
        training=_training(evidence),
        checkpoint=_checkpoint(evidence),
        plan=_plan(evidence.plan),
    )


def _training(evidence: Evidence) -> TrainingRecord:
    training = evidence.training
    return TrainingRecord(
        outcome=training.outcome.value,
        reason=printable(training.reason),
        where=printable(training.where),
        rebuilt=training.rebuilt,
        data=training.data,
        device=training.device,
        seconds=_finite(training.seconds) or 0.0,
        attempt=evidence.attempt,
        unfinished=[
            UnfinishedRunRecord(
                number=run.number,
                outcome=run.outcome.value,
                reason=printable(run.reason),
                where=printable(run.where),
            )
            for run in training.unfinished
        ],
        epochs=[_epoch(epoch) for epoch in training.epochs],
    )


def _checkpoint(evidence: Evidence) -> CheckpointRecord:
    checkpoint = evidence.checkpoint
    return CheckpointRecord(
        status=checkpoint.status,
        reason=printable(checkpoint.reason),
        accuracy=_finite(checkpoint.accuracy),
        withheld=checkpoint.withheld,
    )


def _epoch(epoch: Epoch) -> EpochRecord:
    return EpochRecord(
        number=epoch.number,
        test_loss=_finite(epoch.test_loss),
        test_accuracy=epoch.test_accuracy,
        reported_loss=_finite(epoch.train_loss),
        learning_rate=_finite(epoch.learning_rate),
        seconds=_finite(epoch.seconds),
    )


def _item(line: ScoreLine) -> ItemRecord:
    return ItemRecord.model_validate(
        {
            "id": line.id,
            "points": line.points,
            "max": line.maximum,
            "title": line.title,
            "state": line.state,
            "reason": printable(line.reason),
            "floor": line.floor,
            "attempts": asdict(line.attempts) if line.attempts else None,
            "components": [
                {
                    "component": share.component,
                    "points": share.points,
                    "max": share.maximum,
                    "passed": share.passed,
                    "total": share.total,
                    "reason": printable(share.reason),
                }
                for share in line.components
            ],
            "parts": [
                {
                    "id": part.id,
                    "title": part.title,
                    "points": part.points,
                    "max": part.maximum,
                    "comments": [printable(comment) for comment in part.comments],
                }
                for part in line.parts
            ],
            "comments": [printable(comment) for comment in line.comments],
            "edits": [_edit(edit) for edit in line.edits],
        }
    )


def _edit(edit: ScoreEdit) -> dict[str, Any]:
    return {
        "who": printable(edit.who),
        "when": edit.when,
        "why": printable(edit.why),
        "old": edit.old,
        "new": edit.new,
        "part": edit.part,
        "sheet": printable(edit.sheet),
    }


def _findings(evidence: Evidence, waived: Mapping[str, str]) -> list[FindingRecord]:
    return [
        FindingRecord(
            check=finding.check,
            component=finding.component,
            status=finding.status.value,
            blame=finding.blame.value if finding.blame else None,
            diagnosis=finding.label,
            message=printable(finding.message),
            where=printable(finding.where),
            title=printable(finding.title),
            hint=printable(finding.hint),
            waived=printable(waived.get(finding.check, "")),
            because=finding.because,
        )
        for finding in evidence.findings
    ]


def _measurements(evidence: Evidence, claim: Claim | None) -> Measurements:
    training = evidence.training
    measures = {
        measure: _finite(evidence.of_measure(measure).training.measured) for measure in evidence.further
    }
    named = Measurements(
        test_accuracy=_finite(training.accuracy),
        parameters=evidence.parameters,
        test_accuracy_interval=training.interval if training.value is None else None,
        test_loss=_finite(training.epochs[-1].test_loss) if training.epochs else None,
        test_images=sum(sum(row) for row in training.confusion) or None,
        accuracy_counted=printable(training.counted),
        epochs=len(training.epochs),
        planned_epochs=training.planned_epochs,
        test_accuracy_runs=list(training.runs) if training.value is None else [],
        classes=[
            ClassRecord(
                name=figures.name,
                images=figures.images,
                precision=figures.precision,
                recall=figures.recall,
                f1=figures.f1,
                roc_area=figures.area,
            )
            for figures in class_figures(training)
        ],
        seen_accuracy=training.seen_accuracy,
        claimed_accuracy=claim.accuracy if claim else None,
        claimed_in=printable(claim.source) if claim else "",
        projected_seconds=_finite(training.projected_seconds),
    )
    by_measure = {evidence.measure: _finite(training.measured), **measures}
    return Measurements.model_validate({**by_measure, **named.model_dump()})


def _finite(value: float | None) -> float | None:
    """The value, or None where JSON cannot express it."""
    return value if value is not None and math.isfinite(value) else None


def _study(study: StudyAgain | None) -> StudyRecord | None:
    if study is None:
        return None
    return StudyRecord(
        rows=[
            StudyRowRecord(
                values={printable(name): printable(value) for name, value in row.values.items()},
                claimed=row.claimed,
                measured=row.measured,
                seeds=row.seeds,
                is_base=row.is_base,
                why_not=printable(row.why_not),
            )
            for row in study.rows
        ],
        tolerance=study.tolerance,
        agrees=study.agrees,
        reason=printable(study.reason),
    )


def _plan(plan: Plan) -> PlanRecord | None:
    if plan == Plan():
        return None
    rehearsal = plan.rehearsal or Rehearsal(complete=False)
    return PlanRecord(
        model=printable(plan.model),
        why=printable(plan.why),
        missing=plan.missing,
        tried=rehearsal.complete,
        fault=printable(rehearsal.fault),
        parameters=rehearsal.parameters,
        multiply_adds=rehearsal.multiply_adds,
        stages=[
            StageRecord(
                loop=printable(str(stage.loop or "")),
                called=printable(str(stage.called or "")),
                epochs=stage.epochs,
                optimizer=stage.optimizer,
                schedule=stage.schedule,
                first_rate=stage.first_rate,
                last_rate=stage.last_rate,
                learned=stage.learned,
            )
            for stage in rehearsal.stages
        ],
        other_models=rehearsal.other_models,
        validates=plan.validates,
        left_alone=[
            LeftAloneRecord(
                where=printable(str(part.place)), line=printable(part.first_line), reason=part.reason
            )
            for part in plan.left_alone
        ],
    )


# --- scores table ----------------------------------------------------------------------------------------


def scores_csv(assignment: Assignment, results: Sequence[tuple[Evidence, Score]]) -> str:
    """The table as CSV text, ordered by student id.

    Columns: `student_id, status, total, decided, awaiting`, then one per rubric item. Where the assignment
    takes points off for lateness, `days_late`, `penalty` and `total_after` follow; where the course has late
    days, `tokens_used`; where a resubmission is allowed, `before_deadline` and `resubmitted`, the points of
    each attempt. `decided` is the maximum of the decided items, and `awaiting` the ids of those that a person
    still marks, with `;` between them. A cell is empty, never 0, when the points are not known yet or the
    total is withheld.

    Args:
        assignment: For the items and their order.
        results: What was found and scored, in any order.

    Returns:
        Comma-separated text with `\\n` line ends and a header line.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    late = ["days_late", "penalty", "total_after"] if assignment.late.points_per_day is not None else []
    both = ["before_deadline", "resubmitted"] if assignment.resubmission is not None else []
    late_days = ["tokens_used"] if assignment.course_late_days is not None else []
    items = [item.id for item in assignment.rubric]
    writer.writerow(
        map(
            _cell, ["student_id", "status", "total", "decided", "awaiting", *items, *late, *late_days, *both]
        ),
    )
    for _, score in sorted(results, key=lambda result: result[1].student_id):
        points_by_item = {line.id: line.points for line in score.lines}
        writer.writerow(
            [
                _cell(score.student_id),
                score.status.value,
                _number(score.total),
                _number(score.decided),
                _cell(";".join(score.awaiting)),
                *(_number(points_by_item.get(item)) for item in items),
                *(_lateness(score) if late else ()),
                *((_number(score.late.tokens_used if score.late else 0),) if late_days else ()),
                *(_both_attempts(score) if both else ()),
            ]
        )
    return buffer.getvalue()


def _lateness(score: Score) -> tuple[str, str, str]:
    if score.late is None:
        return "", "", _number(score.total)
    return _number(score.late.days), _number(score.late.penalty), _number(score.late.total_after)


def _both_attempts(score: Score) -> tuple[str, str]:
    """The points of the first attempt and of the resubmission; empty where there is no resubmission."""
    record = score.resubmission
    return ("", "") if record is None else (_number(record.first), _number(record.resubmitted))


def _cell(text: str) -> str:
    """The text, kept from being read as a formula."""
    return guarded(printable(text))


def _number(value: float | None) -> str:
    return "" if value is None else points(value)
