"""The recipe is executed in its order; what it lacks is said, and what had to be assumed is noted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.domain.analyzed_program import Place, Recipe, Statement, TunedValue
from grader.protocol.error_kinds import gap_in_words
from grader.protocol.link import StudentRaised
from grader.protocol.replies import Built
from grader.protocol.requests import Build
from grader.protocol.worker_reports import plan_in_words

Tiny = Callable[..., Any]


def step(source: str) -> tuple[Statement, ...]:
    """One further statement of the recipe."""
    return (Statement(source, Place("homework.py", 100), (), "needed"),)


def test_model_for_looking_at_knows_the_classes(tiny: Tiny) -> None:
    """`$model` is the configured one, with one blank image in the place of the data."""
    worker = tiny(
        roles={"names": "class_names", "loader": "train_loader"},
        after_data=step("count = len(names) + 0 * len(loader)"),
        model="ViT(num_classes=count)",
    )
    built = worker.ask(Build("$model"), Built)
    assert {p.name: p.shape for p in built.parameters} == {"head.weight": (3, 64), "head.bias": (3,)}
    assert (built.modules[0].type, built.modules[0].origin) == ("ViT", "homework")


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"batch_size": "-4"}, "`-4` is not a usable batch size"),
    ],
    ids=lambda value: next(iter(value.items())).__repr__() if isinstance(value, dict) else "",
)
def test_what_the_recipe_lacks_is_said_and_is_not_the_codes_fault(
    tiny: Tiny, missing: dict[str, Any], words: str
) -> None:
    """A sentence for a person, who looks at it: it never costs points by itself."""
    with pytest.raises(StudentRaised) as caught:
        tiny(**missing).trained()
    assert caught.value.gap
    assert words in gap_in_words(caught.value.gap, Recipe(**missing))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "ViT(1, 2, 3)"}, "positional arguments"),
        ({"train_transform": "transforms.Resize()"}, "Resize"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_expression_that_raises_is_the_students(tiny: Tiny, changes: dict[str, Any], words: str) -> None:
    """It is in the source, and it does not work."""
    with pytest.raises(StudentRaised, match=words) as caught:
        tiny(**changes).trained()
    assert not caught.value.gap


def test_missing_transform_and_batch_size_are_noted(tiny: Tiny) -> None:
    """What was handed out takes their place, in the size that the source configures, else the images' own."""
    missing: dict[str, Any] = {"train_transform": None, "test_transform": None, "batch_size": None}
    with pytest.raises(StudentRaised, match="shapes"):  # 12 x 12 pixels do not fit this model
        tiny(**missing, tuned=(TunedValue("image_size", "12", Place("homework.py", 1)),)).trained()
    plan, _ = tiny(**missing).trained()
    assert plan.batch_size == 64
    assert plan.assumed == ("batch_size", "transform")
    assert plan_in_words(plan) == (
        "No batch size was found; the handed-out 64 was used.",
        "No transform was found; the handed-out one was used.",
    )


def test_one_transform_serves_both_sides(tiny: Tiny) -> None:
    """A source that transforms only its training images still has its test images transformed."""
    for transform in ({"train_transform": None}, {"test_transform": None}):
        plan, epochs = tiny(**transform).trained()
        assert len(epochs) == 2 and plan.assumed == ()


def test_device_of_the_source_is_ours(tiny: Tiny) -> None:
    """The student's `device` may name a GPU that is not there."""
    worker = tiny(
        "device = torch.device('cuda')",
        after_data=step("assert device == torch.device('cpu'), device"),
        statements=step("device = torch.device('cuda')"),
    )
    plan, epochs = worker.trained()
    assert plan.device == "cpu"
    assert len(epochs) == 2
    assert worker.ask(Build("$model"), Built).parameters


COLLATE = """
def blank(samples):
    images, labels = torch.utils.data.default_collate(samples)
    return 0 * images, labels

def pairs(samples):
    return [image for image, _ in samples], [label for _, label in samples]
"""


def test_batches_are_made_as_the_training_loader_makes_them(tiny: Tiny) -> None:
    """An augmentation in `collate_fn` is the student's own, too; one that no batch comes of is not used."""
    trained = [tiny(COLLATE, collate=made).trained() for made in (None, "blank", "pairs")]
    plain, blank, no_batch = (epochs[-1].arrays["logits"] for _, epochs in trained)
    assert np.array_equal(plain, no_batch) and not np.array_equal(plain, blank)
    assert [plan.assumed for plan, _ in trained] == [(), (), ("collate",)]
    assert "PyTorch's own was used" in plan_in_words(trained[-1][0])[0]
