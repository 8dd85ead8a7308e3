"""What a class did as a whole, as numbers: states, points of items, mistakes, checks and time.

It counts submissions by state, and collects the points of each item and the frequent mistakes. It computes
how each check went (its pass rate, and whether it tells strong work from weak), and where the time of
grading went. It never decides what a person should look at: the review queue does.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from grader.domain.assignment import Assignment, RubricItem
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.score import GradeStatus, Score, ScoreLine
from grader.domain.submission_result import stage_seconds, stage_times, team_mates
from grader.reports.student.fixes import unimplemented

Results = Sequence[tuple[Evidence, Score]]

STATUS_WORDS = {
    GradeStatus.GRADED: "graded",
    GradeStatus.INCOMPLETE: "incomplete",
    GradeStatus.REFUSED: "refused",
    GradeStatus.ENGINE_ERROR: "engine error",
}


@dataclass(frozen=True)
class CommonMistake:
    """A recognized mistake and who makes it.

    Attributes:
        students: Their ids, sorted.
        message: As the first of them reads it.
        hint: What that student is advised to try.
        share: Their share of those whose code was checked, 0 to 1.
        unwritten: It is not a mistake: the stub has not been written yet.
    """

    diagnosis: str
    component: str
    message: str
    students: tuple[str, ...]
    hint: str = ""
    share: float = 0.0
    unwritten: bool = False


@dataclass(frozen=True)
class ItemFigures:
    """The points that a class got for one item.

    Attributes:
        points: Those that are decided.
        open: How many submissions have no points for it yet.
    """

    item: RubricItem
    points: tuple[float, ...]
    open: int

    @property
    def mean(self) -> float | None:
        """The mean of the decided points; None without any."""
        return fmean(self.points) if self.points else None

    @property
    def median(self) -> float | None:
        """The median of the decided points; None without any."""
        return median(self.points) if self.points else None

    @property
    def full(self) -> int:
        """How many have all of its points."""
        return sum(value >= self.item.points - 1e-9 for value in self.points)

    @property
    def none(self) -> int:
        """How many have none of its points."""
        return sum(value <= 1e-9 for value in self.points)


def submission_count(results: Results) -> int:
    """How many submissions there are; what a team handed in together is one."""
    there = [(evidence, score) for evidence, score in results if not evidence.absent]
    return len(there) - len(team_mates(evidence for evidence, _ in there))


def item_figures(assignment: Assignment, results: Results) -> tuple[ItemFigures, ...]:
    """One entry per rubric item, in the rubric's order, over the submissions that could be graded."""
    scores = [score for _, score in results if score.gradable]
    figures = []
    for item in assignment.rubric:
        lines = [line for score in scores for line in _lines_of_item(score, item)]
        decided_points = tuple(line.points for line in lines if line.points is not None)
        open_ones = sum(
            line.points is None
            for score in scores
            if not score.closed
            for line in _lines_of_item(score, item)
        )
        figures.append(ItemFigures(item, decided_points, open_ones))
    return tuple(figures)


def _lines_of_item(score: Score, item: RubricItem) -> list[ScoreLine]:
    return [line for line in score.lines if line.id == item.id]


def common_mistakes(results: Results) -> tuple[CommonMistake, ...]:
    """Recognized mistakes, the most frequent first; stubs that are not written yet come last."""
    makers: dict[tuple[str, str, bool], dict[str, tuple[str, str]]] = {}
    for evidence, score in results:
        for finding in evidence.findings:
            if finding.status is not Status.FAILED:
                continue
            diagnosis = finding.label
            if diagnosis is not None:
                key = (finding.component, diagnosis, unimplemented(finding))
                message_and_hint = (finding.message, finding.hint)
                makers.setdefault(key, {}).setdefault(score.student_id, message_and_hint)
    checked = sum(bool(evidence.findings) for evidence, _ in results)
    mistakes = [
        CommonMistake(
            diagnosis,
            component,
            message_by_student[min(message_by_student)][0],
            tuple(sorted(message_by_student)),
            hint=message_by_student[min(message_by_student)][1],
            share=len(message_by_student) / checked,
            unwritten=unwritten,
        )
        for (component, diagnosis, unwritten), message_by_student in makers.items()
    ]
    return tuple(sorted(mistakes, key=_rank))


def _rank(mistake: CommonMistake) -> tuple[bool, int, str, str]:
    return (mistake.unwritten, -len(mistake.students), mistake.component, mistake.diagnosis)


def status_counts(results: Results) -> tuple[tuple[str, int], ...]:
    """(status in words, number of submissions), without statuses that nobody has."""
    tally = Counter(score.status for evidence, score in results if not evidence.absent)
    return tuple((word, tally[status]) for status, word in STATUS_WORDS.items() if tally[status])


# --- class time ------------------------------------------------------------------------------------------


TimedResults = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class SubmissionTime:
    """The wall-clock seconds of one submission.

    Attributes:
        stages: One per stage of the class; None where it did not get that far.
    """

    student_id: str
    stages: tuple[float | None, ...]
    total: float


def submission_times(results: TimedResults) -> tuple[SubmissionTime, ...]:
    """One row per submission whose time is known, the slowest first."""
    stages = [row.stage for row in stage_times(evidence for evidence, _ in results)]
    rows = []
    for evidence, score in results:
        spent = stage_seconds(evidence)
        if spent:
            seconds_by_stage = tuple(spent.get(stage) for stage in stages)
            rows.append(SubmissionTime(score.student_id, seconds_by_stage, sum(spent.values())))
    return tuple(sorted(rows, key=lambda row: (-row.total, row.student_id)))


# --- check rates -----------------------------------------------------------------------------------------


CheckedResults = Sequence[tuple[Evidence, Score]]

LOW_DISCRIMINATION = 0.2  # Ebel and Frisbie, Essentials of Educational Measurement, 1991: below it, revise
_FEWEST = 10  # students who tried a check; with fewer, a single one decides the coefficient
_FEWEST_EACH = 3  # of those, how many must have passed, and how many failed
_MANY = 0.4  # of those who wrote the part; if more fail, the check itself is suspect
_FEWEST_SUSPECT = 5  # with fewer students, a single mistake is 40 %


@dataclass(frozen=True)
class CheckRate:
    """How a check went in the class, in numbers of students.

    Attributes:
        unwritten: Of the failed ones, those whose stub is not written yet.
        unnamed: Of the failed ones that are written, those whose mistake was not recognized.
        discrimination: See `point_biserial`; None where too few students would make it meaningless.
        waived: Who waived it for the whole class, and why; empty otherwise.
    """

    check: str
    component: str
    title: str
    passed: int
    failed: int
    skipped: int
    errored: int
    unwritten: int = 0
    unnamed: int = 0
    discrimination: float | None = None
    waived: str = ""

    @property
    def share(self) -> float | None:
        """Passed among passed and failed, 0 to 1; None when nobody got that far."""
        tried = self.passed + self.failed
        return self.passed / tried if tried else None

    @property
    def failed_share(self) -> float | None:
        """Failed among those who wrote the part, 0 to 1; None when nobody did."""
        written = self.passed + self.failed - self.unwritten
        return (self.failed - self.unwritten) / written if written else None

    @property
    def suspect(self) -> bool:
        """Whether so many fail it that the check or the handout may be wrong."""
        written = self.passed + self.failed - self.unwritten
        share = self.failed_share
        return not self.waived and written >= _FEWEST_SUSPECT and share is not None and share > _MANY

    @property
    def dull(self) -> bool:
        """Whether it hardly tells strong work from weak."""
        return self.discrimination is not None and self.discrimination < LOW_DISCRIMINATION


def check_rates(assignment: Assignment, results: CheckedResults) -> tuple[CheckRate, ...]:
    """One rate per check that somebody tried, the lowest pass rate first; untried ones come last.

    Findings count as they were made, even for checks that were waived; those are marked as waived.
    """
    findings_by_check: dict[str, dict[int, Finding]] = {}
    about = {check.id: (check.component, check.title) for check in assignment.checks}
    waived: dict[str, str] = {}
    for index, (evidence, score) in enumerate(results):
        waived |= {check: str(waiver) for check, waiver in score.waived}
        for finding in evidence.findings:
            findings_by_check.setdefault(finding.check, {})[index] = finding
            about.setdefault(finding.check, (finding.component, finding.title))
    tallies = _tallies(findings_by_check)
    rates = [
        _check_rate(check, about[check], findings_by_check[check], tallies, waived.get(check, ""))
        for check in about
        if check in findings_by_check
    ]
    # equal ones stay in the order of the assignment
    return tuple(sorted(rates, key=lambda rate: (rate.share is None, rate.share or 0.0)))


def point_biserial(passed: Sequence[bool], rest: Sequence[float]) -> float | None:
    """The correlation between passing a check and the share of the other checks that were passed.

    r = (M1 - M0) / s * sqrt(p * (1 - p)): M1 and M0 are the means of `rest` over those who passed and those
    who failed, s is its standard deviation over all, and p the share that passed (Lord and Novick,
    Statistical Theories of Mental Test Scores, 1968). The check itself is not part of `rest`, so that it
    does not correlate with itself.

    Returns:
        -1 to 1; None for fewer than 10 students, fewer than 3 on either side, or where `rest` is constant.
    """
    ones = [value for value, right in zip(rest, passed, strict=True) if right]
    zeros = [value for value, right in zip(rest, passed, strict=True) if not right]
    if len(passed) < _FEWEST or min(len(ones), len(zeros)) < _FEWEST_EACH:
        return None
    spread = pstdev(rest)
    if spread < 1e-9:
        return None
    share = len(ones) / len(passed)
    return (fmean(ones) - fmean(zeros)) / spread * math.sqrt(share * (1 - share))


def _check_rate(
    check: str,
    about: tuple[str, str],
    findings: Mapping[int, Finding],
    tallies: Mapping[int, tuple[int, int]],
    waived: str,
) -> CheckRate:
    tally = Counter(finding.status for finding in findings.values())
    failed = [finding for finding in findings.values() if finding.status is Status.FAILED]
    written = [finding for finding in failed if not unimplemented(finding)]
    compared: list[tuple[bool, float]] = []
    for index, finding in findings.items():
        passed, decided = tallies[index]
        if finding.status in (Status.PASSED, Status.FAILED) and decided > 1:
            right = finding.status is Status.PASSED
            compared.append((right, (passed - right) / (decided - 1)))
    return CheckRate(
        check,
        *about,
        passed=tally[Status.PASSED],
        failed=tally[Status.FAILED],
        skipped=tally[Status.SKIPPED],
        errored=tally[Status.ERRORED],
        unwritten=len(failed) - len(written),
        unnamed=sum(finding.label is None for finding in written),
        discrimination=point_biserial(
            [right for right, _ in compared], [others_share for _, others_share in compared]
        ),
        waived=waived,
    )


def _tallies(findings_by_check: Mapping[str, Mapping[int, Finding]]) -> dict[int, tuple[int, int]]:
    """Student -> (checks that passed, checks that could be decided); a skipped one counts as decided."""
    tallies: dict[int, tuple[int, int]] = {}
    for by_student in findings_by_check.values():
        for index, finding in by_student.items():
            passed, decided = tallies.get(index, (0, 0))
            right, undecided = finding.status is Status.PASSED, finding.status is Status.ERRORED
            tallies[index] = passed + right, decided + (not undecided)
    return tallies
