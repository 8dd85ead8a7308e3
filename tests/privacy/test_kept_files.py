"""The files of a class are found wherever they were written, and only the grader's own are changed."""

import os
import socket
import tempfile
import time
from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.domain.mentions import Mentions
from grader.gradebook.forgotten_rows import WrittenPlace
from grader.grading.recorded_run import FOLDER as GRADING
from grader.grading.recorded_run import REQUESTS, RUN
from grader.privacy.file_cleaning import FileFate
from grader.privacy.kept_files import CONSOLE, LONG_AGO, RECENT, kept_files, kept_places
from grader.web import access

HERS = Mentions(frozenset({"400101204"}))


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    folder = tmp_path / "results"
    (folder / "students" / "400101204").mkdir(parents=True)
    (folder / "students" / "400101204" / "anything.bin").write_bytes(b"x")
    (folder / "scores.csv").write_text("400101204,1\n")
    (folder / "mine.csv").write_text("400101204,1\n")
    (folder / f".{'a' * 16}.part").write_text("torn")
    return folder


def test_what_the_grader_wrote_is_cleaned_and_the_rest_is_told(out: Path, tmp_path: Path) -> None:
    elsewhere = WrittenPlace("another", Path("/srv/published"), "publication")
    gone = WrittenPlace(os.uname().nodename, tmp_path / "gone", "publication")
    old, new = tmp_path / "tmp" / "grader-old", tmp_path / "tmp" / "grader-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "400101204.py").write_text("")
    os.utime(old, (0, time.time() - LONG_AGO - 9))
    fates = {
        file.path.name: file.cleaned.fate
        for file in kept_files(kept_places(out, [elsewhere, gone], []), HERS)
    }
    assert fates == {
        f".{'a' * 16}.part": FileFate.GOES,
        "anything.bin": FileFate.GOES,
        "mine.csv": FileFate.LEFT,
        "scores.csv": FileFate.CHANGES,
        "400101204.py": FileFate.GOES,
        "published": FileFate.LEFT,
    }
    named = {
        file.path.name: file.cleaned.fate
        for file in kept_files(kept_places(out, [], [out / "mine.csv"]), HERS)
    }
    assert named["mine.csv"] is FileFate.CHANGES


def test_the_record_of_a_grading_goes_if_it_mentions_a_person(out: Path) -> None:
    """A path that was graded may carry an id; the next grading records itself again."""
    (out / GRADING).mkdir()
    (out / GRADING / REQUESTS).write_text('[{"path": "/in/400101204_Lab8.zip"}]')
    (out / GRADING / RUN).write_text('{"said": "40 submissions"}')
    fates = {
        file.path.name: file.cleaned.fate
        for file in kept_files(kept_places(out, [], []), HERS)
        if file.path.parent.name == GRADING
    }
    assert fates == {REQUESTS: FileFate.GOES}


def test_a_place_that_is_named_must_be_there(out: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        kept_places(out, [], [out / "nowhere"])


def test_sheets_of_oral_checks_go_with_everybody_on_them(out: Path) -> None:
    """They show lines of code; `grader oral` writes those of the others again."""
    sheets = {
        "oral/questions.html": b"<p>400101204</p><p>400101205</p>",
        "oral/students/400101204/notes.html": b"<p>x</p>",
        "oral/students/400101205/questions.html": b"<p>400101205</p>",
    }
    for name, content in sheets.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    found = {
        file.path.relative_to(out).as_posix(): file for file in kept_files(kept_places(out, [], []), HERS)
    }
    assert sheets.keys() & found.keys() == {"oral/questions.html", "oral/students/400101204/notes.html"}
    assert {found[name].cleaned.fate for name in sheets.keys() & found.keys()} == {FileFate.GOES}


def test_what_a_killed_command_left_beside_its_place_goes_once_it_is_old(out: Path, tmp_path: Path) -> None:
    """A publication is written beside its place, whose name it gets in the end."""
    torn, other = tmp_path / f".{'b' * 16}.part", tmp_path / f".{'c' * 16}.part"
    hers, class_page = torn / "students/400101204/report.html", torn / "instructors/index.html"
    for path, content in (
        (hers, b"x"), (class_page, b"<p>400101204</p><p>400101205</p>"), (torn / "a.txt", b"nobody"),
        (other, b"PK half a zip"), (tmp_path / "mine.part", b"400101204"),
    ):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    recorded = [WrittenPlace(socket.gethostname(), tmp_path / "published", "publication")]

    def found() -> dict[Path, tuple[FileFate, bool]]:
        files = kept_files(kept_places(out, recorded, []), HERS)
        return {file.path: (file.cleaned.fate, file.is_own) for file in files if out not in file.path.parents}

    both = {hers: True, class_page: False, other: False}
    assert found() == {path: (FileFate.LEFT, is_own) for path, is_own in both.items()}
    old = time.time() - 2 * RECENT
    for path in both:
        os.utime(path, (old, old))
    assert found() == {path: (FileFate.GOES, is_own) for path, is_own in both.items()}


def test_the_folder_of_the_console_is_known() -> None:
    assert CONSOLE == access.FOLDER
