"""docs/measures.md: its examples work, and no key is missing."""

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from grader.course.assignment_tables import (
    MeasureTable,
    ProgramTable,
    RubricTable,
    StudyFileTable,
    TrainingCallTable,
)
from grader.course.dataset_file import load_dataset, load_examples
from grader.course.measures import PLACEHOLDERS, measures, study_table
from grader.course.rubric import breakpoints
from grader.domain.assignment import Component
from grader.domain.errors import UsageError

PAGE = (Path(__file__).parents[2] / "docs" / "measures.md").read_text(encoding="utf-8")
PARTS = (
    Component("GPT", "class", "characters, block_size, dim, depth, heads"),
    Component("fit", "function", "model, tokens, epochs, learning_rate"),
)


def example(name: str) -> str:
    """The text of a file that the page shows."""
    found = re.search(rf"<!-- example: {name} -->\n\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1]


def tables() -> dict[str, Any]:
    """The page's TOML, in which a call belongs to the measure above it."""
    measure, rubric, call, _, data = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    return tomllib.loads("\n".join((data, measure, call, rubric)))


def test_the_tables_say_what_they_seem_to() -> None:
    read = tables()
    (measure,) = measures([MeasureTable(**each) for each in read["measure"]], ProgramTable(), PARTS)
    assert measure.scale.lower_is_better and measure.call is not None
    assert measure.call.given["tokens"] == "{inputs}" and measure.call.arguments["characters"] == 24
    found = breakpoints(RubricTable(**read["rubric"][0]), measure, 0)
    assert found == ((1.05 * 2.31, 15.0), (3.0, 9.0), (4.2, 0.0))


def test_the_study_is_read() -> None:
    """Its table on the page, for an assignment with such a model."""
    table = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[3])["study"]
    parts = (
        Component("VisionTransformer", "class", "depth, dim"),
        Component("fit", "function", "model, data, epochs"),
    )
    study = study_table(StudyFileTable(**table), parts, ["study"])
    assert study.columns == ("depth", "dim", "epochs") and study.rows == 2
    for key in {*StudyFileTable.model_fields} - {*TrainingCallTable.model_fields}:
        assert f"\n{key} = " in PAGE


def test_the_data_and_the_measure_work(tmp_path: Path) -> None:
    """Guessing costs the code length of the letters; what is known costs less."""
    (tmp_path / "letters.py").write_text(example("letters.py"), encoding="utf-8")
    one, other = (load_examples(tmp_path, "letters", None, seed=seed) for seed in (1, 2))
    assert one.train_inputs.shape[1:] == (33,) and one.test_inputs.shape[1:] == (32,)
    assert not np.array_equal(one.test_targets[:50], other.test_targets[:50])
    names: dict[str, Any] = {}
    exec(example("measures.py"), names)  # noqa: S102 - it is ours
    count = len(one.test_targets)
    guessed = names["bits_per_character"](np.zeros((count, 32, 24)), one.test_targets)
    assert math.isclose(guessed, math.log2(24))
    known = np.zeros((count, 32, 24))
    known[np.arange(count), -1, one.test_targets] = 50
    assert names["bits_per_character"](known, one.test_targets) < 1e-6


def test_every_key_is_explained() -> None:
    """Those of [[measure]], of its call, and all placeholders."""
    for key in {*MeasureTable.model_fields, *TrainingCallTable.model_fields}:
        assert re.search(rf"^\|.*`{key}`.*\|", PAGE, re.MULTILINE), key
    for placeholder in PLACEHOLDERS:
        assert f"`{placeholder}`" in PAGE


def test_a_data_set_of_images_is_a_file(tmp_path: Path) -> None:
    """docs/data-sets.md: the file as it is, with a folder for each class."""
    page = (Path(__file__).parents[2] / "docs" / "data-sets.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: textures.py -->\n\n```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    (tmp_path / "textures.py").write_text(found[1], encoding="utf-8")
    for name in ("denim", "linen", "wool"):
        (tmp_path / "cloth" / name).mkdir(parents=True)
        for number in range(4):
            pixels = np.full((5, 6), 20 * number + len(name), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "cloth" / name / f"{number}.png")
    splits = load_dataset(tmp_path, "textures", tmp_path / "cloth", seed=42)
    assert splits.classes == ("denim", "linen", "wool") and splits.train_images.shape == (9, 5, 6)
    with pytest.raises(UsageError):
        load_dataset(tmp_path, "textures", None, seed=42)
