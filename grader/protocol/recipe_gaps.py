"""What keeps a source from telling how its model is trained: a worker says which, we say it in words."""

from typing import Literal

from grader.domain.program import Recipe
from grader.domain.quoting import as_code
from grader.protocol.requests import MOST_STATE, MOST_TENSORS

Gap = Literal[
    "",
    "no_epochs",
    "no_model",
    "no_optimizer",
    "unusable_epochs",
    "unusable_batch_size",
    "foreign_optimizer",
    "validated_schedule",
    "batch_schedule",
    "too_many_weights",
    "loop_raised",
]

_MISSING = "no {} was found in the source: expected a statement like `{}`"


def gap_in_words(gap: Gap, recipe: Recipe) -> str:
    """What is missing, as a clause.

    Args:
        gap: Not empty; of a loop that raised, where and what is for the caller to say.
        recipe: What was read from the source: expressions are quoted from here, not from the worker.
    """
    match gap:
        case "no_epochs":
            return _MISSING.format("number of epochs", "N_EPOCHS = 30")
        case "no_model":
            return _MISSING.format("model", "model = ViT(image_size=28, ...)")
        case "no_optimizer":
            return _MISSING.format("optimizer", "optimizer = optim.Adam(...)")
        case "unusable_epochs":
            return f"{_of(recipe.epochs)} is no usable number of epochs: expected a whole number above zero"
        case "unusable_batch_size":
            return f"{_of(recipe.batch_size)} is no usable batch size: expected a whole number above zero"
        case "foreign_optimizer":
            return f"{_of(recipe.optimizer)} makes no torch.optim.Optimizer"
        case "validated_schedule":
            return "ReduceLROnPlateau steps on a validation loss, which this form of training has not"
        case "batch_schedule":
            return (
                "the schedule is stepped for every batch, but not by train_epoch: this form of training "
                "would leave the learning rate as it is at the beginning"
            )
        case "too_many_weights":
            most = f"{MOST_STATE // 1_000_000} MB in {MOST_TENSORS:,} tensors"
            return f"the model has more weights than can be measured: at most {most}"
        case _:
            return "the loop could not be carried on"


def _of(expression: str | None) -> str:
    return as_code(expression) if expression else "what was found"
