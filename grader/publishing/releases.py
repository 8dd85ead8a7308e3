"""The release of grades to students: what is released, what must be settled before, and what is noted.

It decides the grade after any penalty, or why there is none, and what must not be lacking before an
export. It notes releases in the book, once for each way and value. It never writes a file for students or
for an LMS.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from grader.domain.edit import Edit, Released
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import counted, listed, printable
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook, Snapshot
from grader.lms.export_format import Grade, Results
from grader.lms.matching import candidates
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.whole_class.review_queue import still_lacking, summed
from grader.results.class_pages import note, noted
from grader.scoring import line_points
from grader.scoring.grade_state import is_reviewed, what_is_open

_SHOWN = 20  # lines of a refusal


def grade_of(score: Score) -> Grade:
    """The grade that follows from a score: never a guess, and never zero for what is unknown."""
    reasons = what_is_open(score)
    if reasons:
        return Grade(score.student_id, None, score.maximum, "; ".join(reasons), waits=True)
    if score.total is None:
        return Grade(score.student_id, None, score.maximum, "nothing in it could be graded")
    points = score.total if score.late is None else score.late.total_after
    return Grade(score.student_id, points, score.maximum)


def owned(results: Results) -> Results:
    """The results with a known owner; only these are released."""
    return [(evidence, score) for evidence, score in results if not score.held]


def left_out(results: Results) -> tuple[str, ...]:
    """A sentence for each submission without a known owner."""
    return tuple(
        f"{score.student_id}{upload_of(evidence)}: is left out until `grader owner` says whose it is. "
        f"{score.ownership.reason}"
        for evidence, score in sorted(results, key=lambda result: result[1].student_id)
        if score.ownership is not None and score.held
    )


def upload_of(evidence: Evidence) -> str:
    """What the download calls an upload, in brackets."""
    return f" ({printable(evidence.origin.upload)})" if evidence.origin.upload else ""


def exported_grades(results: Results, *, partial: bool, only_reviewed: bool = False) -> dict[str, Grade]:
    """The grades by student id, sorted, without those of submissions without a known owner.

    Args:
        partial: Include grades that await a person; they have no points.
        only_reviewed: A grade that nobody has reviewed as it is now awaits a person.

    Raises:
        UsageError: A grade awaits a person, and that is not allowed.
    """
    grades = {score.student_id: _grade(score, only_reviewed=only_reviewed) for _, score in owned(results)}
    grades = {student_id: grades[student_id] for student_id in sorted(grades)}
    waiting = [grade for grade in grades.values() if grade.waits]
    if waiting and not partial:
        verb = "awaits" if len(waiting) == 1 else "await"
        lines = [f"  {grade.student_id}: {grade.reason}" for grade in waiting[:_SHOWN]]
        if len(waiting) > _SHOWN:
            lines.append(f"  and {len(waiting) - _SHOWN} more")
        first = (
            f"{len(waiting)} of {len(grades)} grades still {verb} a person, so nothing was exported. "
            "Decide about them, or leave them out with --partial."
        )
        raise UsageError("\n".join([first, *lines]))
    return grades


def _grade(score: Score, *, only_reviewed: bool) -> Grade:
    grade = grade_of(score)
    if grade.waits or not only_reviewed or is_reviewed(score):
        return grade
    reason = "nobody has reviewed it" if score.review is None else "changed since it was reviewed"
    return Grade(score.student_id, None, score.maximum, f"{reason} (`grader review`)", waits=True)


def unreviewed(scores: Iterable[Score]) -> str:
    """A sentence on the grades that are released although nobody has reviewed them as they are now.

    A class of which nobody has reviewed any grade does without reviews: nothing is said of it.

    Args:
        scores: Of those who get a grade.

    Returns:
        It is empty if there is nothing to say.
    """
    known = [score for score in scores if grade_of(score).points is not None]
    lacking = [score for score in known if not is_reviewed(score)]
    changed = sorted(score.student_id for score in lacking if score.review is not None)
    if not lacking or (len(lacking) == len(known) and not changed):
        return ""
    since = f" ({listed(changed)}: changed since)" if changed else ""
    return f"Not reviewed: {len(lacking)} of {counted(len(known), 'grade')}{since}. See `grader review`."


def warnings(results: Results) -> tuple[str, ...]:
    """Sentences about what is left out, and about known grades that are open to doubt."""
    known_results = [
        (evidence, score) for evidence, score in owned(results) if grade_of(score).points is not None
    ]
    levels = {
        "was made without the isolation that official grades require": [
            score.student_id for evidence, score in known_results if evidence.attestation.weak
        ],
        "is of a single file, without the rule on missing files": [
            score.student_id for evidence, score in known_results if evidence.partial
        ],
        "is of a late submission, and a person was to decide what follows": [
            score.student_id
            for _, score in known_results
            if score.late is not None and score.late.asked and not score.closed
        ],
    }
    doubts = (f"{_grades_of(students)} {what}." for what, students in levels.items() if students)
    reviews = unreviewed(score for _, score in owned(results))
    return (*left_out(results), *doubts, *((reviews,) if reviews else ()))


def _grades_of(students: Iterable[str]) -> str:
    return f"The grade of {listed(sorted(students))}"


# --- release ---------------------------------------------------------------------------------------------


def require_complete(results: Sequence[Result], downloads: Sequence[DownloadRecord]) -> None:
    """Refuse to let grades out while an LMS lists a submission that nobody has graded.

    Raises:
        UsageError: It does.
    """
    class_candidates = candidates((result.evidence, result.score) for result in results)
    lacking = still_lacking(summed(downloads), class_candidates)
    if lacking:
        lines = [f"  {record.student_id}: {record.in_words}" for record in lacking]
        verb = "is" if len(lacking) == 1 else "are"
        first = (
            f"{counted(len(lacking), 'submission')} that the LMS lists {verb} not in its download, so "
            "nothing was exported. Grade a fuller download, have the last word with `grader rule`, or leave "
            "them out with --partial."
        )
        raise UsageError("\n".join([first, *lines]))


# --- releases --------------------------------------------------------------------------------------------


def note_releases(
    book: Gradebook,
    snapshot: Snapshot,
    results: Sequence[Result],
    grades: Mapping[str, float | None],
    *,
    way: str,
    who: str,
    when: datetime,
    out: Path,
) -> int:
    """Note that grades were released to their students.

    This changes no page: pages that showed the previous state of the book also show the new one.

    Args:
        out: The folder of the results.
        snapshot: The state of the book that the results were computed from.
        grades: The released grades, after what lateness costs; None: none was known.
        way: `publish`, or the format that was exported.

    Returns:
        How many are new: a grade that equals the last one released this way is noted already.

    Raises:
        UsageError: The book cannot be written.
    """
    made = [
        Released(
            who=who,
            when=when,
            why="",
            student_id=result.score.student_id,
            way=way,
            points=grades[result.score.student_id],
            lines=line_points(result.score),
        )
        for result in results
        if result.score.student_id in grades
    ]
    earlier = _last_releases(snapshot.edits)
    new = [edit for edit in made if not _is_noted(edit, earlier.get(edit.student_id or "", {}))]
    if not new:
        return 0
    state, before = book.note(new, snapshot), noted(out)
    if state is not None and before is not None and before.state == snapshot.state:
        with contextlib.suppress(UsageError):  # the next command writes what is older
            note(out, book, before.assignment, state, anew=before.anew)
    return len(new)


def release_problem(
    book: Gradebook,
    snapshot: Snapshot,
    results: Sequence[Result],
    grades: Mapping[str, float | None],
    *,
    way: str,
    who: str,
    when: datetime,
    out: Path,
) -> str:
    """Note that grades were released, as `note_releases` does.

    Returns:
        Why the book could not be written, although the files stay; empty where it was.
    """
    try:
        note_releases(book, snapshot, results, grades, way=way, who=who, when=when, out=out)
    except UsageError as error:
        return f"the gradebook does not know that these grades were released: {error}"
    return ""


_ANY = ""  # the key for the last release of all ways


def _last_releases(edits: Sequence[Edit]) -> dict[str, dict[str, Released]]:
    """Student -> way -> the last release."""
    by_student: dict[str, dict[str, Released]] = {}
    for edit in edits:
        if isinstance(edit, Released) and edit.student_id is not None:
            by_student.setdefault(edit.student_id, {}).update({edit.way: edit, _ANY: edit})
    return by_student


def _is_noted(edit: Released, earlier: Mapping[str, Released]) -> bool:
    return all(way in earlier and earlier[way].points == edit.points for way in (edit.way, _ANY))
