"""Which results a term is made of: what is refused, what a gradebook holds besides, and what is forgotten."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.edit import Released
from grader.domain.errors import UsageError
from grader.domain.submission import Role
from grader.domain.term_total import PartState
from grader.gradebook.forgotten_rows import PersonalRecords
from grader.results.folder_use import EXPORT
from grader.term.graded_assignments import TermRequest
from grader.term.written_term import TermResult, term_result
from tests.scripted_terms import DAY, START, Term

HER, HIM = "400101204", "400101205"
TOTAL = "[total]\nweights = { lab1 = 40, lab2 = 60 }\n"
NOW = START + 9 * DAY


@pytest.fixture
def term(tmp_path: Path) -> Term:
    """Two assignments, of which both students handed in the first."""
    made = Term(tmp_path)
    made.course(TOTAL)
    for name in ("lab1", "lab2"):
        made.assignment(name, START, "[late]\npoints_per_day = 10\n")
    for student_id, passed in ((HER, 10), (HIM, 5)):
        made.hand_in("lab1", START - DAY, passed, student=student_id)
    return made


def result(term: Term, *outs: Path, book: bool = True, to: Path | None = None) -> TermResult:
    url = f"sqlite:///{term.root / 'course.sqlite'}" if book else None
    return term_result(TermRequest(outs, term.root / "course", url), now=NOW, to=to)


def test_what_is_not_graded_yet_makes_a_range(term: Term) -> None:
    her, him = result(term, term.out("lab1")).totals
    assert (her.points, her.low, her.high, him.low, him.high) == (None, 40, 100, 20, 80)
    assert her.parts[1].state is PartState.NOT_GRADED and not her.risks and her.so_far == 1


def test_the_page_says_how_far_each_assignment_is(term: Term, tmp_path: Path) -> None:
    def states() -> list[str]:
        result(term, term.out("lab1"), to=tmp_path / "term")
        page = (tmp_path / "term" / "index.html").read_text()
        return [cell.replace("\u00a0", " ") for cell in re.findall(r"</td><td>([^<]*)</td></tr>", page)[:2]]

    assert states() == ["2 grades, none released", "not graded yet, due 2026-03-01 12:00 UTC"]
    released = Released(who="ta1", when=NOW, why="", student_id=HER, way="publish", points=100.0)
    with term.book("lab1") as book:
        book.add_owner_edits([released])
    term.hand_in("lab1", START - DAY, 5, student="400101206", missing=(Role.CODE,))
    assert states()[0] == "being marked, 1 of 3 open, 1 of 3 released"


def test_a_gradebook_holds_more_than_the_folders_that_were_named(term: Term) -> None:
    term.hand_in("lab2", START - DAY, 10, student=HER)
    her = result(term, term.out("lab1")).totals[0]
    assert her.points == 100


def test_late_days_are_used_in_assignments_without_a_weight_too(tmp_path: Path) -> None:
    """As reports count them; one that was taken out of the course since uses none there either."""
    made = Term(tmp_path)
    made.course(f"[late]\ntokens = 3\n{TOTAL}")
    late = "[late]\npoints_per_day = 10\n"
    for name, due in (("lab0", START), ("lab1", START + 7 * DAY), ("lab2", START + 14 * DAY)):
        made.assignment(name, due, late)
    made.hand_in("lab0", START + 2 * DAY, 10, student=HER)
    for student_id in (HER, HIM):
        made.hand_in("lab1", START + 8 * DAY, 10, student=student_id)
    assert [total.late_days_left for total in result(made, made.out("lab1")).totals] == [0, 2]
    shutil.rmtree(tmp_path / "course" / "reference" / "lab0")
    made.regrade("lab1")
    assert [total.late_days_left for total in result(made, made.out("lab1")).totals] == [2, 2]


def test_an_assignment_of_the_future_need_not_exist(term: Term) -> None:
    term.course(TOTAL.replace("lab2", "exam"))
    made = result(term, term.out("lab1"))
    assert made.totals[0].high == 100 and made.remarks == ("The course has no assignment 'exam' yet.",)


def test_a_student_is_one_person_however_the_list_writes_the_id(term: Term) -> None:
    """Excel drops leading zeros; here it is the list that has more of them."""
    term.course(f'{TOTAL}[people]\nstudents = "students.csv"\n')
    (term.root / "course" / "students.csv").write_text(f"student_id,section\n00{HER},A\n00{HIM},B\n")
    made = result(term, term.out("lab1"))
    assert [(one.student_id, one.section, one.listed) for one in made.totals] == [
        (HER, "A", True), (HIM, "B", True)
    ]  # fmt: skip
    assert not made.remarks


def test_who_is_only_on_the_list_of_a_download_is_in_the_term(term: Term) -> None:
    absent = "400101299"
    term.list_class("lab1", [HER, absent])
    third = result(term, term.out("lab1")).totals[2]
    assert (third.student_id, third.parts[0].state, third.high) == (absent, PartState.NOTHING, 100)


def test_what_cannot_be_meant_is_refused(term: Term, tmp_path: Path) -> None:
    lab1 = term.out("lab1")
    with pytest.raises(UsageError, match=r"empty: holds no results\. Give the --out folders"):
        result(term, tmp_path / "empty")
    with pytest.raises(UsageError, match="both hold 'lab1'"):
        result(term, lab1, lab1)
    with pytest.raises(UsageError, match=r"in another gradebook than gradebook\.sqlite in it"):
        result(term, lab1, book=False)
    term.course("[total]\nweights = { lab = 40 }\n")
    with pytest.raises(UsageError, match=r"holds 'lab1', which has no weight .* Did you mean 'lab'\?"):
        result(term, lab1)
    term.course()
    with pytest.raises(UsageError, match=r"does not say what the assignments are worth"):
        result(term, lab1)


def test_a_rule_that_changed_since_the_reports_is_told(term: Term) -> None:
    term.hand_in("lab1", START + DAY, 10, student=HER)
    term.assignment("lab1", START, "[late]\npoints_per_day = 20\n")
    with pytest.raises(UsageError, match=r"lab1: 400101204: .* Run `grader regrade` first"):
        result(term, term.out("lab1"))


def test_who_is_forgotten_leaves_the_course_page_too(term: Term, tmp_path: Path) -> None:
    to = tmp_path / "term"
    result(term, term.out("lab1"), to=to)
    assert all(HER.encode() in path.read_bytes() for path in to.iterdir())
    where = ("--gradebook", f"sqlite:///{term.root / 'course.sqlite'}", "--course", str(term.root / "course"))
    done = CliRunner().invoke(cli, ["forget", str(term.out("lab1")), HER, "--yes", *where])
    assert done.exit_code == 0, done.output
    left = [path for path in tmp_path.rglob("*") if path.is_file() and HER.encode() in path.read_bytes()]
    assert not left
    assert all(HIM.encode() in path.read_bytes() for path in to.iterdir())


def test_only_its_own_files_are_cleaned_in_a_folder_that_was_there(term: Term, tmp_path: Path) -> None:
    """`--to .` stands in the folder of whoever gives it; and a folder that could not be made is not noted."""
    to, students = tmp_path / "mine", f"student_id,section\n{HER},A\n{HIM},B\n"
    to.mkdir()
    (to / "students.csv").write_text(students)
    result(term, term.out("lab1"), to=to)
    with pytest.raises(UsageError, match=r"Give another place with --to"):
        result(term, term.out("lab1"), to=to / "students.csv" / "term")
    url = f"sqlite:///{term.root / 'course.sqlite'}"
    records = PersonalRecords(term.out("lab1"), url)
    noted = [place.path for place in records.places() if place.kind == EXPORT]
    records.close()
    assert noted == [to / "index.html", to / "totals.csv"]
    where = ("--gradebook", url, "--course", str(term.root / "course"))
    done = CliRunner().invoke(cli, ["forget", str(term.out("lab1")), HER, "--yes", *where])
    assert done.exit_code == 0, done.output
    assert (to / "students.csv").read_text() == students
    assert HER not in (to / "index.html").read_text() + (to / "totals.csv").read_text()
