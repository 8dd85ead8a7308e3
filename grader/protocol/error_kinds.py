"""Kinds of errors that a worker reports: an exception's name, refused memory, a gap in the training recipe.

It decides which names of exceptions can be shown as they are, and which are a student's own words. It
decides whether an allocator refused memory, or whether a `raise` merely says so. It also holds the words for
what is missing in a source that does not say how its model is trained. It never decides whose fault it is or
what it costs.
"""

import builtins
import dis
import re
from typing import Literal

from grader.domain.analyzed_program import Recipe
from grader.domain.formatting import LONGEST, as_code, named
from grader.protocol.requests import MOST_STATE, MOST_TENSORS

UNUSABLE = "UnnamedError"  # in place of a name that cannot be used

# the exceptions of Python, and those that PyTorch and the libraries around it raise
LIBRARIES = frozenset(
    {
        *(
            "AcceleratorError",
            "AxisError",
            "BackendCompilerFailed",
            "CalledProcessError",
            "DecompressionBombError",
        ),
        *(
            "EinopsError",
            "Empty",
            "Full",
            "InvalidOperation",
            "JSONDecodeError",
            "LinAlgError",
            "NotFittedError",
        ),
        # of libraries that would download
        *("HTTPError", "LocalEntryNotFoundError", "OfflineModeIsEnabled", "SafetensorError", "URLError"),
        *("OutOfMemoryError", "PicklingError", "UnidentifiedImageError", "UnpicklingError"),
        *("UninitializedParameterError", "UnsupportedOperation", "Unsupported", "UnusableGpuError"),
    }
)
KNOWN = LIBRARIES | {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
_USABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def usable_name(name: str) -> bool:
    """Whether a name can be that of an exception's class that somebody wrote down."""
    return len(name) <= LONGEST and _USABLE.fullmatch(name) is not None


def exception_in_words(name: str) -> str:
    """An exception's name for a sentence: as it is if Python or a library defines it, else as a quotation."""
    if name == UNUSABLE:
        return "an exception without a usable name"
    return name if name in KNOWN else f"an exception of its own, {named(name)}"


def exception_named_in_source(name: str, source: str) -> str:
    """The same where a name must not carry a secret: a student's is shown only if the source has that class.

    Args:
        source: All the code that was handed in.
    """
    if name in KNOWN or re.search(rf"\bclass\s+{re.escape(name)}\b", source):
        return exception_in_words(name)
    return "an exception of its own"


# --- allocation ------------------------------------------------------------------------------------------


# how PyTorch's CPU allocator begins its message, in a plain RuntimeError
REFUSED = "can't allocate memory"


def is_raised_by_a_statement(error: BaseException) -> bool:
    """Whether a `raise` statement raised it, not an allocator or a system call of a library in C.

    What a statement raises may say anything. The exception has been raised and caught, so it has a traceback.
    """
    # a hostile exception may lie when it is asked itself
    last = BaseException.__dict__["__traceback__"].__get__(error)
    while last.tb_next is not None:
        last = last.tb_next
    operation = last.tb_frame.f_code.co_code[last.tb_lasti]
    return dis.opname[operation] in ("RAISE_VARARGS", "RERAISE")


def is_refused_memory(error: BaseException) -> bool:
    """Whether an allocator, Python's or PyTorch's, refused to give memory on a CPU."""
    if isinstance(error, MemoryError):
        return True
    if type(error) is not RuntimeError or error.__traceback__ is None:
        return False
    return not is_raised_by_a_statement(error) and REFUSED in str(error)


# --- recipe gaps -----------------------------------------------------------------------------------------


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
        gap: Not empty. If a loop raised, the caller says what it raised and where.
        recipe: What was read from the source. Expressions are quoted from it, not from the worker.
    """
    match gap:
        case "no_model":
            return "no model was found in the source: no statement makes one of the graded class"
        case "unusable_batch_size":
            expression = _quoted_expression(recipe.batch_size)
            return f"{expression} is not a usable batch size: expected a whole number above zero"
        case "made_once":
            return (
                "the model was made with something other than numbers and texts, so it cannot be made again"
            )
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
            return "the code that prepares its images could not be executed on its own"
        case _:
            return "the loop could not be continued"


def _quoted_expression(expression: str | None) -> str:
    return as_code(expression) if expression else "what was found"
