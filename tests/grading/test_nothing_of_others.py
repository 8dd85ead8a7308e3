"""A student's pages tell nothing of anybody else: no id, no name, no deadline, no similar work."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from grader.domain.analyzed_program import Note
from grader.domain.submission import Download
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.grading.run import handed_on, team_representatives
from grader.intake import KnownOwners, intake, submissions, with_extensions
from grader.intake.downloaded_files import condensed
from grader.publishing.publication_folder import publish
from grader.publishing.released_class_pages import pages
from grader.reports.results_json.results_file import download_record
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord, record_text
from grader.results.class_files import write_class
from grader.results.current_state import results_now

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
DUE = datetime(2026, 1, 20, 12, tzinfo=UTC)
ALONE, EXTENDED, MATE, OTHER_MATE, RIVAL = "877100101", "877100202", "877100303", "877100404", "877100505"
OWN_DEADLINE = datetime(2026, 1, 27, 9, 41, tzinfo=UTC)
STUDENTS = (ALONE, EXTENDED, MATE, OTHER_MATE, RIVAL)


def name_of(student_id):
    return f"Surname{student_id[-3:]} Given{student_id[-3:]}"


@pytest.fixture
def published(tmp_path, assignment, class_evidence):
    """A class as a Gradescope export brings it, graded and published: where the pages are."""
    assignment = replace(assignment, deadline=DUE)
    download = tmp_path / "export"
    listed = ""
    for number, members in enumerate([[ALONE], [EXTENDED], [MATE, OTHER_MATE], [RIVAL]], start=1):
        folder = download / f"submission_{number}"
        folder.mkdir(parents=True)
        # the names of the team's files are not as they were asked for, and carry ids that nobody here has
        name = "877900999 Lab8 Homework.py" if len(members) > 1 else f"{members[0]} my work.py"
        (folder / name).write_text(f"x = {number}\n")
        if len(members) > 1:
            (folder / "877900998_Lab8_Homework.pdf").write_bytes(b"%PDF-1.4")
        listed += f"submission_{number}:\n  :submitters:\n" + "".join(
            f"  - :name: {name_of(one)}\n    :sid: '{one}'\n    :email: {one}@example.org\n"
            for one in members
        )
        listed += "  :created_at: 2026-01-24 03:54:49 Z\n"
    (download / "submission_metadata.yml").write_text(listed)
    uploads = submissions(download, assignment, tmp_path / "scratch", known=KnownOwners())
    uploads = with_extensions(uploads, {EXTENDED: OWN_DEADLINE})
    out = tmp_path / "results"
    by_id = {one.student_id: one for one in uploads.submissions}
    assert sorted(by_id) == sorted(STUDENTS)
    with Gradebook(out, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for first, others in team_representatives(uploads.submissions).items():
            one = by_id[first]
            found = class_evidence(
                first,
                failed=[assignment.checks[0].id],
                received_at=one.received_at,
                delivery=one.delivery,
                origin=one.origin,
                team=one.team,
                notes=(*map(Note, intake(one, assignment).notes), Note("Something about the code.")),
                source={"homework.py": "x = 1"},
            )
            keeper.kept(found, {}, NOW)
            for mate in others:
                keeper.kept(handed_on(found, one, mate), {}, NOW)
        results = results_now(assignment, book.snapshot())
    similarity = SimilarityRecord(
        assignment=assignment.id,
        compared_at=NOW,
        submissions=5,
        threshold=0.5,
        pairs=[PairRecord(one=ALONE, other=RIVAL, before=False, says="98 % of their own code")],
    )
    (out / "similarity.json").write_text(record_text(similarity))
    account = download_record(Download(condensed(uploads.account), uploads.notes))
    write_class(assignment, results, out, NOW, [account])
    made = pages(
        assignment, results, lambda _: {}, now=NOW, download=account, similarity=(similarity, b"<p>")
    )
    publish(made, tmp_path / "published", NOW)
    return SimpleNamespace(out=out, published=tmp_path / "published", uploads=uploads)


def test_no_page_of_a_student_tells_of_anybody_else(published):
    for tree in (published.out, published.published):
        for student in STUDENTS:
            own = sorted((tree / "students" / student).iterdir())
            assert {"report.html", "submission.html"} <= {path.name for path in own}
            for path in own:
                html = path.read_text("utf-8")
                assert student in html, path
                for other in STUDENTS:
                    if other != student:
                        found = [word for word in (other, *name_of(other).split()) if word in html]
                        assert found == [], (path, found)
                assert not re.search("similar|in common", html.split("</style>")[1]), path


def test_a_deadline_of_ones_own_is_ones_own(published):
    for tree in (published.out, published.published):
        for student in STUDENTS:
            html = (tree / "students" / student / "report.html").read_text("utf-8")
            assert ("2026-01-27 09:41" in html) == ("Your own deadline" in html)
            assert "Your own deadline" not in html or student == EXTENDED
            late = re.search(r"Handed in [\d a-z]+ late", html)
            assert (late is not None) == (student != EXTENDED)


def test_a_team_is_told_that_it_is_one_and_staff_who_is_in_it(published):
    for student in (MATE, OTHER_MATE):
        html = (published.out / "students" / student / "report.html").read_text("utf-8")
        assert f"Gradescope says that they are {student}" in html
        assert "Handed in together by 2 students" in html and "taken as ID_Lab8_Homework.py" in html
        assert "Something about the code." in html
    page = (published.out / "index.html").read_text("utf-8")
    assert f"{MATE}: handed in together with {OTHER_MATE}" in page
    assert all(name_of(student) in page for student in STUDENTS)


def test_published_students_are_apart_from_what_is_for_staff(published):
    folder = published.published / "students"
    assert sorted(path.name for path in folder.iterdir()) == sorted(STUDENTS)
    assert sorted(path.name for path in published.published.iterdir()) == ["instructors", "students"]
