"""What an assignment adds while something is open: never a zero, and never more than it can become."""

from dataclasses import replace
from datetime import datetime

import pytest

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, LateRecord, LineState, Ownership, Score, ScoreLine
from grader.domain.submission import AcceptedFile
from grader.domain.submission_result import Result
from grader.domain.term_total import GroupMember, PartState, TermPart, TermPeople, TermPlan, TermTotal
from grader.reports.whole_class.term_page import part_words, term_csv, total_words
from grader.term.course_totals import AssignmentResults, course_totals, remarks
from tests.scripted_terms import DAY, START, Term

HER, HIM, THIRD = "400101204", "400101205", "400101206"
NOW = START + 9 * DAY
NOBODY = TermPeople()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """Of 120 points, 20 of which a person gives."""
    term = Term(tmp_path_factory.mktemp("lab"))
    term.course()
    term.assignment("lab", START, "[late]\npoints_per_day = 10\n", report=True)
    return term.read("lab")


def line(name: str, points: float | None, maximum: float) -> ScoreLine:
    state = LineState.AWAITING if points is None else LineState.DECIDED
    return ScoreLine(name, name, points, maximum, "", state)


def late(points: float | None, penalty: float | None) -> LateRecord:
    return LateRecord("late" if penalty else "in_time", 1, penalty, points, asked=False, reason="")


def result(
    student_id: str = HER,
    parts: float = 80,
    report: float | None = 10,
    *,
    files: str = "files",
    **changes: object,
) -> Result:
    total = parts + (report or 0)
    score = Score(
        student_id,
        GradeStatus.GRADED,
        (line("parts", parts, 100), line("report", report, 20)),
        total,
        decided=100 if report is None else 120,
        maximum=120,
        late=late(total, 0),
    )
    return Result(Evidence(student_id, "lab", files, NOW), replace(score, **changes))  # type: ignore[arg-type]


def parts_of(
    lab: Assignment | None,
    *results: Result,
    people: TermPeople = NOBODY,
    now: datetime = NOW,
    graded: bool = True,
) -> dict[str, TermPart]:
    """Student -> what `lab`, worth 60 points, adds."""
    found = {"lab": AssignmentResults.of(lab, results if graded else None)}
    made = course_totals(TermPlan({"lab": 60}), people, found, late_days=0, now=now)
    return {total.student_id: total.parts[0] for total in made}


def group(*members: GroupMember) -> TermPeople:
    return TermPeople(None, {"lab": {member.student_id: members for member in members}})


def test_a_decided_grade_is_a_number(lab: Assignment) -> None:
    part = parts_of(lab, result())[HER]
    assert (part.state, part.low, part.high, part.grade) == (PartState.DECIDED, 45, 45, 90)


@pytest.mark.parametrize(
    ("changes", "bounds", "judged", "missing"),
    [
        # 80 are certain, and 20 awaited: 60 * 80/120 to 60 * 100/120; 100 of 120 are judged
        ({"report": None}, (40, 50), 50, "awaiting report"),
        # 10 are off: 60 * 70/120, and each further point takes at most one away
        ({"report": None, "late": late(70, 10)}, (35, 45), 50, "awaiting report"),
        # nobody knows how late it is: all of it may be lost
        ({"late": late(None, None)}, (0, 45), 0, "late, and nobody knows by how much"),
        # withheld, or failed in the grader: 0 to everything
        (
            {"total": None, "late": None, "status": GradeStatus.INCOMPLETE},
            (0, 60),
            0,
            "a file is missing, and `grader rule` has not said what follows",
        ),
        (
            {"total": None, "late": None, "status": GradeStatus.ENGINE_ERROR},
            (0, 60),
            0,
            "the grader failed: grade it again",
        ),
        (
            {"total": None, "late": None, "status": GradeStatus.REFUSED},
            (0, 60),
            0,
            "nothing in it could be graded, and `grader rule` has not said what follows",
        ),
    ],
)
def test_what_is_open_lies_between_what_is_certain_and_what_it_can_become(
    lab: Assignment, changes: dict[str, object], bounds: tuple[float, float], judged: float, missing: str
) -> None:
    part = parts_of(lab, result(**changes))[HER]  # type: ignore[arg-type]
    assert part.state is PartState.OPEN and part.grade is None
    assert (part.low, part.high) == pytest.approx(bounds) and part.judged == pytest.approx(judged)
    assert part.missing == missing


def test_what_is_not_graded_or_not_due_is_no_missing_work(lab: Assignment) -> None:
    people = TermPeople({HER: "A"})
    assert parts_of(None, people=people, graded=False)[HER].missing == "is not graded yet"
    assert parts_of(lab, people=people, graded=False)[HER].state is PartState.NOT_GRADED
    early = parts_of(lab, result(HIM), people=people, now=START - DAY)[HER]
    assert (early.state, early.missing) == (PartState.NOT_GRADED, "is due 2026-03-01 12:00 UTC")
    part = parts_of(lab, result(HIM), people=people)[HER]
    assert (part.state, part.low, part.high) == (PartState.NOTHING, 0, 60)


def test_who_is_only_on_a_class_list_has_a_range_too(lab: Assignment) -> None:
    found = {"lab": AssignmentResults.of(lab, [result()], frozenset({HIM}))}
    made = course_totals(TermPlan({"lab": 60}), NOBODY, found, late_days=0, now=NOW)
    assert [(total.student_id, total.low, total.high) for total in made] == [(HER, 45, 45), (HIM, 0, 60)]


def test_a_submission_without_an_owner_is_nobodys_and_is_told(lab: Assignment) -> None:
    held = result("upload-1", ownership=Ownership(held=True, decided=False, reason=""))
    assert not parts_of(lab, held)
    told = list(remarks({"lab": AssignmentResults.of(lab, [held])}, []))
    assert len(told) == 1 and "no known owner" in told[0]


def test_a_group_has_one_submission_and_each_member_a_weight(lab: Assignment) -> None:
    parts = parts_of(lab, result(), people=group(GroupMember(HER, "G", 1.5), GroupMember(HIM, "G", 0.5)))
    # 90 * 1.5 is more than 120, which is all there is; 90 * 0.5 = 45 of 120
    assert (parts[HER].grade, parts[HER].low) == (120, 60)
    assert (parts[HIM].grade, parts[HIM].low, parts[HIM].handed_in_by) == (45, 22.5, HER)


def test_two_submissions_of_a_group_wait_for_a_word(lab: Assignment) -> None:
    two = result(HER, 80, files="hers"), result(HIM, 50, files="his")
    for part in parts_of(lab, *two, people=group(GroupMember(HER, "G"), GroupMember(HIM, "G"))).values():
        assert (part.state, part.low, part.high) == (PartState.OPEN, 30, 45)
        assert "say whose counts by 'hands_in'" in part.missing
    chosen = group(GroupMember(HER, "G"), GroupMember(HIM, "G", hands_in=True))
    assert {part.grade for part in parts_of(lab, *two, people=chosen).values()} == {60}


def test_members_with_the_same_files_keep_their_own_grades(lab: Assignment) -> None:
    """As an LMS hands out a team's work: late days and marks may differ. A third member has no own result."""
    members = group(GroupMember(HER, "G"), GroupMember(HIM, "G"), GroupMember(THIRD, "G"))
    parts = parts_of(lab, result(HER, 80), result(HIM, 50), people=members)
    assert (parts[HER].grade, parts[HIM].grade) == (90, 60)
    assert parts[THIRD].state is PartState.OPEN and "different points" in parts[THIRD].missing


def test_the_same_work_may_have_each_members_own_name(lab: Assignment) -> None:
    """As the handout asks: digests of submissions have names in them."""
    her, him, third = (
        replace(
            one,
            evidence=replace(one.evidence, files=(AcceptedFile("code", f"{whose}_lab.py", 5, content),)),
        )
        for one, whose, content in (
            (result(HER, 80, files="hers"), HER, "same"),
            (result(HIM, 80, files="his"), HIM, "same"),
            (result(THIRD, 50, files="other"), THIRD, "other"),
        )
    )
    members = group(GroupMember(HER, "G"), GroupMember(HIM, "G"), GroupMember(THIRD, "G"))
    assert {part.grade for part in parts_of(lab, her, him, people=members).values()} == {90}
    other = parts_of(lab, her, third, people=members)
    assert {part.state for part in other.values()} == {PartState.OPEN}


def test_whoever_is_named_and_handed_in_nothing_takes_nothing_from_the_others(lab: Assignment) -> None:
    members = group(GroupMember(HER, "G"), GroupMember(HIM, "G"), GroupMember(THIRD, "G", hands_in=True))
    two = result(HER, 80, files="hers"), result(HIM, 50, files="his")
    for part in parts_of(lab, *two, people=members).values():
        assert (part.state, part.low, part.high) == (PartState.OPEN, 30, 45)
        assert "say whose counts by 'hands_in'" in part.missing


def test_a_ruling_on_one_who_handed_in_nothing_is_not_the_groups_work(lab: Assignment) -> None:
    nothing = result(HER, 0, 0, files="none")
    nothing = replace(nothing, evidence=replace(nothing.evidence, absent=True))
    members = group(GroupMember(HER, "G"), GroupMember(HIM, "G"))
    ruled = parts_of(lab, nothing, people=members)
    assert (ruled[HER].grade, ruled[HIM].state) == (0, PartState.NOTHING)
    assert {part.grade for part in parts_of(lab, nothing, result(HIM), people=members).values()} == {90}


def test_who_is_not_on_the_list_is_told(lab: Assignment) -> None:
    found = {"lab": AssignmentResults.of(lab, [result(HIM)])}
    made = course_totals(TermPlan({"lab": 60}), TermPeople({HER: "A"}), found, late_days=0, now=NOW)
    assert [total.listed for total in made] == [True, False]
    assert list(remarks(found, made)) == [f"{HIM} is not in the file of students."]


def test_parts_are_rounded_as_their_total_is() -> None:
    """A member's weight makes more than two decimals: 83.5 * 0.85 is 70.975."""
    grade = 0.85 * 83.5
    part = TermPart("lab1", 100, PartState.DECIDED, grade, grade, 100, grade=grade, maximum=100)
    total = TermTotal(HER, "", (part,))
    assert (total_words(total), part_words(part)) == ("70.98", "70.98 of 100")
    row = term_csv(TermPlan({"lab1": 100}), [total], late_days=0).splitlines()[1]
    assert row.split(",")[2:7] == ["70.98"] * 5
