"""Several downloads into one results folder: each keeps its account, and all are shown together.

Through the command line. What a submission is worth is told by its text here, so that no worker is needed.
"""

import contextlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader import __version__
from grader.cli import cli
from grader.domain.evidence import Attestation, Evidence, Finding, Status
from grader.domain.submission import Submission
from grader.gradebook import Gradebook
from grader.grading.run import EvidenceBuilder
from grader.intake.unpacking import HERE

A, B, C, D, E = (f"40010120{number}" for number in range(1, 6))
Files = Mapping[str, str]


def moodle(number: int, student_id: str, *more: str) -> dict[str, str]:
    """What a participant handed in, as Moodle packs it."""
    names = (f"{student_id}_homework.py", *more)
    return {f"Somebody_{number}_assignsubmission_file/{name}": f"x = {number}\n" for name in names}


def gradescope(there: Mapping[int, str], listed: Mapping[int, str]) -> dict[str, str]:
    """A Gradescope export: submission -> student, of those in it, and of those that it lists only."""
    metadata = "".join(
        f"submission_{number}:\n  :submitters:\n  - :sid: '{student_id}'\n"
        f"  :created_at: 2026-01-{10 + number} 12:00:00 Z\n"
        if student_id
        else f"submission_{number}:\n  :submitters: []\n"
        for number, student_id in {**there, **listed}.items()
    )
    files = {f"export/submission_{number}/homework.py": f"y = {number}\n" for number in there}
    return {"export/submission_metadata.yml": metadata, **files}


MOODLE = {**moodle(111, A, "notes.txt"), **moodle(222, B), "Somebody_999_assignsubmission_file/x.rar": "Rar!"}


class Desk:
    """A results folder, and commands about it."""

    def __init__(self, folder: Path, course: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        self._course = course

    def say(self, *words: object, code: int = 0) -> str:
        """Run a command; what it prints."""
        words = ("--course", self._course, *words)
        result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
        assert result.exit_code == code, result.output
        return result.output

    def path(self, name: str, files: Files) -> Path:
        """A download."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for entry, content in files.items():
                archive.writestr(entry, content)
        return path

    def grade(self, name: str, files: Files, *more: object, code: int = 0) -> str:
        """Grade a download of that name."""
        return self.graded(self.path(name, files), *more, code=code)

    def graded(self, path: Path, *more: object, code: int = 0) -> str:
        """Grade what is at a path."""
        words = ("--assignment", "tiny", "--no-train", "--out", self.out, *more)
        return self.say("grade", path, *words, code=code)

    def listed(self, name: str, *students: str) -> Path:
        """A list of the class."""
        path = self.folder / name
        path.write_text("\n".join(["student_id", *students, ""]), "utf-8")
        return path

    @property
    def document(self) -> dict[str, Any]:
        """What results.json says."""
        found: dict[str, Any] = json.loads((self.out / "results.json").read_text("utf-8"))
        return found

    @property
    def sources(self) -> list[str]:
        """The downloads with an account."""
        return [one["source"] for one in self.document["downloads"]]

    @property
    def page(self) -> str:
        """The class page, on one line."""
        return " ".join((self.out / "index.html").read_text("utf-8").split())

    def roster(self) -> tuple[list[str], list[str]]:
        """Who handed in nothing, and who is on no list."""
        found = self.document["download"]["roster"]
        return found["missing"], found["unlisted"]


@pytest.fixture
def desk(tiny_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A course with a small assignment, in which every submission is right."""

    @contextlib.contextmanager
    def nothing(*_: object, **__: object) -> Iterator[None]:
        yield None

    def examine(
        run: Any, submission: Submission, *, attempt: int, graded_at: Any, watch: Any
    ) -> EvidenceBuilder:
        findings = tuple(Finding(s.id, s.component, s.title, Status.PASSED) for s in run.assignment.checks)
        evidence = Evidence(
            submission.student_id,
            "tiny",
            submission.digest,
            graded_at,
            origin=submission.origin,
            findings=findings,
            attestation=Attestation("strict"),
            engine=__version__,
            assignment_digest=run.assignment.digest,
        )
        return EvidenceBuilder(evidence, {})

    monkeypatch.setattr("grader.grading.grade_class.running_parsers", nothing)
    monkeypatch.setattr("grader.grading.examiner.running_hosts", nothing)
    monkeypatch.setattr("grader.grading.grade_class.ParserOpener", lambda _: HERE)
    monkeypatch.setattr("grader.grading.examiner.examined", examine)
    monkeypatch.setenv("GRADER_BY", "ta1")
    for name in ("GRADER_GRADEBOOK", "GRADER_COURSE"):
        monkeypatch.delenv(name, raising=False)
    return Desk(tmp_path, tiny_course)


# --- two downloads --------------------------------------------------------------------------------------


def test_a_second_download_erases_nothing_of_the_first(desk: Desk) -> None:
    """D5: its files, its earlier attempts and its notes were gone from the page and the queue."""
    desk.grade("moodle.zip", {**MOODLE, "unclear.txt": "?"})
    alone = desk.document
    assert alone["download"] == alone["downloads"][0] and alone["download"]["source"] == "moodle.zip"
    assert "moodle.zip: unclear.txt" not in desk.page, "of one download nobody needs its name"
    desk.grade("gradescope.zip", gradescope({1: C, 2: C}, {}))
    document = desk.document
    assert desk.sources == ["moodle.zip", "gradescope.zip"]
    assert document["downloads"][0] == alone["download"]
    whole = document["download"]
    for count in ("matched", "superseded", "refused"):
        assert whole[count] == sum(one[count] for one in document["downloads"])
    assert (whole["superseded"], whole["refused"]) == (1, 1)
    assert {file["source"] for file in whole["files"]} == {"moodle.zip", "gradescope.zip"}
    assert any(note.startswith("moodle.zip: 1 submissions carry") for note in whole["notes"])
    assert "moodle.zip: unclear.txt" in desk.page, "the queue says of which download a file is"
    queue = desk.page.partition('id="attempts"')[2].partition("</div>")[0]
    assert "gradescope.zip: " in queue and "which Gradescope received later" in queue
    assert "moodle.zip: 1 submissions carry no student id" in desk.page
    assert '<b dir="auto">moodle.zip</b>: 5 files' in desk.page
    desk.say("regrade", desk.out)
    assert desk.document["downloads"] == document["downloads"], "other commands keep them"


def test_the_accounts_are_in_the_book_and_the_files_are_a_view_of_it(desk: Desk) -> None:
    desk.grade("moodle.zip", MOODLE)
    desk.grade("gradescope.zip", gradescope({1: C}, {}))
    before = desk.document
    (desk.out / "results.json").unlink()
    desk.say("regrade", desk.out)
    assert desk.document["downloads"] == before["downloads"]
    assert desk.document["download"] == before["download"]


def test_the_same_download_again_has_one_account(desk: Desk) -> None:
    desk.grade("moodle.zip", MOODLE)
    desk.grade("gradescope.zip", gradescope({1: C}, {}))
    desk.grade("moodle.zip", {**MOODLE, **moodle(333, D)})
    assert sorted(desk.sources) == ["gradescope.zip", "moodle.zip"]
    assert desk.document["download"]["matched"] == 7
    path = desk.folder / "moodle.zip"
    desk.graded(path, "--only", D)
    assert desk.document["download"]["matched"] == 7, "the account is of the whole download"
    with Gradebook(desk.out, assignment_id="tiny") as book:
        kept = book.download_accounts()
    desk.graded(path)
    with Gradebook(desk.out, assignment_id="tiny") as book:
        assert book.download_accounts() == kept


def test_a_download_of_the_same_name_that_lacks_some_takes_no_place(desk: Desk) -> None:
    """Every LMS names all of its downloads the same: a section's, in which one student is as well."""
    desk.grade("submissions.zip", {**moodle(111, A), **moodle(222, B)})
    before = desk.document["downloads"][0]
    desk.grade("section/submissions.zip", {**moodle(222, B), **moodle(333, C)})
    assert desk.sources == ["submissions.zip", "submissions.zip (2)"]
    assert desk.document["downloads"][0] == before


def test_a_fuller_download_of_the_same_lms_takes_the_place_of_the_first(desk: Desk) -> None:
    desk.grade("monday.zip", MOODLE)
    desk.grade("gradescope.zip", gradescope({1: C}, {}))
    desk.grade("tuesday.zip", {**MOODLE, **moodle(333, D)})
    assert desk.sources == ["gradescope.zip", "tuesday.zip"]
    desk.grade("section.zip", moodle(444, E))
    assert desk.sources == ["gradescope.zip", "tuesday.zip", "section.zip"], (
        "another section is not a fuller one"
    )


def test_two_downloads_with_one_name_are_two(desk: Desk) -> None:
    """Canvas calls every download `submissions.zip`."""
    desk.grade("one/submissions.zip", moodle(111, A))
    desk.grade("two/submissions.zip", moodle(222, B))
    assert desk.sources == ["submissions.zip", "submissions.zip (2)"]
    desk.grade("two/submissions.zip", {**moodle(222, B), **moodle(333, C)})
    desk.grade("one/submissions.zip", {**moodle(111, A), **moodle(444, D)})
    assert sorted(desk.sources) == ["submissions.zip", "submissions.zip (2)"]
    assert desk.document["download"]["matched"] == 4


def test_a_late_upload_by_mail_is_a_download_too(desk: Desk) -> None:
    desk.grade("moodle.zip", MOODLE, "--roster", desk.listed("class.csv", A, B, C, D))
    assert desk.roster()[0] == [C, D]
    late = desk.folder / f"{C}_homework.py"
    late.write_text("z = 1\n")
    desk.graded(late)
    assert desk.sources == ["moodle.zip", late.name]
    assert desk.roster()[0] == [D]
    assert desk.document["download"]["matched"] == 5


def test_each_section_has_its_list(desk: Desk) -> None:
    desk.grade("moodle.zip", moodle(111, A), "--roster", desk.listed("one.csv", A, B))
    desk.grade("gradescope.zip", gradescope({1: C}, {}), "--roster", desk.listed("two.csv", C, D))
    assert desk.roster() == ([B, D], [])
    assert desk.document["download"]["roster"]["source"] == "one.csv and two.csv"
    each = [one["roster"] for one in desk.document["downloads"]]
    assert [(one["source"], one["missing"], one["unlisted"]) for one in each] == [
        ("one.csv", [B], []),
        ("two.csv", [D], []),
    ]
    desk.grade("moodle.zip", {**moodle(111, A), **moodle(222, B)})
    assert desk.roster() == ([D], []), "a list need not be given twice"
    desk.grade("fuller.zip", {**moodle(111, A), **moodle(222, B), **moodle(333, E)})
    assert desk.roster() == ([D], [E]), "nor to the download that takes its place"


def test_what_a_person_says_of_an_owner_is_in_every_account(desk: Desk) -> None:
    desk.grade("moodle.zip", {"Somebody_111_assignsubmission_file/homework.py": "x = 1\n"})
    desk.grade("gradescope.zip", gradescope({1: C}, {}))
    desk.say("owner", desk.out, "moodle-111", A, "--why", "I asked.")
    assert {file["student_id"] for file in desk.document["downloads"][0]["files"]} == {A}


def test_what_an_older_version_wrote_is_kept(desk: Desk) -> None:
    """Its book has no accounts: there is what stands in results.json, without a name."""
    desk.grade("moodle.zip", MOODLE)
    document = desk.document
    del document["downloads"], document["download"]["source"], document["download"]["lacking"]
    with Gradebook(desk.out, assignment_id="tiny") as book, book._database.reading() as connection:
        connection.exec_driver_sql("DROP TABLE downloads")
        connection.exec_driver_sql(
            "CREATE TABLE downloads (id INTEGER PRIMARY KEY, assignment_id TEXT, source TEXT, who TEXT, "
            "at TEXT, record TEXT)"
        )
    (desk.out / "results.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    desk.say("regrade", desk.out)
    assert desk.document["download"]["matched"] == document["download"]["matched"]
    desk.grade("gradescope.zip", gradescope({1: C}, {}))
    assert desk.sources == ["an earlier download", "gradescope.zip"]
    desk.grade("moodle.zip", MOODLE)
    assert desk.sources == ["gradescope.zip", "moodle.zip"], "it was this one"


def test_whatever_interrupts_the_grading_the_account_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.grade("moodle.zip", MOODLE, "--roster", desk.listed("class.csv", A, B, C, D))

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("grader.grading.examiner.examined", stopped)
        desk.grade("gradescope.zip", gradescope({1: C}, {}), code=130)
    desk.say("regrade", desk.out)
    assert desk.sources == ["moodle.zip", "gradescope.zip"]
    assert 'id="no-result"' in desk.page, "and says whose files nobody has graded yet"
    assert [one["roster"]["missing"] for one in desk.document["downloads"] if one["roster"]] == [[D]]
    desk.graded(desk.folder / "gradescope.zip")
    assert desk.sources == ["moodle.zip", "gradescope.zip"] and 'id="no-result"' not in desk.page


def test_a_command_that_grades_nobody_leaves_no_account(desk: Desk) -> None:
    desk.grade("moodle.zip", MOODLE)
    desk.grade("gradescope.zip", gradescope({1: C}, {}), "--only", D, code=2)
    desk.say("regrade", desk.out)
    assert desk.sources == ["moodle.zip"]


# --- what an LMS lists and its export lacks ---------------------------------------------------------------


def test_what_gradescope_lists_and_its_export_lacks_holds_the_grades(desk: Desk) -> None:
    """D6: until there is a result, from whichever download, or a person has the last word."""
    desk.grade("gradescope.zip", gradescope({1: A}, {2: B, 3: C, 4: D}))
    assert [one["student_id"] for one in desk.document["download"]["lacking"]] == [B, C, D]
    assert "Not ready to hand out yet." in desk.page and 'id="lacking"' in desk.page
    assert "Gradescope lists submission_2, which is not in the download." in desk.page
    refusal = desk.say("publish", desk.out, "--to", desk.folder / "p", code=2)
    assert "Listed by the LMS, but not in its download" in refusal
    desk.grade("moodle.zip", moodle(111, B))
    assert "Gradescope lists submission_3, which is not in gradescope.zip." in desk.page
    assert "Gradescope lists submission_2" not in desk.page, "a result is there"
    assert "submissions that the LMS lists are not in its download" in desk.say(
        "export", "gradescope", desk.out, code=2
    )
    desk.say("rule", desk.out, C, "--why", "Withdrawn.")
    desk.grade("again.zip", gradescope({1: A, 4: D}, {2: B, 3: C}))
    assert desk.sources == ["moodle.zip", "again.zip"]
    assert 'id="lacking"' not in desk.page and "Ready to hand out" in desk.page
    desk.say("publish", desk.out, "--to", desk.folder / "p")
    desk.say("export", "gradescope", desk.out)


def test_a_download_of_which_all_is_lacking_is_not_swallowed_by_another(desk: Desk) -> None:
    desk.grade("gradescope.zip", gradescope({1: A}, {2: B}))
    desk.grade("moodle.zip", {**moodle(111, A), **moodle(222, C)})
    assert 'id="lacking"' in desk.page and len(desk.sources) == 2


def test_nobody_lacks_what_an_attempt_of_theirs_is_there_for(desk: Desk) -> None:
    desk.grade("gradescope.zip", gradescope({1: A}, {2: A}))
    assert desk.document["download"]["lacking"] == []
    assert "submission_2 of 400101201 is listed by Gradescope" in desk.page


def test_a_submission_of_nobody_known_is_closed_by_its_own_name(desk: Desk) -> None:
    desk.grade("gradescope.zip", gradescope({1: A}, {2: ""}))
    assert 'id="lacking"' in desk.page
    desk.say("rule", desk.out, "submission_2", "--why", "A test of the course's.")
    assert 'id="lacking"' not in desk.page


def test_who_lacks_a_submission_did_not_hand_in_nothing(desk: Desk) -> None:
    files = gradescope({1: A}, {2: B})
    desk.grade("gradescope.zip", files, "--roster", desk.listed("class.csv", A, B, C))
    queue = desk.page.partition('id="handed-in-nothing"')[2].partition("</div>")[0]
    assert C in queue and B not in queue


@pytest.mark.parametrize("command", ["moodle-gradebook", "gradescope"])
def test_every_export_waits_for_it(desk: Desk, command: str) -> None:
    desk.grade("gradescope.zip", gradescope({1: A}, {2: B}))
    assert f"  {B}: Gradescope lists submission_2" in desk.say("export", command, desk.out, code=2)
    desk.say("export", command, desk.out, "--partial")


HEADER = "Identifier,Full name,ID number,Status,Grade,Maximum grade,Last modified (grade)\n"
WORKSHEET = HEADER + (
    f"Participant 111,Ann,{A},Submitted for grading - Graded,,4,-\n"
    f"Participant 222,Bob,{B},Submitted for grading,,4,-\n"
    f"Participant 333,Cy,{C},No submission,,4,-\n"
    f"Participant 444,Dot,{D},Draft (not submitted),,4,-\n"
)


def worksheet(desk: Desk, text: str = WORKSHEET) -> Path:
    path = desk.folder / "Grades.csv"
    path.write_text(text, "utf-8")
    return path


def test_what_moodles_worksheet_says_was_submitted_and_is_nowhere_holds_the_grades(desk: Desk) -> None:
    desk.grade("moodle.zip", moodle(111, A), "--roster", worksheet(desk))
    assert f"  {B}: Grades.csv says that they handed in" in desk.say("export", "gradescope", desk.out, code=2)
    assert 'id="lacking"' in desk.page and desk.roster()[0] == [B, C, D]
    queue = desk.page.partition('id="handed-in-nothing"')[2].partition("</div>")[0]
    assert C in queue and D in queue and B not in queue
    desk.grade("later.zip", {**moodle(111, A), **moodle(222, B)})
    assert 'id="lacking"' not in desk.page
    desk.say("export", "gradescope", desk.out)


def test_what_gradescopes_grades_say_was_submitted_holds_them_too(desk: Desk) -> None:
    rows = f"Ann,{A},a@x,Graded,1\nBob,{B},b@x,Ungraded,2\nCy,{C},c@x,Missing,\n"
    text = f"Name,SID,Email,Status,Submission ID\n{rows}"
    desk.grade("gradescope.zip", gradescope({1: A}, {}), "--roster", worksheet(desk, text))
    assert f"  {B}: Grades.csv says" in desk.say("export", "gradescope", desk.out, code=2)
    assert C not in desk.page.partition('id="lacking"')[2].partition("</div>")[0]


def test_the_members_of_a_team_lack_nothing_that_moodle_could_give(desk: Desk) -> None:
    """By Moodle each member of a team has submitted, and its download holds the team's upload alone."""
    team = {"Team_77_assignsubmission_file/homework.py": "x = 1\n"}
    desk.grade("moodle.zip", {**team, **moodle(111, A)}, "--roster", worksheet(desk))
    assert 'id="lacking"' not in desk.page and B in desk.roster()[0]
    desk.say("export", "gradescope", desk.out)


def test_a_row_without_a_number_holds_nobody(desk: Desk) -> None:
    """Under which id its result would stand is not known, so nothing could settle it."""
    without_person_names = HEADER + (
        f"Participant 111,Ann,{A},Submitted for grading,,4,-\n"
        "Participant 222,Bob,,Submitted for grading,,4,-\n"
    )
    desk.grade("moodle.zip", moodle(111, A), "--roster", worksheet(desk, without_person_names))
    assert 'id="lacking"' not in desk.page


def test_who_was_recorded_with_nothing_is_no_rival_of_their_own_upload(desk: Desk) -> None:
    """Only the id in its files says whose it is; nobody else has handed in under it."""
    desk.grade("moodle.zip", moodle(111, A), "--roster", desk.listed("class.csv", A, B, C))
    desk.say("rule", desk.out, B, C, "--why", "Nothing by the deadline.")
    assert desk.roster()[0] == []
    desk.grade("late.zip", moodle(222, B))
    found = {one["student_id"]: one for one in desk.document["submissions"]}
    assert set(found) == {A, B, C} and not any(one["held"] for one in found.values())
    assert (found[B]["total"], found[B]["absent"]) == (4, False)
    assert (found[C]["total"], found[C]["absent"]) == (0, True)


def test_who_was_recorded_with_nothing_has_no_submission_that_an_owner_displaces(desk: Desk) -> None:
    desk.grade("moodle.zip", moodle(111, A), "--roster", desk.listed("class.csv", A, B))
    desk.say("rule", desk.out, B, "--why", "Nothing by the deadline.")
    desk.grade("late.zip", {"Somebody_222_assignsubmission_file/homework.py": "x = 2\n"})
    desk.say("owner", desk.out, "moodle-222", B, "--why", "She says so.")
    found = {one["student_id"]: (one["total"], one["absent"]) for one in desk.document["submissions"]}
    assert found == {A: (4, False), B: (4, False)}
