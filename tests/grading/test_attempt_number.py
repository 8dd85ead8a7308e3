"""The number of an attempt: which submission of the student it is that is trained."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader import __version__
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment
from grader.domain.evidence import Attestation, Evidence, Training, TrainingOutcome
from grader.domain.submission import Submission
from grader.gradebook import Gradebook
from grader.grading import examiner
from grader.grading.class_run import graded
from grader.grading.examiner import OnThisMachine
from grader.grading.result_writer import attempt_number, attempts
from grader.grading.run import EvidenceBuilder, Run
from tests.graded_results import nothing_drawn

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TRAINED = Training(TrainingOutcome.COMPLETED, accuracy=0.7)
FAILED = Training(TrainingOutcome.FAILED, reason="It raised.")
NOT_RUN = Training(TrainingOutcome.NOT_RUN)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Gradebook]:
    with Gradebook(tmp_path, assignment_id="tiny") as made:
        yield made


def submission(digest: str, student: str = "a", team: tuple[str, ...] = ()) -> Submission:
    return Submission(student, "tiny", (), digest, team=team)


def recorded(
    book: Gradebook,
    digest: str,
    training: Training = TRAINED,
    *,
    student: str = "a",
    attempt: int | None = None,
) -> None:
    """Put a run into the book."""
    book.record(Evidence(student, "tiny", digest, NOW, training=training, attempt=attempt), {})


def test_it_counts_the_submissions_that_were_trained(book: Gradebook) -> None:
    """A failed training is one: its report told something. The same files keep their number."""
    assert attempt_number(book, submission("one")) == 1
    recorded(book, "one", FAILED, attempt=1)
    assert attempt_number(book, submission("one")) == 1
    assert attempt_number(book, submission("two")) == 2
    recorded(book, "two", attempt=2)
    recorded(book, "one", attempt=1)
    numbers = [attempt_number(book, submission(digest)) for digest in ("one", "two", "three")]
    assert numbers == [1, 2, 3]
    assert attempt_number(book, submission("one", "b")) == 1


def test_what_was_not_trained_is_none(book: Gradebook) -> None:
    """Only checked, refused, or cut off by a failure of ours: nothing of the split was met or told."""
    recorded(book, "one", NOT_RUN)
    book.record(Evidence("a", "tiny", "two", NOW, status="engine_error", attempt=1), {})
    book.record(Evidence("a", "tiny", "three", NOW, status="refused", attempt=1), {})
    assert attempt_number(book, submission("four")) == 1


def test_records_of_a_grader_with_one_split_for_all_count(book: Gradebook) -> None:
    """They say no number: they are numbered in their order."""
    recorded(book, "one")
    recorded(book, "two")
    recorded(book, "one")
    recorded(book, "three", attempt=3)
    numbers = [attempt_number(book, submission(digest)) for digest in ("one", "two", "three", "four")]
    assert numbers == [1, 2, 3, 4]


def test_what_nobody_can_read_any_more_may_have_been_trained() -> None:
    trained = Evidence("a", "tiny", "two", NOW, training=TRAINED, attempt=2)
    assert attempts([("one", None), ("two", trained), ("two", None)]) == {"one": 1, "two": 2}


def test_a_team_is_numbered_beyond_what_any_of_it_had(book: Gradebook) -> None:
    """Whoever it is trained for: what one of them saw, all of them know."""
    recorded(book, "alone", student="a", attempt=1)
    recorded(book, "again", student="a", attempt=2)
    for first in ("a", "b"):
        assert attempt_number(book, submission("team", first, team=("a", "b"))) == 3
    recorded(book, "team", student="b", attempt=3)
    assert attempt_number(book, submission("team", "a", team=("a", "b"))) == 3
    assert attempt_number(book, submission("later", "b")) == 4
    assert attempt_number(book, submission("other", "c", team=("c", "d"))) == 1


# --- through a run of the class -----------------------------------------------------------------------------


class Splits:
    """Splits that only say which attempt they are of."""

    def digest(self, attempt: int) -> str:
        """Of the images and the attempt's split."""
        return f"images {attempt}"

    def are_those_of(self, found: Evidence) -> bool:
        """As `HiddenSplits` says it."""
        return found.data_digest == self.digest(found.attempt or 0)


@pytest.fixture
def grade(
    tiny_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[tuple[str, str, int]]]:
    """Grade submissions; (student, digest, attempt) of those that were trained."""
    tiny: Assignment = read_assignment(tiny_course / "reference" / "tiny")
    trained: list[tuple[str, str, int]] = []

    def examine(run: Any, one: Submission, *, attempt: int, **more: Any) -> EvidenceBuilder:
        if one.student_id == "interrupts":
            raise KeyboardInterrupt
        trained.append((one.student_id, one.digest, attempt))
        return EvidenceBuilder(
            Evidence(
                one.student_id,
                "tiny",
                one.digest,
                NOW,
                training=TRAINED,
                engine=__version__,
                assignment_digest=tiny.digest,
                attestation=Attestation("strict"),
                attempt=attempt,
                data_digest=run.splits.digest(attempt),
            )
        )

    monkeypatch.setattr(examiner, "examined", examine)
    run = cast(Run, SimpleNamespace(assignment=tiny, splits=Splits(), draw=nothing_drawn))

    def once(*submissions: Submission, force: bool = False) -> list[tuple[str, str, int]]:
        trained.clear()
        with Gradebook(tmp_path, assignment_id=tiny.id) as book:
            graded(
                OnThisMachine(run),
                submissions,
                tmp_path,
                jobs=1,
                clock=lambda: NOW,
                book=book,
                watch=lambda told: None,
                earlier={} if force else None,
            )
        return list(trained)

    return once


def test_everybodys_first_meets_the_same_and_a_later_one_another(grade: Callable[..., Any]) -> None:
    """Also where others hand in for the first time then; `--force` trains the same on the same."""
    assert grade(submission("a1"), submission("b1", "b")) == [("a", "a1", 1), ("b", "b1", 1)]
    later = [submission("a2"), submission("b1", "b"), submission("c1", "c")]
    assert grade(*later) == [("a", "a2", 2), ("c", "c1", 1)]
    assert grade(*later) == []
    assert grade(*later, force=True) == [("a", "a2", 2), ("b", "b1", 1), ("c", "c1", 1)]
    # an earlier upload again, as when the last one was withdrawn
    assert grade(submission("a1")) == [("a", "a1", 1)]


def test_an_interrupted_run_counts_only_what_it_recorded(grade: Callable[..., Any]) -> None:
    """What was cut off is the same attempt when it goes on."""
    with pytest.raises(KeyboardInterrupt):
        grade(submission("a1"), submission("x", "interrupts"))
    assert grade(submission("a1")) == []
    assert grade(submission("x", "other"), submission("a2")) == [("other", "x", 1), ("a", "a2", 2)]


def test_a_mate_who_comes_later_has_met_what_the_team_met(grade: Callable[..., Any]) -> None:
    team = [submission("team", one, team=("a", "b")) for one in ("a", "b")]
    assert grade(team[0]) == [("a", "team", 1)]
    assert grade(*team) == [], "handed on"
    assert grade(submission("alone", "b")) == [("b", "alone", 2)]
    assert grade(*(replace(one, digest="new") for one in team)) == [("a", "new", 3)]


def test_another_book_is_another_class(book: Gradebook, tmp_path: Path) -> None:
    """The results of a term in a folder of their own begin anew, with a salt of their own."""
    recorded(book, "one", attempt=1)
    with Gradebook(tmp_path / "next", assignment_id="tiny") as other:
        assert attempt_number(other, submission("two")) == 1
        assert other.class_salt() != book.class_salt()
