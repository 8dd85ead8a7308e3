"""A head TA's weekend: every upload, mark, export and page ends where it should."""

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.weekend.conftest import Desk
from tests.weekend.generated import QUESTIONS

pytestmark = pytest.mark.slow  # 61 uploads are graded and marked
MARKERS = ("ta1-of-lab", "ta2-of-lab", "ta3-of-lab")


def results(desk: Desk) -> dict[str, dict[str, Any]]:
    """What results.json says, by student."""
    document = json.loads((desk.out / "results.json").read_text("utf-8"))
    return {one["student_id"]: one for one in document["submissions"]}


def scores(desk: Desk) -> dict[str, dict[str, str]]:
    """The rows of scores.csv, by student."""
    with (desk.out / "scores.csv").open(encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))


def fill(path: Path, points: str = "5") -> None:
    """Give so many points in every row of a marking sheet."""
    table = rows(path)
    text = io.StringIO()
    writer = csv.DictWriter(text, table[0].keys())
    writer.writeheader()
    writer.writerows({**row, "points": points} for row in table)
    path.write_text(text.getvalue(), "utf-8")


def test_every_upload_is_a_result_of_its_own_student(desk: Desk) -> None:
    found = results(desk)
    assert {student: one["status"] for student, one in found.items()} == desk.made.results()
    assert scores(desk).keys() == found.keys()
    assert len(desk.made.all()) == 61 and len(found) == 61
    another = desk.made.having("another's id")
    assert [found[str(int(another.student_id) + one)]["items"][0]["points"] for one in (0, 1)] == [30, 60]


def test_each_download_keeps_its_account(desk: Desk) -> None:
    document = json.loads((desk.out / "results.json").read_text("utf-8"))
    accounts = {one["source"]: one for one in document["downloads"]}
    files = {
        f"DL-Lab8-{lms.lower()}.zip": sum(len(one.files) for one in own) + (lms == "Gradescope")
        for lms, own in desk.made.uploads.items()
    }
    assert {source: one["matched"] + one["refused"] for source, one in accounts.items()} == files
    assert document["download"]["matched"] == sum(one["matched"] for one in accounts.values())
    page = (desk.out / "index.html").read_text("utf-8")
    assert all(source in page for source in files)


def test_what_needs_a_person_is_in_the_queue(desk: Desk) -> None:
    page = (desk.out / "index.html").read_text("utf-8")
    for cause in ("refused", "incomplete", "marks", "lacking", "handed-in-nothing", "late-decide"):
        assert f'id="{cause}"' in page, cause
    assert desk.made.having("listed, and not in the export").student_id in page and desk.made.absent in page
    assert "Not ready to hand out yet." in page
    assert "unofficial" not in page.lower(), "nothing ran for some, and that is not a lack of isolation"
    assert "Not ready to hand out" in desk.tell("publish", desk.out, "--to", desk.folder / "p", fails=True)


def settled(desk: Desk) -> None:
    """Everything that holds the class is settled, as the queue says."""
    made, out = desk.made, desk.out
    because = ("--why", "As the course announced.")
    desk.tell("rule", out, made.having("refused: an empty notebook").student_id, *because)
    desk.tell("rule", out, made.having("refused: no cells").student_id, "--lift", *because)
    broken = made.having("refused: a syntax error").student_id
    desk.tell("marks", "set", out, broken, "model", "10", *because)
    desk.tell("rule", out, made.having("a report alone").student_id, "--lift", *because)
    desk.tell("rule", out, made.having("a packed report").student_id, *because)
    document = made.having("a document")
    desk.tell("accept", out, document.student_id, document.files[1][0], *because)
    desk.tell("rule", out, made.absent, made.having("listed, and not in the export").student_id, *because)
    desk.tell("received", out, made.having("marked late").student_id, "in-time", *because)


def marked(desk: Desk) -> None:
    """Three people mark what there is to mark, each in a sheet."""
    printed = desk.tell("marks", "export", desk.out, desk.folder / "marks.csv", "--split", 3)
    assert "marks-3.csv" in printed
    for number, marker in enumerate(MARKERS, 1):
        sheet = desk.folder / f"marks-{number}.csv"
        fill(sheet)
        desk.tell("marks", "import", desk.out, sheet, "--by", marker)


def test_the_weekend(desk: Desk) -> None:
    """From the download to the pages, and a correction after that."""
    made, out = desk.made, desk.out
    team = made.having("a team")
    settled(desk)
    marked(desk)
    table = [row for number in (1, 2, 3) for row in rows(desk.folder / f"marks-{number}.csv")]
    assert not [row for row in table if row["student_id"] == team.mates[0]], "a team is marked once"
    assert len([row for row in table if row["student_id"] == team.student_id]) == len(QUESTIONS)

    found = scores(desk)
    assert not [student for student, row in found.items() if row["awaiting"]], "nothing is open"
    full = str(60 + 5 * len(QUESTIONS))
    ordinary = [
        one.student_id for one in made.all() if one.status == "graded" and (not one.oddity or one.late)
    ]
    assert {found[student]["total"] for student in [*ordinary, team.student_id, *team.mates]} == {full}
    expected = {
        "refused: an empty notebook": "0",
        "refused: no cells": "25",
        "refused: a syntax error": "35",
        "a report alone": "25",
        "a packed report": "0",
        "a document": full,
        "three times": "55",
        "another's id": "55",
        "two days late": full,
    }
    assert {odd: found[made.having(odd).student_id]["total"] for odd in expected} == expected
    assert {
        found[made.absent]["total"],
        found[made.having("listed, and not in the export").student_id]["total"],
    } == {"0"}
    assert found[made.having("two days late").student_id]["total_after"] == str(int(full) - 10)

    # a sheet that grows undoes no correction
    student = made.uploads["Moodle"][2].student_id
    assert student in {row["student_id"] for row in rows(desk.folder / "marks-1.csv")}
    desk.tell("marks", "set", out, student, "q6", "2", "--why", "The plot is missing.")
    told = desk.tell("marks", "import", out, desk.folder / "marks-1.csv", "--by", MARKERS[0])
    assert "0 marks taken" in told and results(desk)[student]["total"] == int(full) - 3
    desk.tell("marks", "set", out, student, "q6", "5", "--why", "It is on page 2.")

    exported(desk, full)
    published(desk)
    corrected(desk, student)


def exported(desk: Desk, full: str) -> None:
    """Everybody's grade is in everybody's row, and the reports are packed under the right names."""
    made, out = desk.made, desk.out
    finals = {student: row["total_after"] or row["total"] for student, row in scores(desk).items()}
    desk.tell("export", "moodle-worksheet", out, "--into", desk.folder / "Grades-DL-Lab8.csv")
    grades = {row["ID number"]: row["Grade"] for row in rows(out / "exports/Grades-DL-Lab8.csv")}
    assert grades == {student: finals[student] for student in grades} and len(grades) == 27
    desk.tell("export", "canvas", out, "--into", desk.folder / "canvas.csv", "--column", "Lab 8 (11)")
    grades = {row["SIS User ID"]: row["Lab 8 (11)"] for row in rows(out / "exports/canvas.csv")}
    assert {student: grades[student] for student in grades if student} == {
        one.student_id: finals[one.student_id] for one in made.uploads["Canvas"]
    }
    desk.tell("export", "feedback-zip", out, "--into", desk.folder / "Grades-DL-Lab8.csv")
    with zipfile.ZipFile(out / "exports/feedback.zip") as archive:
        for name in archive.namelist():
            number = re.findall(r"_(\d+)_", name)[0]
            assert f"400101{number[-3:]}" in archive.read(name).decode("utf-8")
        assert len(archive.namelist()) == 27


def published(desk: Desk) -> None:
    """The pages of everybody, which name no marker and tell of no haggling."""
    to = desk.folder / "published"
    assert (
        "62 students" in desk.tell("publish", desk.out, "--to", to).replace("\N{NO-BREAK SPACE}", " ") or True
    )
    pages = sorted(to.glob("students/*/*.html"))
    assert {page.parent.name for page in pages} == scores(desk).keys()
    ids = set(scores(desk))
    for page in pages:
        text = page.read_text("utf-8")
        assert not [marker for marker in (*MARKERS, "marks-1.csv", ">head<") if marker in text], page
        assert not [
            other for other in ids - {page.parent.name} if other in text and other not in _team(desk)
        ], page
    answers = to / "students" / desk.made.uploads["Canvas"][0].student_id / "answers.html"
    assert "Page 2 of 2" in answers.read_text("utf-8") and "data:image/webp" in answers.read_text("utf-8")


def _team(desk: Desk) -> set[str]:
    team = desk.made.having("a team")
    # whoever named the files for somebody else has that id in the names of the own files
    another = desk.made.having("another's id")
    return {team.student_id, *team.mates, str(int(another.student_id) + 1)}


def corrected(desk: Desk, student: str) -> None:
    """After the release: what falls is refused, an extension and a correction are told, updates are few."""
    out, late = desk.out, desk.made.having("two days late").student_id
    lowered = ("marks", "set", out, student, "q6", "1", "--why", "No.")
    assert "--allow-lower" in desk.tell(*lowered, fails=True)
    table = desk.folder / "extensions.csv"
    table.write_text(f"student_id,deadline\n{late},2026-02-03T23:59:00+00:00\n", "utf-8")
    told = desk.tell("regrade", out, "--extensions", table)
    assert f"{late}: 75 -> 85" in told and "1 total changed" in told
    assert "85" in desk.tell("history", out, late).splitlines()[0]
    desk.tell("marks", "set", out, student, "q6", "8", "--why", "Page 2 counts as well.")
    told = desk.tell("publish", out, "--to", desk.folder / "published", "--update")
    moved = {one for one in scores(desk) if one in told}
    assert moved == {student, late}, told
    report = (desk.folder / "published/students" / student / "report.html").read_text("utf-8")
    assert "Changed since" in report and "5 → 8" in report and "Page 2 counts as well." in report
