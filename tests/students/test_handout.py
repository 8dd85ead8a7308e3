"""Which assignment a command on a student's own file is about."""

import shutil

import pytest

from grader.domain.errors import UsageError
from grader.files.known_folders import public_checks
from grader.students.homework import local_assignment


@pytest.fixture
def folders(course_root, tmp_path, monkeypatch):
    """A student's folder and an empty one, which is the working folder; no course around."""
    for name in ("GRADER_COURSE", "GRADER_SECRET"):
        monkeypatch.delenv(name, raising=False)
    handed_out, empty = tmp_path / "handed out", tmp_path / "empty"
    handed_out.mkdir()
    empty.mkdir()
    template = course_root / "template" / "vit_defects"
    for path in (template / "assignment.toml", *public_checks(template)):
        shutil.copy(path, handed_out)
    monkeypatch.chdir(empty)
    return handed_out, empty


def test_the_files_are_found_beside_the_homework_or_in_the_working_folder(folders):
    handed_out, empty = folders
    for near in ([handed_out, empty], [empty, handed_out]):
        found = local_assignment(near)
        assert found.assignment.folder == handed_out and found.assignment.public_only
        assert found.datasets == handed_out / "datasets"
        assert [path.name for path in found.public_checks] == [
            f"test_public_{part}.py" for part in ("parts", "plots", "training", "vit")
        ]


def test_a_named_folder_comes_first(folders):
    handed_out, empty = folders
    assert local_assignment([empty], folder=handed_out).assignment.folder == handed_out
    with pytest.raises(UsageError, match=r"empty has no assignment\.toml"):
        local_assignment([handed_out], folder=empty)


def test_half_a_folder_is_told_what_it_lacks(folders):
    handed_out, empty = folders
    (handed_out / "assignment.toml").unlink()
    with pytest.raises(UsageError, match=r"handed out has no assignment\.toml"):
        local_assignment([handed_out, empty])


def test_in_a_course_its_template_is_meant(folders, course_root, course_of_one):
    _, empty = folders
    for course, named in ((course_root, {"assignment_id": "vit_defects"}), (course_of_one, {})):
        found = local_assignment([empty], course=course, **named)
        assert found.assignment.folder == course / "template" / "vit_defects"
        assert found.datasets == course / "datasets"
    with pytest.raises(UsageError, match="Did you mean 'vit_defects'"):
        local_assignment([empty], course=course_root, assignment_id="vit_defect")


def test_the_folder_of_the_reference_is_no_student_folder(folders, course_root):
    _, empty = folders
    reference = course_root / "reference" / "vit_defects"
    found = local_assignment([reference, empty], course=course_root)
    assert found.assignment.folder == course_root / "template" / "vit_defects"


def test_a_course_without_that_template_or_with_several_assignments(folders, tmp_path, course_root):
    _, empty = folders
    course = tmp_path / "course"
    for name in ("one", "two"):
        (course / "reference" / name).mkdir(parents=True)
        (course / "reference" / name / "assignment.toml").touch()
    shutil.copy(course_root / "course.toml", course)
    with pytest.raises(UsageError, match=r"--assignment ID \(one, two\)"):
        local_assignment([empty], course=course)
    with pytest.raises(UsageError, match="grader template one"):
        local_assignment([empty], course=course, assignment_id="one")


def test_nothing_anywhere(folders):
    _, empty = folders
    with pytest.raises(UsageError, match=r"are not in .*empty\. Go to the folder .* --assignment-folder"):
        local_assignment([empty, empty])
    with pytest.raises(UsageError, match="holds no course"):
        local_assignment([empty], course=empty)
