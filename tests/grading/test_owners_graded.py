"""One student's files under another's number, through the whole grader: workers, commands, the LMS's table.

`test_owners.py` tries many more ways without workers.
"""

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return {factor} * x
"""
A, Z = "400101201", "400101202"
SHEET = (
    "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n"
    f"Participant 1234524,Alpha One,{A},,4,-\nParticipant 1234525,Omega Two,{Z},,4,-\n"
)


class Desk:
    """A download in which both students' files carry the second one's number; the first one's are wrong."""

    def __init__(self, grader: Callable[..., Result], folder: Path, course: Path) -> None:
        self.out, self.sheet, self._folder = folder / "out", folder / "Grades.csv", folder
        self._course, self._grader = course, grader
        self.sheet.write_text(SHEET, "utf-8")
        self.download = folder / "DL-Lab8-moodle.zip"
        with zipfile.ZipFile(self.download, "w") as archive:
            for person, factor in (("Alpha One_1234524", 3), ("Omega Two_1234525", 2)):
                path = f"{person}_assignsubmission_file/{Z}_homework.py"
                archive.writestr(path, CODE.format(factor=factor))

    def say(self, *words: object) -> str:
        """Run a command; what it prints."""
        done = self._grader("--course", self._course, *words)
        assert done.exit_code == 0, done.output
        return done.output

    def grade(self, *more: object) -> str:
        """Grade the download."""
        return self.say(
            "grade", self.download, "--assignment", "tiny", "--no-train", "--out", self.out, *more
        )

    def exported(self) -> dict[str, str]:
        """ID number -> the grade in Moodle's worksheet."""
        self.say("export", "moodle-worksheet", self.out, "--into", self.sheet)
        rows = csv.DictReader(io.StringIO((self.out / "exports/Grades.csv").read_text("utf-8")))
        return {row["ID number"]: row["Grade"] for row in rows}

    def reports(self) -> list[str]:
        """Whose reports are in the zip that Moodle hands back."""
        self.say("export", "feedback-zip", self.out, "--into", self.sheet)
        with zipfile.ZipFile(self.out / "exports/feedback.zip") as archive:
            return [name.partition("_")[0] for name in archive.namelist()]


@pytest.fixture
def desk(
    grader: Callable[..., Result], tmp_path: Path, tiny_course: Path, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    """The class's download, not graded yet."""
    for name in ("GRADER_COURSE", "GRADER_GRADEBOOK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRADER_BY", "ta1")
    return Desk(grader, tmp_path, tiny_course)


def test_by_the_worksheet_everybody_has_their_own_grade(desk: Desk) -> None:
    desk.grade("--roster", desk.sheet)
    assert desk.exported() == {A: "2", Z: "4"}
    assert desk.reports() == ["Alpha One", "Omega Two"]


def test_without_it_nobody_has_a_grade_until_a_person_says_whose_each_is(desk: Desk) -> None:
    desk.grade()
    assert desk.exported() == {A: "", Z: ""} and desk.reports() == []
    with (desk.out / "scores.csv").open(encoding="utf-8") as file:
        assert not {A, Z} & {row["student_id"] for row in csv.DictReader(file)}
    desk.say("owner", desk.out, "Omega Two_1234525", Z, "--why", "I asked her.")
    desk.say("owner", desk.out, "moodle-1234524", A, "--why", "A slip of the pen.")
    assert desk.exported() == {A: "2", Z: "4"} and desk.reports() == ["Alpha One", "Omega Two"]
    assert "2 unchanged" in desk.grade(), "nothing is examined again"
    assert desk.exported() == {A: "2", Z: "4"}
