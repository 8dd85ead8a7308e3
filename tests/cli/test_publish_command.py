"""`grader publish`: it refuses what is not ready, writes what is asked for, and updates what changed."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.domain.edit import Released
from grader.domain.term_total import TermPlan
from grader.gradebook import Gradebook
from grader.publishing import publication_folder

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
    changed = {name for name in after if after[name] != before.get(name)}
    assert {name for name in changed if not name.startswith("instructors/earlier/")} == {
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


def test_grades_on_pages_are_released_however_the_command_ends(
    graded_class: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update is cut short after the first page, which its student may have read."""
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "Read.")
    write, written = publication_folder._write, []

    def cut_short(target: Path, path: str, content: bytes) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(path)
        write(target, path, content)

    with monkeypatch.context() as patch:
        patch.setattr(publication_folder, "_write", cut_short)
        said("publish", graded_class, "--to", published, "--update", "--partial", code=130)
    assert written
    lower = ("marks", "set", graded_class, "400101201", "q6", "1", "--why", "Too generous.")
    assert "A grade that was released would fall" in said(*lower, code=2)


def test_what_an_update_wrote_is_known_although_it_was_cut_short(
    graded_class: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Students may have read it: it is told, kept when it changes again, and removed with its student."""
    report = published / "students/400101201/report.html"
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "Read.")
    said("owner", graded_class, "400101203", "400101209", "--why", "By the list.")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publication_folder, "_manifest_bytes", killed)
        said("publish", graded_class, "--to", published, "--update", "--partial", code=130)
    read_meanwhile = report.read_bytes()
    assert b"Read." in read_meanwhile and (published / "students/400101209/report.html").is_file()
    said("marks", "set", graded_class, "400101201", "q6", "5", "--why", "Read again.")
    said("owner", graded_class, "400101209", "none", "--why", "It was another list.")
    output = update(graded_class, published)
    assert "  400101201: 62 -> 67" in output
    kept = [path.read_bytes() for path in (published / "instructors/earlier/400101201").iterdir()]
    assert len(kept) == 2 and read_meanwhile in kept
    assert not (published / "students/400101209").exists()
    before = files(published)
    assert "No student's page changed." in update(graded_class, published) and files(published) == before
    assert not list(published.rglob("*.jsonl"))


def test_one_page_alone_is_withdrawn(graded_class: Path, published: Path) -> None:
    """It shows somebody else's work, and the others' pages are not ready to be renewed."""
    said("marks", "set", graded_class, "400101201", "q6", "1", "--why", "Read.")
    said("owner", graded_class, "400101203", "none", "--why", "Two carry the id.")
    alone = ("publish", graded_class, "--to", published, "--update", "--only", "400101203")
    assert "  400101203: has no page any more" in said(*alone)
    assert not (published / "students/400101203").exists()
    assert "there is no student '400101203'" in said(*alone, code=2)
    assert "400101201: " in update(graded_class, published), "it was left as it was"


def test_a_publication_that_was_moved_keeps_no_report_of_the_forgotten(
    graded_class: Path, published: Path, tmp_path: Path
) -> None:
    """Forgetting did not find it there."""
    elsewhere = published.rename(tmp_path / "elsewhere")
    said("forget", graded_class, "400101203", "--yes")
    assert "  400101203: has no page any more" in update(graded_class, elsewhere)
    assert not [name for name, content in files(elsewhere).items() if "400101203" in f"{name}{content}"]


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


# --- a part of the class ----------------------------------------------------------------------------------


def pages_of(published: Path) -> set[str]:
    return {path.name for path in (published / "students").iterdir()}


def released(graded_class: Path) -> set[str]:
    with Gradebook(graded_class) as book:
        return {str(edit.student_id) for edit in book.snapshot().edits if isinstance(edit, Released)}


def test_some_students_are_released_and_the_others_wait(graded_class: Path, tmp_path: Path) -> None:
    target, (her, him, *rest) = tmp_path / "some", STUDENTS
    done = said("publish", graded_class, "--to", target, "--partial", "--only", f"{her},{him}")
    assert "the pages of 2 students" in done
    assert pages_of(target) == released(graded_class) == {her, him}
    page = (target / "instructors/index.html").read_text()
    assert f"students/{her}/report.html" in page and f"students/{rest[0]}/report.html" not in page
    only = ("--only", rest[0])
    output = said("publish", graded_class, "--to", target, "--partial", "--update", *only)
    assert f"  {rest[0]}: is new: " in output and her not in output
    assert pages_of(target) == released(graded_class) == {her, him, rest[0]}
    page = (target / "instructors/index.html").read_text()
    assert all(f"students/{one}/report.html" in page for one in (her, him, rest[0]))
    update(graded_class, target)
    assert pages_of(target) == set(STUDENTS)


def test_others_pages_stay_as_they_are_when_one_is_brought_up_to_date(
    graded_class: Path, published: Path
) -> None:
    for student_id in STUDENTS[:2]:
        said("marks", "set", graded_class, student_id, "q6", "4", "--why", "Read.")
    before = files(published)
    output = said("publish", graded_class, "--to", published, "--partial", "--update", "--only", STUDENTS[0])
    assert STUDENTS[0] in output and STUDENTS[1] not in output
    after = files(published)
    theirs = [name for name in before if f"/{STUDENTS[1]}/" in name]
    assert theirs and all(before[name] == after[name] for name in theirs)
    lists = [json.loads(one["instructors/pages.json"][1])["grades"] for one in (before, after)]
    assert [grades[STUDENTS[1]] for grades in lists] == [lists[0][STUDENTS[1]]] * 2, "the grade on the page"
    assert lists[1].keys() == set(STUDENTS) and lists[1][STUDENTS[0]] != lists[0][STUDENTS[0]]
    assert STUDENTS[1] in update(graded_class, published)


def test_only_what_is_released_must_be_ready(
    graded_class: Path, tmp_path: Path, assignment: Assignment
) -> None:
    document = json.loads((graded_class / "results.json").read_text("utf-8"))
    awaiting = next(one["awaiting"] for one in document["submissions"] if one["student_id"] == STUDENTS[0])
    for target in assignment.mark_targets():
        if target.partition(".")[0] in awaiting:
            said("marks", "set", graded_class, STUDENTS[0], target, "1", "--why", "Read.")
    only = ("publish", graded_class, "--to", tmp_path / "one", "--only")
    assert "Not ready to hand out" in said(*only, STUDENTS[1], code=2)
    assert "no student '400109999'" in said(*only, "400109999", code=2)
    said(*only, STUDENTS[0])
    assert pages_of(tmp_path / "one") == {STUDENTS[0]}


def test_a_section_of_the_course_is_released(
    graded_class: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = ("publish", graded_class, "--to", tmp_path / "A", "--partial", "--section")
    assert "course.toml has no list of students" in said(*section, "A", code=2)
    monkeypatch.setattr("grader.cli.publishing_commands.course_plan", lambda _: _plan(tmp_path))
    said(*section, "A")
    assert pages_of(tmp_path / "A") == set(STUDENTS[:2])
    assert "nobody is in the section 'C'. There are 'A' and 'B'." in said(*section, "C", code=2)
    assert "Give one of them" in said(*section, "A", "--only", STUDENTS[0], code=2)
    monkeypatch.setattr("grader.cli.publishing_commands.course_plan", lambda _: _plan(tmp_path, zeros="00"))
    said("publish", graded_class, "--to", tmp_path / "zeros", "--partial", "--section", "A")
    assert pages_of(tmp_path / "zeros") == set(STUDENTS[:2]), "whatever a spreadsheet made of their ids"


def _plan(folder: Path, zeros: str = "") -> TermPlan:
    rows = [f"{zeros}{one},{'A' if one in STUDENTS[:2] else 'B'}\n" for one in (*STUDENTS, "400101299")]
    (folder / "students.csv").write_text("student_id,section\n" + "".join(rows))
    return TermPlan(students=folder / "students.csv")


def test_a_report_is_kept_as_it_was_released(graded_class: Path, published: Path) -> None:
    report = published / "students/400101201/report.html"
    first = report.read_bytes()
    said("marks", "set", graded_class, "400101201", "q6", "4", "--why", "Read.")
    update(graded_class, published)
    (kept,) = (published / "instructors/earlier/400101201").iterdir()
    assert kept.read_bytes() == first != report.read_bytes()
    assert re.fullmatch(r"2026-03-01T\d{6}\+0000-[0-9a-f]{8}\.html", kept.name), "when it was made"
    update(graded_class, published)
    assert list((published / "instructors/earlier").iterdir()) == [kept.parent], (
        "what did not change is not kept"
    )
    report.write_text("half a pa")
    update(graded_class, published)
    assert list(kept.parent.iterdir()) == [kept], "only what was released is kept"
