"""A class at a glance: what both the first screen of the class page and the terminal say.

It makes the overview of results, cases and checks, words points as lists show them, and counts the files
that were set aside. The terminal, the class page and its queue use the same words for these. It writes no
HTML: the class page and the terminal show what it says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import points
from grader.domain.score import GradeStatus, LineState, Score
from grader.domain.submission_result import team_mates
from grader.lms.matching import candidates
from grader.reports.results_json.results_schema import DownloadRecord, LackingRecord
from grader.reports.whole_class.class_statistics import (
    CheckRate,
    check_rates,
    status_counts,
    submission_count,
)
from grader.reports.whole_class.review_cases import Case, cases
from grader.reports.whole_class.review_queue import Section, review_queue, still_lacking
from grader.reports.whole_class.similarity_record import SimilarityRecord
from grader.scoring.grade_state import is_reviewed


@dataclass(frozen=True)
class SetAside:
    """Files that count for nothing.

    Attributes:
        total: How many there are.
        unused: How many of them the account of the download calls matched, although their submissions do not
            use them; it calls the others refused.
    """

    total: int
    unused: int


def set_aside(download: DownloadRecord | None, results: Sequence[tuple[Evidence, Score]]) -> SetAside:
    """The files of a class that were set aside; what a team handed in counts once.

    Args:
        download: The account of the files.
    """
    teammates = team_mates(evidence for evidence, _ in results)
    graded = {score.student_id for _, score in results}
    within = sum(
        len(evidence.refused_files) for evidence, score in results if score.student_id not in teammates
    )
    refused = [file for file in download.files if file.fate == "refused"] if download else []
    nobodys = sum(file.count for file in refused if not file.student_id)
    theirs = sum(file.count for file in refused if file.student_id in graded)
    return SetAside(nobodys + within, max(within - theirs, 0) if download else 0)


# --- class overview --------------------------------------------------------------------------------------


Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class Overview:
    """The results of a class, and what in them needs a person.

    Attributes:
        results: Ordered by student id.
        counts: (status in words, number of submissions), without statuses that nobody has.
        own_cases: Student id -> what a person should look at in that result.
        rates: How each check went.
        queue: What needs a person; what holds the grades up comes first.
        download: The account of the files, where it is known.
        similarity: What was found when the submissions were compared, if they were.
    """

    assignment: Assignment
    results: Results
    counts: tuple[tuple[str, int], ...]
    own_cases: Mapping[str, tuple[Case, ...]]
    rates: Sequence[CheckRate]
    queue: tuple[Section, ...]
    download: DownloadRecord | None
    similarity: SimilarityRecord | None

    @property
    def holding(self) -> tuple[Section, ...]:
        """What must be settled before grades are handed out."""
        return tuple(section for section in self.queue if section.cause.holds)

    @property
    def looks(self) -> tuple[Section, ...]:
        """What is worth a look before grades are handed out."""
        return tuple(section for section in self.queue if not section.cause.holds)

    @property
    def release(self) -> str:
        """Whether grades can be handed out, in a sentence."""
        if not self.results:
            return "There is no submission."
        if self.holding:
            return "Not ready to hand out yet."
        return "Ready to hand out: every point of every submission is decided."

    @property
    def reviewed(self) -> int | None:
        """How many grades a person has reviewed as they are; None: nobody reviews this class."""
        scores = [score for _, score in self.results]
        if not self.assignment.review_required and all(score.review is None for score in scores):
            return None
        return sum(is_reviewed(score) for score in scores)

    @property
    def submissions(self) -> int:
        """How many submissions there are; what a team handed in together is one."""
        return submission_count(self.results)

    @property
    def students(self) -> int:
        """How many students handed something in."""
        return sum(not evidence.absent for evidence, _ in self.results)

    @property
    def lacking(self) -> tuple[LackingRecord, ...]:
        """What the LMS lists although its downloads lack it."""
        return still_lacking(self.download, candidates(self.results))

    @property
    def list_source(self) -> str:
        """The name of the list of the class; empty without one."""
        roster = self.download.roster if self.download is not None else None
        return roster.source if roster is not None else ""

    @property
    def absent(self) -> tuple[int, int | None] | None:
        """(How many handed in nothing, of how many on the list of the class).

        The second number is None where it is unknown, or some of them are not on the list. None where there
        is no list, and no person has said that anybody handed in nothing.
        """
        roster = self.download.roster if self.download is not None else None
        nothing = {score.student_id for evidence, score in self.results if evidence.absent}
        if roster is None:
            return (len(nothing), None) if nothing else None
        nothing |= set(roster.missing)
        return len(nothing), len(roster.students) if nothing <= set(roster.students) else None


def class_overview(
    assignment: Assignment,
    results: Results,
    download: DownloadRecord | None = None,
    similarity: SimilarityRecord | None = None,
    *,
    own_cases: Mapping[str, tuple[Case, ...]] | None = None,
    rates: Sequence[CheckRate] | None = None,
) -> Overview:
    """The overview of a class.

    Args:
        assignment: What was asked for.
        results: What was found and scored, in any order.
        download: The account of the files.
        similarity: What was found when the submissions were compared.
        own_cases, rates: What a person should look at in each of these results, and how the checks went, if
            that is known already.
    """
    ordered = sorted(results, key=lambda result: result[1].student_id)
    if own_cases is None:
        own_cases = {score.student_id: cases(assignment, evidence, score) for evidence, score in ordered}
    if rates is None:
        rates = check_rates(assignment, ordered)
    every = [case for cases_of_one in own_cases.values() for case in cases_of_one]
    queue = review_queue(assignment, ordered, every, rates, download, similarity)
    return Overview(
        assignment, ordered, status_counts(ordered), own_cases, rates, queue, download, similarity
    )


def shown_total(score: Score) -> str:
    """A total as a table shows it: points, `withheld`, or a dash where there is no total."""
    lacks_file = score.status is GradeStatus.INCOMPLETE and score.total is None
    return "withheld" if lacks_file or score.awaits_oral else points(score.total)


def after_penalty(assignment: Assignment, score: Score) -> str:
    """What lateness leaves of a total, in words; empty where it costs nothing, or its cost is unknown."""
    late = score.late
    if assignment.late.points_per_day is None or late is None or not late.penalty or late.total_after is None:
        return ""
    return f"{points(late.total_after)} after the penalty"


def shown_points(state: str, value: float | None) -> str:
    """An item's points as a table shows them: a number, `not run`, or a dash while they are unknown.

    Args:
        state: The state of its line.
        value: Its points.
    """
    return "not run" if state == LineState.NOT_RUN else points(value)
