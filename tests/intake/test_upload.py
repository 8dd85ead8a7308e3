"""Whatever an LMS gives becomes submissions with safe, unique ids; nothing is skipped without a word."""

import os
import time
from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.files.file_names import sanitized
from grader.intake import require_path, student_files, submissions
from grader.intake.naming import name_match
from grader.lms.downloads import read_name


def found(uploads):
    return {s.student_id: [file.name for file in s.files] for s in uploads.submissions}


def test_files_side_by_side(folder, assignment, tmp_path):
    names = ["400101204_Lab8_Homework.py", "400101204_Lab8_Homework.pdf", "400101205_Lab8_Homework.ipynb"]
    uploads = submissions(folder(dict.fromkeys(names, "x")), assignment, tmp_path)
    assert found(uploads) == {
        "400101204": ["400101204_Lab8_Homework.pdf", "400101204_Lab8_Homework.py"],
        "400101205": ["400101205_Lab8_Homework.ipynb"],
    }
    assert not any(s.partial for s in uploads.submissions) and uploads.unmatched == ()


def test_a_folder_per_student_whatever_it_is_called(folder, assignment, tmp_path):
    uploads = submissions(
        folder(
            {
                "one/400101204_Lab8_Homework.py": "x",
                "one/deep/er/400101204_Lab8_Homework.pth": "x",
                "400101205/homework.py": "x",
                "گروه/model.py": "x",
                "Équipe 7./model.py": "x",
            }
        ),
        assignment,
        tmp_path,
    )
    assert set(found(uploads)) == {"400101204", "400101205", "Equipe_7", sanitized("گروه")}
    assert found(uploads)["400101204"] == ["400101204_Lab8_Homework.pth", "400101204_Lab8_Homework.py"]


@pytest.mark.parametrize(
    ("name", "holder", "own"),
    [
        (
            "A Student_12345_assignsubmission_file_400_Lab8_Homework.py",
            "A Student_12345",
            "400_Lab8_Homework.py",
        ),
        ("Participant_77_assignsubmission_file_a.py", "Participant_77", "a.py"),
        ("A Student_12345_assignsubmission_file_", "A Student_12345", ""),
        ("A Student_12345_assignsubmission_file", "A Student_12345", ""),
        (
            "astudent_LATE_4321_98765_400101204_Lab8_Homework.py",
            "astudent_4321",
            "400101204_Lab8_Homework.py",
        ),
        ("astudent_4321_98765_hw-1.ipynb", "astudent_4321", "hw-1.ipynb"),
        ("400101204_Lab8_Homework.py", None, "400101204_Lab8_Homework.py"),
        ("vit_8_4_model.py", None, "vit_8_4_model.py"),
    ],
)
def test_what_an_lms_puts_before_a_name(name, holder, own):
    found = read_name(name)
    assert (found.sender_label, found.name) == (holder, own)


def test_a_flat_lms_download_is_gathered_by_person(folder, assignment, zipped, tmp_path):
    path = folder({}) / "download.zip"
    path.write_bytes(
        zipped(
            {
                "A_1001_assignsubmission_file_400101204_Lab8_Homework.py": "x",
                "A_1001_assignsubmission_file_400101204.pth": "x",
                "B_1002_assignsubmission_file_/homework.ipynb": "x",
                "cstudent_LATE_2001_3001_400101206_Lab8_Homework.py": "x",
                "cstudent_LATE_2001_3002_report.pdf": "x",
                "__MACOSX/._A": "x",
                ".DS_Store": "x",
            }
        )
    )
    uploads = submissions(path, assignment, tmp_path / "scratch")
    assert found(uploads) == {
        "400101204": ["400101204.pth", "400101204_Lab8_Homework.py"],
        "400101206": ["400101206_Lab8_Homework.py", "report.pdf"],
        "moodle-1002": ["homework.ipynb"],
    }
    assert uploads.unmatched == ()
    assert all(file.read_text() == "x" for s in uploads.submissions for file in s.files)


def test_nested_zips_one_per_student(folder, assignment, zipped, tmp_path):
    path = folder({}) / "all.zip"
    inner = zipped({"400101204_Lab8_Homework.py": "x", "deep/400101204_Lab8_Homework.pdf": "x"})
    again = zipped({"homework.py": "x", "more.zip": zipped({"model.pth": "x"})})
    path.write_bytes(
        zipped({"class/first.zip": inner, "class/400101205.zip": again, "class/bad.zip": "no zip"})
    )
    uploads = submissions(path, assignment, tmp_path / "scratch")
    assert found(uploads) == {
        "400101204": ["400101204_Lab8_Homework.pdf", "400101204_Lab8_Homework.py"],
        "400101205": ["homework.py", "model.pth"],
        "bad": ["bad.zip"],
    }
    (aside,) = next(s for s in uploads.submissions if s.student_id == "bad").set_aside
    assert aside.name == "bad.zip" and "cannot be opened as a zip" in aside.reason


def test_what_a_students_own_archive_holds_back_is_told_to_that_student(folder, assignment, zipped, tmp_path):
    own = zipped({"400101204_Lab8_Homework.py": "x", "../evil.py": "x", "bomb.pth": bytes(1_900_000)})
    root = folder({"400101204.zip": own, "400101205_Lab8_Homework.py": "x"})
    uploads = submissions(root, assignment, tmp_path / "scratch")
    first, second = uploads.submissions
    assert [file.name for file in first.set_aside] == ["../evil.py", "bomb.pth"]
    assert second.set_aside == () and uploads.unmatched == ()


@pytest.mark.parametrize(
    "name", ["_1" * 120, "a" * 250, "-1" * 120 + "x", " copy" * 50 + "x", "(1)" * 80, "9" * 250]
)
def test_no_name_takes_long_to_read(name):
    """Names are matched in the pipeline's own process."""
    begun = time.process_time()
    for each in (name, name + ".py", name + "_assignsubmission_file_" + name[:9], name + "_LATE_12_34_"):
        read_name(each)
        name_match(each, "{student_id}_Lab8_Homework")
        sanitized(each)
    assert time.process_time() - begun < 0.5  # seconds; usually 0.001


def test_too_many_files_of_one_student_cost_no_other(folder, assignment, tmp_path, monkeypatch):
    monkeypatch.setattr(student_files, "MOST_FILES", 3)
    many = {f"400101204/part{number}.py": "x" for number in range(9)}
    others = {f"{student}/{student}_Lab8_Homework.py": "x" for student in ("400101205", "400101206")}
    uploads = submissions(folder(many | others), assignment, tmp_path / "scratch")
    counts = {student: len(names) for student, names in found(uploads).items()}
    assert counts == {"400101204": 3, "400101205": 1, "400101206": 1}


def test_sections_are_classes_within_a_class(folder, assignment, tmp_path):
    files = {
        "week1/sectionA/400101204_Lab8_Homework.py": "x",
        "week1/sectionA/400101205_Lab8_Homework.py": "x",
        "week1/sectionB/400101206/400101206_Lab8_Homework.py": "x",
    }
    assert set(found(submissions(folder(files), assignment, tmp_path))) == {
        "400101204",
        "400101205",
        "400101206",
    }


@pytest.mark.parametrize(
    "named",
    [
        ["Ada L_{}_assignsubmission_file_hw.py", "Bob M_{}_assignsubmission_file_hw.py"],
        ["Ada L_{}_assignsubmission_file/hw.py", "Bob M_{}_assignsubmission_file/hw.py"],
        ["ladal_{}_98765_hw.py", "mbob_{}_98766_hw.py"],
        ["Lab 8_ada{}_attempt_2026-01-31-23-40-05_hw.py", "Lab 8_bob{}_attempt_2026-01-31-23-40-05_hw.py"],
    ],
)
def test_sections_may_each_be_an_lmss_download(folder, assignment, tmp_path, named):
    """Of one section, whose work was one student's with earlier attempts; and one student makes a section."""
    names = [f"week1/A-Lab 8-977123/{name.format(7000 + at)}" for at, name in enumerate(named)]
    names += [f"week1/B/{named[0].format(7002)}", "week1/A-Lab 8-977123/Grades.csv"]
    uploads = submissions(folder({name: name for name in names}), assignment, tmp_path)
    numbers = ["".join(filter(str.isdigit, one.student_id)) for one in uploads.submissions]
    assert sorted(numbers) == ["7000", "7001", "7002"]
    assert all(len(one.files) == 1 and not one.set_aside for one in uploads.submissions)


def test_a_students_folder_may_hold_what_the_student_once_downloaded(folder, assignment, tmp_path):
    files = {
        "400101204 Ada/Ada L_7001_assignsubmission_file_hw.py": "x",
        "Bob M/mbob_7002_98766_hw.py": "y",
        "Bob M/model.py": "z",
        # pictures whose names are like those that an LMS gives
        "Eve N/hw.py": "x",
        "Eve N/attn_10_20_map.png": "p",
        "Eve N/loss_10_20_curve.png": "q",
    }
    uploads = submissions(folder(files), assignment, tmp_path)
    assert set(found(uploads)) == {"400101204", "Bob_M", "Eve_N"}


def test_the_folder_of_one_student_is_one_submission(folder, assignment, tmp_path):
    root = folder({"homework.py": "x", "weights.pth": "x", "figures/a.png": "x"})
    (uploads,) = submissions(root, assignment, tmp_path).submissions
    assert uploads.student_id == "class" and len(uploads.files) == 3


def test_a_class_of_one_folder_keeps_the_modules_in_it(folder, assignment, tmp_path):
    """The folder's name says whose they are; one that only wraps the class does not."""
    root = folder({"400101204/400101204_Lab8_Homework.py": "import parts", "400101204/parts.py": "x = 1"})
    uploads = submissions(root, assignment, tmp_path)
    assert found(uploads) == {"400101204": ["400101204_Lab8_Homework.py", "parts.py"]}
    assert not uploads.unmatched


def test_a_file_by_itself_is_partial(folder, assignment, tmp_path):
    root = folder({"400101204_Lab8_Homework.py": "x", "my solution (1).ipynb": "x", "NOTES.TXT": "x"})
    (first,) = submissions(root / "400101204_Lab8_Homework.py", assignment, tmp_path).submissions
    (second,) = submissions(root / "my solution (1).ipynb", assignment, tmp_path).submissions
    assert (first.student_id, first.partial) == ("400101204", True)
    assert (second.student_id, second.partial) == ("my_solution_1", True)
    with pytest.raises(UsageError, match=r"NOTES\.TXT: is not a submission's file"):
        submissions(root / "NOTES.TXT", assignment, tmp_path)


def test_what_belongs_to_nobody_is_listed_with_the_reason(folder, assignment, tmp_path):
    root = folder(
        {
            "400101204_Lab8_Homework.py": "x",
            "homework.py": "x",
            "conftest.py": "x",
            ".hidden.py": "x",
            "Thumbs.db": "x",
        }
    )
    (root / "400101205_Lab8_Homework.py").symlink_to("/etc/passwd")
    uploads = submissions(root, assignment, tmp_path)
    assert set(found(uploads)) == {"400101204"}
    reasons = {file.name: file.reason for file in uploads.unmatched}
    assert set(reasons) == {"homework.py", "conftest.py", ".hidden.py", "400101205_Lab8_Homework.py"}
    assert "<StudentID>_Lab8_Homework.py" in reasons["homework.py"]
    assert "configuration file" in reasons["conftest.py"] and "hidden" in reasons[".hidden.py"]
    assert "link" in reasons["400101205_Lab8_Homework.py"]


def test_a_students_folder_zip_and_loose_files_are_one_submission(folder, assignment, zipped, tmp_path):
    root = folder(
        {
            "400101204/homework.py": "x",
            "400101204_Lab8_Homework.pdf": "x",
            "400101204 weights.zip": zipped({"w.pth": "x"}),
            "400101205_Lab8_Homework.py": "x",
        }
    )
    assert found(submissions(root, assignment, tmp_path / "scratch")) == {
        "400101204": ["400101204_Lab8_Homework.pdf", "homework.py", "w.pth"],
        "400101205": ["400101205_Lab8_Homework.py"],
    }


def test_two_people_with_one_id_stay_apart(folder, assignment, tmp_path):
    root = folder(
        {"a/400101204_Lab8_Homework.py": "x", "b/400101204_Lab8_Homework.py": "y", "C/c.py": "", "c/d.py": ""}
    )
    uploads = submissions(root, assignment, tmp_path)
    ids = {s.origin.upload: s.student_id for s in uploads.submissions}
    assert ids.keys() == {"a", "b", "C", "c"} and len({i.lower() for i in ids.values()}) == 4
    assert all(s.held and s.student_id == s.origin.listed_as for s in uploads.submissions)
    reasons = {s.origin.upload: s.held for s in uploads.submissions}
    assert reasons["b"].startswith(f"Its files carry the id 400101204, and so do those of {ids['a']}.")


@pytest.mark.parametrize(
    ("name", "student_id", "closeness"),
    [
        ("400101204_Lab8_Homework.py", "400101204", 0),
        ("ab-2_Lab8_Homework.py", "ab-2", 0),
        ("400101204_Lab8_Homework.PY", "400101204", 1),
        # ids that have to be cleaned are not quite what was asked for
        ("-400101204_Lab8_Homework.py", "-400101204", 1),
        ("400101204-_Lab8_Homework.py", "400101204-", 1),
        ("_400101204_Lab8_Homework.py", "_400101204", 1),
        (f"{'4' * 65}_Lab8_Homework.py", "4" * 65, 1),
        ("400101204_lab8_homework (1).ipynb", "400101204", 1),
        ("400101204-Lab8 Homework.py", "400101204", 1),
        ("400101204_Lab8_Homework-1.py", "400101204", 1),
        ("400101204.pth", "400101204", 2),
        ("400101204_homework.py", "400101204", 2),
        ("Homework_400101204.py", "400101204", 2),
        ("homework.py", None, 3),
        ("../../400101204.py", "400101204", 2),
    ],
)
def test_whose_a_name_is(name, student_id, closeness):
    match = name_match(name, "{student_id}_Lab8_Homework")
    assert (match.student_id, match.closeness) == (student_id, closeness)


@pytest.mark.parametrize("label", ["../../etc", "a/b", "x" * 500, "", " ", "-rf", "Ünïcode", "\udcff", "CON"])
def test_ids_are_safe_file_names(label):
    student_id = sanitized(label)
    assert student_id and len(student_id) <= 64
    assert student_id.replace("-", "").replace("_", "").isalnum() and student_id.isascii()
    assert not student_id.startswith("-")


def test_the_digest_depends_on_names_and_contents_alone(folder, assignment, tmp_path):
    def digest(files):
        root = folder({f"400101204/{name}": content for name, content in files.items()})
        result = submissions(root, assignment, tmp_path).submissions[0].digest
        for name in files:
            (root / "400101204" / name).unlink()
        return result

    first = digest({"a.py": "1", "b.pdf": "2"})
    assert first == digest({"b.pdf": "2", "a.py": "1"})
    others = {digest({"a.py": "2", "b.pdf": "1"}), digest({"a.py": "1"}), digest({"a.py": "1", "c.pdf": "2"})}
    assert first not in others and len(others) == 3 and len(first) == 64


def test_nothing_to_grade_is_said_at_once(folder, assignment, tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        submissions(tmp_path / "nowhere", assignment, tmp_path)
    with pytest.raises(UsageError, match="class: holds no submission"):
        submissions(folder({".DS_Store": "x"}), assignment, tmp_path)
    with pytest.raises(UsageError, match=r"The first of 1 files set aside: notes\.txt"):
        submissions(folder({"notes.txt": "x"}), assignment, tmp_path)
    broken = folder({}) / "broken.zip"
    broken.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(UsageError, match=r"broken\.zip: cannot be opened as a zip.*Pack the files again"):
        submissions(broken, assignment, tmp_path)


def test_a_download_whose_own_name_is_no_utf8_is_told(tmp_path: Path) -> None:
    """It is in the records, by which the next run knows it."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/class\xff"))
    try:
        path.mkdir()
    except OSError:
        pytest.skip("this file system takes no such names")
    with pytest.raises(UsageError, match=r"class\\udcff': this path is not UTF-8, .* Rename what it names"):
        require_path(path)
    require_path(tmp_path)
