"""The page for those who run the course: the whole class at a glance, with a link to every report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.domain.assignment import Assignment, RubricItem
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, Score, ScoreLine
from grader.reporting import charts
from grader.reporting.class_statistics import check_rates, common_mistakes, flags, open_steps, status_counts
from grader.reporting.results_contract import DownloadRecord
from grader.reporting.typesetting import environment


@dataclass(frozen=True)
class StudentRow:
    """One student in the class's table.

    Attributes:
        link: A relative address of the report, or empty.
        lines: One score line per rubric item, None where the score has none.
    """

    evidence: Evidence
    score: Score
    link: str
    lines: tuple[ScoreLine | None, ...]
    flags: tuple[str, ...]


def class_page(
    assignment: Assignment,
    results: Sequence[tuple[Evidence, Score]],
    *,
    links: Mapping[str, str],
    generated_at: datetime,
    download: DownloadRecord | None = None,
) -> str:
    """The class's results as a self-contained HTML page.

    Args:
        assignment: What was asked for.
        results: What was found and scored, in any order.
        links: Student id -> relative address of the report.
        generated_at: When the page is made.
        download: The account of the files.

    Returns:
        HTML text. The same arguments give the same text, whatever the order of the results.
    """
    ordered = sorted(results, key=lambda result: result[1].student_id)
    totals = [score.total for _, score in ordered if score.total is not None]
    items = _items_in_sight(assignment, [score for _, score in ordered])
    return (
        environment()
        .get_template("class.html.j2")
        .render(
            assignment=assignment,
            items=items,
            unmarked=[item for item in assignment.rubric if item not in items],
            counts=status_counts(ordered),
            steps=open_steps(ordered),
            rows=[_row(assignment, items, evidence, score, links) for evidence, score in ordered],
            totals=totals,
            histogram=charts.totals_histogram(totals, assignment.maximum),
            mistakes=common_mistakes(ordered),
            rates=check_rates(assignment, ordered),
            apart=[pair for pair in ordered if pair[1].status is not GradeStatus.GRADED],
            generated_at=generated_at,
            download=download,
            told_files=[one for one in download.files if one.reason] if download else [],
            penalties=assignment.late.points_per_day is not None,
            engines=sorted({evidence.engine for evidence, _ in ordered if evidence.engine}),
            digests=sorted({evidence.assignment_digest[:12] for evidence, _ in ordered} - {""}),
            data=sorted({evidence.training.data for evidence, _ in ordered} - {""}),
            levels=sorted({evidence.attestation.level for evidence, _ in ordered if evidence.findings}),
        )
    )


def _items_in_sight(assignment: Assignment, scores: Sequence[Score]) -> list[RubricItem]:
    """The items with a column: those that a person marks only once somebody has a mark."""
    marked = {line.id for score in scores for line in score.lines if line.points is not None}
    return [item for item in assignment.rubric if not item.by_person or item.id in marked]


def _row(
    assignment: Assignment,
    items: Sequence[RubricItem],
    evidence: Evidence,
    score: Score,
    links: Mapping[str, str],
) -> StudentRow:
    lines = {line.id: line for line in score.lines}
    return StudentRow(
        evidence=evidence,
        score=score,
        link=_relative(links.get(score.student_id, "")),
        lines=tuple(lines.get(item.id) for item in items),
        flags=flags(assignment, evidence, score),
    )


def _relative(link: str) -> str:
    """The link if it stays within the folder of the page; else nothing, as it could run or call something."""
    return "" if ":" in link or link.startswith(("/", "\\")) else link
