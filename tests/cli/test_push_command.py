"""`grader push`: a difference first, then what is new or changed; no token is seen anywhere."""

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.edit import Released
from grader.gradebook import Gradebook
from tests.cli.test_export_command import STUDENTS, marked_class, nobody_else, said, totals
from tests.fake_lms import TOKEN, FakeCanvas, FakeMoodle, answer, served

__all__ = ["marked_class", "nobody_else"]
pytest.importorskip("canvasapi")
CANVAS = ("--course", "1201", "--assignment", "88")
MOODLE = ("--course", "42", "--assignment", "977")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CANVAS_URL", "MOODLE_URL", "MOODLE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANVAS_TOKEN", TOKEN)
    monkeypatch.setitem(sys.modules, "keyring", None)  # not this machine's


@pytest.fixture
def canvas(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCanvas]:
    lms = FakeCanvas([*STUDENTS, "400101299"])
    with served(lms) as url:
        monkeypatch.setenv("CANVAS_URL", url)
        yield lms


def test_first_the_difference_then_the_grades_then_nothing(
    marked_class: Path, canvas: FakeCanvas, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    dry = said("push", "canvas", marked_class, *CANVAS, "--dry-run")
    assert dry.startswith("4 new, 1 unknown.\n  400101201: new, ") and canvas.writes == 0
    assert "  Student 4 (400101299, 1004): unknown (has no result here)\n" in dry
    assert not (marked_class / "pushed").exists()
    outputs = [dry, said("push", "canvas", marked_class, *CANVAS)]
    assert "Sent for 4\N{NO-BREAK SPACE}students.\n" in outputs[-1]
    grades = {student: grade for student, (grade, _) in canvas.told().items() if grade is not None}
    assert grades == totals(marked_class)
    [(_, report), *_] = canvas.files.values()
    assert report == (marked_class / "students/400101201/report.html").read_bytes()
    [footer] = re.findall(rb"<footer>.*?</footer>", report, re.DOTALL)
    made = re.findall(rb"\d{4}-\d\d-\d\d \d\d:\d\d", report)
    assert made == re.findall(rb"\d{4}-\d\d-\d\d \d\d:\d\d", footer), "only it tells when it was made"
    with Gradebook(marked_class) as book:
        ways = [edit.way for edit in book.snapshot().edits if isinstance(edit, Released)]
    assert ways == ["push-canvas"] * 4
    writes = canvas.writes
    outputs.append(said("push", "canvas", marked_class, *CANVAS))
    assert "4 same" in outputs[-1] and "Nothing to send.\n" in outputs[-1] and canvas.writes == writes
    said("marks", "set", marked_class, "400101201", "q6", "0.5", "--why", "Misread.", "--allow-lower")
    outputs.append(said("push", "canvas", marked_class, *CANVAS, code=2))
    assert "  400101201: changed, " in outputs[-1] and " here, which is less\n" in outputs[-1]
    assert "Nothing was sent. If meant, add --allow-lower." in outputs[-1] and canvas.writes == writes
    outputs.append(said("push", "canvas", marked_class, *CANVAS, "--allow-lower"))
    assert "Sent for 1\N{NO-BREAK SPACE}student.\n" in outputs[-1]
    seen = "".join(outputs) + caplog.text
    assert TOKEN not in seen and TOKEN[-6:] not in seen
    files = [path for path in marked_class.rglob("*") if path.is_file()]
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]
    # where files are kept is none of Canvas's own business
    stores = [request for request in canvas.requests if request.path == "/files/upload"]
    assert stores and not any("Authorization" in request.headers for request in stores)


def test_nothing_is_sent_while_a_grade_awaits_a_person(graded_class: Path, canvas: FakeCanvas) -> None:
    output = said("push", "canvas", graded_class, *CANVAS, code=2)
    assert "4 of 4 grades still await a person" in output and canvas.writes == 0
    output = said("push", "canvas", graded_class, *CANVAS, "--partial")
    assert output.startswith("1 unknown, 4 without a grade.") and canvas.writes == 0


def test_what_stands_there_without_a_result_here_is_told(marked_class: Path, canvas: FakeCanvas) -> None:
    canvas.of("400101299").update(score=55, entered_score=55, grader_id=1)
    output = said("push", "canvas", marked_class, *CANVAS, "--dry-run")
    assert "  Student 4 (400101299, 1004): unknown, 55 there (has no result here)\n" in output


def test_the_exit_code_tells_of_a_failure(marked_class: Path, canvas: FakeCanvas) -> None:
    canvas.fault = lambda request: (
        answer({"errors": [{"message": "no"}]}, 400)
        if request.method == "PUT" and request.path.endswith("/1001")
        else None
    )
    output = said("push", "canvas", marked_class, *CANVAS, code=1)
    assert (
        "  400101202: not sent: Canvas refused: " in output
        and "Sent for 3\N{NO-BREAK SPACE}students" in output
    )


def test_a_token_that_is_refused_shows_nothing(marked_class: Path, canvas: FakeCanvas, monkeypatch) -> None:
    monkeypatch.setenv("CANVAS_TOKEN", "7~another-token")
    for words in (["push"], ["--traceback", "push"]):
        result = CliRunner().invoke(cli, [*words, "canvas", str(marked_class), *CANVAS], prog_name="grader")
        told = f"{result.output}{result.exception}"
        assert result.exit_code != 0 and "does not accept the token" in told and "another-token" not in told


def test_what_is_lacking_is_said(graded_class: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = ("--url", "https://lms.example.edu")
    assert "--url ADDRESS, or $CANVAS_URL" in said("push", "canvas", graded_class, *CANVAS, code=2)
    plain = ("--url", "http://lms.example.edu")
    assert "Give the https:// address" in said("push", "canvas", graded_class, *CANVAS, *plain, code=2)
    output = said("push", "moodle", graded_class, *MOODLE, *where, code=2)
    assert (
        "environment as MOODLE_TOKEN" in output and "keyring set 'grader push moodle' https://lms" in output
    )
    monkeypatch.setenv("CANVAS_TOKEN", f"{TOKEN}\u00e9")
    output = said("push", "canvas", graded_class, *CANVAS, *where, code=2)
    assert "cannot be a token" in output and TOKEN not in output
    output = said("push", "canvas", graded_class, *CANVAS, *where, "--overwrite", "400101201", code=2)
    assert "--overwrite and --why belong together" in output
    output = said("push", "canvas", graded_class, "--course", "../1", "--assignment", "8", *where, code=2)
    assert "'../1' is not a number" in output


def test_the_token_may_be_in_the_keyring(marked_class: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lms = FakeMoodle(list(STUDENTS))
    with served(lms) as url:
        keyring, errors = ModuleType("keyring"), ModuleType("keyring.errors")
        kept = {("grader push moodle", url): TOKEN}
        vars(keyring)["get_password"] = lambda service, name: kept.get((service, name))
        vars(errors)["KeyringError"] = RuntimeError
        monkeypatch.setitem(sys.modules, "keyring", keyring)
        monkeypatch.setitem(sys.modules, "keyring.errors", errors)
        output = said("push", "moodle", marked_class, *MOODLE, "--url", url)
    assert "Sent for 4\N{NO-BREAK SPACE}students." in output and TOKEN not in output
    assert {student: float(grade) for student, (grade, _) in lms.told().items()} == totals(marked_class)


def test_without_the_packages_it_says_what_to_install(
    graded_class: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.lms.web_session.find_spec", lambda _: None)
    output = said("push", "canvas", graded_class, *CANVAS, "--url", "https://lms.example.edu", code=2)
    assert "pip install 'vit-grader[push]'" in output


@pytest.mark.slow
def test_killed_it_goes_on(marked_class: Path, canvas: FakeCanvas) -> None:
    """`kill -9` while the second student's grade is carried out, and again before the third one's."""
    command = [sys.executable, "-m", "grader", "push", "canvas", str(marked_class), *CANVAS]
    process = SimpleNamespace(pid=0)

    def killing(key: str) -> None:
        def fault(request):
            if request.method == "PUT" and request.path.endswith(key):
                os.kill(process.pid, signal.SIGKILL)
                time.sleep(0.2)
            return

        canvas.fault = fault

    for key in ("/1001", "/1002"):
        killing(key)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.pid = running.pid
        output, _ = running.communicate(timeout=120)
        assert running.returncode == -signal.SIGKILL and TOKEN not in output
    canvas.fault = lambda _: None
    assert "1 new, 3 same" in said("push", "canvas", marked_class, *CANVAS)
    told = canvas.told()
    assert {one: told[one][0] for one in STUDENTS} == totals(marked_class)
    assert all(len(told[one][1]) == 1 for one in STUDENTS)
