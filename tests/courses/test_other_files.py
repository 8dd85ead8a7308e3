"""Files in roles of an assignment's own: handed in, told apart, listed, packed, and read by checks."""

import io
import json
import shutil
import string
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError
from grader.domain.submission import Submission
from grader.intake import intake
from grader.judge.student import Student
from grader.kit import Mismatch
from grader.protocol.link import WorkerProcess

SURVEY = Path(__file__).parent / "letters" / "reference" / "letter_survey"
ID = "400101204"
TABLE = "letter,count\n" + "".join(f"{letter},1\n" for letter in string.ascii_lowercase)
GIGABYTE = 10**9


@pytest.fixture(scope="session")
def survey() -> Assignment:
    """The assignment."""
    return read_assignment(SURVEY)


@pytest.fixture(scope="session")
def survey_solved() -> str:
    """The text of its solution, as a student would hand it in."""
    from grader.course.reference_solution import solved_source

    return solved_source((SURVEY / "solution.py").read_text(encoding="utf-8"), "solution.py")


@pytest.fixture
def run(letters: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in the course."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADER_COURSE", str(letters))
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


def npz() -> bytes:
    """Weights as arrays."""
    stream = io.BytesIO()
    np.savez(stream, counts=np.zeros(26, dtype=np.float32))
    return stream.getvalue()


def handed_in(folder: Path, solved: str, student_id: str = ID) -> None:
    """All that is asked for, under the names that it is asked for by."""
    folder.mkdir(parents=True)
    (folder / f"{student_id}_Survey.py").write_text(solved, encoding="utf-8")
    (folder / f"{student_id}_Survey.npz").write_bytes(npz())
    (folder / f"{student_id}_Survey.txt").write_text("Found out by counting.", encoding="utf-8")
    (folder / f"{student_id}_metrics.csv").write_text(TABLE, encoding="utf-8")
    (folder / f"{student_id}_curve.csv").write_text("step,loss\n1,2\n", encoding="utf-8")
    (folder / f"{student_id}_Survey.md").write_text("The commonest is e, the rarest z.", encoding="utf-8")


def taken(folder: Path, assignment: Assignment) -> dict[str, str]:
    """Role -> the name of the file that is accepted in it."""
    files = tuple(sorted(folder.iterdir()))
    found = intake(Submission(ID, assignment.id, files, "0"), assignment)
    return {role: path.name for role, path in found.accepted}


# --- reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('metric = ".csv"', "'metric' is neither a list of suffixes nor a table"),
        ('chekpoint = [".pth"]', "'chekpoint', which is nearly 'checkpoint'"),
        ('"my file" = [".csv"]', "the role 'my file' is not a word of small letters"),
        ('more = [".txt"]', "the suffix '.txt' is there twice. Keep it for one kind of file, or give"),
        ('packed = [".zip"]', "'.zip' of 'packed' is an archive, which is unpacked"),
        ('helper = [".py"]', "'.py' of 'helper' is code. Ask for it as 'code'"),
        ('[files.optional]\nnotes = [".rst"]', "'notes' is required and optional. Keep it in one of"),
        ('[files.optional]\ncode = [".py"]', "'code', which is always required"),
        ('more = { suffixes = [".rst"], stem = "notes" }', "'stem' of 'more' is 'notes'. It must have"),
        (
            'more = { suffixes = [".rst"], start = "notes" }',
            "'more' is neither a list of suffixes nor a table",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_told(letters: Path, line: str, said: str) -> None:
    folder = letters / "reference" / "letter_survey"
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    if line.startswith("["):
        text = text.replace("[files.optional]\n", "")
    (folder / "assignment.toml").write_text(text.replace('notes = [".txt"]', f'notes = [".txt"]\n{line}'))
    with pytest.raises(CourseError) as raised:
        read_assignment(folder)
    assert said in str(raised.value) and str(raised.value).count(". ") <= 2


def test_a_known_role_may_have_a_stem_of_its_own(letters: Path) -> None:
    folder = letters / "reference" / "letter_survey"
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    line = 'code = { suffixes = [".py"], stem = "{student_id}_code" }'
    (folder / "assignment.toml").write_text(text.replace('code = [".py"]', line))
    asked = read_assignment(folder).asked_file("400101204_code.py")
    assert asked is not None and asked.name(ID) == f"{ID}_code.py"


# --- intake -----------------------------------------------------------------------------------------------


def test_two_files_of_one_suffix_are_told_apart(
    survey: Assignment, survey_solved: str, tmp_path: Path
) -> None:
    handed_in(tmp_path / ID, survey_solved)
    whole = {
        "code": f"{ID}_Survey.py",
        "checkpoint": f"{ID}_Survey.npz",
        "metrics": f"{ID}_metrics.csv",
        "curve": f"{ID}_curve.csv",
        "notes": f"{ID}_Survey.txt",
        "summary": f"{ID}_Survey.md",
    }
    assert taken(tmp_path / ID, survey) == whole
    for role, name in (("metrics", "Metrics (1).csv"), ("curve", f"{ID}_Survey_curve.CSV")):
        (tmp_path / ID / whole[role]).rename(tmp_path / ID / name)
        assert taken(tmp_path / ID, survey) == whole | {role: name}
        (tmp_path / ID / name).rename(tmp_path / ID / whole[role])


@pytest.mark.parametrize("role", ["metrics", "notes"])
def test_a_missing_file_is_missing_in_its_role(
    survey: Assignment, survey_solved: str, tmp_path: Path, role: str
) -> None:
    handed_in(tmp_path / ID, survey_solved)
    next((tmp_path / ID).glob({"metrics": "*metrics*", "notes": "*.txt"}[role])).unlink()
    files = tuple(sorted((tmp_path / ID).iterdir()))
    assert intake(Submission(ID, survey.id, files, "0"), survey).missing == (role,)


def test_what_is_no_plain_file_of_a_bounded_size_is_refused(
    survey: Assignment, survey_solved: str, tmp_path: Path
) -> None:
    handed_in(tmp_path / ID, survey_solved)
    metrics, curve, notes = (
        tmp_path / ID / f"{ID}_{end}" for end in ("metrics.csv", "curve.csv", "Survey.txt")
    )
    with metrics.open("wb") as file:
        file.truncate(10 * GIGABYTE)  # sparse: it takes no place on the disk
    (tmp_path / ID / f"{ID}_Survey.md").unlink()
    curve.unlink()
    curve.symlink_to("/etc/passwd")
    notes.write_bytes(b"")
    files = tuple(sorted((tmp_path / ID).iterdir()))
    found = intake(Submission(ID, survey.id, files, "0"), survey)
    reasons = {file.name: file.reason for file in found.refused}
    assert "is 10,000.0 MB in size, but at most 1 MB are accepted" in reasons[metrics.name]
    assert "is a link or not a file" in reasons[curve.name] and "is empty" in reasons[notes.name]
    assert found.missing == ("metrics", "curve", "notes") and not found.others


def test_a_file_that_is_replaced_by_a_link_afterwards_is_not_read(
    survey: Assignment, survey_solved: str, tmp_path: Path
) -> None:
    from grader.domain.errors import SubmissionError
    from grader.intake.file_roles import contents_of_others

    handed_in(tmp_path / ID, survey_solved)
    files = tuple(sorted((tmp_path / ID).iterdir()))
    found = intake(Submission(ID, survey.id, files, "0"), survey)
    assert contents_of_others(found, survey)["metrics"] == TABLE.encode()
    found.others["metrics"].unlink()
    found.others["metrics"].symlink_to("/etc/passwd")
    with pytest.raises(SubmissionError, match="cannot be read"):
        contents_of_others(found, survey)


# --- a check that asks ------------------------------------------------------------------------------------


def test_a_check_gets_bytes_or_a_sentence(survey: Assignment, spawn: Callable[[], WorkerProcess]) -> None:
    from grader.analysis import program

    read = program("homework.py", b"x = 1\n", survey.program_rules)
    student = Student(spawn, read, survey, files={"metrics": b"\x80\x04."})
    assert student.file("metrics") == b"\x80\x04.", "nothing opens it"
    with pytest.raises(Mismatch) as missing:
        student.file("curve")
    assert "No curve file was handed in" in str(missing.value)
    assert missing.value.hint == "Hand in <StudentID>_curve.csv or <StudentID>_curve.json."
    for role in ("code", "plot"):
        with pytest.raises(CourseError, match=f"asks for the file '{role}'. Name it in .files. of"):
            student.file(role)
    with pytest.raises(CourseError, match="of the trained model"):
        Student(spawn, read, survey).file("metrics")


# --- the whole way ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_class_is_graded_by_its_files(
    run: Callable[..., Result], tmp_path: Path, survey_solved: str, on_warm_hosts: None
) -> None:
    """All there; the metrics too short and no summary; no curve; 10 GB and a link."""
    folder = tmp_path / "class"
    others = ("400101205", "400101206", "400101207")
    for student_id in (ID, *others):
        handed_in(folder / student_id, survey_solved, student_id)
    (folder / others[0] / f"{others[0]}_metrics.csv").write_text("letter,count\na,1\n")
    (folder / others[0] / f"{others[0]}_Survey.md").unlink()
    (folder / others[1] / f"{others[1]}_curve.csv").unlink()
    with (folder / others[2] / f"{others[2]}_metrics.csv").open("wb") as file:
        file.truncate(10 * GIGABYTE)
    (folder / others[2] / f"{others[2]}_curve.csv").unlink()
    (folder / others[2] / f"{others[2]}_curve.csv").symlink_to("/etc/passwd")
    done = run("grade", folder, "--assignment", "letter_survey", "--out", tmp_path / "out", "--jobs", 2)
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    whole, short, lacking, hostile = document["submissions"]
    assert (whole["status"], whole["total"]) == ("graded", 13)
    files = {one["role"]: (one["name"], one["size"]) for one in whole["files"]}
    assert files["metrics"] == (f"{ID}_metrics.csv", len(TABLE)) and len(files) == 6
    told = {one["component"]: one["message"] for one in short["findings"] if one["message"]}
    assert short["status"] == "graded" and short["missing"] == [], "without an optional file there is a grade"
    assert short["total"] == 8 and "The metrics have 1 rows" in told["survey"]
    assert told["summary"].startswith("No summary file was handed in")
    assert (lacking["status"], lacking["missing"]) == ("incomplete", ["curve"])
    assert "400101206_curve.csv or .json is missing" in lacking["reason"]
    assert hostile["missing"] == ["metrics", "curve"]
    refused = " ".join(one["reason"] for one in hostile["refused_files"])
    assert "10,000.0 MB in size" in refused
    page = (tmp_path / "out" / "students" / ID / "report.html").read_text(encoding="utf-8")
    assert "Files that count" in page and f"<code>{ID}_metrics.csv</code>, {len(TABLE)} bytes" in page


@pytest.mark.slow
def test_names_tell_whose_the_files_are(
    run: Callable[..., Result], tmp_path: Path, survey_solved: str, on_warm_hosts: None
) -> None:
    """Side by side, with ids that are not numbers: each file's own stem tells whose it is."""
    folder = tmp_path / "class"
    for student_id in ("ada-l", "bo-k"):
        handed_in(tmp_path / student_id, survey_solved, student_id)
        shutil.copytree(tmp_path / student_id, folder, dirs_exist_ok=True)
    done = run("grade", folder, "--assignment", "letter_survey", "--out", tmp_path / "out", "--jobs", 2)
    assert done.exit_code == 0 and "12 files: 12 matched" in done.output, done.output
    document = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert [(one["student_id"], one["total"]) for one in document["submissions"]] == [
        ("ada-l", 13),
        ("bo-k", 13),
    ]


@pytest.mark.slow
def test_it_is_valid(run: Callable[..., Result], on_warm_hosts: None) -> None:
    """Also its mistake, which is one in a file that is not code."""
    done = run("validate", "letter_survey")
    assert done.exit_code == 0 and "reference full; template 0" in done.output, done.output
    assert "mistakes 1 of 1 detected, 1 named" in done.output, done.output


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "def summary(text):\n    return text.words",
            "'str' object has no attribute 'words'. Fix",
        ),
        ("def summary(text): ...\ndef survey(text, path): ...", "it defines 2 of the graded parts"),
    ],
)
def test_a_mistake_in_a_file_that_cannot_be_made(letters: Path, code: str, said: str) -> None:
    from grader.course.homework_versions import homework_versions

    folder = letters / "reference" / "letter_survey"
    (folder / "mistakes" / "summary_broken.py").write_text(f'"""Broken."""\n{code}\n')
    with pytest.raises(CourseError) as raised:
        [one.handed_in({"summary": b"text"}) for one in homework_versions(read_assignment(folder))]
    assert "mistakes/summary_broken.py: " in str(raised.value) and said in str(raised.value)


@pytest.mark.parametrize("line", ['name = "sumary"\n', 'name = "summary"\nsignature = "text"\n'])
def test_a_file_that_is_judged_has_a_role_and_no_signature(letters: Path, line: str) -> None:
    folder = letters / "reference" / "letter_survey"
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    (folder / "assignment.toml").write_text(text.replace('name = "summary"\n', line))
    with pytest.raises(CourseError, match=r"Give it no signature, and a role of .files. as its name"):
        read_assignment(folder)


def test_what_the_reference_hands_in_must_be_asked_for(letters: Path) -> None:
    from grader.course.homework_versions import reference_files

    folder = letters / "reference" / "letter_survey"
    (folder / "handin" / "metric.csv").write_text("a")
    with pytest.raises(
        CourseError, match=r"handin/metric.csv is not a file that is handed in. It holds metrics"
    ):
        reference_files(read_assignment(folder))


@pytest.mark.slow
def test_a_student_checks_and_packs_them(
    run: Callable[..., Result], letters: Path, tmp_path: Path, survey_solved: str, warm_workers: object
) -> None:
    assert run("template", "letter_survey").exit_code == 0
    folder = shutil.copytree(letters / "template" / "letter_survey", tmp_path / "mine")
    (folder / "homework.py").write_text(survey_solved, encoding="utf-8")
    (folder / "homework.ipynb").unlink()
    lacking = run("check", folder / "homework.py")
    assert lacking.exit_code == 1 and "No metrics file was handed in" in lacking.output
    (folder / "metrics.csv").write_text(TABLE)
    (folder / "curve.json").write_text("[1, 2]")
    (folder / "notes.txt").write_text("Found out by counting.")
    (folder / "summary.md").write_text("The commonest is e, the rarest z.")
    torch.save({"counts": torch.zeros(26)}, folder / "weights.pth")
    checked = run("check", folder / "homework.py")
    assert checked.exit_code == 0, checked.output
    (folder / "curves.json").write_text("[3]")
    (folder / "summary.md").unlink()  # it is packed without
    unclear = run("pack", folder, "--id", ID)
    assert unclear.exit_code == 1 and "Begin with `summary`" in unclear.output, "the name of the role counts"
    (folder / "curve.json").unlink()
    (folder / "curve2.json").write_text("[4]")
    unclear = run("pack", folder, "--id", ID, "--force")
    assert "Which one is meant, curve2.json or curves.json? Say so: --file curve=FILE" in unclear.output
    unknown = run("pack", folder, "--id", ID, "--file", f"plot={folder / 'curves.json'}")
    assert unknown.exit_code == 2 and "asks for no such file. It asks for code" in unknown.output
    packed = run("pack", folder, "--id", ID, "--force", "--file", f"curve={folder / 'curves.json'}")
    assert packed.exit_code == 1 and "Everything is in" in packed.output, "the summary is missing"
    assert sorted(path.name for path in (folder / "handin").iterdir()) == [
        f"{ID}_Survey.pth",
        f"{ID}_Survey.py",
        f"{ID}_Survey.txt",
        f"{ID}_curve.json",
        f"{ID}_metrics.csv",
    ]
    assert (folder / "handin" / f"{ID}_curve.json").read_text() == "[3]"
