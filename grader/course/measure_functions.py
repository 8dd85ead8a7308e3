"""`measures.py` of an assignment: the functions that its measures are computed by."""

import ast
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from grader.course.contradictions import fault
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError
from grader.domain.measure import Measure

MEASURES_FILE = "measures.py"


def measures_file(folder: Path, *, public_only: bool) -> Path:
    """Where an assignment's functions are: beside its checks, or beside a student's homework."""
    return folder / MEASURES_FILE if public_only else folder / "checks" / MEASURES_FILE


def require_functions(folder: Path, measures: Sequence[Measure], *, public_only: bool) -> None:
    """Refuse measures by functions that are not there; nothing is executed.

    Raises:
        CourseError: The file is missing, is not Python, or defines no such function.
    """
    wanted = [measure for measure in measures if measure.function]
    if not wanted:
        return
    path = measures_file(folder, public_only=public_only)
    if not path.is_file():
        raise fault(
            f"[[measure]] '{wanted[0].id}' is computed by {wanted[0].function}, and there is no {path.name} "
            f"in {path.parent.name}/. Write it there: def {wanted[0].function}(outputs, targets)."
        )
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise CourseError(f"{path.name}: it is not Python ({error}). Fix it.") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for measure in wanted:
        if measure.function not in defined:
            raise fault(
                f"[[measure]] '{measure.id}': {path.name} defines no function {measure.function}. Write it: "
                f"def {measure.function}(outputs, targets)."
            )


def measure_function(assignment: Assignment, measure: Measure) -> Callable[[Any, Any], Any]:
    """The function of a measure: (outputs (n, ...), targets (n, ...)) -> a number.

    Raises:
        CourseError: Its file cannot be executed.
    """
    path = measures_file(assignment.folder, public_only=assignment.public_only)
    spec = importlib.util.spec_from_file_location(f"_measures_of_{assignment.id}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise CourseError(
            f"{path.name}: executing it raised {type(error).__name__}: {text}. Fix it."
        ) from error
    function = getattr(module, measure.function, None)
    if not callable(function):
        raise CourseError(f"{path.name}: {measure.function} is not a function. Fix it.")
    return function  # type: ignore[no-any-return]
