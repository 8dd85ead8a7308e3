"""Decisions in the console are quick, and the files of the results folder follow them, whatever is killed."""

import re
import shutil

import pytest

from grader.domain.edit import Waived
from grader.files import atomic
from grader.gradebook import Gradebook, row_records
from grader.gradebook import gradebook as gradebook_module
from grader.marking.desk import Desk, assignment_now, refresh
from grader.results import kept_scores
from grader.results.class_pages import FILE, ClassPages, are_behind, caught_up, write_pages
from grader.web import delayed_pages
from grader.web.access import Access, StaffRole
from grader.web.delayed_pages import DelayedPages
from grader.web.listening import Listening
from grader.web.visits import Console
from tests.web.conftest import NOW
from tests.web.test_queue_page import LATE, MISSING, decided

DECISIONS = {
    "rule": {"student": MISSING, "why": "Nothing came."},
    "owner": {"upload": "moodle-77", "student": "400101208", "why": "By the list."},
    "waive": {"why": "The handout did not ask for it."},  # with the check that most fail
    "received": {"student": LATE, "moment": "in-time", "why": "By mail."},
    "claim": {"student": "400101206", "accuracy": "70", "why": "Page 3."},
    "run": {"student": "400101207", "number": "1", "why": "The first."},
}


@pytest.fixture
def console(asking_desk, clock):
    write_pages(asking_desk.assignment, asking_desk.book, asking_desk.out, NOW)
    return Console(asking_desk, Access(asking_desk.out, clock), Listening(), 8765, clock)


@pytest.fixture
def head(come):
    return come("head", StaffRole.HEAD)


def fields_of(kind, desk):
    check = next(spec.id for spec in desk.assignment.checks if spec.component == "Attention")
    return {**DECISIONS[kind], **({"check": check} if kind == "waive" else {})}


def files(out):
    """All that people read, without the moments at which it was written."""
    return {
        path.relative_to(out).as_posix(): re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d( UTC)?", b"", path.read_bytes())
        for path in sorted(out.rglob("*"))
        if path.is_file() and (path.suffix in (".html", ".csv", ".json")) and "console" not in path.parts
    }


def written_anew(desk, tmp_path):
    """What all files of the class would be if they were made from nothing but the gradebook."""
    other = tmp_path / "anew"
    shutil.copytree(desk.out, other)
    for path in [*other.rglob("*.html"), other / "results.json", other / "scores.csv", other / FILE]:
        path.unlink()
    with Gradebook(other) as book:
        write_pages(desk.assignment, book, other, NOW, only_changed=False)
    return files(other)


def test_a_decision_about_one_reads_nobody_s_work_scores_one_and_writes_no_file(
    head, asking_desk, monkeypatch
):
    head.get("/queue")
    scored, read, written = [], [], []
    score, read_evidence, write_pieces = kept_scores.score, row_records.read_evidence, atomic.write_pieces
    monkeypatch.setattr(
        kept_scores, "score", lambda *of, **more: scored.append(of[1].student_id) or score(*of, **more)
    )
    for module in (row_records, gradebook_module):
        monkeypatch.setattr(module, "read_evidence", lambda row: read.append(row) or read_evidence(row))
    monkeypatch.setattr(
        atomic,
        "write_pieces",
        lambda path, *of, **more: written.append(path) or write_pieces(path, *of, **more),
    )
    assert decided(head, "claim", **fields_of("claim", asking_desk)).status_code == 303
    assert (set(scored), read, written) == ({"400101206"}, [], [])
    scored.clear()
    head.get("/queue")
    assert scored == [], "the queue has it from the decision"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", DECISIONS)
def test_pages_follow_when_people_pause(head, asking_desk, clock, tmp_path, kind):
    pages = DelayedPages(asking_desk, clock)
    before = files(asking_desk.out)
    assert decided(head, kind, **fields_of(kind, asking_desk)).status_code == 303
    pages.look()
    assert files(asking_desk.out) == before, "somebody just decided something"
    pages.look()
    after = files(asking_desk.out)
    assert after != before and after == written_anew(asking_desk, tmp_path)
    assert not are_behind(asking_desk.book, asking_desk.out, asking_desk.assignment.id)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", DECISIONS)
def test_after_a_kill_whoever_comes_next_writes_them(head, asking_desk, clock, tmp_path, kind):
    assert decided(head, kind, **fields_of(kind, asking_desk)).status_code == 303
    with Gradebook(asking_desk.out) as book:  # the console is gone
        assert caught_up(asking_desk.assignment, book, asking_desk.out, clock) is not None
        assert caught_up(asking_desk.assignment, book, asking_desk.out, clock) is None
    assert files(asking_desk.out) == written_anew(asking_desk, tmp_path)


def test_the_next_console_writes_what_a_killed_one_left(head, asking_desk, clock, tmp_path):
    decided(head, "claim", **fields_of("claim", asking_desk))
    pages = DelayedPages(asking_desk, clock)
    pages.look()
    assert files(asking_desk.out) == written_anew(asking_desk, tmp_path)


@pytest.mark.parametrize("is_killed", [False, True], ids=["paused", "killed"])
def test_scoring_again_writes_every_page_also_where_no_total_changes(
    head, asking_desk, clock, tmp_path, is_killed
):
    pages, out = DelayedPages(asking_desk, clock), asking_desk.out
    reports = [out / "students" / one / "report.html" for one in (MISSING, LATE)]
    for report in reports:
        report.write_text("by an older grader", encoding="utf-8")
    for _ in range(2):  # asking twice is one writing
        assert decided(head, "regrade").status_code == 303
    if is_killed:
        with Gradebook(out) as book:
            assert caught_up(asking_desk.assignment, book, out, clock) is not None
    else:
        pages.look()
        pages.look()
    assert all("older grader" not in report.read_text("utf-8") for report in reports)
    assert files(out) == written_anew(asking_desk, tmp_path)
    assert not are_behind(asking_desk.book, out, asking_desk.assignment.id)


def test_scoring_again_while_pages_are_written_is_not_forgotten(head, asking_desk, clock, monkeypatch):
    pages, out = DelayedPages(asking_desk, clock), asking_desk.out
    report = out / "students" / LATE / "report.html"
    decided(head, "regrade")
    write_reports = ClassPages.write_reports

    def meanwhile(*of):
        monkeypatch.undo()
        count = write_reports(*of)
        report.write_text("by an older grader", encoding="utf-8")
        decided(head, "regrade")
        return count

    monkeypatch.setattr(ClassPages, "write_reports", meanwhile)
    pages.look(is_last=True)
    assert are_behind(asking_desk.book, out, asking_desk.assignment.id)
    pages.look(is_last=True)
    assert "older grader" not in report.read_text("utf-8")
    assert not are_behind(asking_desk.book, out, asking_desk.assignment.id)


@pytest.mark.slow
def test_people_who_never_pause_do_not_keep_pages_back(head, asking_desk, clock):
    pages = DelayedPages(asking_desk, clock)
    for number in range(delayed_pages.MOST_LOOKS):
        assert are_behind(asking_desk.book, asking_desk.out, asking_desk.assignment.id) == (number > 0)
        decided(head, "claim", student="400101206", accuracy=str(10 + number), why="Page 3.")
        pages.look()
    assert not are_behind(asking_desk.book, asking_desk.out, asking_desk.assignment.id)


def test_pages_of_another_rubric_wait_until_the_class_is_scored_again(asking_desk, clock):
    out, assignment = asking_desk.out, asking_desk.assignment
    write_pages(assignment, asking_desk.book, out, NOW)
    check = next(spec.id for spec in assignment.checks if spec.component == "Attention")
    waiver = Waived(who="ta1", when=NOW, why="It was wrong.", check=check)
    before = files(out)
    # recorded without the totals that follow, as if the rubric had changed after a kill
    assert asking_desk.book.append([waiver], [], after=asking_desk.book.state()) is not None
    opened = Desk(out, asking_desk.book, assignment)
    refresh(opened)
    pages = DelayedPages(opened, clock)
    for _ in range(3):
        pages.look()
    assert files(out) == before and assignment_now(opened).id == assignment.id
