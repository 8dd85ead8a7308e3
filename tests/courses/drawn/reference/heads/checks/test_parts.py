"""The parts, compared with the solution's."""

import pytest

from grader.kit import Mismatch, same


def compared(student, reference, component, *arguments):
    """Raises unless the student's part answers as the solution's does."""
    x = student.tensor(2, 3, 16)
    found = student.build(component, *arguments)(x)
    for mistake in reference.mistakes_of(component):
        if same(found, reference.wrong(mistake, *arguments)(x)):
            raise reference.named(mistake.id)
    if not same(found, getattr(reference, component)(*arguments)(x)):
        raise Mismatch(f"{component} gives something else than asked for.")


@pytest.mark.component("SplitHeads")
def test_heads_are_the_solutions(student, reference):
    """SplitHeads cuts the features into consecutive parts, one for each head."""
    compared(student, reference, "SplitHeads", 16)


@pytest.mark.component("Pool")
def test_pool_is_the_solutions(student, reference):
    """Pool takes the mean, or the maximum, over the tokens."""
    compared(student, reference, "Pool")
