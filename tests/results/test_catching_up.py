"""After a kill between the book and the pages, the next command of any kind writes what is old, once."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.gradebook import Gradebook
from grader.results import class_pages
from tests.warm_python import Start

ROOT = Path(__file__).parents[2]
STUDENT, OTHER = "400101201", "400101202"
# runs a command that is killed when it is about to write the n-th file, the book having kept what it was told
KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from grader.cli import cli
from grader.gradebook import Gradebook
from grader.files import atomic

fatal, kept, files, write = int(sys.argv[1]), [], [], atomic._put

def commit(add):
    def added(*arguments, **more):
        done = add(*arguments, **more)
        kept.append(done)
        return done
    return added

def killing(path, pieces, remedy):
    if kept:
        files.append(path)
        if len(files) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
    write(path, pieces, remedy)

Gradebook.append, Gradebook.record = commit(Gradebook.append), commit(Gradebook.record)
atomic._put = killing
cli.main(sys.argv[2:], prog_name="grader", standalone_mode=False)
"""
NEXT: dict[str, tuple[str, ...]] = {
    "history": ("history", "{out}", OTHER),
    "marks export": ("marks", "export", "{out}", "{to}/marks.csv"),
    "marks set": ("marks", "set", "{out}", OTHER, "q7", "2", "--why", "x"),
    "export": ("export", "gradescope", "{out}", "--to", "{to}/gradescope", "--partial"),
    "publish": ("publish", "{out}", "--to", "{to}/published", "--partial"),
    "regrade": ("regrade", "{out}"),
    "rule": ("rule", "{out}", "--all", "--why", "x"),
    "claim": ("claim", "{out}", OTHER, "80", "--why", "x"),
    "received": ("received", "{out}", OTHER, "in-time", "--why", "x"),
    "count": ("count", "{out}", OTHER, "latest", "--why", "x"),
}
MARK = ("marks", "set", "{out}", STUDENT, "q6", "4", "--why", "Well argued.")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX kills in the middle of a step")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


@pytest.fixture
def kill(graded_class: Path, tmp_path: Path, start_script: Start) -> Callable[..., None]:
    """Run a command that is killed before it writes its n-th file, the book having kept what it was told."""

    def run(words: tuple[str, ...] = MARK, at: int = 1) -> None:
        given = [word.format(out=graded_class, to=tmp_path) for word in words]
        killed = start_script(KILLED, at, *given, folder=ROOT)
        told = killed.rest()
        assert killed.ended() == -signal.SIGKILL, told + killed.complaint()

    return run


@pytest.fixture
def say(graded_class: Path, tmp_path: Path) -> Callable[..., str]:
    """Run a command to its end; what it prints."""

    def run(words: tuple[str, ...]) -> str:
        given = [word.format(out=graded_class, to=tmp_path) for word in words]
        done = CliRunner().invoke(cli, given, prog_name="grader")
        assert done.exit_code == 0, done.output
        return done.output

    return run


def told(out: Path, student: str = STUDENT) -> dict[str, Any]:
    """What each kind of file says of a student."""
    document = json.loads((out / "results.json").read_text("utf-8"))
    entry = next(one for one in document["submissions"] if one["student_id"] == student)
    with (out / "scores.csv").open(encoding="utf-8") as file:
        row = next(row for row in csv.DictReader(file) if row["student_id"] == student)
    return {
        "results.json": entry["total"],
        "scores.csv": float(row["total"]),
        "report": "Well argued." in (out / f"students/{student}/report.html").read_text("utf-8"),
    }


OLD = {"results.json": 62, "scores.csv": 62.0, "report": False}
NEW = {"results.json": 66, "scores.csv": 66.0, "report": True}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("command", NEXT)
def test_the_next_command_of_any_kind_makes_up_for_it(
    graded_class: Path, kill: Callable[..., None], say: Callable[..., str], command: str
) -> None:
    kill()
    assert told(graded_class) == OLD, "the book alone has it"
    output = say(NEXT[command]).replace("\xa0", " ")
    assert "note: The pages were older than the gradebook (a command was cut short, " in output
    assert "Written again: 1 report and the class's files.\n" in output
    assert told(graded_class) == NEW
    assert "note: The pages" not in say(NEXT["history"]), "once"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", range(1, 6))
def test_wherever_it_was_killed(
    graded_class: Path, kill: Callable[..., None], say: Callable[..., str], at: int
) -> None:
    """Before the report, the class page, scores.csv, results.json, and the note of the state."""
    kill(at=at)
    say(NEXT["history"])
    assert told(graded_class) == NEW
    with Gradebook(graded_class) as book:
        assert not class_pages.are_stale(graded_class, book, "vit_defects")


def test_a_regrade_that_is_killed_and_moved_no_total(
    graded_class: Path, kill: Callable[..., None], say: Callable[..., str]
) -> None:
    """Nothing was added to the book; the pages say another thing all the same."""
    report = graded_class / f"students/{OTHER}/report.html"
    say(NEXT["history"])
    report.unlink()
    kill(("regrade", "{out}"), at=3)
    assert "Written again" in say(NEXT["history"]) and report.exists()


def test_nothing_is_read_or_written_where_nothing_is_older(
    graded_class: Path, say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state alone is asked for: no evidence, and not what the class's files say."""
    say(MARK)
    for name in ("reported_results", "write_pages"):
        monkeypatch.setattr(f"grader.results.class_pages.{name}", None)
    monkeypatch.setattr("grader.results.class_pages.submission_entries", None)
    before = {path: path.stat().st_mtime_ns for path in graded_class.rglob("*.*") if path.suffix != ".sqlite"}
    assert "note:" not in say(NEXT["history"]) + say(NEXT["marks export"]) + say(NEXT["export"])
    after = {path: path.stat().st_mtime_ns for path in graded_class.rglob("*.*") if path.suffix != ".sqlite"}
    assert {path: when for path, when in after.items() if "sqlite" not in path.name} == {
        path: when for path, when in before.items() if "sqlite" not in path.name
    }


def test_what_another_laptop_adds_is_made_up_for(
    graded_class: Path, say: Callable[..., str], tmp_path: Path
) -> None:
    """One book, two folders of pages: the marks of the other are seen, too."""
    say(NEXT["history"])
    other = tmp_path / "other"
    url = f"sqlite:///{graded_class}/gradebook.sqlite"
    mark = tuple(word.format(out=other) for word in MARK)
    say((*mark, "--gradebook", url))
    assert told(other) == NEW and told(graded_class) == OLD
    assert "Written again" in say(NEXT["history"])
    assert told(graded_class) == NEW


@pytest.mark.slow
def test_three_commands_at_once(
    graded_class: Path, kill: Callable[..., None], tmp_path: Path, start_script: Start
) -> None:
    """All end well, and what they leave is whole and new."""
    kill()
    command = "from grader.cli import main; main()"
    at_work = [start_script(command, "history", graded_class, STUDENT, folder=ROOT) for _ in range(3)]
    assert all(one.rest() for one in at_work)
    assert [one.ended() for one in at_work] == [0, 0, 0], [one.complaint() for one in at_work]
    assert told(graded_class) == NEW
    assert not list(graded_class.rglob(".*.part"))


def test_while_somebody_grades_the_pages_are_left_to_them(
    graded_class: Path, kill: Callable[..., None], say: Callable[..., str]
) -> None:
    kill()
    with class_pages.grading(graded_class):
        assert "note:" not in say(NEXT["history"])
    assert told(graded_class) == OLD
    say(NEXT["history"])
    assert told(graded_class) == NEW


def test_another_book_writes_nothing_over_the_pages(
    graded_class: Path, say: Callable[..., str], tmp_path: Path, class_evidence: Callable[..., Any]
) -> None:
    """An address that was mistyped: a command that reads leaves the folder as it is."""
    say(MARK)
    with Gradebook(tmp_path / "another") as book:
        book.record(class_evidence(STUDENT), {})
    before = told(graded_class)
    assert "note:" not in say(
        (*NEXT["export"], "--gradebook", f"sqlite:///{tmp_path}/another/gradebook.sqlite")
    )
    assert told(graded_class) == before


def test_a_changed_rubric_is_not_made_up_for(
    graded_class: Path, kill: Callable[..., None], say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is for `grader regrade`, which tells whose total changes."""
    kill()
    from grader.results import current_state

    real = current_state.results_now

    def dearer(*given: Any) -> Any:
        results = real(*given)
        for one in results:
            object.__setattr__(one.score, "total", 1.0)
        return results

    monkeypatch.setattr(current_state, "results_now", dearer)
    output = say(NEXT["history"])
    assert "note: The pages are older than the gradebook, and the rubric has changed since then." in output
    assert told(graded_class) == OLD


CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return {factor} * x
"""


@pytest.mark.slow
def test_grading_makes_up_for_others_and_others_for_it(
    tiny_course: Path,
    tmp_path: Path,
    grader: Callable[..., Result],
    start_script: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uploads, out = tmp_path / "uploads", tmp_path / "out"
    uploads.mkdir()
    for student, factor in ((STUDENT, 2), (OTHER, 3)):
        (uploads / f"{student}_homework.py").write_text(CODE.format(factor=factor), encoding="utf-8")
    monkeypatch.setenv("GRADER_COURSE", str(tiny_course))

    def run(*words: str | Path) -> str:
        done = grader(*words)
        assert done.exit_code == 0, done.output
        return done.output.replace("\xa0", " ")

    grade = ("grade", uploads, "--assignment", "tiny", "--no-train", "--jobs", "1", "--out", out)
    # with hosts of its own, which die with it
    done = subprocess.run([sys.executable, "-c", KILLED, "1", *map(str, grade)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (out / "results.json").exists()
    assert "Written again: 1 report and" in run("history", out, STUDENT)
    assert [one["student_id"] for one in listed(out)] == [STUDENT], "as far as it came"
    assert "note:" not in run(*grade)
    reports = {path: path.stat().st_mtime_ns for path in out.rglob("report.html")}
    assert len(listed(out)) == len(reports) == 2
    claim = start_script(KILLED, 1, "claim", out, STUDENT, "80", "--why", "page 3", folder=ROOT)
    assert (claim.rest(), claim.ended()) == ("", -signal.SIGKILL)
    assert [one["measurements"]["claimed_accuracy"] for one in listed(out)] == [None, None]
    run(*grade)
    assert [one["measurements"]["claimed_accuracy"] for one in listed(out)] == [0.8, None]
    later = {path: path.stat().st_mtime_ns for path in out.rglob("report.html")}
    assert [path.parent.name for path in later if later[path] != reports[path]] == [STUDENT]


def listed(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "results.json").read_text("utf-8"))["submissions"]
    return found


def test_a_report_is_written_once_in_a_run(
    assignment: Any, graded_class: Path, monkeypatch: pytest.MonkeyPatch, class_evidence: Callable[..., Any]
) -> None:
    """At its end nothing is written that says what was written when it was examined."""
    from grader.grading.result_writer import Keeper
    from grader.results.class_pages import ClassPages, digest, entry_digests
    from grader.results.kept_scores import KeptScores

    when = class_evidence(STUDENT).graded_at
    with Gradebook(graded_class) as book:
        keeper = Keeper(assignment, book, graded_class, "ta1")
        made = [keeper.kept(class_evidence(one, accuracy=float("nan")), {}, when) for one in (STUDENT, OTHER)]
        written = {one.evidence.student_id: digest(one) for one in made}
        pages = ClassPages(assignment, book.snapshot(), KeptScores(assignment, book.identity()))
        others = {one: digest for one, digest in entry_digests(graded_class).items() if one not in written}
        assert pages.write_reports(book, graded_class, when, {**others, **written}) == 0
