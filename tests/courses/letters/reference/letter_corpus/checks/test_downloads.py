"""Checks that students do not have."""

import pytest
import torch

from grader.kit import Mismatch


@pytest.mark.component("Scaled")
def test_the_download_is_there(student, reference):
    """What would be downloaded is found."""
    x = student.tensor(3)
    if not torch.equal(student.build("Scaled")(x, shape=(3,)), 0.5 * x):
        raise Mismatch("It does not scale by 0.5.")


@pytest.mark.component("CorpusCounts")
def test_the_reference_counts_the_same(student, reference):
    """The judge finds the corpus, too."""
    with open("corpus.txt", encoding="utf-8") as file:
        count = file.read().lower().count("t")
    found = student.build("CorpusCounts")(torch.tensor([19]), shape=(1,))
    if found.item() != count / 2:
        raise Mismatch(f"There are {count} t.")
