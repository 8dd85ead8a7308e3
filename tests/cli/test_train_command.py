"""`grader train` in a student's folder."""

import pytest
from PIL import Image

from grader.students import own_training
from grader.students.own_training import TorchProbe


def test_training_is_measured_and_drawn(desk, run, images, small_solution):
    (desk / "homework.py").write_text(small_solution, encoding="utf-8")
    result = run("train", "--data", images, "--device", "cpu", "--out", "pictures")
    assert result.exit_code == 0, result.output
    assert "data          neu_cls, 42 images to train on, 18 to measure on" in result.output
    assert "epoch 1 of 2" in result.output and "epoch 2 of 2" in result.output
    assert "of 18 test images (95 % interval: " in result.output
    assert "of 15, if the grader measured the same" in result.output
    assert "the 60 % that the assignment asks for." in result.output.splitlines()[-1]
    for name in ("learning-curves.png", "confusion-matrix.png"):
        with Image.open(desk / "pictures" / name) as picture:
            assert picture.format == "PNG" and picture.width > 800


def test_an_unwritten_homework_is_not_trained(desk, run, images):
    result = run("train", "--data", images, "--device", "cpu")
    assert result.exit_code == 1, result.output
    assert "There is nothing to train yet" in result.output and "homework.py:" in result.output
    assert not (desk / "training").exists()


def test_the_zip_beside_the_homework_is_taken_and_else_the_choices_are_named(desk, run, images):
    result = run("train")
    assert result.exit_code == 2
    assert "There is no dataset.zip" in result.output and "--data synthetic" in result.output
    (desk / "dataset.zip").write_bytes(b"PK, but no zip")
    assert "dataset.zip" in run("train", "--device", "cpu").output.splitlines()[-1]
    assert "no such file or folder" in run("train", "--data", "nowhere").output


@pytest.mark.parametrize(
    ("wanted", "nodes", "gpu", "expected"),
    [
        ("cpu", True, "Card", "cpu"),
        ("auto", True, "Card", "cuda"),
        ("auto", True, "", "cpu"),
        ("auto", False, "Card", "cpu"),
        ("cuda", False, "Card", "cuda"),
    ],
)
def test_the_device(monkeypatch, wanted, nodes, gpu, expected):
    monkeypatch.setattr(own_training, "_may_have_gpu", lambda: nodes)
    monkeypatch.setattr(own_training, "torch_probe", lambda: TorchProbe(gpu=gpu))
    assert own_training.chosen_device(wanted) == expected


def test_a_gpu_that_is_not_there_is_an_error(desk, run, images, monkeypatch):
    monkeypatch.setattr(own_training, "torch_probe", TorchProbe)
    result = run("train", "--data", images, "--device", "cuda")
    assert result.exit_code == 2 and "PyTorch sees no GPU" in result.output
