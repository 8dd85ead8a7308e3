"""Canvas by its API: what cannot be graded by points is refused before anything is sent."""

from collections.abc import Iterator

import pytest

from grader.lms.online_assignment import GradeDelivery, LmsUnavailable, ReportFile, StudentRefused
from tests.fake_lms import TOKEN, FakeCanvas, answer, served

pytest.importorskip("canvasapi")

from grader.lms.canvas.canvas_service import CanvasOnline
from grader.lms.web_session import WebSession


@pytest.fixture
def canvas() -> Iterator[FakeCanvas]:
    lms = FakeCanvas([str(400101000 + number) for number in range(230)])
    with served(lms):
        yield lms


def online(canvas: FakeCanvas, course: str = "1201", assignment: str = "88") -> CanvasOnline:
    return CanvasOnline(WebSession(canvas.url, TOKEN, sleep=lambda _: None), course, assignment)


def test_all_pages_of_students_and_submissions_are_read(canvas: FakeCanvas) -> None:
    there = online(canvas)
    students = there.students()
    assert len(students) == 230 == len(there.standings())
    assert students[3].number == "1003" and students[3].ids == ("400101003", "u3", "u3@example.edu")
    assert (there.title, there.maximum, there.remarks) == ("Lab 8", 100, ())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"grading_type": "pass_fail"}, "grades 'Lab 8' as pass_fail"),
        ({"group_category_id": 4}, "to a whole group"),
    ],
)
def test_what_has_no_points_of_each_student_is_refused(
    canvas: FakeCanvas, fields: dict[str, object], told: str
) -> None:
    canvas.assignment |= fields
    with pytest.raises(LmsUnavailable, match=told):
        online(canvas)
    canvas.assignment["grade_group_students_individually"] = True
    if "group_category_id" in fields:
        assert online(canvas).title == "Lab 8"


def test_grades_that_are_posted_by_hand_are_told(canvas: FakeCanvas) -> None:
    canvas.assignment["post_manually"] = True
    assert "when you post them there" in online(canvas).remarks[0]


def test_a_wrong_number_is_told(canvas: FakeCanvas) -> None:
    with pytest.raises(LmsUnavailable, match="course 1201, assignment 89: Canvas has no such thing"):
        online(canvas, assignment="89")


def test_a_teacher_of_another_course_is_told(canvas: FakeCanvas) -> None:
    canvas.fault = lambda request: (
        answer({"status": "unauthorized"}, 403) if "users" in request.path else None
    )
    with pytest.raises(LmsUnavailable, match=r"Canvas refuses .*Use a teacher's token"):
        online(canvas)


@pytest.mark.parametrize("path", ["/comments/files", "/files/upload"])
def test_a_report_that_is_refused_is_that_students_line(canvas: FakeCanvas, path: str) -> None:
    there = online(canvas)
    canvas.fault = lambda request: answer({"message": "quota"}, 400) if request.path.endswith(path) else None
    with pytest.raises(StudentRefused, match="refused"):
        there.deliver(GradeDelivery("1000", 5, "Well done.", ReportFile("report-1.html", b"<p>")))
    assert canvas.told() == {}


def test_files_go_where_canvas_says_over_https_only(canvas: FakeCanvas) -> None:
    there = online(canvas)
    elsewhere = {"upload_url": "http://files.example.edu/upload", "upload_params": {}}
    canvas.fault = lambda request: answer(elsewhere) if request.path.endswith("/comments/files") else None
    with pytest.raises(Exception, match="over which anybody could read"):
        there.deliver(GradeDelivery("1000", 5, "Well done.", ReportFile("report-1.html", b"<p>")))


def test_a_grade_without_a_report_is_one_request(canvas: FakeCanvas) -> None:
    there = online(canvas)
    after = there.deliver(GradeDelivery("1000", 63.5, "Well done."))
    assert after.points == 63.5 and after.comments[0].text == "Well done." and canvas.writes == 1
    assert there.standing("1000") == after
