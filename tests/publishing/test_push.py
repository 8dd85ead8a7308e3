"""A push sends what is new or changed, once, and leaves alone what people edited in the LMS."""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.lms.online_assignment import LmsUnavailable
from grader.publishing.releases import exported_grades
from tests.fake_lms import (
    ME,
    TEACHER,
    TOKEN,
    Answer,
    FakeCanvas,
    FakeMoodle,
    Request,
    answer,
    refusal,
    served,
)

pytest.importorskip("canvasapi")

from grader.lms.canvas.canvas_service import CanvasOnline
from grader.lms.moodle.moodle_service import MoodleOnline
from grader.lms.web_session import WebSession
from grader.publishing.push import ClassRelease, Push, Pushed, PushRequest, PushState

LAB_8: Any = SimpleNamespace(id="lab8", title="Lab 8", maximum=100, language="en", review_required=False)
WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
MADE = (
    "<footer>Page made 2026-01-31 12:00 UTC, in 2 s.</footer> Your deadline: 2026-01-30 23:59 UTC. Well done."
)


class Killed(BaseException):
    """The process is gone at this moment."""


class Desk:
    """A class, an LMS and pushes between them.

    Attributes:
        grades: Student -> points here.
        released: (Points by student, way) of each note in the gradebook.
    """

    def __init__(self, lms: FakeCanvas | FakeMoodle, out: Path, a_result: Callable[..., Any]) -> None:
        self.lms, self.out, self._a_result = lms, out, a_result
        users = lms.users.values() if isinstance(lms, FakeCanvas) else lms.users
        name = "sis_user_id" if isinstance(lms, FakeCanvas) else "idnumber"
        self.grades: dict[str, float | None] = {
            str(user[name]): 60.0 + n % 40 for n, user in enumerate(users)
        }
        self.released: list[tuple[Mapping[str, float | None], str]] = []
        self.assignment = LAB_8
        for student in self.grades:
            self.report(student, MADE)

    def report_path(self, student: str) -> Path:
        return self.out / "students" / student / "report.html"

    def report(self, student: str, text: str) -> None:
        path = self.report_path(student)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<!doctype html>{text} {student}", "utf-8")

    def push(self, **asked: Any) -> Push:
        results = [
            self._a_result(student, 0.0 if points is None else points, awaiting=points is None)
            for student, points in self.grades.items()
        ]
        release = ClassRelease(
            self.out,
            self.assignment,
            results,
            exported_grades(results, partial=True),
            "ta1",
            lambda: WHEN,
            lambda grades, way: self.released.append((dict(grades), way)),
            lambda students: {student: self.report_path(student).read_bytes() for student in students},
        )
        web = WebSession(self.lms.url, TOKEN, sleep=lambda _: None)
        canvas = isinstance(self.lms, FakeCanvas)
        online = CanvasOnline(web, "1201", "88") if canvas else MoodleOnline(web, "42", "977")
        target = ("canvas" if canvas else "moodle", self.lms.url, "1201", "88")
        return Push(release, online, PushRequest(target, **asked))

    def send(self, **asked: Any) -> Pushed:
        return self.push(**asked).send(pause=lambda _: None)

    def states(self) -> dict[str, PushState]:
        return {line.name: line.state for line in self.push().lines}

    def set_there(self, student: str, points: float, grader: int = TEACHER) -> None:
        if isinstance(self.lms, FakeCanvas):
            self.lms.of(student).update(score=points, entered_score=points, grader_id=grader)
        else:
            self.lms.save(self.lms.user(student), points, grader)

    def there(self, student: str) -> float:
        return float(self.lms.told()[student][0])


STUDENTS = ["400101201", "400101202", "400101203", "400101204"]
KINDS = {"canvas": FakeCanvas, "moodle": FakeMoodle}


@pytest.fixture(params=KINDS)
def desk(request: pytest.FixtureRequest, tmp_path: Path, a_result: Callable[..., Any]) -> Iterator[Desk]:
    lms = KINDS[request.param](STUDENTS)
    with served(lms):
        yield Desk(lms, tmp_path / "results", a_result)


def is_grade(request: Request) -> bool:
    """Whether a request sends a grade, rather than a file."""
    return request.method == "PUT" or request.values.get("wsfunction") == "mod_assign_save_grades"


def test_grade_comment_and_report_arrive_once(desk: Desk) -> None:
    assert set(desk.states().values()) == {PushState.NEW} and desk.lms.writes == 0
    assert not (desk.out / "pushed").exists()
    assert desk.send().sent == tuple(STUDENTS)
    assert [desk.there(student) for student in STUDENTS] == [60, 61, 62, 63]
    told = str(desk.lms.told()["400101201"])
    assert "Grade: 60 of 100 points. The attached report explains it." in told
    assert "'report-" in told and ".html'" in told
    stored = desk.lms.files if isinstance(desk.lms, FakeCanvas) else desk.lms.drafts
    assert b"Well done. 400101201" in next(iter(stored.values()))[1]
    way = "push-canvas" if isinstance(desk.lms, FakeCanvas) else "push-moodle"
    assert desk.released == [({"400101201": 60, "400101202": 61, "400101203": 62, "400101204": 63}, way)]
    before = desk.lms.writes
    assert set(desk.states().values()) == {PushState.SAME}
    assert desk.send() == Pushed((), {})
    assert desk.lms.writes == before and len(desk.released) == 1


def test_what_changed_here_is_sent_again(desk: Desk) -> None:
    desk.send()
    desk.grades["400101202"] = 71.5
    again = "<footer>Page made 2026-02-01 09:30 UTC, in 3 s.</footer> Your deadline: 2026-01-30 23:59 UTC."
    desk.report("400101201", again.replace("01-30", "01-31"))  # a time that the student reads
    desk.report("400101203", f"{again} Well done.")  # made again, and says the same
    desk.report("400101204", f"{again} A remark was added.")
    lines = {line.name: line for line in desk.push().lines if line.state is not PushState.SAME}
    assert {name: (line.state, line.detail) for name, line in lines.items()} == {
        "400101201": (PushState.CHANGED, "another report"),
        "400101202": (PushState.CHANGED, ""),
        "400101204": (PushState.CHANGED, "another report"),
    }
    assert desk.send().sent == ("400101201", "400101202", "400101204")
    assert desk.there("400101202") == 71.5 and set(desk.states().values()) == {PushState.SAME}


def test_what_was_edited_there_stays(desk: Desk) -> None:
    desk.send()
    desk.set_there("400101201", 99)
    desk.grades["400101201"] = 50
    assert desk.states()["400101201"] is PushState.EDITED
    writes = desk.lms.writes
    assert desk.send() == Pushed((), {}) and desk.lms.writes == writes
    with pytest.raises(
        UsageError, match=r"400101201: 99 in \w+ becomes 50, which is less(.|\n)*--allow-lower"
    ):
        desk.send(overwrite={"400101201": "Wrong row."})
    assert desk.lms.writes == writes
    assert desk.send(overwrite={"400101201": "Wrong row."}, allow_lower=True).sent == ("400101201",)
    assert desk.there("400101201") == 50 and set(desk.states().values()) == {PushState.SAME}
    [journal] = (desk.out / "pushed").iterdir()
    assert '"why":"Wrong row."' in journal.read_text("utf-8")


def test_what_was_graded_there_first_stays(desk: Desk) -> None:
    desk.set_there("400101201", 77)
    desk.set_there("400101202", 61)
    details = {line.name: line.detail for line in desk.push().lines if line.state is PushState.EDITED}
    assert details == {
        "400101201": "was graded there, not by a push",
        "400101202": "was graded there, not by a push, with the same points",
    }
    assert desk.send().sent == ("400101203", "400101204")
    assert desk.there("400101201") == 77


def test_students_of_one_side_are_named_and_left_alone(desk: Desk) -> None:
    desk.grades = {student: desk.grades[student] for student in STUDENTS[:3]} | {
        "400101299": 80,
        "400101203": None,
    }
    lines = {
        line.name: (line.state, line.detail) for line in desk.push().lines if line.state is not PushState.NEW
    }
    lms = "Canvas" if isinstance(desk.lms, FakeCanvas) else "Moodle"
    key = "1003" if isinstance(desk.lms, FakeCanvas) else "33"
    assert lines == {
        "400101203": (PushState.WITHOUT, "awaiting q6"),
        f"Student 3 (400101204, {key})": (PushState.UNKNOWN, "has no result here"),
        "400101299": (PushState.UNKNOWN, f"is no student of the course in {lms}"),
    }
    assert desk.send().sent == ("400101201", "400101202")
    assert set(desk.lms.told()) - {"400101201", "400101202"} == set() or all(
        desk.lms.told()[student][0] is None for student in ("400101203", "400101204")
    )


def test_a_grade_that_is_somebody_elses_now_is_sent_there(desk: Desk) -> None:
    """The account has what a push sent for another student, and the student got nothing yet."""
    desk.grades = {STUDENTS[0]: 60.0}
    desk.send()
    desk.grades = {STUDENTS[1]: 60.0}
    first, second = desk.push().lines[1], desk.push().lines[0]
    assert (first.state, first.before) == (PushState.UNKNOWN, 60) and second.state is PushState.NEW
    # both accounts exchange their ids: who got what is known by the account
    users = list(desk.lms.users.values()) if isinstance(desk.lms, FakeCanvas) else desk.lms.users
    name = "sis_user_id" if isinstance(desk.lms, FakeCanvas) else "idnumber"
    users[0][name], users[1][name] = users[1][name], users[0][name]
    desk.grades = {STUDENTS[0]: 80.0, STUDENTS[1]: 70.0}
    states = {line.name: (line.state, line.before, line.detail) for line in desk.push().lines}
    assert states[STUDENTS[0]] == (PushState.NEW, None, "")
    assert states[STUDENTS[1]] == (PushState.CHANGED, 60, "")
    assert desk.send().sent == tuple(STUDENTS[:2])
    assert (desk.there(STUDENTS[0]), desk.there(STUDENTS[1])) == (80, 70)


def test_what_stands_there_is_told_of_those_who_have_no_grade_any_more(desk: Desk) -> None:
    desk.send()
    desk.grades = {student: desk.grades[student] for student in STUDENTS[:3]} | {STUDENTS[1]: None}
    lines = [line for line in desk.push().lines if line.state is not PushState.SAME]
    assert [(line.state, line.before, line.delivery) for line in lines] == [
        (PushState.WITHOUT, 61, None),
        (PushState.UNKNOWN, 63, None),
    ]


def test_a_journal_that_does_not_note_accounts_is_read(desk: Desk) -> None:
    desk.send()
    [journal] = (desk.out / "pushed").iterdir()
    journal.write_text(re.sub(r'"key":"\d+",', "", journal.read_text("utf-8")), "utf-8")
    assert set(desk.states().values()) == {PushState.SAME}
    desk.grades[STUDENTS[0]] = 80.0
    assert desk.send().sent == (STUDENTS[0],)
    assert set(desk.states().values()) == {PushState.SAME}


def test_a_grade_does_not_fall_by_itself(desk: Desk) -> None:
    desk.send()
    desk.grades["400101201"] = 59.5
    writes = desk.lms.writes
    with pytest.raises(UsageError, match=r"60 in .* becomes 59\.5, which is less"):
        desk.send()
    assert desk.lms.writes == writes
    assert desk.send(allow_lower=True).sent == ("400101201",)


def test_another_maximum_is_refused_or_scaled(desk: Desk) -> None:
    desk.lms.assignment["points_possible" if isinstance(desk.lms, FakeCanvas) else "grade"] = 20
    with pytest.raises(UsageError, match=r"'Lab 8': the maximum is 20 there and 100 here.*\s--scale"):
        desk.push()
    desk.send(scale=True)
    assert desk.there("400101202") == 12.2
    assert {line.state for line in desk.push(scale=True).lines} == {PushState.SAME}


def test_a_maximum_of_nothing_is_refused_without_advice_to_scale(
    tmp_path: Path, a_result: Callable[..., Any]
) -> None:
    lms = FakeCanvas(STUDENTS)
    lms.assignment["points_possible"] = None
    with served(lms), pytest.raises(UsageError, match=r"is 0 there and 100 here\. Change it in Canvas\.$"):
        Desk(lms, tmp_path, a_result).push(scale=True)


def test_one_students_error_stops_nobody_else(desk: Desk) -> None:
    refused: Answer = (
        answer({"errors": [{"message": f"no such grade {TOKEN}"}]}, 400)
        if isinstance(desk.lms, FakeCanvas)
        else refusal("invalidparameter", f"no such grade {TOKEN}")
    )
    key = "/1001" if isinstance(desk.lms, FakeCanvas) else "31"
    desk.lms.fault = lambda request: (
        refused
        if is_grade(request)
        and (request.path.endswith(key) or request.values.get("grades[0][userid]") == key)
        else None
    )
    done = desk.send()
    assert done.sent == ("400101201", "400101203", "400101204")
    assert list(done.failed) == ["400101202"] and "no such grade [token]" in done.failed["400101202"]
    desk.lms.fault = lambda _: None
    assert desk.send().sent == ("400101202",)


@pytest.mark.parametrize("fault", ["lost", "failed", "limited", "overloaded"])
def test_requests_that_fail_once(desk: Desk, fault: str) -> None:
    """A grade whose answer was lost, or that the server did not get, arrives once in the end."""
    special: dict[str, Answer | str] = {
        "lost": "lost",
        "failed": answer({}, 502),
        "limited": answer({}, 429),
        "overloaded": (403, {}, b"403 Forbidden (Rate Limit Exceeded)\n"),
    }
    seen: set[str] = set()

    def once(request: Request) -> Answer | str | None:
        key = f"{request.path} {request.values.get('wsfunction')} {request.values.get('grades[0][userid]')}"
        if key in seen:
            return None
        seen.add(key)
        return special[fault]

    desk.lms.fault = once
    assert desk.send() == Pushed(tuple(STUDENTS), {})
    desk.lms.fault = lambda _: None
    assert set(desk.states().values()) == {PushState.SAME}
    if isinstance(desk.lms, FakeCanvas):
        assert all(len(comments) == 1 for _, comments in desk.lms.told().values())


def test_a_server_that_fails_for_good_costs_lines_not_the_push(desk: Desk) -> None:
    desk.lms.fault = lambda request: answer({}, 500) if is_grade(request) else None
    done = desk.send()
    assert done.sent == () and set(done.failed) == set(STUDENTS)
    assert "no answer came 4\N{NO-BREAK SPACE}times" in done.failed["400101201"]


ODD = {
    "nothing": (200, {}, b""),
    "null": answer(None),
    "list": answer([{}]),
    "object": answer({"status": "ok"}),
    "number": answer(3),
    "page": (200, {}, b"<html>Log in</html>"),
}


@pytest.mark.parametrize("odd", ["nothing", "null", "number"])
def test_a_site_that_is_another_one_is_told(desk: Desk, odd: str) -> None:
    desk.lms.fault = lambda _: ODD[odd]
    with pytest.raises(LmsUnavailable, match=r"the answer is none of \w+'s, .* Check the address"):
        desk.push()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("odd", ODD)
def test_an_answer_of_another_form_is_told_and_costs_nothing(desk: Desk, odd: str) -> None:
    """Whichever request it comes for, in the place of a true one or after what was asked for was done."""
    desk.grades = {student: desk.grades[student] for student in STUDENTS[:2]}
    for at in range(14):
        count = 0

        def fault(_: Request, at: int = at) -> Answer | None:
            nonlocal count
            count += 1
            return ODD[odd] if count == at else None

        desk.grades[STUDENTS[0]] = 61.0 + at
        desk.lms.fault = fault
        with suppress(UsageError):
            desk.send()
        desk.lms.fault = lambda _: None
        desk.send()
        assert desk.states()[STUDENTS[0]] is PushState.SAME and desk.there(STUDENTS[0]) == 61 + at
    if isinstance(desk.lms, FakeCanvas):
        assert len(desk.lms.of(STUDENTS[1])["submission_comments"]) == 1


def test_an_edit_between_difference_and_sending_is_seen(desk: Desk) -> None:
    """Somebody grades there while an answer of ours is lost."""

    def grade_instead(request: Request) -> Answer | None:
        if not is_grade(request):
            return None
        desk.set_there("400101201", 12)
        return answer({}, 502)

    desk.grades = {"400101201": 80}
    desk.lms.fault = grade_instead
    done = desk.send()
    assert done.failed == {"400101201": "the server failed (status 502), and something else stands there now"}
    desk.lms.fault = lambda _: None
    assert desk.states()["400101201"] is PushState.EDITED and desk.there("400101201") == 12


def test_a_wrong_token_is_told_and_not_shown(desk: Desk) -> None:
    denied: Answer = (
        answer({"errors": [{"message": f"Invalid {TOKEN}"}]}, 401, **{"WWW-Authenticate": "x"})
        if isinstance(desk.lms, FakeCanvas)
        else refusal("invalidtoken", f"Invalid {TOKEN}")
    )
    desk.lms.fault = lambda _: denied
    with pytest.raises(LmsUnavailable, match=r"does not accept the token \(.*Invalid \[token\]"):
        desk.push()


def test_two_pushes_at_once_do_not_meet(desk: Desk) -> None:
    first, second = desk.push(), desk.push()
    first.send()
    with pytest.raises(UsageError, match="Another push has sent grades since"):
        second.send()


def interrupted(desk: Desk, monkeypatch: pytest.MonkeyPatch, times: int, seed: int) -> None:
    """Push until it is through, killed some times: before a request, after it, or while noting it."""
    import grader.publishing.push_journal as noted
    from grader.lms import web_session

    chance = random.Random(seed)
    countdown = 0
    request, write = web_session.WebSession.request, noted.os.write

    def tick() -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            raise Killed

    def killed_request(self: WebSession, *words: Any, **options: Any) -> Any:
        tick()
        response = request(self, *words, **options)
        tick()
        return response

    def killed_write(descriptor: int, content: bytes) -> int:
        try:
            tick()
        except Killed:
            write(descriptor, content[: len(content) // 2])  # a torn line
            raise
        return write(descriptor, content)

    with monkeypatch.context() as patch:
        patch.setattr(web_session.WebSession, "request", killed_request)
        patch.setattr(noted.os, "write", killed_write)
        for _ in range(times):
            countdown = chance.randint(20, 11 * len(desk.grades) // times)
            with pytest.raises(Killed):
                desk.send()
        countdown = 0
        assert desk.send().failed == {}


@pytest.mark.parametrize("seed", range(4))
def test_it_goes_on_after_a_kill(desk: Desk, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    desk.grades = dict.fromkeys(STUDENTS, 70.0)
    interrupted(desk, monkeypatch, 1, seed)
    assert set(desk.states().values()) == {PushState.SAME}
    assert [desk.there(student) for student in STUDENTS] == [70.0] * 4
    if isinstance(desk.lms, FakeCanvas):
        assert all(len(comments) == 1 for _, comments in desk.lms.told().values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_200_students_interrupted_five_times_end_as_undisturbed(
    kind: str, tmp_path: Path, a_result: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    students = [str(400101000 + number) for number in range(200)]
    told = []
    for name, times in (("undisturbed", 0), ("interrupted", 5)):
        lms = KINDS[kind](students)
        with served(lms):
            desk = Desk(lms, tmp_path / name, a_result)
            interrupted(desk, monkeypatch, times, 7)
            told.append(lms.told())
            writes = lms.writes
            assert desk.send() == Pushed((), {})
            assert lms.writes == writes
    assert told[0] == told[1] and len(told[0]) == 200


def test_canvas_keeps_excused_students_and_its_own_penalty(
    tmp_path: Path, a_result: Callable[..., Any]
) -> None:
    lms = FakeCanvas(STUDENTS)
    with served(lms):
        desk = Desk(lms, tmp_path, a_result)
        lms.of("400101201")["excused"] = True
        assert desk.send(overwrite={"400101201": "Anyway."}).sent == tuple(STUDENTS[1:])
        lms.of("400101202")["score"] = 55  # what Canvas takes off for lateness is no edit
        lms.of("400101203")["submission_comments"].append({"id": 1, "author_id": 1002, "comment": "Why?"})
        assert desk.states()["400101202"] is PushState.SAME and desk.states()["400101203"] is PushState.SAME
        lms.of("400101204")["submission_comments"][0]["comment"] = "Edited."
        assert desk.states()["400101204"] is PushState.EDITED
        lms.of("400101203")["submission_comments"].clear()
        assert desk.states()["400101203"] is PushState.EDITED


def test_a_colleague_goes_on_with_another_token(tmp_path: Path, a_result: Callable[..., Any]) -> None:
    lms = FakeCanvas(STUDENTS)
    with served(lms):
        desk = Desk(lms, tmp_path, a_result)
        desk.send()
        lms.owner = TEACHER
        assert set(desk.states().values()) == {PushState.SAME}
        desk.grades["400101202"] = 71.5
        assert desk.send().sent == ("400101202",)
        lms.owner = ME
        assert set(desk.states().values()) == {PushState.SAME}
        del lms.of("400101202")["submission_comments"][-1]
        line = next(line for line in desk.push().lines if line.name == "400101202")
        assert (line.state, line.detail) == (PushState.EDITED, "our comment was deleted there")


def test_a_new_attempt_that_nobody_graded_is_no_edit(tmp_path: Path, a_result: Callable[..., Any]) -> None:
    """Moodle has a grade for each attempt, and answers with that of the latest one."""
    lms = FakeMoodle(STUDENTS)
    with served(lms):
        desk = Desk(lms, tmp_path, a_result)
        desk.send()
        for student in STUDENTS[:2]:
            lms.save(lms.user(student), -1, TEACHER)  # somebody opened the page of the new attempt
        lms.grades[lms.user(STUDENTS[0])]["attemptnumber"] = 1
        desk.grades[STUDENTS[0]] = 71.5
        lines = {line.name: (line.state, line.detail) for line in desk.push().lines}
        assert lines[STUDENTS[0]] == (PushState.NEW, "")
        assert lines[STUDENTS[1]] == (PushState.EDITED, "the grade was changed there"), "it was taken back"
        assert desk.send().sent == (STUDENTS[0],)
        assert desk.there(STUDENTS[0]) == 71.5 and desk.states()[STUDENTS[0]] is PushState.SAME


def test_moodle_sees_who_saved_the_same_grade_again(tmp_path: Path, a_result: Callable[..., Any]) -> None:
    lms = FakeMoodle(STUDENTS)
    with served(lms):
        desk = Desk(lms, tmp_path, a_result)
        desk.send()
        desk.set_there("400101201", 60, ME)  # with another comment, say
        line = next(line for line in desk.push().lines if line.name == "400101201")
        assert (line.state, line.detail) == (PushState.EDITED, "somebody saved it there again")
