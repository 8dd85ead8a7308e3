"""What a student's copy tells of the checks that it lacks."""

import re
import tomllib
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.rubric import hidden_checks_text
from grader.course.student_template import student_files
from grader.domain.assignment import CheckSpec, HiddenCheck
from grader.domain.errors import CourseError
from grader.files.known_folders import is_public_checks

CHECKS = (
    CheckSpec("shape", "ViT", "ViT keeps the shape.", public=True, because=("proof",)),
    CheckSpec("proof", "ViT", 'ViT is "right".', weight=2.5),
    CheckSpec("gradients", "ViT", "The gradient reaches ViT's input."),
)


def test_the_tables_have_what_a_student_may_know() -> None:
    text = hidden_checks_text(CHECKS)
    assert tomllib.loads(text)["hidden_check"] == [
        {"component": "ViT", "title": 'ViT is "right".', "weight": 2.5, "seen": True},
        {"component": "ViT", "title": "The gradient reaches ViT's input.", "weight": 1},
    ]
    assert "proof" not in text and "gradients" not in text, "no check is named"
    assert hidden_checks_text(CHECKS[:1]) == ""


def test_the_copy_of_an_assignment_tells_of_all_that_it_lacks(course_root: Path, tmp_path: Path) -> None:
    reference = course_root / "reference" / "vit_defects"
    for name, text in student_files(reference, course_root / "datasets").items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    ours, copy = read_assignment(reference), read_assignment(tmp_path, public_only=True)
    hidden = [check for check in ours.checks if not check.public]
    seen = {cause for check in ours.checks if check.public for cause in check.because}
    assert copy.hidden_checks == tuple(
        HiddenCheck(check.component, check.title, check.weight, check.id in seen) for check in hidden
    )
    assert ours.hidden_checks == ()
    handed_out = "".join(path.read_text("utf-8") for path in tmp_path.glob("*") if path.is_file())
    named = {check.id for check in hidden if re.search(rf"\b(?:test_)?{check.id}\b", handed_out)}
    assert named == set(), "students are told what is looked at, not by which check"


def test_tables_that_cannot_be(course_root: Path, tmp_path: Path) -> None:
    files = student_files(course_root / "reference" / "vit_defects", course_root / "datasets")
    for name, text in files.items():
        if name == "assignment.toml" or is_public_checks(name):
            (tmp_path / name).write_text(text, encoding="utf-8")
    with (tmp_path / "assignment.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[hidden_check]]\ncomponent = "Atention"\ntitle = "One."\nweight = 1\n')
    with pytest.raises(CourseError) as caught:
        read_assignment(tmp_path, public_only=True)
    assert "[[hidden_check]]: there is no component 'Atention'. Did you mean 'Attention'?" in str(
        caught.value
    )
    with pytest.raises(CourseError, match="writes into the students' copy"):
        read_assignment(tmp_path.rename(tmp_path.parent / "vit_defects"))
