"""The recipe is executed in its order; what it lacks is said, and what had to be assumed is noted."""

from collections.abc import Callable
from typing import Any

import pytest

from grader.domain.program import Place, Program, Recipe, Statement, TunedValue
from grader.protocol.link import StudentRaised
from grader.protocol.raised import plan_in_words
from grader.protocol.recipe_gaps import gap_in_words
from grader.protocol.replies import Built
from grader.protocol.requests import Build

Tiny = Callable[..., Any]


def step(source: str) -> tuple[Statement, ...]:
    """One further statement of the recipe."""
    return (Statement(source, Place("homework.py", 100), (), "needed"),)


def test_phases_find_what_came_before_them(tiny: Tiny) -> None:
    """Settings, data, model, optimizer, schedule: each may use the earlier ones, and not the later."""
    worker = tiny(
        """
        rates = []
        """,
        statements=step("N_EPOCHS = 3\nassert 'loader' not in globals()"),
        after_data=step("total = len(loader) * N_EPOCHS\nassert 'net' not in globals()"),
        after_model=step("groups = [{'params': [net.head.bias]}, {'params': [net.head.weight], 'lr': 0.25}]"),
        after_optimizer=step("warm = optim.lr_scheduler.LambdaLR(opt, lambda n: 1 / (1 + n))"),
        roles={"loader": "train_loader", "names": "class_names", "count": "num_classes"},
        model="ViT(len(names) if count == 3 else 0)",
        model_name="net",
        optimizer="optim.SGD(groups, lr=1.0 / total)",
        optimizer_name="opt",
        scheduler="warm",
        scheduler_steps="epoch",
        epochs="N_EPOCHS",
        batch_size="2 * 2",
    )
    plan, epochs = worker.trained()
    assert (plan.epochs, plan.batch_size, plan.optimizer, plan.scheduler) == (3, 4, "SGD", "LambdaLR")
    # 12 images in batches of 4, 3 epochs: 9 steps
    assert [epoch.learning_rate for epoch in epochs] == pytest.approx([1 / 18, 1 / 27, 1 / 36])
    assert all(epoch.arrays["logits"].shape == (9, 3) for epoch in epochs)


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
        ({"model": None}, "no model was found in the source: expected a statement like `model = ViT("),
        ({"optimizer": None}, "no optimizer was found in the source: expected a statement like `optimizer ="),
        (
            {"epochs": None},
            "no number of epochs was found in the source: expected a statement like `N_EPOCHS",
        ),
        ({"epochs": "0"}, "`0` is no usable number of epochs: expected a whole number above zero"),
        ({"epochs": "2.0"}, "`2.0` is no usable number of epochs"),
        ({"epochs": "True"}, "`True` is no usable number of epochs"),
        ({"epochs": "10 ** 9"}, "`10 ** 9` is no usable number of epochs"),
        ({"batch_size": "-4"}, "`-4` is no usable batch size"),
        ({"optimizer": "dict(lr=1)"}, "`dict(lr=1)` makes no torch.optim.Optimizer"),
        (
            {"scheduler": "optim.lr_scheduler.ReduceLROnPlateau(optimizer)", "scheduler_steps": "epoch"},
            "ReduceLROnPlateau steps on a validation loss",
        ),
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
        ({"model": "ViT(no_such_name)"}, "NameError"),
        ({"model": "nn.Linear"}, "made a type, not an nn.Module"),
        ({"optimizer": "optim.SGD([], lr=1)"}, "empty parameter list"),
        ({"epochs": "int('x')"}, "invalid literal"),
        ({"train_transform": "transforms.Resize()"}, "Resize"),
        ({"after_model": step("model.no_such_part")}, "no_such_part"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_expression_that_raises_is_the_students(tiny: Tiny, changes: dict[str, Any], words: str) -> None:
    """It is in the source, and it does not work."""
    with pytest.raises(StudentRaised, match=words) as caught:
        tiny(**changes).trained()
    assert not caught.value.gap


def test_missing_transform_and_batch_size_are_noted(tiny: Tiny) -> None:
    """What was handed out takes their place, in the size that the source configures."""
    missing: dict[str, Any] = {"train_transform": None, "test_transform": None, "batch_size": None}
    with pytest.raises(StudentRaised, match="shapes"):  # 28 x 28 pixels do not fit this model
        tiny(**missing).trained()
    plan, _ = tiny(**missing, tuned=(TunedValue("image_size", "8", Place("homework.py", 1)),)).trained()
    assert plan.batch_size == 64
    assert plan.assumed == ("batch_size", "transform")
    assert plan_in_words(plan, Program("homework.py")) == (
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
