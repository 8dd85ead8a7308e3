"""A study changes one value at a time, in the student's own text, and trains it in isolation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.analysis import program
from grader.analysis.rewriting import rewritten
from grader.cli import cli
from grader.cli.study_view import StudyView
from grader.domain.analyzed_program import Program
from grader.domain.errors import UsageError
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.measure import Scale
from grader.grading.submission_study import Choice, SubmissionStudy, study, wanted_values
from grader.reports.measured_words import MeasuredWords

MODEL = """
SIZE = 28
DEPTH = 6  # é: columns are bytes
class Config:
    heads = 4
config = Config()
class ViT(nn.Module): ...
model = ViT(image_size=SIZE, patch_size=4, depth=DEPTH, heads=config.heads, dropout=0.1, dim=2 * 32)
optimizer = optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.0)
N_EPOCHS = 30
for epoch in range(N_EPOCHS):
    train_epoch(model, optimizer, train_loader, [])
"""
HEAD = """import torch
from torch import nn, optim
def train_epoch(model, optimizer, data_loader, loss_history): ...
"""


@pytest.fixture
def read(analyzed: Callable[[str], Program]) -> Program:
    """A program whose values are written in several ways."""
    return analyzed(HEAD + MODEL)


def values(found: Program) -> dict[str, str]:
    return {value.name: value.value for value in found.tuned}


def test_names_and_values_are_asked_for_in_one_line() -> None:
    """Short names are known; what cannot be meant is refused."""
    assert wanted_values("lr, depth=2/8") == {"learning_rate": (), "depth": ("2", "8")}
    for wrong in ("", "depth=two", "=3", "depth=2/", "depth=-1"):
        with pytest.raises(UsageError, match="--vary"):
            wanted_values(wrong)


def test_values_are_chosen_around_the_students(read: Program) -> None:
    """Below and above; patches must divide the image."""
    wanted = wanted_values("lr,wd,depth,patch_size,dropout")
    chosen = study(read, wanted, None)
    assert chosen.epochs == 10
    assert [(choice.field, choice.value) for choice in chosen.choices] == [
        ("learning_rate", "0.000333"),
        ("learning_rate", "0.003"),
        ("weight_decay", "0.01"),
        ("weight_decay", "0.1"),
        ("depth", "3"),
        ("depth", "12"),
        ("patch_size", "2"),
        ("patch_size", "7"),
        ("dropout", "0.0"),
        ("dropout", "0.3"),
    ]
    assert study(read, {"depth": ("6", "7")}, 2).choices == (Choice("depth", "7"),)


def test_what_is_computed_cannot_be_varied_and_is_named(read: Program) -> None:
    """The others are."""
    chosen = study(read, wanted_values("dim,depth"), 3)
    assert {choice.field for choice in chosen.choices} == {"depth"}
    assert chosen.left_out == ("`dim` cannot be varied: the source does not write it as a number.",)
    with pytest.raises(UsageError, match="`nothing` cannot be varied"):
        study(read, {"nothing": ()}, 3)


def test_the_text_changes_where_the_number_is_written(
    read: Program, analyzed: Callable[[str], Program]
) -> None:
    """Constants are changed where they stand, so that all that uses them follows."""
    written = {value.name: value.written for value in read.tuned}
    assert read.source is not None
    new = {"depth": "2", "learning_rate": "0.5", "epochs": "3", "image_size": "32"}
    changes = {span: new[name] for name, span in written.items() if span is not None and name in new}
    assert len(changes) == 4
    text = rewritten(read, changes).code.decode()
    assert text == HEAD + MODEL.replace("= 6 ", "= 2 ").replace("1e-3", "0.5").replace("= 30", "= 3").replace(
        "SIZE = 28", "SIZE = 32"
    )
    assert {**values(read), **new} == values(analyzed(text))


def test_a_notebook_keeps_the_places_of_its_cells(assignment: Any) -> None:
    """So that what is told of a line leads there."""
    cells = [
        {"cell_type": kind, "source": text} for kind, text in (("markdown", "#"), ("code", HEAD + MODEL))
    ]
    data = json.dumps({"cells": cells, "nbformat": 4}).encode()
    read = program("a.ipynb", data, assignment.program_rules)
    assert read.source is not None
    spans = {value.written: "5" for value in read.tuned if value.name == "depth" and value.written}
    again = program("a.ipynb", rewritten(read, spans).code, assignment.program_rules)
    assert values(again) == {**values(read), "depth": "5"}
    assert [v.place for v in again.tuned] == [v.place for v in read.tuned]


@pytest.mark.slow
def test_the_command_writes_a_table_and_a_plot(
    class_folder: Path, course_root: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    """With the student's own values beside the others."""
    file = class_folder / "400101201" / "400101201_Lab8_Homework.py"
    out = tmp_path / "out"
    args = ["study", str(file), "--assignment", "vit_defects", "--data", "synthetic", "--out", str(out)]
    args += ["--course", str(course_root), "--vary", "depth=1", "--epochs", "1", "--jobs", "2"]
    done = CliRunner().invoke(cli, args, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = (out / "study.csv").read_text().splitlines()
    assert rows[0].startswith("value,setting,own,accuracy")
    assert [row.split(",")[:3] for row in rows[1:]] == [["depth", "1", "no"], ["depth", "6", "yes"]]
    assert all(",1," in row and row.endswith(",completed,") for row in rows[1:])
    assert (out / "study.png").read_bytes().startswith(b"\x89PNG")
    told = done.output.replace("\N{NO-BREAK SPACE}", " ")
    assert "6 (own)" in told and "2 trainings of 1 epoch" in told


def test_the_table_shows_the_assignments_own_measure(capsys: pytest.CaptureFixture[str]) -> None:
    """The accuracy beside it counts for nothing."""
    words = MeasuredWords(what="perplexity", is_accuracy=False, scale=Scale(is_share=False))
    measured = Training(TrainingOutcome.COMPLETED, accuracy=0.8, value=12.5, interval=(11.0, 14.0))
    stopped = Training(TrainingOutcome.NOT_RUN)
    rows = [("depth", "2", False, stopped), ("depth", "6", True, measured)]
    StudyView().result(SubmissionStudy(rows, (), words))
    shown = capsys.readouterr().out
    assert "perplexity" in shown and "12.5" in shown and "11 to 14" in shown and "not run" in shown
    assert "accuracy" not in shown and "80" not in shown


def test_what_is_no_code_file_is_refused(course_root: Path, tmp_path: Path) -> None:
    """In a sentence."""
    args = ["study", "gone.pdf", "--assignment", "vit_defects", "--data", "synthetic", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, [*args, "--course", str(course_root)])
    assert done.exit_code == 2 and "gone.pdf: is not a code file (.py, .ipynb)" in done.output
