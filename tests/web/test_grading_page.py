"""A grading that is followed, started again and stopped in the console, and outlives it."""

import os
import signal
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.evidence import Evidence, Finding, Status
from grader.files.stored_records import validator
from grader.gradebook import Gradebook
from grader.grading.recorded_run import (
    FOLDER,
    REQUESTS,
    RUN,
    RecordedRequest,
    RecordedRun,
    RunPhase,
    UnderWay,
    is_recording,
    last_run,
    taken_lock,
)
from grader.marking.audit_log import audit_log
from grader.results.class_pages import grading
from grader.web import started_grading
from grader.web.access import StaffRole
from tests.web.conftest import SCRIPT
from tests.web.test_console_in_browser import started

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def asked(path, assignment_id="vit_defects", course="/", **more):
    """What was asked for before."""
    return RecordedRequest(
        path=str(path), assignment=assignment_id, course=str(course), data="", jobs=2, device="cpu",
        extensions="", roster="", unofficial=False, when=NOW, **more,
    )  # fmt: skip


def keep(out, *requests, run=None):
    """Write the record of earlier gradings."""
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    kept = validator(tuple[RecordedRequest, ...]).dump_json(requests)
    (out / FOLDER / REQUESTS).write_bytes(kept)
    if run is not None:
        (out / FOLDER / RUN).write_bytes(validator(RecordedRun).dump_json(run))


@pytest.fixture
def head(come):
    return come("head", StaffRole.HEAD)


@pytest.fixture
def download(desk, tmp_path):
    """What was graded before."""
    path = tmp_path / "download.zip"
    path.write_bytes(b"")
    keep(desk.out, asked(path))
    return path


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A program in the place of the grader, which notes how it was called and waits; ends with the test."""
    note = tmp_path / "called"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho $$ "$@" > {note}.part\nmv {note}.part {note}\nexec sleep 60\n')
    program.chmod(0o755)
    monkeypatch.setattr(started_grading.sys, "executable", str(program))

    def called():
        for _ in range(200):
            if note.exists():
                pid, *words = note.read_text().split()
                return int(pid), words
            time.sleep(0.05)
        raise AssertionError("Nothing was started.")

    yield called
    if note.exists():
        os.kill(called()[0], signal.SIGKILL)


def test_only_heads_see_and_start_it(come, download, stand_in):
    ta = come("ta1")
    assert ta.get("/grading").status_code == ta.get("/grading/progress").status_code == 403
    assert ta.post("/grading/start", path=str(download)).status_code == 403
    assert ta.post("/grading/stop").status_code == 403


def test_what_was_asked_before_is_started_as_a_process_of_its_own(head, desk, download, stand_in):
    assert str(download) in head.get("/grading").text
    answer = head.post("/grading/start", path=str(download), only="400101204, 400101205", force="yes")
    assert (answer.status_code, answer.headers["location"]) == (303, "/grading")
    pid, words = stand_in()
    assert pid != os.getpid() and os.getsid(pid) != os.getsid(0), "it outlives the console"
    assert words[:3] == ["-m", "grader", "grade"] and words[-2:] == ["--", str(download)]
    assert {"--only=400101204", "--only=400101205", "--force", "--by=head", f"--out={desk.out}"} <= set(words)
    assert is_recording(desk.out)
    again = head.post("/grading/start", path=str(download))
    assert again.status_code == 422 and "running already" in again.text
    entry = next(one.detail for one in audit_log(desk) if "started a grading" in one.detail)
    assert entry.endswith("download.zip, only 400101204 400101205, also what has not changed")


@pytest.mark.parametrize(
    ("path", "sentence"), [("/etc/passwd", "Choose what to grade"), ("", "Choose what to grade")]
)
def test_nothing_else_can_be_graded(head, download, stand_in, path, sentence):
    answer = head.post("/grading/start", path=path)
    assert answer.status_code == 422 and sentence in answer.text


def test_what_is_gone_or_being_graded_is_said(head, desk, download, stand_in):
    with grading(desk.out):
        answer = head.post("/grading/start", path=str(download))
        assert answer.status_code == 422 and "being graded already" in answer.text
        assert "by a command of which nothing more is known" in head.get("/grading").text
    download.unlink()
    answer = head.post("/grading/start", path=str(download))
    assert answer.status_code == 422 and "no longer there" in answer.text


def test_without_a_record_the_command_is_named(head):
    assert "grade once by <code>grader grade</code>" in head.get("/grading").text


def test_a_grading_of_somebody_else_is_followed_and_stopped(head, desk, download):
    under_way = (UnderWay(f"4001{SCRIPT}", "checks", 0.5, f"22 of 44 {SCRIPT}"),)
    run = RecordedRun(
        "r1", f"ta1 {SCRIPT}", NOW, RunPhase.GRADING, "1 of 4 done", 0.3, "12 s, about 28 s left", under_way
    )
    keep(desk.out, asked(download), run=run)
    lock = taken_lock(desk.out)
    try:
        page, part = head.get("/grading"), head.get("/grading/progress")
        for answer in (page, part):
            assert "1 of 4 done; 12 s, about 28 s left" in answer.text and "22 of 44" in answer.text
            assert "<script>document" not in answer.text and "every 2s" in answer.text
        assert 'id="stop"' in page.text and 'id="start"' not in page.text
        assert head.post("/grading/stop").headers["location"] == "/grading?asked=stop"
        assert (desk.out / FOLDER / "stop").read_text() == "r1"
    finally:
        os.close(lock)
    after = head.get("/grading/progress")
    assert after.headers["hx-refresh"] == "true" and "ended without a word" in after.text
    assert 'id="start"' in head.get("/grading").text
    keep(desk.out, asked(download), run=replace(run, phase=RunPhase.FAILED, said=f"The disk {SCRIPT}."))
    assert "The last grading failed" in head.get("/grading").text


@pytest.mark.slow
@pytest.mark.browser
def test_a_grading_outlives_the_console_and_is_found_again_and_stopped(
    browser, database, request, tmp_path, monkeypatch
):
    url = None if database == "sqlite" else request.getfixturevalue("new_database")()
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["new-course", "course"]).exit_code == 0
    monkeypatch.chdir(tmp_path / "course")
    assert CliRunner().invoke(cli, ["new-assignment", "first", "--like", "minimal"]).exit_code == 0
    out, uploads = tmp_path / "results", tmp_path / "uploads"
    solution = (tmp_path / "course/reference/first/solution.py").read_text(encoding="utf-8")
    slow = solution.replace("means, total = [], 0.0", "while True: pass")  # each until its time is over
    works = {"400101201": solution, **{f"4001012{number}": slow for number in range(10, 20)}}
    for student, code in works.items():
        (uploads / student).mkdir(parents=True)
        (uploads / student / f"{student}_first.py").write_text(code, encoding="utf-8")
    earlier = Evidence("400101209", "first", "ab", NOW, findings=(Finding("x", "x", "x", Status.PASSED),))
    with Gradebook(out, url) as book:
        book.record(earlier, {}, who="ta1")
    keep(out, replace(asked(uploads, "first", tmp_path / "course"), jobs=1))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process, link = started(out, url, port)
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(link)
        page.get_by_role("link", name="Grading").click()
        with page.expect_navigation():
            page.locator("#start").click()
        page.locator("#progress", has_text="400101210").wait_for()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert is_recording(out), "it does not need the console"
        process, _ = started(out, url, port)
        page.reload()
        page.locator("#progress", has_text="of 11 done; ").wait_for()
        assert page.locator("#start").count() == 0, "there are never two"
        with page.expect_navigation():
            page.locator("#stop").click()
        page.locator("#progress", has_text="The last grading was stopped").wait_for()
    finally:
        context.close()
        process.terminate()
        process.wait(30)
        if (run := last_run(out)) and is_recording(out):
            os.kill(int(run.id.rpartition("-")[2]), signal.SIGKILL)
    with Gradebook(out, url) as book:
        assert "400101201" in book.students() and "400101219" not in book.students()
