"""A student reads a question about the work on the own page, answers it, and reads what follows."""

import re

import pytest

from grader.domain.edit import InquiryExplained
from grader.gradebook import Gradebook
from tests.student_web.conftest import FIRST, SCRIPT, SECOND, THIRD

WHY = "It sets the size <script>alert(1)</script>."


def answers(released):
    """The answers in the gradebook."""
    with Gradebook(released.out) as book:
        return [edit for edit in book.edits() if isinstance(edit, InquiryExplained)]


@pytest.fixture
def asked(released):
    """The first and the second student are asked, and that is released."""
    for student in (FIRST, SECOND):
        released.said("inquiries ask", student, "code", "--line", "homework.py:1")
    released.publish()
    return released


def answer(student, number, words):
    fields = {"csrf": student.csrf, "question": str(number), "answer": words}
    return student.client.post("/answers", data=fields)


def test_a_question_appears_with_the_release_and_only_to_whom_it_is_for(come, released):
    student, other = come(FIRST), come(THIRD)
    released.said("inquiries ask", FIRST, "code", "--line", "homework.py:1")
    assert "Questions about your work" not in student.get("/").text, "nothing before the report has it"
    assert answer(student, 1, WHY).status_code == 422 and answers(released) == []
    released.publish()
    page = student.get("/").text
    assert "Questions about your work" in page and "x = 1" in page and "homework.py:1" in page
    assert "What is this line for" in page and "no accusation" in page
    assert "Questions about your work" not in other.get("/").text
    assert answer(other, 1, WHY).status_code == 422 and answers(released) == []


def test_the_student_answers_and_reads_what_follows(come, asked):
    student = come(FIRST)
    sent = answer(student, 1, f"  {WHY}\r\n")
    assert sent.status_code == 303 and sent.headers["location"] == "/#questions"
    page = student.get("/").text
    assert "You answered on" in page and "It sets the size" in page and "<script>" not in page
    [edit] = answers(asked)
    assert (edit.who, edit.student_id, edit.number, edit.why) == (FIRST, FIRST, 1, WHY)
    answer(student, 1, "It sets the size of a patch.")
    assert "It sets the size of a patch." in student.get("/").text and len(answers(asked)) == 2
    assert answer(student, 1, "It sets the size of a patch.").status_code == 303, "the form was sent twice"
    assert len(answers(asked)) == 2
    asked.said("inquiries settle", FIRST, 1, "dismissed", "--why", "It is from the handout.")
    assert "It is from the handout." not in student.get("/").text, "not before it is released"
    asked.publish()
    page = student.get("/").text
    assert "nothing follows from it" in page and "It is from the handout." in page
    assert '<textarea id="answer-1"' not in page
    late = answer(student, 1, "Something else.")
    assert late.status_code == 422 and "settled" in late.text
    assert len(answers(asked)) == 2


def test_what_was_confirmed_shows_the_points_and_the_reason(come, asked, assignment):
    student = come(FIRST)
    answer(student, 1, "I found it.")
    words = ("confirmed", "q6", "1", "--why", "It is not your own.", "--allow-lower")
    asked.said("inquiries settle", FIRST, 1, *words)
    asked.publish()
    page = student.get("/").text
    assert "A person has confirmed it." in page and "It is not your own." in page
    assert f"{assignment.target_titles()['q6']}: 2 → 1 points" in page
    assert "no accusation" not in page, "nothing is asked any more"


def test_staff_settles_before_the_release_of_that_and_no_answer_is_taken(come, asked):
    """The student still sees it as open; the answer is refused in a sentence for the student."""
    student = come(FIRST)
    asked.said("inquiries settle", FIRST, 1, "dismissed", "--why", "Fine.", "--unanswered")
    late = answer(student, 1, "For speed.")
    assert late.status_code == 422 and "just been settled" in late.text
    assert "grader" not in re.sub(r"<[^>]*>", "", late.text)
    assert answers(asked) == []


@pytest.mark.parametrize("words", ["", "  ", "x" * 2001])
def test_an_empty_or_endless_answer_is_not_taken(come, asked, words):
    refused = answer(come(FIRST), 1, words)
    assert refused.status_code == 422 and "Your answer" in refused.text and answers(asked) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", ["2", "0", "-1", "x", ""])
def test_no_other_question_is_answered(come, asked, number):
    refused = answer(come(FIRST), number, WHY)
    assert refused.status_code == 422 and "There is no such question." in refused.text
    assert answers(asked) == []


def test_a_form_of_another_visit_or_site_changes_nothing(come, asked, browse):
    student = come(FIRST)
    fields = {"csrf": come(SECOND).csrf, "question": "1", "answer": WHY}
    assert student.client.post("/answers", data=fields).status_code == 403
    foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    own = {**fields, "csrf": student.csrf}
    assert student.client.post("/answers", data=own, headers=foreign).status_code == 403
    assert browse().post("/answers", data=own).status_code == 401
    assert answers(asked) == []


def test_what_a_line_says_is_text(come, asked):
    page = come(SECOND).get("/").text
    assert "document.title" in page and SCRIPT not in page and "<script>" not in page


def test_pages_without_regrade_requests_ask_all_the_same(come, asked, assignment):
    toml = asked.course / "reference" / assignment.id / "assignment.toml"
    toml.write_text(toml.read_text("utf-8").partition("\n[regrade_requests]")[0], "utf-8")
    page = come(FIRST).get("/").text
    assert "Questions about your work" in page and "Ask about the points" not in page
