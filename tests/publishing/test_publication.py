"""Pages that are handed out: whole, deterministic, and a student's leads to nobody else's."""

import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.gradebook import Gradebook
from grader.publishing.publication import open_reasons
from grader.publishing.publication_folder import publish
from grader.publishing.released_class_pages import pages
from grader.results.current_state import results_now

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STUDENTS = ["400101201", "400101202", "400101203", "400101204"]


@pytest.fixture
def results(graded_class, assignment):
    with Gradebook(graded_class, assignment_id=assignment.id) as book:
        return results_now(assignment, book.snapshot())


@pytest.fixture
def made(assignment, results):
    def pages_of() -> list[tuple[str, bytes]]:
        return list(pages(assignment, results, lambda _: {}, now=NOW))

    return pages_of


def test_the_class_page_leads_to_all_and_a_students_page_to_nobody(made, tmp_path: Path) -> None:
    publish(made(), tmp_path / "published", NOW)
    folder = tmp_path / "published" / "instructors"
    links = re.findall(r'href="([^"#]+)"', (folder / "index.html").read_text("utf-8"))
    assert {(folder / link).resolve().parent.name for link in links} == set(STUDENTS)
    assert all((folder / link).is_file() for link in links)
    for student in STUDENTS:
        page = (tmp_path / "published" / "students" / student / "report.html").read_text("utf-8")
        assert student in page
        assert not any(other in page for other in STUDENTS if other != student)
        own = folder.parent / "students" / student
        targets = {link.split("#")[0] for link in re.findall(r'href="([^"]+)"', page)}
        assert targets <= {"", "submission.html"}
        assert ("submission.html" in targets) == (own / "submission.html").is_file()
        if (own / "submission.html").is_file():
            code = (own / "submission.html").read_text("utf-8")
            assert student in code and not any(other in code for other in STUDENTS if other != student)
            assert {link.split("#")[0] for link in re.findall(r'href="([^"]+)"', code)} == {"", "report.html"}
    assert not list(tmp_path.glob(".*.part"))


def test_a_zip_holds_the_same_pages_and_the_same_bytes_each_time(made, tmp_path: Path) -> None:
    for name in ("one.zip", "two.ZIP"):
        publish(made(), tmp_path / name, NOW)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.ZIP").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == dict(made())


def test_what_is_there_is_never_written_over(made, tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    with pytest.raises(UsageError, match="is there already"):
        publish(made(), tmp_path / "published", NOW)
    with pytest.raises(UsageError, match="there is no folder"):
        publish(made(), tmp_path / "nowhere" / "published", NOW)


def test_a_publication_that_is_cut_short_leaves_nothing(made, tmp_path: Path) -> None:
    def broken():
        yield made()[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        publish(broken(), tmp_path / "published", NOW)
    assert not (tmp_path / "published").exists() and not list(tmp_path.glob(".*.part"))


def test_what_holds_the_grades_is_named_once(assignment, results) -> None:
    assert open_reasons(assignment, results) == (
        "Marks that people give",
        "Points that the grader could not decide",
        "A required file is missing",
    )
