"""The pages about one student: the report, the files beside it, and the attention page for staff.

It makes the report, which is one self-contained HTML file, and decides which pages are made together. The
attention page is not given to students. What counts as attention is whatever the student's code computes
where it sees the hidden images: its hundreds of numbers could reveal which images these are. It never
scores, and it never decides what a finding costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import shown_values
from grader.domain.evidence import Evidence, Training
from grader.domain.score import Score
from grader.domain.submission import ANSWERS_FILE
from grader.domain.submission_result import watch_notes
from grader.files.file_names import ANSWERS_PAGE, REPORT, SUBMISSION_PAGE
from grader.files.stored_records import view_in
from grader.reports.student import training_charts
from grader.reports.student.answers_page import answers_page
from grader.reports.student.code_lines import CodeLine, CodeLinks, excerpt
from grader.reports.student.findings import component_reports
from grader.reports.student.fixes import Fix, fixes, forbidden_rows
from grader.reports.student.grade_summary import (
    banners,
    changed_grade,
    changed_lines,
    headline,
    nothing_implemented,
    points_sentence,
    points_summary,
)
from grader.reports.student.model_figures import layer_rows, side_by_side
from grader.reports.student.submission_page import shown_submission, submission_page
from grader.reports.student.trained_models import difference, mistakes, study_rows, trained_models
from grader.reports.typesetting import data_uri, environment, language_of
from grader.scoring.decided_by_people import with_acceptance, with_waived


@dataclass(frozen=True)
class AttentionRow:
    """Where the model looks in one image, as data URIs (empty when missing)."""

    name: str
    predicted: str
    image: str
    last_layer: str
    rollout: str


def shows_attention(evidence: Evidence) -> bool:
    """Whether there is anything to show on the attention page."""
    return bool(evidence.training.attention)


def attention_page(
    assignment: Assignment, evidence: Evidence, *, images: Mapping[str, bytes], generated_at: datetime
) -> str | None:
    """The attention of one image per class as a self-contained HTML page; None where none was measured.

    Args:
        assignment: What was asked for.
        evidence: What was found out.
        images: PNG bytes by the names that the evidence uses; the page says which are missing.
        generated_at: When the page is made.
    """
    if not shows_attention(evidence):
        return None
    return (
        environment()
        .get_template("attention.html.j2")
        .render(
            assignment=assignment,
            evidence=evidence,
            attention=_attention_rows(evidence.training, images),
            generated_at=generated_at,
        )
    )


def _attention_rows(training: Training, images: Mapping[str, bytes]) -> tuple[AttentionRow, ...]:
    predictions = {prediction.image: prediction for prediction in training.predictions}
    return tuple(
        AttentionRow(
            training.class_name(predictions[attention.prediction].true_class),
            training.class_name(predictions[attention.prediction].predicted_class),
            data_uri(images, attention.prediction),
            data_uri(images, attention.last_layer),
            data_uri(images, attention.rollout),
        )
        for attention in training.attention
        if attention.prediction in predictions
    )


# --- student page ----------------------------------------------------------------------------------------


_FIXES_SHOWN = 3


@dataclass(frozen=True)
class ShownFix:
    """A fix with the lines of the student's file that it concerns."""

    fix: Fix
    lines: tuple[CodeLine, ...]


def student_page(
    assignment: Assignment,
    evidence: Evidence,
    score: Score,
    *,
    images: Mapping[str, bytes],
    generated_at: datetime,
    code: CodeLinks | None = None,
) -> str:
    """One student's report as a self-contained HTML page.

    Args:
        assignment: What was asked for.
        evidence: What was found out.
        score: The points.
        images: PNG bytes by the names that the evidence's figures and predictions use; the page says which
            are missing or not a PNG.
        generated_at: When the page is made.
        code: Links to the page beside it that shows the code; None where there is no such page.

    Returns:
        HTML text. The same arguments give the same text.
    """
    # a check that was given back to the class counts as passed, and is shown so
    evidence = with_waived(assignment, with_acceptance(evidence, score.accepted), dict(score.waived))
    evidence = replace(evidence, notes=(*evidence.notes, *watch_notes(evidence)))
    language = language_of(assignment)
    summary, trainings = points_summary(score), trained_models(assignment, evidence, images, language)
    asks_for_own = any("own_results" in item.beside for item in assignment.rubric)
    again = evidence.study.unexpected if evidence.study else None
    unexpected = difference(again.values, evidence.study.base) if again and evidence.study else ""
    return (
        environment(language)
        .get_template("student.html.j2")
        .render(
            assignment=assignment,
            evidence=evidence,
            score=score,
            summary=summary,
            graded=score.gradable and not evidence.absent,
            headline=headline(assignment, evidence, score),
            points_sentence=points_sentence(summary),
            points_bar=training_charts.points_bar(summary.segments, language),
            banners=banners(assignment, evidence, score),
            starting=nothing_implemented(evidence),
            fixes=_shown_fixes(assignment, evidence, score),
            trainings=trainings,
            study_rows=study_rows(evidence.study) if evidence.study else (),
            study_seeds=max((row.seeds for row in evidence.study.rows), default=1) if evidence.study else 1,
            own_mistakes=mistakes(evidence.training, images) if asks_for_own else (),
            unexpected=unexpected,
            compared=side_by_side([(shown.training, shown.rehearsal, shown.words) for shown in trainings]),
            changed_lines=changed_lines(score),
            changed_grade=changed_grade(score),
            components=component_reports(assignment, evidence, score),
            forbidden=forbidden_rows(assignment, evidence),
            titles_of_targets=assignment.target_titles(),
            beside={item.id: item.beside for item in assignment.rubric if item.beside},
            by_person={item.id for item in assignment.rubric if item.by_person},
            figures=[(figure.component, data_uri(images, figure.image)) for figure in evidence.figures],
            layers=layer_rows(evidence.layers),
            tuned=evidence.chosen if assignment.uses_chosen_values else (),
            code=code or CodeLinks(),
            values=shown_values(evidence.variant),
            generated_at=generated_at,
        )
    )


def _shown_fixes(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[ShownFix, ...]:
    """The fixes of the first screen, most points first; for a bare template, the parts in their order."""
    candidates: Sequence[Fix] = fixes(assignment, evidence, score)
    if nothing_implemented(evidence):
        order = [component.name for component in assignment.components]
        candidates = sorted(
            (fix for fix in candidates if fix.component in order), key=lambda fix: order.index(fix.component)
        )
    worth = [fix for fix in candidates if fix.points >= 0.005] or candidates
    return tuple(ShownFix(fix, excerpt(evidence.source, fix.where)) for fix in worth[:_FIXES_SHOWN])


# --- student pages ---------------------------------------------------------------------------------------


def student_pages(
    assignment: Assignment, evidence: Evidence, score: Score, files: Mapping[str, bytes], now: datetime
) -> dict[str, bytes]:
    """File name -> content: the report, and the files beside it.

    There is a page of the code where code was handed in, and one of the answers where a PDF was accepted.
    The PDF itself is there where it was kept.

    Args:
        files: The files of the evidence: the pictures, the view of the submission, and the PDF.
        now: When the pages are made.
    """
    shown = shown_submission(assignment, evidence, score, view_in(files))
    submitted = submission_page(assignment, evidence, shown, generated_at=now)
    report = student_page(assignment, evidence, score, images=files, generated_at=now, code=shown.links)
    answers = answers_page(
        assignment, evidence, score, images=files, generated_at=now, code=submitted is not None
    )
    pages = {SUBMISSION_PAGE: submitted, ANSWERS_PAGE: answers, REPORT: report}
    made = {name: page.encode("utf-8") for name, page in pages.items() if page is not None}
    return {ANSWERS_FILE: files[ANSWERS_FILE], **made} if _keeps(evidence, files) else made


def _keeps(evidence: Evidence, files: Mapping[str, bytes]) -> bool:
    return evidence.answers is not None and evidence.answers.kept and ANSWERS_FILE in files
