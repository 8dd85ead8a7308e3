"""What a class did as a whole: how many are where, the points of each item, and the frequent mistakes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from grader.domain.assignment import Assignment, RubricItem
from grader.domain.evidence import Evidence, Status
from grader.domain.score import GradeStatus, Score, ScoreLine
from grader.domain.teams import team_mates
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
        hint: What that student is told to try.
        share: Of those whose code was checked, 0 to 1.
        unwritten: It is none: the stub was not written yet.
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
    """How many submissions there are: what a team handed in together is one, and nothing is none."""
    there = [(evidence, score) for evidence, score in results if not evidence.absent]
    return len(there) - len(team_mates(evidence for evidence, _ in there))


def item_figures(assignment: Assignment, results: Results) -> tuple[ItemFigures, ...]:
    """One entry per rubric item, in the rubric's order, over the submissions that could be graded."""
    scores = [score for _, score in results if score.gradable]
    found = []
    for item in assignment.rubric:
        lines = [line for score in scores for line in _lines(score, item)]
        known = tuple(line.points for line in lines if line.points is not None)
        open_ones = sum(
            line.points is None for score in scores if not score.closed for line in _lines(score, item)
        )
        found.append(ItemFigures(item, known, open_ones))
    return tuple(found)


def _lines(score: Score, item: RubricItem) -> list[ScoreLine]:
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
                said = (finding.message, finding.hint)
                makers.setdefault(key, {}).setdefault(score.student_id, said)
    checked = sum(bool(evidence.findings) for evidence, _ in results)
    found = [
        CommonMistake(
            diagnosis,
            component,
            said[min(said)][0],
            tuple(sorted(said)),
            hint=said[min(said)][1],
            share=len(said) / checked,
            unwritten=unwritten,
        )
        for (component, diagnosis, unwritten), said in makers.items()
    ]
    return tuple(sorted(found, key=_rank))


def _rank(mistake: CommonMistake) -> tuple[bool, int, str, str]:
    return (mistake.unwritten, -len(mistake.students), mistake.component, mistake.diagnosis)


def status_counts(results: Results) -> tuple[tuple[str, int], ...]:
    """(status in words, number of submissions), without those that nobody has."""
    tally = Counter(score.status for evidence, score in results if not evidence.absent)
    return tuple((word, tally[status]) for status, word in STATUS_WORDS.items() if tally[status])
