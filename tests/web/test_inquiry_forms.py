"""Heads ask students about their work in the console, and say what follows, as the commands do."""

from dataclasses import replace

import pytest

from grader.decisions.asking_students import record_explanation
from grader.domain.edit import InquiryAsked, InquirySettled, Marked
from grader.grading.result_writer import Keeper
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord, record_text
from grader.results.session import ClassSession
from grader.web.access import StaffRole
from tests.web.conftest import NOW, SCRIPT
from tests.web.test_queue_page import seen

FIRST, OTHER = "400101206", "400101205"
ASK = {"student": FIRST, "about": "similar", "line": "homework.py:1"}


@pytest.fixture
def console(asking_desk, clock):
    from grader.web.access import Access
    from grader.web.listening import Listening
    from grader.web.visits import Console

    return Console(asking_desk, Access(asking_desk.out, clock), Listening(), 8765, clock)


@pytest.fixture
def desk(asking_desk, class_evidence):
    """The class that needs people, with a source of the one who claims too much, and a pair."""
    evidence = replace(
        asking_desk.book.evidence(FIRST), source={"homework.py": f"x = '{SCRIPT}'\n"}, code_file="homework.py"
    )
    Keeper(asking_desk.assignment, asking_desk.book, asking_desk.out, "ta1").kept(evidence, {}, NOW)
    pair = PairRecord(one=FIRST, other=OTHER, before=False, says="98 % of their own code")
    record = SimilarityRecord(
        assignment=asking_desk.assignment.id, compared_at=NOW, submissions=2, threshold=0.5, pairs=[pair]
    )
    (asking_desk.out / "similarity.json").write_text(record_text(record), "utf-8")
    return asking_desk


@pytest.fixture
def head(desk, come):
    return come("head", StaffRole.HEAD)


def entries(desk, kind):
    return [edit for edit in desk.book.edits() if isinstance(edit, kind)]


def recorded(head, kind, **fields):
    preview = head.post(f"/decide/{kind}/preview", **fields)
    assert preview.status_code == 200, preview.text
    answer = head.post(f"/decide/{kind}", seen=seen(preview), **fields)
    assert answer.status_code == 303
    return answer


def test_markers_can_do_nothing_of_it(come, desk):
    ta = come("ta1")
    assert ta.post("/decide/inquire", **ASK).status_code == 403
    assert ta.post("/decide/settle", student=FIRST, outcome="confirmed", why="x").status_code == 403
    assert entries(desk, InquiryAsked) == []


def test_the_queue_leads_to_the_question_for_each_of_a_pair(head):
    page = head.get("/queue").text
    for student in (FIRST, OTHER):
        assert f"/decide/inquire?student={student}&amp;about=similar" in page
    assert f"/decide/inquire?student={FIRST}&amp;about=claims" not in page
    assert f"/decide/inquire?student={FIRST}&amp;about=claim" in page
    form = head.get(f"/decide/inquire?student={FIRST}&about=similar").text
    assert '<option value="similar" selected>' in form


def test_it_is_asked_answered_and_settled(head, desk, clock):
    recorded(head, "inquire", **ASK)
    [asked] = entries(desk, InquiryAsked)
    assert (asked.who, asked.student_id, asked.place) == ("head", FIRST, "homework.py:1")
    page = head.get("/queue?done=inquire").text
    assert "A question about the work is open" in page and "Publish the report again" in page
    settle = {
        "student": FIRST,
        "outcome": "confirmed",
        "item": "model",
        "points": "3",
        "why": "Not your own.",
    }
    early = head.post("/decide/settle/preview", **settle)
    assert early.status_code == 422 and "has not answered question 1" in early.text
    session = ClassSession(desk.out, desk.book, desk.assignment, FIRST, clock)
    record_explanation(session, FIRST, 1, f"From week 3 {SCRIPT}")
    page = head.get("/queue").text
    assert "answered: From week 3" in page and SCRIPT not in page
    preview = head.post("/decide/settle/preview", **settle)
    assert "1\u00a0total would change" in preview.text
    assert entries(desk, InquirySettled) == [] and entries(desk, Marked) == []
    recorded(head, "settle", **settle)
    [settled], [mark] = entries(desk, InquirySettled), entries(desk, Marked)
    assert (settled.target, settled.points, settled.number) == ("model", 3.0, 1)
    assert (mark.student_id, mark.points, mark.why) == (FIRST, 3.0, "Not your own.")
    recorded(head, "settle", student=FIRST, number="1", outcome="none", why="It is.")
    assert entries(desk, InquirySettled)[-1].outcome is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "fields", "fault"),
    [
        ("inquire", {**ASK, "line": ""}, "Say which line"),
        ("inquire", {**ASK, "about": "x"}, "Choose what the question is about"),
        ("inquire", {**ASK, "question": f"Is it from {OTHER}?"}, f"names {OTHER}"),
        ("settle", {"student": FIRST, "outcome": "x", "why": "x"}, "Choose what follows"),
        ("settle", {"student": FIRST, "outcome": "dismissed", "why": "x"}, "open question"),
        ("settle", {"student": FIRST, "number": "a", "outcome": "dismissed", "why": "x"}, "is no number of"),
        ("settle", {"student": FIRST, "number": "1", "outcome": "dismissed", "why": "x"}, "There is none."),
        ("settle", {"student": FIRST, "outcome": "confirmed", "points": "a", "why": "x"}, "is no number"),
    ],
)
def test_what_makes_no_sense_is_refused(head, desk, kind, fields, fault):
    rows = len(desk.book.edits())
    refused = head.post(f"/decide/{kind}/preview", **fields)
    assert refused.status_code == 422 and fault in refused.text
    assert len(desk.book.edits()) == rows
