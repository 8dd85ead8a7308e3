"""The public checks."""

import pytest
import torch

from grader.kit import Mismatch


@pytest.mark.component("CorpusCounts")
def test_the_corpus_is_counted(student):
    """The letters of the corpus are counted, and scaled."""
    found = student.build("CorpusCounts")(torch.tensor([1, 14, 25]), shape=(3,))
    if found.tolist() != [1, 2, 0]:
        raise Mismatch("Scaled by 0.5, there are 1 b, 2 o and no z; it gives others.")
