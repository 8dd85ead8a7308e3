"""The files of a class are found wherever they were written, and only the grader's own are changed."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.domain.mentions import Mentions
from grader.gradebook.forgotten_rows import WrittenPlace
from grader.privacy.file_cleaning import FileFate
from grader.privacy.kept_files import LONG_AGO, kept_files, kept_places

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


def test_a_place_that_is_named_must_be_there(out: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        kept_places(out, [], [out / "nowhere"])
