"""Which attempts count under the resubmission rule as it is now.

An attempt that came after resubmissions had ended does not count when it is graded, which the gradebook
notes. Where the rule or a deadline changed since, this decides anew which attempt counts. What a person
chose (`grader count`) stays.
"""

from collections.abc import Sequence

from grader.domain.edit import Because, Edit, RunChosen
from grader.results.current_state import edits_by_student
from grader.results.session import ClassSession
from grader.scoring import counting_instead


def chosen_by_the_window(session: ClassSession, new: Sequence[Edit] = ()) -> Sequence[RunChosen]:
    """The choices of runs that follow from the rule and the deadlines as they are now.

    Args:
        new: What is decided beside them, as new deadlines.

    Raises:
        UsageError: The book cannot be used.
    """
    assignment, known = session.assignment, session.book.edits()
    noted = any(isinstance(edit, RunChosen) and edit.because is Because.TOO_LATE for edit in known)
    if assignment.resubmission is None and not noted:
        return ()
    snapshot = session.book.snapshot(attempts=True).with_edits(new)
    edits = edits_by_student(snapshot)
    choices = []
    for student_id, evidence in snapshot.evidence.items():
        chosen = [edit for edit in edits[student_id] if isinstance(edit, RunChosen)]
        before = chosen[-1].because if chosen else Because.LATEST
        history = snapshot.history(student_id, attempts=True)
        if before is None or not history.attempts:
            continue  # a person said so, or there is one attempt alone
        newest = max(history.attempts, key=lambda attempt: attempt.first_run)
        instead = counting_instead(assignment, newest.evidence, edits[student_id], history)
        if instead is not None and instead.digest != evidence.submission_digest:
            number, because = instead.number, Because.TOO_LATE
        elif instead is None and before is Because.TOO_LATE:
            number, because = newest.number, Because.LATEST
        else:
            continue
        choices.append(
            RunChosen(
                who=session.who,
                when=session.clock(),
                why="",
                student_id=student_id,
                number=number,
                because=because,
            )
        )
    return choices
