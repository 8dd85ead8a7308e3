"""A gradebook that commit 0c354a2 made opens, and is worth what that commit's own code told: see `books`."""

import importlib.util
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.domain.analyzed_program import Note
from grader.domain.assignment import Assignment
from grader.domain.edit import (
    Because,
    Claimed,
    Edit,
    Extended,
    InTime,
    Marked,
    Received,
    Ruled,
    RunChosen,
    Waived,
)
from grader.domain.evidence import FindingKind
from grader.domain.run_facts import RunFacts
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook
from grader.results.current_state import results_now

BOOKS = Path(__file__).parent / "books"
FILE = "gradebook.sqlite"


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    """Of the book."""
    spec = importlib.util.spec_from_file_location("small_of_old_books", BOOKS / "small.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Assignment = module.ASSIGNMENT
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The results folder with the book as it was then."""
    raw = sqlite3.connect(tmp_path / FILE)
    raw.executescript((BOOKS / "0c354a2.sql").read_text(encoding="utf-8"))
    raw.close()
    return tmp_path


@pytest.fixture
def book(folder: Path) -> Iterator[Gradebook]:
    with Gradebook(folder, assignment_id="small") as opened:
        yield opened


def told(book: Gradebook, result: Result) -> dict[str, Any]:
    """What today's code says of a result, as the old code's words are kept."""
    score = result.score
    return {
        "status": score.status.value,
        "total": score.total,
        "after_lateness": score.late.total_after if score.late else None,
        "decided": score.decided,
        "awaiting": list(score.awaiting),
        "closed": score.closed,
        "claim": score.claim.accuracy if score.claim else None,
        "lines": {line.id: [line.points, line.state, line.floor] for line in score.lines},
        "components": {
            own.component: [own.points, own.passed, own.total]
            for line in score.lines
            for own in line.components
        },
        "lower": [score.lower.kept, score.lower.reason] if score.lower else None,
        "runs": list(book.runs(score.student_id)),
        "counting": book.counting(score.student_id),
    }


def test_everybody_has_the_points_that_the_old_version_told(book: Gradebook, assignment: Assignment) -> None:
    """With every state and the run that counts; sentences were written better since."""
    then = json.loads((BOOKS / "0c354a2.json").read_text(encoding="utf-8"))
    results = results_now(assignment, book.snapshot())
    assert {one.score.student_id: told(book, one) for one in results} == then
    assert len(then) == 10 and any(one["lower"] for one in then.values())


def test_what_was_decided_has_its_type(book: Gradebook) -> None:
    due = datetime(2026, 1, 31, 20, tzinfo=UTC)
    first = [edit for edit in book.edits("400101201") if edit.student_id]
    assert [(type(edit), edit.run) for edit in first] == [
        *[(Marked, 1)] * 4, *[(Claimed, 1)] * 2, *[(Received, 1)] * 2,
    ]  # fmt: skip
    q6, better, patches, token, claimed, taken_back, received, not_received = first
    assert isinstance(q6, Marked) and q6.remarks == (("cite", "Cite it."),)
    assert (q6.target, q6.points, q6.comment, q6.who, q6.why, q6.sheet) == (
        "q6", 3.0, "Good.", "ta1", "Why mark.", "",
    )  # fmt: skip
    assert isinstance(better, Marked) and (better.points, better.comment) == (3.5, "Better.")
    assert isinstance(patches, Marked) and (patches.target, patches.points) == ("q10.patches", 2.0)
    assert isinstance(token, Marked) and token.points == 1.25
    assert isinstance(claimed, Claimed) and claimed.accuracy == 0.99
    assert isinstance(taken_back, Claimed) and taken_back.accuracy is None
    assert isinstance(received, Received) and received.moment == due + timedelta(days=9)
    assert isinstance(not_received, Received) and not_received.moment is None
    assert received.digest == not_received.digest == "digest-400101201"

    def last(student_id: str) -> Edit:
        return [edit for edit in book.edits(student_id) if edit.student_id][-1]

    waivers = [edit for edit in book.edits() if isinstance(edit, Waived)]
    assert [(edit.check, edit.lifted) for edit in waivers] == [
        ("scale", False), ("shape", False), ("shape", True),
    ]  # fmt: skip
    lifted, ruled = last("400101205"), last("400101204")
    assert isinstance(lifted, Ruled) and (lifted.counts, lifted.digest) == (True, None)
    assert isinstance(ruled, Ruled) and (ruled.counts, ruled.digest) == (False, None)
    in_time, extended = last("400101208"), last("400101209")
    assert isinstance(in_time, InTime) and in_time.digest == "digest-400101208"
    assert isinstance(extended, Extended) and extended.deadline == due + timedelta(days=2)
    kept, fell, chosen = last("400101206"), last("400101207"), last("400101210")
    assert isinstance(kept, RunChosen) and (kept.because, kept.number) == (Because.KEPT, 1)
    assert isinstance(fell, RunChosen) and (fell.because, fell.number, fell.run) == (Because.FELL, None, 2)
    assert isinstance(chosen, RunChosen) and (chosen.because, chosen.number) == (None, 1)


def test_what_was_found_out_is_read_by_what_it_has(book: Gradebook) -> None:
    odd = book.evidence("400101202")
    kinds = {found.check: (found.kind, found.diagnosis, found.policy) for found in odd.findings}
    assert kinds == {
        "oracle": (FindingKind.NOT_IMPLEMENTED, None, None),
        "shape": (None, "missing_scale", None),
        "scale": (None, None, None),
        "logits": (None, None, "fixed_positions"),
        "learns": (FindingKind.UNDECIDED, None, None),
    }
    magics, data = odd.notes
    assert magics == Note("Magics were not executed.") and data.ask_person
    assert odd.claim is not None and odd.claim.cell == "cell 12"
    hangs = next(one for one in book.evidence("400101203").findings if one.check == "learns")
    assert hangs.kind is FindingKind.HANGS


def test_the_old_rows_stay_and_the_new_ones_never_change(folder: Path) -> None:
    with Gradebook(folder, assignment_id="small") as book:
        before = book.snapshot()
        mark = Marked(
            who="ta2",
            when=datetime(2026, 3, 1, tzinfo=UTC),
            why="Seen.",
            student_id="400101202",
            target="q6",
            points=4.0,
        )
        assert book.append([mark], [], after=before.state)
        assert len(book.edits()) == len(before.edits) + 1
    raw = sqlite3.connect(folder / FILE)
    fresh = sqlite3.connect(":memory:")
    fresh.executescript((BOOKS / "0c354a2.sql").read_text(encoding="utf-8"))
    old = fresh.execute("SELECT * FROM edits ORDER BY id").fetchall()
    kept = raw.execute(
        "SELECT id, assignment_id, student_id, kind, target, value, comment, remarks, run, who, at, why "
        "FROM edits ORDER BY id"
    ).fetchall()
    assert kept == old
    assert (
        raw.execute("SELECT evidence FROM runs").fetchall()
        == fresh.execute("SELECT evidence FROM runs").fetchall()
    )
    ids = [number for (number,) in raw.execute("SELECT id FROM decisions ORDER BY id")]
    assert ids == [*(row[0] for row in old), old[-1][0] + 1]
    for statement in ("UPDATE decisions SET content = '{}'", "DELETE FROM decisions", "DELETE FROM edits"):
        with pytest.raises(sqlite3.IntegrityError, match="is changed"):
            raw.execute(statement)
    raw.close()
    fresh.close()


def test_facts_that_its_rows_lack_are_read_from_the_evidence(book: Gradebook) -> None:
    assert len(book.students()) > 1
    facts = {
        student: RunFacts.of(book.evidence(student, book.runs(student)[-1])) for student in book.students()
    }
    assert book.latest_facts() == facts
    assert book.uploads() == book.snapshot().uploads() != ()
