"""Canvas and Moodle as a server within the test process: their answers have the documented form.

Canvas: https://developerdocs.instructure.com/services/canvas/resources/submissions and beside it, users,
assignments, submission_comments, and file uploads. Moodle: https://docs.moodle.org/dev/Web_service_API_functions
and https://moodledev.io/docs/apis/subsystems/external/files. No test has met a real one.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

TOKEN = "7~aVerySecretTokenOfTheTeacher"
ME, TEACHER = 900, 901
Answer = tuple[int, dict[str, str], bytes]
Fault = Callable[["Request"], Answer | str | None]
"""Request -> what is answered instead; `lost`: carried out, and no answer; None: nothing special."""


class Request:
    """A request as the server got it."""

    def __init__(self, method: str, path: str, headers: Any, body: bytes) -> None:
        self.method, self.headers = method, headers
        self.path, _, query = path.partition("?")
        self.fields: list[tuple[str, str]] = parse_qsl(query, keep_blank_values=True)
        self.files: dict[str, tuple[str, bytes]] = {}
        kind = headers.get("Content-Type", "")
        if kind.startswith("multipart/"):
            message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
            for part in message.iter_parts():
                name, content = (
                    str(part.get_param("name", header="content-disposition")),
                    part.get_payload(decode=True),
                )
                if part.get_filename():
                    self.files[name] = part.get_filename(), content
                else:
                    self.fields.append((name, content.decode()))
        else:
            self.fields += parse_qsl(body.decode(), keep_blank_values=True)

    @property
    def values(self) -> dict[str, str]:
        return dict(self.fields)


def answer(document: Any, status: int = 200, **headers: str) -> Answer:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(document).encode()


class FakeLms:
    """What both have in common: requests are counted, and `fault` may answer instead."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.fault: Fault = lambda _: None
        self.url = ""
        self.lock = threading.Lock()

    @property
    def writes(self) -> int:
        return sum(self.is_write(request) for request in self.requests)

    def is_write(self, request: Request) -> bool:
        raise NotImplementedError

    def respond(self, request: Request) -> Answer:
        raise NotImplementedError


class FakeCanvas(FakeLms):
    """A course with one assignment."""

    def __init__(self, students: list[str]) -> None:
        super().__init__()
        self.users = {
            1000 + number: {
                "id": 1000 + number,
                "name": f"Student {number}",
                "sis_user_id": student,
                "login_id": f"u{number}",
                "email": f"u{number}@example.edu",
            }
            for number, student in enumerate(students)
        }
        self.assignment: dict[str, Any] = {
            "id": 88,
            "course_id": 1201,
            "name": "Lab 8",
            "points_possible": 100.0,
            "grading_type": "points",
            "group_category_id": None,
            "post_manually": False,
        }
        self.submissions: dict[int, dict[str, Any]] = {}
        self.files: dict[int, tuple[str, bytes]] = {}
        self.numbers = iter(range(5000, 10**6))
        self.owner = ME  # of the token

    def is_write(self, request: Request) -> bool:
        return request.method != "GET"

    def of(self, student: str) -> dict[str, Any]:
        """The submission of a student, by the SIS user id."""
        key = next(key for key, user in self.users.items() if user["sis_user_id"] == student)
        return self.submission(key)

    def submission(self, key: int) -> dict[str, Any]:
        empty = {
            "user_id": key,
            "assignment_id": 88,
            "score": None,
            "entered_score": None,
            "grader_id": None,
            "excused": False,
            "workflow_state": "submitted",
            "submission_comments": [],
        }
        return self.submissions.setdefault(key, empty)

    def respond(self, request: Request) -> Answer:
        path, base = request.path, "/api/v1/courses/1201"
        if path == "/files/upload":  # the store of files, which gets no token
            number = next(self.numbers)
            self.files[number] = next(iter(request.files.values()))
            return answer({}, 201, Location=f"{self.url}/api/v1/files/{number}/create_success")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return answer(
                {"errors": [{"message": "Invalid access token."}]}, 401, **{"WWW-Authenticate": "Bearer"}
            )
        if found := re.fullmatch(r"/api/v1/files/(\d+)/create_success", path):
            return answer({"id": int(found[1]), "display_name": self.files[int(found[1])][0], "url": "x"})
        if path == "/api/v1/users/self":
            return answer({"id": self.owner, "name": "Teacher"})
        if path == f"{base}/assignments/88":
            return answer(self.assignment)
        if path == f"{base}/search_users":
            return self.page(request, list(self.users.values()))
        submissions = f"{base}/assignments/88/submissions"
        if path == submissions:
            return self.page(request, [self.submission(key) for key in self.users])
        if found := re.fullmatch(rf"{submissions}/(\d+)/comments/files", path):
            values = request.values
            return answer(
                {"upload_url": f"{self.url}/files/upload", "upload_params": {"key": values["name"]}}
            )
        if found := re.fullmatch(rf"{submissions}/(\d+)", path):
            key = int(found[1])
            if request.method == "PUT":
                self.grade(self.submission(key), request)
            return answer(self.submission(key))
        return answer({"errors": [{"message": "The specified resource does not exist."}]}, 404)

    def page(self, request: Request, entries: list[Any]) -> Answer:
        number, size = int(request.values.get("page", "1")), int(request.values.get("per_page", "10"))
        last = number * size >= len(entries)
        link = f'<{self.url}{request.path}?page={number + 1}&per_page={size}>; rel="next"'
        return answer(entries[(number - 1) * size : number * size], **({} if last else {"Link": link}))

    def grade(self, submission: dict[str, Any], request: Request) -> None:
        values = request.values
        posted = float(values["submission[posted_grade]"])
        submission |= {
            "score": posted,
            "entered_score": posted,
            "grader_id": self.owner,
            "workflow_state": "graded",
        }
        numbers = [int(value) for name, value in request.fields if name.startswith("comment[file_ids]")]
        submission["submission_comments"].append(
            {
                "id": next(self.numbers),
                "author_id": self.owner,
                "comment": values["comment[text_comment]"],
                "attachments": [{"id": one, "display_name": self.files[one][0]} for one in numbers],
            }
        )

    def told(self) -> dict[str, Any]:
        """Everything that students see, without the numbers."""
        return {
            self.users[key]["sis_user_id"]: (
                one["entered_score"],
                [
                    (comment["comment"], [file["display_name"] for file in comment["attachments"]])
                    for comment in one["submission_comments"]
                ],
            )
            for key, one in self.submissions.items()
        }


class FakeMoodle(FakeLms):
    """A course with one assignment, whose clock counts the changes."""

    def __init__(self, students: list[str]) -> None:
        super().__init__()
        self.users = [
            {
                "id": 30 + number,
                "username": f"u{number}",
                "fullname": f"Student {number}",
                "email": f"u{number}@example.edu",
                "idnumber": student,
                "roles": [{"roleid": 5, "shortname": "student"}],
            }
            for number, student in enumerate(students)
        ]
        self.assignment: dict[str, Any] = {
            "id": 7,
            "cmid": 977,
            "course": 42,
            "name": "Lab 8",
            "grade": 100,
            "teamsubmission": 0,
            "markingworkflow": 0,
            "configs": [
                {"plugin": plugin, "subtype": "assignfeedback", "name": "enabled", "value": "1"}
                for plugin in ("comments", "file")
            ],
        }
        self.grades: dict[int, dict[str, Any]] = {}
        self.feedback: dict[int, tuple[str, tuple[str, ...]]] = {}
        self.drafts: dict[int, tuple[str, bytes]] = {}
        self.clock = 1_700_000_000
        self.numbers = iter(range(5000, 10**6))

    def is_write(self, request: Request) -> bool:
        is_upload = request.path.endswith("upload.php")
        return is_upload or request.values.get("wsfunction") == "mod_assign_save_grades"

    def user(self, student: str) -> int:
        return next(int(user["id"]) for user in self.users if user["idnumber"] == student)

    def save(self, user: int, grade: float, grader: int = ME) -> None:
        self.clock += 1
        self.grades[user] = {
            "id": 100 + user,
            "userid": user,
            "attemptnumber": self.grades.get(user, {}).get("attemptnumber", 0),
            "timecreated": self.clock,
            "timemodified": self.clock,
            "grader": grader,
            "grade": f"{grade:.5f}",
        }

    def respond(self, request: Request) -> Answer:
        values = request.values
        if request.path == "/webservice/upload.php":
            if values.get("token") != TOKEN:
                return answer({"error": "Invalid token", "errorcode": "invalidtoken"})
            number = next(self.numbers)
            self.drafts[number] = next(iter(request.files.values()))
            return answer([{"component": "user", "filearea": "draft", "itemid": number, "filename": "x"}])
        if values.get("wstoken") != TOKEN:
            return refusal("invalidtoken", "Invalid token - token not found")
        function = values["wsfunction"]
        if function == "core_webservice_get_site_info":
            return answer({"sitename": "Moodle", "userid": ME})
        if function == "core_enrol_get_enrolled_users":
            return answer(
                [*self.users, {"id": ME, "fullname": "T", "roles": [{"shortname": "editingteacher"}]}]
            )
        if function == "mod_assign_get_assignments":
            return answer({"courses": [{"id": 42, "assignments": [self.assignment]}], "warnings": []})
        if function == "mod_assign_get_user_mappings":
            mappings = [{"id": 7000 + user["id"], "userid": user["id"]} for user in self.users]
            return answer({"assignments": [{"assignmentid": 7, "mappings": mappings}], "warnings": []})
        if function == "mod_assign_get_grades":
            since = int(values["since"])
            grades = [grade for grade in self.grades.values() if grade["timemodified"] >= since]
            found = [{"assignmentid": 7, "grades": grades}] if grades else []
            return answer({"assignments": found, "warnings": []})
        if function == "mod_assign_save_grades":
            user = int(values["grades[0][userid]"])
            self.save(user, float(values["grades[0][grade]"]))
            draft = values.get("grades[0][plugindata][files_filemanager]")
            text = values.get("grades[0][plugindata][assignfeedbackcomments_editor][text]", "")
            self.feedback[user] = text, (self.drafts[int(draft)][0],) if draft else ()
            return answer(None)
        return refusal("accessexception", "Access control exception")

    def told(self) -> dict[str, Any]:
        """Everything that students see, without the times."""
        return {
            str(user["idnumber"]): (self.grades[user["id"]]["grade"], self.feedback.get(user["id"]))
            for user in self.users
            if user["id"] in self.grades
        }


def refusal(code: str, message: str) -> Answer:
    """An error as Moodle's web services give it, with status 200."""
    return answer({"exception": "moodle_exception", "errorcode": code, "message": message})


@contextmanager
def served(lms: FakeLms) -> Iterator[str]:
    """The address under which a fake answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, self.headers, body)
            with lms.lock:
                lms.requests.append(request)
                special = lms.fault(request)
                status, headers, content = special if isinstance(special, tuple) else lms.respond(request)
            if special == "lost":
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = handle_any  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        lms.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield lms.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
