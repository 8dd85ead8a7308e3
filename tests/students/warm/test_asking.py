"""Who asks a warm process, and what follows when it does not answer to the end."""

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from grader.domain.errors import SubmissionError
from grader.domain.evidence import Finding, Status
from grader.files.known_folders import public_checks
from grader.files.stored_records import validator
from grader.students.homework import local_assignment
from grader.students.own_check import LocalCheck
from grader.students.own_machine import own_program, with_own_machine_limits
from grader.students.warm import asking
from grader.students.warm.address import Messages, fingerprint, tell
from grader.students.warm.asking import quick_check
from grader.students.warm.question import early_question, is_wanted, warm_address

FINDINGS = tuple(Finding(f"check{number}", "ViT", "It is right", Status.PASSED) for number in range(4))


@pytest.fixture
def folder(course_root, tmp_path, monkeypatch, runtime_folder):
    """What a course handed out, in an environment that lets processes stay."""
    folder = tmp_path / "vit"
    folder.mkdir()
    template = course_root / "template" / "vit_defects"
    for path in (template / "assignment.toml", *public_checks(template)):
        shutil.copy(path, folder)
    (folder / "homework.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def check(folder, monkeypatch):
    """Check the homework: what was reported, and whether it was made here and a process was started."""
    local, path = local_assignment([folder]), Path("homework.py")
    program = own_program(path, with_own_machine_limits(local.assignment))
    found = LocalCheck(program, FINDINGS, 7, (), ())
    made: list[str] = []

    def cold(path, local, *, read, report, tried):
        made.append("here")
        read(program)
        for finding in FINDINGS:
            report(finding)
        return found

    monkeypatch.setattr(asking, "local_check", cold)
    monkeypatch.setattr(asking, "start", lambda address, *folders: made.append(f"started {address.name}"))

    def checked(**options: Any) -> tuple[list[Any], list[str]]:
        made.clear()
        reported: list[Any] = []
        told = quick_check(path, local, read=lambda read: None, report=reported.append, **options)
        assert told == found
        return reported, list(made)

    checked.found = found  # type: ignore[attr-defined]
    return checked


@pytest.fixture
def answering(folder):
    """Let a warm process answer the next questions with what a function says: `answering(script)`."""
    with ExitStack() as stack:

        def serve(script: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> list[dict[str, Any]]:
            address = warm_address(folder)
            stack.enter_context(address.lock).taken()
            listener, _ = address.listener()
            stack.enter_context(listener)
            heard: list[dict[str, Any]] = []

            def run() -> None:
                while True:
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        return
                    with connection:
                        heard.append(Messages(connection).next())
                        with suppress(BrokenPipeError):  # who asked may have left
                            for message in script(heard[-1]):
                                tell(connection, message)

            threading.Thread(target=run, daemon=True).start()
            return heard

        yield serve


def messages(found: LocalCheck) -> list[dict[str, Any]]:
    def said(key: str, kind: Any, value: Any) -> dict[str, Any]:
        return {key: validator(kind).dump_python(value, mode="json")}

    return [
        {"begun": True},
        said("program", type(found.program), found.program),
        *(said("finding", Finding, finding) for finding in found.findings),
        said("found", LocalCheck, found),
    ]


def test_what_a_warm_process_finds_is_what_is_told(check, answering, folder):
    heard = answering(lambda asked: messages(check.found))
    assert check() == (list(FINDINGS), [])
    assert check(question=early_question(folder, None, None)) == (list(FINDINGS), [])
    assert [asked["file"] for asked in heard] == ["homework.py", str(folder / "homework.py")]
    for asked in heard:
        assert asked["folder"] == str(folder) and asked["environment"] == dict(os.environ)
        assert asked["fingerprint"] == fingerprint(folder, os.environ) and asked["tried"] is True


@pytest.mark.parametrize("count", range(7))
def test_one_that_ends_before_it_has_told_all_is_made_good_without_a_word(check, answering, folder, count):
    answering(lambda asked: messages(check.found)[:count])
    name = warm_address(folder).name
    assert check() == (list(FINDINGS), ["here", f"started {name}"]), "no finding is told twice"


def test_what_shows_the_findings_may_end_the_check(check, answering, folder, monkeypatch):
    """`grader check | head`: nothing is made anew for a reader who has left."""
    answering(lambda asked: messages(check.found))
    monkeypatch.setattr(asking, "local_check", lambda *arguments, **options: pytest.fail("made anew"))

    def left(finding):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        quick_check(Path("homework.py"), local_assignment([folder]), report=left)


@pytest.mark.parametrize(
    "answer", [{"again": True}, {"finding": {"check": 1}}, {"program": []}, {"found": None}, {"what": 1}]
)
def test_what_cannot_be_understood_is_no_answer(check, answering, answer):
    answering(lambda asked: [{"begun": True}, answer])
    assert check()[1][0] == "here"


def test_where_nobody_answers_one_is_started_for_the_next_check(check, folder):
    assert early_question(folder, None, None) is None
    assert check() == (list(FINDINGS), ["here", f"started {warm_address(folder).name}"])


@pytest.mark.parametrize("surroundings", [{"CI": "true"}, {"CI": "1"}, {"GRADER_WARM": "0"}])
def test_none_is_asked_or_started_where_none_is_wanted(check, answering, folder, monkeypatch, surroundings):
    heard = answering(lambda asked: messages(check.found))
    assert check(warm=False) == (list(FINDINGS), ["here"])
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    assert not is_wanted(os.environ) and early_question(folder, None, None) is None
    assert check() == (list(FINDINGS), ["here"]) and not heard


def test_none_is_started_where_the_user_has_no_folder(check, folder, tmp_path, monkeypatch):
    (tmp_path / "no folder").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "no folder"))
    assert early_question(folder, None, None) is None
    assert check() == (list(FINDINGS), ["here"])


def test_a_full_disk_costs_the_warm_process_alone(check, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(asking, "start", full)
    assert check() == (list(FINDINGS), ["here"])


def test_a_homework_that_cannot_be_checked_starts_none(check, folder, monkeypatch):
    def cold(path, local, **options):
        raise SubmissionError("It is not correct Python.")

    monkeypatch.setattr(asking, "local_check", cold)
    monkeypatch.setattr(asking, "start", lambda *arguments: pytest.fail("started"))
    with pytest.raises(SubmissionError):
        check()


def test_a_folder_of_the_course_is_asked_about_when_it_is_known(folder, tmp_path):
    """Early only what needs no reading: elsewhere the question waits until the assignment is found."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert early_question(elsewhere, None, None) is None
    assert early_question(elsewhere, folder / "homework.py", None) is None  # nobody listens
