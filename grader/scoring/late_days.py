"""How many late days of the course one late submission uses: the tokens of `[late] tokens`.

A student has a number of late days for all assignments of a course. Assignments use them in the order of
their deadlines, in whole days, and only where they leave the student more points. It never decides how late
a submission is, nor which other assignments used how many: `lateness` and the gradebook say so.
"""

from grader.domain.assignment import LatePolicy, LateTokens
from grader.domain.student_history import History


def penalty(rule: LatePolicy, days: int, total: float | None) -> float:
    """The points that so many late days cost under a rule that has points for a day.

    Args:
        total: The points that there are: no more can be lost; None where they are withheld.
    """
    bounds = [bound for bound in (rule.most_points, total) if bound is not None]
    return min([days * (rule.points_per_day or 0.0), *bounds])


def tokens_left(tokens: LateTokens, history: History) -> int:
    """How many late days the assignments with earlier deadlines have left to this one."""
    used = dict(history.late_days)
    return max(0, tokens.count - sum(used.get(earlier, 0) for earlier in tokens.earlier))


def tokens_used(rule: LatePolicy, days: int, total: float | None, left: int) -> int:
    """How many late days a submission uses: the fewest that cost the student the least.

    Without points for a day a person decides about the days that remain, so that each one helps. Where there
    are no points, or they are withheld, nothing can be saved.

    Args:
        days: That had begun since the deadline.
        left: Late days that there are.
    """
    most = min(days, left)
    if most <= 0 or not total:
        return 0
    if rule.points_per_day is None:
        return most
    least = penalty(rule, days - most, total)
    return next(used for used in range(most + 1) if penalty(rule, days - used, total) <= least)


def tokens_words(tokens: LateTokens, used: int, left: int) -> str:
    """What became of the late days, in a sentence for the student.

    Args:
        used: Of them, here.
        left: That there were for this assignment.
    """
    if used:
        return f"{used} of {tokens.count} late days used here, {left - used} left."
    if not left:
        return f"None of the {tokens.count} late days of the course are left."
    return f"No late day would help here: {left} of {tokens.count} are left."
