"""What keeps a source from telling how its model is trained: a worker says which, we say it in words."""

from typing import Literal

from grader.domain.program import Recipe
from grader.domain.quoting import as_code
from grader.protocol.requests import MOST_STATE, MOST_TENSORS

Gap = Literal[
    "",
    "no_model",
    "unusable_batch_size",
    "too_many_weights",
    "too_many_epochs",
    "nothing_trains",
    "made_once",
    "no_step",
    "other_model",
    "loop_raised",
    "settings_raised",
]

# in which the student's code raised something
RAISED: tuple[Gap, ...] = ("loop_raised", "settings_raised")


def gap_in_words(gap: Gap, recipe: Recipe) -> str:
    """What is missing, as a clause.

    Args:
        gap: Not empty; of a loop that raised, where and what is for the caller to say.
        recipe: What was read from the source: expressions are quoted from here, not from the worker.
    """
    match gap:
        case "no_model":
            return "no model was found in the source: no statement makes one of the graded class"
        case "unusable_batch_size":
            return f"{_of(recipe.batch_size)} is not a usable batch size: expected a whole number above zero"
        case "made_once":
            return "the model was made with something else than numbers and texts, so it cannot be made again"
        case "nothing_trains":
            return "nothing in the source trains a model of the graded class"
        case "no_step":
            return "it took no step on the training images"
        case "other_model":
            return "the weights that are saved belong to no model of the graded class that was trained"
        case "too_many_epochs":
            return "it trains several models, for more epochs than can be kept"
        case "too_many_weights":
            most = f"{MOST_STATE // 1_000_000} MB in {MOST_TENSORS:,} tensors"
            return f"the model has more weights than can be measured: at most {most}"
        case "settings_raised":
            return "what its images are prepared by could not be executed by itself"
        case _:
            return "the loop could not be carried on"


def _of(expression: str | None) -> str:
    return as_code(expression) if expression else "what was found"
