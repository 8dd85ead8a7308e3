"""A handed-in file rendered in the parser that parses it, as a person reads it. Nothing of it is executed.

nbconvert is imported in a parser only, and at its start only where views are asked for: that takes as long as
all else that a parser loads.
"""

import math
from collections.abc import Mapping
from typing import Any

from grader.domain.errors import SubmissionError
from grader.domain.submission_view import View
from grader.files.typed_json import validator

_SECONDS = 5  # of processor time that rendering may take


def view_answer(name: str, data: bytes, modules: Mapping[str, bytes] | None = None) -> dict[str, Any]:
    """The answer with the view of a file, or without one where it cannot be rendered.

    Args:
        modules: The modules that it imports, by name.
    """
    import resource  # only where submissions are graded, on Linux

    from grader.analysis.view import viewed

    # Markdown can take a renderer hours; what ends then is this process, which has sent the program already
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    most = math.ceil(used) + _SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))  # the first of a namespace ignores the soft limit
    try:
        return {"view": validator(View).dump_python(viewed(name, data, modules), mode="json")}
    except SubmissionError as error:
        return {"refused": str(error)}
    except (MemoryError, RecursionError):
        return {"exhausted": True}
    except Exception as error:  # noqa: BLE001 - what nobody thought of yet costs the view and nothing else
        return {"failed": f"{type(error).__name__}: {error}"}


def warm() -> None:
    """Load what rendering the first file would load."""
    from grader.analysis import view

    view.warm()
    validator(View)
