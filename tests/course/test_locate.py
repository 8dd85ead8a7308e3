"""The course is found in three ways; what is not there is named."""

from pathlib import Path

import pytest

from grader.course.locate import Course, located_course, student_assignment
from grader.domain.errors import CourseError, UsageError

ROOT = Path(__file__).parents[2]
COURSE = 'title = "A course"\nsecret = "long and hidden"\n'


def course_in(folder: Path, text: str = COURSE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "course.toml").write_text(text)
    return folder


def assignment_in(course: Path, name: str) -> Path:
    folder = course / "reference" / name
    folder.mkdir(parents=True)
    text = (ROOT / "reference/vit_defects/assignment.toml").read_text(encoding="utf-8")
    (folder / "assignment.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_operator_comes_first_then_the_environment_then_the_working_directory(tmp_path: Path) -> None:
    first, second, third = (course_in(tmp_path / name) for name in ("first", "second", "third"))
    (third / "deep" / "deeper").mkdir(parents=True)
    variables = {"GRADER_COURSE": str(second)}
    working = third / "deep" / "deeper"
    assert located_course(first, environment=variables, working=working).root == first
    assert located_course(environment=variables, working=working).root == second
    assert located_course(environment={}, working=working).root == third
    assert located_course(environment={"GRADER_COURSE": ""}, working=working).root == third


def test_the_file_itself_may_be_given(tmp_path: Path) -> None:
    folder = course_in(tmp_path)
    assert located_course(folder / "course.toml", environment={}).root == folder


def test_no_course_names_the_three_ways(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        located_course(environment={}, working=tmp_path)
    message = str(caught.value)
    assert message.startswith(f"No course was found: there is no course.toml in {tmp_path} or above it.")
    assert "--course" in message
    assert "GRADER_COURSE" in message


def test_a_named_folder_without_a_course_is_not_passed_over(tmp_path: Path) -> None:
    here = course_in(tmp_path / "here")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"^--course names .*empty, which holds no course\.toml\."):
        located_course(tmp_path / "empty", environment={}, working=here)
    with pytest.raises(UsageError, match=r"^\$GRADER_COURSE names .*nowhere, which holds no course\.toml\."):
        located_course(environment={"GRADER_COURSE": str(tmp_path / "nowhere")}, working=here)


def test_what_the_file_says(tmp_path: Path) -> None:
    course = located_course(course_in(tmp_path, COURSE + '[sandbox]\nminimum = "strict"\n'), environment={})
    assert (course.title, course.secret, course.minimum_level) == ("A course", "long and hidden", "strict")
    assert course.datasets == tmp_path / "datasets"
    assert located_course(course_in(tmp_path), environment={}).minimum_level == "standard"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('title = "A"\n', "course.toml: the file lacks 'secret'. Add it."),
        (
            COURSE + "[sandbox]\nminimum = 1",
            "course.toml: [sandbox]: 'minimum' is 1, which is not a choice. ",
        ),
        (COURSE + '[sandbox]\nminimum = "none"', "Choose 'strict' or 'standard'."),
        (COURSE + "secrets = 1", "Did you mean 'secret'?"),
        ("title", "course.toml:1: this is not valid TOML"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(CourseError) as caught:
        located_course(course_in(tmp_path, text), environment={})
    assert sentence in str(caught.value)


def test_the_environments_secret_wins_and_is_not_shown(tmp_path: Path) -> None:
    folder = course_in(tmp_path)
    own = located_course(folder, environment={"GRADER_SECRET": ""})
    other = located_course(folder, environment={"GRADER_SECRET": "another"})
    assert (own.secret, other.secret) == ("long and hidden", "another")
    assert "another" not in repr(other)


def test_the_split_seed_is_the_secrets_own() -> None:
    seeds = [Course(Path(), "t", secret).split_seed for secret in ("a", "b", "a")]
    assert seeds[0] == seeds[2] != seeds[1]
    assert seeds[0] == 0xCA978112CA1BBDCA, "the start of SHA-256 of 'a'"


def test_assignments_are_the_folders_with_an_assignment_file(tmp_path: Path) -> None:
    course_in(tmp_path)
    for name in ("vit_defects", "cnn"):
        assignment_in(tmp_path, name)
    (tmp_path / "reference" / "notes").mkdir()
    course = located_course(tmp_path, environment={})
    assert course.assignments() == ("cnn", "vit_defects")
    assert course.reference("cnn") == tmp_path / "reference" / "cnn"


@pytest.mark.parametrize(
    ("name", "advice"), [("vit_defect", "Did you mean 'vit_defects'?"), ("resnet", "Choose one of them.")]
)
def test_an_unknown_assignment_is_told_which_exist(tmp_path: Path, name: str, advice: str) -> None:
    assignment_in(course_in(tmp_path), "vit_defects")
    with pytest.raises(UsageError) as caught:
        located_course(tmp_path, environment={}).reference(name)
    assert str(caught.value) == f"There is no assignment '{name}'. The course has 'vit_defects'. {advice}"


def test_a_course_without_assignments_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no assignments\. Begin one: grader new-assignment a"):
        located_course(course_in(tmp_path), environment={}).reference("a")


def test_an_id_is_no_way_out_of_the_course(tmp_path: Path) -> None:
    assignment_in(course_in(tmp_path), "vit_defects")
    with pytest.raises(UsageError, match="There is no assignment"):
        located_course(tmp_path, environment={}).reference("../reference/vit_defects")


def test_our_course_is_found_and_warns_of_its_public_secret() -> None:
    course = located_course(environment={}, working=Path(__file__).parent)
    assert course.root == ROOT
    assert "vit_defects" in course.assignments()
    assert course.secret_is_public
    assert not located_course(ROOT, environment={"GRADER_SECRET": "mine"}).secret_is_public


def test_a_students_folder_gives_the_public_assignment(tmp_path: Path) -> None:
    folder = assignment_in(tmp_path, "my homework")
    check = '@pytest.mark.component("ViT")\ndef test_shape():\n    """One number per class."""\n'
    (folder / "test_public.py").write_text(check)
    assignment = student_assignment(folder)
    assert assignment.id == "vit_defects"
    assert assignment.public_only
    assert [(one.id, one.public) for one in assignment.checks] == [("shape", True)]


@pytest.mark.parametrize("name", ["assignment.toml", "test_public.py"])
def test_a_students_folder_that_lacks_a_file_is_told_which(tmp_path: Path, name: str) -> None:
    folder = assignment_in(tmp_path, "homework")
    (folder / "test_public.py").write_text("")
    (folder / name).unlink()
    with pytest.raises(
        UsageError, match=rf"has no {name}\. Run this in the folder that the course handed out"
    ):
        student_assignment(folder)
