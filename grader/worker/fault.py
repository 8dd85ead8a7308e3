"""Telling the student's exceptions from ours: only the former may cost points."""

import contextlib
from collections.abc import Iterator


class StudentFault(Exception):
    """The student's code raised, or made something that it should not.

    Attributes:
        error: What it raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(type(error)))
        self.error = error


class RecipeError(Exception):
    """The student's source does not say how to build or train the model; the message says what is missing."""


class UnusableGpuError(Exception):
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
