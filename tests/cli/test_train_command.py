"""`grader train` in a student's folder."""

import pytest
from PIL import Image

from grader.cli.train_view import TrainView
from grader.students import homework_training, own_training
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


def test_the_head_has_the_model_and_the_stages(desk, run, images, small_solution):
    (desk / "homework.py").write_text(small_solution, encoding="utf-8")
    output = run("train", "--data", images, "--device", "cpu").output
    head = output.partition("data  ")[0]
    assert "model         87,302 parameters, image_size 28, patch_size 4" in head, head
    assert "2 epochs in the loop at line" in head and "AdamW, learning rate" in head
    assert output.index("test images (95 %") < output.index("learning-curves.png")


def test_the_folder_for_pictures_is_tried_before_anything_is_trained(desk, run, images, monkeypatch):
    (desk / "taken").write_text("a file", encoding="utf-8")
    monkeypatch.setattr(homework_training, "local_training", lambda *a, **k: pytest.fail("it was trained"))
    result = run("train", "--data", images, "--device", "cpu", "--out", "taken/pictures")
    assert result.exit_code == 2, result.output
    assert "--out taken/pictures cannot be written" in result.output
    assert "Choose another place: --out FOLDER." in result.output


@pytest.mark.slow
def test_made_up_images_promise_no_points(desk, run, small_solution):
    (desk / "homework.py").write_text(small_solution, encoding="utf-8")
    result = run("train", "--data", "synthetic", "--device", "cpu")
    assert result.exit_code == 0, result.output
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("✓ The training runs, and ") and last.endswith("the images are made up."), last
    assert "of 15" not in result.output and "below" not in result.output and "--seeds 3" not in result.output


@pytest.mark.slow
def test_a_short_try_has_other_epochs(desk, run, images, small_solution):
    (desk / "homework.py").write_text(small_solution, encoding="utf-8")
    result = run("train", "--data", images, "--device", "cpu", "--epochs", "1")
    assert result.exit_code == 0, result.output
    assert "epoch 1 of 1" in result.output and "1 epoch in the loop at line" in result.output
    assert "of 15" not in result.output and "its own number of epochs" in result.output.splitlines()[-1]
    assert "N_EPOCHS = 2" in (desk / "homework.py").read_text("utf-8"), "the file stays as it is"
    computed = small_solution.replace("N_EPOCHS = 2", "N_EPOCHS = len(class_names)")
    (desk / "homework.py").write_text(computed, encoding="utf-8")
    refused = run("train", "--data", images, "--device", "cpu", "--epochs", "1")
    assert refused.exit_code == 2 and "does not write its number of epochs as a number" in refused.output


@pytest.mark.slow
def test_what_was_done_is_kept_when_a_person_stops_it(desk, run, images, small_solution, monkeypatch):
    (desk / "homework.py").write_text(small_solution, encoding="utf-8")
    shown = TrainView.epoch

    def stop_after_one(view, told):
        shown(view, told)
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainView, "epoch", stop_after_one)
    result = run("train", "--data", images, "--device", "cpu", "--out", "pictures")
    assert result.exit_code == 130, result.output
    assert result.output.strip().splitlines()[-1] == (
        "✗ Stopped after 1 of 2 epochs: what it would have come to is not known."
    )
    assert "correct, after epoch 1" in result.output
    with Image.open(desk / "pictures" / "learning-curves.png") as picture:
        assert picture.width > 800
    table = (desk / "pictures" / "epochs.csv").read_text("utf-8").splitlines()
    assert table[0].startswith("epoch,train_loss") and table[1].startswith("1,")
    assert table[-1] == "# stopped after 1 of 2 epochs"


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
