"""`grader template`, `data`, `doctor` and `schema`."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from grader.course.student_template import student_files
from grader.grading import devices
from grader.sandbox.lockdown import Layer
from grader.sandbox.survey import LayerState, Survey
from grader.students import own_training
from grader.students.own_training import TorchProbe


def test_the_schema_is_the_published_one(run, course_root):
    assert run("schema").output == (course_root / "docs" / "results.schema.json").read_text(encoding="utf-8")


def test_the_template_is_written(run, course_root, tmp_path):
    result = run("--course", course_root, "template", "vit_defects", "--out", tmp_path / "new")
    assert result.exit_code == 0, result.output
    expected = student_files(course_root / "reference" / "vit_defects")
    [wheel] = (tmp_path / "new").glob("vit_grader-*.whl")
    assert result.output.splitlines()[-1] == str(wheel)
    written = [path for path in (tmp_path / "new").rglob("*") if path.is_file() and path != wheel]
    assert {
        path.relative_to(tmp_path / "new").as_posix(): path.read_text("utf-8") for path in written
    } == expected


def test_the_template_spares_what_somebody_wrote(run, course_root, tmp_path):
    (tmp_path / "homework.py").write_text("my work\n", encoding="utf-8")
    arguments = ["template", "vit_defects", "--course", course_root, "--out", tmp_path]
    result = run(*arguments)
    assert result.exit_code == 2 and "is there already, with different content" in result.output
    assert (tmp_path / "homework.py").read_text("utf-8") == "my work\n"
    assert run(*arguments, "--force").exit_code == 0
    assert "PreNorm" in (tmp_path / "homework.py").read_text("utf-8")


def test_an_unknown_assignment_is_guessed(run, course_root):
    result = run("template", "vit_defect", "--course", course_root)
    assert result.exit_code == 2 and "Did you mean 'vit_defects'?" in result.output


def test_a_data_set_is_shown(desk, run, images):
    result = run("data", "preview", "--data", images)
    assert result.exit_code == 0, result.output
    assert result.output == "neu_cls: 6 classes, 42 training and 18 test images. Picture: preview.png\n"
    with Image.open(desk / "preview.png") as picture:
        assert picture.format == "PNG"
    assert "ends with .png" in run("data", "preview", "--data", images, "--out", "preview.jpg").output


def test_the_data_are_written_once(desk, run, monkeypatch):
    asked = []

    def write_student_data(datasets, use, source, destination):
        asked.append((datasets, use.synthetic, source))
        destination.write_bytes(b"zip")
        return SimpleNamespace(name="few", train_labels=(0, 1), test_labels=(1,))

    monkeypatch.setattr("grader.course.student_data.write_student_data", write_student_data)
    result = run("data", "write", "synthetic")
    assert result.exit_code == 0, result.output
    assert result.output == "few: 2 training and 1 test images in dataset.zip (0.0 MB)\n"
    assert "is there already" in run("data", "write", "synthetic").output
    (desk / "images").mkdir()
    assert run("data", "write", "images", "--force").exit_code == 0
    assert asked == [
        (desk / "datasets", "synthetic_steel", None),
        (desk / "datasets", "synthetic_steel", Path("images")),
    ]
    assert "there is no such file" in run("data", "write", "nowhere", "--out", "other.zip").output


@pytest.fixture
def machine(monkeypatch):
    """Set what the machine is found to give: `machine(missing layers, PyTorch's version, its fault)`."""

    def give(missing=(), torch="2.15.0", fault="", bubblewrap="", taken=(), gpu_fault="", parsing_fault=""):
        def survey(*, wrapped=False):
            gone = {*missing, *(taken if wrapped else ())}
            states = [
                LayerState(
                    layer, layer not in gone, f"{layer}: not available." if layer in gone else "its form"
                )
                for layer in Layer
            ]
            verdict = "refused" if Layer.SECCOMP in gone else "standard" if gone else "strict"
            return Survey(tuple(states), verdict)

        monkeypatch.setattr(sys.modules["grader.sandbox.survey"], "survey", survey)
        monkeypatch.setattr("grader.sandbox.rootfs.bubblewrap_version", lambda: bubblewrap)
        monkeypatch.setattr("importlib.metadata.version", lambda name: torch)
        monkeypatch.setattr(own_training, "torch_probe", lambda: TorchProbe("A card", fault))
        monkeypatch.setattr(devices, "gpu_fault", lambda: gpu_fault)
        monkeypatch.setattr("grader.grading.run.parsing_fault", lambda: parsing_fault)

    return give


def verdict(result) -> str:
    return result.output.strip().splitlines()[-1]


def test_a_good_machine(run, machine, course_root, monkeypatch):
    machine()
    monkeypatch.setenv("GRADER_SECRET", "something nobody knows")
    result = run("doctor", "--course", course_root)
    assert result.exit_code == 0
    said = "✓ Isolation: strict. This machine can check your own homework, and grade others."
    assert verdict(result) == said
    assert "cgroup: its memory is bounded exactly (its form)" in result.output
    assert "GPU: A card" in result.output and "something nobody knows" not in result.output


def test_a_gpu_that_isolated_code_cannot_use_is_told(run, machine, course_root):
    machine()
    assert "✓ GPU: isolated code can use it" in run("doctor", "--course", course_root).output
    machine(gpu_fault="RuntimeError: no driver.")
    told = run("doctor", "--course", course_root).output
    assert "✗ GPU: isolated code cannot use it, so every training would stay unknown" in told
    assert "RuntimeError: no driver. Grade with --device cpu." in told


def test_a_process_that_cannot_start_is_told(run, machine, course_root, monkeypatch):
    """As where a package lacks its files: PyTorch alone does not show it."""
    monkeypatch.setenv("GRADER_SECRET", "something nobody knows")
    machine()
    assert "✓ submissions can be opened" in run("doctor", "--course", course_root).output
    machine(parsing_fault="It said: ValueError: No template sub-directory.")
    result = run("doctor", "--course", course_root)
    assert result.exit_code == 1 and "ValueError: No template sub-directory." in result.output
    assert "not grade others. The processes that open submissions do not start." in verdict(result)


def test_a_public_secret_is_told(run, machine, course_root, monkeypatch):
    machine()
    monkeypatch.setenv("GRADER_SECRET", "change-me")
    result = run("doctor", "--course", course_root)
    assert "The secret is still the one that the course was handed out with." in result.output
    assert verdict(result).endswith("and grade others once the secret is changed.")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"missing": [Layer.SECCOMP]}, "but not grade others. It gives too little isolation: seccomp"),
        ({"torch": "2.4.1+cpu"}, "but not grade others. PyTorch 2.4.1+cpu is older than 2.10"),
        (
            {"fault": "ImportError: libtorch"},
            "cannot check homework yet. Install torch and torchvision again",
        ),
    ],
)
def test_a_machine_that_lacks_something(run, machine, course_root, given, told):
    machine(**given)
    result = run("doctor", "--course", course_root)
    assert result.exit_code == 1 and told in verdict(result), result.output


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "· bubblewrap is not installed (`apt install bubblewrap`)"),
        ({"bubblewrap": "0.8.0"}, "✓ bubblewrap 0.8.0: a second wall"),
        ({"bubblewrap": "0.8.0", "taken": [Layer.CGROUP]}, "· bubblewrap 0.8.0 does not work beside these"),
        ({"bubblewrap": "0.8.0", "missing": [Layer.CGROUP]}, "✓ bubblewrap 0.8.0: a second wall"),
    ],
)
def test_bubblewrap_is_told_of(run, machine, course_root, given, told):
    machine(**given)
    assert told in run("doctor", "--course", course_root).output


def test_without_a_course_a_weak_machine_is_good_enough_for_a_student(run, machine, desk):
    machine(missing=[Layer.SECCOMP], torch="2.4.1")
    result = run("doctor")
    said = "✓ Isolation: refused. This machine can check your own homework. (To"
    assert result.exit_code == 0 and verdict(result).startswith(said)
    assert re.search(r"No course was found.*Only instructors need one", result.output)


def test_a_course_that_is_none_is_said(run, tmp_path):
    result = run("doctor", "--course", tmp_path)
    assert result.exit_code == 2 and "holds no course.toml" in result.output
