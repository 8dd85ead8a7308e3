"""The accuracy that students report is found in what notebooks print and reports say, and nothing else is."""

import json

import pytest

from grader.analysis import program
from grader.analysis.stated_values import claim_in_outputs, claim_in_report, epochs_in_outputs
from grader.domain.assignment import ProgramRules


@pytest.mark.parametrize(
    ("printed", "accuracy"),
    [
        ("Test Accuracy: 83.52%", 0.8352),
        ("test acc = 0.8352", 0.8352),
        ("Accuracy: 83.52", 0.8352),
        ("Average test loss: 0.5312  Accuracy:451/540 (83.52%)", 0.8352),
        ("Test loss: 0.53 | Test acc: 83.5 %", 0.835),
        ("Epoch 30/30 - train acc: 99.1% - val acc: 81.0%", 0.81),
        ("Final test accuracy: 0.8352\nBest val accuracy: 0.9", 0.8352),
        ("val accuracy 80.0%\nval accuracy 82.0%", 0.82),
        ("Test Accuracy: 70.0%\nTest Accuracy: 75.0%", 0.75),
        ("Train Loss 0.1 Train Accuracy 99.00%\nTest Accuracy 61.00%\nTrain Accuracy: 99.9%", 0.61),
        ("  0%|   | 0/9 Accuracy: 10.0%\r 50%|## | Accuracy: 50.0%\r100%|###| Accuracy: 80.0%\n", 0.80),
        ("دقت تست: ۸۳٫۵٪", 0.835),
        ("83.5% accuracy on the test set", 0.835),
        ("Training accuracy: 99.0%", None),
        ("train_acc=0.99", None),
        ("Target accuracy: 60%", None),
        ("accuracy for class 3 in epoch 7", None),
        ("Accuracy: nan", None),
        ("loss 0.53", None),
        ("Accuracy: 0", None),
        ("", None),
    ],
)
def test_outputs_end_with_a_claim(printed: str, accuracy: float | None) -> None:
    """The last of what is most clearly of the test images."""
    claim = claim_in_outputs([("cell 3", printed)])
    assert (claim.accuracy if claim else None) == (pytest.approx(accuracy) if accuracy else None)
    if claim:
        assert (claim.source, claim.cell) == ("cell 3", "cell 3") and claim.text


REPORT = [
    "Homework 8\nThe assignment asks for at least 60% test accuracy.\nMust reach 60% accuracy.",
    "With depth 4 the accuracy was 71.2%. A CNN would reach 95% accuracy here.\n\n"
    "Our final test\naccuracy is 83.5 % in the end. The training accuracy was 99%.",
    "Random guessing gives 16.7% accuracy.",
]


def test_a_report_names_its_result() -> None:
    """Not what is asked for, not what others would reach; across the end of a line."""
    claim = claim_in_report("report.pdf", REPORT)
    assert claim is not None
    assert (claim.accuracy, claim.source) == (0.835, "report.pdf, page 2")
    assert claim.text == "Our final test accuracy is 83.5 % in the end."
    assert claim_in_report("report.pdf", [REPORT[0], REPORT[2]]) is None


@pytest.mark.parametrize(
    ("printed", "epochs"),
    [
        ("Epoch: 1\nEpoch: 2\nEpoch: 30", 30),
        ("Epoch 7/30, loss 0.5", 7),
        ("[epoch 12] loss", 12),
        ("epoch (3 of 5)", 3),
        ("took 30 epochs", None),
        ("one epoch 12 s", None),
        ("", None),
    ],
)
def test_epochs_are_counted_as_they_are_shown(printed: str, epochs: int | None) -> None:
    """The highest number."""
    assert epochs_in_outputs([("cell 1", printed)]) == epochs


def test_a_notebook_brings_its_outputs() -> None:
    """Streams and results of all cells; errors are none."""

    def cell(source: str, *outputs: object) -> dict[str, object]:
        return {"cell_type": "code", "source": source, "outputs": list(outputs)}

    cells = [
        cell("x = 1", {"output_type": "stream", "text": ["Epoch 1\n", "Epoch 9\n"]}),
        cell("y = 2", {"output_type": "execute_result", "data": {"text/plain": "'Test accuracy: 66.0%'"}}),
        cell("z = 3", {"output_type": "error", "text": "Test accuracy: 99.0%"}, "nonsense", {"data": 3}),
        cell("w = 4", {"output_type": "stream", "text": 5}),
    ]
    data = json.dumps({"cells": cells, "nbformat": 4}).encode()
    found = program("a.ipynb", data, ProgramRules())
    assert found.claim is not None
    assert (found.claim.accuracy, found.claim.source) == (0.66, "In [2], cell 2")
    assert found.shown_epochs == 9
    script = program("a.py", b"print('Test accuracy: 99.0%')", ProgramRules())
    assert (script.claim, script.shown_epochs) == (None, None)
