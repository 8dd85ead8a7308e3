"""The names of exceptions: which can be told as they are, and which are a student's own words."""

import builtins
import re

from grader.domain.quoting import LONGEST, named

UNUSABLE = "UnnamedError"  # in the place of a name that is none

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


def told(name: str) -> str:
    """An exception's name for a sentence: as it is where Python or a library has it, else as a quotation."""
    if name == UNUSABLE:
        return "an exception without a usable name"
    return name if name in KNOWN else f"an exception of its own, {named(name)}"


def told_of(name: str, source: str) -> str:
    """The same where even a name must carry nothing: a student's is told only if the source has such a class.

    Args:
        source: All that was handed in as code.
    """
    if name in KNOWN or re.search(rf"\bclass\s+{re.escape(name)}\b", source):
        return told(name)
    return "an exception of its own"
