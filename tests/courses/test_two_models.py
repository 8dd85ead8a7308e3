"""Several trained models in one submission: each is read, trained, measured and shown by itself."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

from grader.analysis import program
from grader.cli import cli
from grader.domain.analyzed_program import Program, Script
from grader.domain.assignment import Assignment
from grader.domain.submission import Submission
from grader.intake import intake

PERCEPTRON, CONVOLUTION = "perceptron_accuracy", "convolution_accuracy"
UPLOADS = Path(__file__).parent / "uploads" / "two_networks"
SAVES = ("torch.save(perceptron", "torch.save(convnet")


@pytest.fixture
def read(two_networks: Assignment) -> Callable[[str], Program]:
    """What a text is read as."""
    return lambda text: program("homework.py", text.encode(), two_networks.program_rules)


def told(found: Program, measure: str) -> tuple[str, list[str], list[str]]:
    """(model, first lines of its loops, first lines of what is left alone) of a measure."""
    script: Script = found.read_for(measure).script
    lines = (found.source or {})["homework.py"].split("\n")
    return (
        script.model,
        [lines[loop.place.line - 1].strip() for loop in script.loops],
        [each.first_line for each in script.left_alone],
    )


# --- reading ----------------------------------------------------------------------------------------------


def test_each_is_trained_by_its_own_loop(read: Callable[..., Program], two_networks_solved: str) -> None:
    found = read(two_networks_solved)
    assert told(found, PERCEPTRON) == ("perceptron", ["for epoch in range(6):"], [])
    assert told(found, CONVOLUTION) == ("convnet", ["for epoch in range(8):"], [])
    assert found.read_for(CONVOLUTION).source == found.source, "lines are told of both"


@pytest.mark.parametrize("kept", [(), SAVES[:1], SAVES[1:]], ids=["none", "perceptron", "convnet"])
def test_weights_that_are_not_saved_do_not_make_the_other_model_count(
    read: Callable[..., Program], two_networks_solved: str, kept: tuple[str, ...]
) -> None:
    """Both bind `optimizer`: what steps the second does not train the first."""
    lines = two_networks_solved.split("\n")
    text = "\n".join(line for line in lines if not line.startswith(SAVES) or line.startswith(tuple(kept)))
    found = read(text)
    assert told(found, PERCEPTRON)[:2] == ("perceptron", ["for epoch in range(6):"])
    assert told(found, CONVOLUTION)[:2] == ("convnet", ["for epoch in range(8):"])


def test_a_remark_is_about_its_own_model(read: Callable[..., Program], two_networks_solved: str) -> None:
    made = "perceptron = Perceptron(side=16, channels=3, num_classes=4, hidden=64).to(device)"
    assert made in two_networks_solved
    found = read(two_networks_solved.replace(made, f"{made}  # grader: final"))
    assert found.script.why == "the remark `# grader: final` stands there"
    assert told(found, PERCEPTRON)[:2] == ("perceptron", ["for epoch in range(6):"])
    assert told(found, CONVOLUTION)[:2] == ("convnet", ["for epoch in range(8):"])


def test_what_a_fit_hands_back_is_the_model_that_it_was_given(
    read: Callable[..., Program], two_networks_solved: str
) -> None:
    head = two_networks_solved.split("perceptron = Perceptron")[0]
    found = read(
        head
        + """
def fit(model, epochs, rate):
    optimizer = optim.AdamW(model.parameters(), lr=rate)
    for epoch in range(epochs):
        train_epoch(model, optimizer, train_loader)
    return model

perceptron = fit(Perceptron(16, 3, 4, 64).to(device), 6, 2e-3)
convnet = fit(ConvNet(3, 4, 16).to(device), 8, 5e-3)
"""
    )
    assert told(found, PERCEPTRON)[0] == "perceptron" and told(found, CONVOLUTION)[0] == "convnet"


def test_models_in_a_dictionary_are_told_apart_by_the_names_of_their_files(
    read: Callable[..., Program], two_networks_solved: str
) -> None:
    """Which file is whose is known when they are saved."""
    head = two_networks_solved.split("perceptron = Perceptron")[0]
    found = read(
        head
        + """
models = {"perceptron": Perceptron(16, 3, 4, 64), "convnet": ConvNet(3, 4, 16)}
for name, model in models.items():
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(6):
        train_epoch(model, optimizer, train_loader)
    torch.save(model.state_dict(), f"{STUDENT_ID}_Compared_{name}.pth")
shown = nn.Sequential(models["perceptron"], nn.Softmax(1))
"""
    )
    for measure, name in ((PERCEPTRON, "_perceptron"), (CONVOLUTION, "_convnet")):
        assert told(found, measure) == ("model", ["for epoch in range(6):"], [])
        assert found.read_for(measure).script.saved_as == name


def test_a_class_method_may_make_the_model(read: Callable[..., Program], two_networks_solved: str) -> None:
    """`from_sizes` does, and `count`, which only asks the class, does not."""
    methods = """class Perceptron(nn.Module):
    @classmethod
    def from_sizes(cls, hidden):
        return cls(16, 3, 4, hidden)

    @classmethod
    def count(cls, model):
        return len(list(model.parameters()))

"""
    text = two_networks_solved.replace("class Perceptron(nn.Module):\n", methods)
    made = "Perceptron(side=16, channels=3, num_classes=4, hidden=64)"
    assert made in text and methods in text
    found = read(text.replace(made, "Perceptron.from_sizes(64)") + "n = Perceptron.count(convnet)\n")
    assert told(found, PERCEPTRON)[:2] == ("perceptron", ["for epoch in range(6):"])


def test_what_trains_neither_is_left_alone_for_both(
    read: Callable[..., Program], two_networks_solved: str
) -> None:
    study = """
for width in (4, 8):
    candidate = ConvNet(3, 4, width).to(device)
    train_epoch(candidate, optim.Adam(candidate.parameters()), train_loader)
"""
    found = read(two_networks_solved.replace("convnet = ConvNet", f"{study}\nconvnet = ConvNet", 1))
    for measure in (PERCEPTRON, CONVOLUTION):
        assert told(found, measure)[2] == ["for width in (4, 8):"]


# --- files ------------------------------------------------------------------------------------------------


def test_weights_are_told_apart_by_their_names(two_networks: Assignment, tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save({"layer": torch.zeros(3)}, stream)
    names = ["400101204_Compared.py", "400101204_Compared_convnet.pth", "400101204_Compared_perceptron.pth"]
    for name in names:
        (tmp_path / name).write_bytes(stream.getvalue() if name.endswith(".pth") else b"x = 1")
    files = tuple(tmp_path / name for name in names)
    found = intake(Submission("400101204", "two_networks", files, "0"), two_networks)
    assert found.checkpoint == files[2] and dict(found.further_checkpoints) == {CONVOLUTION: files[1]}
    assert not found.refused and not found.missing and not found.notes
    alone = intake(Submission("400101204", "two_networks", files[:2], "0"), two_networks)
    assert alone.missing == ("checkpoint",), "the first model's are required"


# --- the whole way ----------------------------------------------------------------------------------------


@pytest.fixture
def run(comparison: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in the course."""
    monkeypatch.chdir(tmp_path)

    def command(*words: object) -> Result:
        given = [*map(str, words), "--course", str(comparison), "--assignment", "two_networks"]
        return CliRunner().invoke(cli, given, prog_name="grader")

    return command


def signed(text: str) -> str:
    """The homework with the number of its author in it."""
    assert "YOUR_STUDENT_ID" in text
    return text.replace("YOUR_STUDENT_ID", "400101204")


def saved(folder: Path, text: str) -> None:
    """Untrained weights of both networks, under the names that are asked for."""
    names: dict[str, Any] = {}
    exec(text.split("# %%\ntransform")[0], names)  # noqa: S102 - our own solution
    for kind, sizes in (("perceptron", (16, 3, 4, 64)), ("convnet", (3, 4, 16))):
        made = names["Perceptron" if kind == "perceptron" else "ConvNet"](*sizes)
        torch.save(made.state_dict(), folder / f"400101204_Compared_{kind}.pth")


@pytest.mark.slow
def test_a_class_is_graded_with_a_measure_for_each_model(
    run: Callable[..., Result],
    tmp_path: Path,
    two_networks_solved: str,
    on_warm_hosts: None,
) -> None:
    """Alone in a file; in several files with a study and two stages; and with one loop that raises."""
    folder = tmp_path / "class"
    shutil.copytree(UPLOADS, folder)
    for student in ("400101204", "400101206"):
        (folder / student).mkdir()
    (folder / "400101204" / "400101204_Compared.py").write_text(two_networks_solved, encoding="utf-8")
    saved(folder / "400101204", two_networks_solved)
    broken = two_networks_solved.replace("train_epoch(convnet, optimizer", "train_epoch(convnet, optimiser")
    (folder / "400101206" / "400101206_Compared.py").write_text(broken, encoding="utf-8")
    done = run("grade", folder, "--data", "synthetic", "--out", tmp_path / "out", "--jobs", 2)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out" / "results.json").read_text(encoding="utf-8")
    whole, modules, failing = json.loads(text)["submissions"]
    for record in (whole, modules):
        measured = record["measurements"]
        assert measured[PERCEPTRON] == measured["test_accuracy"] >= 0.4
        assert measured[CONVOLUTION] == record["models"][CONVOLUTION]["measurements"]["test_accuracy"] >= 0.5
        points = {item["id"]: item["points"] for item in record["items"]}
        assert points["parts"] == 20 and points["perceptron"] == 10 and points["convolutions"] >= 7
    assert whole["total"] == sum(item["points"] for item in whole["items"])
    assert whole["checkpoint"]["status"] == whole["models"][CONVOLUTION]["checkpoint"]["status"] == "fits"
    stages = modules["models"][CONVOLUTION]["plan"]["stages"]
    assert [(stage["epochs"], stage["last_rate"]) for stage in stages] == [(5, 5e-3), (3, 1e-3)]
    assert [stage["epochs"] for stage in modules["plan"]["stages"]] == [5]
    points = {item["id"]: item["points"] for item in failing["items"]}
    assert points["perceptron"] == 10 and points["convolutions"] is None, "one is not the other's fault"
    page = (tmp_path / "out" / "students" / "400101204" / "report.html").read_text(encoding="utf-8")
    for anchor in ('id="training"', f'id="{CONVOLUTION}-training"', f'id="{CONVOLUTION}-predictions"'):
        assert page.count(anchor) == 1
    assert "Convolutional network: test accuracy" in page and "Perceptron: submitted weights" in page


@pytest.mark.slow
def test_a_student_sees_and_trains_each_model(
    run: Callable[..., Result], tmp_path: Path, two_networks_solved: str, warm_workers: object
) -> None:
    made = ["template", "two_networks", "--course", str(tmp_path / "comparison")]
    assert CliRunner().invoke(cli, made, prog_name="grader").exit_code == 0
    (tmp_path / "homework.py").write_text(signed(two_networks_solved), encoding="utf-8")
    shown = run("program", "homework.py")
    assert shown.exit_code == 0, shown.output
    assert "what trains the Perceptron" in shown.output and "8 epochs in the loop" in shown.output
    trained = run("train", "homework.py", "--data", "synthetic", "--measure", CONVOLUTION)
    assert trained.exit_code == 0, trained.output
    assert "The training runs, and" in trained.output and "8 epochs" in trained.output
    assert "nothing about points" in trained.output, "the images are made up"
    unknown = run("train", "homework.py", "--data", "synthetic", "--measure", "beauty")
    assert unknown.exit_code == 2
    assert f"This assignment has {PERCEPTRON} and {CONVOLUTION}." in unknown.output
    saved(tmp_path, two_networks_solved)
    packed = run("pack", ".", "--id", "400101204")
    assert packed.exit_code == 0, packed.output
    assert "weights (Convolutional network)" in packed.output
    assert sorted(path.name for path in (tmp_path / "handin").iterdir()) == [
        "400101204_Compared.py",
        "400101204_Compared_convnet.pth",
        "400101204_Compared_perceptron.pth",
    ]


@pytest.mark.slow
def test_weights_without_pickles_are_tried(
    run: Callable[..., Result], tmp_path: Path, two_networks_solved: str, warm_workers: object
) -> None:
    """As safetensors and as arrays; those of another model do not fit."""
    settings = tmp_path / "comparison" / "reference" / "two_networks" / "assignment.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace('[".pth"]', '[".pth", ".safetensors", ".npz"]'), encoding="utf-8")
    made = ["template", "two_networks", "--course", str(tmp_path / "comparison")]
    assert CliRunner().invoke(cli, made, prog_name="grader").exit_code == 0
    (tmp_path / "homework.py").write_text(signed(two_networks_solved), encoding="utf-8")
    saved(tmp_path, two_networks_solved)
    states = {
        kind: {name: value.numpy() for name, value in torch.load(path, weights_only=True).items()}
        for kind in ("perceptron", "convnet")
        for path in tmp_path.glob(f"*_{kind}.pth")
    }
    for path in tmp_path.glob("*.pth"):
        path.unlink()
    np.savez(tmp_path / "my_perceptron.npz", **states["perceptron"])
    header, content = {}, b""
    for name, value in states["convnet"].items():
        data = value.tobytes()
        kind, offsets = {"f": "F32", "i": "I64"}[value.dtype.kind], [len(content), len(content) + len(data)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": offsets}
        content += data
    text = json.dumps(header)
    whole = len(text).to_bytes(8, "little") + text.encode() + content
    (tmp_path / "my_convnet.safetensors").write_bytes(whole)
    packed = run("pack", ".", "--id", "400101204")
    assert packed.exit_code == 0, packed.output
    assert packed.output.count("they fit the model in your code") == 2
    np.savez(tmp_path / "my_perceptron.npz", **states["convnet"])
    packed = run("pack", ".", "--id", "400101204", "--out", tmp_path / "again")
    assert packed.exit_code == 1 and "no weights (Perceptron)" in packed.output
