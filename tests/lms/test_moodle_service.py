"""Moodle by its web services, whose errors come with status 200."""

from collections.abc import Iterator

import pytest

from grader.lms.online_assignment import GradeDelivery, LmsUnavailable, ReportFile, StudentRefused
from tests.fake_lms import TOKEN, FakeMoodle, answer, refusal, served

pytest.importorskip("requests")

from grader.lms.moodle.moodle_service import MoodleOnline
from grader.lms.web_session import WebSession

REPORT = ReportFile("report-1.html", b"<p>")


@pytest.fixture
def moodle() -> Iterator[FakeMoodle]:
    lms = FakeMoodle(["400101201", "400101202"])
    with served(lms):
        yield lms


def online(moodle: FakeMoodle, assignment: str = "977") -> MoodleOnline:
    return MoodleOnline(WebSession(moodle.url, TOKEN, sleep=lambda _: None), "42", assignment)


def test_students_have_the_numbers_of_downloads(moodle: FakeMoodle) -> None:
    first, second = online(moodle).students()  # and not the teacher
    assert (first.key, first.number, first.person) == ("30", "7030", "Student 0")
    assert second.ids == ("400101202", "u1", "u1@example.edu")
    moodle.fault = lambda request: (
        refusal("accessexception", "No.")
        if request.values["wsfunction"] == "mod_assign_get_user_mappings"
        else None
    )
    assert [student.number for student in online(moodle).students()] == ["", ""]


def test_grade_comment_and_report_are_saved_together(moodle: FakeMoodle) -> None:
    there = online(moodle)
    after = there.deliver(GradeDelivery("30", 63.5, "5 < 6 & fine.", REPORT))
    assert (after.points, after.is_mine) == (63.5, True) and after.version.startswith("0@17")
    assert moodle.told() == {"400101201": ("63.50000", ("<p>5 &lt; 6 &amp; fine.</p>", ("report-1.html",)))}
    saved = moodle.requests[-2].values
    assert saved["grades[0][attemptnumber]"] == "-1" and saved["applytoall"] == "0"
    assert saved["grades[0][workflowstate]"] == "" and TOKEN not in moodle.requests[-2].path
    assert there.standing("30") == after == there.standings()["30"]
    assert there.standing("31").points is None


def test_what_is_only_opened_has_no_grade(moodle: FakeMoodle) -> None:
    moodle.save(30, -1)
    assert online(moodle).standings()["30"].points is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"grade": -3}, "by a scale, or not at all"),
        ({"teamsubmission": 1}, "handed in by groups.*grader export moodle-worksheet"),
    ],
)
def test_what_has_no_points_of_each_student_is_refused(
    moodle: FakeMoodle, fields: dict[str, int], told: str
) -> None:
    moodle.assignment |= fields
    with pytest.raises(LmsUnavailable, match=told):
        online(moodle)


def test_what_moodle_does_not_take_is_told_and_not_sent(moodle: FakeMoodle) -> None:
    moodle.assignment |= {"configs": [], "markingworkflow": 1}
    there = online(moodle)
    assert not there.takes_reports and [remark.split()[1] for remark in there.remarks] == [
        "takes",
        "takes",
        "assignment",
    ]
    there.deliver(GradeDelivery("30", 5, "Well done."))
    assert moodle.feedback == {30: ("", ())}
    assert moodle.requests[-2].values["grades[0][workflowstate]"] == "released"


def test_the_assignments_of_the_course_are_named(moodle: FakeMoodle) -> None:
    with pytest.raises(LmsUnavailable, match=r"no assignment 7 that .*There is: 977 \(Lab 8\).*after id="):
        online(moodle, "7")


def test_a_function_that_is_not_allowed_is_named(moodle: FakeMoodle) -> None:
    moodle.fault = lambda request: (
        refusal("accessexception", "Access control exception")
        if request.values["wsfunction"] == "mod_assign_get_assignments"
        else None
    )
    with pytest.raises(LmsUnavailable, match=r"refuses mod_assign_get_assignments \(Access control"):
        online(moodle)


def test_who_may_not_grade_is_told(moodle: FakeMoodle) -> None:
    warning = {"item": "assignment", "itemid": 7, "warningcode": "1", "message": "No access rights"}
    there = online(moodle)
    moodle.fault = lambda _: answer({"assignments": [], "warnings": [warning]})
    with pytest.raises(LmsUnavailable, match=r"may not grade 'Lab 8' \(No access rights\)"):
        there.standings()


def test_a_report_that_is_refused_is_that_students_line(moodle: FakeMoodle) -> None:
    there = online(moodle)
    moodle.fault = lambda request: (
        answer({"error": "Too large", "errorcode": "maxbytes"})
        if request.path.endswith("upload.php")
        else None
    )
    with pytest.raises(StudentRefused, match="Moodle refused: Too large"):
        there.deliver(GradeDelivery("30", 5, "Well done.", REPORT))
    assert moodle.told() == {}


def test_a_page_instead_of_an_answer_is_told(moodle: FakeMoodle) -> None:
    moodle.fault = lambda _: (200, {"Content-Type": "text/html"}, b"<h1>Maintenance</h1>")
    with pytest.raises(LmsUnavailable, match=r"refuses core_webservice_get_site_info \(status 200\)"):
        online(moodle)


def test_a_hidden_grader_may_be_oneself(moodle: FakeMoodle) -> None:
    moodle.save(30, 5, -1)
    moodle.save(31, 5, 77)
    assert [standing.is_mine for standing in online(moodle).standings().values()] == [True, False]
