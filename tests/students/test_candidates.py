"""Which files of a folder are meant to be handed in."""

import pytest

from grader.domain.errors import UsageError
from grader.domain.submission import Role
from grader.students.candidates import candidate, checked_id, inferred_id, stubs

ID = "400101204"
STEM = f"{ID}_Lab8_Homework"
UNWRITTEN = 'def f():\n    raise NotImplementedError("TODO f: write it")\n'
WRITTEN = "def f():\n    return 1\n"


@pytest.fixture
def chosen(tmp_path, assignment):
    """Write files, and say which one is chosen for a role."""

    def of(role: Role, files: dict[str, str]):
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        asked = next(file for file in assignment.asked_files if file.role == role)
        return candidate(tmp_path, asked, ID)

    return of


@pytest.mark.parametrize(
    ("role", "files", "expected"),
    [
        (Role.CODE, {"homework.py": WRITTEN, "helper.py": WRITTEN}, "homework.py"),
        (Role.CODE, {"solution.py": WRITTEN, "test_public.py": "", "conftest.py": ""}, "solution.py"),
        (Role.CODE, {"homework.py": UNWRITTEN, "homework.ipynb": WRITTEN}, "homework.ipynb"),
        (Role.CODE, {"homework.py": UNWRITTEN, f"{STEM}.py": WRITTEN}, f"{STEM}.py"),
        (Role.CODE, {"homework.py": WRITTEN, f"{STEM}.py": WRITTEN}, f"{STEM}.py"),
        (Role.CHECKPOINT, {f"{ID}.pth": "a", f"{STEM}.pth": "b", "best.pth": "c"}, f"{STEM}.pth"),
        (Role.CHECKPOINT, {f"{ID}.pth": "a", "best.pth": "c"}, f"{ID}.pth"),
        (Role.CHECKPOINT, {"best.pth": "c", "best.txt": ""}, "best.pth"),
        (Role.REPORT, {"My Report.PDF": "a", ".hidden.pdf": "", "._My Report.pdf": ""}, "My Report.PDF"),
    ],
)
def test_the_right_file_is_chosen(chosen, role, files, expected):
    found = chosen(role, files)
    assert found.path is not None and found.path.name == expected and not found.problem


def test_a_file_that_was_passed_over_is_told(chosen):
    found = chosen(Role.CODE, {"homework.py": UNWRITTEN, "homework.ipynb": WRITTEN})
    assert found.notes == ("homework.py was left out: 1 of its parts are not written, 0 of homework.ipynb.",)


@pytest.mark.parametrize(
    ("role", "files", "told"),
    [
        (
            Role.CODE,
            {"homework.py": WRITTEN, "homework.ipynb": WRITTEN + "\n"},
            "homework.ipynb or homework.py? ",
        ),
        (Role.CODE, {"homework.py": WRITTEN, f"{STEM}.py": WRITTEN + "\n"}, f"{STEM}.py or homework.py? "),
        (Role.CODE, {"a.py": WRITTEN, "b.py": "x = 1"}, "a.py or b.py? Say so: --code FILE"),
        (Role.CODE, {"test_public.py": ""}, "There is no .py or .ipynb file."),
        (Role.CHECKPOINT, {"a.pth": "a", "b.pth": "b"}, "a.pth or b.pth? Say so: --checkpoint FILE"),
        (Role.CHECKPOINT, {}, f'torch.save(model.state_dict(), "{STEM}.pth")'),
        (Role.REPORT, {"report.docx": "a"}, "There is no .pdf file. Export your report as PDF"),
    ],
)
def test_when_nobody_can_tell_the_student_is_asked(chosen, role, files, told):
    found = chosen(role, files)
    assert found.path is None and told in found.problem


def test_parts_that_are_not_written_are_counted_in_both_forms(course_root, tmp_path):
    template = course_root / "template" / "vit_defects"
    written = (template / "homework.py").read_text("utf-8")
    expected = written.count("raise NotImplementedError(\n") + written.count(
        'raise NotImplementedError("TODO'
    )
    assert stubs(template / "homework.py") == stubs(template / "homework.ipynb") == expected > 10
    # a text that only speaks of them is not counted
    (tmp_path / "a.py").write_text(
        "# replace `raise NotImplementedError(...)`, which says `TODO`\n", encoding="utf-8"
    )
    assert stubs(tmp_path / "a.py") == 0


def test_ids(tmp_path, assignment):
    assert checked_id(ID) == ID
    for wrong in ("", "a b", "../x", "é"):
        with pytest.raises(UsageError, match="letters, digits"):
            checked_id(wrong)
    with pytest.raises(UsageError, match="Whose work is it"):
        inferred_id(tmp_path, assignment)
    (tmp_path / f"{STEM}.pdf").touch()
    assert inferred_id(tmp_path, assignment) == ID
    (tmp_path / "99_Lab8_Homework.pth").touch()
    with pytest.raises(UsageError, match=f"{ID} and 99"):
        inferred_id(tmp_path, assignment)
