"""`grader forget`: afterwards no file, page or table holds the id, the name or a line; the others stay."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from grader.domain.assignment import Assignment
from grader.files.folder_lock import locked_folder
from grader.gradebook import Gradebook
from grader.results.folder_use import RESULTS, in_use
from tests.fake_lms import TOKEN, FakeCanvas, served
from tests.privacy.conftest import HER, HERS, LINES, MATE, NAME, THIRD, found_in, said


@pytest.fixture
def pushed(surrounded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The class when its grades were sent to an LMS as well."""
    pytest.importorskip("canvasapi")
    monkeypatch.setenv("CANVAS_TOKEN", TOKEN)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with served(FakeCanvas([HER, MATE, THIRD])) as url:
        monkeypatch.setenv("CANVAS_URL", url)
        said("push", "canvas", surrounded, "--course", "1201", "--assignment", "88")
    return surrounded


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sqlite" not in path.name
    }


def tables(out: Path) -> list[str]:
    raw = sqlite3.connect(out / "gradebook.sqlite")
    lines = list(raw.iterdump())
    raw.close()
    return lines


def test_nothing_holds_the_person_afterwards_and_the_others_stay(pushed: Path, tmp_path: Path) -> None:
    before, rows = everything(tmp_path), tables(pushed)
    places = found_in(tmp_path, HERS)
    assert all(places.values()), f"the search finds not even now: {[n for n, p in places.items() if not p]}"
    told = said("forget", pushed, HER)
    assert told.startswith(f"{HER} would be forgotten. Nothing was changed: add --yes to do it.\n")
    assert everything(tmp_path) == before and tables(pushed) == rows
    done = said("forget", pushed, HER, "--yes")
    assert done.startswith("Forgotten: 1\N{NO-BREAK SPACE}person, ")
    assert (
        not (pushed / "gradebook.sqlite-wal").exists() or not (pushed / "gradebook.sqlite-wal").stat().st_size
    )
    assert {needle: places for needle, places in found_in(tmp_path, HERS).items() if places} == {}
    after = everything(tmp_path)
    gone = before.keys() - after.keys()
    assert gone and all(HER in name for name in gone)
    changed = {name for name in after if after[name] != before.get(name, b"")}
    theirs = {name for name in changed if any(one in name for one in (MATE, THIRD))}
    # the page of whom the person worked with names the person; that of the third stays, byte by byte
    assert theirs and all(THIRD not in name for name in theirs)
    for one in (MATE, THIRD):
        assert all(found_in(tmp_path, LINES[one]).values())
        with Gradebook(pushed) as book:
            assert book.evidence(one).team == ()
    with Gradebook(pushed) as book:
        assert book.students() == (MATE, THIRD)
        assert "Better than forgotten, forgotten." in [edit.why for edit in book.edits(MATE)]


@pytest.mark.slow
def test_grades_of_the_others_and_later_commands_are_as_before(pushed: Path, tmp_path: Path) -> None:
    def entries() -> dict[str, dict[str, object]]:
        document = json.loads((pushed / "results.json").read_text("utf-8"))
        return {one["student_id"]: one for one in document["submissions"]}

    before = entries()
    said("forget", pushed, HER, "--yes")
    after = entries()
    assert after.keys() == {MATE, THIRD} and after[THIRD] == before[THIRD]
    assert [after[one]["total"] for one in after] == [before[one]["total"] for one in after]
    assert "Data protection: persons were forgotten" in (pushed / "index.html").read_text("utf-8")
    said("marks", "set", pushed, THIRD, "q6", "0.5", "--why", "Misread.", "--allow-lower")
    said("publish", pushed, "--to", tmp_path / "published", "--update")
    said("history", pushed, THIRD)
    assert said("forget", pushed, HER, "--yes", code=2).startswith("error: ")
    pairs = json.loads((pushed / "similarity.json").read_text("utf-8"))["pairs"]
    assert [(pair["one"], pair["other"]) for pair in pairs] == [(MATE, THIRD)]
    page = (pushed / "similarity.html").read_text("utf-8")
    assert 'id="pair-1"' in page and 'id="pair-2"' not in page
    with closing(sqlite3.connect(pushed / "gradebook.sqlite")) as raw, raw:
        [(persons, who)] = raw.execute("SELECT persons, who FROM forgettings").fetchall()
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            raw.execute("DELETE FROM runs")
    raw.close()
    assert (persons, who) == (1, "ta1")


def test_whoever_works_on_the_folder_keeps_forgetting_away(results: Path) -> None:
    before = everything(results)
    with in_use(results):
        told = said("forget", results, HER, "--yes", code=2)
    assert told == (
        f"error: {results} is in use: it is being graded, changed, served or pushed. Wait until that has "
        "ended, or end it. Nothing was forgotten.\n"
    )
    with locked_folder(results / "students", exclusive=False):  # as a grader of an older version has it
        said("forget", results, HER, "--yes", code=2)
    assert everything(results) == before
    with locked_folder(results / ".use"):
        told = said("marks", "set", results, MATE, "q6", "1", "--why", "Read.", code=2)
    assert told.startswith(f"error: {results}: persons are being forgotten in it.")


@pytest.mark.slow
def test_a_file_that_cannot_be_removed_is_told_and_the_next_run_finishes(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = results / "students" / HER / "report.html"
    unlink = Path.unlink

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if path == refused:
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refusing)
        told = said("forget", results, HER, "--yes", code=1)
    assert (
        told.startswith("Not finished: 1\N{NO-BREAK SPACE}file ") and f"{refused}: Permission denied" in told
    )
    with Gradebook(results) as book:
        assert HER in book.students()  # it is what knows the names
    said("forget", results, HER, "--yes")
    assert not any(found_in(results, HERS).values())


@pytest.mark.parametrize(
    "moment",
    [
        "carry_out",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("apply", "is_compacted", "_make_stale")),
    ],
)
def test_a_killed_command_is_finished_by_the_same_command(results: Path, moment: str) -> None:
    """Killed before the first file, in the transaction, before the compaction, and after it."""
    module = {"carry_out": "grader.privacy.forgetting", "apply": "grader.gradebook.forgotten_rows"}
    killing = f"""
import os, signal, importlib
name = {module.get(moment, "grader.privacy.forgetting")!r}
if {moment!r} == "apply":
    owner = importlib.import_module(name)._Planned
elif {moment!r} == "is_compacted":
    owner = importlib.import_module("grader.gradebook.database")
else:
    owner = importlib.import_module(name)
real = getattr(owner, {moment!r})
def killed(*words):
    if {moment!r} in ("carry_out", "apply"):
        words = (words[0][:3], *words[1:]) if {moment!r} == "carry_out" else words
        real(*words)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(owner, {moment!r}, killed)
from grader.cli import main
import sys
sys.argv = ["grader", "forget", {str(results)!r}, {HER!r}, "--yes"]
main()
"""
    done = subprocess.run([sys.executable, "-c", killing], capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    said("forget", results, HER, "--yes")
    assert not any(found_in(results, HERS).values())
    assert not (results / ".forgetting").exists()


def test_all_of_a_past_term(results: Path) -> None:
    assert said("forget", results, "--before", "2026-01-31").startswith("Nobody would be forgotten")
    assert "2026-13-01: is not a date" in said("forget", results, "--before", "2026-13-01", code=2)
    said("forget", results, "--before", "2027-01-01", "--yes")
    needles = [*HERS, *(line for lines in LINES.values() for line in lines), MATE, THIRD]
    assert not any(found_in(results, needles).values())


@pytest.mark.parametrize("word", ["points", "students", "homework", "q6", "ta1"])
def test_a_word_of_the_pages_is_nobodys_id(results: Path, tmp_path: Path, word: str) -> None:
    before, rows = everything(tmp_path), tables(results)
    assert f"'{word}' is nobody's id, and yet it is read in " in said(
        "forget", results, word, "--yes", code=2
    )
    assert everything(tmp_path) == before and tables(results) == rows


def test_an_id_like_a_word_is_one_where_files_say_so(results: Path, tmp_path: Path) -> None:
    """As of somebody whom the gradebook has lost."""
    mine = tmp_path / "old"
    (mine / "points").mkdir(parents=True)
    (mine / "points" / "homework.py").write_text("x = 1")
    assert said("forget", results, "points", "--also", mine).startswith("points would be forgotten.")
    (mine / "points" / "homework.py").unlink()
    (mine / "results.json").write_text('{"submissions": [{"student_id": "points"}]}')
    assert said("forget", results, "points", "--also", mine).startswith("points would be forgotten.")


def test_who_is_not_known_and_what_the_grader_did_not_write(results: Path, tmp_path: Path) -> None:
    assert "nothing is kept about '40010120x'. Did you mean 40010120" in said(
        "forget", results, "40010120x", code=2
    )
    assert said("forget", results, code=2) == "error: Give either the ID of a person, or --before DATE.\n"
    (results / "notes.txt").write_text(f"Call {HER}.")
    mine = tmp_path / "old"
    (mine / HER).mkdir(parents=True)
    (mine / HER / "homework.py").write_text(LINES[HER][0])
    told = said("forget", results, HER, "--yes", "--also", mine, code=1)
    assert f"{results / 'notes.txt'}: " in told
    assert (results / "notes.txt").exists() and not (mine / HER).exists()


@pytest.mark.parametrize(
    ("words", "code"), [(("publish", "--partial"), 2), (("export", "gradescope", "--partial"), 0)]
)
def test_what_lay_in_a_folder_before_is_not_the_graders(
    results: Path, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    """A refused `publish --to` wrote nothing there, and an export only its own files."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "class.csv").write_text(f"student_id,section\n{HER},A\n{MATE},B\n")
    (mine / f"{HER}.zip").write_bytes(b"her work")
    before = {path: path.read_bytes() for path in mine.iterdir()}
    command, *options = words
    said(command, *options[:1] if command == "export" else (), results, "--to", mine, options[-1], code=code)
    said("forget", results, HER, "--yes")
    assert {path: path.read_bytes() for path in before if path.exists()} == before


def test_somebody_elses_row_stays_who_has_the_same_name(results: Path, tmp_path: Path) -> None:
    """Also somebody's who handed in nothing, whom the gradebook does not know."""
    grades = tmp_path / "Grades.csv"
    head, *rows = (
        "Full name,ID number,Grade\n", f"Ali Ahmadi,{HER},1\n", f"Ahmadi Ali,{MATE},2\n",
        f"{NAME},400101299,\n", f"Reza Rad,{HER},1\n",
    )  # fmt: skip
    grades.write_text(head + "".join(rows), "utf-8")
    said("marks", "set", results, MATE, "q6", "2", "--why", "Ali Ahmadi did well, and so did Reza Rad.")
    said("forget", results, HER, "--also", grades, "--yes")
    assert grades.read_text("utf-8") == head + rows[1] + rows[2]
    assert "Ali Ahmadi did well, and so did forgotten" in said("history", results, MATE)


def test_a_class_that_has_the_place_of_a_moved_one_is_another(
    results: Path, tmp_path: Path, assignment: Assignment
) -> None:
    """A past term was moved away, and the next class was graded and published in its place."""
    said("publish", results, "--to", tmp_path / "published", "--partial")
    with Gradebook(results, assignment_id=assignment.id) as book:
        book.note_places([results], RESULTS)
        identity = book.identity()
    archive = results.rename(tmp_path / "archive")
    for place, note in ((results, ".pages"), (tmp_path / "published", "instructors/pages.json")):
        if place == results:
            shutil.copytree(archive, place)
            (place / "gradebook.sqlite").unlink()
        text = (place / note).read_text()
        assert identity in text
        (place / note).write_text(text.replace(identity, "f" * len(identity)))
    next_class = [results, tmp_path / "published"]
    before = {path: path.read_bytes() for one in next_class for path in one.rglob("*") if path.is_file()}
    said("forget", archive, HER, "--yes")
    assert {path: path.read_bytes() for path in before if path.exists()} == before
    assert not any(found_in(archive, [HER]).values())
