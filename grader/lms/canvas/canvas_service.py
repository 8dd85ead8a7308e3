"""Sends grades, comments and reports to Canvas by its Submissions API.

Pages of the API, as read in 2026:

* https://developerdocs.instructure.com/services/canvas/resources/submissions: "List assignment submissions"
  (`include[]=submission_comments`) and "Grade or comment on a submission" (`submission[posted_grade]`,
  `comment[text_comment]`, `comment[file_ids][]`), which answers with the submission
* https://developerdocs.instructure.com/services/canvas/resources/submission_comments: "Upload a file", the
  first of the three steps of https://developerdocs.instructure.com/services/canvas/basics/file.file_uploads
* https://developerdocs.instructure.com/services/canvas/resources/courses: "List users in course"
  (`search_users`)
* https://developerdocs.instructure.com/services/canvas/resources/assignments: `points_possible`,
  `grading_type`, `group_category_id`, `grade_group_students_individually`

`score` is after what Canvas itself takes off for lateness, `entered_score` before, as it was posted. A
comment is added each time, so that a request is never repeated blindly; what stands there shows whether it
arrived.
Tests: `tests/lms/test_canvas_service.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from canvasapi.assignment import Assignment as CanvasAssignment
from canvasapi.course import Course
from canvasapi.exceptions import CanvasException, InvalidAccessToken, ResourceDoesNotExist, Unauthorized
from canvasapi.requester import Requester
from canvasapi.submission import Submission

from grader.domain.formatting import points
from grader.lms.canvas.canvas_files import LMS
from grader.lms.online_assignment import (
    NOT_UNDERSTOOD,
    GradeDelivery,
    LmsUnavailable,
    OnlineStudent,
    PostedComment,
    ReplyLost,
    ReportFile,
    Standing,
    StudentRefused,
    not_understood,
)
from grader.lms.web_session import WebSession

# in each of these, a `posted_grade` without a percent sign is points
_POINTS = ("points", "percent", "letter_grade", "gpa_scale")


class CanvasOnline:
    """An assignment in Canvas.

    Args:
        session: To the site.
        course: The number in the course's address.
        assignment: The number in the assignment's address.

    Raises:
        LmsUnavailable: It does not exist, cannot be graded by points, or the token does not reach it.
    """

    lms = LMS
    takes_reports = True

    def __init__(self, session: WebSession, course: str, assignment: str) -> None:
        self._web = session
        self._requester = Requester(session.site, session.token)
        self._requester._session = _CanvasSession(session)
        with self._stopping(f"course {course}, assignment {assignment}"):
            self._me = str(self._requester.request("GET", "users/self").json()["id"])
            self._course = Course(self._requester, {"id": int(course)})
            self._assignment: CanvasAssignment = self._course.get_assignment(int(assignment))
            self.title = str(getattr(self._assignment, "name", ""))
            self.maximum = float(getattr(self._assignment, "points_possible", None) or 0)
        self.remarks = self._checked()

    def _checked(self) -> tuple[str, ...]:
        """What to know about the assignment.

        Raises:
            LmsUnavailable: It cannot take each student's own points.
        """
        kind = getattr(self._assignment, "grading_type", "points")
        if kind not in _POINTS:
            raise LmsUnavailable(
                f"Canvas grades '{self.title}' as {kind}, so points cannot be sent. "
                "Let it display grades as points."
            )
        is_shared = getattr(self._assignment, "group_category_id", None) and not getattr(
            self._assignment, "grade_group_students_individually", False
        )
        if is_shared:
            raise LmsUnavailable(
                f"Canvas would give each grade of '{self.title}' to a whole group. Let it assign grades to "
                "each student individually."
            )
        if getattr(self._assignment, "post_manually", False):
            return ("Canvas shows these grades to students when you post them there (Post grades).",)
        return ()

    def students(self) -> Sequence[OnlineStudent]:
        """The students of the course, without the Test Student."""
        with self._stopping("the students of the course"):
            users = list(self._course.get_users(enrollment_type=["student"], include=["email"]))
            return [
                OnlineStudent(
                    key=str(user.id),
                    number=str(user.id),
                    ids=tuple(
                        str(text)
                        for name in ("sis_user_id", "login_id", "integration_id", "email")
                        if (text := getattr(user, name, None))
                    ),
                    person=str(getattr(user, "name", "")),
                )
                for user in users
            ]

    def standings(self) -> Mapping[str, Standing]:
        """What stands there, by the students' numbers."""
        with self._stopping("the submissions of the assignment"):
            submissions = list(self._assignment.get_submissions(include=["submission_comments"]))
            return {str(submission.user_id): self._standing(vars(submission)) for submission in submissions}

    def standing(self, key: str) -> Standing:
        """What stands there for one student now."""
        with self._stopping(f"the submission of {key}"):
            found = self._assignment.get_submission(int(key), include=["submission_comments"])
            return self._standing(vars(found))

    def deliver(self, delivery: GradeDelivery) -> Standing:
        """Upload the report, then send grade and comment in one request."""
        with self._refusing():
            comment: dict[str, Any] = {"text_comment": delivery.comment}
            if delivery.report is not None:
                try:
                    comment["file_ids"] = [self._uploaded(delivery.key, delivery.report)]
                except ReplyLost:  # a file that no comment names is seen by nobody
                    comment["file_ids"] = [self._uploaded(delivery.key, delivery.report)]
            target = {
                "course_id": self._course.id,
                "assignment_id": self._assignment.id,
                "user_id": int(delivery.key),
            }
            submission = Submission(self._requester, target)
            submission.edit(submission={"posted_grade": points(delivery.points)}, comment=comment)
            after = vars(submission)
            if "submission_comments" in after:
                return self._standing(after)
        return self.standing(delivery.key)

    def _standing(self, submission: Mapping[str, Any]) -> Standing:
        entered = submission.get("entered_score", submission.get("score"))
        grader = submission.get("grader_id")
        return Standing(
            points=None if entered is None else float(entered),
            comments=tuple(
                PostedComment(
                    str(comment.get("id", "")),
                    str(comment.get("comment") or ""),
                    tuple(
                        str(file.get("display_name") or file.get("filename") or "")
                        for file in comment.get("attachments") or ()
                    ),
                    is_mine=str(comment.get("author_id")) == self._me,
                )
                for comment in submission.get("submission_comments") or ()
            ),
            is_mine=grader is None or str(grader) == self._me,
            keep="is excused in Canvas" if submission.get("excused") else "",
        )

    def _uploaded(self, key: str, report: ReportFile) -> int:
        """The number of a file that was uploaded for a comment.

        The three steps: ask where to, send it there without the token, and confirm it if Canvas asks so.
        """
        place = (
            f"courses/{self._course.id}/assignments/{self._assignment.id}/submissions/{key}/comments/files"
        )
        asked = self._requester.request(
            "POST", place, name=report.name, size=len(report.content), content_type="text/html"
        ).json()
        fields = {str(name): str(value) for name, value in (asked.get("upload_params") or {}).items()}
        file = (report.name, report.content, "text/html")
        sent = self._web.request("POST", str(asked.get("upload_url")), data=fields, files={"file": file})
        if sent.status_code >= 400:
            raise StudentRefused(f"the report was refused (status {sent.status_code})")
        confirm = sent.headers.get("Location", "")
        if 300 <= sent.status_code < 400 or (sent.status_code == 201 and confirm):
            # the token goes to Canvas only, never to a store of files
            own = urlsplit(confirm).netloc == urlsplit(self._web.site).netloc
            sent = self._requester.request("GET", _url=confirm, use_auth=own)
        document = sent.json()
        if "id" not in document:
            raise StudentRefused("Canvas did not say where the report is")
        return int(document["id"])

    @contextmanager
    def _stopping(self, what: str) -> Iterator[None]:
        """Errors of the API while something is read, as reasons to stop."""
        try:
            yield
        except (InvalidAccessToken, Unauthorized) as error:
            raise self._unauthorized(error) from None
        except ResourceDoesNotExist:
            raise LmsUnavailable(
                f"{self._web.site}: {what}: Canvas has no such thing, or the token does not reach it. "
                "Give the numbers in the assignment's address."
            ) from None
        except CanvasException as error:
            raise LmsUnavailable(
                f"{self._web.site}: {what}: Canvas refuses ({self._web.redacted(error)}). "
                "Use a teacher's token."
            ) from None
        except NOT_UNDERSTOOD:
            raise not_understood(self._web.site, what, self.lms) from None

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Errors of the API while something is sent, as reasons not to send it for this student."""
        try:
            yield
        except InvalidAccessToken as error:
            raise self._unauthorized(error) from None
        except CanvasException as error:
            raise StudentRefused(f"Canvas refused: {self._web.redacted(error)}") from None
        except NOT_UNDERSTOOD:
            raise ReplyLost("the answer was not understood") from None

    def _unauthorized(self, error: Exception) -> LmsUnavailable:
        return LmsUnavailable(
            f"{self._web.site} does not accept the token ({self._web.redacted(error)}). "
            "Make a new one in Canvas: Account, Settings, New Access Token."
        )


class _CanvasSession:
    """The session of canvasapi's requester, which passes its arguments by position."""

    def __init__(self, web: WebSession) -> None:
        self._web = web
        self.get: Callable[..., Any] = web.get
        self.put: Callable[..., Any] = web.put
        self.post: Callable[..., Any] = web.post
