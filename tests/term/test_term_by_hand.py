"""A whole term, whose totals were computed by hand: late days, resubmissions, groups, sections, what is open.

Three assignments are worth 20, 30 and 50 points; 50 pass; each student has three late days.

A day late costs 10 points in each of them. In lab1, of 100, each hands in alone; in lab2, of 100, groups do,
and a resubmission wins back half of what was lost; in lab3, of 120, groups weigh their members.
"""

import csv
import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.decisions.last_word import rule
from grader.domain.term_total import PartState, Risk, RiskKind, TermTotal
from grader.results.class_pages import write_pages
from grader.term.graded_assignments import TermRequest
from grader.term.written_term import TermResult, term_result
from tests.scripted_terms import DAY, START, Term

DUE = {"lab1": START, "lab2": START + 14 * DAY, "lab3": START + 28 * DAY}
AFTER = START + 40 * DAY
LATE = "[late]\npoints_per_day = 10\n"
HALF = "[resubmission]\ndays = 7\nregains = 0.5\n"
COURSE = """
[late]
tokens = 3

[total]
passing = 50
weights = { lab1 = 20, lab2 = 30, lab3 = 50 }

[people]
students = "students.csv"
groups = "groups.csv"

[people.sections]
A = ["ta1"]
B = ["ta2", "ta3"]
"""
A1, A2, A3, A4, B1, B2, B3, B4 = (f"40010120{number}" for number in range(1, 9))
STUDENTS = "student_id,section\n" + "".join(
    f"{student_id},{'A' if student_id in (A1, A2, A3, A4) else 'B'}\n"
    for student_id in (A1, A2, A3, A4, B1, B2, B3, B4)
)
GROUPS = f"""assignment,group,student_id,weight,hands_in
lab2,G1,{A1},,
lab2,G1,{A2},,
lab2,G2,{A3},,
lab2,G2,{A4},,
lab2,G3,{B1},,
lab2,G3,{B2},,
lab2,G4,{B3},,
lab2,G4,{B4},,yes
lab3,G1,{A1},1,
lab3,G1,{A2},0.8,
lab3,G2,{A3},1.1,
lab3,G2,{A4},0.9,
lab3,G3,{B1},,
lab3,G3,{B2},,
lab3,G4,{B3},,
lab3,G4,{B4},,
"""


@pytest.fixture(scope="module")
def term(tmp_path_factory: pytest.TempPathFactory) -> Term:
    """Everything is handed in and graded; the report of G3 in lab3 is not marked yet."""
    made = Term(tmp_path_factory.mktemp("term"))
    made.course(COURSE)
    (made.root / "course" / "students.csv").write_text(STUDENTS)
    (made.root / "course" / "groups.csv").write_text(GROUPS)
    made.assignment("lab1", DUE["lab1"], LATE)
    made.assignment("lab2", DUE["lab2"], LATE + HALF)
    made.assignment("lab3", DUE["lab3"], LATE, report=True)
    _lab1(made)
    _lab2(made)
    _lab3(made)
    return made


def _lab1(term: Term) -> None:
    """A check that passes gives 10 of 100 points."""
    for student_id, days, passed in (
        (A1, -1, 10),  # 100
        (A2, 1.5, 10),  # two days late, two late days: 100
        (A3, -1, 7),  # 70
        (A4, 3, 8),  # three days late, three late days: 80
        (B1, -1, 9),  # 90
        (B2, -1, 5),  # 50
        (B4, -1, 3),  # 30; B3 hands in nothing
    ):
        term.hand_in("lab1", DUE["lab1"] + days * DAY, passed, student=student_id)


def _lab2(term: Term) -> None:
    due = DUE["lab2"]
    term.hand_in("lab2", due - DAY, 6, student=A1)  # G1: 60, ...
    term.hand_in("lab2", due + 3 * DAY, 10, student=A1)  # ... and 100 again: 60 + 0.5 * (100 - 60) = 80
    term.hand_in("lab2", due + 2 * DAY, 9, student=A4)  # G2: 90, two days late, no late day left: 70
    term.hand_in("lab2", due - DAY, 8, student=B1)  # G3: 80, ...
    term.hand_in("lab2", due + 9 * DAY, 10, student=B1)  # ... and a second one after the week: 80
    term.hand_in("lab2", due - DAY, 4, student=B3)  # G4: two different ones, ...
    term.hand_in("lab2", due - DAY, 6, student=B4)  # ... of which the file names this one: 60


def _lab3(term: Term) -> None:
    due = DUE["lab3"]
    term.hand_in("lab3", due - DAY, 9, student=A2)  # G1: 90 + 15 = 105
    term.mark("lab3", 15, student=A2)
    term.hand_in("lab3", due + 2 * DAY, 10, student=A3)  # G2: 100 + 20 = 120, two late days of A3
    term.mark("lab3", 20, student=A3)
    term.hand_in("lab3", due - DAY, 10, student=B2)  # G3: 100 and up to 20; G4 hands in nothing
    for name in DUE:
        term.list_class(name, (A1, A2, A3, A4, B1, B2, B3, B4))
    for name in DUE:  # `grader regrade`: what changed in lab1 and lab2 moves late days
        term.regrade(name)
        with term.book(name) as book:
            write_pages(term.read(name), book, term.out(name), term.now, always_class=True)


def result(term: Term, **more: object) -> TermResult:
    return term_result(request(term), now=AFTER, **more)  # type: ignore[arg-type]


def request(term: Term) -> TermRequest:
    return TermRequest(tuple(map(term.out, DUE)), term.root / "course", book(term))


def book(term: Term) -> str:
    return f"sqlite:///{term.root / 'course.sqlite'}"


def totals(term: Term) -> dict[str, TermTotal]:
    return {total.student_id: total for total in result(term).totals}


def test_totals_are_those_that_were_computed_by_hand(term: Term) -> None:
    got = {student_id: (total.low, total.high) for student_id, total in totals(term).items()}
    assert got == {
        # 20 * 100/100 + 30 * 80/100 + 50 * 105/120 = 20 + 24 + 43.75
        A1: (87.75, 87.75),
        # 20 * 100/100 + 30 * 80/100 + 50 * (105 * 0.8 = 84)/120 = 20 + 24 + 35
        A2: (79, 79),
        # 20 * 70/100 + 30 * 70/100 + 50 * (120 * 1.1 is at most 120)/120 = 14 + 21 + 50
        A3: (85, 85),
        # 20 * 80/100 + 30 * 70/100 + 50 * (120 * 0.9 = 108)/120 = 16 + 21 + 45
        A4: (82, 82),
        # 20 * 90/100 + 30 * 80/100 + 50 * (100 to 120)/120 = 18 + 24 + (41.666... to 50)
        B1: (83.67, 92),
        # 20 * 50/100 + 30 * 80/100 + 50 * (100 to 120)/120 = 10 + 24 + (41.666... to 50)
        B2: (75.67, 84),
        # (0 to 20) + 30 * 60/100 + (0 to 50): nothing came twice, and nobody has ruled on it
        B3: (18, 88),
        # 20 * 30/100 + 30 * 60/100 + (0 to 50) = 6 + 18 + (0 to 50)
        B4: (24, 74),
    }
    decided = {student_id: total.points for student_id, total in totals(term).items()}
    assert decided == {
        A1: 87.75,
        A2: 79,
        A3: 85,
        A4: 82,
        **dict.fromkeys((B1, B2, B3, B4)),  # something is open: there is no total yet
    }


def test_late_days_that_are_left_are_those_that_were_counted_by_hand(term: Term) -> None:
    left = {student_id: total.late_days_left for student_id, total in totals(term).items()}
    # of three each: A2 used two and A4 three in lab1, A3 two in lab3
    assert left == {A1: 3, A2: 1, A3: 1, A4: 0, B1: 3, B2: 3, B3: 3, B4: 3}


def test_who_may_not_pass_and_why(term: Term) -> None:
    risks = {student_id: total.risks for student_id, total in totals(term).items() if total.risks}
    assert risks == {
        B3: (Risk(RiskKind.NOTHING, ("lab1", "lab3")),),  # so far 18 of 30: 60 %
        # so far 24 of 50: 48 %, and 50 % pass
        B4: (Risk(RiskKind.BELOW), Risk(RiskKind.NOTHING, ("lab3",))),
    }


def test_whose_submission_counts_and_what_is_missing(term: Term) -> None:
    lab2, lab3 = totals(term)[B3].parts[1:]
    assert (lab2.state, lab2.handed_in_by, lab2.grade) == (PartState.DECIDED, B4, 60)
    assert lab3.missing == "nothing came from the group G4, and `grader rule` has not said what follows"
    assert totals(term)[A1].parts[2].handed_in_by == A2 and totals(term)[A2].parts[2].handed_in_by == ""
    assert totals(term)[B1].parts[2].missing == "awaiting report"


def grader(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert done.exit_code == code, done.output
    return done


def command(term: Term, *more: object, code: int = 0) -> Result:
    outs = map(term.out, DUE)
    options = ("--course", term.root / "course", "--gradebook", book(term))
    return grader("term", *outs, *options, *more, code=code)


def test_the_command_shows_sections_ranges_and_who_is_at_risk(term: Term) -> None:
    text = command(term).output
    assert re.search(r"A course: 8\s+students, 4 with a final total of 100 points\.", text)
    assert text.index("A (ta1)") < text.index(A4) < text.index("B (ta2 and ta3)") < text.index(B1)
    assert re.search(rf"{A2} +79 +79.* 1 of 3 late days left\n", text)
    assert re.search(rf"{B1} +83.67 to 92 .*lab3: awaiting report", text)
    assert f"{B4}  has 48" in text and "handed in nothing for lab1 and lab3" in text
    one = command(term, "--section", "A").output
    assert A1 in one and B1 not in one
    assert "--section C: has no students. There are A, B." in command(term, "--section", "C", code=2).output


def test_the_page_and_the_table_say_the_same(term: Term, tmp_path: Path) -> None:
    to = tmp_path / "term"
    command(term, "--to", to)
    page = (to / "index.html").read_text()
    assert "83.67 to 92" in page and "ta2 and ta3" in page and "1 of 3" in page and "× 0.8" in page
    link = re.search(rf'href="([^"]*{A2}/report\.html)"', page)
    assert link is not None and (to / link[1]).resolve().is_file()
    assert "<script" not in page
    rows = {row["student_id"]: row for row in csv.DictReader(io.StringIO((to / "totals.csv").read_text()))}
    assert (rows[A2]["total"], rows[A2]["lab3"], rows[A2]["lab3_of_term"]) == ("79", "84", "35")
    assert (rows[B1]["total"], rows[B1]["at_least"], rows[B1]["at_most"]) == ("", "83.67", "92")
    assert (rows[B1]["lab3"], rows[B1]["lab3_of_term"]) == ("", ""), "unknown is not zero"
    assert (rows[A4]["late_days_left"], rows[A4]["section"]) == ("0", "A")
    made = [term_result(request(term), now=AFTER, to=to) and (to / "index.html").read_bytes() for _ in "12"]
    assert made[0] == made[1], "the same state gives the same page"


def test_an_lms_gets_the_totals_that_lack_nothing(term: Term, tmp_path: Path) -> None:
    grades = tmp_path / "gradebook.csv"
    head = "Student,ID,SIS User ID,Section,Total (77)\n    Points Possible,,,,100\n"
    grades.write_text(head + "".join(f"Somebody,{row},{row},S,\n" for row in (A1, A2, B1, B4)))
    to = tmp_path / "term"
    text = command(term, "--to", to, "--export", "canvas", "--into", grades, "--column", "Total").output
    filled = (to / "gradebook.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in filled[2:]] == ["87.75", "79", "", ""]
    assert f"{B1} has no grade (lab3: awaiting report)" in text
    assert grades.read_text().count("79") == 0, "the LMS's own file stays as it is"
    export = ("--export", "canvas", "--column", "Total", "--into")
    replaced = command(term, "--to", tmp_path, *export, grades, code=2).output
    assert "stays as the LMS made it, and this would replace it" in replaced
    table = grades.rename(tmp_path / "totals.csv")
    clash = command(term, "--to", to, *export, table, code=2).output
    assert "totals.csv is written by this command anyway. Rename" in clash


def test_what_is_decided_later_closes_the_ranges(tmp_path: Path, term: Term) -> None:
    """The report of G3 is marked, and who handed in nothing is ruled on. It comes last, as it adds rows."""
    term.mark("lab3", 12, student=B2)  # 112 of 120
    with term.book("lab1") as opened:
        rule(term.session("lab1", opened), [B3], why="Nothing came.", lift=False)
    with term.book("lab3") as opened:
        rule(term.session("lab3", opened), [B3, B4], why="Nothing came.", lift=False)
    got = totals(term)
    assert {one: got[one].points for one in (B1, B2, B3, B4)} == {
        B1: 88.67,  # 18 + 24 + 50 * 112/120 = 18 + 24 + 46.666...
        B2: 80.67,  # 10 + 24 + 46.666...
        B3: 18,  # 0 + 18 + 0
        B4: 24,  # 6 + 18 + 0
    }
    assert got[B4].risks == (Risk(RiskKind.CANNOT_PASS),)
    grades = command(term, "--to", tmp_path / "term", "--export", "moodle-gradebook").output
    assert re.search(r"8\s+totals exported", grades)
