"""Whose exception: the student's, ours, or a gap in the recipe. Only the first may cost points.

It marks what is raised while the student's code runs. For the rest `service` asks whether a line of the
student's was executed. `grader.judge.verdict` and `grader.scoring` decide what a fault costs.

Tests: tests/worker/test_components.py, tests/worker/test_worker_training.py
"""

import contextlib
from collections.abc import Iterator

from grader.domain.errors import Interruption
from grader.protocol.recipe_gaps import Gap
from grader.protocol.replies import Flaw


class StudentFault(Interruption):
    """The student's code raised, or made something that it should not.

    Attributes:
        error: What it raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(type(error)))
        self.error = error


class RecipeError(Interruption):
    """The student's source does not say how to build or train the model.

    Attributes:
        gap: What is missing.
        error: What the student's loop raised, where it is that.
    """

    def __init__(self, gap: Gap, error: BaseException | None = None) -> None:
        super().__init__(gap)
        self.gap: Gap = gap
        self.error = error


class SeenError(Interruption, TypeError):
    """What the student's code made is not what it should be.

    Attributes:
        seen: In which way.
    """

    def __init__(self, seen: Flaw, words: str) -> None:
        super().__init__(words)
        self.seen: Flaw = seen


class UnusableGpuError(Interruption):
    """The run was told to use a GPU that PyTorch cannot use: the operator's, never the student's."""


@contextlib.contextmanager
def students_code() -> Iterator[None]:
    """Whatever is raised within is the student's.

    Raises:
        StudentFault: In its place.
    """
    try:
        yield
    except (GeneratorExit, RecipeError, StudentFault):
        raise
    except BaseException as error:
        raise StudentFault(error) from error
