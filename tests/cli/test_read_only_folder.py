"""A results folder that may only be read: what only reads it works, and nothing else pretends to."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.domain.edit import Claimed
from grader.gradebook import Gradebook

ROOT = Path(__file__).parents[2]
AS_USER = ROOT / "tests" / "sandbox" / "ordinary_user.py"
UID = 54321
STUDENT = "400101201"
READERS = (
    ("history", "{out}", STUDENT),
    ("marks", "export", "{out}", "{to}/marks.csv"),
    ("publish", "{out}", "--to", "{to}/published", "--partial"),
    ("export", "gradescope", "{out}", "--to", "{to}/gradescope", "--partial"),
    ("export", "moodle-gradebook", "{out}", "--to", "{to}/grades.csv", "--partial"),
)
WRITERS = (
    ("marks", "set", "{out}", STUDENT, "q6", "4", "--why", "x"),
    ("regrade", "{out}"),
    ("rule", "{out}", "--all", "--why", "x"),
    ("received", "{out}", STUDENT, "in-time", "--why", "x"),
    ("waive", "{out}", "vit_adds_positions", "--why", "x"),
)
COMMANDS = """
import json, sys
from click.testing import CliRunner
from grader.cli import cli
said = [CliRunner().invoke(cli, words, prog_name="grader") for words in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.output] for one in said]))
"""
# holds the book open for writing, as a command does that is at work, or dies with what it wrote in the log
HOLDER = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from grader.domain.edit import Marked
from grader.gradebook import Gradebook
book = Gradebook(Path(sys.argv[1]))
when = datetime(2026, 2, 1, tzinfo=UTC)
edit = Marked(who="ta9", when=when, why="In the log.", student_id="400101201", target="q6", points=3.0)
assert book.append([edit], [], after=book.snapshot().state)
print("held", flush=True)
time.sleep(600)
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")


@pytest.fixture
def place(graded_class: Path) -> Iterator[Path]:
    """A folder that anybody may enter, with `results`, and `to`, which anybody may write to."""
    with tempfile.TemporaryDirectory(prefix="grader-read-only-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(graded_class, folder / "results")
        (folder / "to").mkdir()
        (folder / "to").chmod(0o777)
        yield folder
        closed(folder / "results", False)


def closed(out: Path, yes: bool = True) -> None:
    """Let nobody write into the folder, or let the owner."""
    for path in (out, *out.rglob("*")):
        write = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
        path.chmod(path.stat().st_mode & ~write if yes else path.stat().st_mode | stat.S_IWUSR)


def contents(out: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture
def say(place: Path) -> Callable[..., list[str]]:
    """Run commands as somebody who may not write to the results; what each prints."""

    def run(*commands: tuple[str, ...], code: int = 0) -> list[str]:
        given = [
            [word.format(out=place / "results", to=place / "to") for word in words] for words in commands
        ]
        user = [sys.executable, str(AS_USER), str(UID)] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*user, sys.executable, "-c", COMMANDS, json.dumps(given)],
            cwd=ROOT,
            env={**os.environ, "HOME": "/nonexistent", "GRADER_BY": "ta1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if "ordinary_user.py" in done.stderr:
            pytest.skip(f"nobody becomes another user here: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout)
        assert [one for one, _ in told] == [code] * len(commands), told
        return [text for _, text in told]

    return run


@pytest.fixture
def holder(place: Path) -> Iterator["subprocess.Popen[str]"]:
    """Somebody who may write, and has marked something; what was marked is in the log alone."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place / "results")], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_whoever_may_only_read_reads(place: Path, say: Callable[..., list[str]]) -> None:
    """And leaves no trace in the folder."""
    out = place / "results"
    closed(out)
    before = contents(out)
    say(*READERS)
    assert {path.name for path in (place / "to").iterdir()} == {
        "marks.csv", "published", "grades.csv"
    }  # fmt: skip
    assert contents(out) == before
    assert not list(Path(tempfile.gettempdir()).glob("grader-book-*")), "no copy is left behind"


@pytest.mark.slow
def test_a_book_that_may_only_be_read_in_a_folder_that_may_be_written(
    place: Path, say: Callable[..., list[str]]
) -> None:
    """Nothing is made beside it that its owner could not use afterwards."""
    out = place / "results"
    (out / "gradebook.sqlite").chmod(0o444)
    out.chmod(0o777)
    assert f"{STUDENT}: 62 of 65 decided" in say(READERS[0])[0]
    assert sorted(path.name for path in out.iterdir() if "sqlite" in path.name) == ["gradebook.sqlite"]
    assert "may only be read here" in say(WRITERS[0], code=2)[0]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["at work", "killed"])
def test_what_is_in_the_log_alone_is_read_too(
    place: Path, say: Callable[..., list[str]], holder: "subprocess.Popen[str]", killed: bool
) -> None:
    """Beside whoever writes, and after a writer that was killed."""
    out = place / "results"
    if killed:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (out / "gradebook.sqlite-wal").stat().st_size > 0
    closed(out)
    assert "q6: 3. In the log" in say(READERS[0])[0]
    if killed:  # as in a copy of the folder that left that file out
        (out / "gradebook.sqlite-shm").unlink()
        assert "q6: 3. In the log" in say(READERS[0])[0]


def test_nothing_is_kept_and_the_sentence_says_what_to_do(place: Path, say: Callable[..., list[str]]) -> None:
    out = place / "results"
    closed(out)
    before = contents(out)
    for told in say(*WRITERS, code=2):
        assert (
            f"{out}/gradebook.sqlite may only be read here, so nothing was kept in it. Run this as somebody "
            f"who may write to it, or on a copy of {out}."
        ) in told
        assert "--out" not in told and "room" not in told
    grade = ("grade", str(AS_USER), "--assignment", "vit_defects", "--no-train", "--out", "{out}")
    assert "may only be read here" in say(grade, code=2)[0]
    assert contents(out) == before


@pytest.mark.slow
@pytest.mark.parametrize("there", [False, True], ids=["no folder", "a folder"])
def test_an_export_into_the_folder_says_where_else(
    place: Path, say: Callable[..., list[str]], there: bool
) -> None:
    out = place / "results"
    if there:
        (out / "exports").mkdir()
    closed(out)
    [told] = say((*READERS[-1][:3], "--partial"), code=2)
    assert "cannot be written (Permission denied). Give another place with --to." in told


def test_a_book_of_an_older_version_is_told(place: Path, say: Callable[..., list[str]]) -> None:
    with closing(sqlite3.connect(place / "results/gradebook.sqlite")) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '0002'")
    raw.close()
    closed(place / "results")
    for told in say(*READERS[:3], code=2):
        assert "was written by an older grader and may only be read here, so its tables cannot be" in told


@pytest.mark.slow
def test_pages_that_are_older_than_the_book_are_told(place: Path, say: Callable[..., list[str]]) -> None:
    """As a kill leaves them; the command does its work all the same."""
    out = place / "results"
    with Gradebook(out) as book:
        when = datetime(2026, 2, 1, tzinfo=UTC)
        mark = Claimed(who="ta9", when=when, why="Late.", student_id=STUDENT, accuracy=0.7)
        assert book.append([mark], [], after=book.snapshot().state)
    closed(out)
    before = contents(out)
    told = say(*READERS[:4])
    assert all(
        f"note: The pages are older than the gradebook, and {out} may only be read here." in one
        for one in told
    )
    assert "0.7. Late" in told[0] and contents(out) == before


WRITER = """
import random, sys, time
from datetime import UTC, datetime
from pathlib import Path
from grader.domain.edit import Marked
from grader.gradebook import Gradebook
now, number = datetime(2026, 2, 1, tzinfo=UTC), 0
print("ready", flush=True)
while True:  # each opens the book and leaves it, which writes the log into the file
    with Gradebook(Path(sys.argv[1])) as book:
        number += 1
        said = {"who": "ta9", "when": now, "why": "x" * 5000, "student_id": "400101201", "points": number}
        pair = [Marked(**said, target=q) for q in ("q6", "q7")]
        assert book.append(pair, [], after=book.snapshot().state)
    time.sleep(random.uniform(0, 0.1))
"""


@pytest.mark.slow
def test_a_reader_never_sees_half_of_what_somebody_writes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that comes and goes all the time: every answer is one state of the book, or a refusal."""
    out = place / "results"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(out)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    monkeypatch.setattr("grader.gradebook.database.may_write", lambda file: False)
    seen = []
    try:
        until = time.monotonic() + 6
        while time.monotonic() < until:
            with Gradebook(out) as book:
                marks = [edit for edit in book.snapshot().edits if edit.who == "ta9"]
            assert [one.target for one in marks] == ["q6", "q7"] * (len(marks) // 2)
            assert [one.points for one in marks[::2]] == [one.points for one in marks[1::2]]
            seen.append(len(marks))
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert seen == sorted(seen) and len(set(seen)) > 2


def test_a_copy_that_somebody_wrote_into_is_taken_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that was within a tick of the clock: what was written just now is not settled."""
    out, copy, ages = place / "results", shutil.copyfile, []
    monkeypatch.setattr("grader.gradebook.database.may_write", lambda file: False)

    def slow(source: Path, target: Path) -> None:
        ages.append(time.time() - source.stat().st_mtime)
        copy(source, target)
        if len(ages) < 4:  # as a log that is written into the file
            os.utime(source)

    monkeypatch.setattr("grader.gradebook.database.shutil.copyfile", slow)
    os.utime(out / "gradebook.sqlite")
    with Gradebook(out) as book:
        assert book.students()
    assert len(ages) == 4 and min(ages) >= 0.03
