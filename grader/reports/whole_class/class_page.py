"""The page for those who run the course: the whole class at a glance, with a link to every report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from urllib.parse import unquote

from grader.domain.assignment import Assignment, RubricItem
from grader.domain.evidence import Evidence
from grader.domain.measure import Measure
from grader.domain.score import Score, ScoreLine
from grader.domain.submission_result import stage_times
from grader.files.file_names import ANSWERS_PAGE, beside
from grader.reports.measured_words import MeasuredWords, measured_words
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.typesetting import environment
from grader.reports.whole_class import class_charts
from grader.reports.whole_class.class_charts import (
    claim_dots,
    leaderboard,
    measured_rows,
    of_measure,
    outcome_counts,
    parameter_dots,
    time_dots,
)
from grader.reports.whole_class.class_overview import (
    Overview,
    after_penalty,
    class_overview,
    set_aside,
    shown_points,
    shown_total,
)
from grader.reports.whole_class.class_statistics import (
    LOW_DISCRIMINATION,
    STATUS_WORDS,
    common_mistakes,
    item_figures,
    submission_times,
)
from grader.reports.whole_class.review_cases import Case
from grader.reports.whole_class.review_queue import NEAR, boundaries, final_total
from grader.reports.whole_class.similarity_record import SimilarityRecord
from grader.scoring.measurements import CLAIM_TOLERANCE

Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class StudentRow:
    """One student in the class's table.

    Attributes:
        lines: One score line per rubric item; None where the score has none.
        flags: What a person should look at, in a few words each.
        measured: (value, its 95 % interval) of each measure, as people write them.
    """

    evidence: Evidence
    score: Score
    lines: tuple[ScoreLine | None, ...]
    flags: tuple[str, ...]
    measured: tuple[tuple[str, str], ...] = ()


def class_page(
    assignment: Assignment,
    results: Results,
    *,
    links: Mapping[str, str],
    generated_at: datetime,
    attention: Mapping[str, str] = MappingProxyType({}),
    download: DownloadRecord | None = None,
    similarity: SimilarityRecord | None = None,
    top: str = "",
) -> str:
    """The class's results as a self-contained HTML page.

    Args:
        assignment: What was asked for.
        results: What was found and scored, in any order.
        links: Student id -> relative address of the report.
        generated_at: When the page is made.
        attention: Student id -> relative address of the page about the model's attention, where there is one.
        download: The account of the files.
        similarity: What was found when the submissions were compared; `similarity.html` is beside the page.
        top: The way up to the folder that all links stay in, such as `../`; empty: the page's folder.

    Returns:
        HTML text. The same arguments give the same text, whatever the order of the results.
    """
    overview = class_overview(assignment, results, download, similarity)
    return overview_page(overview, links=links, generated_at=generated_at, attention=attention, top=top)


def overview_page(
    overview: Overview,
    *,
    links: Mapping[str, str],
    generated_at: datetime,
    attention: Mapping[str, str] = MappingProxyType({}),
    top: str = "",
) -> str:
    """The class page of an overview that was made before; the arguments are those of `class_page`."""
    links = {student_id: _safe_link(link, top) for student_id, link in links.items()}
    assignment, ordered, download = overview.assignment, overview.results, overview.download
    items = _items_in_sight(assignment, [score for _, score in ordered])
    totals = [score.total for _, score in ordered if score.total is not None]
    return (
        environment()
        .get_template("class.html.j2")
        .render(
            assignment=assignment,
            links=links,
            names={
                score.student_id: evidence.origin.person
                for evidence, score in ordered
                if evidence.origin.person
            },
            code_pages={student_id: beside(link) for student_id, link in links.items()},
            answer_pages={student_id: beside(link, ANSWERS_PAGE) for student_id, link in links.items()},
            attention_pages={student_id: _safe_link(link, top) for student_id, link in attention.items()},
            status_words=STATUS_WORDS,
            overview=overview,
            queue=overview.queue,
            shown_total=shown_total,
            shown_points=shown_points,
            after_penalty=after_penalty,
            items=items,
            unmarked=[item for item in assignment.rubric if item not in items],
            rows=[
                _student_row(assignment, items, evidence, score, overview.own_cases[score.student_id])
                for evidence, score in ordered
            ],
            totals=totals,
            boundaries=boundaries(assignment),
            near=NEAR,
            not_final=sum(final_total(score) is None for _, score in ordered if score.total is not None),
            histogram=class_charts.totals_histogram(totals, assignment.maximum, boundaries(assignment)),
            figures=[
                (figures, class_charts.item_histogram(figures.points, figures.item.points))
                for figures in item_figures(assignment, ordered)
                if figures.points or figures.open
            ],
            mistakes=common_mistakes(ordered),
            rates=overview.rates,
            low=LOW_DISCRIMINATION,
            **_training_context(assignment, ordered),
            stages=stage_times(evidence for evidence, _ in ordered),
            times=submission_times(ordered),
            generated_at=generated_at,
            download=download,
            similarity=overview.similarity,
            aside=set_aside(download, ordered),
            files_with_reasons=[file for file in download.files if file.reason] if download else [],
            sources=_fates_by_source(download),
            engines=sorted({evidence.engine for evidence, _ in ordered if evidence.engine}),
            digests=sorted({evidence.assignment_digest[:12] for evidence, _ in ordered} - {""}),
            data=sorted({evidence.training.data for evidence, _ in ordered} - {""}),
            nodes=_nodes(evidence for evidence, _ in ordered),
            levels=sorted({level for evidence, _ in ordered if (level := _isolation(evidence))}),
        )
    )


def _fates_by_source(download: DownloadRecord | None) -> dict[str, dict[str, int]]:
    """Download -> fate -> how many of its files met it; empty where there is only one download."""
    counts: dict[str, dict[str, int]] = {}
    for file in download.files if download else ():
        if file.source:
            of_source = counts.setdefault(file.source, {"matched": 0, "superseded": 0, "refused": 0})
            of_source[file.fate] += file.count
    return counts


def leaderboard_page(assignment: Assignment, results: Results, *, generated_at: datetime) -> str:
    """What was measured, without names, as a self-contained HTML page that can be shown to the class.

    Args:
        assignment: What was asked for.
        results: What was found and scored. Their order does not affect the page.
        generated_at: When the page is made.
    """
    boards = []
    for measure, words in _measures_and_words(assignment):
        item = assignment.item_measured(measure.id)
        threshold = item.threshold if item else None
        best = leaderboard(of_measure(results, measure.id), words)
        boards.append((words, best, words.round(threshold) if threshold else ""))
    return (
        environment()
        .get_template("leaderboard.html.j2")
        .render(assignment=assignment, boards=boards, generated_at=generated_at)
    )


def _training_context(assignment: Assignment, ordered: Results) -> dict[str, object]:
    """What the sections on training show, one section for each measure."""
    several = len(assignment.measures) > 1
    return {
        "measured_columns": [
            words.heading if several or not words.is_accuracy else "Accuracy"
            for _, words in _measures_and_words(assignment)
        ],
        "trainings": [
            _measured_section(assignment, measure, words, of_measure(ordered, measure.id))
            for measure, words in _measures_and_words(assignment)
        ],
    }


def _measured_section(
    assignment: Assignment, measure: Measure, words: MeasuredWords, results: Results
) -> dict[str, object]:
    item, first = assignment.item_measured(measure.id), measure is assignment.measures[0]
    threshold = item.threshold if item else None
    what = "Measured accuracy" if words.is_accuracy else words.heading
    claims = first and words.is_accuracy
    charts = [
        (
            class_charts.parameters_scatter(parameter_dots(results, words), threshold, words),
            f"{what} against the size of the model, one mark per submission",
        ),
        (
            class_charts.time_scatter(time_dots(results, words), threshold, words),
            f"{what} against the time of training on this machine",
        ),
    ]
    if claims:
        charts.append(
            (
                class_charts.claims_scatter(claim_dots(results), CLAIM_TOLERANCE),
                "Measured accuracy against what the student reports; on the line both agree, "
                f"between the dotted lines within {100 * CLAIM_TOLERANCE:g} points",
            )
        )
    several = len(assignment.measures) > 1
    return {
        "anchor": "training" if first else f"{measure.id}-training",
        "title": f"{words.heading}: training" if several else "Training",
        "what": "accuracy" if words.is_accuracy else words.what,
        "outcomes": outcome_counts(results),
        "scatters": [chart for chart in charts if chart[0]],
        "measured": measured_rows(results, words, claims=claims),
        "claims": claims,
    }


def _items_in_sight(assignment: Assignment, scores: Sequence[Score]) -> list[RubricItem]:
    """The items with a column; those that a person marks get one once anybody has a mark."""
    marked = {line.id for score in scores for line in score.lines if line.points is not None}
    return [item for item in assignment.rubric if not item.by_person or item.id in marked]


def _student_row(
    assignment: Assignment,
    items: Sequence[RubricItem],
    evidence: Evidence,
    score: Score,
    cases: Sequence[Case],
) -> StudentRow:
    lines = {line.id: line for line in score.lines}
    return StudentRow(
        evidence=evidence,
        score=score,
        lines=tuple(lines.get(item.id) for item in items),
        flags=tuple(dict.fromkeys(case.short for case in cases if case.short)),
        measured=tuple(
            (words.value(training.measured), words.interval(training, 0))
            for measure, words in _measures_and_words(assignment)
            for training in (evidence.of_measure(measure.id).training,)
        ),
    )


def _measures_and_words(assignment: Assignment) -> list[tuple[Measure, MeasuredWords]]:
    """The measures with their words; empty where there is no data."""
    if assignment.data is None:
        return []
    return [(measure, measured_words(assignment, measure)) for measure in assignment.measures]


def _isolation(evidence: Evidence) -> str:
    """The level of isolation that was observed; empty where nothing ran."""
    attestation = evidence.attestation
    return "" if attestation.level == "unofficial" and not attestation.weak else attestation.level


def _nodes(examined: Iterable[Evidence]) -> list[str]:
    """Each node of a cluster with how many submissions it examined, the busiest first."""
    counts = Counter(evidence.node for evidence in examined if evidence.node)
    return [f"{node} {count}" for node, count in sorted(counts.items(), key=lambda kept: (-kept[1], kept[0]))]


def _safe_link(link: str, top: str) -> str:
    """The link if it stays within a folder; else empty, as it could run or call something.

    Args:
        top: The way up to the folder, such as `../`; empty: the page's folder.
    """
    below = unquote(link.removeprefix(top)).replace("\\", "/")  # as a browser takes it
    return "" if ":" in below or below.startswith("/") or ".." in below.split("/") else link
