"""A submission's code as units, and of these the student's own."""

from collections.abc import Iterable
from pathlib import PurePath

from grader.analysis.source import TOO_DEEP, source
from grader.domain.errors import SubmissionError
from grader.similarity.normalized_code import units
from grader.similarity.work import Code, CodeUnit


def read_code(name: str, data: bytes) -> Code:
    """The code of a script or a notebook. Call it where a hostile file can do no harm.

    Raises:
        SubmissionError: It cannot be read; the sentence says where and why.
    """
    name = PurePath(name).name
    try:
        read = source(name, data)
        return Code(read.text, units((cell.file, cell.tree) for cell in read.cells))
    except (RecursionError, MemoryError) as error:
        raise SubmissionError(f"{name}: {TOO_DEEP}") from error


def given_forms(template: Code) -> frozenset[tuple[str, ...]]:
    """What the course handed out, by the form of each unit."""
    return frozenset(unit.form for unit in template.units)


def own_units(code: Code, given: frozenset[tuple[str, ...]]) -> Iterable[CodeUnit]:
    """The units that the course did not hand out in the same form, under whatever names."""
    return (unit for unit in code.units if unit.form not in given)
