"""`grader program` says which model counts, what trains it, and what is left alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli

STUDY = """
for depth in (1, 2):
    sizes = dict(image_size=28, patch_size=4, num_classes=6, channels=1)
    candidate = ViT(dim=64, depth=depth, heads=4, mlp_dim=128, **sizes)
    tuner = optim.Adam(candidate.parameters(), lr=1e-3)
    train_epoch(candidate, tuner, train_loader, [])
"""


def told(folder: Path, text: str, *more: str, code: int = 0) -> str:
    """What the command prints of a homework."""
    file = folder / "homework.py"
    file.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli, ["program", str(file), "--assignment", "vit_defects", *more])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.slow
def test_a_study_is_left_alone(tmp_path: Path, solved: str) -> None:
    output = told(tmp_path, solved + STUDY)
    assert "model, as its weights are saved\n" in output
    assert "epochs in the loop at line " in output and "AdamW, learning rate " in output
    line = next(
        n for n, text in enumerate((solved + STUDY).split("\n"), 1) if text.startswith("for depth in")
    )
    assert f"left alone  line {line}: it trains another model than the one that counts" in output
    assert f"homework.py:{line}  for depth in (1, 2):" in output


@pytest.mark.slow
def test_the_code_is_what_is_executed(tmp_path: Path, solved: str, analyzed: Callable[..., object]) -> None:
    """With the lines of the file, and the grader's data in the place of the student's."""
    output = told(tmp_path, solved, "--code")
    executed = output.partition("Executed to train")[2]
    number = next(n for n, text in enumerate(solved.split("\n"), 1) if text.startswith("model = ViT("))
    assert f"{number:5}  model = ViT(" in executed
    assert "ImageFolder" not in executed and "plt." not in executed


def test_without_training_it_says_so(tmp_path: Path) -> None:
    assert "nothing: no statement trains a model of the graded class" in told(tmp_path, "x = 1\n", code=1)
