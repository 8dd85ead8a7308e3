"""Keeps fingerprints of a class's code for later terms: no id, no name, no line, no order of the class.

A fingerprint is a hash of STRETCH tokens from which names were taken before. What is kept shows how much of
later work is in it, and nothing else; whose it was is not known any more, so a student who repeats the
course meets their own. Weights and figures are not kept. Tests: `tests/similarity/test_fingerprint_store.py`.
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.domain.errors import UsageError
from grader.similarity.compared_pairs import ENOUGH, STRETCH, WINDOW, kept, own
from grader.similarity.compared_work import CodePrints, Work
from grader.similarity.normalized_code import units_not_given

LABEL = "earlier-{number}"


class _StoredPrints(BaseModel):
    """Of one submission."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lengths: dict[int, int]
    starts: list[tuple[int, int, int]]


class _Store(BaseModel):
    """Of a class."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    assignment: str
    stretch: int = Field(description="tokens of a fingerprint")
    window: int
    submissions: list[_StoredPrints]


def fingerprints_text(assignment_id: str, works: Sequence[Work], *, given: frozenset[tuple[str, ...]]) -> str:
    """The fingerprints of this class's code as JSON text.

    Args:
        works: Those of an earlier class, and those with too little code to be compared, are left out.
        given: The units that the course handed out, by their form.
    """
    students = [own(units_not_given(work.code, given)) for work in works if work.code and not work.before]
    prints = [kept(student) for student in students if student.size >= ENOUGH]
    # by content: the order of the class would tell whose each is
    ordered = sorted(prints, key=lambda one: (one.starts, sorted(one.lengths.items())))
    store = _Store(
        assignment=assignment_id,
        stretch=STRETCH,
        window=WINDOW,
        submissions=[_StoredPrints(lengths=one.lengths, starts=list(one.starts)) for one in ordered],
    )
    return store.model_dump_json() + "\n"


def stored_works(path: Path, assignment_id: str) -> tuple[Work, ...]:
    """The submissions of an earlier class, as far as they were kept.

    Raises:
        UsageError: The file cannot be read, or holds something else.
    """
    try:
        store = _Store.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}). Correct --before.") from None
    except ValidationError:
        raise UsageError(
            f"{path} holds no fingerprints. Give a file that `grader similar --keep` wrote, or an earlier "
            "class's submissions."
        ) from None
    if (store.stretch, store.window) != (STRETCH, WINDOW):
        raise UsageError(
            f"{path} was written by a version that chose other fingerprints: it cannot be compared."
        )
    if store.assignment != assignment_id:
        raise UsageError(f"{path} is of the assignment '{store.assignment}', not of '{assignment_id}'.")
    return tuple(
        Work(LABEL.format(number=number), before=True, prints=CodePrints(one.lengths, tuple(one.starts)))
        for number, one in enumerate(store.submissions, start=1)
    )
