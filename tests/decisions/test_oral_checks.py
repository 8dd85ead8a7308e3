"""Who is picked for an oral check, whatever comes in later, and how its outcome is recorded."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.last_word import rule
from grader.decisions.marking import NewMark, set_mark
from grader.decisions.oral_checks import (
    OralPicks,
    OralRequest,
    last_draw,
    newly_drawn,
    pick_for_oral,
    record_oral_outcome,
)
from grader.domain.assignment import Assignment
from grader.domain.edit import OrallyChecked, PickedForOral, Released
from grader.domain.errors import UsageError
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.results.session import ClassSession, SessionRequest, class_session

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDS = tuple(f"4001012{number:02d}" for number in range(1, 21))
SIMILAR = OralFlag(OralReason.SIMILAR, "98 % of their own code, with another.")
CODE = OralFlag(OralReason.CODE, "It executes text.")


def nothing(_: Sequence[Result]) -> Mapping[str, Sequence[OralFlag]]:
    return {}


@pytest.fixture(scope="module")
def keep_in(assignment: Assignment, class_evidence: Callable[..., Any]) -> Callable[..., None]:
    """Grade submissions of these students into a results folder."""

    def kept(folder: Path, *students: str, **fields: Any) -> None:
        with Gradebook(folder, assignment_id=assignment.id) as book:
            keeper = Keeper(assignment, book, folder, "ta1")
            for student in students:
                evidence = class_evidence(student)
                keeper.kept(replace(evidence, **fields) if fields else evidence, {}, NOW)

    return kept


@pytest.fixture
def keep(keep_in: Callable[..., None], tmp_path: Path) -> Callable[..., None]:
    """The same, into the test's results folder."""
    return partial(keep_in, tmp_path / "results")


@pytest.fixture(scope="module")
def twenty(keep_in: Callable[..., None], course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a class of 20, with its pages."""
    folder = tmp_path_factory.mktemp("twenty") / "results"
    keep_in(folder, *IDS)
    with session_in(folder, course_root):
        return folder


@pytest.fixture
def session(twenty: Path, tmp_path: Path, course_root: Path) -> Iterator[ClassSession]:
    """A class of 20."""
    with session_in(shutil.copytree(twenty, tmp_path / "results"), course_root) as opened:
        yield opened


def session_in(folder: Path, course: Path) -> AbstractContextManager[ClassSession]:
    """The class whose results lie in a folder."""
    request = SessionRequest(folder, "ta1", course=course)
    return class_session(request, clock=lambda: NOW, on_catch_up=lambda _: None)


def pick(session: ClassSession, find_flags: Any = nothing, **asked: Any) -> OralPicks:
    return pick_for_oral(session, OralRequest(**asked), find_flags)


def picked(session: ClassSession, reason: OralReason = OralReason.DRAWN) -> set[str]:
    """Everybody who is recorded as picked for a reason."""
    return {
        edit.student_id or ""
        for edit in session.book.edits()
        if isinstance(edit, PickedForOral) and reason in [flag.reason for flag in edit.reasons]
    }


def test_a_seed_draws_the_share_and_the_gradebook_says_how(session: ClassSession) -> None:
    picks = pick(session, share=0.15, seed="dice")
    assert len(picks.picked) == 3 and picks.can_be_asked == 20
    assert {(edit.seed, edit.share, edit.who) for edit in picks.picked} == {("dice", 0.15, "ta1")}
    assert {change.after.student_id for change in picks.revision.changes} == picked(session)
    assert all(change.after.points is None for change in picks.revision.changes)
    draw = last_draw(session.book.edits())
    assert draw is not None and draw.seed == "dice"


def test_the_same_again_changes_nothing_and_late_ones_change_no_earlier_pick(
    session: ClassSession, keep: Callable[..., None]
) -> None:
    pick(session, share=0.15, seed="dice")
    first = picked(session)
    assert pick(session, share=0.15, seed="dice").picked == () and picked(session) == first
    assert pick(session, share=0.15).picked == (), "the recorded seed"
    keep(*(f"4001013{number:02d}" for number in range(10)))
    pick(session, share=0.15)
    assert first < picked(session) and len(picked(session)) == 5
    pick(session, share=0.05)
    assert len(picked(session)) == 5, "a smaller share drops nobody"
    pick(session, share=0.5)
    assert first < picked(session) and len(picked(session)) == 15


def test_who_is_drawn_depends_on_the_seed_and_the_ids_alone() -> None:
    def drawn(students: Sequence[str] = IDS, seed: str = "a", count: int = 4, name: str = "x") -> set[str]:
        return set(newly_drawn(name, seed, students, count, set()))

    assert drawn() == drawn(IDS[::-1]) == drawn() and len(drawn()) == 4
    assert drawn() < drawn(count=9)
    assert len({frozenset(drawn(seed=seed)) for seed in "abcdef"}) > 3
    assert drawn() != drawn(name="y"), "another assignment asks others"
    without = [student for student in IDS if student not in drawn()]
    assert set(newly_drawn("x", "a", IDS, 6, drawn())) == drawn(count=6) - drawn()
    assert newly_drawn("x", "a", without, 4, drawn()) == ()
    often = [student for seed in range(400) for student in drawn(seed=str(seed))]
    assert all(40 < often.count(student) < 130 for student in IDS), "each has the same chance"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("share", "count"), [(0, 0), (0.01, 1), (0.1, 2), (0.11, 3), (1, 20)])
def test_a_share_is_rounded_up_to_whole_students(session: ClassSession, share: float, count: int) -> None:
    assert len(pick(session, share=share).picked) == count


def test_without_a_seed_the_gradebook_gives_one_which_stays(session: ClassSession) -> None:
    pick(session, share=0.1)
    draw = last_draw(session.book.edits())
    assert draw is not None and len(draw.seed) == 12
    assert session.book.class_salt() not in draw.seed
    with pytest.raises(UsageError, match=r"was drawn with the seed '.*', which stays.*larger --share"):
        pick(session, share=0.1, seed="another")
    assert len(picked(session)) == 2


def test_flagged_ones_are_picked_beside_the_draw_whatever_their_points(session: ClassSession) -> None:
    def flags(results: Sequence[Result]) -> Mapping[str, Sequence[OralFlag]]:
        return {IDS[0]: [SIMILAR], IDS[1]: [SIMILAR, CODE], IDS[2]: [CODE]}

    pick(session, flags, share=0, without={OralReason.SIMILAR})
    assert picked(session, OralReason.CODE) == {IDS[1], IDS[2]} and not picked(session, OralReason.SIMILAR)
    again = pick(session, flags, share=0)
    assert [(edit.student_id, edit.reasons) for edit in again.picked] == [
        (IDS[0], (SIMILAR,)),
        (IDS[1], (SIMILAR,)),
    ]
    assert {change.after.student_id for change in again.revision.changes} == {IDS[0]}, (
        "the other was held already"
    )
    before = picked(session)
    set_mark(session, NewMark(IDS[5], "q6", 0, "Empty."))
    pick(session, flags, share=0)
    assert picked(session) == before


def test_named_ones_are_picked_with_a_reason(session: ClassSession, keep: Callable[..., None]) -> None:
    (edit,) = pick(session, students=(IDS[3],), why="As announced.").picked
    assert edit.reasons == (OralFlag(OralReason.CHOSEN, "As announced."),) and edit.share is None
    with pytest.raises(UsageError, match="Say why"):
        pick(session, students=(IDS[4],))
    with pytest.raises(UsageError, match=r"no student '40010120'.*Did you mean '4001012"):
        pick(session, students=("40010120",), why="x")
    keep("400101400", code_file="")
    with pytest.raises(UsageError, match=r"'400101400' has no code .*\nNobody was picked"):
        pick(session, students=("400101400", IDS[4]), why="x")
    assert picked(session, OralReason.CHOSEN) == {IDS[3]}


def test_what_is_no_code_is_not_drawn(session: ClassSession, keep: Callable[..., None]) -> None:
    keep("400101400", code_file="")
    keep("400101401", status="refused", reason="It is no Python.")
    keep("400101402", absent=True)
    assert pick(session, share=1).can_be_asked == 20 and picked(session) == set(IDS)


def test_an_outcome_has_a_reason_and_is_withdrawn_by_another_entry(session: ClassSession) -> None:
    pick(session, students=(IDS[0],), why="x")
    before = session.book.snapshot().totals[IDS[0]].points
    assert before is None
    with pytest.raises(UsageError, match="Say why"):
        record_oral_outcome(session, IDS[0], OralOutcome.PASSED, why=" ")
    with pytest.raises(UsageError, match="no outcome"):
        record_oral_outcome(session, IDS[0], None, why="x")
    with pytest.raises(UsageError, match=r"was not picked.*--students"):
        record_oral_outcome(session, IDS[1], OralOutcome.PASSED, why="x")
    with pytest.raises(UsageError, match="no student"):
        record_oral_outcome(session, "4001", OralOutcome.PASSED, why="x")
    passed = record_oral_outcome(session, IDS[0], OralOutcome.PASSED, why="Explained\n all of it.")
    assert passed.changes[0].after.points is not None
    (edit,) = passed.edits
    assert isinstance(edit, OrallyChecked) and (edit.why, edit.digest) == ("Explained all of it.", "ab12")
    taken_back = record_oral_outcome(session, IDS[0], None, why="It was another.")
    assert taken_back.changes[0].after.points is None
    kinds = [type(each).__name__ for each in session.book.edits()]
    assert kinds == ["PickedForOral", "OrallyChecked", "OrallyChecked"], "nothing is ever removed"


def test_who_did_not_pass_is_ruled_on_as_others_are(session: ClassSession) -> None:
    with pytest.raises(UsageError, match="is complete"):
        rule(session, [IDS[0]], why="x")
    pick(session, students=IDS[:3], why="x")
    with pytest.raises(UsageError, match="is to be asked first"):
        rule(session, [IDS[0]], why="x")
    record_oral_outcome(session, IDS[0], OralOutcome.FAILED, why="Could not say what it does.")
    record_oral_outcome(session, IDS[1], OralOutcome.ABSENT, why="Did not come.")
    assert rule(session, None, why="x").students == (), "--all is about files that are missing"
    word = rule(session, [IDS[0]], why="Not the student's own work.")
    assert word.revision.score(IDS[0]).total == 0
    lifted = rule(session, [IDS[1]], why="Ill, as a doctor says.", lift=True)
    assert (lifted.revision.score(IDS[1]).total or 0) > 0
    assert lifted.revision.score(IDS[2]).awaits_oral


def test_a_released_grade_is_not_held_unless_that_is_meant(session: ClassSession) -> None:
    snapshot = session.book.snapshot()
    points = snapshot.totals[IDS[0]].points
    release = Released(who="head", when=NOW, why="", student_id=IDS[0], way="publish", points=points)
    assert session.book.append([release], [], after=snapshot.state)
    with pytest.raises(UsageError, match="released would fall"):
        pick(session, students=IDS[:2], why="x")
    assert not picked(session, OralReason.CHOSEN)
    pick_for_oral(session, OralRequest(students=IDS[:2], why="x"), nothing, allow_lower=True)
    assert picked(session, OralReason.CHOSEN) == set(IDS[:2])


def test_it_follows_a_submission_to_its_owner(session: ClassSession) -> None:
    from grader.decisions.upload_owner import decide_owner

    pick(session, students=(IDS[0],), why="x")
    owner = decide_owner(session, IDS[0], "400101777", why="A slip of the pen.")
    assert owner.revision.score("400101777").awaits_oral
