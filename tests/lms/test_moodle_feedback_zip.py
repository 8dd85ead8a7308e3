"""The reports as Moodle's upload of feedback takes them."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus
from grader.lms.export_format import Export
from grader.lms.moodle.feedback_zip import FEEDBACK_ZIP, holders_of_download
from tests import graded_results

SHEET = (
    "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n"
    'Participant 11,"Student_17 ""x"" / Ä",400101201,,100,-\n'
    "Participant 12,.Student 18,,,100,-\nParticipant 14,Student 20,,,100,-\n"
)
REPORTS = {name: b"<html>" + name.encode() for name in ("400101201", "Student_18_12", "400101203", "4")}


def packed(results: list[Any], file: tuple[str, bytes] | None = None) -> Export:
    return graded_results.export(FEEDBACK_ZIP, results, file, reports=REPORTS)


def moodles(name: str) -> tuple[int, str, str, str]:
    """(participant, subtype, plugin, file) as importziplib.php takes a name apart."""
    assert not name.startswith((".", "~")) and "/" not in name
    _, number, subtype, plugin, file = name.split("_", 4)
    return int(number), subtype, plugin, file


def test_moodle_gives_every_report_to_its_student(a_result: Callable[..., Any]) -> None:
    results = [a_result(name) for name in REPORTS] + [a_result("5", None, status=GradeStatus.REFUSED)]
    export = packed(results, ("g.csv", SHEET.encode()))
    with zipfile.ZipFile(io.BytesIO(export.content)) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {
        "Student 17 x Ä_11_assignfeedback_file_report.html": REPORTS["400101201"],
        "Student 18_12_assignfeedback_file_report.html": REPORTS["Student_18_12"],
    }
    assert [moodles(name) for name in found] == [
        (11, "assignfeedback", "file", "report.html"),
        (12, "assignfeedback", "file", "report.html"),
    ]
    unknown = "is left out (nothing shows what Moodle calls this student)"
    assert export.remarks[:3] == (
        f"4: {unknown}",
        f"400101203: {unknown}",
        "5: is left out (nothing in it could be graded)",
    )
    assert export.remarks[3:] == ("g.csv, row 4 (Participant 14): has no result",)
    assert packed(results, ("g.csv", SHEET.encode())).content == export.content


def test_names_come_from_the_download_or_nobody_gets_a_report(a_result: Callable[..., Any]) -> None:
    holders = holders_of_download(
        [
            ("Student 17_11_assignsubmission_file_/sub/homework.py", "400101201"),
            ("class.zip/G1-Ä Ö_12_assignsubmission_file_a_b.pdf", "400101202"),
            ("Participant_13_assignsubmission_file_x.py", "400101203"),
            ("Team_77_assignsubmission_file_x.py", "400101204"),
            ("400101205_Lab8_Homework.py", "400101205"),
            ("A_15_assignsubmission_file_x.py", "400101206"),
            ("A_16_assignsubmission_file_x.py", "400101206"),
            ("B_17_assignsubmission_file_x.py", None),
        ]
    )
    assert holders == {
        "400101201": "Student 17_11",
        "400101202": "G1-Ä Ö_12",
        "400101203": "Participant_13",
    }
    with pytest.raises(UsageError, match="Give the grading worksheet with --into"):
        packed([a_result("1")])
