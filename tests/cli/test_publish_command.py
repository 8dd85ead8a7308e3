"""`grader publish`: it refuses what is not ready, writes what is asked for, and updates what changed."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.edit import Released
from grader.gradebook import Gradebook

STUDENTS = ["400101201", "400101202", "400101203", "400101204"]


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def test_open_grades_are_published_only_on_request(graded_class: Path, tmp_path: Path) -> None:
    target = tmp_path / "published"
    refused = said("publish", graded_class, "--to", target, code=2)
    assert "Not ready to hand out: Marks that people give" in refused
    assert not target.exists()
    done = said("publish", graded_class, "--to", target, "--partial")
    assert "the pages of 4 students" in done
    assert (target / "instructors/index.html").is_file()
    assert len(list(target.glob("students/*/report.html"))) == 4


# --- update ---------------------------------------------------------------------------------------------


@pytest.fixture
def published(graded_class: Path, tmp_path: Path) -> Path:
    said("publish", graded_class, "--to", tmp_path / "published", "--partial")
    return tmp_path / "published"


@pytest.fixture(autouse=True)
def another_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command runs in a minute of its own, so that every time stamp is another."""
    from datetime import UTC, datetime, timedelta

    minutes = iter(range(10_000))
    monkeypatch.setattr(
        "grader.cli.command_options.now",
        lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=next(minutes)),
    )


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def update(graded_class: Path, published: Path, code: int = 0) -> str:
    return said("publish", graded_class, "--to", published, "--partial", "--update", code=code)


def test_an_update_writes_only_pages_that_say_something_else(graded_class: Path, published: Path) -> None:
    before = files(published)
    assert update(graded_class, published) == (
        f"{published}: 0 of {len(before) - 1} pages written.\nNo student's page changed.\n"
    )
    assert files(published) == before, "time stamps aside, nothing changed"
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "Read.")
    output = update(graded_class, published)
    assert output.splitlines() == [
        f"{published}: 2 of {len(before) - 1} pages written.",
        "1 student's page changed:",
        "  400101201: 62 -> 66",
    ]
    after = files(published)
    assert {name for name in after if after[name] != before.get(name)} == {
        "instructors/index.html", "instructors/pages.json", "students/400101201/report.html",
    }  # fmt: skip
    assert b"Read." in after["students/400101201/report.html"][1]
    assert "No student's page changed." in update(graded_class, published), "pages have times of their own"
    assert files(published) == after
    assert not list(published.rglob("*.part"))


def test_a_comment_changes_the_page_and_not_the_grade(graded_class: Path, published: Path) -> None:
    said("marks", "set", graded_class, "400101202", "q6", "4", "--why", "Read.")
    update(graded_class, published)
    said("marks", "set", graded_class, "400101202", "q6", "4", "--why", "Read twice.")
    assert re.search(r"^  400101202: the grade is the same, [\d.]+$", update(graded_class, published), re.M)


def test_whoever_has_no_page_any_more_is_removed_and_a_new_one_is_told(
    graded_class: Path, published: Path
) -> None:
    owner = ("owner", graded_class, "400101203")
    said(*owner, "none", "--why", "Two carry the id.")
    (published / "students/400101203/notes.txt").write_text("of somebody else")
    output = update(graded_class, published)
    assert "  400101203: has no page any more" in output and "removed" in output.splitlines()[0]
    assert [path.name for path in (published / "students/400101203").iterdir()] == ["notes.txt"]
    held = next(one for one in _students(graded_class) if one not in STUDENTS)
    said("owner", graded_class, held, "400101209", "--why", "By the list.")
    assert "  400101209: is new: 50" in update(graded_class, published)
    assert (published / "students/400101209/report.html").is_file()


def _students(out: Path) -> list[str]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    return [one["student_id"] for one in document["submissions"]]


def test_a_page_that_is_not_there_as_it_was_written_is_written_again(
    graded_class: Path, published: Path
) -> None:
    whole = files(published)
    (published / "students/400101201/report.html").unlink()
    (published / "students/400101202/report.html").write_text("half a pa")
    output = update(graded_class, published)
    assert "  400101201: the grade is the same, 62" in output and "  400101202: " in output
    assert files(published).keys() == whole.keys()
    assert b"half a pa" not in files(published)["students/400101202/report.html"][1][:20]


def test_what_is_no_publication_of_this_class_is_left_alone(
    graded_class: Path, published: Path, tmp_path: Path
) -> None:
    assert "there is no publication to update" in update(graded_class, tmp_path / "typo", code=2)
    assert not (tmp_path / "typo").exists()
    (tmp_path / "home").mkdir()
    (tmp_path / "home/index.html").write_text("mine")
    assert "is not a publication that can be updated" in update(graded_class, tmp_path / "home", code=2)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["index.html"]
    said("publish", graded_class, "--to", tmp_path / "p.zip", "--partial")
    before = (tmp_path / "p.zip").read_bytes()
    assert "--update works on a folder" in update(graded_class, tmp_path / "p.zip", code=2)
    assert (tmp_path / "p.zip").read_bytes() == before
    manifest = json.loads((published / "instructors/pages.json").read_text("utf-8"))
    (published / "instructors/pages.json").write_text(json.dumps({**manifest, "book": "another"}))
    pages = files(published)
    assert "was published from another gradebook" in update(graded_class, published, code=2)
    assert files(published) == pages


def test_a_list_of_pages_that_names_others_removes_nothing(graded_class: Path, published: Path) -> None:
    precious = published.parent / "precious.txt"
    precious.write_text("mine")
    path = published / "instructors/pages.json"
    manifest = json.loads(path.read_text("utf-8"))
    record = next(iter(manifest["pages"].values()))
    manifest["pages"] |= dict.fromkeys(
        ("../precious.txt", "students/../../precious.txt", str(precious)), record
    )
    path.write_text(json.dumps(manifest))
    update(graded_class, published)
    assert precious.read_text() == "mine"


def test_an_update_is_a_release(graded_class: Path, published: Path) -> None:
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "Read.")
    update(graded_class, published)
    with Gradebook(graded_class) as book:
        released = [edit for edit in book.edits("400101201") if isinstance(edit, Released)]
    assert [edit.points for edit in released] == [62, 66]
