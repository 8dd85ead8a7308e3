"""The public checks."""

import csv
import io

import pytest
import torch

from grader.kit import Mismatch


@pytest.mark.component("LetterCounts")
def test_letters_are_counted(student):
    """Small and capital letters are counted."""
    found = student.build("LetterCounts", "Abba, boo")(torch.tensor([0, 1, 14, 25]), shape=(4,))
    if found.tolist() != [2, 3, 2, 0]:
        raise Mismatch("In `Abba, boo` there are 2 a, 3 b, 2 o and no z; it counts others.")


@pytest.mark.component("survey")
def test_metrics_have_a_row_for_each_letter(student):
    """The metrics have a row for each letter."""
    text = student.file("metrics").decode("utf-8", "replace")
    rows = list(csv.DictReader(io.StringIO(text)))
    if [row.get("letter") for row in rows] != [chr(code) for code in range(ord("a"), ord("z") + 1)]:
        raise Mismatch(f"The metrics have {len(rows)} rows; asked is one for each of the letters a to z.")


@pytest.mark.component("survey")
def test_the_curve_is_not_the_metrics(student):
    """The curve is a file of its own."""
    if student.file("curve") == student.file("metrics"):
        raise Mismatch("The curve has the metrics in it.")


@pytest.mark.component("summary")
def test_the_summary_names_both_ends(student):
    """The summary names the commonest and the rarest letter."""
    text = student.file("summary").decode("utf-8", "replace")
    if "commonest" not in text:
        raise Mismatch("The summary does not name the commonest letter.")
    if "rarest" not in text:
        raise Mismatch(
            "The summary names the commonest letter and not the rarest.",
            diagnosis="summary_without_the_rarest",
        )
