"""The queue of what needs a person: for heads, with previews that record nothing."""

import re
from dataclasses import replace
from datetime import datetime

import pytest

from grader.domain.edit import Marked, RegradeAnswered, RegradeAsked, Released, Ruled, Waived
from grader.domain.submission import Role
from grader.grading.result_writer import Keeper
from grader.marking.audit_log import audit_log
from grader.web.access import Access, StaffRole
from grader.web.listening import Listening
from grader.web.visits import Console
from tests.web.conftest import NOW

MISSING, REFUSED, LATE = "400101202", "400101203", "400101205"


@pytest.fixture
def console(asking_desk, clock):
    return Console(asking_desk, Access(asking_desk.out, clock), Listening(), 8765, clock)


@pytest.fixture
def head(come):
    return come("head", StaffRole.HEAD)


def seen(answer):
    return re.search(r'name="seen" value="([^"]+)"', answer.text)[1]


def decided(head, kind, **fields):
    """The answer to a decision after its preview."""
    preview = head.post(f"/decide/{kind}/preview", **fields)
    assert preview.status_code == 200, preview.text
    return head.post(f"/decide/{kind}", seen=seen(preview), **fields)


def test_the_queue_is_for_heads(come):
    ta = come("ta1")
    assert ta.get("/queue").status_code == 403 and ta.get(f"/students/{MISSING}").status_code == 403
    assert ta.post("/decide/regrade").status_code == 403
    assert ta.post("/decide/rule/preview", student=MISSING, why="x").status_code == 403


def test_everything_that_needs_a_person_is_there_and_runs_nothing(head):
    page = head.get("/queue").text
    for cause in ("refused", "incomplete", "fallen", "owner", "suspect-checks", "claims", "marks"):
        assert f'id="{cause}"' in page, cause
    assert "<script>document" not in page and "<img" not in page and "&lt;script&gt;" in page


def test_a_preview_records_nothing(head, asking_desk):
    before = asking_desk.book.state()
    preview = head.post("/decide/rule/preview", student=MISSING, why="Nothing came.")
    assert (
        preview.status_code == 200 and MISSING in preview.text and "1\u00a0total would change" in preview.text
    )
    assert asking_desk.book.state() == before


def test_a_decision_is_recorded_as_it_was_shown(head, asking_desk):
    answer = decided(head, "rule", student=MISSING, why="Nothing came.")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue?done=rule&changed=1")
    assert asking_desk.book.totals(MISSING)[-1].points == 0
    assert 'id="incomplete"' not in head.get("/queue").text
    assert any("Give 0 points: student=400101202" in one.detail for one in audit_log(asking_desk))


def test_what_changed_meanwhile_is_shown_again(head, asking_desk):
    check = asking_desk.assignment.checks[0].id
    fields = {"check": check, "why": "The handout did not ask for it."}
    preview = head.post("/decide/waive/preview", **fields)
    decided(head, "rule", student=MISSING, why="Nothing came.")
    stale = head.post("/decide/waive", seen="0" * 64, **fields)
    assert stale.status_code == 409 and "The class changed meanwhile" in stale.text
    assert not any(isinstance(edit, Waived) for edit in asking_desk.book.edits())
    assert head.post("/decide/waive", seen=seen(stale), **fields).status_code == 303
    assert preview.status_code == 200


def test_files_that_came_meanwhile_are_not_ruled_on_unseen(head, asking_desk, class_evidence):
    fields = {"student": MISSING, "why": "Nothing came."}
    preview = head.post("/decide/rule/preview", **fields)
    later = replace(class_evidence(MISSING, missing=(Role.REPORT,)), submission_digest="later")
    Keeper(asking_desk.assignment, asking_desk.book, asking_desk.out, "ta1").kept(later, {}, NOW)
    stale = head.post("/decide/rule", seen=seen(preview), **fields)
    assert stale.status_code == 409 and "The class changed meanwhile" in stale.text
    assert not any(isinstance(edit, Ruled) for edit in asking_desk.book.edits())
    assert head.post("/decide/rule", seen=seen(stale), **fields).status_code == 303


def test_a_released_grade_falls_only_if_that_is_allowed(head, asking_desk, come):
    decided(head, "lift", student=MISSING, why="It counts.")
    points = asking_desk.book.totals(MISSING)[-1].points
    when = datetime.fromisoformat("2026-02-02T12:00:00+00:00")
    released = Released(who="ta1", when=when, why="", student_id=MISSING, way="publish", points=points)
    assert asking_desk.book.append([released], [], after=asking_desk.book.state()) is not None
    fields = {"student": MISSING, "why": "No."}
    answer = decided(head, "rule", **fields)
    assert answer.status_code == 409 and "would fall" in answer.text
    assert asking_desk.book.totals(MISSING)[-1].points == points
    again = head.post("/decide/rule", seen=seen(answer), allow_lower="yes", **fields)
    assert again.status_code == 303 and asking_desk.book.totals(MISSING)[-1].points == 0


def test_a_request_is_answered_in_the_queue(head, asking_desk):
    asked = RegradeAsked(
        who="head",
        when=datetime.fromisoformat("2026-02-02T12:00:00+00:00"),
        why="Part b is on page 4 <script>x</script>.",
        student_id=LATE,
        target="q6",
        asked=datetime.fromisoformat("2026-02-02T12:00:00+00:00"),
        points=None,
    )
    assert asking_desk.book.append([asked], [], after=asking_desk.book.state()) is not None
    page = head.get("/queue").text
    assert 'id="requests"' in page and "q6: Part b is on page 4 &lt;script&gt;" in page
    assert f"/decide/answer?student={LATE}" in page
    refused = head.post("/decide/answer/preview", student=LATE, points="many", why="x")
    assert refused.status_code == 422 and "is no number" in refused.text
    answer = decided(head, "answer", student=LATE, item="", points="3", why="It is.")
    assert answer.status_code == 303
    given = [edit for edit in asking_desk.book.edits() if isinstance(edit, RegradeAnswered | Marked)]
    assert [(edit.target, edit.points) for edit in given if edit.who == "head"] == [("q6", 3), ("q6", 3)]
    assert 'id="requests"' not in head.get("/queue").text
    again = head.post("/decide/answer/preview", student=LATE, why="x")
    assert again.status_code == 422 and "has no open request" in again.text.replace("&#39;", "'")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("rule", {"student": "400101201", "why": "x"}, "is complete"),
        ("rule", {"student": MISSING, "why": " "}, "Why is empty. Fill it in."),
        ("owner", {"upload": "nonsense", "student": "4", "why": "x"}, "has no upload"),
        ("owner", {"upload": "moodle-77", "student": "400101201", "why": "x"}, "has a submission already"),
        ("waive", {"check": "nonsense", "why": "x"}, "has no check"),
        ("received", {"student": LATE, "moment": "yesterday", "why": "x"}, "is not a date"),
        ("claim", {"student": LATE, "accuracy": "much", "why": "x"}, "not an accuracy"),
        ("run", {"student": LATE, "number": "9", "why": "x"}, "There is no run"),
        ("accept", {"student": MISSING, "file": "x.docx", "why": "x"}, "set aside"),
        ("undo", {"decision": "99", "why": "x"}, "no such decision"),
        ("nonsense", {}, "There is no such decision"),
    ],
)
def test_what_is_not_allowed_is_said_and_nothing_is_recorded(head, asking_desk, kind, fields, sentence):
    before = asking_desk.book.state()
    for address in (f"/decide/{kind}/preview", f"/decide/{kind}"):
        answer = head.post(address, **fields)
        assert answer.status_code == 422 and sentence in answer.text.replace("&#39;", "'")
    assert asking_desk.book.state() == before


def test_a_decision_is_taken_back_by_another(head, asking_desk):
    decided(head, "rule", student=MISSING, why="Nothing came.")
    link = re.search(r'href="/decide/undo\?decision=(\d+)"', head.get("/queue").text)
    edits = len(asking_desk.book.edits())
    assert decided(head, "undo", decision=link[1], why="A mistake.").status_code == 303
    assert asking_desk.book.totals(MISSING)[-1].points is None
    assert len(asking_desk.book.edits()) == edits + 1 and 'id="incomplete"' in head.get("/queue").text


def test_opening_a_students_page_is_recorded(head, asking_desk):
    assert head.get(f"/students/{MISSING}").status_code == 200
    assert any(f"opened the page of {MISSING}" in one.detail for one in audit_log(asking_desk))
    assert head.get("/students/400109999").status_code == 404


def test_no_preview_without_the_token(head, asking_desk):
    answer = head.client.post("/decide/rule", data={"student": MISSING, "why": "x"})
    assert answer.status_code == 403 and asking_desk.book.totals(MISSING)[-1].points is None
