"""Checks that students do not have."""

import pytest
import torch

from grader.kit import Mismatch


@pytest.mark.component("LetterCounts")
def test_capitals_count_as_small_letters(student, reference):
    """A text in capitals has the same counts."""
    found = student.build("LetterCounts", "AAAb")(torch.tensor([0, 1]), shape=(2,))
    if found.tolist() == [0, 1]:
        raise reference.named("small_letters_only")
    if found.tolist() != [3, 1]:
        raise Mismatch("In `AAAb` there are 3 a and 1 b; it counts others.")
