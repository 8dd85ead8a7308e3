"""How often answers to regrade requests change points, by item and by marker: where the rubric is unclear."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grader.domain.edit import Edit, RegradeAsked
from grader.scoring.disputed_points import answered_requests

UNCLEAR_SHARE = 0.2  # of the answers that change points: beyond it, the rubric is unclear
LEAST_ANSWERS = 5  # before anything is said about a share
CHECKS = "the checks"  # who gave points that no person gave


@dataclass(frozen=True)
class ChangeRate:
    """How many answers about the points of an item, or of a marker, changed them.

    Attributes:
        name: The item or part, or the marker.
    """

    name: str
    answered: int
    changed: int

    @property
    def share(self) -> float:
        """Of the answers, those that changed points, 0 to 1."""
        return self.changed / self.answered

    @property
    def is_high(self) -> bool:
        """Whether so many changed that the rubric is unclear."""
        return self.answered >= LEAST_ANSWERS and self.share > UNCLEAR_SHARE


def change_rates(edits: Sequence[Edit], named: Callable[[RegradeAsked], str]) -> tuple[ChangeRate, ...]:
    """How often answers change points, the most frequent first.

    Args:
        edits: Of the class, oldest first, of any kind.
        named: The name under which a request counts: see `by_item` and `by_marker`.
    """
    answered: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for request, answer in answered_requests(edits):
        if answer is not None:
            answered[named(request)] += 1
            changed[named(request)] += answer.points != request.points
    rates = [ChangeRate(name, count, changed[name]) for name, count in answered.items()]
    return tuple(sorted(rates, key=lambda rate: (-rate.share, -rate.answered, rate.name)))


def by_item(request: RegradeAsked) -> str:
    """The item or part that a request is about."""
    return request.target


def by_marker(request: RegradeAsked) -> str:
    """Who gave the disputed points."""
    return request.marker or CHECKS
