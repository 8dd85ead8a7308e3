"""Marking in pages, as forms send it: marks, conflicts, drafts, skipping, and what stays hidden."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest

from grader.domain.edit import Marked, Released
from grader.domain.submission import ANSWERS_TEXT_FILE, Answers, DrawnPage, Origin
from grader.grading.result_writer import Keeper
from grader.marking.audit_log import Action, audit_log
from grader.marking.desk import handle_of, refresh, students_of
from grader.marking.mark_saving import opened_task
from grader.marking.second_marking import choose_second
from grader.marking.task_list import next_unmarked, task_lines
from grader.web.access import StaffRole
from grader.web.delayed_pages import DelayedPages
from grader.web.hidden_words import HIDDEN
from grader.web.shown_work import page_of_question
from tests.web.conftest import NOW, page_picture

STUDENT = "400101201"
NAME = "Zahra Mirzakhani"


@pytest.fixture
def task(desk):
    """The address of a student's task: `task("q6")`."""

    def address(target="q6", student_id=STUDENT):
        return f"/questions/{target}/{handle_of(desk, student_id)}"

    return address


def marks(desk, target="q6", student_id=STUDENT):
    """The points that the gradebook has."""
    return [
        edit.points
        for edit in desk.book.edits()
        if isinstance(edit, Marked) and (edit.student_id, edit.target) == (student_id, target)
    ]


def test_the_first_page_counts_questions_and_markers(come, desk, task):
    ta = come("ta1")
    before = re.search(r"0 of (\d+)\sanswers are marked", ta.get("/").text)[1]
    ta.post(f"{task()}/save", version="0", points="4")
    page = ta.get("/").text
    assert re.search(rf"1 of {before}\sanswers are marked, 1 by you", page) and "1 of 12" in page
    assert re.search(r'<th scope="row">ta1</th>\s*<td>q6</td>\s*<td class="number">1</td>', page)


def test_a_mark_is_saved_and_the_next_unmarked_one_opens(come, desk, task):
    ta = come("ta1")
    first = next_unmarked(desk, "q6", "ta1", desk_now(desk))
    answer = ta.post(f"/questions/q6/{first}/save", version="0", item="no_order", comment="Good otherwise.")
    assert answer.status_code == 303
    lines = [line.handle for line in task_lines(desk, "q6", "ta1", desk_now(desk))]
    assert answer.headers["location"] == f"/questions/q6/{lines[1]}"
    [student] = students_of(desk, first)
    assert marks(desk, student_id=student) == [3.5]
    mark = opened_task(desk, "q6", first, "ta1").mark
    assert (
        mark.marker == "ta1" and mark.comment == "Good otherwise." and dict(mark.items) == {"no_order": -1.5}
    )


def desk_now(desk):
    from datetime import UTC, datetime

    return datetime.now(UTC)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "Choose a rubric item, or type points"),
        ({"points": "6"}, "is not from 0 to 5"),
        ({"points": "four"}, "is not a number"),
        ({"points": "nan"}, "not a number"),
        ({"item": "no_order", "adjustment": "0.5"}, "Say why"),
        ({"item": "unknown"}, "no rubric item"),
        ({"points": "3", "comment": "x" * 6000}, "At most 5000"),
    ],
    ids=str,
)
def test_what_is_not_a_mark_is_shown_again_with_what_was_typed(come, desk, task, fields, sentence):
    answer = come("ta1").post(f"{task()}/save", version="0", comment_kept="", **fields)
    assert answer.status_code == 422 and sentence in unescape(answer.text)
    assert marks(desk) == []
    if "points" in fields:
        assert f'value="{fields["points"]}"' in answer.text


def test_points_are_typed_as_people_write_them(come, desk, task):
    come("ta1").post(f"{task()}/save", version="0", points="2,5")
    assert marks(desk) == [2.5]


def test_an_item_that_was_removed_stays_in_the_form_of_a_mark_that_has_it(come, desk, task):
    """A browser sends all that is checked: who adds a comment changes no points."""
    ta = come("ta1")
    ta.post(f"{task()}/save", version="0", item=["no_order", "no_example"])
    path = desk.assignment.folder / "marking.toml"
    path.write_text(path.read_text().replace("no_order", "other").replace("-1.5", "-3"), encoding="utf-8")
    page = ta.get(task()).text
    boxes = dict(re.findall(r'<input type="checkbox" name="item" value="(\w+)"([^>]*)>', page))
    assert {name for name, box in boxes.items() if "checked" in box} == {"no_order", "no_example"}
    assert 'data-points="-1.5"' in boxes["no_order"] and "data-digit" not in boxes["no_order"]
    assert "Order is not named." in page.partition("No longer in the rubric")[2]
    form = {"version": ta.version(task()), "comment": "Well written.", "item": ["no_order", "no_example"]}
    assert ta.post(f"{task()}/save", **form).status_code == 303
    assert marks(desk) == [2.5, 2.5]
    assert "No longer in the rubric" not in ta.get(task(student_id="400101202")).text


def test_a_second_mark_with_a_removed_item_is_shown_with_its_points(come, desk, task):
    """Nobody knows what the item was worth in it."""
    ta = come("ta2")
    choose_second(desk, "q6", 1, ["ta2"], desk_now(desk), by="head")
    ta.post(f"{task()}/save", version="0", item="no_order")
    assert 'id="points" inputmode="decimal" autocomplete="off" size="6" value=""' in ta.get(task()).text
    path = desk.assignment.folder / "marking.toml"
    path.write_text(path.read_text().replace("no_order", "other"), encoding="utf-8")
    assert 'id="points" inputmode="decimal" autocomplete="off" size="6" value="3.5"' in ta.get(task()).text


def test_who_saves_second_sees_both_and_chooses(come, desk, task):
    one, other = come("ta1"), come("ta2")
    version = other.version(task())
    assert (
        one.post(f"{task()}/save", version=one.version(task()), points="4", comment="Mine.").status_code
        == 303
    )
    answer = other.post(f"{task()}/save", version=version, points="2", comment="Another view.")
    assert answer.status_code == 409 and "ta1 saved a mark meanwhile" in answer.text
    assert "Mine." in answer.text and "Another view." in answer.text and 'value="2"' in answer.text
    assert marks(desk) == [4.0]
    newer = re.search(r'name="version" value="(\d+)"', answer.text)[1]
    assert other.post(f"{task()}/save", version=newer, points="2", comment="Another view.").status_code == 303
    assert marks(desk) == [4.0, 2.0]


def test_the_rubric_items_of_the_other_are_seen(come, desk, task):
    one, other = come("ta1"), come("ta2")
    one.post(f"{task()}/save", version="0", item="no_order")
    answer = other.post(f"{task()}/save", version="0", item="no_example")
    theirs = answer.text.partition('id="conflict"')[2].partition("keep-theirs")[0]
    assert "Order is not named." in theirs and "-1.5" in theirs and "There is no example." not in theirs


def test_keeping_theirs_drops_the_own_draft(come, desk, task):
    one, other = come("ta1"), come("ta2")
    one.post(f"{task()}/save", version="0", points="4")
    assert other.post(f"{task()}/save", version="0", points="2").status_code == 409
    assert opened_task(desk, "q6", handle_of(desk, STUDENT), "ta2").draft is not None
    assert other.post(f"{task()}/keep-theirs").status_code == 303
    assert marks(desk) == [4.0] and opened_task(desk, "q6", handle_of(desk, STUDENT), "ta2").draft is None


def test_a_draft_comes_back_and_is_nobody_else_s(come, desk, task):
    ta = come("ta1")
    assert ta.post(f"{task()}/draft", version="0", item="no_example", comment="Half a sent").json()["kept"]
    page = ta.get(task()).text
    assert "Half a sent" in page
    assert re.search(r"This is your draft of \d{4}-\d\d-\d\d \d\d:\d\d UTC\.", page)
    assert re.search(r'value="no_example"[^>]* checked', page)
    assert "Half a sent" not in come("ta2").get(task()).text
    assert marks(desk) == []
    ta.post(f"{task()}/discard-draft")
    assert "Half a sent" not in ta.get(task()).text


@pytest.fixture
def graded(desk, class_evidence):
    """`graded("later")`: the student's submission was examined, with files of that digest."""

    def examined(digest):
        pdf = Answers("a.pdf", "ab" * 32, 9, kept=False, pages=1, tried=1, drawn=(DrawnPage(1, 600, 780),))
        evidence = replace(class_evidence(STUDENT), submission_digest=digest, answers=pdf)
        keeper = Keeper(desk.assignment, desk.book, desk.out, "ta1")
        keeper.kept(evidence, {pdf.drawn[0].image: page_picture()}, NOW)

    return examined


def sent_as_opened(page):
    """The hidden fields of the form of a mark."""
    form = page.partition('id="mark"')[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', form))


def test_a_draft_for_files_that_were_replaced_says_so(come, task, graded):
    graded("first")
    ta = come("ta1")
    opened = sent_as_opened(ta.get(task()).text)
    ta.post(f"{task()}/draft", **opened, points="4", comment="Typed.")
    said = "It is about earlier files: others of this submission count since."
    assert said not in ta.get(task()).text
    graded("later")
    page = ta.get(task()).text
    assert said in page and "Typed." in page


def test_a_mark_for_files_that_were_replaced_meanwhile_is_not_taken_for_the_new_ones(
    come, desk, task, graded
):
    graded("first")
    ta, handle = come("ta1"), handle_of(desk, STUDENT)
    opened = sent_as_opened(ta.get(task()).text)
    graded("later")
    answer = ta.post(f"{task()}/save", **opened, points="4", comment="Typed.")
    assert answer.status_code == 422 and "Other files of this submission count" in answer.text
    assert "Typed." in answer.text and marks(desk) == []
    choose_second(desk, "q6", 1.0, ["ta2"], NOW, by="head")
    second = come("ta2").post(f"{task()}/save", **opened, points="4")
    assert second.status_code == 422 and "Other files" in second.text
    assert ta.post(f"{task()}/save", **sent_as_opened(answer.text), points="4").status_code == 303
    graded("later")  # the same files once more
    again = {**sent_as_opened(answer.text), "version": ta.version(task())}
    assert ta.post(f"{task()}/save", **again, points="3").status_code == 303
    assert marks(desk) == [4.0, 3.0] and opened_task(desk, "q6", handle, "ta1").mark.points == 3


def test_a_browser_that_keeps_pictures_shows_none_of_an_earlier_upload(come, desk, task, graded):
    ta, address = come("ta1"), r'<img src="(/submissions/[^"]+)"'
    pictures = []
    for digest in ("first", "later"):
        graded(digest)
        [picture] = re.findall(address, ta.get(task()).text)
        assert ta.get(unescape(picture)).content == page_picture()
        pictures.append(picture)
    assert pictures[0] != pictures[1]


def test_pages_are_blind(come, desk, task):
    """Neither ids nor names: in addresses, text, code, labels and file names."""
    ta = come("ta1")
    pages = ["/", "/questions/q6", task(), f"/submissions/{handle_of(desk, STUDENT)}"]
    for page in pages:
        text = ta.get(page).text
        assert STUDENT not in text and "Mirzakhani" not in text and "Zahra" not in text, page
        assert STUDENT not in page
    assert HIDDEN in ta.get(task()).text


def test_of_a_team_nobody_is_named(come, desk, class_evidence):
    """Whichever member wrote the names down, and even if another has handed in other work since."""
    names = {"400101201": "Anna Schmidt", "400101202": "Boris Kowalski", "400101203": "Chen Oyelaran"}
    keeper = Keeper(desk.assignment, desk.book, desk.out, "ta1")
    text = f"By {', '.join(names.values())} and 400101299 ({', '.join(names)})"
    for student, name in names.items():
        evidence = class_evidence(student, team=(*names, "400101299"), source={"homework.py": f"# {text}\n"})
        digest = "own" if student == "400101203" else "theirs"
        evidence = replace(
            evidence, submission_digest=digest, origin=Origin(person=name), code_file="homework.py"
        )
        evidence = replace(evidence, answers=Answers("a.pdf", "ab" * 32, 9, kept=True, pages=1, tried=1))
        keeper.kept(evidence, {ANSWERS_TEXT_FILE: json.dumps({"1": text}).encode()}, NOW)
    refresh(desk)
    ta, handle = come("ta1"), handle_of(desk, "400101201")
    page = ta.get(f"/questions/q6/{handle}").text
    assert HIDDEN in page and "handed in by 2 together" in page
    for word in (*names, "400101299", *" ".join(names.values()).split()):
        assert word not in page, word
        found = ta.get(f"/submissions/{handle}/search?search={word}").text
        assert "No page has these words" in found, word


def test_a_reveal_needs_a_reason_and_is_recorded(come, desk, task):
    ta = come("ta1")
    assert ta.post(f"{task()}/reveal", why=" ").status_code == 422
    answer = ta.post(f"{task()}/reveal", why="She asked me.")
    assert STUDENT in answer.text and NAME in answer.text
    [entry] = [entry for entry in audit_log(desk) if entry.action is Action.REVEALED]
    assert entry.who == "ta1" and "She asked me." in entry.detail
    log = come("head", StaffRole.HEAD).get("/log").text
    assert "revealed" in log and re.search(r"\d\d:\d\d:\d\d UTC</td>", log)


def test_what_students_write_does_nothing(come, task):
    text = come("ta1").get(task()).text
    assert "<script>document.title" not in text and not re.search(r"<[^>]*onerror", text)
    assert "&lt;script&gt;" in text
    assert not re.search(r"<img src=x", text)


def test_skipping_goes_on_and_comes_back_when_asked(come, desk, task):
    ta = come("ta1")
    first = next_unmarked(desk, "q6", "ta1", desk_now(desk))
    answer = ta.post(f"/questions/q6/{first}/skip")
    second = answer.headers["location"].rpartition("/")[2]
    assert second != first and next_unmarked(desk, "q6", "ta1", desk_now(desk)) == second
    assert "Offer the skipped ones again" in ta.get("/questions/q6").text
    assert ta.post("/questions/q6/unskip").status_code == 303
    assert next_unmarked(desk, "q6", "ta1", desk_now(desk)) == first


def test_flags_notes_and_handing_over(come, desk, task):
    ta, other = come("ta1"), come("ta2")
    ta.post(f"{task()}/flag", text="Is this copied?")
    ta.post(f"{task()}/note", text="Talk about <b>it</b>.")
    page = other.get(task()).text
    assert "Flagged by ta1" in page and "Is this copied?" in page and "Talk about &lt;b&gt;it" in page
    assert "flagged" in other.get("/questions/q6").text
    other.post(f"{task()}/unflag")
    assert "Flagged by" not in other.get(task()).text
    assert ta.post(f"{task()}/hand-over", to="nobody").status_code == 422
    assert ta.post(f"{task()}/hand-over", to="ta2", text="Yours.").status_code == 303
    assert opened_task(desk, "q6", handle_of(desk, STUDENT), "ta2").assigned == "ta2"


def test_a_mark_is_taken_back_with_a_reason(come, desk, task):
    ta = come("ta1")
    ta.post(f"{task()}/save", version="0", points="4")
    version = ta.version(task())
    assert ta.post(f"{task()}/withdraw", version=version, why="").status_code == 422
    assert ta.post(f"{task()}/withdraw", version=version, why="Wrong page.").status_code == 303
    assert marks(desk) == [4.0, None]


def test_a_mark_of_a_released_grade_is_taken_back_only_if_that_is_allowed(come, desk, task):
    ta, head = come("ta1"), come("head", StaffRole.HEAD)
    ta.post(f"{task()}/save", version="0", points="4")
    points = desk.book.totals(STUDENT)[-1].points
    released = Released(who="head", when=NOW, why="", student_id=STUDENT, way="publish", points=points)
    assert desk.book.append([released], [], after=desk.book.state()) is not None
    fields = {"version": ta.version(task()), "why": "Wrong page."}
    for one, may in ((ta, False), (head, True)):
        answer = one.post(f"{task()}/withdraw", **fields)
        assert answer.status_code == 422 and "would fall" in answer.text and "Wrong page." in answer.text
        assert answer.text.count("Let a released grade fall") == may
    assert ta.post(f"{task()}/withdraw", **fields, allow_lower="yes").status_code == 422
    assert marks(desk) == [4.0]
    assert head.post(f"{task()}/withdraw", **fields, allow_lower="yes").status_code == 303
    assert marks(desk) == [4.0, None]


def test_a_mark_that_somebody_saved_meanwhile_is_not_taken_back_unseen(come, desk, task):
    one, other = come("ta1"), come("ta2")
    one.post(f"{task()}/save", version="0", points="4")
    version = one.version(task())
    other.post(f"{task()}/save", version=version, points="3", comment="Another view.")
    answer = one.post(f"{task()}/withdraw", version=version, why="Wrong page.")
    assert answer.status_code == 422 and "ta2 saved a mark meanwhile" in answer.text
    assert "Another view." in answer.text and marks(desk) == [4.0, 3.0]


def test_others_at_the_same_task_are_named(come, task):
    come("ta1").get(task())
    other = come("ta2")
    assert "ta1 (first) has it open too" in other.get(task()).text
    assert "ta1 (first) has it open too" in other.get(f"{task()}/here").text


def test_comments_are_found_by_their_words(come, task):
    ta = come("ta1")
    ta.post(f"{task('q8')}/save", version="0", points="4", comment="The inductive bias is missing.")
    found = ta.get("/questions/q8/bank?search=BIAS+inductive").text
    assert "The inductive bias is missing." in found and "1 ×" in found
    assert "No comment has these words" in ta.get("/questions/q8/bank?search=xyzzy").text


def test_by_student_goes_from_question_to_question(come, desk, task):
    ta = come("ta1")
    answer = ta.post(f"{task('q6')}/save?by=student", version="0", points="4")
    assert answer.headers["location"] == f"{task('q7')}?by=student"
    page = ta.get(f"/submissions/{handle_of(desk, STUDENT)}").text
    assert "q6" in page and "4 / 5" in re.sub(r"<[^>]+>", "", page)


def test_pages_of_a_pdf_are_pictures_and_the_pdf_is_saved_not_shown(come, desk):
    ta, handle = come("ta1"), handle_of(desk, STUDENT)
    picture = ta.get(f"/submissions/{handle}/page-1.webp")
    assert picture.headers["content-type"] == "image/webp" and picture.content[:4] == b"RIFF"
    for number in ("2", "3", "x", "-1"):
        assert ta.get(f"/submissions/{handle}/page-{number}.webp").status_code == 404
    pdf = ta.get(f"/submissions/{handle}/answers.pdf")
    assert pdf.headers["content-disposition"] == 'attachment; filename="answers.pdf"'
    assert (
        pdf.headers["content-type"] == "application/octet-stream"
        and "sandbox" in pdf.headers["content-security-policy"]
    )
    assert "downloaded the PDF" in " ".join(entry.detail for entry in audit_log(desk))


def test_the_place_in_the_notebook_and_the_missing_page_are_told(come, task):
    text = come("ta1").get(task()).text
    assert re.search(r'<a href="#cell-1">Place in the notebook</a>', text)
    assert "Page 2 could not be drawn" in text


CONTENTS = "Question 5\nQuestion 6\nQuestion 7\nQuestion 8"


@pytest.mark.parametrize(
    ("texts", "target", "page"),
    [
        ({1: "Report", 2: "Question 6: order\nQuestion 7"}, "q6", 2),
        ({1: CONTENTS, 2: "Question 5", 3: "6. is no name", 4: " Q6) Attention"}, "q6", 4),
        ({1: CONTENTS}, "q6", 1),
        ({1: "As in question 6, this", 2: "Question 60", 3: "q6x"}, "q6", None),
        ({1: "پرسش ۱۰: توجه"}, "q10.patches", 1),
        ({1: "Aufgabe 06"}, "q6", 1),
        ({1: "Report quality"}, "report_quality", None),
        ({}, "q6", None),
        ({1: "Q 6"}, "", None),
    ],
    ids=str,
)
def test_the_page_where_a_question_is_answered_is_found(texts, target, page):
    assert page_of_question(texts, target) == page


def test_the_place_in_the_pdf_is_told(come, task, monkeypatch):
    monkeypatch.setattr("grader.web.shown_work._texts", lambda _: {1: "Question 5", 2: "Question 6"})
    text = come("ta1").get(task()).text
    assert '<a href="#page-2">Place in the PDF</a>' in text and '<figure id="page-2" data-place>' in text


@pytest.mark.parametrize(
    "address", ["/questions/q99", "/questions/q6/nobody", "/submissions/nobody", "/questions/q6/../x"]
)
def test_what_does_not_exist_is_not_found(come, address):
    answer = come("ta1").get(address)
    assert answer.status_code == 404 and "There is no such page" in answer.text


@pytest.mark.parametrize("digits", [20, 5000])
def test_a_number_in_an_address_may_be_of_any_length(come, desk, task, digits):
    head, number, handle = come("head", StaffRole.HEAD), "9" * digits, handle_of(desk, STUDENT)
    for address in (f"/log?before={number}", f"/queue?changed={number}", f"/assign/q6?count={number}"):
        assert head.get(address).status_code == 200
    assert head.get(f"/submissions/{handle}/page-{number}.webp").status_code == 404
    for name, fields in {
        "run": {"student": STUDENT, "number": number, "why": "x"},
        "settle": {"student": STUDENT, "number": number, "outcome": "none", "why": "x"},
        "undo": {"decision": number, "why": "x"},
    }.items():
        assert head.post(f"/decide/{name}/preview", **fields).status_code == 422, name
    for deed in ("save", "draft"):
        answer = head.post(f"{task()}/{deed}", version=number, points="4")
        assert answer.status_code == 422 and "Open the page again" in answer.text


def test_a_fault_of_ours_shows_no_trace(come, task, monkeypatch, caplog):
    ta = come("ta1")

    def broken(*_):
        raise RuntimeError("secret of the server")

    monkeypatch.setattr("grader.web.marking_pages.work_html", broken)
    answer = ta.get(task())
    assert answer.status_code == 500 and "secret" not in answer.text
    assert "secret of the server" in caplog.text


def test_when_nothing_is_left_it_says_so(come, desk):
    ta = come("ta1")
    for line in task_lines(desk, "q6", "ta1", desk_now(desk)):
        answer = ta.post(f"/questions/q6/{line.handle}/save", version="0", points="4")
    assert answer.headers["location"] == "/questions/q6?done=all"
    assert "Nothing is left for you in this question" in ta.get("/questions/q6?done=all").text
    assert ta.get("/next").headers["location"].startswith("/questions/report_quality/")


def test_the_pdf_is_searched_without_finding_out_whose_it_is(come, desk):
    ta, address = come("ta1"), f"/submissions/{handle_of(desk, STUDENT)}/search?search="
    found = ta.get(f"{address}no%20ORDER").text
    assert 'href="#page-1"' in found and "attention has no order." in found
    assert 'href="#page-2"' in ta.get(f"{address}positions").text
    for words in (STUDENT, "Mirzakhani", STUDENT[:6], "giraffe"):
        assert "No page has these words" in ta.get(address + words).text, words
    assert STUDENT not in found and "<script" not in ta.get(f"{address}document").text
    assert ta.get(address).text.strip() == ""


def test_a_pdf_without_text_says_so(come, desk, monkeypatch):
    monkeypatch.setattr("grader.web.shown_work._texts", lambda _: {1: ""})
    ta = come("ta1")
    answer = ta.get(f"/submissions/{handle_of(desk, STUDENT)}/search?search=x")
    assert "has no text to search" in answer.text


def test_after_the_rubric_changed_nothing_follows_that_of_before(come, desk, task, clock):
    """What a console that runs knows of the rubric is what it read at its start."""
    ta, head = come("ta1"), come("head", StaffRole.HEAD)
    assert ta.post(f"{task()}/save", version="0", points="4").status_code == 303
    before, pages = desk.book.state(), DelayedPages(desk, clock)
    (desk.assignment.folder / "assignment.toml").write_text("# other points", encoding="utf-8")
    version = ta.version(task())
    refused = ta.post(f"{task()}/save", version=version, points="3", comment="Typed.")
    assert refused.status_code == 422 and "Typed." in refused.text
    assert "assignment.toml was changed" in refused.text
    assert "assignment.toml was changed" in head.post("/decide/regrade/preview").text
    assert ta.post(f"{task()}/withdraw", version=version, why="x").status_code == 422
    assert head.post("/rubric/q6/marks").status_code == 422
    assert ta.post(f"{task()}/draft", version="0", comment="Typed.").json()["kept"]
    pages.look(is_last=True)
    assert desk.book.state() == before and not (desk.out / "results.json").exists()
    (desk.assignment.folder / "assignment.toml").unlink()  # as it was
    assert head.post("/decide/regrade/preview").status_code == 200
