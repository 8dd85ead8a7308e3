"""One assignment in several editions: what each holds, and the sentence for each mark that is wrong."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.composing import source_text
from grader.course.editions import edition_of, edition_text, stated_edition, without_left_out
from grader.course.homework_versions import Kind, homework_versions, reference_files
from grader.course.reference_solution import homework_source
from grader.course.student_template import student_files
from grader.domain.assignment_versions import Edition
from grader.domain.errors import CourseError
from grader.files.known_folders import is_public_checks, public_checks
from tests.editions import course_in_edition

ROOT = Path(__file__).parents[2]
EDITIONS = 'editions = [["small", "large"], ["whole", "part"]]\n'
SMALL = Edition(("small", "whole"), ("small", "large", "whole", "part"))


def chosen(tmp_path: Path, *names: str) -> Path:
    """The folder of `vit_cifar10` in another edition."""
    return course_in_edition(tmp_path, *names) / "reference" / "vit_cifar10"


def test_lines_of_other_editions_vanish_and_the_others_keep_their_numbers() -> None:
    text = "a\n# >>> ONLY small\nb\n# >>> ONLY part\nc\n# <<< ONLY\n# <<< ONLY\nd\n"
    kept = edition_text(text, SMALL, "x.py")
    assert [(number, line) for number, line in enumerate(kept.split("\n"), 1) if line in ("a", "b", "d")] == [
        (1, "a"), (3, "b"), (8, "d"),
    ]  # fmt: skip
    assert without_left_out(kept) == "a\nb\nd\n"


def test_blank_lines_around_what_vanishes_are_not_doubled() -> None:
    text = "a\n\n<!-- >>> ONLY large -->\nb\n<!-- <<< ONLY -->\n\nc\n"
    assert without_left_out(edition_text(text, SMALL, "x.md")) == "a\n\nc\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "# >>> ONLY huge\n# <<< ONLY",
            "x.py:1: the mark names 'huge', which is not an edition. There are 'small'",
        ),
        ("# >>> ONLY\n# <<< ONLY", "x.py:1: the mark names no edition."),
        ("a\n# <<< ONLY", "x.py:2: '# <<< ONLY' closes no mark. Remove it."),
        ("# >>> ONLY small\na", "x.py:1: this mark is never closed. Add '# <<< ONLY' below it."),
    ],
)
def test_a_malformed_mark_is_told_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(CourseError) as raised:
        edition_text(text, SMALL, "x.py")
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ('edition = ["huge", "whole"]\n' + EDITIONS, "takes one of each list in 'editions': 'small'"),
        ('edition = ["small"]\n' + EDITIONS, "'edition' is 'small', and takes one of each"),
        ('edition = ["small", "large"]\n' + EDITIONS, "'edition' is 'small', 'large', and takes one of each"),
        (EDITIONS, "'edition' is empty, and takes one of each"),
        ('edition = ["small"]\n', "takes one of each list in 'editions': there is none."),
        ('edition = "small"\n' + EDITIONS, "'edition' is a list of names"),
        ('edition = ["a"]\neditions = [["a", "b"], ["b"]]\n', "a name is in 'editions' twice."),
    ],
)  # fmt: skip
def test_a_choice_that_is_none_is_refused(head: str, sentence: str) -> None:
    with pytest.raises(CourseError) as raised:
        stated_edition(head, "assignment.toml")
    assert sentence in str(raised.value)


def test_marks_in_an_assignment_without_editions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "assignment.toml").write_text('id = "a"\n', encoding="utf-8")
    (tmp_path / "solution.py").write_text("# >>> ONLY small\n# <<< ONLY\n", encoding="utf-8")
    with pytest.raises(CourseError, match=r"There is none in 'editions' of assignment\.toml"):
        source_text(tmp_path / "solution.py", "solution.py", edition_of(tmp_path))


def test_components_that_only_other_editions_have_are_known() -> None:
    head = f'edition = ["small", "whole"]\n{EDITIONS}'
    component = '[[component]]\nname = "{}"\n'
    text = head + component.format("A") + "# >>> ONLY part\n" + component.format("B") + "# <<< ONLY\n"
    assert stated_edition(text, "assignment.toml").left_out == {"B"}


def test_the_core_has_checks_mistakes_and_files_of_its_own_parts_only(tmp_path: Path) -> None:
    assignment = read_assignment(chosen(tmp_path, "laptop", "core"))
    names = {component.name for component in assignment.components}
    assert sum(item.points for item in assignment.rubric) == 100
    assert {
        "BasicBlock",
        "ResNet18",
        "attention_map",
        "plot_attention",
        "study",
    } == assignment.edition.left_out
    assert {check.component for check in assignment.checks} == names
    assert [measure.id for measure in assignment.measures] == ["vit_accuracy"]
    assert set(reference_files(assignment)) == {"metrics"}
    tried = homework_versions(assignment)
    assert {part for each in tried for part in each.parts} == names
    assert sum(each.kind is Kind.MISTAKE for each in tried) > 100
    assert "ResNet" not in tried[0].source


def test_what_students_of_the_core_get_says_nothing_of_the_rest(tmp_path: Path) -> None:
    files = student_files(chosen(tmp_path, "laptop", "core"))
    public = {name for name in files if is_public_checks(name)}
    whole = {path.name for path in public_checks(ROOT / "reference" / "vit_cifar10" / "checks")}
    assert whole - public == {"test_public_attention_map.py", "test_public_resnet.py"}
    for name in ("homework.py", "homework.ipynb", "README.md", "assignment.toml", *sorted(public)):
        assert "ONLY" not in files[name], name
        told = files[name].replace("resnet", "ResNet")
        assert "ResNet" not in told, name
        assert "_study" not in told, name


def test_each_track_has_its_bounds_and_its_images(tmp_path: Path) -> None:
    folder = chosen(tmp_path, "gpu", "full")
    assignment = read_assignment(folder)
    assert [measure.most_epochs for measure in assignment.measures] == [100, 100]
    assert [measure.most_multiply_adds for measure in assignment.measures] == [None, None]
    assert assignment.required_data().train_per_class is None
    laptop = read_assignment(ROOT / "reference" / "vit_cifar10")
    assert [measure.most_epochs for measure in laptop.measures] == [15, 15]
    readme = student_files(folder)["README.md"]
    assert "at most 100 epochs" in readme
    assert "at most 15 epochs" not in readme
    text = source_text(folder / "solution.py", "solution.py", assignment.edition)
    assert "VIT_EPOCHS = RESNET_EPOCHS = 1\n" in homework_source(text, "solution.py")
    assert "VIT_EPOCHS, RESNET_EPOCHS = 100, 50" in homework_versions(assignment)[0].source
