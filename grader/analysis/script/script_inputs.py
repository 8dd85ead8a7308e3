"""What a training script is read from: the program, and the assignment's names in it.

Nothing is decided here.

Tests: tests/analysis/script/test_which_model_counts.py
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grader.analysis.effects import Aliases, Effects
from grader.analysis.recognized_roles import RoleReader
from grader.analysis.units import Unit


@dataclass(frozen=True)
class ScriptInputs:
    """What a script is read from.

    Attributes:
        units: The program.
        kinds: Graded names, as they are defined -> `class` or `function`.
        model_class: The graded class of the model, as it is defined.
        trainer: The graded function that trains for an epoch, as it is defined.
        evaluators: The graded functions that measure.
        data: Names of data (loaders, data sets, class names), in functions too -> role.
        top_data: The names of data at top level -> role.
        checkpoint: What the name of the checkpoint's file contains.
        file_stem: What the names of all files that are handed in contain.
        final: The variable that counts, if the assignment states one.
    """

    units: tuple[Unit, ...]
    aliases: Aliases
    effects: Effects
    reader: RoleReader
    kinds: Mapping[str, str]
    model_class: str | None
    trainer: str | None
    evaluators: tuple[str, ...]
    data: Mapping[str, str]
    top_data: Mapping[str, str]
    checkpoint: str
    file_stem: str
    final: str
