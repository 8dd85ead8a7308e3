"""Everything in a class that needs a person's eye, by reason, and whether grades can be handed out.

It makes the sections of the queue, with the marks that people still give, item by item, and the totals
near a boundary. It joins the accounts of several downloads, and lists what they still lack. It never
decides what is odd about a single result (`review_cases` does), and it never changes a grade.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Status
from grader.domain.formatting import SPACE, counted, listed, points
from grader.domain.score import Score, ScoreLine
from grader.domain.submission_result import team_mates
from grader.lms.matching import Candidate, candidates
from grader.reports.measured_words import MeasuredWords, measured_words
from grader.reports.results_json.results_schema import DownloadRecord, LackingRecord, RosterRecord
from grader.reports.student.fixes import unimplemented
from grader.reports.whole_class.class_statistics import CheckRate
from grader.reports.whole_class.review_cases import (
    ABSENT,
    ATTEMPTS,
    BOUNDARY,
    CAUSES,
    FILES,
    LACKING,
    MARKS,
    NOTHING,
    SIMILAR,
    SUSPECT,
    UNLISTED,
    Case,
    Cause,
)
from grader.reports.whole_class.similarity_record import PAGE, SimilarityRecord, pair_anchor


def summed(downloads: Sequence[DownloadRecord]) -> DownloadRecord | None:
    """All accounts in one, in which every file and note names its download.

    A single account is returned as it is.
    """
    if len(downloads) < 2:
        return next(iter(downloads), None)
    return DownloadRecord(
        source=listed([download.source for download in downloads], 9),
        matched=sum(download.matched for download in downloads),
        superseded=sum(download.superseded for download in downloads),
        refused=sum(download.refused for download in downloads),
        files=[
            file.model_copy(update={"source": download.source})
            for download in downloads
            for file in download.files
        ],
        notes=[f"{download.source}: {note}" for download in downloads for note in download.notes],
        lacking=[
            lacking.model_copy(update={"source": download.source})
            for download in downloads
            for lacking in download.lacking
        ],
        roster=_joined_roster([download.roster for download in downloads if download.roster is not None]),
    )


def still_lacking(download: DownloadRecord | None, results: Iterable[Candidate]) -> tuple[LackingRecord, ...]:
    """What the LMS lists although its downloads lack it, one record for each student without a result.

    Args:
        download: The account of all downloads.
        results: The results of the class.
    """
    if download is None:
        return ()
    everybody = list(results)
    there = {result.student_id.casefold() for result in everybody if not result.held}
    listed = list(download.lacking)
    if (roster := download.roster) is not None:
        # students with an upload or a file have other sections in the queue
        ids_with_files = {result.origin.carries.casefold() for result in everybody if result.held}
        ids_with_files |= {file.student_id.casefold() for file in download.files if file.student_id}
        listed += [
            LackingRecord(student_id=student_id, lms="", upload="", source=roster.source)
            for student_id in roster.submitted
            if student_id.casefold() not in ids_with_files
        ]
    by_id: dict[str, LackingRecord] = {}
    for record in listed:
        if record.student_id.casefold() not in there:
            by_id.setdefault(record.student_id.casefold(), record)
    return tuple(by_id.values())


def _joined_roster(rosters: Sequence[RosterRecord]) -> RosterRecord | None:
    """Several lists of a class, joined into one. Of lists with the same name, the last counts."""
    lists = {roster.source: roster for roster in rosters}
    if len(lists) < 2:
        return next(iter(lists.values()), None)
    students: dict[str, str] = {}
    for roster in lists.values():
        for student_id in roster.students:
            students.setdefault(student_id.casefold(), student_id)
    return RosterRecord(
        source=listed(list(lists), 9),
        students=sorted(students.values()),
        submitted=sorted({student_id for roster in lists.values() for student_id in roster.submitted}),
        missing=[],
        unlisted=[],
        notes=[note for roster in lists.values() for note in roster.notes],
    )


# --- open marks ------------------------------------------------------------------------------------------


FEW = 8  # students who are named; more are counted


@dataclass(frozen=True)
class OpenItem:
    """An item that a person marks, and that is not marked for everybody yet.

    Attributes:
        students: For whom it is open, sorted.
        whole: How many submissions have the item.
        markers: (who, how many they have marked), the busiest first.
    """

    title: str
    maximum: float
    students: tuple[str, ...]
    whole: int
    markers: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The item in a line."""
        open_text = (
            f"{self.title} ({points(self.maximum)}{SPACE}points): {len(self.students)} of {self.whole} open"
        )
        by = listed([f"{who} ({count})" for who, count in self.markers])
        return f"{open_text}; marked by {by}" if by else open_text

    @property
    def named(self) -> tuple[str, ...]:
        """The students, where they are few enough to be named and not the whole class; else empty."""
        return self.students if len(self.students) <= min(FEW, self.whole - 1) else ()


def open_marks(assignment: Assignment, scores: Sequence[Score]) -> tuple[OpenItem, ...]:
    """The items that await people's marks, in the rubric's order.

    Args:
        scores: The scores of the class, sorted by student.
    """
    asked = [score for score in scores if score.gradable and not score.closed and not score.held]
    items = []
    for item in assignment.rubric:
        if not item.by_person:
            continue
        lines = [(score, line) for score in asked for line in score.lines if line.id == item.id]
        open_ones = tuple(score.student_id for score, line in lines if line.id in score.awaiting)
        if open_ones:
            tally = Counter(who for _, line in lines for who in _markers(line))
            busiest = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
            items.append(OpenItem(item.title, item.points, open_ones, len(lines), tuple(busiest)))
    return tuple(items)


def _markers(line: ScoreLine) -> set[str]:
    """The people whose marks count in a line or in its parts."""
    last = {edit.part: edit for edit in line.edits}
    return {edit.who for edit in last.values() if edit.new is not None}


# --- review queue ----------------------------------------------------------------------------------------


NEAR = 2.0  # points of the total, or of the accuracy in percent
Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class Row:
    """One sentence of the queue, and whom it is about (sorted).

    Attributes:
        link: Where to read more, as a relative address; empty where there is nothing more.
    """

    text: str
    students: tuple[str, ...]
    link: str = ""


@dataclass(frozen=True)
class Section:
    """What a person is asked for one reason.

    Attributes:
        rows: Those that concern the most students first.
        count: How many submissions, checks or files it is about.
    """

    cause: Cause
    rows: tuple[Row, ...]
    count: int

    @property
    def counted(self) -> str:
        """The count with its noun."""
        return counted(self.count, self.cause.noun)


def review_queue(
    assignment: Assignment,
    results: Results,
    own_cases: Sequence[Case],
    rates: Sequence[CheckRate],
    download: DownloadRecord | None,
    similarity: SimilarityRecord | None = None,
) -> tuple[Section, ...]:
    """The queue: one section per cause that occurs; those that hold the grades up come first.

    Args:
        assignment: For its thresholds and boundaries.
        results: Sorted by student.
        own_cases: What was found in each result.
        rates: How the checks went.
        download: The account of the files.
        similarity: What was found when the submissions were compared, if they were.
    """
    graded, teammates = (
        {score.student_id for _, score in results},
        team_mates(evidence for evidence, _ in results),
    )
    lacking = still_lacking(download, candidates(results))
    nothing = {evidence.student_id for evidence, _ in results if evidence.absent}
    every = [
        # a file that a team handed in is one
        *(
            replace(case, count=0) if case.cause is FILES and case.student_id in teammates else case
            for case in own_cases
        ),
        *_lacking_cases(lacking),
        *_suspect_cases(results, rates),
        *_boundary_cases(assignment, results),
        *_file_cases(download, graded),
        *_roster_cases(download.roster if download else None, lacking, nothing),
        *_similar_cases(similarity),
    ]
    queue = tuple(
        _section(cause, [case for case in every if case.cause is cause])
        for cause in CAUSES
        if any(case.cause is cause for case in every)
    )
    by_item = tuple(
        Row(item.text, item.named) for item in open_marks(assignment, [score for _, score in results])
    )
    return tuple(replace(section, rows=by_item) if section.cause is MARKS else section for section in queue)


def boundaries(assignment: Assignment) -> tuple[float, ...]:
    """The points where grades begin; half of the maximum where the course does not say."""
    return assignment.boundaries or (assignment.maximum / 2,)


def final_total(score: Score) -> float | None:
    """The total after what lateness costs; None while any of it may still change."""
    if score.total is None or score.awaiting or score.not_run:
        return None
    return score.final


def _section(cause: Cause, cases: Sequence[Case]) -> Section:
    students: dict[tuple[str, str, str], list[str]] = {}
    for case in cases:
        students.setdefault((case.text, case.apart, case.link), []).append(case.student_id)
    rows = [
        Row(text, tuple(sorted(dict.fromkeys(student_id for student_id in student_ids if student_id))), link)
        for (text, _, link), student_ids in students.items()
    ]
    if cause.noun == "submission":
        count = len({case.student_id for case in cases})
    else:
        count = sum(case.count for case in cases)
    # rows at a boundary are ordered by total, and pairs by their strength
    ordered = rows if cause in (BOUNDARY, SIMILAR) else sorted(rows, key=lambda row: -len(row.students))
    return Section(cause, tuple(ordered), count)


def _suspect_cases(results: Results, rates: Sequence[CheckRate]) -> Iterator[Case]:
    for rate in rates:
        if not rate.suspect:
            continue
        named = Counter(
            finding.label
            for evidence, _ in results
            for finding in evidence.findings
            if finding.check == rate.check
            and finding.status is Status.FAILED
            and not unimplemented(finding)
            and finding.label
        )
        failed = rate.failed - rate.unwritten
        text = f"`{rate.check}`: {failed} of {rate.passed + failed} who wrote {rate.component} fail it"
        if rate.unnamed:
            text += f"; the grader names {failed - rate.unnamed or 'none'} of these mistakes"
        if named:
            # the most frequent one; of equally frequent ones, the first in the alphabet
            diagnosis, number = min(named.items(), key=lambda pair: (-pair[1], pair[0]))
            text += f", most often `{diagnosis}` ({number})"
        yield Case(SUSPECT, f"{text}.")


def _boundary_cases(assignment: Assignment, results: Results) -> Iterator[Case]:
    near: list[tuple[float, str, Case]] = []
    for evidence, score in results:
        if score.held:
            continue
        total = final_total(score)
        for boundary in boundaries(assignment):
            if total is not None and abs(total - boundary) <= NEAR + 1e-9:
                text = f"{points(total)} points; the boundary is {points(boundary)}"
                near.append((total, score.student_id, Case(BOUNDARY, text, score.student_id)))
        for measure in assignment.measures if assignment.data is not None else ():
            words, item = measured_words(assignment, measure), assignment.item_measured(measure.id)
            value = evidence.of_measure(measure.id).training.measured
            threshold = item.threshold if item else None
            # nothing is near a value that is not a number
            if threshold and value is not None and abs(value - threshold) <= _near_distance(words, threshold):
                whose = f"{words.heading}: " if len(assignment.measures) > 1 else ""
                text = f"{whose}{words.value(value)} measured; {words.round(threshold)} is asked for"
                near.append((value, score.student_id, Case(BOUNDARY, text, score.student_id)))
    yield from (case for _, _, case in sorted(near, key=lambda entry: entry[:2]))


def _near_distance(words: MeasuredWords, threshold: float) -> float:
    """How far from a threshold counts as near: 2 points for a share, 2 % for another value."""
    return NEAR / 100 * (1.0 if words.scale.is_share else abs(threshold)) + 1e-9


def _file_cases(download: DownloadRecord | None, graded: set[str]) -> Iterator[Case]:
    """What the account of the download adds to what the submissions themselves say."""
    if download is None:
        return
    absent: dict[str, str] = {}
    for file in download.files:
        owner = file.student_id or ""
        text = f"{file.source}: {file.reason}" if file.source else file.reason
        if owner and owner not in graded:
            absent.setdefault(owner, text)
        elif file.fate == "superseded":
            yield Case(ATTEMPTS, text, owner, count=file.count)
        elif file.fate == "refused" and not owner:
            yield Case(FILES, text, count=file.count)
    for student_id, text in absent.items():
        yield Case(ABSENT, text, student_id)


def _lacking_cases(lacking: Sequence[LackingRecord]) -> Iterator[Case]:
    """What the LMS lists although its download lacks it."""
    for record in lacking:
        yield Case(LACKING, record.in_words, record.student_id)


def _roster_cases(
    roster: RosterRecord | None, lacking: Sequence[LackingRecord], nothing: Collection[str]
) -> Iterator[Case]:
    """What the list of the class adds.

    Args:
        nothing: Who handed in nothing, as a person said.
    """
    if roster is None:
        return
    lacking_ids = {record.student_id.casefold() for record in lacking}
    for student_id in roster.missing:
        if student_id.casefold() in lacking_ids:
            continue
        yield Case(NOTHING, f"Listed in {roster.source}.", student_id)
    for student_id in sorted(set(roster.unlisted) - set(nothing)):
        yield Case(UNLISTED, f"Not listed in {roster.source}.", student_id)


def _similar_cases(similarity: SimilarityRecord | None) -> Iterator[Case]:
    """The pairs that have much in common, the strongest first."""
    for number, pair in enumerate(similarity.pairs if similarity else ()):
        text = f"{pair.says}, with {pair.other} from an earlier class." if pair.before else f"{pair.says}."
        anchor = pair_anchor(number)
        link = f"{PAGE}#{anchor}" if anchor else PAGE
        yield Case(SIMILAR, text, pair.one, apart=str(number), link=link)
        if not pair.before:
            yield Case(SIMILAR, text, pair.other, count=0, apart=str(number), link=link)
