"""A download of an LMS through the whole grader: the account, extensions and penalties in the results."""

import csv
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Grader = Callable[..., Result]
CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return 2 * x
"""
RULE = "deadline = 2026-01-31T23:59:00+00:00\n"
LATE = "\n[late]\ngrace_minutes = 5\npoints_per_day = 1\n"
LIST = "".join(
    f"submission_{number}:\n  :submitters:\n  - :sid: '{student}'\n  :created_at: {moment} Z\n"
    for number, student, moment in (
        (1, 400101204, "2026-01-31 12:00:00"),
        (2, 400101204, "2026-02-02 12:00:00"),
        (3, 400101205, "2026-02-02 12:00:00"),
        (4, 400101206, "2026-02-01 00:02:00"),
    )
)


@pytest.fixture
def export(tiny_course: Path, tmp_path: Path) -> Path:
    """A Gradescope export, beside a course with a deadline and a rule."""
    toml = tiny_course / "reference/tiny/assignment.toml"
    toml.write_text(RULE + toml.read_text("utf-8") + LATE, encoding="utf-8")
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("assignment_9_export/submission_metadata.yml", LIST)
        for number in range(1, 5):
            archive.writestr(f"assignment_9_export/submission_{number}/homework.py", CODE)
        archive.writestr("assignment_9_export/notes.txt", "x")
    return path


def test_an_export_is_graded_with_its_times_and_extensions(
    grader: Grader, export: Path, tiny_course: Path, tmp_path: Path
) -> None:
    extensions, out = tmp_path / "extensions.csv", tmp_path / "out"
    extensions.write_text(
        "student_id,deadline\n400101205,2026-02-03T00:00:00Z\n400109999,2026-02-03T00:00:00Z\n"
    )
    common = ("--assignment", "tiny", "--course", tiny_course)
    done = grader("grade", export, *common, "--no-train", "--out", out, "--extensions", extensions)
    assert done.exit_code == 0, done.stderr
    assert "6 files: 4 matched, 1 of earlier attempts, 1 refused." in done.stderr
    assert "400109999: has an extension" in done.stderr
    document = json.loads((out / "results.json").read_text("utf-8"))
    late = {entry["student_id"]: entry["late"] for entry in document["submissions"]}
    assert [(one["days"], one["penalty"], one["total_after"]) for _, one in sorted(late.items())] == [
        (2, 2, 2),
        (0, 0, 4),
        (0, 0, 4),
    ]
    assert [entry["total"] for entry in document["submissions"]] == [4, 4, 4]
    with (out / "scores.csv").open(encoding="utf-8") as file:
        assert [row["total_after"] for row in csv.DictReader(file)] == ["2", "4", "4"]
    page = (out / "index.html").read_text("utf-8")
    assert "submission_1/homework.py" in page and "notes.txt" in page
    report = (out / "students/400101204/report.html").read_text("utf-8")
    assert "which Gradescope received later" in report and "2 points are taken off" in report

    toml = tiny_course / "reference/tiny/assignment.toml"
    toml.write_text(toml.read_text("utf-8").replace("points_per_day = 1", "points_per_day = 0.5"))
    assert grader("regrade", out, *common).exit_code == 0
    again: dict[str, Any] = json.loads((out / "results.json").read_text("utf-8"))
    assert again["download"] == document["download"], "the account outlives a change of the rule"
    assert again["submissions"][0]["late"]["penalty"] == 1
    assert again["submissions"][1]["extension"] == document["submissions"][1]["extension"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "student_id,deadline\n1,soon\n",
            "bad.csv: row 2, column 'deadline': 'soon' is not a date and time.",
        ),
        ("id,deadline\n", "bad.csv: row 1 must have the column 'student_id' once."),
    ],
)
def test_a_bad_extension_stops_before_anything_runs(
    grader: Grader, export: Path, tiny_course: Path, tmp_path: Path, content: str, sentence: str
) -> None:
    (tmp_path / "bad.csv").write_text(content)
    done = grader(
        *("grade", export, "--assignment", "tiny", "--course", tiny_course, "--no-train"),
        *("--out", tmp_path / "out", "--extensions", tmp_path / "bad.csv"),
    )
    assert done.exit_code == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith(f"error: {sentence}") and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_who_is_missing_is_known_and_stays_known(
    grader: Grader, export: Path, tiny_course: Path, tmp_path: Path
) -> None:
    """By a list that is given, by one in the download, and afterwards without any."""
    common, out = ("--assignment", "tiny", "--course", tiny_course), tmp_path / "out"
    grade = ("grade", export, *common, "--no-train", "--out", out)
    given = tmp_path / "class.csv"
    given.write_text("student_id\n400101204\n400101205\n400101207\n")
    done = grader(*grade, "--roster", given)
    assert done.exit_code == 0 and "class.csv: 1 of 3 students handed in nothing." in done.stderr

    def roster() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((out / "results.json").read_text("utf-8"))["download"]["roster"]
        return found

    assert roster()["missing"] == ["400101207"] and roster()["unlisted"] == ["400101206"]
    before = roster()
    assert grader("regrade", out, *common).exit_code == 0 and roster() == before
    assert grader(*grade).exit_code == 0 and roster() == before
    assert 'id="handed-in-nothing"' in (out / "index.html").read_text("utf-8")

    with zipfile.ZipFile(export, "a") as archive:
        worksheet = "Identifier,ID number,Grade\nParticipant 1,400101204,\nParticipant 2,400101209,\n"
        archive.writestr("assignment_9_export/Grades.csv", worksheet)
    done = grader(*grade)
    assert done.exit_code == 0 and "7 files: 5 matched, 1 of earlier attempts, 1 refused." in done.stderr
    assert "set aside: Grades.csv" not in done.stderr
    assert (roster()["source"], roster()["missing"]) == ("Grades.csv", ["400101209"])

    given.write_text("name\nAda\n")
    done = grader(*grade, "--roster", given)
    assert done.exit_code == 2 and done.stderr.startswith("error: class.csv: row 1 names no column")


def test_what_a_team_handed_in_counts_once_all_through_a_run(
    grader: Grader, tiny_course: Path, tmp_path: Path
) -> None:
    """In the estimate, while it runs and at the end: two students, one submission."""
    path, out = tmp_path / "export.zip", tmp_path / "out"
    submitters = "".join(f"  - :sid: '{student}'\n" for student in (400101204, 400101205))
    alone = "submission_2:\n  :submitters:\n  - :sid: '400101206'\n"
    with zipfile.ZipFile(path, "w") as archive:
        listed = f"submission_1:\n  :submitters:\n{submitters}{alone}"
        archive.writestr("assignment_9_export/submission_metadata.yml", listed)
        for number in (1, 2):
            archive.writestr(f"assignment_9_export/submission_{number}/homework.py", CODE)
        archive.writestr("assignment_9_export/submission_1/essay.docx", "x")
        archive.writestr("assignment_9_export/submission_2/more.csv", "x")
        archive.writestr("assignment_9_export/notes.txt", "x")
    words = ("grade", path, "--assignment", "tiny", "--course", tiny_course, "--no-train", "--out", out)
    for to_grade, unchanged in ((2, 0), (0, 2)):
        done = grader(*words)
        assert done.exit_code == 0, done.stderr
        told = (done.stdout + done.stderr).replace("\xa0", " ")
        assert f"{to_grade} submissions to grade{f', {unchanged} unchanged' if unchanged else ''}" in told
        assert "(2 of 2 done" in told and "of 3 done" not in told
        assert "Doubling: 2 submissions of 3 students" in told
        assert ("2 unchanged submissions not run again" in told) == bool(unchanged)
        assert "400101205" in told, "each has a row"
        assert "6 files: 5 matched, 0 of earlier attempts, 1 refused." in told
        aside = "3 files set aside: 1 refused, 2 matched and not used by the submission."
        assert aside in told
    page = re.sub(r"<[^>]+>", "", (out / "index.html").read_text("utf-8")).replace("\xa0", " ")
    assert "6 files: 5 matched (they belong to a submission), 0 of earlier attempts, 1 refused." in page
    assert aside in page
    assert "Files that were set aside 3 files" in page
    document = json.loads((out / "results.json").read_text("utf-8"))["download"]
    assert (document["matched"], document["superseded"], document["refused"]) == (5, 0, 1)


@pytest.mark.parametrize("by", ["the course", "the command"])
def test_what_one_of_a_group_handed_in_reaches_all_of_it(
    grader: Grader, tiny_course: Path, tmp_path: Path, by: str
) -> None:
    """With an LMS that knows no teams: each member has a result, a report, and the marks of the other."""
    path, out, groups = tmp_path / "class", tmp_path / "out", tiny_course / "groups.csv"
    for student in (400101204, 400101206):
        (path / str(student)).mkdir(parents=True)
        (path / str(student) / "homework.py").write_text(CODE)
    rows = "group,student_id,weight\nG1,400101204,1\nG1,400101205,0.8\n"
    groups.write_text(rows)
    if by == "the course":
        toml = tiny_course / "course.toml"
        toml.write_text(toml.read_text("utf-8") + '\n[people]\ngroups = "groups.csv"\n', "utf-8")
    grade = ("grade", path, "--assignment", "tiny", "--course", tiny_course, "--no-train", "--out", out)
    option = ("--groups", groups) if by == "the command" else ()
    done = grader(*grade, *option)
    assert done.exit_code == 0, done.stderr
    assert "2\xa0submissions" in done.stdout + done.stderr or "2 submissions" in done.stdout + done.stderr
    told = done.stderr.replace("\xa0", " ")
    assert "counts for the group: 1 submission for 1 further student." in told
    document = json.loads((out / "results.json").read_text("utf-8"))
    totals = {one["student_id"]: one["total"] for one in document["submissions"]}
    assert set(totals) == {"400101204", "400101205", "400101206"}
    assert totals["400101204"] == totals["400101205"]
    assert (out / "students" / "400101205" / "report.html").is_file()
    again = grader(*grade, *option)
    assert again.exit_code == 0 and "2 unchanged" in again.stderr.replace("\xa0", " ") + again.stdout
    groups.write_text(rows + "G2,400101205,1\n")
    bad = grader(*grade, "--groups", groups)
    assert bad.exit_code == 2 and "is already in 'G1'" in bad.stderr
