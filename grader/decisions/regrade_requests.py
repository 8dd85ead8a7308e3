"""Takes students' regrade requests, by the rules of the assignment.

A request disputes the released points of one item within a window, a limited number of times, with a reason.
Nothing is taken of several requests while one of them cannot be. It never answers one (`regrade_answers`
does), it never scores, and it never reads or writes files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grader.decisions.mark_entries import MarkChecks, MarkFault
from grader.decisions.marking_sheet import current_marks
from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import RegradeRules
from grader.domain.edit import Edit, Marked, RegradeAsked
from grader.domain.errors import UsageError
from grader.domain.formatting import counted, printable, stamp
from grader.domain.submission_result import Result
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring import line_points


@dataclass(frozen=True)
class NewRequest:
    """What a student asks.

    Attributes:
        target: A rubric item (`q6`), or a part of one (`q10.patches`).
        reason: The student's words.
        asked: When; None: now.
        place: The file and row that it comes from; empty without one.
    """

    student_id: str
    target: str
    reason: str
    asked: datetime | None = None
    place: str = ""


@dataclass(frozen=True)
class TakenRequests:
    """The outcome of taking requests.

    Attributes:
        taken: The new ones.
        known: How many had been taken before.
    """

    taken: tuple[RegradeAsked, ...]
    known: int
    revision: Revision


def take_requests(
    session: ClassSession, requests: Sequence[NewRequest], *, anyway: bool = False
) -> TakenRequests:
    """Take requests. Those that were taken before change nothing.

    Args:
        anyway: Take them although the window is over or a student has asked too often.

    Raises:
        UsageError: The assignment takes no requests, or some cannot be taken; all of these are listed, and
            nothing was taken.
    """
    rules = session.assignment.regrade_rules
    if rules is None:
        raise UsageError(
            "The assignment takes no regrade requests. Add `[regrade_requests]` with `days = 7` to "
            "assignment.toml."
        )
    known = 0

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal known
        desk = _Desk(session.assignment, rules, snapshot, results, anyway=anyway)
        for request in requests:
            desk.take(request, session.who, session.clock())
        if desk.faults:
            raise UsageError("\n".join([*desk.faults, "Nothing was taken."]))
        known = desk.known
        return desk.taken

    revision = session.revised("requests", decide=decide)
    taken = tuple(edit for edit in revision.edits if isinstance(edit, RegradeAsked))
    return TakenRequests(taken, known, revision)


class _Desk:
    """Checks requests one after the other, each with those before it.

    Attributes:
        taken: The new ones.
        known: How many had been taken before.
        faults: What is wrong with the others, a sentence each.
    """

    def __init__(
        self,
        assignment: Assignment,
        rules: RegradeRules,
        snapshot: Snapshot,
        results: Sequence[Result],
        *,
        anyway: bool,
    ) -> None:
        self._rules = rules
        self._anyway = anyway
        self._checks = MarkChecks(assignment, tuple(snapshot.evidence))
        self._scores = {result.score.student_id: result.score for result in results}
        self._marks = current_marks(snapshot.edits)
        self._asked = [edit for edit in snapshot.edits if isinstance(edit, RegradeAsked)]
        self.taken: list[RegradeAsked] = []
        self.known = 0
        self.faults: list[str] = []

    def take(self, request: NewRequest, who: str, now: datetime) -> None:
        """Check a request, and note it or what is wrong with it."""
        reason = " ".join(printable(request.reason).split())
        student_id, target = self._checks.student(request.student_id), self._checks.target(request.target)
        sentences = [
            f"{fault.field.value}: {fault}" for fault in (student_id, target) if isinstance(fault, MarkFault)
        ]
        if not reason:
            sentences.append("the reason is empty. A request says what was overlooked or misread.")
        if isinstance(student_id, MarkFault) or isinstance(target, MarkFault) or sentences:
            self._refuse(request, sentences)
        elif self._is_known(student_id, target, reason, request.asked):
            self.known += 1
        elif sentences := list(self._refusals(student_id, target, request.asked or now, now)):
            self._refuse(request, sentences)
        else:
            edit = RegradeAsked(
                who=who,
                when=now,
                why=reason,
                student_id=student_id,
                target=target,
                asked=request.asked or now,
                points=dict(line_points(self._scores[student_id]))[target],
                marker=_marker(self._marks, student_id, target),
            )
            self.taken.append(edit)
            self._asked.append(edit)

    def _refuse(self, request: NewRequest, sentences: Iterable[str]) -> None:
        place = request.place or f"{request.student_id} {request.target}"
        self.faults += [printable(f"{place}: {sentence}") for sentence in sentences]

    def _is_known(self, student_id: str, target: str, reason: str, asked: datetime | None) -> bool:
        """Whether the same words about the same item were taken before, if it is known when: of that time."""
        return any(
            (edit.student_id, edit.target, edit.why) == (student_id, target, reason)
            and asked in (None, edit.asked)
            for edit in self._asked
        )

    def _refusals(self, student_id: str, target: str, asked: datetime, now: datetime) -> Iterable[str]:
        """Why a request cannot be taken, a sentence each."""
        score = self._scores[student_id]
        if score.withholds(now):
            yield "the student sees these points after the deadline only (`[tries]`). Take it then."
            return
        if score.released is None:
            yield "nothing was released to the student yet, so there is nothing to dispute."
            return
        if target not in dict(line_points(score)):
            yield f"'{target}' has no points that could be disputed."
        if any(request.is_open and request.target == target for request in score.requests) or any(
            (edit.student_id, edit.target) == (student_id, target) for edit in self.taken
        ):
            yield f"a request of the student about '{target}' is open. Answer that one first."
        if self._anyway:
            return
        if asked < min(score.released.first, now):  # clocks of two machines may differ a little
            yield (
                f"the student is said to have asked on {stamp(asked)}, before the grade was first released "
                f"({stamp(score.released.first)}). Correct the time, or take it all the same with --anyway."
            )
        end = score.released.last + timedelta(days=self._rules.days)
        if asked > end:
            yield f"requests ended on {stamp(end)}. Take it all the same with --anyway."
        count = sum(edit.student_id == student_id for edit in self._asked)
        if count >= self._rules.most:
            yield (
                f"the student has made {counted(count, 'request')}, and {self._rules.most} are allowed. Take "
                "it all the same with --anyway."
            )


def _marker(marks: Mapping[tuple[str, str], Marked], student_id: str, target: str) -> str:
    """Who gave the points of an item last; empty if no person did."""
    own = marks.get((student_id, target))
    parts = [
        mark for (student, part), mark in marks.items()
        if student == student_id and part.startswith(f"{target}.")
    ]  # fmt: skip
    given = [mark for mark in ([own] if own is not None else parts) if mark.points is not None]
    return max(given, key=lambda mark: mark.when).who if given else ""
