"""The student id that code states."""

import pytest

from grader.course.variant_values import written_id


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('import os\nSTUDENT_ID = "400101204"  # mine\n', ("400101204", 2)),
        ("STUDENT_ID = 400101204\n", ("400101204", 1)),
        ('STUDENT_ID = "1"\nSTUDENT_ID = "2"\n', ("2", 2)),
        ('STUDENT_ID = ""\n', None),
        ("STUDENT_ID = input()\n", None),
        ('def f():\n    STUDENT_ID = "1"\n', None),
        ('NAME = "1"\n', None),
        ("%pip install x\nSTUDENT_ID = 1\n", None),
    ],
)
def test_the_id_that_code_states(source: str, found: tuple[str, int] | None) -> None:
    assert written_id(source) == found
