"""The public checks."""

import pytest


@pytest.mark.component("SplitHeads")
def test_there_are_as_many_heads_as_asked_for(student, variant):
    """SplitHeads makes as many heads as were drawn for you."""
    heads = variant["heads"]
    student.build("SplitHeads", 16)(student.tensor(2, 3, 16), shape=(2, heads, 3, 16 // heads))


@pytest.mark.component("Pool")
def test_pool_leaves_the_features(student):
    """Pool gives a vector of features for each image."""
    student.build("Pool")(student.tensor(2, 3, 16), shape=(2, 16))
