"""Sends grades, comments and reports to Moodle by its web services.

Pages of the API, as read in 2026:

* https://docs.moodle.org/dev/Web_service_API_functions, and on a site itself Site administration, Server, Web
  services, API documentation: `core_webservice_get_site_info`, `core_enrol_get_enrolled_users`,
  `mod_assign_get_assignments`, `mod_assign_get_grades`, `mod_assign_get_user_mappings`,
  `mod_assign_save_grades`
* https://moodledev.io/docs/apis/subsystems/external/files: `webservice/upload.php`, which puts a file into a
  draft area, whose number `files_filemanager` takes
* mod/assign/externallib.php: `get_grades` gives the grade of each student's latest attempt, with `since`
  those that were modified since; parameters of feedback (`assignfeedbackcomments_editor`) come from
  mod/assign/feedback/*/locallib.php

An error comes with status 200 and an `exception`. Saving a grade replaces the comment and the feedback files,
and renews `timemodified`, in whichever way somebody saves it. The number in the names of downloaded files is
that of `mod_assign_get_user_mappings`, not the user's. Tests: `tests/lms/test_moodle_service.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from grader.domain.errors import Interruption
from grader.domain.formatting import listed, points
from grader.lms.moodle.grade_tables import LMS
from grader.lms.online_assignment import (
    NOT_UNDERSTOOD,
    NOTHING_THERE,
    GradeDelivery,
    LmsUnavailable,
    OnlineStudent,
    ReplyLost,
    ReportFile,
    Standing,
    StudentRefused,
    not_understood,
)
from grader.lms.web_session import WebSession

_HTML = 1  # FORMAT_HTML
_LATEST = -1  # attempt
_STOPS = ("invalidtoken", "accessexception", "servicenotavailable", "servicerequireslogin", "invalidsesskey")
_STUDENT = "student"
_HOW_TO_ALLOW = "Let an administrator allow it: docs/ta/release.md lists the functions."


class _MoodleError(Interruption):
    """What Moodle answered with status 200.

    Attributes:
        code: Its `errorcode`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class MoodleOnline:
    """An assignment in Moodle.

    Args:
        session: To the site.
        course: The number in the course's address.
        assignment: The number in the assignment's address (`mod/assign/view.php?id=...`).

    Raises:
        LmsUnavailable: It does not exist, cannot be graded by points, or the token does not reach it.
    """

    lms = LMS

    def __init__(self, session: WebSession, course: str, assignment: str) -> None:
        self._web = session
        self._course = course
        with self._understanding(f"course {course}, assignment {assignment}"):
            self._me = str(self._read("core_webservice_get_site_info").get("userid", ""))
            self._about = self._found(assignment)
            self._id = str(self._about["id"])
            self._newest = 0
            self.title = str(self._about.get("name", ""))
            self.maximum = float(self._about.get("grade") or 0)
            self.remarks = self._checked()

    def _found(self, assignment: str) -> Mapping[str, Any]:
        courses = self._read("mod_assign_get_assignments", courseids=[self._course]).get("courses") or []
        all_assignments = [entry for course in courses for entry in course.get("assignments") or ()]
        found = [entry for entry in all_assignments if str(entry.get("cmid")) == assignment]
        if not found:
            known = [f"{entry.get('cmid')} ({entry.get('name')})" for entry in all_assignments]
            raise LmsUnavailable(
                f"{self._web.site}: course {self._course} has no assignment {assignment} that the token "
                f"reaches. There {'is' if len(known) == 1 else 'are'}: "
                f"{self._web.redacted(listed(known) if known else 'none')}. The number is the one at the end "
                "of the assignment's address, after id=."
            )
        return dict(found[0])

    def _checked(self) -> tuple[str, ...]:
        """What to know about the assignment; notes whether it takes reports and comments.

        Raises:
            LmsUnavailable: It cannot take each student's own points.
        """
        if self.maximum <= 0:
            raise LmsUnavailable(
                f"Moodle grades '{self.title}' by a scale, or not at all, so points cannot be sent. "
                "Let it grade by points."
            )
        if int(self._about.get("teamsubmission") or 0):
            raise LmsUnavailable(
                f"'{self.title}' is handed in by groups, and Moodle's web services do not tell grades of "
                "groups, so nothing can be compared. Use `grader export moodle-worksheet`."
            )
        feedback = {
            str(config.get("plugin"))
            for config in self._about.get("configs") or ()
            if config.get("subtype") == "assignfeedback"
            and config.get("name") == "enabled"
            and str(config.get("value")) == "1"
        }
        self.takes_reports = "file" in feedback
        self._takes_comments = "comments" in feedback
        remarks = []
        if not self.takes_reports:
            remarks.append(
                "Moodle takes no feedback files here, so no report is sent. Allow Feedback files in the "
                "settings of the assignment."
            )
        if not self._takes_comments:
            remarks.append("Moodle takes no feedback comments here, so none is sent.")
        if int(self._about.get("markingworkflow") or 0):
            remarks.append("The assignment uses marking workflow: what is sent is released.")
        return tuple(remarks)

    def students(self) -> Sequence[OnlineStudent]:
        """Those who are enrolled as students."""
        with self._understanding("the students of the course"):
            users = self._read("core_enrol_get_enrolled_users", courseid=self._course)
            numbers = self._participants()
            return [
                OnlineStudent(
                    key=str(user["id"]),
                    number=numbers.get(str(user["id"]), ""),
                    ids=tuple(
                        str(user[name]) for name in ("idnumber", "username", "email") if user.get(name)
                    ),
                    person=str(user.get("fullname", "")),
                )
                for user in users
                if _is_student(user)
            ]

    def _participants(self) -> dict[str, str]:
        """User -> the number in the names of downloaded files, as far as Moodle tells."""
        try:
            document = self._call("mod_assign_get_user_mappings", repeatable=True, assignmentids=[self._id])
        except _MoodleError:  # this function is not in the service: ids are compared
            return {}
        return {
            str(mapping["userid"]): str(mapping["id"])
            for entry in document.get("assignments") or ()
            for mapping in entry.get("mappings") or ()
        }

    def standings(self) -> Mapping[str, Standing]:
        """What stands there, by the numbers of the users."""
        return self._standings(since=0)

    def _standings(self, since: int) -> dict[str, Standing]:
        with self._understanding("the grades of the assignment"):
            document = self._read("mod_assign_get_grades", assignmentids=[self._id], since=since)
            self._require_access(document)
            grades = {
                str(grade["userid"]): grade
                for entry in document.get("assignments") or ()
                for grade in entry.get("grades") or ()
            }
            times = [int(grade.get("timemodified") or 0) for grade in grades.values()]
            self._newest = max([self._newest, *times])
            return {key: self._standing(grade) for key, grade in grades.items()}

    def standing(self, key: str) -> Standing:
        """What stands there for one student now."""
        return self._standings(since=0).get(key, NOTHING_THERE)

    def deliver(self, delivery: GradeDelivery) -> Standing:
        """Upload the report, then save grade, comment and report in one request."""
        try:
            plugins: dict[str, Any] = {}
            if self._takes_comments:
                text = escape(delivery.comment, quote=False)
                plugins["assignfeedbackcomments_editor"] = {"text": f"<p>{text}</p>", "format": _HTML}
            if delivery.report is not None:
                plugins["files_filemanager"] = self._draft(delivery.report)
            grade = {
                "userid": delivery.key,
                "grade": points(delivery.points),
                "attemptnumber": _LATEST,
                "addattempt": 0,
                "workflowstate": "released" if int(self._about.get("markingworkflow") or 0) else "",
                **({"plugindata": plugins} if plugins else {}),
            }
            self._call("mod_assign_save_grades", assignmentid=self._id, applytoall=0, grades=[grade])
        except _MoodleError as error:
            if error.code in _STOPS:
                raise self._unavailable("mod_assign_save_grades", error) from None
            raise StudentRefused(f"Moodle refused: {self._web.redacted(error)}") from None
        except NOT_UNDERSTOOD:
            raise ReplyLost("the answer was not understood") from None
        # a clock of ours may differ from Moodle's, so that its own newest time counts
        there = self._standings(since=self._newest).get(delivery.key)
        return there if there is not None else self.standing(delivery.key)

    def _standing(self, grade: Mapping[str, Any]) -> Standing:
        try:
            given = float(str(grade.get("grade") or ""))
        except ValueError:
            given = -1.0
        grader = str(grade.get("grader", ""))
        return Standing(
            points=given if given >= 0 else None,  # -1: opened, and not graded
            version=f"{grade.get('attemptnumber', 0)}@{grade.get('timemodified', 0)}",
            is_mine=grader in ("", "-1", self._me),  # -1: the site hides who graded
            attempt=int(grade.get("attemptnumber") or 0),
        )

    def _draft(self, report: ReportFile) -> int:
        """The number of a new draft area with the report."""
        response = self._web.request(
            "POST",
            f"{self._web.site}/webservice/upload.php",
            data={"token": self._web.token, "filearea": "draft", "itemid": "0"},
            files={"file_1": (report.name, report.content, "text/html")},
            repeatable=True,  # a draft that nothing names goes away by itself
        )
        document = self._document(response)
        if not isinstance(document, list) or not document or "itemid" not in document[0]:
            raise StudentRefused("Moodle did not say where the report is")
        return int(document[0]["itemid"])

    @contextmanager
    def _understanding(self, what: str) -> Iterator[None]:
        """Answers of another form than the documented one, as a reason to stop."""
        try:
            yield
        except NOT_UNDERSTOOD:
            raise not_understood(self._web.site, what, self.lms) from None

    # --- calls --------------------------------------------------------------------------------------------

    def _read(self, function: str, **parameters: Any) -> Any:
        try:
            return self._call(function, repeatable=True, **parameters)
        except _MoodleError as error:
            raise self._unavailable(function, error) from None

    def _call(self, function: str, *, repeatable: bool = False, **parameters: Any) -> Any:
        """What a function returns.

        The token is in the body: addresses stand in logs.
        """
        data = {
            "wstoken": self._web.token,
            "wsfunction": function,
            "moodlewsrestformat": "json",
            **dict(_flat(parameters)),
        }
        address = f"{self._web.site}/webservice/rest/server.php"
        return self._document(self._web.request("POST", address, data=data, repeatable=repeatable))

    def _document(self, response: Any) -> Any:
        try:
            document = response.json()
        except ValueError:
            # no JSON: an error, unless the answer is empty
            document = None if response.status_code < 400 and not response.text.strip() else {"exception": ""}
        if isinstance(document, dict) and ("exception" in document or "errorcode" in document):
            message = document.get("message") or document.get("error")
            raise _MoodleError(
                str(document.get("errorcode", "")), str(message or f"status {response.status_code}")
            )
        return document

    def _require_access(self, document: Mapping[str, Any]) -> None:
        denied = [entry for entry in document.get("warnings") or () if str(entry.get("warningcode")) == "1"]
        if denied:
            raise LmsUnavailable(
                f"{self._web.site}: the token's owner may not grade '{self.title}' "
                f"({self._web.redacted(denied[0].get('message', ''))}). Use a teacher's token."
            )

    def _unavailable(self, function: str, error: _MoodleError) -> LmsUnavailable:
        reason = self._web.redacted(error)
        if error.code == "invalidtoken":
            return LmsUnavailable(
                f"{self._web.site} does not accept the token ({reason}). Look in Moodle under Preferences, "
                "Security keys."
            )
        return LmsUnavailable(f"{self._web.site} refuses {function} ({reason}). {_HOW_TO_ALLOW}")


def _is_student(user: Mapping[str, Any]) -> bool:
    """Whether a user is enrolled as a student, or the site does not tell roles."""
    roles = [str(role.get("shortname", "")) for role in user.get("roles") or ()]
    return not roles or any(_STUDENT in role for role in roles)


def _flat(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Parameters as PHP reads them: `grades[0][userid]`."""

    def walked(name: str, value: Any) -> Iterator[tuple[str, str]]:
        entries = (
            value.items()
            if isinstance(value, Mapping)
            else enumerate(value)
            if isinstance(value, list)
            else None
        )
        if entries is None:
            yield name, str(value)
            return
        for key, entry in entries:
            yield from walked(f"{name}[{key}]", entry)

    for name, value in parameters.items():
        yield from walked(name, value)
