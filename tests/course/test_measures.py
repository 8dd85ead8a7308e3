"""Which models an assignment has trained and measured."""

from pathlib import Path

import pytest

from grader.course.assignment_tables import MeasureTable, ProgramTable
from grader.course.measures import measures
from grader.domain.assignment import MEASUREMENTS, Component
from grader.domain.errors import CourseError
from grader.domain.measure import Measure, ProgramRoles
from grader.domain.submission import Role
from grader.reports.results_json.results_schema import Measurements

PARTS = (
    Component("ViT", "class", "dim"),
    Component("ResNet", "class", "width"),
    Component("train_epoch", "function", "model, optimizer, loader"),
)
VIT = {"id": "vit", "model": "ViT", "weights": "_vit"}
RESNET = {"id": "resnet", "title": "ResNet-18", "model": "ResNet", "weights": "_resnet", "final": "best"}


def read(*tables: dict[str, str], **program: str) -> tuple[Measure, ...]:
    return measures([MeasureTable(**table) for table in tables], ProgramTable(**program), PARTS)


def test_one_accuracy_is_measured_where_nothing_is_stated() -> None:
    assert read() == (Measure("test_accuracy"),)
    assert read(trainer="train_epoch")[0].roles == ProgramRoles(trainer="train_epoch")


def test_a_measure_states_what_the_program_does_not() -> None:
    vit, resnet = read(VIT, RESNET, trainer="train_epoch", final="model")
    assert vit == Measure("vit", "ViT", ProgramRoles("ViT", "train_epoch", "", "model"), "_vit")
    assert resnet.roles == ProgramRoles("ResNet", "train_epoch", "", "best")
    assert (resnet.title, resnet.weights) == ("ResNet-18", "_resnet")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ((VIT, {**RESNET, "id": "vit"}), "'vit' is there twice"),
        ((VIT, {**RESNET, "model": "CNN"}), "model = 'CNN' is not a component of kind class"),
        ((VIT, {**RESNET, "model": "ViT"}), "the model 'ViT' is there twice"),
        ((VIT, {"id": "b", "model": "ResNet"}), "'b' has no 'weights'"),
        ((VIT, {"id": "b", "weights": "_b"}), "'b' has no 'model'"),
        ((VIT, {**RESNET, "weights": "_vit_b"}), "'_vit' is also a part of '_vit_b'"),
        ((VIT, {**RESNET, "weights": "a/b"}), "becomes part of a file's name"),
        ((VIT, {**RESNET, "id": "epochs"}), "the results have something else of that name"),
        ((VIT, {**RESNET, "id": "a b"}), "becomes part of file names"),
        ((VIT, {**RESNET, "final": "a b"}), "is not the name of a variable"),
    ],
)
def test_what_contradicts_itself_is_told(tables: tuple[dict[str, str], ...], words: str) -> None:
    with pytest.raises(CourseError) as raised:
        read(*tables)
    assert words in str(raised.value) and str(raised.value).startswith("assignment.toml: ")


def test_no_measure_hides_what_the_results_say_besides() -> None:
    assert {*Measurements.model_fields} - {"test_accuracy"} == MEASUREMENTS


def test_files_are_asked_for_by_the_model_that_they_are_of(two_models: Path) -> None:
    from grader.course.assignment_file import read_assignment

    assignment = read_assignment(two_models)
    asked = {file.measure: file for file in assignment.asked_files if file.role == Role.CHECKPOINT}
    assert {key: file.name("400101204") for key, file in asked.items()} == {
        "perceptron_accuracy": "400101204_Compared_perceptron.pth",
        "convolution_accuracy": "400101204_Compared_convnet.pth",
    }
    assert assignment.asked_file("my_ConvNet_best.PTH") == asked["convolution_accuracy"]
    assert assignment.asked_file("weights.pth") == asked["perceptron_accuracy"], "the first one's is required"
    assert assignment.asked_file("notes.txt") is None


@pytest.fixture
def two_models(course_root: Path) -> Path:
    """The folder of an assignment with two models."""
    return course_root / "tests" / "courses" / "comparison" / "reference" / "two_networks"
