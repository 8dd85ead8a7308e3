"""The page of a course's term, and its table as CSV: totals by section, what is missing, who may not pass.

An unknown total is a range. It never computes a total: `grader.domain.term_total` does.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.domain.formatting import listed, points, printable, round_percent
from grader.domain.score import rounded
from grader.domain.term_total import PartState, Risk, RiskKind, TermPart, TermPlan, TermTotal
from grader.files.file_names import guarded
from grader.reports.typesetting import environment

UNKNOWN_SECTION = "Without a section"


@dataclass(frozen=True)
class TermColumn:
    """An assignment of the term.

    Attributes:
        state: How far it is, in a few words.
        link: To its class page; empty if there is none.
        pages: Student -> the link to the report.
    """

    assignment_id: str
    title: str
    weight: float
    state: str
    link: str
    pages: Mapping[str, str]


@dataclass(frozen=True)
class SectionTotals:
    """A section of the class with the totals of its students.

    Attributes:
        name: Empty: those without a section.
    """

    name: str
    markers: tuple[str, ...]
    totals: tuple[TermTotal, ...]

    @property
    def title(self) -> str:
        """The name as a heading."""
        return f"Section {self.name}" if self.name else UNKNOWN_SECTION

    @property
    def mean(self) -> float | None:
        """The mean share of what is decided so far; None without any."""
        shares = [total.so_far for total in self.totals if total.so_far is not None]
        return sum(shares) / len(shares) if shares else None


def by_section(plan: TermPlan, totals: Sequence[TermTotal]) -> list[SectionTotals]:
    """The sections in the order of the course, then others by name, and those without one last."""
    markers = {section.name: section.markers for section in plan.sections}
    names = [*markers, *sorted({total.section for total in totals} - markers.keys() - {""}), ""]
    sections = [
        SectionTotals(name, markers.get(name, ()), tuple(total for total in totals if total.section == name))
        for name in names
    ]
    return [section for section in sections if section.totals]


def total_words(total: TermTotal) -> str:
    """A total in a few words: `82.5`, or `40 to 92.5` while something is missing."""
    if total.points is not None:
        return points(total.points)
    return f"{points(total.low)} to {points(total.high)}"


def part_words(part: TermPart) -> str:
    """What an assignment adds in a few words: `18 of 20`, `10 to 20 of 20`, `not graded`."""
    if part.state is PartState.NOT_GRADED:
        return part.state.value
    if part.state is PartState.NOTHING:
        return "nothing came"
    if part.state is PartState.OPEN:
        return f"{_shown(part.low)} to {_shown(part.high)} of {points(part.weight)}"
    return f"{_shown(part.low)} of {points(part.weight)}"


def _shown(value: float) -> str:
    """Points that were not rounded yet, as the total rounds them: halves up, in the student's favor."""
    return points(rounded(value))


def risk_words(risk: Risk, total: TermTotal) -> str:
    """Why a student may not pass, as a clause."""
    match risk.kind:
        case RiskKind.CANNOT_PASS:
            if total.points is not None:
                return f"does not pass: {points(total.points)} of {points(total.passing)} points"
            return f"cannot reach {points(total.passing)} points any more: {points(total.high)} at most"
        case RiskKind.BELOW:
            assert total.so_far is not None and total.passing is not None
            share = round_percent(total.passing / total.maximum)
            return f"has {round_percent(total.so_far)} of what is decided, and {share} pass"
        case RiskKind.NOTHING:
            return f"handed in nothing for {listed(risk.assignments)}"


def missing_words(total: TermTotal) -> list[str]:
    """What a total lacks, a clause for each assignment; what is not graded for anybody is left out."""
    return [
        f"{part.assignment_id}: {part.missing}"
        for part in total.open_parts
        if part.state is not PartState.NOT_GRADED
    ]


def term_page(
    title: str,
    term: str,
    plan: TermPlan,
    columns: Sequence[TermColumn],
    totals: Sequence[TermTotal],
    *,
    remarks: Sequence[str],
    late_days: int,
    generated_at: datetime,
) -> str:
    """The course page, as self-contained HTML; the same arguments give the same text.

    Args:
        title: The course's.
        term: Its name; empty if it has none.
        remarks: Sentences about the term that concern no single student.
        late_days: Of each student for the whole course; 0: it has none.
    """
    return (
        environment()
        .get_template("term.html.j2")
        .render(
            title=title,
            term=term,
            plan=plan,
            columns=columns,
            sections=by_section(plan, totals),
            count=len(totals),
            decided=sum(total.points is not None for total in totals),
            at_risk=[total for total in totals if total.risks],
            grouped=any(part.group for total in totals for part in total.parts),
            late_days=late_days,
            remarks=remarks,
            generated_at=generated_at,
            total_words=total_words,
            part_words=part_words,
            risk_words=risk_words,
            missing_words=missing_words,
        )
    )


def term_csv(plan: TermPlan, totals: Sequence[TermTotal], *, late_days: int) -> str:
    """The totals as CSV text, a row for each student.

    Columns: `student_id, section, total, at_least, at_most`; for each assignment its id (the points after
    lateness and the weight in the group) and its id with `_of_term` (the points of the term); then
    `late_days_left` where the course has late days, `at_risk` and `missing`. A cell is empty, never 0, where
    something is not decided.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = [cell for name in plan.weights for cell in (name, f"{name}_of_term")]
    left = ["late_days_left"] if late_days else []
    writer.writerow(
        ["student_id", "section", "total", "at_least", "at_most", *names, *left, "at_risk", "missing"]
    )
    for total in totals:
        cells = [total.student_id, total.section, _number(total.points)]
        cells += [points(total.low), points(total.high)]
        for part in total.parts:
            decided = part.state is PartState.DECIDED
            cells += ["" if part.grade is None else _shown(part.grade), _shown(part.low) if decided else ""]
        cells += [str(total.late_days_left)] if late_days else []
        cells.append("; ".join(risk_words(risk, total) for risk in total.risks))
        cells.append("; ".join(f"{part.assignment_id}: {part.missing}" for part in total.open_parts))
        writer.writerow(guarded(printable(cell)) for cell in cells)
    return buffer.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else points(value)
