"""Picks students for oral checks, and records how the checks went.

A share of the class is drawn by a seed that the gradebook records; people may name further students, and
what was found in the work itself adds others. None of that depends on points. Whoever was picked stays
picked, whatever comes in later. An outcome is recorded with a reason, and withdrawn by another entry. What
an outcome does to a grade is for `grader.scoring.oral_hold` to say; after one that was not passed,
`last_word` records what a person rules. It never words a question and never writes a page.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256

from grader.course.toml_file import remedy
from grader.decisions.corrections import stated
from grader.domain.edit import Edit, OrallyChecked, PickedForOral
from grader.domain.errors import UsageError
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.domain.submission_result import Result
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession

FindFlags = Callable[[Sequence[Result]], Mapping[str, Sequence[OralFlag]]]
"""The results of a class -> student -> what was found in the work."""

_BITS = 52  # of a digest: so many are exact in a float


@dataclass(frozen=True)
class OralRequest:
    """Whom to pick.

    Attributes:
        share: Of those who can be asked, 0 to 1; rounded up to whole students. None: nobody is drawn, and
            nobody is picked for what was found.
        seed: Of the draw; empty: the recorded one, or for the first draw one that the gradebook gives.
        students: Further students, by id.
        why: Why these were named.
        without: What is found for these reasons picks nobody.
    """

    share: float | None = None
    seed: str = ""
    students: tuple[str, ...] = ()
    why: str = ""
    without: AbstractSet[OralReason] = frozenset()


@dataclass(frozen=True)
class OralPicks:
    """Who was picked.

    Attributes:
        picked: The new entries: of students who were not picked before, or for further reasons.
        can_be_asked: How many students handed in code that can be asked about.
        draw: The last draw so far, with its seed; None: there was none.
    """

    picked: tuple[PickedForOral, ...]
    can_be_asked: int
    draw: PickedForOral | None
    revision: Revision


def pick_for_oral(
    session: ClassSession, request: OralRequest, find_flags: FindFlags, *, allow_lower: bool = False
) -> OralPicks:
    """Pick students for an oral check, which holds their grades. Whoever was picked before stays picked.

    Args:
        find_flags: Gives what was found in the work of each student; it must not look at points.
        allow_lower: Grades that were released may become open again.

    Raises:
        UsageError: A named student cannot be asked, the seed is not that of the recorded draw, there is no
            reason, or a released grade would be held.
    """
    why = stated(request.why, "colleagues") if request.students else ""
    seed_of_book = sha256(f"oral checks {session.book.class_salt()}".encode()).hexdigest()[:12]
    can_be_asked: Sequence[str] = ()

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal can_be_asked
        can_be_asked = [result.evidence.student_id for result in results if _can_be_asked(result)]
        _require_can_be_asked(request.students, can_be_asked, results)
        before = _recorded(snapshot.edits)
        draw = last_draw(snapshot.edits)
        seed = _seed(request, draw) or seed_of_book
        drawn: Sequence[str] = ()
        found: Mapping[str, Sequence[OralFlag]] = {}
        if request.share is not None:
            count = math.ceil(request.share * len(can_be_asked) - 1e-9)  # 0.1 * 30 is a little more than 3
            drawn_before = {student for student, reasons in before.items() if OralReason.DRAWN in reasons}
            drawn = newly_drawn(session.assignment.id, seed, can_be_asked, count, drawn_before)
            found = find_flags(results)
        edits = []
        for student_id in can_be_asked:
            flags = [OralFlag(OralReason.DRAWN)] if student_id in drawn else []
            flags += [OralFlag(OralReason.CHOSEN, why)] if student_id in request.students else []
            flags += [flag for flag in found.get(student_id, ()) if flag.reason not in request.without]
            new = tuple(flag for flag in flags if flag.reason not in before.get(student_id, ()))
            if new:
                is_drawn = student_id in drawn
                edits.append(
                    PickedForOral(
                        who=session.who,
                        when=session.clock(),
                        why="",
                        student_id=student_id,
                        reasons=new,
                        seed=seed if is_drawn else "",
                        share=request.share if is_drawn else None,
                    )
                )
        return edits

    revision = session.revised("oral", decide=decide, allow_lower=allow_lower)
    picked = tuple(edit for edit in revision.edits if isinstance(edit, PickedForOral))
    return OralPicks(picked, len(can_be_asked), last_draw(session.book.edits()), revision)


def newly_drawn(
    assignment_id: str, seed: str, students: Sequence[str], count: int, before: AbstractSet[str]
) -> tuple[str, ...]:
    """The students who are drawn beside those who were drawn before, until there are so many.

    Each student has a number that depends on the seed, the assignment and the student alone; the lowest come
    first. The same seed therefore draws the same students from the same class.

    Args:
        students: Those who can be asked.
        count: How many are to be drawn, with those of before.
        before: Who was drawn before, whether or not they can still be asked.
    """

    def number(student_id: str) -> float:
        digest = sha256(f"oral check\0{seed}\0{assignment_id}\0{student_id}".encode()).digest()
        return float(int.from_bytes(digest[:8]) >> (64 - _BITS))

    others = sorted((student for student in students if student not in before), key=number)
    return tuple(others[: max(0, count - len(before))])


def last_draw(edits: Sequence[Edit]) -> PickedForOral | None:
    """The last entry by which a student was drawn: it has the seed and the share.

    Args:
        edits: Of the class, oldest first, of any kind.
    """
    draws = [edit for edit in edits if isinstance(edit, PickedForOral) and edit.share is not None]
    return draws[-1] if draws else None


def _can_be_asked(result: Result) -> bool:
    """Whether there is code of a known student to ask about. Points play no part in it."""
    evidence = result.evidence
    return bool(evidence.code_file) and evidence.status is None and not (evidence.absent or result.score.held)


def _require_can_be_asked(
    named: Sequence[str], can_be_asked: Sequence[str], results: Sequence[Result]
) -> None:
    """Check that each named student has something to be asked about.

    Raises:
        UsageError: Some have not.
    """
    known = {result.evidence.student_id for result in results}
    faults = []
    for student in named:
        if student not in known:
            advice = remedy(student, sorted(known), "See scores.csv.")
            faults.append(f"There is no student '{student}' in the gradebook. {advice}")
        elif student not in can_be_asked:
            faults.append(f"'{student}' has no code in the gradebook that could be asked about.")
    if faults:
        raise UsageError("\n".join([*faults, "Nobody was picked. Correct the list."]))


def _recorded(edits: Sequence[Edit]) -> dict[str, set[OralReason]]:
    """Student -> the reasons that are recorded."""
    recorded: dict[str, set[OralReason]] = {}
    for edit in edits:
        if isinstance(edit, PickedForOral):
            reasons = {flag.reason for flag in edit.reasons}
            recorded.setdefault(edit.student_id or "", set()).update(reasons)
    return recorded


def _seed(request: OralRequest, draw: PickedForOral | None) -> str:
    """The seed that is asked for, or that is recorded; empty if there is neither.

    Raises:
        UsageError: They differ: the class would be drawn twice.
    """
    if draw is not None and request.seed not in ("", draw.seed):
        raise UsageError(
            f"This class was drawn with the seed '{draw.seed}', which stays: another one would draw it "
            "twice. Leave out --seed; a larger --share draws more."
        )
    return request.seed or (draw.seed if draw is not None else "")


# --- outcomes --------------------------------------------------------------------------------------------


def record_oral_outcome(
    session: ClassSession,
    student_id: str,
    outcome: OralOutcome | None,
    *,
    why: str,
    allow_lower: bool = False,
) -> Revision:
    """Record how a student's oral check went. It is about the files that were handed in so far.

    Args:
        outcome: None withdraws the recorded one.
        why: The reason, for staff: the student never reads it.
        allow_lower: Grades that were released may become open again.

    Raises:
        UsageError: The student was not picked, there is nothing to withdraw or no reason, or a released
            grade would be held.
    """
    reason = stated(why, "colleagues")
    session.require_student(student_id)

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        result = next(result for result in results if result.score.student_id == student_id)
        oral = result.score.oral
        if oral is None:
            raise UsageError(
                f"'{student_id}' was not picked for an oral check. Pick the student first, with --students."
            )
        if outcome is None and oral.outcome is None and not oral.asked_before:
            raise UsageError(f"There is no outcome of '{student_id}' to take back.")
        digest = snapshot.evidence[student_id].submission_digest
        return [
            OrallyChecked(
                who=session.who,
                when=session.clock(),
                why=reason,
                student_id=student_id,
                outcome=outcome,
                digest=digest,
            )
        ]

    return session.revised(f"oral {student_id}", decide=decide, allow_lower=allow_lower)
