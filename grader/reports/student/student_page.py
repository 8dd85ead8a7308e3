"""The report that a student receives: one HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.drawn_values import shown_values
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.watch_notes import watch_notes
from grader.reports.data_uri import data_uri
from grader.reports.student import training_charts
from grader.reports.student.changes import changed_grade, changed_lines
from grader.reports.student.code_links import CodeLinks
from grader.reports.student.component_reports import component_reports
from grader.reports.student.excerpt import CodeLine, excerpt
from grader.reports.student.fixes import Fix, fixes
from grader.reports.student.forbidden_parts import forbidden_rows
from grader.reports.student.model_comparison import side_by_side
from grader.reports.student.model_tree import layer_rows
from grader.reports.student.own_results import difference, mistakes, study_rows
from grader.reports.student.standing import banners, headline, nothing_implemented, points_sentence, standing
from grader.reports.student.trained_models import trained_models
from grader.reports.typesetting import environment, language_of
from grader.scoring.decided_by_people import with_acceptance, with_waived

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
        images: PNG bytes by the names that the evidence's figures and predictions use; what is missing, or
            is not a PNG, is said to be missing.
        generated_at: When the page is made.
        code: The lines of the page beside it that shows the code; None where there is no such page.

    Returns:
        HTML text. The same arguments give the same text.
    """
    # a check that was given back to the class counts as passed, and is shown so
    evidence = with_waived(assignment, with_acceptance(evidence, score.accepted), dict(score.waived))
    evidence = replace(evidence, notes=(*evidence.notes, *watch_notes(evidence)))
    spoken = language_of(assignment)
    stands, trainings = standing(score), trained_models(assignment, evidence, images, spoken)
    asks_for_own = any("own_results" in item.beside for item in assignment.rubric)
    again = evidence.study.unexpected if evidence.study else None
    unexpected = difference(again.values, evidence.study.base) if again and evidence.study else ""
    return (
        environment(spoken)
        .get_template("student.html.j2")
        .render(
            assignment=assignment,
            evidence=evidence,
            score=score,
            stands=stands,
            graded=score.gradable and not evidence.absent,
            headline=headline(assignment, evidence, score),
            points_sentence=points_sentence(stands),
            points_bar=training_charts.points_bar(stands.segments, spoken),
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
            beside={item.id: item.beside for item in assignment.rubric if item.beside},
            by_person={item.id for item in assignment.rubric if item.by_person},
            figures=[(figure.check, data_uri(images, figure.image)) for figure in evidence.figures],
            layers=layer_rows(evidence.layers),
            code=code or CodeLinks(),
            values=shown_values(evidence.variant),
            generated_at=generated_at,
        )
    )


def _shown_fixes(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[ShownFix, ...]:
    """The fixes of the first screen: most points first; for a bare template the parts in their order."""
    found: Sequence[Fix] = fixes(assignment, evidence, score)
    if nothing_implemented(evidence):
        order = [component.name for component in assignment.components]
        found = sorted(
            (fix for fix in found if fix.component in order), key=lambda fix: order.index(fix.component)
        )
    worth = [fix for fix in found if fix.points >= 0.005] or found
    return tuple(ShownFix(fix, excerpt(evidence.source, fix.where)) for fix in worth[:_FIXES_SHOWN])
