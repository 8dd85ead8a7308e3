"""The public checks."""

import pytest
import torch

from grader.kit import Mismatch

LETTERS = torch.tensor([0, 1, 14, 25])


@pytest.mark.component("LetterCounts")
def test_letters_are_counted(student, class_names):
    """Small and capital letters are counted."""
    if class_names != ():
        raise AssertionError("an assignment without data has no classes")
    found = student.build("LetterCounts", "Abba, boo")(LETTERS, shape=(4,))
    if found.tolist() != [2, 3, 2, 0]:
        raise Mismatch("In `Abba, boo` there are 2 a, 3 b, 2 o and no z; it counts others.")
