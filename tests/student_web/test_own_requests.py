"""A student asks about points, under the rules of the assignment, and reads the released answer."""

import re
import threading
import zipfile
from datetime import timedelta

import pytest

from grader.domain.edit import RegradeAsked
from grader.gradebook import Gradebook
from tests.student_web.conftest import FIRST, SECOND, said

WHY = "Part b is on page 4 <script>alert(1)</script>."


def asked(released):
    """The requests in the gradebook."""
    with Gradebook(released.out) as book:
        return [edit for edit in book.edits() if isinstance(edit, RegradeAsked)]


def test_a_student_asks_and_reads_the_answer(come, released):
    student, other = come(FIRST), come(SECOND)
    assert "There is no answer yet." not in student.get("/").text
    answer = student.ask("q6", f"  {WHY}\r\n")
    assert answer.status_code == 303 and answer.headers["location"] == "/#requests"
    [edit] = asked(released)
    assert (edit.who, edit.student_id, edit.target, edit.why, edit.points) == (FIRST, FIRST, "q6", WHY, 2)
    assert edit.marker == "ta1"
    page = student.get("/").text
    assert "There is no answer yet." in page and "Part b is on page 4" in page and "<script>alert" not in page
    assert "Part b" not in other.get("/").text
    assert "Nobody has answered yet." in (released.out / "students" / FIRST / "report.html").read_text(
        "utf-8"
    )

    released.said("requests answer", FIRST, "q6", "3.5", "--why", "It is there: half of it.", by="ta1")
    page = student.get("/").text
    assert "There is no answer yet." in page and "It is there" not in page, "it was not released"
    released.publish()
    page = student.get("/").text
    assert "It is there: half of it." in page and "2 → 3.5 points." in page.replace("\xa0", " ")
    assert "ta1" not in page and "It is there: half of it." in student.get("/mine/report.html").text
    assert "It is there" not in other.get("/").text


def test_an_unreleased_answer_cannot_be_noticed_by_asking_again(come, released):
    student = come(FIRST)
    student.ask("q6", "Look again.")
    before = student.ask("q6", "And again."), student.get("/").text
    released.said("requests answer", FIRST, "q6", "--why", "It stays.", by="ta1")
    after = student.ask("q6", "And again."), student.get("/").text
    assert before[0].status_code == after[0].status_code == 422 and before[0].text == after[0].text
    assert before[1] == after[1]


def test_an_answer_in_the_words_of_a_released_one_waits_for_its_own_release(come, released):
    """As teaching assistants have sentences that they give again and again."""
    student, words = come(FIRST), "Your solution is missing a step."
    other = next(
        item for item in re.findall(r'<option value="([^"]+)"', student.get("/").text) if item != "q6"
    )
    student.ask("q6", "Look.")
    released.said("requests answer", FIRST, "q6", "--why", words, by="ta1")
    released.publish()
    student.ask(other, "And here.")
    released.said("requests answer", FIRST, other, "0.5", "--why", words, "--allow-lower", by="ta1")
    page = student.get("/").text
    assert page.count(words) == 1 and page.count("There is no answer yet.") == 1
    assert "0.5" not in page.replace("\xa0", " ")
    released.publish()
    assert student.get("/").text.count(words) == 2


def test_the_same_form_sent_twice_is_one_request(come, released):
    student = come(FIRST)
    csrf = student.csrf
    codes = []

    def send():
        answer = student.client.post("/requests", data={"csrf": csrf, "item": "q6", "reason": "Look."})
        codes.append(answer.status_code)

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [303] * 3 and len(asked(released)) == 1


@pytest.mark.parametrize(
    ("item", "reason", "told"),
    [
        ("q6", " \r\n ", "a request needs a reason"),
        ("q6", "x" * 2001, "at most 2000 are taken"),
        ("q77", "Look.", "Choose one of the items"),
        ("q10", "Look.", "Choose one of the items"),  # it is marked in parts
        ("", "Look.", "Choose one of the items"),
    ],
)
def test_what_cannot_be_asked_is_told(come, released, item, reason, told):
    answer = come(FIRST).ask(item, reason)
    assert answer.status_code == 422 and told in answer.text
    assert asked(released) == []


def test_each_item_is_disputed_once_at_a_time_and_only_so_often(come, released):
    student = come(FIRST)
    items = re.findall(r'<option value="([^"]+)"', student.get("/").text)
    assert "q6" in items and "q10" not in items
    assert student.ask("q6", "Look.").status_code == 303
    assert "q6" not in re.findall(r'<option value="([^"]+)"', student.get("/").text)
    answer = student.ask("q6", "Look, please.")
    assert answer.status_code == 422 and "already" in answer.text
    other = next(item for item in items if item != "q6")
    assert student.ask(other, "Look.").status_code == 303
    page = student.get("/").text
    assert "no more are allowed" in page and "<textarea" not in page
    answer = student.ask(next(item for item in items if item not in ("q6", other)), "Look.")
    assert answer.status_code == 422 and "no more are allowed" in answer.text
    assert len(asked(released)) == 2 and "--anyway" not in answer.text


def test_the_window_ends(come, site, released, clock):
    student = come(FIRST)
    clock.moved = timedelta(days=7, seconds=5)
    student = come(FIRST)
    page = student.get("/").text
    assert "Requests ended on" in page and "<textarea" not in page
    answer = student.ask("q6", "Look.")
    assert answer.status_code == 422 and "Requests ended on" in answer.text and asked(released) == []


def test_an_assignment_without_the_rule_takes_none(come, released):
    student = come(FIRST)
    csrf = student.csrf
    [toml] = released.course.glob("reference/*/assignment.toml")
    text = toml.read_text("utf-8")
    toml.write_text(text.partition("\n[regrade_requests]")[0], "utf-8")
    page = student.get("/").text
    assert "dispute" not in page and "<textarea" not in page
    answer = student.client.post("/requests", data={"csrf": csrf, "item": "q6", "reason": "Look."})
    assert answer.status_code == 422 and asked(released) == []


def test_a_request_never_scores_the_class_again(come, released, caplog):
    """That is for staff: the rubric was changed, and nobody ran `grader regrade` yet."""
    student = come(FIRST)
    [toml] = released.course.glob("reference/*/assignment.toml")
    text = toml.read_text("utf-8")
    assert "{ at = 0.60, points = 9 }" in text
    toml.write_text(text.replace("{ at = 0.60, points = 9 }", "{ at = 0.60, points = 10 }"), "utf-8")
    with Gradebook(released.out) as book:
        before = book.snapshot().totals
    answer = student.ask("q6", "Look.")
    assert answer.status_code == 503 and "regrade" not in answer.text
    assert "grader regrade" in caplog.text and asked(released) == []
    with Gradebook(released.out) as book:
        assert book.snapshot().totals == before


def test_the_person_is_not_taken_for_staff_when_exported(come, released, tmp_path):
    """Who asked is the student; a word in place of staff must not stand in place of the student's id."""
    come(FIRST).ask("q6", "Look.")
    released_zip = tmp_path / "person.zip"
    said("export-person", released.out, FIRST, "--to", released_zip)
    with zipfile.ZipFile(released_zip) as content:
        records = content.read("records.json").decode()
    assert f'"who": "{FIRST}"' in records and "ta1" not in records
    assert f'"student_id": "{FIRST}"' in records
