"""Why weights are not those of the submitted model, in words."""

import itertools
import re
from collections.abc import Set
from itertools import chain

from grader.domain.formatting import counted
from grader.domain.program import Program
from grader.domain.quoting import named
from grader.protocol.replies import Misfit

MOST_PARTS = 8  # of a tensor's name
MOST_COUNTED = 1_000_000
# arguments that make a tensor as large as it is, or a list as long
SIZES = ("depth", "dim", "heads", "dim_head", "mlp_dim", "channels", "image_size", "patch_size")
_TENSORS = frozenset(
    {"weight", "bias", "in_proj_weight", "in_proj_bias", "out_proj", "running_mean", "running_var"}
)
_WORD = re.compile(r"\w+")


def misfit_in_words(found: Misfit | None, program: Program) -> str:
    """What keeps weights from fitting, as a clause.

    The worker may have the hidden images: a tensor's name is told only if it is made of the source's words.
    """
    counts: tuple[int, ...] = ()
    if found is not None:
        counts = (found.missing, found.unknown, found.tensors, *chain(*found.shapes), *found.entries)
    if found is None or any(not 0 <= count <= MOST_COUNTED for count in counts):
        return "its tensors are others"
    words = {word for text in (program.source or {}).values() for word in _WORD.findall(text)} | _TENSORS
    parts = found.example.split(".")
    known = len(parts) <= MOST_PARTS and all(part.isdecimal() or part in words for part in parts)
    if found.shapes:
        stored, expected = (tuple(side for side in shape[:5]) for shape in (*found.shapes, (), ())[:2])
        tensor = named(found.example) if known else "a tensor"
        told = f"{tensor} has the shape {stored} in it and {expected} in the model"
        sides = {mine for other, mine in zip(stored, expected, strict=False) if other != mine}
        return told + _sizes_in_code(program, sides)
    if len(found.entries) == 2 and found.entries[0] != found.entries[1]:
        kept, built = found.entries
        where = (
            named(".".join(itertools.takewhile(lambda part: not part.isdecimal(), parts))) if known else ""
        )
        kept_in_words = counted(kept, "entry", "entries")
        told = f"{where or 'a list of layers'} has {kept_in_words} in it and {built} in the model"
        return told + _sizes_in_code(program, {built})
    told = (
        f"{found.missing} of the model's {found.tensors} tensors are missing in it and {found.unknown} of "
        "its own are not in the model"
    )
    which = "is missing" if found.missing else "is not in the model"
    return f"{told} (for example {named(found.example)} {which})" if known else told


def _sizes_in_code(program: Program, sides: Set[int]) -> str:
    """Which of the sizes that the student chose are these numbers: what was probably changed since."""
    chosen = {value.name: value.value for value in program.tuned if value.name in SIZES}
    same = [f"{name}={value}" for name, value in chosen.items() if value.isdecimal() and int(value) in sides]
    if not same:
        whole = {name: int(value) for name, value in chosen.items() if value.isdecimal()}
        if (side := whole.get("image_size")) and (patch := whole.get("patch_size")):
            number = (side // patch) ** 2
            same = [f"image_size={side} and patch_size={patch}"] if sides & {number, number + 1} else []
    return f" (in the code: {' or '.join(same)})" if same else ""
