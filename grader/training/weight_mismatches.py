"""Why weights are not those of the submitted model, in words."""

import re
from itertools import chain

from grader.domain.program import Program
from grader.domain.quoting import named
from grader.protocol.replies import Misfit

MOST_PARTS = 8  # of a tensor's name
MOST_COUNTED = 1_000_000
_TENSORS = frozenset(
    {"weight", "bias", "in_proj_weight", "in_proj_bias", "out_proj", "running_mean", "running_var"}
)
_WORD = re.compile(r"\w+")


def misfit_in_words(found: Misfit | None, program: Program) -> str:
    """What keeps weights from fitting, as a clause.

    The worker may have the hidden images: a tensor's name is told only if it is made of the source's words.
    """
    counts = (found.missing, found.unknown, found.tensors, *chain(*found.shapes)) if found is not None else ()
    if found is None or any(not 0 <= count <= MOST_COUNTED for count in counts):
        return "its tensors are others"
    words = {word for text in (program.source or {}).values() for word in _WORD.findall(text)} | _TENSORS
    parts = found.example.split(".")
    known = len(parts) <= MOST_PARTS and all(part.isdecimal() or part in words for part in parts)
    if found.shapes:
        stored, expected = (tuple(side for side in shape[:5]) for shape in (*found.shapes, (), ())[:2])
        tensor = named(found.example) if known else "a tensor"
        return f"{tensor} has the shape {stored} in it and {expected} in the model"
    told = (
        f"{found.missing} of the model's {found.tensors} tensors are missing in it and {found.unknown} of "
        "its own are not in the model"
    )
    which = "is missing" if found.missing else "is not in the model"
    return f"{told} (for example {named(found.example)} {which})" if known else told
